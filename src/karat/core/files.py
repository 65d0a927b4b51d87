"""Fingerprints: a hash of the values, types, column names and index of a frame."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import Any

import numpy as np
import pandas as pd

#: types that pandas hashes by value; all others are hashed by their repr
_PLAIN = {str, int, float, bool, type(None)}


def fingerprint(values: pd.DataFrame | pd.Series) -> str:
    """Return a hash that changes with any value, type, name or order.

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
            # unused categories count: an encoder may give them a dimension
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
        with suppress(UnicodeEncodeError):  # a lone surrogate cannot be encoded
            return named + _hashes(column)
    # 1 and "1" have the same hash in a mixed column, so the type is included
    texts = [f"{type(cell).__qualname__} {_text(cell)}" for cell in cells]
    return named + _hashes(pd.Series(texts, dtype=object))


def _hashes(column: pd.Series) -> bytes:
    hashed = pd.util.hash_pandas_object(column, index=False)
    return np.asarray(hashed, dtype=np.uint64).tobytes()


def _text(cell: Any) -> str:
    if type(cell) in _PLAIN:
        return repr(cell)
    if isinstance(cell, np.ndarray):
        # numpy abbreviates long arrays
        return f"{cell.dtype} {cell.shape} {hashlib.sha256(cell.tobytes()).hexdigest()}"
    return repr(cell)
