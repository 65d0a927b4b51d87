"""TACO's command line: ``python -m karat.compat.taco``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import KaratError
from karat.execution.session import Stopped
from karat.ext.compat.taco import __main__ as command
from karat.ext.compat.taco import benchmark
from karat.results.run import open_runs

rng = np.random.default_rng(0)
SIZE = 120
PORTO = pd.DataFrame({"id": range(SIZE), "a": rng.normal(size=SIZE)})
PORTO["b_cat"] = rng.choice(["x", "y", "z"], SIZE)
PORTO["target"] = (PORTO["a"] + rng.normal(0, 0.7, SIZE) > 0.8).astype(int)
NYC = pd.DataFrame({"BOROUGH": rng.choice(["A", "B"], SIZE), "GROSS SQUARE FEET": range(100, 220)})
ADULT = PORTO.drop(columns=["id", "target"]).assign(
    income=np.where(PORTO["target"], ">50K", "<=50K")
)
NYC["SALE PRICE"] = 2000 + 50 * NYC["GROSS SQUARE FEET"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.delenv("KARAT_DATA", raising=False)
    monkeypatch.setattr(command, "available_cores", lambda: 1)
    few = {"classification": ("logreg", "dummy"), "regression": ("linreg", "dummy")}
    monkeypatch.setattr(benchmark, "MODELS", few)
    for name in ("plot_runs", "plot_confusions"):
        monkeypatch.setattr(f"karat.ext.compat.taco.taco_plots.{name}", lambda *_, **__: [])
    Path("data").mkdir()
    ADULT.to_csv("data/adult.csv", index=False)
    PORTO.to_csv("data/porto_seguro.csv", index=False)
    NYC.to_csv("data/nyc_property_sales.csv", index=False)
    own = PORTO.drop(columns="id").assign(target=np.where(PORTO["target"], "yes", "no"))
    own.to_csv("own (1).csv", index=False)
    NYC.assign(y=np.sqrt(NYC["SALE PRICE"])).to_csv("numbers.csv", index=False)
    return tmp_path


@pytest.fixture
def call(here, monkeypatch, capsys):
    """Call the command line; return exit code, standard output and standard error."""

    def made(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["taco", *arguments])
        with pytest.raises(SystemExit) as ended:
            command.main()
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return made


def written(folder: str = "results") -> list[str]:
    names = {path.name for path in Path(folder).glob("*.csv")}
    return sorted(name for name in names if not name.startswith("other_metrics_"))


def test_missing_datasets_are_skipped(call):
    code, out, err = call("--quick")
    assert code == 0
    assert written() == [
        "confusion_adult_classification.csv",
        "confusion_porto_classification.csv",
        "metrics_adult_classification.csv",
        "metrics_nyc_regression.csv",
        "metrics_porto_classification.csv",
    ]
    assert "porto: classification, 120 rows" in out and "nyc: regression, 120 rows" in out
    assert "diabetes: skipped" in err and "ieee: skipped" in err
    assert str(Path("results/metrics_nyc_regression.csv")) in out


@pytest.mark.parametrize("arguments", [("--only", "nyc"), ("--task", "regression")])
def test_selected_datasets(call, arguments):
    code, _, err = call(*arguments, "--quick", "--results_dir", "out", "--data_dir", "data")
    assert code == 0 and "skipped" not in err
    assert written("out") == ["metrics_nyc_regression.csv"] and not Path("results").exists()


@pytest.mark.parametrize("arguments", [["--only", "ieee"], ["--data_dir", "nowhere"]])
def test_exit_code_2_if_nothing_runs(call, arguments):
    code, out, err = call(*arguments, "--quick", "--only", "ieee")
    assert code == 2 and not out and "ieee: skipped" in err
    folder = Path(arguments[1] if arguments[0] == "--data_dir" else "data").absolute()
    assert f"put it at {folder}/ieee_cis_fraud.csv" in err and "Traceback" not in err
    assert "get it from https://www.kaggle.com/c/ieee-fraud-detection" in err


def test_invalid_file_is_skipped_with_its_path(call, here):
    Path("data/ieee_cis_fraud.csv").write_text("a,b\n1,2\n")
    code, _, err = call("--only", "ieee", "--quick")
    assert code == 2 and str(here / "data/ieee_cis_fraud.csv") in err
    assert "isFraud" in err


def test_quick_has_one_severity_and_the_scores_of_the_suite(call, monkeypatch):
    call("--only", "porto", "--quick")
    table = pd.read_csv("results/metrics_porto_classification.csv")
    assert set(table["severity"]) == {"0.0", "0.2", "0.2+0.2"}
    (own,) = [run for run in open_runs(["results/runs"]) if run.model == "logreg"]
    assert set(own.scores()["draw"]) == {0}
    monkeypatch.setenv("KARAT_DATA", "data")
    (suite,) = karat.evaluate("logistic-regression", "taco", only=["porto"], output="suite")
    keys = ["corruption", "severity", "draw", "metric"]
    both = own.scores().merge(suite.scores(), on=keys, suffixes=("", "_suite"))
    assert len(both) == len(own.scores()) == 7 * (1 + 7 + 21)
    assert both["value"].tolist() == both["value_suite"].tolist()


def test_options_of_karat(call):
    options = ("--draws", "2", "--pairs", "none", "--keep_predictions", "all")
    code, _, _ = call("--only", "porto", "--quick", *options, "--min_frequency", "0")
    assert code == 0
    table = pd.read_csv("results/metrics_porto_classification.csv")
    assert not table["corruption"].str.contains("+", regex=False).any()
    (run,) = [run for run in open_runs(["results/runs"]) if run.model == "logreg"]
    assert set(run.scores()["draw"]) == {0, 1} and run.about["params"]["min_frequency"] == 0
    assert len(run.predictions("porto", 0, "noise_gaussian@0.2#1")) == 24


def test_environment_is_restored(call, monkeypatch):
    call("--only", "ieee")
    assert "KARAT_DATA" not in os.environ
    monkeypatch.setenv("KARAT_DATA", str(Path("data").absolute()))
    before = os.environ["KARAT_DATA"]
    code, _, _ = call("--only", "nyc", "--quick", "--data_dir", "elsewhere")
    assert code == 0 and os.environ["KARAT_DATA"] == before


def test_notes_are_printed_once(call, monkeypatch):
    both = {"classification": ("logreg", "missing"), "regression": ("linreg", "missing")}
    monkeypatch.setattr(benchmark, "MODELS", both)
    evaluate = benchmark.evaluate
    Path("my.yaml").write_text(
        "models:\n  missing: {extends: table-predictor, requires: [no_such_library]}\n"
    )
    monkeypatch.setattr(benchmark, "evaluate", lambda *a, **k: evaluate(*a, define="my.yaml", **k))
    Path("data/adult.csv").unlink()
    code, out, err = call("--quick")
    assert "porto: classification" in out and "nyc: regression" in out
    assert code == 0 and sum("no_such_library" in line for line in err.splitlines()) == 1


def test_own_table(call):
    code, out, _ = call("--csv", "own (1).csv", "--target_col", "target", "--quick")
    assert code == 0 and "own (1): classification, 120 rows" in out
    (path,) = Path("results").glob("metrics_*.csv")
    table = pd.read_csv(path)
    assert set(table["dataset"]) == {"own (1)"} and set(table["task"]) == {"classification"}
    (run,) = [run for run in open_runs(["results/runs"]) if run.model == "logreg"]
    assert run.records()[0]["questions"] == 24


def test_both_tasks_if_one_is_invalid(call):
    code, _, err = call("--csv", "numbers.csv", "--target_col", "y", "--task", "both", "--quick")
    assert code == 0 and written() == ["metrics_numbers_regression.csv"]
    assert "numbers: skipped" in err


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (["--csv", "own (1).csv"], "--target_col"),
        (["--target_col", "y"], "--target_col"),
        (["--csv", "nowhere.csv", "--target_col", "y"], "nowhere.csv"),
        (["--csv", "own (1).csv", "--target_col", "tarket"], '"target"'),
        (["--csv", "data", "--target_col", "y"], "data"),
        (["--csv", "empty.csv", "--target_col", "y"], "empty.csv"),
        (["--csv", "own (1).csv", "--target_col", "target", "--only", "nyc"], "--only"),
        (["--only", "adlut"], "adlut"),
        (["--task", "clustering"], "clustering"),
        (["--quik"], "--quik"),
        (["--only", "nyc", "--results_dir", "numbers.csv"], "numbers.csv"),
    ],
)
def test_bad_input_gives_exit_code_2(call, arguments, match):
    Path("empty.csv").touch()
    code, out, err = call(*arguments)
    assert code == 2 and match in err and "Traceback" not in err
    assert not Path("results").exists()


def test_interrupted_run(call, monkeypatch):
    def stopped(*_, **__):
        raise Stopped(0, 2, [])

    monkeypatch.setattr(command, "benchmark", stopped)
    code, _, err = call("--only", "nyc", "--quick")
    assert code == 130 and "stopped" in err and "skipped" not in err
    assert issubclass(Stopped, KaratError)


def test_run_as_module(here, python, script):
    done = python("-m", "karat.compat.taco", "--help", cwd=here)
    assert done.returncode == 0
    for option in ("data_dir", "results_dir", "only", "quick", "csv", "target_col", "task"):
        assert f"--{option}" in done.stdout
    done = script("-m", "karat.compat.taco", "--only", "ieee", cwd=here)
    assert done.returncode == 2 and "ieee: skipped" in done.stderr
    assert "Traceback" not in done.stderr
