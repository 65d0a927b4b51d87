"""Corruptions of rows and of their targets."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.corruptions.affected_cells import (
    affected_places,
)
from karat.corruptions.needs import (
    Corrupted,
    Items,
    Rng,
    Target,
    corrupts,
)
from karat.corruptions.table_columns import (
    from_rows,
    levels,
)

_ITEMS = ("table", "text", "entity", "column", "frame")


@corrupts("rare_class_dilution", takes=_ITEMS, needs=("classes",))
def rare_class_dilution(
    X: Items, y: pd.Series, severity: float, rng: Rng, *, label: object = None
) -> Corrupted:
    """Drop this share of the rows of the class ``label``, by default the rarest one.

    Among equally rare classes it is the last in text order: 1 of 0 and 1.
    """
    rare = np.flatnonzero(rarest(y) if label is None else (y == label).to_numpy())
    rest = np.delete(np.arange(len(X)), rare[affected_places(len(rare), severity, rng)])
    return X.iloc[rest], y.iloc[rest]


@corrupts("duplicate_rows", takes=("table", "text"), needs=("rows",))
def duplicate_rows(X: Items, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Repeat this share of the rows after all others."""
    rows = np.concatenate([np.arange(len(X)), affected_places(len(X), severity, rng)])
    return X.iloc[rows], None if y is None else y.iloc[rows]


@corrupts("label_noise", takes=_ITEMS, needs=("target",))
def label_noise(X: Items, y: pd.Series, severity: float, rng: Rng) -> Corrupted:
    """Replace the target of this share of the rows by another one, drawn uniformly."""
    codes, rows = levels(y)
    if len(rows) < 2:
        return X.copy(), y
    others = (codes + rng.integers(1, len(rows), size=len(y))) % len(rows)
    source = np.arange(len(y))
    hit = affected_places(len(y), severity, rng)
    hit = hit[codes[hit] >= 0]
    source[hit] = rows[others[hit]]
    return X.copy(), from_rows(y, source)


def rarest(y: pd.Series) -> np.ndarray:
    """Return which rows are of the rarest class; none if there is only one class.

    >>> rarest(pd.Series(["no", "yes", "no"])).tolist(), rarest(pd.Series([0, 1])).tolist()
    ([False, True, False], [False, True])
    """
    codes, rows = levels(y)
    if len(rows) < 2:
        return np.zeros(len(y), dtype=bool)
    counts = np.bincount(codes[codes >= 0])
    fewest = np.flatnonzero(counts == counts.min())
    return codes == max(fewest, key=lambda code: str(y.iloc[rows[code]]))
