"""Random forests with faster, bit-identical predictions.

Similar consecutive rows make better use of the CPU cache, so rows are sorted by the first tree's
leaves; the trees' outputs are summed in scikit-learn's order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

#: rows per block
BLOCK = 2**14


class OrderedForestClassifier(RandomForestClassifier):
    """scikit-learn's random forest for classes."""

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the class probabilities."""
        return _mean_of_trees(self, X)


class OrderedForestRegressor(RandomForestRegressor):
    """scikit-learn's random forest for numbers."""

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number per row."""
        return _mean_of_trees(self, X)[:, 0]


def _mean_of_trees(forest: Any, X: np.ndarray) -> np.ndarray:
    X = np.asarray(X, dtype=np.float32)
    order = np.argsort(forest.estimators_[0].apply(X), kind="stable")  # it also checks X
    trees = [each.tree_ for each in forest.estimators_]
    means = np.empty((len(X), trees[0].value.shape[2]))
    for start in range(0, len(X), BLOCK):
        rows = order[start : start + BLOCK]
        block, sums = X[rows], np.zeros((means.shape[1], len(rows)))
        for tree in trees:
            leaves = tree.apply(block)
            for total, values in zip(sums, tree.value[:, 0].T, strict=True):
                total += values[leaves]
        means[rows] = (sums / len(trees)).T
    return means
