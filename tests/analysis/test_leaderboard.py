"""Leaderboards: columns, directions, failures, costs, sorting, the Pareto front and views."""

import functools
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

import karat
from karat.analysis.leaderboard import (
    fold_ratios,
    leaderboard,
    pareto,
    sort_leaderboard,
    split_groups,
    within_limits,
)
from karat.errors import DataError, DefinitionError
from karat.reporting.formats import render
from karat.results.load import Gathered

from ..score_data import make_view, score_table

RANKS = ["rank", "rank_low", "rank_high", "tie", "top"]
COSTS = ["failed", "declined", "seconds", "memory_mb", "dimensions"]


def table(copies=1):
    """Return three models on four tasks: a first thrice, c last twice, and without the last."""
    scores = {"t": [3, 2, 1], "u": [3, 2, 1], "v": [3, 1, 2], "w": [1, 2]}
    tasks = {t: dict(zip("abc", values, strict=False)) for t, values in scores.items()}
    return score_table({t * n: tasks[t] for n in range(1, copies + 1) for t in tasks}, kind="k")


def columns(wanted, **options):
    return list(leaderboard(table(), columns=wanted, **options).columns)


def test_without_a_choice_there_are_tasks_and_costs():
    assert columns(None) == [*RANKS, "t", "u", "v", "w", *COSTS]
    assert columns(["tasks", "costs"]) == columns(None)


@pytest.mark.parametrize(
    "wanted, expected",
    [
        ([], []),
        ("elo", ["elo", "elo_low", "elo_high"]),
        # in the order of the board, whatever the order of the question
        (["w", "elo:b", "borda", "t"], ["borda", "elo", "elo_low", "elo_high", "t", "w"]),
        (["score"], ["score", "median", "wins"]),
        ({"columns": ["t"], "normalize": "range"}, ["score", "median", "wins", "t"]),
        (["wins"], ["wins"]),
        (["pareto", "tasks"], ["pareto", "t", "u", "v", "w"]),
        (["rank"], []),
    ],
)
def test_a_choice_shows_ranks_failures_and_what_was_chosen(wanted, expected):
    options = wanted if isinstance(wanted, dict) else {"columns": wanted}
    assert list(leaderboard(table(), **options)) == [*RANKS, *expected, "failed"]


def rotated():
    """Return four models on 16 tasks: in order a, b, c, d on half of them, else rotated."""
    order = [[4, 3, 2, 1]] * 8 + [[3, 4, 1, 2], [1, 4, 3, 2], [2, 1, 4, 3], [4, 2, 1, 3]] * 2
    tasks = {f"t{t}": dict(zip("abcd", each, strict=True)) for t, each in enumerate(order)}
    return score_table(tasks, kind="k")


def test_ratings_by_hand():
    board = leaderboard(table(), columns=["borda", "wins", "elo:c"], sort="borda")
    # a beats two thrice and nobody on w; b one, one, none, one; c none, none, one
    assert board["borda"].to_dict() == {"a": 6, "b": 3, "c": 1}
    assert board["wins"].to_dict() == pytest.approx({"a": 3 / 4, "b": 2 / 4, "c": 0.5 / 3})
    assert board.attrs["anchor"] == "c"
    # four tasks are too few for Elo
    assert board[["elo", "elo_low", "elo_high"]].isna().all(axis=None)
    # and three models are
    board = leaderboard(table(copies=2), columns=["elo"])
    assert board[["elo", "elo_low", "elo_high"]].isna().all(axis=None)
    board = leaderboard(rotated(), columns=["elo:c"])
    assert board.loc["c", ["elo", "elo_low", "elo_high"]].tolist() == [1500, 1500, 1500]
    assert board["elo"].is_monotonic_decreasing
    assert (board.loc["a", "elo_low"] < board.loc["a", "elo"] < board.loc["a", "elo_high"]).all()


def test_sorting_by_a_column_adds_it():
    assert columns(None, sort="elo") == [
        *RANKS,
        *("elo", "elo_low", "elo_high", "t", "u", "v", "w"),
        *COSTS,
    ]
    assert "pareto" in columns(None, sort="pareto")
    # a column that is not shown can be sorted by
    board = leaderboard(table(), columns=["borda"], sort="w")
    assert list(board.index) == ["b", "a", "c"] and "w" not in board


def test_ratings_within_a_group_and_the_columns_of_each_view():
    group = leaderboard(table(), by="kind", columns=["elo", "borda", "seconds"])
    assert list(group.columns) == [
        *RANKS,
        *("borda", "elo", "elo_low", "elo_high", "tasks", "failed", "seconds"),
    ]
    over_all = leaderboard(rotated(), columns=["elo"])
    group = leaderboard(rotated(), by="kind", columns=["elo"])
    assert over_all["elo"].notna().all()
    assert group.loc["k", "elo"].to_dict() == pytest.approx(over_all["elo"].to_dict())
    task = leaderboard(table(), by="task", columns=["normalized"])
    assert list(task.columns) == [
        *("metric", *RANKS, "score", "score_low", "score_high", "normalized", "status", "failed")
    ]


def test_a_task_with_the_name_of_a_column_keeps_its_scores():
    rows = table().replace({"task": {"t": "elo", "u": "costs", "v": "pareto", "w": "dimensions"}})
    board = leaderboard(rows, columns=["elo", "tasks"])
    named = [f"{name} (task)" for name in ("elo", "costs", "pareto", "dimensions")]
    assert board.attrs["tasks"] == named
    assert board["elo (task)"].to_dict() == {"a": 3, "b": 2, "c": 1}
    assert leaderboard(rows, columns=["elo (task)"]).attrs["tasks"] == ["elo (task)"]


def test_tasks_that_are_not_shown_still_count():
    few, all_ = leaderboard(table(), columns=["t"]), leaderboard(table())
    assert few.attrs["tasks"] == ["t"] and few.attrs["missing"] == all_.attrs["missing"]
    pd.testing.assert_frame_equal(few[RANKS], all_[RANKS])


@pytest.mark.parametrize(
    "options, words",
    [
        ({"columns": ["eloo"]}, '"elo"?'),
        ({"columns": ["cost"]}, '"costs"?'),
        ({"columns": ["zzz"]}, "costs, tasks, rank, "),
        (
            {"columns": ["zzz"]},
            "borda, elo, pareto, difference.",
        ),
        (
            {"columns": ["zzz", "elo"]},
            "median, wins, borda, pareto, difference.",
        ),
        ({"columns": ["zzz"], "by": "task"}, "; on request: normalized, pareto."),
        ({"columns": ["elo:aa"]}, '"a"?'),
        ({"columns": ["pareto:second"]}, '"seconds"?'),
        ({"columns": ["elo"], "by": "task"}, '"elo"'),
        ({"sort": "eloo"}, '"elo"?'),
        ({"sort": "normalised", "by": "task"}, '"normalized"'),
        ({"sort": "xyz", "by": "kind"}, "kind, model, rank, rank_low"),
        ({"sort": "t", "by": "task"}, '"t"'),
    ],
)
def test_unknown_names_raise(options, words):
    with pytest.raises(DefinitionError) as error:
        leaderboard(table(), **options)
    assert words in str(error.value)


def test_dimensions_and_common_costs_come_from_the_runs(tmp_path):
    runs = karat.evaluate(
        ["onehot", "random", "dummy"],
        ["diabetes", "wine-clusters"],
        only=karat.Only(folds=[0]),
        output=tmp_path,
    )
    board = leaderboard(runs, columns=["costs", "pareto"])
    widths = {run.model: [r.get("dimensions") for r in run.records()] for run in runs}
    widest = {model: max([d for d in each if d] or [np.nan]) for model, each in widths.items()}
    assert board["dimensions"].to_dict() == pytest.approx(widest, nan_ok=True)
    assert board["dimensions"].notna().to_dict() == {"onehot": True, "random": True, "dummy": False}
    assert board.attrs["uneven"]
    # dummy declines the clusters: only costs of common tasks are shown
    common = leaderboard(runs, columns=["costs"], missing="common")
    assert not common.attrs["uneven"]
    for run in runs:
        seconds = [
            r["seconds"] + (r.get("embed_seconds") or 0)
            for r in run.records()
            if r["task"] == "diabetes"
        ]
        assert common.loc[run.model, "seconds"] == pytest.approx(sum(seconds))
    assert (common["declined"] == board["declined"].reindex(common.index)).all()


def scored(metric, **models):
    return score_table({"t": (metric, models)})


# -- from a table ---------------------------------------------------------------------------


def test_ranks_respect_the_direction_of_metrics():
    acc, rmse = {"a": 0.9, "b": 0.5, "c": 0.1}, {"a": 30.0, "b": 10.0, "c": 20.0}
    assert list(leaderboard(score_table({"acc-task": acc})).index) == ["a", "b", "c"]
    assert list(leaderboard(scored("rmse", **rmse)).index) == ["b", "c", "a"]
    together = leaderboard(score_table({"acc-task": acc, "rmse-task": ("rmse", rmse)}))
    assert together["rank"].to_dict() == {"b": 1.5, "a": 2.0, "c": 2.5}
    assert together.loc["a", ["acc-task", "rmse-task"]].tolist() == [0.9, 30.0]


def test_a_score_is_the_mean_over_folds_on_clean_data():
    rows = scored("acc", m=[0.5, 1.0], n=0.1)
    noisy = rows.assign(corruption="noise", severity=0.5, value=0.0)
    early = rows.assign(epoch=1, metric="loss", value=9.0)
    board = leaderboard(pd.concat([early, noisy, rows], ignore_index=True))
    assert board.loc["m", "t"] == 0.75
    assert board.attrs["metrics"] == {"t": "acc"}
    assert board.attrs["higher_is_better"] == {"t": True}


def test_a_table_read_from_csv(tmp_path):
    rows = scored("acc", m=0.5, n=0.25)
    rows.to_csv(tmp_path / "scores.csv", index=False)
    read = pd.read_csv(tmp_path / "scores.csv")
    assert read["corruption"].isna().all()
    assert leaderboard(read)["t"].tolist() == [0.5, 0.25]


def test_folds_of_several_repeats_are_several_folds():
    rows = scored("acc", m=0.0, n=0.5)
    again = rows.assign(repeat=1, value=[1.0, 0.5])
    board = leaderboard(pd.concat([rows, again], ignore_index=True))
    assert board["t"].to_dict() == {"m": 0.5, "n": 0.5}


def test_models_are_ranked_on_the_folds_all_have():
    # b was stopped after the first fold, in which it was better
    board = leaderboard(scored("acc", a=[0.5, 0.9], b=[0.6]))
    assert board["rank"].to_dict() == {"b": 1.0, "a": 2.0}
    assert board["t"].to_dict() == {"b": 0.6, "a": 0.7}
    # without a common fold, each model's own mean is ranked
    apart = scored("acc", a=[0.9], b=[0.0, 0.6, 0.8])
    apart = leaderboard(apart[(apart["model"] == "a") | (apart["fold"] > 0)])
    assert apart["rank"].to_dict() == {"a": 1.0, "b": 2.0}


def test_another_metric_can_be_chosen():
    rows = pd.concat([scored("acc", a=0.9, b=0.1), scored("logloss", a=9.0, b=1.0)])
    assert list(leaderboard(rows).index) == ["a", "b"]
    board = leaderboard(rows, metrics={"t": "logloss"})
    assert list(board.index) == ["b", "a"]
    assert board.attrs["higher_is_better"] == {"t": False}


ROWS = scored("acc", m=0.5, n=0.25)


@pytest.mark.parametrize(
    "runs, options, error, message",
    [
        (ROWS.drop(columns=["repeat", "corruption"]), {}, DataError, "repeat, corruption"),
        (ROWS.assign(model=["m", "m"]), {}, DataError, "two scores on t, fold 0"),
        (ROWS.assign(model=[np.nan, "n"]), {}, DataError, "keep_default_na"),
        (ROWS.assign(metric="acx"), {}, DefinitionError, 'no metric "acx"'),
        (ROWS, {"metrics": {"t": "xy"}}, DataError, '"xy".*acc'),
        (ROWS, {"metrics": {"tt": "acc"}}, DataError, '"tt".*"t"'),
        (ROWS, {"by": "kind"}, DataError, "kind"),
        (score_table({}), {}, DataError, "no final score"),
        ([], {}, DataError, "no run"),
    ],
)
def test_wrong_tables_raise(runs, options, error, message):
    with pytest.raises(error, match=message):
        leaderboard(runs, **options)


@pytest.mark.parametrize("kind", ["str", "object", "category"])
def test_names_may_be_strings_objects_or_categories(kind):
    names = ["task", "model", "metric", "corruption"]
    rows = scored("acc", b=[0.5, 0.5], a=[0.9, 0.7])
    board = leaderboard(rows.astype({name: kind for name in names}))
    assert board["t"].to_dict() == {"a": pytest.approx(0.8), "b": 0.5}
    assert board.index.tolist() == ["a", "b"]


def test_the_table_is_not_modified():
    rows = scored("acc", a=0.9, b=0.1)
    before = rows.copy(deep=True)
    leaderboard(rows)
    pd.testing.assert_frame_equal(rows, before)


# -- from runs ------------------------------------------------------------------------------


@pytest.fixture
def make(write):
    """Write a run whose jobs take 1 second and 20 MB."""
    return functools.partial(write, record={"seconds": 1.0, "peak_memory_mb": 20.0})


def test_costs_failures_and_declines_are_counted(make):
    board = leaderboard(
        [make("a", {"t": [0.5, None], "u": "declined"}), make("b", {"t": [0.4, 0.6], "u": [0.1]})]
    )
    assert board["failed"].to_dict() == {"b": 0, "a": 1}
    assert board["declined"].to_dict() == {"b": 0, "a": 1}
    assert board["seconds"].to_dict() == {"b": 3.0, "a": 3.0}
    assert board["memory_mb"].to_dict() == {"b": 20.0, "a": 20.0}
    # t: a has 0.5 and the worst of fold 1, 0.6, which is more than b's 0.4 and 0.6; u: b alone
    assert board["rank"].to_dict() == {"a": 1.0, "b": 2.0}
    assert np.isnan(board.loc["a", "u"])


def test_a_task_declined_in_every_fold_is_one_task(make):
    assert leaderboard([make("a", {"t": [0.5], "u": ["declined"] * 3})])["declined"].tolist() == [1]


def test_a_score_replaces_a_failure(make):
    """A job may fail under a corruption only: its clean score is as good as any."""
    run = make("a", {"t": [0.5]})
    run.write({**run.records()[0], "status": "failed", "views": [make_view(acc=0.9)]}, {})
    run.finish()
    board = leaderboard([run, make("b", {"t": [0.6]})])
    assert board.loc["a", ["t", "rank", "failed"]].tolist() == [0.9, 1.0, 1]


def test_folders_paths_and_runs_are_deduplicated(make, tmp_path):
    one = make("a", {"t": [0.5]})
    make("b", {"t": [0.6]})
    for place in (tmp_path, str(tmp_path), [tmp_path, one, one.folder]):
        assert leaderboard(place).index.tolist() == ["b", "a"]
    assert leaderboard(one).index.tolist() == ["a"]


def test_runs_of_one_model_are_one_row_or_one_each(make):
    runs = [make("a", {"t": [0.5]}), make("a", {"t": [0.6]}), make("a", {"t": [0.7]}, stamp="X")]
    names = ["a (X)", "a (20260101T000000-2)", "a (20260101T000000)"]
    assert leaderboard(runs, pool="none").index.tolist() == names
    assert leaderboard(runs)["t"].to_dict() == {"a": 0.7}
    with pytest.raises(DefinitionError, match='"variant"'):
        leaderboard(runs, pool="variants")


def test_one_name_on_other_data_is_another_column(make):
    runs = [make("a", {"t": [0.5]}), make("b", {"t": [0.6]})]
    board = leaderboard([*runs, make("c", {"t": [0.9]}, task={"fingerprint": "222222bb"})])
    assert board.attrs["tasks"] == ["t", "t [222222]"]
    found = board.loc[("group 2", "c")]
    assert found.notna()[["t", "t [222222]"]].tolist() == [False, True]
    assert board["rank"].to_dict()["group 1", "b"] == 1.0
    assert np.isnan(found["rank"])


def test_the_direction_of_an_unregistered_metric_comes_from_the_run(make):
    facts = {"metrics": ["distance"]}
    board = leaderboard(
        [make(name, {"t": [v]}, task=facts) for name, v in (("a", 5.0), ("b", 1.0))]
    )
    assert board.index.tolist() == ["b", "a"]
    assert board.attrs["higher_is_better"] == {"t": False}


def test_runs_without_any_score_make_a_leaderboard_but_no_views(make):
    run = make("a", {"t": "declined"}, task={"metrics": ["?"]})
    board = leaderboard([run])
    assert board.attrs["tasks"] == []
    assert board["declined"].tolist() == [1]
    with pytest.raises(DataError, match="no task"):
        leaderboard([run], by="task")


def test_why_a_score_is_missing(make):
    runs = [
        make("a", {"t": [0.5], "u": "declined"}),
        make("b", {"t": [None], "u": [0.1]}),
        make("c", {"t": [0.3]}, tasks={"u": {}}),
    ]
    board = leaderboard(runs)
    lost = {"a": {"u": "declined"}, "b": {"t": "failed"}, "c": {"u": "not run"}}
    assert board.attrs["cells"] == lost
    counts = board.attrs["missing"]
    assert [counts[key] for key in ("failed", "declined", "not run", "cells")] == [1, 1, 1, 6]
    status = leaderboard(runs, by="task")["status"].to_dict()
    assert {(t, m): status[t, m] for m, tasks in lost.items() for t in tasks} == {
        (t, m): state for m, tasks in lost.items() for t, state in tasks.items()
    }
    assert status["t", "a"] == "ok"


def test_a_run_without_any_finished_job_is_listed(make):
    board = leaderboard([make("a", {"t": [0.5]}), make("b", {"t": []})])
    assert board.index.tolist() == ["a", "b"]
    assert board.attrs["cells"] == {"b": {"t": "not run"}}
    assert board["failed"].tolist() == [0, 0]


def test_a_model_that_declined_everything_gets_no_rank_from_a_baseline(make):
    runs = [make("a", {"t": [0.5], "u": [0.4]}), make("b", {"t": [0.6], "u": "declined"})]
    runs.append(make("x", dict.fromkeys("tu", "declined")))
    board = leaderboard(runs, missing="baseline:a")
    assert board["rank"].dropna().to_dict() == {"b": (1 + 1.5) / 2, "a": (2 + 1.5) / 2}
    assert (board.attrs["missing"]["declined"], board.attrs["missing"]["imputed"]) == (3, 1)


def test_kinds_data_sets_and_seeds_come_from_the_runs(make):
    tasks = {"a": {"t": [0.5], "u": [0.4]}, "b": {"t": [0.6]}}
    facts = {"dataset": "shared"}
    runs = [make(m, tasks[m], task=facts, seed=s) for m, s in (("a", 7), ("b", 8))]
    kinds = leaderboard(runs, by="kind")
    assert kinds.index.tolist() == [("classification", "a"), ("classification", "b")]
    assert kinds["tasks"].tolist() == [0, 0]  # no fold in common
    assert kinds.attrs["seeds"] == [7, 8]
    assert leaderboard(runs, by="dataset").index.unique(0).tolist() == ["shared"]


def test_costs_are_those_of_the_view(make):
    scores = {"a": {"t": [0.5, None], "u": [0.1]}, "b": {"t": [0.4, 0.6], "u": "declined"}}
    board = leaderboard([make(*each) for each in scores.items()], by="task")
    keys = [("t", "a"), ("t", "b"), ("u", "a"), ("u", "b")]
    assert board["seconds"][keys].tolist() == [2.0, 2.0, 1.0, 1.0]
    assert board["failed"][keys].tolist() == [1, 0, 0, 0]


def test_attrs_are_not_copied_with_every_column(make):
    board = leaderboard(
        [make("a", {"t": [0.5], "u": "declined"}), make("b", {"t": [0.6], "u": [0.1]})]
    )
    assert board["rank"].attrs["cells"] is board.attrs["cells"]
    assert board.copy().attrs == board.attrs


ORDERED = score_table(
    {
        "up": {"a": 0.1, "b": 0.9, "c": 0.5},
        "down": ("rmse", {"a": 30.0, "b": 20.0, "c": 10.0}),
        "part": {"c": 0.2, "a": 0.3},
    },
    kind="k",
)


def test_a_winner_of_few_tasks_has_its_place_by_rank_everywhere():
    # new wins its four tasks, all of which the others take; dummy loses everything
    tasks = {f"t{t}": {"a": 0.9 - t / 100, "b": 0.8, "dummy": 0.1} for t in range(8)}
    for t in range(4):
        tasks[f"t{t}"]["new"] = 0.99
    board = leaderboard(score_table(tasks), columns=["pareto", "costs"])
    assert board["rank"].to_dict() == {"new": 1.0, "a": 2.0, "b": 3.0, "dummy": 4.0}
    assert board.index.tolist() == ["new", "a", "b", "dummy"]
    assert board["rank"].is_monotonic_increasing
    assert np.isnan(board.at["new", "rank_low"]) and board.at["new", "tie"] == ""
    assert board.attrs["few_tasks"] == {"new": 4}
    rows = json.loads(render(board, "json"))
    assert [row["model"] for row in rows] == board.index.tolist()
    lines = render(board, "csv").splitlines()
    assert [line.split(",")[0] for line in lines[1:5]] == board.index.tolist()


def test_a_model_on_few_tasks_is_not_on_the_front():
    frame = pd.DataFrame({"rank": [1.0, 2.0, 3.0], "seconds": [1.0, 2.0, 1.5]}, index=list("abc"))
    assert pareto(frame).tolist() == [True, False, False]
    frame.attrs["few"] = ["a"]
    assert pareto(frame).tolist() == [False, True, True]


def test_ranks_within_a_kind_are_by_pairs():
    tasks = {f"t{t}": {"a": 0.9, "b": 0.8, "last": 0.1} for t in range(4)}
    del tasks["t1"]["b"]
    board = leaderboard(score_table(tasks, kind="k"), by="kind")
    assert board["rank"]["k"].to_dict() == {"a": 1.0, "b": 2.0, "last": 3.0}


@pytest.mark.parametrize(
    "sort, models",
    [
        ("up", "bca"),
        ("down", "cba"),
        ("part", "acb"),  # models without a score come last
        ("model", "abc"),
        ("score", "bca"),  # up: 0, 1, 0.5; down: 0, 0.5, 1; part: 1, -, 0
        ("rank", "bca"),  # by pairs: b 1 + 1/2, c 1 + 1/2 + 1/3, a 1 + 1 + 2/3
    ],
)
def test_the_best_comes_first(sort, models):
    assert leaderboard(ORDERED, sort=sort).index.tolist() == list(models)


@pytest.mark.parametrize(
    "column, values, models",
    [
        ("seconds", [3.0, np.nan, 1.0], ["z", "x", "y"]),
        ("memory_mb", [3.0, 1.0, 2.0], ["y", "z", "x"]),
        ("failed", [1, 0, 0], ["y", "z", "x"]),
        ("declined", [0, 2, 1], ["x", "z", "y"]),
        ("rank_low", [1.5, 1.0, 1.5], ["y", "x", "z"]),
        ("wins", [0.1, 0.9, 0.5], ["y", "z", "x"]),
        ("tie", ["b", "", "a"], ["z", "x", "y"]),
    ],
)
def test_every_column_has_its_direction_and_equals_stay(column, values, models):
    board = pd.DataFrame({column: values}, index=pd.Index(["x", "y", "z"], name="model"))
    assert sort_leaderboard(board, column, {}).index.tolist() == models


def test_rows_of_a_task_stay_together():
    board = leaderboard(ORDERED, by="task", sort="score")
    assert board.index.tolist() == [
        *[("up", m) for m in "bca"],
        *[("down", m) for m in "cba"],
        *[("part", m) for m in "acb"],
    ]
    by_name = leaderboard(ORDERED, by="task", sort="model")
    assert by_name.index.get_level_values("model").tolist() == list("abc" * 3)
    groups = leaderboard(ORDERED, by="task", sort="task")
    assert groups.index.unique("task").tolist() == ["down", "part", "up"]
    assert groups.loc["up"].index.tolist() == ["b", "c", "a"]


def test_sorting_by_a_normalized_score_adds_it():
    assert leaderboard(ORDERED, sort="wins").attrs["normalize"] == "range"
    assert "median" in leaderboard(ORDERED, by="kind", sort="median")
    board = leaderboard(ORDERED, by="task", sort="normalized")
    assert board.loc["down", "normalized"].tolist() == [1, 0.5, 0]
    # the score by task is what was measured
    assert leaderboard(ORDERED, by="task", sort="score").attrs["normalize"] is None


def board(rank, seconds, **columns):
    return pd.DataFrame({"rank": rank, "seconds": seconds, **columns}).astype(
        {"rank": float, "seconds": float}
    )


def test_the_front_by_hand():
    # the third is slower than the second and worse; the fourth is worst but cheapest
    assert pareto(board([1, 2, 3, 4], [9, 2, 4, 1])).tolist() == [True, True, False, True]
    # equal points are on the front together
    assert pareto(board([1, 1, 1], [2, 2, 3])).tolist() == [True, True, False]
    # a model that failed on every task is not on the front
    failed = board([1, 2], [9, 0.1], a=[0.9, np.nan])
    failed.attrs["tasks"] = ["a"]
    assert pareto(failed).tolist() == [True, False]


def test_models_without_a_number_or_a_letter_are_not_on_the_front():
    found = pareto(board([1, np.nan, 2, 3], [np.nan, 1, 5, 4], tie=["a", "a", "", "b"]))
    assert found.tolist() == [False, False, False, True]
    assert pareto(board([np.nan], [np.nan])).tolist() == [False]


def test_any_column_may_be_the_cost_or_the_quality():
    given = board([1, 2], [1, 1], memory_mb=[9.0, 1.0], elo=[1400.0, 1600.0], t=[3.0, 1.0])
    given.attrs["higher_is_better"] = {"t": False}
    assert pareto(given, "memory_mb").tolist() == [True, True]
    # more Elo is better, a lower error is
    assert pareto(given, quality="elo").tolist() == [False, True]
    assert pareto(given, quality="t").tolist() == [False, True]
    with pytest.raises(DefinitionError, match='"memroy_mb".*"memory_mb"'):
        pareto(given, "memroy_mb")


def test_each_group_has_its_own():
    index = pd.MultiIndex.from_product([["t", "u"], ["a", "b"]], names=["task", "model"])
    long = board([1, 2, 1, 2], [1, 2, 2, 1]).set_index(index)
    assert pareto(long).tolist() == [True, False, True, True]


numbers = st.one_of(st.integers(0, 4).map(float), st.just(float("nan")))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
def test_the_front_equals_its_definition(points):
    def beaten(p):
        return any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)

    expected = [not np.isnan(p).any() and not beaten(p) for p in points]
    assert pareto(board(*zip(*points, strict=True))).tolist() == expected


#: acc: a 0.9, c 0.7, b 0.5; rmse: a 10, c 15, b 30; acc: b 0.4, c 0.3, a 0.2
THREE = {
    "t1": {"a": 0.9, "b": 0.5, "c": 0.7},
    "t2": ("rmse", {"a": 10.0, "b": 30.0, "c": 15.0}),
    "t3": {"a": 0.2, "b": 0.4, "c": 0.3},
}


def rounded(column):
    return {key: round(value, 9) for key, value in column.items()}


# -- numbers --------------------------------------------------------------------------------


def test_normalized_scores_are_means_over_tasks():
    assert not {"score", "median", "wins"} & set(leaderboard(score_table(THREE)).columns)
    board = leaderboard(score_table(THREE), normalize="range")
    # t1: 1, 0, 0.5; t2: 1, 0, 0.75; t3: 0, 1, 0.5
    assert rounded(board["score"]) == rounded({"a": 2 / 3, "c": 1.75 / 3, "b": 1 / 3})
    assert rounded(board["median"]) == {"a": 1.0, "c": 0.5, "b": 0.0}
    # a beats both twice and nobody once; c beats one of two on every task
    assert rounded(board["wins"]) == rounded({"a": 2 / 3, "c": 0.5, "b": 1 / 3})
    assert board.attrs["normalize"] == "range"
    board = leaderboard(score_table(THREE), normalize="baseline:c")
    # t1: 1, -1; t2: 1 and (15 - 30) / 5, no lower than -1; t3: -1, 1
    assert rounded(board["score"]) == rounded({"a": 1 / 3, "c": 0.0, "b": -1 / 3})


def test_every_task_has_its_own_ranking():
    assert "normalized" not in leaderboard(score_table(THREE), by="task")
    board = leaderboard(score_table(THREE), by="task", normalize="range")
    assert board.index.names == ["task", "model"]
    assert "".join(board.index.get_level_values("model")) == "acb" + "acb" + "bca"
    assert board.loc["t2", "score"].tolist() == [10, 15, 30]
    assert board.loc["t2", "metric"].unique().tolist() == ["rmse"]
    assert rounded(board.loc["t2", "normalized"]) == {"a": 1.0, "c": 0.75, "b": 0.0}
    assert board["rank"].tolist() == [1, 2, 3] * 3


def test_the_interval_is_students_over_folds():
    tasks = {"t": ("rmse", {"a": [11.0, 12.0, 13.0], "b": [17.0], "c": [np.nan, 14.0, 14.0]})}
    board = leaderboard(score_table(tasks), by="task").loc["t"]
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
    board = leaderboard(score_table(tasks), by="task")[["score_low", "score_high"]].round(3)
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


def places(models, **options):
    """Return rank, interval and letter by model on one task measured in accuracy."""
    board = leaderboard(score_table({"t": ("acc", models)}), by="task", **options)
    return {model: row.tolist() for model, row in board.loc["t", RANKS].iterrows()}


@pytest.mark.parametrize(
    "models, expected",
    [
        # 0.8, 0.7, 0.7 differ from 0 by t = 0.7333 / √(0.003333 × (1/3 + 1/2)) = 13.9, p = 0.005
        (
            {"a": [0.9, 0.8, 0.9], "b": [0.1, 0.1, 0.2]},
            {"a": [1, 1, 1, "a", True], "b": [2, 2, 2, "b", False]},
        ),
        # equal folds share rank and letter; c: t = 15.3 and p = 0.0042, of three pairs 0.0127
        (
            {"a": [0.5, 0.7, 0.6], "b": [0.5, 0.7, 0.6], "c": [0.1, 0.2, 0.1]},
            {
                "a": [1.5, 1, 2, "a", True],
                "b": [1.5, 1, 2, "a", True],
                "c": [3, 3, 3, "b", False],
            },
        ),
        # c failed in every fold: worse than b, which is the worst, by an unknown difference
        (
            {"a": [0.9, 0.8, 0.9], "b": [0.1, 0.1, 0.2], "c": [np.nan] * 3},
            {
                "a": [1, 1, 1, "a", True],
                "b": [2, 2, 3, "b", False],
                "c": [3, 2, 3, "b", False],
            },
        ),
    ],
)
def test_ranks_and_letters_on_one_task(models, expected):
    assert places(models) == expected


def test_letters_are_those_of_the_corrected_test_of_all_pairs():
    a = np.array([0.9, 0.8, 0.7, 0.8])
    step = np.array([0.02, 0.04, 0.03, 0.03])
    # t = 0.03 / 0.006236 = 4.811 of 3 degrees: p = 0.0171
    assert [each[3] for each in places({"a": a, "b": a - step}).values()] == ["a", "b"]
    # the same t for each of three pairs: after Holm 3 × 0.0171 = 0.0513, and nothing is certain
    three = places({"a": a, "b": a - step, "c": a - 2 * step})
    assert [each[3] for each in three.values()] == ["a", "a", "a"]
    assert [each[:3] for each in three.values()] == [[1, 1, 3], [2, 1, 3], [3, 1, 3]]


def test_one_fold_is_not_tested():
    found = places({"a": [0.9], "b": [0.5], "c": [0.1]}).values()
    assert [(each[0], *each[3:]) for each in found] == [(1, "", True), (2, "", True), (3, "", True)]
    assert np.isnan([each[1:3] for each in found]).all()


def test_a_leaderboard_of_one_task_has_the_letters_of_its_folds():
    models = {"a": [0.9, 0.8, 0.9], "b": [0.1, 0.1, 0.2], "c": [0.1, 0.2, 0.1]}
    board = leaderboard(score_table({"t": models}))
    by_task = leaderboard(score_table({"t": models}), by="task").loc["t"]
    assert board["tie"].tolist() == ["a", "b", "b"]
    for name in ("rank", "tie", "top"):
        assert board[name].tolist() == by_task[name].tolist()
    # the rank over tasks cannot be estimated from one
    assert board[["rank_low", "rank_high"]].isna().all(axis=None)


def test_what_tells_models_apart():
    two = {"a": [0.9, 0.8], "b": [0.5, 0.6]}
    alone = {"a": [0.9, 0.8]}
    cases = [
        ({"t": two}, ("folds", "", 1)),
        ({"t": {"a": 0.9, "b": 0.5}}, (None, "one fold", 1)),
        ({"t": alone}, (None, "one model", 0)),
        ({f"t{i}": two for i in range(5)}, ("these tasks", "", 5)),
        ({f"t{i}": {"a": 0.9, "b": 0.5} for i in range(5)}, (None, "one fold", 5)),
        ({f"t{i}": two for i in range(6)}, ("tasks", "", 6)),
    ]
    for tasks, expected in cases:
        found = leaderboard(score_table(tasks)).attrs["separation"]
        assert (found["by"], found["why"], found["tasks"]) == expected
    by_task = leaderboard(score_table({"t": two, "u": {"a": 1.0, "b": 0.5}}), by="task")
    assert {task: each["by"] for task, each in by_task.attrs["separation"].items()} == {
        "t": "folds",
        "u": None,
    }


def test_one_hold_out_is_tested_on_the_items_of_stored_predictions(tmp_path):
    names = [f"q{i}" for i in range(240)]
    frame = pd.DataFrame({"item": names, "y": ["a", "b"] * 120})
    data = karat.Dataset.from_columns(frame, ["item"], "y", name="many", modality="entity")
    task = karat.Task("many", data, split="holdout", metrics=["acc"])
    rng = np.random.default_rng(0)
    sign = np.where(np.arange(240) % 2, -1.0, 1.0)
    noise = {"good": 0.2, "fair": 0.25, "bad": 50.0}
    vectors = {n: np.c_[sign + rng.normal(0, s, 240), np.ones(240)] for n, s in noise.items()}
    models = {n: dict(zip(names, v.tolist(), strict=True)) for n, v in vectors.items()}
    runs = karat.evaluate(models, task, output=tmp_path)
    board = leaderboard(runs)
    assert board.attrs["separation"]["by"] == "items" and board.attrs["separation"]["items"] == 48
    assert board["tie"].to_dict() == {"good": "a", "fair": "a", "bad": "b"}
    assert board["top"].to_dict() == {"good": True, "fair": True, "bad": False}
    by_task = leaderboard(iter(runs), by="task").loc["many"]
    assert by_task.loc["bad", ["rank_low", "rank_high"]].tolist() == [3, 3]
    assert by_task["tie"].to_dict() == board["tie"].to_dict()


def test_six_tasks_have_rank_intervals_and_five_do_not():
    def board(tasks):
        models = {"a": [0.9, 0.8], "b": [0.5, 0.6]}
        return leaderboard(score_table({f"t{i}": models for i in range(tasks)}))

    assert board(6)["tie"].tolist() == ["a", "b"] and board(6)["top"].tolist() == [True, False]
    # 1 + t of 5 degrees × √(1/4 / 6 / 6)
    assert board(6).loc["a", "rank_high"] == pytest.approx(1 + 2.5706 / 12, abs=1e-4)
    assert board(5)["tie"].tolist() == ["a", "b"]  # on these tasks
    assert board(5)[["rank_low", "rank_high"]].isna().all(axis=None)
    assert board(5)["rank"].tolist() == [1, 2]


def test_the_order_of_tasks_changes_no_letter():
    rng = np.random.default_rng(0)
    tasks = {f"t{i}": {m: rng.normal(m_ / 3) for m_, m in enumerate("abcde")} for i in range(20)}
    turned = dict(reversed(tasks.items()))
    one, other = leaderboard(score_table(tasks)), leaderboard(score_table(turned))
    assert one[list(RANKS)].equals(other[list(RANKS)]) and one["tie"].nunique() > 1


def test_a_model_without_a_rank_has_no_letter():
    tasks = {"t": {"a": [0.9, 0.8], "b": [0.5, 0.6]}, "u": {"a": [0.1, 0.2]}}
    board = leaderboard(score_table(tasks), by="task").loc["u", RANKS]
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
    board = leaderboard(score_table(THREE, kind=kinds), by="kind", normalize="range")
    # t1 and t3: a 1 and 3, b 3 and 1, c 2 and 2
    assert board.loc["classes", "rank"].to_dict() == {"a": 2, "b": 2, "c": 2}
    assert board.loc["classes", "score"].to_dict() == {"a": 0.5, "b": 0.5, "c": pytest.approx(0.5)}
    assert board.loc["numbers", "rank"].to_dict() == {"a": 1, "c": 2, "b": 3}
    assert board.loc["classes", "tasks"].tolist() == [2, 2, 2]
    assert board.index.names == ["kind", "model"]


def test_mean_scores_within_a_language():
    scores = {
        **{"t1": {"a": 0.9, "b": 0.5}, "t2": {"a": 0.5, "b": 0.7}},
        **{"t3": ("acc", {"a": 0.2, "b": 0.1}), "t4": ("f1", {"a": 0.6, "b": 0.8})},
        **{
            "t5": ("rmse", {"a": 3.0, "b": 4.0}),
            "t6": {"a": 0.3, "b": None},
            "t7": {"a": 1, "b": 0},
        },
    }
    languages = dict(zip(scores, ["de", "de", "fr", "fr", "it", "es", "es"], strict=True))
    table = score_table(scores, language=languages)
    board = leaderboard(table, by="language")
    assert board.index.names == ["language", "model"]
    assert board.loc["de", "score"].to_dict() == pytest.approx({"a": 0.7, "b": 0.6})
    # two metrics, a metric without bounds, a task without a score
    assert board.loc[["fr", "it"], "score"].isna().all()
    assert board.loc["es", "score"].dropna().to_dict() == {"a": pytest.approx(0.65)}
    assert board.loc["de", "rank"].to_dict() == {"a": 1.5, "b": 1.5}
    assert "score" not in leaderboard(table.query("task == 't5'"), by="language")
    sorted_ = leaderboard(table.query("language == 'de'"), by="language", sort="score")
    assert sorted_["score"].tolist() == pytest.approx([0.7, 0.6])
    scaled = leaderboard(table, by="language", normalize="range")
    assert scaled.loc["de", "score"].to_dict() == {"a": 0.5, "b": 0.5}


def test_languages_come_from_the_data_of_the_runs(make):
    runs = [make(m, {"t": [0.5]}, task={"about": {"language": "Dutch"}}) for m in "ab"]
    assert leaderboard(runs, by="language").index.unique(0).tolist() == ["Dutch"]
    assert leaderboard([make("a", {"t": [1]}), make("b", {"t": [0]})], by="language").index.unique(
        0
    ).tolist() == ["other"]


def test_a_kind_of_all_tasks_is_the_overall_leaderboard():
    whole = leaderboard(score_table(THREE), normalize="range")
    kind = leaderboard(
        score_table(THREE, kind=dict.fromkeys(THREE, "k")), by="kind", normalize="range"
    )
    same = ["rank", "rank_low", "rank_high", "tie", "score", "median", "wins"]
    pd.testing.assert_frame_equal(kind.loc["k", same], whole[same])


def test_tasks_are_grouped_by_dataset():
    names = {"t1": "adult", "t2": "adult", "t3": ""}
    board = leaderboard(score_table(THREE, dataset=names), by="dataset")
    assert board.loc["adult", "rank"].to_dict() == {"a": 1, "c": 2, "b": 3}
    assert board.loc["other", "rank"].to_dict() == {"b": 1, "c": 2, "a": 3}


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


def summary(table):
    return leaderboard(table, normalize="range")[NUMBERS].sort_index()


def changed(tasks, change):
    """Return the tasks with a change of metric and scores."""
    made = {}
    for task, (metric, models) in tasks.items():
        other = {model: change(metric, np.array(values)) for model, values in models.items()}
        made[task] = (change(metric, np.zeros(1))[0], {m: v for m, (_, v) in other.items()})
    return made


@settings(max_examples=15, deadline=None)
@given(boards(), st.integers(0, 999), st.sampled_from([0.5, 2.0, 1024.0]))
def test_leaderboards_are_invariant(tasks, seed, unit):
    known = summary(score_table(tasks))
    assert known["wins"].mean() == pytest.approx(0.5), "every win is a loss of another model"
    shuffled = score_table(tasks).sample(frac=1, random_state=seed)
    scaled = changed(tasks, lambda metric, values: (metric, values * unit))
    reversed_ = changed(tasks, lambda m, values: ("acc" if m == "rmse" else "rmse", -values))
    for other in (shuffled, score_table(scaled), score_table(reversed_)):
        pd.testing.assert_frame_equal(known, summary(other))
    # a model that is worse everywhere changes no rank
    for metric, models in tasks.values():
        models["worse"] = np.array(models["m0"]) + (-9 if metric == "acc" else 9)
    after = summary(score_table(tasks))
    pd.testing.assert_frame_equal(known[["rank"]], after.loc[known.index, ["rank"]])
    assert after.loc["worse", "rank"] == len(known) + 1
    assert after.loc["worse", ["score", "median", "wins"]].tolist() == [0, 0, 0]


@settings(max_examples=25, deadline=None)
@given(boards())
def test_scores_are_between_the_worst_and_the_best(tasks):
    board = leaderboard(score_table(tasks), by="task", normalize="range")
    for _, rows in board.groupby(level="task"):
        known = rows["normalized"].dropna()
        assert known.between(0, 1).all()
        assert len(known) == 0 or {known.min(), known.max()} == {0, 1}
        # who is ranked higher is never lower on the scale
        assert (rows.sort_values("rank")["normalized"].diff().dropna() <= 0).all()


# -- models that were never compared ---------------------------------------------------------

#: a and b take two tasks, c and d two others, and "dummy" takes all
APART = {
    "t": {"a": 0.9, "b": 0.8, "dummy": 0.5},
    "u": {"a": 0.7, "b": 0.8, "dummy": 0.5},
    "v": {"c": 0.6, "d": 0.9, "dummy": 0.7},
    "w": {"c": 0.6, "d": 0.9, "dummy": 0.5},
}


def test_models_that_share_no_task_are_ranked_in_groups():
    board = leaderboard(score_table(APART), columns=["tasks", "borda"])
    first, second = {"a": 1.5, "b": 1.5, "dummy": 3}, {"d": 1, "c": 2.5, "dummy": 2.5}
    named = {("group 1", m): r for m, r in first.items()}
    assert board["rank"].to_dict() == named | {("group 2", m): r for m, r in second.items()}
    assert board.attrs["by"] == "group"
    # points of a task are the models beaten in the group
    assert board["borda"].to_dict()["group 2", "d"] == 4


def test_each_group_is_the_leaderboard_of_its_models_and_tasks():
    parts = split_groups(leaderboard(score_table(APART)))
    for part, tasks in zip(parts, (["t", "u"], ["v", "w"]), strict=True):
        alone = leaderboard(score_table({task: APART[task] for task in tasks}))
        pd.testing.assert_frame_equal(part, alone.loc[part.index])
        assert part.attrs["tasks"] == tasks and part.attrs["missing"] == alone.attrs["missing"]


def test_one_group_is_a_plain_leaderboard():
    board = leaderboard(score_table({task: APART[task] for task in "tu"}))
    assert board.index.names == ["model"] and split_groups(board)[0] is board


def test_a_baseline_outside_a_group_normalizes_nothing_there():
    board = leaderboard(score_table(APART), normalize="baseline:a")
    assert board["score"].notna().groupby(level=0).any().to_dict() == {
        "group 1": True,
        "group 2": False,
    }


def test_scores_of_a_baseline_outside_a_group_fill_nothing_there():
    rows = score_table({**APART, "x": {"c": 0.6, "d": None}})
    board = leaderboard(rows, missing="baseline:a")
    assert [part.attrs["missing"]["imputed"] for part in split_groups(board)] == [0, 0]


def test_a_kind_is_split_where_its_models_were_never_compared():
    board = leaderboard(score_table(APART, kind="k"), by="kind")
    ranked = board["rank"].dropna()
    assert set(ranked.index.get_level_values(0)) == {"k · group 1", "k · group 2"}
    assert ranked["k · group 2"].to_dict() == {"d": 1, "c": 2.5, "dummy": 2.5}


# -- scores filled with those of a baseline --------------------------------------------------

# a lacks fold 2 of t, which is then that of base: (0.80 + 0.82 + 0.95) / 3 = 0.85667, above other
FILLED = {
    "t": {"a": [0.80, 0.82, None], "other": [0.85, 0.80, 0.82], "base": [0.79, 0.80, 0.95]},
    "u": {"other": [0.5, 0.6, 0.7], "base": [0.4, 0.5, 0.6]},
}


def test_a_filled_score_is_the_one_that_was_ranked():
    table = score_table(FILLED)
    board = leaderboard(table, missing="baseline:base")
    assert board.at["a", "t"] == pytest.approx(2.57 / 3)
    assert board.at["a", "u"] == pytest.approx(0.5)
    assert board.at["other", "t"] == pytest.approx(2.47 / 3)
    assert board.attrs["filled"] == {"a": {"t": (1, 3), "u": (3, 3)}}
    for rule in ("worst", "penalize", "exclude"):
        board = leaderboard(table, missing=rule)
        assert board.at["a", "t"] == pytest.approx(0.81) and board.attrs["filled"] == {}


def test_scores_by_task_are_in_the_order_of_the_ranks_if_filled():
    errors = {"t": ("rmse", {"a": [2.0, None], "b": [4.0, 2.5], "base": [3.0, 1.0]})}
    for scores, way in ((FILLED, -1), (errors, 1)):
        board = leaderboard(score_table(scores), by="task", missing="baseline:base")
        for _, rows in board.groupby(level="task"):
            shown = (way * rows["score"]).round(12)
            assert shown.is_monotonic_increasing and rows["rank"].is_monotonic_increasing
        filled = board[board["filled"] > 0]
        assert set(filled.index.get_level_values("model")) == {"a"}
        assert filled["score_low"].isna().all() and board["score_low"].notna().any()
    assert board.loc[("t", "a"), "score"] == pytest.approx(1.5)  # rmse: (2.0 + 1.0) / 2


def test_a_fold_without_a_score_of_the_baseline_is_not_filled():
    # fold 1 counts as the worst; the mean is that of folds 0 and 2
    table = score_table(
        {"t": {"a": [0.5, None, None], "b": [0.6, 0.7, 0.8], "z": [0.1, None, 0.4]}}
    )
    board = leaderboard(table, missing="baseline:z")
    assert board.at["a", "t"] == pytest.approx(0.45)
    assert board.attrs["filled"]["a"] == {"t": (1, 3)}
