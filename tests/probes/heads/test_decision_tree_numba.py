"""Trees grown by compiled loops: node for node those of scikit-learn."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from karat.probes.heads import decision_tree
from karat.probes.heads.decision_tree import ClassTree, Grown, NumberTree

pytest.importorskip("numba")
ARRAYS = ("feature", "children_left", "children_right", "n_node_samples", "threshold", "impurity")


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
def test_trees_are_scikit_learns(monkeypatch, kind, ours, theirs, settings):
    monkeypatch.setattr(decision_tree, "PATIENCE", 0)
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
