"""Estimate: how long jobs took in earlier runs, for those who plan new ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from karat.errors import DataError
from karat.results.run import Run


@dataclass(frozen=True)
class Estimate:
    """Seconds of work that earlier runs needed for ``known`` of ``jobs`` jobs like these."""

    seconds: float
    known: int
    jobs: int


def estimate(jobs: Iterable[tuple[str, str]], folder: Path) -> Estimate:
    """Return what jobs, each a model and a task, took in the runs below a folder, on average.

    A job nobody has run yet is not guessed at.
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
