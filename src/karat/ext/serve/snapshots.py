"""The runs of the served folder as they are now, the live page, and the events about changes.

The folder is scanned at most twice per second, and only files that changed are read again.
Run folders may come from other people: each is validated, and nothing outside the served folder
is read.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import stat
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from karat import __version__
from karat.core.digest import blake2_of
from karat.core.files import safe_name
from karat.core.predictions import FILE, ROWS_FILE
from karat.errors import FAILURES, DataError, KaratError
from karat.ext.serve.server import ApiError, ServerLimits
from karat.results.load import FrozenRun, status_row
from karat.results.run import is_job_file, read_job_file
from karat.results.run_folders import RUN_FILE, find_run_folders
from karat.results.stored_facts import check_record
from karat.results.tables import scores_table

#: seconds between two scans of the folder
SCAN_INTERVAL = 0.5
#: resolution of file times in nanoseconds: a newer file may change again with the same time
TIME_RESOLUTION = 50_000_000
#: share of the time that may be spent on making bundles
BUNDLE_SHARE = 0.2
#: minimum and maximum seconds between two bundles of a changing folder
MIN_BUNDLE_INTERVAL, MAX_BUNDLE_INTERVAL = 0.5, 120.0
#: seconds to wait for the first bundle, and for a newer one
FIRST_BUNDLE_WAIT, NEW_BUNDLE_WAIT = 20.0, 1.0
#: number of runs that a page names because they cannot be shown
MAX_NOTES = 20
#: maximum size of a record or run.json in bytes
MAX_JSON_FILE = 2**26
#: seconds between two looks for changes, and after which a quiet stream gets a comment
LOOK_INTERVAL, HEARTBEAT = 1.0, 15.0
#: milliseconds after which a browser connects again
RETRY = 2000
#: content security policy of everything that does not set its own
POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

FileStamp = tuple[int, int, int]
Text = Annotated[str, Field(max_length=20_000)]
EMPTY_BUNDLE: dict[str, Any] = {
    **{"schema": 1, "title": "Karat", "karat": __version__, "made": "", "confidence": 0.95},
    **{"rule": "worst", "notes": [], "models": [], "tasks": [], "scores": [], "spread": []},
    **{"folds": [], "states": [], "where": "", "curves": [], "robustness": None, "learning": []},
    **{"groups": [], "verdict": [], "partial": [], "cheapest": []},
    "tests": {
        **{"procedure": "", "friedman": None, "why": "", "cliques": [], "pairs": None},
        **{"by_task": [], "differences": [], "groups": []},
    },
    **{"details": {}, "failures": [], "maps": [], "cards": [], "checks": [], "runs": [], "cut": []},
}


# -- JSON -----------------------------------------------------------------------------------


def to_ascii_json(value: object) -> bytes:
    r"""Return a value as ASCII-only JSON without NaN.

    >>> to_ascii_json({"a": float("nan"), "b": (1, "é")})
    b'{"a":null,"b":[1,"\\u00e9"]}'
    """
    return json.dumps(_plain(value), allow_nan=False, separators=(",", ":")).encode("ascii")


def _plain(value: object) -> Any:
    """Return a value made of JSON types; missing and infinite numbers become null."""
    if isinstance(value, Mapping):
        return {
            " · ".join(map(str, key)) if isinstance(key, tuple) else str(key): _plain(member)
            for key, member in value.items()
        }
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(member) for member in value]
    if hasattr(value, "tolist"):  # NumPy scalars and arrays
        return _plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    missing = str(value) in ("<NA>", "NaT")  # of pandas
    return value if isinstance(value, str | int | None) else None if missing else str(value)


# -- records as the API returns them --------------------------------------------------------


class Checked(BaseModel):
    """Required keys and their types; other keys are allowed."""

    model_config = ConfigDict(extra="allow", strict=True)


class CheckedView(Checked):
    """Scores of a job for one view of the data."""

    corruption: Text
    severity: float
    draw: int = 0
    coverage: float | None = None
    scores: dict[str, float | None]


class CheckedEpoch(Checked):
    """A score of one epoch."""

    epoch: int
    metric: Text
    value: float | None


class CheckedRecord(Checked):
    """The record of a job."""

    model: Text
    task: Text
    metric: Text
    status: Text
    info: str
    utc: Text
    fold: int | None
    repeat: int | None
    seed: int | None
    seconds: float | None = None
    embed_seconds: float | None = None
    peak_memory_mb: float | None = None
    notes: list[str]
    views: list[CheckedView]
    history: list[CheckedEpoch]


# -- runs -----------------------------------------------------------------------------------


class ServedRun(FrozenRun):
    """A run at the time of a scan; files outside ``root`` are not read.

    Records that did not change since ``earlier``, the same run, are taken from it.
    """

    #: uploaded files of all records are not trusted
    stored = None

    def __init__(self, folder: Path, root: Path, earlier: ServedRun | None = None) -> None:
        super().__init__(folder)
        self.root = root
        self.id = folder.name
        for path in (folder, folder / RUN_FILE, folder / "jobs"):
            self._check_inside(path)
        _check_file(folder / RUN_FILE)
        plan_stamp = file_stamp(folder / RUN_FILE)
        unchanged = {} if earlier is None else earlier._files
        self._files: dict[str, tuple[FileStamp, Any]] = dict(self._read(unchanged))
        stamps = [plan_stamp, *sorted((name, stamp) for name, (stamp, _) in self._files.items())]
        #: changes when a job ends, but not when one starts
        self.version = short_hash(repr(stamps).encode())
        self.about  # noqa: B018 (raises DataError if it is damaged)
        for record in self.records():
            if wrong := check_record(record):
                raise DataError(f"the record of {str(record.get('task'))[:60]}: {wrong} is wrong.")

    def _read(
        self, earlier_files: Mapping[str, Any]
    ) -> Iterator[tuple[str, tuple[FileStamp, Any]]]:
        try:
            entries = list(os.scandir(self.folder / "jobs"))
        except OSError:
            return
        for entry in entries:
            if not is_job_file(entry.name) or entry.name.startswith("."):
                continue
            path = Path(entry.path)
            try:
                if entry.is_symlink():
                    self._check_inside(path)
                stamp = file_stamp(path)
                earlier = earlier_files.get(entry.name)
                if earlier is None or earlier[0] != stamp:
                    _check_file(path)
                    earlier = (stamp, read_job_file(path))
                yield entry.name, earlier
            except (OSError, DataError):
                continue  # deleted meanwhile, a link to a file outside, or not a file

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        return self._in_order(record for _, records in self._files.values() for record in records)

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return scores_table(self.records())

    def scores(self) -> pd.DataFrame:
        """Return the tidy table of all scores, one row per score."""
        return self._scores.copy(deep=False)

    @cached_property
    def status(self) -> dict[str, Any]:
        """The row of ``karat show`` of a run."""
        return status_row(self)

    def active_jobs(self) -> list[dict[str, Any]]:
        """Return task and fold of the jobs that are running."""
        if not self.status["left"]:
            return []
        names = {safe_name(task["name"]): task["name"] for task in self.about["tasks"]}
        pairs = [stem.rpartition(".") for stem in self.running_jobs()]
        return [{"task": names.get(task, task), "fold": int(fold)} for task, _, fold in pairs]

    def summary(self) -> dict[str, Any]:
        """Return the run's settings and progress."""
        names = ("model", "suite", "constraint", "mode", "stamp", "seed", "karat", "role")
        settings = {name: self.about.get(name) for name in names}
        counts = {k: v for k, v in self.status.items() if k not in ("run", "model")}
        running = len(self.active_jobs())
        state = "finished" if not counts["left"] else "running" if running else "stopped"
        return {"id": self.id, **settings, **counts, "running": running, "state": state}

    def log(self, record: Mapping[str, Any]) -> Path:
        """Return the path of a job's log; it does not exist if the log is a link to outside."""
        path = super().log(record)
        return path if self._is_inside(path) else self.folder / "logs" / ".none"

    def _predictions(self, record: Mapping[str, Any]) -> Path:
        path = super()._predictions(record)
        self._check_inside(path)
        return path

    def _view_folder(self, task: str, fold: int, view: str) -> Path:
        folder = super()._view_folder(task, fold, view)
        for name in (FILE, ROWS_FILE, "metadata.json"):
            self._check_inside(folder / name)
        return folder

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):
            return False

    def _check_inside(self, path: Path) -> None:
        if not self._is_inside(path):
            raise DataError(f"{path.name} is outside of the served folder.")


def _check_file(path: Path) -> None:
    """Raise a DataError for a pipe or a device, which could be read forever, or a huge file."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode) or status.st_size > MAX_JSON_FILE:
        raise DataError(f"{path.name} is not a file of at most {MAX_JSON_FILE:,} bytes.")


def short_hash(content: bytes) -> str:
    """Return a hash for entity tags and versions."""
    return blake2_of(content, size=12)


def file_stamp(path: Path) -> FileStamp:
    """Return a value that changes when a file is written."""
    status = path.stat()
    return status.st_mtime_ns, status.st_size, status.st_ino


# -- snapshots of the folder ----------------------------------------------------------------


@dataclass(frozen=True)
class Snapshot:
    """The folder at one scan.

    ``version`` changes when a job ends or a run is damaged, ``progress`` and ``state`` also when a
    job starts.
    """

    runs: dict[str, ServedRun]
    left_out: dict[str, str]
    version: str
    progress: dict[str, Any]
    state: str = ""

    def run(self, name: str) -> ServedRun:
        """Return a run by the name of its folder."""
        if name not in self.runs:
            reason = self.left_out.get(name, "")
            hint = f"it is left out: {reason}" if reason else "see /api/v1/runs"
            raise ApiError(404, f'there is no run "{name[:200]}"', hint)
        return self.runs[name]

    def scores(self) -> pd.DataFrame:
        """Return the scores of all runs in one table."""
        tables = [run.scores().assign(run=run.id) for run in self.runs.values()]
        full = [table for table in tables if len(table)] or tables
        return pd.concat(full, ignore_index=True) if full else pd.DataFrame()


class FolderWatcher:
    """Scans a folder at most twice per second and reads only what changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._scanned = float("-inf")
        self._snapshot = Snapshot({}, {}, "", {})
        self._stamps: dict[str, Any] = {}
        #: why runs cannot be shown, by name and version; empty if they can
        self._reasons: dict[tuple[str, str], str] = {}

    def snapshot(self) -> Snapshot:
        """Return the state of the folder, at most half a second old."""
        with self._lock:
            if time.monotonic() - self._scanned >= SCAN_INTERVAL:
                self._snapshot = self._scan()
                self._scanned = time.monotonic()
            return self._snapshot

    def newest(self, intervals: int = 1) -> Snapshot | None:
        """Return the state of the last scan, without waiting, unless it is older than this."""
        fresh = time.monotonic() - self._scanned < intervals * SCAN_INTERVAL
        return self._snapshot if fresh else None

    def rescan(self) -> None:
        """Scan again at the next request."""
        with self._lock:
            self._scanned = float("-inf")

    def leave_out_damaged(self) -> bool:
        """Look for runs that can be read but not shown, and return whether some are left out now.

        This is slow, and needed only after an unexpected error. Each run is checked once.
        """
        damaged = False
        for name, run in self.snapshot().runs.items():
            if (name, run.version) not in self._reasons:
                self._reasons[name, run.version] = reason = _reason_not_to_show(run)
                damaged = damaged or bool(reason)
        if damaged:
            self.rescan()
        return damaged

    def _scan(self) -> Snapshot:
        runs: dict[str, ServedRun] = {}
        left_out: dict[str, str] = {}
        stamps: dict[str, Any] = {}
        active = []
        for folder in find_run_folders(self.folder):
            name = folder.name
            if name.startswith("."):
                continue
            stamps[name] = stamp = _folder_stamp(folder)
            same = stamp is not None and stamp == self._stamps.get(name)
            if same and name in self._snapshot.left_out:
                left_out[name] = self._snapshot.left_out[name]
                continue
            try:
                run = self._load(folder, same)
                active.append((name, run.version, run.status, run.active_jobs()))
                runs[name] = run
            except Exception as error:  # whatever is wrong with a run, the others are shown
                left_out[name] = describe_damage(error, self.folder)
        self._stamps = stamps
        versions = repr([[(name, run.version) for name, run in runs.items()], left_out])
        version, state = (_text_hash(text) for text in (versions, versions + repr(active)))
        return Snapshot(
            runs=runs,
            left_out=left_out,
            version=version,
            progress=count_job_states(runs),
            state=state,
        )

    def _load(self, folder: Path, same: bool) -> ServedRun:
        run = self._snapshot.runs.get(folder.name)
        if not same or run is None:
            run = ServedRun(folder, self.folder.resolve(), run)
        if reason := self._reasons.get((folder.name, run.version)):
            raise DataError(reason)
        return run


def describe_damage(error: Exception, folder: Path) -> str:
    """Return why a run cannot be shown, without paths of this machine."""
    text = str(error) if isinstance(error, KaratError) else f"{type(error).__name__}: {error}"
    return text.replace(str(folder.resolve()), "DIR").replace(str(folder), "DIR")[:500]


def _reason_not_to_show(run: ServedRun) -> str:
    """Return the unexpected error when a run is shown alone, or an empty string."""
    from karat.analysis.leaderboard import leaderboard
    from karat.reporting.page import make_bundle

    try:
        run.summary()
        if run.records():
            run.results()
            leaderboard([run])
            make_bundle([run])
    except KaratError:
        return ""  # it tells the client what to do
    except Exception as error:
        return describe_damage(error, run.root)
    return ""


def _text_hash(text: str) -> str:
    return short_hash(text.encode("utf-8", "replace"))


def _folder_stamp(folder: Path) -> Any:
    """Return a value that changes with a run folder, or None if it changed just now."""
    try:
        plan, jobs = file_stamp(folder / RUN_FILE), file_stamp(folder / "jobs")
    except OSError:
        return None
    recent = time.time_ns() - max(plan[0], jobs[0]) < TIME_RESOLUTION
    return None if recent else (plan, jobs)


def count_job_states(runs: Mapping[str, ServedRun]) -> dict[str, Any]:
    """Return the progress of some runs: the number of jobs by state, and the running jobs."""
    rows = [run.status for run in runs.values()]
    running = [{"model": run.model, **job} for run in runs.values() for job in run.active_jobs()]
    failed = sum(row[name] for row in rows for name in FAILURES)
    waiting = sum(row["left"] for row in rows)
    done = sum(row["planned"] for row in rows) - waiting
    # running jobs do not count as left, failed jobs count as done
    waiting = max(waiting - len(running), 0)
    return {"done": done, "running": running, "failed": failed, "left": waiting}


# -- bundles and pages ----------------------------------------------------------------------


@dataclass(frozen=True)
class Bundle:
    """The data of the page for one version; used without a check until the time ``until``."""

    version: str
    data: dict[str, Any]
    body: bytes
    until: float


class BundleCache:
    """The newest bundle and its pages.

    If making a bundle is slow, the previous one is used for longer, so that a large folder does
    not keep the machine busy during an evaluation.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._task: Future[Bundle] | None = None
        self._newest: Bundle | None = None
        self._pages: dict[bool, tuple[str, bytes, dict[str, str]]] = {}

    def bundle(self, snapshot: Snapshot) -> Bundle:
        """Return the bundle of a snapshot, or the previous one while a new one is being made."""
        newest = self._newest
        if newest and (newest.version == snapshot.version or time.monotonic() < newest.until):
            return newest
        with self._lock:
            if self._task is None:
                self._task = _start_bundle(snapshot)
            task = self._task
        try:
            bundle = task.result(FIRST_BUNDLE_WAIT if newest is None else NEW_BUNDLE_WAIT)
        except TimeoutError as error:
            if newest is not None:
                return newest
            hint = "try again soon"
            raise ApiError(503, "the page is being made", hint, {"retry-after": "5"}) from error
        finally:
            with self._lock:
                if self._task is task and task.done():
                    self._task = None
        self._newest = bundle
        return bundle

    @property
    def version(self) -> str:
        """The version of the newest bundle; empty if there is none."""
        return "" if self._newest is None else self._newest.version

    def live(self, snapshot: Snapshot) -> tuple[str, bytes]:
        """Return the entity tag and the JSON of bundle and progress."""
        bundle = self.bundle(snapshot)
        facts = to_ascii_json({**_live_facts(bundle), "progress": snapshot.progress})
        return short_hash(facts), bundle.body[:-1] + b"," + facts[1:]

    def page(self, snapshot: Snapshot, *, live: bool) -> tuple[str, bytes, dict[str, str]]:
        """Return entity tag, HTML and headers of the live page or of the downloadable report."""
        from karat.reporting.page import make_page

        bundle = self.bundle(snapshot)
        tag = f"{bundle.version}-{'live' if live else 'file'}"
        page = self._pages.get(live)
        if page is None or page[0] != tag:
            data = {**bundle.data, **_live_facts(bundle)} if live else bundle.data
            text = make_page(data, live="/api/v1/bundle" if live else None)
            headers = {"content-security-policy": _page_policy(text)}
            if not live:
                headers["content-disposition"] = 'attachment; filename="report.html"'
            page = self._pages[live] = (tag, text.encode("utf-8", "replace"), headers)
        return page


def _live_facts(bundle: Bundle) -> dict[str, Any]:
    """Return what only a served page needs: the version of its data, and where events are."""
    return {"version": bundle.version, "events": "/api/v1/events"}


def _start_bundle(snapshot: Snapshot) -> Future[Bundle]:
    """Make a bundle in a daemon thread: the exit of the server does not wait for it."""
    future: Future[Bundle] = Future()

    def make() -> None:
        try:
            future.set_result(_make_bundle(snapshot))
        except Exception as error:  # raised in the request that waits for it
            future.set_exception(error)

    threading.Thread(target=make, daemon=True).start()
    return future


def _make_bundle(snapshot: Snapshot) -> Bundle:
    start = time.thread_time()
    data = _bundle_data(list(snapshot.runs.values()))
    data = _with_notes(data, "Damaged, not shown", snapshot.left_out)
    body = to_ascii_json(data)
    pause = (time.thread_time() - start) * (1 / BUNDLE_SHARE - 1)
    pause = min(max(MIN_BUNDLE_INTERVAL, pause), MAX_BUNDLE_INTERVAL)
    return Bundle(snapshot.version, data, body, time.monotonic() + pause)


def _bundle_data(runs: list[ServedRun]) -> dict[str, Any]:
    """Return the data of a page, without the runs that cannot be shown."""
    from karat.reporting.page import make_bundle

    if not runs:
        return {**EMPTY_BUNDLE, "notes": ["There is no run here yet."]}
    try:
        return make_bundle(runs)
    except KaratError as error:
        together = describe_damage(error, runs[0].root)
    reasons = {}
    for run in runs:
        try:
            make_bundle([run])
        except KaratError as error:
            reasons[run.id] = describe_damage(error, run.root)
    readable = [run for run in runs if run.id not in reasons]
    if not readable or not reasons:
        return {**EMPTY_BUNDLE, "notes": [together]}
    return _with_notes(_bundle_data(readable), "Not shown", reasons)


def _with_notes(data: dict[str, Any], what: str, reasons: Mapping[str, str]) -> dict[str, Any]:
    """Return the data of a page with notes about the first runs that are not on it."""
    if not reasons:
        return data
    notes = [f"{what}: {name}: {why}" for name, why in reasons.items()]
    more = [f"{what}: {len(notes) - MAX_NOTES} more."] if len(notes) > MAX_NOTES else []
    return {**data, "notes": [*data["notes"], *notes[:MAX_NOTES], *more]}


def _page_policy(page: str) -> str:
    """Return the policy in the page's own meta tag, with the directives a meta tag cannot set."""
    meta_tag = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    if meta_tag is None or not meta_tag[1].isascii() or "\n" in meta_tag[1]:
        return POLICY
    page_rules = meta_tag[1].replace("&#x27;", "'").strip().rstrip(";")
    names = {directive.split()[0] for directive in page_rules.split(";") if directive.strip()}
    return "; ".join([page_rules, *(d for d in POLICY.split("; ") if d.split()[0] not in names)])


# -- events ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamEvent:
    """A state that clients receive; after the ``last`` one their streams end."""

    name: str
    data: bytes
    last: bool = False

    @cached_property
    def id(self) -> str:
        """A hash of the state: a client that has it receives it only once."""
        return short_hash(self.data)

    def encode(self) -> bytes:
        """Return the event as lines of a stream; ASCII-only JSON has no line breaks."""
        head = f"id: {self.id}\nevent: {self.name}\ndata: "
        return head.encode() + self.data + b"\n\n"


@dataclass
class Topic:
    """What some clients follow: its newest event, and an object that is set at the next change."""

    clients: int = 0
    newest: StreamEvent | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None

    def wake(self) -> None:
        """Wake all clients that wait for a change."""
        changed, self.changed = self.changed, asyncio.Event()
        changed.set()


class Events:
    """Streams of server-sent events.

    Clients of a topic share one task that looks for changes once per second, while there are
    clients; a client itself needs no thread. ``look`` returns the present state of a topic.
    """

    def __init__(self, look: Callable[[str], StreamEvent], limits: ServerLimits) -> None:
        self.look = look
        self.limits = limits
        self.clients: Counter[str] = Counter()
        self.topics: dict[str, Topic] = {}
        self._closed = False

    def check(self, client: str) -> None:
        """Raise an ApiError if there are too many streams."""
        full = self.clients.total() >= self.limits.streams
        if self._closed or full or self.clients[client] >= self.limits.streams_per_client:
            hint = "poll /api/v1/progress instead"
            raise ApiError(503, "too many event streams", hint, {"retry-after": "30"})

    async def follow(self, name: str, client: str, seen: str = "") -> AsyncIterator[bytes]:
        """Yield the events of a topic that follow the one whose id the client has ``seen``."""
        self.clients[client] += 1
        topic = self._join(name)
        try:
            yield b"retry: %d\n\n" % RETRY
            while not self._closed:
                changed, newest = topic.changed, topic.newest
                if newest is not None and newest.id != seen:
                    seen = newest.id
                    yield newest.encode()
                if topic.task is not None and topic.task.done():
                    yield b"event: end\ndata: {}\n\n"
                    return
                try:
                    async with asyncio.timeout(HEARTBEAT):
                        await changed.wait()
                except TimeoutError:
                    yield b": heartbeat\n\n"
        finally:
            self._leave(name, topic, client)

    def close(self) -> None:
        """End all streams, so that the server can shut down."""
        self._closed = True
        for topic in self.topics.values():
            topic.wake()

    def _join(self, name: str) -> Topic:
        topic = self.topics.get(name)
        if topic is None or topic.task is None or topic.task.done():
            topic = self.topics[name] = Topic()
            topic.task = asyncio.create_task(self._watch(name, topic))
        topic.clients += 1
        return topic

    def _leave(self, name: str, topic: Topic, client: str) -> None:
        self.clients -= Counter({client: 1})
        topic.clients -= 1
        if not topic.clients:
            if topic.task is not None:
                topic.task.cancel()
            if self.topics.get(name) is topic:
                del self.topics[name]

    async def _watch(self, name: str, topic: Topic) -> None:
        """Look for changes until the last event; an error ends the streams, and clients poll."""
        try:
            while True:
                event = await asyncio.to_thread(self.look, name)
                if topic.newest is None or event.id != topic.newest.id:
                    topic.newest = event
                    topic.wake()
                if event.last:
                    return
                await asyncio.sleep(LOOK_INTERVAL)
        except ApiError:
            return  # the evaluation is forgotten
        finally:
            asyncio.get_running_loop().call_soon(topic.wake)  # after the end of this task
