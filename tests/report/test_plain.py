import re

import numpy as np
import pandas as pd

from karat.report import plain
from karat.report.bundle import make_bundle
from karat.report.plain import board_table, plain_sections


def texts(column):
    return [cell.text for cell in column.cells]


def named(table):
    return {column.name: column for column in table.all_columns}


def titles(bundle):
    return re.findall(r"<h2>([^<]+)</h2>", "".join(plain_sections(bundle)))


def test_plain_leaderboard(make_run):
    one = make_run("one", {"t": [0.9, 0.7], "u": ["broke"]})
    two = make_run("two", {"t": [0.5, 0.6], "u": [0.5]})
    columns = named(board_table(make_bundle([one, two])))
    place = texts(columns["model"]).index("one")
    assert texts(columns["t"])[place] == "0.800"
    assert columns["t"].cells[place].best and not columns["t"].cells[1 - place].best
    assert columns["t"].label == "acc ↑"
    assert texts(columns["u"])[place] == "failed" and columns["u"].cells[place].faint
    assert texts(columns["failed"])[place] == "1"


def test_where_less_is_better_the_least_is_marked():
    rows = [
        {"task": "t", "model": model, "value": value, "metric": "rmse", "fold": 0, "repeat": 0}
        for model, value in (("a", 2.0), ("b", 1.0))
    ]
    table = pd.DataFrame(rows).assign(corruption="", severity=0.0, epoch=-1)
    column = named(board_table(make_bundle(table)))["t"]
    assert [(cell.text, cell.best) for cell in column.cells] == [("1.000", True), ("2.000", False)]


def test_very_many_cells_are_left_to_scripts(monkeypatch):
    monkeypatch.setattr(plain, "MAX_CELLS", 3)
    rng = np.random.default_rng(0)
    keys = pd.MultiIndex.from_product([["t", "u"], ["a", "b"]], names=["task", "model"])
    fixed = {"fold": 0, "repeat": 0, "corruption": "", "severity": 0.0, "epoch": -1}
    table = keys.to_frame(index=False).assign(value=rng.random(4), metric="acc", **fixed)
    board = board_table(make_bundle(table))
    assert "t" not in named(board)
    assert "2 tasks" in board.notes[-1]


def test_sections_without_data_are_absent(make_run):
    rows = [{"task": "t", "model": m, "value": 0.5, "metric": "acc", "fold": 0} for m in "ab"]
    table = pd.DataFrame(rows).assign(repeat=0, corruption="", severity=0.0, epoch=-1)
    found = titles(make_bundle(table))
    assert found[0] == "Leaderboard"
    assert not {"Robustness", "Failures: 1", "Datasets", "Provenance"} & set(found)
    run = make_run("m", {"t": [0.5, "broke"]})
    assert {"Failures: 1", "Datasets", "Provenance"} <= set(titles(make_bundle(run)))


def test_of_many_failures_the_first_are_listed_and_the_others_counted(make_run, monkeypatch):
    monkeypatch.setattr(plain, "MAX_ROWS", 2)
    page = "".join(plain_sections(make_bundle(make_run("m", {"t": [0.5, *["broke"] * 5]}))))
    failures = page.partition("Failures: 5")[2].partition("</section>")[0]
    assert failures.count("<tr>") == 1 + 2
    assert "3 more" in failures


def test_long_names_are_cut_in_failures(make_run):
    page = "".join(plain_sections(make_bundle(make_run("m" * 10_000, {"t": [0.5, *["x"] * 9]}))))
    assert "m" * 10_000 in page
    assert len(page) < 60_000
