"""Convert the rows of a table to sentences, for text encoders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def sentences(table: pd.DataFrame) -> list[str]:
    """Return each row as text; missing and empty cells are left out.

    The text of a cell does not depend on the type of its column: 31 and 31.0 are both "31", other
    fractions have six digits, and midnight is left out of a date.

    >>> sentences(pd.DataFrame({"age": [31, None], "plan": ["basic", "plus"]}))
    ['age is 31. plan is basic.', 'plan is plus.']
    """
    columns = []
    for name, column in table.items():
        present = column.notna().to_numpy()
        texts = [
            written(cell) if filled else ""
            for cell, filled in zip(column.astype(object), present, strict=True)
        ]
        columns.append([f"{name} is {text}." if text else "" for text in texts])
    return [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]


def written(cell: Any) -> str:
    """Return the text of a cell, independent of the type of its column."""
    if isinstance(cell, float | np.floating):
        cell = float(cell)
        whole = cell.is_integer() and abs(cell) < 1e15
        return str(int(cell)) if whole else f"{cell:.6g}"
    if isinstance(cell, pd.Timestamp):
        return str(cell).removesuffix(" 00:00:00")
    return str(cell).strip()
