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
from karat.execution.engine import PlanParts
from karat.execution.plan import Plan, add_replicates, make_plan, pick_tasks
from karat.execution.progress import LineProgress, Progress, shown_progress
from karat.execution.resources import Limits, restored_folder
from karat.execution.session import Options, Session, Stopped
from karat.execution.takes import decline_untaken
from karat.execution.workers import available_cores, one_thread
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


def evaluate(
    models: Any,
    tasks: Any,
    target: Any = None,
    *,
    metrics: Any = (),
    folds: int | None = None,
    only_folds: int | Sequence[int] | None = None,
    cv: Any = None,
    groups: Any = None,
    sample_weight: Any = None,
    seed: int = 42,
    seeds: int = 1,
    workers: int = 0,
    n_jobs: int | None = None,
    output: str | Path = "results",
    constraint: str = "default",
    only: str | Sequence[str] = (),
    max_rows: int | None = None,
    cache: bool = True,
    resume: bool = False,
    retry_failed: bool = False,
    exit_on_error: bool = False,
    inference: Sequence[int] = (),
    engine: str = "local",
    scheduler: str | None = None,
    items: bool = True,
    budget: float | None = None,
    dimensions: int | Sequence[int] = (),
    precision: str | Sequence[str] = (),
    rescore: bool | int = False,
    shard: str | None = None,
    define: Files = (),
    progress: Progress | bool | None = None,
    raise_on_failure: bool = False,
) -> list[Run]:
    """Evaluate models on tasks, or on data as in scikit-learn: ``evaluate(model, X, y)``.

    A job that fails becomes a row with status ``failed``, ``timeout`` or ``memory``; the other
    jobs still run, and a KaratWarning has the first message of each model. The scores depend on
    the seed, not on the number of workers or the engine.

    Parameters
    ----------
    models : str, class, object, callable, path, mapping, or a list of these
        Registered names, encoder or predictor classes and instances, functions that return
        vectors, scikit-learn pipelines, paths of vector files, vectors in memory. A mapping
        assigns the names under which results are stored. None: the models that the suite defines.
    tasks : str, Suite, Task, iterable of str and Task, array, frame, path, or pair of these
        The name of a suite, a suite, or tasks and names of tasks. With ``target``: the rows of a
        table, texts, or the path of a table file. A pair is a train and a test part.
    target : str or array, optional
        The target column of a table, or one value per row. A model that is a regressor of
        scikit-learn makes the task a regression, a classifier a classification.
    metrics : str, function, or list of these, default=()
        Metrics instead of those of the tasks: names, or metric functions and scorers of
        scikit-learn. The first one ranks.
    folds : int, optional
        Number of folds of each task. Default: that of the task, 5 for new data. The rows are
        shuffled by the seed, stratified by class, and groups are not divided.
    only_folds : int or sequence of int, optional
        Numbers of the folds to run, counted from 0. Default: all folds.
    cv : int, splitter, or list of pairs of rows, optional
        Folds exactly as scikit-learn makes them, of data or of Task objects. A splitter without
        ``random_state`` gets the seed.
    groups : str or array, optional
        A column of the data, or one value per row: groups that no fold divides.
    sample_weight : str or array, optional
        The same for the weight of each row in training and in metrics.
    seed : int, default=42
        Seed of splits, samples, corruptions and models. Fold ``i`` of a model uses ``seed + i``.
    seeds : int, default=1
        Number of fits of each fold by models that use a seed, on the same rows. Leaderboards show
        the mean over them; a model without a seed is fitted once.
    workers : int, default=0
        Number of worker processes, at most one per core. A worker process runs jobs of one model
        only. With 0, jobs without limits run in this process, and models share its global state.
    n_jobs : int, optional
        The same as in scikit-learn: -1 is one worker process per core.
    output : str or Path, default="results"
        Folder in which one run folder per model is written.
    constraint : str, default="default"
        Name of the constraint that limits time, memory, cores, folds and rows.
    only : str or sequence of str, default=()
        Names or patterns (``adult*``) of the tasks to run. Empty: all tasks.
    max_rows : int, optional
        Maximum number of rows per dataset.
    cache : bool, default=True
        Keep vectors of stateless encoders between runs.
    resume : bool, default=False
        Continue the latest matching run in ``output`` and run only what is missing or changed.
    retry_failed : bool, default=False
        With ``resume``, run failed jobs again.
    exit_on_error : bool, default=False
        Stop after the first failed job.
    inference : sequence of int, default=()
        Batch sizes for which inference is timed.
    engine : {"local", "dask"}, default="local"
        Where jobs run.
    scheduler : str, optional
        Address or scheduler file of a Dask cluster. Default with ``engine="dask"``: start a
        cluster on this machine.
    items : bool, default=True
        Keep the texts or cells of the test items in the run folder, where the license of the data
        allows it. They are shown by reports and ``compare_items``.
    budget : float, optional
        The most that this call may spend on endpoints, in dollars. Jobs whose vectors would cost
        more are not run; ``resume=True`` runs them.
    dimensions : int or sequence of int, default=()
        Also evaluate every encoder with the first dimensions of its vectors only, such as
        ``[64, 128]``. The variants have the names ``NAME@64d`` and ``NAME@128d``.
    precision : str or sequence of str, default=()
        Also evaluate every encoder, and each of ``dimensions``, with vectors of this precision:
        ``"float32"``, ``"float16"``, ``"int8"`` or ``"binary"``; ``NAME@int8``, ``NAME@64d-int8``.
    rescore : bool or int, default=False
        Retrieval with ``"binary"`` ranks this many documents again (True: 40), by the query's
        32-bit vector.
    shard : str, optional
        Run one part of the plan only: ``"3/64"`` is the third of 64 parts, ``"auto"`` reads the
        variables of Slurm, Kubernetes, AWS Batch, GitLab and others. Its runs are in a folder of
        their own in ``output``; ``karat.gather`` merges those of all shards.
    define : path or sequence of paths, default=()
        YAML files with definitions, or Python files that register components.
    progress : Progress or bool, optional
        True shows the progress: a bar in a notebook, else lines on standard error, as ``karat run``
        does. False shows nothing; an object receives every event of the run. Default: True in a
        notebook or an interactive Python, False in a script.
    raise_on_failure : bool, default=False
        Raise JobsFailed after the run, instead of a warning, if a job failed or a model that was
        given ran on no task.

    Returns
    -------
    list of Run
        One run per model, in the order of ``models``; with ``seeds``, the first one of a model is
        followed by one for each of its further seeds.

    Raises
    ------
    DefinitionError
        If a name, option or definition is wrong. Nothing has run then, and the error lists every
        mistake.
    MissingExtra
        If ``engine="dask"`` and Dask is not installed.
    JobsFailed
        With ``raise_on_failure``; its ``runs`` are what would be returned.
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
    ...     ["onehot", "dummy"], ["diabetes"], only_folds=0, output=tempfile.mkdtemp()
    ... )
    >>> [run.model for run in runs]
    ['onehot', 'dummy']
    >>> karat.leaderboard(runs).index.tolist()
    ['onehot', 'dummy']
    """
    given = dict(locals())
    given["workers"] = worker_count(workers, n_jobs)
    options = _options_of(given)
    with restored_folder():
        catalog = Catalog(define)
    display = shown_progress(progress)
    with shown_downloads(isinstance(display, LineProgress)):
        tasks = find_data(catalog, models, tasks, given)
        check_cv_applies(cv, tasks, options)
        variants = make_variants(dimensions, precision, rescore)
        found, suite = find_models_and_suite(
            catalog, models, tasks, only=options.only, constraint=constraint, variants=variants
        )
        suite = change_metrics(change_cv(suite, cv), metrics)
        plan = plan_suite(found, suite, catalog, options)
    postponed = []
    try:
        runs = run_suite(plan, suite, options, display)
    except Stopped as stopped:
        if stopped.interrupted:
            raise
        runs, postponed = stopped.runs, [str(stopped)]
    problems = "\n".join([*postponed, *problems_of(runs, given=models is not None)])
    if problems and raise_on_failure:
        raise JobsFailed(problems, runs)
    if problems:
        warnings.warn(problems, KaratWarning, stacklevel=2)
    return runs


def _options_of(arguments: Mapping[str, Any]) -> Options:
    """Return those arguments of ``evaluate`` that are options of a run, checked."""
    names = [option.name for option in dataclasses.fields(Options) if option.name in arguments]
    return make_options({name: arguments[name] for name in names})


def worker_count(workers: int, n_jobs: int | None) -> int:
    """Return the number of workers that ``n_jobs`` of scikit-learn means, or ``workers``.

    >>> worker_count(0, None), worker_count(0, 2)
    (0, 2)
    """
    if n_jobs is None:
        return workers
    if workers:
        raise DefinitionError("workers and n_jobs mean the same; remove one.")
    if not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise DefinitionError(f"n_jobs must be an integer other than 0, got {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, available_cores() + 1 + int(n_jobs))


def find_data(catalog: Catalog, models: Any, tasks: Any, given: Mapping[str, Any]) -> Any:
    """Return the task on data that were passed instead of tasks, and tasks as they are.

    ``given`` has the target, the groups and the weights.
    """
    values = {name: given[name] for name in OF_DATA}
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
    types = [str(getattr(sklearn_tags(each), "estimator_type", None)) for each in listed]
    kinds = {KINDS_OF_TAGS.get(each) for each in types}
    return kinds.pop() if len(kinds) == 1 else None


def check_cv_applies(cv: Any, tasks: Any, options: Options) -> None:
    """Refuse ``cv`` for named tasks, whose folds make results comparable, and besides folds."""
    if cv is None:
        return
    if options.folds is not None:
        raise DefinitionError("cv and folds exclude each other; remove one.")
    listed = tasks if isinstance(tasks, list | tuple) else [tasks]
    for task in listed:
        if isinstance(task, str | Suite):
            name = task if isinstance(task, str) else task.name
            raise DefinitionError(
                f'cv is for data and Task objects; "{name}" has folds of its own, whose number is '
                f"set by folds=N."
            )


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


def problems_of(runs: Iterable[Run], given: bool = True) -> Iterator[str]:
    """Yield a line per model with failed jobs, and per given model that ran on no task.

    A metric that fails in all jobs of a task has a line, too.
    """
    for run in map(FrozenRun.of, runs):
        records = run.records()
        failed = [record for record in records if record["status"] in FAILURES]
        reason = reason_nothing_ran(run) if given else None
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


def make_options(given: Mapping[str, Any]) -> Options:
    """Return checked options, or raise a DefinitionError that lists every wrong one."""
    given = {**given, "output": Path(given.get("output", Options.output))}
    for name, single in (("only", str), ("only_folds", int)):
        if isinstance(given.get(name), single):
            given[name] = [given[name]]
    options = build("evaluate", Options, given, {})
    rows = () if options.max_rows is None else (options.max_rows,)
    messages = [
        f"{name} must be an integer from {least} to {most}, got {value!r}."
        for name, least, most, values in (
            ("workers", 0, LARGEST_COUNT, (options.workers,)),
            ("seed", 0, LARGEST_SEED, (options.seed,)),
            ("max_rows", 2, LARGEST_COUNT, rows),
            ("inference", 1, LARGEST_COUNT, options.inference),
            ("only_folds", 0, LARGEST_COUNT, options.only_folds or ()),
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
    if options.retry_failed and not options.resume:
        yield "retry_failed requires resume."
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
    found: list[Model] = attempt(lambda: catalog.models(names, variants), [])
    attempt(lambda: catalog.definitions.get("constraints", constraint))
    if not found and not messages:
        messages.append(
            f'no model was given and suite "{chosen.name}" defines none; give one, such as dummy '
            f"(-m dummy)."
        )
    if messages:
        # a mistake in a definition file is found by models and tasks alike
        raise DefinitionError(*dict.fromkeys(messages))
    return found, chosen


def find_suite(catalog: Catalog, tasks: Tasks) -> Suite:
    """Return the given tasks as a suite."""
    if isinstance(tasks, str):
        return catalog.corpus_suite(tasks) if is_corpus(catalog, tasks) else catalog.suite(tasks)
    if isinstance(tasks, Suite):
        return tasks
    several = isinstance(tasks, Iterable) and not isinstance(tasks, Task | Dataset)
    listed: list[Any] = list(tasks) if several else [tasks]  # type: ignore[arg-type]
    found: list[Task] = []
    messages = [] if listed else ["no task was given."]
    for task in listed:
        try:
            found += catalog.tasks(task) if isinstance(task, str) else [task]
        except DefinitionError as error:
            messages += error.messages
        if not isinstance(task, str | Task):
            kind = type(task).__name__
            messages.append(f"a task must be a karat.Task or the name of one, got {kind}.")
    if messages:
        raise DefinitionError(*messages)
    return Suite("custom", tuple(found))


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
    place = next((p for p in (options.output, *options.output.parents) if p.exists()), Path())
    free = shutil.disk_usage(place).free // 2**20
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
    known = [*catalog.definitions.names("suites"), *catalog.definitions.names("tasks")]
    layout = registry.corpora.get("layout")
    return name not in known and (name.endswith("/") or bool(layout(Path(name))))
