"""Corruptions of vectors."""

from __future__ import annotations

import numpy as np
import pytest

from karat.core.registry import corruptions
from karat.corruptions.vector_noise import (
    vector_binary,
    vector_dropped,
    vector_int8,
    vector_noise,
    vector_truncation,
)

VECTORS_ALL = [
    name for name in corruptions if "vectors" in getattr(corruptions.get(name), "takes", ())
]


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


def matrix(rows: int = 50, columns: int = 12) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(rows, columns))


@pytest.mark.parametrize(
    ("corrupt", "severity", "X", "expected"),
    [
        (vector_int8, 1.0, [[127, 0], [1.4, 0], [-126.6, 0]], [[127, 0], [1, 0], [-127, 0]]),
        (vector_binary, 1.0, [[2, -4], [0, 2]], [[2, -2], [-2, 2]]),
        (vector_truncation, 0.5, [[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 2, 0, 0], [5, 6, 0, 0]]),
        (vector_truncation, 1.0, [[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 0, 0, 0], [5, 0, 0, 0]]),
    ],
)
def test_vectors_by_hand(corrupt, severity, X, expected):
    changed, _ = corrupt(np.array(X, dtype=float), None, severity, generator())
    assert changed.tolist() == expected


def test_noise_is_in_standard_deviations():
    X = np.tile([0.0, 10.0], 20_000).reshape(-1, 1) * np.array([1.0, 3.0])
    changed, _ = vector_noise(X.copy(), None, 0.4, generator())
    assert (changed - X).std(axis=0) == pytest.approx([0.4 * 5, 0.4 * 15], rel=0.03)


def test_dropped_items_are_unknown():
    changed, _ = vector_dropped(matrix(), None, 0.3, generator())
    lost = np.isnan(changed).all(axis=1)
    assert lost.sum() == 15 and not np.isnan(changed[~lost]).any()


@pytest.mark.parametrize("name", VECTORS_ALL)
def test_properties_of_all_vector_corruptions(name):
    def corrupted(X, severity):
        return corruptions.get(name)(X.copy(), None, severity, generator())[0]

    X = matrix()
    low, high = (corrupted(X, severity) != X for severity in (0.25, 0.75))  # NaN differs from all
    assert (low <= high).all() and low.any()  # more contains less
    X[3] = np.nan
    with np.errstate(all="raise"):
        changed = corrupted(X, 0.5)
    assert changed.shape == X.shape and np.isnan(changed[3]).all()
    if name != "vector_dropped":
        assert not np.isnan(np.delete(changed, 3, axis=0)).any()
    for X in (np.zeros((4, 3)), matrix(1, 1), np.full((2, 2), np.nan)):
        changed = corrupted(X, 1.0)
        assert changed.shape == X.shape and not np.isinf(changed).any()
