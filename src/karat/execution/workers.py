"""Execute jobs in this process or in worker processes, with one BLAS thread each.

Workers are plain Python processes that communicate over pipes: a script needs no ``__main__``
guard, and its classes are sent to them. If a worker dies, its job fails and the worker is replaced.
Jobs with limits always run in workers, which are ended when their job exceeds a limit.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import pickle
import queue
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from karat.core.registry import load_object, register_user_components, user_components
from karat.errors import DefinitionError
from karat.execution.job import ObjectStore
from karat.execution.resources import (
    Clock,
    Ended,
    Limits,
    Meter,
    Watch,
    end_tree,
    has_children,
    limits_enforced,
    restore_environment,
)

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
#: number of characters kept of the output of a dead worker
LOG_LENGTH = 20_000
#: modules that nearly every job imports, loaded before a worker is ready
PRELOADED = ("sklearn.base", "sklearn.model_selection", "sklearn.preprocessing")
#: seconds a worker that no longer answers has to end by itself
PATIENCE = 5
_START = "from karat.execution.workers import serve; serve()"

log = logging.getLogger(__name__)


class WorkerDied(Exception):
    """A worker could not finish a job: the cause, and the worker's output in ``output``.

    ``status`` is "failed", or "timeout" or "memory" if a limit was exceeded; ``costs`` are the
    job's costs as the parent process measured them.
    """

    def __init__(
        self, cause: str, output: str, status: str = "failed", costs: dict[str, float] | None = None
    ) -> None:
        self.cause = cause
        self.output = output
        self.status = status
        self.costs = costs or {}
        super().__init__(cause, output, status, self.costs)


def available_cores() -> int:
    """Return how many cores this process may use: its CPU affinity and container limits."""
    from joblib import cpu_count

    return int(cpu_count())


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread: faster for small jobs, and reproducible scores."""
    from threadpoolctl import threadpool_limits

    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update({name: "1" for name in _THREADS})
    try:
        with threadpool_limits(1):
            yield
    finally:
        restore_environment(before)


def execute(
    jobs: Sequence[Any], work: str, shelf: ObjectStore, workers: int = 1
) -> Generator[tuple[Any, Any]]:
    """Yield each job with the result of ``work(job, shelf)``, in the order in which they finish.

    ``work`` is a ``"package.module:name"``. If a worker dies, the result is a WorkerDied.
    """
    if workers <= 1 and not any(getattr(job, "limits", None) for job in jobs):
        function = load_object(work)
        with one_thread():
            for job in jobs:
                yield job, function(job, shelf)
        return
    save(shelf)
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    pool = [Worker(work, shelf.folder, slot) for slot in range(max(1, min(workers, len(jobs))))]
    for worker in pool:
        threading.Thread(target=worker.drain, args=(waiting, done), daemon=True).start()
    try:
        for _ in jobs:
            yield done.get()
    finally:
        for worker in pool:
            worker.stop()


def save(shelf: ObjectStore) -> None:
    """Write the shelf and the user's registered components for other processes."""
    shelf.put("parts", user_components())
    try:
        shelf.save()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise DefinitionError(
            f"a component cannot be pickled to send it to worker processes ({error}); use one "
            f"worker."
        ) from error


class Worker:
    """One worker process, used by one thread at a time."""

    def __init__(self, work: str, folder: Path, slot: int = 0) -> None:
        self.work = work
        self.folder = folder
        self.slot = slot
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self._lock = threading.Lock()

    def drain(
        self, waiting: queue.SimpleQueue[Any], done: queue.SimpleQueue[tuple[Any, Any]]
    ) -> None:
        """Run jobs one after the other until the queue is empty."""
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
        """Send a job to the process and return its answer, or raise WorkerDied."""
        process = self.process or self._start()
        assert process.stdin is not None and process.stdout is not None
        answers = process.stdout
        self.output.clear()  # the output of earlier jobs
        limits: Limits | None = getattr(job, "limits", None) or None
        watch = Watch(process.pid, limits) if limits else None
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            if watch is not None:
                watch.wait(lambda pause: bool(select.select([answers], [], [], pause)[0]))
            answer = pickle.load(answers)
        except Exception as error:
            raise self._died(process, error, watch) from None
        if watch is not None and has_children(process.pid):
            # child processes that a job left running are ended together with the worker
            self.process = None
            watch.end()
            _exit_code(process)
        return answer

    def _died(
        self, process: subprocess.Popen[bytes], error: Exception, watch: Watch | None
    ) -> WorkerDied:
        """End the process and its children; return why there is no answer."""
        self.process = None
        (watch.end if watch is not None else lambda: _end_group(process.pid))()
        code = _exit_code(process)
        self.reader.join(timeout=PATIENCE)
        output = b"".join(self.output).decode(errors="replace")[-LOG_LENGTH:]
        status, cause = "failed", f"cannot read the worker's answer: {error}"
        if isinstance(error, Ended):
            status, cause = error.status, error.cause
        elif isinstance(error, OSError | EOFError):
            cause = _cause(code, output)
        log.warning("worker %d ended: %s", process.pid, cause)
        return WorkerDied(cause, output, status, watch.costs if watch else {})

    def stop(self) -> None:
        """End the process and its children at once."""
        with self._lock:
            self.stopped = True
            process = self.process
        if process is not None and process.poll() is None:
            end_tree(process.pid)
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:  # a concurrent stop() must find either no process or this one
            if self.stopped:
                raise WorkerDied("the run was stopped", "")
            self.process = process = subprocess.Popen(
                [sys.executable, "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **{name: "1" for name in _THREADS}},
                start_new_session=True,  # only the parent handles Ctrl-C
            )
        log.info("worker %d started", process.pid)
        assert process.stdin is not None and process.stdout is not None
        self.output: deque[bytes] = deque()
        self.reader = threading.Thread(
            target=_listen, args=(process.stderr, self.output), daemon=True
        )
        self.reader.start()
        try:
            pickle.dump((sys.path, self.work, str(self.folder), self.slot), process.stdin)
            process.stdin.flush()
            pickle.load(process.stdout)  # ready: the time of a job does not include the start
        except Exception as error:
            raise self._died(process, error, None) from None
        return process


def _listen(stream: IO[bytes], output: deque[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError):
        while piece := os.read(stream.fileno(), 4096):
            output.append(piece)
            while len(output) > 1 and sum(map(len, output)) > 2 * LOG_LENGTH:
                output.popleft()


def _end_group(pid: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(pid, signal.SIGKILL)


def _exit_code(process: subprocess.Popen[bytes]) -> int:
    try:
        return process.wait(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _cause(code: int, output: str) -> str:
    if code >= 0:
        lines = output.strip().splitlines()
        last = f": {lines[-1]}" if code == 1 and "Traceback" in output else ""
        return f"the worker ended with exit code {code}{last}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (often: out of memory)" if name == "SIGKILL" else ""
    return f"the worker was ended by {name}{hint}"


def serve() -> None:
    """Run as a worker: read jobs from standard input, write answers to standard output."""
    import faulthandler

    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # models must not print into the pipe or read from it
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    sys.path[:], work, folder, slot = pickle.load(jobs)
    clock = Clock()
    function: Callable[[Any, ObjectStore], Any] = load_object(work)
    shelf = ObjectStore(Path(folder))
    register_user_components(shelf.get("parts"))
    list(map(importlib.import_module, PRELOADED))
    pickle.dump("ready", answers)
    answers.flush()
    with one_thread(), contextlib.suppress(EOFError):
        while True:
            job = pickle.load(jobs)
            meter = Meter()
            try:
                with limits_enforced(getattr(job, "limits", None), slot), clock.job():
                    answer = function(job, shelf)
            except BaseException as error:  # no such module, a full disk, a late TimedOut
                status = "memory" if isinstance(error, MemoryError) else "failed"
                cause = f"{type(error).__name__}: {error}".removesuffix(": ")
                answer = WorkerDied(cause, traceback.format_exc(), status, meter.costs())
            _reopen_streams()
            pickle.dump(answer, answers)
            answers.flush()


def _reopen_streams() -> None:
    """Open the standard streams that a model has closed, for the next job."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # usually gets this number, the lowest free one
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def _end_with_parent(parent: int) -> None:
    """End this process and its children when its parent has ended, even if it was killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    _end_group(os.getpid())
    os._exit(1)
