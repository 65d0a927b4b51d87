"""A session: one plan carried out, from run folders and vectors made beforehand to the tables."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karat import __version__
from karat.errors import DefinitionError, KaratError
from karat.execute import WorkerDied, cores, execute
from karat.job import Job, run
from karat.models.base import Model
from karat.plan import Plan, PlannedTask, job_spec
from karat.progress import Progress
from karat.results.files import safe_name
from karat.results.run import Run, unfinished
from karat.shelf import Shelf
from karat.staging import Stage
from karat.task import Suite, Task

MODE = "local"
#: the facts in which an unfinished run must agree with the new one to be completed by resume
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
    only: Sequence[str] = ()
    folds: Sequence[int] | None = None
    max_rows: int | None = None
    cache: bool = True
    resume: bool = False
    retry_failed: bool = False


def work(job: Job, shelf: Shelf) -> dict[str, Any]:
    """Run a job and write its outcome into its run folder; what every worker does."""
    outcome = run(job, shelf)
    Run(Path(job.folder)).write(outcome.record, outcome.files)
    return outcome.record


class Session:
    """One call of evaluate: the shelf, the run folders and the jobs that are left to do."""

    def __init__(self, plan: Plan, suite: Suite, options: Options, progress: Progress) -> None:
        self.plan = plan
        self.suite = suite
        self.options = options
        self.progress = progress
        self.stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
        self.workers = min(options.workers, cores())

    def run(self) -> list[Run]:
        """Carry the plan out and return the runs, or raise Stopped with what is kept."""
        runs = self._open_runs()
        with tempfile.TemporaryDirectory(prefix="karat-") as scratch:
            self.shelf = Shelf(Path(scratch) / "shelf")
            self.stage = Stage(self.shelf, self.progress, self.options.cache, Path(scratch))
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
        try:
            ready = [self.stage.embedded(job) for job in jobs]
            answers = execute(ready, "karat.session:work", self.shelf, self.workers)
            with contextlib.closing(answers) as finished:
                for job, answer in finished:
                    record = self._record(job, answer)
                    done += 1
                    log = Path("logs", safe_name(record["task"]), f"{job.fold}.txt")
                    self.progress.finished(record, str(Path(job.folder) / log))
        except KeyboardInterrupt:
            raise Stopped(done, len(self.plan.jobs), list(runs.values())) from None

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
        threads = f"seed {plan.seed} · {_count(self.workers, 'worker')} × 1 thread"
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
                run.write(self._without_scores(decline.task, model, decline.reason), {})
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

    def _without_scores(self, task: str, model: Model, reason: str) -> dict[str, Any]:
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
            task, data = keys["task", planned.task.name]
            folder = str(runs[model.name].folder)
            (shelved,) = keys["model", model.name]
            jobs.append(Job(shelved, task, data, fold, self.plan.seed, spec, folder))
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
        cause, said = answer.args
        record = self._without_scores(task.name, self.shelf.get(job.model), cause)
        record.update(status="failed", spec=job.spec, fold=job.fold, seed=job.model_seed, repeat=0)
        Run(Path(job.folder)).write(record, {"log.txt": said})
        return record


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

    return {name: version(name) for name in ("numpy", "pandas", "scikit-learn", "scipy")}


def _plain(params: Mapping[str, Any]) -> dict[str, Any]:
    plain = (str, int, float, bool, list, dict, type(None))
    return {k: v if isinstance(v, plain) else repr(v) for k, v in params.items()}


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
