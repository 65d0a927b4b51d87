"""Evaluate: models on tasks, from names to runs. The one verb everything else calls."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from karat.catalogue import Catalogue
from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.execute import one_thread
from karat.limits import Limits
from karat.models.base import Model
from karat.plan import Plan, make_plan, pick_tasks
from karat.progress import Progress
from karat.registry import build
from karat.results.layouts import OWN, RESULTS
from karat.results.run import Run
from karat.session import Options, Session
from karat.task import Suite, Task

ENGINES = ("local", "dask")
Tasks = str | Suite | Task | Iterable[str | Task]


def evaluate(
    models: Any,
    tasks: Tasks,
    *,
    define: Sequence[str | Path] | str | Path = (),
    progress: Progress | None = None,
    **options: Any,
) -> list[Run]:
    """Evaluate models on tasks and return one Run per model.

    Parameters
    ----------
    models
        One or several of: a name, a class, an instance, a function, a scikit-learn pipeline, the
        path of a vector file; or a mapping from names to those.
    tasks
        The name of a suite, a Suite, or Tasks and names of tasks.
    define
        YAML files with definitions of your own, Python files that register parts.
    progress
        Hears of every event; nothing is shown without one.
    **options
        ``seed`` (42), ``workers`` (1), ``output`` (``"results"``), ``constraint``, ``only`` (names
        of tasks), ``folds``, ``max_rows``, ``cache`` (True), ``resume``, ``retry_failed``,
        ``exit_on_error``, ``inference`` (sizes of batches to be timed), ``engine`` (``"local"`` or
        ``"dask"``), ``scheduler`` (the address of a Dask cluster).
    """
    chosen = make_options(options)
    catalogue = Catalogue(define)
    limit = chosen.constraint
    found, suite = find_both(catalogue, models, tasks, only=chosen.only, constraint=limit)
    return run_suite(plan_suite(found, suite, catalogue, chosen), suite, chosen, progress)


def suite(name: str, define: Sequence[str | Path] | str | Path = ()) -> Suite:
    """Return a defined suite by its name, ready to be iterated over or evaluated."""
    return Catalogue(define).suite(name)


def make_options(given: Mapping[str, Any]) -> Options:
    """Return checked options; a wrong name or value is said before anything runs."""
    given = {**given, "output": Path(given.get("output", Options.output))}
    if isinstance(given.get("only"), str):
        given["only"] = [given["only"]]
    if isinstance(given.get("folds"), int):
        given["folds"] = [given["folds"]]
    options = build("evaluate", Options, given, {})
    messages = [
        *_whole("workers", options.workers, least=1),
        *_whole("seed", options.seed, least=0),
        *(_whole("max_rows", options.max_rows, least=2) if options.max_rows is not None else []),
    ]
    for size in options.inference:
        messages += _whole("inference", size, least=1)
    for fold in options.folds or ():
        messages += _whole("folds", fold, least=0)
    if options.engine not in ENGINES:
        messages.append(f'engine must be "local" or "dask", not {options.engine!r}.')
    elif options.scheduler is not None and options.engine != "dask":
        messages.append('a scheduler needs the engine "dask": --engine dask.')
    if messages:
        raise DefinitionError(*messages)
    return options


def _whole(name: str, value: Any, least: int) -> list[str]:
    most = 2**31 - 1
    if isinstance(value, Integral) and not isinstance(value, bool) and least <= int(value) <= most:
        return []
    return [f"{name} must be a whole number from {least} to {most}, not {value!r}."]


def find_both(
    catalogue: Catalogue,
    models: Any,
    tasks: Tasks,
    *,
    only: Sequence[str] = (),
    constraint: str = "default",
) -> tuple[list[Model], Suite]:
    """Return models and suite; mistakes in all names that were given are said together.

    Without models, the suite's own are taken.
    """
    messages: list[str] = []
    found: list[Model] = []
    chosen = Suite("", ())
    try:
        chosen = find_suite(catalogue, tasks)
        pick_tasks(chosen, only, chosen.name)
    except DefinitionError as error:
        messages += error.messages
    try:
        found = catalogue.models(list(chosen.models) if models is None else models)
    except DefinitionError as error:
        messages += error.messages
    try:
        catalogue.definitions.get("constraints", constraint)
    except DefinitionError as error:
        messages += error.messages
    if not found and not messages:
        messages.append(f'the suite "{chosen.name}" has no models of its own; name one with -m.')
    if messages:
        # a mistake in a file of one's own meets both, and is told once
        raise DefinitionError(*dict.fromkeys(messages))
    return found, chosen


def find_suite(catalogue: Catalogue, tasks: Tasks) -> Suite:
    """Return what was asked for as a suite."""
    if isinstance(tasks, str):
        return catalogue.suite(tasks)
    if isinstance(tasks, Suite):
        return tasks
    several = isinstance(tasks, Iterable) and not isinstance(tasks, Task | Dataset)
    listed: list[Any] = list(tasks) if several else [tasks]  # type: ignore[arg-type]
    found: list[Task] = []
    messages = [] if listed else ["no task was given."]
    for task in listed:
        try:
            found.append(catalogue.task(task) if isinstance(task, str) else _checked(task))
        except DefinitionError as error:
            messages += error.messages
    if messages:
        raise DefinitionError(*messages)
    return Suite("custom", tuple(found))


def _checked(task: Any) -> Task:
    if not isinstance(task, Task):
        raise DefinitionError(f"a task is a karat.Task or a name, not {type(task).__name__}.")
    return task


def plan_suite(
    models: Sequence[Model], suite: Suite, catalogue: Catalogue, options: Options
) -> Plan:
    """Return the plan of a suite under the options and their constraint."""
    limits = catalogue.definitions.get("constraints", options.constraint)
    rows = [n for n in (limits.get("max_rows"), options.max_rows) if n is not None]
    tasks = pick_tasks(suite, options.only, suite.name) if options.only else list(suite)
    named = [
        dataclasses.replace(t, dataset=catalogue.dataset(t.dataset))
        if isinstance(t.dataset, str)
        else t
        for t in tasks
    ]
    _check_columns(named)
    with one_thread():
        plan = make_plan(
            models,
            named,
            seed=options.seed,
            folds=options.folds,
            max_folds=limits.get("folds"),
            max_rows=min(rows, default=None),
        )
    _check_room(options, limits.get("min_vol_size_mb"))
    names = ("max_runtime_seconds", "max_mem_size_mb", "cores", "gpus")
    return dataclasses.replace(plan, limits=Limits(*(limits.get(name) for name in names)))


def _check_room(options: Options, megabytes: int | None) -> None:
    """Refuse to begin where the disk has less room than the constraint wants."""
    place = next((p for p in (options.output, *options.output.parents) if p.exists()), Path())
    free = shutil.disk_usage(place).free // 2**20
    if megabytes is not None and free < megabytes:
        raise DefinitionError(
            f"the constraint {options.constraint} wants {megabytes:,} MB free below "
            f"{options.output}; there are {free:,}. Choose another --output or constraint."
        )


def _check_columns(tasks: Iterable[Task]) -> None:
    """Refuse metrics called like a column that results.csv has for something else."""
    taken = {name for task in tasks for name in task.metrics if name in (*RESULTS, *OWN)}
    if taken:
        raise DefinitionError(
            *(
                f'a metric cannot be called "{name}": results.csv has such a column; rename it.'
                for name in sorted(taken)
            )
        )


def run_suite(
    plan: Plan, suite: Suite, options: Options, progress: Progress | None = None
) -> list[Run]:
    """Carry a plan out and return the runs, or raise Stopped with what is kept."""
    return Session(plan, suite, options, progress or Progress()).run()
