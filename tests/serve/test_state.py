"""The folder is looked at seldom, and only what has changed is read."""

import json
import os
import threading
import time
from pathlib import Path

import pandas as pd
import pytest

from karat.analysis.leaderboard import leaderboard
from karat.reporting.bundle import make_bundle
from karat.results.run import Run, open_runs
from karat.serve import bundles, kept, state
from karat.serve.bundles import Bundles
from karat.serve.kept import KeptRun
from karat.serve.replies import Refused
from karat.serve.state import State


@pytest.fixture
def always(monkeypatch):
    """Look whenever somebody asks, at folders that changed long ago."""
    monkeypatch.setattr(state, "PAUSE", 0.0)


@pytest.fixture
def reads(monkeypatch):
    """The names of the records that were read."""
    found = []
    read = kept._record
    monkeypatch.setattr(kept, "_record", lambda path: found.append(path.name) or read(path))
    return found


def age(folder: Path, seconds: float = 10) -> None:
    """Make a folder look as if it had not changed for a while."""
    then = time.time() - seconds
    for path in (folder, folder / "run.json", folder / "jobs"):
        os.utime(path, (then, then))


def test_a_kept_run_is_the_run(folder):
    for run in open_runs([folder]):
        same = KeptRun(run.folder, folder.resolve())
        assert same.records() == run.records()
        assert same.about == run.about
        pd.testing.assert_frame_equal(same.scores(), run.scores())
        pd.testing.assert_frame_equal(same.results(), run.results())
        ours, theirs = same.predictions("line", 1), run.predictions("line", 1)
        assert ours.to_csv() == theirs.to_csv()


def test_the_board_and_the_bundle_are_those_of_the_folder(folder):
    snapshot = State(folder).look()
    runs = list(snapshot.runs.values())
    pd.testing.assert_frame_equal(leaderboard(runs), leaderboard(folder))
    assert make_bundle(runs) == make_bundle(folder)


def test_nothing_is_read_twice(written, always, reads):
    for run in open_runs([written]):
        age(run.folder)
    looked = State(written)
    first = looked.look()
    assert len(reads) == 12
    second = looked.look()
    assert len(reads) == 12
    assert (
        second.runs["a.mine.default.local.20260101T000000"]
        is first.runs["a.mine.default.local.20260101T000000"]
    )
    assert second.version == first.version


def test_of_a_run_that_goes_on_only_the_new_record_is_read(written, tools, always, reads):
    looked = State(written)
    before = looked.look()
    reads.clear()
    run = Run(next(written.glob("a.*")))
    run.write(tools.record("a", "halves", 3, 0.125), {})
    after = looked.look()
    assert reads == ["halves.3.json"]
    assert after.version != before.version
    assert len(after.runs[run.folder.name].records()) == 7


def test_a_job_that_begins_changes_the_progress_and_not_the_version(written, always):
    path = next(written.glob("a.*")) / "run.json"
    about = json.loads(path.read_text())
    about["tasks"][0]["folds"] = [0, 1, 2, 3]
    path.write_text(json.dumps(about))
    looked = State(written)
    before = looked.look()
    assert before.progress == {"done": 12, "running": [], "failed": 0, "left": 1}
    Run(path.parent).mark_running("halves", 3)
    after = looked.look()
    assert after.version == before.version
    job = {"model": "a", "task": "halves", "fold": 3}
    assert after.progress == {"done": 12, "running": [job], "failed": 0, "left": 0}


def test_what_changed_within_a_tick_is_looked_at_again(written, tools, always):
    """Two jobs may end in one tick of the clock, one before the look and one after it."""
    looked = State(written)
    looked.look()
    run = Run(next(written.glob("a.*")))
    jobs = run.folder / "jobs"
    run.write(tools.record("a", "halves", 3, 0.125), {})
    stamp = jobs.stat().st_mtime_ns
    looked.look()
    run.write(tools.record("a", "halves", 4, 0.125), {})
    os.utime(jobs, ns=(stamp, stamp))
    assert len(looked.look().runs[run.folder.name].records()) == 8


def test_looks_are_rare(written, monkeypatch):
    looked = State(written)
    count = []
    scan = looked._scan
    monkeypatch.setattr(looked, "_scan", lambda: count.append(1) or scan())
    for _ in range(50):
        looked.look()
    assert len(count) == 1
    looked.forget()
    looked.look()
    assert len(count) == 2


def test_a_run_that_is_taken_away_is_gone(written, always):
    import shutil

    looked = State(written)
    looked.look()
    shutil.rmtree(next(written.glob("a.*")))
    assert [run.model for run in looked.look().runs.values()] == ["b"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tasks": "all"}, "tasks: Input should be a valid list"),
        ({"model": 5}, "model: Input should be a valid string"),
        ({"model": ""}, "model: String should have at least 1 character"),
        ({"tasks": [{"name": "x", "metrics": [], "folds": [], "dataset": ""}]}, "tasks.0.metrics"),
        ({"seed": "x"}, "seed"),
    ],
)
def test_a_run_that_cannot_be_shown_is_left_out_and_the_others_are_not(written, change, why):
    path = next(written.glob("a.*")) / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    snapshot = State(written).look()
    assert [run.model for run in snapshot.runs.values()] == ["b"]
    assert why in snapshot.left_out[path.parent.name]
    with pytest.raises(Refused, match="there is no run"):
        snapshot.run(path.parent.name)


def test_a_record_that_cannot_be_shown_leaves_the_run_out(written, tools):
    run = Run(next(written.glob("a.*")))
    run.write(tools.record("a", "halves", 3, "<b>much</b>"), {})
    left_out = State(written).look().left_out
    assert "views.0.scores.acc" in left_out[run.folder.name]


def test_no_json_and_no_run_folder(written):
    (written / "empty").mkdir()
    (written / "broken").mkdir()
    (written / "broken" / "run.json").write_text("{")
    (written / "a file").write_text("")
    snapshot = State(written).look()
    assert len(snapshot.runs) == 2
    assert list(snapshot.left_out) == ["broken"]


# -- links ----------------------------------------------------------------------------------


def test_links_out_of_the_folder_are_not_followed(written, tmp_path, tools):
    outside = tools.write_run(tmp_path / "outside", "secret").folder
    (written / "linked").symlink_to(outside)
    (written / "half").mkdir()
    (written / "half" / "run.json").write_text((outside / "run.json").read_text())
    (written / "half" / "jobs").symlink_to(outside / "jobs")
    (written / "about").mkdir()
    (written / "about" / "run.json").symlink_to(outside / "run.json")
    snapshot = State(written).look()
    assert [run.model for run in snapshot.runs.values()] == ["a", "b"]
    assert set(snapshot.left_out) == {"linked", "half", "about"}
    assert all("leads out" in why for why in snapshot.left_out.values())


def test_single_files_that_are_links_out_are_not_read(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('{"answers": "secret"}')
    run = next(folder.glob("onehot.*"))
    for path in ("logs/halves/0.txt", "predictions/halves/0/predictions.csv"):
        (run / path).unlink()
        (run / path).symlink_to(secret)
    (run / "jobs" / "line.0.json").unlink()
    (run / "jobs" / "line.0.json").symlink_to(secret)
    found = State(folder).look().run(run.name)
    assert not found.log({"task": "halves", "fold": 0}).exists()
    with pytest.raises(Exception, match="leads out"):
        found.predictions("halves", 0)
    assert {(r["task"], r["fold"]) for r in found.records()} == {
        *{("halves", 0), ("halves", 1), ("line", 1)}
    }


def test_a_link_within_the_folder_is_fine(written):
    real = next(written.glob("a.*"))
    (written / "again").symlink_to(real)
    assert len(State(written).look().runs) == 3


# -- bundles --------------------------------------------------------------------------------


def test_a_bundle_is_made_once_per_version(written, tools, always, monkeypatch):
    monkeypatch.setattr(bundles, "PAUSE", 0.0)
    monkeypatch.setattr(bundles, "SHARE", 1.0)
    made = []
    make = bundles._data
    monkeypatch.setattr(bundles, "_data", lambda snapshot: made.append(1) or make(snapshot))
    looked, kept_here = State(written), Bundles()
    for _ in range(5):
        kept_here.live(looked.look())
        kept_here.page(looked.look(), frozen=False)
    assert len(made) == 1
    run = Run(next(written.glob("a.*")))
    run.write(tools.record("a", "halves", 3, 1.0), {})
    tag = kept_here.live(looked.look()).tag
    assert len(made) == 2
    assert kept_here.live(looked.look()).tag == tag


class Clock:
    """Stands still until somebody works or waits."""

    def __init__(self):
        self.now, self.worked = 1000.0, 0.0

    def monotonic(self):
        return self.now

    def thread_time(self):
        return self.worked


@pytest.mark.parametrize(("seconds", "pause"), [(3.0, 12.0), (0.001, 0.5), (1000.0, 120.0)])
def test_bundles_take_a_fifth_of_the_time(written, tools, always, monkeypatch, seconds, pause):
    clock = Clock()

    def slow(snapshot):
        clock.worked += seconds
        return {"schema": 1, "jobs": snapshot.progress["done"]}

    monkeypatch.setattr(bundles, "time", clock)
    monkeypatch.setattr(bundles, "_data", slow)
    looked, kept_here = State(written), Bundles()
    assert kept_here.bundle(looked.look()).data["jobs"] == 12
    Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 1.0), {})
    clock.now += pause - 0.1
    assert kept_here.bundle(looked.look()).data["jobs"] == 12
    clock.now += 0.2
    assert kept_here.bundle(looked.look()).data["jobs"] == 13


def test_nobody_waits_long_for_a_bundle_that_takes_long(written, tools, always, monkeypatch):
    go, made = threading.Event(), []

    def slow(snapshot):
        made.append(1)
        go.wait(20)
        return {"schema": 1, "jobs": snapshot.progress["done"]}

    for name, value in {"FIRST": 0.05, "NEWS": 0.05, "PAUSE": 0.0, "SHARE": 1.0}.items():
        monkeypatch.setattr(bundles, name, value)
    monkeypatch.setattr(bundles, "_data", slow)
    looked, kept_here = State(written), Bundles()
    for _ in range(3):
        with pytest.raises(Refused, match="is being made"):
            kept_here.bundle(looked.look())
    page = kept_here.page(looked.look(), frozen=False)
    assert (page.status, page.headers["refresh"]) == (503, "3")
    assert len(made) == 1
    go.set()
    tools.wait_until(lambda: kept_here._work.done.is_set(), 5)
    assert kept_here.bundle(looked.look()).data["jobs"] == 12
    go.clear()
    Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 1.0), {})
    assert kept_here.bundle(looked.look()).data["jobs"] == 12
    go.set()
    assert tools.wait_until(lambda: kept_here.bundle(looked.look()).data["jobs"] == 13, 5)


def test_what_breaks_while_a_bundle_is_made_is_told_and_tried_again(written, monkeypatch):
    broken = [True]

    def data(snapshot):
        if broken.pop() if broken else False:
            raise ZeroDivisionError
        return {"schema": 1}

    monkeypatch.setattr(bundles, "_data", data)
    looked, kept_here = State(written), Bundles()
    with pytest.raises(ZeroDivisionError):
        kept_here.bundle(looked.look())
    assert kept_here.bundle(looked.look()).data == {"schema": 1}


def test_progress_is_fresh_while_the_bundle_is_not(written, tools, always, monkeypatch):
    looked, kept_here = State(written), Bundles()
    first = json.loads(kept_here.live(looked.look()).body)
    Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 1.0), {})
    second = json.loads(kept_here.live(looked.look()).body)
    assert (first["progress"]["done"], second["progress"]["done"]) == (12, 13)
