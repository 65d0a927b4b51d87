"""Shares: which cells, rows and columns a severity hits, so that more severity only adds to them.

Everything is drawn whatever the severity is; the severity only says how much of it counts.
"""

from __future__ import annotations

import math

import numpy as np


def count(size: int, severity: float) -> int:
    """Return how many of so many cells or rows a severity is, rounded down.

    >>> count(30, 0.1), count(29, 0.1), count(100, 0.29)
    (3, 2, 29)
    """
    return math.floor(round(size * severity, 9))  # 0.29 of 100 are 29, not 28.999999999999996


def count_up(size: int, severity: float) -> int:
    """Return how many of so many columns a severity is, rounded up: at least one above 0.

    >>> count_up(30, 0.1), count_up(29, 0.1), count_up(3, 0.0)
    (3, 3, 0)
    """
    return min(size, max(math.ceil(round(size * severity, 9)), int(severity > 0)))


def some(size: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return the numbers of the cells or rows hit, in random order; fewer are the first of more.

    >>> low, high = (some(50, s, np.random.default_rng(1)) for s in (0.1, 0.4))
    >>> len(low), len(high), (high[:5] == low).all()
    (5, 20, np.True_)
    """
    return rng.permutation(size)[: count(size, severity)]


def cells(rows: int, columns: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return which cells of a table are hit, one row per column of the table."""
    hit = np.zeros(rows * columns, dtype=bool)
    hit[some(hit.size, severity, rng)] = True
    return hit.reshape(columns, rows)


def streams(rng: np.random.Generator, size: int) -> list[np.random.Generator]:
    """Return a generator for each of so many columns: what one draws does not move another."""
    return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=size)]
