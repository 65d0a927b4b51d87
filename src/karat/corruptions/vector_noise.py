"""Corruptions of vectors.

X is the matrix of the test items; an item without a vector is a row of NaN. Heads are trained on
uncorrupted vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.core.registry import corruption
from karat.corruptions.affected_cells import (
    affected_places,
    count_affected,
    count_up,
)
from karat.corruptions.needs import Target

Blurred = tuple[np.ndarray, Any]


@corruption("vector_int8", takes=("vectors",), range=(0.0, 1.0))
def vector_int8(X: np.ndarray, y: Target, severity: float, rng: np.random.Generator) -> Blurred:
    """Round this share of the dimensions to 255 steps (int8), scaled by the largest number."""
    chosen = _dimensions(X, severity, rng)
    part = X[:, chosen]
    step = np.nanmax(np.abs(part), axis=0, initial=0.0) / 127
    step[step == 0] = 1.0
    X[:, chosen] = np.rint(part / step) * step
    return X, y


@corruption("vector_binary", takes=("vectors",), range=(0.0, 1.0))
def vector_binary(X: np.ndarray, y: Target, severity: float, rng: np.random.Generator) -> Blurred:
    """Reduce this share of the dimensions to one bit, whether a number is above 0.

    The two values are plus and minus the mean absolute value of all numbers.
    """
    chosen = _dimensions(X, severity, rng)
    size = np.nanmean(np.abs(X)) if np.isfinite(X).any() else 0.0
    part = X[:, chosen]
    X[:, chosen] = np.where(np.isnan(part), np.nan, np.where(part > 0, size, -size))
    return X, y


@corruption("vector_truncation", takes=("vectors",), range=(0.0, 1.0))
def vector_truncation(
    X: np.ndarray, y: Target, severity: float, rng: np.random.Generator
) -> Blurred:
    """Set this share of the dimensions, the last ones, to 0; the first one never changes.

    For cosines and linear heads this is the same as removing them.
    """
    cut = min(count_affected(X.shape[1], severity), X.shape[1] - 1)
    part = X[:, X.shape[1] - cut :]
    part[~np.isnan(part)] = 0.0
    return X, y


@corruption("vector_noise", takes=("vectors",), range=(0.0, np.inf))
def vector_noise(X: np.ndarray, y: Target, severity: float, rng: np.random.Generator) -> Blurred:
    """Add Gaussian noise of ``severity`` times the standard deviation of each dimension."""
    has_vector = ~np.isnan(X[:, 0])
    spread = X[has_vector].std(axis=0) if has_vector.any() else np.zeros(X.shape[1])
    return X + severity * spread * rng.standard_normal(X.shape), y


@corruption("vector_dropped", takes=("vectors",), range=(0.0, 1.0))
def vector_dropped(X: np.ndarray, y: Target, severity: float, rng: np.random.Generator) -> Blurred:
    """Remove the vectors of this share of the items."""
    X[affected_places(len(X), severity, rng)] = np.nan
    return X, y


def _dimensions(X: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(X.shape[1])[: count_up(X.shape[1], severity)]
