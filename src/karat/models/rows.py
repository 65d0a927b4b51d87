"""Prepared rows of numbers, and a memory of what was answered about each.

Corruptions leave many rows as they are, or as another view has them already: on Adult a third of
those of all views. A row that comes again gets the answer it had.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

#: so many rows are remembered at most
MOST = 2**20
_BYTES = 16

#: one array or several, each with a line per row
Answers = tuple[np.ndarray, ...]


class Rows:
    """A matrix that cannot be written to, with a digest of the bits of each row.

    >>> rows = Rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> rows.digests[0] == rows.digests[2] != rows.digests[1]
    True
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = np.ascontiguousarray(matrix)
        self.matrix.setflags(write=False)

    @cached_property
    def digests(self) -> list[bytes]:
        """A digest per row, the same for the same bits; made once, for all who ask."""
        return [blake2b(row, digest_size=_BYTES).digest() for row in self.matrix]

    @property
    def nbytes(self) -> int:
        """What it weighs, digests and all."""
        return int(self.matrix.nbytes) + 64 * len(self)

    def __len__(self) -> int:
        return len(self.matrix)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.matrix, dtype=dtype, copy=copy)


class Memory:
    """What was answered about rows, by their digests.

    It serves whoever answers about a row by that row alone, which scikit-learn asks of every
    estimator. Once ``most`` rows are known, no more are learned.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.places: dict[bytes, int] = {}
        self.known: Answers = ()

    def recall(self, rows: Rows, ask: Callable[[np.ndarray], Answers]) -> Answers:
        """Return the answers about rows; ``ask`` is asked about those not met before."""
        first: dict[bytes, int] = {}
        for i, digest in enumerate(rows.digests):
            if digest not in self.places:
                first.setdefault(digest, i)
        if not len(rows) or len(self.places) + len(first) > self.most:
            return ask(rows.matrix)
        if first:
            whole = len(first) == len(rows)
            found = ask(rows.matrix if whole else rows.matrix[list(first.values())])
            before = self.known or tuple(each[:0] for each in found)
            self.known = tuple(map(np.concatenate, zip(before, found, strict=True)))
            self.places.update(zip(first, range(len(self.places), len(self.known[0])), strict=True))
        places = [self.places[digest] for digest in rows.digests]
        return tuple(each[places] for each in self.known)
