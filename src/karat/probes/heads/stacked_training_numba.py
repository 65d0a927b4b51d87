"""Numba loops for the training of heads (``pip install "karat[fast]"``).

They compute the same as the NumPy code of ``stacked_training`` with fewer passes over memory.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from karat.probes.heads.stacked_training import BLOCK

F = np.float32


def _compiled(function: Any, fast: Any = frozenset({"reassoc", "contract", "arcp"})) -> Any:
    options: dict[str, Any] = {"fastmath": set(fast), "error_model": "numpy"}
    try:
        return njit(cache=True, **options)(function)
    except RuntimeError:  # numba finds no writable cache folder
        return njit(**options)(function)


def _as_numpy(function: Any) -> Any:
    """Compile a function so that it rounds as NumPy does."""
    return _compiled(function, ())


@_compiled
def update(weights, moments, gradients, change, memory, scale):
    """Make an AdamW step; ``change``, ``memory`` and ``scale`` have one value per head."""
    for part in range(weights.shape[0]):
        for head in range(weights.shape[1]):
            w, g = weights[part, head], gradients[part, head]
            first, second = moments[0, part, head], moments[1, part, head]
            shrink, move, small = change[0, head], change[1, head], change[2, head]
            keep1, keep2 = memory[0, head], memory[1, head]
            by = scale[head]
            add1, add2 = memory[2, head] * by, memory[3, head] * by * by
            for j in range(w.shape[0]):
                m = keep1 * first[j] + add1 * g[j]
                v = keep2 * second[j] + add2 * g[j] * g[j]
                first[j] = m
                second[j] = v
                w[j] = w[j] * shrink - move * m / (np.sqrt(v) + small)


@_as_numpy
def step(state, change, memory, squares, limits):
    """Make the step of ``Descent._step`` with the same digits; ``squares`` are sums per head."""
    (weights, moments, gradients), (clip, size) = state, limits
    for part in range(weights.shape[0]):
        for head in range(weights.shape[1]):
            w, g = weights[part, head], gradients[part, head]
            first, second = moments[0, part, head], moments[1, part, head]
            shrink, move, small = change[0, head], change[1, head], change[2, head]
            keep1, keep2 = memory[0, head], memory[1, head]
            norm = np.sqrt(squares[head]) / size
            by = min(F(1), clip / (norm + F(1e-6))) / size
            add1, add2 = memory[2, head] * by, memory[3, head] * by * by
            for j in range(w.shape[0]):
                m = first[j] * keep1 + g[j] * add1
                v = second[j] * keep2 + g[j] * g[j] * add2
                first[j] = m
                second[j] = v
                w[j] = w[j] * shrink - m / (np.sqrt(v) + small) * move


@_as_numpy
def move(weights, moments, gradients, change, memory):
    """Make the AdamW step of ``_move`` for one head, with the same digits."""
    shrink, by, small = F(change[0]), F(change[1]), F(change[2])
    keep1, keep2, add1, add2 = F(memory[0]), F(memory[1]), F(memory[2]), F(memory[3])
    for part in range(weights.shape[0]):
        w, g, first, second = weights[part], gradients[part], moments[0, part], moments[1, part]
        for j in range(w.shape[0]):
            m = first[j] * keep1 + g[j] * add1
            v = second[j] * keep2 + g[j] * g[j] * add2
            first[j] = m
            second[j] = v
            w[j] = w[j] * shrink - m / (np.sqrt(v) + small) * by


@_compiled
def _to_errors(wrong, wanted, at, logits):
    """Record logits, and turn them into probabilities minus targets, in place."""
    outputs, rows = wrong.shape
    for row in range(rows):
        # one output is the logit of the second class; that of the first is 0
        top = max(wrong[0, row], F(0)) if outputs == 1 else wrong[0, row]
        for k in range(outputs):
            logits[k, at + row] = wrong[k, row]
            top = max(top, wrong[k, row])
        total = np.exp(-top) if outputs == 1 else F(0)
        for k in range(outputs):
            wrong[k, row] = np.exp(wrong[k, row] - top)
            total += wrong[k, row]
        for k in range(outputs):
            wrong[k, row] = wrong[k, row] / total - wanted[k, at + row]


@_compiled
def epoch(X, wanted, order, changes, w, moments, memory, clip, logits):
    """Train one head for an epoch, four rows at a time."""
    (outputs, width), size = w.shape, len(order) // len(changes)
    g, wrong = np.empty((outputs, width), F), np.empty((outputs, BLOCK), F)
    for step in range(len(changes)):
        g[:] = 0
        for at in range(step * size, (step + 1) * size, BLOCK):
            a, b, c, d = order[at], order[at + 1], order[at + 2], order[at + 3]
            for k in range(outputs):
                za = zb = zc = zd = F(0)
                for j in range(width):
                    za, zb = za + w[k, j] * X[a, j], zb + w[k, j] * X[b, j]
                    zc, zd = zc + w[k, j] * X[c, j], zd + w[k, j] * X[d, j]
                wrong[k, 0], wrong[k, 1], wrong[k, 2], wrong[k, 3] = za, zb, zc, zd
            _to_errors(wrong, wanted, at, logits)
            for k in range(outputs):
                za, zb, zc, zd = wrong[k, 0], wrong[k, 1], wrong[k, 2], wrong[k, 3]
                for j in range(width):
                    g[k, j] += za * X[a, j] + zb * X[b, j] + zc * X[c, j] + zd * X[d, j]
        total = F(0)
        for k in range(outputs):
            for j in range(width):
                total += g[k, j] * g[k, j]
        scale = min(F(1), clip / (np.sqrt(total) / F(size) + F(1e-6))) / F(size)
        add1, add2 = memory[2] * scale, memory[3] * scale * scale
        shrink, move, small = changes[step, 0], changes[step, 1], changes[step, 2]
        for k in range(outputs):
            for j in range(width):
                m = memory[0] * moments[0, k, j] + add1 * g[k, j]
                v = memory[1] * moments[1, k, j] + add2 * g[k, j] * g[k, j]
                moments[0, k, j], moments[1, k, j] = m, v
                w[k, j] = w[k, j] * shrink - move * m / (np.sqrt(v) + small)


@_compiled
def shuffle(order, steps):
    """Swap each place of the order with the one that many steps after it."""
    for place in range(len(steps)):
        other = place + steps[place]
        held = order[place]
        order[place] = order[other]
        order[other] = held


@_compiled
def normalize(normal, gain, shift, statistics, small):
    """Normalize columns in place; return them scaled, shifted and rectified.

    The means, variances and factors are written to ``statistics``.
    """
    rows, columns = normal.shape
    mean, variance, scale = statistics[0], statistics[1], statistics[2]
    mean[:] = 0
    variance[:] = 0
    for i in range(rows):
        for j in range(columns):
            mean[j] += normal[i, j]
    for j in range(columns):
        mean[j] /= F(rows)
    for i in range(rows):
        for j in range(columns):
            normal[i, j] -= mean[j]
            variance[j] += normal[i, j] * normal[i, j]
    for j in range(columns):
        variance[j] /= F(rows)
        scale[j] = F(1) / np.sqrt(variance[j] + small)
    out = np.empty_like(normal)
    for i in range(rows):
        for j in range(columns):
            normal[i, j] *= scale[j]
            out[i, j] = max(normal[i, j] * gain[j] + shift[j], F(0))
    return out


@_compiled
def denormalize(back, normal, out, slope, to_gain, to_shift):
    """Backpropagate through a layer, in place; ``slope`` is gain times scale."""
    rows, columns = back.shape
    to_gain[:] = 0
    to_shift[:] = 0
    for i in range(rows):
        for j in range(columns):
            if out[i, j] <= 0:
                back[i, j] = 0
            to_shift[j] += back[i, j]
            to_gain[j] += back[i, j] * normal[i, j]
    per = F(1) / F(rows)
    for i in range(rows):
        for j in range(columns):
            rest = back[i, j] - per * (to_shift[j] + normal[i, j] * to_gain[j])
            back[i, j] = rest * slope[j]
