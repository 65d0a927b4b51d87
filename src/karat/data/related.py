"""Which questions hang together because they share a text."""

from __future__ import annotations

import numpy as np
import pandas as pd


def related(texts: pd.DataFrame) -> np.ndarray:
    """Return a number per row, the same for rows that share a text, directly or through others.

    >>> related(pd.DataFrame({"a": ["x", "y", "z"], "b": ["y", "v", "w"]})).tolist()
    [0, 0, 1]
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    rows, fields = texts.shape
    codes = pd.factorize(texts.to_numpy().ravel())[0].reshape(rows, fields)
    ends = np.repeat(codes[:, :1], fields, axis=1).ravel(), codes.ravel()
    size = int(codes.max()) + 1
    joined = coo_array((np.ones(codes.size), ends), shape=(size, size))
    parts = connected_components(joined, directed=False)[1]
    return np.asarray(pd.factorize(parts[codes[:, 0]])[0])
