"""Progress: what runs now, what is done, failed and left, shown live, as lines, or not at all."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from karat.errors import FAILURES

#: seconds between two lines that tell how far an encoder has come
PAUSE = 10.0


class Progress:
    """Hears of every event of a run and shows nothing; others show them."""

    def started(self, title: str, jobs: int) -> None:
        """Hear that a run of so many jobs begins."""

    def lost(self, model: str, task: str, reason: str) -> None:
        """Hear that the data of a task cannot be used, so that it fails for this model."""

    def embedding(self, model: str, dataset: str, items: int) -> None:
        """Hear that items are being embedded."""

    def encoded(self, done: int, total: int) -> None:
        """Hear how many of the texts to encode are done."""

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        """Hear that items have been embedded."""

    def finished(self, record: Mapping[str, Any], folder: str) -> None:
        """Hear of a finished job."""

    def ended(self) -> None:
        """Hear that the run is over, whether finished or stopped."""


class Failures:
    """Which failures were told: those of a model that say the same are told once, and counted."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, str], int] = {}
        self._lost: set[tuple[str, str]] = set()

    def new(self, record: Mapping[str, Any]) -> bool:
        """Return whether nobody was told of such a failure yet."""
        key = (str(record["model"]), str(record["info"]))
        self._told[key] = self._told.get(key, 0) + 1
        return self._told[key] == 1

    def first(self, task: str, reason: str) -> bool:
        """Return whether nobody was told yet that a task cannot run."""
        new = (task, reason) not in self._lost
        self._lost.add((task, reason))
        return new

    def more(self) -> list[str]:
        """Return a line for each model with failures that were not told."""
        counts: dict[str, int] = {}
        for (model, _), times in self._told.items():
            counts[model] = counts.get(model, 0) + times - 1
        return [
            f"  ✗ {model}   {n} more job{'' if n == 1 else 's'} failed so"
            for model, n in counts.items()
            if n
        ]


class Lines(Progress):
    """One line per event, for logs and pipes; failures only, unless verbose."""

    def __init__(self, verbose: bool = False) -> None:
        self.verbose = verbose
        self.jobs = self.done = 0
        self.what, self.said = "", 0.0
        self.failures = Failures()

    def started(self, title: str, jobs: int) -> None:
        """Print the title."""
        self.jobs = jobs
        self._say(title)

    def lost(self, model: str, task: str, reason: str) -> None:
        """Print it once for all models."""
        if self.failures.first(task, reason):
            self._say(unusable(task, reason))

    def embedding(self, model: str, dataset: str, items: int) -> None:
        """Note what is being embedded."""
        self.what, self.said = f"{dataset} with {model}", time.monotonic()

    def encoded(self, done: int, total: int) -> None:
        """Print how far it has come, if that has not been said for a while."""
        if done < total and time.monotonic() - self.said >= PAUSE:
            self.said = time.monotonic()
            self._say(f"embedding {self.what}: {done:,} of {total:,} texts")

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        """Print what was embedded."""
        self._say(f"embedded {dataset} with {model} in {seconds:.1f} s")

    def finished(self, record: Mapping[str, Any], folder: str) -> None:
        """Print a failure, and every job when verbose."""
        self.done += 1
        if record["status"] in FAILURES:
            if self.verbose or self.failures.new(record):
                self._say(failure(record, folder))
        elif self.verbose:
            self._say(f"{self.done} of {self.jobs}  {job_line(record)}")

    def ended(self) -> None:
        """Print how many failures were like those that were told."""
        for line in self.failures.more():
            self._say(line)

    def _say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class Live(Progress):
    """A live display on a terminal: a bar, the job that finished last, failures above it."""

    def __init__(self, verbose: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars

        self.verbose = verbose
        self.failed = 0
        # the stream as it is now: what jobs print goes to their logs, and this must not
        self.failures = Failures()
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
        """Print the title and begin the bar."""
        self.console.print(title, markup=False)
        self.bars.start()
        self.jobs = jobs
        self.done = 0
        self.bar = self.bars.add_task("", total=jobs, what="running", count=f"0 of {jobs}")

    def lost(self, model: str, task: str, reason: str) -> None:
        """Print it once for all models, above the bar."""
        if self.failures.first(task, reason):
            self.console.print(unusable(task, reason), markup=False)

    def embedding(self, model: str, dataset: str, items: int) -> None:
        """Show what is being embedded."""
        # the bar pulses until somebody tells how far the encoder has come
        self.begun = self.bars.add_task(
            f"{model}  {dataset}", total=None, what="embedding", count=f"{items:,} items"
        )

    def encoded(self, done: int, total: int) -> None:
        """Move the bar."""
        self.bars.update(
            self.begun, completed=done, total=total, count=f"{done:,} of {total:,} texts"
        )

    def embedded(self, model: str, dataset: str, seconds: float) -> None:
        """Take the line away again."""
        self.bars.remove_task(self.begun)

    def finished(self, record: Mapping[str, Any], folder: str) -> None:
        """Advance the bar; print a failure above it."""
        if record["status"] in FAILURES:
            self.failed += 1
            if self.verbose or self.failures.new(record):
                self.console.print(failure(record, folder), markup=False)
        elif self.verbose:
            self.console.print(job_line(record), markup=False)
        self.done += 1
        failed = f"   {self.failed} failed" if self.failed else ""
        self.bars.update(
            self.bar,
            advance=1,
            description=f"{record['model']}  {record['task']}  fold {record['fold']}",
            count=f"{self.done} of {self.jobs}{failed}",
        )

    def ended(self) -> None:
        """Take the display away; print how many failures were like those that were told."""
        self.bars.stop()
        for line in self.failures.more():
            self.console.print(line, markup=False)


def unusable(task: str, reason: str) -> str:
    """Return a task that cannot run as one line; the others do."""
    return f"  ✗ {task}   {' '.join(reason.split())}   (its jobs fail; the others run)"


def failure(record: Mapping[str, Any], folder: str) -> str:
    """Return a failed job as one line, with the place of its log."""
    where = f"{record['model']} · {record['task']} · fold {record['fold']}"
    kind = "" if record["status"] == "failed" else f"{record['status']}: "
    return f"  ✗ {where}   {kind}{record['info']}   (log: {folder})"


def job_line(record: Mapping[str, Any]) -> str:
    """Return a finished job as one line."""
    scores = record["views"][0]["scores"] if record["views"] else {}
    value = scores.get(record["metric"])
    shown = "–" if value is None else f"{value:.4g}"
    seconds = f"{record['seconds']:.2f} s" if "seconds" in record else "–"
    return (
        f"{record['model']} · {record['task']} · fold {record['fold']}   "
        f"{record['metric']} {shown}   {seconds}   {record['status']}"
    )


def choose(quiet: bool = False, verbose: bool = False) -> Progress:
    """Return the display that fits: none when quiet, live on a terminal, lines elsewhere."""
    if quiet:
        return Progress()
    return Live(verbose) if sys.stderr.isatty() else Lines(verbose)
