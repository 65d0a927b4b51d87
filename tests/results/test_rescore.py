"""Recomputed scores are exactly equal; metrics can be added; damaged files are reported."""

from __future__ import annotations

import functools
import json
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import log_loss

import karat
from karat.errors import DataError, DefinitionError

VIEWS = {"noise_gaussian": [0.5], "missingness_mcar": [0.2]}


def table_tasks() -> list[karat.Task]:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(60, 2)), columns=["a", "b"])
    three = table.assign(y=np.array(["NA", "no, really", "True"], dtype=object)[np.arange(60) % 3])
    half = table.assign(y=np.where(table["a"] > 0, "yes", "no"))
    entity = table.assign(y=np.arange(60) // 2)
    make, split = karat.Dataset.from_table, {"use": "kfold", "folds": 2}
    odd = table.assign(y=np.arange(60) < 5)
    of = {
        "three": make(three, "y", name="three"),
        "half": make(half, "y", name="half"),
        "line": make(table.assign(y=3 * table["a"]), "y", name="line", kind="regression"),
        "pairs": make(entity, "y", name="pairs", kind="classification"),
        "odd": make(odd, "y", name="odd", kind="classification"),
    }
    outliers = {"use": "trained", "head": "knn-distance"}
    views = {"split": split, "corruptions": VIEWS}
    return [
        karat.Task("three", of["three"], metrics=["acc", "logloss"], **views),
        karat.Task("half", of["half"], metrics=["auc", "acc"], draws=2, **views),
        karat.Task("line", of["line"], split=split, metrics=["rmse", "r2"]),
        karat.Task("groups", of["three"], split="all", metrics=["v_measure", "ari"]),
        karat.Task("pairs", of["pairs"], probe="duplicates", split="all", metrics=["auc"]),
        karat.Task("odd", of["odd"], probe=outliers, split="all", metrics=["pr_auc"]),
    ]


def entity_tasks(missing: str) -> list[karat.Task]:
    ids = [f"entity {i}" for i in range(12)]
    pairs = pd.DataFrame({"a": ids, "b": np.roll(ids, 1), "near": np.linspace(0, 1, 12)})
    pairs["main"] = ["first"] * 6 + ["second"] * 6
    make = functools.partial(karat.Dataset.from_columns, modality="entity")
    likes = make(pairs, ["a", "b"], "near", name="p", kind="regression", group="main")
    quads = pd.DataFrame({f: np.roll(ids, i) for i, f in enumerate("abcd")})
    quads = make(quads, ["a", "b", "c"], "d", name="q", kind="items")
    search = pd.DataFrame({"query": ids * 2, "answer": [*np.roll(ids, 1), *np.roll(ids, 2)]})
    search = make(search, ["query"], "answer", name="s", kind="items")
    ranked = ["hits@2", "mrr", "hits@2_covered"]
    near = ["kendall", "spearman", "kendall_covered"]
    more = {"split": "all", "missing": missing}
    return [
        karat.Task("pairs", likes, probe="similarity", metrics=near, **more),
        karat.Task("analogies", quads, probe="analogy", metrics=ranked, **more),
        karat.Task("search", search, probe="nearest", metrics=["map", "mrr", "recall@2"], **more),
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> karat.Run:
    (run,) = karat.evaluate("onehot", table_tasks(), output=tmp_path_factory.mktemp("runs"))
    assert set(run.results()["status"]) == {"ok"}
    return run


@pytest.fixture
def run(made, tmp_path) -> karat.Run:
    shutil.copytree(made.folder, tmp_path / "in" / made.folder.name)
    return karat.Run.open(tmp_path / "in" / made.folder.name)


def change_record(run: karat.Run, name: str, change) -> None:
    path = run.folder / "jobs" / name
    record = json.loads(path.read_text())
    change(record)
    path.write_text(json.dumps(record))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_scores_are_equal_and_nothing_is_written(run):
    before = contents(run.folder.parent)
    done = karat.rescore(run.folder)
    # three: 2 folds × 3 views × 2; half: 2 × (1 + 2 × 2) × 2; line: 4; the rest: 4
    assert len(done.scores) == 12 + 20 + 4 + 4
    assert set(run.predictions("three").target) == {"NA", "no, really", "True"}
    assert (done.scores["before"] == done.scores["value"]).all()
    assert not len(done.differences) and not done.problems and not done.notes
    assert contents(run.folder.parent) == before


class SinglePrecision(ClassifierMixin, BaseEstimator):
    """A classifier that is always certain of the first class, in float32."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])

    def predict_proba(self, X):
        return np.tile(np.array([[1, 0]], np.float32), (len(X), 1))


def test_log_loss_of_single_precision_probabilities(tmp_path):
    table = pd.DataFrame({"x": np.arange(20.0), "y": list("ab") * 10})
    data = karat.Dataset.from_table(table, "y", name="half")
    split = {"use": "kfold", "folds": 2}
    task = karat.Task("half", data, split=split, metrics=["logloss", "brier"])
    (run,) = karat.evaluate(SinglePrecision(), task, output=tmp_path)
    found = run.predictions("half")
    assert found.precision == "float32"
    theirs = log_loss(found.target, found.probabilities)
    assert theirs == pytest.approx(15.9424 / 2, abs=1e-4)
    assert run.results()["logloss"].tolist() == pytest.approx([theirs] * 2)
    assert not len(karat.rescore(run).differences)
    path = run.folder / "predictions" / "half" / "1" / "metadata.json"
    path.write_text(path.read_text().replace("float32", "float8"))
    (problem,) = karat.rescore(run).problems
    assert problem.startswith(str(path))


@pytest.mark.parametrize("missing", ["ignore", "penalize"])
def test_scores_with_missing_entities(tmp_path, missing):
    rng = np.random.default_rng(1)
    known = {f"entity {i}": rng.normal(size=4) for i in range(10)}
    (run,) = karat.evaluate({"vectors": known}, entity_tasks(missing), output=tmp_path)
    done = karat.rescore(run)
    assert (run.results()["coverage"] < 1).all()
    assert len(done.scores) == 9 and done.scores["value"].notna().all()
    assert not len(done.differences) and not done.problems


def test_reason_of_a_missing_value(tmp_path):
    table = pd.DataFrame({"x": np.arange(20.0), "y": ["a"] * 19 + ["b"]})
    data = karat.Dataset.from_table(table, "y", name="rare")
    task = karat.Task("rare", data, split={"use": "kfold", "folds": 5}, metrics=["acc", "auc"])
    (run,) = karat.evaluate("dummy", task, output=tmp_path)
    old = [view["reasons"] for record in run.records() for view in record["views"]]
    assert any("auc" in reasons for reasons in old)
    done = karat.rescore(run, output=tmp_path / "new")
    assert not len(done.differences)
    assert done.scores.loc[done.scores["value"].isna(), "why"].str.contains("auc").all()
    new = [view["reasons"] for record in done.records for view in record["views"]]
    assert new == old


def test_added_metrics(run, tmp_path):
    done = karat.rescore(run, ["balacc", "mae"], output=tmp_path / "out")
    assert done.added == ["balacc", "mae"] and not len(done.differences)
    assert any(note.startswith("line: ") and "balacc" in note for note in done.notes)
    (folder,) = (tmp_path / "out").iterdir()
    new = karat.Run.open(folder)
    table = new.results()
    line = table[table["task"] == "line"]
    assert line["mae"].notna().all() and line["balacc"].isna().all()
    assert line["info"].str.contains("balacc").all()
    assert (line["status"] == "ok").all()
    answers = new.predictions("line", 0)
    by_hand = np.abs(answers.predictions - answers.target).mean()
    assert line[line["fold"] == 0]["mae"].iloc[0] == by_hand
    metrics = {task["name"]: task["metrics"] for task in new.about["tasks"]}
    assert metrics["line"] == ["rmse", "r2", "mae"]
    assert new.about["rescored"]["run"] == run.folder.name


def test_new_run_folder_is_readable(run, tmp_path):
    karat.rescore(run, "balacc", output=tmp_path / "out")
    old, new = karat.leaderboard(run.folder), karat.leaderboard(tmp_path / "out")
    tasks = ["three", "half", "line", "groups", "pairs"]
    assert old[tasks].equals(new[tasks])
    board = karat.leaderboard(tmp_path / "out", metrics={"half": "balacc"})
    mean = karat.rescore(run, "balacc").scores.query("task == 'half' and metric == 'balacc'")
    mean = mean[mean["view"] == "clean"]["value"].mean()
    assert board["half"].iloc[0] == mean
    (folder,) = (tmp_path / "out").iterdir()
    assert not len(karat.rescore(folder).differences)
    found = karat.compare_to_history(run, with_=[folder])
    both = found.values.pivot(index=["task", "metric"], columns="run", values="value").dropna()
    assert both.shape[1] == 2 and (both.iloc[:, 0] == both.iloc[:, 1]).all() and len(both)


def test_unregistered_metrics_are_not_recomputed_or_imported(run):
    with pytest.raises(DefinitionError, match='"acc"'):
        karat.rescore(run, ["acccc"])
    added = {"antigravity:fly": 0.5, "ours": 0.25}
    change_record(run, "line.0.json", lambda record: record["views"][0]["scores"].update(added))
    done = karat.rescore(run)
    assert "antigravity" not in sys.modules
    assert not len(done.differences)
    assert [note.partition(" ")[0] for note in done.notes] == ["antigravity:fly", "ours"]
    values = done.scores.set_index(["task", "fold", "metric"])["value"]
    assert np.array_equal(values.loc[[("line", 0, "ours")]], [0.25])


def edit(run: karat.Run, change, task: str = "half", view: str = "") -> Path:
    path = run.folder / "predictions" / task / "0" / view / "predictions.csv"
    path.write_bytes(change(path.read_bytes()))
    return path


def line(number: int, new: bytes):
    def change(raw: bytes) -> bytes:
        lines = raw.split(b"\n")
        lines[number - 1] = new
        return b"\n".join(lines)

    return change


DAMAGE = {
    "cells": (line(4, b"0.5,0.5,yes"), "line 4"),
    "header": (lambda raw: raw.replace(b"no,yes,", b"no,maybe,", 1), "line 1"),
    "nothing": (lambda raw: raw.replace(b"predictions,truth", b"a,b", 1), ""),
    "sum": (line(3, b"0.5,0.6,yes,yes"), r"line 3: .*1\.1"),
    "below 0": (line(3, b"-0.5,1.5,yes,yes"), "line 3"),
    "answer": (line(5, b"0.5,0.5,maybe,yes"), 'line 5: .*"maybe"'),
    "truth": (line(5, b"0.5,0.5,yes,Yes"), 'line 5: .*"Yes"'),
    "number": (line(6, b"0.5,half,yes,yes"), 'line 6: .*"half"'),
    "missing": (lambda raw: b"\n".join(raw.split(b"\n")[:-2]) + b"\n", "30 .*29"),
    "twice": (lambda raw: raw + raw.split(b"\n")[1] + b"\n", "30 .*31"),
    "bytes": (line(7, b"0.5,0.5,\xff\xfe,yes"), "line 7"),
    "long": (line(8, b"0.5,0.5," + b"x" * 200_000 + b",yes"), "line 8"),
    "quote": (line(9, b'0.5,0.5,"yes,yes'), "line 9"),
    "empty": (lambda raw: b"", ""),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_file_fails_its_fold_only(run, tmp_path, name):
    change, message = DAMAGE[name]
    path = edit(run, change)
    done = karat.rescore(run, "balacc", output=tmp_path / "out")
    (problem,) = done.problems
    assert str(path) in problem
    assert re.search(message, problem)
    (folder,) = (tmp_path / "out").iterdir()
    new = karat.Run.open(folder)
    status = {(r["task"], r["fold"]): r["status"] for r in new.records()}
    assert status.pop(("half", 0)) == "failed" and set(status.values()) == {"ok"}
    failed = next(r for r in new.records() if r["status"] == "failed")
    assert failed["info"].startswith("predictions/half/0/predictions.csv") and not failed["views"]
    assert not list((folder / "predictions" / "half" / "0").rglob("*.csv"))
    assert int(karat.leaderboard(new)["failed"].iloc[0]) == 1
    lost = done.differences
    assert set(lost["task"]) == {"half"} and lost["value"].isna().all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda raw: raw.replace(b"key", b"wieght", 1), 'line 1: .*"weight"'),
        (lambda raw: raw + b"x\n", "31 rows for 30"),
        (line(4, b"1,2"), "line 4: expected 1 cells"),
    ],
)
def test_damaged_further_columns_fail_their_fold_too(run, change, message):
    path = run.folder / "predictions" / "half" / "0" / "rows.csv"
    path.write_bytes(change(path.read_bytes()))
    (problem,) = karat.rescore(run).problems
    assert str(path.parent) in problem and re.search(message, problem)


def test_damaged_view_fails_that_view_only(run, tmp_path):
    edit(run, lambda raw: b"", view="noise_gaussian@0.5")
    done = karat.rescore(run, output=tmp_path / "out")
    (folder,) = (tmp_path / "out").iterdir()
    record = next(r for r in karat.Run.open(folder).records() if r["status"] == "failed")
    assert record["info"].startswith("noise_gaussian@0.5: predictions/half/0/noise_gaussian@0.5")
    states = [view["status"] for view in record["views"]]
    assert states.count("failed") == 1 and states.count("ok") == 4
    assert not (folder / "predictions" / "half" / "0" / "noise_gaussian@0.5").exists()
    assert len(done.differences) == 2


def test_changed_score_is_a_difference(run):
    true = next(r for r in run.records() if (r["task"], r["fold"]) == ("line", 1))
    true = true["views"][0]["scores"]["rmse"]
    wrong = {"rmse": np.nextafter(true, 9)}
    change_record(run, "line.1.json", lambda record: record["views"][0]["scores"].update(wrong))
    (row,) = karat.rescore(run).differences.to_dict("records")
    assert (row["task"], row["fold"], row["metric"], row["value"]) == ("line", 1, "rmse", true)


@pytest.mark.parametrize(
    "facts", ["no json", "[]", '{"answers": "labels", "truths": "classes", "classes": []}']
)
def test_damaged_metadata(run, facts):
    path = run.folder / "predictions" / "half" / "1" / "metadata.json"
    path.write_text(facts)
    (problem,) = karat.rescore(run).problems
    assert problem.startswith(str(path))


def test_missing_predictions(run):
    path = run.folder / "predictions" / "line" / "0" / "predictions.csv"
    path.unlink()
    (problem,) = karat.rescore(run).problems
    assert str(path) in problem
    with pytest.raises(DataError, match="line, fold 7"):
        run.predictions("line", 7)


@pytest.mark.parametrize("wrong", [{"fold": "../../../x"}, {"fold": -1}, {"views": [7]}])
def test_invalid_record_is_an_error(run, tmp_path, wrong):
    change_record(run, "line.0.json", lambda record: record.update(wrong))
    with pytest.raises(DataError, match="jobs"):
        karat.rescore(run, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_runs_on_two_suites_have_different_names(two_classes, line, tmp_path):
    for name, task in (("one", two_classes()), ("two", line())):
        suite = karat.Suite(name, (task,))
        (run,) = karat.evaluate("onehot", suite, output=tmp_path / "ours")
        new = karat.rescore(run).write(tmp_path / "again")
        about = json.loads((new.folder / "run.json").read_text())
        (new.folder / "run.json").write_text(json.dumps({**about, "stamp": "20260101T000000"}))
        new.folder.rename(new.folder.with_name(f"onehot.{name}.default.local.20260101T000000"))
    board = karat.leaderboard(tmp_path / "again", pool="none")
    assert len(set(board.index)) == 2 and all(name.startswith("onehot (") for name in board.index)


def test_views_without_predictions_keep_their_scores(two_classes, tmp_path):
    task = two_classes(corruptions={"noise_gaussian": [9.0]}, keep_predictions="clean")
    (run,) = karat.evaluate("onehot", task, output=tmp_path / "runs")
    found = karat.rescore(run, metrics=["f1"])
    assert set(found.scores["view"]) == {"clean"} and not found.problems and len(found.notes) == 1
    new = found.write(tmp_path / "new").scores()
    noisy = new[new["corruption"] != ""]
    assert noisy["value"].tolist() == run.scores().query("corruption != ''")["value"].tolist()
    assert set(noisy["metric"]) == {"acc", "auc"}
    assert set(new[new["corruption"] == ""]["metric"]) == {"acc", "auc", "f1"}
    with pytest.raises(DataError, match="keep_predictions"):
        run.predictions("halves", 0, "noise_gaussian@9")
