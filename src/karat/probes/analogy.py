"""The analogy probe: a is to b as c is to … the item nearest to b − a + c."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from karat.bags import holds_bags
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.predictions import Predictions, as_text
from karat.registry import probe
from karat.vectors import Vectors, unit_rows

#: at most this many scores are held at once
BLOCK = 2**24
#: scores this near count as equal: the product of equal vectors differs in its last bits
TIE = 2e-6


@probe("analogy")
class Analogy:
    """Rank the true item among all candidates by the cosine to b − a + c.

    Candidates are the encoder's whole vocabulary, or the data set's items where it has none; a, b
    and c are left out, and where the answer is one of them it cannot be found. Ties count against
    the encoder, so equal vectors earn nothing.
    """

    def __init__(self) -> None:
        self.notes: list[str] = []
        self._stock: tuple[Any, pd.Index, np.ndarray] | None = None

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions mention only known items and have a known answer."""
        bags = any(holds_bags(data.questions[name]) for name in data.fields)
        if data.kind != "items" or len(data.fields) != 3 or bags:
            raise DefinitionError(
                f"probe: analogy takes questions of three fields, one item each, whose truth is an "
                f"item; {data.name} has {len(data.fields)} fields and {data.kind}."
            )
        ids, _ = self._candidates(data, vectors)
        able = vectors.answerable(data)
        for wanted in _asked(data, vectors):
            able &= ids.get_indexer(wanted) >= 0
        return able

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn nothing."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each question and the rank of the true one."""
        ids, matrix = self._candidates(test, vectors)
        *places, truth = (_places(ids, wanted) for wanted in _asked(test, vectors))
        best = np.empty(len(test), dtype=np.intp)
        rank = np.empty(len(test))
        step = max(1, BLOCK // len(ids))
        for start in range(0, len(test), step):
            rows = slice(start, start + step)
            a, b, c = (place[rows] for place in places)
            scores = (matrix[b] - matrix[a] + matrix[c]) @ matrix.T
            each = np.arange(len(scores))
            for asked in (a, b, c):
                scores[each, asked] = -np.inf
            wanted = scores[each, truth[rows]][:, None]
            best[rows] = (scores >= scores.max(axis=1)[:, None] - TIE).argmax(axis=1)
            rank[rows] = (scores >= wanted - TIE).sum(axis=1)
        left_out = np.any([place == truth for place in places], axis=0)
        asked = np.sort(np.column_stack(places), axis=1)
        others = len(ids) - 1 - (asked[:, 1:] != asked[:, :-1]).sum(axis=1)
        self.candidates_ = int(others.max())
        return self._predictions(
            test, ids.to_numpy()[best], np.where(left_out, np.inf, rank), others
        )

    def unanswered(self, test: Dataset) -> Predictions:
        """Return misses: no answer, and the true item behind every candidate."""
        others = getattr(self, "candidates_", max(len(test.items) - 3, 0))
        return self._predictions(
            test, np.full(len(test), ""), np.full(len(test), np.inf), np.full(len(test), others)
        )

    def _candidates(self, data: Dataset, vectors: Vectors) -> tuple[pd.Index, np.ndarray]:
        """Return ids and unit vectors of all candidates, made once for all views and both sides."""
        source: Any = vectors.vocabulary or (vectors, data.items)
        if self._stock is None or not _same(self._stock[0], source):
            if vectors.vocabulary is not None:
                ids, matrix = vectors.vocabulary
                ids = pd.Index(as_text(ids))
            else:
                ids, matrix = data.items.index[vectors.rows], vectors.matrix
            known = ~np.isnan(matrix[:, 0])
            self._stock = (source, ids[known], unit_rows(matrix if known.all() else matrix[known]))
        return self._stock[1:]

    def _predictions(
        self, test: Dataset, answers: np.ndarray, rank: np.ndarray, candidates: np.ndarray
    ) -> Predictions:
        return Predictions(
            predictions=answers,
            truth=np.asarray(test.truth),
            answers="items",
            truths="items",
            group=test.group,
            rank=rank,
            candidates=candidates,
        )


def _same(one: tuple[Any, Any], other: tuple[Any, Any]) -> bool:
    return one[0] is other[0] and one[1] is other[1]


def _asked(data: Dataset, vectors: Vectors) -> list[pd.Index]:
    """Return the ids that each field asks about, and the true answers where they are not hidden."""
    columns = [data.questions[name].to_numpy() for name in data.fields]
    columns += [] if data.truth is None else [data.truth]
    if vectors.vocabulary is not None:
        # a vector file knows its ids as text
        columns = [as_text(column) for column in columns]
    return [pd.Index(column, tupleize_cols=False) for column in columns]


def _places(ids: pd.Index, wanted: pd.Index) -> np.ndarray:
    places = np.asarray(ids.get_indexer(wanted))
    if (places < 0).any():
        raise KeyError(f"{wanted[int(np.argmax(places < 0))]} is no candidate.")
    return places
