"""Which cells, rows and columns a severity affects.

The random draws do not depend on the severity, so a higher severity affects a superset.
"""

from __future__ import annotations

import math

import numpy as np


def count(size: int, severity: float) -> int:
    """Return the number of affected cells or rows, rounded down.

    >>> count(30, 0.1), count(29, 0.1), count(100, 0.29)
    (3, 2, 29)
    """
    return math.floor(round(size * severity, 9))  # 0.29 of 100 are 29, not 28.999999999999996


def count_up(size: int, severity: float) -> int:
    """Return the number of affected columns, rounded up: at least one above severity 0."""
    return min(size, max(math.ceil(round(size * severity, 9)), int(severity > 0)))


def some(size: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return the affected cells or rows in random order; a lower severity is a prefix."""
    return rng.permutation(size)[: count(size, severity)]


def cells(rows: int, columns: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return which cells of a table are affected, one row per column of the table."""
    hit = np.zeros(rows * columns, dtype=bool)
    hit[some(hit.size, severity, rng)] = True
    return hit.reshape(columns, rows)


def streams(rng: np.random.Generator, size: int) -> list[np.random.Generator]:
    """Return an independent generator for each column."""
    return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=size)]
