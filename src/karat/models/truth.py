"""Helpers for targets: their kind, and stratified folds."""

from __future__ import annotations

import numpy as np


def kind_of(y: np.ndarray | None, kind: str | None) -> str:
    """Return the declared kind of target; if None, floats are numbers, everything else classes.

    >>> kind_of(np.array([0.5, 1.5]), None), kind_of(np.array([0.5, 1.5]), "classes")
    ('numbers', 'classes')
    """
    fractions = y is not None and np.asarray(y).dtype.kind == "f"
    return kind or ("numbers" if fractions else "classes")


def deal(y: np.ndarray, kind: str, folds: int, seed: int) -> np.ndarray:
    """Return a fold for every row; folds have equal size and are stratified by class.

    A class of two or more rows is in at least two folds.

    >>> sorted(deal(np.array(["a", "b", "a", "b"]), "classes", 2, 0)[:2].tolist())
    [0, 1]
    """
    order = np.random.default_rng(seed).permutation(len(y))
    if kind == "classes":
        codes = np.unique(np.asarray(y)[order], return_inverse=True)[1]
        order = order[np.argsort(codes, kind="stable")]
    fold_of = np.empty(len(y), dtype=int)
    fold_of[order] = np.arange(len(y)) % folds
    return fold_of
