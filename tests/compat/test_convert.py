"""Import of results of MTEB, TabEB, TACO and Ulysses SentEval, and invalid files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import karat
from karat.compat.convert import export_results
from karat.errors import DataError
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
        *("", "noise_gaussian", "noise_gaussian+sign_flip", "sign_flip@0.5+noise_gaussian@0.25")
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
