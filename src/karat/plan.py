"""Plan: which model runs on which fold of which task, and which one declines and why."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat import registry
from karat.dataset import Dataset
from karat.errors import (
    DataError,
    DefinitionError,
    KaratError,
    MissingExtra,
    Unavailable,
    did_you_mean,
)
from karat.metrics.base import get_metric
from karat.models.base import Model
from karat.models.identity import identity, identity_of
from karat.splits import Fold, split
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
    """A task with its data at hand: metrics chosen, rows limited, folds counted.

    ``repeats`` holds the repeat of every fold, those that are not run too; ``code`` is a hash of
    the users' own parts that the task is made of.
    """

    task: Task
    data: Dataset | None
    folds: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()
    blind: bool = False
    unavailable: str = ""
    code: str = ""


@dataclass(frozen=True)
class Decline:
    """A model that does not take a task, and why."""

    model: str
    task: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """What will run: (model, planned task, fold) in order, and what will not.

    ``identities`` tells who each model is; nothing where that cannot be told.
    """

    models: tuple[Model, ...]
    tasks: tuple[PlannedTask, ...]
    jobs: tuple[tuple[Model, PlannedTask, int], ...]
    declined: tuple[Decline, ...]
    seed: int
    identities: Mapping[str, str | None]


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
    identities: dict[str, str | None] = {}
    mistakes = _Mistakes()
    for task in tasks:
        with mistakes.noted(f'task "{task.name}"'):
            planned.append(_plan_task(task, seed, folds, (max_folds, max_rows)))
    for model in models:
        with mistakes.noted(f'model "{model.name}"'):
            identities[model.name] = None if model.unavailable else identity(model)
    mistakes.messages += _check_names([p.task.name for p in planned])
    mistakes.tell()
    jobs, declined = [], []
    for model in models:
        for each in planned:
            reason = _declines(model, each)
            if reason:
                declined.append(Decline(model.name, each.task.name, reason))
            else:
                jobs += [(model, each, fold) for fold in each.folds]
    return Plan(tuple(models), tuple(planned), tuple(jobs), tuple(declined), seed, identities)


def job_spec(plan: Plan, model: Model, planned: PlannedTask, fold: int) -> str:
    """Return a hash of all that a job's scores depend on.

    A model that cannot be told from its changed self has another hash each time.
    """
    from karat import __version__

    task, data = planned.task, planned.data
    facts = {
        "model": plan.identities[model.name] or os.urandom(16).hex(),
        "task": [task.probe, task.split, task.metrics, task.missing, task.corruptions],
        "code": planned.code,
        "data": [data.name, data.fingerprint] if data is not None else [],
        "fold": fold,
        "seed": plan.seed,
        "karat": __version__,
    }
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


class _Mistakes:
    """Collects what is wrong with tasks and models, to be told all at once."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.first: Exception | None = None

    @contextlib.contextmanager
    def noted(self, where: str) -> Iterator[None]:
        """Keep what is raised inside; what users' own code raises is told with its place."""
        try:
            yield
        except Exception as error:
            self.first = self.first or error
            if isinstance(error, DefinitionError):
                self.messages += error.messages
            elif isinstance(error, KaratError):
                self.messages.append(str(error))
            else:
                self.messages.append(f"{where}: {type(error).__name__}: {error}")

    def tell(self) -> None:
        """Raise one error with every mistake, if there is any."""
        if self.messages:
            raise DefinitionError(*dict.fromkeys(self.messages)) from self.first


# -- tasks ----------------------------------------------------------------------------------


def _plan_task(
    task: Task, seed: int, folds: Sequence[int] | None, limits: tuple[int | None, int | None]
) -> PlannedTask:
    max_folds, max_rows = limits
    _check_parts(task)
    try:
        data = _load(task)
    except (Unavailable, MissingExtra) as error:
        metrics = task.metrics or ("?",)
        return PlannedTask(dataclasses.replace(task, metrics=metrics), None, unavailable=str(error))
    rows = min((n for n in (task.max_rows, max_rows) if n is not None), default=None)
    if rows is not None:
        # drawn by the data set's name, so that all tasks on it see the same rows
        rng = np.random.default_rng([seed, zlib.crc32(f"rows {data.name}".encode())])
        data = data.sample(rows, rng)
    _check_head(task, data)
    cut = _cut(task, data, seed)
    blind = any(np.isin(fold.train, fold.test).any() for fold in cut)
    task = dataclasses.replace(task, metrics=task.metrics or _usual_metrics(task, data, blind))
    _check_metrics(task, data, blind)
    chosen = range(len(cut))[:max_folds] if folds is None else _chosen(task, folds, len(cut))
    repeats = tuple(fold.repeat for fold in cut)
    return PlannedTask(task, data, tuple(chosen), repeats, blind, code=_code_of_parts(task))


def _cut(task: Task, data: Dataset, seed: int) -> list[Fold]:
    how: Any = task.split
    try:
        return split(data, how, seed)
    except DefinitionError as error:
        told = [f'task "{task.name}": {message}' for message in error.messages]
        raise DefinitionError(*told) from error


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
    for parts, name in _named_parts(task):
        try:
            get_metric(name) if parts is registry.metrics else parts.get(name)
        except DefinitionError as error:
            messages += [f'task "{task.name}": {message}' for message in error.messages]
    if messages:
        raise DefinitionError(*messages)
    probe: Any = task.probe
    used = {name: value for name, value in probe.items() if name != "use"}
    registry.build(f'task "{task.name}": probe', registry.probes.get(probe["use"]), used, {})


def _named_parts(task: Task) -> Iterator[tuple[registry.Registry, str]]:
    """Yield every registered part a task names, with the registry it is to be found in."""
    probe: Any = task.probe
    how: Any = task.split
    yield registry.probes, probe["use"]
    yield registry.splitters, how["use"]
    head, compose = probe.get("head"), probe.get("compose")
    head = head.get("use") if isinstance(head, Mapping) else head
    for parts, name in ((registry.heads, head), (registry.composers, compose)):
        if name:
            yield parts, str(name)
    for name in task.corruptions:
        yield registry.corruptions, name
    for name in task.metrics:
        yield registry.metrics, name


def _check_head(task: Task, data: Dataset) -> None:
    """Make the head once, so that a mistyped parameter stops before any job and not in each."""
    probe: Any = task.probe
    head = probe.get("head")
    if not isinstance(head, Mapping):
        return
    if not isinstance(head.get("use"), str):
        raise DefinitionError(f'task "{task.name}": a head with parameters needs use: <its name>.')
    params = {name: value for name, value in head.items() if name != "use"}
    offers = {"kind": data.kind, "random_state": 0, "n_clusters": max(len(data.classes), 2)}
    what = f'task "{task.name}": head "{head["use"]}"'
    registry.build(what, registry.heads.get(head["use"]), params, offers)


def _check_metrics(task: Task, data: Dataset, blind: bool) -> None:
    """Refuse a task whose result no answer could ever give; its other metrics may stay empty."""
    probe: Any = task.probe
    offered = {
        "trained": {"clusters", "classes"} if blind else {data.kind},
        "similarity": {"scores", data.kind},
        "duplicates": {"scores", "numbers"},
        "analogy": {"rank"},
        "nearest": {"rank"},
    }.get(probe["use"])
    needed = {"classes", "numbers", "clusters", "rank"} & set(get_metric(task.metrics[0]).needs)
    if offered is not None and needed - offered:
        raise DefinitionError(
            f'task "{task.name}": the metric {task.metrics[0]} needs {needed.pop()}, and '
            f"{data.name} under the probe {probe['use']} gives {' or '.join(sorted(offered))}."
        )


def _code_of_parts(task: Task) -> str:
    """Return a hash of the users' own parts in a task: a changed metric is another metric."""
    own = registry.users_parts()
    codes = []
    for parts, name in _named_parts(task):
        if name in own[parts.kind] or ":" in name:
            part = parts.get(name)
            code = identity_of(getattr(part, "compute", part)) or os.urandom(16).hex()
            codes.append(f"{name} {code}")
    return " ".join(codes)


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

    def fits(name: str, pattern: str) -> bool:
        return name == pattern or fnmatchcase(name, pattern)

    tasks = list(tasks)
    names = [task.name for task in tasks]
    lost = [
        f'the suite has no task "{pattern}".{did_you_mean(pattern, names)} '
        f"It has: {', '.join(names)}"
        for pattern in wanted
        if not any(fits(name, pattern) for name in names)
    ]
    if lost:
        raise DefinitionError(*lost)
    return [task for task in tasks if any(fits(task.name, pattern) for pattern in wanted)]


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
