"""A session runs one plan: it opens run folders, computes shared vectors and executes the jobs.

Its progress is a live display, one line per event, or nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import math
import platform
import shlex
import sys
import tempfile
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat import __version__
from karat.core.dataset import QUERY
from karat.core.embeddings import declared_prompts, uses_roles
from karat.core.files import encodable, temporary_folder
from karat.core.formatting import count, duration, money
from karat.core.notebook import NotebookOutput, in_notebook
from karat.core.registry import engines
from karat.core.replicates import replicate_fact, replicate_name
from karat.core.task import Suite, Task
from karat.core.writing import remove_partial_files
from karat.errors import (
    FAILURES,
    ContractError,
    DefinitionError,
    DiskFull,
    KaratError,
    KaratWarning,
)
from karat.execution.embedding_cache import VectorStage, has_vectors
from karat.execution.engine import WORK, Engine, EngineLost
from karat.execution.job import (
    POSTPONED,
    Broken,
    Job,
    ObjectStore,
    Outcome,
    account_of,
    new_record,
    run_job,
)
from karat.execution.plan import Decline, Plan, PlannedTask, job_spec
from karat.execution.resources import Limits, visible_gpus
from karat.execution.resuming import RETRY_FAILED, NotContinued, reason_outdated
from karat.execution.workers import Event, WorkerDied, available_cores, execute
from karat.metrics.metric import get_metric
from karat.models.contrib.endpoint_account import Account, use_account
from karat.models.model import Model
from karat.models.vector_files import VectorFile
from karat.results.run import Run, earlier_runs
from karat.results.tables import ELIMINATED, ItemTable, json_value, make_item_table

#: seconds between two lines about the same encoder, or about the number of finished jobs
PAUSE = 10.0
#: in a long run, the share of the time so far between two lines about the number of jobs
RARER = 0.1
#: what to do about a full disk
CONTINUE = "continue the run with --resume"
#: seconds between two changes of the output of a notebook
REDRAW = 0.2


class Progress:
    """Receives every event of a run; this base class shows nothing."""

    def started(self, title: str, jobs: int) -> None:
        """Receive the start of a run and its number of jobs."""

    def lost(self, model: str, task: str, reason: str) -> None:
        """Receive a task that fails for a model because its data cannot be used."""

    def embedding(self, model: str, dataset: str, items: int) -> None:
        """Receive the start of an embedding."""

    def encoded(self, done: int, total: int) -> None:
        """Receive the number of texts encoded so far."""

    def cached(self, done: int, total: int) -> None:
        """Receive how many vectors of the embedding are from the cache, of earlier runs."""

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        """Receive the end of an embedding."""

    def stalled(self, model: str, task: str, fold: int, seconds: float) -> None:
        """Receive a job that has been running for this many seconds."""

    def finished(self, record: Mapping[str, Any], folder: str) -> None:
        """Receive the record of a finished job and the path of its log."""

    def left(self, model: str, text: str) -> None:
        """Receive a model that left a race, with when and why."""

    def billed(self, model: str, requests: int, tokens: float, price: float | None) -> None:
        """Receive what was sent to an endpoint in this run."""

    def ended(self) -> None:
        """Receive the end of the run, finished or stopped."""


class LineProgress(Progress):
    """One line per event, for logs and pipes; only failed jobs, unless verbose.

    Failures of a model with the same message are printed once and counted.
    """

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.jobs = self.done = 0
        self.failures: Counter[tuple[str, str]] = Counter()
        self.lost_tasks: set[tuple[str, str]] = set()
        self.what, self.printed = "", 0.0
        self.begun_at = self.told = 0.0
        #: vectors of the current embedding that are from the cache, of how many
        self.from_cache = (0, 0)
        #: the number of datasets with vectors from the cache, by model
        self.cached_datasets: Counter[str] = Counter()

    def started(self, title: str, jobs: int) -> None:
        """Print the title."""
        self.jobs = jobs
        self.begun_at = self.told = time.monotonic()
        self._print(title)

    def lost(self, model: str, task: str, reason: str) -> None:
        """Print a lost task once for all models."""
        if (task, reason) not in self.lost_tasks:
            self.lost_tasks.add((task, reason))
            reason = " ".join(reason.split())
            self._print(f"  ✗ {task}   {reason}   (its jobs fail; other tasks run)")

    def embedding(self, model: str, dataset: str, items: int) -> None:
        """Remember what is being embedded."""
        self.what, self.printed = f"{dataset} with {model}", time.monotonic()

    def encoded(self, done: int, total: int) -> None:
        """Print the number of encoded texts every few seconds."""
        if done < total and time.monotonic() - self.printed >= PAUSE:
            self.printed = time.monotonic()
            self._print(f"embedding {self.what}: {done:,} of {total:,} texts")

    def cached(self, done: int, total: int) -> None:
        """Remember how many vectors are from the cache."""
        self.from_cache = (self.from_cache[0] + done, self.from_cache[1] + total)

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        """Print what was embedded, and which of the vectors are from the cache."""
        done, total = self.from_cache
        self.from_cache = (0, 0)
        note = ""
        if done:
            self.cached_datasets[model] += 1
            some = "vectors" if done == total else f"{done:,} of {total:,} vectors"
            note = f" ({some} from the cache)"
        self._print_embedded(f"embedded {dataset} with {model} in {seconds:.1f} s{note}")

    def _print_embedded(self, text: str) -> None:
        self._print(text)

    def stalled(self, model: str, task: str, fold: int, seconds: float) -> None:
        """Print the job and how to limit its time."""
        self._print(
            f"  {model} · {task} · fold {fold} has been running for {seconds / 60:.0f} min. Limit "
            f"the time of jobs: --constraint NAME (karat list constraints), or stop with Ctrl-C "
            f"and continue with --resume."
        )

    def finished(self, record: Mapping[str, Any], folder: str) -> None:
        """Print a failed job, and every job when verbose."""
        self.done += 1
        if record["status"] in FAILURES:
            key = (str(record["model"]), str(record["info"]))
            self.failures[key] += 1
            if self.verbose or self.failures[key] == 1:
                self._print(failure_line(record, folder))
        elif self.verbose:
            self._print(f"{self.done} of {self.jobs}  {job_line(record)}")
        self.tell()

    def tell(self) -> None:
        """Print the number of finished jobs, ever more rarely, unless every job is printed."""
        now = time.monotonic()
        pause = max(PAUSE, (now - self.begun_at) * RARER)
        if not self.verbose and now - self.told >= pause:
            self.told = now
            self._print(self.summary())

    def summary(self) -> str:
        """Return the numbers of finished and failed jobs, and the time so far or left."""
        failed, seconds = self.failures.total(), time.monotonic() - self.begun_at
        parts = [f"{self.done:,} of {self.jobs:,} jobs", f"{failed:,} failed" if failed else ""]
        if 0 < self.done < self.jobs:
            left = seconds / self.done * (self.jobs - self.done)
            parts.append(f"about {duration(left)} left")
        elif self.done:
            parts.append(duration(seconds))
        return " · ".join(filter(None, parts))

    def left(self, model: str, text: str) -> None:
        """Print when and why a model left a race."""
        self._print(f"  {model}   {text}")

    def billed(self, model: str, requests: int, tokens: float, price: float | None) -> None:
        """Print the requests, tokens and price of a model in this run."""
        cost = "" if price is None else f", {money(price)}"
        self._print(f"sent to {model}: {requests:,} requests, {tokens:,.0f} tokens{cost}")

    def ended(self) -> None:
        """Print how many failures were not printed, by model."""
        more: Counter[str] = Counter()
        for (model, _), number in self.failures.items():
            more[model] += 0 if self.verbose else number - 1
        for model, number in more.items():
            if number:
                self._print(f"  ✗ {model}   {count(number, 'more job')} failed with the same error")

    def _print(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class LiveProgress(LineProgress):
    """A live display on a terminal: a bar, the last finished job, and failures above it."""

    def __init__(self, verbose: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        super().__init__(verbose)
        # the current stream: jobs redirect sys.stderr to their logs
        self.console = Console(file=sys.stderr, highlight=False)
        self.bars = Bars(
            TextColumn("  {task.fields[what]:<10}"),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[count]}"),
            TimeRemainingColumn(compact=True),
            console=self.console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def started(self, title: str, jobs: int) -> None:
        """Print the title and start the bar."""
        super().started(title, jobs)
        self.bars.start()
        self.bar = self.bars.add_task("", total=jobs, what="running", count=f"0 of {jobs}")

    def embedding(self, model: str, dataset: str, items: int) -> None:
        """Show what is being embedded; the bar pulses until the encoder reports a number."""
        self.begun = self.bars.add_task(
            f"{model}  {dataset}", total=None, what="embedding", count=f"{items:,} items"
        )

    def encoded(self, done: int, total: int) -> None:
        """Move the bar."""
        self.bars.update(
            self.begun, completed=done, total=total, count=f"{done:,} of {total:,} texts"
        )

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        """Remove the line."""
        super().embedded(model, dataset, seconds)
        self.bars.remove_task(self.begun)

    def _print_embedded(self, text: str) -> None:
        """Print nothing: a line per model follows at the end."""

    def finished(self, record: Mapping[str, Any], folder: str) -> None:
        """Advance the bar; print a failed job above it."""
        super().finished(record, folder)
        failed = self.failures.total()
        self.bars.update(
            self.bar,
            advance=1,
            description=f"{record['model']}  {record['task']}  fold {record['fold']}",
            count=f"{self.done} of {self.jobs}" + (f"   {failed} failed" if failed else ""),
        )

    def ended(self) -> None:
        """Remove the display; print what was from the cache and how many failures were not."""
        self.bars.stop()
        for model, number in self.cached_datasets.items():
            self._print(f"vectors of {model} for {count(number, 'dataset')} are from the cache")
        super().ended()

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False)


class NotebookProgress(LineProgress):
    """One output of a notebook cell that changes: the title, a bar, and failed jobs."""

    def __init__(self, verbose: bool = False) -> None:
        super().__init__(verbose)
        self.output = NotebookOutput()
        self.lines: list[str] = []
        self.job = ""
        self.drawn = -math.inf

    def embedding(self, model: str, dataset: str, items: int) -> None:
        """Show what is being embedded."""
        super().embedding(model, dataset, items)
        self.job = f"embedding {self.what}"
        self._draw()

    def encoded(self, done: int, total: int) -> None:
        """Show the number of encoded texts."""
        self.job = f"embedding {self.what}: {done:,} of {total:,} texts"
        self._draw()

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        """Show that the vectors are there."""
        self.job = f"embedded {dataset} with {model}"
        self._draw()

    def finished(self, record: Mapping[str, Any], folder: str) -> None:
        """Move the bar; show a failed job below it."""
        self.job = _name(record)
        super().finished(record, folder)
        self._draw()

    def tell(self) -> None:
        """Do nothing: the bar shows the number of jobs."""

    def ended(self) -> None:
        """Show the final numbers."""
        self.job = ""
        super().ended()
        self._draw(now=True)

    def _print(self, text: str) -> None:
        self.lines.append(text)
        self._draw(now=True)

    def _draw(self, now: bool = False) -> None:
        if not now and time.monotonic() - self.drawn < REDRAW:
            return
        self.drawn = time.monotonic()
        title, *lines = self.lines or [""]
        state = self.summary() + (f" · {self.job}" if self.job else "")
        bar = f'<progress value="{self.done}" max="{max(self.jobs, 1)}"></progress>'
        below = "".join(f"<br>{escape(line)}" for line in lines)
        html = f"<div><small>{escape(title)}</small><br>{bar} {escape(state)}{below}</div>"
        self.output.show(html, "\n".join([title, state, *lines]))


def _name(record: Mapping[str, Any]) -> str:
    model = replicate_name(record["model"], record.get("replicate") or 0)
    return f"{model} · {record['task']} · fold {record['fold']}"


def failure_line(record: Mapping[str, Any], folder: str) -> str:
    """Return the line about a failed job, with the path of its log."""
    kind = "" if record["status"] == "failed" else f"{record['status']}: "
    return f"  ✗ {_name(record)}   {kind}{record['info']}   (log: {folder})"


def job_line(record: Mapping[str, Any]) -> str:
    """Return the line about a finished job."""
    scores = record["views"][0]["scores"] if record["views"] else {}
    value = scores.get(record["metric"])
    shown = "–" if value is None else f"{value:.4g}"
    seconds = f"{record['seconds']:.2f} s" if "seconds" in record else "–"
    return f"{_name(record)}   {record['metric']} {shown}   {seconds}   {record['status']}"


def choose_progress(quiet: bool = False, verbose: bool = False) -> Progress:
    """Return the display: none when quiet, live on a terminal or in a notebook, or lines."""
    if quiet and verbose:
        raise DefinitionError("quiet and verbose exclude each other; remove one.")
    if quiet:
        return Progress()
    if in_notebook():
        return NotebookProgress(verbose)
    return LiveProgress(verbose) if sys.stderr.isatty() else LineProgress(verbose)


def shown_progress(given: Progress | bool | None) -> Progress:
    """Return the display that ``evaluate`` was given; None shows it in interactive use only."""
    if isinstance(given, Progress):
        return given
    # the interactive interpreter, IPython and notebooks set the prompt ps1
    return choose_progress(quiet=not (hasattr(sys, "ps1") if given is None else given))


#: fields of run.json in which a run must match the new one to be resumed
SAME = ("model", "suite", "constraint", "seed", "replicate", "params")
#: those without which it is another model or suite
NAMING = ("model", "suite", "replicate")
#: libraries whose versions are stored in run.json
LIBRARIES = ("numpy", "pandas", "scikit-learn", "scipy")

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


def work(job: Job, store: ObjectStore) -> dict[str, Any] | Outcome:
    """Run a job, write its outcome into its run folder and return its record.

    If the disk is full, the outcome is returned: writing it ends the run in the parent process,
    and the job does not count as failed.
    """
    Run(Path(job.folder)).mark_running(store.get(job.task).name, job.fold)
    outcome = perform(job, store)
    try:
        return store_outcome(job, outcome)
    except KaratError:
        return outcome


def perform(job: Job, store: ObjectStore) -> Outcome:
    """Run a job and return its outcome, without writing into the run folder."""
    if job.stage is not None:
        folder, cached = job.stage
        stage = store.get_or_make(
            "stage", lambda: VectorStage(store, Progress(), cached, Path(folder))
        )
        job = stage.embedded(job)
    return run_job(job, store)


def store_outcome(job: Job, outcome: Outcome) -> dict[str, Any]:
    """Write the outcome of a job into its run folder and return its record.

    A postponed job is not recorded, so that ``resume`` runs it.
    """
    if outcome.record["status"] == POSTPONED:
        Run(Path(job.folder)).unmark_running(outcome.record)
        return outcome.record
    Run(Path(job.folder)).write(outcome.record, outcome.files, outcome.artifacts)
    return outcome.record


def embed_in_worker(job: Job, store: ObjectStore) -> dict[str, Any]:
    """Compute the vectors of a job in a worker; return the fields of jobs that use them."""
    assert job.stage is not None
    folder, cached = job.stage
    stage = VectorStage(store, _Reported(store.get("report")), cached, Path(folder))
    with use_account(account_of(store)):
        return stage.fields(job)


class Unsendable:
    """Replaces, in worker processes, a model that cannot be pickled."""

    def fit(self, *_: Any) -> Any:
        """Raise the error that becomes the job's message."""
        raise ContractError(
            "the model cannot be pickled to send it to a worker process; run it without limits."
        )

    transform = predict = fit


class _Reported(Progress):
    """Sends the events of an embedding from a worker to the process of the session."""

    def __init__(self, send: Callable[[Event], None]) -> None:
        self.send = send

    def embedding(self, *arguments: Any) -> None:
        self.send(Event("embedding", arguments))

    def encoded(self, *arguments: Any) -> None:
        self.send(Event("encoded", arguments))

    def cached(self, *arguments: Any) -> None:
        self.send(Event("cached", arguments))

    def embedded(self, *arguments: Any) -> None:
        self.send(Event("embedded", arguments))


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
        self.machine = _machine_facts()
        self.workers = min(options.workers, available_cores())
        self.engine: Engine = engines.get(options.engine)(options.scheduler)
        self._planned = {planned.task.name: planned for planned in plan.tasks}
        self._items: dict[str, ItemTable] = {}
        self._earlier: list[Run] | None = None
        self._tasks_of: dict[str, set[str]] = {}
        for model, planned, _ in plan.jobs:
            self._tasks_of.setdefault(model.key, set()).add(planned.task.name)
        self._not_run: dict[str, list[Decline]] = {}
        for each in (*plan.declined, *plan.lost_tasks):
            self._not_run.setdefault(each.model, []).append(each)
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
            keep, known = self.options.cache, self.plan.identities
            account = Account(folder, None if keep else folder / "endpoints", self.options.budget)
            self.store.put("account", account)
            self.stage = VectorStage(self.store, self.progress, keep, folder, known)
            self.stage.cache.remove_drafts()
            try:
                self._run_jobs(runs)
            finally:
                self.progress.ended()
                for model, sent in account.sent().items():
                    self.progress.billed(model, *sent)
                account.close()
                self._finish_runs()

    def _stopped(self, runs: list[Run]) -> Stopped:
        """Return the error about jobs that were postponed, with the reason of each model."""
        left = sum(map(len, self._postponed.values()))
        reasons = "; ".join(f"{model}: {reasons[0]}" for model, reasons in self._postponed.items())
        stopped = Stopped(len(self.plan.jobs) - left, len(self.plan.jobs), runs, reasons)
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
        for lost in self.plan.lost_tasks:
            log.warning("task %s fails for %s: %s", lost.task, lost.model, lost.reason)
            self.progress.lost(lost.model, lost.task, lost.reason)
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

    def _finish(self, job: Job, answer: Any) -> bool:
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
        name, jobs = f"{__name__}:embed_in_worker", list(first.values())
        for job, answer in execute(jobs, name, self.store, 1, self._report) if jobs else ():
            if isinstance(answer, WorkerDied):
                answer = {"broken": Broken(answer.status, answer.cause, answer.output)}
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
        own = [list(filter(self._is_own, same)) for same in folds.values() if len(same) > 1]
        first = [same[0] for same in own if same]
        for _ in execute(first, "karat.execution.job:share_views", self.store, 1) if first else ():
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
        wanted = max((each.cores or 1 for each in limits), default=1)
        most = [self.workers, available_cores() // wanted, len(jobs)]
        if not limits and self.engine.shares_files and not self.workers:
            return 0
        gpus = max((each.gpus or 0 for each in limits), default=0)
        if gpus and self.engine.shares_files:
            found = len(visible_gpus())
            if found < gpus:
                raise DefinitionError(
                    f"a job requires {gpus} GPUs, found {found} (CUDA_VISIBLE_DEVICES); "
                    f"lower gpus, or use --engine dask --scheduler."
                )
            most.append(found // gpus)
        return max(1, min(most))

    def _title(self, left: int) -> str:
        plan = self.plan
        parts = [
            f"suite {self.suite.name}",
            count(sum(not model.replicate for model in plan.models), "model"),
            count(len(plan.tasks), "task"),
            self.most + count(len(plan.jobs), "job") + f", {left} left" * (left < len(plan.jobs)),
        ]
        if plan.declined:
            parts.append(f"{len(plan.declined)} declined (karat plan shows why)")
        limits = [plan.limits_of(planned.task) or Limits() for planned in plan.tasks]
        wanted = max((each.cores or 0 for each in limits), default=0)
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
        about = self._about(model)
        opened = self._resumed(model, about) if self.options.resume else None
        opened = opened or Run.create(self.options.output, about)
        self._write_not_run(model, opened)
        return opened

    def _write_not_run(self, model: Model, opened: Run) -> None:
        """Write what does not depend on jobs: items, and records of the tasks that do not run."""
        opened.write_items(self._item_tables(model).values())
        lost = set(map(id, self.plan.lost_tasks))
        for each in self._not_run.get(model.key, ()):
            record = new_record("", model.name, self._planned[each.task].task)
            opened.write_not_run(record, each.reason, None if id(each) in lost else each.lacks)

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

    def _resumed(self, model: Model, about: Mapping[str, Any]) -> Run | None:
        """Return the latest run without outdated jobs, or a new run with the jobs still valid.

        An earlier run with outdated jobs is not changed.
        """
        if self._earlier is None:  # read once for all models
            self._earlier = list(earlier_runs(self.options.output, {}, ()))
        same = [e for e in self._earlier if all(e.about.get(k) == about.get(k) for k in SAME)]
        earlier = [run for run in same if self._fits(run)]
        for each in earlier:
            if not any(self._is_outdated(model, record) for record in each.records()):
                log.info("resuming %s in %s", model.name, each.folder)
                remove_partial_files(each.folder)
                each.merge_plan(about["tasks"], [task.name for task in self.suite])
                return each
        if not earlier:
            log.info("no run of %s to resume in %s", model.name, self.options.output)
            for other in self._earlier:
                if all(other.about.get(key) == about.get(key) for key in NAMING):
                    self._not_continued.add_other(other, about, SAME)
            return None
        new = Run.create(self.options.output, about)
        states = [(record, self._is_outdated(model, record)) for record in earlier[0].records()]
        valid = [record for record, is_outdated in states if is_outdated is False]
        for record in valid:
            new.copy_job(earlier[0], record)
        is_known = self.plan.identities[model.name] is not None
        why = reason_outdated(earlier[0].about, about, is_known)
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
        tasks = [each for each in plan.tasks if whole or plan.folds_of(model, each)]
        return {**self.about_model(model), "tasks": [self._facts(model, each) for each in tasks]}

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
            **_prompt_facts(model, self.plan.tasks),
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
        for i, model in enumerate({each.name: each for each in self.plan.models}.values()):
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
        for model in {each.name: each for each in self.plan.models}.values():
            if id(model.prototype) in shared:
                yield model.name, first.setdefault(id(model.prototype), model.name)

    def _record(self, job: Job, answer: Any) -> dict[str, Any]:
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


#: reads and parses the package's metadata, once per process
_version = functools.cache(version)


def _machine_facts() -> dict[str, Any]:
    """Return versions, platform, and the command line of ``karat`` or the user's script."""
    called, *rest = sys.argv or [""]
    name = Path(called).name
    command = f"python {shlex.quote(name)}" if name.endswith(".py") else ""
    if name in ("karat", "karat.exe", "__main__.py"):
        command = shlex.join(["karat", *rest])
    return {
        "karat": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": 1,
        "versions": {name: _version(name) for name in LIBRARIES},
        "command": command,
    }


def _prompt_facts(model: Model, tasks: Iterable[PlannedTask]) -> dict[str, Any]:
    """Return the prompts that a model uses for the roles of the tasks, and the names of its own."""
    found = [planned.data.item_roles for planned in tasks if planned.data and planned.data.roles]
    named = [role for each in found for role in pd.unique(each.main)]
    named += [QUERY for each in found if len(each.both)]
    roles = [role for role in dict.fromkeys(named) if role]
    encoder = model.prototype
    if not roles or model.unavailable or not uses_roles(encoder):
        return {"declared_prompts": names} if roles and (names := declared_prompts(encoder)) else {}
    try:
        used = {role: encodable(str(encoder.prompt_for(role))) for role in roles}
        return {"prompts": used, "declared_prompts": declared_prompts(encoder)}
    except Exception as error:  # its jobs fail with the same error
        log.warning("the prompts of %s are unknown: %s", model.name, error)
        return {}


def _address(planned: PlannedTask) -> str:
    """Return the address of an OpenML task, else the name of the data, if they are known."""
    task, data = planned.task, planned.data
    if data is not None:
        number = data.about.get("openml_task")
    else:
        number = task.split.get("task_id") if isinstance(task.split, Mapping) else None
    return f"openml.org/t/{number}" if number else data.name if data is not None else ""


def task_entry(planned: PlannedTask) -> dict[str, Any]:
    """Return the definition of a task and the facts about its data, as stored in run.json."""
    task, data = planned.task, planned.data
    higher = {name: get_metric(name).higher_is_better for name in task.metrics if name != "?"}
    facts = {
        "name": task.name,
        "kind": task.kind,
        "metrics": list(task.metrics),
        "higher_is_better": higher,
        "folds": list(planned.folds),
        "dataset": getattr(task.dataset, "name", ""),
        "id": "",
        "fingerprint": "",
        "probe": json_value(task.probe),
        "missing": task.missing,
        "modality": "",
        "duplicate_rows": list(planned.duplicate_rows),
        **planned.facts,
        "ignore": list(task.ignore),
        "about": {},
    }
    if task.keep_predictions != "all":
        facts["keep_predictions"] = task.keep_predictions
    facts["id"] = _address(planned)
    if data is not None:
        facts["dataset"] = data.name
        facts |= {"fingerprint": data.fingerprint, "modality": data.modality}
        facts |= {"roles": list(data.roles)} if data.roles else {}
        facts |= {"about": json_value(data.about), "items": len(data.items), "questions": len(data)}
        if data.items.ndim > 1:
            facts["columns"] = data.items.shape[1]
    return facts
