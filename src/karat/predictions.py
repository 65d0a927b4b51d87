"""Predictions: what was answered beside what is true, exactly as ``predictions.csv`` holds it.

Metrics see Predictions and nothing else, so every score can be computed again from the file.
Class labels are kept as text and never changed: ``NA``, ``True``, ``0``, commas and case survive.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from karat.errors import ContractError, DataError

#: what an answer is: a class label, a number (a value, a similarity), an item id, a cluster number
ANSWERS = ("classes", "numbers", "items", "clusters")
TRUTHS = ("classes", "numbers", "items")
_EXTRAS = ("group", "rank", "candidates", "question", "weight", "known")
_WHOLE = ("candidates", "question", "known")
_TEXT = ("classes", "items")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Answers and truth of one test fold, one row per question.

    Attributes
    ----------
    predictions
        Labels (text), numbers, item ids (text) or cluster numbers, as ``answers`` says.
    truth
        Labels (text), numbers or item ids (text), as ``truths`` says.
    classes, probabilities
        All class labels in the order of their text, and one probability column for each.
    group
        The group (query, main entity) of each question.
    rank
        Where the true item stood among the candidates (1 is best); ``candidates`` says of how many.
    question
        The question's position in its data set, kept when some questions were left out.
    weight
        How many questions a row stands for, where they are too many to list (all pairs of a table).
    known
        1 where the model knew all that was asked about, 0 where the row stands for not knowing.
    """

    predictions: np.ndarray
    truth: np.ndarray
    answers: str = "numbers"
    truths: str = "numbers"
    classes: tuple[str, ...] = ()
    probabilities: np.ndarray | None = None
    group: np.ndarray | None = None
    rank: np.ndarray | None = None
    candidates: np.ndarray | None = None
    question: np.ndarray | None = None
    weight: np.ndarray | None = None
    known: np.ndarray | None = None

    def __post_init__(self) -> None:
        for name, what, known in (
            ("predictions", self.answers, ANSWERS),
            ("truth", self.truths, TRUTHS),
        ):
            if what not in known:
                raise ContractError(f'{name} are one of {", ".join(known)}, not "{what}".')
            values = getattr(self, name)
            values = as_text(values) if what in _TEXT else _floats(values, name)
            object.__setattr__(self, name, values)
        if len(self.predictions) != len(self.truth):
            raise ContractError(
                f"{len(self.predictions)} answers were given to {len(self.truth)} questions; "
                f"one answer per question is needed."
            )
        object.__setattr__(self, "classes", tuple(map(str, self.classes)))
        self._check_extras()

    def _check_extras(self) -> None:
        shapes: dict[str, tuple[int, ...]] = {name: (len(self.truth),) for name in _EXTRAS}
        for name, shape in {"probabilities": (len(self), len(self.classes)), **shapes}.items():
            values = getattr(self, name)
            if values is None:
                continue
            values = as_text(values) if name == "group" else _floats(values, name, len(shape))
            values = values.astype(np.intp) if name in _WHOLE else values
            if values.shape != shape:
                raise ContractError(f"{name} have the shape {values.shape}, not {shape}.")
            object.__setattr__(self, name, values)

    def __len__(self) -> int:
        return len(self.truth)

    # -- labels as numbers, made once for all metrics ---------------------------------------

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All class labels: the known ones in their order, then any other label met.

        A truth of the numbers 0 and 1 counts as two classes.
        """
        if self.truths == "numbers" and np.isin(self.truth, (0, 1)).all():
            return ("0", "1")
        if self.truths != "classes":
            return ()
        seen = set(self.truth.tolist())
        if self.answers == "classes":
            seen.update(self.predictions.tolist())
        return (*self.classes, *sorted(seen - set(self.classes)))

    @cached_property
    def true_codes(self) -> np.ndarray:
        """The place of each row's true label among all labels."""
        if self.truths == "numbers":
            return self.truth.astype(np.intp)
        return self._codes(self.truth)

    @cached_property
    def answered_codes(self) -> np.ndarray:
        """The place of each row's answered label among all labels."""
        return self._codes(self.predictions)

    def _codes(self, texts: np.ndarray) -> np.ndarray:
        place = {label: i for i, label in enumerate(self.labels)}
        return np.fromiter(map(place.__getitem__, texts.tolist()), np.intp, len(texts))

    # -- some rows, more rows ---------------------------------------------------------------

    def take(self, rows: np.ndarray) -> Predictions:
        """Return some of the rows."""
        cut: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("predictions", "truth", "probabilities", *_EXTRAS)
        }
        return Predictions(answers=self.answers, truths=self.truths, classes=self.classes, **cut)

    def covered(self, by_group: bool = False) -> Predictions:
        """Return the rows of what the model knew; whole groups of which it knew something."""
        if self.known is None:
            return self
        kept = self.known == 1
        if by_group and self.group is not None:
            kept = np.isin(self.group, self.group[kept])
        return self.take(np.flatnonzero(kept))

    def merged(self, other: Predictions, mine: np.ndarray) -> Predictions:
        """Return both sets of rows as one: this one's where ``mine`` is true, in order."""
        place = np.empty(len(mine), dtype=np.intp)
        place[np.flatnonzero(mine)] = np.arange(len(self))
        place[np.flatnonzero(~mine)] = len(self) + np.arange(len(other))
        both: dict[str, Any] = {}
        for name in ("predictions", "truth", "probabilities", *_EXTRAS):
            pair = [getattr(self, name), getattr(other, name)]
            if sum(values is None for values in pair) == 1:
                raise ContractError(f"{name} are given for some of the questions only.")
            both[name] = None if pair[0] is None else np.concatenate(pair)[place]
        return Predictions(answers=self.answers, truths=self.truths, classes=self.classes, **both)

    # -- the file ---------------------------------------------------------------------------

    def to_csv(self) -> str:
        """Return the text of ``predictions.csv``: classes, predictions, truth, then our extras."""
        extras = [name for name in _EXTRAS if getattr(self, name) is not None]
        columns: list[list[str]] = []
        if self.probabilities is not None:
            columns += [_cells(column) for column in self.probabilities.T]
        columns += [_cells(self.predictions), _cells(self.truth)]
        columns += [_cells(getattr(self, name)) for name in extras]
        classes = self.classes if self.probabilities is not None else ()
        header = [*map(_quoted, classes), "predictions", "truth", *extras]
        lines = map(",".join, zip(*columns, strict=True))
        return "\n".join([",".join(header), *lines, ""])

    @classmethod
    def from_csv(
        cls, text: str, *, answers: str, truths: str, classes: Sequence[str] = ()
    ) -> Predictions:
        """Read ``predictions.csv`` back; what the columns mean comes from the job's metadata."""
        header, *body = _rows(text)
        at = _truth_column(header)
        columns = [np.array(cells, dtype=object) for cells in zip(*body, strict=True)]
        columns = columns or [np.array([], dtype=object) for _ in header]
        chances = columns[: at - 1]
        extras = dict(zip(header[at + 1 :], columns[at + 1 :], strict=True))
        return cls(
            predictions=columns[at - 1],
            truth=columns[at],
            answers=answers,
            truths=truths,
            classes=tuple(header[: at - 1]) if chances else tuple(classes),
            probabilities=np.column_stack(chances) if chances else None,
            **{name: extras.get(name) for name in _EXTRAS},
        )


def as_text(labels: Any) -> np.ndarray:
    """Return labels as text, one object per label, unchanged otherwise.

    >>> as_text(np.array([True, False])).tolist()
    ['True', 'False']
    """
    if np.ndim(labels) != 1:
        raise ContractError(f"labels have {np.ndim(labels)} dimensions; there must be one.")
    if isinstance(labels, np.ndarray) and labels.dtype == object:
        from pandas.api.types import infer_dtype

        if infer_dtype(labels, skipna=False) == "string":
            return labels
    # a list goes label by label: numpy would make one type of all and cut zeros off their ends
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return np.array([str(label) for label in values], dtype=object)


def _floats(values: Any, what: str, dimensions: int = 1) -> np.ndarray:
    try:
        numbers = np.asarray(values).astype(float, copy=False)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{what} must be numbers: {error}.") from error
    if numbers.ndim != dimensions:
        raise ContractError(f"{what} have {numbers.ndim} dimensions, not {dimensions}.")
    return numbers


def _cells(values: np.ndarray) -> list[str]:
    if values.dtype == object:
        texts = values.tolist()
        quoted = {text: _quoted(text) for text in set(texts)}  # labels are few
        return [quoted[text] for text in texts]
    return _numbers(values) if values.dtype.kind == "f" else list(map(repr, values.tolist()))


def _numbers(values: np.ndarray) -> list[str]:
    """Return the shortest texts that read back to the same bits, as ``repr`` writes them."""
    from pydantic_core import to_json

    size = np.abs(values)
    # only here are the texts of JSON and of Python the same; those of JSON are made much faster
    plain = (size == 0) | (size >= 1e-4) & (size < 1e16)
    texts = to_json(np.where(plain, values, 0.0).tolist()).decode()[1:-1].split(",")
    for place in np.flatnonzero(~plain).tolist():
        texts[place] = float.__repr__(float(values[place]))
    return texts if len(values) else []


def _quoted(text: str) -> str:
    # the csv module leaves a lone carriage return bare, which no reader takes back
    if any(mark in text for mark in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


def _rows(text: str) -> list[list[str]]:
    try:
        rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise DataError(f"the predictions file is damaged: {error}.") from error
    if not rows:
        raise DataError("the predictions file is empty.")
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise DataError(
                f"the predictions file is damaged: row {number} has {len(row)} cells, "
                f"the header has {len(rows[0])}."
            )
    return rows


def _truth_column(header: list[str]) -> int:
    # a class may itself be called "predictions" or "truth", so the last such pair counts
    for at in range(len(header) - 1, 0, -1):
        if header[at] == "truth" and header[at - 1] == "predictions":
            return at
    raise DataError('the predictions file has no neighbouring columns "predictions" and "truth".')
