"""The progress of runs, computed from their folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import FAILURES
from karat.results.layouts import by_fold
from karat.results.run import Run, open_runs

COLUMNS = (
    *("run", "model", "planned", "ok", *FAILURES, "declined", "running", "left", "state"),
    *("seconds_per_job", "last"),
)


def status(paths: Sequence[str | Path] | str | Path) -> pd.DataFrame:
    """Return a row per run with the numbers of finished, failed, running and remaining jobs.

    ``state`` is "finished", "running", or "stopped" (jobs remain and no process works on them);
    ``last`` is the end of the most recent job.
    """
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    rows = [status_row(run) for run in open_runs(several)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def status_row(run: Run) -> dict[str, Any]:
    """Return the row of one run."""
    records = run.records()
    # a task whose data cannot be loaded has failed in every fold; a declined task has no fold
    failed = [r for r in records if r["fold"] is None and r["status"] in FAILURES]
    jobs = [record for record in records if record["fold"] is not None]
    jobs += by_fold(run.about, failed)  # type: ignore[arg-type]
    planned = _planned(run, records)
    counts = Counter(record["status"] for record in jobs)
    done = {(record["task"], record["fold"]) for record in jobs}
    left = len(planned - done)
    running = len(run.running())
    seconds = [record["seconds"] for record in jobs if record.get("seconds")]
    return {
        "run": run.folder.name,
        "model": run.model,
        "planned": len(planned | done),
        **{name: counts[name] for name in ("ok", *FAILURES)},
        "declined": sum(record["status"] == "declined" for record in records),
        "running": min(running, left),
        "left": left,
        "state": "finished" if not left else "running" if running else "stopped",
        "seconds_per_job": sum(seconds) / len(seconds) if seconds else None,
        "last": max((str(record["utc"]) for record in jobs), default=""),
    }


def _planned(run: Run, records: Sequence[dict[str, Any]]) -> set[tuple[str, int]]:
    declined = {record["task"] for record in records if record["fold"] is None}
    return {
        (task["name"], fold)
        for task in run.about["tasks"]
        if task["name"] not in declined
        for fold in task["folds"]
    }


def ago(utc: str, now: datetime | None = None) -> str:
    """Return the time since a moment as text.

    >>> ago("2026-01-01T00:00:00", datetime(2026, 1, 1, 0, 2, 5, tzinfo=UTC))
    '2 min ago'
    """
    if not utc:
        return ""
    then = datetime.fromisoformat(utc).replace(tzinfo=UTC)
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{max(int(seconds), 0)} s ago"
