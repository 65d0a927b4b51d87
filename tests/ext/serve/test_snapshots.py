"""The folder is scanned rarely, and only what changed is read."""

import asyncio
import json
import os
import shutil
import threading
import time

import numpy as np
import pandas as pd
import pytest

import karat
from karat.errors import DataError
from karat.ext.serve import snapshots
from karat.ext.serve.server import ApiError, ServerLimits
from karat.ext.serve.snapshots import (
    EMPTY_BUNDLE,
    BundleCache,
    Events,
    FolderWatcher,
    ServedRun,
    StreamEvent,
    to_ascii_json,
)
from karat.reporting.page import make_bundle
from karat.results.run import Run, open_runs


@pytest.fixture
def always(monkeypatch):
    """Scan the folder at every request."""
    monkeypatch.setattr(snapshots, "SCAN_INTERVAL", 0.0)


@pytest.fixture
def reads(monkeypatch):
    """The names of the records that were read."""
    found = []
    read = snapshots.read_job_file
    monkeypatch.setattr(
        snapshots, "read_job_file", lambda path: found.append(path.name) or read(path)
    )
    return found


def test_a_served_run_equals_the_run(folder):
    for run in open_runs([folder]):
        same = ServedRun(run.folder, folder.resolve())
        assert same.records() == run.records()
        assert same.about == run.about
        pd.testing.assert_frame_equal(same.scores(), run.scores())
        pd.testing.assert_frame_equal(same.results(), run.results())
        ours, theirs = same.predictions("line", 1), run.predictions("line", 1)
        assert ours.to_csv() == theirs.to_csv()


def test_nothing_is_read_twice(written, always, reads):
    for path in written.rglob("*"):
        os.utime(path, (1e9, 1e9))
    watcher = FolderWatcher(written)
    first = watcher.snapshot()
    assert len(reads) == 12
    second = watcher.snapshot()
    assert len(reads) == 12
    assert all(second.runs[name] is run for name, run in first.runs.items())
    assert second.version == first.version
    shutil.rmtree(next(written.glob("a.*")))
    assert [run.model for run in watcher.snapshot().runs.values()] == ["b"]


def test_only_new_records_are_read(written, tools, always, reads):
    watcher = FolderWatcher(written)
    before = watcher.snapshot()
    reads.clear()
    run = Run(next(written.glob("a.*")))
    run.write(tools.record("a", "halves", 3, 0.125), {})
    after = watcher.snapshot()
    assert reads == ["halves.3.json"]
    assert after.version != before.version
    assert len(after.runs[run.folder.name].records()) == 7


def test_a_started_job_changes_the_progress_but_not_the_version(written, always):
    path = next(written.glob("a.*")) / "run.json"
    about = json.loads(path.read_text())
    about["tasks"][0]["folds"] = [0, 1, 2, 3]
    path.write_text(json.dumps(about))
    watcher = FolderWatcher(written)
    before = watcher.snapshot()
    assert before.progress == {"done": 12, "running": [], "failed": 0, "left": 1}
    Run(path.parent).mark_running("halves", 3)
    after = watcher.snapshot()
    assert after.version == before.version
    job = {"model": "a", "task": "halves", "fold": 3}
    assert after.progress == {"done": 12, "running": [job], "failed": 0, "left": 0}


def test_recent_changes_are_scanned_again(written, tools, always):
    """Two jobs may end in one tick of the clock, one before the scan and one after it."""
    watcher = FolderWatcher(written)
    watcher.snapshot()
    run = Run(next(written.glob("a.*")))
    jobs = run.folder / "jobs"
    run.write(tools.record("a", "halves", 3, 0.125), {})
    stamp = jobs.stat().st_mtime_ns
    watcher.snapshot()
    run.write(tools.record("a", "halves", 4, 0.125), {})
    os.utime(jobs, ns=(stamp, stamp))
    assert len(watcher.snapshot().runs[run.folder.name].records()) == 8


def test_scans_are_rare(written, monkeypatch):
    watcher = FolderWatcher(written)
    count = []
    scan = watcher._scan
    monkeypatch.setattr(watcher, "_scan", lambda: count.append(1) or scan())
    for _ in range(50):
        watcher.snapshot()
    assert len(count) == 1
    watcher.rescan()
    watcher.snapshot()
    assert len(count) == 2


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tasks": "all"}, "tasks"),
        ({"model": 5}, "model"),
        ({"model": ""}, "model"),
        ({"tasks": [{"name": "x", "metrics": [], "folds": [], "dataset": ""}]}, "tasks.0.metrics"),
        ({"seed": "x"}, "seed"),
    ],
)
def test_invalid_runs_are_left_out(written, change, why):
    path = next(written.glob("a.*")) / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    snapshot = FolderWatcher(written).snapshot()
    assert [run.model for run in snapshot.runs.values()] == ["b"]
    assert why in snapshot.left_out[path.parent.name]
    with pytest.raises(ApiError, match="there is no run"):
        snapshot.run(path.parent.name)


@pytest.mark.parametrize("text", ["null", "[]", "7", "[" * 100_000])
def test_a_plan_that_is_no_object_is_left_out(written, text):
    path = next(written.glob("a.*")) / "run.json"
    path.write_text(text)
    snapshot = FolderWatcher(written).snapshot()
    assert [run.model for run in snapshot.runs.values()] == ["b"]
    assert list(snapshot.left_out) == [path.parent.name]


def test_invalid_records_invalid_json_and_other_folders(written, tools):
    run = Run(next(written.glob("a.*")))
    run.write(tools.record("a", "halves", 3, "<b>much</b>"), {})
    (written / "empty").mkdir()
    (written / "broken").mkdir()
    (written / "broken" / "run.json").write_text("{")
    (written / "a file").write_text("")
    snapshot = FolderWatcher(written).snapshot()
    assert [run.model for run in snapshot.runs.values()] == ["b"]
    assert set(snapshot.left_out) == {"broken", run.folder.name}
    assert "views.0.scores" in snapshot.left_out[run.folder.name]


@pytest.mark.parametrize(
    "content",
    [
        "null",
        "[]",
        "[[1, 2]]",
        "5",
        '"x"',
        "{}",
        "[" * 100_000,
        '{"tasks": null}',
        "NaN",
        '{"tasks": [null]}',
        '{"model": {"a": null}}',
        "\udcff",
        "1" * 10_000,
        "",
    ],
)
def test_a_damaged_run_hides_no_other(written, tools, content):
    damaged = written / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text(content, "utf-8", "surrogateescape")
    with tools.opened(written) as client:
        for path in ("/", "/report.html", *map("/api/v1/{}".format, SHOWN)):
            assert client.get(path).status_code == 200
        runs = client.get("/api/v1/runs").json()
        notes = client.get("/api/v1/bundle").json()["notes"]
        assert "damaged" in client.get("/report.html").text
    assert [run["model"] for run in runs["items"]] == ["a", "b"]
    assert [each["run"] for each in runs["left_out"]] == ["damaged"]
    assert any("damaged" in note for note in notes)
    assert str(written) not in json.dumps([runs, notes])


SHOWN = ("runs", "board", "scores", "bundle", "progress", "compare?a=a&b=b")


@pytest.mark.parametrize("content", ["null", "[]", '{"task": null}', "[" * 100_000, "\udcff"])
def test_a_damaged_record_hides_no_other(written, tools, content):
    jobs = next(written.glob("a.*")) / "jobs"
    (jobs / "halves.0.json").write_text(content, "utf-8", "surrogateescape")
    with tools.opened(written) as client:
        for path in ("/", *map("/api/v1/{}".format, SHOWN[:-1])):
            assert client.get(path).status_code == 200
        assert "b" in [run["model"] for run in client.get("/api/v1/runs").json()["items"]]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders")
def test_pipes_and_huge_files_are_not_read(written, monkeypatch):
    (written / "pipe").mkdir()
    os.mkfifo(written / "pipe" / "run.json")
    os.mkfifo(next(written.glob("b.*")) / "jobs" / "halves.9.json")
    snapshot = FolderWatcher(written).snapshot()
    assert [len(run.records()) for run in snapshot.runs.values()] == [6, 6]
    assert list(snapshot.left_out) == ["pipe"]
    monkeypatch.setattr(snapshots, "MAX_JSON_FILE", 10)
    assert len(FolderWatcher(written).snapshot().left_out) == 3


def test_a_run_that_breaks_the_leaderboard_is_left_out(written, tools, monkeypatch):
    import karat.analysis.leaderboard as module

    real, calls = module.leaderboard, []

    def fails_for_a(runs, **options):
        calls.append([run.model for run in runs])
        if "a" in calls[-1]:
            raise ZeroDivisionError("secret")
        return real(runs, **options)

    monkeypatch.setattr(module, "leaderboard", fails_for_a)
    with tools.opened(written) as client:
        board = client.get("/api/v1/board")
        assert [row["model"] for row in board.json()["items"]] == ["b"]
        runs = client.get("/api/v1/runs").json()
    assert [run["model"] for run in runs["items"]] == ["b"]
    assert [each["run"][:2] for each in runs["left_out"]] == ["a."]
    assert calls[0] == ["a", "b"]


def test_a_run_that_the_page_cannot_show_is_a_note(written, always, monkeypatch):
    def fails_for_a(runs):
        if "a" in [run.model for run in runs]:
            raise DataError("its metric is unknown")
        return {"models": [run.model for run in runs], "notes": ["About."]}

    monkeypatch.setattr("karat.reporting.page.make_bundle", fails_for_a)
    watcher = FolderWatcher(written)
    data = BundleCache().bundle(watcher.snapshot()).data
    assert (data["models"], len(data["notes"])) == (["b"], 2)
    assert "a." in data["notes"][1]
    shutil.rmtree(next(written.glob("b.*")))
    watcher.rescan()
    assert BundleCache().bundle(watcher.snapshot()).data["models"] == []


# -- links ----------------------------------------------------------------------------------


def test_links_out_of_the_folder_are_not_followed(written, tmp_path, tools):
    outside = tools.write_run(tmp_path / "outside", "secret").folder
    (written / "linked").symlink_to(outside)
    (written / "half").mkdir()
    (written / "half" / "run.json").write_text((outside / "run.json").read_text())
    (written / "half" / "jobs").symlink_to(outside / "jobs")
    (written / "about").mkdir()
    (written / "about" / "run.json").symlink_to(outside / "run.json")
    snapshot = FolderWatcher(written).snapshot()
    assert [run.model for run in snapshot.runs.values()] == ["a", "b"]
    assert set(snapshot.left_out) == {"linked", "half", "about"}
    assert all("outside" in why for why in snapshot.left_out.values())


def test_links_of_single_files(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text('{"answers": "secret"}')
    run = next(folder.glob("onehot.*"))
    for path in ("logs/halves/0.txt", "predictions/halves/0/predictions.csv"):
        (run / path).unlink()
        (run / path).symlink_to(secret)
    (run / "jobs" / "line.0.json").unlink()
    (run / "jobs" / "line.0.json").symlink_to(secret)
    found = FolderWatcher(folder).snapshot().run(run.name)
    assert not found.log({"task": "halves", "fold": 0}).exists()
    with pytest.raises(Exception, match="outside"):
        found.predictions("halves", 0)
    jobs = {(record["task"], record["fold"]) for record in found.records()}
    assert jobs == {("halves", 0), ("halves", 1), ("line", 1)}
    (folder / "again").symlink_to(run)  # inside of the folder
    assert len(FolderWatcher(folder).snapshot().runs) == 3


# -- bundles --------------------------------------------------------------------------------


@pytest.fixture
def patched_bundle(monkeypatch, always):
    """Return a function that replaces the making of bundles; ``made`` counts the calls."""
    made = []
    for name, value in {"MIN_BUNDLE_INTERVAL": 0.0, "BUNDLE_SHARE": 1.0}.items():
        monkeypatch.setattr(snapshots, name, value)

    def patch(before):
        def make(runs):
            made.append(1)
            before()
            return {"schema": 1, "jobs": sum(len(run.records()) for run in runs)}

        monkeypatch.setattr("karat.reporting.page.make_bundle", make)
        return made

    return patch


def jobs(cache, watcher):
    return cache.bundle(watcher.snapshot()).data["jobs"]


def test_a_bundle_is_made_once_per_version(written, tools, patched_bundle):
    made = patched_bundle(lambda: None)
    watcher, cache = FolderWatcher(written), BundleCache()
    assert {jobs(cache, watcher) for _ in range(5)} == {12}
    assert len(made) == 1
    Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 1.0), {})
    tag, body = cache.live(watcher.snapshot())
    assert json.loads(body)["jobs"] == 13
    assert (len(made), cache.live(watcher.snapshot())[0]) == (2, tag)


class Clock:
    """A clock that the test moves."""

    now, worked, time_ns = 1000.0, 0.0, time.time_ns

    def monotonic(self):
        return self.now

    def thread_time(self):
        return self.worked


@pytest.mark.parametrize(("seconds", "pause"), [(3.0, 12.0), (0.001, 0.5), (1000.0, 120.0)])
def test_bundles_take_a_fifth_of_the_time(
    written, tools, patched_bundle, monkeypatch, seconds, pause
):
    clock = Clock()
    monkeypatch.setattr(snapshots, "time", clock)
    monkeypatch.setattr(snapshots, "MIN_BUNDLE_INTERVAL", 0.5)
    monkeypatch.setattr(snapshots, "BUNDLE_SHARE", 0.2)
    patched_bundle(lambda: setattr(clock, "worked", clock.worked + seconds))
    watcher, cache = FolderWatcher(written), BundleCache()
    assert jobs(cache, watcher) == 12
    Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 1.0), {})
    clock.now += pause - 0.1
    assert jobs(cache, watcher) == 12
    clock.now += 0.2
    assert jobs(cache, watcher) == 13


def test_requests_do_not_wait_for_a_slow_bundle(written, tools, patched_bundle, monkeypatch):
    go = threading.Event()
    made = patched_bundle(go.wait)
    for name in ("FIRST_BUNDLE_WAIT", "NEW_BUNDLE_WAIT"):
        monkeypatch.setattr(snapshots, name, 0.05)
    watcher, cache = FolderWatcher(written), BundleCache()
    for _ in range(3):
        with pytest.raises(ApiError, match="is being made"):
            cache.bundle(watcher.snapshot())
    assert len(made) == 1
    task = cache._task
    go.set()
    task.result()
    assert jobs(cache, watcher) == 12
    go.clear()
    Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 1.0), {})
    assert jobs(cache, watcher) == 12
    go.set()
    tools.wait_until(lambda: jobs(cache, watcher) == 13)


def test_an_error_in_a_bundle_is_raised_and_the_next_request_tries_again(written, patched_bundle):
    errors = [ZeroDivisionError]

    def fail_once():
        if errors:
            raise errors.pop()

    patched_bundle(fail_once)
    watcher, cache = FolderWatcher(written), BundleCache()
    with pytest.raises(ZeroDivisionError):
        cache.bundle(watcher.snapshot())
    assert jobs(cache, watcher) == 12


def test_progress_is_current_while_the_bundle_is_not(written, tools, always):
    watcher, cache = FolderWatcher(written), BundleCache()
    first = json.loads(cache.live(watcher.snapshot())[1])
    Run(next(written.glob("a.*"))).write(tools.record("a", "halves", 3, 1.0), {})
    second = json.loads(cache.live(watcher.snapshot())[1])
    assert (first["progress"]["done"], second["progress"]["done"]) == (12, 13)


def test_an_empty_page_has_the_data_of_a_full_one(written):
    full = make_bundle(written)
    assert set(EMPTY_BUNDLE) == set(full)
    assert set(EMPTY_BUNDLE["tests"]) == set(full["tests"])


def test_json_has_no_nan_and_only_ascii():
    value = {"a": float("inf"), "b": ["\ud800", "é", "\u2028"], ("x", 1): None, "n": np.int64(3)}
    value |= {"x": np.float64("nan"), "v": np.array([1, 2]), "na": pd.NA, "t": True}
    body = to_ascii_json(value)
    assert body.isascii()
    expected = {"a": None, "b": ["\ud800", "é", "\u2028"], "x · 1": None, "n": 3, "x": None}
    assert json.loads(body) == {**expected, "v": [1, 2], "na": None, "t": True}


# -- events ---------------------------------------------------------------------------------


@pytest.fixture
def quick(monkeypatch):
    """Look for changes all the time."""
    monkeypatch.setattr(snapshots, "LOOK_INTERVAL", 0.001)


def changing(*values):
    """Return a function that gives one event after the other, and then always the last one."""
    waiting = [StreamEvent("progress", to_ascii_json(value)) for value in values]
    return lambda topic: waiting.pop(0) if len(waiting) > 1 else waiting[0]


async def first(stream, count):
    return [await anext(stream) for _ in range(count)]


def test_an_event_has_an_id_a_name_and_one_line_of_data():
    event = StreamEvent("progress", to_ascii_json({"a": "x\ny\r\u2028"}))
    lines = event.encode().decode().split("\n")
    assert lines[:2] == [f"id: {event.id}", "event: progress"]
    assert json.loads(lines[2].removeprefix("data: ")) == {"a": "x\ny\r\u2028"}
    assert lines[3:] == ["", ""]


def test_a_stream_has_every_change_once(quick):
    async def follow():
        stream = Events(changing(1, 1, 2, 2, 2, 3), ServerLimits()).follow("", "me")
        retry, *events = await first(stream, 4)
        await stream.aclose()
        return retry, events

    retry, events = asyncio.run(follow())
    assert retry == b"retry: 2000\n\n"
    assert events == [StreamEvent("progress", to_ascii_json(value)).encode() for value in (1, 2, 3)]


def test_a_client_that_connects_again_is_not_told_what_it_knows(quick, monkeypatch):
    monkeypatch.setattr(snapshots, "HEARTBEAT", 0.05)
    event = StreamEvent("progress", b"1")

    async def follow(seen):
        stream = Events(lambda topic: event, ServerLimits()).follow("", "me", seen)
        found = await first(stream, 2)
        await stream.aclose()
        return found[1]

    assert asyncio.run(follow(event.id)) == b": heartbeat\n\n"
    assert asyncio.run(follow("another")) == event.encode()


def test_a_stream_ends_after_the_last_event(quick):
    last = StreamEvent("evaluation", b"{}", last=True)

    async def follow():
        events = Events(lambda topic: last, ServerLimits())
        received = [part async for part in events.follow("id", "me")]
        assert (events.topics, events.clients.total()) == ({}, 0)
        return received

    assert asyncio.run(follow())[1:] == [last.encode(), b"event: end\ndata: {}\n\n"]


def test_a_stream_ends_when_there_is_nothing_to_look_at(quick):
    def gone(topic):
        raise ApiError(404, "gone")

    async def follow():
        return [part async for part in Events(gone, ServerLimits()).follow("id", "me")]

    assert asyncio.run(follow())[1:] == [b"event: end\ndata: {}\n\n"]


def test_many_streams_share_one_look_and_leave_nothing_behind(quick):
    looks = []

    def look(topic):
        looks.append(threading.current_thread())
        return StreamEvent("progress", to_ascii_json(len(looks)))

    async def follow():
        events = Events(look, ServerLimits(streams=300, streams_per_client=200))
        streams = [events.follow("", f"client {i % 2}") for i in range(300)]
        for stream in streams:
            await first(stream, 2)
        with pytest.raises(ApiError) as refused:
            events.check("client 3")
        assert refused.value.status == 503
        assert (len(events.topics), events.topics[""].clients) == (1, 300)
        assert len(asyncio.all_tasks()) == 2  # this one and the one that looks
        for stream in streams:
            await stream.aclose()
        assert (events.topics, events.clients.total()) == ({}, 0)
        await asyncio.sleep(0)
        events.check("client 3")
        await asyncio.sleep(0.01)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(follow())
    assert len(set(looks)) <= 40  # asyncio's own threads, whatever the number of clients
    assert threading.active_count() < 50


def test_a_client_has_a_limit_of_streams_of_its_own():
    async def follow():
        events = Events(changing(1), ServerLimits(streams=10, streams_per_client=1))
        stream = events.follow("", "me")
        await first(stream, 1)
        with pytest.raises(ApiError):
            events.check("me")
        events.check("another")
        await stream.aclose()
        events.check("me")

    asyncio.run(follow())


def test_closing_ends_all_streams_and_allows_no_more():
    async def follow():
        events = Events(changing(1), ServerLimits())
        streams = [events.follow("", "me") for _ in range(3)]
        for stream in streams:
            await first(stream, 2)
        events.close()
        assert [[part async for part in stream] for stream in streams] == [[], [], []]
        with pytest.raises(ApiError):
            events.check("me")

    asyncio.run(follow())


def test_an_imported_run_is_served_from_its_one_file_of_records(tmp_path):
    (tmp_path / "results.csv").write_text(
        "task,framework,fold,result,metric\niris,m,0,0.5,acc\niris,m,1,0.75,acc\n"
    )
    (run,) = karat.import_results(tmp_path / "results.csv", tmp_path / "runs").runs
    served = snapshots.ServedRun(run.folder, tmp_path / "runs")
    assert served.scores()["value"].tolist() == [0.5, 0.75]
    assert served.status["ok"] == 2
