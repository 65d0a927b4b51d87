"""Small networks with explicit gradients: stacked logistic heads, and hidden layers.

Logits have the shape (outputs, heads, rows), targets (outputs, rows). Two classes need one output.
Gradients are those of the summed loss.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from karat.heads.compiled import kernels

#: returns the initial weights of a layer (inputs, outputs)
FirstWeights = Callable[[int, int], np.ndarray]
#: epsilon and momentum of batch normalization
SMALL, MOMENTUM = np.float32(1e-5), np.float32(0.1)


def targets(codes: np.ndarray, classes: int) -> np.ndarray:
    """Return class codes as targets of the network: 0 and 1, or one-hot rows."""
    if classes == 2:
        return codes.astype(np.float32)[None]
    return (np.arange(classes)[:, None] == codes).astype(np.float32)


def chances(logits: np.ndarray) -> np.ndarray:
    """Turn logits into probabilities, in place."""
    if len(logits) == 1:
        from scipy.special import expit

        return expit(logits, out=logits)
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
        weights = np.zeros((outputs, heads, width + 1), dtype=np.float32)
        weights[:, :, :-1] = first(width, outputs).T[:, None]
        self.weights = [weights]
        self.gradients = [np.empty_like(weights)]
        self.heads = heads

    def prepare(self, X: np.ndarray) -> np.ndarray:
        """Append a column of ones for the bias."""
        return np.column_stack([X, np.ones(len(X), dtype=np.float32)])

    def logits(self, X: np.ndarray) -> np.ndarray:
        """Return the logits of rows."""
        (weights,) = self.weights
        outputs, heads, width = weights.shape
        return (weights.reshape(-1, width) @ X.T).reshape(outputs, heads, len(X))

    def learn(self, X: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Set the gradients of a batch and return its logits."""
        logits = self.logits(X)
        errors = chances(logits.copy())
        errors -= wanted[:, None]
        np.dot(errors.reshape(-1, len(X)), X, out=self.gradients[0].reshape(-1, X.shape[1]))
        return logits


class Layered:
    """A network with hidden layers (linear, batch normalization, ReLU) and a linear output."""

    heads = 1

    def __init__(self, width: int, outputs: int, hidden: Sequence[int], first: FirstWeights):
        self.weights: list[np.ndarray] = []
        self.running: list[list[np.ndarray]] = []
        for size in hidden:
            ones, zeros = np.ones(size, dtype=np.float32), np.zeros(size, dtype=np.float32)
            self.weights += [first(width, size), ones, zeros]
            self.running.append([zeros.copy(), ones.copy()])
            width = size
        self.weights += [first(width, outputs), np.zeros(outputs, dtype=np.float32)]
        self.gradients = [np.empty_like(part) for part in self.weights]

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
        errors = chances(logits.copy())[:, 0] - wanted
        np.dot(X.T, errors.T, out=self.gradients[-2])
        np.sum(errors, axis=1, out=self.gradients[-1])
        back = errors.T @ self.weights[-2].T
        for layer in reversed(range(len(layers))):
            back = self._backward(layer, back, layers[layer])
        return logits

    def _forward(self, layer: int, X: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        linear, gain, shift = self.weights[3 * layer : 3 * layer + 3]
        compiled = kernels()
        normal = X @ linear
        statistics = np.empty((3, len(gain)), dtype=normal.dtype)
        apply = compiled.normalize if compiled and normal.dtype == np.float32 else _normalize
        out = apply(normal, gain, shift, statistics, SMALL)
        mean, variance, scale = statistics
        running = self.running[layer]
        running[0] += MOMENTUM * (mean - running[0])
        running[1] += MOMENTUM * (variance * np.float32(len(X) / (len(X) - 1)) - running[1])
        return gain * scale, normal, out

    def _backward(self, layer: int, back: np.ndarray, state: tuple[np.ndarray, ...]) -> np.ndarray:
        X, slope, normal, out = state
        to_linear, to_gain, to_shift = self.gradients[3 * layer : 3 * layer + 3]
        compiled = kernels()
        apply = compiled.denormalize if compiled and back.dtype == np.float32 else _denormalize
        apply(back, normal, out, slope, to_gain, to_shift)
        np.dot(X.T, back, out=to_linear)
        return back @ self.weights[3 * layer].T if layer else back


def _normalize(
    normal: np.ndarray, gain: np.ndarray, shift: np.ndarray, statistics: np.ndarray, small: Any
) -> np.ndarray:
    """Normalize columns in place; return them scaled, shifted and rectified."""
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


def _denormalize(
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
