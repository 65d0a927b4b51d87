"""Trees grown by compiled loops: node for node those of scikit-learn."""

import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from karat.probes.heads import decision_tree
from karat.probes.heads.decision_tree import ClassTree, Grown, NumberTree

ARRAYS = ("feature", "children_left", "children_right", "n_node_samples", "threshold", "impurity")


@pytest.fixture
def loops(monkeypatch):
    """Use the compiled loops from the first tree on."""
    pytest.importorskip("numba")
    monkeypatch.setattr(decision_tree, "PATIENCE", 0)


def points(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors with ties, equal rows or constant dimensions, and integers as targets."""
    rng = np.random.default_rng(len(kind))
    X = rng.standard_normal((150, 12))
    X[100:130] = X[:30]  # rows of one entity
    if kind == "ties":
        X = np.round(X, 1)
    if kind == "constant":
        X[:, ::3] = 1
        X[:120, 4] = 0
        X[:, 5] = 1 + 1e-8 * X[:, 5]
    return X, rng.integers(0, 4, len(X))


@pytest.mark.parametrize("kind", ["distinct", "ties", "constant"])
@pytest.mark.parametrize(
    ("ours", "theirs", "settings"),
    [
        (ClassTree, DecisionTreeClassifier, {"criterion": "gini"}),
        (ClassTree, DecisionTreeClassifier, {"criterion": "entropy", "random_state": 5}),
        (ClassTree, DecisionTreeClassifier, {"min_samples_leaf": 4, "max_depth": 5}),
        (NumberTree, DecisionTreeRegressor, {}),
        (NumberTree, DecisionTreeRegressor, {"min_samples_leaf": 4, "random_state": 3}),
        (NumberTree, DecisionTreeRegressor, {"max_depth": 3}),
    ],
)
def test_trees_are_scikit_learns(loops, kind, ours, theirs, settings):
    (X, y), settings = points(kind), {"random_state": 0, **settings}
    y = y * 37 - 50 if ours is NumberTree else np.array(list("dacb"))[y]
    found, wanted = ours(**settings).fit(X, y), theirs(**settings).fit(X, y)
    assert isinstance(found.tree_, Grown)
    for name in (*ARRAYS, "value"):
        # scikit-learn marks missing features by -2
        expected = np.maximum(getattr(wanted.tree_, name), -1) if name == "feature" else None
        expected = getattr(wanted.tree_, name) if expected is None else expected
        assert np.array_equal(getattr(found.tree_, name), expected), name
    asked = X + 0.1
    assert np.array_equal(found.predict(asked), wanted.predict(asked))
    if ours is ClassTree:
        assert np.array_equal(found.predict_proba(asked), wanted.predict_proba(asked))


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X, y / 10, None),  # sums depend on the order of rows
        lambda X, y: (X, y, 1.0 + y),
        lambda X, y: (np.where(X > 2, np.nan, X), y, None),
    ],
    ids=["fractions", "weights", "missing"],
)
def test_other_trees_are_grown_by_scikit_learn(loops, change):
    X, y, weight = change(*points("distinct"))
    found = NumberTree(random_state=0).fit(X, y, weight)
    wanted = DecisionTreeRegressor(random_state=0).fit(X, y, weight)
    assert not isinstance(found.tree_, Grown)
    asked = np.random.default_rng(0).standard_normal((40, 12))
    assert np.array_equal(found.predict(asked), wanted.predict(asked))


def test_a_single_class_is_a_leaf(loops):
    X, _ = points("distinct")
    labels, shares = ClassTree().fit(X, ["a"] * len(X)).predict_both(X[:2])
    assert labels.tolist() == ["a", "a"] and shares.tolist() == [[1], [1]]


def test_few_small_trees_do_not_load_numba(monkeypatch):
    monkeypatch.setattr(decision_tree, "_seen", [0])
    for name in ("numba", "karat.probes.heads.decision_tree_numba"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert not isinstance(ClassTree().fit(*points("ties")).tree_, Grown)
    assert "numba" not in sys.modules
