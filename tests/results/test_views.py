"""Boards by task, kind and data set: numbers worked out by hand, and what must never change."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from karat.errors import DataError
from karat.results.gather import Gathered
from karat.results.leaderboard import leaderboard
from karat.results.within import fold_ratios, within_limits

COLUMNS = "task model repeat fold corruption severity epoch metric value".split()

#: acc: a 0.9, c 0.7, b 0.5; rmse: a 10, c 15, b 30; acc: b 0.4, c 0.3, a 0.2
THREE = {
    "t1": ("acc", {"a": 0.9, "b": 0.5, "c": 0.7}),
    "t2": ("rmse", {"a": 10.0, "b": 30.0, "c": 15.0}),
    "t3": ("acc", {"a": 0.2, "b": 0.4, "c": 0.3}),
}


def table(tasks, **columns):
    rows = [
        (task, model, 0, fold, "", 0.0, -1, metric, value)
        for task, (metric, models) in tasks.items()
        for model, values in models.items()
        for fold, value in enumerate(np.atleast_1d(values))
    ]
    made = pd.DataFrame(rows, columns=COLUMNS)
    return made.assign(**{name: made["task"].map(groups) for name, groups in columns.items()})


def rounded(column):
    return {key: round(value, 9) for key, value in column.items()}


# -- numbers --------------------------------------------------------------------------------


def test_the_normalised_score_is_the_mean_over_tasks():
    board = leaderboard(table(THREE), normalise="range")
    # t1: 1, 0, 0.5; t2: 1, 0, 0.75; t3: 0, 1, 0.5
    assert rounded(board["score"]) == rounded({"a": 2 / 3, "c": 1.75 / 3, "b": 1 / 3})
    assert rounded(board["median"]) == {"a": 1.0, "c": 0.5, "b": 0.0}
    # a beats both twice and nobody once; c beats one of two on every task
    assert rounded(board["wins"]) == rounded({"a": 2 / 3, "c": 0.5, "b": 1 / 3})
    assert board.attrs["normalise"] == "range"


def test_the_score_over_a_baseline():
    board = leaderboard(table(THREE), normalise="baseline:c")
    # t1: 1, -1; t2: 1 and (15 - 30) / 5, no lower than -1; t3: -1, 1
    assert rounded(board["score"]) == rounded({"a": 1 / 3, "c": 0.0, "b": -1 / 3})


def test_normalized_scores_are_on_request():
    assert not {"score", "median", "wins"} & set(leaderboard(table(THREE)).columns)
    assert "normalised" not in leaderboard(table(THREE), by="task")


def test_every_task_has_its_own_ranking():
    board = leaderboard(table(THREE), by="task", normalise="range")
    assert board.index.names == ["task", "model"]
    assert board.loc["t1"].index.tolist() == ["a", "c", "b"]
    assert board.loc["t2"].index.tolist() == ["a", "c", "b"]
    assert board.loc["t3"].index.tolist() == ["b", "c", "a"]
    assert board.loc["t2", "score"].tolist() == [10, 15, 30]
    assert board.loc["t2", "metric"].unique().tolist() == ["rmse"]
    assert rounded(board.loc["t2", "normalised"]) == {"a": 1.0, "c": 0.75, "b": 0.0}
    assert board["rank"].tolist() == [1, 2, 3] * 3


def test_the_interval_is_students_over_folds():
    tasks = {"t": ("rmse", {"a": [11.0, 12.0, 13.0], "b": [17.0], "c": [np.nan, 14.0, 14.0]})}
    board = leaderboard(table(tasks), by="task").loc["t"]
    # the standard error of 11, 12, 13 is 1 / √3
    half = student.ppf(0.975, 2) / np.sqrt(3)
    assert board.loc["a", "score_low"] == pytest.approx(12 - half)
    assert board.loc["a", "score_high"] == pytest.approx(12 + half)
    assert np.isnan(board.loc["b", ["score_low", "score_high"]].astype(float)).all()
    assert board.loc["c", ["score_low", "score_high"]].tolist() == [14, 14]
    assert board["folds"].to_dict() == {"a": 3, "b": 1, "c": 2}


def test_the_interval_of_a_score_stays_within_what_its_metric_can_be():
    tasks = {
        # half of each interval: 4.303 × 0.0289 / √3 = 0.0717; 12.706 × 0.45 = 5.72
        "t1": ("acc", {"a": [1.0, 0.95, 1.0], "b": [0.0, 0.05, 0.0]}),
        "t2": ("rmse", {"a": [0.1, 1.0], "b": [0.0, 0.0]}),
        "t3": ("r2", {"a": [0.5, 1.0], "b": [-0.5, 1.0]}),
        "t4": ("acc", {"a": [97.0, 98.0, 99.0], "b": [1.0, 2.0, 3.0]}),
    }
    board = leaderboard(table(tasks), by="task")[["score_low", "score_high"]].round(3)
    assert board.loc[("t1", "a")].tolist() == [0.912, 1.0]
    assert board.loc[("t1", "b")].tolist() == [0.0, 0.088]
    assert board.loc[("t2", "a")].tolist() == [0.0, 6.268]
    # what is explained is 1 at most, and has no least: 0.75 - 12.706 × 0.25
    assert board.loc[("t3", "a")].tolist() == [-2.427, 1.0]
    # per cent: on another scale nothing is cut, 98 ± 4.303 / √3
    assert board.loc[("t4", "a")].tolist() == [95.516, 100.484]


def test_an_unregistered_metric_has_no_limits():
    ends = np.array([-0.5]), np.array([1.5])
    assert within_limits(*ends, np.array([0.5]), "no-such-metric").tolist() == [[-0.5], [1.5]]
    assert within_limits(*ends, np.array([0.5]), "acc").tolist() == [[0.0], [1.0]]


# -- ranks on one task ----------------------------------------------------------------------

PLACES = ["rank", "rank_low", "rank_high", "tie"]


def places(models, **options):
    """Return rank, interval and letter by model on one task measured in accuracy."""
    board = leaderboard(table({"t": ("acc", models)}), by="task", **options)
    return {model: row.tolist() for model, row in board.loc["t", PLACES].iterrows()}


def test_folds_drawn_anew_give_ranks_an_interval():
    # a wins in fold 0 and on average, b in fold 1: a draw of two folds has b first once in four.
    # The mean of drawn ranks is 1.25, so that the ends 1 and 2 move by -0.25, down to 1 at most
    found = places({"a": [0.9, 0.5], "b": [0.6, 0.6]})
    assert found["a"][:2] == [1, 1] and found["a"][2] == pytest.approx(1.75, abs=0.05)
    assert found["b"][0] == found["b"][2] == 2 and found["b"][1] == pytest.approx(1.25, abs=0.05)
    assert found["a"][3] == found["b"][3] == "a"


def test_a_model_that_is_always_first_has_no_uncertainty():
    # 0.8, 0.7, 0.7 differ from 0 by t = 0.7333 / √(0.003333 × (1/3 + 1/2)) = 13.9, p = 0.005
    found = places({"a": [0.9, 0.8, 0.9], "b": [0.1, 0.1, 0.2]})
    assert found == {"a": [1, 1, 1, "a"], "b": [2, 2, 2, "b"]}


def test_letters_are_those_of_the_corrected_test_of_all_pairs():
    a = np.array([0.9, 0.8, 0.7, 0.8])
    step = np.array([0.02, 0.04, 0.03, 0.03])
    # t = 0.03 / 0.006236 = 4.811 of 3 degrees: p = 0.0171
    assert [each[3] for each in places({"a": a, "b": a - step}).values()] == ["a", "b"]
    # the same t for each of three pairs: after Holm 3 × 0.0171 = 0.0513, and nothing is certain
    three = places({"a": a, "b": a - step, "c": a - 2 * step})
    assert [each[3] for each in three.values()] == ["a", "a", "a"]
    assert [each[:3] for each in three.values()] == [[1, 1, 1], [2, 2, 2], [3, 3, 3]]


def test_one_fold_ties_all_models():
    found = places({"a": [0.9], "b": [0.5], "c": [0.1]})
    assert [each[0] for each in found.values()] == [1, 2, 3]
    assert [each[3] for each in found.values()] == ["a", "a", "a"]
    assert np.isnan([each[1:3] for each in found.values()]).all()


def test_equal_folds_share_rank_and_letter():
    found = places({"a": [0.5, 0.7, 0.6], "b": [0.5, 0.7, 0.6], "c": [0.1, 0.2, 0.1]})
    assert found["a"] == found["b"] == [1.5, 1.5, 1.5, "a"]
    # c: 0.4, 0.5, 0.5, t = 15.3 and p = 0.0042, of three pairs 0.0127
    assert found["c"] == [3, 3, 3, "b"]


def test_a_failed_fold_counts_as_the_worst_one():
    # c lacks a score in every fold: worse than b, which is the worst, by nothing that is known
    found = places({"a": [0.9, 0.8, 0.9], "b": [0.1, 0.1, 0.2], "c": [np.nan] * 3})
    assert found == {"a": [1, 1, 1, "a"], "b": [2, 2, 2, "b"], "c": [3, 3, 3, "b"]}


def test_a_model_without_a_rank_has_no_letter():
    tasks = {"t": ("acc", {"a": [0.9, 0.8], "b": [0.5, 0.6]}), "u": ("acc", {"a": [0.1, 0.2]})}
    board = leaderboard(table(tasks), by="task").loc["u", PLACES]
    assert board["tie"].tolist() == ["", ""]
    assert board[["rank", "rank_low", "rank_high"]].isna().all(axis=None)


def test_ratio_of_test_to_train_rows():
    def rows(task, repeats, folds):
        return [(task, repeat, fold) for repeat in range(repeats) for fold in range(folds)]

    scored = [*rows("cv", 1, 4), *rows("twice", 2, 2), *rows("holdout", 5, 1), *rows("sized", 2, 1)]
    scores = pd.DataFrame(scored, columns=["task", "repeat", "fold"])
    # sizes where they are recorded, else 1 / (k - 1) of the k folds of a repeat
    jobs = pd.DataFrame({"task": ["cv", "sized"], "train": [None, 80.0], "test": [None, 20.0]})
    tasks = ["holdout", "none", "cv", "twice", "sized"]
    found = fold_ratios(Gathered([], scores, jobs), tasks)
    assert found == pytest.approx([np.nan, np.nan, 1 / 3, 1.0, 0.25], nan_ok=True)


def test_ranks_within_a_kind():
    kinds = {"t1": "classes", "t2": "numbers", "t3": "classes"}
    board = leaderboard(table(THREE, kind=kinds), by="kind", normalise="range")
    # t1 and t3: a 1 and 3, b 3 and 1, c 2 and 2
    assert board.loc["classes", "rank"].to_dict() == {"a": 2, "b": 2, "c": 2}
    assert board.loc["classes", "score"].to_dict() == {"a": 0.5, "b": 0.5, "c": pytest.approx(0.5)}
    assert board.loc["numbers", "rank"].to_dict() == {"a": 1, "c": 2, "b": 3}
    assert board.loc["classes", "tasks"].tolist() == [2, 2, 2]
    assert board.index.names == ["kind", "model"]


def test_a_kind_of_all_tasks_is_the_overall_leaderboard():
    whole = leaderboard(table(THREE), normalise="range")
    kind = leaderboard(table(THREE, kind=dict.fromkeys(THREE, "k")), by="kind", normalise="range")
    same = ["rank", "rank_low", "rank_high", "tie", "score", "median", "wins"]
    pd.testing.assert_frame_equal(kind.loc["k", same], whole[same])


def test_tasks_are_grouped_by_dataset():
    names = {"t1": "adult", "t2": "adult", "t3": ""}
    board = leaderboard(table(THREE, dataset=names), by="dataset")
    assert board.loc["adult", "rank"].to_dict() == {"a": 1, "c": 2, "b": 3}
    assert board.loc["other", "rank"].to_dict() == {"b": 1, "c": 2, "a": 3}


def test_a_table_without_kinds_has_no_such_view():
    with pytest.raises(DataError, match="kind"):
        leaderboard(table(THREE), by="kind")


def test_another_metric_in_a_view():
    both = pd.concat([table(THREE), table({"t1": ("logloss", {"a": 3.0, "b": 1.0, "c": 2.0})})])
    board = leaderboard(both, by="task", metrics={"t1": "logloss"})
    assert board.loc["t1"].index.tolist() == ["b", "c", "a"]


# -- what must never change -----------------------------------------------------------------

scores = st.integers(0, 8).map(lambda i: i / 8)


@st.composite
def boards(draw):
    """Draw tasks of 2 to 4 models and 1 to 3 folds, with metrics of both directions."""
    models = [f"m{i}" for i in range(draw(st.integers(2, 4)))]
    folds = draw(st.integers(1, 3))
    fold_scores = st.lists(scores, min_size=folds, max_size=folds)
    return {
        f"t{i}": (draw(st.sampled_from(["acc", "rmse"])), {m: draw(fold_scores) for m in models})
        for i in range(draw(st.integers(1, 4)))
    }


NUMBERS = ["rank", "rank_low", "rank_high", "score", "median", "wins"]


def numbers(tasks, **options):
    return leaderboard(table(tasks), normalise="range", **options)[NUMBERS].sort_index()


def assert_the_order_of_rows_changes_nothing(tasks, known, seed):
    turned = table(tasks).sample(frac=1, random_state=seed)
    # the metric of a task is the first of its rows: here it has only one
    found = leaderboard(turned, normalise="range")[NUMBERS].sort_index()
    pd.testing.assert_frame_equal(known, found)


def assert_the_unit_of_a_metric_changes_nothing(tasks, known, unit):
    scaled = {
        task: (metric, {m: [v * unit for v in values] for m, values in models.items()})
        for task, (metric, models) in tasks.items()
    }
    pd.testing.assert_frame_equal(known, numbers(scaled))


def assert_turning_a_metric_round_changes_nothing(tasks, known):
    turned = {
        task: ("acc" if metric == "rmse" else "rmse", {m: [-v for v in vs] for m, vs in ms.items()})
        for task, (metric, ms) in tasks.items()
    }
    pd.testing.assert_frame_equal(known, numbers(turned))


def assert_a_model_that_is_worse_everywhere_changes_no_rank(tasks, known):
    def worse(metric, values):
        return [v - 9 if metric == "acc" else v + 9 for v in values]

    more = {
        task: (metric, {**models, "worse": worse(metric, models["m0"])})
        for task, (metric, models) in tasks.items()
    }
    after = numbers(more)
    pd.testing.assert_frame_equal(known[["rank"]], after.loc[known.index, ["rank"]])
    assert after.loc["worse", "rank"] == len(known) + 1
    assert after.loc["worse", ["score", "median", "wins"]].tolist() == [0, 0, 0]


@settings(max_examples=15, deadline=None)
@given(boards(), st.integers(0, 999), st.sampled_from([0.5, 2.0, 1024.0]))
def test_leaderboards_are_invariant(tasks, seed, unit):
    known = numbers(tasks)
    assert known["wins"].mean() == pytest.approx(0.5), "who wins, wins over another"
    assert_the_order_of_rows_changes_nothing(tasks, known, seed)
    assert_the_unit_of_a_metric_changes_nothing(tasks, known, unit)
    assert_turning_a_metric_round_changes_nothing(tasks, known)
    assert_a_model_that_is_worse_everywhere_changes_no_rank(tasks, known)


@settings(max_examples=25, deadline=None)
@given(boards())
def test_scores_are_between_the_worst_and_the_best(tasks):
    board = leaderboard(table(tasks), by="task", normalise="range")
    for _, rows in board.groupby(level="task"):
        known = rows["normalised"].dropna()
        assert known.between(0, 1).all()
        assert len(known) == 0 or {known.min(), known.max()} == {0, 1}
        # who is ranked higher is never lower on the scale
        assert (rows.sort_values("rank")["normalised"].diff().dropna() <= 0).all()
