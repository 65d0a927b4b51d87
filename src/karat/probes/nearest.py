"""The nearest probe: a query, and where the items that answer it stand among all candidates."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.bags import holds_bags
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.predictions import Predictions
from karat.registry import probe
from karat.vectors import Vectors, unit_rows

#: at most this many scores are held at once
BLOCK = 2**24
#: scores this near count as equal: the product of equal vectors differs in its last bits
TIE = 2e-6


@probe("nearest")
class Nearest:
    """Rank the items that answer a query among all candidates by their cosine to it.

    Each question is a query and one of its answers. ``queries: among`` ranks the query's answers
    among all other items; ``queries: apart`` leaves every query out of the candidates. An item
    that ties with an answer and is none comes first, so equal vectors earn nothing.
    """

    def __init__(self, queries: str = "among") -> None:
        if queries not in ("among", "apart"):
            raise DefinitionError(f'probe: queries is "among" or "apart", not "{queries}".')
        self.queries = queries
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have a known query and a known answer."""
        if data.kind != "items" or len(data.fields) != 1 or holds_bags(data.questions.iloc[:, 0]):
            raise DefinitionError(
                f"probe: nearest takes questions of one field, one item each, whose truth is an "
                f"item; {data.name} has {len(data.fields)} fields and {data.kind}."
            )
        able = vectors.answerable(data)
        if data.truth is not None:
            able &= vectors.known(_positions(data, np.asarray(data.truth)))
        return able

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn nothing."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each query and the place of each answer."""
        items = np.arange(len(test.items))
        matrix = unit_rows(vectors.at(items))
        queries = test.mentions(test.fields[0]).rows
        wanted = _positions(test, np.asarray(test.truth))
        taking_part = vectors.known(items)
        if self.queries == "apart":
            taking_part[queries] = False
        best = np.empty(len(test), dtype=np.intp)
        rank = np.empty(len(test))
        asked, which = np.unique(queries, return_inverse=True)
        order = np.argsort(which, kind="stable")
        ends = np.cumsum(np.bincount(which))
        step = max(1, BLOCK // len(items))
        for start in range(0, len(asked), step):
            scores = matrix[asked[start : start + step]] @ matrix.T
            scores[:, ~taking_part] = -np.inf
            for i, query in enumerate(range(start, min(start + step, len(asked)))):
                scores[i, asked[query]] = -np.inf
                rows = order[ends[query - 1] if query else 0 : ends[query]]
                best[rows] = np.argmax(scores[i] >= scores[i].max() - TIE)
                rank[rows] = _places(scores[i], wanted[rows])
        self.candidates_ = int(taking_part.sum()) - (self.queries == "among")
        return self._predictions(test, test.items.index.to_numpy()[best], rank)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return misses: no answer, and the true item behind every candidate."""
        return self._predictions(test, np.full(len(test), ""), np.full(len(test), np.inf))

    def _predictions(self, test: Dataset, answers: np.ndarray, rank: np.ndarray) -> Predictions:
        others = getattr(self, "candidates_", len(test.items) - 1)
        return Predictions(
            predictions=answers,
            truth=np.asarray(test.truth),
            answers="items",
            truths="items",
            group=test.questions[test.fields[0]].to_numpy(),
            rank=rank,
            candidates=np.full(len(test), others),
        )


def _places(scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the places of a query's answers in the list of all candidates, best first."""
    mine = scores[wanted]
    others = np.delete(scores, wanted)
    others.sort()
    ahead = len(others) - np.searchsorted(others, mine - TIE)
    order = np.argsort(-mine, kind="stable")
    places = np.empty(len(wanted))
    places[order] = ahead[order] + np.arange(1, len(wanted) + 1)
    # the query itself, or an item that is no candidate, cannot be found
    places[np.isneginf(mine)] = np.inf
    return places


def _positions(data: Dataset, ids: np.ndarray) -> np.ndarray:
    places = np.asarray(data.items.index.get_indexer(pd.Index(ids, tupleize_cols=False)))
    if (places < 0).any():
        raise KeyError(f"{ids[int(np.argmax(places < 0))]} is no item of {data.name}.")
    return places
