"""Numba loops for the training of the head AdamW (``pip install "karat[fast]"``).

They compute the same as the NumPy code of ``adamw`` with fewer passes over memory.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"
from __future__ import annotations

import numpy as np

from karat.ext.compat.ulysses.adamw import BLOCK, MOMENTUM, SMALL
from karat.probes.compiled_numba import as_numpy, compiled, inlined

F = np.float32


@inlined
def _update(weights, moments, gradients, change, memory, scale):
    """Make an AdamW step; ``change``, ``memory`` and ``scale`` have one value per head."""
    for head in range(len(weights)):
        w, g, first, second = weights[head], gradients[head], moments[0, head], moments[1, head]
        shrink, move, small = change[0, head], change[1, head], change[2, head]
        keep1, keep2 = memory[0, head], memory[1, head]
        by = scale[head]
        add1, add2 = memory[2, head] * by, memory[3, head] * by * by
        for j in range(len(w)):
            m = first[j] * keep1 + g[j] * add1
            v = second[j] * keep2 + g[j] * g[j] * add2
            first[j] = m
            second[j] = v
            w[j] = w[j] * shrink - m / (np.sqrt(v) + small) * move


# two functions: numba's cache does not distinguish the options of one function
@compiled
def update(weights, moments, gradients, change, memory, scale):
    """Make an AdamW step with fewer roundings."""
    _update(weights, moments, gradients, change, memory, scale)


@as_numpy
def update_as_numpy(weights, moments, gradients, change, memory, scale):
    """Make an AdamW step with the digits of NumPy."""
    _update(weights, moments, gradients, change, memory, scale)


@compiled
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


@compiled
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


# explicit loops instead of slices: they take less time to compile


@compiled
def normalize_columns(normal, out, gain_shift, statistics, running, unbiased):
    """Normalize columns in place, and scale, shift and rectify them; update the running statistics.

    The means and factors are written to ``statistics``.
    """
    rows, columns = normal.shape
    mean, scale, gain, shift = statistics[0], statistics[1], gain_shift[0], gain_shift[1]
    for j in range(columns):
        mean[j] = scale[j] = F(0)
    for i in range(rows):
        for j in range(columns):
            mean[j] += normal[i, j]
    for j in range(columns):
        mean[j] /= F(rows)
    for i in range(rows):
        for j in range(columns):
            normal[i, j] -= mean[j]
            scale[j] += normal[i, j] * normal[i, j]
    for j in range(columns):
        variance = scale[j] / F(rows)
        running[0, j] += MOMENTUM * (mean[j] - running[0, j])
        running[1, j] += MOMENTUM * (variance * unbiased - running[1, j])
        scale[j] = F(1) / np.sqrt(variance + SMALL)
    for i in range(rows):
        for j in range(columns):
            normal[i, j] *= scale[j]
            out[i, j] = max(normal[i, j] * gain[j] + shift[j], F(0))


@compiled
def denormalize(back, normal, out, slope, to_gain, to_shift):
    """Backpropagate through a layer, in place; ``slope`` is gain times scale.

    Two rows of one array instead of the last two parameters would keep it from being vectorized.
    """
    rows, columns = back.shape
    for j in range(columns):
        to_gain[j] = to_shift[j] = F(0)
    for i in range(rows):
        for j in range(columns):
            # without a branch, so that it is vectorized
            passed = back[i, j] if out[i, j] > F(0) else F(0)
            back[i, j] = passed
            to_shift[j] += passed
            to_gain[j] += passed * normal[i, j]
    per = F(1) / F(rows)
    for i in range(rows):
        for j in range(columns):
            rest = back[i, j] - per * (to_shift[j] + normal[i, j] * to_gain[j])
            back[i, j] = rest * slope[j]
