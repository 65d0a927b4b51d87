"""When trees are grown by compiled loops, and when by scikit-learn."""

import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from karat.probes.heads import decision_tree
from karat.probes.heads.decision_tree import ClassTree, Grown, NumberTree


@pytest.fixture
def loops(monkeypatch):
    """Use the compiled loops from the first tree on."""
    pytest.importorskip("numba")
    monkeypatch.setattr(decision_tree, "PATIENCE", 0)


def points() -> tuple[np.ndarray, np.ndarray]:
    """Return vectors, and integers as targets."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((150, 12)), rng.integers(0, 4, 150)


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
    X, y, weight = change(*points())
    found = NumberTree(random_state=0).fit(X, y, weight)
    wanted = DecisionTreeRegressor(random_state=0).fit(X, y, weight)
    assert not isinstance(found.tree_, Grown)
    asked = np.random.default_rng(0).standard_normal((40, 12))
    assert np.array_equal(found.predict(asked), wanted.predict(asked))


def test_a_single_class_is_a_leaf(loops):
    X, _ = points()
    labels, shares = ClassTree().fit(X, ["a"] * len(X)).predict_both(X[:2])
    assert labels.tolist() == ["a", "a"] and shares.tolist() == [[1], [1]]


def test_few_small_trees_do_not_load_numba(monkeypatch):
    monkeypatch.setattr(decision_tree, "_seen", [0])
    for name in ("numba", "karat.probes.heads.decision_tree_numba"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert not isinstance(ClassTree().fit(*points()).tree_, Grown)
    assert "numba" not in sys.modules
