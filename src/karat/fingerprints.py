"""Fingerprints: a hash of what stands in a frame, its types, column names and index."""

from __future__ import annotations

import hashlib

import pandas as pd


def fingerprint(values: pd.DataFrame | pd.Series) -> str:
    """Return a hash that another value, type, name or order changes.

    >>> fingerprint(pd.Series([1, 2])) == fingerprint(pd.Series([1, 2]))
    True
    >>> fingerprint(pd.Series([1, "1"])) == fingerprint(pd.Series([1, 1], dtype=object))
    False
    """
    frame = values.to_frame("value") if isinstance(values, pd.Series) else values
    digest = hashlib.sha256(repr([(str(c), str(t)) for c, t in frame.dtypes.items()]).encode())
    for column in [frame.index.to_series(), *(frame.iloc[:, i] for i in range(frame.shape[1]))]:
        digest.update(pd.util.hash_pandas_object(column, index=False).to_numpy().tobytes())
        if column.dtype == object:
            # 1 and "1" hash alike in a column of mixed values, so their types count too
            types = column.map(lambda value: type(value).__name__)
            digest.update(pd.util.hash_pandas_object(types, index=False).to_numpy().tobytes())
    return digest.hexdigest()
