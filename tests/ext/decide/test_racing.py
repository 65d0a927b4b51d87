"""Races: wealth is fair under the null, known e-values, goals, ties, failures, later models."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from karat.ext.decide.racing import (
    BETS,
    DECIDED,
    ELIMINATED,
    EQUIVALENT,
    LOSS_BETS,
    RaceState,
    Rules,
    fewest_tasks,
    loss_e_process,
    paired_signs,
    signs_within,
)


def play(state, scores):
    """Use the tasks of models × tasks (× folds) until the race is over."""
    table = scores if scores.ndim == 3 else scores[:, :, None]
    for t in range(table.shape[1]):
        if state.over:
            break
        state.update(table[:, t], np.ones(len(table), dtype=bool))
    return state


def always(*means, tasks=60):
    """Return scores of models with the same score on all tasks."""
    return np.tile(np.array(means, dtype=float)[:, None], tasks)


def test_wealth_is_fair_if_wins_and_losses_are_equally_likely():
    # the mean over all 2^8 sequences of wins and losses is the expected wealth
    ends = []
    for signs in itertools.product([-1.0, 1.0], repeat=8):
        state = RaceState(Rules(level=1e-9), [0, 0])
        play(state, np.stack([np.zeros(8), np.array(signs)]))
        ends.append(state.e_values()[0, 1])
    assert np.mean(ends) == pytest.approx(1.0, rel=1e-12)
    assert max(ends) == pytest.approx(np.mean((1 + BETS) ** 8))


@pytest.mark.parametrize(("models", "level"), [(2, 0.05), (5, 0.05), (5, 0.2), (25, 0.01)])
def test_a_model_that_always_loses_leaves_at_the_first_possible_task(models, level):
    rules = Rules(level=level)
    # one loses against all, which are equal
    state = play(RaceState(rules, [0] * models), always(0.1, *[0.5] * (models - 1), tasks=40))
    (left,) = state.exits
    assert (left.model, left.reason) == (0, ELIMINATED)
    assert left.after == fewest_tasks(rules, models)
    assert left.e_value == pytest.approx(np.mean((1 + BETS) ** left.after))
    assert left.e_value >= left.needed == pytest.approx(models / level)
    assert np.mean((1 + BETS) ** (left.after - 1)) < left.needed


def test_the_evidence_is_the_mean_over_the_opponents():
    # model 0 loses against 1 and ties with 2: half of the evidence
    state = play(RaceState(Rules(level=1e-9), [0] * 3), always(0.5, 0.6, 0.5, tasks=5))
    lost, tied = np.mean((1 + BETS) ** 5), 1.0
    assert state.evidence[0] == pytest.approx((lost + tied) / 2)


def test_no_best_model_is_eliminated_more_often_than_the_level_allows():
    # heavy tails, correlated folds, equal models: any elimination is wrong
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        task = rng.standard_t(2, size=(8, 50, 1))
        scores = task + 0.5 * rng.standard_t(2, size=(8, 50, 3))
        wrong += bool(play(RaceState(Rules(level=0.2), [0] * 8), scores).exits)
    # level 0.2: 40 expected at most; the union bound is far from sharp
    assert wrong <= 40


def test_the_best_model_is_found():
    found = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        scores = rng.standard_normal((6, 60)) + np.array([2.0, 0, 0, -1, -1, -2])[:, None]
        state = play(RaceState(Rules(), [0] * 6), scores)
        found += np.flatnonzero(state.remaining).tolist() == [0]
    assert found == 30


def test_ties_decide_nothing():
    state = play(RaceState(Rules(), [0] * 3), always(0.5, 0.5, 0.5))
    assert state.remaining.all() and not state.exits
    assert np.allclose(state.evidence, 1.0)


def test_a_failed_job_loses_against_every_score_and_ties_with_another():
    scores = np.array([[math.nan], [-5.0], [math.nan]])
    assert paired_signs(scores).tolist() == [[0, 1, 0], [-1, 0, -1], [0, 1, 0]]
    # a failure in one of two folds
    assert paired_signs(np.array([[0.9, math.nan], [0.8, 0.1]]))[0, 1] == 0


def test_a_task_counts_once_with_any_number_of_folds():
    one = play(RaceState(Rules(), [0, 0]), always(0.1, 0.5, tasks=7))
    many = RaceState(Rules(), [0, 0])
    play(many, np.repeat(always(0.1, 0.5, tasks=7)[:, :, None], 10, axis=2))
    assert one.e_values().tolist() == many.e_values().tolist()


def test_declined_tasks_count_for_no_pair_of_the_model():
    state = RaceState(Rules(level=1e-9), [0] * 3)
    for t in range(6):
        takes = np.array([True, True, t < 2])
        state.update(np.array([[0.1], [0.5], [0.9]]), takes)
    e_values = state.e_values()
    assert e_values[0, 1] == pytest.approx(np.mean((1 + BETS) ** 6))
    assert e_values[0, 2] == pytest.approx(np.mean((1 + BETS) ** 2))
    assert state.compared.tolist() == [6, 6, 2]


def test_a_task_of_one_model_changes_nothing():
    state = RaceState(Rules(), [0, 0])
    state.update(np.array([[0.1], [0.5]]), np.array([True, False]))
    assert state.tasks == 1 and (state.e_values() == 1).all()


@pytest.mark.parametrize("keep", [1, 2, 3])
def test_as_many_models_remain_as_the_goal_says(keep):
    means = [0.9, 0.8, 0.7, 0.3, 0.2, 0.1]
    state = play(RaceState(Rules(keep=keep), [0] * 6), always(*means))
    assert np.flatnonzero(state.remaining).tolist() == list(range(keep))
    assert state.over and len(state.exits) == 6 - keep


def test_a_cycle_of_wins_never_removes_all_models():
    # a beats b, b beats c, c beats a on all tasks: no model is the best
    ranks = np.array([[3, 1, 2], [2, 3, 1], [1, 2, 3]], dtype=float)
    scores = np.stack([ranks[:, t % 3] for t in range(300)], axis=1)
    state = play(RaceState(Rules(level=0.5), [0] * 3), scores)
    assert state.remaining.sum() >= 1


def test_order_separates_all_pairs_and_models_stop_when_theirs_are_decided():
    state = play(RaceState(Rules(keep=0), [0] * 3), always(0.1, 0.5, 0.9))
    assert state.worse.tolist() == [[0, 1, 1], [0, 0, 1], [0, 0, 0]]
    assert {each.reason for each in state.exits} == {DECIDED} and state.over
    assert state.tasks == fewest_tasks(Rules(keep=0), 3)
    assert state.remaining.all()


def test_order_leaves_ties_open():
    state = play(RaceState(Rules(keep=0), [0] * 3), always(0.5, 0.5, 0.9))
    assert not state.over and state.running.tolist() == [True, True, False]


def test_models_within_the_margin_are_equivalent_and_stop():
    rng = np.random.default_rng(0)
    close = 0.8 + rng.uniform(-0.004, 0.004, size=(2, 60))
    state = play(RaceState(Rules(margin=0.01), [0, 0]), close)
    assert [each.reason for each in state.exits] == [EQUIVALENT, EQUIVALENT]
    assert state.over and state.remaining.all() and state.tasks < 30


def test_models_that_differ_by_more_than_the_margin_are_not_equivalent():
    state = play(RaceState(Rules(margin=0.01), [0, 0]), always(0.80, 0.85))
    assert not state.equal.any() and [each.reason for each in state.exits] == [ELIMINATED]


def test_wrong_equivalences_are_rare():
    # the median difference is exactly the margin: equivalence is wrong
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        scores = np.stack([np.zeros(60), 0.01 + 0.02 * rng.standard_t(2, size=60)])
        wrong += play(RaceState(Rules(level=0.2, margin=0.01), [0, 0]), scores).equal.any()
    assert wrong <= 0.1 * 200


def test_a_margin_may_be_a_share():
    scores = np.array([[-100.0], [-100.5], [-120.0]])
    assert signs_within(scores, 0.01, relative=True)[1, 0] == 1
    assert signs_within(scores, 0.01, relative=True)[2, 0] == -1
    assert signs_within(scores, 0.01)[1, 0] == -1
    failed = np.array([[math.nan], [math.nan], [0.5]])
    assert signs_within(failed, 0.01).tolist() == [[0, 0, -1], [0, 0, -1], [1, 1, 1]]


def test_a_model_that_joins_later_eliminates_others_only_after_it_joined():
    # the third is far better and joins after 20 tasks, whose scores it also has
    state = RaceState(Rules(), [0, 0, 1], since=[0, 20])
    play(state, always(0.5, 0.5, 0.9, tasks=40))
    assert {each.after for each in state.exits} == {21}
    assert np.flatnonzero(state.remaining).tolist() == [2]


def test_a_model_that_joins_later_can_leave_before():
    state = RaceState(Rules(), [0, 0, 1], since=[0, 20])
    play(state, always(0.5, 0.5, 0.1, tasks=40))
    (left,) = state.exits
    assert left.model == 2 and left.after < 20
    # its level is half of that of the first models
    assert left.needed == pytest.approx(3 / 0.025)


def test_decisions_on_the_first_models_do_not_depend_on_later_ones():
    rng = np.random.default_rng(3)
    scores = rng.standard_normal((5, 50)) + np.array([2.0, 1, 0, 0, 3])[:, None]
    alone = play(RaceState(Rules(), [0] * 4), scores[:4])
    joined = play(RaceState(Rules(), [0, 0, 0, 0, 1], since=[0, 50]), scores)
    assert alone.exits and [each for each in joined.exits if each.model != 4] == alone.exits


def test_long_races_do_not_overflow():
    state = RaceState(Rules(keep=0, level=1e-300), [0, 0])
    play(state, always(0.1, 0.9, tasks=3000))
    assert np.isfinite(state.e_values()).all()


@pytest.mark.parametrize("goal", ["", "worst", "top-0", "top", "top-1.5", "best ", "TOP-3"])
def test_unknown_goals(goal):
    with pytest.raises(ValueError):
        Rules.read(goal, 0.95)


@pytest.mark.parametrize(
    ("means", "keep", "batches", "since", "best"),
    [
        ([0.0] * 8, 1, [0] * 4 + [1] * 4, [0, 20], range(8)),  # equal, half of them join later
        ([0.0] * 4 + [-2.0] * 4, 3, [0] * 8, [0], range(4)),  # four are among the best three
        ([3.0, 0, 0, -2, -2, -2], 2, [0] * 6, [0], range(3)),  # two share the second place
    ],
)
def test_protected_models_are_rarely_eliminated(means, keep, batches, since, best):
    rules, wrong = Rules(keep=keep, level=0.2), 0
    for seed in range(60):
        noise = np.random.default_rng(seed).standard_t(2, size=(len(means), 50))
        state = play(RaceState(rules, batches, since), noise + np.array(means)[:, None])
        wrong += not state.remaining[list(best)].all()
    assert wrong <= 60 * rules.error(len(since))


def test_by_hand():
    found = loss_e_process([-1.0, 0.0, 1.0], margin=0.1)
    bets = LOSS_BETS / 1.1
    expected = np.cumprod([1 + 0.9 * bets, 1 - 0.1 * bets, 1 - 1.1 * bets], axis=0).mean(axis=1)
    assert found == pytest.approx(expected)
    with pytest.raises(ValueError, match="1"):
        loss_e_process([2.0], margin=0.1)


@pytest.mark.parametrize("differing", [0.02, 0.1, 0.5])
def test_false_alarms_at_any_time_are_below_the_level(differing):
    """The true loss is the margin; the process is read after each of 1,500 items."""
    rng, margin, runs = np.random.default_rng(0), 0.02, 400
    chances = [(differing + margin) / 2, 1 - differing, (differing - margin) / 2]
    for level in (0.05, 0.2):
        drawn = rng.choice([-1.0, 0.0, 1.0], (runs, 1500), p=chances)
        alarms = np.mean([loss_e_process(own, margin).max() >= 1 / level for own in drawn])
        assert alarms <= level + 2 * np.sqrt(level * (1 - level) / runs)


def test_expected_value_is_one_at_the_margin():
    """By enumeration: of three items whose mean difference is the margin."""
    values, chances = np.array([-1.0, 0.0, 1.0]), np.array([0.3, 0.5, 0.2])
    whole = 0.0
    for places in np.ndindex(3, 3, 3):
        own = list(places)
        whole += chances[own].prod() * loss_e_process(values[own], margin=0.1)[-1]
    assert whole == pytest.approx(1.0)


def test_a_clear_loss_is_found_early():
    rng = np.random.default_rng(1)
    drawn = rng.choice([-1.0, 0.0, 1.0], (100, 1000), p=[0.15, 0.8, 0.05])
    stops = [int(np.argmax(loss_e_process(own, 0.01) >= 100)) for own in drawn]
    assert 0 < np.median(stops) < 400
