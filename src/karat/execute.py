"""Execute: jobs in this process or in worker processes, one BLAS thread each.

Workers are plain Python processes that talk over pipes, so a script needs no ``__main__`` guard and
its own classes reach them. A worker that dies costs its job a failed record and is replaced. Jobs
with limits always run in workers, which are ended when their job goes over one; a worker is used
again as long as it is well.
"""

from __future__ import annotations

import contextlib
import importlib
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
from functools import partial
from pathlib import Path
from typing import IO, Any

from karat.errors import DefinitionError
from karat.limits import Clock, Limits, held
from karat.measure import Meter
from karat.registry import adopt, load_object, users_parts
from karat.shelf import Shelf
from karat.watch import Ended, Watch, end_tree, has_children

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
#: what nearly every job imports, loaded before a worker is ready
PRELOADED = ("sklearn.base", "sklearn.model_selection", "sklearn.preprocessing")
#: seconds a worker that has stopped answering gets to end by itself
PATIENCE = 5
_START = "from karat.execute import serve; serve()"


class WorkerDied(Exception):
    """A job could not be run to its end in a worker: the cause, and what the worker said.

    ``status`` is "failed", or "timeout" or "memory" where a limit ended it; ``costs`` what its
    parent saw of it.
    """

    def __init__(
        self, cause: str, said: str, status: str = "failed", costs: dict[str, float] | None = None
    ) -> None:
        self.cause = cause
        self.said = said
        self.status = status
        self.costs = costs or {}
        super().__init__(cause, said, status, self.costs)


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
    if workers <= 1 and not any(getattr(job, "limits", None) for job in jobs):
        function = load_object(work)
        with one_thread():
            for job in jobs:
                yield job, function(job, shelf)
        return
    save(shelf)
    yield from _in_workers(jobs, work, shelf, max(1, min(workers, len(jobs))))


def save(shelf: Shelf) -> None:
    """Write the shelf, and the users' own parts with it, for other processes."""
    shelf.put("parts", users_parts())
    try:
        shelf.save()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise DefinitionError(
            f"a part of your own cannot be sent to worker processes ({error}); use one worker."
        ) from error


def _in_workers(
    jobs: Sequence[Any], work: str, shelf: Shelf, workers: int
) -> Iterator[tuple[Any, Any]]:
    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
    for job in jobs:
        waiting.put(job)
    crew = [Worker(work, shelf.folder, slot) for slot in range(workers)]
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
        self.said.clear()  # what it said in earlier jobs is not about this one
        limits: Limits | None = getattr(job, "limits", None) or None
        watch = Watch(process.pid, limits) if limits else None
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            if watch is not None:
                watch.wait(lambda seconds: _readable(process.stdout, seconds))
            answer = pickle.load(process.stdout)
        except Exception as error:
            raise self._died(process, error, watch) from None
        if watch is not None and has_children(process.pid):
            # what a job leaves running is ended with the worker; the next job gets a new one
            self.process = None
            watch.end()
            _ended(process)
        return answer

    def _died(
        self, process: subprocess.Popen[bytes], error: Exception, watch: Watch | None
    ) -> WorkerDied:
        """Return why there is no answer, after the process and its children are gone."""
        self.process = None
        (watch.end if watch is not None else lambda: _end_group(process.pid))()
        code = _ended(process)
        self.reader.join(timeout=PATIENCE)
        said = b"".join(self.said).decode(errors="replace")[-LOG_LENGTH:]
        costs = watch.costs if watch else {}
        if isinstance(error, Ended):
            return WorkerDied(error.cause, said, error.status, costs)
        if isinstance(error, OSError | EOFError):
            return WorkerDied(_cause(code, said), said, costs=costs)
        return WorkerDied(f"the worker's answer cannot be read: {error}", said, costs=costs)

    def stop(self) -> None:
        """End the process, whatever it is doing, and what it has started."""
        with self._lock:
            self.stopped = True
            process = self.process
        if process is not None and process.poll() is None:
            end_tree(process.pid)
            process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        with self._lock:  # who stops us meanwhile must meet either no process or this one
            if self.stopped:
                raise WorkerDied("the run was stopped", "")
            self.process = process = subprocess.Popen(
                [sys.executable, "-c", _START],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, **{name: "1" for name in _THREADS}},
                start_new_session=True,  # Ctrl-C in a terminal is the parent's to answer
            )
        assert process.stdin is not None and process.stdout is not None
        self.said: deque[bytes] = deque()
        listen = (process.stderr, self.said)
        self.reader = threading.Thread(target=_listen, args=listen, daemon=True)
        self.reader.start()
        try:
            pickle.dump((sys.path, self.work, str(self.folder), self.slot), process.stdin)
            process.stdin.flush()
            pickle.load(process.stdout)  # it is ready: what it took so far is no job's time
        except Exception as error:
            raise self._died(process, error, None) from None
        return process


def _listen(stream: IO[bytes], said: deque[bytes]) -> None:
    """Keep the last of what a process says, however much that is."""
    with contextlib.suppress(OSError, ValueError):
        while piece := os.read(stream.fileno(), 4096):
            said.append(piece)
            while len(said) > 1 and sum(map(len, said)) > 2 * LOG_LENGTH:
                said.popleft()


def _readable(stream: Any, seconds: float) -> bool:
    return bool(select.select([stream], [], [], seconds)[0])


def _end_group(pid: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(pid, signal.SIGKILL)


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
    sys.path[:], work, folder, slot = pickle.load(jobs)
    clock = Clock()
    function: Callable[[Any, Shelf], Any] = load_object(work)
    shelf = Shelf(Path(folder))
    adopt(shelf.get("parts"))
    for module in PRELOADED:
        importlib.import_module(module)
    pickle.dump("ready", answers)
    answers.flush()
    with one_thread():
        while True:
            try:
                job = pickle.load(jobs)
            except EOFError:
                return
            answer = _answer(partial(function, job, shelf), job, clock, slot)
            _heal()
            pickle.dump(answer, answers)
            answers.flush()


def _heal() -> None:
    """Open again what a model has closed, so that the next job finds it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: most often this one
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)


def _answer(act: Callable[[], Any], job: Any, clock: Clock, slot: int) -> Any:
    meter = Meter()
    try:
        with held(getattr(job, "limits", None), slot), clock.job():
            return act()
    except BaseException as error:  # code this process cannot find, a full disk, a late clock
        status = "memory" if isinstance(error, MemoryError) else "failed"
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        return WorkerDied(said, traceback.format_exc(), status, meter.costs())


def _follow(parent: int) -> None:
    """End this process when its parent is gone, even if that was killed without a word."""
    while os.getppid() == parent:
        time.sleep(0.5)
    _end_group(os.getpid())  # what a model has started goes along
    os._exit(1)
