"""Execute jobs in this process or in worker processes, with one BLAS thread each.

A worker runs jobs of one model only, so that a model cannot change what another one computes. On
Linux, workers are forked from a template process that has loaded the libraries and never runs a
model; elsewhere each is a new Python process. They communicate over pipes: a script needs no
``__main__`` guard, and its classes are sent to them. If a worker dies, its job fails and the worker
is replaced. Jobs with limits always run in workers, which are ended when their job exceeds a limit.
"""

from __future__ import annotations

import atexit
import contextlib
import faulthandler
import functools
import gc
import importlib
import logging
import os
import pickle
import queue
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

from karat.core.registry import (
    has_user_components,
    load_object,
    register_user_components,
    user_components,
)
from karat.errors import DefinitionError
from karat.execution.object_store import ObjectStore
from karat.execution.resources import (
    THREADS,
    Clock,
    Ended,
    Limits,
    Meter,
    Watch,
    adopt_orphans,
    children,
    container_cores,
    end_tree,
    end_with_parent,
    enter_cgroup,
    has_children,
    limits_enforced,
    remove_cgroups,
    restore_environment,
    restored_process,
)

#: modules that nearly every job imports
PRELOADED = (
    "karat.execution.runner",
    "karat.metrics.supervised",
    "karat.probes.estimators",
    "pydantic_core",  # a job needs it after the model, which may change the module path
    "sklearn.base",
    "sklearn.model_selection",
    "sklearn.preprocessing",
)
#: those that every job needs, whatever its model uses
NEEDED = ("karat.execution.runner", "karat.metrics.supervised", "pydantic_core")
#: modules that the main process and workers use, and those of them that every job needs
SHARED_BY_ALL = ("karat.models.table_predictor", "pydantic_core")
SHARED = (*SHARED_BY_ALL, "joblib", "scipy.special")
_START_TEMPLATE = (
    "from karat.execution.workers import serve_jobs, serve_template; "
    "serve_template({}); serve_jobs()"
)
#: number of characters kept of the output of a dead worker
LOG_LENGTH = 20_000
#: seconds a worker that no longer answers has to end by itself
PATIENCE = 5
#: seconds without an answer after which a running job is reported
STALL = 600.0
_START = "from karat.execution.workers import serve_jobs; serve_jobs()"
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


def environment() -> dict[str, str]:
    """Return the environment of worker processes: this one, with one thread each."""
    return {**os.environ, **dict.fromkeys(THREADS, "1")}


class Template:
    """A process that has loaded the libraries, runs no model and is forked for every worker.

    It ends its workers when this process has ended, even if it was killed.
    """

    _current: Template | None = None
    _lock = threading.Lock()

    def __init__(self, *, copied: bool = False, preload: bool = True) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            if copied:
                self.process: Any = _Copied(theirs, ours, preload)
            else:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _START_TEMPLATE.format(theirs.fileno())],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    env=environment() | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                    start_new_session=True,
                )
        self.control = ours
        self.owner = os.getpid()
        self._asking = threading.Lock()

    @classmethod
    def current(cls) -> Template:
        """Return the template of this process, started on first use."""
        with cls._lock:
            template = cls._current
            if (
                template is None
                or template.owner != os.getpid()
                or template.process.poll() is not None
            ):
                cls._current = template = cls()
                atexit.register(template.close)
            return template

    @classmethod
    def copy_this_process(cls, *, preload: bool = True) -> None:
        """Start the template as a copy of this process, which has loaded no code of the user.

        It need not import again what this process has imported. If this process has threads, or
        components that users registered, which may be others in later runs, it is not copied: the
        first worker starts the template. Without ``preload`` it loads nothing else: a single worker
        loads what its model uses.
        """
        list(map(importlib.import_module, SHARED if preload else SHARED_BY_ALL))
        if cls._current is None and threading.active_count() == 1 and not has_user_components():
            cls._current = template = cls(copied=True, preload=preload)
            atexit.register(template.close)

    def fork(self) -> Forked:
        """Return a new worker process."""
        (jobs, stdin), *others = (os.pipe() for _ in range(4))
        theirs = [jobs, *(written for _, written in others)]
        ours = [stdin, *(read for read, _ in others)]
        try:
            with self._asking:
                socket.send_fds(self.control, [b"f"], theirs)
                answer = self.control.recv(8, socket.MSG_WAITALL)
        finally:
            list(map(os.close, theirs))
        if len(answer) < 8:
            list(map(os.close, ours))
            raise OSError("the template process has ended")
        return Forked(struct.unpack("q", answer)[0], *ours)

    def close(self) -> None:
        """End the process, and with it all workers."""
        if self.owner == os.getpid():
            self.control.close()
            self.process.kill()
            self.process.wait()
            remove_cgroups()


class _Copied:
    """A copy of this process that runs as the template, with the methods of Popen used here."""

    def __init__(self, theirs: socket.socket, ours: socket.socket, preload: bool) -> None:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        self.returncode: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # BLAS threads survive a fork
            self.pid = os.fork()
        if self.pid == 0:
            _run_as_template(theirs, ours, preload)

    def poll(self, options: int = os.WNOHANG) -> int | None:
        """Return the exit code, or None while the process runs."""
        if self.returncode is None:
            try:
                pid, state = os.waitpid(self.pid, options)
            except ChildProcessError:  # another function has waited for it
                pid, state = self.pid, 0
            if pid:
                self.returncode = os.waitstatus_to_exitcode(state)
        return self.returncode

    def wait(self) -> int | None:
        """Wait for the end of the process and return its exit code."""
        return self.poll(0)

    def kill(self) -> None:
        """End the process."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _release_files(open_files: set[int]) -> None:
    """Replace the files that this process has inherited by an empty one.

    Otherwise a pipe of the main process would stay open as long as the template runs. The numbers
    stay in use, because objects that still refer to them close them when they are deleted.
    """
    empty = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the folder itself
            os.fstat(int(name))
            if int(name) not in {empty, *open_files}:
                os.dup2(empty, int(name), inheritable=int(name) < 3)
    os.close(empty)


def _run_as_template(theirs: socket.socket, ours: socket.socket, preload: bool) -> NoReturn:
    """Run a copy of the main process as the template, as a new Python would."""
    try:
        ours.close()
        os.setsid()
        os.environ.update(dict.fromkeys(THREADS, "1"))
        _release_files({2, theirs.fileno()})
        # the caller may have replaced the streams by objects without a file
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, buffering, closefd=False, encoding="utf-8", errors="replace")
            for number, (mode, buffering) in enumerate((("r", -1), ("w", -1), ("w", 1)))
        )
        atexit._clear()
        logger = logging.getLogger("karat")
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)
        sys.argv = ["-c"]
        serve_template(theirs.detach(), preload=preload)

        serve_jobs(PRELOADED if preload else NEEDED)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


class Forked:
    """A worker process forked from the template, with the methods of Popen that are used here."""

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int, status: int) -> None:
        self.pid = pid
        self.stdin, self.stdout = os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb")
        self.stderr = os.fdopen(stderr, "rb")
        self.status = os.fdopen(status, "rb")
        self.returncode: int | None = None
        self._lock = threading.Lock()

    def poll(self) -> int | None:
        """Return the exit code, or None while the process runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end of the process and return its exit code."""
        with self._lock:
            if self.returncode is None:
                if not select.select([self.status], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired("worker", timeout or 0.0)
                answer = self.status.read(4)
                self.returncode = struct.unpack("i", answer)[0] if answer else -signal.SIGKILL
                for stream in (self.stdin, self.stdout, self.status):
                    with contextlib.suppress(OSError):
                        stream.close()
            return self.returncode

    def kill(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)


def serve_template(descriptor: int, *, preload: bool = True) -> None:
    """Run as the template: fork a worker for every message; only a worker returns from here."""
    control, parent = socket.socket(fileno=descriptor), os.getppid()
    control.set_inheritable(False)
    awake, alarm = _wakeup_pipe()
    end_with_parent(signal.SIGTERM)
    adopt_orphans()
    _load_libraries(preload)
    workers: dict[int, int] = {}
    while os.getppid() == parent:
        readable = select.select([control.fileno(), awake], [], [])[0]
        if awake in readable:
            with contextlib.suppress(BlockingIOError):
                os.read(awake, 4096)
            _reap(workers)
        if control.fileno() not in readable:
            continue
        message, descriptors, *_ = socket.recv_fds(control, 1, 4)
        if not message:
            break
        *streams, status = descriptors
        template = os.getpid()
        if (pid := os.fork()) == 0:
            for inherited in (control.detach(), awake, alarm, status, *workers.values()):
                os.close(inherited)
            return _become_worker(streams, template)
        list(map(os.close, streams))
        workers[pid] = status
        control.send(struct.pack("q", pid))
    for pid in workers:
        end_tree(pid)
    os._exit(0)


def _load_libraries(preload: bool) -> None:
    """Load what jobs use, and compute what every worker would compute in its first job."""
    gc.disable()
    if preload:
        list(map(importlib.import_module, PRELOADED))
        from sklearn.dummy import DummyClassifier

        DummyClassifier().fit([[0.0], [1.0]], [0, 1])  # it looks for plugins of dataframes
    from karat.execution.diagnostics import guard

    guard.prepare()
    _thread_pools(len(sys.modules))
    gc.freeze()  # workers share the memory of these objects with this process
    gc.enable()


def _wakeup_pipe() -> tuple[int, int]:
    """Return a pipe that becomes readable when a signal arrives."""
    awake, alarm = os.pipe()
    for end in (awake, alarm):
        os.set_blocking(end, False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(alarm, warn_on_full_buffer=False)
    return awake, alarm


def _become_worker(streams: Sequence[int], template: int) -> None:
    """Use the streams as standard input, output and error; end with the template."""
    end_with_parent(signal.SIGKILL)
    if os.getppid() != template:  # it has already ended
        os._exit(1)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    enter_cgroup()
    for standard, stream in enumerate(streams):
        os.dup2(stream, standard)
        os.close(stream)


def _reap(workers: dict[int, int]) -> None:
    """Report the exit codes of ended workers; end the processes that they left."""
    while True:
        try:
            pid, state = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            break
        if (status := workers.pop(pid, None)) is not None:
            with contextlib.suppress(OSError):
                os.write(status, struct.pack("i", os.waitstatus_to_exitcode(state)))
            os.close(status)
    for pid in set(children(os.getpid())) - set(workers):
        end_tree(pid)
    remove_cgroups()


def available_cores() -> int:
    """Return how many cores this process may use: its CPU affinity and container limits."""
    affinity = getattr(os, "sched_getaffinity", None)
    allowed = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(allowed, container_cores() or allowed)


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP use one thread: faster for small jobs, and reproducible scores."""
    # numba refuses to compile when this variable changes after its threads were started
    names = [name for name in THREADS if name != "NUMBA_NUM_THREADS"]
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        with _thread_pools(len(sys.modules)).limit(limits=1):
            yield
    finally:
        restore_environment(before)


@functools.lru_cache(maxsize=1)
def _thread_pools(loaded: int) -> Any:
    """Return the thread pools of the loaded libraries, found again after an import."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def execute(
    jobs: Sequence[Any],
    work: str,
    store: ObjectStore,
    workers: int = 0,
    report: Report = lambda job, event: None,
) -> Generator[tuple[Any, Any]]:
    """Yield each job with the result of ``work(job, store)``, in the order in which they finish.

    ``work`` is a ``"package.module:name"``. With 0 workers, jobs without limits run in this
    process. If a worker dies, the result is a WorkerDied. ``report`` receives events, such as that
    a job has been running for long.
    """
    if workers < 1 and not any(getattr(job, "limits", None) for job in jobs):
        function = load_object(work)
        with one_thread(), _StallWatch(report) as watch:
            for job in jobs:
                with restored_process(), watch.job(job):
                    answer = function(job, store)
                yield job, answer
        return
    save(store)
    waiting = _JobQueue(jobs)
    done: queue.SimpleQueue[tuple[Worker, Any, Any]] = queue.SimpleQueue()
    slots = range(max(1, min(workers, len(jobs))))
    pool = [Worker(work, store.folder, slot, report) for slot in slots]
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


class _StallWatch:
    """Reports jobs that run for long, from one thread for all jobs that run one after the other."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._current: tuple[Any, float] | None = None
        self._ended = threading.Event()

    def __enter__(self) -> _StallWatch:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    @contextlib.contextmanager
    def job(self, job: object) -> Iterator[None]:
        """Watch a job while it runs in this context."""
        self._current = (job, time.monotonic())
        try:
            yield
        finally:
            self._current = None

    def _watch(self) -> None:
        pause, reported = STALL, None
        while not self._ended.wait(pause):
            current, pause = self._current, STALL
            if current is None or current is reported:
                continue
            pause = current[1] + STALL - time.monotonic()
            if pause <= 0:
                self._report(current[0], Event("stalled", (STALL,)))
                reported, pause = current, STALL


class _JobQueue:
    """Jobs in their order, except that a worker gets jobs of the model it has run before."""

    def __init__(self, jobs: Sequence[Any]) -> None:
        self._jobs: list[Any] = list(jobs)
        self._first = 0
        self._places: dict[Any, deque[int]] = {}
        for position, job in enumerate(jobs):
            self._places.setdefault(_model(job), deque()).append(position)
        self._lock = threading.Lock()

    def take(self, model: object) -> Any:
        """Remove and return the first job of a model, or the first job; None if there is none."""
        with self._lock:
            while self._first < len(self._jobs) and self._jobs[self._first] is None:
                self._first += 1
            if self._first == len(self._jobs):
                return None
            # all jobs of a model are in its list, so the first job is the first of its list
            places = self._places.get(model) or self._places[_model(self._jobs[self._first])]
            position = places.popleft()
            job, self._jobs[position] = self._jobs[position], None
            return job


def _model(job: object) -> Any:
    """Return the key of a job's encoder or model; jobs of different ones never share a worker."""
    return getattr(job, "encoder", "") or getattr(job, "model", None)


def save(store: ObjectStore) -> None:
    """Write the store and the user's registered components for other processes."""
    store.put("parts", user_components())
    try:
        store.save()
    except (TypeError, AttributeError, pickle.PicklingError) as error:
        raise DefinitionError(
            f"a component cannot be pickled to send it to worker processes ({error}); use "
            f"0 workers."
        ) from error


class Worker:
    """One worker process at a time, used by one thread at a time."""

    def __init__(
        self, work: str, folder: Path, slot: int = 0, report: Report = lambda job, event: None
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
        with _StallWatch(self.report) as watch:
            while not self.stopped and (job := waiting.take(self.model)) is not None:
                try:
                    with watch.job(job):
                        answer = self.ask(job)
                except Exception as error:
                    answer = error
                done.put((self, job, answer))
                self.handled.acquire()
        self.stop()

    def ask(self, job: object) -> Any:
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

    def _answer(self, job: object, answers: IO[bytes], watch: Watch | None) -> Any:
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
        is_lost = self.stopped or isinstance(error, OSError | EOFError)
        if is_lost:
            with contextlib.suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=PATIENCE)  # it is ending by itself
        (watch.end if watch is not None else lambda: end_tree(process.pid))()
        _exit_code(process)
        self.reader.join(timeout=PATIENCE)
        output = b"".join(self.output).decode(errors="replace")[-LOG_LENGTH:]
        status, cause = "failed", f"cannot read the worker's answer: {error}"
        if isinstance(error, Ended):
            status, cause = error.status, error.cause
        elif is_lost:
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
        surroundings = (sys.path, os.getcwd(), dict(os.environ))
        try:
            pickle.dump((surroundings, self.work, str(self.folder), self.slot), process.stdin)
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


def serve_jobs(preloaded: Sequence[str] = PRELOADED) -> None:
    """Run as a worker: read jobs from standard input, write answers to standard output.

    It first loads the ``preloaded`` modules, so that the time of the first job does not count them.
    """
    faulthandler.enable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, args=(os.getppid(),), daemon=True).start()
    adopt_orphans()
    jobs, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # models must not print into the pipe or read from it
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    surroundings, work, folder, slot = pickle.load(jobs)
    _enter(*surroundings)
    clock = Clock()
    function: Callable[[Any, ObjectStore], Any] = load_object(work)
    store = ObjectStore(Path(folder))
    register_user_components(store.get("parts"))
    list(map(importlib.import_module, preloaded))
    _send(answers, "ready")
    store.put("report", lambda event: _send(answers, event))
    with one_thread(), contextlib.suppress(EOFError):
        while True:
            job = pickle.load(jobs)
            meter = Meter()
            limits = limits_enforced(getattr(job, "limits", None), slot)
            try:
                with limits, clock.job(), restored_process():
                    answer = function(job, store)
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


def _send(stream: IO[bytes], answer: object) -> None:
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
