"""Plan: which model runs on which fold of which task, and which one declines and why."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from karat.asks.base import ask
from karat.corruptions.view import View, why_not
from karat.dataset import Dataset
from karat.declines import declines
from karat.errors import (
    DataError,
    DefinitionError,
    KaratError,
    MissingExtra,
    Unavailable,
    did_you_mean,
)
from karat.limits import Limits
from karat.models.base import Model
from karat.models.identity import identity
from karat.observe.tasks import task_facts
from karat.parts import (
    check_head,
    check_metrics,
    check_parts,
    code_of_parts,
    of_task,
    usual_metrics,
)
from karat.splits import Fold, split
from karat.task import Task
from karat.twins import twins


@dataclass(frozen=True)
class PlannedTask:
    """A task with its data at hand: metrics chosen, rows limited, folds counted.

    ``repeats`` holds the repeat of every fold, those that are not run too; ``code`` is a hash of
    the users' own parts that the task is made of; ``twins`` tells how many of the tested rows
    stand in their train part too, of how many; ``facts`` what else can be seen of it. Where the
    data cannot be used, ``broken`` says why, and ``folds`` are those that were asked for.
    """

    task: Task
    data: Dataset | None
    folds: tuple[int, ...] = ()
    repeats: tuple[int, ...] = ()
    blind: bool = False
    unavailable: str = ""
    broken: str = ""
    code: str = ""
    twins: tuple[int, int] = (0, 0)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def asked(self) -> str:
        """A hash of how the task is asked, split and measured; the rows of given folds are many."""
        task = self.task
        parts = [task.probe, task.split, task.metrics, task.missing, task.corruptions, task.draws]
        # a function says its name here; what it does stands in ``code``
        text = json.dumps(parts, sort_keys=True, default=_named)
        return hashlib.sha256(text.encode()).hexdigest()


def _named(value: Any) -> str:
    return getattr(value, "__qualname__", None) or str(value)


@dataclass(frozen=True)
class Decline:
    """A model that does not take a task, and why."""

    model: str
    task: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """What will run: (model, planned task, fold) in order, and what will not.

    ``identities`` tells who each model is; nothing where that cannot be told. ``unseen`` are the
    corruptions a model takes a task without, and why. ``lost`` are tasks whose data cannot be used:
    failed rows of every model, while the other tasks run.
    """

    models: tuple[Model, ...]
    tasks: tuple[PlannedTask, ...]
    jobs: tuple[tuple[Model, PlannedTask, int], ...]
    declined: tuple[Decline, ...]
    seed: int
    identities: Mapping[str, str | None]
    unseen: tuple[Decline, ...] = ()
    lost: tuple[Decline, ...] = ()
    limits: Limits = Limits()

    def limits_of(self, task: Task) -> Limits | None:
        """Return what each job of a task may take: its own limits, then the constraint's."""
        own = Limits(task.max_runtime_seconds, task.max_mem_size_mb, task.cores, task.gpus)
        names = [field.name for field in dataclasses.fields(Limits)]
        both = [(getattr(own, name), getattr(self.limits, name)) for name in names]
        return Limits(*(mine if mine is not None else theirs for mine, theirs in both)) or None


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
    if mistakes.messages or all(each.data is None for each in planned):
        mistakes.messages += [each.broken for each in planned if each.broken]
    for model in models:
        with mistakes.noted(f'model "{model.name}"'):
            identities[model.name] = None if model.unavailable else identity(model)
    mistakes.messages += _check_names([p.task.name for p in planned])
    mistakes.tell()
    jobs, *rest = _all_jobs(models, planned)
    declined, unseen, lost = map(tuple, rest)
    return Plan(tuple(models), tuple(planned), jobs, declined, seed, identities, unseen, lost)


def _all_jobs(models: Sequence[Model], planned: Sequence[PlannedTask]) -> tuple[Any, ...]:
    """Return the jobs in their order, what models decline, which corruptions, and what is lost."""
    jobs, declined, lost = [], [], []
    unseen: list[Decline] = []
    for model in models:
        for each in planned:
            reason = _reason(model, each)
            if reason:
                declined.append(Decline(model.name, each.task.name, reason))
            elif each.broken:
                lost.append(Decline(model.name, each.task.name, each.broken))
            else:
                jobs += [(model, each, fold) for fold in each.folds]
                unseen += _unseen(model, each)
    # through views, the models of a fold come one after the other and share what is made of it
    place = {id(each): i for i, each in enumerate(planned)}
    jobs.sort(key=lambda job: (place[id(job[1])], job[2]) if job[1].task.corruptions else (-1, 0))
    return tuple(jobs), declined, unseen, lost


def _reason(model: Model, planned: PlannedTask) -> str:
    if planned.data is None:
        return model.unavailable or planned.unavailable
    return declines(model, planned.task, planned.data, planned.blind)


def _unseen(model: Model, planned: PlannedTask) -> Iterator[Decline]:
    for corruption in planned.task.corruptions:
        reason = why_not(View(corruption, 1.0), planned.data, model.role)  # type: ignore[arg-type]
        if reason:
            yield Decline(model.name, planned.task.name, reason)


def job_spec(plan: Plan, model: Model, planned: PlannedTask, fold: int) -> str:
    """Return a hash of all that a job's scores depend on.

    A model that cannot be told from its changed self has another hash each time.
    """
    from karat import __version__

    data = planned.data
    facts = {
        "model": plan.identities[model.name] or os.urandom(16).hex(),
        "version": model.version,
        "task": planned.asked,
        "code": planned.code,
        "data": [data.name, data.fingerprint] if data is not None else [],
        "fold": fold,
        "seed": plan.seed,
        "karat": __version__,
        **(limits.told() if (limits := plan.limits_of(planned.task)) else {}),
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
    check_parts(task)
    try:
        data = _load(task)
    except (DataError, MissingExtra) as error:
        task = dataclasses.replace(task, metrics=task.metrics or ("?",))
        if isinstance(error, Unavailable | MissingExtra):
            return PlannedTask(task, None, unavailable=str(error))
        return PlannedTask(task, None, _hoped(task, folds, max_folds), broken=str(error))
    rows = min((n for n in (task.max_rows, max_rows) if n is not None), default=None)
    if rows is not None:
        # drawn by the data set's name, so that all tasks on it see the same rows
        rng = np.random.default_rng([seed, zlib.crc32(f"rows {data.name}".encode())])
        data = data.sample(rows, rng)
    data = _asked(task, data, seed)
    check_head(task, data)
    cut = _cut(task, data, seed)
    blind = any(np.isin(fold.train, fold.test).any() for fold in cut)
    task = dataclasses.replace(task, metrics=task.metrics or usual_metrics(task, data, blind))
    check_metrics(task, data, blind)
    most = max_folds if task.folds is None else task.folds
    chosen = range(len(cut))[:most] if folds is None else _chosen(task, folds, len(cut))
    repeats = tuple(fold.repeat for fold in cut)
    run = [cut[fold] for fold in chosen]
    seen: dict[str, Any] = {"facts": task_facts(data, run, blind)}
    if not blind:
        seen["twins"] = twins(data, run)
    return PlannedTask(task, data, tuple(chosen), repeats, blind, code=code_of_parts(task), **seen)


def _asked(task: Task, data: Dataset, seed: int) -> Dataset:
    how: Any = task.ask
    try:
        return data if how is None else ask(data, how, seed)
    except DefinitionError as error:
        raise of_task(task, error) from error


def _cut(task: Task, data: Dataset, seed: int) -> list[Fold]:
    how: Any = task.split
    try:
        return split(data, how, seed)
    except DefinitionError as error:
        raise of_task(task, error) from error


def _load(task: Task) -> Dataset:
    if isinstance(task.dataset, Dataset):
        return task.dataset
    if isinstance(task.dataset, str):
        raise DefinitionError(f'task "{task.name}": the data set "{task.dataset}" is only a name.')
    data = task.dataset()
    if not isinstance(data, Dataset):
        raise DefinitionError(
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


def _hoped(task: Task, folds: Sequence[int] | None, most: int | None) -> tuple[int, ...]:
    """Return the folds that would run if the data were there, as far as that can be told."""
    if folds is not None:
        return tuple(sorted(set(folds)))
    told = task.split.get("folds") if isinstance(task.split, Mapping) else None
    count = told if isinstance(told, int) else 1
    return tuple(range(count)[: most if task.folds is None else task.folds])


def _check_names(names: list[str]) -> list[str]:
    twice = sorted({name for name in names if names.count(name) > 1})
    return [f'two tasks are called "{name}"; rename one.' for name in twice]


def pick_tasks(tasks: Iterable[Task], wanted: Sequence[str], suite: str = "") -> list[Task]:
    """Return the tasks of these names; ``*`` in a name stands for anything.

    The suite's own name before a task's may be left away: ``adult`` is ``taco-adult`` in ``taco``.
    """
    from fnmatch import fnmatchcase

    def fits(name: str, pattern: str) -> bool:
        short = name.removeprefix(f"{suite}-")
        return pattern in (name, short) or fnmatchcase(name, pattern)

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
