"""The template process, from which worker processes are forked (Linux).

It has loaded the libraries and never runs a model, so every worker starts clean and at once.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import logging
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import threading
import traceback
import warnings
from collections.abc import Sequence
from typing import Any, NoReturn

from karat.execution.resources import (
    THREADS,
    adopt_orphans,
    children,
    end_tree,
    end_with_parent,
    enter_cgroup,
    remove_cgroups,
)

#: modules that nearly every job imports
PRELOADED = (
    "karat.execution.runner",
    "karat.probes.heads.estimators",
    "pydantic_core",  # a job needs it after the model, which may change the module path
    "sklearn.base",
    "sklearn.model_selection",
    "sklearn.preprocessing",
)
#: modules that the main process and workers use
SHARED = ("joblib", "karat.models.automl", "pydantic_core", "scipy.special")
_START = (
    "from karat.execution.template import serve_template; serve_template({}); "
    "from karat.execution.workers import serve; serve()"
)


def environment() -> dict[str, str]:
    """Return the environment of worker processes: this one, with one thread each."""
    return {**os.environ, **dict.fromkeys(THREADS, "1")}


class Template:
    """A process that has loaded the libraries, runs no model and is forked for every worker.

    It ends its workers when this process has ended, even if it was killed.
    """

    _current: Template | None = None
    _lock = threading.Lock()

    def __init__(self, *, copied: bool = False) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            if copied:
                self.process: Any = _Copied(theirs, ours)
            else:
                self.process = subprocess.Popen(
                    [sys.executable, "-c", _START.format(theirs.fileno())],
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
            found = cls._current
            if found is None or found.owner != os.getpid() or found.process.poll() is not None:
                cls._current = found = cls()
                atexit.register(found.close)
            return found

    @classmethod
    def copy_this_process(cls) -> None:
        """Start the template as a copy of this process, which has loaded no code of the user.

        It need not import again what this process has imported. If this process has threads, it
        cannot be copied, and the first worker starts the template.
        """
        list(map(importlib.import_module, SHARED))
        if cls._current is None and threading.active_count() == 1:
            cls._current = found = cls(copied=True)
            atexit.register(found.close)

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

    def __init__(self, theirs: socket.socket, ours: socket.socket) -> None:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        self.returncode: int | None = None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # BLAS threads survive a fork
            self.pid = os.fork()
        if self.pid == 0:
            _run_as_template(theirs, ours)

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


def _release_files(kept: set[int]) -> None:
    """Replace the files that this process has inherited by an empty one.

    Otherwise a pipe of the main process would stay open as long as the template runs. The numbers
    stay in use, because objects that still refer to them close them when they are deleted.
    """
    empty = os.open(os.devnull, os.O_RDWR)
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # that of the folder itself
            os.fstat(int(name))
            if int(name) not in {empty, *kept}:
                os.dup2(empty, int(name), inheritable=int(name) < 3)
    os.close(empty)


def _run_as_template(theirs: socket.socket, ours: socket.socket) -> NoReturn:
    """Run a copy of the main process as the template, as a new Python would."""
    try:
        ours.close()
        os.setsid()
        os.environ.update(dict.fromkeys(THREADS, "1"))
        _release_files({2, theirs.fileno()})
        # the caller may have replaced the streams by objects without a file
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, closefd=False, encoding="utf-8", errors="replace")
            for number, mode in enumerate("rww")
        )
        atexit._clear()
        logger = logging.getLogger("karat")
        logger.handlers.clear()
        logger.setLevel(logging.NOTSET)
        sys.argv = ["-c"]
        serve_template(theirs.detach())
        from karat.execution.workers import serve

        serve()
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


def serve_template(descriptor: int) -> None:
    """Run as the template: fork a worker for every message; only a worker returns from here."""
    control, parent = socket.socket(fileno=descriptor), os.getppid()
    control.set_inheritable(False)
    awake, alarm = _wakeup_pipe()
    end_with_parent(signal.SIGTERM)
    adopt_orphans()
    _load_libraries()
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
        if (pid := os.fork()) == 0:
            for each in (control.detach(), awake, alarm, status, *workers.values()):
                os.close(each)
            return _become_worker(streams)
        list(map(os.close, streams))
        workers[pid] = status
        control.send(struct.pack("q", pid))
    for pid in workers:
        end_tree(pid)
    os._exit(0)


def _load_libraries() -> None:
    """Load what jobs use, and compute what every worker would compute in its first job."""
    list(map(importlib.import_module, PRELOADED))
    from sklearn.dummy import DummyClassifier

    from karat.execution.diagnostics import guard

    DummyClassifier().fit([[0.0], [1.0]], [0, 1])  # it looks for plugins of dataframes
    guard.prepare()
    gc.freeze()  # workers share the memory of these objects with this process


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


def _become_worker(streams: Sequence[int]) -> None:
    """Use the streams as standard input, output and error; end with the template."""
    end_with_parent(signal.SIGKILL)
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    enter_cgroup()
    for standard, each in enumerate(streams):
        os.dup2(each, standard)
        os.close(each)


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
