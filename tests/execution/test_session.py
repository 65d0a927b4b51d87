"""Sessions: run folders, workers, failures, declined tasks, stopping and resuming."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

import karat
from karat.core import registry
from karat.errors import DataError, DefinitionError, Unavailable
from karat.execution import diagnostics
from karat.execution.progress import (
    Progress,
)
from karat.execution.session import Stopped
from karat.models.tabular_encoders import OneHotTable, RandomEncoder
from karat.results.load import status
from karat.results.run import Run


def predictions(contents):
    return {place: content for place, content in contents.items() if "predictions" in place[1]}


def records(run):
    return {(r["task"], r["fold"]): r for r in run.records()}


@pytest.fixture
def tasks(two_classes, line, words):
    noise = {"noise_gaussian": [0.5, 2.0]}
    repeats = {"use": "kfold", "folds": 2, "repeats": 2}
    return [two_classes(corruptions=noise), line(split=repeats), words()]


def test_the_same_bytes_with_one_worker_and_two_and_in_any_order(tasks, models, contents, tmp_path):
    given = {
        "noisy": models.Noisy(),
        "random": RandomEncoder(8),
        "logistic": LogisticRegression(),
        "onehot": OneHotTable(),
    }
    one = karat.evaluate(given, tasks, output=tmp_path / "one")
    two = karat.evaluate(given, tasks, output=tmp_path / "two", workers=2)
    assert contents(one) == contents(two)
    assert len(contents(one)) > 30
    turned = dict(reversed(given.items()))
    other = karat.evaluate(
        turned, tasks[::-1], output=karat.Output(tmp_path / "other", cache=False)
    )
    assert predictions(contents(one)) == predictions(contents(other))
    for run in other:
        first = next(r for r in one if r.model == run.model).scores()
        order = ["task", "repeat", "fold", "corruption", "severity", "metric"]
        pd.testing.assert_frame_equal(
            run.scores().sort_values(order, ignore_index=True),
            first.sort_values(order, ignore_index=True),
        )


def test_equal_data_with_two_names_has_different_folds(two_classes, contents, tmp_path):
    """Jobs once took the data of whichever task came last."""
    a, b = two_classes("a", data="first name"), two_classes("b", data="second name")
    (both,) = karat.evaluate(OneHotTable(), [a, b], output=tmp_path)
    (turned,) = karat.evaluate(OneHotTable(), [b, a], output=tmp_path / "turned")
    (alone,) = karat.evaluate(OneHotTable(), [a], output=tmp_path / "alone")
    made = [predictions(contents([run])) for run in (both, turned, alone)]
    assert made[0] == made[1] and made[0].items() >= made[2].items()
    about = json.loads((both.folder / "predictions/a/0/metadata.json").read_text())
    assert about["dataset"] == "first name"


def test_a_stateless_encoder_embeds_each_data_set_once(two_classes, line, tmp_path):
    seen = []

    def encode(items):
        seen.append(len(items))
        return items.to_numpy(dtype=float)

    many = {"use": "kfold", "folds": 5, "repeats": 3}
    tasks = [two_classes("a", split=many, data="same"), two_classes("b", data="same"), line()]
    karat.evaluate(encode, tasks, output=karat.Output(tmp_path, cache=False))
    assert seen == [20, 20]


@pytest.fixture(scope="module")
def troubled(two_classes, line, models, tmp_path_factory):
    """Return the runs of models in all kinds of trouble, and of one in none, with two workers."""
    repeats = two_classes("repeats", split={"use": "kfold", "folds": 2, "repeats": 2})
    lock = threading.Lock()

    def stateless(items):  # cannot be pickled either, and need not be: it embeds here
        with lock:
            return items.to_numpy(dtype=float)

    given = {
        "broken": models.Broken(),
        "dies": models.Dies(),
        "exits": models.Exits(),
        "locked": models.Locked(),
        "stateless": stateless,
        "onehot": OneHotTable(),
    }
    output = tmp_path_factory.mktemp("troubled")
    runs = karat.evaluate(given, [line(), repeats], output=output, workers=2)
    return dict(zip(given, runs, strict=True))


def test_an_encoder_that_fails_before_the_jobs_fails_every_job(troubled):
    broken, onehot = troubled["broken"], troubled["onehot"]
    assert {r["status"] for r in onehot.records()} == {"ok"}
    assert {r["task"] for r in broken.records()} == {"line", "repeats"}
    for record in broken.records():
        assert (record["status"], record["info"]) == ("failed", "ValueError: no such thing")
        log = broken.folder / "logs" / record["task"] / f"{record['fold']}.txt"
        text = log.read_text()
        assert text.startswith("Traceback (most recent call last)")
        assert 'raise ValueError("no such thing")' in text
    table = pd.read_csv(broken.folder / "scores" / "results.csv")
    assert table["info"].tolist() == ["ValueError: no such thing"] * 6
    assert table["result"].isna().all()


def test_a_dead_worker_fails_its_job_only(troubled):
    dies, exits, onehot = (troubled[name] for name in ("dies", "exits", "onehot"))
    assert {r["status"] for r in onehot.records()} == {"ok"}
    assert {r["info"] for r in exits.records()} == {"SystemExit: 4"}
    failed = [r for r in dies.records() if r["status"] == "failed"]
    assert len(failed) == 3  # row 0 is tested once in each repeat of each task
    for record in failed:
        assert record["info"] == "the worker ended with exit code 3"
        assert record["repeat"] == (record["fold"] // 2 if record["task"] == "repeats" else 0)
        assert record["seed"] == 42 + record["fold"]
        log = dies.folder / "logs" / record["task"] / f"{record['fold']}.txt"
        assert log.read_text() == "the worker ended with exit code 3\ngoodbye"
    assert len(dies.records()) == 6


def test_a_model_that_cannot_be_pickled_runs_in_this_process(troubled, models, line, tmp_path):
    for name in ("locked", "stateless", "onehot"):
        assert {r["status"] for r in troubled[name].records()} == {"ok"}
    # limits are enforced in workers, to which it cannot be sent
    limits = tmp_path / "limits.yaml"
    limits.write_text("constraints: {short: {max_runtime_seconds: 60}}")
    (limited,) = karat.evaluate(
        {"locked": models.Locked()},
        line(),
        output=tmp_path,
        workers=karat.Machines(constraint="short"),
        define=limits,
    )
    assert {r["status"] for r in limited.records()} == {"failed"}
    assert all("pickle" in r["info"] for r in limited.records())


@pytest.fixture
def unpatched(monkeypatch):
    """Restore what ``Patches`` replaces."""
    for name in ("decision_function", "predict"):
        monkeypatch.setattr(LogisticRegression, name, getattr(LogisticRegression, name))
    yield
    # the guard of this process remembers what it has found
    diagnostics.guard.__init__()


def _accuracy(run):
    return [record["views"][0]["scores"]["acc"] for record in run.records()]


def test_a_model_that_patches_a_library_does_not_change_the_others(
    two_classes, models, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (alone,) = karat.evaluate(OneHotTable(), two_classes(), output="alone", workers=1)
    given = {"patches": models.Patches(), "onehot": OneHotTable()}
    patches, onehot = karat.evaluate(given, two_classes(), output="both", workers=1)
    assert _accuracy(onehot) == _accuracy(alone) != _accuracy(patches)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["alone", "both"]
    assert all("LogisticRegression.predict" in str(r["replaced"]) for r in patches.records())
    assert not any(r["replaced"] for r in onehot.records())
    found = {(each.code, each.model) for each in karat.check_runs([patches, onehot])}
    assert [model for code, model in found if code == "KRT406"] == ["patches"]


def test_in_this_process_a_replaced_function_is_found_in_later_jobs(
    two_classes, models, tmp_path, monkeypatch, unpatched
):
    monkeypatch.chdir(tmp_path)
    given = {"patches": models.Patches(), "onehot": OneHotTable()}
    runs = karat.evaluate(given, two_classes(), output="out")
    assert os.getcwd() == str(tmp_path) and sys.path
    assert all(record["replaced"] for run in runs for record in run.records())


def test_records_that_are_removed_are_told_and_run_again(two_classes, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(Run, "write", lambda *_: None)
        with pytest.warns(karat.KaratWarning, match="records of finished jobs are gone"):
            (run,) = karat.evaluate(OneHotTable(), two_classes(), output=tmp_path)
    assert run.gone == len(run.about["tasks"][0]["folds"]) and run.records() == []
    jobs, (run,) = resumed(OneHotTable(), two_classes(), output=tmp_path)
    assert jobs and run.gone == 0


def test_a_model_that_removes_the_output_folder_costs_only_what_was_there(
    two_classes, line, models, contents, tmp_path
):
    output = tmp_path / "out"
    tasks, onehot = [two_classes(), line()], {"onehot": OneHotTable()}
    whole = karat.evaluate(onehot, tasks, output=tmp_path / "whole")
    with pytest.warns(karat.KaratWarning, match="removed files of .*--resume"):
        first, second = karat.evaluate(
            {"wipes": models.Wipes(str(output)), **onehot}, tasks, output=output
        )
    assert first.gone and not second.gone
    assert set(karat.leaderboard(output).index) == {"wipes", "onehot"}
    assert contents([second]) == contents(whole)


@pytest.fixture
def with_lost(two_classes):
    """Return a good task and one whose data cannot be used until they are repaired."""
    good = two_classes()

    def data():
        if not data.there:
            raise DataError("gone.csv is\nno table")
        return dataclasses.replace(good.dataset, name="late")

    data.there = False
    late = karat.Task("late", data, split={"use": "kfold", "folds": 3}, metrics=["acc"], folds=2)
    return [good, late], data


def test_a_task_with_unusable_data_fails_and_the_others_run(with_lost, tmp_path):
    tasks, _ = with_lost
    (run,) = karat.evaluate("onehot", tasks, output=tmp_path)
    table = run.results()
    assert table["status"].tolist() == ["ok", "ok", "failed", "failed"]
    assert table["fold"].tolist() == [0, 1, 0, 1]
    assert set(table["info"][2:]) == {"DataError: gone.csv is no table"}
    assert (run.folder / "logs" / "late" / "lost.txt").read_text() == "gone.csv is\nno table"
    board = karat.leaderboard([run, *karat.evaluate("dummy", tasks, output=tmp_path)])
    assert board["failed"].tolist() == [2, 2]
    (row,) = status(run.folder).to_dict("records")
    assert (row["planned"], row["ok"], row["failed"], row["left"]) == (4, 2, 2, 0)
    assert row["state"] == "finished"


def test_resume_runs_repaired_data_in_the_same_folder(with_lost, tmp_path):
    tasks, data = with_lost
    (run,) = karat.evaluate("onehot", tasks, output=tmp_path)
    data.there = True
    (again,) = karat.evaluate("onehot", tasks, output=tmp_path, resume=True)
    assert again.folder == run.folder
    assert again.results()["status"].tolist() == ["ok"] * 4


def test_unusable_data_of_all_tasks_are_an_error(with_lost, tmp_path):
    tasks, _ = with_lost
    with pytest.raises(DefinitionError, match="gone.csv is"):
        karat.evaluate("onehot", tasks[1], output=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_declined_task_has_rows_and_is_not_a_failure(words, two_classes, tmp_path):
    (run,) = karat.evaluate(OneHotTable(), [words(), two_classes()], output=tmp_path)
    table = pd.read_csv(run.folder / "scores" / "jobs.csv", keep_default_na=False)
    first = table[["task", "status", "fold", "result"]].iloc[0].tolist()
    assert first == ["words", "declined", 0, ""]
    assert "tables, not texts" in table["info"][0]
    # a row for every planned job
    folds = run.about["tasks"][0]["folds"]
    assert table["status"].tolist() == ["declined"] * len(folds) + ["ok", "ok"]
    board = karat.leaderboard([run])
    assert board["failed"].tolist() == [0]
    assert board["declined"].tolist() == [1]


class Finished(Progress):
    def __init__(self, stop_after=None):
        self.jobs = []
        self.stop_after = stop_after

    def finished(self, record, folder):
        self.jobs.append((record["model"], record["task"], record["fold"]))
        if len(self.jobs) == self.stop_after:
            raise KeyboardInterrupt


def resumed(*arguments, **options):
    finished = Finished()
    runs = karat.evaluate(*arguments, **{"resume": True, "progress": finished, **options})
    return finished.jobs, runs


def test_runs_that_are_not_continued_are_named_with_the_reason(two_classes, line, tmp_path):
    tasks = [two_classes(), line()]
    (run,) = karat.evaluate(OneHotTable(), tasks, output=tmp_path)
    path = run.folder / "run.json"
    about = json.loads(path.read_text())
    # as an earlier version wrote it: another name of a head, and hashes of other code
    about["tasks"][0]["probe"]["head"] = "logistic-2"
    path.write_text(json.dumps(about | {"karat": "0.0.9"}))
    for record in (run.folder / "jobs").glob(f"{tasks[0].name}.*.json"):
        facts = json.loads(record.read_text())
        record.write_text(json.dumps(facts | {"spec": "0" * 64}))
    number = len(about["tasks"][0]["folds"])
    match = (
        rf"does not continue {run.folder}: {number} jobs have changed \(Karat's version: 0.0.9, "
        rf"now .*, probe of {tasks[0].name}\); the other .* are taken over"
    )
    with pytest.warns(karat.KaratWarning, match=match):
        jobs, (second,) = resumed(OneHotTable(), tasks, output=tmp_path)
    assert len(jobs) == number and second.folder != run.folder
    with warnings.catch_warnings(action="error"):  # nothing to tell: all of it is continued
        assert resumed(OneHotTable(), tasks, output=tmp_path)[0] == []
    with pytest.warns(karat.KaratWarning, match="does not continue .*: its seed is 42"):
        resumed(OneHotTable(), tasks, output=tmp_path, seed=43)


def test_a_stopped_run_is_resumed_to_the_same_bytes(tasks, contents, tmp_path):
    models = {"onehot": OneHotTable(), "random": RandomEncoder(4)}
    with pytest.raises(Stopped) as caught:
        karat.evaluate(models, tasks, output=tmp_path / "cut", progress=Finished(stop_after=3))
    assert "3 of 14" in caught.value.progress
    assert [len(r.records()) for r in caught.value.runs] == [3 + 1, 0]  # and one decline
    assert (caught.value.runs[0].folder / "scores" / "results.csv").is_file()
    jobs, runs = resumed(models, tasks, output=tmp_path / "cut")
    assert len(jobs) == 11
    whole = karat.evaluate(models, tasks, output=tmp_path / "whole")
    assert contents(runs) == contents(whole)


def test_a_truncated_record_is_an_unfinished_job(two_classes, contents, tmp_path):
    (run,) = karat.evaluate(OneHotTable(), two_classes(), output=tmp_path)
    whole = contents([run])
    path = run.folder / "jobs" / "halves.1.json"
    path.write_text(path.read_text()[:50])
    assert list(records(run)) == [("halves", 0)]
    jobs, (run,) = resumed(OneHotTable(), two_classes(), output=tmp_path)
    assert jobs == [("OneHotTable", "halves", 1)]
    assert contents([run]) == whole


def test_only_changed_jobs_run_again(two_classes, line, contents, tmp_path):
    tasks = [two_classes(), line()]
    (first,) = karat.evaluate(OneHotTable(), tasks, output=tmp_path)
    changed = [two_classes(split={"use": "kfold", "folds": 4}), line()]
    jobs, (second,) = resumed(OneHotTable(), changed, output=tmp_path)
    assert [job[1:] for job in jobs] == [("halves", fold) for fold in range(4)]
    assert [*records(second)] == [*(("halves", f) for f in range(4)), ("line", 0), ("line", 1)]
    # nothing that was computed is lost, and what did not change is the same to the byte
    assert second.folder != first.folder
    assert [*records(first)] == [("halves", 0), ("halves", 1), ("line", 0), ("line", 1)]
    of_line = {k: v for k, v in contents([first]).items() if "line" in k[1]}
    assert of_line.items() <= contents([second]).items()
    # and back again: the first run is found and needs nothing
    jobs, (third,) = resumed(OneHotTable(), tasks, output=tmp_path)
    assert (jobs, third.folder) == ([], first.folder)


def test_other_parameters_or_another_seed_are_another_run(two_classes, tmp_path):
    for model, options in (
        (OneHotTable(), {}),
        (OneHotTable(0.5), {}),
        (OneHotTable(), {"seed": 1}),
        (OneHotTable(), {"workers": karat.Machines(constraint="test")}),
    ):
        jobs, _ = resumed({"onehot": model}, two_classes(), output=tmp_path, **options)
        assert len(jobs) == 2
    assert len(list(tmp_path.iterdir())) == 4


def test_failed_jobs_are_run_again_only_on_request(two_classes, models, tmp_path):
    (run,) = karat.evaluate({"m": models.Broken()}, two_classes(), output=tmp_path)
    assert resumed({"m": models.Broken()}, two_classes(), output=tmp_path)[0] == []
    again = {"output": tmp_path, "resume": "retry-failed"}
    jobs, _ = resumed({"m": models.Broken()}, two_classes(), **again)
    assert len(jobs) == 2


def test_more_tasks_and_folds_are_added_to_the_run(two_classes, line, tmp_path):
    (first,) = karat.evaluate(
        OneHotTable(), [two_classes()], output=tmp_path, only=karat.Only(folds=[1])
    )
    jobs, (run,) = resumed(OneHotTable(), [two_classes(), line()], output=tmp_path)
    assert run.folder == first.folder
    assert [job[1:] for job in jobs] == [("halves", 0), ("line", 0), ("line", 1)]
    tasks = Run.open(run.folder).about["tasks"]
    assert [(t["name"], t["folds"]) for t in tasks] == [("halves", [0, 1]), ("line", [0, 1])]
    assert set(run.results()["id"]) == {"halves", "line"}
    board = karat.leaderboard([run])
    assert board.attrs["metrics"] == {"halves": "acc", "line": "rmse"}


def test_an_extended_run_has_the_bytes_of_one_made_at_once(two_classes, line, words, tmp_path):
    suite = karat.Suite("mine", (words("w"), line("l"), two_classes("h")))
    (once,) = karat.evaluate("onehot", suite, output=tmp_path / "once")
    for only in (["h"], ["w"], ["l"]):
        given = {"output": tmp_path / "parts", "only": only, "resume": True}
        (run,) = karat.evaluate("onehot", suite, **given)
    tables = [each.folder / "scores" / "scores.csv" for each in (once, run)]
    assert tables[0].read_bytes() == tables[1].read_bytes()
    assert run.results()["task"].tolist() == once.results()["task"].tolist()


def test_a_formerly_declined_task_runs(two_classes, tmp_path):
    def offline():
        raise Unavailable("offline")

    task = two_classes()
    (run,) = karat.evaluate(OneHotTable(), karat.Task("halves", offline), output=tmp_path)
    assert [r["status"] for r in run.records()] == ["declined"]
    assert karat.leaderboard([run])["declined"].tolist() == [1]
    jobs, (run,) = resumed(OneHotTable(), task, output=tmp_path)
    assert [r["status"] for r in run.records()] == ["ok", "ok"]


@pytest.mark.parametrize(
    "name", ["a b", "a/b", "..", "../../up", 'a"b', "<script>", "x" * 300, "ü"]
)
def test_no_name_leaves_the_run_folder(two_classes, tmp_path, name):
    output = tmp_path / "deep" / "results"
    task = two_classes(name, corruptions={"noise_gaussian": [0.1]})
    (run,) = karat.evaluate({name: OneHotTable()}, karat.Suite(name, (task,)), output=output)
    assert run.folder.parent == output
    assert [p.name for p in tmp_path.iterdir()] == ["deep"]
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["results"]
    assert run.results()["task"].unique().tolist() == [name]
    assert run.model == name
    # run.json, 2 records, 2 × 2 × 3 of predictions, a sample, an item table, 4 tables
    assert sum(p.is_file() for p in run.folder.rglob("*")) == 21
    assert karat.leaderboard([run]).attrs["tasks"] == [name]


def test_records_and_facts_are_strict_json(two_classes, tmp_path):
    class Odd(BaseEstimator):
        def __init__(self, missing=float("nan"), sizes=(1, 2), limit=None):
            self.missing = missing
            self.sizes = sizes
            self.limit = limit

        def fit(self, items, y=None):
            return self

        def transform(self, items):
            return items.to_numpy(dtype=float)

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    models = {"odd": Odd(limit=np.float32(0.5)), "logistic": LogisticRegression()}
    runs = karat.evaluate(models, two_classes(metrics=["acc", "rmse"]), output=tmp_path)
    files = [p for run in runs for p in run.folder.rglob("*.json")]
    assert len(files) == 10
    for path in files:
        json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)
    assert runs[0].about["params"]["missing"] == "nan"


def test_a_read_only_output_is_an_error_before_anything_runs(two_classes, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DefinitionError, match="--output"):
        karat.evaluate(OneHotTable(), two_classes(), output=tmp_path / "file" / "results")


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """Register a corruption that writes a line for each call and fails at severity 2."""

    def count(X, y, severity, rng):
        with (tmp_path / "calls.txt").open("a") as file:
            file.write(f"{severity:g}\n")
        if severity == 2:
            raise ValueError("too severe")
        return X + severity, y

    monkeypatch.setitem(registry.corruptions._parts, "counted", count)
    monkeypatch.setitem(registry.corruptions._origins, "counted", "test")
    return lambda: (tmp_path / "calls.txt").read_text().split()


def test_workers_share_the_views_of_a_fold(two_classes, counted, tmp_path):
    task = two_classes(corruptions={"counted": [1.0, 3.0]})
    names = ["logistic-regression", "random-forest"]
    runs = karat.evaluate(names, task, output=tmp_path / "out", workers=2)
    folds = len(records(runs[0]))
    assert counted() == ["1", "3"] * folds
    here = karat.evaluate(names, task, output=tmp_path / "here")
    for one, other in zip(runs, here, strict=True):
        pd.testing.assert_frame_equal(one.scores(), other.scores())


def test_an_error_of_a_shared_view_is_reported_by_the_jobs(two_classes, counted, tmp_path):
    task = two_classes(corruptions={"counted": [1.0, 2.0, 3.0]}, split={"use": "holdout"})
    names = ["logistic-regression", "random-forest"]
    for run in karat.evaluate(names, task, output=tmp_path / "out", workers=1):
        (record,) = run.records()
        assert [view["status"] for view in record["views"]] == ["ok", "ok", "failed", "ok"]
        assert "too severe" in record["info"]


def test_only_a_model_of_karat_is_loaded_to_compute_views(two_classes, counted, tmp_path):
    task = two_classes(corruptions={"counted": [1.0]}, split={"use": "holdout"})
    models = {"a": LogisticRegression(), "b": LogisticRegression(C=2.0)}
    karat.evaluate(models, task, output=tmp_path / "out", workers=1)
    assert counted() == ["1", "1"]  # each job computes its own
