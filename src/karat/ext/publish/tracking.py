"""Runs sent to experiment trackers: MLflow, Weights & Biases and Trackio.

Each run becomes a run of the tracker, through its own client: parameters, the mean scores over
folds, the command and versions, and as artifacts the report, the plan and the scores. Where the
tracker stores them is its own setting.
"""

from __future__ import annotations

import contextlib
import importlib.util
import itertools
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from karat.errors import (
    FAILURES,
    DefinitionError,
    KaratError,
    MissingExtra,
    did_you_mean,
)
from karat.results.load import as_runs
from karat.results.run import Run
from karat.results.run_folders import RUN_FILE

if TYPE_CHECKING:
    from karat.results.run import Runs


#: the variables that name the project of a tracker, and its default
PROJECTS = {
    "mlflow": "MLFLOW_EXPERIMENT_NAME",
    "wandb": "WANDB_PROJECT",
    "trackio": "TRACKIO_PROJECT",
}
PROJECT = "karat"
T = TypeVar("T")
#: longer values of parameters are cut
LENGTH = 500


@dataclass(frozen=True)
class Tracked:
    """What is sent of a run."""

    name: str
    params: dict[str, Any]
    metrics: dict[str, float]
    tags: dict[str, str]
    files: list[Path]


def track(runs: Runs, tracker: str, *, project: str | None = None) -> list[str]:
    """Send runs to a tracker, and return the names of its runs.

    Parameters
    ----------
    runs
        Runs, run folders, or folders of run folders.
    tracker
        ``"mlflow"``, ``"wandb"`` or ``"trackio"``; its client must be installed.
    project
        The experiment or project. Default: the variable of the tracker (``MLFLOW_EXPERIMENT_NAME``,
        ``WANDB_PROJECT``, ``TRACKIO_PROJECT``), or "karat".

    Raises
    ------
    DefinitionError
        If there is no such tracker.
    MissingExtra
        If its client is not installed.
    KaratError
        If the tracker refuses; the run folders are not changed.
    """
    from karat.reporting.page import report

    check_tracker(tracker)
    opened = as_runs(runs)
    chosen = project or os.environ.get(PROJECTS[tracker]) or PROJECT
    with tempfile.TemporaryDirectory() as folder:
        page = report(opened, Path(folder) / "report.html")
        sent = [tracked(run, page) for run in opened]
        try:
            with contextlib.redirect_stdout(sys.stderr):  # clients print; stdout has the results
                _CLIENTS[tracker](chosen, sent)
        except Exception as error:
            raise KaratError(
                f"{tracker} did not accept the runs: {type(error).__name__}: {error}"
            ) from error
    return [record.name for record in sent]


def check_tracker(tracker: str) -> None:
    """Raise if there is no such tracker, or its client is not installed; import nothing."""
    if tracker not in _CLIENTS:
        hint = did_you_mean(tracker, _CLIENTS)
        available = ", ".join(_CLIENTS)
        raise DefinitionError(f'unknown tracker "{tracker}".{hint} Available: {available}.')
    spec = importlib.util.find_spec(tracker)
    if spec is None or spec.origin is None:  # such as the folder "wandb" that its runs leave
        raise MissingExtra(tracker, tracker)


def tracked(run: Run, page: Path) -> Tracked:
    """Return what is sent of a run."""
    settings = run.about
    names = ("model", "suite", "constraint", "seed", "version", "karat", "python", "platform")
    params = {name: settings[name] for name in names if settings.get(name) not in (None, "")}
    params |= {f"params.{name}": value for name, value in settings["params"].items()}
    params["tasks"] = ", ".join(task["name"] for task in settings["tasks"])
    command = settings.get("command") or ""
    versions = settings.get("versions") or {}
    tags = {f"version.{name}": str(value) for name, value in versions.items()}
    tags |= {"command": command if isinstance(command, str) else " ".join(command)}
    inside = [run.folder / name for name in (RUN_FILE, "scores/scores.csv")]
    return Tracked(
        name=run.folder.resolve().name,
        params=_with_keys((name, str(value)[:LENGTH]) for name, value in params.items()),
        metrics=_with_keys(_metrics(run)),
        tags=_with_keys((name, value[:LENGTH]) for name, value in tags.items() if value),
        files=[page, *(path for path in inside if path.is_file())],
    )


def _metrics(run: Run) -> Iterator[tuple[str, float]]:
    """Yield the mean scores over folds by task and metric, times, and counts of jobs."""
    table = run.scores()
    table = table[table["value"].notna() & (table["epoch"] < 0)]
    corrupted = table["corruption"].fillna("") != ""
    groups = table[~corrupted].groupby(["task", "metric"], sort=False)["value"]
    for (task, metric), values in groups:
        yield f"{task}/{metric}", float(values.mean())
    keys = ["task", "corruption", "severity", "metric"]
    for names, values in table[corrupted].groupby(keys, sort=False)["value"]:
        task, corruption, severity, metric = names
        yield f"{task}/{corruption}-{severity:g}/{metric}", float(values.mean())
    records = [record for record in run.records() if record["fold"] is not None]
    yield "jobs", float(len(records))
    yield "failed_jobs", float(sum(record["status"] in FAILURES for record in records))
    yield "seconds", float(sum(record.get("seconds") or 0.0 for record in records))


def _with_keys(pairs: Iterable[tuple[str, T]]) -> dict[str, T]:
    """Return values by names that all trackers accept, and that differ.

    >>> _with_keys([("a<b>/acc", 1), ("a(b)/acc", 2)])
    {'a_b_/acc': 1, 'a_b_/acc_2': 2}
    """
    by_key: dict[str, T] = {}
    for name, value in pairs:
        plain = re.sub(r"[^A-Za-z0-9_\-./ ]", "_", name).strip("/. ")[:200] or "_"
        numbers = itertools.count(2)
        key = plain
        while key in by_key:
            key = f"{plain}_{next(numbers)}"
        by_key[key] = value
    return by_key


def _artifact_name(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "_", text)[:128]


def _to_mlflow(project: str, runs: Sequence[Tracked]) -> None:
    import mlflow

    mlflow.set_experiment(project)
    for run in runs:
        with mlflow.start_run(run_name=run.name):
            mlflow.set_tags(run.tags)
            mlflow.log_params(run.params)
            mlflow.log_metrics(run.metrics)
            for path in run.files:
                mlflow.log_artifact(str(path))


def _to_wandb(project: str, runs: Sequence[Tracked]) -> None:
    import wandb

    for run in runs:
        config = {**run.params, **run.tags}
        with wandb.init(project=project, name=run.name, config=config) as tracker_run:
            tracker_run.log(run.metrics)
            stored = wandb.Artifact(_artifact_name(run.name), type="run")
            for path in run.files:
                stored.add_file(str(path), name=path.name)
            tracker_run.log_artifact(stored)


def _to_trackio(project: str, runs: Sequence[Tracked]) -> None:
    import trackio

    for run in runs:
        config = {**run.params, **run.tags}
        settings = {"embed": False, "auto_log_gpu": False, "auto_log_cpu": False}
        trackio.init(project=project, name=run.name, config=config, **settings)
        try:
            trackio.log(run.metrics)
            for path in run.files:
                name = _artifact_name(f"{path.stem}-{run.name}")
                trackio.log_artifact(path, name=name, type="run")
        finally:
            trackio.finish()


_CLIENTS: dict[str, Callable[[str, Sequence[Tracked]], None]] = {
    "mlflow": _to_mlflow,
    "wandb": _to_wandb,
    "trackio": _to_trackio,
}
