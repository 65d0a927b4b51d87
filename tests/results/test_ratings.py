"""Ratings on examples worked out by hand, against choix, and what they promise."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.results.ranks import rank_models
from karat.results.ratings import CENTER, EQUAL_TASKS, POINTS, borda, bradley_terry, elo

NAN = np.nan


def ranked(*tasks, takes=None):
    values = [np.asarray(task, dtype=float).reshape(len(task), -1) for task in tasks]
    takes = np.ones((len(values[0]), len(values)), bool) if takes is None else np.array(takes, bool)
    return rank_models(values, takes)


def test_borda_counts_models_beaten():
    # task 1: 3 beaten, a tie of two above one: 1.5 each, 0; task 2: b above c alone
    ranks = np.array([[1, NAN], [2.5, 1], [2.5, 2], [4, NAN]])
    assert borda(ranks).tolist() == [3, 1.5 + 1, 1.5 + 0, 0]
    assert np.isnan(borda(np.full((2, 1), NAN))).all()


def test_two_models_have_the_odds_of_their_wins():
    # three wins and one loss, and half a win each for the task on which all are equal
    found = elo(ranked(*[[2, 1]] * 3, [1, 2])).mean
    gap = 400 * math.log10((3 + 0.5) / (1 + 0.5))
    assert found == pytest.approx([1500 + gap / 2, 1500 - gap / 2])


def test_a_tie_is_half_a_win_for_both():
    found = elo(ranked([1, 1], [1, 1], [1, 1]))
    assert found.mean == pytest.approx([1500, 1500])
    assert found.low == pytest.approx(found.high)
    # a win and a tie are one and a half of two
    won = elo(ranked([2, 1], [1, 1])).mean
    assert won[0] - won[1] == pytest.approx(400 * math.log10(2 / 1))


def test_a_model_that_always_wins_has_a_finite_rating():
    found = elo(ranked(*[[9, 5, 1]] * 4))
    assert np.isfinite([found.mean, found.low, found.high]).all()
    assert found.low == pytest.approx(found.mean, abs=0.1) == found.high
    # two models, n wins of n: (n + 1/2) to 1/2; ten to one at n = 4.5, so between 4 and 5
    four, five = (np.ptp(elo(ranked(*[[2, 1]] * n)).mean) for n in (4, 5))
    assert four == pytest.approx(400 * math.log10(9)) and five > 400 > four


def test_the_mean_or_the_anchor_is_at_1500():
    ranks = ranked([3, 2, 1], [3, 1, 2], [2, 3, 1], [3, 2, 1])
    free, tied = elo(ranks), elo(ranks, anchor=2)
    assert free.mean.mean() == pytest.approx(CENTER)
    assert tied.mean[2] == tied.low[2] == tied.high[2] == CENTER
    assert np.diff(tied.mean) == pytest.approx(np.diff(free.mean))


def test_models_that_share_no_task_with_others_are_not_rated():
    takes = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    found = elo(ranked([2, 1, 0], [2, 1, 0], [0, 0, 1], takes=takes))
    assert np.isnan(found.mean).tolist() == [False, False, True]
    assert found.mean[:2] == pytest.approx(elo(ranked([2, 1], [2, 1])).mean)
    # nothing can be anchored at it
    assert np.isnan(elo(ranked([2, 1, 0], takes=[[1], [1], [0]]), anchor=2).mean).all()
    assert np.isnan(elo(ranked([1, 2], takes=[[1], [0]])).mean).all()


def pairs(values, takes):
    """Yield (winner, loser) twice for a win, each way once for a tie, and for the equal task."""
    models = len(takes)
    for i in range(models):
        for j in range(i):
            yield from [(i, j), (j, i)]
            for t in np.flatnonzero(takes[i] & takes[j]):
                a, b = values[t][i, 0], values[t][j, 0]
                yield from [(i, j), (j, i)] if a == b else [(i, j) if a > b else (j, i)] * 2


@pytest.mark.parametrize("missing", [0, 0.4])
def test_strengths_equal_those_of_choix(missing):
    choix = pytest.importorskip("choix")
    assert EQUAL_TASKS == 1
    rng = np.random.default_rng(3)
    models, tasks = 7, 12
    values = [
        rng.integers(6, size=(models, 1)) + np.arange(models)[:, None] / 2 for _ in range(tasks)
    ]
    takes = rng.random((models, tasks)) >= missing
    expected = choix.opt_pairwise(models, list(pairs(values, takes)), alpha=1e-12, tol=1e-12)
    found = elo(rank_models(values, takes)).mean
    assert (found - CENTER) / POINTS == pytest.approx(expected - expected.mean(), abs=1e-5)


def test_strengths_solve_their_equations():
    # 4 models in a ring: as many wins as expected, whoever met whom
    games = np.array([[0, 3, 0, 2], [3, 0, 5, 0], [0, 5, 0, 1], [2, 0, 1, 0.0]])
    wins = np.array([3.5, 3.0, 3.5, 1.0])
    strengths = bradley_terry(wins, games)
    odds = np.exp(strengths)
    expected = (games * odds[:, None] / (odds[:, None] + odds)).sum(axis=1)
    assert expected == pytest.approx(wins)
    assert strengths.mean() == pytest.approx(0)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 9), st.integers(1, 8), st.floats(0, 0.6), st.integers(0, 10_000))
def test_every_resample_is_solved_like_a_single_fit(models, tasks, missing, seed):
    """The short way through all resamples ends where Newton's method does, one at a time."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=(models, 3)) + np.arange(models)[:, None] for _ in range(tasks)]
    takes = rng.random((models, tasks)) >= missing
    ranks = rank_models(values, takes)
    if ranks.drawn is None:
        return
    from karat.results import ratings

    rated = ranks.drawn.there.any(axis=1)
    _, resampled = ratings._fitted(ranks, ranks.drawn, rated)
    there = ranks.drawn.there[rated].astype(float)
    for r in rng.integers(1000, size=5):
        weights = ranks.drawn.weights[:, r].astype(float)
        wins = ((there * there.sum(axis=0) - ranks.drawn.ranks[rated, :, r]) * weights).sum(axis=1)
        games = ((there * weights) @ there.T + 1) * (1 - np.eye(len(there)))
        alone = bradley_terry(wins + (len(there) - 1) / 2, games)
        assert resampled[r] - resampled[r].mean() == pytest.approx(alone, abs=2e-3)


def test_the_order_of_models_and_a_change_of_scale_change_nothing():
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(6, 4)) for _ in range(9)]
    takes = np.ones((6, 9), bool)
    found = elo(rank_models(values, takes))
    order = rng.permutation(6)
    turned = elo(rank_models([v[order] for v in values], takes))
    scaled = elo(rank_models([v * 7 for v in values], takes))
    for name in ("mean", "low", "high"):
        assert getattr(turned, name) == pytest.approx(getattr(found, name)[order], abs=0.1)
        assert getattr(scaled, name) == pytest.approx(getattr(found, name), abs=0.1)
    assert (found.low < found.high).all()


def test_more_tasks_make_the_interval_shorter():
    rng = np.random.default_rng(1)
    widths = []
    for tasks in (10, 160):
        values = [rng.normal(size=(4, 1)) for _ in range(tasks)]
        found = elo(rank_models(values, np.ones((4, tasks), bool)))
        widths.append((found.high - found.low).mean())
    # sixteen times the tasks, about a quarter of the width
    assert 2.5 < widths[0] / widths[1] < 6


@pytest.mark.parametrize("missing", [0, 0.3])
def test_a_hundred_models_on_a_hundred_tasks_are_fast(missing):
    rng = np.random.default_rng(2)
    values = [rng.normal(size=(100, 5)) for _ in range(100)]
    takes = rng.random((100, 100)) >= missing
    begun = time.process_time()
    found = elo(rank_models(values, takes))
    # the limit is 2 s; a machine under other load gets some slack here, benchmarks/ does not
    assert time.process_time() - begun < 60
    assert np.isfinite([found.mean, found.low, found.high]).all()
