"""Retrieval probes: the nearest items, items of the same class, and duplicates.

Ranks among many candidates are counted tile by tile. A 32-bit product decides for nearly every
candidate whether it is ahead of the target. Its last bits depend on the position of a row in its
tile, so the few undecided candidates are compared in 64 bits. A rank therefore depends neither on
the other questions nor on the tile size.

Similarities of all pairs are counted block by block on a grid of millionths, and only counts that a
threshold can separate are stored: those at and between the scores of true duplicates. ROC AUC,
average precision and best F1 are exact on that grid.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors, unit_rows
from karat.core.predictions import Predictions, as_text
from karat.core.registry import probe
from karat.errors import ContractError, DataError, DefinitionError
from karat.probes.trained import need_fields
from karat.probes.trained import ranked_predictions as ranked_items

#: scores this close count as equal: the product of equal vectors differs in its last bits
TIE = 2e-6
#: questions and candidates per tile, small enough for the processor cache
HEIGHT, WIDTH = 1024, 1024
#: candidates per tile of a search, and those of which one look at the highest score is taken
SPAN, GROUP = 4096, 8
#: all cosines of a query are compared with its lines if one of this many groups has one to count
DENSE = 5
#: candidates that are normalized, or whose cosines are transposed, at once
BAND = 512
#: largest relative rounding error of 32 bits
_ROUNDING = 2.0**-24
#: number of scores in memory, unless there are so many candidates that it is less than MOST rows
BLOCK = 2**22
#: queries per block if there are many candidates; fewer would make the product slow
MOST = 64
#: scores this close count as equal: the product of equal vectors differs in its last bits
NEAREST_TIE = 1e-12
#: digits to which equal scores are equal
_DIGITS = 11
#: up to this many answers per query, counting is faster than sorting all candidates
FEW = 8
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
#: vectors shorter than this, or longer than its inverse, are scaled in 64 bits
_SHORT = 1e-12
#: number of grid steps between −1 and 1
STEPS = 2_000_000


@dataclass(frozen=True)
class Ranking:
    """Query vectors, the place of each target, and the candidates.

    ``vectors`` returns the 32-bit vectors of candidates by place. ``out`` are pairs of question and
    place that are not candidates: the items in the question, or other correct answers. Scores are
    dot products and should be about 1 or smaller, because ``TIE`` is absolute.
    """

    queries: np.ndarray
    target: np.ndarray
    out: tuple[np.ndarray, np.ndarray]
    count: int
    vectors: Callable[[Any], np.ndarray]

    def settle(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first candidate of each question, and the rank of its target.

        Ties count against the target; among candidates that tie at the top, the lowest place is
        first. The rank of a target that is not a candidate is infinite.
        """
        ahead = np.zeros(len(self.queries), dtype=np.intp)
        tops = np.empty((len(self.queries), len(self._starts)), dtype=np.float32)
        for tile, start in enumerate(self._starts):
            vectors = self._tile(start)
            unclear = []
            for rows, scores in self._scores(vectors, start, np.arange(len(self.queries))):
                tops[rows, tile] = scores.max(axis=1)
                certain, possible = self._counts(scores, start, rows)
                decided = certain == possible
                ahead[rows[decided]] += certain[decided]
                unclear.append(rows[~decided])
            for rows, scores in self._exact(vectors, start, np.concatenate(unclear)):
                self._hide_target(scores, start, rows)
                ahead[rows] += _count(_reached(scores, self._target_scores[rows] - TIE))
        ranks = ahead + 1.0
        questions, places = self.out
        ranks[questions[self.target[questions] == places]] = np.inf
        return self._first(tops), ranks

    def _first(self, tops: np.ndarray) -> np.ndarray:
        """Return the lowest place whose score ties with the highest; ``tops`` are tile maxima."""
        best = np.full(len(tops), -1, dtype=np.intp)
        peak = np.full(len(tops), -np.inf)
        top = tops.max(axis=1).astype(np.float64)
        near = tops >= (top - TIE - 2 * self._slack(top))[:, None]
        alone = near.sum(axis=1) == 1
        for again in (False, True):
            for tile, start in enumerate(self._starts):
                rows = np.flatnonzero(near[:, tile] & (best < 0))
                tiles = self._exact(self._tile(start), start, rows) if len(rows) else ()
                for some, scores in tiles:
                    peak[some] = np.maximum(peak[some], scores.max(axis=1))
                    tied = scores >= peak[some, None] - TIE
                    has_tie = tied.any(axis=1) & (alone[some] | again)
                    best[some[has_tie]] = start + tied[has_tie].argmax(axis=1)
        return best

    @cached_property
    def _starts(self) -> range:
        return range(0, self.count, WIDTH)

    def _tile(self, start: int) -> np.ndarray:
        return self.vectors(slice(start, min(start + WIDTH, self.count)))

    def _scores(
        self, vectors: np.ndarray, start: int, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield some questions and their scores in a tile; the scores may be overwritten."""
        buffer = np.empty((min(HEIGHT, len(rows)), len(vectors)), dtype=vectors.dtype)
        for begin in range(0, len(rows), HEIGHT):
            some = rows[begin : begin + HEIGHT]
            queries = self.queries[some].astype(vectors.dtype, copy=False)
            scores = np.matmul(queries, vectors.T, out=buffer[: len(some)])
            self._hide_out(scores, start, some)
            yield some, scores

    def _exact(
        self, vectors: np.ndarray, start: int, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the same as ``_scores`` in 64 bits."""
        if len(rows):
            yield from self._scores(vectors.astype(np.float64), start, rows)

    def _counts(
        self, scores: np.ndarray, start: int, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how many candidates are certainly, and how many possibly, ahead of the target."""
        self._hide_target(scores, start, rows)
        line, slack = self._target_scores[rows] - TIE, self._slack(self._target_scores[rows])
        certain, possible = (_reached(scores, line + margin) for margin in (slack, -slack))
        return _count(certain), _count(possible)

    def _slack(self, scores: np.ndarray) -> np.ndarray:
        """Return the largest error of a 32-bit score; it grows with dimensions and score."""
        return np.asarray(_ROUNDING * (16 + self.queries.shape[1] * np.abs(scores) / 2))

    @cached_property
    def _target_scores(self) -> np.ndarray:
        """The score of each question's target, in 64 bits."""
        scores = np.empty(len(self.target))
        for begin in range(0, len(scores), HEIGHT):
            rows = slice(begin, begin + HEIGHT)
            targets = self.vectors(self.target[rows]).astype(np.float64)
            scores[rows] = np.einsum("ij,ij->i", self.queries[rows].astype(np.float64), targets)
        return scores

    def _hide_target(self, scores: np.ndarray, start: int, rows: np.ndarray) -> None:
        column = self.target[rows] - start
        here = np.flatnonzero((column >= 0) & (column < scores.shape[1]))
        scores[here, column[here]] = -np.inf

    def _hide_out(self, scores: np.ndarray, start: int, rows: np.ndarray) -> None:
        """Exclude the places ``out`` from a tile; ``rows`` must be ascending."""
        tiles, questions, places = self._sorted_out
        begin, end = np.searchsorted(tiles, [start // WIDTH, start // WIDTH + 1])
        here = slice(
            begin + np.searchsorted(questions[begin:end], rows[0]),
            begin + np.searchsorted(questions[begin:end], rows[-1], side="right"),
        )
        hidden_questions, column = questions[here], places[here] - start
        row = np.searchsorted(rows, hidden_questions)
        is_here = rows[row] == hidden_questions
        scores[row[is_here], column[is_here]] = -np.inf

    @cached_property
    def _sorted_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        questions, places = self.out
        order = np.lexsort((questions, places // WIDTH))
        return places[order] // WIDTH, questions[order], places[order]


def _reached(scores: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Return which scores of each row are at least its line, filled up to a multiple of eight."""
    height, width = scores.shape
    reached = np.zeros((height, -(-width // 8) * 8), dtype=bool)
    np.greater_equal(scores, lines.astype(scores.dtype)[:, None], out=reached[:, :width])
    return reached


def _count(reached: np.ndarray) -> np.ndarray:
    """Return how many of each row are true.

    Eight booleans are added at once as 64-bit integers, at most 255 times, so that no byte
    overflows.
    """
    eights = reached.view(np.uint64)
    sums = np.add.reduceat(eights, np.arange(0, eights.shape[1], 255), axis=1)
    return sums.view(np.uint8).sum(axis=1, dtype=np.intp)


@probe("nearest")
class Nearest:
    """Rank the items that answer a query among all candidates by their cosine to it.

    Each question is a query and one of its answers. With ``queries: among`` all other items are
    candidates; with ``queries: apart`` no query is a candidate, including those of the train side
    and of questions without vectors. The columns of a query's own table are never candidates. A
    document that is split into passages has the score of its best passage. Ties count against the
    encoder; with ``ties: first``, the item that is first in the data is ranked first.

    Vectors of one bit are ranked by their Hamming distance. If they are rescored, the nearest items
    are ranked again, by the cosine of the query's 32-bit vector to their vectors of one bit.
    """

    def __init__(self, queries: str = "among", ties: str = "against") -> None:
        if queries not in ("among", "apart"):
            raise DefinitionError(f'probe: queries must be "among" or "apart", got "{queries}".')
        if ties not in ("against", "first"):
            raise DefinitionError(f'probe: ties must be "against" or "first", got "{ties}".')
        self.queries = queries
        self.ties = ties
        self.asked_ = np.empty(0, dtype=np.intp)
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have a vector for the query and the answer."""
        need_fields(data, "nearest", "items")
        answerable = vectors.answerable(data)
        if data.target is not None:
            answerable &= vectors.known(_positions(data, np.asarray(data.target)))
        return answerable

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Record which train items are queries."""
        self.asked_ = train.asked()

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each query and the rank of each answer."""
        has_vector = vectors.known(np.arange(len(test.items)))
        ranker = _Rescored if vectors.rescore else _Cosines
        return self._ranked(test, has_vector, lambda items: ranker(vectors, items, test.tables))

    def search(self, test: Dataset, searcher: object) -> Predictions:
        """Return the same by the scores of a search model."""
        texts = test.items.astype(str)

        def index(items: _Candidates) -> _Searched:
            return _Searched(searcher, texts, items, test.tables)

        return self._ranked(test, test.items.notna().to_numpy(), index)

    def _ranked(
        self, test: Dataset, has_vector: np.ndarray, index: Callable[[_Candidates], _Ranker]
    ) -> Predictions:
        """Return the answers of a ranking of the candidates, which ``index`` makes."""
        wanted = _positions(test, np.asarray(test.target))
        out = self._left_out(test, ~has_vector, wanted)
        queries, rows = _by_query(test, wanted)
        candidates = _Candidates.of(np.flatnonzero(~out), test.documents)
        ranker = index(replace(candidates, first_wins=self.ties == "first"))
        settled = ranker.settle(queries, [wanted[part] for part in rows])
        if not settled.candidates.all():
            query = test.items.index[queries[np.argmin(settled.candidates)]]
            raise DataError(f'{test.name}: there are no candidates for the query "{query}".')
        sizes, order = [len(part) for part in rows], np.argsort(np.concatenate(rows))
        best, others = (
            np.repeat(values, sizes)[order] for values in (settled.first, settled.candidates)
        )
        answers = test.items.index.to_numpy()[best]
        return self._predictions(test, answers, settled.ranks[order], others)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return empty predictions that rank the answers behind every candidate."""
        others = np.full(len(test), getattr(self, "candidates_", len(test.items) - 1))
        return self._predictions(test, np.full(len(test), ""), np.full(len(test), np.inf), others)

    def _left_out(self, test: Dataset, out: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Return which items are not candidates: those without vectors and, if apart, queries."""
        self.notes = []
        if self.queries == "apart":
            out[test.asked()] = out[self.asked_] = True
            if unanswerable := int(out[wanted].sum()):
                self.notes = [
                    f"{unanswerable} of {len(test)} answers are queries themselves and cannot be "
                    f"found; set queries: among to rank them."
                ]
        self.candidates_ = int((~out).sum()) - (self.queries == "among")
        if self.candidates_ < 1:
            raise DataError(f"{test.name}: there are no candidates apart from the queries.")
        return out

    def _predictions(
        self, test: Dataset, answers: np.ndarray, rank: np.ndarray, others: np.ndarray
    ) -> Predictions:
        queries = test.questions[test.fields[0]].to_numpy()
        return ranked_items(test, answers, rank, others, queries)


@dataclass(frozen=True)
class _Settled:
    """The first candidate and the number of candidates of each query; the rank of each answer."""

    first: np.ndarray
    candidates: np.ndarray
    ranks: np.ndarray


@dataclass(frozen=True)
class _Candidates:
    """The items to score, and the candidates: the items themselves, or their documents.

    All are positions in the dataset. The items of candidate i begin at ``starts[i]``; None if every
    candidate is one item. Of equal scores, all others are ahead of an answer, or with
    ``first_wins`` those before it.
    """

    items: np.ndarray
    documents: np.ndarray
    starts: np.ndarray | None = None
    first_wins: bool = False

    @classmethod
    def of(cls, items: np.ndarray, documents: np.ndarray | None) -> _Candidates:
        """Return the candidates; ``documents`` holds the document of each item, if any."""
        if documents is None:
            return cls(items, items)
        items = items[np.argsort(documents[items], kind="stable")]
        owners, starts = np.unique(documents[items], return_index=True)
        return cls(items, owners, starts)

    def bounds(self, size: int) -> list[int]:
        """Return the bounds of ranges of candidates with about ``size`` items each.

        >>> _Candidates(np.arange(9), np.arange(3), np.array([0, 2, 8])).bounds(4)
        [0, 2, 3]
        """
        count = len(self.documents)
        if self.starts is None:
            return [*range(0, count, size), count]
        steps = np.searchsorted(self.starts, np.arange(size, len(self.items), size))
        return np.unique([0, *steps, count]).tolist()

    def slice(self, begin: int, end: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Return the items of a range of candidates, and where those of each begin."""
        if self.starts is None:
            return self.items[begin:end], None
        starts = self.starts[begin:end]
        stop = self.starts[end] if end < len(self.starts) else len(self.items)
        return self.items[starts[0] : stop], starts - starts[0]

    def parts(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the items of some candidates, and how many each has."""
        if self.starts is None:
            return self.items[places], np.ones(len(places), dtype=np.intp)
        sizes = np.diff([*self.starts, len(self.items)])[places]
        begins = np.repeat(self.starts[places] - np.cumsum(sizes) + sizes, sizes)
        return self.items[begins + np.arange(len(begins))], sizes

    def places(self, items: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which of these are candidates, and their places among them."""
        places = np.minimum(np.searchsorted(self.documents, items), len(self.documents) - 1)
        present = np.flatnonzero(self.documents[places] == items)
        return present, places[present]

    def hidden(self, query: int, tables: np.ndarray | None) -> np.ndarray:
        """Return the places of the query itself, or of all columns of its table."""
        if tables is None:
            return self.places(np.array([query]))[1]
        return np.flatnonzero(tables[self.items] == tables[query])


class _Ranker:
    """Ranks the answers of queries among candidates."""

    candidates: _Candidates

    def settle(self, queries: np.ndarray, answers: list[np.ndarray]) -> _Settled:
        """Rank the answers of each query among all candidates.

        The rank of an answer that is not a candidate is infinite. Ties count as the candidates
        say; among candidates that tie at the top, the lowest is first.
        """
        raise NotImplementedError


class _Searched(_Ranker):
    """Ranks candidates by the scores of a search model."""

    def __init__(
        self,
        searcher: Any,
        texts: pd.Series,
        candidates: _Candidates,
        tables: np.ndarray | None = None,
    ) -> None:
        self.searcher, self.texts = searcher, texts
        self.candidates, self.tables = candidates, tables
        searcher.index(texts.iloc[candidates.items].tolist())

    def settle(self, queries: np.ndarray, answers: list[np.ndarray]) -> _Settled:
        """Rank the candidates by the scores themselves, for some queries at a time."""
        step = max(1, min(len(queries), MOST), BLOCK // len(self.candidates.items))
        starts = range(0, len(queries), step)
        blocks = [self._block(queries[i : i + step], answers[i : i + step]) for i in starts]
        return _Settled(*map(np.concatenate, zip(*blocks, strict=True)))

    def scores(self, queries: np.ndarray) -> np.ndarray:
        """Return the score of every candidate for each query."""
        shape = (len(queries), len(self.candidates.items))
        scores = np.array(self.searcher.scores(self.texts.iloc[queries].tolist()), dtype=float)
        if scores.shape != shape or np.isnan(scores).any():
            raise ContractError(
                f"{type(self.searcher).__name__}.scores must return numbers of the shape {shape}, "
                f"got {scores.shape}."
            )
        return _best(scores, self.candidates.starts)

    def _block(self, queries: np.ndarray, answers: list[np.ndarray]) -> tuple[np.ndarray, ...]:
        first, others, ranks = [], [], []
        for query, row, wanted in zip(queries, self.scores(queries), answers, strict=True):
            row[self.candidates.hidden(query, self.tables)] = -np.inf
            first.append(self.candidates.documents[nearest(row)])
            others.append(np.isfinite(row).sum())
            block_ranks = np.full(len(wanted), np.inf)
            present, places = self.candidates.places(wanted)
            order, numbers = rank_answers(row, places, self.candidates.first_wins)
            block_ranks[present[order]] = numbers
            ranks.append(block_ranks)
        return np.array(first), np.array(others), np.concatenate(ranks)


class _Rescored(_Searched):
    """Ranks candidates by Hamming distance, and the nearest again by the query's 32-bit vector."""

    def __init__(
        self, vectors: Vectors, candidates: _Candidates, tables: np.ndarray | None = None
    ) -> None:
        self.vectors, self.candidates, self.tables = vectors, candidates, tables
        self.units = vectors.units(candidates.items, np.float64)
        assert vectors.exact is not None
        self.queries = replace(vectors, matrix=vectors.exact)

    def scores(self, queries: np.ndarray) -> np.ndarray:
        """Return the cosines of bits; those of the first stage's nearest are 2 higher or more."""
        bits = self.vectors.units(queries, np.float64, query=True) @ self.units.T
        scores = _best(bits, self.candidates.starts)
        exact = self.queries.units(queries, np.float64, query=True)
        for row, (query, vector) in enumerate(zip(queries, exact, strict=True)):
            first = scores[row].round(9)  # equal distances are equal numbers
            first[self.candidates.hidden(query, self.tables)] = -np.inf
            nearest = np.argsort(-first, kind="stable")[: self.vectors.rescore]
            items, sizes = self.candidates.parts(nearest)
            again = self.vectors.units(items, np.float64) @ vector
            starts = np.cumsum(sizes) - sizes
            scores[row, nearest] = 3.0 + np.maximum.reduceat(again, starts)
        return scores


class _Cosines(_Ranker):
    """Ranks candidates by their cosine to queries."""

    def __init__(
        self, vectors: Vectors, candidates: _Candidates, tables: np.ndarray | None = None
    ) -> None:
        self.vectors = vectors
        self.candidates = candidates
        self.tables = tables

    def settle(self, queries: np.ndarray, answers: list[np.ndarray]) -> _Settled:
        """Rank the answers by counting the candidates ahead; queries have their own vectors."""
        row = np.repeat(np.arange(len(queries)), [len(items) for items in answers])
        hidden, count = self._hidden(queries), len(self.candidates.documents)
        present, position = self.candidates.places(np.concatenate(answers))
        visible = ~np.isin(row[present] * count + position, hidden[0] * count + hidden[1])
        present, position = present[visible], position[visible]
        exact = self.exact(queries[row[present]], position)
        lowest = np.full(len(queries), np.inf)
        np.minimum.at(lowest, row[present], exact)
        # columns of a tile that are read together are neighbors
        turn = np.argsort(lowest, kind="stable")
        column = np.argsort(turn)
        rows = column[row[present]]
        order = np.lexsort((-exact, rows))
        if self.candidates.first_wins:
            order = np.lexsort((position, -exact.round(_DIGITS), rows))
        present, position, exact, rows = present[order], position[order], exact[order], rows[order]
        number = np.arange(len(present)) - np.searchsorted(rows, rows) + 1
        left_out = column[hidden[0]], hidden[1]
        search = _TiledSearch(self, queries[turn], left_out, (rows, position), exact - NEAREST_TIE)
        ranks = np.full(len(row), np.inf)
        ranks[present] = search.run() + number
        others = count - np.bincount(hidden[0], minlength=len(queries))
        return _Settled(self.candidates.documents[search.best[column]], others, ranks)

    def _hidden(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return pairs of query and candidate to leave out: itself, and columns of its table."""
        if self.tables is None:
            return self.candidates.places(queries)
        tables = self.tables[self.candidates.items]
        order = np.argsort(tables, kind="stable")
        ends = (np.searchsorted(tables[order], self.tables[queries], side) for side in _SIDES)
        begin, end = ends
        rows = np.repeat(np.arange(len(queries)), end - begin)
        first = np.repeat(begin - np.cumsum(end - begin) + end - begin, end - begin)
        return rows, order[first + np.arange(len(rows))]

    def tile(self, begin: int, end: int) -> np.ndarray:
        """Return the 32-bit unit vectors of the items of some candidates."""
        rows = self.vectors.rows_at(self.candidates.slice(begin, end)[0])
        if rows.dtype != np.float32:
            return unit_rows(rows)
        scores = np.empty(rows.shape, dtype=np.float32)
        for begin in range(0, len(rows), BAND):
            part = rows[begin : begin + BAND]
            lengths = np.sqrt(np.einsum("ij,ij->i", part, part))  # its error is in the slack
            if not (lengths.min() > _SHORT and lengths.max() < 1 / _SHORT):
                return unit_rows(rows)  # of zeros, or beyond what 32 bits can scale
            np.multiply(part, (1 / lengths)[:, None], out=scores[begin : begin + BAND])
        return scores

    def exact(self, queries: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return the scores of pairs of a query and a candidate in 64 bits."""
        items, sizes = self.candidates.parts(places)
        queries = np.repeat(np.broadcast_to(queries, len(places)), sizes)
        products = np.empty(len(items))
        for begin in range(0, len(items), HEIGHT):
            part = slice(begin, begin + HEIGHT)
            distinct, which = np.unique(queries[part], return_inverse=True)
            one = self.vectors.units(distinct, np.float64, query=True)[which]
            other = self.vectors.units(items[part], np.float64)
            products[part] = np.einsum("ij,ij->i", one, other)
        if self.candidates.starts is None or not len(places):
            return products
        return np.asarray(np.maximum.reduceat(products, np.cumsum(sizes) - sizes))

    def exact_tile(self, queries: np.ndarray, begin: int, end: int) -> np.ndarray:
        """Return the scores of some queries and a range of candidates in 64 bits."""
        items, starts = self.candidates.slice(begin, end)
        one = self.vectors.units(queries, np.float64, query=True)
        return _best(one @ self.vectors.units(items, np.float64).T, starts)


class _TiledSearch:
    """Finds the first candidate of each query, and counts the candidates ahead of each answer.

    A tile holds the 32-bit cosines of about ``SPAN`` candidates and up to ``HEIGHT`` queries. The
    highest cosine of every ``GROUP`` candidates shows which of them reach the lowest answer of a
    query. If few do, they are taken out of the tile and counted; otherwise, the cosines of the
    query are compared with the line of every answer. What 32 bits cannot decide is compared in 64
    bits. ``lines`` are the scores to reach; ``answers`` are the query, ascending, and the candidate
    of each line.
    """

    def __init__(
        self,
        cosines: _Cosines,
        queries: np.ndarray,
        hidden: tuple[np.ndarray, np.ndarray],
        answers: tuple[np.ndarray, np.ndarray],
        lines: np.ndarray,
    ) -> None:
        self.cosines, self.queries, self.lines = cosines, queries, lines
        self.rows, self.places = answers
        units = cosines.vectors.units(queries, query=True)
        #: largest error of a product: of its sum, of the length, and of rounding factors and lines
        self.slack = (1.5 * units.shape[1] + 10) * _ROUNDING
        starts = range(0, len(queries), HEIGHT)
        self.units = [np.ascontiguousarray(units[i : i + HEIGHT].T) for i in starts]
        self.hidden, self.answers = _by_place(*hidden), _by_place(*answers)
        self.scale = _Scale.of(self.rows, lines, self.slack)
        self.low, self.high = ((lines + s).astype(np.float32) for s in (-self.slack, self.slack))
        self.floor = np.full(len(queries), np.float32(np.inf))
        np.minimum.at(self.floor, self.rows, self.low)
        self.ahead = np.zeros(len(lines), dtype=np.intp)
        self.best = np.zeros(len(queries), dtype=np.intp)
        self.peak = np.full(len(queries), -np.inf)
        self.unclear: list[tuple[np.ndarray, np.ndarray]] = []

    def run(self) -> np.ndarray:
        """Visit every tile; return the number of candidates ahead of each answer."""
        candidates, buffer = self.cosines.candidates, np.empty(0, dtype=np.float32)
        for begin, end in itertools.pairwise(candidates.bounds(SPAN)):
            vectors, starts = self.cosines.tile(begin, end), candidates.slice(begin, end)[1]
            for chunk, units in enumerate(self.units):
                shape = (-(-len(vectors) // GROUP) * GROUP, units.shape[1])
                if buffer.size < shape[0] * shape[1]:
                    buffer = np.empty(shape[0] * shape[1], dtype=np.float32)
                scores = buffer[: shape[0] * shape[1]].reshape(shape)
                np.matmul(vectors, units, out=scores[: len(vectors)])
                scores[len(vectors) :] = -np.inf
                if starts is not None:
                    scores = _whole_groups(np.maximum.reduceat(scores[: len(vectors)], starts))
                self._visit(_Tile(scores, begin, end, chunk * HEIGHT))
        self._decide_unclear()
        return self.ahead + self.scale.counts()

    def _visit(self, tile: _Tile) -> None:
        """Read the scores of a tile."""
        tile.hide(self.hidden)
        highest = tile.groups.max(axis=0)
        tops, floor = highest.max(axis=0), self.floor[tile.queries]
        self._lead(tile, highest, tops)
        tile.hide(self.answers)
        # some groups show how many queries count each score; those with the lowest lines are first
        some = highest[::GROUP] >= floor
        dense = np.count_nonzero(np.count_nonzero(some, axis=0) * DENSE > len(some))
        rows, places, scores = tile.reaching(highest, floor[dense:], slice(dense, None))
        lines, near = self.scale.add(tile.first + rows, scores)
        self._decide(tile, lines, rows[near], places[near])
        self._count(tile, tops[:dense])

    def _lead(self, tile: _Tile, highest: np.ndarray, tops: np.ndarray) -> None:
        """Update the first candidates by the highest scores of groups and of queries."""
        near = np.flatnonzero((tops >= self.peak[tile.queries] - self.slack) & (tops > -np.inf))
        if len(near):
            floor = tops[near] - np.float32(2 * self.slack)
            rows, places, _ = tile.reaching(highest, floor, near)
            order = np.lexsort((places, rows))
            self._follow(tile, rows[order], places[order])

    def _follow(self, tile: _Tile, rows: np.ndarray, places: np.ndarray) -> None:
        """Compare some candidates, ordered by query and place, with the first ones so far."""
        exact = self._exact(tile, rows, places)
        starts = np.flatnonzero(np.diff(rows, prepend=-1))
        highest, sizes = np.maximum.reduceat(exact, starts), np.diff([*starts, len(rows)])
        tied = np.flatnonzero(exact >= np.repeat(highest, sizes) - NEAREST_TIE)
        chosen = places[tied[np.searchsorted(tied, starts)]]
        number = tile.first + rows[starts]
        better = highest > self.peak[number] + NEAREST_TIE
        number = number[better]
        self.peak[number], self.best[number] = highest[better], tile.begin + chosen[better]

    def _count(self, tile: _Tile, tops: np.ndarray) -> None:
        """Count the scores that reach the lines of the first queries, of which many do."""
        columns = tile.columns(len(tops))
        rows = tile.first + np.arange(len(tops))
        begin, end = (np.searchsorted(self.rows, rows, side) for side in _SIDES)
        for row in np.flatnonzero(end - begin > FEW):
            lines_here = np.arange(begin[row], end[row])
            certain, near = _certain(columns[row], self.lines[lines_here], self.slack)
            self.ahead[lines_here] += certain
            line = np.repeat(lines_here, [len(unclear) for unclear in near])
            self._decide(tile, line, np.full(len(line), row), np.concatenate(near))
        for number in range(FEW):
            chosen = np.flatnonzero((begin + number < end) & (end - begin <= FEW))
            chosen = chosen[tops[chosen] >= self.low[begin[chosen] + number]]
            if len(chosen):
                scores = columns if len(chosen) == len(columns) else columns[chosen]
                self._reach(tile, chosen, scores, begin[chosen] + number)

    def _reach(self, tile: _Tile, rows: np.ndarray, scores: np.ndarray, lines: np.ndarray) -> None:
        """Count the scores of some queries that reach one line each."""
        certain, possible = (_reached(scores, bound[lines]) for bound in (self.high, self.low))
        self.ahead[lines] += _count(certain)
        row, column = np.divmod(np.flatnonzero(certain ^ possible), certain.shape[1])
        self._decide(tile, lines[row], rows[row], column)

    def _decide(self, tile: _Tile, lines: np.ndarray, rows: np.ndarray, places: np.ndarray) -> None:
        """Count those candidates of a tile that reach a line in 64 bits, many at once."""
        if len(lines) > HEIGHT:
            self._add(lines, tile.begin + places, self._exact(tile, rows, places))
        elif len(lines):
            self.unclear.append((lines, tile.begin + places))
            if sum(len(block) for block, _ in self.unclear) > HEIGHT:
                self._decide_unclear()

    def _decide_unclear(self) -> None:
        """Count the candidates that wait for a comparison in 64 bits."""
        if self.unclear:
            lines, places = map(np.concatenate, zip(*self.unclear, strict=True))
            scores = self.cosines.exact(self.queries[self.rows[lines]], places)
            self._add(lines, places, scores)
            self.unclear = []

    def _add(self, lines: np.ndarray, places: np.ndarray, scores: np.ndarray) -> None:
        ahead = scores >= self.lines[lines]
        if self.cosines.candidates.first_wins:
            higher = scores > self.lines[lines] + 2 * NEAREST_TIE
            ahead &= higher | (places < self.places[lines])
        np.add.at(self.ahead, lines, ahead)

    def _exact(self, tile: _Tile, rows: np.ndarray, places: np.ndarray) -> np.ndarray:
        """Return scores of a tile in 64 bits; all of some queries if many are wanted."""
        distinct, which = np.unique(rows, return_inverse=True)
        if len(rows) <= MOST * len(distinct):
            return self.cosines.exact(self.queries[tile.first + rows], tile.begin + places)
        queries = self.queries[tile.first + distinct]
        return np.asarray(self.cosines.exact_tile(queries, tile.begin, tile.end)[which, places])


@dataclass(frozen=True)
class _Tile:
    """Scores of candidates from ``begin`` to ``end`` and queries from ``first`` on.

    The last rows fill a group and are minus infinity.
    """

    scores: np.ndarray
    begin: int
    end: int
    first: int

    @property
    def queries(self) -> slice:
        """The queries of the columns."""
        return slice(self.first, self.first + self.scores.shape[1])

    @property
    def groups(self) -> np.ndarray:
        """The scores with the candidates of a group in the first axis, which is fast to reduce."""
        return self.scores.reshape(GROUP, -1, self.scores.shape[1])

    def reaching(
        self, highest: np.ndarray, floor: np.ndarray, queries: slice | np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the queries, places and values of the scores that reach a query's floor.

        ``highest`` are the highest scores of the groups; ``queries`` are those of the floors.
        """
        hits = np.flatnonzero(highest[:, queries] >= floor)
        group, row = np.divmod(hits, len(floor))
        query = np.arange(highest.shape[1])[queries][row]
        values = self.groups.reshape(GROUP, -1).take(group * highest.shape[1] + query, axis=1)
        hits_flat = np.flatnonzero(values >= floor[row])
        member, hit = np.divmod(hits_flat, len(hits))
        return query[hit], member * len(highest) + group[hit], values.take(hits_flat)

    def columns(self, count: int) -> np.ndarray:
        """Return a copy of the scores of the first queries, one query per row."""
        columns = np.empty((count, len(self.scores)), dtype=self.scores.dtype)
        for begin in range(0, len(self.scores), BAND):  # a copy in one go misses the cache
            columns[:, begin : begin + BAND] = self.scores[begin : begin + BAND, :count].T
        return columns

    def hide(self, pairs: tuple[np.ndarray, np.ndarray]) -> None:
        """Set the scores of pairs of query and candidate to minus infinity."""
        here = slice(*np.searchsorted(pairs[1], [self.begin, self.end]))
        rows, places = pairs[0][here] - self.first, pairs[1][here] - self.begin
        is_here = (rows >= 0) & (rows < self.scores.shape[1])
        self.scores[places[is_here], rows[is_here]] = -np.inf


def _whole_groups(scores: np.ndarray) -> np.ndarray:
    missing = -len(scores) % GROUP
    return np.pad(scores, ((0, missing), (0, 0)), constant_values=-np.inf)


@dataclass(frozen=True)
class _Scale:
    """The lines of all queries on one ascending scale, and how many scores reached each.

    A score of query r has the key 4 r + score. Each query has a mark below its lines, at 4 r - 2.
    ``own`` is the line of each mark, -1 if it is none.
    """

    high: np.ndarray
    low: np.ndarray
    own: np.ndarray
    reached: np.ndarray

    @classmethod
    def of(cls, rows: np.ndarray, lines: np.ndarray, slack: float) -> _Scale:
        """Return the scale of the lines of some queries."""
        line_numbers = np.concatenate(
            [np.arange(len(rows)), np.full(len(distinct := np.unique(rows)), -1)]
        )
        base = 4.0 * np.concatenate([rows, distinct])
        ends = [np.concatenate([lines + s, np.full(len(distinct), -2.0)]) for s in (slack, -slack)]
        high, low = (base + end.astype(np.float32) for end in ends)
        order = np.argsort(high, kind="stable")
        low = np.append(np.where(line_numbers < 0, np.inf, low)[order], np.inf)
        return cls(
            high[order], low, line_numbers[order], np.zeros(len(line_numbers) + 1, dtype=np.intp)
        )

    def add(self, rows: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Count scores of queries; return the undecided lines, and the score of each by place."""
        keys = 4.0 * rows + scores
        reached = np.searchsorted(self.high, keys, side="right") - 1
        self.reached[:] += np.bincount(reached, minlength=len(self.reached))
        lines, near, step = [self.own[:0]], [self.own[:0]], 1
        open_keys = np.flatnonzero(keys >= self.low[reached + 1])
        while len(open_keys):
            lines.append(self.own[reached[open_keys] + step])
            near.append(open_keys)
            step += 1
            open_keys = open_keys[keys[open_keys] >= self.low[reached[open_keys] + step]]
        return np.concatenate(lines), np.concatenate(near)

    def counts(self) -> np.ndarray:
        """Return how many scores certainly reached each line."""
        ends = np.append(np.flatnonzero(self.own < 0)[1:], len(self.own))
        sums = np.concatenate([[0], np.cumsum(self.reached)])
        end = ends[np.searchsorted(ends, np.arange(len(self.own)), side="right")]
        counts = np.zeros((self.own >= 0).sum(), dtype=np.intp)
        lines = self.own >= 0
        counts[self.own[lines]] = (sums[end] - sums[:-1][: len(end)])[lines]
        return counts


def _best(scores: np.ndarray, starts: np.ndarray | None) -> np.ndarray:
    """Return the scores of candidates from those of their items; None: each is one item."""
    return scores if starts is None else np.maximum.reduceat(scores, starts, axis=-1)


def _by_place(rows: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(places, kind="stable")
    return rows[order], places[order]


def _certain(
    scores: np.ndarray, lines: np.ndarray, slack: float
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return how many scores are certainly above each line, and the places of unclear ones.

    The lines descend.

    >>> _certain(np.array([0.1, 0.9, 0.5]), np.array([0.6, 0.5]), 0.01)
    (array([1, 1]), [array([], dtype=int64), array([2])])
    """
    low, high = ((lines + bound).astype(scores.dtype) for bound in (-slack, slack))
    if len(lines) <= FEW:
        certain, possible = (
            np.array([np.count_nonzero(scores >= line) for line in bound]) for bound in (high, low)
        )
        near = [
            np.flatnonzero((scores >= low[i]) & (scores < high[i]))
            if certain[i] < possible[i]
            else np.empty(0, dtype=np.intp)
            for i in range(len(lines))
        ]
        return certain, near
    places = np.flatnonzero(scores >= low[-1])
    values = scores[places]
    order = np.argsort(values)
    places, values = places[order], values[order]
    # searching in ascending order is faster
    ends, begins = (np.searchsorted(values, bound[::-1])[::-1] for bound in (high, low))
    near = [places[begin:end] for begin, end in zip(begins, ends, strict=True)]
    return len(values) - ends, near


def similarities(queries: np.ndarray, candidates: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the scores of all candidates for each query; they may be overwritten."""
    step = max(1, BLOCK // len(candidates))
    for start in range(0, len(queries), step):
        yield from queries[start : start + step] @ candidates.T


def nearest(scores: np.ndarray) -> int:
    """Return the first candidate with the highest score."""
    return int(np.argmax(scores >= scores.max() - NEAREST_TIE))


def rank_answers(
    scores: np.ndarray, wanted: np.ndarray, first_wins: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return the order of a query's answers by score, and their ranks in that order.

    Ties count against them, or with ``first_wins`` the first candidate is ahead.

    >>> rank_answers(np.array([0.5, 0.9, 0.5, 0.5]), np.array([2]))[1].tolist()
    [4.0]
    >>> rank_answers(np.array([0.5, 0.9, 0.5, 0.5]), np.array([2]), first_wins=True)[1].tolist()
    [3.0]
    """
    if first_wins:
        order = np.lexsort((wanted, -scores[wanted].round(_DIGITS)))
        return order, _ranks_in_order(scores, wanted[order])
    order = np.argsort(-scores[wanted], kind="stable")
    answers = scores[wanted[order]]
    scores[wanted] = -np.inf
    lines = answers - NEAREST_TIE
    if len(wanted) <= FEW:
        ahead = np.array([np.count_nonzero(scores >= line) for line in lines], dtype=float)
    else:
        scores.sort()
        # searching in ascending order is faster
        ahead = (len(scores) - np.searchsorted(scores, lines[::-1])[::-1]).astype(float)
    ahead[np.isneginf(answers)] = np.inf
    return order, ahead + np.arange(1, len(wanted) + 1)


def _ranks_in_order(scores: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the ranks of answers, best first; of equal scores the first candidate is ahead."""
    answers, places = scores[wanted], np.arange(len(scores))
    scores[wanted] = -np.inf
    ahead = np.empty(len(wanted))
    for number, (position, score) in enumerate(zip(wanted, answers, strict=True)):
        higher = scores > score + NEAREST_TIE
        tied = (scores >= score - NEAREST_TIE) & (places < position)
        ahead[number] = np.count_nonzero(higher | tied) if score > -np.inf else np.inf
    return ahead + np.arange(1, len(wanted) + 1)


def _by_query(test: Dataset, wanted: np.ndarray) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the items that are queries, and the questions of each."""
    queries, which = np.unique(test.mentions(test.fields[0]).rows, return_inverse=True)
    twice = pd.DataFrame({"query": which, "answer": wanted}).duplicated().to_numpy()
    if twice.any():
        query = test.items.index[queries[which[np.argmax(twice)]]]
        raise DataError(f'{test.name}: the query "{query}" has a duplicate answer; remove it.')
    order = np.argsort(which, kind="stable")
    return queries, np.split(order, np.cumsum(np.bincount(which))[:-1])


def _positions(data: Dataset, ids: np.ndarray) -> np.ndarray:
    places = np.asarray(data.items.index.get_indexer(pd.Index(ids, tupleize_cols=False)))
    if (places < 0).any():
        raise KeyError(f"{ids[int(np.argmax(places < 0))]} is not an item of {data.name}.")
    return places


class _ByClass:
    """Base of probes that predict pairs or lists of items of the same class."""

    one_answer_each = False
    name: str

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have an item with a vector."""
        need_fields(data, self.name, "classification")
        return vectors.answerable(data)

    def unanswered(self, test: Dataset) -> Predictions:
        """Refuse: a query or pair without vectors has no similarities."""
        raise DefinitionError(f"probe: {self.name} cannot penalize; set missing: ignore.")


@probe("same-class")
class SameClass(_ByClass):
    """Rank candidates by their cosine to a query; items of the query's class are its answers.

    The train items are the candidates and each test item is a query. If the train target is hidden
    (``split: all``), the test items are both, and a query is not its own answer. At most
    ``queries`` random queries are used, since a query has as many answers as its class has items.
    An item may have several classes. The columns of a query's own table are not candidates.
    """

    name = "same-class"

    def __init__(self, queries: int = 200, random_state: int | None = None) -> None:
        if isinstance(queries, bool) or not isinstance(queries, int) or queries < 1:
            raise DefinitionError(f"probe: queries must be an integer >= 1, got {queries!r}.")
        self.queries = queries
        self.random_state = random_state
        self.train_: _Items | None = None
        self.notes: list[str] = []

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Store the train items as candidates, unless their target is hidden."""
        self.train_ = None if train.target is None else _Items(train, vectors)

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each query, and its answers in the order of rank."""
        items = _Items(test, vectors)
        among = self.train_ or items
        chosen = self._draw(items, among, test.name)
        best = np.empty(len(chosen), dtype=np.intp)
        ordered, ranks, others = [], [], []
        scored = similarities(items.matrix[chosen], among.matrix)
        for i, (query, scores) in enumerate(zip(chosen, scored, strict=True)):
            hidden = items.hidden(query, among)
            wanted = items.answers(query, among)
            scores[hidden] = -np.inf
            best[i] = nearest(scores)
            order, rank = rank_answers(scores, wanted)
            ordered.append(wanted[order])
            ranks.append(rank)
            others.append(len(among.ids) - len(hidden))
        sizes = [len(rank) for rank in ranks]
        return Predictions(
            predictions=np.repeat(among.ids[best], sizes),
            target=among.ids[np.concatenate(ordered)],
            answers="items",
            truths="items",
            group=np.repeat(items.ids[chosen], sizes),
            rank=np.concatenate(ranks),
            candidates=np.repeat(others, sizes),
        )

    def _draw(self, items: _Items, among: _Items, name: str) -> np.ndarray:
        """Draw queries among the items with at least one answer."""
        usable = np.flatnonzero(items.sizes(among) > (among is items))
        if items.tables is not None:
            usable = usable[[len(items.answers(int(query), among)) > 0 for query in usable]]
        if not len(usable):
            raise DataError(f"{name}: no candidate has the class of any query.")
        excluded = len(items.ids) - len(usable)
        note = (
            f"{excluded} of {len(items.ids)} items have no candidate of their class; not queried."
        )
        self.notes = [note] if excluded else []
        if len(usable) > self.queries:
            rng = np.random.default_rng(self.random_state)
            usable = np.sort(rng.choice(usable, self.queries, replace=False))
        return usable


class _Items:
    """The distinct items of questions: ids, unit vectors, and classes."""

    def __init__(self, data: Dataset, vectors: Vectors) -> None:
        positions, item = np.unique(data.mentions(data.fields[0]).rows, return_inverse=True)
        self.ids = as_text(data.items.index[positions])
        self.matrix = unit_rows(vectors.at(positions), np.float64)
        self.tables = None if data.tables is None else data.tables[positions]
        codes, self._names = pd.factorize(np.asarray(data.target))
        # an item may have several classes, and a class may be repeated
        item, self._code = np.divmod(np.unique(item * len(self._names) + codes), len(self._names))
        self._starts = np.searchsorted(item, np.arange(len(positions) + 1))
        order = np.argsort(self._code, kind="stable")
        rows = np.split(item[order], np.cumsum(np.bincount(self._code))[:-1])
        self._rows = dict(zip(self._names, rows, strict=True))

    def classes(self, item: int) -> np.ndarray:
        return self._names[self._code[self._starts[item] : self._starts[item + 1]]]

    def hidden(self, query: int, among: _Items) -> np.ndarray:
        """Return the items that are no candidates of a query: itself, and columns of its table."""
        if self.tables is not None and among.tables is not None:
            return np.flatnonzero(among.tables == self.tables[query])
        return np.array([query] if among is self else [], dtype=np.intp)

    def answers(self, query: int, among: _Items) -> np.ndarray:
        """Return the candidates of a query's classes."""
        return np.setdiff1d(among.of(self.classes(query)), self.hidden(query, among))

    def of(self, classes: np.ndarray) -> np.ndarray:
        """Return which items have one of these classes, ascending."""
        rows = [self._rows[name] for name in classes if name in self._rows]
        return rows[0] if len(rows) == 1 else np.unique(np.concatenate(rows))

    def sizes(self, among: _Items) -> np.ndarray:
        """Return, for each item, the size of the largest of its classes among other items."""
        sizes = np.array([len(among._rows.get(name, ())) for name in self._names])
        return np.maximum.reduceat(sizes[self._code], self._starts[:-1])


@probe("duplicates")
class Duplicates(_ByClass):
    """Compare every pair of items by cosine; a pair of the same class is a duplicate.

    The predictions have one row per relevant grid step, weighted by its number of pairs.
    """

    name = "duplicates"

    def __init__(self) -> None:
        self.notes: list[str] = []

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Do nothing: the probe is stateless."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the counted similarities of all pairs, duplicates and others."""
        matrix = unit_rows(vectors.of(test, test.fields[0]))
        entity = np.asarray(pd.factorize(np.asarray(test.target))[0])
        if len(np.unique(entity)) == len(entity):
            raise DataError(f"{test.name}: no two items have the same class; nothing to find.")
        return _predictions(*_count_pairs(matrix, entity))


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
        predictions=level[order] / (STEPS // 2) - 1, target=truth[order], weight=weight[order]
    )
