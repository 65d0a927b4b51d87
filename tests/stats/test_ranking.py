"""Ranks, tie letters and ratings by hand, and ratings against choix."""

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import rankdata

from karat.stats import ranking
from karat.stats.ranking import (
    CENTER,
    EQUAL_TASKS,
    FEWEST_TASKS,
    PATTERNS,
    POINTS,
    borda,
    bradley_terry,
    compact_letters,
    elo,
    letters_of,
    rank_bounds,
    rank_each,
    rank_intervals,
    rank_leads,
    rank_models,
    ranked_on_few,
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
    # the first and the third are even; the second is behind the one and ahead of the other
    assert found.mean.tolist() == [1 + 0 + 0.5, 1 + 1 + 0, 1 + 0.5 + 1]
    # nor does a task of one model
    found = ranks([[3.0], [NAN]], takes=[[1], [0]])
    assert np.isnan(found.mean).all() and found.ties == ["", ""]


def test_letters_and_intervals_need_six_tasks():
    always = [[0.9], [0.1]]
    found = ranks(*[always] * 6)
    assert found.ties == ["a", "b"] and found.top.tolist() == [True, False]
    # t of 5 degrees × √(variance / 6), and the variance is that of one random task of six
    half = stats.t.ppf(0.975, 5) * math.sqrt(0.25 / 6 / 6)
    assert found.low == pytest.approx([1, 2 - half]) and found.high == pytest.approx([1 + half, 2])
    found = ranks(*[always] * 5)
    assert found.mean.tolist() == [1, 2] and found.ties == ["", ""]
    assert np.isnan([found.low, found.high]).all() and found.top.all()
    # equal wins and losses are a tie
    found = ranks(*[always, always[::-1]] * 3)
    assert (found.mean.tolist(), found.ties) == ([1.5, 1.5], ["a", "a"])
    assert found.low[0] < 1.5 < found.high[0]


def test_a_model_with_too_few_tasks_has_no_letter():
    takes = [[1] * 7, [1] * 7, [1] * 5 + [0, 0]]
    found = ranks(*[[[0.9], [0.5], [0.1]]] * 7, takes=takes)
    assert found.mean.tolist() == [1, 2, 3]
    assert found.ties == ["a", "b", ""] and np.isnan(found.low).tolist() == [False, False, True]
    assert found.top.tolist() == [True, False, True]
    assert ranked_on_few(np.array(takes, bool)).tolist() == [False, False, True]


def test_intervals_by_hand_and_between_tasks_of_other_sizes():
    # ranks 1, 2, 1, 2, 1, 2: mean 1.5, sum of squares 1.5, and (2² - 1) / 12 of a random task
    ranks = np.array([[1, 2] * 3, [2, 1] * 3], dtype=float)
    mean, low, high = rank_intervals(ranks)
    half = stats.t.ppf(0.975, 5) * math.sqrt((1.5 + 0.25) / 6 / 6)
    assert mean.tolist() == [1.5, 1.5] and high - mean == pytest.approx(min(half, 0.5))
    # the third shares two tasks: weights 1/8 on six tasks, 1/8 and 1/2 on two; ((Σa)² + 2 Σa²) / 12
    ranks = np.array([[1.0] * 8, [2.0] * 8, [NAN] * 6 + [3.0] * 2])
    mean, low, high = rank_intervals(ranks)
    random = (6 * (1 + 2) + 2 * (5**2 + 2 * (1 + 4**2))) / 8**2 / 12
    assert high[0] == pytest.approx(1 + stats.t.ppf(0.975, 7) * math.sqrt(random / 8))
    assert np.isnan(low).tolist() == [False, False, True]


def test_bounds_and_letters_of_one_task_follow_from_its_tests():
    rank = np.array([1, 2, 3, NAN])
    p = np.ones((4, 4))
    p[0, 2] = p[2, 0] = 0.01
    p[3], p[:, 3] = NAN, NAN
    low, high, top = rank_bounds(rank, p)
    assert low.tolist()[:3] == [1, 1, 2] and high.tolist()[:3] == [2, 3, 3]
    assert np.isnan(low[3]) and top.tolist() == [True, True, False, False]
    assert letters_of(rank, p) == ["a", "ab", "b", ""]
    # nothing is tested: neither bounds nor letters
    low, high, top = rank_bounds(rank, np.full((4, 4), NAN))
    assert np.isnan([low, high]).all() and letters_of(rank, np.full((4, 4), NAN)) == [""] * 4


def tied(models, *pairs):
    made = np.eye(models, dtype=bool)
    for a, b in pairs:
        made[a, b] = made[b, a] = True
    return made


def test_borda_counts_models_beaten():
    # task 1: 3 beaten, a tie of two above one: 1.5 each, 0; task 2: b above c alone
    ranks = np.array([[1, NAN], [2.5, 1], [2.5, 2], [4, NAN]])
    assert borda(ranks).tolist() == [3, 1.5 + 1, 1.5 + 0, 0]
    assert np.isnan(borda(np.full((2, 1), NAN))).all()


def rated(*tasks, anchor=None):
    return elo(ranks(*tasks).each, anchor)


def test_two_models_have_the_odds_of_their_wins():
    # six wins and two losses, and a tenth of a win each for the task on which all are equal
    found = rated(*[[2, 1]] * 6, *[[1, 2]] * 2)
    gap = 400 * math.log10((6 + EQUAL_TASKS / 2) / (2 + EQUAL_TASKS / 2))
    assert found.mean == pytest.approx([1500 + gap / 2, 1500 - gap / 2])
    # the strength of the first is θ, its share of wins s; a task moves the difference of both by
    # its wins beyond s, divided by 8.2 · s · (1 - s)
    share = 6.1 / 8.2
    beyond = [1 - share] * 6 + [-share] * 2 + [0.2 * (0.5 - share)]
    error = math.sqrt(sum(x**2 for x in beyond) * 9 / 8) / (8.2 * share * (1 - share))
    half = stats.t.ppf(0.975, 7) * error / 2 * POINTS
    assert found.high - found.mean == pytest.approx([half, half])
    assert found.mean - found.low == pytest.approx([half, half])


def test_a_tie_is_half_a_win_for_both():
    found = rated(*[[1, 1]] * 6)
    assert found.mean == pytest.approx([1500, 1500])
    # two wins and four ties are four of six
    won = rated(*[[2, 1]] * 2, *[[1, 1]] * 4).mean
    assert won[0] - won[1] == pytest.approx(400 * math.log10(4.1 / 2.1))


def test_what_wins_and_losses_do_not_determine_has_no_rating():
    # the first always wins, the last always loses: both have no finite strength
    always = [*[[9, 5, 6, 1]] * 5, *[[9, 6, 5, 1]] * 4]
    # and the two others are only half of the models
    assert np.isnan(rated(*always).mean).all()
    three = rated(*[task[:3] for task in always])
    assert np.isnan(three.mean).tolist() == [True, False, False]
    assert three.mean[1:] == pytest.approx(rated(*[task[1:3] for task in always]).mean)
    # a single upset does not determine the odds, two do
    assert np.isnan(rated(*[[2, 1]] * 9, [1, 2]).mean).all()
    assert np.isfinite(rated(*[[2, 1]] * 8, *[[1, 2]] * 2).low).all()
    # and five tasks are too few
    assert np.isnan(rated(*[[2, 1]] * 3, *[[1, 2]] * 2).mean).all()


def test_the_mean_or_the_anchor_is_at_1500():
    tasks = [[3, 2, 1], [3, 1, 2], [2, 3, 1], [3, 2, 1]] * 3
    free, fixed = rated(*tasks), rated(*tasks, anchor=2)
    assert free.mean.mean() == pytest.approx(CENTER)
    assert fixed.mean[2] == fixed.low[2] == fixed.high[2] == CENTER
    assert np.diff(fixed.mean) == pytest.approx(np.diff(free.mean))


def test_a_model_without_enough_tasks_is_not_rated():
    table = np.array([[1, 2] * 4, [2, 1] * 4, [3.0] * 2 + [NAN] * 6])
    found = elo(table)
    assert np.isnan(found.mean).tolist() == [False, False, True]
    assert np.isnan(elo(table, anchor=2).mean).all()
    assert np.isnan(elo(np.full((2, 7), NAN)).mean).all()


def pairs(table):
    """Yield (winner, loser) ten times for a win, five times each way for a tie, and once each way
    for the fifth of a task on which all are equal."""
    models, tasks = table.shape
    for i, j in itertools.combinations(range(models), 2):
        yield from [(i, j), (j, i)]
        for t in range(tasks):
            a, b = table[i, t], table[j, t]
            if a == b:
                yield from [(i, j), (j, i)] * 5
            elif not np.isnan(a + b):
                yield from [(i, j) if a < b else (j, i)] * 10


@pytest.mark.parametrize("missing", [0, 0.3])
def test_strengths_equal_those_of_choix(missing):
    choix = pytest.importorskip("choix")
    assert EQUAL_TASKS == 0.2
    rng = np.random.default_rng(3)
    models, tasks = 7, 20
    scores = rng.integers(6, size=(models, tasks)) + np.arange(models)[:, None] / 2
    scores[rng.random(scores.shape) < missing] = NAN
    table = rankdata(-scores, axis=0, nan_policy="omit")
    expected = choix.opt_pairwise(models, list(pairs(table)), alpha=1e-12, tol=1e-12)
    found = elo(table).mean
    assert (found - CENTER) / POINTS == pytest.approx(expected - expected.mean(), abs=1e-4)


def test_strengths_solve_their_equations():
    # 4 models in a ring: as many wins as expected, whatever pairs were compared
    games = np.array([[0, 3, 0, 2], [3, 0, 5, 0], [0, 5, 0, 1], [2, 0, 1, 0.0]])
    wins = np.array([3.5, 3.0, 3.5, 1.0])
    strengths = bradley_terry(wins, games)
    odds = np.exp(strengths)
    expected = (games * odds[:, None] / (odds[:, None] + odds)).sum(axis=1)
    assert expected == pytest.approx(wins)
    assert strengths.mean() == pytest.approx(0)


def test_the_order_of_models_and_a_change_of_scale_change_nothing():
    rng = np.random.default_rng(0)
    values = [rng.normal(size=(6, 4)) for _ in range(19)]
    takes = np.ones((6, 19), bool)
    order = rng.permutation(6)
    ranked, other = rank_models(values, takes), rank_models([v[order] for v in values], takes)
    np.testing.assert_allclose(ranked.low[order], other.low)
    assert [ranked.ties[i] for i in order] == other.ties
    found, turned = elo(ranked.each), elo(other.each)
    scaled = elo(rank_each([v * 7 for v in values], takes))
    for name in ("mean", "low", "high"):
        assert getattr(turned, name) == pytest.approx(getattr(found, name)[order])
        assert getattr(scaled, name) == pytest.approx(getattr(found, name))
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


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_a_lead_in_ranks_agrees_with_the_letters(missing):
    rng = np.random.default_rng(7)
    separated = set()
    for _ in range(10):
        scores = rng.normal(size=(5, 9)) + np.array([1.0, 0.9, 0.5, 0.0, -1.0])[:, None]
        takes = rng.random(scores.shape) >= missing
        takes[0] = True
        each = rank_each(list(scores.T[:, :, None]), takes)
        found, p = rank_leads(each, 0), step_down(each)[0]
        mean = rank_intervals(each)[0]
        np.testing.assert_allclose(found.value, mean - mean[0])
        assert np.isnan(found.low[0]) and np.array_equal(found.p, p, equal_nan=True)
        tested = np.flatnonzero(~np.isnan(found.low))
        apart = (found.low > 0) | (found.high < 0)
        assert np.array_equal(apart[tested], p[tested] < 0.05)
        separated |= set(apart[tested].tolist())
        assert np.isnan(found.low[np.isnan(p)]).all()
    assert separated == {True, False}


def test_leads_of_a_leaderboard_hold_together():
    rng, skill, held = np.random.default_rng(8), np.array([0.6, 0.3, 0.0, 0.0]), []
    scores = rng.normal(size=(4, 20_000)) + skill[:, None]
    expected = (5 - rankdata(scores, axis=0)).mean(axis=1)
    for _ in range(150):
        scores = rng.normal(size=(4, 12)) + skill[:, None]
        each = 5 - rankdata(scores, axis=0)
        first = int(each.mean(axis=1).argmin())
        found, truth = rank_leads(each, first), expected - expected[first]
        others = np.arange(4) != first
        held.append(((found.low <= truth) & (truth <= found.high))[others].all())
    assert np.mean(held) >= 0.93


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
    # five tasks are too few to rule out a model, and so is a model without enough shared tasks
    assert top_set(ranks[:, :5]).all()
    ranks[6, 5:] = NAN
    assert top_set(ranks)[6]
    ranks[6] = NAN
    assert not top_set(ranks)[6]


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


# -- calibration: small simulations with known truth -----------------------------------------

RUNS, MODELS, TASKS = 200, 6, 10


def simulated(skill, seed):
    """Yield ranks of models on tasks: skill, and a normal effect of each task on each model."""
    rng = np.random.default_rng(seed)
    for _ in range(RUNS):
        yield rankdata(-(skill[:, None] + rng.normal(size=(len(skill), TASKS))), axis=0)


def test_equal_models_are_rarely_separated_and_rarely_left_out_of_the_top():
    found = [(step_down(r) < 0.05, top_set(r)) for r in simulated(np.zeros(MODELS), 1)]
    # at most 5 % of the runs have any false difference; 99.9 % of binomial counts are below 10.5 %
    assert np.mean([differ.any() for differ, _ in found]) <= 0.105
    assert np.mean([top[0] for _, top in found]) >= 0.895


def test_equal_models_among_better_ones_are_rarely_separated():
    skill = np.array([2.0, 2.0, 0, 0, 0, 0])
    alike = skill[:, None] == skill
    found = [step_down(r) < 0.05 for r in simulated(skill, 2)]
    assert np.mean([(differ & alike).any() for differ in found]) <= 0.105
    # and what differs is found: at least half of the eight pairs
    assert np.mean([differ[:2, 2:].mean() for differ in found]) > 0.5


def test_intervals_of_ranks_and_ratings_hold_the_truth():
    skill = np.linspace(1.5, 0, MODELS)
    wins = stats.norm.cdf((skill[:, None] - skill) / math.sqrt(2))
    np.fill_diagonal(wins, 0)
    expected = MODELS - wins.sum(axis=1)  # the rank is 1 + the models that are better
    strengths = bradley_terry(wins.sum(axis=1), 1 - np.eye(MODELS))
    covered, rated, best = [], [], []
    for ranks in simulated(skill, 3):
        _, low, high = rank_intervals(ranks)
        covered.append((low <= expected) & (expected <= high))
        found = elo(ranks)
        shown = ~np.isnan(found.mean)
        true = CENTER + POINTS * (strengths - (strengths[shown].mean() if shown.any() else 0))
        rated.append(((found.low <= true) & (true <= found.high))[shown])
        best.append(top_set(ranks)[0])
    assert 0.92 <= np.mean(covered) <= 0.99
    assert 0.92 <= np.mean(np.concatenate(rated)) <= 0.99
    assert np.concatenate(rated).size > 0.8 * RUNS * MODELS
    assert np.mean(best) >= 0.895
