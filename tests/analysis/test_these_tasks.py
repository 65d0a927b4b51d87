"""What two to five tasks show: means, intervals, p by hand, and a simulation with known truth."""

import numpy as np
import pytest
from scipy import stats

from karat.analysis.item_tests import AS_FITTED, LEARNERS, Separation
from karat.analysis.leaderboard import leaderboard
from karat.analysis.these_tasks import MARGIN, PairDifferences, these_tasks
from karat.stats.paired_tests import MeanDifference

from ..score_data import score_table


def separation(gains, error=0.01, freedom=20.0, **more):
    """Return the test of a task from the gain of each model over the last one."""
    gains = np.asarray(gains, dtype=float)
    difference = gains[:, None] - gains
    errors = np.where(np.eye(len(gains), dtype=bool), 0.0, error)
    errors = np.where(np.isnan(difference), np.nan, errors)
    p = np.where(np.eye(len(gains), dtype=bool), 1.0, 0.0)
    facts = {"p": p, "test": "t over items", "claim": AS_FITTED, "step": 0.0, **more}
    return Separation(
        difference=difference, error=errors, freedom=np.full(errors.shape, freedom), **facts
    )


def find(*tests, takes=None):
    models = len(tests[0].p)
    takes = np.ones((models, len(tests)), dtype=bool) if takes is None else takes
    names, tasks = list("abcdefgh"[:models]), [f"t{t}" for t in range(len(tests))]
    return these_tasks(names, tasks, takes, tests)


def test_numbers_of_pairs_are_those_of_single_differences():
    rng = np.random.default_rng(0)
    for step in (0.0, 0.002):
        gain, error = rng.normal(0, 0.02, (3, 4, 4)), rng.uniform(0.002, 0.02, (3, 4, 4))
        gain, error = gain - gain.swapaxes(1, 2), (error + error.swapaxes(1, 2)) / 2
        freedom = np.full(gain.shape, 7.0)
        pairs = PairDifferences(gain, error, freedom, np.full(gain.shape, step))
        found = pairs.over_tasks()
        each = [MeanDifference(gain[t, 0, 1], error[t, 0, 1], 7.0, step) for t in range(3)]
        expected = MeanDifference.over_tasks(each)
        assert found.gain[0, 1] == pytest.approx(expected.mean)
        assert found.error[0, 1] == pytest.approx(expected.error)
        assert found.freedom[0, 1] == pytest.approx(expected.freedom)
        assert found.p_above(0.01)[0, 1] == pytest.approx(expected.p_above(0.01))
        assert [end[0, 1] for end in found.bounds()] == pytest.approx(list(expected.interval()))


def test_a_mean_over_two_tasks_by_hand():
    found = find(separation([0.03, 0.0], 0.01), separation([0.05, 0.0], 0.02))
    row = found.against(1)[0]
    # errors 0.01 and 0.02: √(0.0001 + 0.0004) / 2, and Welch's degrees of freedom
    error, freedom = np.sqrt(0.0005) / 2, 0.0005**2 / ((0.0001**2 + 0.0004**2) / 20)
    half = stats.t.ppf(0.975, freedom) * error
    assert row["difference"] == pytest.approx(0.04) and row["tasks"] == row["tested"] == 2
    assert (row["low"], row["high"]) == pytest.approx((0.04 - half, 0.04 + half))
    assert row["p"] == pytest.approx(2 * stats.t.sf(0.04 / error, freedom))
    assert row["verdict"] == "better" and found.against(0)[1]["verdict"] == "worse"
    # one pair on two tasks: p of each task is doubled
    assert row["by_task"][0]["p"] == pytest.approx(2 * 2 * stats.t.sf(3, 20))


def test_intervals_and_p_are_corrected_for_all_pairs():
    found = find(*[separation([0.02, 0.01, 0.0])] * 3)
    single = find(*[separation([0.02, 0.01])] * 3)
    assert found.p[0, 1] == pytest.approx(3 * single.p[0, 1])  # three pairs
    low, high = found.bounds
    excludes = (low > 0) | (high < 0)
    np.fill_diagonal(excludes, False)
    assert (excludes == (found.p < 0.05)).all()


def test_a_difference_on_a_task_also_needs_the_test_of_the_task():
    test = separation([0.5, 0.0])
    unsure = separation([0.5, 0.0], p=np.array([[1.0, 0.03], [0.03, 1.0]]))
    assert find(test, test).verdict_on(0, 0, 1) == "better"
    assert find(unsure, unsure).verdict_on(0, 0, 1) == "open"  # 0.03 twice
    assert find(unsure, unsure).p_each[0, 0, 1] == pytest.approx(0.06)
    # the interval is that of the verdict
    for found, apart in ((find(test, test), True), (find(unsure, unsure), False)):
        low, high = (ends[0, 0, 1] for ends in found.bounds_each)
        assert (low > 0 or high < 0) == apart and low < 0.5 < high


def test_equal_scores_are_equal_and_never_better():
    found = find(*[separation([0.0, 0.0], 0.0, step=0.01)] * 3)
    assert found.verdict(0, 1) == "equal" and found.p[0, 1] == 1.0
    assert found.letters(np.array([1.0, 2.0])) == ["a", "a"]
    mixed = find(separation([0.001, 0.0], 0.0005), *[separation([0.0, 0.0], 0.0)] * 4)
    assert [row["verdict"] for row in mixed.against(0)[1]["by_task"]][1:] == ["equal"] * 4
    assert mixed.verdict(0, 1) == "same"


def test_the_same_is_an_interval_within_the_margin():
    narrow, wide = separation([0.001, 0.0], 0.002), separation([0.001, 0.0], 0.02)
    assert find(narrow, narrow).verdict(0, 1) == "same"
    low, high = find(narrow, narrow).bounds
    assert -MARGIN < low[0, 1] and high[0, 1] < MARGIN
    assert find(wide, wide).verdict(0, 1) == "open"


def test_models_that_share_fewer_tasks_are_compared_on_those():
    takes = np.array([[True, True], [True, True], [False, True]])
    gains = [separation([0.1, 0.0, np.nan]), separation([0.1, 0.0, 0.12], 0.05)]
    found = find(*gains, takes=takes)
    row = found.against(0)[2]
    assert (row["tasks"], row["tested"], row["verdict"]) == (1, 1, "open")
    assert [on["task"] for on in row["by_task"]] == ["t1"]
    assert found.letters(np.array([1.0, 2.0, 1.0])) == ["a", "b", "ab"]
    assert found.may_be_best(np.array([1.0, 2.0, 1.0])).tolist() == [True, False, True]


def test_tasks_without_a_test_are_left_out_of_the_mean():
    nothing = Separation(np.where(np.eye(2, dtype=bool), 1.0, np.nan), why="one fold")
    found = find(separation([0.1, 0.0], claim=LEARNERS), nothing)
    row = found.against(0)[1]
    assert (row["tasks"], row["tested"], found.claim) == (2, 1, LEARNERS)
    assert [on["verdict"] for on in row["by_task"]] == ["worse", "not tested"]
    assert find(nothing, nothing).why == "one fold" and not find(nothing, nothing).test


def test_two_to_five_tasks_have_letters_and_differences_and_no_rank_interval():
    models = {"a": [0.90, 0.92, 0.91], "b": [0.70, 0.73, 0.70], "c": [0.10, 0.14, 0.13]}
    for tasks in (2, 5):
        board = leaderboard(score_table({f"t{i}": models for i in range(tasks)}))
        assert board.attrs["separation"]["by"] == "these tasks"
        assert board["tie"].tolist() == ["a", "b", "c"]
        assert board["top"].tolist() == [True, False, False]
        assert board[["rank_low", "rank_high"]].isna().all(axis=None)
        assert board["difference"].tolist() == pytest.approx([0, -0.2, -0.787], abs=1e-3)
        assert board["difference_high"].iloc[1] < -0.15


def test_six_tasks_have_the_differences_on_request():
    models = {"a": [0.90, 0.92], "b": [0.70, 0.73]}
    table = score_table({f"t{i}": models for i in range(6)})
    assert "difference" not in leaderboard(table) and not leaderboard(table).attrs["these_tasks"]
    board = leaderboard(table, columns=["difference"])
    assert board.attrs["separation"]["by"] == "tasks"
    assert board.loc["b", "difference"] == pytest.approx(-0.195)


def test_equal_models_are_rarely_told_apart():
    rng, false = np.random.default_rng(0), 0
    models, tasks, boards = 5, 5, 300
    one, other = np.triu_indices(models, 1)
    for _ in range(boards):
        tests = []
        for _ in range(tasks):
            items = rng.normal(size=(models, 60)) + rng.normal(size=60)
            apart = items[:, None] - items[None]
            error = apart.std(axis=2, ddof=1) / np.sqrt(60)
            test = separation(items.mean(axis=1), error, 59.0)
            tests.append(test)
        found = find(*tests)
        false += bool((found.p[one, other] < 0.05).any() or (found.p_each < 0.05).any())
    # both families at 5 %: at most 0.07 each
    assert false / boards <= 0.12


def test_a_requested_difference_is_missing_where_nothing_is_tested():
    board = leaderboard(score_table({"t": {"a": 0.9, "b": 0.5}}), columns=["difference"])
    assert board["difference"].isna().all() and not board.attrs["these_tasks"]
    alone = leaderboard(score_table({"t": {"a": 0.9}}), columns=["difference"])
    assert alone["difference"].isna().all()
