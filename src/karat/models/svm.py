"""Support vector machines with the RBF kernel, fitted by libsvm and asked in blocks of rows.

libsvm compares a row with one support vector after the other. Here a block of rows meets all of
them in one matrix product, which gives the same decisions in a fraction of the time. Blocks are all
of one height, the last one filled up, so that no bit of a decision hangs on the rows beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from karat.models.truth import deal

#: so many numbers of the kernel are held at once
BLOCK = 2**16
#: the height of a block is a multiple of this, as matrix products like it
_STEP = 16
#: the least steepness of the probabilities, so that they rise with the decisions
_LEAST = 1e-3


class RbfClassifier(ClassifierMixin, BaseEstimator):
    """Tell classes apart, one against one, with probabilities fitted to held-out decisions.

    The label is the machine's own, by the votes of all pairs. For the probabilities the machine is
    fitted ``folds`` times more, each time without a part of the train rows. One slope and an offset
    per class are then chosen that make the truth of those parts likeliest: Platt's sigmoid for two
    classes, a softmax of the sums of decisions for more, with his smoothed targets.
    """

    def __init__(
        self,
        C: float = 1.0,
        gamma: float | str = "scale",
        folds: int = 5,
        random_state: int | None = None,
    ) -> None:
        self.C = C
        self.gamma = gamma
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfClassifier:
        """Fit the machine on all rows, and the probabilities on rows held out in turn."""
        X = np.asarray(X, dtype=np.float64)
        self.classes_, codes = np.unique(y, return_inverse=True)
        self.machine_ = self._machine(X, codes)
        self.slope_, self.offsets_ = self._calibration(X, codes)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return what scikit-learn's ``SVC`` returns: a number per row, or one per class."""
        pairs = _pair_decisions(X, self.machine_)
        if len(self.classes_) == 2:
            return pairs[:, 0]
        # between classes with as many votes, how clear the pairs were; below a third of a vote
        clear = _margins(pairs, len(self.classes_))
        return np.asarray(_votes(pairs, len(self.classes_)) + clear / (3 * (np.abs(clear) + 1)))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the class with most votes."""
        return self.predict_both(X)[0]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each class."""
        return self.predict_both(X)[1]

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the class with most votes and the probability of each, from one pass."""
        pairs, classes = _pair_decisions(X, self.machine_), len(self.classes_)
        chances = _softmax(self.slope_ * _margins(pairs, classes) + self.offsets_)
        return self.classes_[np.argmax(_votes(pairs, classes), axis=1)], chances

    def _machine(self, X: np.ndarray, codes: np.ndarray) -> Any:
        from sklearn.svm import SVC

        machine = SVC(C=self.C, gamma=_gamma(X, self.gamma), random_state=self.random_state or 0)
        return machine.fit(X, codes)

    def _calibration(self, X: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
        part = deal(codes, "classes", self.folds, self.random_state or 0)
        counts = np.bincount(codes)
        part[counts[codes] == 1] = -1  # the only row of a class is always learned from
        margins = np.zeros((len(codes), len(counts)))
        for fold in range(self.folds):
            held = part == fold
            if held.any():
                pairs = _pair_decisions(X[held], self._machine(X[~held], codes[~held]))
                margins[held] = _margins(pairs, len(counts))
        return _likeliest_sigmoid(margins[part >= 0], codes[part >= 0], counts)


class RbfRegressor(RegressorMixin, BaseEstimator):
    """Predict numbers; the truth is scaled, since ``C`` and ``epsilon`` suppose a spread of 1."""

    def __init__(self, C: float = 1.0, gamma: float | str = "scale", epsilon: float = 0.1) -> None:
        self.C = C
        self.gamma = gamma
        self.epsilon = epsilon

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfRegressor:
        """Fit the machine on the scaled truth."""
        from sklearn.svm import SVR

        X, y = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
        self.centre_, self.spread_ = float(np.mean(y)), float(np.std(y)) or 1.0
        machine = SVR(C=self.C, gamma=_gamma(X, self.gamma), epsilon=self.epsilon)
        machine.random_state = (
            0  # or else it draws a number it never uses from the global generator
        )
        self.machine_ = machine.fit(X, (y - self.centre_) / self.spread_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number per row."""
        return self.centre_ + self.spread_ * _pair_decisions(X, self.machine_)[:, 0]


# -- decisions ------------------------------------------------------------------------------


def _gamma(X: np.ndarray, gamma: float | str) -> float:
    """Return the kernel's width as a number, the same that scikit-learn's ``"scale"`` means."""
    if gamma != "scale":
        return float(gamma)
    return 1 / (X.shape[1] * float(X.var()) or 1.0)


def _pair_decisions(X: np.ndarray, machine: Any) -> np.ndarray:
    """Return the decision about each pair of classes; one column for two classes or numbers."""
    count, vectors = len(X), machine.support_vectors_
    height = max(1, BLOCK // (_STEP * max(1, len(vectors)))) * _STEP
    X = np.vstack([np.asarray(X, dtype=np.float64), np.zeros((-count % height, np.shape(X)[1]))])
    weights, starts = machine.dual_coef_, np.cumsum([0, *machine.n_support_])
    several = len(weights) > 1
    pairs = list(combinations(range(len(weights) + 1), 2)) if several else [(0, 0)]
    decisions = np.empty((len(X), len(pairs)))
    for rows, kernel in _kernels(X, vectors, machine.gamma, height):
        if not several:
            decisions[rows, 0] = kernel @ weights[0]
            continue
        # the weights of a support vector are those against each of the other classes
        sums = [
            kernel[:, a:b] @ weights[:, a:b].T for a, b in zip(starts, starts[1:], strict=False)
        ]
        for place, (i, j) in enumerate(pairs):
            decisions[rows, place] = sums[i][:, j - 1] + sums[j][:, i]
    return np.asarray(decisions[:count] + machine.intercept_)


def _kernels(
    X: np.ndarray, vectors: np.ndarray, gamma: float, height: int
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield blocks of rows and their kernel with the support vectors, overwritten by the next."""
    # -gamma |x - v|² is one product: of (2 gamma x, -gamma |x|², -gamma) and (v, 1, |v|²)
    sides = [np.ones((len(vectors), 1)), _squares(vectors)]
    theirs = np.ascontiguousarray(np.hstack([vectors, *sides]).T)
    room = np.empty((height, len(vectors)))
    for start in range(0, len(X), height):
        rows = X[start : start + height]
        sides = [-gamma * _squares(rows), np.full((len(rows), 1), -gamma)]
        kernel = np.matmul(np.hstack([2 * gamma * rows, *sides]), theirs, out=room)
        yield slice(start, start + height), np.exp(kernel, out=kernel)


def _squares(rows: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", rows, rows)[:, None]


def _votes(pairs: np.ndarray, classes: int) -> np.ndarray:
    """Return how many pairs a class has won; of two, the second has a positive decision."""
    if classes == 2:
        return np.column_stack([pairs[:, 0] <= 0, pairs[:, 0] > 0]).astype(float)
    votes = np.zeros((len(pairs), classes))
    for decision, (i, j) in zip(pairs.T, combinations(range(classes), 2), strict=True):
        votes[:, i] += decision > 0
        votes[:, j] += decision <= 0
    return votes


def _margins(pairs: np.ndarray, classes: int) -> np.ndarray:
    """Return the sum of the decisions for a class, less those against it."""
    if classes == 2:
        return pairs * [-1.0, 1.0]
    margins = np.zeros((len(pairs), classes))
    for decision, (i, j) in zip(pairs.T, combinations(range(classes), 2), strict=True):
        margins[:, i] += decision
        margins[:, j] -= decision
    return margins


# -- probabilities --------------------------------------------------------------------------


def _softmax(scores: np.ndarray) -> np.ndarray:
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _likeliest_sigmoid(
    margins: np.ndarray, codes: np.ndarray, counts: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return slope and offsets under which the truth is likeliest; the slope is positive."""
    from scipy.optimize import minimize

    classes = len(counts)
    if not len(codes):
        return 1.0, np.zeros(classes)
    seen = np.bincount(codes, minlength=classes)
    rest = 1 / (seen[codes] + 2)
    targets = np.repeat(rest[:, None] / (classes - 1), classes, axis=1)
    targets[np.arange(len(codes)), codes] = 1 - rest

    def loss(free: np.ndarray) -> tuple[float, np.ndarray]:
        chances = _softmax(free[0] * margins + np.concatenate([[0.0], free[1:]]))
        gap = (chances - targets) / len(codes)
        value = -float((targets * np.log(np.maximum(chances, 1e-300))).sum()) / len(codes)
        return value, np.concatenate([[(gap * margins).sum()], gap.sum(axis=0)[1:]])

    begin = np.concatenate([[1.0], np.zeros(classes - 1)])
    bounds = [(_LEAST, None)] + [(None, None)] * (classes - 1)
    found = minimize(loss, begin, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]), np.concatenate([[0.0], found[1:]])
