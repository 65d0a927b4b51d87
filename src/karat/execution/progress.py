"""The progress of a run: a live display, a notebook's output, one line per event, or nothing."""

from __future__ import annotations

import math
import sys
import time
from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

from karat.core.formatting import count, duration, money
from karat.core.notebook import NotebookOutput, in_notebook
from karat.core.replicates import replicate_name
from karat.errors import (
    FAILURES,
    DefinitionError,
)

#: seconds between two lines about the same encoder, or about the number of finished jobs
PAUSE = 10.0
#: in a long run, the share of the time so far between two lines about the number of jobs
RARER = 0.1
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
        self._print_embedded(f"embedded {dataset} with {model} in {duration(seconds)}{note}")

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
            remaining = seconds / self.done * (self.jobs - self.done)
            parts.append(f"about {duration(remaining)} left")
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
    score = "–" if value is None else f"{value:.4g}"
    seconds = f"{record['seconds']:.2f} s" if "seconds" in record else "–"
    return f"{_name(record)}   {record['metric']} {score}   {seconds}   {record['status']}"


def choose_progress(quiet: bool = False, verbose: bool = False) -> Progress:
    """Return the display: none when quiet, live on a terminal or in a notebook, or lines."""
    if quiet and verbose:
        raise DefinitionError("quiet and verbose exclude each other; remove one.")
    if quiet:
        return Progress()
    if in_notebook():
        return NotebookProgress(verbose)
    return LiveProgress(verbose) if sys.stderr.isatty() else LineProgress(verbose)


def shown_progress(progress: Progress | bool | None) -> Progress:
    """Return the display that ``evaluate`` was given; None shows it in interactive use only."""
    if isinstance(progress, Progress):
        return progress
    # the interactive interpreter, IPython and notebooks set the prompt ps1
    return choose_progress(quiet=not (hasattr(sys, "ps1") if progress is None else progress))
