"""The rules for missing scores, each on an example worked out by hand.

Normalized scores, medians and shares of wins that can be worked out on paper.
"""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from karat.analysis.leaderboard import leaderboard
from karat.analysis.score_matrix import (
    RankedScores,
    connected_groups,
    normalize,
    over_tasks,
    significant,
)
from karat.errors import DefinitionError

from ..score_data import score_table


def ranks(rows, rule, **options):
    return leaderboard(rows, missing=rule, **options)["rank"].dropna().to_dict()


FAILED_FOLD = score_table({"t": {"a": [0.9, None], "b": [0.5, 0.2], "c": [0.6, 0.6]}})


@pytest.mark.parametrize(
    "rule, expected",
    [
        # a: 0.9 and the worst of fold 1, 0.2; b: 0.5 and 0.2; c: 0.6 twice
        ("worst", {"c": 1, "a": 2, "b": 3}),
        # fold 0 alone: 0.9, 0.5, 0.6
        ("exclude", {"a": 1, "c": 2, "b": 3}),
        # a: 0.9 and c's 0.6
        ("baseline:c", {"a": 1, "c": 2, "b": 3}),
        # as the worst
        ("penalize", {"c": 1, "a": 2, "b": 3}),
        # a: 0.9 and b's 0.2
        ("baseline:b", {"c": 1, "a": 2, "b": 3}),
    ],
)
def test_a_failed_fold(rule, expected):
    assert ranks(FAILED_FOLD, rule) == expected


HOLES = score_table(
    {
        "t": {"a": 0.9, "b": 0.5, "c": 0.1},
        "u": {"a": 0.2, "b": 0.4},
        "v": {"a": 0.3, "b": 0.1, "c": None},
    }
)


def test_worst_leaves_out_what_was_not_taken():
    # c: third of three on t, nothing on u, third on v
    assert ranks(HOLES, "worst") == {"a": (1 + 2 + 1) / 3, "b": (2 + 1 + 2) / 3, "c": 3}
    counts = {"failed": 1, "declined": 0, "not run": 1, "imputed": 0, "penalized": 0, "partial": 0}
    totals = {"cells": 9, "tasks": 3, "of": 3}
    assert leaderboard(HOLES).attrs["missing"] == {"rule": "worst", **counts, **totals}


def test_exclude_compares_on_what_all_have():
    board = leaderboard(HOLES, missing="exclude")
    assert board["rank"].to_dict() == {"a": 1, "b": 2, "c": 3}
    assert (board.attrs["missing"]["tasks"], board.attrs["missing"]["of"]) == (1, 3)
    # what was measured is shown all the same
    assert board.loc["a", ["t", "u", "v"]].tolist() == [0.9, 0.2, 0.3]


def test_exclude_without_common_scores():
    lost = leaderboard(score_table({"t": {"a": 0.9, "b": 0.5, "x": None}}), missing="exclude")
    assert lost["rank"].dropna().to_dict() == {"a": 1, "b": 2}, "a model without scores is ignored"
    apart = leaderboard(score_table({"t": {"a": 0.9}, "u": {"b": 0.5}}), missing="exclude")
    assert apart["rank"].isna().all()
    assert apart.attrs["missing"]["tasks"] == 0


def test_a_baseline_replaces_every_missing_score():
    # u: c counts as b's 0.4, so b and c share 1 and 2; v: c counts as b's 0.1
    expected = {"a": (1 + 3 + 1) / 3, "b": (2 + 1.5 + 2.5) / 3, "c": (3 + 1.5 + 2.5) / 3}
    board = leaderboard(HOLES, missing="baseline:b")
    assert board["rank"].to_dict() == expected
    assert board.attrs["missing"]["imputed"] == 2
    assert board.loc["c", "u"] == 0.4 and board.loc["c", "v"] == 0.1


def test_scores_that_the_baseline_lacks():
    board = leaderboard(HOLES, missing="baseline:c")
    assert board["rank"].to_dict() == ranks(HOLES, "worst")
    assert board.attrs["missing"]["imputed"] == 0


def test_penalize_counts_tasks_not_taken_as_the_worst():
    # u: c is third of three, as on t and v
    board = leaderboard(HOLES, missing="penalize")
    assert board["rank"].to_dict() == {"a": (1 + 2 + 1) / 3, "b": (2 + 1 + 2) / 3, "c": 3}
    assert board.attrs["missing"]["penalized"] == 2
    # on u two lack: they share the last places; under "worst" only a and b are compared there
    two = score_table({"t": {"a": 4, "b": 3, "c": 2, "d": 1}, "u": {"c": 1, "d": 2}})
    assert ranks(two, "penalize") == {"a": 2.25, "b": 2.75, "c": 2.5, "d": 2.5}
    # by pairs: c and d each beat the other once, and lose to a and b
    assert ranks(two, "worst") == {"a": 1, "b": 2, "c": 3.5, "d": 3.5}


def test_penalize_counts_folds_not_run():
    # b: 0.6 and the worst of fold 1, 0.9: a mean of 0.75 against 0.7 and 0.525
    rows = score_table({"t": {"a": [0.5, 0.9], "b": 0.6, "c": [0.1, 0.95]}})
    assert ranks(rows, "penalize") == {"b": 1, "a": 2, "c": 3}
    rows = score_table({"t": {"a": [0.5, 0.9], "b": 0.6, "c": [0.1, 0.1]}})
    assert ranks(rows, "penalize") == {"a": 1, "b": 2, "c": 3}
    # a task of which nobody has a score counts for nobody
    lost = score_table({"t": {"a": 0.5, "b": 0.6}, "u": {"a": None, "b": None}})
    board = leaderboard(lost, missing="penalize")
    assert board["rank"].to_dict() == {"b": 1, "a": 2}
    assert board.attrs["missing"]["of"] == 1


def test_common_is_an_alias_of_exclude():
    one, other = (leaderboard(HOLES, missing=rule) for rule in ("common", "exclude"))
    pd.testing.assert_frame_equal(one, other)
    assert one.attrs["missing"] == other.attrs["missing"]


def test_normalized_scores_follow_the_rule():
    # t: 1, 0.5, 0; u: 0, 1 and nothing; v: 1, 0 and the worst, 0
    worst = leaderboard(HOLES, normalize="range")["score"]
    assert worst.round(12).to_dict() == {"a": round(2 / 3, 12), "b": 0.5, "c": 0.0}
    # u: c as b, 1; v: c as b, 0
    imputed = leaderboard(HOLES, normalize="range", missing="baseline:b")["score"]
    assert imputed["c"] == pytest.approx((0 + 1 + 0) / 3)
    # t alone
    common = leaderboard(HOLES, normalize="range", missing="exclude")["score"]
    assert common.round(12).to_dict() == {"a": 1.0, "b": 0.5, "c": 0.0}


def test_unfinished_runs_are_compared_on_common_folds():
    rows = score_table({"t": {"a": [0.5, 0.9], "b": 0.6}})
    for rule in ("worst", "exclude", "baseline:a"):
        board = leaderboard(rows, missing=rule)
        assert board["rank"].to_dict() == {"b": 1, "a": 2}
        assert board.attrs["missing"]["partial"] == 1


@pytest.mark.parametrize(
    "option, given, words",
    [
        ("missing", "wrost", '"worst"?'),
        ("missing", None, "None"),
        ("missing", "baseline:aa", '"a"?'),
        ("missing", "baseline:", "a, b, c"),
        ("normalize", "rnge", '"range"?'),
        ("normalize", "baseline:x", '"x"'),
        ("normalize", "baseline:a,x", '"x"'),
        ("by", "tasks", '"task"?'),
    ],
)
def test_wrong_rules_raise(option, given, words):
    with pytest.raises(DefinitionError) as error:
        leaderboard(HOLES, **{option: given})
    assert words in str(error.value)


@given(st.lists(st.floats(-1e9, 1e9).filter(lambda x: x == 0 or abs(x) > 1e-9), min_size=1))
def test_significant_digits(values):
    given = np.array(values)
    rounded = significant(given)
    assert np.allclose(rounded, given, rtol=5.1e-6, atol=0)
    assert np.array_equal(significant(rounded), rounded)
    order = np.argsort(given, kind="stable")
    assert (np.diff(rounded[order]) >= 0).all()


def test_numerical_noise_does_not_rank():
    scores = {"a": [54.91703041447251], "b": [54.91703046134013], "c": [60.0]}
    board = leaderboard(score_table({"t": scores}, "rmse"))
    assert board["rank"].to_dict() == {"a": 1.5, "b": 1.5, "c": 3.0}
    assert board.loc["b", "t"] == 54.91703046134013


NAN = np.nan


def compared(*tasks, takes=None):
    values = [np.asarray(task, dtype=float) for task in tasks]
    models = [f"m{i}" for i in range(len(values[0]))]
    takes = np.ones((len(models), len(values))) if takes is None else np.asarray(takes)
    return RankedScores(models, [f"t{i}" for i in range(len(values))], values, takes.astype(bool))


def column(task, baseline=None, one=None, takes=None):
    return normalize(compared(task, takes=takes), baseline, one).ravel().tolist()


@pytest.mark.parametrize(
    "task, options, expected",
    [
        ([[0.9], [0.5], [0.6]], {}, [1, 0, 0.25]),
        # the mean over folds: 2, 4, 3
        ([[1, 3], [4, 4], [3, 3]], {}, [0, 1, 0.5]),
        # a failed fold is the worst of that fold: 9 and 2 are 5.5, 5 and 2 are 3.5, 6 and 6 are 6
        ([[9, NAN], [5, 2], [6, 6]], {}, [2 / 2.5, 0, 1]),
        # a fold in which all failed is ignored
        ([[9, NAN], [5, NAN]], {}, [1, 0]),
        # a score is better than a failure
        ([[NAN], [5], [6]], {}, [0, 0, 1]),
        ([[0.5], [NAN], [0.5]], {}, [1, 0, 1]),
        ([[-np.inf], [0.5], [1.0]], {}, [0, 0, 1]),
        # a model that does not take the task is ignored
        ([[0.9], [0.5], [0.1]], {"takes": [[1], [1], [0]]}, [1, 0, NAN]),
        # a task on which all are equal, or with one model only
        ([[0.5], [0.5]], {}, [NAN, NAN]),
        ([[0.1 + 0.2], [0.3]], {}, [NAN, NAN]),
        ([[NAN], [NAN]], {}, [NAN, NAN]),
        ([[0.5], [0.4]], {"takes": [[1], [0]]}, [NAN, NAN]),
        ([[0.5], [0.5]], {"baseline": 0, "takes": [[1], [0]]}, [NAN, NAN]),
        # a baseline is 0; below it, as far down as the best is up, and no further
        ([[0.9], [0.5], [0.7]], {"baseline": 1}, [1, 0, 0.5]),
        ([[0.9], [0.7], [0.6], [-9]], {"baseline": 1}, [1, 0, -0.5, -1]),
        # no model beats the baseline
        ([[0.9], [0.5], [0.9]], {"baseline": 0}, [0, -1, 0]),
        # the baseline has no score
        ([[0.9], [NAN], [0.5]], {"baseline": 1}, [NAN] * 3),
        ([[0.9], [NAN], [0.5]], {"baseline": 1, "takes": [[1], [0], [1]]}, [NAN] * 3),
        # two references: the mean of the folds, not clipped
        ([[0, 0], [1, 2], [3, 1], [-2, 0]], {"baseline": 0, "one": 1}, [0, 1, 1.75, -1]),
        # without one of them, or where they are equal, a fold does not count
        ([[0, 0], [1, NAN], [3, 9]], {"baseline": 0, "one": 1}, [0, 1, 3]),
        ([[0, 0], [1, 0], [3, 9]], {"baseline": 0, "one": 1}, [0, 1, 3]),
        ([[0], [0], [3]], {"baseline": 0, "one": 1}, [NAN] * 3),
        # a failed fold is the worst of that fold
        ([[0, 0], [1, 2], [3, NAN]], {"baseline": 0, "one": 1}, [0, 1, 1.5]),
    ],
)
def test_normalized_scores(task, options, expected):
    assert column(task, **options) == pytest.approx(expected, nan_ok=True)


def test_mean_and_median_are_over_the_tasks_a_model_has():
    mean, median = over_tasks(np.array([[1.0, 0.0, 0.5], [1.0, NAN, 0.0], [NAN, NAN, NAN]]))
    np.testing.assert_array_equal(mean, [0.5, 0.5, NAN])
    np.testing.assert_array_equal(median, [0.5, 0.5, NAN])


# -- groups of models that can be compared ---------------------------------------------------


def places(takes):
    return [(group.tasks, group.models) for group in connected_groups(np.array(takes))]


def test_baselines_that_take_every_task_do_not_connect_groups():
    takes = np.zeros((6, 8), dtype=bool)
    takes[:2, :5] = takes[2:4, 5:] = takes[4:] = True
    assert places(takes) == [([0, 1, 2, 3, 4], [0, 1, 4, 5]), ([5, 6, 7], [2, 3, 4, 5])]


def test_a_chain_of_models_that_never_met_is_no_group():
    # the first and the last model share no task
    takes = [[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]]
    assert [tasks for tasks, _ in places(takes)] == [[0], [1], [2]]


def test_a_single_model_of_another_field_is_a_group_of_its_own():
    # 50 models share 30 tasks, one has 10 of its own, which only a baseline takes too
    takes = np.zeros((52, 40), dtype=bool)
    takes[:50, :30] = takes[50, 30:] = takes[51] = True
    assert [models for _, models in places(takes)] == [[*range(50), 51], [50, 51]]


def test_a_model_with_a_few_common_tasks_stays_in_the_group():
    takes = np.ones((10, 20), dtype=bool)
    takes[8], takes[8, 5], takes[9, 5] = False, True, False
    assert places(takes) == [(list(range(20)), list(range(10)))]


def test_tasks_of_single_models_are_listed_last_and_models_without_tasks_first():
    takes = [[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]
    assert places(takes) == [([0, 1], [0, 1, 4]), ([2, 3], [2, 3])]
    assert places(np.zeros((2, 0))) == [([], [0, 1])]


@pytest.mark.parametrize("share", [0.08, 0.3, 0.5])
def test_scores_missing_here_and_there_split_nothing(share):
    takes = np.random.default_rng(0).random((40, 30)) >= share
    assert len(places(takes)) == 1


@given(hnp.arrays(bool, st.tuples(st.integers(1, 8), st.integers(1, 8))))
def test_every_task_is_in_one_group_with_all_its_models(takes):
    found = places(takes)
    assert sorted(task for tasks, _ in found for task in tasks) == list(range(takes.shape[1]))
    for tasks, models in found:
        assert set(np.flatnonzero(takes[:, tasks].any(axis=1))) <= set(models)
    assert {model for _, models in found for model in models} == set(range(len(takes)))


@pytest.mark.parametrize("takes", [[[1, 0, 0], [0, 1, 0]], [[0, 0, 0], [0, 0, 0]], [[1, 0, 1]]])
def test_tasks_that_no_model_takes_belong_to_a_group_with_models(takes):
    groups = connected_groups(np.array(takes))
    assert sorted(task for group in groups for task in group.tasks) == [0, 1, 2]
    assert all(group.models for group in groups)
