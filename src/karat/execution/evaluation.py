"""``evaluate``: run models on tasks and return one Run per model."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral
from pathlib import Path
from typing import Any

from karat.config.catalog import Catalog
from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.embeddings import Variant, make_variants
from karat.core.exits import exit_refused
from karat.core.registry import build
from karat.core.replicates import LARGEST_SEED, MOST_SEEDS
from karat.core.task import Suite, Task, wrong_folds
from karat.data.arrays import data_from_arrays, is_table_like
from karat.data.download_display import shown_downloads
from karat.data.readers.table_files import SUFFIXES, suffix_of
from karat.errors import FAILURES, DataError, DefinitionError, JobsFailed, KaratWarning
from karat.execution.arguments import (
    Machines,
    Only,
    Output,
    Variants,
    check_on_failure,
    explain_respelled,
    run_settings,
)
from karat.execution.engine import PlanParts
from karat.execution.plan import Plan, add_replicates, make_plan, pick_tasks
from karat.execution.progress import LineProgress, Progress, shown_progress
from karat.execution.resources import Limits, restored_folder
from karat.execution.session import Options, Session, Stopped
from karat.execution.takes import decline_untaken
from karat.execution.workers import one_thread
from karat.models.model import Model, sklearn_tags
from karat.models.vector_files import VectorFile
from karat.results.load import FrozenRun, reason_nothing_ran
from karat.results.run import Run
from karat.results.tables import AMLB_COLUMNS, KARAT_COLUMNS

#: the largest number of rows, workers or folds
LARGEST_COUNT = 2**31 - 1
#: the constraint's keys for the fields of Limits, in their order
LIMITS = ("max_runtime_seconds", "max_mem_size_mb", "cores", "gpus")
#: the reason why a score is missing if the metric raised an error
ERROR_OF_METRIC = re.compile(r"[^:]*: \w*(?:Error|Exception): ")
#: the parameters of evaluate that are values of data
OF_DATA = ("target", "groups", "sample_weight")
#: the kind of target by the type of an estimator of scikit-learn
KINDS_OF_TAGS = {"classifier": "classification", "regressor": "regression"}
Tasks = str | Suite | Task | Iterable[str | Task]
Files = Sequence[str | Path] | str | Path


@explain_respelled
def evaluate(
    models: Any,
    tasks: Any,
    target: Any = None,
    *,
    metrics: Any = (),
    cv: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    only: str | Sequence[str] | Only = (),
    seed: int = 42,
    workers: int | Machines = 0,
    output: str | Path | Output = "results",
    resume: bool | str = False,
    on_failure: str = "warn",
    define: Files = (),
    progress: Progress | bool | None = None,
) -> list[Run]:
    """Evaluate models on tasks, or on data as in scikit-learn: ``evaluate(model, X, y)``.

    A job that fails becomes a row with status ``failed``, ``timeout`` or ``memory``; the other
    jobs still run, and a KaratWarning has the first message of each model. The scores depend on
    the seed, not on the number of workers or the engine.

    Parameters
    ----------
    models : str, class, object, callable, path, mapping, Variants, or a list of these
        Registered names, encoder or predictor classes and instances, functions that return
        vectors, scikit-learn pipelines, paths of vector files, vectors in memory. A mapping
        assigns the names under which results are stored. ``Variants`` adds fewer dimensions,
        fewer bits or more seeds to models. None: the models that the suite defines.
    tasks : str, Suite, Task, iterable of str and Task, array, frame, path, or pair of these
        The name of a suite, a suite, or tasks and names of tasks. With ``target``: the rows of a
        table, texts, or the path of a table file. A pair is a train and a test part.
    target : str or array, optional
        The target column of a table, or one value per row. A model that is a regressor of
        scikit-learn makes the task a regression, a classifier a classification.
    metrics : str, function, or list of these, default=()
        Metrics instead of those of the tasks: names, or metric functions and scorers of
        scikit-learn. The first one ranks.
    cv : int, splitter, or list of pairs of rows, optional
        Folds of data and Task objects, exactly as scikit-learn makes them; a splitter without
        ``random_state`` gets the seed. Of named tasks, only their number can be set. Default: the
        folds of each task; of new data 5, shuffled by the seed and stratified by class, which do
        not divide groups.
    groups : str or array, optional
        A column of the data, or one value per row: groups that no fold divides.
    sample_weight : str or array, optional
        The same for the weight of each row in training and in metrics.
    only : str, sequence of str, or Only, default=()
        Names or patterns (``adult*``) of the tasks to run; ``Only`` also states folds and the
        maximum number of rows. Empty: all tasks.
    seed : int, default=42
        Seed of splits, samples, corruptions and models. Fold ``i`` of a model uses ``seed + i``.
    workers : int or Machines, default=0
        Number of worker processes, at most one per core; -1 is one per core. With 0, jobs without
        limits run in this process. ``Machines`` also states limits, a cluster, or one of several
        parts of the plan.
    output : str, Path or Output, default="results"
        Folder in which one run folder per model is written. ``Output`` also states what is kept.
    resume : {False, True, "retry-failed"}, default=False
        True continues the latest matching run in ``output`` and runs only what is missing or
        changed; ``"retry-failed"`` runs failed jobs again, too.
    on_failure : {"warn", "raise", "stop"}, default="warn"
        What to do if a job fails or a model that was given runs on no task: warn at the end, or
        raise JobsFailed, at the end or (``"stop"``) after the first failed job.
    define : path or sequence of paths, default=()
        YAML files with definitions, or Python files that register components.
    progress : Progress or bool, optional
        True shows the progress: a bar in a notebook, else lines on standard error, as ``karat run``
        does. False shows nothing; an object receives every event of the run. Default: True in a
        notebook or an interactive Python, False in a script.

    Returns
    -------
    list of Run
        One run per model, in the order of ``models``; with several seeds, the first one of a model
        is followed by one for each of its further seeds.

    Raises
    ------
    DefinitionError
        If a name, option or definition is wrong. Nothing has run then, and the error lists every
        mistake.
    MissingExtra
        If the engine is Dask, which is not installed.
    JobsFailed
        With ``on_failure="raise"`` or ``"stop"``; its ``runs`` are what would be returned.
    Stopped
        If the run was interrupted. Finished jobs are stored; ``resume=True`` runs the rest.

    Warns
    -----
    KaratWarning
        If a job failed, a model that was given ran on no task, such as for a missing library, or
        jobs were not run because of the budget or an endpoint that refused for too long.

    Examples
    --------
    >>> import tempfile
    >>> import karat
    >>> runs = karat.evaluate(
    ...     ["onehot", "dummy"], ["diabetes"], only=karat.Only(folds=0), output=tempfile.mkdtemp()
    ... )
    >>> [run.model for run in runs]
    ['onehot', 'dummy']
    >>> karat.leaderboard(runs).index.tolist()
    ['onehot', 'dummy']
    """
    variants = models if isinstance(models, Variants) else Variants(models)
    models = variants.models
    check_on_failure(on_failure)
    with restored_folder():
        catalog = Catalog(define)
    display = shown_progress(progress)
    with shown_downloads(isinstance(display, LineProgress)):
        columns = {"target": target, "groups": groups, "sample_weight": sample_weight}
        tasks = find_data(catalog, models, tasks, columns)
        folds, splitter = separate_cv(cv, tasks)
        options = make_options(
            run_settings(workers, output, only, resume)
            | {"seed": seed, "seeds": variants.seeds, "folds": folds}
            | {"exit_on_error": on_failure == "stop"}
        )
        plan, suite = _planned(catalog, variants, tasks, options, (splitter, metrics))
    runs, postponed = _run_but_postponed(plan, suite, options, display)
    problems = "\n".join([*postponed, *problems_of(runs, requested=models is not None)])
    if problems and on_failure != "warn":
        raise JobsFailed(problems, runs)
    if problems:
        warnings.warn(problems, KaratWarning, stacklevel=3)
    return runs


def _planned(
    catalog: Catalog,
    variants: Variants,
    tasks: Tasks,
    options: Options,
    changes: tuple[Any, Any],
) -> tuple[Plan, Suite]:
    """Return the plan and the suite, with ``changes`` of the splitter and the metrics."""
    names = (variants.dimensions, variants.precision, variants.rescore)
    models, suite = find_models_and_suite(
        catalog,
        variants.models,
        tasks,
        only=options.only,
        constraint=options.constraint,
        variants=make_variants(*names),
    )
    splitter, metrics = changes
    suite = change_metrics(change_cv(suite, splitter), metrics)
    return plan_suite(models, suite, catalog, options), suite


def _run_but_postponed(
    plan: Plan, suite: Suite, options: Options, progress: Progress
) -> tuple[list[Run], list[str]]:
    """Return the runs, and why jobs were postponed, if any were."""
    try:
        return run_suite(plan, suite, options, progress), []
    except Stopped as stopped:
        if stopped.interrupted:
            raise
        return stopped.runs, [str(stopped)]


def find_data(catalog: Catalog, models: Any, tasks: Any, arguments: Mapping[str, Any]) -> Any:
    """Return the task on data that were passed instead of tasks, and tasks as they are.

    ``arguments`` has the target, the groups and the weights.
    """
    values = {name: arguments[name] for name in OF_DATA}
    present = {name: value for name, value in values.items() if value is not None}
    target = values["target"]
    if any(callable(getattr(target, method, None)) for method in ("fit", "predict")):
        raise DefinitionError("the model is the first argument: karat.evaluate(model, X, y).")
    if target is None and isinstance(tasks, str | Path) and _is_table(tasks):
        raise DefinitionError(
            f'{tasks} is a table; name its target: karat.evaluate(model, "{tasks}", '
            f'target="COLUMN").'
        )
    if target is not None and isinstance(tasks, str | Path):
        names = {"groups": "group", "sample_weight": "weight"}
        settings = {names[name]: column for name, column in present.items() if name in names}
        if wrong := [name for name, column in present.items() if not isinstance(column, str)]:
            raise DefinitionError(f"{wrong[0]} must be the name of a column of the file {tasks}.")
        return list(catalog.table_suite(tasks, target, None, settings))
    is_list = isinstance(tasks, list) and not isinstance(target, str | None)
    if is_table_like(tasks) or is_list:
        rest = {name: value for name, value in values.items() if name != "target"}
        data = data_from_arrays(tasks, target, kind=_kind_of_target(models), **rest)
        return Task(data.name, data)
    if present:
        raise DefinitionError(
            f"{' and '.join(present)} {'has' if len(present) == 1 else 'have'} no effect on tasks, "
            f"only on data: karat.evaluate(model, X, y)."
        )
    return tasks


def _is_table(path: str | Path) -> bool:
    """Return whether a path is that of a table file."""
    return Path(path).is_file() and suffix_of(Path(path)) in SUFFIXES


def _kind_of_target(models: Any) -> str | None:
    """Return the kind of target that all models need as scikit-learn's tags say, if any."""
    if isinstance(models, Mapping):
        models = list(models.values())
    listed = list(models) if isinstance(models, list | tuple | set) else [models]
    types = [str(getattr(sklearn_tags(model), "estimator_type", None)) for model in listed]
    kinds = {KINDS_OF_TAGS.get(name) for name in types}
    return kinds.pop() if len(kinds) == 1 else None


def separate_cv(cv: Any, tasks: Any) -> tuple[int | None, Any]:
    """Return the number of folds of named tasks, and the ``cv`` of data and Task objects.

    Named tasks have folds that make results comparable, of which only the number may be set.

    >>> separate_cv(3, "quickstart"), separate_cv(3, Task("mine", "adult"))
    ((3, None), (None, 3))
    """
    listed = tasks if isinstance(tasks, list | tuple) else [tasks]
    named = [task if isinstance(task, str) else task.name for task in listed if _has_folds(task)]
    if cv is None or not named:
        return None, cv
    if isinstance(cv, Iterable) or hasattr(cv, "split"):
        raise DefinitionError(
            f'"{named[0]}" has folds of its own, whose number is set by cv=N; a splitter or pairs '
            f"of rows are for data and Task objects."
        )
    if len(named) < len(listed):
        raise DefinitionError(
            f'cv={cv!r} means other folds for the named task "{named[0]}" than for Task objects; '
            f"evaluate them in two calls."
        )
    return cv, None


def _has_folds(task: Any) -> bool:
    """Return whether a task or several are named, and so have folds that others use, too."""
    return isinstance(task, str | Suite)


def change_cv(suite: Suite, cv: Any) -> Suite:
    """Return the suite with the folds of scikit-learn's ``cv`` in every task."""
    if cv is None:
        return suite
    changes = {"split": "auto", "folds": None, "cv": cv}
    tasks = tuple(dataclasses.replace(task, **changes) for task in suite)
    return dataclasses.replace(suite, tasks=tasks)


def change_metrics(suite: Suite, metrics: Any) -> Suite:
    """Return the suite with other metrics in every task; none: as they are."""
    if isinstance(metrics, str) and "," in metrics and "(" not in metrics:
        names = [name.strip() for name in metrics.split(",")]
        raise DefinitionError(f"metrics must be a list: metrics={names}.")
    if not callable(metrics) and not isinstance(metrics, Iterable):
        raise DefinitionError(
            f"metrics must be names, functions or scorers, or a list of these, got {metrics!r}."
        )
    if not callable(metrics) and not metrics:
        return suite
    tasks = tuple(dataclasses.replace(task, metrics=metrics) for task in suite)
    return dataclasses.replace(suite, tasks=tasks)


def problems_of(runs: Iterable[Run], requested: bool = True) -> Iterator[str]:
    """Yield a line per model with failed jobs, and per requested model that ran on no task.

    A metric that fails in all jobs of a task has a line, too.
    """
    for run in map(FrozenRun.of, runs):
        records = run.records()
        failed = [record for record in records if record["status"] in FAILURES]
        reason = reason_nothing_ran(run) if requested else None
        if failed:
            first = failed[0]
            jobs = f"{len(failed)} of {len(records)} jobs failed"
            where = "" if first["fold"] is None else f", fold {first['fold']}"
            yield (
                f"{run.model}: {jobs}; the first on {first['task']}{where}: {first['info']} "
                f"(log: {run.log(first)})"
            )
        elif reason is not None:
            yield f"{run.model} ran on no task: {reason}"
        for (task, metric), why in _failed_metrics(records).items():
            yield f"{run.model}: the metric {metric} has no value on {task}: {why}"


def _failed_metrics(records: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the metrics that raised an error in all jobs of a task, with the first error."""
    errors: dict[tuple[str, str], str] = {}
    scored: set[tuple[str, str]] = set()
    for record in records:
        view = record["views"][0] if record["status"] == "ok" and record["views"] else {}
        reasons = view.get("reasons") or {}
        for metric in view.get("scores") or ():
            key, why = (record["task"], metric), str(reasons.get(metric, ""))
            if ERROR_OF_METRIC.match(why):
                errors.setdefault(key, why.partition(": ")[2])
            else:
                scored.add(key)
    return {key: why for key, why in errors.items() if key not in scored}


def suite(name: str, define: Files = ()) -> Suite:
    """Return a defined suite.

    Parameters
    ----------
    name : str
        Name of the suite; ``karat list suites`` lists those that come with Karat.
    define : path or sequence of paths, default=()
        YAML files with definitions, or Python files that register components.

    Returns
    -------
    Suite
        An iterable of tasks that ``evaluate`` accepts.

    Raises
    ------
    DefinitionError
        If there is no such suite, or a file in ``define`` is wrong.

    Examples
    --------
    >>> import karat
    >>> [task.name for task in karat.suite("quickstart")][:2]
    ['breast-cancer', 'adult']
    """
    return Catalog(define).suite(name)


def make_options(settings: Mapping[str, Any]) -> Options:
    """Return checked options, or raise a DefinitionError that lists every wrong one."""
    settings = {**settings, "output": Path(settings.get("output", Options.output))}
    for name, single in (("only", str), ("only_folds", int)):
        if isinstance(settings.get(name), single):
            settings[name] = [settings[name]]
    options = build("evaluate", Options, settings, {})
    rows = () if options.max_rows is None else (options.max_rows,)
    messages = [
        f"{name} must be an integer from {least} to {most}, got {value!r}."
        for name, least, most, values in (
            ("workers", 0, LARGEST_COUNT, (options.workers,)),
            ("seed", 0, LARGEST_SEED, (options.seed,)),
            ("max_rows", 2, LARGEST_COUNT, rows),
            ("inference", 1, LARGEST_COUNT, options.inference),
            ("folds of Only", 0, LARGEST_COUNT, options.only_folds or ()),
        )
        for value in values
        if isinstance(value, bool)
        or not isinstance(value, Integral)
        or not least <= int(value) <= most
    ]
    messages += [wrong_folds(options.folds)] if wrong_folds(options.folds) else []
    messages += [*_wrong_seeds(options), *_wrong_budget(options)]
    messages += [*_wrong_engine(options), *_wrong_parts(options)]
    if messages:
        raise DefinitionError(*messages)
    return options


def _wrong_seeds(options: Options) -> Iterator[str]:
    seeds = options.seeds
    is_integer = isinstance(seeds, Integral) and not isinstance(seeds, bool)
    if not is_integer or not 1 <= seeds <= MOST_SEEDS:
        yield f"seeds must be an integer from 1 to {MOST_SEEDS}, got {seeds!r}."


def _wrong_engine(options: Options) -> Iterator[str]:
    if not isinstance(options.engine, str) or options.engine not in registry.engines:
        names = " or ".join(f'"{name}"' for name in sorted(registry.engines, reverse=True))
        yield f"engine must be {names}, got {options.engine!r}."
    else:
        yield from registry.engines.get(options.engine)(options.scheduler).mistakes()


def _wrong_parts(options: Options) -> Iterator[str]:
    parts = _plan_parts(options)
    if parts is not None:
        yield from parts.mistakes(options)


def _plan_parts(options: Options) -> PlanParts | None:
    """Return what divides the plan among several calls, if the options say so."""
    if options.shard is None:
        return None
    if "shards" not in registry.plan_parts:
        raise DefinitionError("shard needs the extension cluster, which is missing.")
    parts: PlanParts = registry.plan_parts.get("shards")()
    return parts


def _wrong_budget(options: Options) -> Iterator[str]:
    budget = options.budget
    number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if budget is not None and not (number and 0 <= budget < math.inf):
        yield f"budget must be a number >= 0, got {budget!r}."
    elif budget is not None and options.engine != Options.engine:
        yield 'budget requires engine="local": a cluster does not share what is spent.'


def find_models_and_suite(
    catalog: Catalog,
    models: Any,
    tasks: Tasks,
    *,
    only: Sequence[str] = (),
    constraint: str = "default",
    variants: Sequence[Variant] = (),
) -> tuple[list[Model], Suite]:
    """Return the models and the suite; one error lists the mistakes in all names.

    Without models, those that the suite defines are returned. ``variants`` are those of every
    encoder.
    """
    messages: list[str] = []

    @restored_folder()
    def attempt(find: Callable[[], Any], default: Any = None) -> Any:
        try:
            return find()
        except DefinitionError as error:
            messages.extend(error.messages)
            return default

    chosen: Suite = attempt(lambda: find_suite(catalog, tasks), Suite("", ()))
    if chosen.name:
        attempt(lambda: pick_tasks(chosen, only, chosen.name))
    names = list(chosen.models) if models is None else models
    found_models: list[Model] = attempt(lambda: catalog.models(names, variants), [])
    attempt(lambda: catalog.definitions.get("constraints", constraint))
    if not found_models and not messages:
        messages.append(
            f'no model was given and suite "{chosen.name}" defines none; give one, such as dummy '
            f"(-m dummy)."
        )
    if messages:
        # a mistake in a definition file is found by models and tasks alike
        raise DefinitionError(*dict.fromkeys(messages))
    return found_models, chosen


def find_suite(catalog: Catalog, tasks: Tasks) -> Suite:
    """Return the given tasks as a suite."""
    if isinstance(tasks, str):
        return catalog.corpus_suite(tasks) if is_corpus(catalog, tasks) else catalog.suite(tasks)
    if isinstance(tasks, Suite):
        return tasks
    several = isinstance(tasks, Iterable) and not isinstance(tasks, Task | Dataset)
    listed: list[Any] = list(tasks) if several else [tasks]  # type: ignore[arg-type]
    suite_tasks: list[Task] = []
    messages = [] if listed else ["no task was given."]
    for task in listed:
        try:
            suite_tasks += catalog.tasks(task) if isinstance(task, str) else [task]
        except DefinitionError as error:
            messages += error.messages
        if not isinstance(task, str | Task):
            kind = type(task).__name__
            messages.append(f"a task must be a karat.Task or the name of one, got {kind}.")
    if messages:
        raise DefinitionError(*messages)
    return Suite("custom", tuple(suite_tasks))


def plan_suite(models: Sequence[Model], suite: Suite, catalog: Catalog, options: Options) -> Plan:
    """Return the plan of a suite under the options and their constraint."""
    limits = catalog.definitions.get("constraints", options.constraint)
    rows = [n for n in (limits.get("max_rows"), options.max_rows) if n is not None]
    chosen = pick_tasks(suite, options.only, suite.name) if options.only else list(suite)
    tasks = [
        dataclasses.replace(task, dataset=catalog.dataset(task.dataset))
        if isinstance(task.dataset, str)
        else task
        for task in chosen
    ]
    taken = {name for task in tasks for name in task.metrics} & {*AMLB_COLUMNS, *KARAT_COLUMNS}
    if taken:
        message = 'metric name "{}" is a column of jobs.csv; rename the metric.'
        raise DefinitionError(*map(message.format, sorted(taken)))
    with one_thread(), restored_folder():
        plan = make_plan(
            models,
            tasks,
            seed=options.seed,
            folds=options.folds,
            only_folds=options.only_folds,
            max_folds=limits.get("max_folds"),
            max_rows=min(rows, default=None),
        )
        plan = dataclasses.replace(plan, limits=Limits(*(limits.get(name) for name in LIMITS)))
        # jobs on a cluster run in other processes, so trials do
        workers = options.workers or int(options.engine != "local")
        plan = add_replicates(decline_untaken(plan, workers), options.seeds)
    if options.budget is not None and not plan.services():
        raise DefinitionError("budget has no effect: none of these models is an endpoint.")
    _check_disk_space(options, limits.get("min_vol_size_mb"))
    return plan


def _check_disk_space(options: Options, megabytes: int | None) -> None:
    folder = next((p for p in (options.output, *options.output.parents) if p.exists()), Path())
    free = shutil.disk_usage(folder).free // 2**20
    if megabytes is not None and free < megabytes:
        raise DefinitionError(
            f'constraint "{options.constraint}" requires {megabytes:,} MB of free disk space in '
            f"{options.output}, found {free:,} MB; choose another --output or constraint."
        )


def without_broken_files(plan: Plan) -> Plan:
    """Return the plan; raise a DataError if all models are vector files that cannot be read."""
    files = [model.prototype for model in plan.models]
    if not files or any(type(file) is not VectorFile for file in files):
        return plan
    problems = [file.problem() for file in files]
    if all(problems):
        raise DataError("\n".join(problems))
    return plan


def run_suite(
    plan: Plan, suite: Suite, options: Options, progress: Progress | None = None
) -> list[Run]:
    """Run a plan and return the runs, or raise Stopped with the unfinished ones."""
    with exit_refused():
        if (parts := _plan_parts(options)) is not None:
            return parts.run(plan, suite, options, progress or Progress())
        return Session(plan, suite, options, progress or Progress()).run()


def is_corpus(catalog: Catalog, name: str) -> bool:
    """Return whether a name is the folder of a corpus, and not that of a suite or task.

    Any folder with a slash at its end is: the reader reports what it lacks.
    """
    if not Path(name).is_dir() or "layout" not in registry.corpora:
        return False
    defined = [*catalog.definitions.names("suites"), *catalog.definitions.names("tasks")]
    layout = registry.corpora.get("layout")
    return name not in defined and (name.endswith("/") or bool(layout(Path(name))))
