"""Classic heads: nearest neighbors, naive Bayes and decision trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.errors import DefinitionError, did_you_mean
from karat.registry import head

#: split criteria of a tree, by kind of target; the first is the default
CRITERIA = {
    "classes": ("entropy", "gini"),
    "numbers": ("squared_error", "absolute_error"),
}


@head("knn")
def knn(kind: str, n_neighbors: int = 5, weights: str = "uniform") -> Any:
    """Predict the majority class or the mean of the nearest train items."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    chosen = KNeighborsClassifier if kind == "classes" else KNeighborsRegressor
    return chosen(n_neighbors=n_neighbors, weights=weights)


@head("nb")
def naive_bayes(kind: str = "classes", var_smoothing: float = 1e-9) -> Any:
    """Gaussian naive Bayes: one mean and variance per class and dimension."""
    if kind != "classes":
        raise DefinitionError(f"head nb predicts classes, not {kind}; use ridge or linear.")
    if not 0 < var_smoothing < np.inf:
        raise DefinitionError(f"head nb: var_smoothing must be > 0, got {var_smoothing!r}.")
    return NaiveBayes(var_smoothing)


class NaiveBayes:
    """scikit-learn's Gaussian naive Bayes that returns labels and probabilities in one pass."""

    def __init__(self, var_smoothing: float) -> None:
        self.var_smoothing = var_smoothing

    def fit(self, X: np.ndarray, y: Any) -> NaiveBayes:
        """Fit; if all vectors are equal, predictions are the class frequencies."""
        from sklearn.naive_bayes import GaussianNB

        self.bayes_ = GaussianNB(var_smoothing=self.var_smoothing).fit(X, y)
        self.classes_ = self.bayes_.classes_
        if not self.bayes_.epsilon_:
            self.bayes_.var_ = np.ones_like(self.bayes_.var_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable classes."""
        return np.asarray(self.bayes_.predict(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the class probabilities, in the order of ``classes_``."""
        return np.asarray(self.bayes_.predict_proba(X))

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable classes and the probabilities of all."""
        chances = self.bayes_.predict_log_proba(X)
        return self.classes_[chances.argmax(axis=1)], np.exp(chances)


@head("tree")
def tree(
    kind: str,
    criterion: str | None = None,
    max_depth: int | None = None,
    min_samples_leaf: int = 1,
    random_state: int | None = None,
) -> Any:
    """scikit-learn's decision tree (CART: binary splits), grown without pruning.

    Classes are split by information gain (``entropy``) or ``gini``, numbers by variance
    (``squared_error``) or ``absolute_error``. ``random_state`` decides between equally good splits.
    This is not C4.5, which also has gain ratios and pruning.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    allowed = CRITERIA["classes" if kind == "classes" else "numbers"]
    criterion = criterion or allowed[0]
    if criterion not in allowed:
        raise DefinitionError(
            f'head tree: unknown criterion "{criterion}" for {kind}.'
            f"{did_you_mean(criterion, allowed)} Available: {', '.join(allowed)}."
        )
    chosen = DecisionTreeClassifier if kind == "classes" else DecisionTreeRegressor
    return chosen(
        criterion=criterion,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        random_state=random_state or 0,  # without a seed it would draw from the global generator
    )
