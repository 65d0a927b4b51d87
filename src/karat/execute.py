"""Execute: jobs in this process or in worker processes, one BLAS thread each.

Workers are plain Python processes that talk over pipes, so a script needs no ``__main__`` guard and
its own classes reach them. A worker that dies costs its job a failed record and is replaced.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from karat.registry import adopt, load_object, users_parts
from karat.shelf import Shelf

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
)
_START = "from karat.execute import serve; serve()"


class WorkerDied(Exception):
    """A worker process ended in the middle of a job."""


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread: faster for small jobs, and the same bits everywhere."""
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update({name: "1" for name in _THREADS})
    try:
        with threadpool_limits(1):
            yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})


def execute(
    jobs: Sequence[Any], work: str, shelf: Shelf, workers: int = 1
) -> Generator[tuple[Any, Any]]:
    """Yield (job, what ``work(job, shelf)`` returned) as the jobs finish, in any order.

    ``work`` is a ``"package.module:name"``. A worker that dies yields a WorkerDied in its place.
    """
    if workers <= 1 or len(jobs) <= 1:
        function = load_object(work)
        with one_thread():
            for job in jobs:
                yield job, function(job, shelf)
        return
    shelf.put("parts", users_parts())
    shelf.save()
    yield from _in_workers(jobs, work, shelf, min(workers, len(jobs)))


def _in_workers(
    jobs: Sequence[Any], work: str, shelf: Shelf, workers: int
) -> Iterator[tuple[Any, Any]]:
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    crew = [Worker(work, shelf.folder) for _ in range(workers)]
    for worker in crew:
        threading.Thread(target=worker.drain, args=(waiting, done), daemon=True).start()
    try:
        for _ in jobs:
            yield done.get()
    finally:
        for worker in crew:
            worker.stop()


class Worker:
    """One worker process, and the thread's side of the talk with it."""

    def __init__(self, work: str, folder: Path) -> None:
        self.work = work
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False

    def drain(
        self, waiting: queue.SimpleQueue[Any], done: queue.SimpleQueue[tuple[Any, Any]]
    ) -> None:
        """Run jobs one after the other until none waits."""
        while not self.stopped:
            try:
                job = waiting.get_nowait()
            except queue.Empty:
                break
            try:
                done.put((job, self.ask(job)))
            except Exception as error:
                done.put((job, error))
        self.stop()

    def ask(self, job: Any) -> Any:
        """Send a job to the process and wait for its answer."""
        process = self.process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            code = process.wait()
            self.process = None
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace")[-4000:]
            raise WorkerDied(_cause(code), said) from None

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        self.stopped = True
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        self.errors: IO[bytes] = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _START],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            env={**os.environ, **{name: "1" for name in _THREADS}},
        )
        assert self.process.stdin is not None
        pickle.dump((sys.path, self.work, str(self.folder)), self.process.stdin)
        return self.process


def _cause(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"the worker was ended by {signal.Signals(-code).name}"
        return f"the worker was ended by signal {-code}"
    return f"the worker ended with exit code {code}"


def serve() -> None:
    """Be a worker: read jobs from standard input, write answers to standard output."""
    import faulthandler

    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to answer
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # what a model prints or reads must not meet the pipes
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.path[:], work, folder = pickle.load(jobs)
    function: Callable[[Any, Shelf], Any] = load_object(work)
    shelf = Shelf(Path(folder))
    adopt(shelf.get("parts"))
    with one_thread():
        while True:
            try:
                job = pickle.load(jobs)
            except EOFError:
                return
            pickle.dump(function(job, shelf), answers)
            answers.flush()
