"""Prepared rows of numbers with digests, and a cache of predictions by digest.

Many rows of corrupted views are equal to rows of other views (a third on Adult); their predictions
are reused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import Any

import numpy as np

#: maximum number of cached rows
MOST = 2**20
_BYTES = 16

#: arrays with a row per input row
Answers = tuple[np.ndarray, ...]


class Rows:
    """A read-only matrix with a digest of each row.

    >>> rows = Rows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> rows.digests[0] == rows.digests[2] != rows.digests[1]
    True
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = np.ascontiguousarray(matrix)
        self.matrix.setflags(write=False)

    @cached_property
    def digests(self) -> list[bytes]:
        """A digest per row."""
        return [blake2b(row, digest_size=_BYTES).digest() for row in self.matrix]

    @property
    def nbytes(self) -> int:
        """Size in memory, including digests."""
        return int(self.matrix.nbytes) + 64 * len(self)

    def __len__(self) -> int:
        return len(self.matrix)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.matrix, dtype=dtype, copy=copy)


class Memory:
    """Predictions by row digest, for estimators that predict each row independently.

    At most ``most`` rows are cached.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.indices: dict[bytes, int] = {}
        self.answers: Answers = ()

    def recall(self, rows: Rows, predict: Callable[[np.ndarray], Answers]) -> Answers:
        """Return the predictions of rows; ``predict`` is called for new rows only."""
        first: dict[bytes, int] = {}
        for i, digest in enumerate(rows.digests):
            if digest not in self.indices:
                first.setdefault(digest, i)
        if not len(rows) or len(self.indices) + len(first) > self.most:
            return predict(rows.matrix)
        if first:
            whole = len(first) == len(rows)
            new = predict(rows.matrix if whole else rows.matrix[list(first.values())])
            before = self.answers or tuple(each[:0] for each in new)
            self.answers = tuple(map(np.concatenate, zip(before, new, strict=True)))
            self.indices.update(
                zip(first, range(len(self.indices), len(self.answers[0])), strict=True)
            )
        indices = [self.indices[digest] for digest in rows.digests]
        return tuple(each[indices] for each in self.answers)
