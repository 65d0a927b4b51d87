"""A run kept in memory: read once, and of what changed later only that."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from karat.core.files import safe_name
from karat.errors import DataError
from karat.results.load import FrozenRun, status_row
from karat.results.run import NEEDED
from karat.results.tables import scores_table
from karat.serve.shapes import check_run

Stamp = tuple[int, int, int]


class KeptRun(FrozenRun):
    """A run as it was when it was looked at; nothing outside ``root`` is read for it.

    ``earlier`` is the same run at an earlier look: records that did not change are taken from it.
    """

    def __init__(self, folder: Path, root: Path, earlier: KeptRun | None = None) -> None:
        super().__init__(folder)
        self.root = root
        for part in (folder, folder / "run.json", folder / "jobs"):
            self._check_inside(part)
        about = stamp_of(folder / "run.json")
        known = earlier._files if earlier is not None else {}
        self._files: dict[str, tuple[Stamp, Any]] = dict(self._read(known))
        marks = [about, *sorted((name, stamp) for name, (stamp, _) in self._files.items())]
        #: changes when something is finished, and not when a job merely begins
        self.content = hashlib.blake2b(repr(marks).encode(), digest_size=12).hexdigest()
        check_run(self)

    @property
    def id(self) -> str:
        """What the run is called in addresses: the name of its folder."""
        return self.folder.name

    def _read(self, known: Mapping[str, Any]) -> Iterator[tuple[str, tuple[Stamp, Any]]]:
        try:
            entries = list(os.scandir(self.folder / "jobs"))
        except OSError:
            return
        for entry in entries:
            if not entry.name.endswith(".json") or entry.name.startswith("."):
                continue
            path = Path(entry.path)
            try:
                if entry.is_symlink():
                    self._check_inside(path)
                stamp = stamp_of(path)
                earlier = known.get(entry.name)
                if earlier is None or earlier[0] != stamp:
                    earlier = (stamp, _record(path))
                yield entry.name, earlier
            except (OSError, DataError):
                continue  # gone meanwhile, or not ours to read

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the finished jobs, in the order of the plan."""
        return list(self._sorted)

    @cached_property
    def _sorted(self) -> list[dict[str, Any]]:
        order = {task["name"]: i for i, task in enumerate(self.about["tasks"])}
        found = [record for _, record in self._files.values() if record is not None]
        last = len(order)
        return sorted(found, key=lambda r: (order.get(r["task"], last), r["task"], r["fold"] or 0))

    def scores(self) -> pd.DataFrame:
        """Return the tidy table of all scores, one row per number."""
        return self._scores.copy(deep=False)

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return scores_table(self.records())

    @cached_property
    def row(self) -> dict[str, Any]:
        """How far it has come, as ``karat status`` tells it."""
        return status_row(self)

    def running_now(self) -> list[dict[str, Any]]:
        """Return the jobs that run now, by task and fold."""
        if not self.row["left"]:
            return []
        names = {safe_name(task["name"]): task["name"] for task in self.about["tasks"]}
        pairs = [stem.rpartition(".") for stem in self.running_jobs()]
        return [{"task": names.get(task, task), "fold": int(fold)} for task, _, fold in pairs]

    # -- nothing outside --------------------------------------------------------------------

    def log(self, record: Mapping[str, Any]) -> Path:
        """Return where a job's log stands; a link that leads out counts as none."""
        path = super().log(record)
        return path if self._is_inside(path) else self.folder / "logs" / ".none"

    def _predictions(self, record: Mapping[str, Any]) -> Path:
        path = super()._predictions(record)
        self._check_inside(path)
        return path

    def _view_folder(self, task: str, fold: int, view: str) -> Path:
        folder = super()._view_folder(task, fold, view)
        for name in ("predictions.csv", "metadata.json"):
            self._check_inside(folder / name)
        return folder

    def _is_inside(self, path: Path) -> bool:
        try:
            return path.resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):
            return False

    def _check_inside(self, path: Path) -> None:
        if not self._is_inside(path):
            raise DataError(f"{path.name} leads out of the folder that is served.")


def stamp_of(path: Path) -> Stamp:
    """Return what changes when a file is written."""
    facts = path.stat()
    return facts.st_mtime_ns, facts.st_size, facts.st_ino


def _record(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.keys() >= NEEDED else None
