"""Predictions and targets of a test fold, exactly as stored in ``predictions.csv``.

That file has the columns of the AutoML Benchmark, by which its readers know the kind of task;
further columns, such as the keys of the items, are in ``rows.csv`` next to it. Metrics use
Predictions only, so every score can be recomputed from the files. Class labels are text and never
changed: ``NA``, ``True``, ``0``, commas and case survive.
"""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from karat.core.notebook import facts_html
from karat.errors import ContractError, DataError

#: kinds of predictions: class labels, numbers (values, similarities), item ids, cluster numbers
ANSWERS = ("classes", "numbers", "items", "clusters")
TRUTHS = ("classes", "numbers", "items")
#: the files of a job's predictions, and of the further columns of their rows
FILE, ROWS_FILE = "predictions.csv", "rows.csv"
#: the further columns; runs of earlier versions have them in ``predictions.csv``, after the target
EXTRAS = ("group", "rank", "candidates", "question", "weight", "known", "key", "gain")
_WHOLE = ("candidates", "question", "known")
_CODES = ("true_codes", "answered_codes")
_TEXT = ("classes", "items")
#: extra columns that hold text
TEXT_EXTRAS = ("group", "key")
#: the types that probabilities may have; others become the first
PRECISIONS = ("float64", "float32", "float16")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions and targets of one test fold, one row per question.

    Attributes
    ----------
    predictions
        Labels (text), numbers, item ids (text) or cluster numbers, as given by ``answers``.
    target
        Labels (text), numbers or item ids (text), as given by ``truths``.
    answers, truths
        What the predictions and the targets are: ``"classes"``, ``"numbers"``, ``"items"`` or
        ``"clusters"`` (predictions only).
    classes, probabilities
        All class labels sorted as text, and one probability column for each. Probabilities keep
        their type (float64, float32 or float16), because the log loss depends on it.
    group
        The group (query, main entity) of each question.
    rank, candidates
        Rank of the target item (1 is best), and the number of candidates.
    question
        Position of the question in its dataset; some may be left out.
    weight
        How much each row counts: its weight in the dataset, or the number of questions that it
        represents if there are too many to list (all pairs of a table).
    known
        1 if the model has vectors for all items of the question, 0 if the answer is a default.
    key
        The key of each row's item: its name in the data, or its row there. Runs of earlier versions
        have none.
    gain
        The relevance of the target item, if it is graded; 0 is judged and not relevant.
    """

    predictions: np.ndarray
    target: np.ndarray
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
    key: np.ndarray | None = None
    gain: np.ndarray | None = None

    def __post_init__(self) -> None:
        kinds = (("predictions", self.answers, ANSWERS), ("target", self.truths, TRUTHS))
        for name, what, allowed in kinds:
            if what not in allowed:
                raise ContractError(f'{name} must be one of {", ".join(allowed)}, got "{what}".')
            values = getattr(self, name)
            values = as_text(values) if what in _TEXT else _floats(values, name)
            object.__setattr__(self, name, values)
        if len(self.predictions) != len(self.target):
            raise ContractError(
                f"got {len(self.predictions)} predictions for {len(self.target)} rows; "
                f"expected one prediction per row."
            )
        object.__setattr__(self, "classes", tuple(map(str, self.classes)))
        shapes: dict[str, tuple[int, ...]] = {name: (len(self.target),) for name in EXTRAS}
        for name, shape in {"probabilities": (len(self), len(self.classes)), **shapes}.items():
            values = getattr(self, name)
            if values is None:
                continue
            values = as_text(values) if name in TEXT_EXTRAS else _floats(values, name, len(shape))
            values = values.astype(np.intp) if name in _WHOLE else values
            if values.shape != shape:
                raise ContractError(f"{name} must have the shape {shape}, got {values.shape}.")
            object.__setattr__(self, name, values)

    def __repr__(self) -> str:
        return f"<Predictions of {len(self):,} rows: {self.answers}, target: {self.truths}>"

    def _repr_html_(self) -> str:
        import pandas as pd  # a metric of arrays does not load it

        values = {"key": self.key, "target": self.target, "prediction": self.predictions}
        columns = {name: list(column) for name, column in values.items() if column is not None}
        classes = ", ".join(map(str, self.classes))
        return facts_html(repr(self)[1:-1], {"classes": classes}, [pd.DataFrame(columns)])

    def __len__(self) -> int:
        return len(self.target)

    # -- labels as codes, computed once for all metrics -------------------------------------

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """All class labels: ``classes`` in their order, then other labels in the data.

        Targets of the numbers 0 and 1 are two classes.
        """
        if self.truths == "numbers" and np.isin(self.target, (0, 1)).all():
            return ("0", "1")
        if self.truths != "classes":
            return ()
        seen = set(self.target.tolist())
        if self.answers == "classes":
            seen.update(self.predictions.tolist())
        return (*self.classes, *sorted(seen - set(self.classes)))

    @cached_property
    def true_codes(self) -> np.ndarray:
        """The index of each row's target in ``labels``."""
        if self.truths == "numbers":
            return self.target.astype(np.intp)
        return self._codes(self.target)

    @cached_property
    def answered_codes(self) -> np.ndarray:
        """The index of each row's predicted label in ``labels``."""
        return self._codes(self.predictions)

    @property
    def is_labeled(self) -> bool:
        """Whether predictions and targets are classes."""
        return self.answers == self.truths == "classes"

    @property
    def precision(self) -> str:
        """The type of the probabilities, ``float64`` without any."""
        return PRECISIONS[0] if self.probabilities is None else self.probabilities.dtype.name

    @property
    def tolerance(self) -> float:
        """The largest allowed difference between 1 and the sum of a row of probabilities."""
        return sum_tolerance(self.precision)

    @cached_property
    def confidence(self) -> np.ndarray | None:
        """The probability of each predicted class, None without probabilities.

        NaN for a predicted label without a probability.
        """
        return self._chances(self.answered_codes) if self._has_chances else None

    @cached_property
    def target_chance(self) -> np.ndarray | None:
        """The probability of each row's target, as ``confidence``."""
        return self._chances(self.true_codes) if self._has_chances else None

    @property
    def _has_chances(self) -> bool:
        return self.probabilities is not None and self.is_labeled and len(self) > 0

    def _chances(self, codes: np.ndarray) -> np.ndarray:
        assert self.probabilities is not None
        chances = np.column_stack([self.probabilities, np.full(len(self), np.nan)])
        return np.asarray(chances[np.arange(len(self)), np.minimum(codes, len(self.classes))])

    def _codes(self, texts: np.ndarray) -> np.ndarray:
        code_of = {label: i for i, label in enumerate(self.labels)}
        return np.fromiter(map(code_of.__getitem__, texts.tolist()), np.intp, len(texts))

    # -- selecting and merging --------------------------------------------------------------

    def take(self, rows: np.ndarray) -> Predictions:
        """Return some of the rows, with what is already known about each of them."""
        columns: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("predictions", "target", "probabilities", *EXTRAS)
        }
        kinds = {"answers": self.answers, "truths": self.truths, "classes": self.classes}
        taken = object.__new__(Predictions)  # its columns are checked already
        vars(taken).update(columns, **kinds, row_facts=self._facts_of(rows))
        labels = vars(self).get("labels")
        # other labels than the classes are those that occur, here perhaps fewer
        if labels and (labels == self.classes or self.truths == "numbers"):
            codes = {name: vars(self)[name][rows] for name in _CODES if name in vars(self)}
            vars(taken).update(codes, labels=labels)
        return taken

    def _facts_of(self, rows: np.ndarray) -> dict[str, np.ndarray]:
        return {name: values[rows] for name, values in self.row_facts.items()}

    @cached_property
    def row_facts(self) -> dict[str, np.ndarray]:
        """What metrics computed for each row, by name; ``take`` keeps it."""
        return {}

    def covered(self, by_group: bool = False) -> Predictions:
        """Return the rows with ``known`` 1, or all rows of groups that have one."""
        if self.known is None:
            return self
        covered = self.known == 1
        if by_group and self.group is not None:
            covered = np.isin(self.group, self.group[covered])
        return self.take(np.flatnonzero(covered))

    def merged(self, other: Predictions, is_first: np.ndarray) -> Predictions:
        """Return the rows of both, in order: this one's where ``is_first`` is true."""
        position = np.empty(len(is_first), dtype=np.intp)
        position[np.flatnonzero(is_first)] = np.arange(len(self))
        position[np.flatnonzero(~is_first)] = len(self) + np.arange(len(other))
        both: dict[str, Any] = {}
        for name in ("predictions", "target", "probabilities", *EXTRAS):
            pair = [getattr(self, name), getattr(other, name)]
            if sum(values is None for values in pair) == 1:
                raise ContractError(f"{name} are given for some of the questions only.")
            if pair[0] is not None:
                both[name] = np.concatenate(pair, dtype=pair[0].dtype)[position]
        return Predictions(answers=self.answers, truths=self.truths, classes=self.classes, **both)

    # -- the file ---------------------------------------------------------------------------

    def to_csv(self) -> str:
        """Return the text of ``predictions.csv``: classes by the alphabet, predictions, truth.

        Readers of the AutoML Benchmark take the columns in this order, whatever the case of their
        names. The further columns are in ``rows_csv``.
        """
        columns: list[list[str]] = []
        order = alphabetical(self.classes)
        if self.probabilities is not None and self.probabilities.size:
            in_order = order == sorted(order)
            shares = self.probabilities if in_order else self.probabilities[:, order]
            columns.append(_number_rows(shares))
        columns += [_cells(self.predictions), _cells(self.target)]
        classes = [self.classes[i] for i in order] if self.probabilities is not None else []
        return _csv([*map(_quoted, classes), "predictions", "truth"], columns)

    def rows_csv(self) -> str:
        """Return the text of ``rows.csv``: the further columns; empty if there are none."""
        extras = [name for name in EXTRAS if getattr(self, name) is not None]
        return _csv(extras, [_cells(getattr(self, name)) for name in extras]) if extras else ""

    def files(self) -> dict[str, str]:
        """Return the texts of the files of these predictions, by name."""
        texts = {FILE: self.to_csv(), ROWS_FILE: self.rows_csv()}
        return {name: text for name, text in texts.items() if text}

    @classmethod
    def from_csv(
        cls,
        text: str,
        *,
        answers: str,
        truths: str,
        classes: Sequence[str] = (),
        precision: str = PRECISIONS[0],
        rows: str = "",
    ) -> Predictions:
        """Read ``predictions.csv``; the kinds of the columns come from the job's metadata.

        ``rows`` is the text of ``rows.csv``.
        """
        _check_precision(precision)
        header, columns = _columns(text)
        # a class may be named "predictions" or "truth", so use the last such pair
        pairs = [pair == ("predictions", "truth") for pair in itertools.pairwise(header)]
        if not any(pairs):
            raise DataError(
                'the predictions file has no adjacent columns "predictions" and "truth".'
            )
        at = len(pairs) - pairs[::-1].index(True)
        chances = columns[: at - 1]
        labels = header[: at - 1]
        if chances and sorted(labels) == sorted(classes):  # as the metadata has them
            chances = [chances[labels.index(label)] for label in classes]
            labels = list(classes)
        shares = _floats(chances, "probabilities", 2).T.astype(precision) if chances else None
        extras = dict(zip(header[at + 1 :], columns[at + 1 :], strict=True))
        names, more = _columns(rows) if rows else ([], [])
        if more and len(more[0]) != len(columns[at]):
            raise DataError(
                f"{ROWS_FILE} has {len(more[0]):,} rows for {len(columns[at]):,} predictions."
            )
        extras |= dict(zip(names, more, strict=True))
        return cls(
            predictions=columns[at - 1],
            target=columns[at],
            answers=answers,
            truths=truths,
            classes=tuple(labels) if chances else tuple(classes),
            probabilities=shares,
            **{name: extras.get(name) for name in EXTRAS},
        )


def _check_precision(precision: str) -> None:
    if precision not in PRECISIONS:
        raise DataError(
            f"the precision of predictions must be one of {', '.join(PRECISIONS)}, "
            f"got {precision!r}."
        )


def alphabetical(labels: Sequence[str]) -> list[int]:
    """Return the places of labels in alphabetical order, small and capital letters alike.

    >>> alphabetical(["B", "a", "b"])
    [1, 0, 2]
    """
    return sorted(
        range(len(labels)), key=lambda position: (labels[position].lower(), labels[position])
    )


def _csv(header: Sequence[str], columns: Sequence[Sequence[str]]) -> str:
    if len(columns) == 1:  # else the line of an empty text would be that of no row
        columns = [[cell or '""' for cell in columns[0]]]
    lines = map(",".join, zip(*columns, strict=True))
    return "\n".join([",".join(header), *lines, ""])


def _columns(text: str) -> tuple[list[str], list[np.ndarray]]:
    """Return the header and the columns of a file."""
    if (plain := _plain_columns(text)) is not None:
        return plain
    header, *body = _rows(text)
    columns = [np.array(cells, dtype=object) for cells in zip(*body, strict=True)]
    return header, columns or [np.array([], dtype=object) for _ in header]


def _plain_columns(text: str) -> tuple[list[str], list[np.ndarray]] | None:
    """Return the header and the columns of a file without quotes; None if a row is damaged."""
    if not text.endswith("\n") or '"' in text or "\r" in text:
        return None
    marks = np.frombuffer(text.encode("utf-8", "surrogatepass"), dtype=np.uint8)
    marks = marks[(marks == ord(",")) | (marks == ord("\n"))]
    width = int(np.argmax(marks == ord("\n"))) + 1
    if len(marks) % width or "\n\n" in text:
        return None
    ends = marks.reshape(-1, width) == ord("\n")
    if not ends[:, -1].all() or ends[:, :-1].any():
        return None
    cells = text[:-1].replace("\n", ",").split(",")
    columns = [np.array(cells[width + place :: width], dtype=object) for place in range(width)]
    return cells[:width], columns


def as_text(labels: Any) -> np.ndarray:
    """Return labels as an object array of text.

    >>> as_text(np.array([True, False])).tolist()
    ['True', 'False']
    """
    if np.ndim(labels) != 1:
        raise ContractError(f"labels must have 1 dimension, got {np.ndim(labels)}.")
    if isinstance(labels, np.ndarray) and labels.dtype == object:
        from pandas.api.types import infer_dtype

        if infer_dtype(labels, skipna=False) == "string":
            return labels
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low < len(labels) and high < 2**63:  # each number is converted once
            texts = np.array([*map(str, range(low, high + 1))], dtype=object)
            return np.asarray(texts[labels.astype(np.int64) - low])
    # convert label by label: numpy would unify the types and strip trailing null characters
    values = labels.tolist() if hasattr(labels, "tolist") else list(labels)
    return np.array([str(label) for label in values], dtype=object)


def sum_tolerance(precision: DTypeLike) -> float:
    """Return the largest allowed difference between 1 and the sum of a row of probabilities.

    >>> sum_tolerance("float32"), sum_tolerance("float16")
    (0.001, 0.03125)
    """
    return max(1e-3, float(np.sqrt(np.finfo(precision).eps)))


def as_floats(values: ArrayLike) -> np.ndarray:
    """Return numbers as float64, or in their own type if it is one of ``PRECISIONS``."""
    numbers = np.asarray(values)
    return numbers if numbers.dtype.name in PRECISIONS else numbers.astype(float)


def _floats(values: ArrayLike, what: str, dimensions: int = 1) -> np.ndarray:
    try:
        numbers = as_floats(values)
        numbers = numbers if what == "probabilities" else numbers.astype(float, copy=False)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{what} must be numbers: {error}.") from error
    if numbers.ndim != dimensions:
        raise ContractError(f"{what} must have {dimensions} dimensions, got {numbers.ndim}.")
    return numbers


def _cells(values: np.ndarray) -> list[str]:
    if values.dtype == object:
        return quote_cells(values.tolist())
    if values.dtype.kind != "f" or not len(values):
        return list(map(repr, values.tolist()))
    return _number_rows(values[:, None])


def _number_rows(matrix: np.ndarray) -> list[str]:
    """Return the numbers of each row, separated by commas: the shortest that read back equal."""
    from pydantic_core import to_json

    matrix = matrix.astype(float, copy=False)
    size = np.abs(matrix)
    # in this range the JSON text equals repr, and is much faster to produce
    plain = (size == 0) | (size >= 1e-4) & (size < 1e16)
    safe = np.where(plain, matrix, 0.0)
    single = matrix.shape[1] == 1
    texts: list[str] = to_json(safe.ravel().tolist()).decode()[1:-1].split(",") if single else []
    # few lists at a time: each new list counts towards the next garbage collection
    for start in range(0, 0 if single else len(safe), 256):
        texts += to_json(safe[start : start + 256].tolist()).decode()[2:-2].split("],[")
    for row in np.flatnonzero(~plain.all(axis=1)).tolist():
        texts[row] = ",".join(map(repr, matrix[row].tolist()))
    return texts


def quote_cells(texts: list[str]) -> list[str]:
    """Return texts as cells of a CSV file, quoted where it is needed."""
    return list(map(_quoted, texts)) if _needs_quotes("".join(texts)) else texts


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if _needs_quotes(text) else text


def _needs_quotes(text: str) -> bool:
    # the csv module does not quote a lone carriage return, which then cannot be read
    return "," in text or '"' in text or "\r" in text or "\n" in text


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
