"""Tables of leaderboards with missing values."""

import json

import numpy as np
import pandas as pd

import karat
from karat.report.formats import render
from karat.report.notes import _of_coverage
from karat.report.tables import make_table
from karat.report.terminal import board_text, print_board
from karat.results.leaderboard import leaderboard

COLUMNS = "task model repeat fold corruption severity epoch metric value".split()


def test_leaderboard_without_costs(tmp_path):
    frame = pd.DataFrame({"a": np.arange(20.0), "y": np.arange(20.0)})
    data = karat.Dataset.from_table(frame, target="y", name="line", kind="numbers")
    (run,) = karat.evaluate("dummy", [karat.Task("line", data)], output=tmp_path / "out")
    for path in (run.folder / "jobs").glob("*.json"):
        record = json.loads(path.read_text())
        for name in [key for key in record if "seconds" in key or "memory" in key]:
            del record[name]
        path.write_text(json.dumps({**record, "status": "failed", "views": []}))
    print_board(karat.leaderboard([run.folder]))


def test_only_the_lowest_coverages_are_listed():
    shares = {("m", f"task {i}"): i / 10 for i in (9, 1, 5, 3, 7, 2, 8, 4)}
    found = list(_of_coverage(shares))
    assert "10% of task 1" in found[0] and found[-1].startswith("2 cells")
    assert len(found) == 7


def table(tasks):
    """Return a tidy table of ``{task: {model: [accuracy per fold]}}``."""
    rows = [
        (task, model, 0, fold, "", 0.0, -1, "acc", value)
        for task, models in tasks.items()
        for model, values in models.items()
        for fold, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def column(board, name):
    (found,) = (each for each in make_table(board).columns if each.name == name)
    return [(cell.text.strip(), cell.best) for cell in found.cells]


def test_models_with_too_few_tasks_are_never_marked_best():
    tasks = {f"t{i}": {"a": [0.8 + i / 100], "b": [0.5]} for i in range(4)}
    tasks["t0"]["once"] = [0.9]
    board = leaderboard(table(tasks), normalise="range")
    # a: second on t0 and first on three; once: first on its only task
    assert board.index.tolist() == ["a", "b", "once"]
    assert board["rank"].tolist() == [1.25, 2.25, 1.0]
    assert column(board, "rank") == [("1.2", True), ("2.2", False), ("1.0", False)]
    assert column(board, "score")[2] == ("1.000", False)
    assert "**1.0**" not in render(board, "markdown")
    assert r"\textbf{1.0}" not in render(board, "latex")
    # its score on a task is a score like any other
    assert column(board, "t0")[2] == ("0.900", True)


def test_best_is_marked_without_ties():
    board = leaderboard(table({f"t{i}": {"a": [0.8], "b": [0.5]} for i in range(3)}))
    board["tie"] = ""
    assert column(board, "rank") == [("1.0", True), ("2.0", False)]


def test_the_view_by_task_shows_intervals_and_letters_in_80_columns():
    tasks = {"t": {"good": [0.9, 0.8, 0.9], "bad": [0.1, 0.1, 0.2], "worse": [0.1, 0.2, 0.0]}}
    board = leaderboard(table(tasks), by="task")
    names = [each.name for each in make_table(board).columns]
    assert names[:5] == ["rank", "95 %", "tie", "score", "95 %"]
    assert [text for text, _ in column(board, "tie")] == ["a", "b", "b"]
    (heading, *_) = board_text(board, 80).renderables
    assert [each.header.plain for each in heading.columns] == ["model", *names]
