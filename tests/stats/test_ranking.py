"""Ranks, tie letters and ratings by hand, and ratings against choix."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from karat.stats import ranking
from karat.stats.ranking import (
    CENTER,
    EQUAL_TASKS,
    FEWEST_TASKS,
    PATTERNS,
    POINTS,
    RESAMPLES,
    _ranked,
    _tied,
    _weights,
    borda,
    bradley_terry,
    compact_letters,
    elo,
    letters_of,
    rank_models,
    sign_patterns,
    step_down,
    top_set,
)

NAN = np.nan


def ranks(*tasks, takes=None):
    values = [np.asarray(task, dtype=float).reshape(len(task), -1) for task in tasks]
    takes = np.ones((len(values[0]), len(values)), bool) if takes is None else np.array(takes, bool)
    return rank_models(values, takes)


def test_mean_rank_over_tasks_and_shared_ranks_of_equal_scores():
    # task 1: a first, b and c share 2 and 3; task 2: c, b, a
    found = ranks([[0.9], [0.5], [0.5]], [[0.1], [0.2], [0.3]])
    assert found.mean.tolist() == [(1 + 3) / 2, (2.5 + 2) / 2, (2.5 + 1) / 2]


def test_a_rank_is_that_of_the_mean_over_folds():
    # a wins two folds of three, b has the higher mean
    assert ranks([[0.6, 0.6, 0.0], [0.5, 0.5, 0.9]]).mean.tolist() == [2, 1]


def test_a_failed_fold_counts_as_the_worst_of_that_fold():
    # a: 0.9 and the worst of fold 2, 0.2: mean 0.55; b: 0.5, 0.2; c: 0.6, 0.6
    assert ranks([[0.9, NAN], [0.5, 0.2], [0.6, 0.6]]).mean.tolist() == [2, 3, 1]
    # who fails everywhere is last, below a model that is as bad as it gets
    assert ranks([[NAN, NAN], [-9.0, -9.0]]).mean.tolist() == [2, 1]
    assert ranks([[NAN], [NAN]]).mean.tolist() == [1.5, 1.5]


def test_a_task_not_taken_does_not_count():
    takes = [[1, 1], [1, 0], [1, 1]]
    found = ranks([[3.0], [2.0], [1.0]], [[1.0], [NAN], [2.0]], takes=takes)
    assert found.mean.tolist() == [(1 + 2) / 2, 2.0, (3 + 1) / 2]
    # nor does a task of one model
    found = ranks([[3.0], [NAN]], takes=[[1], [0]])
    assert np.isnan(found.mean).all() and found.ties == ["", ""]


def test_letters_need_three_tasks():
    found = ranks(*[[[0.9, 0.8], [0.1, 0.2]] for _ in range(3)])
    assert (found.mean.tolist(), found.low.tolist(), found.high.tolist()) == ([1, 2],) * 3
    assert found.ties == ["a", "b"], "a model that always wins has its own letter"
    found = ranks(*[[[0.9], [0.1]] for _ in range(2)])
    assert (found.mean.tolist(), found.ties) == ([1, 2], ["a", "a"])
    # equal wins and losses are a tie
    found = ranks(*[[[0.9], [0.1]], [[0.1], [0.9]]] * 3)
    assert (found.mean.tolist(), found.ties) == ([1.5, 1.5], ["a", "a"])
    assert found.low[0] < 1.5 < found.high[0]


def test_only_common_tasks_are_compared():
    # a beats b on three tasks, c takes two of them only: too few for a letter
    takes = [[1, 1, 1], [1, 1, 1], [1, 1, 0]]
    task = [[0.9], [0.5], [0.1]]
    found = ranks(task, task, [[0.9], [0.5], [NAN]], takes=takes)
    assert found.mean.tolist() == [1, 2, 3]
    assert found.ties == ["a", "b", ""]


def test_folds_that_disagree_widen_the_interval():
    calm = [[0.9, 0.9, 0.9], [0.5, 0.5, 0.5]]
    torn = [[2.0, 0.0, 0.7], [0.5, 0.5, 0.5]]
    assert ranks(*[calm] * 4).high[0] == 1.0
    assert ranks(*[torn] * 4).high[0] > 1.0


def test_the_bootstrap_is_repeatable_and_touches_no_global_generator():
    rng = np.random.default_rng(1)
    tasks = [rng.normal(size=(4, 3)) for _ in range(5)]
    np.random.seed(3)
    state = np.random.get_state()[1].tolist()
    first, second = ranks(*tasks), ranks(*tasks)
    assert first.low.tolist() == second.low.tolist()
    assert first.ties == second.ties
    assert np.random.get_state()[1].tolist() == state
    assert (first.low <= first.mean).all() and (first.mean <= first.high).all()


def test_weights_are_draws_with_replacement():
    weights = _weights(np.random.default_rng(0), 5)
    assert weights.shape == (RESAMPLES, 5)
    assert (weights.sum(axis=1) == 5).all()
    assert abs(weights.mean() - 1) < 1e-12
    # the count of one of 5 things in 5 draws has the variance 5 · 1/5 · 4/5
    assert weights.var() == pytest.approx(0.8, rel=0.05)


def test_ranks_within_rows_are_those_of_scipy():
    rng = np.random.default_rng(0)
    for scores in (rng.normal(size=(50, 6)), rng.integers(0, 3, size=(50, 6)).astype(float)):
        np.testing.assert_array_equal(_ranked(scores), rankdata(-scores, axis=1))


def tied(models, *pairs):
    made = np.eye(models, dtype=bool)
    for a, b in pairs:
        made[a, b] = made[b, a] = True
    return made


@pytest.mark.parametrize(
    "mean, pairs, letters",
    [
        ([1, 2, 3], [], ["a", "b", "c"]),
        ([1, 2, 3], [(0, 1), (1, 2), (0, 2)], ["a", "a", "a"]),
        ([1, 2, 3], [(0, 1), (1, 2)], ["a", "ab", "b"]),
        ([1, 2, 3, 4], [(0, 1), (2, 3)], ["a", "a", "b", "b"]),
        ([3, 1, 2], [(1, 2)], ["b", "a", "a"]),
        ([1, NAN, 2], [(0, 2), (0, 1), (2, 1)], ["a", "a", "a"]),
        ([1, 2, 3], [(0, 2)], ["a", "b", "c"]),
    ],
)
def test_letters_join_adjacent_models_that_do_not_differ(mean, pairs, letters):
    assert letters_of(np.array(mean, dtype=float), tied(len(mean), *pairs)) == letters


def test_more_groups_than_letters():
    letters = letters_of(np.arange(30.0), tied(30))
    assert letters[25:28] == ["z", "[27]", "[28]"]
    assert len(set(letters)) == 30


def test_an_interval_contains_its_mean():
    # folds drawn anew are noisier than the folds: the best is pulled to the middle in all resamples
    rng = np.random.default_rng(0)
    tasks = [np.linspace(1, 0, 30)[:, None] + rng.normal(size=(30, 3)) for _ in range(40)]
    found = ranks(*tasks)
    assert (found.low <= found.mean).all() and (found.mean <= found.high).all()
    assert (found.low < found.high).all()


def test_many_patterns_of_tasks_equal_pairwise_comparisons():
    rng = np.random.default_rng(5)
    tasks = [np.linspace(1, 0, 60)[:, None] * 2 + rng.normal(size=(60, 1)) for _ in range(12)]
    takes = rng.random((60, 12)) > 0.3
    drawn = rank_models(tasks, takes).drawn
    tied = _tied(drawn)
    for a, b in rng.integers(60, size=(40, 2)):
        both = drawn.there[a] & drawn.there[b]
        weights = drawn.weights[both].astype(float)
        apart = (drawn.ranks[a, both] - drawn.ranks[b, both]).astype(float)
        with np.errstate(invalid="ignore"):
            means = (apart * weights).sum(axis=0) / weights.sum(axis=0)
        low, high = np.nanquantile(means, [0.025, 0.975])
        assert tied[a, b] == (both.sum() < 3 or low <= 0 <= high)


def test_borda_counts_models_beaten():
    # task 1: 3 beaten, a tie of two above one: 1.5 each, 0; task 2: b above c alone
    ranks = np.array([[1, NAN], [2.5, 1], [2.5, 2], [4, NAN]])
    assert borda(ranks).tolist() == [3, 1.5 + 1, 1.5 + 0, 0]
    assert np.isnan(borda(np.full((2, 1), NAN))).all()


def test_two_models_have_the_odds_of_their_wins():
    # three wins and one loss, and half a win each for the task on which all are equal
    found = elo(ranks(*[[2, 1]] * 3, [1, 2])).mean
    gap = 400 * math.log10((3 + 0.5) / (1 + 0.5))
    assert found == pytest.approx([1500 + gap / 2, 1500 - gap / 2])


def test_a_tie_is_half_a_win_for_both():
    found = elo(ranks([1, 1], [1, 1], [1, 1]))
    assert found.mean == pytest.approx([1500, 1500])
    assert found.low == pytest.approx(found.high)
    # a win and a tie are one and a half of two
    won = elo(ranks([2, 1], [1, 1])).mean
    assert won[0] - won[1] == pytest.approx(400 * math.log10(2 / 1))


def test_a_model_that_always_wins_has_a_finite_rating():
    found = elo(ranks(*[[9, 5, 1]] * 4))
    assert np.isfinite([found.mean, found.low, found.high]).all()
    assert found.low == pytest.approx(found.mean, abs=0.1) == found.high
    # two models, n wins of n: (n + 1/2) to 1/2; ten to one at n = 4.5, so between 4 and 5
    four, five = (np.ptp(elo(ranks(*[[2, 1]] * n)).mean) for n in (4, 5))
    assert four == pytest.approx(400 * math.log10(9)) and five > 400 > four


def test_the_mean_or_the_anchor_is_at_1500():
    found = ranks([3, 2, 1], [3, 1, 2], [2, 3, 1], [3, 2, 1])
    free, tied = elo(found), elo(found, anchor=2)
    assert free.mean.mean() == pytest.approx(CENTER)
    assert tied.mean[2] == tied.low[2] == tied.high[2] == CENTER
    assert np.diff(tied.mean) == pytest.approx(np.diff(free.mean))


def test_models_that_share_no_task_with_others_are_not_rated():
    takes = [[1, 1, 0], [1, 1, 0], [0, 0, 1]]
    found = elo(ranks([2, 1, 0], [2, 1, 0], [0, 0, 1], takes=takes))
    assert np.isnan(found.mean).tolist() == [False, False, True]
    assert found.mean[:2] == pytest.approx(elo(ranks([2, 1], [2, 1])).mean)
    # nothing can be anchored at it
    assert np.isnan(elo(ranks([2, 1, 0], takes=[[1], [1], [0]]), anchor=2).mean).all()
    assert np.isnan(elo(ranks([1, 2], takes=[[1], [0]])).mean).all()


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
    from karat.stats import ranking as ratings

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
    order = rng.permutation(6)
    ranked, other = rank_models(values, takes), rank_models([v[order] for v in values], takes)
    np.testing.assert_allclose(ranked.low[order], other.low)
    assert [ranked.ties[i] for i in order] == other.ties
    found, turned = elo(ranked), elo(other)
    scaled = elo(rank_models([v * 7 for v in values], takes))
    for name in ("mean", "low", "high"):
        assert getattr(turned, name) == pytest.approx(getattr(found, name)[order], abs=0.1)
        assert getattr(scaled, name) == pytest.approx(getattr(found, name), abs=0.1)
    assert (found.low < found.high).all()


# -- which models differ: step-down max-T, letters, top set ----------------------------------


def rank_table(rng, models, tasks, missing=0.0, step=0.0):
    scores = rng.normal(size=(models, tasks)) - step * np.arange(models)[:, None]
    scores[rng.random(scores.shape) < missing] = NAN
    return rankdata(-scores, axis=0, nan_policy="omit")


def by_definition(ranks):
    """Return adjusted p after Westfall and Young, pair by pair."""
    models, tasks = ranks.shape
    signs = sign_patterns(tasks)
    found = {}
    for one, other in itertools.combinations(range(models), 2):
        apart = ranks[one] - ranks[other]
        both = ~np.isnan(apart)
        if both.sum() >= FEWEST_TASKS:
            square = (apart[both] ** 2).sum() + models / 2
            found[one, other] = (apart[both] @ signs[both]) ** 2 / square
    p = np.full((models, models), NAN)
    np.fill_diagonal(p, 1.0)
    least = 0.0
    for pair in sorted(found, key=lambda pair: -found[pair][0]):
        family = [each for each in found.values() if each[0] <= found[pair][0]]
        least = max(least, float((np.max(family, axis=0) >= found[pair][0]).mean()))
        p[pair] = p[pair[::-1]] = least
    return p


@pytest.mark.parametrize(
    "models, tasks, missing", [(5, 7, 0), (6, 12, 0.2), (9, 20, 0), (8, 30, 0.3)]
)
def test_step_down_is_that_of_westfall_and_young(models, tasks, missing):
    ranks = rank_table(np.random.default_rng(tasks), models, tasks, missing, step=0.4)
    np.testing.assert_array_equal(step_down(ranks), by_definition(ranks))


def test_blocks_of_pairs_change_nothing(monkeypatch):
    ranks = rank_table(np.random.default_rng(1), 12, 15, 0.1, step=0.3)
    whole = step_down(ranks)
    monkeypatch.setattr(ranking, "_PAIRS_BLOCK", 1)
    np.testing.assert_array_equal(step_down(ranks), whole)


def test_two_models_have_the_sign_test():
    # a wins 9 of 10: sums of at least 8 in size, 2 · (1 + 10) of 1024 sign patterns
    ranks = np.array([[1.0] * 9 + [2], [2.0] * 9 + [1]])
    assert step_down(ranks)[0, 1] == 22 / 1024


def test_equal_models_have_p_1_and_few_shared_tasks_no_p():
    ranks = np.full((2, 8), 1.5)
    assert step_down(ranks).tolist() == [[1, 1], [1, 1]]
    ranks = np.array([[1.0] * 8, [2.0] * 5 + [NAN] * 3, [NAN] * 2 + [3.0] * 6])
    p = step_down(ranks)
    assert np.isnan(p).tolist() == [[False, True, False], [True, False, True], [False, True, False]]
    assert np.isnan(step_down(np.array([[1.0] * 5, [2.0] * 5]))[0, 1])
    assert step_down(np.empty((0, 0))).shape == (0, 0)


def test_a_constant_difference_is_found_with_enough_tasks():
    # two models that are next to each other on every task, among twenty that change places
    rng = np.random.default_rng(0)
    order = np.array([rng.permutation(20) for _ in range(40)]).T
    ranks = np.vstack([order * 1.0, order[0] * 1.0])
    ranks = rankdata(ranks + np.arange(21)[:, None] / 100, axis=0)
    assert (ranks[20] - ranks[0] == 1).all()
    p = step_down(ranks)
    assert p[0, 20] < 0.001 and (p[1:20, 1:20] >= 0.05).all()


def test_the_order_of_models_changes_no_p():
    rng = np.random.default_rng(3)
    ranks = rank_table(rng, 8, 25, 0.1, step=0.3)
    order = rng.permutation(8)
    np.testing.assert_array_equal(step_down(ranks[order]), step_down(ranks)[np.ix_(order, order)])
    np.testing.assert_array_equal(top_set(ranks[order]), top_set(ranks)[order])


def test_sign_patterns_are_all_or_well_mixed():
    for tasks in (1, 6, 12):
        columns = {tuple(each) for each in sign_patterns(tasks).T}
        assert len(columns) == 2 ** (tasks - 1)
        assert not columns & {tuple(-s for s in each) for each in columns}
    signs = sign_patterns(200)
    assert signs.shape == (200, PATTERNS) and (signs[:, 0] == 1).all()
    # sums of 200 random signs have the variance 200; 2047 of them estimate it within 15 %
    assert signs[:, 1:].sum(axis=0).var() == pytest.approx(200, rel=0.15)
    between = signs[:, 1:] @ signs[:, 1:].T / (PATTERNS - 1) - np.eye(200)
    assert np.abs(between).max() < 0.13  # of 19,900 correlations with deviation 0.022


def test_the_best_model_is_in_the_top_set_and_a_clear_loser_is_not():
    assert top_set(np.array([[1.0] * 6, [2.0] * 6])).tolist() == [True, False]
    ranks = rank_table(np.random.default_rng(0), 6, 20, step=0.0)
    ranks = np.vstack([ranks, np.full(20, 7.0)])
    top = top_set(ranks)
    assert top[ranks.mean(axis=1).argmin()] and not top[6]
    # five tasks are too few, as is a model without enough shared tasks
    assert not top_set(ranks[:, :5]).any()
    ranks[1, 5:] = NAN
    assert not top_set(ranks)[1]


@pytest.mark.parametrize("models, tasks", [(30, 40), (200, 40)])
def test_a_bound_of_the_top_set_agrees_with_its_patterns(models, tasks, monkeypatch):
    ranks = rank_table(np.random.default_rng(0), models, tasks, 0.05, step=6 / models)
    bounded = top_set(ranks)
    monkeypatch.setattr(ranking, "_certain", lambda *_: False)
    np.testing.assert_array_equal(top_set(ranks), bounded)
    assert 0 < bounded.sum() < models


GROUP = re.compile(r"[a-z]|\[\d+\]")


def shares_letter(one, other):
    return bool({*GROUP.findall(one)} & {*GROUP.findall(other)})


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 14), st.floats(0, 1), st.integers(0, 10_000))
def test_models_share_a_letter_if_and_only_if_they_do_not_differ(models, share, seed):
    rng = np.random.default_rng(seed)
    differ = np.triu(rng.random((models, models)) < share, 1)
    differ |= differ.T
    order = rng.permutation(models)
    letters = compact_letters(order, differ)
    for one, other in itertools.combinations(range(models), 2):
        assert shares_letter(letters[one], letters[other]) != differ[one, other]
    assert all(letters)
    # letters begin in the order of rank
    used = [each for m in order for each in GROUP.findall(letters[m])]
    first = list(dict.fromkeys(used))
    assert first == [chr(97 + i) if i < 26 else f"[{i + 1}]" for i in range(len(first))]


def test_letters_need_no_exponential_number_of_groups():
    # 60 models in 30 pairs that differ: 2^30 maximal groups, of which few are needed
    differ = np.zeros((60, 60), dtype=bool)
    for m in range(0, 60, 2):
        differ[m, m + 1] = differ[m + 1, m] = True
    letters = compact_letters(np.arange(60), differ)
    for one, other in itertools.combinations(range(60), 2):
        assert shares_letter(letters[one], letters[other]) != differ[one, other]
    assert len({each for text in letters for each in GROUP.findall(text)}) <= 60


@pytest.mark.parametrize(
    "mean, pairs, letters",
    [
        ([1, 2, 3], [], ["a", "b", "c"]),
        ([1, 2, 3], [(0, 1), (1, 2), (0, 2)], ["a", "a", "a"]),
        ([1, 2, 3], [(0, 1), (1, 2)], ["a", "ab", "b"]),
        ([1, 2, 3, 4], [(0, 1), (2, 3)], ["a", "a", "b", "b"]),
        ([3, 1, 2], [(1, 2)], ["b", "a", "a"]),
        # the first and the last do not differ, although the second differs from both
        ([1, 2, 3], [(0, 2)], ["a", "b", "a"]),
    ],
)
def test_letters_by_hand(mean, pairs, letters):
    assert compact_letters(np.argsort(mean), ~tied(len(mean), *pairs)) == letters


def test_models_outside_the_order_get_no_letter_and_after_z_come_numbers():
    assert compact_letters(np.array([2, 0]), np.zeros((3, 3), dtype=bool)) == ["a", "", "a"]
    letters = compact_letters(np.arange(30), ~tied(30))
    assert letters[25:28] == ["z", "[27]", "[28]"] and len(set(letters)) == 30
