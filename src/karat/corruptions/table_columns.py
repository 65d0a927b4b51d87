"""Columns of tables: their kinds, and changed cells in a dtype that can hold them.

The kind of a column depends only on the dtype, which is the same in every fold: numbers, booleans
("flag"), categories, text (strings and plain objects) and dates. All others, such as durations and
intervals, can only become missing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

NUMBER, FLAG, CATEGORY, TEXT, DATE, OTHER = "number", "flag", "category", "text", "date", "other"
#: kinds with levels that can be confused
LEVELS = (CATEGORY, TEXT, FLAG)
_LARGEST = float(np.finfo(float).max)
_WIDER = ("uint16", "uint32", "uint64", "int16", "int32", "int64", "float32", "float64")


def kind(column: pd.Series) -> str:
    """Return the kind of a column.

    >>> [kind(pd.Series(v)) for v in ([1], [True], ["a"], [pd.Timestamp("2024-05-01")])]
    ['number', 'flag', 'text', 'date']
    """
    return kind_of(column.dtype)


def kind_of(dtype: np.dtype | pd.api.extensions.ExtensionDtype) -> str:
    """Return the kind of a column of this dtype."""
    kinds = pd.api.types
    if isinstance(dtype, pd.CategoricalDtype):
        return CATEGORY
    if kinds.is_bool_dtype(dtype):
        return FLAG
    if kinds.is_numeric_dtype(dtype):
        return OTHER if kinds.is_complex_dtype(dtype) else NUMBER
    if kinds.is_object_dtype(dtype) or getattr(dtype, "type", None) is str:
        return TEXT
    return DATE if getattr(dtype, "kind", "") == "M" else OTHER


def places(X: pd.DataFrame, *kinds: str) -> list[int]:
    """Return the positions of the columns of these kinds."""
    return [i for i, dtype in enumerate(X.dtypes) if kind_of(dtype) in kinds]


def with_columns(X: pd.DataFrame, changed: dict[int, pd.Series]) -> pd.DataFrame:
    """Return a new table with replaced columns."""
    table = X.copy()
    for i, column in changed.items():
        table.isetitem(i, column)
    return table


def dense(column: pd.Series) -> pd.Series:
    """Return a sparse column as a dense one; others unchanged."""
    return column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column


def floats(column: pd.Series) -> np.ndarray:
    """Return a column of numbers as 64-bit floats; missing ones are NaN."""
    return dense(column).to_numpy(dtype=float, na_value=np.nan)


def spread(values: np.ndarray) -> float:
    """Return the standard deviation (ddof 0) of the finite numbers; exactly 0 if all are equal.

    >>> spread(np.array([1.0, 3.0, np.nan])), spread(np.array([0.1, 0.1, 0.1]))
    (1.0, 0.0)
    """
    finite = values[np.isfinite(values)]
    if not len(finite) or finite.min() == finite.max():
        return 0.0
    scale = float(np.abs(finite).max())  # so that squares of the largest numbers are finite
    return min(scale * float((finite / scale).std()), _LARGEST)


def with_values(column: pd.Series, at: np.ndarray, values: np.ndarray) -> pd.Series:
    """Return a column of numbers with new values in some rows, in a dtype that can hold them.

    The dtype is kept if possible. Otherwise it is a wider one of its kind, or a 64-bit float for
    fractions among integers. A nullable column stays nullable; infinite values are clipped.

    >>> with_values(pd.Series([1, 2], dtype="int8"), np.array([0]), np.array([300.0])).dtype
    dtype('int16')
    """
    if not len(values):
        return column
    values = np.clip(values, -_LARGEST, _LARGEST)
    plain = dense(column)
    dtype = getattr(plain.dtype, "numpy_dtype", plain.dtype)
    wanted = next(np.dtype(t) for t in (dtype, *_WIDER) if _holds(np.dtype(t), dtype, values))
    changed = plain.copy() if wanted == dtype else plain.astype(_like(plain.dtype, wanted))
    changed.iloc[at] = values.astype(wanted)
    return changed


def _holds(dtype: np.dtype, present_dtype: np.dtype, values: np.ndarray) -> bool:
    if dtype == np.float64:
        return True
    kinds = "f" if present_dtype.kind == "f" else "iu"
    if dtype.kind not in kinds or not np.can_cast(present_dtype, dtype):
        return False
    low, high = float(values.min()), float(values.max())
    if dtype.kind == "f":
        return max(-low, high) <= float(np.finfo(dtype).max)
    info = np.iinfo(dtype)
    # the largest 64-bit integer is not a float, its successor is
    return bool((values == np.rint(values)).all() and info.min <= low and high < info.max + 1)


def _like(dtype: np.dtype | pd.api.extensions.ExtensionDtype, wanted: np.dtype) -> Any:
    """Return the wanted dtype in the family of a column: NumPy, nullable or Arrow."""
    if isinstance(dtype, pd.ArrowDtype):
        return pd.api.types.pandas_dtype(f"{wanted.name}[pyarrow]")
    if isinstance(dtype, pd.api.extensions.ExtensionDtype):
        return wanted.name.replace("uint", "UInt").replace("int", "Int").replace("float", "Float")
    return wanted


def levels(column: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return the level of each cell, -1 if missing, and one row of each level.

    Unhashable cells, such as lists, have no level.

    >>> codes, rows = levels(pd.Series(["b", "a", None, "b"]))
    >>> codes.tolist(), rows.tolist()
    ([0, 1, -1, 0], [0, 1])
    """
    try:
        category = isinstance(column.dtype, pd.CategoricalDtype)
        raw = column.cat.codes.to_numpy() if category else pd.factorize(dense(column))[0]
    except TypeError:
        raw = np.full(len(column), -1)
    present = np.flatnonzero(raw >= 0)
    _, first, inverse = np.unique(raw[present], return_index=True, return_inverse=True)
    codes = np.full(len(column), -1)
    codes[present] = inverse
    return codes, present[first]


def from_rows(column: pd.Series, rows: np.ndarray) -> pd.Series:
    """Return a column with the cells of other rows, under its own index."""
    cells = column.array.take(rows)
    return pd.Series(cells, index=column.index, dtype=column.dtype, name=column.name)
