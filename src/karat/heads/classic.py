"""Classic heads: nearest neighbours, naive Bayes and decision trees."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.errors import DefinitionError, did_you_mean
from karat.registry import head

#: how a tree may judge a cut, by the kind of answers; the first is the usual one
CRITERIA = {
    "classes": ("entropy", "gini"),
    "numbers": ("squared_error", "absolute_error"),
}


@head("knn")
def knn(kind: str, n_neighbors: int = 5, weights: str = "uniform") -> Any:
    """Return the answer of the nearest train items: their vote, or their mean."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    chosen = KNeighborsClassifier if kind == "classes" else KNeighborsRegressor
    return chosen(n_neighbors=n_neighbors, weights=weights)


@head("nb")
def naive_bayes(kind: str = "classes", var_smoothing: float = 1e-9) -> Any:
    """Gaussian naive Bayes: each class has a mean and a variance of its own in each dimension."""
    if kind != "classes":
        raise DefinitionError(f"head: nb predicts classes, not {kind}; say ridge or linear.")
    if not 0 < var_smoothing < np.inf:
        raise DefinitionError(f"head: var_smoothing of nb is above 0, not {var_smoothing!r}.")
    return NaiveBayes(var_smoothing)


class NaiveBayes:
    """scikit-learn's Gaussian naive Bayes, asked once for labels and probabilities."""

    def __init__(self, var_smoothing: float) -> None:
        self.var_smoothing = var_smoothing

    def fit(self, X: np.ndarray, y: Any) -> NaiveBayes:
        """Learn means and variances; vectors that are all equal leave the shares of the classes."""
        from sklearn.naive_bayes import GaussianNB

        self.bayes_ = GaussianNB(var_smoothing=self.var_smoothing).fit(X, y)
        self.classes_ = self.bayes_.classes_
        if not self.bayes_.epsilon_:
            self.bayes_.var_ = np.ones_like(self.bayes_.var_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the likeliest classes."""
        return np.asarray(self.bayes_.predict(X))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probabilities of the classes, in the order of ``classes_``."""
        return np.asarray(self.bayes_.predict_proba(X))

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest classes and the probabilities of all."""
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
    """Grow a decision tree to the end, without pruning.

    Cuts are in two, as CART has them. Classes are cut by the gain of information (``entropy``), as
    in C4.5, which this is not: it has neither gain ratios nor pruning. ``gini`` is the other
    choice. Numbers are cut by their variance. Chance decides between cuts that are as good. The
    tree is scikit-learn's, node by node; larger ones are grown faster where numba is installed.
    """
    known = CRITERIA["classes" if kind == "classes" else "numbers"]
    criterion = criterion or known[0]
    if criterion not in known:
        raise DefinitionError(
            f'head: tree has no criterion "{criterion}" for {kind}.'
            f"{did_you_mean(criterion, known)} There are: {', '.join(known)}."
        )
    from karat.heads.cart import CartClassifier, CartRegressor

    chosen = CartClassifier if kind == "classes" else CartRegressor
    return chosen(
        criterion=criterion,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        random_state=random_state or 0,  # without a number it would draw from the global generator
    )
