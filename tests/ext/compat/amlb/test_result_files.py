"""Import and export of the AutoML Benchmark's results in both layouts."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import karat
from karat.errors import DataError
from karat.ext.compat.amlb.result_files import NEW
from karat.ext.compat.convert import export_results
from karat.results.importing import ImportLog, ModelResults, write_run
from karat.results.tables import AMLB_COLUMNS

from ....skips import original_file

DOCUMENTED = """\
id,task,framework,constraint,fold,result,metric,mode,version,params,tag,utc,duration,models,seed,info,acc,auc,balacc,logloss,mae,r2,rmse
openml.org/t/3913,kc2,RandomForest,test,0,0.78125,auc,local,1.5.0,{'n_estimators': 300},,2024-05-06T07:08:01,4.5,300,3000000000,,0.75,0.78125,0.6875,0.4375,,,
openml.org/t/3913,kc2,RandomForest,test,1,0.84375,auc,local,1.5.0,{'n_estimators': 300},,2024-05-06T07:08:11,4.25,300,3000000001,,0.875,0.84375,0.8125,0.34375,,,
openml.org/t/59,iris,RandomForest,test,0,0.15625,logloss,local,1.5.0,{'n_estimators': 300},,2024-05-06T07:08:21,4.0,300,3000000000,,0.9375,,0.9375,0.15625,,,
openml.org/t/2295,cholesterol,RandomForest,test,0,52.5,rmse,local,1.5.0,{'n_estimators': 300},,2024-05-06T07:08:31,3.75,300,3000000000,,,,,,40.25,-0.0625,52.5
"""  # noqa: E501
PRESENT = """\
id,task,framework,constraint,fold,type,result,metric,mode,version,params,app_version,utc,duration,training_duration,predict_duration,models_count,seed,info,acc,logloss,mase,rmse
openml.org/t/59,iris,flaml,1h8c,0,multiclass,-0.25,neg_logloss,aws,2.0,{},"dev [x, main, abc]",2024-01-02T03:04:05,9.5,7.5,0.5,12,1,,0.9,0.25,,
openml.org/t/59,iris,flaml,1h8c,1,multiclass,,neg_logloss,aws,2.0,{},"dev [x, main, abc]",2024-01-02T03:05:05,,,,,2,"TimeoutError: too slow, stopped",,,,
openml.org/t/59,iris,flaml,4h8c,0,multiclass,-0.125,neg_logloss,aws,2.0,{},"dev [x, main, abc]",2024-01-03T03:04:05,9.5,7.5,0.5,12,1,,0.95,0.125,,
openml.org/t/1,m4,flaml,1h8c,0,timeseries,-0.75,neg_mase,aws,2.0,{},"dev [x, main, abc]",2024-01-02T03:04:06,9.5,7.5,0.5,12,1,,,,0.75,
openml.org/t/59,iris,gama,1h8c,0,multiclass,-0.5,neg_logloss,aws,1.0,,"dev [x, main, abc]",2024-01-02T03:04:07,9.5,7.5,0.5,12,1,,0.8,0.5,,
openml.org/t/59,iris,gama,1h8c,0,multiclass,-0.375,neg_logloss,aws,1.0,,"dev [x, main, abc]",2024-01-02T03:04:08,9.5,7.5,0.5,12,1,,0.85,0.375,,
"""  # noqa: E501
OLD = """\
id,task,framework,fold,result,mode,version,tag,utc,duration,models,seed,info,acc,auc,logloss
openml.org/t/3,kr-vs-kp,A,0,0.5,local,0.19,stable,2019-02-20T18:17:30,0.0,1,1,,0.5,0.5,0.7
openml.org/t/3,kr-vs-kp,A,1,0.75,local,0.19,stable,2019-02-20T18:17:31,0.0,1,1,,0.6,0.75,0.6
openml.org/t/3,kr-vs-kp,B,0,,aws,0.5,stable,2019-02-20T23:51:14,3623.8,,9,Error: no,,,
openml.org/t/4,labor,A,0,0.25,local,0.19,stable,2019-02-20T18:17:32,0.0,1,1,,0.9,,0.25
"""


def put(folder: Path, text: str, name: str = "results.csv") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def scores(run: karat.Run) -> dict[tuple[str, int, str], float]:
    table = run.scores()
    return {(r.task, r.fold, r.metric): r.value for r in table.itertuples()}


def test_documented_columns(tmp_path):
    path = put(tmp_path, DOCUMENTED)
    done = karat.import_results(path, tmp_path / "out")
    (run,) = done.runs
    assert not done.problems and not done.notes
    assert run.folder.name == "RandomForest.amlb.test.local.20240506T070831"
    found = scores(run)
    assert found["kc2", 1, "auc"] == 0.84375 and found["kc2", 1, "logloss"] == 0.34375
    assert found["iris", 0, "logloss"] == 0.15625
    assert found["cholesterol", 0, "rmse"] == 52.5 and found["cholesterol", 0, "r2"] < 0
    assert ("iris", 0, "rmse") not in found
    assert run.about["params"] == {"n_estimators": 300}
    firsts = {task["name"]: task["metrics"][0] for task in run.about["tasks"]}
    assert firsts == {"kc2": "auc", "iris": "logloss", "cholesterol": "rmse"}
    kinds = {task["name"]: task["kind"] for task in run.about["tasks"]}
    assert kinds == {"kc2": "classification", "iris": "classification", "cholesterol": "regression"}
    imported = run.about["imported"]
    assert (imported["system"], imported["file"]) == ("amlb", "results.csv")
    assert len(imported["sha256"]) == 64
    board = karat.leaderboard(tmp_path / "out")
    assert board.loc["RandomForest", "kc2"] == pytest.approx((0.78125 + 0.84375) / 2)
    assert board.loc["RandomForest", "seconds"] == pytest.approx(4.5 + 4.25 + 4.0 + 3.75)


def test_current_columns_with_their_signs(tmp_path):
    done = karat.import_results(put(tmp_path, PRESENT), tmp_path / "out")
    assert [r.folder.name.rsplit(".", 1)[0] for r in done.runs] == [
        "flaml.amlb.1h8c.aws",
        "flaml.amlb.4h8c.aws",
        "gama.amlb.1h8c.aws",
    ]
    first, other, gama = done.runs
    assert scores(first)["iris", 0, "logloss"] == 0.25
    assert scores(other)["iris", 0, "logloss"] == 0.125
    # unknown metrics are imported if the file gives their direction
    assert scores(first)["m4", 0, "mase"] == 0.75
    m4 = next(task for task in first.about["tasks"] if task["name"] == "m4")
    assert m4["higher_is_better"] == {"mase": False} and m4["kind"] == "timeseries"
    failed = next(r for r in first.records() if r["status"] == "failed")
    assert failed["info"] == "TimeoutError: too slow, stopped" and failed["fold"] == 1
    record = first.records()[0]
    assert (record["seconds"], record["fit_seconds"], record["predict_seconds"]) == (9.5, 7.5, 0.5)
    assert record["seed"] == 1 and record["models"] == 12
    # the last of duplicate rows is used
    assert scores(gama)["iris", 0, "logloss"] == 0.375
    assert any("1 of 6" in note for note in done.notes)
    board = karat.leaderboard([first, gama])
    assert board.loc["gama", "rank"] > board.loc["flaml", "rank"]  # the lower loss wins
    assert board.loc["flaml", "failed"] == 1


def test_files_without_metric_and_constraint(tmp_path):
    done = karat.import_results(put(tmp_path, OLD, "results_small-2c1h.csv"), tmp_path / "out")
    a, b = done.runs
    assert a.about["suite"] == "small-2c1h" and a.about["constraint"] == "1h2c"
    firsts = {task["name"]: task["metrics"][0] for task in a.about["tasks"]}
    # 0.5 is also the accuracy of one row, 0.75 only the AUC
    assert firsts == {"kr-vs-kp": "auc", "labor": "logloss"}
    (record,) = b.records()
    assert record["status"] == "failed" and record["metric"] == "auc"
    assert record["info"] == "Error: no"


def test_second_import_returns_the_same_runs(tmp_path):
    path = put(tmp_path, PRESENT)
    first = karat.import_results(path, tmp_path / "out")
    again = karat.import_results(path, tmp_path / "out")
    assert [r.folder for r in again.runs] == [r.folder for r in first.runs]
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert "flaml.amlb.1h8c.aws" in again.notes[-1]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (("RandomForest,test,1,", "RandomForest,test,one,"), 'line 3: fold .*"one"'),
        (("0.84375,auc", "high,auc"), 'line 3: result .*"high"'),
        (("RandomForest,test,1,", "RandomForest,test,"), "line 3: .*23.*22"),
        (("RandomForest,test,1,", "RandomForest,test,-1,"), 'line 3: fold .*"-1"'),
    ],
)
def test_broken_row_is_reported_with_its_line(tmp_path, change, match):
    path = put(tmp_path, DOCUMENTED.replace(*change, 1))
    with pytest.raises(DataError, match=match):
        karat.import_results(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    other = put(tmp_path, OLD, "good.csv")
    done = karat.import_results([path, other], tmp_path / "out")
    assert len(done.runs) == 2 and len(done.problems) == 1


def test_result_that_differs_from_its_column(tmp_path):
    path = put(tmp_path, DOCUMENTED.replace("0.84375,auc", "0.5,auc", 1))
    done = karat.import_results(path, tmp_path / "out")
    assert len(done.notes) == 1 and "line 3" in done.notes[0]
    assert scores(done.runs[0])["kc2", 1, "auc"] == 0.84375


def test_params_are_never_evaluated(tmp_path):
    text = DOCUMENTED.replace("{'n_estimators': 300}", "__import__('os').getcwd()")
    (run,) = karat.import_results(put(tmp_path, text), tmp_path / "out").runs
    assert run.about["params"] == {"text": "__import__('os').getcwd()"}


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> list[karat.Run]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    half = np.where(table["x"] + rng.normal(0, 0.5, 60) > 0, "yes", "no")
    make, split = karat.Dataset.from_table, {"use": "kfold", "folds": 2}
    tasks = [
        karat.Task(
            "halves",
            make(table.assign(y=half), "y", name="h"),
            split=split,
            metrics=["logloss", "auc"],
            corruptions={"noise_gaussian": [1.0]},
        ),
        karat.Task(
            "line",
            make(table.assign(y=3 * table["x"]), "y", name="l", kind="regression"),
            split=split,
            metrics=["rmse", "r2"],
        ),
    ]

    class Broken:
        def fit(self, X, y):
            raise RuntimeError('it broke, "badly"\nand again')

        def predict(self, X):
            return X

    models = ["onehot", "dummy", {"broken": Broken()}]
    output = tmp_path_factory.mktemp("ours")
    return [run for m in models for run in karat.evaluate(m, tasks, output=output)]


@pytest.mark.parametrize("shape", ["amlb", "amlb-new"])
def test_export_then_import_gives_the_same_scores(ours, tmp_path, shape):
    (path,) = export_results(ours, shape, tmp_path)
    assert path.name == "results.csv"
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    columns = AMLB_COLUMNS if shape == "amlb" else NEW
    metrics = ["auc", "logloss", "r2", "rmse"]
    assert list(table.columns) == [*columns, *metrics, *(["type"] if shape == "amlb" else [])]
    back = karat.import_results(path, tmp_path / "out").runs
    assert {run.model for run in back} == {run.model for run in ours}
    for run in ours:
        (other,) = [each for each in back if each.model == run.model]
        clean = run.scores()
        clean = clean[clean["corruption"] == ""]
        assert scores(other) == {(r.task, r.fold, r.metric): r.value for r in clean.itertuples()}
        states = {(r["task"], r["fold"], r["status"], r["metric"]) for r in run.records()}
        states = {state for state in states if state[1] is not None}
        assert {(r["task"], r["fold"], r["status"], r["metric"]) for r in other.records()} == states
    broken = next(run for run in back if run.model == "broken")
    infos = {record["info"] for record in broken.records()}
    assert infos == {'RuntimeError: it broke, "badly" and again'}


@pytest.mark.parametrize(("text", "name"), [(PRESENT, "app_version"), (DOCUMENTED, "tag")])
def test_tag_is_exported(text, name, tmp_path):
    (tmp_path / "results.csv").write_text(text.replace("},,2024", "},v1 (them),2024"))
    runs = karat.import_results(tmp_path / "results.csv", tmp_path / "out").runs
    (path,) = export_results(runs, "amlb" if name == "tag" else "amlb-new", tmp_path / "back")
    assert set(pd.read_csv(path)[name]) == {"v1 (them)" if name == "tag" else "dev [x, main, abc]"}


def test_current_columns_negate_errors(ours, tmp_path):
    (path,) = export_results(ours[0], "amlb-new", tmp_path)
    table = pd.read_csv(path)
    assert set(table["metric"]) == {"neg_logloss", "neg_rmse"}
    line, halves = table[table["task"] == "line"], table[table["task"] == "halves"]
    assert (line["result"] == -line["rmse"]).all() and (line["rmse"] > 0).all()
    assert (halves["result"] == -halves["logloss"]).all()
    assert set(line["type"]) == {"regression"} and set(halves["type"]) == {"binary"}
    assert (table["training_duration"] <= table["duration"]).all()


def test_runs_on_other_tasks_are_one_framework(tmp_path):
    """Several benchmarks of a framework, as in their reports; the same job twice has two names."""
    lines = DOCUMENTED.splitlines(keepends=True)
    files = [
        put(tmp_path, "".join([lines[0], *part]), f"{i}.csv")
        for i, part in enumerate((lines[1:3], lines[3:]))
    ]
    runs = karat.import_results(files, tmp_path / "out").runs
    (path,) = export_results(runs, "amlb-new", tmp_path / "back")
    assert len(runs) == 2 and set(pd.read_csv(path)["framework"]) == {"RandomForest"}
    again = put(tmp_path, "".join(lines).replace("2024-05-06", "2025-01-01"), "again.csv")
    runs += karat.import_results(again, tmp_path / "out").runs
    (path,) = export_results(runs, "amlb-new", tmp_path / "back")
    table = pd.read_csv(path)
    assert table["framework"].nunique() == 3
    assert table.set_index(["task", "fold", "framework"]).index.is_unique


def test_the_type_of_an_imported_task_is_exported(tmp_path):
    runs = karat.import_results(put(tmp_path, DOCUMENTED), tmp_path / "out").runs
    (back,) = export_results(runs, "amlb-new", tmp_path / "back")
    types = pd.read_csv(back).groupby("task")["type"].first().to_dict()
    assert types == {"kc2": "binary", "iris": "multiclass", "cholesterol": "regression"}


@pytest.mark.parametrize("shape", ["amlb", "amlb-new"])
def test_their_report_code_can_read_an_export(ours, tmp_path, shape):
    """What amlb_report relies on: read_csv, str and int columns, a unique index, groups by type."""
    (path,) = export_results(ours, shape, tmp_path)
    table = pd.read_csv(path)
    assert table["fold"].dtype == int and table["result"].dtype == float
    assert {type(name) for name in [*table["id"], *table["metric"]]} == {str}
    assert set(table["task"].str.lower()) == {"halves", "line"}
    done = table.set_index(["task", "fold", "framework"])
    assert done.index.is_unique and len(done) == 3 * 2 * 2
    # failed jobs are those with an info and without a result, and have a type and a metric
    failed = done[done["info"].notna()]
    assert set(failed.index.get_level_values("framework")) == {"broken"}
    assert failed["result"].isna().all() and failed["info"].str.startswith("RuntimeError").all()
    types = table.groupby("task")["type"].agg(set)
    assert types["halves"] == {"binary"} and types["line"] == {"regression"}
    groups = table.groupby(["type", "task", "framework"])["result"].mean().unstack()
    assert groups.shape == (2, 3) and groups["broken"].isna().all()


def test_the_report_code_ranks_current_results_by_higher_is_better(ours, tmp_path):
    (path,) = export_results(ours, "amlb-new", tmp_path)
    table = pd.read_csv(path)
    table = table[table["framework"] != "broken"]
    ranks = table.pivot_table(index="task", columns="framework", values="result")
    ranks = ranks.rank(axis=1, ascending=False)
    assert (ranks["onehot"] == 1).all() and (ranks["dummy"] == 2).all()


def test_export_of_raw_losses_names_the_other_format(ours, tmp_path):
    with pytest.warns(karat.KaratWarning, match="logloss and rmse.*amlb-new"):
        export_results(ours, "amlb", tmp_path)


def test_an_openml_task_is_named_by_its_address(ours, tmp_path):
    path = put(tmp_path, DOCUMENTED)
    runs = karat.import_results(path, tmp_path / "out").runs
    (back,) = export_results(runs, "amlb", tmp_path / "back")
    assert set(pd.read_csv(back)["id"]) == set(pd.read_csv(path)["id"])
    facts = json.loads((ours[0].folder / "run.json").read_text())
    facts["tasks"][0]["id"] = "openml.org/t/59"
    copy = tmp_path / ours[0].folder.name
    shutil.copytree(ours[0].folder, copy)
    (copy / "run.json").write_text(json.dumps(facts))
    (back,) = export_results(copy, "amlb-new", tmp_path / "again")
    assert set(pd.read_csv(back)["id"]) == {"openml.org/t/59", "l"}


def test_jobs_csv_of_karat_is_imported_with_its_views(ours, tmp_path):
    path = ours[0].folder / "scores" / "jobs.csv"
    (run,) = karat.import_results(path, tmp_path / "out").runs
    one, other = ours[0].scores(), run.scores()
    keys = ["task", "fold", "corruption", "severity", "metric"]
    one, other = (t.sort_values(keys, ignore_index=True)[[*keys, "value"]] for t in (one, other))
    pd.testing.assert_frame_equal(one, other)


VALUES = st.floats(allow_nan=False, allow_infinity=False)
NAMES = (
    st.text(min_size=1, max_size=12).map(str.strip).filter(lambda text: text.isprintable() and text)
)
JOBS = st.dictionaries(st.tuples(NAMES, st.integers(0, 3)), VALUES | NAMES, min_size=1, max_size=5)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(JOBS, NAMES, st.sampled_from(["amlb", "amlb-new"]))
def test_round_trip_of_any_names_values_and_messages(jobs, model, shape):
    with tempfile.TemporaryDirectory() as folder:
        source = put(Path(folder), "x")
        found = ModelResults("amlb", model, "s", [source])
        for (task, fold), outcome in jobs.items():
            found.tasks[task] = {"dataset": task, "metric": "rmse", "kind": "regression"}
            job = found.job(task, fold)
            if isinstance(outcome, str):
                job.info = outcome
            else:
                found.put(job, "rmse", outcome)
        run = write_run(found, Path(folder) / "in", ImportLog())
        (path,) = export_results(run, shape, Path(folder) / "csv")
        (back,) = karat.import_results(path, Path(folder) / "out").runs
        read = {}
        for record in back.records():
            value = record["views"][0]["scores"]["rmse"] if record["views"] else record["info"]
            read[record["task"], record["fold"]] = value
        whole = {key: " ".join(v.split()) if isinstance(v, str) else v for key, v in jobs.items()}
        assert read == whole and back.model == model


def test_published_results(tmp_path):
    path = original_file("amlb_2019_results")
    done = karat.import_results(path, tmp_path / "out")
    table = pd.read_csv(path)
    assert {run.model for run in done.runs} == set(table["framework"])
    assert not done.problems and not done.notes
    records = [record for run in done.runs for record in run.records()]
    assert len(records) == len(table)
    assert sum(r["status"] == "failed" for r in records) == table["result"].isna().sum()
    (tpot,) = [run for run in done.runs if run.model == "TPOT"]
    means = table[table["framework"] == "TPOT"].groupby("task")["result"].mean().dropna()
    board = karat.leaderboard(tmp_path / "out")
    for task, mean in means.items():
        assert board.loc["TPOT", task] == pytest.approx(mean, rel=1e-12), task
    assert json.loads((tpot.folder / "run.json").read_text())["imported"]["system"] == "amlb"
