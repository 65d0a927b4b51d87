"""Evaluate: models on tasks, from the plan to run folders. The one verb everything else calls."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import tempfile
import time
import traceback
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat import __version__
from karat.cache import VectorCache, cache_folder
from karat.catalogue import Catalogue
from karat.dataset import Dataset
from karat.dataset import fingerprint as fingerprint_of
from karat.errors import DefinitionError, KaratError
from karat.execute import WorkerDied, cores, execute, one_thread
from karat.job import Job, run
from karat.models.base import Model
from karat.models.identity import identity
from karat.plan import Plan, PlannedTask, job_spec, make_plan, pick_tasks
from karat.progress import Progress
from karat.results.files import safe_name
from karat.results.run import Run, unfinished
from karat.shelf import Shelf
from karat.task import Suite, Task
from karat.vectors import check_vectors

MODE = "local"
#: the facts in which an unfinished run must agree with the new one to be completed by --resume
SAME = ("model", "suite", "constraint", "seed", "params")


class Stopped(KaratError):
    """A run was interrupted; what is finished is kept."""

    def __init__(self, done: int, jobs: int, runs: list[Run]) -> None:
        self.runs = runs
        super().__init__(f"stopped: {done} of {jobs} jobs are kept.")


@dataclasses.dataclass(frozen=True)
class Options:
    """How to run: everything that does not change what is measured, and the limits that do."""

    seed: int = 42
    workers: int = 1
    output: Path = Path("results")
    constraint: str = "default"
    tasks: Sequence[str] = ()
    folds: Sequence[int] | None = None
    max_rows: int | None = None
    cache: bool = True
    resume: bool = False
    retry_failed: bool = False


def evaluate(
    models: Any,
    tasks: str | Suite | Task | Iterable[str | Task],
    *,
    define: Sequence[str | Path] = (),
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
        YAML files with definitions of your own.
    progress
        Hears of every event; nothing is shown without one.
    **options
        The fields of :class:`karat.evaluate.Options`: ``seed``, ``workers``, ``output``,
        ``constraint``, ``tasks`` as ``only``, ``folds``, ``max_rows``, ``cache``, ``resume``,
        ``retry_failed``.
    """
    chosen = make_options(options)
    catalogue = Catalogue(define)
    suite = find_suite(catalogue, tasks)
    return run_suite(catalogue.models(models), suite, catalogue, chosen, progress or Progress())


def suite(name: str, define: Sequence[str | Path] = ()) -> Suite:
    """Return a defined suite by its name, ready to be iterated over or evaluated."""
    return Catalogue(define).suite(name)


def make_options(given: Mapping[str, Any]) -> Options:
    """Return checked options; a wrong name or value is said before anything runs."""
    from karat.registry import build

    given = {**given, "output": Path(given.get("output", Options.output))}
    if "only" in given:
        given["tasks"] = given.pop("only")
    options = build("evaluate", Options, given, {})
    messages = []
    if options.workers < 1:
        messages.append(f"workers must be 1 or more, not {options.workers}.")
    if options.max_rows is not None and options.max_rows < 2:
        messages.append(f"max_rows must be 2 or more, not {options.max_rows}.")
    if not 0 <= options.seed < 2**31:
        messages.append(f"seed must lie between 0 and {2**31 - 1}, not {options.seed}.")
    if messages:
        raise DefinitionError(*messages)
    return options


def find_suite(catalogue: Catalogue, tasks: str | Suite | Task | Iterable[str | Task]) -> Suite:
    """Return what was asked for as a suite."""
    if isinstance(tasks, str):
        return catalogue.suite(tasks)
    if isinstance(tasks, Suite):
        return tasks
    listed = [tasks] if isinstance(tasks, Task) else list(tasks)
    for task in listed:
        if not isinstance(task, Task | str):
            raise DefinitionError(f"a task is a karat.Task or a name, not {type(task).__name__}.")
    found = tuple(catalogue.task(t) if isinstance(t, str) else t for t in listed)
    if not found:
        raise DefinitionError("no task was given.")
    return Suite("custom", found)


def plan_suite(
    models: Sequence[Model], suite: Suite, catalogue: Catalogue, options: Options
) -> Plan:
    """Return the plan of a suite under the options and their constraint."""
    limits = catalogue.definitions.get("constraints", options.constraint)
    rows = [n for n in (limits.get("max_rows"), options.max_rows) if n is not None]
    tasks = pick_tasks(suite, options.tasks) if options.tasks else list(suite)
    named = [
        dataclasses.replace(t, dataset=catalogue.dataset(t.dataset))
        if isinstance(t.dataset, str)
        else t
        for t in tasks
    ]
    return make_plan(
        models,
        named,
        seed=options.seed,
        folds=options.folds,
        max_folds=limits.get("folds"),
        max_rows=min(rows, default=None),
    )


def run_suite(
    models: Sequence[Model],
    suite: Suite,
    catalogue: Catalogue,
    options: Options,
    progress: Progress,
) -> list[Run]:
    """Plan, embed, run and write; return the runs, or raise Stopped with what is kept."""
    with one_thread():
        plan = plan_suite(models, suite, catalogue, options)
    with tempfile.TemporaryDirectory(prefix="karat-") as scratch:
        return _Session(plan, suite, options, progress, Path(scratch)).run()


def work(job: Job, shelf: Shelf) -> dict[str, Any]:
    """Run a job and write its outcome into its run folder; what every worker does."""
    outcome = run(job, shelf)
    Run(Path(job.folder)).write(outcome.record, outcome.files)
    return outcome.record


class _Session:
    """One call of evaluate: the shelf, the run folders and the jobs that are left to do."""

    def __init__(
        self, plan: Plan, suite: Suite, options: Options, progress: Progress, scratch: Path
    ) -> None:
        self.plan = plan
        self.suite = suite
        self.options = options
        self.progress = progress
        self.shelf = Shelf(scratch / "shelf")
        self.cache = VectorCache(cache_folder() if options.cache else scratch)
        self.stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        self.workers = min(options.workers, cores())

    def run(self) -> list[Run]:
        runs = self._open_runs()
        jobs = self._jobs(runs)
        done = len(self.plan.jobs) - len(jobs)
        self.progress.started(self._title(len(jobs)), len(jobs))
        try:
            with contextlib.closing(
                execute(self._embedded(jobs), "karat.evaluate:work", self.shelf, self.workers)
            ) as finished:
                for job, answer in finished:
                    record = self._record(job, answer)
                    done += 1
                    task = safe_name(record["task"])
                    log = Path(job.folder) / "logs" / task / f"{job.fold}.txt"
                    self.progress.finished(record, str(log))
        except KeyboardInterrupt:
            raise Stopped(done, len(self.plan.jobs), list(runs.values())) from None
        finally:
            self.progress.ended()
            for each in runs.values():
                each.finish()
        return list(runs.values())

    def _title(self, left: int) -> str:
        plan = self.plan
        declined = len(plan.declined)
        parts = [
            f"suite {self.suite.name}",
            f"{len(plan.models)} models",
            f"{len(plan.tasks)} tasks",
            f"{len(plan.jobs)} jobs" + (f", {left} left" if left < len(plan.jobs) else ""),
        ]
        if declined:
            parts.append(f"{declined} declined")
        threads = f"seed {plan.seed} · {self.workers} worker{'s' * (self.workers > 1)} × 1 thread"
        return f"karat {__version__}   {' · '.join(parts)}   {threads}"

    # -- run folders ------------------------------------------------------------------------

    def _open_runs(self) -> dict[str, Run]:
        output = self.options.output
        try:
            output.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=output):
                pass
        except OSError as error:
            raise DefinitionError(
                f"cannot write into {output}: {error.strerror}; choose another with --output."
            ) from error
        return {model.name: self._open_run(model) for model in self.plan.models}

    def _open_run(self, model: Model) -> Run:
        about = self._about(model)
        run = unfinished(self.options.output, about, SAME) if self.options.resume else None
        if run is None:
            run = Run.create(self.options.output, about)
        for decline in self.plan.declined:
            if decline.model == model.name:
                run.write(self._declined(decline.task, model, decline.reason), {})
        return run

    def _about(self, model: Model) -> dict[str, Any]:
        return {
            "model": model.name,
            "suite": self.suite.name,
            "constraint": self.options.constraint,
            "mode": MODE,
            "stamp": self.stamp,
            "seed": self.plan.seed,
            "params": _plain(model.params),
            "version": model.version,
            "role": model.role,
            "karat": __version__,
            "python": platform.python_version(),
            "platform": platform.platform(),
            "threads": 1,
            "versions": _versions(),
            "tasks": [_task_about(planned) for planned in self.plan.tasks],
        }

    def _declined(self, task: str, model: Model, reason: str) -> dict[str, Any]:
        planned = next(p for p in self.plan.tasks if p.task.name == task)
        return {
            "spec": "",
            "model": model.name,
            "task": task,
            "kind": planned.task.kind,
            "fold": None,
            "repeat": None,
            "seed": None,
            "metric": planned.task.metrics[0],
            "status": "declined",
            "info": reason,
            "views": [],
            "notes": [],
            "history": [],
            "utc": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S"),
        }

    # -- jobs -------------------------------------------------------------------------------

    def _jobs(self, runs: Mapping[str, Run]) -> list[Job]:
        over = {"ok", "declined"} if self.options.retry_failed else {"ok", "declined", "failed"}
        done = {
            (name, record["task"], record["fold"]): record["spec"]
            for name, run in (runs.items() if self.options.resume else ())
            for record in run.records()
            if record["status"] in over
        }
        keys = self._shelve()
        jobs = []
        for model, planned, fold in self.plan.jobs:
            spec = job_spec(self.plan, model, planned, fold)
            if done.get((model.name, planned.task.name, fold)) == spec:
                continue
            shelved = (*keys["model", model.name], *keys["task", planned.task.name])
            folder = str(runs[model.name].folder)
            jobs.append(Job(*shelved, fold, self.plan.seed, spec, folder))
        return jobs

    def _shelve(self) -> dict[tuple[str, str], tuple[str, ...]]:
        keys: dict[tuple[str, str], tuple[str, ...]] = {}
        for i, model in enumerate(self.plan.models):
            keys["model", model.name] = (self.shelf.put(f"model-{i}", model),)
        for i, planned in enumerate(self.plan.tasks):
            if planned.data is not None:
                data = planned.data
                task = dataclasses.replace(planned.task, dataset=data.name)
                data_key = self.shelf.put(f"data-{data.fingerprint[:32]}", data)
                keys["task", task.name] = (self.shelf.put(f"task-{i}", task), data_key)
        return keys

    def _record(self, job: Job, answer: Any) -> dict[str, Any]:
        if not isinstance(answer, BaseException):
            return dict(answer)
        if not isinstance(answer, WorkerDied):
            raise answer
        task: Task = self.shelf.get(job.task)
        record = self._declined(task.name, self.shelf.get(job.model), answer.args[0])
        record.update(status="failed", spec=job.spec, fold=job.fold, seed=job.model_seed, repeat=0)
        Run(Path(job.folder)).write(record, {"log.txt": answer.args[1]})
        return record

    # -- stage 1: vectors of encoders that learn nothing, made once -------------------------

    def _embedded(self, jobs: Sequence[Job]) -> list[Job]:
        made: dict[tuple[str, str], dict[str, Any]] = {}
        ready = []
        for job in jobs:
            model: Model = self.shelf.get(job.model)
            if not model.stateless:
                ready.append(job)
                continue
            pair = (job.model, job.dataset)
            if pair not in made:
                with one_thread():
                    made[pair] = self._embed(model, self.shelf.get(job.dataset))
            ready.append(dataclasses.replace(job, **made[pair]))
        return ready

    def _embed(self, model: Model, data: Dataset) -> dict[str, Any]:
        self.progress.embedding(model.name, data.name, len(data.items))
        begun = time.perf_counter()
        try:
            encoder = model.fresh(self.plan.seed, data.kind)
            who = identity(dataclasses.replace(model, prototype=encoder)) or os.urandom(16).hex()
            fields: dict[str, Any] = {"vectors": self._vectors(encoder, who, model, data)}
            if data.kind == "items" and hasattr(encoder, "vocabulary"):
                fields["vocabulary"] = self._vocabulary(encoder, who)
            return fields
        except Exception:
            return {"broken": traceback.format_exc()}
        finally:
            self.progress.embedded(model.name, data.name, time.perf_counter() - begun)

    def _vectors(self, encoder: Any, who: str, model: Model, data: Dataset) -> str:
        key = VectorCache.key("vectors", who, fingerprint_of(data.items))
        if self.cache.get(key) is None:
            values = encoder.transform(data.items)
            matrix = check_vectors(values, len(data.items), f"{model.name}.transform")
            about = {"model": model.name, "dataset": data.name, "shape": list(matrix.shape)}
            self.cache.put(key, matrix, about)
        return str(self.cache.folder(key))

    def _vocabulary(self, encoder: Any, who: str) -> str:
        key = VectorCache.key("vocabulary", who)
        if self.cache.get(key) is None:
            ids, matrix = encoder.vocabulary()
            about = {"model": type(encoder).__name__, "shape": list(matrix.shape)}
            self.cache.put(key, matrix, {**about, "ids": [str(i) for i in ids]})
        return str(self.cache.folder(key))


def _task_about(planned: PlannedTask) -> dict[str, Any]:
    task, data = planned.task, planned.data
    return {
        "name": task.name,
        "kind": task.kind,
        "metrics": list(task.metrics),
        "folds": list(planned.folds),
        "dataset": data.name if data is not None else getattr(task.dataset, "name", ""),
        "fingerprint": data.fingerprint if data is not None else "",
        "modality": data.modality if data is not None else "",
        "about": dict(data.about) if data is not None else {},
    }


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    names = ("numpy", "pandas", "scikit-learn", "scipy")
    return {name: version(name) for name in names}


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    plain = (str, int, float, bool, list, dict, type(None))
    return {k: v if isinstance(v, plain) else repr(v) for k, v in params.items()}
