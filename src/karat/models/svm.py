"""Support vector machines with an RBF kernel that is computed by matrix products.

libsvm compares one pair of rows at a time. Here whole blocks of rows are compared in one product,
and libsvm receives the kernel: the same machine in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from karat.models.truth import deal

#: with more train rows the full kernel would not fit into half a GB, and libsvm computes its own
LARGEST = 8192
#: number of kernel entries per block of predicted rows, and the largest number of rows in a block
BLOCK, HIGHEST = 2**16, 1024
#: the height of a block is a multiple of this
_STEP = 16
#: smallest slope of the calibration, so that probabilities increase with the decisions
_SMALLEST_SLOPE = 1e-3


class Kernel:
    """The RBF kernel of the train rows, shared by all machines that are fitted on them."""

    def __init__(self, X: np.ndarray, gamma: float | str) -> None:
        X = np.asarray(X, dtype=np.float64)
        self.gamma = 1 / (X.shape[1] * float(X.var()) or 1.0) if gamma == "scale" else float(gamma)
        #: centering does not change distances, and loses fewer digits
        self.center = X.mean(axis=0)
        self.rows = self._scaled(X)

    @cached_property
    def square(self) -> np.ndarray:
        """The kernel between the train rows."""
        kernel = self.rows @ self.rows.T
        halves = kernel.diagonal() / 2
        return _exponentials(kernel, halves, halves)

    def against(self, X: np.ndarray, rows: Any = slice(None)) -> np.ndarray:
        """Return the kernel between other rows and the train rows, or some of the train rows."""
        (kernel,) = self.blocks(X, rows, len(X))
        return kernel

    def blocks(self, X: np.ndarray, rows: Any, height: int) -> Iterator[np.ndarray]:
        """Yield the kernel between blocks of other rows and some of the train rows."""
        train = self.rows[rows]
        halves, columns = _half_squares(train), np.ascontiguousarray(train.T)
        for start in range(0, len(X), height):
            other = self._scaled(np.asarray(X[start : start + height], dtype=np.float64))
            yield _exponentials(other @ columns, _half_squares(other), halves)

    def fit(self, machine: Any, y: np.ndarray) -> Any:
        """Fit a machine of scikit-learn on this kernel and return it."""
        machine.random_state = 0  # otherwise it advances the global generator without using it
        if len(y) > LARGEST:
            return machine.set_params(kernel="rbf", gamma=0.5).fit(self.rows, y)
        return machine.set_params(kernel="precomputed").fit(self.square, y)

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        # with this scale, the kernel is exp(-|a - b|² / 2)
        return np.asarray((X - self.center) * np.sqrt(2 * self.gamma))


class RbfMachine(BaseEstimator):
    """A machine that is fitted on vectors, or on a ``Kernel`` that several machines share."""

    C: float
    gamma: float | str

    def fit(self, X: np.ndarray, y: Any) -> Any:
        """Fit on vectors."""
        self.kernel_ = Kernel(X, self.gamma)
        self.fit_kernel(self.kernel_, y)
        vars(self.kernel_).pop("square", None)  # not needed to predict
        return self

    def fit_kernel(self, kernel: Kernel, y: Any) -> None:
        """Fit on the kernel of the train rows."""
        raise NotImplementedError

    def predict_kernel(self, kernel: np.ndarray) -> np.ndarray:
        """Predict from the kernel between other rows and the support vectors."""
        return self._answers(_pair_decisions(self.machine_, kernel))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a prediction per row."""
        return self._answers(self._decisions(X))

    def support(self) -> np.ndarray:
        """Return which of the train rows are support vectors."""
        return np.arange(0) if self.machine_ is None else np.asarray(self.machine_.support_)

    def _answers(self, decisions: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _decisions(self, X: np.ndarray) -> np.ndarray:
        """Return the decision about each pair of classes, computed in blocks of equal height.

        The last block is padded, so that the bits of a decision do not depend on the other rows.
        """
        support, count = self.support(), len(X)
        height = min(HIGHEST, max(1, BLOCK // (_STEP * max(1, len(support)))) * _STEP)
        padding = np.zeros((-count % height or height * (not count), np.shape(X)[1]))
        X = np.vstack([np.asarray(X, dtype=np.float64), padding])
        kernels = self.kernel_.blocks(X, support, height)
        return np.concatenate([_pair_decisions(self.machine_, each) for each in kernels])[:count]


class RbfLabels(ClassifierMixin, RbfMachine):
    """Predict the class with the most votes, one against one; no probabilities."""

    def __init__(self, C: float = 1.0, gamma: float | str = "scale") -> None:
        self.C = C
        self.gamma = gamma

    def fit_kernel(self, kernel: Kernel, y: Any) -> None:
        """Fit on the kernel of the train rows; a single class is always predicted."""
        from sklearn.svm import SVC

        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.machine_ = kernel.fit(SVC(C=self.C), codes) if len(self.classes_) > 1 else None

    def _answers(self, decisions: np.ndarray) -> np.ndarray:
        votes = _votes(decisions, len(self.classes_))
        return np.asarray(self.classes_[votes.argmax(axis=1)])


class RbfClassifier(RbfLabels):
    """Predict classes and probabilities that are calibrated on held-out decisions.

    For the probabilities, the machine is fitted ``folds`` more times, each time without some of the
    train rows. One slope and one offset per class then maximize the likelihood of the held-out
    rows: Platt's sigmoid for two classes, a softmax of the sums of decisions for more, both with
    Platt's smoothed targets.
    """

    def __init__(
        self,
        C: float = 1.0,
        gamma: float | str = "scale",
        folds: int = 5,
        random_state: int | None = None,
    ) -> None:
        super().__init__(C, gamma)
        self.folds = folds
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: Any) -> RbfClassifier:
        """Fit the machine on all rows, and the probabilities on rows held out in turn."""
        super().fit(X, y)
        codes = np.unique(y, return_inverse=True)[1]
        self.slope_, self.offsets_ = self._calibration(np.asarray(X, dtype=np.float64), codes)
        return self

    def decision_function(self, X: np.ndarray) -> np.ndarray:
        """Return what scikit-learn's ``SVC`` returns: a number per row, or one per class."""
        pairs = self._decisions(X)
        if len(self.classes_) == 2:
            return pairs[:, 0]
        # margins decide between classes with equal votes, and add less than a third of a vote
        margins = _margins(pairs, len(self.classes_))
        return np.asarray(_votes(pairs, len(self.classes_)) + margins / (3 * (np.abs(margins) + 1)))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each class."""
        return self.predict_both(X)[1]

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the class with the most votes and the probability of each, in one pass."""
        pairs = self._decisions(X)
        logits = self.slope_ * _margins(pairs, len(self.classes_)) + self.offsets_
        return self._answers(pairs), _softmax(logits)

    def _calibration(self, X: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
        fold_of_row = deal(codes, "classes", self.folds, self.random_state or 0)
        counts = np.bincount(codes)
        fold_of_row[counts[codes] == 1] = -1  # the only row of a class is never held out
        margins = np.zeros((len(codes), len(counts)))
        for fold in range(self.folds):
            held = fold_of_row == fold
            if held.any():
                machine = RbfLabels(self.C, self.gamma).fit(X[~held], codes[~held])
                margins[held] = _margins(machine._decisions(X[held]), len(counts))
        used = fold_of_row >= 0
        return _fit_calibration(margins[used], codes[used], counts)


class RbfRegressor(RegressorMixin, RbfMachine):
    """Predict numbers; the target is standardized, as ``C`` and ``epsilon`` assume variance 1."""

    def __init__(self, C: float = 1.0, gamma: float | str = "scale", epsilon: float = 0.1) -> None:
        self.C = C
        self.gamma = gamma
        self.epsilon = epsilon

    def fit_kernel(self, kernel: Kernel, y: Any) -> None:
        """Fit on the kernel of the train rows."""
        from sklearn.svm import SVR

        y = np.asarray(y, dtype=np.float64)
        self.mean_, self.spread_ = float(y.mean()), float(y.std()) or 1.0
        machine = SVR(C=self.C, epsilon=self.epsilon)
        self.machine_ = kernel.fit(machine, (y - self.mean_) / self.spread_)

    def _answers(self, decisions: np.ndarray) -> np.ndarray:
        return np.asarray(self.mean_ + self.spread_ * decisions[:, 0])


# -- decisions ------------------------------------------------------------------------------


def _pair_decisions(machine: Any, kernel: np.ndarray) -> np.ndarray:
    """Return the decision about each pair of classes; one column for two classes or numbers."""
    if machine is None:  # a single class
        return np.empty((len(kernel), 0))
    weights, starts = machine.dual_coef_, np.cumsum([0, *machine.n_support_])
    if len(weights) == 1:
        return np.asarray((kernel @ weights[0] + machine.intercept_[0])[:, None])
    # the support vectors of a class have one weight against each of the other classes
    slices = [slice(a, b) for a, b in zip(starts, starts[1:], strict=False)]
    sums = [kernel[:, own] @ weights[:, own].T for own in slices]
    pairs = combinations(range(len(slices)), 2)
    return np.stack([sums[i][:, j - 1] + sums[j][:, i] for i, j in pairs], 1) + machine.intercept_


def _exponentials(products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Turn products of rows into their kernel, in place and a few rows at a time."""
    for start in range(0, len(products), 64):
        block = products[start : start + 64]
        block -= right
        block -= left[start : start + 64, None]
        np.exp(np.minimum(block, 0, out=block), out=block)
    return products


def _half_squares(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows) / 2)


def _signed_pairs(pairs: np.ndarray, classes: int) -> Iterator[tuple[int, int, np.ndarray]]:
    """Yield each pair of classes and the decisions, which are positive for the first class."""
    # scikit-learn reverses the sign of two classes
    signed = -pairs if classes == 2 else pairs
    for decision, (i, j) in zip(signed.T, combinations(range(classes), 2), strict=True):
        yield i, j, decision


def _votes(pairs: np.ndarray, classes: int) -> np.ndarray:
    """Return how many pairs each class has won."""
    votes = np.zeros((len(pairs), classes))
    for i, j, decision in _signed_pairs(pairs, classes):
        votes[:, i] += decision > 0
        votes[:, j] += decision <= 0
    return votes


def _margins(pairs: np.ndarray, classes: int) -> np.ndarray:
    """Return the sum of the decisions for a class minus those against it."""
    margins = np.zeros((len(pairs), classes))
    for i, j, decision in _signed_pairs(pairs, classes):
        margins[:, i] += decision
        margins[:, j] -= decision
    return margins


# -- probabilities --------------------------------------------------------------------------


def _softmax(logits: np.ndarray) -> np.ndarray:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def _fit_calibration(
    margins: np.ndarray, codes: np.ndarray, counts: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return the positive slope and the offsets that maximize the likelihood of the classes."""
    from scipy.optimize import minimize

    classes = len(counts)
    if not len(codes) or classes == 1:
        return 1.0, np.zeros(classes)
    rest = 1 / (np.bincount(codes, minlength=classes)[codes] + 2)
    targets = np.repeat(rest[:, None] / (classes - 1), classes, axis=1)
    targets[np.arange(len(codes)), codes] = 1 - rest

    def loss(free: np.ndarray) -> tuple[float, np.ndarray]:
        chances = _softmax(free[0] * margins + np.concatenate([[0.0], free[1:]]))
        gap = (chances - targets) / len(codes)
        value = -float((targets * np.log(np.maximum(chances, 1e-300))).sum()) / len(codes)
        return value, np.concatenate([[(gap * margins).sum()], gap.sum(axis=0)[1:]])

    start = np.concatenate([[1.0], np.zeros(classes - 1)])
    bounds = [(_SMALLEST_SLOPE, None)] + [(None, None)] * (classes - 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(found[0]), np.concatenate([[0.0], found[1:]])
