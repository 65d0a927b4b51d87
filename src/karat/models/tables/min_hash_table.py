"""Words as min-hashes of their n-grams.

The min-hashes equal those of skrub's MinHashEncoder (Cerda, Varoquaux 2022, Encoding
High-Cardinality String Categorical Variables), computed for all texts of a column at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd

from karat.models.model import (
    FittedEncoder,
    StatelessEncoder,
    Target,
)
from karat.models.tables.typed_columns import ColumnEncoder, TypedColumns, scaled

_LIMIT = np.iinfo(np.int32).max


def min_hashes(texts: Sequence[str], dimensions: int = 30) -> np.ndarray:
    """Return one row per text: the minimum over its 2- to 4-grams, for each hash function.

    The empty text is all zeros. Equal texts have equal rows.

    >>> min_hashes(["ab", "abcd", ""], 2).tolist()
    [[-1668975464.0, -1394811714.0], [-1872589581.0, -2131769630.0], [0.0, 0.0]]
    """
    # as many bytes as characters: skrub reads no further
    encoded = [text.encode("utf-8", "replace")[: len(text)] for text in texts]
    minima = np.full((dimensions, len(texts)), _LIMIT, dtype=np.int32)
    for size in (2, 3, 4):
        # a text shorter than an n-gram is padded with zeros on both sides
        zeros = [bytes(max(0, size - len(text))) for text in encoded]
        padded = [pad + text + pad for pad, text in zip(zeros, encoded, strict=True)]
        lengths = np.array([len(text) for text in padded])
        starts = np.cumsum(lengths) - lengths
        # reduceat uses consecutive bounds: every other segment spans two texts
        bounds = np.column_stack([starts, starts + lengths - size + 1]).ravel()
        # the last bound must be inside, so one more n-gram follows
        buffer = np.frombuffer(b"".join(padded) + b"\0", dtype=np.int8)
        for seed in range(dimensions):
            hashes = np.correlate(buffer, _weights(size, seed))
            lowest = np.minimum.reduceat(hashes, bounds)[::2]
            np.minimum(minima[seed], lowest, out=minima[seed])
    minima[:, [not text for text in encoded]] = 0
    return np.ascontiguousarray(minima.T, dtype=np.float64)


@dataclass(eq=False, repr=False)
class MinHashes(FittedEncoder, StatelessEncoder):
    """Concatenated min-hashes of the columns of a frame of strings."""

    dimensions: int = 30

    def transform(self, texts: pd.DataFrame) -> np.ndarray:
        """Return the hashes of all columns; each distinct text is hashed once."""
        blocks = []
        for _, column in texts.items():
            codes, different = pd.factorize(column.to_numpy(dtype=object))
            blocks.append(min_hashes(list(different), self.dimensions)[codes])
        return np.hstack(blocks)


@lru_cache(maxsize=1024)
def _weights(size: int, seed: int) -> np.ndarray:
    from sklearn.utils import check_random_state

    drawn: np.ndarray = check_random_state(seed).randint(-_LIMIT, _LIMIT, size, dtype=np.int32)
    drawn.flags.writeable = False  # it is cached
    return drawn


@dataclass(eq=False, repr=False)
class MinHashTable(ColumnEncoder):
    """skrub's MinHashEncoder, scaled: similar words share some of the ``dimensions`` per column."""

    dimensions: int = 30

    def _columns(self, y: Target) -> TypedColumns:
        return TypedColumns(scaled(MinHashes(self.dimensions)))
