"""Estimate the duration of jobs from earlier runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from karat.errors import DataError
from karat.results.run import Run


@dataclass(frozen=True)
class Estimate:
    """Seconds that earlier runs needed for ``known`` of these ``jobs`` jobs."""

    seconds: float
    known: int
    jobs: int


def estimate(jobs: Iterable[tuple[str, str]], folder: Path) -> Estimate:
    """Return the mean duration of jobs (model, task) in the runs of a folder.

    Jobs that were never run are left out.
    """
    wanted = list(jobs)
    past = _past({model for model, _ in wanted}, folder)
    known = [past[job] for job in wanted if job in past]
    return Estimate(sum(known), len(known), len(wanted))


def _past(models: set[str], folder: Path) -> dict[tuple[str, str], float]:
    spent: dict[tuple[str, str], list[float]] = {}
    for path in sorted(folder.glob("*/run.json")):
        run = Run(path.parent)
        try:
            if run.model not in models:
                continue
            for record in run.records():
                if record.get("seconds"):
                    job = (run.model, str(record["task"]))
                    spent.setdefault(job, []).append(float(record["seconds"]))
        except (DataError, KeyError):
            continue  # a folder of something else
    return {job: sum(each) / len(each) for job, each in spent.items()}
