"""The nearest probe: a query, and where the items that answer it stand among all candidates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.predictions import Predictions
from karat.probes.base import need_items
from karat.registry import probe
from karat.vectors import Vectors, unit_rows

#: at most this many scores are held at once
BLOCK = 2**22
#: scores this near count as equal: the product of equal vectors differs in its last bits
TIE = 1e-12
#: with so few answers, counting what is ahead of each is quicker than a sort of all candidates
FEW = 8


@probe("nearest")
class Nearest:
    """Rank the items that answer a query among all candidates by their cosine to it.

    Each question is a query and one of its answers. ``queries: among`` ranks the query's answers
    among all other items; ``queries: apart`` leaves every query out of the candidates, those of
    the train side and of questions left out too. An item that ties with an answer and is none
    comes first, so equal vectors earn nothing.
    """

    def __init__(self, queries: str = "among") -> None:
        if queries not in ("among", "apart"):
            raise DefinitionError(f'probe: queries is "among" or "apart", not "{queries}".')
        self.queries = queries
        self.asked_ = np.empty(0, dtype=np.intp)
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have a known query and a known answer."""
        need_items(data, "nearest")
        able = vectors.answerable(data)
        if data.truth is not None:
            able &= vectors.known(_positions(data, np.asarray(data.truth)))
        return able

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Learn nothing but which items are queries."""
        self.asked_ = train.asked()

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each query and the place of each answer."""
        wanted = _positions(test, np.asarray(test.truth))
        out = self._left_out(test, vectors, wanted)
        asked, rows = _by_query(test, wanted)
        best = np.empty(len(test), dtype=np.intp)
        rank = np.empty(len(test))
        matrix = unit_rows(vectors.at(np.arange(len(test.items))), np.float64)
        for i, scores in enumerate(similarities(matrix[asked], matrix)):
            scores[out] = scores[asked[i]] = -np.inf
            best[rows[i]] = nearest(scores)
            rank[rows[i]] = places(scores, wanted[rows[i]])
        return self._predictions(test, test.items.index.to_numpy()[best], rank)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return misses: no answer, and the true item behind every candidate."""
        return self._predictions(test, np.full(len(test), ""), np.full(len(test), np.inf))

    def _left_out(self, test: Dataset, vectors: Vectors, wanted: np.ndarray) -> np.ndarray:
        """Return which items are no candidates: those unknown and, if apart, all queries."""
        out = ~vectors.known(np.arange(len(test.items)))
        self.notes = []
        if self.queries == "apart":
            out[test.asked()] = out[self.asked_] = True
            lost = int(out[wanted].sum())
            if lost:
                told = f"{lost} of {len(test)} answers are queries themselves and cannot be found"
                self.notes = [f"{told}; queries: among would rank them."]
        self.candidates_ = int((~out).sum()) - (self.queries == "among")
        if self.candidates_ < 1:
            raise DataError(f"{test.name}: there is no candidate to rank besides the queries.")
        return out

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


def similarities(queries: np.ndarray, candidates: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the scores of all candidates, query by query; they may be written over."""
    step = max(1, BLOCK // len(candidates))
    for start in range(0, len(queries), step):
        yield from queries[start : start + step] @ candidates.T


def nearest(scores: np.ndarray) -> int:
    """Return the candidate of the highest score, of equal ones the first."""
    return int(np.argmax(scores >= scores.max() - TIE))


def places(scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the places of a query's answers in the list of all candidates, best first.

    A score of minus infinity is no candidate: what is wanted there cannot be found. What ties with
    an answer and is none comes first. The scores are written over.

    >>> places(np.array([0.9, 0.2, 0.5, 0.2]), np.array([2, 1]))
    array([2., 4.])
    """
    order, ranks = ranked(scores, wanted)
    found = np.empty(len(wanted))
    found[order] = ranks
    return found


def ranked(scores: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order in which a query's answers are found, and their places in that order."""
    order = np.argsort(-scores[wanted], kind="stable")
    mine = scores[wanted[order]]
    scores[wanted] = -np.inf
    if len(wanted) <= FEW:
        ahead = np.array([np.count_nonzero(scores >= score) for score in mine - TIE], dtype=float)
    else:
        scores.sort()
        # from the lowest to the highest, as a search of many likes it
        ahead = len(scores) - np.searchsorted(scores, mine[::-1] - TIE)[::-1].astype(float)
    ahead[np.isneginf(mine)] = np.inf
    return order, ahead + np.arange(1, len(wanted) + 1)


def _by_query(test: Dataset, wanted: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the items that are queries, and the questions of each."""
    asked, which = np.unique(test.mentions(test.fields[0]).rows, return_inverse=True)
    twice = pd.DataFrame({"query": which, "answer": wanted}).duplicated().to_numpy()
    if twice.any():
        query = test.items.index[asked[which[np.argmax(twice)]]]
        raise DataError(f'{test.name}: the query "{query}" has an answer twice; name it once.')
    order = np.argsort(which, kind="stable")
    return asked, np.split(order, np.cumsum(np.bincount(which))[:-1])


def _positions(data: Dataset, ids: np.ndarray) -> np.ndarray:
    places = np.asarray(data.items.index.get_indexer(pd.Index(ids, tupleize_cols=False)))
    if (places < 0).any():
        raise KeyError(f"{ids[int(np.argmax(places < 0))]} is no item of {data.name}.")
    return places
