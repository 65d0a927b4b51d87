"""The head of Ulysses SentEval: AdamW with a small grid, trained at once, and early stopping."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

import numpy as np

from karat.core.registry import head
from karat.core.torch_random import MASTER, TorchGenerator, fold_seeds
from karat.errors import DataError, DefinitionError
from karat.probes.heads.stacked_training import (
    LARGE,
    Descent,
    Layered,
    Logistic,
    Network,
    Rates,
    Recipe,
    above_chance,
    kernels,
    losses,
    probabilities,
    targets,
)

MODES = ("fast", "exact")
#: a column counts as constant, and is not scaled, if its spread is below this share of its maximum
CONSTANT = 1e-6


@head("adamw")
@dataclass
class AdamW:
    """Train a logistic head, or one with hidden layers; a grid search selects the rates.

    A share of the train rows (``eval_frac``) is held out to select the rates and to stop early.
    ``mode: exact`` takes the rows in the given order and replays the initial weights and shuffles
    of the original system, which requires ``split: senteval``; ``fast`` shuffles once for all grid
    points. ``train_metric`` records the score of the train rows after each epoch.
    """

    #: rows are not changed in place, so that heads can share them
    keeps_X: ClassVar = True

    mode: str = "fast"
    hidden_dims: Sequence[int] | None = None
    batch_size: int = 128
    eval_frac: float = 0.2
    n_epochs: int = 100
    tenacity: int = 5
    early_stopping_rel_improv: float = 0.0025
    grid_epochs: int = 8
    learning_rate: Sequence[float] = (5e-4, 1e-3, 2e-3)
    beta1: Sequence[float] = (0.80, 0.90)
    beta2: Sequence[float] = (0.990, 0.999)
    weight_decay: float = 0.01
    clip: float = 1.0
    warm_up: float = 0.25
    warm_up_start: float = 0.05
    restore_best: bool = False
    stratified_eval: bool = False
    train_metric: bool = False
    seed: int = MASTER
    folds: int = 5
    fold: int | None = None
    random_state: int | None = None
    kind: str = "classification"
    history_: list[dict[str, Any]] = field(default_factory=list, init=False, repr=False)
    notes_: list[str] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.kind != "classification":
            raise DefinitionError(f"head adamw predicts classes, not {self.kind}.")
        if self.mode not in MODES:
            raise DefinitionError(f'head adamw: mode must be "fast" or "exact", got "{self.mode}".')
        self.hidden_dims = [int(size) for size in self.hidden_dims or ()]
        if any(size < 1 for size in self.hidden_dims):
            raise DefinitionError(f"head adamw: hidden_dims must be >= 1, got {self.hidden_dims}.")
        for name in ("learning_rate", "beta1", "beta2"):
            given = getattr(self, name)
            values = tuple(given) if isinstance(given, Sequence) else (given,)
            if not values or not all(0 < value < 1 for value in values):
                raise DefinitionError(f"head adamw: {name} must be between 0 and 1, got {given!r}.")
            setattr(self, name, values)
        for name in ("batch_size", "n_epochs", "grid_epochs"):
            if getattr(self, name) < 1:
                raise DefinitionError(
                    f"head adamw: {name} must be >= 1, got {getattr(self, name)!r}."
                )
        if not 0 < self.eval_frac < 1:
            raise DefinitionError(
                f"head adamw: eval_frac must be between 0 and 1, got {self.eval_frac!r}."
            )

    def fit(self, X: np.ndarray, y: Any, judges: int | None = None) -> AdamW:
        """Select the rates on the held-out rows, then train until their loss stops falling.

        With ``judges``, that number of first rows is held out instead of the share ``eval_frac``.
        """
        self.classes_, codes = _coded(np.asarray(y))
        if len(self.classes_) < 2:
            raise DataError("head adamw: the train rows have one class; at least two are needed.")
        X = np.asarray(X, dtype=np.float32)
        chance = _Exact(self, X) if self.mode == "exact" else _Fast(self)
        if judges is None:
            held, train = self.hold_out(codes, chance.rows(len(codes)))
        else:
            held, train = np.split(np.arange(len(codes)), [judges])
        own = X[train]
        self._scale(own)
        rows = self._scaled(own, out=own), self._scaled(X[held])
        training = _Training(self, chance, rows, (codes[train], codes[held]))
        rates, points = training.select()
        self.network_, self.history_ = training.finish(rates)
        self.notes_ = [self._note(rates, points)]
        return self

    def hold_out(self, y: np.ndarray, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the held-out rows, the first of the order, and the rows to train on.

        With ``stratified_eval``, the first rows of each class are held out.
        """
        wanted = math.ceil(self.eval_frac * len(y))
        if len(y) - wanted < 2:
            raise DataError(
                f"head adamw: {len(y)} train rows are too few: {wanted} are held out to select the "
                f"rates, which leaves {len(y) - wanted} to train on."
            )
        held = np.zeros(len(y), dtype=bool)
        if self.stratified_eval:
            shares = np.empty(len(y))
            for label in np.unique(y):
                own = np.flatnonzero(y[order] == label)
                shares[own] = (np.arange(len(own)) + 0.5) / len(own)
            held[np.argsort(shares, kind="stable")[:wanted]] = True
        else:
            held[:wanted] = True
        return order[held], order[~held]

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Return the most probable classes."""
        return self.predict_both(X)[0]

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Return the class probabilities, in the order of ``classes_``."""
        return self.predict_both(X)[1]

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable classes and the probabilities of all."""
        rows = self.network_.prepare(self._scaled(np.asarray(X, dtype=np.float32)))
        logits = self.network_.logits(rows).astype(np.float64)
        two = len(logits) == 1
        codes = (logits[0, 0] > 0).astype(int) if two else logits[:, 0].argmax(axis=0)
        given = probabilities(logits)[:, 0].T
        return self.classes_[codes], np.hstack([1 - given, given]) if two else given

    def _scale(self, X: np.ndarray) -> None:
        mean = X.mean(axis=0, dtype=np.float64)
        self.mean_ = mean.astype(np.float32)
        squares = X - mean
        squares *= squares
        spread = np.sqrt(squares.sum(axis=0) / max(1, len(X) - 1))
        constant = spread <= CONSTANT * np.maximum(X.max(axis=0), -X.min(axis=0))
        self.spread_ = np.where(constant, 1, spread + 1e-12).astype(np.float32)

    def _scaled(self, X: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        scaled = np.subtract(X, self.mean_, out=out)
        scaled /= self.spread_
        return scaled

    def _note(self, rates: Rates, points: int) -> str:
        chosen = (
            f"learning rate {rates.rate[0]:g}, beta1 {rates.beta1[0]:g}, beta2 {rates.beta2[0]:g}"
        )
        epochs = max(step["epoch"] for step in self.history_)
        of = f" of {points} grid points" if points > 1 else ""
        return f"mode {self.mode}; {chosen}{of}; {epochs} epochs"


def _coded(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the classes in order, and the place of each row's class; texts are not sorted."""
    if y.dtype != object:
        return np.unique(y, return_inverse=True)
    labels = y.tolist()
    classes = sorted(set(labels))
    place = {label: code for code, label in enumerate(classes)}
    known = np.empty(len(classes), dtype=object)
    known[:] = classes
    return known, np.fromiter(map(place.__getitem__, labels), np.intp, len(labels))


class _Fast:
    """Random numbers of one NumPy generator for rows, weights and shuffles."""

    def __init__(self, head: AdamW) -> None:
        self._rng = np.random.default_rng(head.random_state or 0)
        self._weights = int(self._rng.integers(2**32))
        self.shared = not head.hidden_dims

    def rows(self, size: int) -> np.ndarray:
        return self._rng.permutation(size)

    def first(self) -> Callable[[int, int], np.ndarray]:
        drawn = np.random.default_rng(self._weights)

        def uniform(inputs: int, outputs: int) -> np.ndarray:
            bound = 1 / math.sqrt(inputs)
            return drawn.uniform(-bound, bound, (inputs, outputs)).astype(np.float32)

        return uniform

    def epoch(self, size: int) -> np.ndarray:
        return self._rng.permutation(size)


class _Exact:
    """The random numbers of the original: rows as given, PyTorch's weights and shuffles."""

    shared = False

    def __init__(self, head: AdamW, X: np.ndarray) -> None:
        if head.fold is None:
            raise DefinitionError("head adamw: mode exact needs the number of the fold.")
        self._weights, orders = fold_seeds(head.fold, head.folds, head.seed)
        compiled = kernels() if head.hidden_dims or X.size >= LARGE else None
        self._orders = TorchGenerator(orders, compiled.shuffle if compiled else None)

    def rows(self, size: int) -> np.ndarray:
        return np.arange(size)

    def first(self) -> Callable[[int, int], np.ndarray]:
        return TorchGenerator(self._weights).weights

    def epoch(self, size: int) -> np.ndarray:
        return self._orders.epoch(size)


class _Training:
    """The training of one fold; held-out rows select the rates."""

    def __init__(
        self,
        head: AdamW,
        chance: _Fast | _Exact,
        rows: tuple[np.ndarray, np.ndarray],
        codes: tuple[np.ndarray, np.ndarray],
    ) -> None:
        """Get the scaled rows and the classes, each of the train and of the held-out rows."""
        self.head, self.chance = head, chance
        self.train_codes, self.codes = codes
        self.outputs = 1 if len(head.classes_) == 2 else len(head.classes_)
        self.width = rows[0].shape[1]
        sizes = (self.width, *(head.hidden_dims or ()), self.outputs)
        self.first = list(map(chance.first(), sizes, sizes[1:]))
        self.X, self.held = map(self._network(1).prepare, rows)
        self.wanted = targets(self.train_codes, len(head.classes_))
        self.held_wanted = targets(self.codes, len(head.classes_))
        self.recipe = Recipe(
            head.batch_size, head.weight_decay, head.clip, head.warm_up, head.warm_up_start
        )

    def select(self) -> tuple[Rates, int]:
        """Return the first rates with the best score on the held-out rows, and the grid size."""
        head = self.head
        points = list(product(head.learning_rate, head.beta1, head.beta2))
        grid = Rates(*np.array(points, dtype=np.float64).T)
        if len(points) == 1:
            return grid, 1
        scores = [score for rates in self._stacks(grid) for score in self._grid_scores(rates)]
        return grid.take(int(np.argmax(scores))), len(points)

    def finish(self, rates: Rates) -> tuple[Network, list[dict[str, Any]]]:
        """Train with the selected rates until the loss of the held-out rows stops falling."""
        head, network = self.head, self._network(1)
        descent = Descent(network, rates, self.recipe)
        epochs: list[tuple[np.ndarray, np.ndarray]] = []
        curves: dict[str, list[float]] = {}
        best, bad, best_network = math.inf, 0, None
        for _ in range(head.n_epochs):
            epochs.append(self._epoch(descent))
            for name, value in self._measured(network):
                curves.setdefault(name, []).append(value)
            loss = curves["loss_per_epoch_eval"][-1]
            better = best == math.inf or (best - loss) / (best + 1e-12) >= (
                head.early_stopping_rel_improv
            )
            bad = 0 if better else bad + 1
            if better:
                best = loss
                best_network = copy.deepcopy(network) if head.restore_best else None
            if bad > head.tenacity:
                break
        # the train losses of all epochs, computed at once
        logits, wanted = (np.stack(each, axis=1) for each in zip(*epochs, strict=True))
        curves = {"loss_per_epoch_train": losses(logits, wanted).tolist(), **curves}
        return best_network or network, [
            {"epoch": epoch + 1, "metric": name, "value": float(values[epoch])}
            for epoch in range(len(epochs))
            for name, values in curves.items()
        ]

    def _measured(self, network: Network) -> Iterator[tuple[str, float]]:
        """Yield the loss and the score of the held-out rows, and the score of the train rows."""
        logits = network.logits(self.held)
        yield "loss_per_epoch_eval", float(losses(logits, self.held_wanted)[0])
        yield "metric_per_epoch_eval", float(above_chance(logits, self.codes)[0])
        if self.head.train_metric:
            score = above_chance(network.logits(self.X), self.train_codes)
            yield "metric_per_epoch_train", float(score[0])

    def _stacks(self, grid: Rates) -> Iterator[Rates]:
        """Yield the grid points that are trained together: all, or one at a time."""
        if self.chance.shared:
            yield grid
        else:
            yield from (grid.take(point) for point in range(len(grid.rate)))

    def _grid_scores(self, rates: Rates) -> np.ndarray:
        network = self._network(len(rates.rate))
        descent = Descent(network, rates, self.recipe)
        for _ in range(self.head.grid_epochs):
            self._epoch(descent)
        return above_chance(network.logits(self.held), self.codes)

    def _epoch(self, descent: Descent) -> tuple[np.ndarray, np.ndarray]:
        """Train for an epoch and return the logits before each step, and the targets."""
        order = self.chance.epoch(len(self.X))
        wanted = np.take(self.wanted, order, axis=1)
        logits = descent.epoch(self.X, wanted, order)[:, 0]
        return logits, wanted[:, : logits.shape[-1]]

    def _network(self, heads: int) -> Logistic | Layered:
        drawn = iter(self.first)

        def first(inputs: int, outputs: int) -> np.ndarray:
            return next(drawn).copy()

        if self.head.hidden_dims:
            return Layered(self.width, self.outputs, self.head.hidden_dims, first)
        return Logistic(self.width, self.outputs, heads, first)
