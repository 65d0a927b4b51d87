"""Execute jobs in this process or in worker processes, with one BLAS thread each.

A worker runs jobs of one model only, so that a model cannot change what another one computes. On
Linux, workers are forked from a template process that has loaded the libraries and never runs a
model; elsewhere each is a new Python process. They communicate over pipes: a script needs no
``__main__`` guard, and its classes are sent to them. If a worker dies, its job fails and the worker
is replaced. Jobs with limits always run in workers, which are ended when their job exceeds a limit.
"""

from __future__ import annotations

import contextlib
import faulthandler
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
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from karat.core.registry import load_object, register_user_components, user_components
from karat.errors import DefinitionError
from karat.execution.job import ObjectStore
from karat.execution.resources import (
    THREADS,
    Clock,
    Ended,
    Limits,
    Meter,
    Watch,
    adopt_orphans,
    end_tree,
    has_children,
    limits_enforced,
    restore_environment,
    restored_process,
)
from karat.execution.template import PRELOADED, Template, environment

#: number of characters kept of the output of a dead worker
LOG_LENGTH = 20_000
#: seconds a worker that no longer answers has to end by itself
PATIENCE = 5
#: seconds without an answer after which a running job is reported
STALL = 600.0
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


@dataclass(frozen=True)
class Event:
    """What happens while a job runs: the name of a method of Progress, and its arguments."""

    name: str
    arguments: tuple[Any, ...]


#: receives the events of a job
Report = Callable[[Any, Event], None]


def available_cores() -> int:
    """Return how many cores this process may use: its CPU affinity and container limits."""
    from joblib import cpu_count

    return int(cpu_count())


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread: faster for small jobs, and reproducible scores."""
    from threadpoolctl import threadpool_limits

    # numba refuses to compile when this variable changes after its threads were started
    names = [name for name in THREADS if name != "NUMBA_NUM_THREADS"]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with threadpool_limits(1):
            yield
    finally:
        restore_environment(before)


def execute(
    jobs: Sequence[Any],
    work: str,
    shelf: ObjectStore,
    workers: int = 0,
    report: Report = lambda job, event: None,
) -> Generator[tuple[Any, Any]]:
    """Yield each job with the result of ``work(job, shelf)``, in the order in which they finish.

    ``work`` is a ``"package.module:name"``. With 0 workers, jobs without limits run in this
    process. If a worker dies, the result is a WorkerDied. ``report`` receives events, such as that
    a job has been running for long.
    """
    if workers < 1 and not any(getattr(job, "limits", None) for job in jobs):
        function = load_object(work)
        with one_thread():
            for job in jobs:
                with restored_process(), _stall_timer(job, report):
                    answer = function(job, shelf)
                yield job, answer
        return
    save(shelf)
    waiting = _JobQueue(jobs)
    done: queue.SimpleQueue[tuple[Worker, Any, Any]] = queue.SimpleQueue()
    slots = range(max(1, min(workers, len(jobs))))
    pool = [Worker(work, shelf.folder, slot, report) for slot in slots]
    for worker in pool:
        threading.Thread(target=worker.drain, args=(waiting, done), daemon=True).start()
    try:
        for _ in jobs:
            worker, job, answer = done.get()
            yield job, answer
            worker.handled.release()
    finally:
        for worker in pool:
            worker.stop()


@contextlib.contextmanager
def _stall_timer(job: Any, report: Report) -> Iterator[None]:
    """Report the job when it has been running for long."""
    timer = threading.Timer(STALL, report, (job, Event("stalled", (STALL,))))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class _JobQueue:
    """Jobs in their order, except that a worker gets jobs of the model it has run before."""

    def __init__(self, jobs: Sequence[Any]) -> None:
        self._jobs: list[Any] = list(jobs)
        self._first = 0
        self._places: dict[Any, deque[int]] = {}
        for place, job in enumerate(jobs):
            self._places.setdefault(_model(job), deque()).append(place)
        self._lock = threading.Lock()

    def take(self, model: Any) -> Any:
        """Remove and return the first job of a model, or the first job; None if there is none."""
        with self._lock:
            while self._first < len(self._jobs) and self._jobs[self._first] is None:
                self._first += 1
            if self._first == len(self._jobs):
                return None
            # all jobs of a model are in its list, so the first job is the first of its list
            places = self._places.get(model) or self._places[_model(self._jobs[self._first])]
            place = places.popleft()
            job, self._jobs[place] = self._jobs[place], None
            return job


def _model(job: Any) -> Any:
    """Return the key of a job's encoder or model; jobs of different ones never share a worker."""
    return getattr(job, "encoder", "") or getattr(job, "model", None)


def save(shelf: ObjectStore) -> None:
    """Write the shelf and the user's registered components for other processes."""
    shelf.put("parts", user_components())
    try:
        shelf.save()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise DefinitionError(
            f"a component cannot be pickled to send it to worker processes ({error}); use "
            f"0 workers."
        ) from error


class Worker:
    """One worker process at a time, used by one thread at a time."""

    def __init__(
        self,
        work: str,
        folder: Path,
        slot: int = 0,
        report: Report = lambda job, event: None,
    ) -> None:
        self.work = work
        self.folder = folder
        self.slot = slot
        self.report = report
        self.process: Any = None
        self.model: Any = None
        self.stopped = False
        self.handled = threading.Semaphore(0)
        self._lock = threading.Lock()

    def drain(self, waiting: _JobQueue, done: queue.SimpleQueue[tuple[Worker, Any, Any]]) -> None:
        """Run jobs one after the other, each when the result before is handled."""
        while not self.stopped and (job := waiting.take(self.model)) is not None:
            try:
                with _stall_timer(job, self.report):
                    answer = self.ask(job)
            except Exception as error:
                answer = error
            done.put((self, job, answer))
            self.handled.acquire()
        self.stop()

    def ask(self, job: Any) -> Any:
        """Send a job to the process and return its answer, or raise WorkerDied."""
        if self.process is not None and self.model != _model(job):
            self._end()  # the next model gets a new process
        self.model = _model(job)
        process = self.process or self._start()
        self.output.clear()  # the output of earlier jobs
        limits: Limits | None = getattr(job, "limits", None) or None
        watch = Watch(process.pid, limits) if limits else None
        try:
            pickle.dump(job, process.stdin)
            process.stdin.flush()
            answer = self._answer(job, process.stdout, watch)
        except Exception as error:
            raise self._died(process, error, watch) from None
        if watch is not None and has_children(process.pid):
            # child processes that a job left running are ended together with the worker
            self._end()
        return answer

    def _answer(self, job: Any, answers: IO[bytes], watch: Watch | None) -> Any:
        """Report the events of a job until its answer comes."""
        while True:
            if watch is not None:
                watch.wait(lambda pause: bool(select.select([answers], [], [], pause)[0]))
            answer = pickle.load(answers)
            if not isinstance(answer, Event):
                return answer
            self.report(job, answer)

    def _end(self) -> None:
        """End the process and its children; the worker can start another one."""
        process, self.process = self.process, None
        if process is not None:
            end_tree(process.pid)
            _exit_code(process)

    def _died(self, process: Any, error: Exception, watch: Watch | None) -> WorkerDied:
        """End the process and its children; return why there is no answer."""
        self.process = None
        code = None
        # stop() closes the pipes while they are read, which may raise anything
        lost = self.stopped or isinstance(error, OSError | EOFError)
        if lost:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=PATIENCE)  # it is ending by itself
        (watch.end if watch is not None else lambda: end_tree(process.pid))()
        _exit_code(process)
        self.reader.join(timeout=PATIENCE)
        output = b"".join(self.output).decode(errors="replace")[-LOG_LENGTH:]
        status, cause = "failed", f"cannot read the worker's answer: {error}"
        if isinstance(error, Ended):
            status, cause = error.status, error.cause
        elif lost:
            cause = "the worker no longer answered and was ended"
            if code is not None:
                cause = _cause(code, output)
        log.warning("worker %d ended: %s", process.pid, cause)
        return WorkerDied(cause, output, status, watch.costs if watch else {})

    def stop(self) -> None:
        """End the process and its children at once."""
        with self._lock:
            self.stopped = True
            process = self.process
        self.handled.release()
        if process is not None and process.poll() is None:
            end_tree(process.pid)
            process.wait()

    def _start(self) -> Any:
        with self._lock:  # a concurrent stop() must find either no process or this one
            if self.stopped:
                raise WorkerDied("the run was stopped", "")
            self.process = process = _new_process()
        log.info("worker %d started", process.pid)
        self.output: deque[bytes] = deque()
        self.reader = threading.Thread(
            target=_listen, args=(process.stderr, self.output), daemon=True
        )
        self.reader.start()
        place = (sys.path, os.getcwd(), dict(os.environ))
        try:
            pickle.dump((place, self.work, str(self.folder), self.slot), process.stdin)
            process.stdin.flush()
            pickle.load(process.stdout)  # ready: the time of a job does not include the start
        except Exception as error:
            raise self._died(process, error, None) from None
        return process


def _new_process() -> Any:
    """Start a worker process: forked from the template on Linux, a new Python elsewhere."""
    if sys.platform == "linux":
        try:
            return Template.current().fork()
        except OSError as error:  # such as an environment without Unix sockets
            log.warning("cannot fork workers: %s", error)
    return subprocess.Popen(
        [sys.executable, "-c", _START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,  # only the parent handles Ctrl-C
    )


def _listen(stream: IO[bytes], output: deque[bytes]) -> None:
    with contextlib.suppress(OSError, ValueError), stream:
        while piece := os.read(stream.fileno(), 4096):
            output.append(piece)
            while len(output) > 1 and sum(map(len, output)) > 2 * LOG_LENGTH:
                output.popleft()


def _exit_code(process: Any) -> int:
    try:
        return int(process.wait(timeout=PATIENCE))
    except subprocess.TimeoutExpired:
        process.kill()
        return int(process.wait())


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
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    adopt_orphans()
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # models must not print into the pipe or read from it
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    place, work, store, slot = pickle.load(jobs)
    _enter(*place)
    clock = Clock()
    function: Callable[[Any, ObjectStore], Any] = load_object(work)
    shelf = ObjectStore(Path(store))
    register_user_components(shelf.get("parts"))
    list(map(importlib.import_module, PRELOADED))
    _send(answers, "ready")
    shelf.put("report", lambda event: _send(answers, event))
    with one_thread(), contextlib.suppress(EOFError):
        while True:
            job = pickle.load(jobs)
            meter = Meter()
            limits = limits_enforced(getattr(job, "limits", None), slot)
            try:
                with limits, clock.job(), restored_process():
                    answer = function(job, shelf)
            except BaseException as error:  # no such module, a full disk, a late TimedOut
                status = "memory" if isinstance(error, MemoryError) else "failed"
                cause = f"{type(error).__name__}: {error}".removesuffix(": ")
                answer = WorkerDied(cause, traceback.format_exc(), status, meter.costs())
            _reopen_streams()
            _send(answers, answer)


def _enter(path: list[str], folder: str, variables: Mapping[str, str]) -> None:
    """Use the module path, the folder and the environment of the main process."""
    sys.path[:] = path
    os.chdir(folder)
    os.environ.clear()
    os.environ.update({**variables, **dict.fromkeys(THREADS, "1")})


def _send(stream: IO[bytes], answer: Any) -> None:
    pickle.dump(answer, stream)
    stream.flush()


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


def _end_with_parent(parent: int) -> NoReturn:
    """End this process and its children when its parent has ended, even if it was killed."""
    while os.getppid() == parent:
        time.sleep(0.5)
    end_tree(os.getpid())
    os._exit(1)
