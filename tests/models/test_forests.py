"""Leaves and scores of forests."""

import numpy as np
import pandas as pd
import pytest

from karat.errors import Declined
from karat.models.forests import ForestLeaves, ForestScores

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"x": np.arange(40.0), "noise": RNG.normal(size=40)})
HALVES = np.where(TABLE["x"] < 20, "low", "high")


@pytest.mark.parametrize("y", [None, HALVES, TABLE["x"].to_numpy()], ids=["blind", "classes", "x"])
def test_a_row_is_in_one_leaf_of_each_tree(y):
    kind = None if y is None else "classes" if y.dtype.kind != "f" else "numbers"
    encoder = ForestLeaves(trees=7, leaves=4, kind=kind, random_state=1)
    found = encoder.fit_transform(TABLE, y)
    assert set(np.unique(found)) == {0, 1}
    assert (found.sum(axis=1) == 7).all()
    assert found.shape[1] <= 7 * 4
    np.testing.assert_array_equal(encoder.transform(TABLE), found)


def test_leaves_part_the_classes_only_with_the_truth():
    table = pd.DataFrame(np.random.default_rng(5).normal(size=(300, 10)))
    y = table[0].to_numpy() > 0

    def purity(encoder, truth):
        leaves = encoder.fit_transform(table, truth)
        share = leaves.T @ y / leaves.sum(axis=0)
        return np.average(np.maximum(share, 1 - share), weights=leaves.sum(axis=0))

    taught = ForestLeaves(trees=20, leaves=4, kind="classes", random_state=1)
    blind = ForestLeaves(trees=20, leaves=4, random_state=1)
    assert purity(taught, y) > purity(blind, None) + 0.05


def test_leaves_differ_by_the_seed_only():
    one, same, other = (
        ForestLeaves(trees=5, kind="classes", random_state=seed).fit_transform(TABLE, HALVES)
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert one.shape != other.shape or (one != other).any()


def test_scores_are_class_probabilities_in_the_order_of_the_classes():
    encoder = ForestScores(kind="classes", random_state=0).fit(TABLE, HALVES)
    assert encoder.classes_.tolist() == ["high", "low"]
    found = encoder.transform(TABLE.iloc[[0, 39]])
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found[0, 1] > 0.9 and found[1, 0] > 0.9


def test_scores_of_numbers_are_near_them():
    y = TABLE["x"].to_numpy() * 2
    found = ForestScores(kind="numbers").fit_transform(TABLE, y)
    assert found.shape == (40, 1)
    assert np.abs(found[:, 0] - y).mean() < 4


def test_scores_are_those_of_scikit_learns_forest():
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.preprocessing import StandardScaler

    rows = StandardScaler().fit_transform(TABLE).astype(np.float32)
    forest = RandomForestClassifier(9, max_samples=30, random_state=4).fit(rows, HALVES)
    found = ForestScores(trees=9, rows=30, random_state=4).fit_transform(TABLE, HALVES)
    np.testing.assert_allclose(found, forest.predict_proba(rows))


def test_numeric_labels_are_classes_if_declared():
    y = np.where(TABLE["x"] < 20, 0.5, 1.5)
    assert ForestScores(trees=3, kind="classes").fit_transform(TABLE, y).shape == (40, 2)
    leaves = ForestLeaves(trees=3, kind="classes").fit_transform(TABLE, y)
    assert (leaves.sum(axis=1) == 3).all()


def test_scores_need_the_truth():
    with pytest.raises(Declined, match="target"):
        ForestScores().fit_transform(TABLE)
