"""Corruptions on the command line: table files, robustness, export and data folders."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat


def halves() -> pd.DataFrame:
    """Return 80 numbers x with noisy classes y."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    return pd.DataFrame({"x": x, "y": np.where(x + rng.normal(0, 0.5, 80) > 0.5, "yes", "no")})


@pytest.fixture
def here(tmp_path, monkeypatch):
    # restored after the test: the command line changes it
    monkeypatch.setenv("KARAT_DATA", "")
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.chdir(tmp_path)
    table = halves().assign(z=["a", "b"] * 40)
    table.to_csv("halves.csv", index=False)
    table.assign(y=3 * table["x"]).to_csv("line.csv", index=False)
    Path("my.yaml").touch()
    return tmp_path


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    """Return a folder with the runs of two models under corruption."""
    output = tmp_path_factory.mktemp("runs")
    task = karat.Task(
        "halves",
        karat.Dataset.from_table(halves(), "y", name="halves"),
        split={"use": "kfold", "folds": 2},
        metrics=["auc", "acc"],
        corruptions={
            "noise_gaussian": [0.5, 2],
            "sign_flip": [1],
            "noise_gaussian+sign_flip": [0.5],
        },
        draws=2,
        kind="classification",
    )
    karat.evaluate(["logistic-regression", "dummy"], task, output=output)
    return output


def one_message(result) -> str:
    """Return the only line on standard error of a command with exit code 2."""
    assert result.code == 2 and not result.out, result
    (line,) = result.err.strip().splitlines()
    assert line.startswith("error: ") and "Traceback" not in line
    return line


def test_a_table_under_the_corruptions_of_taco(here, cli):
    Path("small.yaml").write_text(
        "tasks:\n  short-classification:\n    extends: taco-classification\n    abstract: true\n"
        "    draws: 1\n    corruptions: {noise_gaussian: [0.5], scaling_error: [0.2]}\n"
    )
    given = ("--target", "y", "--define", "small.yaml")
    options = ("--like", "short", "-m", "logistic-regression", "-w", 1, "--format", "csv")
    code, out, _ = cli("run", "halves.csv", *given, *options)
    assert code == 0
    (row,) = csv.DictReader(io.StringIO(out))
    assert row["model"] == "logistic-regression" and 0.7 < float(row["halves"]) <= 1
    (folder,) = Path("results").iterdir()
    assert folder.name.startswith("logistic-regression.halves.")
    run = karat.Run.open(folder)
    seen = run.scores()[["corruption", "metric"]].drop_duplicates()
    # inherited corruptions are merged with the new ones
    assert {"noise_gaussian", "rare_class_dilution"} <= set(seen["corruption"])
    assert set(seen["metric"]) == {"auc", "acc", "precision", "recall", "pr_auc", "f1", "brier"}


def test_a_plan_of_a_table_takes_the_models_of_the_suite(here, cli):
    result = cli("plan", "line.csv", "--target", "y", "--like", "taco")
    assert result.code == 0
    planned = [line.split()[0] for line in result.out.splitlines() if " line " in line]
    assert {"linear-regression", "svm", "random-forest"} <= set(
        planned
    ) and "logistic-regression" not in planned
    assert re.search(r"logistic-regression · line", result.out)
    result = cli("plan", "halves.csv", "--target", "y", "-m", "onehot", "-m", "dummy")
    assert result.code == 0 and "10 jobs, 0 declined" in result.out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nowhere.csv", "--target", "y", "--like", "taco"], "nowhere.csv"),
        (["halfs.csv", "--target", "y"], '"halves.csv"'),
        (["halves.csv", "--target", "yy", "--like", "taco"], '"yy"'),
        (["halves.csv", "--like", "taco"], "--target"),
        (["halves.csv"], "--target"),
        (["halves.csv", "--target", "y", "--like", "tacco"], '"taco"'),
        (["halves.csv", "--target", "y", "--like", ""], '""'),
        (["halves.csv", "--target", ""], ""),
        (["halves.csv", "--target", "y"], "-m"),
        (["folder.csv", "--target", "y", "--like", "taco"], "folder"),
        (["empty.csv", "--target", "y", "--like", "taco"], "empty.csv"),
        (["header.csv", "--target", "y", "--like", "taco"], "header.csv"),
        (["binary.csv", "--target", "y", "--like", "taco"], "binary.csv"),
        (["halves.csv", "--target", "y", "--like", "taco-nyc"], "numeric"),
        (["line.csv", "--target", "y", "--like", "taco-adult", "-m", "random-forest"], "class"),
        (["halves.csv", "--target", "y", "--data-dir", "nowhere"], "nowhere"),
        (["halves.csv", "--target", "y", "-m", "logistic-regresion"], '"logistic-regression"'),
        (["my.yaml"], "--define my.yaml"),
    ],
)
@pytest.mark.parametrize("verb", ["run", "plan"])
def test_bad_input_is_one_message(here, cli, verb, arguments, word):
    Path("folder.csv").mkdir()
    Path("empty.csv").touch()
    Path("header.csv").write_text("x,y\n")
    Path("binary.csv").write_bytes(b"x,y\n\0\0\xff\n")
    assert word in one_message(cli(verb, *arguments))
    assert not Path("results").exists()


def test_three_classes_have_no_auc_of_two(here, cli):
    table = pd.DataFrame({"x": range(60), "y": list("abc") * 20})
    table.to_csv("three.csv", index=False)
    given = ("three.csv", "--target", "y", "-m", "logistic-regression")
    printed = one_message(cli("run", *given, "--like", "taco-classification"))
    assert "auc" in printed and "three" in printed and "auc_ovr" in printed
    assert cli("plan", *given, "--like", "taco").code == 0


def test_the_plan_lists_impossible_corruptions_once(here, cli):
    words = pd.DataFrame({"x": list("ab") * 30, "y": list("pqrs") * 15})
    words.to_csv("words.csv", index=False)
    result = cli(
        "plan", "words.csv", "--target", "x", "--like", "taco", "-m", "logistic-regression"
    )
    assert result.code == 0
    assert result.out.count("noise_gaussian:") == 1
    assert "     logistic-regression · words\n" in result.out


def test_a_corruption_that_needs_classes_is_left_out_where_there_are_none(here, cli):
    Path("classes.yaml").write_text(
        "datasets:\n  line: {path: line.csv, target: y, kind: regression}\ntasks:\n  line:\n"
        "    extends: regression\n    dataset: line\n    corruptions:\n"
        "      rare_class_dilution: [0.2]\n      noise_gaussian: [0.2]\n"
    )
    given = ("line", "--define", "classes.yaml", "-m", "linear-regression")
    result = cli("plan", *given)
    assert result.code == 0 and "1 corruption left out" in result.out
    assert "rare_class_dilution:" in result.out
    assert cli("run", *given, "-w", 1).code == 0
    (run,) = karat.open_runs(["results"])
    assert set(run.scores()["corruption"]) == {"", "noise_gaussian"}


def test_a_warning_is_one_line_without_a_code_location(here, python):
    pd.DataFrame({"x": range(60), "y": [0, 1, 2] * 20}).to_csv("counts.csv", index=False)
    found = python("-m", "karat", "plan", "counts.csv", "--target", "y", "--like", "taco")
    (line,) = found.stderr.splitlines()
    assert line.startswith('note: counts: "y"')


PORTO = "id,target,a,b\n" + "".join(
    f"{i},{int(i % 4 == 0)},{i % 7},{'xy'[i % 2]}\n" for i in range(60)
)


def test_the_folder_that_is_named_comes_before_the_others(here, cli, monkeypatch):
    for folder, rows in (("first", 60), ("second", 30)):
        Path(folder).mkdir()
        Path(folder, "porto_seguro.csv").write_text("\n".join(PORTO.splitlines()[: rows + 1]))
    monkeypatch.setenv("KARAT_DATA", str(here / "second"))
    given = ("run", "taco", "-t", "porto", "-m", "dummy", "-w", 1, "--format", "csv")
    assert cli(*given, "--data-dir", "first", "-o", "one").code == 0
    (run,) = karat.open_runs(["one"])
    assert run.records()[0]["questions"] + run.records()[0]["train_questions"] == 60
    assert os.environ["KARAT_DATA"].split(os.pathsep)[0] == str(here / "first")


def test_robustness_for_machines_is_what_the_function_returns(here, cli, runs):
    from karat.analysis.robustness import robustness

    wanted = robustness(runs, baseline="dummy")
    result = cli("robustness", runs, "--baseline", "dummy", "--format", "csv")
    found = pd.read_csv(io.StringIO(result.out))
    pd.testing.assert_frame_equal(found, pd.DataFrame(wanted), check_dtype=False, rtol=1e-12)
    rows = json.loads(cli("robustness", runs, "--baseline", "dummy", "--format", "json").out)
    assert [row["model"] for row in rows] == wanted["model"].tolist()
    assert [row["mce"] for row in rows] == wanted["mce"].tolist()
    dummy = next(row for row in rows if row["model"] == "dummy")
    assert dummy["mce"] == 1 and dummy["retention"] == 1 and dummy["corruptions"] == 2


def test_robustness_of_compositions_each_corruption_and_another_metric(here, cli, runs):
    options = ("robustness", runs, "--format", "json")
    rows = json.loads(cli(*options, "--compositions").out)
    assert {row["worst_view"] for row in rows} == {"noise_gaussian+sign_flip@0.5"}
    rows = json.loads(cli(*options, "--by-corruption", "--metric", "acc").out)
    assert [row["corruption"] for row in rows] == ["noise_gaussian"] * 2 + ["sign_flip"] * 2
    assert {row["metric"] for row in rows} == {"acc"}


@pytest.mark.parametrize(
    ("shape", "word"),
    [("table", "halves   auc ↑"), ("table", "mCE"), ("markdown", "| halves"), ("latex", "toprule")],
)
def test_formats_of_robustness(here, cli, runs, shape, word):
    result = cli("robustness", runs, "--baseline", "dummy", "--format", shape)
    assert result.code == 0 and "logistic-regression" in result.out and word in result.out


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nowhere"], "nowhere"),
        (["halves.csv"], "halves.csv"),
        (["RUNS", "--baseline", "logistic-regresion"], '"logistic-regression"'),
        (["RUNS", "--metric", "aucc"], '"auc"'),
        (["plain"], "corruptions"),
    ],
)
def test_errors_of_robustness_are_one_message(here, cli, runs, two_classes, arguments, word):
    if arguments == ["plain"]:
        karat.evaluate("dummy", two_classes(), output="plain")
    arguments = [str(runs) if each == "RUNS" else each for each in arguments]
    assert word in one_message(cli("robustness", *arguments))


def test_export_with_plots(here, cli, runs):
    pytest.importorskip("matplotlib")
    result = cli("export", runs, "--as", "taco", "-o", "files", "--plots", "svg")
    assert result.code == 0
    names = {Path(line).name for line in result.out.split()}
    assert {"metrics_halves_classification.csv", "confusion_halves_classification.csv"} < names
    assert {"halves_clean_AUC_bar.svg", "halves_noise_gaussian_AUC_curve.svg"} <= names
    assert names == {path.name for path in Path("files").iterdir()}


def test_export_without_matplotlib_keeps_the_tables(here, cli, runs, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = cli("export", runs, "--as", "taco", "-o", "files", "--plots", "png")
    assert result.code == 2 and 'pip install "karat[plots]"' in result.err
    assert len(result.out.split()) == len(list(Path("files").iterdir())) == 3


def test_errors_of_export_are_one_message(here, cli, runs):
    assert '"taco"' in one_message(cli("export", runs, "--as", "tacco"))
    assert "nowhere" in one_message(cli("export", "nowhere", "--as", "taco"))
    printed = one_message(cli("export", runs, "--as", "taco", "-o", "halves.csv"))
    assert "halves.csv" in printed
    assert not Path("export").exists()
