"""A session runs one plan: it opens run folders, computes shared vectors and executes the jobs."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from karat import __version__
from karat.core.files import encodable, temporary_folder
from karat.core.formatting import count
from karat.core.registry import engines
from karat.core.replicates import replicate_fact, replicate_name
from karat.core.services import RunServices
from karat.core.task import Suite, Task
from karat.core.writing import remove_partial_files
from karat.errors import (
    FAILURES,
    DefinitionError,
    DiskFull,
    KaratError,
    KaratWarning,
)
from karat.execution.embedding_cache import VectorStage, has_vectors
from karat.execution.engine import WORK, Engine, EngineLost
from karat.execution.job import Job, Outcome, new_record
from karat.execution.job_failure import POSTPONED, JobFailure
from karat.execution.object_store import ObjectStore
from karat.execution.plan import Decline, Plan, PlannedTask, job_spec
from karat.execution.progress import Progress
from karat.execution.resources import Limits, visible_gpus
from karat.execution.resuming import RETRY_FAILED, NotContinued, reason_outdated
from karat.execution.run_facts import machine_facts, prompt_facts, task_entry
from karat.execution.runner import EMBED, Unsendable, store_outcome
from karat.execution.workers import Event, WorkerDied, available_cores, execute
from karat.models.model import Model
from karat.models.vector_files import VectorFile
from karat.results.item_tables import ItemTable, make_item_table
from karat.results.run import Run, earlier_runs
from karat.results.stored_json import json_value
from karat.results.tables import ELIMINATED

#: what to do about a full disk
CONTINUE = "continue the run with --resume"
#: fields of run.json in which a run must match the new one to be resumed
SAME = ("model", "suite", "constraint", "seed", "replicate", "params")
#: those without which it is another model or suite
NAMING = ("model", "suite", "replicate")
#: what a worker answers: a record that it has written, an outcome to write, or an error
Answer = Mapping[str, Any] | Outcome | BaseException
#: the function of a worker that computes the views of a fold
SHARE_VIEWS = "karat.execution.job:share_views"

log = logging.getLogger(__name__)


class Stopped(KaratError):
    """A run was interrupted. Finished jobs are stored; ``runs`` are the unfinished runs.

    ``interrupted`` is False if all jobs ran except those that were postponed.
    """

    def __init__(self, done: int, jobs: int, runs: list[Run], reason: str = "stopped") -> None:
        self.runs = runs
        self.reason = reason
        self.interrupted = True
        self.progress = f"{done} of {jobs} jobs are finished"
        super().__init__(f"{reason}: {self.progress}; resume runs the rest.")


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of ``evaluate``, which documents them."""

    seed: int = 42
    seeds: int = 1
    workers: int = 0
    output: Path = Path("results")
    constraint: str = "default"
    only: Sequence[str] = ()
    folds: int | None = None
    only_folds: Sequence[int] | None = None
    max_rows: int | None = None
    cache: bool = True
    #: whether to continue earlier runs; "retry-failed" also runs their failed jobs again
    resume: bool | str = False
    exit_on_error: bool = False
    inference: Sequence[int] = ()
    engine: str = "local"
    scheduler: str | None = None
    items: bool = True
    budget: float | None = None
    shard: str | None = None
    command: Sequence[str] = ()


class Session:
    """One call of ``evaluate``."""

    #: precedes the number of jobs in the title
    most = ""

    def __init__(self, plan: Plan, suite: Suite, options: Options, progress: Progress) -> None:
        self.plan = plan
        self.suite = suite
        self.options = options
        self.progress = progress
        self.stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        self.machine = machine_facts()
        self.workers = min(options.workers, available_cores())
        self.engine: Engine = engines.get(options.engine)(options.scheduler)
        self._planned = {planned.task.name: planned for planned in plan.tasks}
        self._items: dict[str, ItemTable] = {}
        self._earlier: list[Run] | None = None
        self._tasks_of: dict[str, set[str]] = {}
        for model, planned, _ in plan.jobs:
            self._tasks_of.setdefault(model.key, set()).add(planned.task.name)
        self._not_run: dict[str, list[Decline]] = {}
        for decline in (*plan.declined, *plan.lost_tasks):
            self._not_run.setdefault(decline.model, []).append(decline)
        self._postponed: dict[str, list[str]] = {}
        self._not_continued = NotContinued()
        self._finished: Counter[Path] = Counter()

    def run(self) -> list[Run]:
        """Run the plan and return the runs, or raise Stopped with the unfinished ones."""
        self.engine.check()
        try:
            self.runs = self._open_runs()
            self._run_in_scratch()
        except DiskFull as full:
            raise DiskFull(full.path, full.reason, CONTINUE) from full
        if self._postponed:
            raise self._stopped(list(self.runs.values()))
        return list(self.runs.values())

    def _run_in_scratch(self) -> None:
        """Run the jobs with a temporary folder; write the tables, however the jobs end."""
        runs = self.runs
        with temporary_folder() as folder:
            self.store = ObjectStore(folder / "store")
            keep, identities = self.options.cache, self.plan.identities
            answers = None if keep else folder / "answers"
            services = RunServices(folder, answers, self.options.budget)
            self.store.put("services", services)
            self.stage = VectorStage(self.store, self.progress, keep, folder, identities)
            self.stage.cache.remove_drafts()
            try:
                self._run_jobs(runs)
            finally:
                self.progress.ended()
                for bill in services.sent():
                    self.progress.billed(*bill)
                services.close()
                self._finish_runs()

    def _stopped(self, runs: list[Run]) -> Stopped:
        """Return the error about jobs that were postponed, with the reason of each model."""
        postponed = sum(map(len, self._postponed.values()))
        reasons = "; ".join(f"{model}: {reasons[0]}" for model, reasons in self._postponed.items())
        stopped = Stopped(len(self.plan.jobs) - postponed, len(self.plan.jobs), runs, reasons)
        stopped.interrupted = False
        return stopped

    def _rounds(self, jobs: list[Job]) -> Iterator[list[Job]]:
        """Yield jobs to run together; a race decides after each round which come next."""
        yield jobs

    def _run_jobs(self, runs: Mapping[str, Run]) -> None:
        jobs = self._jobs(runs)
        self.done = len(self.plan.jobs) - len(jobs)
        log.info("%d jobs to run, %d already finished", len(jobs), self.done)
        self.progress.started(self._title(len(jobs)), len(jobs))
        for decline in self.plan.lost_tasks:
            log.warning("task %s fails for %s: %s", decline.task, decline.model, decline.reason)
            self.progress.lost(decline.model, decline.task, decline.reason)
        try:
            with contextlib.ExitStack() as stack:
                for opened in () if self.engine.shares_files else runs.values():
                    stack.enter_context(opened.marked_running())
                for together in self._rounds(jobs):
                    if not self._run_together(together) and self.options.exit_on_error:
                        break
        except (KeyboardInterrupt, EngineLost) as error:
            reason = str(error) if isinstance(error, EngineLost) else "stopped"
            log.warning("%s after %d of %d jobs", reason, self.done, len(self.plan.jobs))
            raise Stopped(self.done, len(self.plan.jobs), list(runs.values()), reason) from None

    def _run_together(self, jobs: Sequence[Job]) -> bool:
        """Run jobs and return whether all succeeded; stop at a failure if the options say so."""
        self._embed(jobs)
        # a job with limits computes its vectors in its worker, where the limits are enforced
        ready = [self._with_vectors(job) for job in jobs]
        self._share_views(ready)
        succeeded = True
        with contextlib.closing(self._execute(ready, self._parallel_jobs(ready))) as finished:
            for job, answer in finished:
                self.done += 1
                succeeded &= self._finish(job, answer)
                if not succeeded and self.options.exit_on_error:
                    break
        return succeeded

    def _finish(self, job: Job, answer: Answer) -> bool:
        """Store and report a finished job; return whether it succeeded."""
        record = self._record(job, answer)
        if record["status"] == POSTPONED:
            log.warning("job postponed: %(model)s, %(task)s, fold %(fold)s: %(info)s", record)
            self._postponed.setdefault(record["model"], []).append(record["info"])
            return True
        self._finished[self._run_of(job).folder] += 1
        failed = record["status"] in FAILURES
        log.log(
            logging.WARNING if failed else logging.INFO,
            "job finished: %(model)s, %(task)s, fold %(fold)s: %(status)s %(info)s",
            record,
        )
        self.progress.finished(record, str(self._run_of(job).log(record)))
        return not failed

    def _run_of(self, job: Job) -> Run:
        return self.runs[replicate_name(self.store.get(job.model).name, job.replicate)]

    def _with_vectors(self, job: Job) -> Job:
        file = isinstance(self.store.get(job.model).prototype, VectorFile)
        if job.stage is not None and (self.engine.shares_files or not file):
            return job
        return dataclasses.replace(self.stage.embedded(job), stage=None)

    def _embed(self, jobs: Sequence[Job]) -> None:
        """Compute shared vectors in worker processes, one per model, unless jobs run here."""
        first: dict[tuple[str, str, int], Job] = {}
        for job in jobs if self.workers or not self.engine.shares_files else ():
            model = self.store.get(job.model)
            if job.stage is None and has_vectors(model) and self._is_sendable(job):
                staged = dataclasses.replace(job, stage=(self.stage.folder, self.options.cache))
                first.setdefault(self.stage.key(job), staged)
        jobs = list(first.values())
        for job, answer in execute(jobs, EMBED, self.store, 1, self._report) if jobs else ():
            if isinstance(answer, WorkerDied):
                answer = {"broken": JobFailure(answer.status, answer.cause, answer.output)}
            elif isinstance(answer, BaseException):
                raise answer
            self.stage.made[self.stage.key(job)] = answer

    def _share_views(self, jobs: Sequence[Job]) -> None:
        """Compute the views of folds that several models see once, in a worker process.

        It loads a model of Karat only, so that no other model can change what the models see. If it
        fails, the jobs compute their views themselves and report errors.
        """
        folds: dict[tuple[str, int], list[Job]] = {}
        for job in jobs if self.workers and self.engine.shares_files else ():
            if self.store.get(job.task).corruptions and not job.limits:
                folds.setdefault((job.task, job.fold), []).append(job)
        own_jobs = [list(filter(self._is_own, same)) for same in folds.values() if len(same) > 1]
        first = [same[0] for same in own_jobs if same]
        for _ in execute(first, SHARE_VIEWS, self.store, 1) if first else ():
            pass

    def _is_own(self, job: Job) -> bool:
        """Return whether the class of a job's model is Karat's."""
        prototype = self.store.get(job.model).prototype
        return type(prototype).__module__.startswith("karat.") and self._is_sendable(job)

    def _report(self, job: Job, event: Event) -> None:
        """Show an event of a running job."""
        arguments = event.arguments
        if event.name == "stalled":
            names = (self.store.get(key).name for key in (job.model, job.task))
            arguments = (*names, job.fold, *arguments)
        getattr(self.progress, event.name)(*arguments)

    def _is_sendable(self, job: Job) -> bool:
        # a model without an identity cannot be pickled
        return self.plan.identities[self.store.get(job.model).name] is not None

    def _execute(self, jobs: Sequence[Job], workers: int) -> Generator[tuple[Any, Any]]:
        """Run jobs in workers; those of models that cannot be pickled run in this process."""
        here = [job for job in jobs if not (job.limits or job.vectors or self._is_sendable(job))]
        others = [job for job in jobs if job not in here] if here else jobs
        yield from self.engine.execute(others, self.store, workers, self._report)
        yield from execute(here, WORK, self.store, 0, self._report)

    def _parallel_jobs(self, jobs: Sequence[Job]) -> int:
        """Return how many jobs may run at once, so that each has its cores and GPUs."""
        limits = [job.limits for job in jobs if job.limits]
        wanted = max((limit.cores or 1 for limit in limits), default=1)
        most = [self.workers, available_cores() // wanted, len(jobs)]
        if not limits and self.engine.shares_files and not self.workers:
            return 0
        gpus = max((limit.gpus or 0 for limit in limits), default=0)
        if gpus and self.engine.shares_files:
            devices = len(visible_gpus())
            if devices < gpus:
                raise DefinitionError(
                    f"a job requires {gpus} GPUs, found {devices} (CUDA_VISIBLE_DEVICES); "
                    f"lower gpus, or use --engine dask --scheduler."
                )
            most.append(devices // gpus)
        return max(1, min(most))

    def _title(self, jobs: int) -> str:
        plan = self.plan
        parts = [
            f"suite {self.suite.name}",
            count(sum(not model.replicate for model in plan.models), "model"),
            count(len(plan.tasks), "task"),
            self.most + count(len(plan.jobs), "job") + f", {jobs} left" * (jobs < len(plan.jobs)),
        ]
        if plan.declined:
            parts.append(f"{len(plan.declined)} declined (karat plan shows why)")
        limits = [plan.limits_of(planned.task) or Limits() for planned in plan.tasks]
        wanted = max((limit.cores or 0 for limit in limits), default=0)
        if wanted > available_cores() and not self.options.scheduler:
            parts.append(f"{wanted} cores requested, {available_cores()} available")
        where = self.engine.place(self.workers)
        seed = f"{plan.seeds} seeds from {plan.seed}" if plan.seeded else f"seed {plan.seed}"
        return f"karat {__version__}   {' · '.join(parts)}   {seed} · {where}"

    def _open_runs(self) -> dict[str, Run]:
        output = self.options.output
        try:
            output.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=output):
                pass
        except OSError as error:
            raise DefinitionError(
                f"cannot write to {output}: {error.strerror}; choose another --output."
            ) from error
        runs = {model.key: self._open_run(model) for model in self.plan.models}
        self._not_continued.tell()
        for run in runs.values():
            run.about  # noqa: B018 - known from here on, should a model remove the file
        return runs

    def _open_run(self, model: Model) -> Run:
        """Return the folder of a model's run, with records of the tasks that do not run."""
        facts = self._about(model)
        opened = self._resumed(model, facts) if self.options.resume else None
        opened = opened or Run.create(self.options.output, facts)
        self._write_not_run(model, opened)
        return opened

    def _write_not_run(self, model: Model, opened: Run) -> None:
        """Write what does not depend on jobs: items, and records of the tasks that do not run."""
        opened.write_items(self._item_tables(model).values())
        lost_tasks = set(map(id, self.plan.lost_tasks))
        for decline in self._not_run.get(model.key, ()):
            record = new_record("", model.name, self._planned[decline.task].task)
            opened.write_not_run(
                record, decline.reason, None if id(decline) in lost_tasks else decline.lacks
            )

    def _finish_runs(self) -> None:
        """Write the tables of all runs, and tell what models have removed from them."""
        for model in self.plan.models:
            run = self.runs[model.key]
            if was_removed := run.restore_plan():
                self._write_not_run(model, run)
            run.gone = max(0, self._finished[run.folder] - run.finish())
            if was_removed or run.gone:
                what = "all records are there"
                if run.gone:
                    what = f"{count(run.gone, 'record')} of finished jobs are gone"
                warnings.warn(
                    f"a model or another program removed files of {run.folder} while it was "
                    f"written: {what}; --resume runs what is missing.",
                    KaratWarning,
                    stacklevel=2,
                )

    def _resumed(self, model: Model, facts: Mapping[str, Any]) -> Run | None:
        """Return the latest run without outdated jobs, or a new run with the jobs still valid.

        An earlier run with outdated jobs is not changed.
        """
        if self._earlier is None:  # read once for all models
            self._earlier = list(earlier_runs(self.options.output, {}, ()))
        same = [e for e in self._earlier if all(e.about.get(k) == facts.get(k) for k in SAME)]
        earlier = [run for run in same if self._fits(run)]
        for candidate in earlier:
            if not any(self._is_outdated(model, record) for record in candidate.records()):
                log.info("resuming %s in %s", model.name, candidate.folder)
                remove_partial_files(candidate.folder)
                candidate.merge_plan(facts["tasks"], [task.name for task in self.suite])
                return candidate
        if not earlier:
            log.info("no run of %s to resume in %s", model.name, self.options.output)
            for other in self._earlier:
                if all(other.about.get(key) == facts.get(key) for key in NAMING):
                    self._not_continued.add_other(other, facts, SAME)
            return None
        new = Run.create(self.options.output, facts)
        states = [(record, self._is_outdated(model, record)) for record in earlier[0].records()]
        valid = [record for record, is_outdated in states if is_outdated is False]
        for record in valid:
            new.copy_job(earlier[0], record)
        is_known = self.plan.identities[model.name] is not None
        why = reason_outdated(earlier[0].about, facts, is_known)
        changed = sum(is_outdated is True for _, is_outdated in states)
        self._not_continued.add_outdated(earlier[0], why, changed, len(valid))
        log.info(
            "copied %d unchanged jobs of %s into %s", len(valid), earlier[0].folder, new.folder
        )
        return new

    def _fits(self, run: Run) -> bool:
        """Return whether a run can be resumed: not one of a race."""
        return not run.about.get("race")

    def _is_outdated(self, model: Model, record: Mapping[str, Any]) -> bool | None:
        """Return whether a job has changed since it ran; None if it is not planned."""
        planned = self._planned.get(record["task"])
        if planned is None or record["fold"] is None or record["status"] == ELIMINATED:
            return None
        return bool(record["spec"] != job_spec(self.plan, model, planned, record["fold"]))

    def _about(self, model: Model) -> dict[str, Any]:
        plan = self.plan
        whole = plan.part is None and not model.replicate
        tasks = [planned for planned in plan.tasks if whole or plan.folds_of(model, planned)]
        return {
            **self.about_model(model),
            "tasks": [self._facts(model, planned) for planned in tasks],
        }

    def about_model(self, model: Model) -> dict[str, Any]:
        """Return the content of run.json without the tasks."""
        return {
            "model": model.name,
            "suite": self.suite.name,
            "constraint": self.options.constraint,
            "mode": self.options.engine,
            "stamp": self.stamp,
            "seed": self.plan.seed,
            **replicate_fact(model.replicate),
            "params": json_value(model.params),
            "version": model.version,
            "role": model.role,
            **({"base": model.base} if model.base else {}),
            **prompt_facts(model, self.plan.tasks),
            **self.machine,
        }

    def _facts(self, model: Model, planned: PlannedTask) -> dict[str, Any]:
        table = self._item_tables(model).get(planned.task.name)
        facts = {**task_entry(planned), "folds": list(self.plan.folds_of(model, planned))}
        return facts if table is None else {**facts, "item_table": table.facts}

    def _item_tables(self, model: Model) -> dict[str, ItemTable]:
        """Return the item tables of the tasks that a model runs, by task."""
        if not self.options.items:
            return {}
        for planned in self.plan.tasks:
            name, data, tested = planned.task.name, planned.data, planned.tested
            if name not in self._items and data is not None and tested is not None:
                same = [
                    self._items[other.task.name]
                    for other in self.plan.tasks
                    if other.task.name in self._items
                    and other.data is data
                    and np.array_equal(other.tested, tested)  # type: ignore[arg-type]
                ]
                self._items[name] = same[0] if same else make_item_table(data, tested)
        jobs = self._tasks_of.get(model.key, ())
        return {name: table for name, table in self._items.items() if name in jobs}

    def _jobs(self, runs: Mapping[str, Run]) -> list[Job]:
        over = {"ok", "declined", *(() if self.options.resume == RETRY_FAILED else FAILURES)}
        done = {
            (name, record["task"], record["fold"]): record["spec"]
            for name, run in (runs.items() if self.options.resume else ())
            for record in run.records()
            if record["status"] in over
        }
        keys = self._fill_store()
        batches = tuple(self.options.inference)
        jobs: list[Job] = []
        for model, planned, fold in self.plan.jobs:
            spec = job_spec(self.plan, model, planned, fold)
            if done.get((model.key, planned.task.name, fold)) == spec:
                self._finished[runs[model.key].folder] += 1
                continue
            limits = self.plan.limits_of(planned.task)
            if limits is not None and limits.cores is not None and not self.options.scheduler:
                cores = min(limits.cores, available_cores())  # of this machine
                limits = dataclasses.replace(limits, cores=cores)
            model_key = keys["model", model.name]
            task_key, data_key = keys["task", planned.task.name]
            folder, seed = str(runs[model.key].folder.absolute()), self.plan.seed
            job = Job(model_key, task_key, data_key, fold, seed, spec, folder)
            job = dataclasses.replace(job, replicate=model.replicate)
            stage = (self.stage.folder, self.options.cache) if limits else None
            job = dataclasses.replace(job, limits=limits, stage=stage, batches=batches)
            jobs.append(dataclasses.replace(job, encoder=keys.get(("encoder", model.name), "")))
        return jobs

    def _fill_store(self) -> dict[tuple[str, str], Any]:
        """Put models, tasks and datasets on the object store; return their keys."""
        keys: dict[tuple[str, str], Any] = {}
        # replicates use the same object: a job has their number
        for i, model in enumerate({model.name: model for model in self.plan.models}.values()):
            sent = model
            if self.plan.identities[model.name] is None:
                sent = dataclasses.replace(model, prototype=Unsendable())
            keys["model", model.name] = self.store.put(f"model-{i}", model, sent)
        keys |= {("encoder", name): keys["model", other] for name, other in self._encoders()}
        for i, planned in enumerate(self.plan.tasks):
            if (data := planned.data) is not None:
                task = dataclasses.replace(planned.task, dataset=data.name)
                # folds depend on the dataset's name, so equal data may be two datasets
                name = zlib.crc32("/".join([data.name, *data.roles]).encode())
                data_key = self.store.put(f"data-{data.fingerprint[:32]}-{name:08x}", data)
                keys["task", task.name] = (self.store.put(f"task-{i}", task), data_key)
        return keys

    def _encoders(self) -> Iterator[tuple[str, str]]:
        """Yield, of models with variants, the name of each and of the one whose vectors it uses."""
        shared = {id(model.prototype) for model in self.plan.models if model.base}
        first: dict[int, str] = {}
        for model in {model.name: model for model in self.plan.models}.values():
            if id(model.prototype) in shared:
                yield model.name, first.setdefault(id(model.prototype), model.name)

    def _record(self, job: Job, answer: Answer) -> dict[str, Any]:
        """Store the answer of a worker and return the job's record."""
        if isinstance(answer, Outcome):
            return store_outcome(job, answer)
        if not isinstance(answer, BaseException):
            return dict(answer)
        if not isinstance(answer, WorkerDied):
            raise answer
        task: Task = self.store.get(job.task)
        planned: PlannedTask = self._planned[task.name]
        record = new_record(job.spec, self.store.get(job.model).name, task) | {
            "fold": job.fold,
            "repeat": planned.repeats[job.fold],
            "seed": job.model_seed,
            **replicate_fact(job.replicate),
            "status": answer.status,
            "info": encodable(answer.cause),
            **answer.costs,
        }
        Run(Path(job.folder)).write(record, {"log.txt": f"{answer.cause}\n{answer.output}"})
        return record
