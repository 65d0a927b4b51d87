"""Twins: tested items with the same cells as an item of their own train part."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.splits import Fold


def twins(data: Dataset, folds: Iterable[Fold]) -> tuple[int, int]:
    """Return how many tested questions ask about an item that stands in their train part too.

    Items are the same if all their cells are, whatever their ids and answers; entities, if their
    ids are. The second number is how many questions the folds test. Questions about several items,
    or whose answers are items, have no twins.

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
    found = 0
    for fold in folds:
        seen = np.zeros(codes.max() + 1, dtype=bool)
        seen[codes[fold.train]] = True
        found += int(seen[codes[fold.test]].sum())
    return found, tested


def numbered(items: pd.DataFrame | pd.Series) -> np.ndarray:
    """Return a number per item that items with the same cells share."""
    frame = items.to_frame() if isinstance(items, pd.Series) else items
    codes = np.zeros(len(frame), dtype=np.int64)
    for i in range(frame.shape[1]):
        column = frame.iloc[:, i]
        try:
            cells = pd.factorize(column)[0]
        except TypeError:  # a cell that cannot be compared is told by what it prints
            cells = pd.factorize(column.map(repr))[0]
        # numbered anew after each column, so that they stay below the square of the rows
        codes = pd.factorize(codes * (cells.max() + 2) + cells)[0]
        if codes.max() == len(codes) - 1:  # no two are the same so far
            break
    return codes
