"""Faster versions of estimators of scikit-learn, and a neural network.

Random forests sort rows by the leaves of their first tree, for the CPU cache, and sum outputs in
scikit-learn's order. Support vector machines pass libsvm a kernel computed by matrix products.
Naive Bayes returns labels and probabilities in one pass. All predict what
scikit-learn predicts, in a fraction of the time. The network is trained by PyTorch and predicts
with numpy; its weights and batches are drawn from a numpy generator, so torch's random state is
not changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.naive_bayes import GaussianNB

from karat.core.dataset import sample_rows
from karat.models.model import assign_folds, import_extra, torch_threads
from karat.models.table_predictor import ConstantPredictor, TablePredictor  # noqa: F401

if TYPE_CHECKING:
    from sklearn.svm import SVC

#: rows per block
BLOCK = 2**14
#: with more train rows the full kernel would not fit into half a GB, and libsvm computes its own
LARGEST = 8192
#: number of kernel entries per block of predicted rows, and the largest number of rows in a block
KERNEL_ENTRIES, HIGHEST = 2**18, 1024
#: the height of a block is a multiple of this
_STEP = 16
#: smallest slope of the calibration, so that probabilities increase with the decisions
_SMALLEST_SLOPE = 1e-3
#: minimum number of steps per epoch, even if fewer cover all rows
LEAST_STEPS = 20
#: no early stopping with fewer validation rows than this
LEAST_HELD = 10
Weights = list[np.ndarray]


class OrderedForestClassifier(RandomForestClassifier):
    """scikit-learn's random forest for classes."""

    all_at_once = True  # of more rows, more are near each other

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the class probabilities."""
        return _mean_of_trees(self, X)


class OrderedForestRegressor(RandomForestRegressor):
    """scikit-learn's random forest for numbers."""

    all_at_once = True

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number per row."""
        return _mean_of_trees(self, X)[:, 0]


def _mean_of_trees(
    forest: RandomForestClassifier | RandomForestRegressor, X: np.ndarray
) -> np.ndarray:
    X = np.asarray(X, dtype=np.float32)
    order = np.argsort(forest.estimators_[0].apply(X), kind="stable")  # it also checks X
    trees = [grown.tree_ for grown in forest.estimators_]
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


class Kernel:
    """The RBF kernel of the train rows, shared by all machines that are fitted on them."""

    def __init__(self, X: np.ndarray, gamma: float | str, *, shared: bool = False) -> None:
        self.shared = shared
        self._last: tuple[np.ndarray, np.ndarray] | None = None
        #: machines whose solution does not depend on the limit ``C``, with their targets
        self._settled: list[tuple[Any, np.ndarray]] = []
        X = np.asarray(X, dtype=np.float64)
        if gamma == "scale":
            gamma = 1 / (X.shape[1] * float(X.var()) or 1.0)
        self.gamma = 1 / X.shape[1] if gamma == "auto" else float(gamma)
        #: centering does not change distances, and loses fewer digits
        self.center = X.mean(axis=0)
        self.rows = self._scaled(X)

    @cached_property
    def square(self) -> np.ndarray:
        """The kernel between the train rows."""
        rows, halves = self.rows, _half_squares(self.rows)
        kernel = np.empty((len(rows), len(rows)))
        for start in range(0, len(rows), 64):  # a few rows at a time, for the CPU cache
            part = slice(start, start + 64)
            block = rows[part] @ rows[start:].T
            block -= halves[start:]
            block -= halves[part, None]
            kernel[part, start:] = np.exp(np.minimum(block, 0, out=block), out=block)
            kernel[start:, part] = block.T
        np.fill_diagonal(kernel, 1.0)
        return kernel

    def against(self, X: np.ndarray, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Return the kernel between other rows and the train rows, or some of the train rows."""
        (kernel,) = self.blocks(X, rows, len(X))
        return kernel

    def remembered(self, X: np.ndarray) -> np.ndarray | None:
        """Return the kernel between other rows and all train rows, computed once for an array.

        None if the kernel is not shared, or has more entries than that of the train rows may have.
        """
        if not self.shared or len(X) * len(self.rows) > LARGEST**2:
            return None
        if self._last is None or self._last[0] is not X:
            self._last = (X, self.against(X))
        return self._last[1]

    def __getstate__(self) -> dict[str, Any]:
        """Return what predictions need."""
        state = dict(vars(self))
        for name in ("square", "_equal_rows"):
            state.pop(name, None)
        return {**state, "_last": None, "_settled": [], "shared": False}

    def blocks(self, X: np.ndarray, rows: np.ndarray | slice, height: int) -> Iterator[np.ndarray]:
        """Yield the kernel between blocks of other rows and some of the train rows."""
        train = self.rows[rows]
        # two more columns subtract half of the squares: fewer passes over the products
        columns = np.vstack([train.T, -_half_squares(train), np.ones(len(train))])
        for start in range(0, len(X), height):
            other = self._scaled(np.asarray(X[start : start + height], dtype=np.float64))
            other = np.column_stack([other, np.ones(len(other)), -_half_squares(other)])
            kernel = other @ columns
            yield np.exp(np.minimum(kernel, 0, out=kernel), out=kernel)

    def fit(self, machine: SVC, y: np.ndarray) -> Any:
        """Fit a machine of scikit-learn on this kernel, or return a fitted one that is equal."""
        machine.random_state = 0  # otherwise it advances the global generator without using it
        if len(y) > LARGEST:
            return machine.set_params(kernel="rbf", gamma=0.5).fit(self.rows, y)
        machine.kernel = "precomputed"
        for settled, target in self._settled:
            alike = {**settled.get_params(), "C": machine.C} == machine.get_params()
            if type(settled) is type(machine) and alike and settled.C <= machine.C:
                if np.array_equal(target, y):
                    return settled
        machine.fit(self.square, y)
        if self._is_settled(machine, y):
            self._settled.append((machine, y))
        return machine

    def _is_settled(self, machine: SVC, y: np.ndarray) -> bool:
        """Return whether a larger limit of the weights has a solution with the same decisions.

        No weight is at the limit, except those of equal rows of two classes: these can all grow
        by the same amount, which cancels out.
        """
        limited = np.abs(machine.dual_coef_) >= machine.C
        if not limited.any() or not hasattr(machine, "classes_"):
            return not limited.any()
        starts, used = np.cumsum([0, *machine.n_support_]), machine.dual_coef_ != 0
        equal = self._equal_rows[machine.support_]
        for pair in combinations(range(len(machine.n_support_)), 2):
            counts = []
            for code, row in zip(pair, (pair[1] - 1, pair[0]), strict=True):
                part = slice(starts[code], starts[code + 1])
                chosen = (limited[row, part], used[row, part])
                counts += [np.bincount(equal[part][column], minlength=len(y)) for column in chosen]
            if (np.maximum(counts[0], counts[2]) > np.minimum(counts[1], counts[3])).any():
                return False
        return True

    @cached_property
    def _equal_rows(self) -> np.ndarray:
        """For each train row, the first row that is equal to it."""
        first: dict[bytes, int] = {}
        return np.array([first.setdefault(row.tobytes(), i) for i, row in enumerate(self.rows)])

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        # with this scale, the kernel is exp(-|a - b|² / 2)
        return np.asarray((X - self.center) * np.sqrt(2 * self.gamma))


@dataclass(eq=False, repr=False)
class RbfMachine(BaseEstimator):
    """A machine that is fitted on vectors, or on a ``Kernel`` that several machines share."""

    C: float = 1.0
    gamma: float | str = "scale"
    #: returns the object of a name, for the next call of ``fit`` only
    share: Callable[[str, Callable[[], Any]], Any] | None = field(default=None, init=False)

    def fit(self, X: np.ndarray, y: np.ndarray) -> Any:
        """Fit on vectors; with ``share``, on the kernel that machines on the same rows share."""
        share, self.share = self.share, None
        if share is None:
            self.kernel_ = Kernel(X, self.gamma)
        else:
            self.kernel_ = share(f"kernel-{self.gamma}", lambda: Kernel(X, self.gamma, shared=True))
        self.fit_kernel(self.kernel_, y)
        if not self.kernel_.shared:
            vars(self.kernel_).pop("square", None)  # not needed to predict
        return self

    def fit_kernel(self, kernel: Kernel, y: np.ndarray) -> None:
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
        if (kernel := self.kernel_.remembered(X)) is not None:
            return _pair_decisions(self.machine_, kernel[:, support])
        height = min(HIGHEST, max(1, KERNEL_ENTRIES // (_STEP * max(1, len(support)))) * _STEP)
        padding = np.zeros((-count % height or height * (not count), np.shape(X)[1]))
        X = np.vstack([np.asarray(X, dtype=np.float64), padding])
        kernels = self.kernel_.blocks(X, support, height)
        return np.concatenate([_pair_decisions(self.machine_, block) for block in kernels])[:count]


class RbfLabels(ClassifierMixin, RbfMachine):
    """Predict the class with the most votes, one against one; no probabilities."""

    def fit_kernel(self, kernel: Kernel, y: np.ndarray) -> None:
        """Fit on the kernel of the train rows; a single class is always predicted."""
        from sklearn.svm import SVC

        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        self.machine_ = kernel.fit(SVC(C=self.C), codes) if len(self.classes_) > 1 else None

    def _answers(self, decisions: np.ndarray) -> np.ndarray:
        votes, _ = _tally(decisions, len(self.classes_))
        return np.asarray(self.classes_[votes.argmax(axis=1)])


@dataclass(eq=False, repr=False)
class RbfClassifier(RbfLabels):
    """Predict classes and probabilities that are calibrated on held-out decisions.

    For the probabilities, the machine is fitted ``folds`` more times, each time without some of the
    train rows. One slope and one offset per class then maximize the likelihood of the held-out
    rows: Platt's sigmoid for two classes, a softmax of the sums of decisions for more, both with
    Platt's smoothed targets.
    """

    folds: int = 5
    random_state: int | None = None

    def fit(self, X: np.ndarray, y: np.ndarray) -> RbfClassifier:
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
        votes, margins = _tally(pairs, len(self.classes_))
        return np.asarray(votes + margins / (3 * (np.abs(margins) + 1)))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each class."""
        return self.predict_both(X)[1]

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the class with the most votes and the probability of each, in one pass."""
        pairs = self._decisions(X)
        logits = self.slope_ * _tally(pairs, len(self.classes_))[1] + self.offsets_
        return self._answers(pairs), softmax(logits, axis=1)

    def _calibration(self, X: np.ndarray, codes: np.ndarray) -> tuple[float, np.ndarray]:
        fold_of_row = assign_folds(codes, "classification", self.folds, self.random_state or 0)
        counts = np.bincount(codes)
        fold_of_row[counts[codes] == 1] = -1  # the only row of a class is never held out
        margins = np.zeros((len(codes), len(counts)))
        for fold in range(self.folds):
            held = fold_of_row == fold
            if held.any():
                machine = RbfLabels(self.C, self.gamma).fit(X[~held], codes[~held])
                margins[held] = _tally(machine._decisions(X[held]), len(counts))[1]
        used = fold_of_row >= 0
        return _fit_calibration(margins[used], codes[used], counts)


@dataclass(eq=False, repr=False)
class RbfRegressor(RegressorMixin, RbfMachine):
    """Predict numbers; the target is standardized, as ``C`` and ``epsilon`` assume variance 1."""

    epsilon: float = 0.1

    def fit_kernel(self, kernel: Kernel, y: np.ndarray) -> None:
        """Fit on the kernel of the train rows."""
        from sklearn.svm import SVR

        y = np.asarray(y, dtype=np.float64)
        self.mean_, self.spread_ = float(y.mean()), float(y.std()) or 1.0
        machine = SVR(C=self.C, epsilon=self.epsilon)
        self.machine_ = kernel.fit(machine, (y - self.mean_) / self.spread_)

    def _answers(self, decisions: np.ndarray) -> np.ndarray:
        return np.asarray(self.mean_ + self.spread_ * decisions[:, 0])


def _pair_decisions(machine: SVC, kernel: np.ndarray) -> np.ndarray:
    """Return the decision about each pair of classes; one column for two classes or numbers."""
    if machine is None:  # a single class
        return np.empty((len(kernel), 0))
    weights, starts = machine.dual_coef_, np.cumsum([0, *machine.n_support_])
    if len(weights) == 1:
        return np.asarray((kernel @ weights[0] + machine.intercept_[0])[:, None])
    # the support vectors of a class have one weight against each of the other classes
    slices = [slice(a, b) for a, b in zip(starts, starts[1:], strict=False)]
    sums = [kernel[:, part] @ weights[:, part].T for part in slices]
    pairs = combinations(range(len(slices)), 2)
    return np.stack([sums[i][:, j - 1] + sums[j][:, i] for i, j in pairs], 1) + machine.intercept_


def _half_squares(rows: np.ndarray) -> np.ndarray:
    return np.asarray(np.einsum("ij,ij->i", rows, rows) / 2)


def _tally(pairs: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return how many pairs each class has won, and the decisions for it minus those against it."""
    votes, margins = np.zeros((2, len(pairs), classes))
    # positive decisions are for the first class; scikit-learn reverses the sign of two classes
    signed = -pairs if classes == 2 else pairs
    for decision, (i, j) in zip(signed.T, combinations(range(classes), 2), strict=True):
        votes[:, i] += decision > 0
        votes[:, j] += decision <= 0
        margins[:, i] += decision
        margins[:, j] -= decision
    return votes, margins


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
        chances = softmax(free[0] * margins + np.concatenate([[0.0], free[1:]]), axis=1)
        gap = (chances - targets) / len(codes)
        value = -float((targets * np.log(np.maximum(chances, 1e-300))).sum()) / len(codes)
        return value, np.concatenate([[(gap * margins).sum()], gap.sum(axis=0)[1:]])

    start = np.concatenate([[1.0], np.zeros(classes - 1)])
    bounds = [(_SMALLEST_SLOPE, None)] + [(None, None)] * (classes - 1)
    solution = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return float(solution[0]), np.concatenate([[0.0], solution[1:]])


class NaiveBayes(GaussianNB):
    """scikit-learn's Gaussian naive Bayes that returns labels and probabilities in one pass."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> NaiveBayes:
        """Fit; if all vectors are equal, predictions are the class frequencies."""
        super().fit(X, y)
        if not self.epsilon_:
            self.var_ = np.ones_like(self.theta_)
        return self

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable classes and the probabilities of all."""
        chances = self.predict_log_proba(X)
        return self.classes_[chances.argmax(axis=1)], np.exp(chances)


# -- A feed-forward network with one hidden layer: PyTorch for training, numpy for prediction -----


@dataclass(eq=False, repr=False)
class _Net(BaseEstimator):
    """Base of the classifier and the regressor.

    Adam with shuffled batches and early stopping: a share ``held_out`` of the training rows is used
    for validation, ``history_`` has their loss per epoch, training stops if it has not decreased
    for ``patience`` epochs, and the best weights are used. An epoch covers all rows and at least 20
    steps. With fewer than ten validation rows, all rows are trained on for all epochs.
    """

    hidden: int = 128
    learning_rate: float = 1e-3
    batch: int = 256
    epochs: int = 200
    patience: int = 10
    held_out: float = 0.1
    random_state: int | None = None

    def _train(self, X: np.ndarray, y: np.ndarray, outputs: int, classes: bool) -> None:
        """Train on rows and targets; classes are codes 0, 1, …."""
        torch = import_extra("torch", "net")
        rng = np.random.default_rng(self.random_state or 0)
        held = np.zeros(len(y), dtype=bool)
        share = round(self.held_out * len(y))
        if share >= LEAST_HELD:
            held[sample_rows(len(y), share, rng, y if classes else None)] = True
        data = [torch.tensor(a) for a in (np.asarray(X, dtype=np.float32), y)]
        sides = [
            [tensor[mask] for tensor in data] for mask in (torch.tensor(~held), torch.tensor(held))
        ]
        with torch_threads(1):
            weights = []
            for rows, columns in ((X.shape[1], self.hidden), (self.hidden, outputs)):
                bound = 1 / np.sqrt(max(rows, 1))
                for shape in ((rows, columns), (columns,)):
                    weights.append(rng.uniform(-bound, bound, shape).astype(np.float32))
            self.weights_ = self._descend(weights, sides, rng, classes)

    def _descend(
        self, weights: Weights, sides: list[list[Any]], rng: np.random.Generator, classes: bool
    ) -> Weights:
        import torch

        loss = torch.nn.functional.cross_entropy if classes else torch.nn.functional.mse_loss
        free = [torch.tensor(array, requires_grad=True) for array in weights]
        adam = Adam(free, self.learning_rate)
        (X, y), (held_X, held_y) = sides
        self.history_: list[dict[str, Any]] = []
        best, lowest, since = weights, np.inf, 0
        for epoch in range(1, self.epochs + 1):
            for rows in self._batches(len(y), rng):
                loss(_outputs(free, X[rows]), y[rows]).backward()
                adam.step()
            if not len(held_y):
                continue
            with torch.no_grad():
                value = float(loss(_outputs(free, held_X), held_y))
            self.history_.append({"epoch": epoch, "metric": "held_out_loss", "value": value})
            since += 1
            if value < lowest:
                best, lowest, since = _copied(free), value, 0
            if since >= self.patience:
                break
        return best if len(held_y) else _copied(free)

    def _batches(self, rows: int, rng: np.random.Generator) -> Iterator[Any]:
        import torch

        steps = 0
        while steps < LEAST_STEPS or steps * self.batch < rows:
            order = torch.tensor(rng.permutation(rows))
            for batch in torch.split(order, self.batch):
                steps += 1
                yield batch

    def _forward(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs, computed with numpy."""
        first, bias, last, offset = self.weights_
        inner = np.asarray(X, dtype=np.float32) @ first + bias
        return np.asarray(np.maximum(inner, 0, out=inner) @ last + offset)


class NetClassifier(ClassifierMixin, _Net):
    """One output per class, softmax and cross-entropy."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> NetClassifier:
        """Train on rows of numbers and their classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._train(X, codes.astype(np.int64), len(self.classes_), classes=True)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each class."""
        return np.asarray(softmax(self._forward(X).astype(np.float64), axis=1))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most likely class."""
        return np.asarray(self.classes_[np.argmax(self._forward(X), axis=1)])


class NetRegressor(RegressorMixin, _Net):
    """One output, mean squared error of the standardized target."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> NetRegressor:
        """Train on rows of numbers and a numeric target."""
        y = np.asarray(y, dtype=np.float64)
        self.center_, self.scale_ = float(np.mean(y)), float(np.std(y)) or 1.0
        scaled = ((y - self.center_) / self.scale_).astype(np.float32)
        self._train(X, scaled[:, None], 1, classes=False)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number per row."""
        return self.center_ + self.scale_ * self._forward(X)[:, 0].astype(np.float64)


class Adam:
    """Adam with its default constants (Kingma, Ba 2015), equal to ``torch.optim.Adam``.

    torch.optim imports torch's compiler, which takes longer than training a network this small.
    """

    def __init__(self, weights: list[Any], rate: float) -> None:
        import torch

        self.weights, self.rate, self.steps = weights, rate, 0
        self.means = [torch.zeros_like(weight) for weight in weights]
        self.squares = [torch.zeros_like(weight) for weight in weights]

    def step(self) -> None:
        """Update the weights and reset their gradients."""
        self.steps += 1
        slow, slower = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        for weight, mean, square in zip(self.weights, self.means, self.squares, strict=True):
            gradient, weight.grad = weight.grad, None
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            scale = (square.sqrt() / slower**0.5).add_(1e-8)
            weight.data.addcdiv_(mean, scale, value=-self.rate / slow)


def _outputs(weights: list[Any], X: object) -> Any:
    first, bias, last, offset = weights
    return (X @ first + bias).relu() @ last + offset


def _copied(weights: list[Any]) -> Weights:
    return [tensor.detach().numpy().copy() for tensor in weights]
