"""State: the runs of a folder, looked at now and then, whoever asks and however often."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import FAILURES, KaratError
from karat.serve.kept import KeptRun, stamp_of
from karat.serve.replies import Refused

#: seconds between two looks at the folder
PAUSE = 0.5
#: nanoseconds in which a clock may stand still: what changed so lately may change unseen
TICK = 50_000_000


@dataclass(frozen=True)
class Snapshot:
    """The folder as it was at one look.

    ``version`` changes when a job is done; ``progress`` tells what runs now.
    """

    runs: dict[str, KeptRun]
    left_out: dict[str, str]
    version: str
    progress: dict[str, Any]

    def run(self, name: str) -> KeptRun:
        """Return the run of a folder's name."""
        if name not in self.runs:
            why = self.left_out.get(name, "")
            hint = f"it is left out: {why}" if why else "/api/v1/runs lists those there are"
            raise Refused(404, f'there is no run "{name[:200]}"', hint)
        return self.runs[name]


class State:
    """Looks at a folder at most twice a second, and reads only what has changed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._looked = float("-inf")
        self._snapshot = Snapshot({}, {}, "", {})
        self._stamps: dict[str, Any] = {}
        self._tables: tuple[str, pd.DataFrame] | None = None

    def look(self) -> Snapshot:
        """Return the folder as it is, or as it was half a second ago."""
        with self._lock:
            if time.monotonic() - self._looked >= PAUSE:
                self._snapshot = self._scan()
                self._looked = time.monotonic()
            return self._snapshot

    def forget(self) -> None:
        """Look anew when asked next: something was put there."""
        with self._lock:
            self._looked = float("-inf")

    def scores(self, snapshot: Snapshot) -> pd.DataFrame:
        """Return the scores of all runs in one table, made once per version."""
        with self._lock:
            if self._tables is None or self._tables[0] != snapshot.version:
                tables = [run.scores().assign(run=run.id) for run in snapshot.runs.values()]
                full = [table for table in tables if len(table)] or tables
                made = pd.concat(full, ignore_index=True) if full else pd.DataFrame()
                self._tables = (snapshot.version, made)
            return self._tables[1]

    def _scan(self) -> Snapshot:
        root = self.folder.resolve()
        runs: dict[str, KeptRun] = {}
        left_out: dict[str, str] = {}
        stamps: dict[str, Any] = {}
        for folder in _run_folders(self.folder):
            name = folder.name
            stamps[name] = stamp = _stamp(folder)
            known = self._snapshot.runs.get(name)
            if stamp is not None and stamp == self._stamps.get(name):
                if known is not None:
                    runs[name] = known
                elif name in self._snapshot.left_out:
                    left_out[name] = self._snapshot.left_out[name]
                continue
            try:
                runs[name] = KeptRun(folder, root, known)
            except (KaratError, OSError, RecursionError) as error:
                left_out[name] = str(error)[:500]
        self._stamps = stamps
        marks = repr([(name, run.content) for name, run in runs.items()])
        version = hashlib.blake2b(marks.encode("utf-8", "replace"), digest_size=12).hexdigest()
        return Snapshot(runs, left_out, version, _progress(runs))


def _run_folders(folder: Path) -> list[Path]:
    with os.scandir(folder) as entries:
        found = [Path(e.path) for e in entries if e.is_dir() and not e.name.startswith(".")]
    return sorted(path for path in found if (path / "run.json").is_file())


def _stamp(folder: Path) -> Any:
    """Return what changes with a run folder, or nothing while that cannot be told yet."""
    try:
        about, jobs = stamp_of(folder / "run.json"), (0, 0, 0)
        if (folder / "jobs").is_dir():
            jobs = stamp_of(folder / "jobs")
    except OSError:
        return None
    lately = time.time_ns() - max(about[0], jobs[0]) < TICK
    return None if lately else (about, jobs)


def _progress(runs: dict[str, KeptRun]) -> dict[str, Any]:
    rows = [run.row for run in runs.values()]
    running = [{"model": run.model, **job} for run in runs.values() for job in run.running_now()]
    failed = sum(row[name] for row in rows for name in FAILURES)
    left = sum(row["left"] for row in rows)
    done = sum(row["planned"] for row in rows) - left
    # what runs is not left any more, and what failed is done
    left = max(left - len(running), 0)
    return {"done": done, "running": running, "failed": failed, "left": left}
