"""The compiled loops of AdamW on numbers computed by hand, and of trees against scikit-learn."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from karat.probes import decision_tree
from karat.probes.decision_tree import ClassTree, Grown, NumberTree

numba = pytest.importorskip("numba")

from karat.probes import heads_numba as loops  # noqa: E402


def test_compiled_loops_are_kept_in_a_writable_folder():
    folder = Path(loops.grow.stats.cache_path)
    folder.mkdir(parents=True, exist_ok=True)
    assert os.access(folder, os.W_OK)


def test_loops_are_compiled_where_no_folder_is_writable(monkeypatch):
    def refuse(cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba.njit(**options)

    monkeypatch.setattr("karat.probes.compiled_numba.njit", refuse)
    add = loops.compiled(lambda a, b: a + b)
    assert add(2, 3) == 5


# -- trees: node for node those of scikit-learn

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


def test_no_function_is_compiled_with_two_sets_of_options():
    """The two would share one file of the cache, and the first to be compiled be both."""
    compiled = [value for value in vars(loops).values() if hasattr(value, "py_func")]
    assert len(compiled) > 10
    assert len({value.py_func for value in compiled}) == len(compiled)
