"""Rows by any column, the better first, whatever better means for it."""

import numpy as np
import pandas as pd
import pytest

from karat.errors import DefinitionError
from karat.results.leaderboard import leaderboard
from karat.results.order import sort_leaderboard

COLUMNS = "task model repeat fold corruption severity epoch metric value".split()

ROWS = [
    *[("up", m, "acc", v) for m, v in (("a", 0.1), ("b", 0.9), ("c", 0.5))],
    *[("down", m, "rmse", v) for m, v in (("a", 30.0), ("b", 20.0), ("c", 10.0))],
    *[("part", m, "acc", v) for m, v in (("c", 0.2), ("a", 0.3))],
]


def table():
    made = [(task, model, 0, 0, "", 0.0, -1, metric, value) for task, model, metric, value in ROWS]
    return pd.DataFrame(made, columns=COLUMNS).assign(kind="k")


@pytest.mark.parametrize(
    "sort, models",
    [
        ("up", ["b", "c", "a"]),
        ("down", ["c", "b", "a"]),
        # who has no score comes last
        ("part", ["a", "c", "b"]),
        ("model", ["a", "b", "c"]),
        # up: 0, 1, 0.5; down: 0, 0.5, 1; part: 1, -, 0
        ("score", ["b", "c", "a"]),
    ],
)
def test_the_best_comes_first(sort, models):
    assert leaderboard(table(), sort=sort).index.tolist() == models


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


def test_sorting_by_rank_changes_nothing():
    pd.testing.assert_frame_equal(leaderboard(table(), sort="rank"), leaderboard(table()))


def test_rows_of_a_task_stay_together():
    board = leaderboard(table(), by="task", sort="score")
    assert board.index.tolist() == [
        *[("up", m) for m in "bca"],
        *[("down", m) for m in "cba"],
        *[("part", m) for m in "acb"],
    ]
    by_name = leaderboard(table(), by="task", sort="model")
    assert by_name.index.get_level_values("model").tolist() == list("abc" * 3)
    groups = leaderboard(table(), by="task", sort="task")
    assert groups.index.unique("task").tolist() == ["down", "part", "up"]
    assert groups.loc["up"].index.tolist() == ["b", "c", "a"]


def test_sorting_by_a_normalized_score_adds_it():
    assert leaderboard(table(), sort="wins").attrs["normalise"] == "range"
    assert "median" in leaderboard(table(), by="kind", sort="median")
    board = leaderboard(table(), by="task", sort="normalised")
    assert board.loc["down", "normalised"].tolist() == [1, 0.5, 0]
    # the score by task is what was measured
    assert leaderboard(table(), by="task", sort="score").attrs["normalise"] is None


@pytest.mark.parametrize(
    "options, words",
    [
        ({"sort": "dwon"}, '"down"'),
        ({"sort": "scroe"}, '"score"'),
        ({"sort": "normalized", "by": "task"}, '"normalised"'),
        ({"sort": "xyz", "by": "kind"}, "kind, model, rank, rank_low"),
        ({"sort": "up", "by": "task"}, '"up"'),
    ],
)
def test_unknown_columns_raise(options, words):
    with pytest.raises(DefinitionError) as error:
        leaderboard(table(), **options)
    assert words in str(error.value)
