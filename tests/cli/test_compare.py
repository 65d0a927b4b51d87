"""``karat compare``: tables, narrow screens, odd names, files and wrong input."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

import karat

from ..score_data import make_view, write_run

ODD = "a/b <script>alert(1)</script> [bold]x[/bold]"


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[karat.Run]:
    """Three runs with cosines to "a" computed by hand; the second lacks the last question."""
    frame = pd.DataFrame({"one": "a", "other": list("wxyz"), "near": [0.5, 0.5, 0.5, 0.0]})
    kinds = {"kind": "regression", "modality": "entity"}
    data = karat.Dataset.from_columns(frame, ["one", "other"], "near", name="[d]", **kinds)
    task = karat.Task(ODD, data, probe="similarity", split="all", metrics=["mae", "rmse"])
    cosines = {"mine": [0.6, 0.6, 0.6, 0.9], "[red]less/": [0.7] * 3, "worst": [1.0] * 4}
    models = {}
    for name, wanted in cosines.items():
        vectors = {item: [c, np.sqrt(1 - c**2)] for item, c in zip("wxyz", wanted, strict=False)}
        models[name] = {"a": [1.0, 0.0], **vectors}
    return karat.evaluate(models, task, output=tmp_path_factory.mktemp("runs"))


def line(result, start: str) -> list[str]:
    """Return the cells of the first row that starts like this."""
    (found, *_) = [row for row in result.out.splitlines() if row.startswith(f" {start}")]
    return re.split(r"\s{2,}", found.strip())


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "140")


# -- a run against earlier ones -------------------------------------------------------------


def test_the_table(cli, runs):
    result = cli("compare", "--history", runs[0].folder)
    assert (result.code, result.err) == (0, "")
    first, _, head, _, group, *_ = result.out.splitlines()
    assert runs[0].folder.name in first
    assert re.split(r"\s{2,}", head.strip()) == [
        *("metric", "this run", "rank", "best other", "its value", "difference", "coverage")
    ]
    assert group == f" {ODD}   [d]"
    # errors of 0.1, 0.1, 0.1, 0.9 against three of 0.2
    best = ["[red]less/", "0.200", "+0.100", "100 % / 75.0 %"]
    assert line(result, "mae") == ["mae ↓", "0.300", "2 of 3", *best]
    assert "--on common" in result.out


def test_on_common_questions(cli, runs):
    result = cli("compare", "--history", runs[0].folder, "--on", "common", "--metric", "mae")
    best = ["[red]less/", "0.200", "-0.100", "100 % / 75.0 %"]
    assert line(result, "mae") == ["mae ↓", "0.100", "1 of 3", *best]
    assert "3 of 4 questions" in result.out
    assert "rmse" not in result.out


def test_chosen_runs(cli, runs):
    result = cli("compare", runs[2].folder.name, "--history", runs[0].folder, "--metric", "mae")
    # errors of 0.5, 0.5, 0.5 and 1
    worst = ["worst", "0.625", "-0.325", "100 % / 100 %"]
    assert line(result, "mae") == ["mae ↓", "0.300", "1 of 2", *worst]


@pytest.mark.parametrize("width", [40, 60, 80])
def test_lines_fit_a_narrow_terminal(cli, runs, there, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    result = cli("compare", "--history", runs[0].folder)
    first, *rest = result.out.splitlines()
    assert runs[0].folder.name in first, "a name to copy is not wrapped"
    assert max(map(cell_len, rest)) <= width
    assert "2 of 3" in result.out and "+0.100" in result.out
    result = cli("compare", "-a", "a", "-b", "[red]b")
    assert max(map(cell_len, result.out.splitlines()[1:])) <= width
    assert "-4.200" in result.out


def test_a_run_without_others(cli, two_classes, tmp_path):
    (run,) = karat.evaluate("dummy", two_classes(), output=tmp_path / "out")
    result = cli("compare", "--history", run.folder)
    assert result.code == 0
    assert line(result, "acc") == ["acc ↑", "0.500", "–", "–", "–", "–", "100 %"]


def test_formats_and_files(cli, runs, tmp_path):
    history = ("compare", "--history", runs[0].folder)
    result = cli(*history, "-o", tmp_path / "tables", "--format", "json")
    found = json.loads(result.out)
    assert found["run"] == runs[0].folder.name
    assert [row["rank"] for row in found["ranks"]] == [2, 2]
    assert {row["task"] for row in found["values"]} == {ODD}
    assert found["ranks"][0]["difference_low"] is None and found["ranks"][0]["questions"] is None
    written = [Path(path) for path in result.err.splitlines()]
    assert [path.name for path in written] == ["history_ranks.csv", "history_values.csv"]
    table = pd.read_csv(written[1], dtype=str)
    assert table["value"].map(float).tolist() == [row["value"] for row in found["values"]]
    assert "| mae ↓" in cli(*history, "--format", "markdown").out


# -- two models, and many -------------------------------------------------------------------


@pytest.fixture
def there(tmp_path, monkeypatch) -> Path:
    """Three models in ``results`` of the current folder: a is ahead of b, c equals b."""
    monkeypatch.chdir(tmp_path)
    values = {"a": 0.2, "[red]b": 0.0, "c": 0.0}
    for model, more in values.items():
        tasks = {f"t{i}": [0.5 + more + i / 100, 0.55 + more] for i in range(6)}
        tasks["rmse"] = [20.0 * (1 - more), 22.0 * (1 - more)]
        write_run(tmp_path / "results", model, tasks)
    return tmp_path


def test_two_models_by_name(cli, there):
    result = cli("compare", "-a", "a", "-b", "[red]b")
    assert (result.code, result.err) == (0, "")
    assert re.split(r"\s{2,}", result.out.splitlines()[2].strip()) == [
        *("task", "metric", "a", "[red]b", "difference", "p", "better")
    ]
    # folds of 16 and 17.6 minus 20 and 22: -4.2 ± 12.706 √(0.08 (1/2 + 10/40))
    rmse = ["rmse", "rmse ↓", "16.80", "21.00", "-4.200 [-7.312, -1.088]", "0.037", "a"]
    assert line(result, "rmse") == rmse
    assert line(result, "t3")[2:] == [
        *("0.740", "0.540", "+0.200", "–", "not tested: no spread over folds")
    ]
    assert "a is better than [red]b over 7 tasks (max-T over tasks, p 0.016)" in result.out
    assert "7 won, 0 tied, 0 lost" in result.out


def test_two_run_folders_of_one_model(cli, tmp_path):
    old = write_run(tmp_path, "m", {"t": [0.5, 0.6]}, stamp="20250101T000000")
    new = write_run(tmp_path, "m", {"t": [0.6, 0.8]}, stamp="20260101T000000")
    result = cli("compare", "-a", new.folder, "-b", old.folder)
    assert re.findall(r"m \((\d{4})", result.out)[:2] == ["2026", "2025"]
    assert line(result, "t ")[2:4] == ["0.700", "0.550"]


def test_formats_of_two_models(cli, there):
    pair = ("compare", "-a", "a", "-b", "c", "--format", "json")
    found = json.loads(cli(*pair, "--rope", "0.5").out)
    assert (found["first"], found["second"], found["rope"]) == ("a", "c", 0.5)
    assert found["overall"]["wins"] == 7 and found["overall"]["p"] == pytest.approx(2 / 2**7)
    assert found["overall"]["p_equal"] > 0.9
    result = cli("compare", "-a", "a", "-b", "[red]b", "--format", "markdown", "-o", "out")
    assert re.search(r"^\| t0 +\| acc ↑ +\| +0.725 \|", result.out, re.MULTILINE)
    assert "| **16.80** |" in result.out and "\\[red\\]b" in result.out
    names = [Path(path).name for path in result.err.splitlines()]
    assert names == ["comparison_tasks.csv", "comparison_overall.csv"]
    assert pd.read_csv(there / "out" / names[0])["task"].tolist()[-1] == "rmse"
    one = json.loads(cli(*pair, "--metric", "rmse").out)
    assert [row["task"] for row in one["tasks"]] == ["rmse"]


def test_two_models_on_common_questions(cli, runs):
    first, less, _ = (run.folder for run in runs)
    pair = ("compare", "-a", first, "-b", less, "--metric", "mae")
    result = cli(*pair)
    untested = ["0.300", "0.200", "+0.100", "–", "not tested: one fold"]
    assert line(result, ODD[:5])[-5:] == untested
    assert "--on common" in result.out
    result = cli(*pair, "--on", "common")
    assert line(result, ODD[:5])[-5:] == [
        *("0.100", "0.200", "-0.100", "–", "not tested: one fold")
    ]
    # three questions are too few for a test on items
    result = cli(*pair, "--on", "rows")
    assert line(result, ODD[:5])[-3:] == ["-0.100", "–", "not tested: one fold"]
    assert "fewer than 6 items" in result.out


def test_all_models(cli, there):
    result = cli("compare", "results")
    assert result.code == 0
    assert line(result, "a ")[:3] == ["a", "1.0", "a"]
    # b and c are equal: ranks 2.5 each; against a 2 of 128 sign patterns
    assert line(result, "c ") == ["c", "2.5", "b", "7", "0.016"]
    assert "2 of 3 pairs" in result.out and "max-T" in result.out
    # the least p of 7 tasks, times 3
    other = cli("compare", "results", "--test", "wilcoxon")
    assert line(other, "c ") == ["c", "2.5", "b", "7", "0.047"] and "Wilcoxon" in other.out
    found = json.loads(cli("compare", "--format", "json").out)
    assert found["cliques"] == [["[red]b", "c"]] and len(found["pairs"]) == 3
    some = json.loads(cli("compare", "-m", "a", "-m", "c", "--format", "json").out)
    assert some["models"] == ["a", "c"]
    files = cli("compare", "results", "-o", "out").err.splitlines()
    assert [Path(path).name for path in files] == ["all_pairs.csv", "all_models.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], ["nowhere"]),
        (["-a", "a"], ["-b"]),
        (["-a", "a", "-b", "c", "--views", "-m", "x"], ["--model", "--views"]),
        (["-a", "a", "-b", "c", "--history", "x"], ["--history"]),
        (["--rope", "0", "--on", "rows"], ["--on", "--rope"]),
        (["--history", "RUN", "--rope", "0"], ["--rope"]),
        (["--history", "RUN", "--on", "rows"], ["--on rows"]),
        (["--history", "nothing"], ["nothing"]),
        (["--history", "results"], ["results"]),
        (["ab", "--history", "RUN"], ['"ab"']),
        (["--history", "RUN", "--metric", "rmsee"], ['mean "rmse"']),
        (["-a", "a", "-b", "d"], ['no model "d"']),
        (["-a", "a", "-b", "a"], ["same run"]),
        (["-a", "a", "-b", "c", "--rope", "-1"], ["rope"]),
        (["-a", "a", "-b", "c", "--metric", "ac"], ['mean "acc"']),
        (["nowhere", "-a", "x", "-b", "y"], ['"x"']),
    ],
)
def test_wrong_input_is_exit_code_2(cli, there, arguments, words):
    run = str(sorted((there / "results").iterdir())[-1])
    result = cli("compare", *(run if each == "RUN" else each for each in arguments))
    assert result.code == 2 and result.out == ""
    errors = [text for text in result.err.splitlines() if text.startswith("error: ")]
    assert len(errors) == len(words), result.err
    for text, word in zip(errors, words, strict=True):
        assert word in text


def test_names_are_escaped(cli, tmp_path, monkeypatch):
    """Control characters, markup and 10 kB in the names of models and tasks."""
    monkeypatch.setenv("COLUMNS", "100")
    odd, long = "\x1b[31mred\u202e <b>x</b>", "n" * 10_000
    tasks = {"[bold]t\x07": [0.5, 0.6], long: [0.1, 0.4]}
    better = {task: [value + 0.1 for value in values] for task, values in tasks.items()}
    one, other = write_run(tmp_path, odd, better), write_run(tmp_path, "m" * 9_000, tasks)
    pair = ("compare", "-a", one.folder, "-b", other.folder, "--format")
    for shape in ("table", "markdown"):
        result = cli(*pair, shape)
        assert result.code == 0 and not {"\x1b", "\x07", "\u202e"} & set(result.out)
        assert "mmmm…mmmm" in result.out
    assert "<b>" not in result.out and "&lt;b&gt;" in result.out
    found = json.loads(cli(*pair, "json").out)
    assert found["first"] == odd and found["tasks"][1]["task"] == long
    found = karat.compare([], one, other)
    assert not {"\x1b", "\x07", "\u202e"} & set(repr(found))
    assert "<b>" not in found._repr_html_()


# -- items and slices -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def people(tmp_path_factory) -> Path:
    """Two predictors on 300 rows; one is wrong for half of the people of Rome."""
    rng = np.random.default_rng(0)
    truth = rng.integers(2, size=300)
    frame = pd.DataFrame({"city": rng.choice(["Rome", "Oslo", "Bonn"], 300), "truth": truth})
    data = karat.Dataset.from_table(frame.assign(y=truth.astype(str)), "y", name="people")

    class Known:
        def __init__(self, weak=""):
            self.weak = weak

        def fit(self, X, y):
            return self

        def predict(self, X):
            wrong = (X["city"] == self.weak) & (np.arange(len(X)) % 2 == 0)
            return np.where(wrong, 1 - X["truth"], X["truth"]).astype(str)

    task = karat.Task("people", data, split={"use": "kfold", "folds": 3}, metrics=["acc"])
    output = tmp_path_factory.mktemp("items")
    karat.evaluate({"known": Known(), "weak": Known("Rome")}, task, output=output)
    return output


def test_items_that_flipped(cli, people, tmp_path):
    code, out, err = cli("compare", people, "-a", "weak", "-b", "known", "--items", "--top", 3)
    assert (code, err) == (0, "")
    rows = [line for line in out.splitlines() if "city: Rome" in line]
    assert len(rows) == 3 and "Oslo" not in out
    assert re.search(r"only known is right \(\d+ items, 3 shown\)", out)
    code, out, _ = cli("compare", people, "-a", "weak", "-b", "known", "--items", "--format", "csv")
    table = pd.read_csv(StringIO(out))
    found = karat.compare_items(people, "weak", "known")
    assert len(table) == len(found.items) > 30 and set(table["better"]) == {"known"}
    arguments = ["-a", "weak", "-b", "known", "--items", "-o", tmp_path]
    _, _, err = cli("compare", people, *arguments)
    assert [Path(line).name for line in err.split()] == [
        "comparison_items.csv",
        "comparison_item_counts.csv",
    ]
    _, out, _ = cli("compare", people, *arguments[:-2], "--format", "json")
    assert len(json.loads(out)["items"]) == len(table)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_items_fit_the_terminal(cli, people, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = cli("compare", people, "-a", "weak", "-b", "known", "--items")
    assert max(cell_len(line) for line in out.splitlines()) <= width
    assert out.count("only known is right") == 1


def test_slices_of_two_models_and_of_one(cli, people, tmp_path):
    code, out, err = cli("compare", people, "-a", "weak", "-b", "known", "--by", "auto")
    assert (code, err) == (0, "")
    assert "weak loses against known on people where city = Rome" in out
    code, out, _ = cli("compare", people, "-a", "weak", "--by", "city", "--format", "csv")
    table = pd.read_csv(StringIO(out))
    assert sorted(table["slice"]) == ["city = Bonn", "city = Oslo", "city = Rome"]
    assert table["worse"].fillna("").tolist() == ["weak", "", ""]
    assert table["slice"][0] == "city = Rome"
    code, out, _ = cli("compare", people, "-a", "known", "--by", "auto")
    assert code == 0 and "No slice" in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-a", "weak", "--items"], "-b"),
        (["--by", "auto"], "-a"),
        (["-a", "weak", "-b", "known", "--items", "--by", "city"], "--by"),
        (["-a", "weak", "-b", "known", "--items", "--on", "rows"], "--on"),
        (["-a", "weak", "-b", "known", "--task", "people"], "--task"),
        (["-a", "weak", "-b", "known", "--by", "citi"], '"city"'),
        (["-a", "weak", "-b", "known", "--items", "-t", "peple"], '"people"'),
        (["-a", "weak", "-b", "knownn", "--items"], '"known"'),
    ],
)
def test_wrong_options_of_items(cli, people, arguments, words):
    code, out, err = cli("compare", people, *arguments)
    assert (code, out) == (2, "") and words in err and "Traceback" not in err


# -- a gate ---------------------------------------------------------------------------------


@pytest.fixture
def gated(there):
    """Write a baseline, an equal model, a worse one and a noisy one, clean and with noise."""
    changes = {"base": [0.0] * 4, "equal": [0.001, -0.001, 0.001, 0.0], "worse": [-0.2] * 4}
    changes |= {"noisy": [0.1, -0.1, 0.05, -0.05]}
    sizes = {"questions": 2000, "train_questions": 8000}
    for name, change in changes.items():
        folds = [0.8 + 0.01 * fold + each for fold, each in enumerate(change)]
        corrupted = 0.4 if name == "worse" else 0.6
        views = [
            [make_view(acc=clean), make_view("noise", 0.1, acc=corrupted * clean)]
            for clean in folds
        ]
        write_run(there / name, "m", {"t": views}, record=sizes)


@pytest.mark.parametrize(
    ("new", "more", "code"),
    [
        ("equal", [], 0),
        ("noisy", [], 3),
        ("noisy", ["--cannot-tell", "pass"], 0),
        ("noisy", ["--cannot-tell", "fail"], 1),
        ("equal", ["--cannot-tell", "fail"], 0),
    ],
)
def test_exit_codes_of_a_gate(cli, gated, new, more, code):
    result = cli("gate", new, "--against", "base", *more)
    assert result.code == code, result.out
    assert line(result, "t ")[:4] == ["t", "acc", "0.815", "0.815"]


def test_formats_of_a_gate(cli, gated, there):
    done = cli("gate", "--calibrate", "base", "--margin", "0.02", "--format", "json")
    assert done.code == 0 and json.loads((there / "base" / "gate.json").read_text())
    assert json.loads(done.out)["rates"][0]["loss"] == 0
    pair = ("gate", "equal", "--against", "base", "--margin", "0.02")
    found = json.loads(cli(*pair, "--format", "json").out)
    assert (found["outcome"], found["exit_code"], found["margin"]) == ("passed", 0, 0.02)
    assert found["rates"] == json.loads(done.out) and found["flips"] == []
    result = cli("gate", "noisy", "--against", "base", "--format", "markdown")
    assert result.code == 3 and result.out.startswith("### Gate: cannot tell")
    assert re.search(r"^\| t +\| acc +\| +0\.815 \|", result.out, re.MULTILINE)
    worse = cli("gate", "worse", "--against", "base", "--format", "markdown").out
    assert re.search(r"^\| t +\| +0\.600 \| 0\.400 \| +-0\.200 \|", worse, re.MULTILINE)
    assert "#### Checks" in worse


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ([], "--against"),
        (["equal"], "--against"),
        (["equal", "--calibrate", "base"], "--calibrate"),
        (["equal", "--against", "base", "--margin", "0"], "margin"),
        (["equal", "--against", "base", "-t", "tt"], '"tt"'),
        (["equal", "--against", "nowhere"], "nowhere"),
        (["equal", "--against", "base", "--suite", "quickstart"], "suite"),
        (["equal", "--against", "equal"], "same run"),
    ],
)
def test_invalid_gates(cli, gated, arguments, word):
    result = cli("gate", *arguments)
    assert result.code == 2 and word in result.err and "<Run" not in result.err
