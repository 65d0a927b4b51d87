"""Support vector machines with the RBF kernel, which is made by matrix products.

libsvm compares rows one pair after the other. Here all pairs meet in one product, and libsvm is
handed the kernel; it finds the same machine in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from karat.errors import DefinitionError
from karat.registry import head

#: so many train rows at most have their whole kernel in memory (half a GB); of more, libsvm makes
#: the parts that it wants
LARGEST = 8192
#: so many rows of a kernel are worked on at once
BLOCK = 64


@head("svm")
def svm(
    kind: str, C: float = 1.0, gamma: float | str = "scale", epsilon: float = 0.1
) -> SupportVectors:
    """Support vectors with the RBF kernel: classes one against one, or numbers.

    ``gamma: scale`` is 1 over the number of dimensions times the variance of all numbers. The
    machine gives labels, no probabilities. Numbers are scaled to mean 0 and variance 1 first, which
    is the spread that ``C`` and ``epsilon`` suppose.
    """
    for name, value in (("C", C), ("epsilon", epsilon)):
        if not _is_number(value) or not 0 < value < np.inf:
            raise DefinitionError(f"head: {name} of svm is a number above 0, not {value!r}.")
    if gamma != "scale" and (not _is_number(gamma) or not 0 < float(gamma) < np.inf):
        raise DefinitionError(f'head: gamma of svm is "scale" or a number above 0, not {gamma!r}.')
    return (_Classes if kind == "classes" else _Numbers)(C, gamma, epsilon)


class Kernel:
    """The RBF kernel of train rows, made once for all machines that learn from them."""

    def __init__(self, X: np.ndarray, gamma: float | str) -> None:
        X = np.asarray(X, dtype=np.float64)
        self.gamma = _scale(X) if gamma == "scale" else float(gamma)
        #: distances do not change, and numbers around 0 lose fewer digits
        self.centre = X.mean(axis=0)
        self.rows = self._moved(X)

    @cached_property
    def square(self) -> np.ndarray:
        """The kernel of the train rows with each other."""
        kernel = self.rows @ self.rows.T
        halves = kernel.diagonal() / 2
        return _powers(kernel, halves, halves)

    def against(self, X: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        """Return the kernel of other rows with the train rows, or with some of them."""
        ours = self.rows if rows is None else self.rows[rows]
        theirs = self._moved(np.asarray(X, dtype=np.float64))
        return _powers(theirs @ ours.T, _halves(theirs), _halves(ours))

    def _moved(self, X: np.ndarray) -> np.ndarray:
        # half the squared length of these rows' difference is what the exponential takes
        return np.asarray((X - self.centre) * np.sqrt(2 * self.gamma))


class SupportVectors:
    """A machine that learns from a kernel; ``fit`` and ``predict`` make it of vectors."""

    machine_: Any = None

    def __init__(self, C: float, gamma: float | str, epsilon: float) -> None:
        self.C = C
        self.gamma = gamma
        self.epsilon = epsilon

    def fit(self, X: np.ndarray, y: Any) -> SupportVectors:
        """Learn from vectors."""
        self.kernel_ = Kernel(X, self.gamma)
        self.learn(self.kernel_, y)
        vars(self.kernel_).pop("square", None)  # what is asked later is other rows
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return an answer per vector."""
        support = self.support()
        height = max(BLOCK, LARGEST * BLOCK // max(1, len(support)))
        blocks = (X[start : start + height] for start in range(0, len(X), height))
        answers = [self.answer(self.kernel_.against(block, support)) for block in blocks]
        return np.concatenate([self.answer(np.empty((0, len(support)))), *answers])

    def support(self) -> np.ndarray:
        """Return which of the train rows are support vectors."""
        return np.arange(0) if self.machine_ is None else np.asarray(self.machine_.support_)

    def learn(self, kernel: Kernel, y: Any) -> None:
        """Learn from a kernel, which other machines may learn from too."""
        raise NotImplementedError

    def answer(self, kernel: np.ndarray) -> np.ndarray:
        """Return an answer for each row of a kernel with the support vectors."""
        raise NotImplementedError

    def _taught(self, machine: Any, kernel: Kernel, y: np.ndarray) -> Any:
        machine.random_state = 0  # or else a number is drawn from the global generator, for nothing
        if len(y) > LARGEST:
            # rows of a kernel that are half of squared lengths apart
            return machine.set_params(kernel="rbf", gamma=0.5).fit(kernel.rows, y)
        return machine.set_params(kernel="precomputed").fit(kernel.square, y)


class _Classes(SupportVectors):
    """Tell classes apart, one against one; the class with most votes is the answer."""

    def learn(self, kernel: Kernel, y: Any) -> None:
        from sklearn.svm import SVC

        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        several = len(self.classes_) > 1  # a single class is the answer to everything
        self.machine_ = self._taught(SVC(C=self.C), kernel, codes) if several else None

    def answer(self, kernel: np.ndarray) -> np.ndarray:
        if self.machine_ is None:
            return np.repeat(self.classes_, len(kernel))
        votes = np.zeros((len(self.classes_), len(kernel)), dtype=np.intp)
        for (first, second), decision in _duels(self.machine_, kernel):
            votes[first] += decision > 0
            votes[second] += decision <= 0
        return np.asarray(self.classes_[votes.argmax(axis=0)])


class _Numbers(SupportVectors):
    """Predict numbers; errors below ``epsilon`` standard deviations cost nothing."""

    def learn(self, kernel: Kernel, y: Any) -> None:
        from sklearn.svm import SVR

        y = np.asarray(y, dtype=np.float64)
        self.mean_, self.spread_ = float(y.mean()), float(y.std()) or 1.0
        machine = SVR(C=self.C, epsilon=self.epsilon)
        self.machine_ = self._taught(machine, kernel, (y - self.mean_) / self.spread_)

    def answer(self, kernel: np.ndarray) -> np.ndarray:
        scaled = kernel @ self.machine_.dual_coef_[0] + self.machine_.intercept_[0]
        return np.asarray(self.mean_ + self.spread_ * scaled)


def _duels(machine: Any, kernel: np.ndarray) -> Iterator[tuple[tuple[int, int], np.ndarray]]:
    """Yield each pair of classes and the decisions about it; above 0 the first has won."""
    weights, starts = machine.dual_coef_, np.cumsum([0, *machine.n_support_])
    if len(weights) == 1:
        # of two classes scikit-learn has turned the signs
        yield (0, 1), -(kernel @ weights[0] + machine.intercept_[0])
        return
    # a support vector has a weight against each of the other classes
    parts = [slice(a, b) for a, b in zip(starts, starts[1:], strict=False)]
    sums = [kernel[:, part] @ weights[:, part].T for part in parts]
    for place, (i, j) in enumerate(combinations(range(len(parts)), 2)):
        yield (i, j), sums[i][:, j - 1] + sums[j][:, i] + machine.intercept_[place]


def _powers(products: np.ndarray, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Turn products of rows into their kernel, in place and a block at a time."""
    for start in range(0, len(products), BLOCK):
        block = products[start : start + BLOCK]
        block -= right
        block -= left[start : start + BLOCK, None]
        np.exp(np.minimum(block, 0, out=block), out=block)
    return products


def _halves(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows) / 2)


def _scale(X: np.ndarray) -> float:
    """Return what scikit-learn means by the gamma called scale."""
    variance = float(X.var())
    return 1 / (X.shape[1] * variance) if variance else 1.0


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
