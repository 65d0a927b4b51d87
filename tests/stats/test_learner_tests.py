"""Items and fits together: numbers by hand, and error rates with known truth."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.analysis.item_tests import _by_items, _item_statistics
from karat.stats.learner_tests import (
    FitNoise,
    SeedNoise,
    moderated,
    noise_of_folds,
    noise_of_seeds,
    wider,
    with_shared_rows,
)
from karat.stats.paired_items import PairSums

#: variance of items of one pair
ITEMS = np.array([0.5])


def test_folds_of_one_repeat_have_the_variance_of_their_mean():
    noise = noise_of_folds([[1.0, 2.0, 3.0, 4.0]], [0] * 4, 0.25, ITEMS)
    assert noise.variance[0] == pytest.approx(5 / 3 / 4) and noise.freedom[0] == 3
    # a fold that failed is left out
    failed = noise_of_folds([[1.0, np.nan, 3.0]], [0] * 3, 0.25, ITEMS)
    assert failed.variance[0] == pytest.approx(2.0 / 2) and failed.freedom[0] == 1
    assert np.isnan(noise_of_folds([[1.0]], [0], 0.25, ITEMS).variance[0])


def test_repeated_holdouts_share_rows():
    noise = noise_of_folds(np.arange(8.0)[None], range(8), 0.25, ITEMS)
    assert noise.variance[0] == pytest.approx(6.0 * (1 / 8 + 0.25)) and noise.freedom[0] == 7
    assert not noise.repeated


def test_repeats_of_folds_show_the_noise_of_training():
    differences = np.arange(8.0)[None]
    noise = noise_of_folds(differences, [0] * 4 + [1] * 4, 0.25, ITEMS)
    seen = 5 / 3 / 4  # the variance within a repeat, of the mean of its four folds
    assert noise.repeated and seen < ITEMS[0]
    assert noise.variance[0] == ITEMS[0]  # items explain all of it
    less = noise_of_folds(differences, [0] * 4 + [1] * 4, 0.25, ITEMS / 5)
    variance = 0.1 + (seen - 0.1) * (1 / 2 + 0.25)
    assert less.variance[0] == pytest.approx(variance)
    assert less.freedom[0] == pytest.approx(6 * (variance / (0.75 * seen)) ** 2)


def test_repeats_with_missing_folds():
    rows = np.array([[1.0, 2.0, 3.0, np.nan], [0.0, 2.0, np.nan, np.nan], [1.0, np.nan, 3.0, 3.0]])
    noise = noise_of_folds(rows, [0, 0, 1, 1], 0.25, np.zeros(3))
    # 0.5 of one degree of freedom, 3 fits of 2 repeats; the same of one repeat; 0 of one
    assert noise.variance == pytest.approx([0.5 * 2 / 3 * 0.75, 2.0 / 2 * 1.25, 0.0])
    assert np.isnan(noise_of_folds(rows[:, [0, 2]], [0, 1], 0.25, np.zeros(3)).variance[1])
    alone = noise_of_folds(np.array([[1.0, np.nan, 3.0, np.nan]]), [0, 0, 1, 1], 0.25, ITEMS)
    assert np.isnan(alone.variance[0])


def test_items_add_degrees_of_freedom_as_they_explain_the_variance():
    noise = FitNoise(np.array([0.04, 0.04, 0.0]), np.array([4.0, 4.0, 4.0]))
    p = noise.p_values(np.array([0.6, 0.6, 0.6]), np.array([0.04, 0.01, 0.04]))
    assert p[:2] == pytest.approx(2 * stats.t.sf(3.0, [7, 4.75])) and np.isnan(p[2])


def test_items_of_learners_have_a_quarter_more_variance():
    z = np.array([0.0, 1.0, 2.5])
    p = with_shared_rows(2 * stats.norm.sf(z))
    assert p == pytest.approx(2 * stats.norm.sf(z / np.sqrt(1.25)))


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


def test_seeds_with_the_same_score_are_several_fits():
    pairs = (np.array([0, 1]), np.array([1, 2]))
    noise = noise_of_seeds(
        [SeedNoise(0.0, 0.02, 2), SeedNoise(), SeedNoise()], pairs, ITEMS[[0, 0]]
    )
    assert noise.variance[0] == ITEMS[0] and noise.seen.tolist() == [True, False]


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
    assert error.tolist() == [np.sqrt(1.25), 2.0, 1.0] and freedom.tolist() == [100.0, 4.75, 100.0]


def separated(folds: np.ndarray) -> tuple[float, float]:
    """Return how often boards × folds are separated, and by their items, of variance 1, alone."""
    means, of_items = folds.mean(axis=1), np.ones(len(folds))
    noise = noise_of_folds(folds, [0] * folds.shape[1], 0.25, of_items)
    items = 2 * stats.norm.sf(np.abs(means))
    p = np.maximum(with_shared_rows(items), noise.p_values(means, of_items))
    return float(np.mean(p < 0.05)), float(np.mean(items < 0.05))


@pytest.mark.parametrize("training", [0.0, 0.5, 1.0, 2.0, 4.0, 8.0])
def test_two_equal_learners_are_rarely_separated(training):
    """Item noise of variance 1, and training noise of this variance, on five folds."""
    rng = np.random.default_rng(5)
    false, by_items = separated(rng.normal(0, np.sqrt(5 * (1 + training)), (8000, 5)))
    assert false <= 0.065
    if training >= 1:
        assert by_items > 0.15


def test_training_rows_that_folds_share_rarely_separate():
    """No difference between folds shows that both models have been lucky with their rows."""
    rng = np.random.default_rng(7)
    folds = rng.normal(0, np.sqrt(5), (8000, 5)) + rng.normal(0, np.sqrt(0.7), (8000, 1))
    false, by_items = separated(folds)
    assert false <= 0.07 < 0.11 < by_items


@pytest.mark.parametrize(("difference", "share"), [(1.96, 0.58), (2.8, 0.72)])
def test_stable_learners_keep_most_of_the_power(difference, share):
    rng = np.random.default_rng(6)
    power, by_items = separated(rng.normal(difference, np.sqrt(5), (8000, 5)))
    assert power >= share * by_items


@pytest.mark.parametrize("binary", [0.02, 0.1, 0.5])
def test_items_that_no_training_changes_rarely_separate_repeats(binary):
    """Right and wrong answers of perfectly stable learners, of which few differ."""
    rng = np.random.default_rng(8)
    counts = rng.multinomial(200, [binary / 2, binary / 2, 1 - binary], 20_000)
    apart, differ = counts[:, 0] - counts[:, 1], counts[:, :2].sum(axis=1)
    sums = PairSums(apart.astype(float), differ.astype(float))
    noise = FitNoise(np.ones(1), np.ones(1), repeated=True)
    p = _by_items(_item_statistics(sums, noise, sums.sums), 200)
    assert np.mean(p < 0.05) <= 0.055


def test_intervals_of_repeats_have_a_tenth_more_variance():
    noise = FitNoise(np.array([1.0]), np.array([40.0]), repeated=True)
    error, freedom = wider(np.array([1.0]), 101, noise)
    assert error[0] == pytest.approx(np.sqrt(1.1)) and freedom[0] == 100
    assert noise.with_shared_rows(np.array([1.0])).variance[0] == pytest.approx(1.1)


def test_equal_models_among_others_give_no_warning():
    """A pair without noise of items has no ratio of the two variances."""
    noise = FitNoise(np.array([1.0, 2.0, 3.0]), np.full(3, 4.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = moderated(noise, np.array([0.0, 1.0, 1.0]), models=3)
    assert found.variance.tolist() == [1.0, 2.25, 2.75]
