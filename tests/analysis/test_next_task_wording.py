"""The rank on the next task as text, Markdown, CSV and JSON."""

from __future__ import annotations

import io
import json

import pandas as pd
import pytest

import karat
from karat.analysis.next_task_wording import next_task_table
from karat.output.result import show

from ..score_data import score_table


@pytest.fixture
def found():
    kinds = {f"t{t:02}": "classification" if t < 20 else "regression" for t in range(40)}
    scores = {}
    for task, kind in kinds.items():
        up = kind == "classification"
        scores[task] = {"a": 0.9 if up else 0.1, "b": 0.5, "c": 0.1 if up else 0.9}
    return karat.next_task(score_table(scores, kind=kinds))


def texts(table, name):
    (column,) = [column for column in table.columns if column.name == name]
    return [cell.text for cell in column.cells]


def test_cells(found):
    table = next_task_table(found)
    assert texts(table, "next 90 %") == ["1 – 3", "2 – 2", "1 – 3"]
    assert texts(table, "first")[0] == "50 % [35, 65]"
    assert texts(table, "loss")[1].startswith("0.500 [0.500")
    assert texts(table, "classification") == ["1 – 1", "2 – 2", "3 – 3"]
    assert "classification (20 tasks) 57 % narrower" in table.notes[1]


def test_formats(found, capsys):
    show(found)
    printed = capsys.readouterr().out
    assert "next 90 %" in printed and "On 90 % of new tasks like these 40" in printed
    show(found, "json")
    assert json.loads(capsys.readouterr().out) == found.to_dict()
    show(found, "csv")
    rows = pd.read_csv(io.StringIO(capsys.readouterr().out), keep_default_na=False)
    assert len(rows) == 9 and rows["kind"].tolist()[::3] == ["", "classification", "regression"]
    show(found, "markdown")
    assert "| next 90 % |" in capsys.readouterr().out


def test_options_of_another_table_are_refused(cli):
    result = cli("leaderboard", "results", "--next", "--sort", "elo")
    assert result.code == 2 and "--next conflicts with --sort" in result.err
