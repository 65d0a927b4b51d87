"""Ranks by pairs: by hand, against their definition, and in simulations with known truth."""

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from karat.stats.paired_tests import average_ranks, corrected_t
from karat.stats.pairwise_ranks import (
    comparable_models,
    mean_ranks,
    pairwise_ranks,
    rank_differences,
)
from karat.stats.ranking import rank_intervals, rank_models

NAN = np.nan


def ranked(scores):
    """Return ranks within tasks, as ``rank_each`` does; NaN is not taken."""
    ranks = average_ranks(-np.asarray(scores, dtype=float))
    return np.where((~np.isnan(ranks)).sum(axis=0) > 1, ranks, NAN)


def by_definition(ranks):
    """Return 1 + the sum of shares of common tasks on which each other model is better."""
    found = np.ones(len(ranks))
    for m, own in enumerate(ranks):
        for other in np.delete(ranks, m, axis=0):
            both = ~np.isnan(own) & ~np.isnan(other)
            found[m] += ((other < own) + 0.5 * (other == own))[both].mean()
    return found


tables = arrays(
    float, st.tuples(st.integers(2, 7), st.integers(1, 12)), elements=st.sampled_from([0, 1, 2, 3])
)


@given(tables)
@settings(deadline=None)
def test_with_complete_data_it_is_the_mean_rank_to_the_last_bit(scores):
    ranks = ranked(scores)
    expected = ranks.sum(axis=1) / ranks.shape[1]
    assert mean_ranks(ranks).tolist() == expected.tolist()
    # also where a further model, beaten by all on one task, makes the sums go pair by pair
    last = np.full((1, ranks.shape[1]), NAN)
    last[0, 0] = len(ranks) + 1
    assert mean_ranks(np.vstack([ranks, last]))[:-1] == pytest.approx(expected, abs=1e-12)


@given(tables, st.data())
@settings(deadline=None)
def test_missing_cells_are_those_of_the_definition(scores, data):
    missing = data.draw(arrays(bool, scores.shape, elements=st.booleans()))
    scores = np.where(missing, NAN, scores)
    scores[:, 0] = np.where(np.isnan(scores[:, 0]), 0.0, scores[:, 0])  # a task of all models
    ranks = ranked(scores)
    assert mean_ranks(ranks) == pytest.approx(by_definition(ranks), abs=1e-12)
    order = data.draw(st.permutations(range(len(ranks))))
    assert mean_ranks(ranks[order]).tolist() == mean_ranks(ranks)[order].tolist()


def test_a_model_that_loses_everything_is_last_whoever_takes_its_tasks():
    # as random in the demo: last of five on four tasks, last of three on the fifth
    ranks = np.array([[1, 1, 2, 1, 1], [2, 3, 1, 2, 2], [3, 2, 3, 3, NAN], [4, 4, 4, 4, NAN]])
    ranks = np.vstack([ranks, [5, 5, 5, 5, 3]])
    assert mean_ranks(ranks)[-1] == 5.0 != np.nanmean(ranks[-1])
    assert mean_ranks(ranks)[0] == 1 + 1 / 5 + 0 + 0 + 0


def test_a_pair_without_a_common_task_is_not_guessed():
    takes = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 1]], dtype=bool)
    scores = np.where(takes, np.array([[4.0], [3], [2], [1]]), NAN)
    ranks = ranked(scores)
    assert comparable_models(takes).tolist() == [True, True, True, False]
    found = mean_ranks(ranks)
    assert found[:3].tolist() == [1, 2, 3] and np.isnan(found[3])
    full = pairwise_ranks(ranks)
    assert full.tasks.tolist() == [3, 3, 2, 0]  # without the task of the last two
    values = [np.nan_to_num(scores[:, [t]]) for t in range(4)]
    assert rank_models(values, takes).top.tolist() == [True, True, True, False]


def test_models_that_are_alike_leave_together():
    # two pairs that never meet: no order of models decides which of them are ranked
    takes = np.array([[1, 0], [1, 0], [0, 1], [0, 1]], dtype=bool)
    assert not comparable_models(takes).any()
    assert np.isnan(mean_ranks(ranked(np.where(takes, [[2.0], [1], [2], [1]], NAN)))).all()
    # a hub that meets everyone stays with the model of more tasks
    hub = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 1]], dtype=bool)
    assert comparable_models(hub).tolist() == [True, True, False]
    assert not comparable_models(np.array([[1, 1], [0, 0]])).any()


def test_variances_by_hand():
    # complete: ((Σ (r - mean)²) + (k² - 1) / 12) / n²
    ranks = np.array([[1.0, 2, 1, 2], [2, 1, 2, 1]])
    assert pairwise_ranks(ranks).variance == pytest.approx((1 + 0.25) / 16)
    # the first has a share of 1/3 against the second, of 1 against the third on two tasks
    ranks = np.array([[2.0, 3, 1], [1, 2, 2], [NAN, 1, NAN]])
    found = pairwise_ranks(ranks)
    assert found.rank.tolist() == pytest.approx([1 + 2 / 3 + 1, 1 + 1 / 3 + 1, 1.0])
    # without each task the first share is 1/2, 1/2 or 1; the second rests on one task
    moved = np.array([2 / 3 - 1 / 2, 2 / 3 - 1 / 2, 2 / 3 - 1])
    jackknife = 2 / 3 * (moved**2).sum()
    random = (2 * (1 / 9 + 2 / 9) + ((4 / 3) ** 2 + 2 * (1 / 9 + 1))) / 12
    assert found.variance[0] == pytest.approx((2 * jackknife + random) / 3)


@given(tables)
@settings(deadline=None)
def test_the_variance_of_complete_data_needs_no_pairs(scores):
    ranks = ranked(scores)
    n = ranks.shape[1]
    squares = ((ranks - ranks.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    expected = (squares + (len(ranks) ** 2 - 1) / 12) / n**2
    if n > 1:
        assert pairwise_ranks(ranks).variance == pytest.approx(expected, abs=1e-12)


def test_a_difference_of_complete_ranks_is_that_of_paired_tasks():
    ranks = ranked(np.random.default_rng(1).normal(size=(5, 9)))
    found, paired = rank_differences(ranks, 1), corrected_t(ranks[3] - ranks[1], 0.0)
    assert (found.value[3], found.tasks[3]) == (pytest.approx(paired.mean), 9)
    half = scipy.special.stdtrit(8, 0.975) * found.error[3]
    assert found.value[3] + half == pytest.approx(float(paired.high))
    assert (found.value[1], found.error[1], found.models) == (0.0, 0.0, 5)


def test_a_difference_is_that_of_the_ranks_also_with_missing_cells():
    scores = np.random.default_rng(2).normal(size=(5, 9))
    scores[1, :4] = scores[3, 5] = NAN
    ranks = ranked(scores)
    found, mean = rank_differences(ranks, 1), mean_ranks(ranks)
    assert found.value[3] == mean[3] - mean[1] and found.tasks[3] == 4 and found.error[3] > 0
    scores[1, 4:] = NAN
    assert np.isnan(rank_differences(ranked(scores), 1).value[3])


# -- simulations with known truth -------------------------------------------------------------


def skipping(worse, runs=300):
    """Yield ranks of ten models; five take 24 tasks, five better ones skip the same half."""
    rng = np.random.default_rng([1, int(10 * worse)])
    for _ in range(runs):
        scores = rng.normal(size=(10, 24))
        scores[:5] -= worse
        scores[5:, :12] = NAN
        yield ranked(scores)


def test_skipping_tasks_changes_no_rank_of_equal_models():
    means = np.mean([mean_ranks(ranks) for ranks in skipping(0.0)], axis=0)
    # the mean over tasks of ranks within tasks gives 4.25 to those that take all tasks
    assert means[:5].mean() == pytest.approx(5.5, abs=0.1)
    assert means[5:].mean() == pytest.approx(5.5, abs=0.1)


def test_who_takes_all_tasks_is_not_first_for_that_reason():
    first = [mean_ranks(ranks).argmin() < 5 for ranks in skipping(0.3)]
    assert np.mean(first) < 0.15  # 64 % by ranks within tasks
    first = [mean_ranks(ranks).argmin() < 5 for ranks in skipping(0.6)]
    assert np.mean(first) < 0.05  # 25 %


@pytest.mark.parametrize("missing", [0.0, 0.1, 0.2, 0.3])
def test_intervals_hold_the_rank_among_all_models_whatever_is_missing(missing):
    skill = np.linspace(1.5, 0, 10)
    wins = scipy.special.ndtr((skill[:, None] - skill) / np.sqrt(2))
    truth = 10.5 - wins.sum(axis=1)  # a model and itself are 0.5
    rng, covered = np.random.default_rng(4), []
    for _ in range(200):
        scores = skill[:, None] + rng.normal(size=(10, 24))
        scores[rng.random(scores.shape) < missing] = NAN
        _, low, high = rank_intervals(ranked(scores))
        covered.append((low <= truth) & (truth <= high))
    assert 0.92 <= np.mean(covered) <= 0.98  # ranks within tasks: .95, .87, .61, .35
