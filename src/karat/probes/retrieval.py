"""Ranks of target items among many candidates, counted tile by tile.

A 32-bit product decides for nearly every candidate whether it is ahead of the target. Its last
bits depend on the position of a row in its tile, so the few undecided candidates are compared in
64 bits. A rank therefore depends neither on the other questions nor on the tile size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

#: scores this close count as equal: the product of equal vectors differs in its last bits
TIE = 2e-6
#: questions and candidates per tile, small enough for the processor cache
HEIGHT, WIDTH = 1024, 1024
#: largest relative rounding error of 32 bits
_ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Contest:
    """Query vectors, the place of each target, and the candidates.

    ``vectors`` returns the 32-bit vectors of candidates by place. ``out`` are pairs of question and
    place that are not candidates: the items in the question, or other correct answers. Scores are
    dot products and should be about 1 or smaller, because ``TIE`` is absolute.
    """

    queries: np.ndarray
    truth: np.ndarray
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
                ahead[rows] += _count(scores, self._target_scores[rows] - TIE)
        ranks = ahead + 1.0
        questions, places = self.out
        ranks[questions[self.truth[questions] == places]] = np.inf
        return self._first(tops), ranks

    # -- the candidate of the highest score -------------------------------------------------

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
        return _count(scores, line + slack), _count(scores, line - slack)

    def _slack(self, scores: np.ndarray) -> np.ndarray:
        """Return the largest error of a 32-bit score; it grows with dimensions and score."""
        return np.asarray(_ROUNDING * (16 + self.queries.shape[1] * np.abs(scores) / 2))

    @cached_property
    def _target_scores(self) -> np.ndarray:
        """The score of each question's target, in 64 bits."""
        found = np.empty(len(self.truth))
        for begin in range(0, len(found), HEIGHT):
            rows = slice(begin, begin + HEIGHT)
            targets = self.vectors(self.truth[rows]).astype(np.float64)
            found[rows] = np.einsum("ij,ij->i", self.queries[rows].astype(np.float64), targets)
        return found

    # -- places that are not candidates -----------------------------------------------------

    def _hide_target(self, scores: np.ndarray, start: int, rows: np.ndarray) -> None:
        place = self.truth[rows] - start
        here = np.flatnonzero((place >= 0) & (place < scores.shape[1]))
        scores[here, place[here]] = -np.inf

    def _hide_out(self, scores: np.ndarray, start: int, rows: np.ndarray) -> None:
        """Exclude the places ``out`` from a tile; ``rows`` must be ascending."""
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
    """Return how many scores of each row are at least its line.

    Eight booleans are added at once as 64-bit integers; with at most 255 groups of eight per row,
    no byte overflows.
    """
    height, width = scores.shape
    reached = np.zeros((height, -(-width // 8) * 8), dtype=bool)
    np.greater_equal(scores, lines.astype(scores.dtype)[:, None], out=reached[:, :width])
    eights = np.add.reduce(reached.view(np.uint64), axis=1)
    return eights.view(np.uint8).reshape(height, 8).sum(axis=1, dtype=np.intp)
