"""A feed-forward net with one hidden layer, trained with PyTorch and asked with numpy.

The weights and the order of the rows come from a generator of its own, so torch's random numbers
are left as they are.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from karat.draws import draw
from karat.errors import MissingExtra

#: an epoch has so many steps at least, also where fewer go through all rows
LEAST_STEPS = 20
#: with fewer rows to hold out than this, chance would decide when to stop
LEAST_HELD = 10

Weights = list[np.ndarray]


@dataclass(eq=False, repr=False)
class _Net(BaseEstimator):
    """What the nets for classes and numbers share.

    Adam trains in batches, shuffled in every epoch. A share of the train rows is held out:
    ``history_`` tells the loss on them per epoch, training ends when it has not fallen for
    ``patience`` epochs, and the weights of its lowest point are kept. An epoch goes through all
    rows, and on until it has made 20 steps. With fewer than ten rows to hold out none are, and
    all epochs are run.
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
        try:
            import torch
        except ImportError as error:
            raise MissingExtra("torch", "net") from error
        rng = np.random.default_rng(self.random_state or 0)
        held = np.zeros(len(y), dtype=bool)
        share = round(self.held_out * len(y))
        if share >= LEAST_HELD:
            held[draw(len(y), share, rng, y if classes else None)] = True
        data = [torch.tensor(a) for a in (np.asarray(X, dtype=np.float32), y)]
        sides = [
            [each[mask] for each in data] for mask in (torch.tensor(~held), torch.tensor(held))
        ]
        with _one_thread():
            self.weights_ = self._descend(
                _first_weights(rng, X.shape[1], self.hidden, outputs), sides, rng, classes
            )

    def _descend(
        self, weights: Weights, sides: list[list[Any]], rng: np.random.Generator, classes: bool
    ) -> Weights:
        import torch

        loss = torch.nn.functional.cross_entropy if classes else torch.nn.functional.mse_loss
        free = [torch.tensor(each, requires_grad=True) for each in weights]
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

        made = 0
        while made < LEAST_STEPS or made * self.batch < rows:
            order = torch.tensor(rng.permutation(rows))
            for part in torch.split(order, self.batch):
                made += 1
                yield part

    def _answers(self, X: np.ndarray) -> np.ndarray:
        """Return the outputs for rows, by numpy alone."""
        first, bias, last, offset = self.weights_
        inner = np.asarray(X, dtype=np.float32) @ first + bias
        return np.asarray(np.maximum(inner, 0, out=inner) @ last + offset)


class NetClassifier(ClassifierMixin, _Net):
    """Two or more classes: one output each, softmax and cross-entropy."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> NetClassifier:
        """Train on rows of numbers and their classes."""
        self.classes_, codes = np.unique(y, return_inverse=True)
        self._train(X, codes.astype(np.int64), len(self.classes_), classes=True)
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the probability of each class."""
        outputs = self._answers(X).astype(np.float64)
        powers = np.exp(outputs - outputs.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the likeliest class."""
        return np.asarray(self.classes_[np.argmax(self._answers(X), axis=1)])


class NetRegressor(RegressorMixin, _Net):
    """Numbers: one output, mean squared error of the scaled truth."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> NetRegressor:
        """Train on rows of numbers and their truth, scaled to mean 0 and spread 1."""
        y = np.asarray(y, dtype=np.float64)
        self.centre_, self.spread_ = float(np.mean(y)), float(np.std(y)) or 1.0
        scaled = ((y - self.centre_) / self.spread_).astype(np.float32)
        self._train(X, scaled[:, None], 1, classes=False)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return a number per row, in the units of the truth."""
        return self.centre_ + self.spread_ * self._answers(X)[:, 0].astype(np.float64)


class Adam:
    """Adam with its usual constants (Kingma, Ba 2015), as ``torch.optim.Adam`` steps.

    That one loads torch's compiler first, which takes longer than training a net this small.
    """

    def __init__(self, weights: list[Any], rate: float) -> None:
        import torch

        self.weights, self.rate, self.steps = weights, rate, 0
        self.means = [torch.zeros_like(each) for each in weights]
        self.squares = [torch.zeros_like(each) for each in weights]

    def step(self) -> None:
        """Move the weights against their gradients, and forget these."""
        self.steps += 1
        slow, slower = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        for each, mean, square in zip(self.weights, self.means, self.squares, strict=True):
            slope, each.grad = each.grad, None
            mean.lerp_(slope, 0.1)
            square.mul_(0.999).addcmul_(slope, slope, value=0.001)
            spread = (square.sqrt() / slower**0.5).add_(1e-8)
            each.data.addcdiv_(mean, spread, value=-self.rate / slow)


def _first_weights(rng: np.random.Generator, inputs: int, hidden: int, outputs: int) -> Weights:
    """Return weights and biases drawn evenly, within 1 / √(inputs of the layer) as torch does."""
    weights = []
    for rows, columns in ((inputs, hidden), (hidden, outputs)):
        bound = 1 / np.sqrt(max(rows, 1))
        for shape in ((rows, columns), (columns,)):
            weights.append(rng.uniform(-bound, bound, shape).astype(np.float32))
    return weights


def _outputs(weights: list[Any], X: Any) -> Any:
    first, bias, last, offset = weights
    return (X @ first + bias).relu() @ last + offset


def _copied(weights: list[Any]) -> Weights:
    return [each.detach().numpy().copy() for each in weights]


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the same bits everywhere
    try:
        yield
    finally:
        torch.set_num_threads(threads)
