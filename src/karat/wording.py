"""Wording: the rows of a table in plain words, for encoders that read texts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def sentences(table: pd.DataFrame) -> list[str]:
    """Return each row in words; missing and empty cells are left out.

    A cell is written the same whatever stands in its column: 31 and 31.0 are both "31", other
    fractions have six digits, and midnight is left out of a date.

    >>> sentences(pd.DataFrame({"age": [31, None], "plan": ["basic", "plus"]}))
    ['age is 31. plan is basic.', 'plan is plus.']
    """
    columns = []
    for name, column in table.items():
        there = column.notna().to_numpy()
        texts = [
            written(cell) if known else ""
            for cell, known in zip(column.astype(object), there, strict=True)
        ]
        columns.append([f"{name} is {text}." if text else "" for text in texts])
    return [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]


def written(cell: Any) -> str:
    """Return a cell in words, the same whatever type its column has."""
    if isinstance(cell, float | np.floating):
        cell = float(cell)
        whole = cell.is_integer() and abs(cell) < 1e15
        return str(int(cell)) if whole else f"{cell:.6g}"
    if isinstance(cell, pd.Timestamp):
        return str(cell).removesuffix(" 00:00:00")
    return str(cell).strip()
