"""Found: what a result file of another system tells, as jobs, and the run folder made of it."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat import __version__
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, KaratError
from karat.metrics.base import get_metric
from karat.results.run import Run

#: stands for a metric nobody told, and for limits nobody told
UNKNOWN, UNTOLD = "?", "unknown"


@dataclass
class Job:
    """A fold of a task: scores by view, or why there are none."""

    task: str
    fold: int = 0
    repeat: int = 0
    scores: dict[View, dict[str, float]] = field(default_factory=dict)
    info: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class Found:
    """The results of one model in some files.

    ``tasks`` holds what is told of each: ``dataset``, ``kind``, ``metric`` (the first one), and
    more; ``higher`` which way metrics are better that are registered nowhere; ``about`` what the
    run tells of itself.
    """

    system: str
    model: str
    suite: str
    files: Sequence[Path]
    jobs: dict[tuple[str, int], Job] = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    higher: dict[str, bool] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def job(self, task: str, fold: int = 0, repeat: int = 0) -> Job:
        """Return the job of a task and fold, a new one where there is none yet."""
        return self.jobs.setdefault((task, fold), Job(task, fold, repeat))

    def first(self, task: str) -> str | None:
        """Return the metric a task is compared by: the one told, or the first that is known."""
        told: str = self.tasks[task]["metric"]
        if self.way(told) is not None:
            return told
        jobs = [job for job in self.jobs.values() if job.task == task]
        scored = dict.fromkeys(m for job in jobs for view in job.scores.values() for m in view)
        return next((name for name in scored if self.way(name) is not None), None)

    def way(self, metric: str) -> bool | None:
        """Return whether a higher value is better, or nothing if nobody knows."""
        return self.higher.get(metric, direction(metric))

    def settle(self) -> list[str]:
        """Fix each task's first metric, and drop the tasks that have none; return those."""
        lost = []
        for task in list(self.tasks):
            first = self.first(task)
            if first is None:
                lost.append(task)
                del self.tasks[task]
            else:
                self.tasks[task]["metric"] = first
        self.jobs = {key: job for key, job in self.jobs.items() if job.task in self.tasks}
        return lost

    def put(self, job: Job, metric: str, value: float | None, view: View = CLEAN) -> None:
        """Keep a score."""
        if value is not None:
            job.scores.setdefault(view, {})[metric] = value


@dataclass
class Told:
    """What reading files has shown: notes, problems, and the runs that are there already.

    ``model`` is the model's name, if one was given.
    """

    model: str | None = None
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    earlier: list[Run] | None = None
    again: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Keep a note, once."""
        if text not in self.notes:
            self.notes.append(text)

    def skipped(self, path: Path, names: Iterable[str]) -> None:
        """Note metrics that are left out, as nobody knows which way they are better."""
        listed = sorted(set(names))
        if listed:
            shown = ", ".join(listed[:12]) + (f", … ({len(listed)})" if len(listed) > 12 else "")
            self.note(f"{path.name}: left out, since Karat has no such metric: {shown}.")


def direction(name: str) -> bool | None:
    """Return whether a higher value is better, or nothing if the metric is none of ours.

    A name in a file never makes us import code.

    >>> direction("rmse"), direction("acc"), direction("os:system")
    (False, True, None)
    """
    if ":" in name:
        return None
    try:
        return get_metric(name).higher_is_better
    except KaratError:
        return None


def kind_of(metric: str) -> str:
    """Return the kind of task that a metric of ours is for, or nothing.

    >>> kind_of("auc"), kind_of("rmse"), kind_of("v_measure")
    ('classification', 'regression', 'clustering')
    """
    if direction(metric) is None:
        return ""
    needs = set(get_metric(metric).needs)
    kinds = {"clusters": "clustering", "numbers": "regression"}
    kinds |= {"classes": "classification", "probabilities": "classification"}
    return next((kind for need, kind in kinds.items() if need in needs), "")


# -- the run folder -------------------------------------------------------------------------


def write_run(found: Found, output: Path, told: Told) -> Run | None:
    """Write what was found as a run folder; what is there already is not written again."""
    lost = found.settle()
    if lost:
        listed = ", ".join(lost[:6]) + (" …" if len(lost) > 6 else "")
        told.note(f"{found.model}: left out, since no metric is known there: {listed}.")
    if not found.jobs:
        return None
    imported = _imported(found)
    about = _about(found)
    earlier = told.earlier = _runs_of(output) if told.earlier is None else told.earlier
    for run in earlier:
        same = run.about.get("imported") == imported and _named(run.about) == _named(about)
        if same and (run.folder / "scores" / "scores.csv").is_file():
            told.again.append(run.folder.name)
            return run
    about["stamp"] = _free(found.model, str(about["stamp"]), earlier)
    run = Run.create(output, {**about, "imported": imported})
    earlier.append(run)
    (run.folder / "jobs").mkdir()
    for job in found.jobs.values():
        record = _record(found, job)
        text = json.dumps(record, ensure_ascii=False, allow_nan=False)
        # nobody reads it yet, and what is lost can be imported again: the tables come last
        run._record(record).write_text(text, encoding="utf-8")
    run.finish()
    return run


def _imported(found: Found) -> dict[str, Any]:
    digests = {path: hashlib.sha256(path.read_bytes()).hexdigest() for path in found.files}
    if len(digests) == 1:
        ((path, digest),) = digests.items()
        return {"system": found.system, "file": path.name, "sha256": digest}
    folder = found.files[0].parent
    names = {_below(path, folder): digest for path, digest in digests.items()}
    lines = "".join(f"{name} {digest}\n" for name, digest in sorted(names.items()))
    whole = hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()
    return {
        "system": found.system,
        "file": folder.resolve().name,
        "sha256": whole,
        "files": dict(sorted(names.items())),
    }


def _below(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name


def _about(found: Found) -> dict[str, Any]:
    own = {"constraint": UNTOLD, "mode": "imported", "params": {}, "version": "", **found.about}
    stamp = own.pop("stamp", None) or datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    named = {"model": found.model, "suite": found.suite}
    by_task: dict[str, list[Job]] = {}
    for job in found.jobs.values():
        by_task.setdefault(job.task, []).append(job)
    tasks = [_task(found, name, by_task.get(name, [])) for name in found.tasks]
    return {**named, **own, "stamp": stamp, "role": "", "karat": __version__, "tasks": tasks}


def _named(about: Mapping[str, Any]) -> list[Any]:
    return [about.get(name) for name in ("model", "suite", "constraint", "mode")]


def _task(found: Found, name: str, jobs: Sequence[Job]) -> dict[str, Any]:
    told = dict(found.tasks[name])
    first = told.pop("metric")
    scored = [metric for job in jobs for view in job.scores.values() for metric in view]
    metrics = [m for m in dict.fromkeys([first, *scored]) if found.way(m) is not None]
    ways = {metric: found.way(metric) for metric in metrics}
    return {
        "name": name,
        "dataset": told.pop("dataset", name),
        "kind": told.pop("kind", "") or kind_of(first),
        "metrics": metrics,
        "higher_is_better": ways,
        "folds": sorted({job.fold for job in jobs}),
        "fingerprint": "",
        **told,
    }


def _record(found: Found, job: Job) -> dict[str, Any]:
    facts = dict(job.facts)
    coverage = facts.pop("coverage", None)
    told = found.tasks[job.task]
    first, kind = told["metric"], told.get("kind") or kind_of(told["metric"])
    order = sorted(job.scores, key=lambda view: view != CLEAN)
    views = [_view(view, job.scores[view], coverage) for view in order]
    failed = bool(job.info) or not views
    return {
        "spec": "",
        "model": found.model,
        "task": job.task,
        "kind": kind,
        "fold": job.fold,
        "repeat": job.repeat,
        "seed": None,
        "metric": first,
        "status": "failed" if failed else "ok",
        "info": " ".join((job.info or "no score in the file").split()) if failed else "",
        "views": views,
        "notes": job.notes,
        "history": job.history,
        "utc": "",
        **facts,
    }


def _view(view: View, scores: Mapping[str, float], coverage: float | None) -> dict[str, Any]:
    seen = {"corruption": view.corruption, "severity": view.severity, "draw": view.draw}
    told = {"affected": None, "coverage": coverage, "scores": dict(scores), "reasons": {}}
    return {**seen, **told, "status": "ok", "info": ""}


def _runs_of(output: Path) -> list[Run]:
    found = []
    for path in sorted(output.glob("*/run.json")):
        run = Run(path.parent)
        try:
            run.about  # noqa: B018
        except DataError:
            continue
        found.append(run)
    return found


def _free(model: str, stamp: str, earlier: Sequence[Run]) -> str:
    """Return a time stamp that no other run of the model has: runs are told apart by it."""
    taken = {str(run.about.get("stamp")) for run in earlier if run.about.get("model") == model}
    new, number = stamp, 1
    while new in taken:
        number += 1
        new = f"{stamp}-{number}"
    return new


def number(cell: Any) -> float | None:
    """Return a finite number, or nothing for an empty cell; raises ``ValueError`` for a text.

    >>> number("0.5"), number(""), number("nan"), number(None)
    (0.5, None, None, None)
    """
    if cell is None or str(cell).strip().lower() in ("", "nan", "na", "none", "null"):
        return None
    value = float(cell)
    return value if math.isfinite(value) else None
