"""Corruptions of vectors: numbers by hand and laws that hold for all of them."""

from __future__ import annotations

import numpy as np
import pytest

from karat.corruptions.vectors import (
    vector_binary,
    vector_dropped,
    vector_int8,
    vector_noise,
    vector_truncation,
)
from karat.registry import corruptions

ALL = [name for name in corruptions if "vectors" in getattr(corruptions.get(name), "takes", ())]


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


def matrix(rows: int = 50, columns: int = 12) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(rows, columns))


def test_int8_by_hand():
    X = np.array([[127.0, 0.0], [1.4, 0.0], [-126.6, 0.0]])
    changed, _ = vector_int8(X, None, 1.0, generator())
    assert changed.tolist() == [[127.0, 0.0], [1.0, 0.0], [-127.0, 0.0]]


def test_int8_is_near():
    X = matrix()
    changed, _ = vector_int8(X.copy(), None, 1.0, generator())
    step = np.abs(X).max(axis=0) / 127
    assert (np.abs(changed - X) <= step / 2 + 1e-12).all()
    assert all(len(np.unique(column)) <= 255 for column in changed.T)


def test_binary_by_hand():
    changed, _ = vector_binary(np.array([[2.0, -4.0], [0.0, 2.0]]), None, 1.0, generator())
    assert changed.tolist() == [[2.0, -2.0], [-2.0, 2.0]]


def test_truncation_takes_the_last_dimensions():
    X = np.arange(1.0, 9.0).reshape(2, 4)
    changed, _ = vector_truncation(X.copy(), None, 0.5, generator())
    assert changed.tolist() == [[1, 2, 0, 0], [5, 6, 0, 0]]
    alone, _ = vector_truncation(X.copy(), None, 1.0, generator())
    assert alone.tolist() == [[1, 0, 0, 0], [5, 0, 0, 0]]


def test_noise_is_in_standard_deviations():
    X = np.tile([0.0, 10.0], 20_000).reshape(-1, 1) * np.array([1.0, 3.0])
    changed, _ = vector_noise(X.copy(), None, 0.4, generator())
    assert (changed - X).std(axis=0) == pytest.approx([0.4 * 5, 0.4 * 15], rel=0.03)


def test_dropped_items_are_unknown():
    changed, _ = vector_dropped(matrix(), None, 0.3, generator())
    lost = np.isnan(changed).all(axis=1)
    assert lost.sum() == 15 and not np.isnan(changed[~lost]).any()


@pytest.mark.parametrize("name", ALL)
def test_more_contains_less(name):
    X = matrix()
    low, high = (
        corruptions.get(name)(X.copy(), None, severity, generator())[0] for severity in (0.25, 0.75)
    )
    changed = [(each != X) for each in (low, high)]  # NaN differs from everything
    assert (changed[0] <= changed[1]).all() and changed[0].any()


@pytest.mark.parametrize("name", ALL)
def test_unknown_items_stay_unknown_and_shapes_stay(name):
    X = matrix()
    X[3] = np.nan
    with np.errstate(all="raise"):
        changed, y = corruptions.get(name)(X.copy(), None, 0.5, generator())
    assert changed.shape == X.shape and y is None
    assert np.isnan(changed[3]).all()
    if name != "vector_dropped":
        assert not np.isnan(np.delete(changed, 3, axis=0)).any()


@pytest.mark.parametrize("name", ALL)
def test_zeros_and_single_rows_survive(name):
    for X in (np.zeros((4, 3)), matrix(1, 1), np.full((2, 2), np.nan)):
        changed, _ = corruptions.get(name)(X.copy(), None, 1.0, generator())
        assert changed.shape == X.shape and not np.isinf(changed).any()
