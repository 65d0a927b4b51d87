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


def test_the_limit_is_that_of_shared_rows_with_any_number_of_models(limit):
    shift, pooled = limit.shift_of(0.5), 7 * (limit.FOLDS - 1)
    shared = [limit.largest_power(shift, limit.SHARED_ONLY, df) for df in (4, pooled)]
    assert shared[0] == pytest.approx(shared[1], abs=0.01) and shared[0] < 0.36
    # where only seeds add noise, pairs together show that these learners have none
    one, eight = (limit.largest_power(shift, limit.SEEDS_ONLY, df) for df in (4, pooled))
    assert shared[0] < one < eight


@pytest.mark.parametrize("repeats", [2, 10])
@pytest.mark.parametrize("common", [0.0, 0.2])
def test_repeats_rarely_separate_equal_learners(limit, repeats, common):
    rng = np.random.default_rng(2)
    for training in (0, 1, 4, 16):
        assert limit.separated_repeats(rng, repeats, training, common)[0] <= 0.065


@pytest.mark.parametrize(("repeats", "share"), [(2, 0.7), (10, 0.85)])
def test_repeats_keep_most_of_the_power(limit, repeats, share):
    rng = np.random.default_rng(3)
    for power in limit.POWERS:
        ours, alone = limit.separated_repeats(rng, repeats, 0, 0, limit.shift_of(power))
        assert alone == pytest.approx(power, abs=0.015) and ours >= share * alone
