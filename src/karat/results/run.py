"""Run: the folder of one model on one suite, written once, then only read.

::

    <model>.<suite>.<constraint>.<mode>.<timestamp>/
        run.json                                  what was planned, with what, on what
        jobs/<task>.<fold>.json                   one record per finished job: the truth
        predictions/<task>/<fold>/predictions.csv, metadata.json, missing.txt
        logs/<task>/<fold>.txt                    warnings, output, the whole traceback
        scores/results.csv, scores.csv            tables, rebuilt from the records
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import DataError
from karat.results.files import safe_name, write_atomic
from karat.results.layouts import results_table, scores_table

SCHEMA = 1


class Run:
    """A result folder. ``scores()`` and ``results()`` are its tables, ``records()`` its jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"<Run {self.folder.name}>"

    # -- writing ----------------------------------------------------------------------------

    @classmethod
    def create(cls, output: Path, about: Mapping[str, Any]) -> Run:
        """Make the folder of a new run and write down what is planned."""
        names = [safe_name(str(about[key])) for key in ("model", "suite", "constraint", "mode")]
        stem = ".".join([*names, about["stamp"]])
        for attempt in range(1000):
            folder = output / (f"{stem}-{attempt + 1}" if attempt else stem)
            try:
                folder.mkdir(parents=True)
                break
            except FileExistsError:
                if not output.is_dir():
                    raise
        write_atomic(folder / "run.json", _json({"schema": SCHEMA, **about}), durable=True)
        return cls(folder)

    def write(self, record: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """Keep a finished job: first its files, then the record that says it is done."""
        fold = "declined" if record["fold"] is None else str(record["fold"])
        task = safe_name(record["task"])
        for name, text in files.items():
            if name == "log.txt":
                path = self.folder / "logs" / task / f"{fold}.txt"
            else:
                parts = [safe_name(part) for part in name.split("/")]
                path = self.folder.joinpath("predictions", task, fold, *parts)
            write_atomic(path, text)
        write_atomic(self.folder / "jobs" / f"{task}.{fold}.json", _json(record), durable=True)

    def finish(self) -> None:
        """Rebuild the tables from the records."""
        records = self.records()
        table = results_table(self.about, records)
        scores = self.folder / "scores"
        text = table.to_csv(index=False)
        write_atomic(scores / "results.csv", text)
        stem = safe_name(f"{self.about['model']}.benchmark_{self.about['suite']}")
        write_atomic(scores / f"{stem}.csv", text)
        write_atomic(scores / "scores.csv", scores_table(records).to_csv(index=False))

    # -- reading ----------------------------------------------------------------------------

    @classmethod
    def open(cls, folder: str | Path) -> Run:
        """Open an existing run folder."""
        run = cls(Path(folder))
        if not (run.folder / "run.json").is_file():
            raise DataError(f"{folder} is not a run folder: it has no run.json.")
        return run

    @cached_property
    def about(self) -> dict[str, Any]:
        """What was planned: model, suite, seed, tasks, versions."""
        try:
            return dict(json.loads((self.folder / "run.json").read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise DataError(f"{self.folder / 'run.json'} cannot be read: {error}.") from error

    @property
    def model(self) -> str:
        """The model's name."""
        return str(self.about["model"])

    def records(self) -> list[dict[str, Any]]:
        """Return the records of the finished jobs, in the order of the plan."""
        order = {task["name"]: i for i, task in enumerate(self.about["tasks"])}
        found = []
        for path in (self.folder / "jobs").glob("*.json"):
            try:
                found.append(json.loads(path.read_text(encoding="utf-8")))
            except ValueError:
                continue  # a machine that lost power may leave an empty record: the job is not done
        return sorted(found, key=lambda r: (order.get(r["task"], len(order)), r["fold"] or 0))

    def scores(self) -> pd.DataFrame:
        """Return the tidy table of all scores, one row per number."""
        table = self._current("scores.csv")
        return scores_table(self.records()) if table is None else table

    def results(self) -> pd.DataFrame:
        """Return one row per job and view, in the layout of the AutoML Benchmark."""
        return results_table(self.about, self.records())

    def _current(self, name: str) -> pd.DataFrame | None:
        table, jobs = self.folder / "scores" / name, self.folder / "jobs"
        try:
            if table.stat().st_mtime_ns < jobs.stat().st_mtime_ns:
                return None
            types = {"task": str, "model": str, "corruption": str, "metric": str}
            return pd.read_csv(table, dtype=types, keep_default_na=False, na_values={"value": [""]})
        except OSError:
            return None


def open_runs(paths: Iterable[str | Path]) -> list[Run]:
    """Open run folders; a folder that holds run folders stands for all of them."""
    runs: list[Run] = []
    for path in map(Path, paths):
        if (path / "run.json").is_file():
            runs.append(Run.open(path))
            continue
        inside = sorted(p.parent for p in path.glob("*/run.json"))
        if not inside:
            what = "holds no run folder" if path.is_dir() else "does not exist"
            raise DataError(f"{path} {what}; karat run makes one.")
        runs += [Run.open(folder) for folder in inside]
    return runs


def unfinished(output: Path, about: Mapping[str, Any], keys: Sequence[str]) -> Run | None:
    """Return the newest run below a folder that agrees with a new one in these facts."""
    if not output.is_dir():
        return None
    for path in sorted(output.glob("*/run.json"), key=lambda p: p.parent.name, reverse=True):
        run = Run(path.parent)
        try:
            if all(run.about.get(key) == about[key] for key in keys):
                return run
        except DataError:
            continue
    return None


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=str)
