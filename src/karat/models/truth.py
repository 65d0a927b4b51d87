"""The truth as encoders look at it: of which kind it is, as codes, and dealt into parts."""

from __future__ import annotations

import numpy as np


def kind_of(y: np.ndarray | None, kind: str | None) -> str:
    """Return the kind of truth as declared; where nobody did, fractions are numbers.

    >>> kind_of(np.array([0.5, 1.5]), None), kind_of(np.array([0.5, 1.5]), "classes")
    ('numbers', 'classes')
    """
    fractions = y is not None and np.asarray(y).dtype.kind == "f"
    return kind or ("numbers" if fractions else "classes")


def deal(y: np.ndarray, kind: str, parts: int, seed: int) -> np.ndarray:
    """Return a part for every row: all parts are as large, and each has its share of every class.

    A class of two or more rows never stands in one part only.

    >>> sorted(deal(np.array(["a", "b", "a", "b"]), "classes", 2, 0)[:2].tolist())
    [0, 1]
    """
    order = np.random.default_rng(seed).permutation(len(y))
    if kind == "classes":
        codes = np.unique(np.asarray(y)[order], return_inverse=True)[1]
        order = order[np.argsort(codes, kind="stable")]
    dealt = np.empty(len(y), dtype=int)
    dealt[order] = np.arange(len(y)) % parts
    return dealt
