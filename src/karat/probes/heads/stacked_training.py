"""AdamW on mini-batches for stacked logistic heads and small networks with hidden layers.

Warm-up, clipped gradients, and one learning rate per head. Logits have the shape (outputs, heads,
rows), targets (outputs, rows); two classes need one output. Gradients are those of the summed loss.

Inner loops are compiled if numba is installed (``pip install "karat[fast]"``). They compute the
same as the NumPy code with fewer passes over memory; the last digits differ.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

import numpy as np

#: with more outputs, matrix products of a library are faster than a compiled epoch
FEW = 16
#: a compiled epoch processes this many rows at a time
BLOCK = 4
#: values times outputs from which compiled loops of a linear head pay for numba's import
LARGE = 3_000_000


@cache
def kernels() -> Any | None:
    """Return the module of compiled loops, or None without numba."""
    try:
        from karat.probes.heads import stacked_training_numba
    except ImportError:
        return None
    return stacked_training_numba


def _loaded(name: str) -> Any | None:
    """Return a compiled loop with the digits of NumPy, if another head has loaded the module."""
    return getattr(sys.modules.get(f"{__name__}_numba"), name, None)


EPSILON = 1e-8
#: number of epochs for which the step sizes are computed at once
AHEAD = 25


class Network(Protocol):
    """A trainable network: weights, their gradients after ``learn``, and logits.

    ``values`` has all weights and ``gradients`` their gradients, both as (outer, heads, inner).
    """

    heads: int
    values: np.ndarray
    gradients: np.ndarray

    def prepare(self, X: np.ndarray) -> np.ndarray: ...  # noqa: D102
    def logits(self, X: np.ndarray) -> np.ndarray: ...  # noqa: D102
    def learn(self, X: np.ndarray, wanted: np.ndarray) -> np.ndarray: ...  # noqa: D102


@dataclass(frozen=True)
class Rates:
    """Learning rate and the two betas of AdamW for each head."""

    rate: np.ndarray
    beta1: np.ndarray
    beta2: np.ndarray

    def take(self, head: int) -> Rates:
        """Return the rates of one head."""
        own = slice(head, head + 1)
        return Rates(self.rate[own], self.beta1[own], self.beta2[own])


@dataclass(frozen=True)
class Recipe:
    """Settings of the steps; the rate rises during the share ``warm_up`` of the first epoch."""

    batch_size: int = 128
    weight_decay: float = 0.01
    clip: float = 1.0
    warm_up: float = 0.25
    warm_up_start: float = 0.05


class Descent:
    """The training state of a network."""

    def __init__(self, network: Network, rates: Rates, recipe: Recipe) -> None:
        self.network = network
        self.recipe = recipe
        self.rates = rates
        self.steps = 0
        heads = network.heads
        self.moments = np.zeros((2, *network.values.shape), dtype=np.float32)
        betas = np.stack([rates.beta1, rates.beta2])
        self._memory = np.concatenate([betas, 1 - betas]).astype(np.float32)
        self._plan = np.empty((0, 3, heads), dtype=np.float32)

    def epoch(self, X: np.ndarray, wanted: np.ndarray, order: np.ndarray) -> np.ndarray:
        """Make one step per full batch; return the first head's logits before each step.

        ``wanted`` is in the given order. An incomplete last batch is dropped, unless it is the only
        one.
        """
        size = min(self.recipe.batch_size, len(order))
        batches = len(order) // size
        order = order[: batches * size]
        changes = self._changes(batches)
        logits = np.empty((len(wanted), 1, len(order)), dtype=np.float32)
        single = isinstance(self.network, Logistic) and self.network.heads == 1
        few = single and size % BLOCK == 0 and len(wanted) <= FEW
        if few and (compiled := self._kernels(X)):
            state = self.network.values[:, 0], self.moments[:, :, 0], self._memory[:, 0]
            clip = np.float32(self.recipe.clip)
            compiled.epoch(X, wanted, order, changes[:, :, 0], *state, clip, logits[:, 0])
            return logits
        if few:
            self._train_one(X, wanted, order, changes, logits)
            return logits
        self._update = compiled.update if (compiled := self._kernels(X)) else _update_numpy
        self._whole_step = None if compiled else _loaded("step")
        rows = np.empty((size, X.shape[1]), dtype=np.float32)
        for number, change in enumerate(changes):
            batch = slice(number * size, (number + 1) * size)
            np.take(X, order[batch], axis=0, out=rows, mode="clip")
            logits[:, :, batch] = self.network.learn(rows, wanted[:, batch])[:, :1]
            self._step(change, size)
        return logits

    def _train_one(
        self,
        X: np.ndarray,
        wanted: np.ndarray,
        order: np.ndarray,
        changes: np.ndarray,
        logits: np.ndarray,
    ) -> None:
        """Train one linear head for an epoch, with as few calls as possible."""
        w, g, size = (
            self.network.values[:, 0],
            self.network.gradients[:, 0],
            len(order) // len(changes),
        )
        moments, clip = self.moments[:, :, 0], self.recipe.clip
        move_weights = _loaded("move") or _move
        keep1, keep2, add1, add2 = self._memory[:, 0].tolist()
        rows = np.empty((size, X.shape[1]), dtype=np.float32)
        columns = rows.T
        for number, (shrink, move, small) in enumerate(changes[:, :, 0].tolist()):
            batch = slice(number * size, (number + 1) * size)
            X.take(order[batch], 0, rows, "clip")
            found = w.dot(columns)
            logits[:, 0, batch] = found
            errors = probabilities(found)
            errors -= wanted[:, batch]
            errors.dot(rows, g)
            scale = min(1.0, clip / (math.sqrt(np.vdot(g, g)) / size + 1e-6)) / size
            memory = (keep1, keep2, add1 * scale, add2 * scale * scale)
            move_weights(w, moments, g, (shrink, move, small), memory)

    def _kernels(self, X: np.ndarray) -> Any | None:
        """Return the compiled loops if the network has hidden layers or an epoch is long."""
        small = isinstance(self.network, Logistic) and X.size * len(self.network.values) < LARGE
        return None if small else kernels()

    def _step(self, change: np.ndarray, size: int) -> None:
        """Make a step; the gradients of each head are clipped by their norm."""
        values, gradients = self.network.values, self.network.gradients
        squares = np.einsum("ohw,ohw->h", gradients, gradients)
        clip = np.float32(self.recipe.clip)
        if self._whole_step is not None:
            state = values, self.moments, gradients
            self._whole_step(state, change, self._memory, squares, (clip, np.float32(size)))
            return
        norm = np.sqrt(squares) / np.float32(size)
        scale = np.minimum(1, clip / (norm + np.float32(1e-6))) / np.float32(size)
        self._update(values, self.moments, gradients, change, self._memory, scale)

    def _changes(self, batches: int) -> np.ndarray:
        """Return decay, step size and epsilon for each step of an epoch and each head."""
        if self.steps + batches > len(self._plan):
            self._plan = self._planned(self.steps + AHEAD * batches, batches)
        self.steps += batches
        return self._plan[self.steps - batches : self.steps]

    def _planned(self, steps: int, batches: int) -> np.ndarray:
        recipe, rates = self.recipe, self.rates
        done = np.arange(steps)[:, None]
        warm = max(1, math.floor(batches * recipe.warm_up))
        start = recipe.warm_up_start
        rate = rates.rate * (start + (1 - start) * np.minimum(1.0, done / warm))
        root = np.sqrt(1 - rates.beta2 ** (done + 1))
        move = rate * root / (1 - rates.beta1 ** (done + 1))
        parts = [1 - rate * recipe.weight_decay, move, EPSILON * root]
        return np.stack(parts, axis=1).astype(np.float32)


def _update_numpy(
    weights: np.ndarray,
    moments: np.ndarray,
    gradients: np.ndarray,
    change: np.ndarray,
    memory: np.ndarray,
    scale: np.ndarray,
) -> None:
    """Make an AdamW step and overwrite the gradients."""
    keep1, keep2, add1, add2 = memory[:, :, None]
    by = scale[:, None]
    _move(
        *(weights, moments, gradients, change[:, :, None]),
        memory=(keep1, keep2, add1 * by, add2 * by * by),
    )


def _move(
    weights: np.ndarray, moments: np.ndarray, gradients: np.ndarray, change: Any, memory: Any
) -> None:
    """Make an AdamW step whose factors of new gradients include their scale."""
    (shrink, move, small), (keep1, keep2, add1, add2) = change, memory
    first, second = moments
    first *= keep1
    first += gradients * add1
    second *= keep2
    gradients *= gradients
    gradients *= add2
    second += gradients
    np.sqrt(second, out=gradients)
    gradients += small
    np.divide(first, gradients, out=gradients)
    gradients *= move
    weights *= shrink
    weights -= gradients


#: returns the initial weights of a layer (inputs, outputs)
FirstWeights = Callable[[int, int], np.ndarray]
#: epsilon and momentum of batch normalization
SMALL, MOMENTUM = np.float32(1e-5), np.float32(0.1)


def targets(codes: np.ndarray, classes: int) -> np.ndarray:
    """Return class codes as targets of the network: 0 and 1, or one-hot rows."""
    if classes == 2:
        return codes.astype(np.float32)[None]
    return (np.arange(classes)[:, None] == codes).astype(np.float32)


@cache
def _sigmoid() -> Any:
    from scipy.special import expit

    return expit


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Turn logits into probabilities, in place."""
    if len(logits) == 1:
        sigmoid = _sigmoid()
        return sigmoid(logits, out=logits)
    logits -= logits.max(axis=0)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=0)
    return logits


def losses(logits: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Return the mean cross-entropy of each head; targets may differ between heads.

    >>> losses(np.zeros((1, 1, 3)), np.array([[0.0, 1.0, 1.0]])).round(4).tolist()
    [0.6931]
    """
    wanted = wanted if wanted.ndim == 3 else wanted[:, None]
    if len(logits) == 1:
        z = logits[0]
        whole = np.abs(z)  # log(1 + exp(z)) without overflow
        np.log1p(np.exp(np.negative(whole, out=whole), out=whole), out=whole)
        whole += np.maximum(z, 0)
        whole -= z * wanted[0]
    else:
        top = logits.max(axis=0)
        whole = top + np.log(np.exp(logits - top).sum(axis=0))
        whole -= np.einsum("chn,chn->hn", logits, np.broadcast_to(wanted, logits.shape))
    return np.asarray(whole.sum(axis=-1), dtype=np.float64) / logits.shape[-1]


def above_chance(logits: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the score of each head: MCC, or chance-adjusted macro-F1; negative scores are 0.

    >>> above_chance(np.array([[[2.0, 1.0, -1.0, 3.0]]]), np.array([1, 1, 0, 0])).round(4).tolist()
    [0.5774]
    """
    predicted = (logits[0] > 0).astype(int) if len(logits) == 1 else logits.argmax(axis=0)
    classes = max(2, len(logits))
    return np.array([_above_chance(codes, of_head, classes) for of_head in predicted])


def _above_chance(target: np.ndarray, predicted: np.ndarray, classes: int) -> float:
    table = np.bincount(target * classes + predicted, minlength=classes**2)
    if classes == 2:
        tn, fp, fn, tp = table.tolist()
        spread = (tn + fp) * (fn + tp) * (tn + fn) * (fp + tp)
        return max(0.0, (tn * tp - fp * fn) / math.sqrt(spread)) if spread else 0.0
    table = table.reshape(classes, classes)
    sizes = table.sum(axis=0) + table.sum(axis=1)
    present = sizes > 0
    f1 = float(np.mean(2 * table.diagonal()[present] / sizes[present]))
    return max(0.0, (f1 - 1 / classes) / (1 - 1 / classes))


class Logistic:
    """Logistic heads stacked in one matrix, whose last column is the bias."""

    def __init__(self, width: int, outputs: int, heads: int, first: FirstWeights) -> None:
        self.values = np.zeros((outputs, heads, width + 1), dtype=np.float32)
        self.values[:, :, :-1] = first(width, outputs).T[:, None]
        self.gradients = np.empty_like(self.values)
        self.heads = heads

    def prepare(self, X: np.ndarray) -> np.ndarray:
        """Append a column of ones for the bias."""
        return np.column_stack([X, np.ones(len(X), dtype=np.float32)])

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Return the logits of rows."""
        outputs, heads, width = self.values.shape
        return (self.values.reshape(-1, width) @ X.T).reshape(outputs, heads, len(X))

    def learn(self, X: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Set the gradients of a batch and return its logits."""
        outputs, heads, width = self.values.shape
        if heads == 1:
            logits = self.logits(X)
        else:  # the digits of ``logits``, in less time
            found = X.dot(self.values.reshape(-1, width).T)
            logits = found.T.reshape(outputs, heads, len(X))
        errors = probabilities(logits.copy())
        errors -= wanted[:, None]
        np.dot(errors.reshape(-1, len(X)), X, out=self.gradients.reshape(-1, X.shape[1]))
        return logits


class Layered:
    """A network with hidden layers (linear, batch normalization, ReLU) and a linear output."""

    heads = 1

    def __init__(self, width: int, outputs: int, hidden: Sequence[int], first: FirstWeights):
        weights: list[np.ndarray] = []
        self.running: list[list[np.ndarray]] = []
        for size in hidden:
            ones, zeros = np.ones(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
            weights += [first(width, size), ones, zeros]
            self.running.append([zeros.copy(), ones.copy()])
            width = size
        weights += [first(width, outputs), np.zeros(outputs, dtype=np.float32)]
        self.values = np.concatenate([part.ravel() for part in weights])[None, None]
        self.gradients = np.empty_like(self.values)
        self._shapes = [part.shape for part in weights]
        self.weights, self.slopes = self.parts(self.values), self.parts(self.gradients)

    def parts(self, values: np.ndarray) -> list[np.ndarray]:
        """Return views of all values: linear, gain and shift of each layer, linear and bias."""
        ends = np.cumsum([math.prod(shape) for shape in self._shapes])
        split = np.split(values[0, 0], ends[:-1])
        return [part.reshape(shape) for part, shape in zip(split, self._shapes, strict=True)]

    def prepare(self, X: np.ndarray) -> np.ndarray:
        """Return the rows as a contiguous array."""
        return np.ascontiguousarray(X)

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Return the logits of rows, normalized by the running means and variances."""
        for layer, (mean, variance) in enumerate(self.running):
            linear, gain, shift = self.weights[3 * layer : 3 * layer + 3]
            slope = gain / np.sqrt(variance + SMALL)
            X = np.maximum(X @ (linear * slope) + (shift - mean * slope), 0)
        return (X @ self.weights[-2] + self.weights[-1]).T[:, None]

    def learn(self, X: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Set the gradients of a batch and return its logits."""
        layers = []
        for layer in range(len(self.running)):
            state = self._forward(layer, X)
            layers.append((X, *state))
            X = state[-1]
        logits = (X @ self.weights[-2] + self.weights[-1]).T[:, None]
        errors = probabilities(logits.copy())[:, 0] - wanted
        np.dot(X.T, errors.T, out=self.slopes[-2])
        np.sum(errors, axis=1, out=self.slopes[-1])
        back = np.dot(errors.T, self.weights[-2].T)
        for layer in reversed(range(len(layers))):
            back = self._backward(layer, back, layers[layer])
        return logits

    def _forward(self, layer: int, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        linear, gain, shift = self.weights[3 * layer : 3 * layer + 3]
        normal = X @ linear
        statistics = np.empty((3, len(gain)), dtype=normal.dtype)
        compiled = kernels() if normal.dtype == np.float32 else None
        apply: Any = compiled.normalize if compiled else _normalize_numpy
        out = apply(normal, gain, shift, statistics, SMALL)
        mean, variance, scale = statistics
        running = self.running[layer]
        running[0] += MOMENTUM * (mean - running[0])
        running[1] += MOMENTUM * (variance * np.float32(len(X) / (len(X) - 1)) - running[1])
        return gain * scale, normal, out

    def _backward(self, layer: int, back: np.ndarray, state: tuple[np.ndarray, ...]) -> np.ndarray:
        X, slope, normal, out = state
        to_linear, to_gain, to_shift = self.slopes[3 * layer : 3 * layer + 3]
        compiled = kernels() if back.dtype == np.float32 else None
        apply: Any = compiled.denormalize if compiled else _denormalize_numpy
        apply(back, normal, out, slope, to_gain, to_shift)
        np.dot(X.T, back, out=to_linear)
        return back @ self.weights[3 * layer].T if layer else back


def _normalize_numpy(
    normal: np.ndarray, gain: np.ndarray, shift: np.ndarray, statistics: np.ndarray, small: Any
) -> np.ndarray:
    mean, variance, scale = statistics
    np.mean(normal, axis=0, out=mean)
    normal -= mean
    np.einsum("ij,ij->j", normal, normal, out=variance)
    variance /= len(normal)
    np.divide(1, np.sqrt(variance + small), out=scale)
    normal *= scale
    out = normal * gain
    out += shift
    return np.maximum(out, 0, out=out)


def _denormalize_numpy(
    back: np.ndarray,
    normal: np.ndarray,
    out: np.ndarray,
    slope: np.ndarray,
    to_gain: np.ndarray,
    to_shift: np.ndarray,
) -> None:
    """Backpropagate through a layer, in place; the batch mean depends on every row."""
    back *= out > 0
    np.sum(back, axis=0, out=to_shift)
    np.einsum("ij,ij->j", back, normal, out=to_gain)
    back -= to_shift / np.float32(len(back))
    back -= normal * (to_gain / np.float32(len(back)))
    back *= slope
