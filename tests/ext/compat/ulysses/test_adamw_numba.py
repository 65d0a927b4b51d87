"""The compiled loops of AdamW, with numbers worked out by hand."""

import numpy as np
import pytest

numba = pytest.importorskip("numba")

from karat.ext.compat.ulysses import adamw_numba as loops  # noqa: E402


def floats(*values):
    return np.array(values, dtype=np.float32)


def epoch(X, wanted, clip=10.0):
    """One step over four rows with rate 0.1, no decay and betas of 0: the sign of the gradient."""
    outputs, width = len(wanted), X.shape[1]
    weights = np.zeros((outputs, width), dtype=np.float32)
    moments = np.zeros((2, outputs, width), dtype=np.float32)
    logits = np.full((outputs, len(X)), 9, dtype=np.float32)
    changes, memory = floats([1, 0.1, 0]), floats(0, 0, 1, 1)
    order = np.arange(len(X))
    clip = np.float32(clip)
    loops.epoch(X, wanted, order, changes, weights, moments, memory, clip, logits)
    return weights, moments, logits


def test_epoch_of_two_classes():
    # probabilities are 0.5, so that the errors are -0.5 for the first two rows, 0.5 for the others
    X = floats([4, 0], [0, 2], [0, 4], [0, 4])
    weights, moments, logits = epoch(X, floats([1, 1, 0, 0]))
    assert np.array_equal(logits, np.zeros((1, 4)))
    assert np.allclose(moments[0], [[-0.5, 0.75]])  # mean of error times row
    assert np.allclose(moments[1], [[0.25, 0.5625]])
    assert np.allclose(weights, [[0.1, -0.1]])


def test_epoch_of_three_classes():
    X = floats([3], [0], [0], [6])
    wanted = floats([1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 0, 1])
    weights, moments, _ = epoch(X, wanted)
    # probabilities are 1/3: (-2/3 · 3 + 1/3 · 6) / 4, (3 + 6) / 12, (1/3 · 3 - 2/3 · 6) / 4
    assert np.allclose(moments[0].ravel(), [0, 0.75, -0.75], atol=1e-7)
    assert np.allclose(weights[1:].ravel(), [-0.1, 0.1])


def test_gradients_are_clipped_by_their_norm():
    X = floats([12, 0], [0, 16], [0, 0], [0, 0])
    _, moments, _ = epoch(X, floats([0, 0, 0, 0]), clip=1.0)
    assert np.allclose(moments[0], [[0.6, 0.8]])  # of 1.5 and 2, whose norm is 2.5


def test_large_logits_do_not_overflow():
    X = floats([1], [1], [1], [1])
    logits, moments = np.empty((1, 4), np.float32), np.zeros((2, 1, 1), np.float32)
    for weight, gradient in ((-200.0, 0.0), (200.0, 1.0)):
        weights = floats([weight])
        changes, memory = floats([1, 0, 1]), floats(0, 0, 1, 1)
        wanted = floats([0, 0, 0, 0])
        given = weights, moments, memory, np.float32(10), logits
        loops.epoch(X, wanted, np.arange(4), changes, *given)
        assert moments[0, 0, 0] == gradient


def test_normalize_and_denormalize():
    normal, running = floats([1, 0], [3, 0]), floats([0, 10], [1, 1])
    out, statistics = np.empty_like(normal), np.empty((2, 2), np.float32)
    loops.normalize_columns(
        normal, out, floats([2, 1], [-1, 1]), statistics, running, np.float32(2)
    )
    assert statistics[0].tolist() == [2, 0]
    assert np.allclose(statistics[1], [1, 1e5**0.5])  # of the variances 1 and 0, plus 1e-5
    assert np.allclose(
        running, [[0.2, 9], [1.1, 0.9]]
    )  # a tenth of the mean and of twice the variance
    assert np.allclose(normal[:, 0], [-1, 1]) and np.allclose(out[:, 0], [0, 1], atol=2e-5)
    normal, out = floats([-1], [1]), floats([0], [1])
    back, to_gain_shift = floats([5], [4]), np.empty((2, 1), np.float32)
    loops.denormalize(back, normal, out, floats(2), *to_gain_shift)
    # the first row is cut off by ReLU; what is left is explained by the mean and the spread
    assert to_gain_shift.tolist() == [[4], [4]]
    assert back.ravel().tolist() == [0, 0]
