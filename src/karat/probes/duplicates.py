"""The duplicates probe: the similarity of all pairs of items predicts which are duplicates.

The matrix of all pairs is never in memory. Similarities are counted block by block on a grid of
millionths, and only counts that a threshold can separate are stored: those at and between the
scores of true duplicates. ROC AUC, average precision and best F1 are exact on that grid.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.predictions import Predictions
from karat.registry import probe
from karat.vectors import Vectors, unit_rows

#: number of grid steps between −1 and 1
STEPS = 2_000_000
#: largest number of similarities in memory
BLOCK = 2**22


@probe("duplicates")
class Duplicates:
    """Compare every pair of items by cosine; a pair of the same class is a duplicate.

    The predictions have one row per relevant grid step, weighted by its number of pairs.
    """

    one_answer_each = False

    def __init__(self) -> None:
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have an item with a vector."""
        if data.kind != "classes" or len(data.fields) != 1:
            raise DefinitionError(
                f"probe: duplicates needs questions with one field and a class as the target; "
                f"{data.name} has {len(data.fields)} fields and {data.kind}."
            )
        return vectors.answerable(data)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Do nothing: the probe is stateless."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the counted similarities of all pairs, duplicates and others."""
        matrix = unit_rows(vectors.of(test, test.fields[0]))
        entity = np.asarray(pd.factorize(np.asarray(test.truth))[0])
        if len(np.unique(entity)) == len(entity):
            raise DataError(f"{test.name}: no two items have the same class; nothing to find.")
        same, other = _count_pairs(matrix, entity)
        return _predictions(same, other)

    def unanswered(self, test: Dataset) -> Predictions:
        """Refuse: pairs without vectors have no similarity."""
        raise DefinitionError("probe: duplicates cannot penalize; set missing: ignore.")


def _count_pairs(matrix: np.ndarray, entity: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count the pairs of the same class, and of different ones, at each grid step."""
    same = np.zeros(STEPS + 1, dtype=np.int64)
    every = np.zeros(STEPS + 1, dtype=np.int64)
    step = max(1, BLOCK // len(matrix))
    for start in range(0, len(matrix), step):
        rows = np.arange(start, min(start + step, len(matrix)))
        # each pair once: only columns after the row
        cosines = matrix[rows] @ matrix[start:].T
        levels = np.rint((np.clip(cosines, -1, 1) + 1) * (STEPS // 2)).astype(np.int32)
        later = np.arange(len(matrix) - start) > np.arange(len(rows))[:, None]
        every += np.bincount(levels[later], minlength=STEPS + 1)
        duplicates = later & (entity[rows][:, None] == entity[start:])
        same += np.bincount(levels[duplicates], minlength=STEPS + 1)
    return same, every - same


def _predictions(same: np.ndarray, other: np.ndarray) -> Predictions:
    marks = np.flatnonzero(same)
    before = np.concatenate([[0], np.cumsum(other)])
    # other pairs at the step of a duplicate, and all those between two such steps together
    at_mark = other[marks]
    edges = np.concatenate([[-1], marks, [STEPS + 1]])
    between = before[np.minimum(edges[1:], STEPS + 1)] - before[edges[:-1] + 1]
    middle = (edges[1:] + edges[:-1]) / 2
    level = np.concatenate([marks, marks, middle])
    weight = np.concatenate([same[marks], at_mark, between])
    truth = np.repeat([1.0, 0.0, 0.0], [len(marks), len(marks), len(middle)])
    used = np.flatnonzero(weight > 0)
    order = used[np.argsort(level[used], kind="stable")]
    return Predictions(
        predictions=level[order] / (STEPS // 2) - 1, truth=truth[order], weight=weight[order]
    )
