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
from karat.results.run import Run

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


# -- two models, and many -------------------------------------------------------------------


def write_run(output: Path, model: str, scores: dict, stamp: str = "20260101T000000") -> Run:
    """Write a run of acc (of "rmse" where the task is called so) by task and fold."""
    named = {task: "rmse" if task == "rmse" else "acc" for task in scores}
    tasks = [
        {"name": task, "metrics": [metric], "dataset": task, "fingerprint": "0", "folds": [0, 1]}
        for task, metric in named.items()
    ]
    facts = {"model": model, "suite": "s", "constraint": "c", "mode": "m", "stamp": stamp}
    run = Run.create(output, {**facts, "seed": 1, "tasks": tasks})
    for task, values in scores.items():
        for fold, value in enumerate(values):
            record = dict.fromkeys(("spec", "seed", "info", "utc"), "") | {"repeat": 0}
            record |= {"model": model, "task": task, "fold": fold, "metric": named[task]}
            record |= {"notes": [], "history": [], "train_questions": 40, "questions": 10}
            view = {"corruption": "", "severity": 0.0, "scores": {named[task]: value}}
            failed = value is None
            record |= {"status": "failed" if failed else "ok", "views": [] if failed else [view]}
            run.write(record, {})
    return run


@pytest.fixture
def there(tmp_path, monkeypatch) -> Path:
    """Three models in the folder ``results`` of the current one: a is ahead of b, c is as b."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "140")
    values = {"a": 0.2, "[red]b": 0.0, "c": 0.0}
    for model, more in values.items():
        tasks = {f"t{i}": [0.5 + more + i / 100, 0.55 + more] for i in range(6)}
        tasks["rmse"] = [20.0 * (1 - more), 22.0 * (1 - more)]
        write_run(tmp_path / "results", model, tasks)
    return tmp_path


def test_two_models_by_name(cli, there):
    said = cli("compare", "a", "[red]b")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == " a beside [red]b, paired by task and fold"
    assert re.split(r"\s{2,}", lines[2].strip()) == [
        *("task", "metric", "a", "[red]b", "difference", "p", "better")
    ]
    # folds of 16 and 17.6 less 20 and 22: -4.2 ± 12.706 √(0.08 (1/2 + 10/40))
    mine = ["rmse", "rmse ↓", "16.80", "21.00", "-4.200 [-7.312, -1.088]", "0.037", "a"]
    assert line(said, "rmse") == mine
    assert line(said, "t3")[2:] == ["0.740", "0.540", "+0.200", "–", "not tested"]
    assert " a is better than [red]b over 7 tasks (p 0.016), by more than 0.01 with" in said.out
    assert " 7 of 7 tasks: 7 won, 0 tied, 0 lost; told better on 1, worse on 0" in said.out
    assert "of rmse as a share of the mean of both" in said.out


def test_two_run_folders_of_one_model(cli, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    old = write_run(tmp_path, "m", {"t": [0.5, 0.6]}, "20250101T000000")
    new = write_run(tmp_path, "m", {"t": [0.6, 0.8]}, "20260101T000000")
    said = cli("compare", new.folder, old.folder)
    assert said.out.splitlines()[0].startswith(" m (20260101T000000) beside m (20250101T000000)")
    assert line(said, "t ")[2:4] == ["0.700", "0.550"]


def test_a_regression_is_exit_code_1(cli, there):
    """The second is the new one: rmse rises by 1 %, the share of right answers falls by 0.012."""
    old = write_run(there / "ci", "m", {"t": [0.8, 0.9], "rmse": [10.0, 10.0]}, "20250101T000000")
    new = write_run(
        there / "ci", "m", {"t": [0.79, 0.886], "rmse": [10.1, 10.1]}, "20260101T000000"
    )
    for limit, code, tasks in [(0.02, 0, []), (0.01, 1, ["t"]), (0.005, 1, ["t", "rmse"])]:
        said = cli("compare", old.folder, new.folder, "--fail-on-regression", limit)
        assert said.code == code
        found = re.findall(r"^ Regression: (\w+), ", said.out, re.MULTILINE)
        assert sorted(found) == sorted(tasks)
    assert "t, acc 0.850 → 0.838: worse by 0.012." in said.out
    assert "rmse 10.00 → 10.10: worse by 0.01 of its value." in said.out
    back = cli("compare", new.folder, old.folder, "--fail-on-regression", 0)
    assert back.code == 0 and " No regression from m (20260101T000000)" in back.out


def test_what_is_missing_in_the_new_one_is_a_regression(cli, there):
    old = write_run(there / "ci", "old", {"t": [0.8, 0.9], "u": [0.5, 0.5], "v": [0.5, 0.5]})
    new = write_run(there / "ci", "new", {"t": [0.9, 0.9], "u": [None, None], "w": [0.1, 0.1]})
    said = cli("compare", old.folder, new.folder, "--fail-on-regression", "0.5", "--json")
    assert said.code == 1
    told = json.loads(said.out)["regressions"]
    assert {row["task"]: row["why"] for row in told} == {
        "u": "no score to compare: failed",
        "v": "no score to compare: not run",
    }
    broken = write_run(there / "ci", "broken", {"t": [None, None]})
    assert cli("compare", old.folder, broken.folder, "--fail-on-regression", "0.5").code == 1


def test_other_shapes_of_a_verdict(cli, there):
    told = json.loads(cli("compare", "a", "c", "--json", "--rope", "0.5").out)
    assert (told["first"], told["second"], told["rope"]) == ("a", "c", 0.5)
    assert told["overall"]["wins"] == 7 and told["overall"]["p"] == pytest.approx(2 / 2**7)
    assert told["overall"]["p_equal"] > 0.9
    said = cli("compare", "a", "[red]b", "--markdown", "--csv", "out")
    assert re.search(r"^\| t0 +\| acc ↑ +\| +0.725 \|", said.out, re.MULTILINE)
    assert "| **16.80** |" in said.out and "\\[red\\]b" in said.out
    names = [Path(path).name for path in said.err.splitlines()]
    assert names == ["verdict_tasks.csv", "verdict_overall.csv"]
    assert pd.read_csv(there / "out" / names[0])["task"].tolist()[-1] == "rmse"
    one = json.loads(cli("compare", "a", "c", "--json", "--metric", "rmse").out)
    assert [row["task"] for row in one["tasks"]] == ["rmse"]


def test_two_models_on_common_questions(cli, runs, monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")
    mine, less, _ = (run.folder for run in runs)
    said = cli("compare", mine, less, "--metric", "mae")
    assert line(said, ODD[:5])[-5:] == ["0.300", "0.200", "+0.100", "–", "not tested"]
    assert "the two know different shares of the questions; --common" in said.out
    said = cli("compare", mine, less, "--metric", "mae", "--common")
    assert line(said, ODD[:5])[-5:] == ["0.100", "0.200", "-0.100", "–", "not tested"]
    assert "compared on 3 of 4 questions that all 2 runs know." in said.out
    # errors of 0.1 beside 0.2 on each of three questions: no resample says otherwise
    said = cli("compare", mine, less, "--metric", "mae", "--rows")
    assert line(said, ODD[:5])[-3:] == ["-0.100 [-0.100, -0.100]", "0.002", "mine"]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_a_verdict_on_a_narrow_screen(cli, there, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = cli("compare", "a", "[red]b")
    assert max(map(cell_len, said.out.splitlines()[1:])) <= width
    assert "-4.200" in said.out


def test_many_models(cli, there):
    said = cli("compare", "a", "[red]b", "c")
    assert said.code == 0
    assert line(said, "a ")[:3] == ["a", "1.0", "a"]
    # b and c are equal: ranks 2.5 each; against a the least p of 7 tasks, times 3
    assert line(said, "c ") == ["c", "2.5", "b", "7", "0.047"]
    assert " The models differ beyond chance over 7 tasks (Friedman p " in said.out
    assert "2 of 3 pairs can be told apart." in said.out
    every = json.loads(cli("compare", "--in", "results", "--json").out)
    assert every["cliques"] == [["[red]b", "c"]] and len(every["pairs"]) == 3
    files = cli("compare", "--in", "results", "--csv", "out").err.splitlines()
    assert [Path(path).name for path in files] == ["contests_pairs.csv", "contests_models.csv"]


def test_what_does_not_go_together(cli, there):
    run = next((there / "results").iterdir())
    for arguments, messages in [
        ([], ["name a run, two models, or --in DIR to compare all models there."]),
        (["a", "c", "--with", "x", "--views"], ["--with is about one", "--views is about one"]),
        ([run, "--rope", "0"], ["--rope is about two models."]),
        ([run, "--fail-on-regression", "0"], ["--fail-on-regression is about two models."]),
        ([run, "--in", "results"], ["--in is about models by name; name two."]),
        (["a", "[red]b", "c", "--rows", "--common"], ["--rows is", "--common is", "--rows is on"]),
        (["a", "d"], ['the runs have no model "d". There are: ']),
        (["a", "a"], ['"a" and "a" are the same run; name two to compare.']),
        (["a", "c", "--rope", "-1"], ["rope is 0 or more"]),
        (["a", "c", "--fail-on-regression", "-1"], ["a tolerance is 0 or more"]),
        (["a", "c", "--metric", "ac"], ['no task has the metric "ac". Did you mean "acc"?']),
        (["x", "y", "--in", "nowhere"], ['there is no run folder "x", and no folder nowhere']),
    ]:
        said = cli("compare", *arguments)
        assert said.code == 2 and said.out == "", arguments
        errors = [told for told in said.err.splitlines() if told.startswith("error: ")]
        assert len(errors) == len(messages), said.err
        for told, message in zip(errors, messages, strict=True):
            assert message in told


def test_names_are_text_whatever_they_hold(cli, tmp_path, monkeypatch):
    """Signs that steer a terminal, markup and 10 kB in the names of models and tasks."""
    monkeypatch.setenv("COLUMNS", "100")
    odd, long = "\x1b[31mred\u202e <b>x</b>", "n" * 10_000
    tasks = {"[bold]t\x07": [0.5, 0.6], long: [0.1, 0.4]}
    better = {task: [value + 0.1 for value in values] for task, values in tasks.items()}
    one, other = write_run(tmp_path, odd, better), write_run(tmp_path, "m" * 9_000, tasks)
    for shape in ((), ("--markdown",)):
        said = cli("compare", one.folder, other.folder, *shape)
        assert said.code == 0 and not {"\x1b", "\x07", "\u202e"} & set(said.out)
        assert "mmmm…mmmm" in said.out
    assert "<b>" not in said.out and "&lt;b&gt;" in said.out
    told = json.loads(cli("compare", one.folder, other.folder, "--json").out)
    assert told["first"] == odd and told["tasks"][1]["task"] == long
    found = karat.compare([], one, other)
    assert not {"\x1b", "\x07", "\u202e"} & set(repr(found))
    assert "<b>" not in found._repr_html_()
