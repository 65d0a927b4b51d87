"""Items and fits together: numbers by hand, and error rates with known truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.stats.learner_tests import (
    FitNoise,
    SeedNoise,
    moderated,
    noise_of_folds,
    noise_of_seeds,
    wider,
)


def test_folds_of_one_repeat_have_the_variance_of_their_mean():
    noise = noise_of_folds([[1.0, 2.0, 3.0, 4.0]], [0] * 4, ratio=0.25)
    assert noise.variance[0] == pytest.approx(5 / 3 / 4) and noise.freedom[0] == 3
    # a fold that failed is left out
    failed = noise_of_folds([[1.0, np.nan, 3.0]], [0] * 3, ratio=0.25)
    assert failed.variance[0] == pytest.approx(2.0 / 2) and failed.freedom[0] == 1
    assert np.isnan(noise_of_folds([[1.0]], [0], ratio=0.25).variance[0])


def test_folds_of_several_repeats_share_rows():
    differences = np.arange(8.0)[None]
    noise = noise_of_folds(differences, [0] * 4 + [1] * 4, ratio=0.25)
    assert noise.variance[0] == pytest.approx(6.0 * (1 / 8 + 0.25)) and noise.freedom[0] == 7


def test_p_is_that_of_a_t_test_with_two_more_degrees_of_freedom():
    noise = FitNoise(np.array([0.04, 0.0]), np.array([4.0, 4.0]))
    p = noise.p_values(np.array([0.6, 0.6]))
    assert p[0] == pytest.approx(2 * stats.t.sf(3.0, 6)) and np.isnan(p[1])


def test_seeds_add_what_the_items_do_not_show():
    rng = np.random.default_rng(0)
    items = rng.normal(size=400)
    shift = np.array([-0.3, 0.0, 0.3])
    one = SeedNoise.of(items + shift[:, None])  # the seed moves all items alike
    assert one.variance == pytest.approx(0.09 / 3) and one.of_items == pytest.approx(0.0)
    once = SeedNoise.of(items[None])
    assert (once.variance, once.freedom) == (0.0, 0)
    pairs = (np.array([0, 1]), np.array([1, 1]))
    noise = noise_of_seeds([one, once], pairs, np.array([0.01, 0.01]))
    assert noise.variance[0] == pytest.approx(0.01 + 0.03)
    # two degrees of freedom of the seeds, of which the items have a part: 0.04² / (0.03² / 2)
    assert noise.freedom[0] == pytest.approx(0.04**2 / (0.03**2 / 2))
    assert np.isnan(noise.variance[1])  # neither was fitted with several seeds


def test_seeds_that_only_move_single_items_add_nothing():
    rng = np.random.default_rng(1)
    found = [SeedNoise.of(rng.normal(size=(3, 300))) for _ in range(200)]
    # all of the variance over seeds comes from the items
    assert np.mean([each.variance for each in found]) == pytest.approx(1 / 900, rel=0.15)
    assert np.mean([each.of_items for each in found]) == pytest.approx(1 / 900, rel=0.05)


@given(st.integers(3, 9), st.integers(2, 10))
def test_equal_ratios_are_not_changed_by_moderation(models, folds):
    pairs = models * (models - 1) // 2
    of_items = np.linspace(1.0, 2.0, pairs)
    noise = FitNoise(2.5 * of_items, np.full(pairs, folds - 1.0))
    found = moderated(noise, of_items, models)
    assert found.variance == pytest.approx(noise.variance)
    assert found.freedom == pytest.approx((models - 1) * (folds - 1))


def test_two_models_are_not_moderated_and_equal_pairs_stay_out():
    noise = FitNoise(np.array([3.0]), np.array([4.0]))
    assert moderated(noise, np.ones(1), models=2) is noise
    found = moderated(
        FitNoise(np.array([0.0, 2.0, 2.0]), np.full(3, 4.0)), np.array([0, 1, 1.0]), 3
    )
    assert found.variance[1:] == pytest.approx(2.0)


def test_the_wider_interval_decides():
    of_items, noise = (
        np.array([1.0, 1.0, 1.0]),
        FitNoise(np.array([0.2, 4.0, np.nan]), np.array([4.0, 4.0, np.nan])),
    )
    error, freedom = wider(of_items, 101, noise)
    assert error.tolist() == [1.0, 2.0, 1.0] and freedom.tolist() == [100.0, 6.0, 100.0]


@pytest.mark.parametrize("training", [0.0, 0.5, 1.0, 2.0, 4.0])
def test_two_equal_learners_are_rarely_separated(training):
    """Item noise of variance 1, and training noise of this variance, on five folds."""
    rng = np.random.default_rng(5)
    boards = 4000
    folds = rng.normal(0, np.sqrt(5 * (1 + training)), (boards, 5))
    by_fits = noise_of_folds(folds, [0] * 5, ratio=0.25).p_values(folds.mean(axis=1))
    by_items = 2 * stats.norm.sf(np.abs(folds.mean(axis=1)))
    false = np.mean(np.maximum(by_fits, by_items) < 0.05)
    assert false <= 0.075
    if training >= 1:  # the test on items alone
        assert np.mean(by_items < 0.05) > 0.15


def test_stable_learners_keep_two_thirds_of_the_power():
    rng = np.random.default_rng(6)
    folds = rng.normal(1.96, np.sqrt(5), (8000, 5))
    by_fits = noise_of_folds(folds, [0] * 5, ratio=0.25).p_values(folds.mean(axis=1))
    by_items = 2 * stats.norm.sf(np.abs(folds.mean(axis=1)))
    power = np.mean(np.maximum(by_fits, by_items) < 0.05)
    assert power >= 0.64 * np.mean(by_items < 0.05)
