"""Outlier heads: high scores for outliers, as many flagged as the rarer class has members."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import karat
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.heads.answers import flag
from karat.heads.outliers import isolation_forest, knn_distance
from karat.metrics.base import score

X = np.array([[0.0], [1.0], [2.0], [10.0]])


def test_the_distance_to_neighbors_by_hand():
    assert knn_distance(1).outlier_scores(X).tolist() == [1, 1, 1, 8]
    assert knn_distance(2).outlier_scores(X).tolist() == [1.5, 1, 1.5, 8.5]
    # more neighbors than other rows: all other rows
    assert knn_distance(50).outlier_scores(X)[3] == pytest.approx((10 + 9 + 8) / 3)


def test_isolation_is_scikit_learns():
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=20, random_state=3).fit(X)
    got = isolation_forest(20, random_state=3).outlier_scores(X)
    assert np.array_equal(got, -forest.score_samples(X))


def people(labels: list[str]) -> Dataset:
    table = pd.DataFrame({"x": range(len(labels)), "y": labels})
    return Dataset.from_table(table, target="y", name="people", kind="classes")


@pytest.mark.parametrize(("odd", "usual"), [("outlier", "normal"), ("a", "b")])
def test_as_many_are_flagged_as_the_rarer_class_has_members(odd, usual):
    data = people([usual, odd, usual, usual, usual])
    got = flag(np.array([1.0, 9.0, 2.0, 2.0, 0.0]), data, data.shares())
    assert got.predictions.tolist() == [usual, odd, usual, usual, usual]
    assert score("acc", got) == (1.0, "")
    column = got.classes.index(odd)
    assert got.probabilities[:, column].tolist() == pytest.approx(
        [2 / 6, 5 / 6, 3.5 / 6, 3.5 / 6, 1 / 6]
    )
    assert score("auc", got) == (1.0, "")


def test_only_two_classes():
    data = people(["a", "b", "c"])
    with pytest.raises(DefinitionError, match="people .*3"):
        flag(np.zeros(3), data, data.shares())


@pytest.mark.parametrize("head", ["knn-distance", "isolation-forest"])
def test_a_task_finds_outliers_without_labels(head, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(200, 3)), columns=["a", "b", "c"])
    table["label"] = "normal"
    # far from the rest and from each other, so that nothing short of perfect is right
    table.loc[:9, ["a", "b", "c"]] += 30 * np.arange(1, 11)[:, None] * [1, -1, 1]
    table.loc[:9, "label"] = "outlier"
    data = Dataset.from_table(table, target="label", name="odd", kind="classes")
    metrics = ["auc", "pr_auc", "f1_weighted", "f1_micro"]
    probe = {"use": "trained", "head": head}
    task = karat.Task("odd", data, probe=probe, split="all", metrics=metrics)
    (run,) = karat.evaluate("onehot", task, output=tmp_path)
    assert run.results()[metrics].iloc[0].tolist() == pytest.approx([1, 1, 1, 1], abs=1e-12)
