"""The similarity probe: how near the two items of a question lie, nothing learned."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from karat.dataset import Dataset
from karat.errors import DefinitionError, did_you_mean
from karat.predictions import Predictions
from karat.registry import probe
from karat.vectors import Vectors

#: questions are compared in blocks of this many
BLOCK = 65_536


def cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosine of the angle between rows; 0 where a vector is zero."""
    lengths = np.sqrt(dot(a, a)) * np.sqrt(dot(b, b))
    return np.clip(np.divide(dot(a, b), lengths, out=np.zeros(len(a)), where=lengths > 0), -1, 1)


def dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot product of rows."""
    return np.einsum("ij,ij->i", a, b, dtype=np.float64)


def euclidean(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the negated Euclidean distance of rows, so that higher is nearer."""
    apart = a.astype(np.float64) - b
    return -np.sqrt(dot(apart, apart))


def manhattan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the negated city-block distance of rows, so that higher is nearer."""
    return -np.abs(a.astype(np.float64) - b).sum(axis=1)


MEASURES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "cosine": cosine,
    "dot": dot,
    "euclidean": euclidean,
    "manhattan": manhattan,
}


@probe("similarity")
class Similarity:
    """Answer each question of two fields with the similarity of their vectors."""

    def __init__(self, measure: str = "cosine") -> None:
        if measure not in MEASURES:
            raise DefinitionError(
                f'probe: there is no similarity measure "{measure}".'
                f"{did_you_mean(measure, MEASURES)} There are: {', '.join(MEASURES)}."
            )
        self.measure = measure
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions mention known items in every field."""
        if len(data.fields) != 2:
            raise DefinitionError(
                f"probe: similarity compares two fields, {data.name} has {len(data.fields)}."
            )
        return vectors.answerable(data)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn nothing."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the similarity of each question's two items."""
        scores = np.empty(len(test))
        for start in range(0, len(test), BLOCK):
            part = test.take(np.arange(start, min(start + BLOCK, len(test))))
            a, b = (vectors.of(part, name) for name in test.fields)
            scores[start : start + BLOCK] = MEASURES[self.measure](a, b)
        self.lowest_ = float(scores.min())
        return self._predictions(test, scores)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return a similarity below all others: items nobody knows stand at the tail."""
        lowest = getattr(self, "lowest_", 0.0)
        below = min(lowest - 1.0, np.nextafter(lowest, -np.inf))
        return self._predictions(test, np.full(len(test), below))

    def _predictions(self, test: Dataset, scores: np.ndarray) -> Predictions:
        return Predictions(
            predictions=scores,
            truth=np.asarray(test.truth),
            truths=test.kind,
            classes=tuple(str(label) for label in test.classes),
            group=test.group,
        )
