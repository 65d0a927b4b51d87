"""AdamW on mini-batches with warm-up, clipped gradients, and one learning rate per head."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from karat.heads.compiled import BLOCK, kernels

EPSILON = 1e-8
#: number of epochs for which the step sizes are computed at once
AHEAD = 25


class Network(Protocol):
    """A trainable network: weights, their gradients after ``learn``, and logits."""

    heads: int
    weights: list[np.ndarray]
    gradients: list[np.ndarray]

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
    """The training state of a network.

    Weights, gradients and moments are viewed as (outer, heads, inner).
    """

    def __init__(self, network: Network, rates: Rates, recipe: Recipe) -> None:
        self.network = network
        self.recipe = recipe
        self.rates = rates
        self.steps = 0
        heads = network.heads
        self.weights = [
            part if heads > 1 or part.ndim == 3 else part.reshape(1, 1, -1)
            for part in network.weights
        ]
        self.moments = [np.zeros((2, *part.shape), dtype=np.float32) for part in self.weights]
        self.scratch = [np.empty((2, *part.shape), dtype=np.float32) for part in self.weights]
        network.gradients = [
            scratch[0].reshape(part.shape)
            for scratch, part in zip(self.scratch, network.weights, strict=True)
        ]
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
        single = len(self.weights) == 1 and self.weights[0].shape[:2] == (1, 1)
        if kernels() and single and size % BLOCK == 0:
            return self._compiled_epoch(X, wanted, order, changes)
        logits = np.empty((len(wanted), 1, len(order)), dtype=np.float32)
        rows = np.empty((size, X.shape[1]), dtype=np.float32)
        for number, change in enumerate(changes):
            batch = slice(number * size, (number + 1) * size)
            np.take(X, order[batch], axis=0, out=rows, mode="clip")
            logits[:, :, batch] = self.network.learn(rows, wanted[:, batch])[:, :1]
            self._step(change, size)
        return logits

    def _compiled_epoch(
        self, X: np.ndarray, wanted: np.ndarray, order: np.ndarray, changes: np.ndarray
    ) -> np.ndarray:
        compiled = kernels()
        assert compiled is not None
        logits = np.empty(len(order), dtype=np.float32)
        state = self.weights[0][0, 0], self.moments[0][:, 0, 0], self._memory[:, 0]
        clip = np.float32(self.recipe.clip)
        compiled.epoch(X, wanted[0], order, changes[:, :, 0], *state, clip, logits)
        return logits[None, None]

    def _step(self, change: np.ndarray, size: int) -> None:
        layers = zip(self.weights, self.moments, self.scratch, strict=True)
        if compiled := kernels():
            gradients = tuple(part[0] for part in self.scratch)
            scale = compiled.scales(gradients, np.float32(size), np.float32(self.recipe.clip))
            for weights, moments, scratch in layers:
                compiled.update(weights, moments, scratch[0], change, self._memory, scale)
            return
        for part in self.scratch:
            np.multiply(part[0], part[0], out=part[1])
        total = sum(part[1].sum(axis=(0, 2)) for part in self.scratch)
        scale = np.minimum(1, self.recipe.clip / (np.sqrt(total) / size + 1e-6)) / size
        memory = self._memory.reshape(2, 2, 1, -1, 1).copy()
        memory[1] *= np.stack([scale, scale * scale])[:, None, :, None]
        for weights, moments, scratch in layers:
            _update(weights, moments, scratch, change[:, None, :, None], memory)

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


def _update(
    weights: np.ndarray,
    moments: np.ndarray,
    scratch: np.ndarray,
    change: np.ndarray,
    memory: np.ndarray,
) -> None:
    """Make an AdamW step from gradients and their squares, both overwritten."""
    keep, add = memory
    shrink, move, small = change
    moments *= keep
    scratch *= add
    moments += scratch
    by = np.sqrt(moments[1], out=scratch[0])
    by += small
    np.divide(moments[0], by, out=by)
    by *= move
    weights *= shrink
    weights -= by
