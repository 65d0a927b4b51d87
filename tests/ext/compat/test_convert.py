"""Import of results of MTEB, TabEB, TACO and Ulysses SentEval, and invalid files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import DataError
from karat.ext.compat.convert import export_results, read_scores
from karat.results.tables import FINAL_EPOCH, SCORE_COLUMNS


def put(path: Path, content) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def scores(run: karat.Run) -> dict[tuple[str, str], float]:
    return {(r.task, r.metric): r.value for r in run.scores().itertuples()}


LATER = {
    "dataset_revision": "abc",
    "evaluation_time": 12.5,
    "mteb_version": "1.38.0",
    "task_name": "Banking77Classification",
    "scores": {
        "test": [
            {
                "accuracy": 0.75,
                "f1": 0.625,
                "lrap": 0.5,
                "scores_per_experiment": [{"accuracy": 0.75}],
                "main_score": 0.75,
                "hf_subset": "default",
                "languages": ["eng-Latn"],
            }
        ]
    },
}


def tabeb_file(folder: Path, task: str = "regression", **columns) -> Path:
    pytest.importorskip("pyarrow")
    folder.mkdir(parents=True, exist_ok=True)
    table = pd.DataFrame(
        {"encoder": ["one", "two"], "wine_pl": [0.25, 0.5], "spotify": [1.5, np.nan]}
    )
    table[f"{task}_average"] = table[["wine_pl", "spotify"]].mean(axis=1, skipna=False)
    path = folder / f"scores_{task}.parquet"
    table.assign(**columns).to_parquet(path)
    return path


def test_tabeb_files_of_tabeb_and_of_karat(tmp_path):
    plain = tabeb_file(tmp_path / "a")
    one, two = karat.import_results(plain, tmp_path / "out").runs
    assert scores(one) == {
        ("wine_pl-regression", "rmse"): 0.25,
        ("spotify-regression", "rmse"): 1.5,
    }
    failed = [r["task"] for r in two.records() if r["status"] == "failed"]
    assert failed == ["spotify-regression"]
    config = json.dumps({"metric": "gain", "higher_is_better": True, "datasets": ["wine_pl"]})
    configured = tabeb_file(tmp_path / "b", "own", config=config, encoder_params='{"size": 3}')
    one, two = karat.import_results(configured, tmp_path / "out2").runs
    assert scores(one) == {("wine_pl-own", "gain"): 0.25} and one.about["params"] == {"size": 3}
    board = karat.leaderboard([one, two])
    assert board.loc["two", "rank"] == 1
    strange = tabeb_file(tmp_path / "c", "own")
    with pytest.raises(DataError, match="one"):
        karat.import_results(strange, tmp_path / "out3")


def tidy(rows) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(SCORE_COLUMNS))


@pytest.fixture(scope="module")
def taco_runs(tmp_path_factory) -> list[karat.Run]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=60), "z": rng.normal(size=60)})
    half = np.where(table["x"] + rng.normal(0, 0.5, 60) > 0, "yes", "no")
    make, split = karat.Dataset.from_table, {"use": "kfold", "folds": 2}
    views = {"noise_gaussian": [0.5, 2.0], "noise_gaussian+sign_flip": [0.5]}
    views |= {"sign_flip@0.5+noise_gaussian@0.25": [1.0]}
    data = {
        "halves": (make(table.assign(y=half), "y", name="halves"), ["auc", "acc"]),
        "line": (make(table.assign(y=table["x"]), "y", name="line", kind="regression"), ["rmse"]),
    }
    tasks = [
        karat.Task(name, each, split=split, metrics=metrics, corruptions=views, draws=2)
        for name, (each, metrics) in data.items()
    ]
    output = tmp_path_factory.mktemp("taco")
    return karat.evaluate(["onehot", "dummy"], tasks, output=output)


def test_taco_round_trip(taco_runs, tmp_path):
    files = export_results(taco_runs, "taco", tmp_path / "files")
    done = karat.import_results(tmp_path / "files", tmp_path / "out")
    assert [run.model for run in done.runs] == ["onehot", "dummy"] and not done.problems
    assert "confusion_halves_classification.csv" in done.notes[0]
    again = export_results(done.runs, "taco", tmp_path / "again")
    for path in again:
        one, other = (pd.read_csv(tmp_path / f / path.name, dtype=str) for f in ("files", "again"))
        pd.testing.assert_frame_equal(one, other)
    assert {path.name for path in files} - {path.name for path in again} == {
        "confusion_halves_classification.csv"
    }
    found = done.runs[0].scores()
    assert set(found["corruption"]) == {
        "",
        "noise_gaussian",
        "noise_gaussian+sign_flip",
        "sign_flip@0.5+noise_gaussian@0.25",
    }
    assert len(karat.robustness(done.runs))


def test_ulysses_round_trip(tmp_path):
    rng = np.random.default_rng(0)
    rows = []
    for task in ("F1A", "T1A"):
        for fold in range(6):
            job = (task, "own", fold // 3, fold, "", 0.0, 0)
            rows += [
                (*job, FINAL_EPOCH, "above_chance", rng.random()),
                (*job, FINAL_EPOCH, "logloss", 0.5),
            ]
            rows += [(*job, epoch, "loss_per_epoch_train", rng.random()) for epoch in (1, 2)]
            rows += [(*job, epoch, "loss_per_epoch_eval", rng.random()) for epoch in (1, 2)]
            rows += [(*job, epoch, "metric_per_epoch_eval", rng.random()) for epoch in (1, 2)]
    table = tidy(rows)
    export_results(table, "ulysses", tmp_path / "own")
    done = karat.import_results(tmp_path / "own", tmp_path / "out")
    (run,) = done.runs
    assert run.model == "own" and not done.problems and len(done.notes) == 2
    keys = ["task", "repeat", "fold", "epoch", "metric"]
    one, other = (
        t.sort_values(keys, ignore_index=True)[[*keys, "value"]] for t in (table, run.scores())
    )
    pd.testing.assert_frame_equal(one, other, check_dtype=False)
    only = put(
        tmp_path / "means" / "results_agg.json", (tmp_path / "own" / "results_agg.json").read_text()
    )
    (means,) = karat.import_results(only, tmp_path / "out").runs
    final = table[(table["metric"] == "above_chance") & (table["task"] == "F1A")]["value"]
    assert scores(means)["F1A", "above_chance"] == pytest.approx(final.mean(), rel=1e-12)


def test_unknown_formats(tmp_path):
    path = put(tmp_path / "x.csv", "a,b\n1,2\n")
    with pytest.raises(DataError, match=r"a, b\..*amlb: .*taco: "):
        karat.import_results(path, tmp_path / "out")
    with pytest.raises(DataError, match="taco: .* dataset, task, corruption") as error:
        karat.import_results(path, tmp_path / "out", system="taco")
    assert "amlb" not in str(error.value)
    (tmp_path / "empty").mkdir()
    for name in ("none.csv", "empty"):
        with pytest.raises(DataError, match=name):
            karat.import_results(tmp_path / name, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "raw", "match"),
    [
        ("x.json", b"{", "JSON"),
        ("x.json", b"[" * 100_000, "JSON"),
        ("x.json", b"\xff", "JSON"),
        ("x.csv", b"task,framework,fold,result\n\xff\xfe,,,\n", "UTF-8"),
        ("x.csv", b"task,framework,fold,result\n" + b"x" * 200_000, "line 2"),
        ("x.csv", b"", "columns none"),
        ("x.txt", b"hello", ".parquet"),
    ],
)
def test_broken_files(tmp_path, name, raw, match):
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(DataError, match=match):
        karat.import_results(tmp_path / name, tmp_path / "out")


def test_names_in_files_are_safe(tmp_path):
    content = json.loads(json.dumps(LATER))
    content["task_name"] = "../../../escape"
    content["scores"]["test"][0] |= {"antigravity:fly": 0.5}
    path = put(tmp_path / "in" / "x.json", content)
    (run,) = karat.import_results(path, tmp_path / "out", model="../up").runs
    inside = (tmp_path / "out").resolve()
    assert all(p.resolve().is_relative_to(inside) for p in run.folder.rglob("*"))
    assert {p.name for p in tmp_path.iterdir()} == {"in", "out"}
    assert ("../../../escape", "acc") in scores(run) and run.model == "../up"


def test_imported_runs_on_the_leaderboard(taco_runs, tmp_path):
    text = "dataset,task,corruption,severity,model,metric,value\n"
    text += "halves,classification,clean,0.0,theirs,AUC,0.999\n"
    text += "halves,classification,clean,0.0,theirs,unheard,3\n"
    text += "line,regression,clean,0.0,theirs,RMSE,0.0\n"
    done = karat.import_results(put(tmp_path / "m.csv", text), tmp_path / "out")
    assert len(done.notes) == 1 and "unheard" in done.notes[0]
    board = karat.leaderboard([*taco_runs, *done.runs])
    assert board.loc["theirs", "halves"] == 0.999 and board.loc["theirs", "rank"] == 1.0
    path = karat.report([*taco_runs, *done.runs], tmp_path / "report.html")
    assert "theirs" in Path(path).read_text(encoding="utf-8")


def test_imported_runs_have_no_predictions(taco_runs, tmp_path):
    folder = tmp_path / "out"
    export_results(taco_runs, "taco", tmp_path / "files")
    one, other = karat.import_results(tmp_path / "files", folder).runs
    with pytest.raises(DataError, match=r"taco \(files\)"):
        karat.rescore(one)
    found = karat.compare_to_history(one, with_=[other.folder])
    ranks = found.ranks.set_index(["task", "metric"])["rank"]
    assert ranks["halves", "auc"] == 1
    assert karat.compare_to_history(taco_runs[0], with_=[other.folder]).notes


HEAD = (
    "model,dataset,text_encoder,image_encoder,size,fold,status,metric,test_score,test_error,"
    "train_time_per_1k_s,inference_time_per_1k_s,n_train,n_test,error\n"
)


def multabench(folder, model: str = "Forest", encoder: str = "e5-small", size: str = "10k"):
    """Write a file of three tasks; the last fold of the first task has failed."""
    start = f"{model},{{}},{encoder},,{size},{{}},"
    rows = [
        start.format("BIN_A", 0) + "ok,roc_auc,0.75,0.25,0.5,0.25,2000.0,1000.0,",
        start.format("BIN_A", 4) + "error,,,,,,,,out of memory",
        start.format("MUL_B", 0) + "ok,log_loss,-0.5,0.5,0.5,0.25,2000.0,1000.0,",
        start.format("REG_C", 3) + "ok,root_mean_squared_error,-2.5,2.5,0.5,0.25,2000,1000,",
    ]
    return put(folder / f"{model}.csv", HEAD + "\n".join(rows) + "\n")


def test_multabench(tmp_path):
    (run,) = karat.import_results(multabench(tmp_path), tmp_path / "out").runs
    assert scores(run) == {
        ("BIN_A", "auc"): 0.75,
        ("MUL_B", "logloss"): 0.5,
        ("REG_C", "rmse"): 2.5,
    }
    assert run.about["imported"]["system"] == "multabench" and run.model == "Forest"
    records = {(record["task"], record["fold"]): record for record in run.records()}
    failed = records.pop(("BIN_A", 4))
    assert failed["status"] == "failed" and failed["info"] == "out of memory"
    # split k is fold k % 3 of repeat k // 3
    assert {key: each["repeat"] for key, each in records.items()} == {
        ("BIN_A", 0): 0,
        ("MUL_B", 0): 0,
        ("REG_C", 3): 1,
    }
    first = records["BIN_A", 0]
    assert (first["train_questions"], first["questions"]) == (2000, 1000)
    assert (first["fit_seconds"], first["predict_seconds"], first["seconds"]) == (1.0, 0.25, 1.25)
    kinds = {task["name"]: (task["kind"], task["type"]) for task in run.about["tasks"]}
    assert kinds["BIN_A"] == ("classification", "binary")
    assert kinds["REG_C"] == ("regression", "regression")


def test_a_failed_job_before_any_score_has_the_metric_of_its_task(tmp_path):
    multabench(tmp_path)
    put(tmp_path / "Other.csv", HEAD + "Other,BIN_A,e5-small,,10k,0,error,,,,,,,,no memory\n")
    runs = {run.model: run for run in karat.import_results(tmp_path, tmp_path / "out").runs}
    (task,) = runs["Other"].about["tasks"]
    assert task["metrics"] == ["auc"] and runs["Other"].records()[0]["status"] == "failed"
    assert karat.leaderboard(list(runs.values())).loc["Other", "failed"] == 1


def test_encoders_and_sizes_of_multabench_are_not_mixed(tmp_path):
    multabench(tmp_path / "models")
    multabench(tmp_path / "models_tar", encoder="e5-small-tar")
    multabench(tmp_path / "models_large", encoder="e5-large", size="full")
    table = read_scores(tmp_path)
    tasks = table.groupby("model")["task"].agg(set).to_dict()
    plain = {"BIN_A", "MUL_B", "REG_C"}
    assert tasks == {
        "Forest": plain,
        "Forest (TAR-S)": plain,
        "Forest (Frozen-L)": {f"{task} (full)" for task in plain},
    }


def test_a_json_file_per_run_of_multabench(tmp_path):
    row = {"model": "Forest", "dataset": "BIN_A", "fold": 1, "status": "ok", "metric": "roc_auc"}
    put(tmp_path / "a.json", json.dumps({**row, "test_score": 0.75, "test_error": 0.25}))
    put(tmp_path / "b.json", json.dumps({**row, "fold": 2, "test_score": 0.5, "test_error": 0.5}))
    table = read_scores(tmp_path, system="multabench")
    assert dict(zip(table["fold"], table["value"], strict=True)) == {1: 0.75, 2: 0.5}


def tabarena_table() -> pd.DataFrame:
    """Return three methods; the last is imputed on the second dataset."""
    return pd.DataFrame(
        {
            "dataset": ["a", "a", "a", "a", "b", "b", "b"],
            "fold": [0, 4, 0, 4, 0, 0, 0],
            "method": ["RF", "RF", "GBM (tuned)", "GBM (tuned)", "RF", "GBM (tuned)", "X"],
            "metric_error": [0.25, 0.5, 0.125, 0.25, 2.0, 3.0, 9.0],
            "metric": ["roc_auc"] * 4 + ["rmse"] * 3,
            "problem_type": ["binary"] * 4 + ["regression"] * 3,
            "time_train_s": [1.0] * 7,
            "time_infer_s": [0.5] * 7,
            "imputed": [False] * 6 + [True],
        }
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_tabarena(tmp_path, suffix):
    file = tmp_path / f"results.{suffix}"
    if suffix == "csv":
        tabarena_table().to_csv(file, index=False)
    else:
        pytest.importorskip("pyarrow")
        tabarena_table().to_parquet(file)
    imported = karat.import_results(file, tmp_path / "out")
    runs = {run.model: run for run in imported.runs}
    assert set(runs) == {"RF", "GBM (tuned)"} and "imputed" in imported.notes[0]
    table = runs["RF"].scores()
    assert table["value"].tolist() == [0.75, 0.5, 2.0] and table["repeat"].tolist() == [0, 1, 0]
    assert runs["RF"].records()[0]["seconds"] == 1.5
    board = karat.leaderboard(imported.runs)
    assert board.loc["GBM (tuned)", "a"] == 0.8125 and board.loc["RF", "b"] == 2.0


def test_the_table_of_bencheval_has_no_metric(tmp_path):
    table = pd.DataFrame(
        {"method": ["A", "B"], "task": ["t", "t"], "seed": [0, 0], "metric_error": [0.1, 0.2]}
    )
    table.to_csv(tmp_path / "results.csv", index=False)
    found = read_scores(tmp_path / "results.csv")
    assert set(found["metric"]) == {"metric_error"}
    assert karat.leaderboard(found).index.tolist() == ["A", "B"]
    imported = karat.import_results(tmp_path / "results.csv", tmp_path / "out")
    assert karat.leaderboard(imported.runs).index.tolist() == ["A", "B"]


def test_an_unknown_metric_keeps_its_error(tmp_path):
    table = tabarena_table().iloc[[0, 2]].assign(metric="gini:odd")
    table.to_csv(tmp_path / "results.csv", index=False)
    found = read_scores(tmp_path / "results.csv")
    assert set(found["metric"]) == {"gini:odd_error"} and found["value"].tolist() == [0.25, 0.125]
    assert karat.leaderboard(found).index[0] == "GBM (tuned)"


@pytest.mark.parametrize(
    ("column", "value", "named"),
    [("fold", "x", "fold"), ("method", "", "model"), ("metric_error", "bad", "metric_error")],
)
def test_a_wrong_cell_is_reported_with_its_line(tmp_path, column, value, named):
    table = tabarena_table().astype(object)
    table.loc[1, column] = value
    file = tmp_path / "results.csv"
    table.to_csv(file, index=False)
    with pytest.raises(DataError, match=f"line 3.*{named}"):
        karat.import_results(file, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_leaderboard_reads_result_files(tmp_path, cli):
    tabarena_table().to_csv(tmp_path / "results.csv", index=False)
    code, out, err = cli("leaderboard", tmp_path, "--format", "csv")
    assert code == 0 and "GBM (tuned)" in out and "imputed" in err
    put(tmp_path / "other" / "odd.csv", "x,y\n1,2\n")
    code, out, err = cli("leaderboard", tmp_path / "other")
    assert code == 2 and "odd.csv" in err


def test_duplicate_rows_use_the_last(tmp_path):
    table = pd.concat(
        [tabarena_table().iloc[[0]], tabarena_table().iloc[[0]].assign(metric_error=0.5)]
    )
    table.to_csv(tmp_path / "results.csv", index=False)
    imported = karat.import_results(tmp_path / "results.csv", tmp_path / "out")
    assert imported.runs[0].scores()["value"].tolist() == [0.5] and imported.notes


def test_few_messages_about_many_other_files(tmp_path):
    for number in range(30):
        put(tmp_path / f"{number}.csv", "x,y\n1,2\n")
    with pytest.raises(DataError) as error:
        read_scores(tmp_path)
    assert len(str(error.value).splitlines()) == 12 and "20 more" in str(error.value)
