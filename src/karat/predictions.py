"""Predictions: what was answered beside what is true, exactly as ``predictions.csv`` holds it.

Metrics see Predictions and nothing else, so every score can be computed again from the file.
Class labels are kept as text and never changed: ``NA``, ``True``, ``0``, commas and case survive.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.errors import ContractError, DataError

#: what an answer is: a class label, a number (a value, a similarity), an item id, a cluster number
ANSWERS = ("classes", "numbers", "items", "clusters")
TRUTHS = ("classes", "numbers", "items")
_EXTRAS = ("group", "rank", "candidates", "question")


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

    def __post_init__(self) -> None:
        text = {"classes", "items"}
        for name, what in (("predictions", self.answers), ("truth", self.truths)):
            values = np.asarray(getattr(self, name))
            values = as_text(values) if what in text else values.astype(float)
            object.__setattr__(self, name, values)
        if len(self.predictions) != len(self.truth):
            raise ContractError(
                f"{len(self.predictions)} answers were given to {len(self.truth)} questions; "
                f"one answer per question is needed."
            )
        if self.probabilities is not None:
            shape = (len(self.truth), len(self.classes))
            if self.probabilities.shape != shape:
                raise ContractError(
                    f"probabilities have the shape {self.probabilities.shape}, not {shape}."
                )

    def __len__(self) -> int:
        return len(self.truth)

    def take(self, rows: np.ndarray) -> Predictions:
        """Return some of the rows."""
        cut: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("predictions", "truth", "probabilities", *_EXTRAS)
        }
        return Predictions(answers=self.answers, truths=self.truths, classes=self.classes, **cut)

    def merged(self, other: Predictions, mine: np.ndarray) -> Predictions:
        """Return both sets of rows as one: this one's where ``mine`` is true, in order."""
        place = np.empty(len(mine), dtype=np.intp)
        place[np.flatnonzero(mine)] = np.arange(len(self))
        place[np.flatnonzero(~mine)] = len(self) + np.arange(len(other))
        both: dict[str, Any] = {
            name: None
            if getattr(self, name) is None
            else np.concatenate([getattr(self, name), getattr(other, name)])[place]
            for name in ("predictions", "truth", "probabilities", *_EXTRAS)
        }
        return Predictions(answers=self.answers, truths=self.truths, classes=self.classes, **both)

    # -- the file ---------------------------------------------------------------------------

    def to_csv(self) -> str:
        """Return the text of ``predictions.csv``: classes, predictions, truth, then our extras."""
        extras = [name for name in _EXTRAS if getattr(self, name) is not None]
        columns: list[Sequence[Any]] = []
        if self.probabilities is not None:
            columns += [_cells(column) for column in self.probabilities.T]
        columns += [_cells(self.predictions), _cells(self.truth)]
        columns += [_cells(getattr(self, name)) for name in extras]
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        classes = self.classes if self.probabilities is not None else ()
        writer.writerow([*classes, "predictions", "truth", *extras])
        writer.writerows(zip(*columns, strict=True))
        return out.getvalue()

    @classmethod
    def from_csv(
        cls, text: str, *, answers: str, truths: str, classes: Sequence[str] = ()
    ) -> Predictions:
        """Read ``predictions.csv`` back; what the columns mean comes from the job's metadata."""
        rows = list(csv.reader(io.StringIO(text)))
        if not rows:
            raise DataError("the predictions file is empty.")
        header, body = rows[0], rows[1:]
        at = _truth_column(header)
        columns = [np.array([row[i] for row in body], dtype=object) for i in range(len(header))]
        chances = columns[: at - 1]
        extras = dict(zip(header[at + 1 :], columns[at + 1 :], strict=True))
        text_valued = {"classes", "items"}
        return cls(
            predictions=columns[at - 1] if answers in text_valued else _numbers(columns[at - 1]),
            truth=columns[at] if truths in text_valued else _numbers(columns[at]),
            answers=answers,
            truths=truths,
            classes=tuple(header[: at - 1]) if chances else tuple(classes),
            probabilities=np.column_stack([_numbers(c) for c in chances]) if chances else None,
            group=extras.get("group"),
            rank=_numbers(extras["rank"]) if "rank" in extras else None,
            candidates=_numbers(extras["candidates"]) if "candidates" in extras else None,
            question=_numbers(extras["question"]).astype(int) if "question" in extras else None,
        )


def as_text(labels: Any) -> np.ndarray:
    """Return labels as text, one object per label, unchanged otherwise.

    >>> as_text(np.array([True, False])).tolist()
    ['True', 'False']
    """
    return np.array([str(label) for label in np.asarray(labels).tolist()], dtype=object)


def _cells(values: np.ndarray) -> list[Any]:
    # repr of a float is the shortest text that reads back to the same bits
    return [repr(v) if isinstance(v, float) else v for v in values.tolist()]


def _numbers(texts: np.ndarray) -> np.ndarray:
    return np.array([float(text) for text in texts], dtype=float)


def _truth_column(header: list[str]) -> int:
    # a class may itself be called "predictions" or "truth", so the last such pair counts
    for at in range(len(header) - 1, 0, -1):
        if header[at] == "truth" and header[at - 1] == "predictions":
            return at
    raise DataError('the predictions file has no neighbouring columns "predictions" and "truth".')
