"""Scaled vectors against scikit-learn's, bit for bit."""

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler

from karat.probes.scaling import Scaler


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
@pytest.mark.parametrize("offset", [0.0, 1e5])
def test_they_are_scikit_learns(kind, offset):
    rng = np.random.default_rng(0)
    X = (rng.normal(scale=rng.uniform(0.1, 90, 40), size=(301, 40)) + offset).astype(kind)
    X[:, 3], X[:, 4] = 7, 0  # constant dimensions are only centered
    expected = StandardScaler().fit(X[:200])
    scaler = Scaler(X[:200])
    for rows in (X[:200], X[200:], X[:1]):
        found = scaler.scaled(rows)
        assert found.dtype == expected.transform(rows).dtype
        np.testing.assert_array_equal(found, expected.transform(rows))


def test_a_single_row():
    X = np.array([[1.0, 2.0]])
    np.testing.assert_array_equal(Scaler(X).scaled(X), [[0.0, 0.0]])
