"""Where the jobs of a run are executed: an Engine; this one is the processes of this machine.

An engine of an extension is a subclass under its name in the registry of engines. How several
calls divide a plan among them is a ``PlanParts``.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from karat.core.formatting import count
from karat.core.registry import engine
from karat.core.task import Suite
from karat.errors import KaratError
from karat.execution.job import Job
from karat.execution.object_store import ObjectStore
from karat.execution.plan import Plan
from karat.execution.workers import Event, execute
from karat.results.run import Run

if TYPE_CHECKING:
    from karat.execution.progress import Progress
    from karat.execution.session import Options

#: the function that a worker calls with a job: it writes into the run folder
WORK = "karat.execution.runner:work"


class EngineLost(KaratError):
    """The connection to where the jobs run was lost; finished jobs are stored."""


@engine("local")
class Engine:
    """Runs jobs in processes of this machine, or in this process without workers."""

    #: whether workers see the files of this machine, and so write into run folders themselves
    shares_files = True

    def __init__(self, address: str | None = None) -> None:
        self.address = address

    def mistakes(self) -> Iterable[str]:
        """Yield what is wrong with the options of this engine."""
        if self.address is not None:
            yield 'scheduler requires engine="dask" (--engine dask).'

    def check(self) -> None:
        """Raise an error if jobs cannot run here; called before anything is written."""

    @contextlib.contextmanager
    def kept(self, workers: int) -> Iterator[None]:
        """Keep what the engine has started until the end of several calls of ``execute``."""
        yield

    def execute(
        self,
        jobs: Sequence[Job],
        store: ObjectStore,
        workers: int,
        report: Callable[[Job, Event], None],
    ) -> Generator[tuple[Any, Any]]:
        """Yield each job with its answer, in the order in which they finish."""
        yield from execute(jobs, WORK, store, workers, report)

    def place(self, workers: int) -> str:
        """Return where the jobs run, for the title of a run."""
        return f"{count(workers, 'worker')} × 1 thread" if workers else "in this process"


class PlanParts(Protocol):
    """Divides a plan among several calls of ``evaluate``, on one machine or several."""

    def mistakes(self, options: Options) -> Iterable[str]:
        """Yield what is wrong with the options."""

    def run(self, plan: Plan, suite: Suite, options: Options, progress: Progress) -> list[Run]:
        """Run the part of this call and return its runs."""
