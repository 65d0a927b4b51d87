"""The duplicates probe: how near all pairs of items lie, against which of them are the same.

No matrix of all pairs is ever held. Similarities are counted block by block on a grid of
millionths, and only the counts that a threshold can tell apart are kept: those at and between the
scores of true duplicates. ROC area, average precision and best F1 are exact on that grid.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.predictions import Predictions
from karat.registry import probe
from karat.vectors import Vectors, unit_rows

#: similarities are told apart to this many steps between −1 and 1
STEPS = 2_000_000
#: at most this many similarities are held at once
BLOCK = 2**22


@probe("duplicates")
class Duplicates:
    """Compare every pair of items by cosine; a pair of one class is a duplicate.

    The answer is one row per step that matters, with the number of pairs as its weight.
    """

    one_answer_each = False

    def __init__(self) -> None:
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions mention known items."""
        if data.kind != "classes" or len(data.fields) != 1:
            raise DefinitionError(
                f"probe: duplicates takes questions of one field whose classes say who is the "
                f"same; {data.name} has {len(data.fields)} fields and {data.kind}."
            )
        return vectors.answerable(data)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn nothing."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the counted similarities of all pairs, duplicates and others."""
        matrix = unit_rows(vectors.of(test, test.fields[0]))
        entity = np.asarray(pd.factorize(np.asarray(test.truth))[0])
        if len(np.unique(entity)) == len(entity):
            raise DataError(f"{test.name}: no two items are of one class, so none is a duplicate.")
        same, other = _count_pairs(matrix, entity)
        return _predictions(same, other)

    def unanswered(self, test: Dataset) -> Predictions:
        """Refuse: a pair of unknown items has no place among the counts."""
        raise DefinitionError("probe: duplicates cannot penalise; say missing: ignore.")


def _count_pairs(matrix: np.ndarray, entity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how many pairs of one class, and of two, have each similarity on the grid."""
    same = np.zeros(STEPS + 1, dtype=np.int64)
    every = np.zeros(STEPS + 1, dtype=np.int64)
    step = max(1, BLOCK // len(matrix))
    for start in range(0, len(matrix), step):
        rows = np.arange(start, min(start + step, len(matrix)))
        # each pair once: a block meets what comes after it, and itself above the diagonal
        cosines = matrix[rows] @ matrix[start:].T
        levels = np.rint((np.clip(cosines, -1, 1) + 1) * (STEPS // 2)).astype(np.int32)
        later = np.arange(len(matrix) - start) > np.arange(len(rows))[:, None]
        every += np.bincount(levels[later], minlength=STEPS + 1)
        twins = later & (entity[rows][:, None] == entity[start:])
        same += np.bincount(levels[twins], minlength=STEPS + 1)
    return same, every - same


def _predictions(same: np.ndarray, other: np.ndarray) -> Predictions:
    marks = np.flatnonzero(same)
    before = np.concatenate([[0], np.cumsum(other)])
    # others at a duplicate's own step, and all those between two such steps as one
    at_mark = other[marks]
    edges = np.concatenate([[-1], marks, [STEPS + 1]])
    between = before[np.minimum(edges[1:], STEPS + 1)] - before[edges[:-1] + 1]
    middle = (edges[1:] + edges[:-1]) / 2
    level = np.concatenate([marks, marks, middle])
    weight = np.concatenate([same[marks], at_mark, between])
    truth = np.repeat([1.0, 0.0, 0.0], [len(marks), len(marks), len(middle)])
    kept = weight > 0
    order = np.argsort(level[kept], kind="stable")
    return Predictions(
        predictions=level[kept][order] / (STEPS // 2) - 1,
        truth=truth[kept][order],
        weight=weight[kept][order],
    )
