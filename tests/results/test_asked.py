"""Which columns a board has, and what is made on request."""

import numpy as np
import pandas as pd
import pytest

from karat.errors import DefinitionError
from karat.results.leaderboard import leaderboard

COLUMNS = "task model repeat fold corruption severity epoch metric value kind".split()
RANKS = ["rank", "rank_low", "rank_high", "tie"]
COSTS = ["failed", "declined", "seconds", "memory_mb", "dimensions"]


def table():
    """Return three models on four tasks: a first thrice, c last twice, and without the last."""
    scores = {"t": [3, 2, 1], "u": [3, 2, 1], "v": [3, 1, 2], "w": [1, 2]}
    rows = [
        (task, model, 0, 0, "", 0.0, -1, "acc", value, "k")
        for task, values in scores.items()
        for model, value in zip("abc", values, strict=False)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


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
        (["wins"], ["wins"]),
        (["pareto", "tasks"], ["pareto", "t", "u", "v", "w"]),
        (["rank"], []),
    ],
)
def test_a_choice_shows_ranks_failures_and_what_was_chosen(wanted, expected):
    assert columns(wanted) == [*RANKS, *expected, "failed"]


def test_ratings_by_hand():
    board = leaderboard(table(), columns=["borda", "wins", "elo:c"], sort="borda")
    # a beats two thrice and nobody on w; b one, one, none, one; c none, none, one
    assert board["borda"].to_dict() == {"a": 6, "b": 3, "c": 1}
    assert board["wins"].to_dict() == pytest.approx({"a": 3 / 4, "b": 2 / 4, "c": 0.5 / 3})
    assert board.loc["c", ["elo", "elo_low", "elo_high"]].tolist() == [1500, 1500, 1500]
    assert board["elo"].is_monotonic_decreasing
    assert board.attrs["anchor"] == "c"


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


def test_normalise_adds_its_columns_to_a_choice():
    assert columns(["t"], normalise="range") == [*RANKS, "score", "median", "wins", "t", "failed"]


def test_ratings_within_a_group_and_the_columns_of_each_view():
    group = leaderboard(table(), by="kind", columns=["elo", "borda", "seconds"])
    assert list(group.columns) == [
        *RANKS,
        *("borda", "elo", "elo_low", "elo_high", "tasks", "failed", "seconds"),
    ]
    over_all = leaderboard(table(), columns=["elo"])
    assert group.loc["k", "elo"].to_dict() == pytest.approx(over_all["elo"].to_dict())
    task = leaderboard(table(), by="task", columns=["normalised"])
    assert list(task.columns) == [
        *("metric", *RANKS, "score", "score_low", "score_high", "normalised", "status", "failed")
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
        ({"columns": ["zzz"]}, "; on request: score, median, wins, borda, elo, pareto."),
        ({"columns": ["zzz", "elo"]}, "; on request: score, median, wins, borda, pareto."),
        ({"columns": ["zzz"], "by": "task"}, "; on request: normalised, pareto."),
        ({"columns": ["elo:aa"]}, '"a"?'),
        ({"columns": ["pareto:second"]}, '"seconds"?'),
        ({"columns": ["elo"], "by": "task"}, '"elo"'),
        ({"sort": "eloo"}, '"elo"?'),
    ],
)
def test_unknown_names_raise(options, words):
    with pytest.raises(DefinitionError) as error:
        leaderboard(table(), **options)
    assert words in str(error.value)


def test_dimensions_and_common_costs_come_from_the_runs(tmp_path):
    import karat

    runs = karat.evaluate(
        ["onehot", "random", "dummy"], ["diabetes", "wine-clusters"], folds=[0], output=tmp_path
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
