"""The nearest probe: rank the items that answer a query among all candidates."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.predictions import Predictions
from karat.probes.base import need_fields
from karat.probes.base import ranked as ranked_items
from karat.registry import probe
from karat.vectors import Vectors, unit_rows

#: largest number of scores in memory
BLOCK = 2**22
#: scores this close count as equal: the product of equal vectors differs in its last bits
TIE = 1e-12
#: up to this many answers per query, counting is faster than sorting all candidates
FEW = 8


@probe("nearest")
class Nearest:
    """Rank the items that answer a query among all candidates by their cosine to it.

    Each question is a query and one of its answers. With ``queries: among`` all other items are
    candidates; with ``queries: apart`` no query is a candidate, including those of the train side
    and of questions without vectors. Ties count against the encoder.
    """

    def __init__(self, queries: str = "among") -> None:
        if queries not in ("among", "apart"):
            raise DefinitionError(f'probe: queries must be "among" or "apart", got "{queries}".')
        self.queries = queries
        self.asked_ = np.empty(0, dtype=np.intp)
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have a vector for the query and the answer."""
        need_fields(data, "nearest", "items")
        answerable = vectors.answerable(data)
        if data.truth is not None:
            answerable &= vectors.known(_positions(data, np.asarray(data.truth)))
        return answerable

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Record which train items are queries."""
        self.asked_ = train.asked()

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each query and the rank of each answer."""
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
        """Return empty predictions that rank the answers behind every candidate."""
        return self._predictions(test, np.full(len(test), ""), np.full(len(test), np.inf))

    def _left_out(self, test: Dataset, vectors: Vectors, wanted: np.ndarray) -> np.ndarray:
        """Return which items are not candidates: those without vectors and, if apart, queries."""
        out = ~vectors.known(np.arange(len(test.items)))
        self.notes = []
        if self.queries == "apart":
            out[test.asked()] = out[self.asked_] = True
            if lost := int(out[wanted].sum()):
                note = f"{lost} of {len(test)} answers are queries themselves and cannot be found"
                self.notes = [f"{note}; set queries: among to rank them."]
        self.candidates_ = int((~out).sum()) - (self.queries == "among")
        if self.candidates_ < 1:
            raise DataError(f"{test.name}: there are no candidates apart from the queries.")
        return out

    def _predictions(self, test: Dataset, answers: np.ndarray, rank: np.ndarray) -> Predictions:
        others = getattr(self, "candidates_", len(test.items) - 1)
        queries = test.questions[test.fields[0]].to_numpy()
        return ranked_items(test, answers, rank, np.full(len(test), others), queries)


def similarities(queries: np.ndarray, candidates: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the scores of all candidates for each query; they may be overwritten."""
    step = max(1, BLOCK // len(candidates))
    for start in range(0, len(queries), step):
        yield from queries[start : start + step] @ candidates.T


def nearest(scores: np.ndarray) -> int:
    """Return the first candidate with the highest score."""
    return int(np.argmax(scores >= scores.max() - TIE))


def places(scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the ranks of a query's answers in the list of all candidates.

    A score of minus infinity marks an item that is not a candidate; as an answer, its rank is
    infinite. Ties count against the answers. The scores are overwritten.

    >>> places(np.array([0.9, 0.2, 0.5, 0.2]), np.array([2, 1]))
    array([2., 4.])
    """
    order, ranks = ranked(scores, wanted)
    found = np.empty(len(wanted))
    found[order] = ranks
    return found


def ranked(scores: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of a query's answers by score, and their ranks in that order."""
    order = np.argsort(-scores[wanted], kind="stable")
    answers = scores[wanted[order]]
    scores[wanted] = -np.inf
    if len(wanted) <= FEW:
        ahead = np.array([np.count_nonzero(scores >= each) for each in answers - TIE], dtype=float)
    else:
        scores.sort()
        # searching in ascending order is faster
        ahead = len(scores) - np.searchsorted(scores, answers[::-1] - TIE)[::-1].astype(float)
    ahead[np.isneginf(answers)] = np.inf
    return order, ahead + np.arange(1, len(wanted) + 1)


def _by_query(test: Dataset, wanted: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the items that are queries, and the questions of each."""
    asked, which = np.unique(test.mentions(test.fields[0]).rows, return_inverse=True)
    twice = pd.DataFrame({"query": which, "answer": wanted}).duplicated().to_numpy()
    if twice.any():
        query = test.items.index[asked[which[np.argmax(twice)]]]
        raise DataError(f'{test.name}: the query "{query}" has a duplicate answer; remove it.')
    order = np.argsort(which, kind="stable")
    return asked, np.split(order, np.cumsum(np.bincount(which))[:-1])


def _positions(data: Dataset, ids: np.ndarray) -> np.ndarray:
    places = np.asarray(data.items.index.get_indexer(pd.Index(ids, tupleize_cols=False)))
    if (places < 0).any():
        raise KeyError(f"{ids[int(np.argmax(places < 0))]} is not an item of {data.name}.")
    return places
