"""Finished runs and plans on a terminal."""

import csv
import io
import json
from pathlib import Path

import pytest

import karat
from karat.models.adapters import adapt
from karat.models.tables import OneHotTable
from karat.plan import make_plan
from karat.report.runs import show_board, show_frame, show_plan, show_runs
from karat.results.leaderboard import leaderboard


class Broken:
    def transform(self, items):
        raise ValueError("no")


@pytest.fixture
def runs(two_classes, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return karat.evaluate(["onehot", "dummy"], [two_classes(), words()], output="results")


def test_the_exit_code_of_failures(runs, two_classes, tmp_path, capsys):
    assert show_runs(runs, None) == 0
    failed = karat.evaluate({"broken": Broken()}, two_classes(), output=tmp_path / "other")
    assert show_runs(failed, None) == 1
    capsys.readouterr()


def test_only_the_leaderboard_goes_to_standard_output(runs, capsys):
    show_runs(runs, None)
    out, err = capsys.readouterr()
    assert "onehot" in out and "halves" in out
    stamp = runs[0].about["stamp"]
    _, runs_line, *commands = err.splitlines()
    assert runs_line == f" runs    results/*.{stamp}   2 folders"
    expected = ("report results", "leaderboard results", "compare onehot dummy")
    assert [line[9:].split("   ")[0] for line in commands] == [f"karat {c}" for c in expected]


@pytest.mark.parametrize("options", [{"shape": "csv"}, {"shape": "json"}, {"quiet": True}])
def test_no_next_steps_if_quiet_or_in_machine_formats(runs, capsys, options):
    show_runs(runs, options.pop("shape", None), **options)
    assert capsys.readouterr().err == ""


def test_csv_and_json_hold_the_whole_precision(runs, capsys):
    board = leaderboard(runs)
    show_frame(board, "csv")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    show_frame(board, "json")
    read = json.loads(capsys.readouterr().out)
    assert [row["model"] for row in rows] == [row["model"] for row in read] == list(board.index)
    for row, other, (_, exact) in zip(rows, read, board.iterrows(), strict=True):
        assert float(row["seconds"]) == other["seconds"] == exact["seconds"]
        assert other["halves"] == exact["halves"]
    onehot = next(row for row in read if row["model"] == "onehot")
    assert onehot["words"] is None


def test_a_folder_of_runs_is_shown(runs, capsys):
    show_board([Path("results")], "csv")
    assert capsys.readouterr().out.startswith("model,rank,")


def test_one_run_is_named_with_its_folder(runs, capsys):
    show_runs(runs[:1], None)
    assert f" runs    results/{runs[0].folder.name}\n" in capsys.readouterr().err


def test_a_plan_shows_jobs_and_declines(two_classes, words, capsys):
    plan = make_plan([adapt(OneHotTable(), "one[hot]")], [two_classes(), words("[w]")])
    show_plan(plan)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
    assert lines[:3] + lines[-1:] == [
        ["model", "task", "folds"],
        ["one[hot]", "halves", "2"],
        ["2", "jobs,", "1", "declined"],
        ["one[hot]", "·", "[w]"],
    ]
