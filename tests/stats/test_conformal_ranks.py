"""The rank on a new task: order statistics by hand, coverage under exchangeability, shares."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from karat.stats.conformal_ranks import (
    alike_rank_bounds,
    first_shares,
    mean_loss,
    next_rank_bounds,
    next_ranks,
    ranks_among_all,
    share_interval,
    tail_counts,
)
from karat.stats.ranking import rank_each


def ranks_of(scores: np.ndarray) -> np.ndarray:
    """Return the ranks of models × tasks, NaN where a score is."""
    return rank_each(list(scores.T[:, :, None]), ~np.isnan(scores))


def covered(low: np.ndarray, rank: np.ndarray, high: np.ndarray) -> float:
    return float(((low <= rank) & (rank <= high))[~np.isnan(low)].mean())


@pytest.mark.parametrize(
    ("tasks", "counts"), [(9, (0, 1)), (18, (0, 1)), (19, (1, 1)), (29, (1, 2)), (39, (2, 2))]
)
def test_at_most_a_tenth_is_missed(tasks, counts):
    assert tail_counts(tasks) == counts
    assert sum(counts) <= 0.1 * (tasks + 1) < sum(counts) + 1


def test_the_interval_is_of_order_statistics():
    row = np.random.default_rng(0).permutation(np.arange(1.0, 40.0))  # ranks 1 to 39
    low, high = next_rank_bounds(row[None])
    assert (low[0], high[0]) == (2, 38)  # 4 of 40 may be missed: two at either end
    low, high = next_rank_bounds(row[None, row <= 29])
    assert (low[0], high[0]) == (1, 28)  # 3 of 30: one below, two above
    assert np.isnan(next_rank_bounds(row[None, :18])).all()


def test_shared_ranks_are_rounded_outwards():
    low, high = next_rank_bounds(np.array([[1.5] * 10 + [2.5] * 10]))
    assert (low[0], high[0]) == (1, 3)


def test_ranks_are_stretched_where_models_skip_a_task():
    ranks = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [3.0, 3.0, np.nan], [4.0, np.nan, np.nan]])
    ranks = np.vstack([ranks, [[5.0, np.nan, np.nan]]])
    stretched = ranks_among_all(ranks)
    assert stretched[:, 0].tolist() == [1, 2, 3, 4, 5]
    assert stretched[:3, 1].tolist() == [1, 3, 5]  # 3 of 5 models: 1 + 2 (rank - 1)
    assert np.isnan(stretched[:, 2]).all()  # one of four others is less than half


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    tasks=st.integers(19, 45),
    models=st.integers(2, 8),
    digits=st.sampled_from([0, 1, 6]),
)
def test_exchangeable_tasks_are_covered_at_least_nominally(seed, tasks, models, digits):
    """Hold out each task in turn: at least 90 % are covered, for every model, with any ties."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(0, 1, (models, 1)) * rng.choice([0, 1, 5])
    scores = skill + rng.standard_t(2, (models, tasks + 1)) * rng.exponential(1, (models, 1))
    ranks = ranks_of(np.round(scores, digits))
    hits = np.zeros(models)
    for t in range(tasks + 1):
        low, high = next_rank_bounds(np.delete(ranks, t, axis=1))
        hits += (low <= ranks[:, t]) & (ranks[:, t] <= high)
    # exact: of n + 1 exchangeable values at most k are below the k-th smallest of the others
    assert (hits / (tasks + 1) >= 0.9 - 1e-12).all()


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), models=st.integers(2, 5))
def test_alike_tasks_are_covered_at_least_nominally_over_classes(seed, models):
    rng = np.random.default_rng(seed)
    classes, facts = np.repeat(["a", "b"], 25), np.repeat([[0.0, 1.0], [1.0, 0.0]], 25, axis=0)
    skill = rng.normal(0, 1, (models, 2)).repeat(25, axis=1)
    noise = np.where(classes == "a", 0.2, 2.0)
    ranks = ranks_of(skill + rng.normal(0, 1, (models, 50)) * noise)
    hits = np.zeros(models)
    for t in range(50):
        others = np.arange(50) != t
        low, high = alike_rank_bounds(ranks[:, others], facts[others], facts[t])
        hits += (low <= ranks[:, t]) & (ranks[:, t] <= high)
    assert (hits / 50 >= 0.9 - 1e-12).all()


def test_alike_tasks_narrow_the_interval_where_a_model_changes_its_place():
    rng = np.random.default_rng(0)
    facts = np.repeat([[0.0, 1.0], [1.0, 0.0]], 30, axis=0)
    scores = rng.normal(0, 0.3, (6, 60)) + np.arange(6)[:, None]
    scores[0, :30] += 6  # the worst of b is the best of a
    ranks = ranks_of(scores)
    low, high = next_rank_bounds(ranks)
    assert (low[0], high[0]) == (1, 6)
    low, high = alike_rank_bounds(ranks, facts, facts[0])
    assert (low[0], high[0]) == (1, 1)
    low, high = alike_rank_bounds(ranks, facts, facts[-1])
    assert (low[0], high[0]) == (6, 6)
    few = np.repeat([[0.0], [1.0]], [45, 15], axis=0)
    assert np.isnan(alike_rank_bounds(ranks, few, few[-1])).all()


def test_alike_tasks_have_their_own_spread():
    """Ranks vary in one class only: its interval is wide, that of the other narrow."""
    rng = np.random.default_rng(1)
    facts = np.repeat([[0.0], [1.0]], 40, axis=0)
    scores = rng.normal(0, 1, (8, 80)) * np.where(facts[:, 0] == 0, 0.2, 3) + np.arange(8)[:, None]
    ranks = ranks_of(scores)
    low, high = next_rank_bounds(ranks)
    steady, unsteady = (alike_rank_bounds(ranks, facts, facts[t]) for t in (0, -1))
    assert np.mean(steady[1] - steady[0]) < 0.6 * np.mean(high - low)
    assert np.mean(unsteady[1] - unsteady[0]) >= np.mean(high - low)


def test_skipped_tasks_do_not_break_the_coverage():
    rng = np.random.default_rng(1)
    shares = []
    for _ in range(60):
        scores = rng.normal(0, 1, (10, 41)) + np.linspace(0, 1, 10)[:, None]
        new = ranks_of(scores)[:, -1]
        seen = scores[:, :-1].copy()
        skip = rng.permutation(10)[:5]
        seen[skip] = np.where(rng.random((5, 40)) < 0.5, np.nan, seen[skip])
        found = next_ranks(ranks_of(seen))
        shares.append(covered(found.low, new, found.high))
    assert np.mean(shares) >= 0.9


def test_first_shares_add_up_and_ties_share():
    ranks = np.array([[1.5, 1.0, 3.0], [1.5, 2.0, 1.0], [3.0, 3.0, 2.0]])
    assert first_shares(ranks).tolist() == [0.5, 0.5, 0.0]


def test_nobody_is_first_because_a_better_one_is_absent():
    # the first model wins whatever it takes; the second is first without it
    ranks = np.array([[1.0] * 10 + [np.nan] * 10, [2.0] * 10 + [1.0] * 10, [3.0] * 10 + [2.0] * 10])
    assert first_shares(ranks).round(6).tolist() == [1.0, 0.0, 0.0]
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 1, (6, 30))
    scores[rng.random(scores.shape) < 0.3] = np.nan
    assert first_shares(ranks_of(scores)).sum() == pytest.approx(1.0)


def test_chances_add_up_to_one_and_none_is_impossible():
    ranks = ranks_of(np.random.default_rng(0).normal(0, 1, (5, 30)) + 2 * np.arange(5)[:, None])
    found = next_ranks(ranks)
    assert found.first.sum() == pytest.approx(1.0)
    assert (found.first > 0).all() and (found.first < 1).all()
    assert ((found.first_low <= found.first) & (found.first <= found.first_high)).all()


def test_a_model_with_few_tasks_has_no_interval():
    scores = np.random.default_rng(0).normal(0, 1, (4, 25))
    scores[3, 18:] = np.nan
    found = next_ranks(ranks_of(scores))
    assert found.tasks.tolist() == [25, 25, 25, 18]
    for column in (found.low, found.high, found.first, found.first_low, found.first_high):
        assert np.isnan(column).tolist() == [False, False, False, True]


def test_intervals_are_those_of_scipy():
    low, high = share_interval(np.array([0.3]), np.array([20]))
    wilson = stats.binomtest(6, 20).proportion_ci(method="wilson")
    assert (low[0], high[0]) == pytest.approx((wilson.low, wilson.high))
    losses = np.random.default_rng(0).exponential(1, (1, 25))
    mean, low, high = mean_loss(losses)
    ends = stats.t.interval(0.95, 24, losses.mean(), stats.sem(losses[0]))
    assert (mean[0], low[0], high[0]) == pytest.approx((losses.mean(), *ends))
    assert np.isnan(mean_loss(losses[:, :18])).all()
