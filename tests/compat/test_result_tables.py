"""Import of the result tables of MulTaBench and TabArena."""

from __future__ import annotations

import json

import pandas as pd
import pytest

import karat
from karat.compat.convert import read_scores
from karat.errors import DataError

from .test_convert import put, scores

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
