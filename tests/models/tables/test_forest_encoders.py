"""Leaves and scores of forests."""

import numpy as np
import pandas as pd
import pytest

from karat.errors import Declined
from karat.models.tables.forest_encoders import ForestLeaves, ForestScores

RNG = np.random.default_rng(0)
NUMBERED = pd.DataFrame({"x": np.arange(40.0), "noise": RNG.normal(size=40)})
HALVES = np.where(NUMBERED["x"] < 20, "low", "high")


@pytest.mark.parametrize(
    "y", [None, HALVES, NUMBERED["x"].to_numpy()], ids=["blind", "classes", "x"]
)
def test_a_row_is_in_one_leaf_of_each_tree(y):
    kind = None if y is None else "classification" if y.dtype.kind != "f" else "regression"
    encoder = ForestLeaves(trees=7, leaves=4, kind=kind, random_state=1)
    found = encoder.fit_transform(NUMBERED, y)
    assert set(np.unique(found)) == {0, 1}
    assert (found.sum(axis=1) == 7).all()
    assert found.shape[1] <= 7 * 4
    np.testing.assert_array_equal(encoder.transform(NUMBERED), found)


def test_leaves_part_the_classes_only_with_the_truth():
    table = pd.DataFrame(np.random.default_rng(5).normal(size=(300, 10)))
    y = table[0].to_numpy() > 0

    def purity(encoder, truth):
        leaves = encoder.fit_transform(table, truth)
        share = leaves.T @ y / leaves.sum(axis=0)
        return np.average(np.maximum(share, 1 - share), weights=leaves.sum(axis=0))

    taught = ForestLeaves(trees=20, leaves=4, kind="classification", random_state=1)
    blind = ForestLeaves(trees=20, leaves=4, random_state=1)
    assert purity(taught, y) > purity(blind, None) + 0.05


def test_scores_are_those_of_scikit_learns_forest():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import StandardScaler

    rows = StandardScaler().fit_transform(NUMBERED).astype(np.float32)
    forest = RandomForestClassifier(9, max_samples=30, random_state=4).fit(rows, HALVES)
    encoder = ForestScores(trees=9, rows=30, random_state=4).fit(NUMBERED, HALVES)
    assert encoder.classes_.tolist() == ["high", "low"]
    np.testing.assert_allclose(encoder.transform(NUMBERED), forest.predict_proba(rows))


def test_numeric_labels_are_classes_if_declared():
    y = np.where(NUMBERED["x"] < 20, 0.5, 1.5)
    assert ForestScores(trees=3, kind="classification").fit_transform(NUMBERED, y).shape == (40, 2)
    leaves = ForestLeaves(trees=3, kind="classification").fit_transform(NUMBERED, y)
    assert (leaves.sum(axis=1) == 3).all()


def test_scores_need_the_truth():
    with pytest.raises(Declined, match="target"):
        ForestScores().fit_transform(NUMBERED)
