"""Plan: which model runs on which fold of which task, and which one declines and why."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat import registry
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, Unavailable
from karat.metrics.base import get_metric
from karat.models.base import Model
from karat.models.identity import identity
from karat.splits import split
from karat.task import Task

_PLURAL = {"table": "tables", "text": "texts", "entity": "entities"}
_METRICS = {
    "binary": ("auc", "acc", "balacc", "logloss"),
    "multiclass": ("acc", "balacc", "logloss"),
    "numbers": ("rmse", "mae", "r2"),
    "items": ("hits@1", "hits@10", "mrr"),
    "clusters": ("v_measure", "ari", "ami"),
    "scores": ("spearman", "pearson"),
}


@dataclass(frozen=True)
class PlannedTask:
    """A task with its data at hand: metrics chosen, rows limited, folds counted."""

    task: Task
    data: Dataset | None
    folds: tuple[int, ...] = ()
    blind: bool = False
    unavailable: str = ""


@dataclass(frozen=True)
class Decline:
    """A model that does not take a task, and why."""

    model: str
    task: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """What will run: (model, planned task, fold) in order, and what will not."""

    models: tuple[Model, ...]
    tasks: tuple[PlannedTask, ...]
    jobs: tuple[tuple[Model, PlannedTask, int], ...]
    declined: tuple[Decline, ...]
    seed: int


def make_plan(
    models: Sequence[Model],
    tasks: Iterable[Task],
    *,
    seed: int = 42,
    folds: Sequence[int] | None = None,
    max_folds: int | None = None,
    max_rows: int | None = None,
) -> Plan:
    """Return what to run. Every mistake in a task is found here, before anything runs.

    ``folds`` picks folds by number, ``max_folds`` and ``max_rows`` are the constraint's limits.
    """
    planned: list[PlannedTask] = []
    messages: list[str] = []
    for task in tasks:
        try:
            planned.append(_plan_task(task, seed, folds, (max_folds, max_rows)))
        except DefinitionError as error:
            messages += error.messages
        except DataError as error:
            messages.append(str(error))
    messages += _check_names([p.task.name for p in planned])
    if messages:
        raise DefinitionError(*messages)
    jobs, declined = [], []
    for model in models:
        for each in planned:
            reason = _declines(model, each)
            if reason:
                declined.append(Decline(model.name, each.task.name, reason))
            else:
                jobs += [(model, each, fold) for fold in each.folds]
    return Plan(tuple(models), tuple(planned), tuple(jobs), tuple(declined), seed)


def job_spec(plan: Plan, model: Model, planned: PlannedTask, fold: int) -> str:
    """Return a hash of all that a job's scores depend on."""
    from karat import __version__

    task = planned.task
    facts = {
        "model": identity(model) or [model.name, repr(sorted(model.params.items()))],
        "task": [task.probe, task.split, task.metrics, task.missing, task.corruptions],
        "data": planned.data.fingerprint if planned.data is not None else "",
        "fold": fold,
        "seed": plan.seed,
        "karat": __version__,
    }
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


# -- tasks ----------------------------------------------------------------------------------


def _plan_task(
    task: Task, seed: int, folds: Sequence[int] | None, limits: tuple[int | None, int | None]
) -> PlannedTask:
    max_folds, max_rows = limits
    try:
        data = _load(task)
    except Unavailable as error:
        metrics = task.metrics or ("?",)
        return PlannedTask(dataclasses.replace(task, metrics=metrics), None, unavailable=str(error))
    rows = min((n for n in (task.max_rows, max_rows) if n is not None), default=None)
    if rows is not None:
        # drawn by the data set's name, so that all tasks on it see the same rows
        rng = np.random.default_rng([seed, zlib.crc32(f"rows {data.name}".encode())])
        data = data.sample(rows, rng)
    _check_parts(task)
    how: Any = task.split
    cut = split(data, how, seed)
    blind = any(len(np.intersect1d(fold.train, fold.test)) for fold in cut)
    task = dataclasses.replace(task, metrics=task.metrics or _usual_metrics(task, data, blind))
    chosen = range(len(cut))[:max_folds] if folds is None else _chosen(task, folds, len(cut))
    return PlannedTask(task, data, tuple(chosen), blind)


def _load(task: Task) -> Dataset:
    if isinstance(task.dataset, Dataset):
        return task.dataset
    if isinstance(task.dataset, str):
        raise DefinitionError(f'task "{task.name}": the data set "{task.dataset}" is only a name.')
    data = task.dataset()
    if not isinstance(data, Dataset):
        raise DataError(
            f'task "{task.name}": its data set function returned {type(data).__name__}; '
            f"it must return a karat.Dataset."
        )
    return data


def _chosen(task: Task, folds: Sequence[int], count: int) -> list[int]:
    wrong = [fold for fold in folds if not 0 <= fold < count]
    if wrong:
        raise DefinitionError(
            f'task "{task.name}" has the folds 0 to {count - 1}; there is no fold {wrong[0]}.'
        )
    return sorted(set(folds))


def _check_parts(task: Task) -> None:
    messages: list[str] = []
    probe: Any = task.probe
    wanted = [(registry.probes, probe["use"])]
    wanted += [(registry.corruptions, name) for name in task.corruptions]
    head = probe.get("head")
    head = head.get("use") if isinstance(head, dict) else head
    wanted += [(registry.heads, head)] if head else []
    wanted += [(registry.composers, probe["compose"])] if probe.get("compose") else []
    for parts, name in wanted:
        try:
            parts.get(name)
        except DefinitionError as error:
            messages += [f'task "{task.name}": {message}' for message in error.messages]
    for name in task.metrics:
        try:
            get_metric(name)
        except DefinitionError as error:
            messages += [f'task "{task.name}": {message}' for message in error.messages]
    if messages:
        raise DefinitionError(*messages)
    used = {name: value for name, value in probe.items() if name != "use"}
    registry.build(f'task "{task.name}": probe', registry.probes.get(probe["use"]), used, {})


def _usual_metrics(task: Task, data: Dataset, blind: bool) -> tuple[str, ...]:
    probe: Any = task.probe
    if data.kind == "items":
        return _METRICS["items"]
    if blind and probe["use"] == "trained":
        return _METRICS["clusters"]
    if probe["use"] == "similarity":
        return ("auc", "pr_auc") if data.kind == "classes" else _METRICS["scores"]
    if data.kind == "numbers":
        return _METRICS["numbers"]
    return _METRICS["binary" if len(data.classes) == 2 else "multiclass"]


def _check_names(names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f'two tasks are called "{name}"; rename one.' for name in twice]


def pick_tasks(tasks: Iterable[Task], wanted: Sequence[str]) -> list[Task]:
    """Return the tasks of these names; ``*`` in a name stands for anything."""
    from fnmatch import fnmatchcase

    tasks = list(tasks)
    names = [task.name for task in tasks]
    for pattern in wanted:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = difflib.get_close_matches(pattern, names, n=1)
            hint = f' Did you mean "{near[0]}"?' if near else ""
            raise DefinitionError(
                f'the suite has no task "{pattern}".{hint} It has: {", ".join(names)}'
            )
    return [task for task in tasks if any(fnmatchcase(task.name, p) for p in wanted)]


# -- declining ------------------------------------------------------------------------------


def _declines(model: Model, planned: PlannedTask) -> str:
    if model.unavailable:
        return model.unavailable
    if planned.data is None:
        return planned.unavailable
    data = planned.data
    if model.takes is not None and data.modality not in model.takes:
        takes = " and ".join(_PLURAL.get(m, m) for m in model.takes)
        return f"it takes {takes}, not {_PLURAL[data.modality]}"
    if model.role == "predictor":
        return _predictor_declines(model, planned, data)
    return ""


def _predictor_declines(model: Model, planned: PlannedTask, data: Dataset) -> str:
    probe: Any = planned.task.probe
    if probe["use"] != "trained" or data.kind == "items":
        return f"a predictor has no vectors for the {probe['use']} probe"
    if planned.blind:
        return "a predictor cannot learn where the truth is hidden"
    if len(data.fields) != 1 or len(data.mentions(data.fields[0]).rows) != len(data):
        return "a predictor takes questions about one item each"
    if hasattr(model.prototype, "declines"):
        return str(model.prototype.declines(data.kind))
    return _estimator_declines(model.prototype, data.kind)


def _estimator_declines(prototype: Any, kind: str) -> str:
    from sklearn.base import is_classifier, is_regressor

    if not hasattr(prototype, "__sklearn_tags__"):
        return ""
    if kind == "classes" and is_regressor(prototype):
        return "it predicts numbers, not classes"
    if kind == "numbers" and is_classifier(prototype):
        return "it predicts classes, not numbers"
    return ""
