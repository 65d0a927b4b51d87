"""scikit-learn's decision trees, grown by compiled loops where these give the same tree."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_random_state

#: numbers of train vectors in a process for which scikit-learn takes about as long as loading numba
PATIENCE = 2**21
#: integers up to this size are exact as float64
EXACT = 2**53
_seen = [0]


@dataclass(frozen=True)
class Grown:
    """The nodes of a tree, in the attributes of scikit-learn's ``tree_``."""

    feature: np.ndarray
    children_left: np.ndarray
    children_right: np.ndarray
    n_node_samples: np.ndarray
    threshold: np.ndarray
    impurity: np.ndarray
    value: np.ndarray

    @property
    def node_count(self) -> int:
        """The number of nodes."""
        return len(self.feature)


class ClassTree(DecisionTreeClassifier):
    """A tree that predicts classes and their shares in one pass."""

    def fit(self, X: np.ndarray, y: Any, sample_weight: Any = None) -> ClassTree:
        """Grow the tree; weighted rows by scikit-learn."""
        classes, codes = np.unique(np.asarray(y), return_inverse=True)
        grown = None if sample_weight is not None else _grown(self, X, codes, len(classes))
        if grown is None:
            return super().fit(X, y, sample_weight)
        self.tree_, self.classes_, self.n_features_in_ = grown, classes, np.shape(X)[1]
        return self

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most frequent class of each row's leaf, and the shares of all."""
        shares = self.tree_.value[leaves(self.tree_, X), 0]
        return self.classes_[shares.argmax(axis=1)], shares

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the classes."""
        return self.predict_both(X)[0]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the shares of all classes."""
        return self.predict_both(X)[1]


class NumberTree(DecisionTreeRegressor):
    """A tree that predicts the mean of each row's leaf."""

    def fit(self, X: np.ndarray, y: Any, sample_weight: Any = None) -> NumberTree:
        """Grow the tree; weighted rows and sums that are not exact by scikit-learn."""
        y = np.asarray(y, dtype=np.float64)
        exact = np.array_equal(y, np.rint(y)) and np.dot(y, y) * len(y) < EXACT
        usual = exact and sample_weight is None and self.criterion == "squared_error"
        grown = _grown(self, X, y, 0) if usual else None
        if grown is None:
            return super().fit(X, y, sample_weight)
        self.tree_, self.n_features_in_ = grown, np.shape(X)[1]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the means."""
        return np.asarray(self.tree_.value[leaves(self.tree_, X), 0, 0])


def leaves(tree: Any, X: np.ndarray, ends: np.ndarray | None = None) -> np.ndarray:
    """Return the leaf of each row; ``ends`` are the leaves after pruning."""
    X = np.asarray(X, dtype=np.float32)
    ends = tree.feature < 0 if ends is None else ends
    place = np.zeros(len(X), dtype=np.intp)
    moving = np.flatnonzero(~ends[place])
    while len(moving):
        node = place[moving]
        left = X[moving, tree.feature[node]] <= tree.threshold[node]
        place[moving] = np.where(left, tree.children_left[node], tree.children_right[node])
        moving = moving[~ends[place[moving]]]
    return place


def _grown(tree: Any, X: np.ndarray, y: np.ndarray, classes: int) -> Grown | None:
    """Return the tree that scikit-learn would grow, or None if it has to."""
    with np.errstate(over="ignore"):
        columns = np.asarray(X, dtype=np.float32).T.copy()
    loops = _loops(columns.size)
    if loops is None or classes == 1 or not np.isfinite(columns).all():
        return None
    size, width = len(y), classes or 2
    rule = {"gini": loops.GINI, "entropy": loops.ENTROPY}.get(tree.criterion, loops.SQUARES)
    counts = np.arange(size + 1.0)
    parts, scale, shift = counts**2, 1 / np.maximum(counts, 1), np.zeros(size + 1)
    if rule == loops.ENTROPY:
        parts = shift = counts * np.log2(np.maximum(counts, 1))
        scale = np.ones(size + 1)
    nodes, numbers = np.full((2 * size, 4), -1), np.full((2 * size, 2), -2.0)
    sums = np.zeros((2 * size, width))
    # the seed of the order in which scikit-learn tries the features; its generator replaces 0
    seed = int(check_random_state(tree.random_state).randint(0, 2**31 - 1)) or 1
    made = loops.grow(
        columns,
        np.argsort(columns, axis=1).astype(np.int32),
        (y.astype(np.float64), y.astype(np.int64), rule),
        (tree.min_samples_leaf, tree.max_depth or size, seed),
        (parts, np.diff(parts), scale, shift),
        (nodes, numbers, sums),
    )
    feature, left, right, rows = nodes[:made].T.copy()
    threshold, impurity = numbers[:made].T.copy()
    shares = sums[:made, None, : classes or 1] / rows[:, None, None]
    return Grown(feature, left, right, rows, threshold, impurity, shares)


def _loops(size: int) -> Any:
    """Return the module of compiled loops once their start pays, or None."""
    _seen[0] += size
    if "numba" not in sys.modules and _seen[0] < PATIENCE:
        return None
    try:
        from karat.probes.heads import decision_tree_numba
    except ImportError:
        return None
    return decision_tree_numba
