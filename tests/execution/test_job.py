"""One job: its record, its files and its errors."""

from __future__ import annotations

import json
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix

import karat
from karat.core.dataset import Dataset
from karat.core.predictions import Predictions
from karat.core.task import Task
from karat.errors import Declined, MissingExtra
from karat.execution.job import Job, RunningJob, run_job
from karat.execution.job_failure import INFO_LENGTH, JobFailure
from karat.execution.object_store import ObjectStore
from karat.metrics.metric import score
from karat.models.adapters import adapt
from karat.models.tables.one_hot_table import OneHotTable
from karat.models.vector_files import VectorFile

METADATA = ("framework", "task", "dataset", "fold", "seed", "metric", "metrics", "classes")


@pytest.fixture
def outcome(tmp_path):
    """Run one fold of a task with a model."""

    def go(model, task, fold=0, seed=42, **changes):
        store = ObjectStore(tmp_path)
        store.put("model", adapt(model))
        store.put("task", task)
        store.put("data", task.dataset)
        return run_job(Job("model", "task", "data", fold, seed, "spec", "", **changes), store)

    return go


def test_the_record_of_a_job(outcome, two_classes):
    record = outcome(OneHotTable(), two_classes(kind="classification"), fold=1).record
    expected = {"spec": "spec", "model": "OneHotTable", "task": "halves", "status": "ok"}
    expected |= {"kind": "classification", "fold": 1, "seed": 43}
    assert {name: record[name] for name in expected} == expected
    assert (record["metric"], record["repeat"], record["dimensions"]) == ("acc", 0, 1)
    assert (record["train_questions"], record["questions"]) == (10, 10)
    (view,) = record["views"]
    assert (view["corruption"], view["severity"], view["coverage"]) == ("", 0.0, 1.0)
    assert view["scores"]["auc"] == 1.0
    for phase in ("load", "fit", "predict", "score"):
        assert 0 <= record[f"{phase}_seconds"] <= record["seconds"]
    assert record["peak_memory_mb"] > 1


def test_predictions_of_corrupted_views_are_optional(outcome, two_classes):
    views = {"corruptions": {"noise_gaussian": [0.0, 9.0]}, "draws": 2}
    whole = outcome(OneHotTable(), two_classes(**views))
    few = outcome(OneHotTable(), two_classes(**views, keep_predictions="clean"))
    assert set(few.files) == {name for name in whole.files if "/" not in name}
    assert few.files["predictions.csv"] == whole.files["predictions.csv"]
    for kept, view in zip(whole.record["views"], few.record["views"], strict=True):
        assert view["scores"] == kept["scores"] and "stored" not in kept
    answers = Predictions.from_csv(
        whole.files["noise_gaussian@9#1/predictions.csv"],
        **{"answers": "classes", "truths": "classes", "classes": ["high", "low"]},
    )
    last = few.record["views"][-1]
    assert last["stored"] is False and last["draw"] == 1
    labels = ["high", "low"]
    counts = confusion_matrix(answers.target, answers.predictions, labels=labels)
    wanted = [[t, p, int(counts[i, j])] for i, t in enumerate(labels) for j, p in enumerate(labels)]
    assert last["confusion"] == [each for each in wanted if each[2]]


def test_numbers_have_no_confusion_matrix(outcome, line):
    task = line(corruptions={"noise_gaussian": [1.0]}, keep_predictions="clean")
    assert outcome(OneHotTable(), task).record["views"][1]["confusion"] == []


def test_scores_can_be_computed_from_the_files_alone(outcome, two_classes):
    done = outcome(OneHotTable(), two_classes())
    about = json.loads(done.files["metadata.json"])
    assert set(METADATA) <= about.keys()
    kinds = {name: about[name] for name in ("answers", "truths", "classes")}
    read = Predictions.from_csv(done.files["predictions.csv"], **kinds)
    for name, value in done.record["views"][0]["scores"].items():
        assert score(name, read) == (value, "")


def test_each_view_has_its_own_files(outcome, two_classes):
    task = two_classes(corruptions={"noise_gaussian": [0.0, 9.0]})
    done = outcome(OneHotTable(), task)
    assert [v["severity"] for v in done.record["views"]] == [0.0, 0.0, 9.0]
    assert {f for f in done.files if f.endswith("predictions.csv")} == {
        "predictions.csv",
        "noise_gaussian@0/predictions.csv",
        "noise_gaussian@9/predictions.csv",
    }
    assert done.files["noise_gaussian@0/predictions.csv"] == done.files["predictions.csv"]


def test_items_without_vectors_are_listed(outcome):
    frame = pd.DataFrame({"e": list("abcd"), "y": list("xyxy")})
    data = Dataset.from_columns(frame, ["e"], "y", modality="entity")
    split = {"use": "fixed", "test": [2, 3]}
    task = Task("t", data, split=split, metrics=["acc"], missing="penalize")
    known = {"a": [0.0, 1.0], "b": [1.0, 0.0], "c": [0.0, 1.0]}
    done = outcome(known, task)
    assert done.files["missing.txt"] == "d\n"
    assert done.record["views"][0]["coverage"] == 0.5


class Learner(BaseEstimator):
    """Has a history with values that JSON cannot represent."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y):
        self.history_ = [
            {"epoch": np.int64(1), "metric": "loss", "value": np.float32(0.5)},
            {"epoch": 2, "metric": "loss", "value": float("nan")},
        ]
        return self

    def predict(self, X):
        return np.full(len(X), float(self.random_state))


def test_the_model_gets_seed_plus_fold_and_its_history_is_recorded(outcome, line):
    tested = []
    for fold in (0, 1):
        done = outcome(Learner(), line(), fold, seed=7)
        assert done.record["seed"] == 7 + fold
        rows = [row.split(",") for row in done.files["predictions.csv"].splitlines()[1:]]
        assert {row[0] for row in rows} == {f"{7.0 + fold}"}
        tested += [float(row[1]) for row in rows]
    assert sorted(tested) == [2.0 * i for i in range(20)]  # the split does not depend on the fold
    assert done.record["history"] == [
        {"epoch": 1, "metric": "loss", "value": 0.5},
        {"epoch": 2, "metric": "loss", "value": None},
    ]
    json.dumps(done.record, allow_nan=False)


class Encoder:
    """Must be fitted, so that it runs inside the job; ``transform`` is a given function."""

    def __init__(self, transform):
        self.transform = transform

    def fit(self, items, y=None):
        return self


def raises(error):
    def transform(items):
        raise error

    return Encoder(transform)


class Panic(BaseException):
    """Like the exceptions of Rust libraries."""


RAISES = raises(ValueError("first line\nsecond line"))


@pytest.mark.parametrize(
    "model, info",
    [
        (Encoder(lambda items: np.zeros((len(items) - 1, 2))), "ContractError: "),
        (Encoder(lambda items: [["a", "b"]] * len(items)), "ContractError: "),
        (RAISES, "ValueError: first line second line"),
        (raises(SystemExit("that is all")), "SystemExit: that is all"),
        (raises(Panic("index out of bounds")), "Panic: index out of bounds"),
    ],
)
def test_a_broken_encoder_is_a_failed_row_with_its_traceback(outcome, two_classes, model, info):
    done = outcome(model, two_classes())
    assert done.record["status"] == "failed"
    assert done.record["info"].startswith(info)
    assert done.record["views"] == []
    assert "Traceback (most recent call last)" in done.files["log.txt"]
    assert "predictions.csv" not in done.files


def test_a_failed_job_has_repeat_and_costs_and_ctrl_c_is_not_a_failure(outcome, two_classes):
    task = two_classes(split={"use": "kfold", "folds": 2, "repeats": 2})
    record = outcome(RAISES, task, fold=3).record
    assert (record["repeat"], record["questions"]) == (1, 10)
    assert record["seconds"] > 0
    with pytest.raises(KeyboardInterrupt):
        outcome(raises(KeyboardInterrupt()), two_classes())


@pytest.mark.parametrize("error", [Declined("no tables"), MissingExtra("skrub", "tables")])
def test_a_declined_job_is_not_a_failure(outcome, two_classes, error):
    record = outcome(raises(error), two_classes()).record
    assert (record["status"], record["info"]) == ("declined", str(error))


def test_the_log_has_the_whole_of_a_long_message(outcome, two_classes):
    done = outcome(raises(ValueError("word " * 100 + "end")), two_classes())
    assert len(done.record["info"]) == INFO_LENGTH
    assert done.record["info"].endswith("…")
    assert "word end" in done.files["log.txt"]


def fragile(items):
    if items.isna().to_numpy().any():
        sys.exit("empty cells")
    return items.to_numpy(dtype=float)


def test_a_failed_view_does_not_affect_the_others(outcome, two_classes):
    task = two_classes(corruptions={"missingness_mcar": [0.9], "noise_gaussian": [0.1]})
    done = outcome(Encoder(fragile), task)
    assert [v["status"] for v in done.record["views"]] == ["ok", "failed", "ok"]
    assert done.record["status"] == "failed"
    assert done.record["info"] == "missingness_mcar@0.9: SystemExit: empty cells"
    assert done.record["views"][1]["scores"] == {}
    assert done.record["views"][0]["scores"]["acc"] == 1.0
    assert "Traceback" in done.files["log.txt"]


def test_output_and_warnings_go_to_the_log(outcome, two_classes, capsys):
    def talks(items):
        print("hello")
        print("there", file=sys.stderr)
        warnings.warn("mind the gap", stacklevel=1)
        return np.zeros((len(items), 1))

    done = outcome(Encoder(talks), two_classes())
    assert done.record["status"] == "ok"
    for text in ("hello", "there", "UserWarning: mind the gap"):
        assert text in done.files["log.txt"]
    assert capsys.readouterr() == ("", "")


def test_a_metric_without_a_value_has_a_reason(outcome, line):
    record = outcome(Learner(), line(metrics=["rmse", "acc"])).record
    (view,) = record["views"]
    assert record["status"] == "ok"
    assert view["scores"]["acc"] is None
    assert "acc" in view["reasons"]["acc"]


def test_an_error_in_precomputed_vectors_fails_the_job(outcome, two_classes):
    try:
        raise ValueError("no\nmemory")
    except ValueError as error:
        broken = JobFailure.by(error)
    done = outcome(OneHotTable(), two_classes(), fold=1, broken=broken)
    assert (done.record["status"], done.record["info"]) == ("failed", "ValueError: no memory")
    assert done.files["log.txt"].startswith("Traceback")
    assert done.record["questions"] == 10


def test_targets_are_hidden_if_test_rows_are_train_rows(outcome, two_classes):
    class Supervised(Encoder):
        def fit(self, items, y=None):
            assert y is None, "the target is visible"
            return self

    task = two_classes(split="all", probe={"use": "trained", "head": "kmeans"}, metrics=["ari"])
    record = outcome(Supervised(lambda items: items.to_numpy(dtype=float)), task).record
    assert record["info"] == ""
    assert record["views"][0]["scores"]["ari"] == 1.0


def test_jobs_share_a_fold_unless_code_of_a_user_may_change_it(tmp_path, two_classes):
    (tmp_path / "vectors.txt").write_text("a 1.0 2.0\n")
    task, store = two_classes(kind="classification"), ObjectStore(tmp_path)
    store.put("model", adapt(VectorFile(str(tmp_path / "vectors.txt"))))
    store.put("task", task)
    store.put("data", task.dataset)

    def load(fold, vectors):
        job = Job("model", "task", "data", fold, 42, "spec", "", vectors=vectors)
        return RunningJob(job, store)._load()[1:]

    train, test = load(0, "stored")
    assert load(0, "stored")[0] is train and load(0, "stored")[1] is test
    assert load(1, "stored")[0] is not train
    own = load(1, None)
    assert own[0] is not load(1, None)[0] is not load(1, "stored")[0]
    assert own[0].questions.equals(load(1, "stored")[0].questions)


@pytest.mark.parametrize("workers", [0, 1])
def test_lone_surrogates_of_a_model_become_escapes(two_classes, tmp_path, workers):
    class Odd:  # local, so that workers need not import this file
        def fit(self, items, y=None):
            print("printed \udc80")
            raise ValueError("raised \udc81")

        def transform(self, items):
            return items

    model = adapt(Odd(), "odd")
    (run,) = karat.evaluate(
        [model], [two_classes()], output=tmp_path, workers=workers, only=karat.Only(folds=[0])
    )
    (record,) = run.records()
    assert (record["status"], record["info"]) == ("failed", "ValueError: raised \\udc81")
    text = run.log(record).read_text(encoding="utf-8")
    assert "printed \\udc80" in text and "Traceback" in text
    assert run.results()["info"].tolist() == [record["info"]]
