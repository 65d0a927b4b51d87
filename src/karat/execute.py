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
import time
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from karat.errors import DefinitionError
from karat.registry import adopt, load_object, users_parts
from karat.shelf import Shelf

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
#: of what a dead worker said, so many characters are kept
LOG_LENGTH = 20_000
#: seconds a worker that has stopped answering gets to end by itself
PATIENCE = 5
_START = "from karat.execute import serve; serve()"


class WorkerDied(Exception):
    """A job could not be run to its end in a worker: the cause, and what the worker said."""

    def __init__(self, cause: str, said: str) -> None:
        self.cause = cause
        self.said = said
        super().__init__(cause, said)


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
    if workers <= 1:
        function = load_object(work)
        with one_thread():
            for job in jobs:
                yield job, function(job, shelf)
        return
    shelf.put("parts", users_parts())
    try:
        shelf.save()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise DefinitionError(
            f"a part of your own cannot be sent to worker processes ({error}); use one worker."
        ) from error
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
        self._lock = threading.Lock()

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
        self.errors.seek(0)
        self.errors.truncate()  # what it said in earlier jobs is not about this one
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            return pickle.load(process.stdout)
        except Exception as error:
            self.process = None
            code = _ended(process)
            self.errors.seek(0)
            said = self.errors.read().decode(errors="replace")[-LOG_LENGTH:]
            if isinstance(error, OSError | EOFError):
                raise WorkerDied(_cause(code, said), said) from None
            raise WorkerDied(f"the worker's answer cannot be read: {error}", said) from None

    def stop(self) -> None:
        """End the process, whatever it is doing."""
        with self._lock:
            self.stopped = True
            process = self.process
        if process is not None and process.poll() is None:
            process.kill()
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:  # who stops us meanwhile must meet either no process or this one
            if self.stopped:
                raise WorkerDied("the run was stopped", "")
            self.errors: IO[bytes] = tempfile.TemporaryFile()
            self.process = process = subprocess.Popen(
                [sys.executable, "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.errors,
                env={**os.environ, **{name: "1" for name in _THREADS}},
                start_new_session=True,  # Ctrl-C in a terminal is the parent's to answer
            )
        assert process.stdin is not None
        with contextlib.suppress(OSError):  # if it is dead already, who asks will find out
            pickle.dump((sys.path, self.work, str(self.folder)), process.stdin)
        return process


def _ended(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _cause(code: int, said: str) -> str:
    if code >= 0:
        lines = said.strip().splitlines()
        last = f": {lines[-1]}" if code == 1 and "Traceback" in said else ""
        return f"the worker ended with exit code {code}{last}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = "; often that means: out of memory" if name == "SIGKILL" else ""
    return f"the worker was ended by {name}{hint}"


def serve() -> None:
    """Be a worker: read jobs from standard input, write answers to standard output."""
    import faulthandler

    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_follow, args=(os.getppid(),), daemon=True).start()
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
            pickle.dump(_answer(function, job, shelf), answers)
            answers.flush()


def _answer(function: Callable[[Any, Shelf], Any], job: Any, shelf: Shelf) -> Any:
    try:
        return function(job, shelf)
    except Exception as error:  # a model whose code this process cannot find, a full disk
        return WorkerDied(f"{type(error).__name__}: {error}", traceback.format_exc())


def _follow(parent: int) -> None:
    """End this process when its parent is gone, even if that was killed without a word."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
