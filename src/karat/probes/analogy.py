"""The analogy probe: a is to b as c is to … the item nearest to b − a + c."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.predictions import Predictions
from karat.registry import probe
from karat.vectors import Vectors

#: at most this many scores are held at once
BLOCK = 2**24


@probe("analogy")
class Analogy:
    """Rank the true item among all candidates by the cosine to b − a + c.

    Candidates are the encoder's whole vocabulary, or the data set's items where it has none; a, b
    and c are left out. Ties count against the encoder, so equal vectors earn nothing.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions mention only known items and have a known answer."""
        if data.kind != "items" or len(data.fields) != 3:
            raise DefinitionError(
                f"probe: analogy takes questions of three fields whose truth is an item; "
                f"{data.name} has {len(data.fields)} fields and {data.kind}."
            )
        ids, _ = self._candidates(data, vectors)
        able = vectors.answerable(data)
        if data.truth is None:
            return able
        return able & (ids.get_indexer(pd.Index(data.truth)) >= 0)

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn nothing."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each question and the rank of the true one."""
        ids, matrix = self._candidates(test, vectors)
        matrix = _unit(matrix)
        places = [ids.get_indexer(pd.Index(test.questions[name])) for name in test.fields]
        truth = ids.get_indexer(pd.Index(np.asarray(test.truth)))
        best = np.empty(len(test), dtype=np.intp)
        rank = np.empty(len(test))
        step = max(1, BLOCK // len(ids))
        for start in range(0, len(test), step):
            rows = slice(start, start + step)
            a, b, c = (place[rows] for place in places)
            scores = (matrix[b] - matrix[a] + matrix[c]) @ matrix.T
            each = np.arange(len(scores))
            wanted = scores[each, truth[rows]].copy()
            for asked in (a, b, c):
                scores[each, asked] = -np.inf
            best[rows] = scores.argmax(axis=1)
            rank[rows] = np.maximum((scores >= wanted[:, None]).sum(axis=1), 1)
        return self._predictions(test, ids.to_numpy()[best], rank, len(ids))

    def unanswered(self, test: Dataset) -> Predictions:
        """Return misses: no answer, and the true item behind every candidate."""
        count = len(test.items) + 1
        return self._predictions(test, np.full(len(test), ""), np.full(len(test), np.inf), count)

    def _candidates(self, data: Dataset, vectors: Vectors) -> tuple[pd.Index, np.ndarray]:
        if vectors.vocabulary is not None:
            return vectors.vocabulary
        known = ~np.isnan(vectors.matrix[:, 0])
        return data.items.index[vectors.rows[known]], np.asarray(vectors.matrix[known])

    def _predictions(
        self, test: Dataset, answers: np.ndarray, rank: np.ndarray, candidates: int
    ) -> Predictions:
        return Predictions(
            predictions=answers,
            truth=np.asarray(test.truth),
            answers="items",
            truths="items",
            rank=rank,
            candidates=np.full(len(test), candidates),
        )


def _unit(matrix: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(lengths > 0, lengths, 1.0), dtype=np.float32)
