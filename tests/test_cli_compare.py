"""``karat compare``: the table, narrow screens, odd names, files for machines, and mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

import karat

ODD = "a/b <script>alert(1)</script> [bold]x[/bold]"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[karat.Run]:
    """Three runs whose cosines to "a" are known by hand; the second lacks the last question."""
    frame = pd.DataFrame({"one": "a", "other": list("wxyz"), "near": [0.5, 0.5, 0.5, 0.0]})
    data = karat.Dataset.from_columns(
        frame, ["one", "other"], "near", name="[d]", kind="numbers", modality="entity"
    )
    task = karat.Task(ODD, data, probe="similarity", split="all", metrics=["mae", "rmse"])
    output = tmp_path_factory.mktemp("runs")
    models = {"mine": [0.6, 0.6, 0.6, 0.9], "[red]less/": [0.7] * 3, "worst": [1.0] * 4}
    made = []
    for name, wanted in models.items():
        vectors = {"a": np.array([1.0, 0.0])}
        for item, cosine in zip("wxyz", wanted, strict=False):
            vectors[item] = np.array([cosine, np.sqrt(1 - cosine**2)])
        made += karat.evaluate({name: vectors}, task, output=output)
    return made


def line(said, start: str) -> list[str]:
    """Return the cells of the first row that starts like this."""
    (found, *_) = [row for row in said.out.splitlines() if row.startswith(f" {start}")]
    return re.split(r"\s{2,}", found.strip())


def test_the_table(cli, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    said = cli("compare", runs[0].folder)
    assert (said.code, said.err) == (0, "")
    first, _, head, _, group, *_ = said.out.splitlines()
    assert first == f" {runs[0].folder.name} beside 2 other runs"
    assert re.split(r"\s{2,}", head.strip()) == [
        *("metric", "this run", "rank", "best other", "its value", "difference", "coverage")
    ]
    assert group == f" {ODD}   [d]"
    # errors of 0.1, 0.1, 0.1, 0.9 beside three of 0.2
    best = ["[red]less/", "0.200", "+0.100", "100 % / 75.0 %"]
    assert line(said, "mae") == ["mae ↓", "0.300", "2 of 3", *best]
    assert "the runs know different shares of the questions; --common" in said.out


def test_on_common_questions(cli, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    said = cli("compare", runs[0].folder, "--common", "--metric", "mae")
    best = ["[red]less/", "0.200", "-0.100", "100 % / 75.0 %"]
    assert line(said, "mae") == ["mae ↓", "0.100", "1 of 3", *best]
    assert f" {ODD}: compared on 3 of 4 questions that all 3 runs know." in said.out
    assert "beside 2 other runs, on the questions that all know" in said.out
    assert "rmse" not in said.out


def test_one_of_the_runs(cli, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    said = cli("compare", runs[0].folder, "--with", runs[2].folder.name, "--metric", "mae")
    # errors of 0.5, 0.5, 0.5 and 1
    worst = ["worst", "0.625", "-0.325", "100 % / 100 %"]
    assert line(said, "mae") == ["mae ↓", "0.300", "1 of 2", *worst]
    assert "shares of the questions" not in said.out


@pytest.mark.parametrize("width", [40, 60, 80])
def test_narrow_screens_hold_every_line(cli, runs, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = cli("compare", runs[0].folder)
    first, *rest = said.out.splitlines()
    assert runs[0].folder.name in first, "a name to copy stays whole"
    assert max(map(cell_len, rest)) <= width
    assert "2 of 3" in said.out and "+0.100" in said.out


def test_alone(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    other = tmp_path / "out"
    frame = pd.DataFrame({"x": range(20), "y": ["a", "b"] * 10})
    task = karat.Task("t", karat.Dataset.from_table(frame, "y", name="t"), metrics=["acc"])
    (run,) = karat.evaluate("dummy", task, output=other)
    said = cli("compare", run.folder)
    assert said.code == 0
    assert line(said, "acc") == ["acc ↑", "0.500", "–", "–", "–", "–", "100 %"]
    assert " There is no other run in out." in said.out
    assert "beside 0 other runs" in said.out


def test_files_and_json(cli, runs, tmp_path):
    said = cli("compare", runs[0].folder, "--csv", tmp_path / "tables", "--json")
    told = json.loads(said.out)
    assert told["run"] == runs[0].folder.name
    assert [row["rank"] for row in told["ranks"]] == [2, 2]
    assert {row["task"] for row in told["values"]} == {ODD}
    assert told["ranks"][0]["difference_low"] is None and told["ranks"][0]["questions"] is None
    written = [Path(path) for path in said.err.splitlines()]
    assert [path.name for path in written] == ["comparison_values.csv", "comparison_ranks.csv"]
    table = pd.read_csv(written[0])
    assert table["value"].tolist() == [row["value"] for row in told["values"]]


def test_mistakes_are_one_message_and_exit_code_2(cli, runs, tmp_path):
    mine = runs[0].folder
    for arguments, message in [
        ([tmp_path / "nothing"], f"there is no run {tmp_path / 'nothing'}."),
        ([mine.parent], f"{mine.parent} is no run but a folder of 3; name one, such as "),
        ([mine, "--with", "worts"], f'Did you mean "{runs[2].folder.name}"?'),
        ([mine, "--with", mine.name], "is the run itself; name another to compare with."),
        ([mine, "--metric", "maee"], 'the run has no metric "maee". Did you mean "mae"?'),
    ]:
        said = cli("compare", *arguments)
        assert said.code == 2 and said.out == ""
        (told,) = said.err.splitlines()
        assert told.startswith("error: ") and message in told
