"""Fingerprints: a hash of what stands in a frame, its types, column names and index."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

#: values that pandas hashes by what they are; anything else is hashed by what it prints
_PLAIN = {str, int, float, bool, type(None)}


def fingerprint(values: pd.DataFrame | pd.Series) -> str:
    """Return a hash that another value, type, name or order changes.

    >>> fingerprint(pd.Series([1, 2])) == fingerprint(pd.Series([1, 2]))
    True
    >>> fingerprint(pd.Series([1, "1"])) == fingerprint(pd.Series([1, 1], dtype=object))
    False
    """
    frame = values.to_frame("value") if isinstance(values, pd.Series) else values
    digest = hashlib.sha256(repr(list(frame.columns)).encode())
    index = frame.index.to_series(index=range(len(frame)))
    for column in [index, *(frame.iloc[:, i] for i in range(frame.shape[1]))]:
        digest.update(f"{column.dtype} ".encode())
        if isinstance(column.dtype, pd.CategoricalDtype):
            # categories that do not occur count too: an encoder may give them a dimension
            categories = column.cat.categories.to_series(index=range(len(column.cat.categories)))
            digest.update(f"{column.cat.ordered} {fingerprint(categories)}".encode())
        digest.update(_content(column))
    return digest.hexdigest()


def _content(column: pd.Series) -> bytes:
    if column.dtype != object:
        return _hashes(column)
    cells = column.tolist()
    types = {type(cell) for cell in cells}
    named = repr(sorted(f"{kind.__module__}.{kind.__qualname__}" for kind in types)).encode()
    if types == {str}:
        with suppress(UnicodeEncodeError):  # half a surrogate pair cannot be hashed as it is
            return named + _hashes(column)
    # 1 and "1" hash alike in a column of mixed values, so the type of each cell counts
    written = [f"{type(cell).__qualname__} {_written(cell)}" for cell in cells]
    return named + _hashes(pd.Series(written, dtype=object))


def _hashes(column: pd.Series) -> bytes:
    hashed = pd.util.hash_pandas_object(column, index=False)
    return np.asarray(hashed, dtype=np.uint64).tobytes()


def _written(cell: Any) -> str:
    if type(cell) in _PLAIN:
        return repr(cell)
    if isinstance(cell, np.ndarray):
        # numpy prints long arrays with a gap
        return f"{cell.dtype} {cell.shape} {hashlib.sha256(cell.tobytes()).hexdigest()}"
    return repr(cell)
