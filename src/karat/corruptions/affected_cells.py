"""Which cells, rows or columns a severity affects: a lower one affects a part of them."""

from __future__ import annotations

import math

import numpy as np


def count_affected(size: int, severity: float) -> int:
    """Return the number of affected cells or rows, rounded down.

    >>> count_affected(30, 0.1), count_affected(29, 0.1), count_affected(100, 0.29)
    (3, 2, 29)
    """
    return math.floor(round(size * severity, 9))  # 0.29 of 100 are 29, not 28.999999999999996


def count_up(size: int, severity: float) -> int:
    """Return the number of affected columns, rounded up: at least one above severity 0."""
    return min(size, max(math.ceil(round(size * severity, 9)), int(severity > 0)))


def affected_places(size: int, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Return the affected cells or rows in random order; a lower severity is a prefix."""
    return rng.permutation(size)[: count_affected(size, severity)]


def affected_cells(
    rows: int, columns: int, severity: float, rng: np.random.Generator
) -> np.ndarray:
    """Return which cells of a table are affected, one row per column of the table."""
    hit = np.zeros(rows * columns, dtype=bool)
    hit[affected_places(hit.size, severity, rng)] = True
    return hit.reshape(columns, rows)


def column_generators(rng: np.random.Generator, size: int) -> list[np.random.Generator]:
    """Return an independent generator for each column."""
    return [np.random.default_rng(seed) for seed in rng.integers(2**63, size=size)]
