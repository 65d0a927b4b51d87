"""Forests asked in another order of rows: what they say is scikit-learn's to the last bit."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from karat.models import ordered_forest
from karat.models.ordered_forest import OrderedForestClassifier, OrderedForestRegressor


def rows(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 5))


@pytest.mark.parametrize("block", [7, 2**14])
@pytest.mark.parametrize("classes", [1, 2, 5])
def test_classes_and_probabilities_are_scikit_learns(monkeypatch, classes, block):
    monkeypatch.setattr(ordered_forest, "BLOCK", block)
    X, test = rows(200), rows(150, seed=1)
    y = np.array(list("abcde"))[(np.abs(X[:, 0]) * 9).astype(int) % classes]
    ours = OrderedForestClassifier(20, random_state=3).fit(X, y)
    theirs = RandomForestClassifier(20, random_state=3).fit(X, y)
    assert np.array_equal(ours.predict_proba(test), theirs.predict_proba(test))
    assert np.array_equal(ours.predict(test), theirs.predict(test))


def test_numbers_are_scikit_learns():
    X, test = rows(200), rows(150, seed=1)
    y = 1e5 * X[:, 0] + X[:, 1] ** 2
    ours = OrderedForestRegressor(20, random_state=3).fit(X, y)
    theirs = RandomForestRegressor(20, random_state=3).fit(X, y)
    assert np.array_equal(ours.predict(test), theirs.predict(test))


def test_rows_of_another_width_are_refused():
    forest = OrderedForestClassifier(3, random_state=0).fit(rows(20), np.arange(20) % 2)
    with pytest.raises(ValueError, match="5 features"):
        forest.predict_proba(rows(4)[:, :3])
