"""Ranks of true items among many candidates, counted tile by tile, and the same in any company.

A product in 32 bits says of nearly every candidate whether it is ahead of the true item; its last
bits hang on where a row stands in a tile. So the few candidates that it cannot decide about are
looked at in 64 bits, and no rank hangs on the questions beside or on the size of a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

#: scores this near count as equal: the product of equal vectors differs in its last bits
TIE = 2e-6
#: a tile is so many questions by so many candidates, few enough to stay in the cache
HEIGHT, WIDTH = 1024, 1024
#: what a number of 32 bits is off by, at most, for its size
_ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Contest:
    """Questions as vectors, the true place of each, and the candidates that compete.

    ``vectors`` returns the 32-bit vectors of some candidates by place. ``out`` are pairs of
    question and place that do not compete: the places asked about, or other true answers. Scores
    are dot products, and should be about 1 or smaller, as ties are told by ``TIE``.
    """

    queries: np.ndarray
    truth: np.ndarray
    out: tuple[np.ndarray, np.ndarray]
    count: int
    vectors: Callable[[Any], np.ndarray]

    def settle(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first candidate of each question, and the rank of its true one.

        What ties with the true one is ahead of it; of those that tie at the top, the one with the
        lowest place is first. A true item that is left out has no rank: it is infinite.
        """
        ahead = np.zeros(len(self.queries), dtype=np.intp)
        tops = np.empty((len(self.queries), len(self._starts)), dtype=np.float32)
        for tile, start in enumerate(self._starts):
            vectors = self._tile(start)
            unclear = []
            for rows, scores in self._scores(vectors, start, np.arange(len(self.queries))):
                tops[rows, tile] = scores.max(axis=1)
                sure, maybe = self._counts(scores, start, rows)
                ahead[rows] += sure
                unclear.append(rows[sure != maybe])
                ahead[unclear[-1]] -= sure[sure != maybe]
            for rows, scores in self._exact(vectors, start, np.concatenate(unclear)):
                self._hide_truth(scores, start, rows)
                ahead[rows] += _count(scores, self._wanted[rows] - TIE)
        ranks = ahead + 1.0
        questions, places = self.out
        ranks[questions[self.truth[questions] == places]] = np.inf
        return self._first(tops), ranks

    # -- the candidate of the highest score -------------------------------------------------

    def _first(self, tops: np.ndarray) -> np.ndarray:
        """Return the lowest place whose score ties with the highest, from the tops of tiles."""
        best = np.full(len(tops), -1, dtype=np.intp)
        peak = np.full(len(tops), -np.inf)
        top = tops.max(axis=1).astype(np.float64)
        near = tops >= (top - TIE - 2 * self._slack(top))[:, None]
        alone = near.sum(axis=1) == 1
        for again in (False, True):
            for tile, start in enumerate(self._starts):
                rows = np.flatnonzero(near[:, tile] & (best < 0))
                for some, scores in (
                    self._exact(self._tile(start), start, rows) if len(rows) else ()
                ):
                    peak[some] = np.maximum(peak[some], scores.max(axis=1))
                    tied = scores >= peak[some, None] - TIE
                    found = tied.any(axis=1) & (alone[some] | again)
                    best[some[found]] = start + tied[found].argmax(axis=1)
        return best

    # -- scores, tile by tile ---------------------------------------------------------------

    @cached_property
    def _starts(self) -> range:
        return range(0, self.count, WIDTH)

    def _tile(self, start: int) -> np.ndarray:
        return self.vectors(slice(start, min(start + WIDTH, self.count)))

    def _scores(
        self, vectors: np.ndarray, start: int, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield some questions and their scores in a tile; these may be written over."""
        held = np.empty((min(HEIGHT, len(rows)), len(vectors)), dtype=vectors.dtype)
        for begin in range(0, len(rows), HEIGHT):
            some = rows[begin : begin + HEIGHT]
            queries = self.queries[some].astype(vectors.dtype, copy=False)
            scores = np.matmul(queries, vectors.T, out=held[: len(some)])
            self._hide_out(scores, start, some)
            yield some, scores

    def _exact(
        self, vectors: np.ndarray, start: int, rows: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the same in 64 bits."""
        if len(rows):
            yield from self._scores(vectors.astype(np.float64), start, rows)

    def _counts(
        self, scores: np.ndarray, start: int, rows: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how many candidates are surely ahead of the true one, and how many may be."""
        self._hide_truth(scores, start, rows)
        line, slack = self._wanted[rows] - TIE, self._slack(self._wanted[rows])
        return _count(scores, line + slack), _count(scores, line - slack)

    def _slack(self, scores: np.ndarray) -> np.ndarray:
        """Return how far 32 bits may be off: sums round at each step, the more the larger."""
        return np.asarray(_ROUNDING * (16 + self.queries.shape[1] * np.abs(scores) / 2))

    @cached_property
    def _wanted(self) -> np.ndarray:
        """The score of each question's true item, in 64 bits."""
        wanted = np.empty(len(self.truth))
        for begin in range(0, len(wanted), HEIGHT):
            rows = slice(begin, begin + HEIGHT)
            true = self.vectors(self.truth[rows]).astype(np.float64)
            wanted[rows] = np.einsum("ij,ij->i", self.queries[rows].astype(np.float64), true)
        return wanted

    # -- who does not compete ---------------------------------------------------------------

    def _hide_truth(self, scores: np.ndarray, start: int, rows: np.ndarray) -> None:
        place = self.truth[rows] - start
        here = np.flatnonzero((place >= 0) & (place < scores.shape[1]))
        scores[here, place[here]] = -np.inf

    def _hide_out(self, scores: np.ndarray, start: int, rows: np.ndarray) -> None:
        """Take what is left out from a tile; the questions ascend."""
        tiles, questions, places = self._sorted_out
        begin, end = np.searchsorted(tiles, [start // WIDTH, start // WIDTH + 1])
        here = slice(
            begin + np.searchsorted(questions[begin:end], rows[0]),
            begin + np.searchsorted(questions[begin:end], rows[-1], side="right"),
        )
        asked, place = questions[here], places[here] - start
        row = np.searchsorted(rows, asked)
        own = rows[row] == asked
        scores[row[own], place[own]] = -np.inf

    @cached_property
    def _sorted_out(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        questions, places = self.out
        order = np.lexsort((questions, places // WIDTH))
        return places[order] // WIDTH, questions[order], places[order]


def _count(scores: np.ndarray, lines: np.ndarray) -> np.ndarray:
    """Return how many scores of each row reach its line.

    Eight answers of one byte are added at once; as a row has at most 255 eights, no byte runs over.
    """
    height, width = scores.shape
    reached = np.zeros((height, -(-width // 8) * 8), dtype=bool)
    np.greater_equal(scores, lines.astype(scores.dtype)[:, None], out=reached[:, :width])
    eights = np.add.reduce(reached.view(np.uint64), axis=1)
    return eights.view(np.uint8).reshape(height, 8).sum(axis=1, dtype=np.intp)
