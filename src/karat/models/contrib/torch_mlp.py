"""A feed-forward network with one hidden layer: PyTorch for training, numpy for prediction.

Weights and batches are drawn from a numpy generator, so torch's random state is not changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from karat.core.dataset import sample_rows
from karat.models.model import import_extra, torch_threads

#: minimum number of steps per epoch, even if fewer cover all rows
LEAST_STEPS = 20
#: no early stopping with fewer validation rows than this
LEAST_HELD = 10

Weights = list[np.ndarray]


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
            [each[mask] for each in data] for mask in (torch.tensor(~held), torch.tensor(held))
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
        self.means = [torch.zeros_like(each) for each in weights]
        self.squares = [torch.zeros_like(each) for each in weights]

    def step(self) -> None:
        """Update the weights and reset their gradients."""
        self.steps += 1
        slow, slower = 1 - 0.9**self.steps, 1 - 0.999**self.steps
        for each, mean, square in zip(self.weights, self.means, self.squares, strict=True):
            gradient, each.grad = each.grad, None
            mean.lerp_(gradient, 0.1)
            square.mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            scale = (square.sqrt() / slower**0.5).add_(1e-8)
            each.data.addcdiv_(mean, scale, value=-self.rate / slow)


def _outputs(weights: list[Any], X: Any) -> Any:
    first, bias, last, offset = weights
    return (X @ first + bias).relu() @ last + offset


def _copied(weights: list[Any]) -> Weights:
    return [each.detach().numpy().copy() for each in weights]
