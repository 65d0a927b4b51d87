"""Leakage: test rows that duplicate a train row of the same fold."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.splits import Fold


def twins(data: Dataset, folds: Iterable[Fold]) -> tuple[int, int]:
    """Return the number of test questions whose item is also a train item, and of all of them.

    Items are equal if all their cells are, whatever their ids and targets; entities, if their ids
    are. Questions about several items, or whose targets are items, have no duplicates.

    >>> table = pd.DataFrame({"a": [1, 1, 2], "y": ["n", "p", "n"]})
    >>> data = Dataset.from_table(table, "y")
    >>> twins(data, [Fold(np.array([0, 2]), np.array([1])), Fold(np.array([0]), np.array([2]))])
    (1, 2)
    """
    folds = list(folds)
    tested = sum(len(fold.test) for fold in folds)
    if len(data.fields) != 1 or data.kind == "items":
        return 0, tested
    asked = data.mentions(data.fields[0]).rows
    if len(asked) != len(data):
        return 0, tested
    codes = asked if data.modality == "entity" else numbered(data.items)[asked]
    return sum(int(np.isin(codes[f.test], codes[f.train]).sum()) for f in folds), tested


def numbered(items: pd.DataFrame | pd.Series) -> np.ndarray:
    """Return a number per item; items with equal cells have the same number."""
    frame = items.to_frame() if isinstance(items, pd.Series) else items
    codes = np.zeros(len(frame), dtype=np.int64)
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        try:
            cells = pd.factorize(column)[0]
        except TypeError:  # unhashable cells are compared by their repr
            cells = pd.factorize(column.map(repr))[0]
        # renumbered after each column, so that the numbers cannot overflow
        codes = pd.factorize(codes * (cells.max() + 2) + cells)[0]
        if codes.max() == len(codes) - 1:  # all items differ already
            break
    return codes
