"""A session: one plan carried out, from run folders and vectors made beforehand to the tables."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import zlib
from collections.abc import Generator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat import __version__
from karat.about import of_machine, of_model, of_task
from karat.engines.dask import EngineLost, check_cluster, execute_on_dask
from karat.errors import FAILURES, ContractError, DefinitionError, KaratError
from karat.execute import WorkerDied, cores, execute
from karat.folders import scratch
from karat.job import Job, Outcome, new_record, run
from karat.limits import Limits, cards
from karat.models.base import Model
from karat.models.vector_file import VectorFile
from karat.plan import Decline, Plan, job_spec
from karat.progress import Progress
from karat.results.run import Run, earlier_runs
from karat.shelf import Shelf
from karat.staging import Stage
from karat.task import Suite, Task

#: the facts in which an unfinished run must agree with the new one to be completed by resume
SAME = ("model", "suite", "constraint", "seed", "params")


class Stopped(KaratError):
    """A run was interrupted; what is finished is kept."""

    def __init__(self, done: int, jobs: int, runs: list[Run], why: str = "stopped") -> None:
        self.runs = runs
        self.why = why
        self.kept = f"{done} of {jobs} jobs are kept"
        super().__init__(f"{why}: {self.kept}; resume finishes the rest.")


@dataclasses.dataclass(frozen=True)
class Options:
    """How to run: everything that does not change what is measured, and the limits that do."""

    seed: int = 42
    workers: int = 1
    output: Path = Path("results")
    constraint: str = "default"
    only: Sequence[str] = ()
    folds: Sequence[int] | None = None
    max_rows: int | None = None
    cache: bool = True
    resume: bool = False
    retry_failed: bool = False
    exit_on_error: bool = False
    inference: Sequence[int] = ()
    engine: str = "local"
    scheduler: str | None = None


def work(job: Job, shelf: Shelf) -> dict[str, Any]:
    """Run a job and write its outcome into its run folder; what every worker here does."""
    Run(Path(job.folder)).begin(shelf.get(job.task).name, job.fold)
    return keep(job, perform(job, shelf))


def perform(job: Job, shelf: Shelf) -> Outcome:
    """Run a job and return its outcome; what every worker does, here and elsewhere."""
    if job.stage is not None:
        folder, kept = job.stage
        stage = shelf.remember("stage", lambda: Stage(shelf, Progress(), kept, Path(folder)))
        job = stage.embedded(job)
    return run(job, shelf)


def keep(job: Job, outcome: Outcome) -> dict[str, Any]:
    """Write the outcome of a job into its run folder and return its record."""
    Run(Path(job.folder)).write(outcome.record, outcome.files, outcome.artifacts)
    return outcome.record


class Unsendable:
    """Stands in worker processes for a model that cannot be sent there."""

    def fit(self, *_: Any) -> Any:
        """Say why nothing can be done here."""
        raise ContractError(
            "it cannot be sent to worker processes (pickled); use one worker and no limits."
        )

    transform = predict = fit


class Session:
    """One call of evaluate: the shelf, the run folders and the jobs that are left to do."""

    def __init__(self, plan: Plan, suite: Suite, options: Options, progress: Progress) -> None:
        self.plan = plan
        self.suite = suite
        self.options = options
        self.progress = progress
        self.stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        self.workers = min(options.workers, cores())
        self.on_dask = options.engine == "dask"

    def run(self) -> list[Run]:
        """Carry the plan out and return the runs, or raise Stopped with what is kept."""
        if self.on_dask:
            check_cluster(self.options.scheduler)
        runs = self._open_runs()
        with scratch() as folder:
            self.shelf = Shelf(folder / "shelf")
            self.stage = Stage(self.shelf, self.progress, self.options.cache, folder)
            try:
                self._run_jobs(runs)
            finally:
                self.progress.ended()
                for each in runs.values():
                    each.finish()
        return list(runs.values())

    def _run_jobs(self, runs: Mapping[str, Run]) -> None:
        jobs = self._jobs(runs)
        done = len(self.plan.jobs) - len(jobs)
        self.progress.started(self._title(len(jobs)), len(jobs))
        for each in self.plan.lost:
            self.progress.lost(each.model, each.task, each.reason)
        try:
            # what has limits is embedded where they hold: in the worker, by its first job
            ready = [job if self._embeds(job) else self._embedded(job) for job in jobs]
            workers = self._side_by_side(ready)
            self._hold_back(workers, ready)
            with contextlib.ExitStack() as stack:
                for opened in runs.values() if self.on_dask else ():
                    stack.enter_context(opened.at_work())
                finished = self._execute(ready, workers)
                stack.callback(finished.close)
                for job, answer in finished:
                    record = self._record(job, answer)
                    done += 1
                    self.progress.finished(record, str(Run(Path(job.folder)).log(record)))
                    if self.options.exit_on_error and record["status"] in FAILURES:
                        break
        except (KeyboardInterrupt, EngineLost) as error:
            why = str(error) if isinstance(error, EngineLost) else "stopped"
            raise Stopped(done, len(self.plan.jobs), list(runs.values()), why) from None

    def _embeds(self, job: Job) -> bool:
        """Return whether a job makes its vectors itself; a vector file is read where it lies."""
        file = isinstance(self.shelf.get(job.model).prototype, VectorFile)
        return job.stage is not None and not (self.on_dask and file)

    def _embedded(self, job: Job) -> Job:
        return dataclasses.replace(self.stage.embedded(job), stage=None)

    def _execute(self, jobs: Sequence[Job], workers: int) -> Generator[tuple[Any, Any]]:
        if self.on_dask:
            scheduler = self.options.scheduler
            return execute_on_dask(jobs, "karat.session:perform", self.shelf, scheduler, workers)
        return execute(jobs, "karat.session:work", self.shelf, workers)

    def _side_by_side(self, jobs: Sequence[Job]) -> int:
        """Return how many jobs may run at once, so that each has its cores and cards."""
        limits = [job.limits for job in jobs if job.limits]
        wanted = max((each.cores or 1 for each in limits), default=1)
        most = [self.workers, cores() // wanted, len(jobs)]
        gpus = max((each.gpus or 0 for each in limits), default=0)
        if gpus and not self.on_dask:
            if len(cards()) < gpus:
                raise DefinitionError(
                    f"a job wants {gpus} graphics cards and sees {len(cards())} "
                    f"(CUDA_VISIBLE_DEVICES); lower gpus, or use --engine dask --scheduler."
                )
            most.append(len(cards()) // gpus)
        return max(1, min(most))

    def _hold_back(self, workers: int, jobs: Sequence[Job]) -> None:
        # who has no identity cannot be pickled; its vectors, if it has any, are made by now
        for i, model in enumerate(self.plan.models):
            isolated = workers > 1 or self.on_dask or any(job.limits for job in jobs)
            if isolated and self.plan.identities[model.name] is None:
                self.shelf.put(f"model-{i}", dataclasses.replace(model, prototype=Unsendable()))

    def _title(self, left: int) -> str:
        plan = self.plan
        parts = [
            f"suite {self.suite.name}",
            _count(len(plan.models), "model"),
            _count(len(plan.tasks), "task"),
            _count(len(plan.jobs), "job") + (f", {left} left" if left < len(plan.jobs) else ""),
        ]
        if plan.declined:
            parts.append(f"{len(plan.declined)} declined (karat plan shows why)")
        wanted = max(
            (limit.cores or 0 for t in plan.tasks if (limit := plan.limits_of(t.task))), default=0
        )
        if wanted > cores() and not self.options.scheduler:
            parts.append(f"{wanted} cores asked for, {cores()} here")
        crew = f"{_count(self.workers, 'worker')} × 1 thread"
        where = f"Dask at {self.options.scheduler}" if self.options.scheduler else crew
        threads = f"seed {plan.seed} · {where}"
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
        opened = self._continued(model, about) if self.options.resume else None
        opened = opened or Run.create(self.options.output, about)
        for status, several in (("declined", self.plan.declined), ("failed", self.plan.lost)):
            for each in several:
                if each.model == model.name:
                    opened.write(*self._unrun(each, model, status))
        return opened

    def _continued(self, model: Model, about: Mapping[str, Any]) -> Run | None:
        """Return the newest earlier run in which nothing has changed since, or a new one.

        A new one takes along what is finished and still holds; the earlier run stays as it is.
        """
        earlier = list(earlier_runs(self.options.output, about, SAME))
        for each in earlier:
            if not any(self._is_stale(model, record) for record in each.records()):
                each.sweep()
                each.replan(about["tasks"])
                return each
        if not earlier:
            return None
        new = Run.create(self.options.output, about)
        for record in earlier[0].records():
            if self._is_stale(model, record) is False:
                new.take_over(earlier[0], record)
        return new

    def _is_stale(self, model: Model, record: Mapping[str, Any]) -> bool | None:
        """Return whether the same job would be another one today; nothing if it is not planned."""
        planned = next((p for p in self.plan.tasks if p.task.name == record["task"]), None)
        if planned is None or record["fold"] is None:
            return None
        return bool(record["spec"] != job_spec(self.plan, model, planned, record["fold"]))

    def _about(self, model: Model) -> dict[str, Any]:
        options = self.options
        return {
            "model": model.name,
            "suite": self.suite.name,
            "constraint": options.constraint,
            "mode": options.engine,
            "stamp": self.stamp,
            "seed": self.plan.seed,
            **of_model(model),
            **of_machine(),
            "tasks": [of_task(planned) for planned in self.plan.tasks],
        }

    def _unrun(self, which: Decline, model: Model, status: str) -> tuple[dict[str, Any], Any]:
        """Return the record and the log of a task that does not run."""
        planned = next(p for p in self.plan.tasks if p.task.name == which.task)
        record = new_record("", model.name, planned.task)
        said = " ".join(which.reason.split())
        if status == "declined":
            return {**record, "status": status, "info": said}, {}
        failed = {"status": status, "info": f"DataError: {said}", "repeat": 0}
        return {**record, **failed}, {"log.txt": which.reason}

    # -- jobs -------------------------------------------------------------------------------

    def _jobs(self, runs: Mapping[str, Run]) -> list[Job]:
        over = {"ok", "declined", *(() if self.options.retry_failed else FAILURES)}
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
            task, data = keys["task", planned.task.name]
            folder = str(runs[model.name].folder)
            (shelved,) = keys["model", model.name]
            limits = self._limits(planned.task)
            job = Job(shelved, task, data, fold, self.plan.seed, spec, folder, limits=limits)
            stage = (self.stage.folder, self.options.cache) if limits else None
            batches = tuple(self.options.inference)
            jobs.append(dataclasses.replace(job, stage=stage, batches=batches))
        return jobs

    def _limits(self, task: Task) -> Limits | None:
        """Return what a job may take, with no more cores than this machine has if it runs here."""
        limits = self.plan.limits_of(task)
        if limits is None or limits.cores is None or self.options.scheduler:
            return limits
        return dataclasses.replace(limits, cores=min(limits.cores, cores()))

    def _shelve(self) -> dict[tuple[str, str], tuple[str, ...]]:
        keys: dict[tuple[str, str], tuple[str, ...]] = {}
        for i, model in enumerate(self.plan.models):
            keys["model", model.name] = (self.shelf.put(f"model-{i}", model),)
        for i, planned in enumerate(self.plan.tasks):
            if planned.data is not None:
                data = planned.data
                task = dataclasses.replace(planned.task, dataset=data.name)
                # equal data under another name has other folds, so the name is part of the key
                name = zlib.crc32(data.name.encode())
                data_key = self.shelf.put(f"data-{data.fingerprint[:32]}-{name:08x}", data)
                keys["task", task.name] = (self.shelf.put(f"task-{i}", task), data_key)
        return keys

    def _record(self, job: Job, answer: Any) -> dict[str, Any]:
        if isinstance(answer, Outcome):
            return keep(job, answer)
        if not isinstance(answer, BaseException):
            return dict(answer)
        if not isinstance(answer, WorkerDied):
            raise answer
        task: Task = self.shelf.get(job.task)
        repeats = next(p.repeats for p in self.plan.tasks if p.task.name == task.name)
        record = new_record(job.spec, self.shelf.get(job.model).name, task)
        record.update(
            fold=job.fold,
            repeat=repeats[job.fold],
            seed=job.model_seed,
            status=answer.status,
            info=answer.cause,
            **answer.costs,
        )
        log = f"{answer.cause}\n{answer.said}"
        Run(Path(job.folder)).write(record, {"log.txt": log})
        return record


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
