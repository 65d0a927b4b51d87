"""Run folders: writing, damaged files, opening, resuming and artifacts."""

import dataclasses
import json
import os
import shutil
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

import karat
from karat.errors import ContractError, DataError
from karat.models.adapters import adapt
from karat.results.load import FrozenRun, gather_scores
from karat.results.run import Run, collect_artifacts, earlier_runs, open_runs
from karat.results.tables import AMLB_COLUMNS, KARAT_COLUMNS

ABOUT = {
    "model": "m",
    "suite": "s",
    "constraint": "c",
    "mode": "local",
    "stamp": "20260102T030405",
    "version": "",
    "params": {},
    "karat": "0.1.0",
    "tasks": [
        {"name": "t", "dataset": "d", "metrics": ["acc"], "folds": [0, 1]},
        {"name": "a", "dataset": "d", "metrics": ["acc"], "folds": [0]},
    ],
}


def record(task="t", fold=0, value=0.5, **changes):
    seen = {"corruption": "", "severity": 0.0, "scores": {"acc": value}, "coverage": 1.0}
    return {
        **{"spec": f"{task}{fold}", "model": "m", "task": task, "fold": fold, "repeat": 0},
        **{"seed": 42, "metric": "acc", "status": "ok", "info": "", "notes": [], "history": []},
        "views": [{**seen, "reasons": {}, "status": "ok", "info": ""}],
        "utc": "2026-01-02T03:04:05",
        **changes,
    }


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path, ABOUT)


def files(run):
    return sorted(str(p.relative_to(run.folder)) for p in run.folder.rglob("*") if p.is_file())


def test_old_names_of_keys_and_values_are_read_as_the_present_ones(run):
    old = {"twins": [1, 9], "missing": "penalise", "about": {"licence": "CC0"}}
    task = {**ABOUT["tasks"][0], **old, "probe": {"use": "trained", "head": "nb"}}
    (run.folder / "run.json").write_text(json.dumps({**ABOUT, "tasks": [task]}))
    (read,) = Run.open(run.folder).about["tasks"]
    assert (read["duplicate_rows"], read["missing"]) == ([1, 9], "penalize")
    assert (read["about"], read["probe"]["head"]) == ({"license": "CC0"}, "naive-bayes")


def test_folder_name(run, tmp_path):
    assert run.folder == tmp_path / "m.s.c.local.20260102T030405"
    assert files(run) == ["run.json"]
    assert Run.create(tmp_path, ABOUT).folder.name == "m.s.c.local.20260102T030405-2"
    assert Run.create(tmp_path, ABOUT).folder.name == "m.s.c.local.20260102T030405-3"


def test_long_names(tmp_path):
    about = {**ABOUT, **{key: "x" * 60 for key in ("model", "suite", "constraint")}}
    Run.create(tmp_path, about)
    Run.create(tmp_path, {**about, "model": "ü" * 5000})
    assert all(len(os.fsencode(p.name)) < 255 for p in tmp_path.iterdir())


def test_files_of_a_job(run):
    written = {"predictions.csv": "p", "metadata.json": "{}", "log.txt": "l"}
    corrupted = {"noise@0.1/predictions.csv": "q", "../../up@1/predictions.csv": "r"}
    run.write(record(), {**written, **corrupted})
    places = files(run)
    inside = ("metadata.json", "noise@0.1/predictions.csv", "predictions.csv")
    expected = {"run.json", "jobs/t.0.json", "logs/t/0.txt"}
    assert expected | {f"predictions/t/0/{name}" for name in inside} < set(places)
    assert len(places) == 7
    assert run.log(record()) == run.folder / "logs" / "t" / "0.txt"
    run.write(record(), {"predictions.csv": "p"})
    assert not run.log(record()).exists()  # of the earlier attempt


def test_record_is_written_last(run, monkeypatch):
    written = []
    monkeypatch.setattr(
        "karat.results.run.write_atomic", lambda path, text, **how: written.append((path.name, how))
    )
    run.write(record(), {"predictions.csv": "p", "log.txt": "l"})
    assert written[-1] == ("t.0.json", {"durable": True})
    assert len(written) == 3


def test_order_of_records(run):
    for task, fold in (("a", 0), ("unplanned", 0), ("t", 10), ("t", 2), ("another", 0)):
        run.write(record(task, fold), {})
    found = [(r["task"], r["fold"]) for r in run.records()]
    assert found == [("t", 2), ("t", 10), ("a", 0), ("another", 0), ("unplanned", 0)]


@pytest.mark.parametrize("text", ["", "{", "null", "[]", '{"task": "t"}', "\x00" * 50])
def test_damaged_record_is_ignored(run, text):
    run.write(record("t", 0), {})
    (run.folder / "jobs" / "t.1.json").write_text(text)
    with pytest.warns(UserWarning, match=r"1 of 2 records.*t\.1\.json"):
        assert [r["fold"] for r in run.records()] == [0]
    run.finish()
    assert len(run.results()) == 1


def test_tables(run):
    run.write(record("t", 0, 0.25), {})
    run.write(record("a", 0, 1 / 3), {})
    run.finish()
    scores = run.folder / "scores"
    names = {path.name for path in scores.iterdir()}
    assert names == {"jobs.csv", "m.benchmark_s.csv", "results.csv", "scores.csv"}
    assert (scores / "m.benchmark_s.csv").read_bytes() == (scores / "results.csv").read_bytes()
    read = pd.read_csv(scores / "results.csv")
    assert read["result"].tolist() == pytest.approx([0.25, 1 / 3])
    # the columns of the AutoML Benchmark, then the metrics; Karat's columns are in another table
    assert tuple(read.columns) == (*AMLB_COLUMNS, *sorted(set(read.columns) - {*AMLB_COLUMNS}))
    assert not set(read.columns) & {*KARAT_COLUMNS}
    assert {*KARAT_COLUMNS} <= set(pd.read_csv(scores / "jobs.csv").columns)
    assert Run.open(run.folder).scores()["value"].tolist() == [0.25, 1 / 3]


@pytest.mark.parametrize("damage", ["old", "cut", "empty", "numbers"])
def test_scores_come_from_the_records_whatever_the_table_says(run, damage):
    run.write(record("t", 0, 0.25), {})
    run.finish()
    table = run.folder / "scores" / "scores.csv"
    old = table.read_text()
    for fold in range(1, 3):
        run.write(record("t", fold, 0.25 * fold + 0.25), {})
    # as after kill -9 and cp -r: a table of one fold that is newer than the records
    text = {"old": old, "cut": old[:50], "empty": "", "numbers": old.replace("0.25", "0.9")}
    table.write_text(text[damage])
    later = time.time() + 100
    os.utime(table, (later, later))
    assert Run.open(run.folder).scores()["value"].tolist() == [0.25, 0.5, 0.75]
    assert gather_scores(run.folder).scores["value"].tolist() == [0.25, 0.5, 0.75]


def test_damaged_run_is_skipped_with_a_warning(run, tmp_path):
    run.write(record("t", 0, 0.25), {})
    other = run.folder.parent / "damaged"
    other.mkdir()
    (other / "run.json").write_text('{"model": "m", "tas')
    with pytest.warns(UserWarning, match="damaged"):
        assert [each.folder for each in open_runs([run.folder.parent])] == [run.folder]
    shutil.rmtree(run.folder)
    with pytest.warns(UserWarning), pytest.raises(DataError, match="1 runs"):
        open_runs([other.parent])


@pytest.mark.parametrize("value", [0.1 + 0.2, 1e-300, 2 / 3, 123456789.123456789, None])
def test_scores_are_read_exactly(run, value):
    run.write(record("t", 0, value), {})
    run.finish()
    (read,) = Run.open(run.folder).scores()["value"]
    assert read == value or (value is None and pd.isna(read))


@pytest.mark.parametrize("name", ["NA", "null", "1", "True", "a,b"])
def test_names_are_not_converted(tmp_path, name):
    about = {**ABOUT, "model": name, "tasks": [{**ABOUT["tasks"][0], "name": name}]}
    run = Run.create(tmp_path, about)
    run.write(record(name, model=name), {})
    run.finish()
    scores = Run.open(run.folder).scores()
    assert scores[["task", "model", "corruption"]].iloc[0].tolist() == [name, name, ""]


def test_nan_in_a_record_is_an_error(run):
    with pytest.raises(ValueError, match="JSON"):
        run.write(record(value=float("nan")), {})
    assert files(run) == ["run.json"]


def test_lone_surrogates_are_stored_as_escapes(tmp_path):
    """Paths on the command line and parameters may have them."""
    about = {**ABOUT, "command": "karat run \udc80", "params": {"\udc81": ["\udc82", 1]}}
    run = Run.create(tmp_path, about)
    run.write(record(notes=["\udc83"]), {})
    again = Run.open(run.folder)
    assert again.about["command"] == "karat run \\udc80"
    assert again.about["params"] == {"\\udc81": ["\\udc82", 1]}
    assert again.records()[0]["notes"] == ["\\udc83"]
    run.finish()


def test_open_runs(run, tmp_path):
    other = Run.create(tmp_path, {**ABOUT, "model": "n"})
    assert [r.model for r in open_runs(str(tmp_path))] == ["m", "n"]
    assert [r.folder for r in open_runs(run.folder)] == [run.folder]
    assert [r.model for r in open_runs([tmp_path])] == ["m", "n"]
    assert [r.model for r in open_runs([other.folder, str(run.folder)])] == ["n", "m"]
    assert repr(run) == "<Run m.s.c.local.20260102T030405>"


def test_run_folders_further_inside_are_named(tmp_path):
    for inner in ("taco/runs", "geval/result_1/karat"):
        Run.create(tmp_path / inner, ABOUT)
        with pytest.raises(DataError, match=inner):
            open_runs(tmp_path / inner.partition("/")[0])


def test_paths_that_are_not_runs(run, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for name in ("nowhere", "empty", "file"):
        with pytest.raises(DataError, match=name):
            open_runs([tmp_path / name])
    with pytest.raises(DataError, match="run.json"):
        Run.open(tmp_path / "empty")
    (run.folder / "run.json").write_text("{")
    with pytest.raises(DataError, match="run.json"):
        Run.open(run.folder).model  # noqa: B018


def test_earlier_runs_newest_first(tmp_path):
    for stamp, seed in (("20260101T000000", 1), ("20260103T000000", 1), ("20260104T000000", 2)):
        Run.create(tmp_path, {**ABOUT, "stamp": stamp, "seed": seed})
    for _ in range(11):
        Run.create(tmp_path, {**ABOUT, "stamp": "20260102T000000", "seed": 1})
    broken = Run.create(tmp_path, {**ABOUT, "stamp": "20260105T000000", "seed": 1})
    (broken.folder / "run.json").write_text("{")
    with pytest.warns(UserWarning, match="20260105T000000"):
        found = list(earlier_runs(tmp_path, {"model": "m", "seed": 1}, ("model", "seed")))
    names = [run.folder.name.rpartition(".")[2] for run in found]
    numbered = [f"20260102T000000-{number}" for number in range(11, 1, -1)]
    assert names == ["20260103T000000", *numbered, "20260102T000000", "20260101T000000"]
    shutil.rmtree(broken.folder)
    assert list(earlier_runs(tmp_path, {"model": "m", "seed": 3}, ("model", "seed"))) == []
    assert list(earlier_runs(tmp_path / "nowhere", {"model": "m"}, ("model",))) == []


def test_new_plan_is_merged(run):
    run.write(record("t", 0), {"predictions.csv": "p"})
    for task in ("t", "a"):
        run.write(record(task, None, status="declined"), {})
    tasks = [
        {"name": "t", "dataset": "d2", "metrics": ["acc"], "folds": [2]},
        {"name": "new", "dataset": "d", "metrics": ["acc"], "folds": [0]},
    ]
    run.merge_plan(tasks)
    # the declined record of t is removed, that of a is not
    assert [(r["task"], r["fold"]) for r in run.records()] == [("t", 0), ("a", None)]
    about = json.loads((run.folder / "run.json").read_text())
    found = [(t["name"], t["dataset"], t["folds"]) for t in about["tasks"]]
    assert found == [("t", "d2", [0, 1, 2]), ("a", "d", [0]), ("new", "d", [0])]
    assert run.about["tasks"] == about["tasks"]


@pytest.mark.parametrize(
    ("names", "order", "expected"),
    [
        (["b"], ["a", "b"], "ab"),
        (["a"], ["b"], "ab"),
        (["c", "a"], ["a", "b", "c"], "abc"),
        (["x", "c", "y", "a"], ["a", "b", "c"], "xabcy"),
    ],
)
def test_tasks_of_an_extended_run_have_the_order_of_the_plan(tmp_path, names, order, expected):
    def task(name):
        return {"name": name, "dataset": "d", "metrics": ["acc"], "folds": [0]}

    run = Run.create(tmp_path, {**ABOUT, "tasks": list(map(task, names))})
    for name in {*names, *order}:
        run.write(record(name), {})
    run.merge_plan(list(map(task, order[:1])), order)
    run.merge_plan(list(map(task, order)))
    assert [t["name"] for t in run.about["tasks"]] == list(expected)
    assert run.results()["task"].tolist() == list(expected)


def test_copy_of_a_finished_job(run, tmp_path):
    files_of_job = {"predictions.csv": "p", "noise@0.1/predictions.csv": "q", "log.txt": "l"}
    run.write(record("t", 0), files_of_job)
    run.write(record("t", 1), {"predictions.csv": "not this"})
    other = Run.create(tmp_path, {**ABOUT, "stamp": "later"})
    other.copy_job(run, record("t", 0))
    assert files(other) == [f for f in files(run) if "1" not in f.replace("0.1", "")]
    assert other.records() == [record("t", 0)]


class Board:
    """A model that leaves a table, a text and a folder."""

    def __init__(self, folder=None):
        self.folder = folder

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))
        self.models_count_ = 7
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)

    def artifacts(self, names):
        made = {"leaderboard/board.csv": pd.DataFrame({"model": ["a"], "score": [0.5]})}
        made["info/about.json"] = '{"trees": 3}'
        made["info/raw.bin"] = b"\xff\x00"
        return {name: made[name] for name in made if name.partition("/")[0] in names}


@pytest.fixture
def task(line):
    return line("a line")


def evaluated(model, task, tmp_path, artifacts):
    mine = dataclasses.replace(adapt(model, "mine"), artifacts=tuple(artifacts))
    (run,) = karat.evaluate(mine, task, output=tmp_path / "out")
    return run


def test_artifacts_are_stored_and_loaded(task, tmp_path):
    run = evaluated(Board(), task, tmp_path, ["leaderboard", "info", "logs"])
    board = karat.load_artifact(run, "leaderboard", "a line", 1)
    assert board.to_dict("list") == {"model": ["a"], "score": [0.5]}
    info = karat.load_artifact(run.folder, "info", "a line")
    assert info == {"about.json": {"trees": 3}, "raw.bin": b"\xff\x00"}
    row = run.results().iloc[0]
    assert row["models"] == 7
    assert '"logs"' in row["notes"]
    with pytest.raises(DataError, match='"leaderboard"'):
        karat.load_artifact(run, "leaderbord", "a line")


def test_a_pickle_is_loaded_only_with_allow_pickle(task, tmp_path):
    run = evaluated(LinearRegression(), task, tmp_path, ["models"])
    with pytest.raises(DataError, match="allow_pickle=True"):
        karat.load_artifact(run, "models", "a line")
    model = karat.load_artifact(run, "models", "a line", allow_pickle=True)
    np.testing.assert_allclose(model.predict([[3.0]]), [6.0])


def test_heads_in_pickles_of_earlier_versions_are_found(task, tmp_path):
    run = evaluated(LinearRegression(), task, tmp_path, ["models"])
    (path,) = run.artifact_folder("models", {"task": "a line", "fold": 0}).glob("*.pkl")
    for old in ("model_tree\nModelTree", "adamw\nAdamW", "nested_selection\nBestOf"):
        path.write_bytes(f"ckarat.probes.heads.{old}\n.".encode())
        found = karat.load_artifact(run, "models", "a line", allow_pickle=True)
        assert found.__name__ == old.split()[1]


def test_artifacts_are_stored_only_if_a_definition_requests_them(tmp_path, task):
    run = evaluated(Board(), task, tmp_path, [])
    assert not (run.folder / "leaderboard").exists()
    assert (run.folder / "predictions").is_dir()
    define = tmp_path / "mine.yaml"
    define.write_text("models:\n  kept: {use: 'sklearn.linear_model:Ridge', artifacts: [models]}\n")
    (run,) = karat.evaluate("kept", [task], define=define, output=tmp_path / "out")
    assert (run.folder / "models").is_dir()


@pytest.mark.parametrize("name", ["../x", "jobs/x", "/etc/x", "models", "a/../../x", "a\\b/c"])
def test_a_name_cannot_leave_the_artifact_folder(name):
    class Sly:
        def artifacts(self, names):
            return {name: b""}

    with pytest.raises(ContractError, match="kind/file"):
        collect_artifacts(Sly(), ["models"])


def test_an_error_in_artifacts_does_not_affect_scores(task, tmp_path):
    class Broken(Board):
        def artifacts(self, names):
            raise RuntimeError("no room")

    run = evaluated(Broken(), task, tmp_path, ["leaderboard"])
    assert run.results()["status"].tolist() == ["ok", "ok"]
    assert "RuntimeError: no room" in run.results()["notes"].iloc[0]


def test_inference_is_timed_by_batch_size(task, tmp_path):
    (run,) = karat.evaluate(
        {"line": LinearRegression()},
        [task],
        output=karat.Output(tmp_path / "out", inference=[1, 5, 1000]),
    )
    row = run.results().iloc[0]
    assert row["inference_1_seconds"] > 0 and row["inference_5_seconds"] > 0
    assert "inference_1000_seconds" not in row  # the fold has ten rows
    (run,) = karat.evaluate("onehot", [task], output=karat.Output(tmp_path / "out", inference=[2]))
    assert run.results()["inference_2_seconds"].iloc[0] > 0


def test_exit_on_error_stops_after_the_first_failure(task, tmp_path):
    class Fails(Board):
        def fit(self, X, y):
            raise ValueError("no")

    given = {"output": tmp_path / "out", "on_failure": "stop"}
    with pytest.raises(karat.JobsFailed) as error:
        karat.evaluate({"fails": Fails(), "fine": Board()}, [task], **given)
    one, two = error.value.runs
    assert [record["status"] for record in one.records()] == ["failed"]
    assert two.records() == []
    with pytest.raises(karat.JobsFailed) as error:
        karat.evaluate({"fails": Fails(), "fine": Board()}, [task], **given, resume=True)
    one, two = error.value.runs
    assert len(one.records()) == 2


def test_eliminated_jobs_are_seen_at_once_in_a_large_run(tmp_path):
    # a reader may have stored the records before the model was eliminated
    tasks = [{"name": f"t{i}", "metrics": ["acc"], "folds": [0]} for i in range(150)]
    about = {"model": "m", "suite": "s", "constraint": "c", "mode": "local", "stamp": "1"}
    run = Run.create(tmp_path, {**about, "seed": 1, "tasks": tasks})
    for i in range(120):
        record = {
            **{"spec": "", "model": "m", "task": f"t{i}", "fold": 0, "repeat": 0, "seed": 1},
            **{"metric": "acc", "status": "ok", "info": "", "notes": [], "history": [], "utc": ""},
            "views": [{"corruption": "", "severity": 0.0, "scores": {"acc": 0.5}}],
        }
        run.write(record, {})
    run.finish()
    assert len(FrozenRun.of(Run(run.folder)).records()) == 120
    left = {"reason": "eliminated", "text": "eliminated after 120 tasks, e-value 99"}
    run.set_race({"exit": left, "over": True})
    for again in (Run(run.folder), FrozenRun.of(Run(run.folder))):
        out = [r for r in again.records() if r["status"] == "eliminated"]
        assert len(out) == 30 and {r["info"] for r in out} == {left["text"]}
    run.set_race({"exit": None, "over": False})
    assert len(FrozenRun.of(Run(run.folder)).records()) == 120


def test_runs_of_one_plan_share_their_tasks_and_a_damaged_one_is_found(tmp_path):
    tasks = [{"name": "a", "metrics": ["acc"], "folds": [0]}, {"name": "b", "metrics": ["auc"]}]
    about = {"model": "m", "suite": "s", "constraint": "c", "mode": "local", "stamp": ""}
    about["tasks"] = tasks
    runs = [Run.create(tmp_path, {**about, "stamp": str(number)}) for number in range(2)]
    first, second = (Run.open(run.folder).about for run in runs)
    assert first["tasks"][0] is second["tasks"][0]
    assert first["tasks"] is not second["tasks"]
    assert first["tasks"][1] == {"dataset": "", "folds": [], "name": "b", "metrics": ["auc"]}
    assert (first["stamp"], second["stamp"]) == ("0", "1")
    for wrong in ({"tasks": [{"name": "a"}]}, {"model": 3}):
        file = runs[0].folder / "run.json"
        file.write_text(json.dumps({**about, "stamp": "0", **wrong}, indent=1))
        with pytest.raises(DataError, match="damaged"):
            Run.open(runs[0].folder).about  # noqa: B018
