"""Inner loops of training, compiled if numba is installed (``pip install "karat[fast]"``).

They compute the same as the NumPy code of ``descent`` and ``networks`` with fewer passes over
memory. The order of summation differs, and so do the last digits.
"""

# mypy: disable-error-code="no-untyped-def"
from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

F = np.float32
#: number of rows that ``_epoch`` processes at a time
BLOCK = 4


class Kernels(NamedTuple):
    """Compiled loops: epoch of one logistic head, clipping, step, layer forward and backward."""

    epoch: Callable[..., None]
    scales: Callable[..., np.ndarray]
    update: Callable[..., None]
    normalize: Callable[..., np.ndarray]
    denormalize: Callable[..., None]


@cache
def kernels() -> Kernels | None:
    """Return the compiled loops, or None without numba."""
    if find_spec("numba") is None:
        return None
    from numba import njit

    options: dict[str, Any] = {"fastmath": {"reassoc", "contract", "arcp"}, "error_model": "numpy"}
    loops = (_epoch, _scales, _update, _normalize, _denormalize)
    try:
        return Kernels(*(njit(cache=True, **options)(loop) for loop in loops))
    except RuntimeError:  # numba cannot write its cache
        return Kernels(*(njit(**options)(loop) for loop in loops))


def _scales(gradients, size, clip):
    """Return, per head, the factor that turns a batch sum into a mean of norm ``clip`` or less."""
    heads = gradients[0].shape[1]
    scales = np.empty(heads, F)
    for head in range(heads):
        total = F(0)
        for gradient in gradients:
            for part in range(gradient.shape[0]):
                values = gradient[part, head]
                for j in range(len(values)):
                    total += values[j] * values[j]
        norm = np.sqrt(total) / size
        scales[head] = min(F(1), clip / (norm + F(1e-6))) / size
    return scales


def _update(weights, moments, gradients, change, memory, scale):
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


def _epoch(X, wanted, order, changes, w, moments, memory, clip, logits):
    """Train one head with one output for an epoch, four rows at a time."""
    size = len(order) // len(changes)
    g, wrong = np.empty_like(w), np.empty(BLOCK, F)
    first, second = moments[0], moments[1]
    one, per = F(1), F(1) / F(size)
    for step in range(len(changes)):
        g[:] = 0
        for at in range(step * size, (step + 1) * size, BLOCK):
            a, b, c, d = X[order[at]], X[order[at + 1]], X[order[at + 2]], X[order[at + 3]]
            za, zb, zc, zd = F(0), F(0), F(0), F(0)
            for j in range(len(w)):
                za, zb = za + w[j] * a[j], zb + w[j] * b[j]
                zc, zd = zc + w[j] * c[j], zd + w[j] * d[j]
            wrong[0], wrong[1], wrong[2], wrong[3] = za, zb, zc, zd
            for row in range(BLOCK):
                logits[at + row] = wrong[row]
                wrong[row] = one / (one + np.exp(-wrong[row])) - wanted[at + row]
            za, zb, zc, zd = wrong[0], wrong[1], wrong[2], wrong[3]
            for j in range(len(w)):
                g[j] += za * a[j] + zb * b[j] + zc * c[j] + zd * d[j]
        norm = np.sqrt(np.sum(g * g)) * per
        scale = min(one, clip / (norm + F(1e-6))) * per
        add1, add2 = memory[2] * scale, memory[3] * scale * scale
        shrink, move, small = changes[step]
        for j in range(len(w)):
            first[j] = m = memory[0] * first[j] + add1 * g[j]
            second[j] = v = memory[1] * second[j] + add2 * g[j] * g[j]
            w[j] = w[j] * shrink - move * m / (np.sqrt(v) + small)


def _normalize(normal, gain, shift, statistics, small):
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


def _denormalize(back, normal, out, slope, to_gain, to_shift):
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
