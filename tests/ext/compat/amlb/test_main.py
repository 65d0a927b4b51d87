"""The command line of the AutoML Benchmark: ``python -m karat.compat.amlb``."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss, roc_auc_score

from karat.errors import DefinitionError
from karat.ext.compat.amlb import Overrides, files_of, read_overrides
from karat.ext.compat.amlb import __main__ as command
from karat.ext.compat.convert import export_results
from karat.results.run import open_runs

pytestmark = pytest.mark.filterwarnings("ignore:.*m4")

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
CONSTRAINTS = "{10s: {folds: 2, max_runtime_seconds: 10, cores: 1}, free: {folds: 2}}"
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
    """A user folder with definitions and data."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.delenv("KARAT_DATA", raising=False)
    monkeypatch.setattr(command, "HOME", tmp_path / "nowhere")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    monkeypatch.setattr("warnings.formatwarning", lambda message, *_, **__: f"note: {message}\n")
    Path("user/benchmarks").mkdir(parents=True)
    Path("user/frameworks.yaml").write_text(FRAMEWORKS)
    Path("user/constraints.yaml").write_text(CONSTRAINTS)
    Path("user/benchmarks/own.yaml").write_text(BENCHMARK)
    Path("breaking.py").write_text(BREAKING)
    SHOP.to_csv("user/benchmarks/shop.csv", index=False)
    sizes = pd.DataFrame({"x": range(40), "y": [i * 1.5 + 0.25 for i in range(40)]})
    sizes.to_csv("user/benchmarks/sizes.csv", index=False)
    return tmp_path


@pytest.fixture
def call(here, monkeypatch, capsys):
    """Call the command line; return exit code, standard output and standard error."""

    def made(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["amlb", *arguments])
        before = dict(os.environ)
        with pytest.raises(SystemExit) as ended:
            command.main()
        monkeypatch.setattr(os, "environ", os.environ)
        os.environ.clear()
        os.environ.update(before)
        printed = capsys.readouterr()
        return int(ended.value.code or 0), printed.out, printed.err

    return made


def test_a_constant_needs_neither_scikit_learn_nor_scipy(here):
    """Their imports would take longer than the whole rest of the command."""
    numbers = pd.DataFrame(rng.normal(size=(90, 4)), columns=list("abcd"))
    numbers.assign(y=SHOP["Class"]).to_csv("user/benchmarks/numbers.csv", index=False)
    Path("user/benchmarks/one.yaml").write_text(
        "- {name: numbers, dataset: {path: numbers.csv, target: y}}"
    )
    line = "-X importtime -m karat.compat.amlb constantpredictor one 1h4c -u user -o out"
    ended = subprocess.run([sys.executable, *line.split()], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    loaded = re.findall(r"\| +([\w.]+)$", ended.stderr, re.MULTILINE)
    assert "pandas" in loaded
    assert not {"sklearn", "scipy.special", "scipy.spatial", "joblib", "asyncio"} & set(loaded)


@pytest.mark.slow
def test_user_folder_with_a_time_limit(call):
    """A forest of a million trees stops at the time limit."""
    code, _, err = call(*"randomforest own 10s -u user -t shop -f 0 -o out --logging error".split())
    assert code == 0, err
    (run,) = open_runs(["out"])
    assert re.fullmatch(r"RandomForest\.own\.10s\.local\.\d{8}T\d{6}", run.folder.name)
    (row,) = run.results().to_dict("records")
    assert (row["fold"], row["status"]) == (0, "ok")
    assert row["metric"] == "auc"  # the AutoML Benchmark's metric for two classes
    assert {"auc", "logloss", "acc", "balacc"} <= set(row)
    assert row["auc"] > 0.8 and 20 < row["models"] < 10**6
    assert "1,000,000" in row["notes"]
    head = Path(run.folder, "predictions/shop/0/predictions.csv").read_text().splitlines()[0]
    assert head == "a,B,predictions,truth"


def test_all_tasks_and_artifacts(call):
    with pytest.warns(UserWarning, match="m4"):
        code, out, _ = call(*"RANDOMFOREST_DEBUG own free -u user -o out".split())
    assert code == 0 and "RandomForest_debug" in out
    (run,) = open_runs(["out"])
    table = run.results()
    assert table["task"].tolist() == ["shop", "shop", "Sizes", "Sizes"]
    assert table["metric"].tolist() == ["auc", "auc", "mae", "mae"]
    assert table["models"].tolist() == [7] * 4
    assert table["params"].tolist() == ['{"n_estimators": 7}'] * 4
    assert Path(run.folder, "info/shop/0/forest.json").is_file()


def test_benchmark_file_fold_task_and_overrides(call, here):
    benchmark = str(here / "user/benchmarks/own.yaml")
    arguments = f"RandomForest {benchmark} tiny -t SIZES -f 1 -o out -Xseed=7 -X f.n_estimators=4"
    code, _, err = call(*arguments.split(), "-Xt.metric=['r2', 'mae']", "-Xf.options.max_depth=2")
    assert code == 0, err
    (run,) = open_runs(["out"])
    (row,) = run.results().to_dict("records")
    assert (row["task"], row["fold"], row["seed"], row["metric"]) == ("Sizes", 1, 8, "r2")
    assert row["params"] == '{"n_estimators": 4, "options": {"max_depth": 2}}'
    assert row["models"] == 4


@pytest.mark.parametrize(("options", "failures"), [([], 4), (["-e"], 1)])
def test_failed_jobs_give_exit_code_1(call, options, failures):
    code, _, _ = call(*"fails own free -u user -o out --logging error".split(), *options)
    (run,) = open_runs(["out"])
    assert code == 1 and (run.results()["info"] == "ValueError: no").sum() == failures


def test_resume(call):
    arguments = "constantpredictor own free -u user -o out --logging error".split()
    assert call(*arguments, "-f", "0")[0] == 0
    assert call(*arguments, "--resume")[0] == 0
    (run,) = open_runs(["out"])
    assert len(run.results()) == 4


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ("RandomFores own 10s", '"RandomForest"'),
        ("autosklearn own 10s", "frameworks.autosklearn"),
        ("RandomForest onw 10s", '"onw"'),
        ("RandomForest own 3s", '"3s"'),
        ("-m docker", "-m docker"),
        ("-m aws -s only", "-s only"),
        ("--jobhistory x", "--jobhistory"),
        ("--session x", "--session"),
        ("-i nobody", "nobody"),
        ("-t m4", "time series"),
        ("-t shp", '"shop"'),
        ("-f 7", "7"),
        ("-Xf.trees=3", '"trees"'),
        ("-Xsed=3", '"seed"'),
        ("-Xbenchmarks.metrics.binary=['aucc']", '"auc"'),
        ("-Xbenchmarks.metrics.binary=3", "list of metrics"),
        ("-Xconfig=nowhere.yaml", "nowhere.yaml"),
        ("-k maybe", "maybe"),
        ("-Xseed=x", "seed=x"),
        ("--logging loud", '"loud"'),
        ("-t shop -Xt.cores=0", "cores"),
        ("-p -1", "workers"),
    ],
)
def test_wrong_options_give_exit_code_2_before_anything_runs(call, arguments, match):
    names = "RandomForest own 10s " if arguments.startswith("-") else ""
    code, _, err = call(*f"{names}{arguments} -u user".split())
    assert code == 2 and match in err and "Traceback" not in err
    assert not Path("results").exists()


def test_missing_and_unknown_arguments(call, capsys):
    assert call()[0] == 2
    assert call("RandomForest", "own", "10s", "--nonsense")[0] == 2
    code, out, _ = call("--help")
    assert code == 0 and "--exit-on-error" in out


def test_logging_sets_the_level_of_the_console(call):
    arguments = "constantpredictor own free -u user -o out -t shop -f 0".split()
    for level, shown in (("console:info,app:error", True), ("console:warning,app:debug", False)):
        code, _, err = call(*arguments, "--logging", level)
        assert code == 0 and ("seed 42" in err) == shown


def test_ignored_options_give_notes(call):
    arguments = "constantpredictor:latest own free -u user -o out -t shop -f 0 -s skip -Xtest_mode"
    code, _, err = call(*arguments.split(), "--openml-run-tag", "x", "--profiling")
    assert code == 0
    for option in ("constantpredictor:latest", "--openml-run-tag", "--profiling"):
        assert f"note: {option}" in err
    assert "test_mode" in err


TAGGED = {
    "user/frameworks.yaml": "{mine: {module: frameworks.DecisionTree}, gone: {removed: Use mine.}}",
    "user/frameworks_stable.yaml": """
mine: {module: frameworks.DecisionTree, params: {max_depth: 1}}
""",
    "user/frameworks_newest.yaml": "mine: {module: frameworks.constantpredictor}",
}


def test_a_tag_selects_the_definitions_of_its_file(call):
    for file, text in TAGGED.items():
        Path(file).write_text(text)
    arguments = "own free -u user -t shop -f 0 --logging error".split()
    for framework, options, params in (
        ("Mine:stable", [], "{'max_depth': 1}"),
        ("mine", [], ""),
        ("mine:newest", ["-Xframeworks.tags=['newest']"], ""),
    ):
        output = framework.replace(":", "_")
        code, _, err = call(framework, *arguments, *options, "-o", output)
        assert code == 0 and "note" not in err, err
        kept = pd.read_csv(f"{output}/results.csv", keep_default_na=False)
        assert kept["params"].tolist() == [params]


@pytest.mark.parametrize(
    ("framework", "reason"),
    [
        ("mine:latest", 'no definition with the tag "latest": add it to frameworks_latest.yaml'),
        ("gone:stable", '"gone" was removed: Use mine'),
        ("mine:stabel", 'unknown tag "stabel". Did you mean "stable"'),
        ("mine:newest", "Available: stable, latest"),
        ("nobody:stable", 'no model "nobody"'),
    ],
)
def test_a_tag_without_a_definition_is_refused(call, framework, reason):
    for file, text in TAGGED.items():
        Path(file).write_text(text)
    code, _, err = call(framework, *"own free -u user -t shop -f 0 -o out".split())
    assert code == 2 and reason in err and not Path("out").exists()


def test_scores_of_all_runs_are_kept_in_one_file(call):
    arguments = "own free -u user -o out -t shop --logging error".split()
    for model, options, count in (
        ("constantpredictor", ["-f", "0"], 1),
        ("constantpredictor", ["--resume"], 2),
        ("DecisionTree", ["-k", "true"], 4),
        ("DecisionTree", ["-k", "false"], 4),
    ):
        assert call(model, *arguments, *options)[0] == 0
        kept = pd.read_csv("out/results.csv")
        assert len(kept) == count and kept["framework"].iloc[-1] == model
    tree, _, constant = sorted(open_runs(["out"]), key=lambda run: run.folder.name)
    rows = pd.concat([tree.results(), constant.results()])
    names = ["framework", "fold", "result", "auc"]
    kept, rows = (t[names].sort_values(names, ignore_index=True) for t in (kept, rows))
    pd.testing.assert_frame_equal(kept, rows, check_dtype=False)


def test_a_file_with_other_columns_is_not_changed(call):
    Path("out").mkdir()
    Path("out/results.csv").write_text("a,b\n1,2\n")
    with pytest.warns(UserWarning, match=r"results\.csv has no column id"):
        code, _, _ = call(*"constantpredictor own free -u user -o out -t shop -f 0".split())
    assert code == 0 and Path("out/results.csv").read_text() == "a,b\n1,2\n"


def test_the_defaults_of_the_arguments():
    given = vars(command.parser().parse_args(["RandomForest"]))
    assert (given["benchmark"], given["constraint"], given["mode"]) == ("test", "test", "local")
    assert (given["parallel"], given["setup"], given["keep_scores"]) == (1, "auto", True)
    assert given["task"] == given["fold"] == given["extra"] == []


def test_predictions_without_probabilities_are_one_hot(call):
    Path("hard.py").write_text(
        BREAKING.replace("Breaking", "Hard")
        .replace('raise ValueError("no")', "self.classes_ = sorted(set(y))")
        .replace("return X", "return [self.classes_[0]] * len(X)")
    )
    Path("user/frameworks.yaml").write_text("hard: {module: 'hard:Hard'}")
    assert call(*"hard own free -u user -o out -t shop -f 0 --logging error".split())[0] == 0
    (run,) = open_runs(["out"])
    found = pd.read_csv(run.folder / "predictions/shop/0/predictions.csv")
    assert set(found["B"]) == {1} and set(found["a"]) == {0} and set(found["predictions"]) == {"B"}


def test_a_forest_gives_the_numbers_of_the_original(call):
    """Their wrapper: numbered words, mean-imputed numbers, and scikit-learn's forest."""
    table = SHOP.assign(age=SHOP["age"].astype(float))
    table.loc[::7, "age"] = np.nan
    train, test = table[:60], table[60:]
    for name, part in (("train", train), ("test", test)):
        part.to_csv(f"{name}.csv", index=False)
    Path("pair.yaml").write_text("- {name: pair, dataset: {train: train.csv, test: test.csv}}")
    arguments = "RandomForest pair.yaml test -o out -Xseed=7 -Xf.n_estimators=20 --logging error"
    assert call(*arguments.split())[0] == 0
    (file,) = export_results("out", "amlb-new", "export")
    row = pd.read_csv(file).iloc[0]
    numbers = [
        np.column_stack([part["age"].fillna(train["age"].mean()), part["job"] == "b"])
        for part in (train, test)
    ]
    forest = RandomForestClassifier(20, random_state=7).fit(numbers[0], train["Class"])
    probabilities = forest.predict_proba(numbers[1])
    assert row["auc"] == pytest.approx(roc_auc_score(test["Class"] == "a", probabilities[:, 1]))
    assert row["logloss"] == pytest.approx(log_loss(test["Class"], probabilities))
    assert (row["models_count"], row["seed"], row["type"]) == (20, 7, "binary")


def test_data_folders_are_removed_after_the_run(here):
    arguments = "constantpredictor own free -u user -o out -t shop -f 0 --logging error".split()
    assert command.amlb(arguments) == 0
    assert "KARAT_DATA" not in os.environ


def test_inference_is_timed_and_exported(call):
    arguments = "constantpredictor own free -u user -o out -t shop -f 0 --logging error".split()
    key = "inference_time_measurements"
    assert call(*arguments, f"-X{key}.enabled=True", f"-X{key}.batch_sizes=[1, 10]")[0] == 0
    (run,) = open_runs(["out"])
    kept = run.results()
    assert list(kept.columns[-2:]) == ["inference_1_seconds", "inference_10_seconds"]
    (file,) = export_results("out", "amlb-new", "export")
    row = pd.read_csv(file).iloc[0]
    assert list(row.index[-2:]) == ["infer_batch_size_df_1", "infer_batch_size_df_10"]
    assert row["infer_batch_size_df_1"] == kept["inference_1_seconds"].iloc[0] > 0
    assert read_overrides([f"{key}.enabled"]).run == {"inference": (1, 10, 100, 1000, 10000)}
    assert read_overrides([f"{key}.enabled=False"]).run == {"inference": ()}


def test_configuration_of_the_user_folder(call):
    Path("user/config.yaml").write_text(
        "seed: 5\nbenchmarks:\n  metrics: {binary: [acc, f1], regression: [mae]}\n"
        "monitoring: {interval_seconds: 10}\n"
    )
    arguments = "constantpredictor own free -u user --logging error".split()
    code, _, err = call(*arguments, "-o", "out")
    assert code == 0 and err.count("monitoring") == 1
    (run,) = open_runs(["out"])
    table = run.results()
    assert table["metric"].tolist() == ["acc", "acc", "mae", "mae"]
    assert table["seed"].tolist() == [5, 6, 5, 6]
    assert table.loc[table["task"] == "shop", "f1"].notna().all() and "auc" not in table
    Path("more.yaml").write_text("benchmarks: {metrics: {binary: auc}}")
    options = ["-X", "config=more.yaml", "-Xseed=9", "-t", "shop", "-o", "other"]
    assert call(*arguments, *options)[0] == 0
    table = open_runs(["other"])[0].results()
    assert table["metric"].tolist() == ["auc", "auc"] and table["seed"].tolist() == [9, 10]


def test_override_values_are_literals_or_text():
    made = read_overrides(
        ["f.a.b=1", "f.a.c=x", "f.flag", "t.max_runtime_seconds=60", "t.cores=-1", "t.metric=auc"]
    )
    assert made == Overrides(
        params={"a": {"b": 1, "c": "x"}, "flag": True},
        task={"max_runtime_seconds": 60, "cores": None, "metrics": ["auc"]},
    )
    assert 0 <= read_overrides(["seed=auto"]).run["seed"] < 2**31 - 1
    scheduled = ["job_scheduler.parallel_jobs=3", "job_scheduler.exit_on_job_failure"]
    assert read_overrides(scheduled).run == {"workers": 3, "exit_on_error": True}
    assert read_overrides(["f.x=" + "(" * 5000]).params["x"].startswith("((")
    with pytest.raises(DefinitionError, match='"a"'):
        read_overrides(["f.a=1", "f.a.b=2"])


def test_user_folder_with_configured_files(here):
    Path("user/config.yaml").write_text(
        "frameworks:\n  definition_file: ['{root}/resources/frameworks.yaml', '{user}/more.yaml']\n"
        "benchmarks:\n  definition_dir: ['{user}/lists', '{root}/x']\n  constraints_file: c.yaml\n"
    )
    Path("user/lists").mkdir()
    for file in ("more.yaml", "lists/own.yaml", "c.yaml"):
        Path("user", file).write_text("")
    folder = Path("user").absolute()
    found = [path.relative_to(folder).as_posix() for path in files_of(Path("user"), "own")]
    assert found == [
        *("frameworks.yaml", "constraints.yaml", "more.yaml", "c.yaml"),
        *("benchmarks/own.yaml", "lists/own.yaml"),
    ]
    Path("user/config.yaml").write_text("a: [")
    with pytest.raises(DefinitionError, match=r"user.config\.yaml:"):
        files_of(Path("user"), "own")
