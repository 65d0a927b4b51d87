"""Gather: the tables of one machine, and exactly the jobs that are missing, double or outdated."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier

from karat.core.task import Suite
from karat.errors import DataError, DefinitionError
from karat.execution.arguments import Machines, Output, Variants
from karat.execution.evaluation import evaluate
from karat.execution.plan import job_spec, make_plan
from karat.execution.progress import Progress
from karat.execution.session import Options, Session
from karat.ext.cluster.gather import FILE, PlanFile, gather, write_plan_file
from karat.models.adapters import adapt
from karat.models.tables.one_hot_table import OneHotTable
from karat.reporting.leaderboard_output import leaderboard
from karat.results.run import Run

TIMES = ("utc", "duration", "seconds", "memory")


def timeless(run: Run) -> pd.DataFrame:
    table = pd.read_csv(run.folder / "scores" / "results.csv", dtype=str, keep_default_na=False)
    return table[[name for name in table if not any(word in name for word in TIMES)]]


def predictions(run: Run) -> dict[str, str]:
    files = sorted(path for path in (run.folder / "predictions").rglob("*.csv"))
    return {
        path.relative_to(run.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def assert_equal_runs(gathered: list[Run], whole: list[Run]) -> None:
    assert [run.model for run in gathered] == [run.model for run in whole]
    for one, other in zip(gathered, whole, strict=True):
        tables = [(run.folder / "scores" / "scores.csv").read_bytes() for run in (one, other)]
        assert tables[0] == tables[1]
        pd.testing.assert_frame_equal(timeless(one), timeless(other))
        assert predictions(one) == predictions(other)
        tasks = [
            [{**t, "item_table": t.get("item_table")} for t in run.about["tasks"]]
            for run in (one, other)
        ]
        assert tasks[0] == tasks[1]


@pytest.fixture(scope="module")
def tasks(two_classes, line, words):
    return [
        two_classes(split={"use": "kfold", "folds": 4}),
        line(name="a line"),
        two_classes(name="<b>", data="halves", probe={"use": "trained", "head": "naive-bayes"}),
        words(),
    ]


MODELS = ["onehot", "dummy", "tfidf"]


@pytest.fixture(scope="module")
def whole(tasks, tmp_path_factory):
    """Return the runs of one machine; tfidf declines tables and onehot texts."""
    return evaluate(MODELS, tasks, output=tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def sharded(tasks, tmp_path_factory):
    """Return the output folder of three shards."""
    folder = tmp_path_factory.mktemp("sharded")
    for part in (1, 2, 3):
        evaluate(MODELS, tasks, output=folder, workers=Machines(shard=f"{part}/3"))
    return folder


@pytest.fixture
def shards(sharded, tmp_path):
    """Return a copy of the output folder that a test may change."""
    return Path(shutil.copytree(sharded, tmp_path / "shards"))


def records(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*/*/jobs/*.json"))


def job_of(path: Path) -> tuple[str, str, int]:
    record = json.loads(path.read_text())
    return record["model"], record["task"], record["fold"]


def test_the_tables_are_those_of_one_machine(sharded, whole, tmp_path):
    found = gather(sharded, tmp_path / "out")
    assert found.is_complete
    assert found.planned == len(records(sharded)) > 12
    assert (found.missing, found.double, found.outdated, found.commands) == ([], [], [], {})
    assert_equal_runs(found.runs, whole)
    boards = [leaderboard(runs) for runs in (found.runs, whole)]
    kept = [name for name in boards[0] if not any(word in name for word in TIMES)]
    assert len(kept) > 5
    pd.testing.assert_frame_equal(boards[0][kept], boards[1][kept])


def test_a_run_that_is_divided_at_random_is_merged_byte_by_byte(tasks, tmp_path):
    models, tables, one = ["onehot", "dummy"], tasks[:3], tmp_path / "one"
    evaluate(models, tables, output=tmp_path / "parts", workers=Machines(shard="1/1"))
    whole = evaluate(models, tables, output=one / "runs")
    shutil.copy(tmp_path / "parts" / "shard-1-of-1" / "plan.json", one)
    places = [Path(shutil.copytree(one, tmp_path / f"part-{part}")) for part in range(4)]
    draw = random.Random(5)
    for path in records(one):
        for place in draw.sample(places, 3):
            (place / path.relative_to(one)).unlink()
    found = gather(places, tmp_path / "out")
    assert found.is_complete and not found.double
    for run, before in zip(found.runs, whole, strict=True):
        for name in ("results.csv", "scores.csv"):
            tables = [(each.folder / "scores" / name).read_bytes() for each in (run, before)]
            assert tables[0] == tables[1]


def test_exactly_the_missing_jobs_are_reported_and_resume_runs_them(shards, tasks, whole, tmp_path):
    removed = random.Random(1).sample(records(shards), 4)
    lost = {job_of(path) for path in removed}
    for path in removed:
        path.unlink()
    out = tmp_path / "out"
    found = gather(shards, out)
    assert set(found.missing) == lost
    assert not found.is_complete
    assert list(found.commands)[-1].startswith("all 4 missing")
    finished = evaluate(MODELS, tasks, output=out, resume=True)
    assert_equal_runs(finished, whole)
    # gathered once more, nothing is lost and nothing is double
    again = gather(shards, out)
    assert again.is_complete and not again.double
    assert_equal_runs(again.runs, whole)


def test_a_shard_that_never_ran_is_named_with_its_command(shards, tasks, whole, tmp_path):
    gone = {job_of(path) for path in records(shards) if "shard-2" in str(path)}
    shutil.rmtree(shards / "shard-2-of-3")
    found = gather(shards, tmp_path / "out")
    assert set(found.missing) == gone
    (text, command), _ = found.commands.items()
    assert f"{len(gone)} of {len(gone)}" in text
    assert "--shard 2/3 --resume" in command
    evaluate(MODELS, tasks, output=shards, workers=Machines(shard="2/3"), resume=True)
    again = gather(shards, tmp_path / "out")
    assert again.is_complete and not again.double
    assert_equal_runs(again.runs, whole)


def test_double_jobs_are_reported(shards, tasks, tmp_path):
    twice = [job_of(path) for path in records(shards) if "shard-1" in str(path)]
    evaluate(MODELS, tasks, output=tmp_path / "again", workers=Machines(shard="1/3"))
    found = gather([shards, tmp_path / "again"], tmp_path / "out")
    assert sorted(found.double) == sorted(twice)
    assert found.is_complete and not found.differing
    # a copy is the same job, not a double one
    shutil.copytree(shards / "shard-2-of-3", tmp_path / "copy")
    found = gather([shards, tmp_path / "copy"], tmp_path / "other")
    assert found.is_complete and not found.double


def test_equal_jobs_with_different_scores_are_an_error(shards, tmp_path):
    copy = Path(shutil.copytree(shards / "shard-1-of-3", tmp_path / "copy"))
    path = sorted(copy.glob("*/jobs/*.json"))[0]
    record = json.loads(path.read_text())
    name = next(iter(record["views"][0]["scores"]))
    record["views"][0]["scores"][name] += 0.125
    path.write_text(json.dumps(record))
    found = gather([shards, copy], tmp_path / "out")
    assert found.differing == [job_of(path)]
    assert not found.is_complete


def test_an_outdated_job_is_missing(shards, tmp_path):
    path = records(shards)[0]
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "spec": "0" * 64}))
    found = gather(shards, tmp_path / "out")
    assert found.outdated == found.missing == [job_of(path)]


def test_a_failed_job_is_replaced_by_one_with_scores(shards, tmp_path):
    path = records(shards)[0]
    good = path.read_text()
    failed = {**json.loads(good), "status": "failed", "info": "boom", "views": []}
    path.write_text(json.dumps(failed))
    found = gather(shards, tmp_path / "out")
    assert (found.failed, found.is_complete) == (1, True)
    path.write_text(good)
    again = gather(shards, tmp_path / "out")
    assert (again.failed, again.is_complete) == (0, True)


def test_shards_of_different_plans_are_refused(shards, tasks, tmp_path):
    evaluate(MODELS, tasks, output=tmp_path / "other", workers=Machines(shard="1/3"), seed=7)
    with pytest.raises(DataError, match="seed is 42 and 7"):
        gather([shards, tmp_path / "other"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_folders_without_a_plan(whole, tmp_path):
    with pytest.raises(DataError, match=r"plan\.json"):
        gather(whole[0].folder.parent, tmp_path / "out")
    with pytest.raises(DataError, match="does not exist"):
        gather(tmp_path / "missing", tmp_path / "out")


def test_an_output_that_is_a_file(shards, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DefinitionError, match="file"):
        gather(shards, tmp_path / "file")


def test_copied_to_another_disk(shards, whole, tmp_path, monkeypatch):
    def refuse(*_):
        raise OSError("Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    assert_equal_runs(gather(shards, tmp_path / "out").runs, whole)


#: a process with all libraries imported forks shards, which are killed at random moments
ZYGOTE = """
import json, os, random, signal, sys
import numpy as np, pandas as pd, karat
import karat.execution.evaluation, karat.ext.cluster.gather
from karat.ext.cluster.gather import PlanFile
from pathlib import Path
from sklearn.linear_model import LogisticRegression, Ridge

rng = np.random.default_rng(0)
frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
frame["y"] = np.where(frame["b"] > 0, "yes", "no")
split = {"use": "kfold", "folds": 8}
tasks = [
    karat.Task(f"task-{n}", karat.Dataset.from_table(frame, "y", name=f"data-{n}"), split=split)
    for n in range(2)
]
models, shards = ["onehot", "random", "dummy"], 4

def start(output, cpu_seconds, **options):
    pid = os.fork()
    if pid == 0:
        try:
            if cpu_seconds:
                signal.setitimer(signal.ITIMER_PROF, cpu_seconds)
            karat.evaluate(models, tasks, output=output, **options)
        finally:
            os._exit(0)
    _, how, used = os.wait4(pid, 0)
    return os.WIFSIGNALED(how), used.ru_utime + used.ru_stime

def on_disk(output):
    files = Path(output).glob("*/*/jobs/*.json")
    found = (json.loads(path.read_text()) for path in files)
    return {(each["model"], each["task"], each["fold"]) for each in found}

draw, output = random.Random(11), sys.argv[1]
facts = {"killed": 0, "exact": [], "double": 0}
_, longest = start(output + "-whole", None)
for round in range(2):
    for part in range(1, shards + 1):
        # a shard is about a quarter of the jobs; the first one ends, so that there is a plan
        moment = draw.uniform(0.02, 0.25) * longest if round or part > 1 else None
        options = {"workers": karat.Machines(shard=f"{part}/{shards}"), "resume": True}
        facts["killed"] += start(output, moment, **options)[0]
    found = karat.gather(output, output + "-gathered")
    planned = set(PlanFile.read(next(Path(output).glob("*/plan.json"))).jobs())
    facts["exact"].append(set(found.missing) == planned - on_disk(output))
for text, command in list(found.commands.items())[:-1]:
    part = command.split("--shard ")[1].split()[0]
    start(output, None, workers=karat.Machines(shard=part), resume=True)
found = karat.gather(output, output + "-gathered")
facts["complete"], facts["double"] = found.is_complete, len(found.double)

tables = [
    sorted((path.parts[-3].split(".")[0], path.read_text()) for path in
           Path(output + end).glob("*/scores/scores.csv"))
    for end in ("-gathered", "-whole")
]
facts["same"] = tables[0] == tables[1] and len(tables[0]) == 3
print(json.dumps(facts))
"""


@pytest.mark.slow
def test_shards_that_are_killed_at_random(tmp_path):
    if not hasattr(os, "fork"):
        pytest.skip("processes cannot be forked here")
    (tmp_path / "zygote.py").write_text(ZYGOTE)
    environment = {**os.environ, "KARAT_CACHE": str(tmp_path / "cache"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(tmp_path / "zygote.py"), str(tmp_path / "shards")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout.splitlines()[-1])
    assert facts["killed"] >= 2
    assert facts["exact"] == [True, True]
    assert facts["complete"] and facts["same"]
    assert facts["double"] == 0


def test_shards_with_several_seeds_are_gathered(tasks, tmp_path):
    models = Variants(["random", "onehot"], seeds=3)
    output = Output(tmp_path / "shards", items=False)
    for part in (1, 2, 3):
        evaluate(models, tasks, output=output, workers=Machines(shard=f"{part}/3"))
    found = gather(tmp_path / "shards", tmp_path / "gathered")
    whole = evaluate(models, tasks, output=Output(tmp_path / "whole", items=False))
    assert found.is_complete and not found.outdated and not found.double
    assert [run.about.get("replicate") for run in found.runs] == [None, 1, 2, None]
    assert_equal_runs(found.runs, whole)
    jobs = [r for run in whole for r in run.records() if r["fold"] is not None]
    assert found.planned == len(jobs) == 38
    (shard,) = (tmp_path / "shards").glob("shard-1*")
    for path in shard.glob("random.*"):
        shutil.rmtree(path)
    left = gather(tmp_path / "shards", tmp_path / "rest").missing
    assert left and {name for name, _, _ in left} <= {
        "random",
        "random (seed 2)",
        "random (seed 3)",
    }


@pytest.fixture
def plan(two_classes, line, words):
    models = [adapt(OneHotTable(), "one hot"), adapt(DummyClassifier(), 'a "fold": null')]
    return make_plan(models, [two_classes(), line(name='line "fold": null'), words()])


def session(plan, output):
    suite = Suite("tested", tuple(planned.task for planned in plan.tasks))
    return Session(plan, suite, Options(output=output), Progress())


def test_it_has_the_jobs_of_the_plan_with_their_hashes(plan, tmp_path):
    parts = {job: job % 3 for job in range(len(plan.jobs))}
    write_plan_file(tmp_path, session(plan, tmp_path), parts)
    found = PlanFile.read(tmp_path / FILE)
    expected = {
        (model.name, planned.task.name, fold): job_spec(plan, model, planned, fold)
        for model, planned, fold in plan.jobs
    }
    specs = {
        (model["about"]["model"], *job): spec
        for model in found.models
        for job, spec in found.specs(model).items()
    }
    assert specs == expected
    assert set(found.jobs()) == expected.keys()
    numbers = {
        (model.name, planned.task.name, fold): parts[job] + 1
        for job, (model, planned, fold) in enumerate(plan.jobs)
    }
    assert dict(zip(found.jobs(), found.parts(), strict=True)) == numbers
    assert found.count == 3
    declined = [record["task"] for model in found.models for record, _, _ in found.not_run(model)]
    assert declined == [each.task for each in plan.declined]


def test_the_same_plan_is_written_once_another_one_is_refused(plan, two_classes, tmp_path):
    write_plan_file(tmp_path, session(plan, tmp_path), {})
    before = (tmp_path / FILE).stat().st_mtime_ns
    write_plan_file(tmp_path, session(plan, tmp_path), {})
    assert (tmp_path / FILE).stat().st_mtime_ns == before
    other = make_plan(list(plan.models), [two_classes()], seed=1)
    with pytest.raises(DefinitionError, match="seed"):
        write_plan_file(tmp_path, session(other, tmp_path), {})
    write_plan_file(tmp_path, session(other, tmp_path), {}, replace=True)
    assert PlanFile.read(tmp_path / FILE).content["seed"] == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda c: c.update(karat="9.9"), "9.9"),
        (lambda c: c["models"][0].update(identity="x"), "one hot"),
        (lambda c: c["tasks"][0]["facts"].update(folds=[0]), "halves"),
        (lambda c: c["models"].pop(), "only"),
    ],
)
def test_differences_are_named(plan, tmp_path, change, named):
    write_plan_file(tmp_path, session(plan, tmp_path), {})
    first = PlanFile.read(tmp_path / FILE)
    content = json.loads((tmp_path / FILE).read_text())
    change(content)
    other = PlanFile(tmp_path / "other.json", content)
    assert named in first.difference(other)
    assert first.digest != other.digest
    assert first.difference(first) == ""


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "models": 3}'])
def test_a_damaged_file_is_named(tmp_path, text):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DataError, match=FILE):
        PlanFile.read(tmp_path / FILE)


def test_wrong_parts(plan, tmp_path):
    write_plan_file(tmp_path, session(plan, tmp_path), dict.fromkeys(range(len(plan.jobs)), 0))
    content = json.loads((tmp_path / FILE).read_text())
    content["parts"] = [[1, 1]]
    (tmp_path / FILE).write_text(json.dumps(content))
    with pytest.raises(DataError, match="parts"):
        PlanFile.read(tmp_path / FILE)
