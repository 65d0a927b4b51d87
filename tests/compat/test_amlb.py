"""The command line of the AutoML Benchmark: ``python -m karat.compat.amlb``."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.compat.amlb import Overrides, files_of, read_overrides
from karat.compat.amlb import __main__ as command
from karat.errors import DefinitionError
from karat.results.run import open_runs

pytestmark = pytest.mark.filterwarnings("ignore:.*is left out")

rng = np.random.default_rng(0)
SHOP = pd.DataFrame({"age": rng.integers(18, 80, 90), "job": rng.choice(["a", "b"], 90)})
SHOP["Class"] = np.where((SHOP["age"] > 40) == (SHOP["job"] == "a"), "B", "a")

FRAMEWORKS = """
RandomForest:
  version: stable
  params: {n_estimators: 1000000}
RandomForest_debug:
  extends: RandomForest
  params: {n_estimators: 7, _save_artifacts: [info]}
autosklearn: {version: stable}
fails:
  module: breaking:Breaking
"""
CONSTRAINTS = "{2s: {folds: 2, max_runtime_seconds: 2, cores: 1}, free: {folds: 2}}"
BENCHMARK = """
- name: __defaults__
  folds: 2
- name: shop
  dataset: {path: shop.csv, target: Class, type: binary}
- name: Sizes
  dataset: sizes.csv
  metric: [mae, rmse]
- name: m4
  dataset: {path: m4.csv, type: timeseries}
"""
BREAKING = """
class Breaking:
    def fit(self, X, y):
        raise ValueError("no")
    def predict(self, X):
        return X
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return a folder with a user's files: definitions in one folder, data in another."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.delenv("KARAT_DATA", raising=False)
    monkeypatch.setattr(command, "HOME", tmp_path / "nowhere")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr("warnings.formatwarning", lambda message, *_, **__: f"note: {message}\n")
    Path("user/benchmarks").mkdir(parents=True)
    Path("user/frameworks.yaml").write_text(FRAMEWORKS)
    Path("user/constraints.yaml").write_text(CONSTRAINTS)
    Path("user/benchmarks/mine.yaml").write_text(BENCHMARK)
    Path("breaking.py").write_text(BREAKING)
    SHOP.to_csv("user/benchmarks/shop.csv", index=False)
    sizes = pd.DataFrame({"x": range(40), "y": [i * 1.5 + 0.25 for i in range(40)]})
    sizes.to_csv("user/benchmarks/sizes.csv", index=False)
    return tmp_path


@pytest.fixture
def call(here, monkeypatch, capsys):
    """Call the command line in this process; return its exit code and what it said."""

    def made(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["amlb", *arguments])
        before = dict(os.environ)
        with pytest.raises(SystemExit) as ended:
            command.main()
        monkeypatch.setattr(os, "environ", os.environ)
        os.environ.clear()
        os.environ.update(before)
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return made


# -- from end to end ------------------------------------------------------------------------


@pytest.mark.slow
def test_three_files_of_theirs_and_a_table(call):
    """A forest that would have a million trees grows for two seconds in each of two folds."""
    code, _, err = call(*"randomforest mine 2s -u user -t shop -o out --logging error".split())
    assert code == 0, err
    (run,) = open_runs(["out"])
    assert re.fullmatch(r"RandomForest\.mine\.2s\.local\.\d{8}T\d{6}", run.folder.name)
    table = run.results()
    assert table["fold"].tolist() == [0, 1] and table["status"].tolist() == ["ok", "ok"]
    assert table["metric"].tolist() == ["auc"] * 2  # the AutoML Benchmark's for two classes
    assert {"auc", "logloss", "acc", "balacc"} <= set(table.columns)
    assert (table["auc"] > 0.8).all()
    assert (table["models"] > 20).all() and (table["models"] < 10**6).all()
    assert (table["fit_seconds"] < 2.5).all() and (table["fit_seconds"] > 0.5).all()
    assert table["notes"].str.contains("of 1,000,000 trees in 2 s").all()
    head = Path(run.folder, "predictions/shop/0/predictions.csv").read_text().splitlines()[0]
    assert head == "B,a,predictions,truth"


def test_all_tasks_and_artifacts(call):
    with pytest.warns(UserWarning, match='the task "m4" is left out: it is a time series'):
        code, out, _ = call(*"RANDOMFOREST_DEBUG mine free -u user -o out".split())
    assert code == 0 and "RandomForest_debug" in out
    (run,) = open_runs(["out"])
    table = run.results()
    assert table["task"].tolist() == ["shop", "shop", "Sizes", "Sizes"]
    assert table["metric"].tolist() == ["auc", "auc", "mae", "mae"]
    assert table["models"].tolist() == [7] * 4
    assert table["params"].tolist() == ['{"n_estimators": 7}'] * 4
    assert Path(run.folder, "info/shop/0/forest.json").is_file()


def test_a_file_a_fold_a_task_and_overrides(call, here):
    benchmark = str(here / "user/benchmarks/mine.yaml")
    arguments = f"RandomForest {benchmark} tiny -t SIZES -f 1 -o out -Xseed=7 -X f.n_estimators=4"
    code, _, err = call(*arguments.split(), "-Xt.metric=['r2', 'mae']", "-Xf.options.max_depth=2")
    assert code == 0, err
    (run,) = open_runs(["out"])
    (row,) = run.results().to_dict("records")
    assert (row["task"], row["fold"], row["seed"], row["metric"]) == ("Sizes", 1, 8, "r2")
    assert row["params"] == '{"n_estimators": 4, "options": {"max_depth": 2}}'
    assert row["models"] == 4


def test_a_failed_job_is_a_row_and_exit_code_1(call):
    code, _, _ = call(*"fails mine free -u user -o out --logging error".split())
    (run,) = open_runs(["out"])
    assert code == 1 and set(run.results()["info"]) == {"ValueError: no"}
    assert len(run.results()) == 4


def test_exit_on_error(call):
    code, _, _ = call(*"fails mine free -u user -o out -e --logging error".split())
    (run,) = open_runs(["out"])
    assert code == 1 and (run.results()["info"] == "ValueError: no").sum() == 1


def test_resume(call):
    arguments = "constantpredictor mine free -u user -o out --logging error".split()
    assert call(*arguments, "-f", "0")[0] == 0
    assert call(*arguments, "--resume")[0] == 0
    (run,) = open_runs(["out"])
    assert len(run.results()) == 4


# -- what is said ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("RandomForest mine 2s -u user -m docker", "-m docker: jobs run on this machine"),
        ("RandomForest mine 2s -u user -m aws -s only", "-s only: nothing is installed here"),
        ("RandomForest mine 2s -u user --jobhistory x", "--jobhistory: --resume looks into"),
        ("RandomForest mine 2s -u user --session x", "--session: a run folder has the name"),
        ("RandomForest mine 2s -u nobody", "there is no folder nobody"),
        ("RandomForest mine 2s -u user -i nobody", "there is no folder nobody"),
        ("RandomFores mine 2s -u user", 'there is no model "RandomFores". Did you mean'),
        ("autosklearn mine 2s -u user", "module frameworks.autosklearn, which is not here"),
        ("RandomForest mien 2s -u user", 'there is no suite "mien"'),
        ("RandomForest mine 3s -u user", 'there is no constraint "3s"'),
        ("RandomForest mine 2s -u user -t m4", "it is a time series, which is not supported"),
        ("RandomForest mine 2s -u user -t shp", 'the suite has no task "shp". Did you mean "shop"'),
        ("RandomForest mine 2s -u user -f 7", "there is no fold 7"),
        ("RandomForest mine 2s -u user -Xf.trees=3", 'has no parameter "trees"'),
        ("RandomForest mine 2s -u user -Xsed=3", 'there is no key "sed" here. Did you mean "seed"'),
        ("RandomForest mine 2s -u user -Xseed=x", "a seed is a whole number, or auto"),
        ("RandomForest mine 2s -u user --logging loud", '"loud" is no level'),
        (
            "RandomForest mine 2s -u user -t shop -Xt.cores=0",
            "cores is a whole number of 1 or more",
        ),
        ("RandomForest mine 2s -u user -p 0", "workers must be a whole number"),
    ],
)
def test_mistakes_are_exit_code_2_and_nothing_is_run(call, arguments, said):
    code, _, err = call(*arguments.split())
    assert code == 2 and said in err and "Traceback" not in err
    assert not Path("results").exists()


def test_arguments_that_there_are_not(call, capsys):
    assert call()[0] == 2
    assert call("RandomForest", "mine", "2s", "--nonsense")[0] == 2
    code, out, _ = call("--help")
    assert code == 0 and "--exit-on-error" in out


def test_what_is_left_away_is_noted(call):
    arguments = "constantpredictor:latest mine free -u user -o out -t shop -f 0 -k -s skip"
    code, _, err = call(*arguments.split(), "--openml-run-tag", "x", "--profiling")
    assert code == 0
    for said in (
        "-k: every run keeps",
        "whatever the tag says",
        "--openml-run-tag:",
        "--profiling",
    ):
        assert said in err


# -- parts ----------------------------------------------------------------------------------


def test_overrides_are_literals_or_text():
    made = read_overrides(
        ["f.a.b=1", "f.a.c=x", "f.flag", "t.max_runtime_seconds=60", "t.cores=-1", "t.metric=auc"]
    )
    assert made == Overrides(
        params={"a": {"b": 1, "c": "x"}, "flag": True},
        task={"max_runtime_seconds": 60, "cores": None, "metrics": ["auc"]},
    )
    assert 0 <= read_overrides(["seed=auto"]).run["seed"] < 2**31 - 1
    assert read_overrides(["f.x=" + "(" * 5000]).params["x"].startswith("((")
    with pytest.raises(DefinitionError, match='"a" is a value already'):
        read_overrides(["f.a=1", "f.a.b=2"])


def test_a_users_folder_may_name_other_files(here):
    Path("user/config.yaml").write_text(
        "frameworks:\n  definition_file: ['{root}/resources/frameworks.yaml', '{user}/more.yaml']\n"
        "benchmarks:\n  definition_dir: ['{user}/lists', '{root}/x']\n  constraints_file: c.yaml\n"
    )
    Path("user/lists").mkdir()
    for file in ("more.yaml", "lists/mine.yaml", "c.yaml"):
        Path("user", file).write_text("")
    folder = Path("user").absolute()
    found = [path.relative_to(folder).as_posix() for path in files_of(Path("user"), "mine")]
    assert found == [
        *("frameworks.yaml", "constraints.yaml", "more.yaml", "c.yaml"),
        *("benchmarks/mine.yaml", "lists/mine.yaml"),
    ]
    Path("user/config.yaml").write_text("a: [")
    with pytest.raises(DefinitionError, match=r"user.config\.yaml:2: not valid YAML"):
        files_of(Path("user"), "mine")
