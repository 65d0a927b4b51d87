"""A small version of benchmarks/learner_limit.py: the power that any test of learners may have."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def limit():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import learner_limit
    finally:
        sys.path.remove(str(BENCHMARKS))
    return learner_limit


def test_equal_learners_are_rarely_separated_whatever_training_adds(limit):
    rng = np.random.default_rng(0)
    shares = [limit.separated(rng, ratio, ratio, 0.0) for ratio in limit.SEEDS]
    shares.append(limit.separated(rng, 1, limit.SHARED, 0.0))
    assert max(shares) <= limit.ALLOWED


def test_the_power_is_near_that_of_the_best_test(limit):
    rng = np.random.default_rng(1)
    for power in limit.POWERS:
        shift = limit.shift_of(power)
        ours, best = limit.separated(rng, 1, 1, shift), limit.largest_power(shift)
        assert 0.85 * best < ours < best < power


def test_the_cells_hold_all_boards(limit):
    assert limit.chances(3, 3).sum() == pytest.approx(1)
    # the differences that items alone separate are half of all
    beyond = limit.chances(1, 1, limit.shift_of(0.5)).reshape(len(limit.RATIOS) - 1, -1)
    sizes = limit.SIZES[:-1]
    assert beyond[:, sizes >= 1.96].sum() == pytest.approx(0.5, abs=0.02)
