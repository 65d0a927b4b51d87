"""Watch a worker process: memory and time of its process tree, and how to end it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from collections.abc import Callable, Iterable

import psutil

from karat.limits import TIME_IS_UP, Limits

#: seconds between two looks at a process
PAUSE = 0.05
#: seconds a job has to end by itself after its deadline signal
GRACE = 5.0

log = logging.getLogger("karat.watch")


class Ended(Exception):
    """A process was ended because its job exceeded a limit."""

    def __init__(self, status: str, cause: str) -> None:
        self.status = status
        self.cause = cause
        super().__init__(cause)


class Watch:
    """Waits for the answer of a process and ends the process when its job exceeds a limit.

    ``peak_mb`` and ``cpu_seconds`` are what the last looks found; ``seconds`` is the job's time.
    """

    def __init__(self, pid: int, limits: Limits) -> None:
        self.pid = pid
        self.limits = limits
        self.begun = time.monotonic()
        self.peak_mb = 0.0
        self.cpu_seconds = 0.0
        self.family: list[psutil.Process] = []
        # without its children: listing all processes takes as long as a small job
        self._cpu_before = _cpu(_process(pid))
        self._signaled: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds since the job began."""
        return time.monotonic() - self.begun

    @property
    def costs(self) -> dict[str, float]:
        """The costs of the job, by the names its record uses."""
        return {
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "peak_memory_mb": self.peak_mb,
        }

    def wait(self, answered: Callable[[float], bool]) -> None:
        """Return when ``answered(seconds)``, which waits up to that long, returns True."""
        while not answered(PAUSE):
            self._look()

    def _look(self) -> None:
        self.family = _tree(self.pid) or self.family
        held, limit = _memory(self.family), self.limits.memory_mb
        self.peak_mb = max(self.peak_mb, held)
        self.cpu_seconds = max(self.cpu_seconds, _cpu(self.family) - self._cpu_before)
        if limit is not None and held > limit:
            self._exceeded("memory", f"used {held:,.0f} MB; the memory limit is {limit:,} MB")
        deadline = self.limits.deadline
        if deadline is None or self.seconds < deadline:
            return
        if self._signaled is None:
            self._signaled = self.seconds
            if TIME_IS_UP is not None:
                with contextlib.suppress(OSError):
                    os.kill(self.pid, TIME_IS_UP)
        if self.seconds - self._signaled > GRACE or TIME_IS_UP is None:
            seconds = f"{self.limits.seconds:g} s, ended after {deadline:g} s"
            self._exceeded("timeout", f"over the time limit of {seconds}; the process was killed")

    def _exceeded(self, status: str, cause: str) -> None:
        log.warning("worker %d: %s", self.pid, cause)
        self.end()
        raise Ended(status, cause)

    def end(self) -> None:
        """End the process and its children, including those whose parent has already ended."""
        end_tree(self.pid)
        _each(self.family, psutil.Process.kill)


def _memory(processes: Iterable[psutil.Process]) -> float:
    """Return the resident memory of processes in MB."""
    sizes: list[int] = []
    _each(processes, lambda process: sizes.append(process.memory_info().rss))
    return sum(sizes) / 2**20


def _cpu(processes: Iterable[psutil.Process]) -> float:
    """Return the CPU seconds of processes and of their children that have ended."""
    seconds: list[float] = []
    _each(processes, lambda process: seconds.append(sum(process.cpu_times()[:4])))
    return sum(seconds)


def has_children(pid: int) -> bool:
    """Return whether a process has running children."""
    return len(_tree(pid)) > 1


def end_tree(pid: int) -> None:
    """End a process and all its children, also those in a session of their own.

    All are suspended first, so that none can start another one meanwhile.
    """
    seen: dict[int, psutil.Process] = {}
    for _ in range(3):
        new = [process for process in _tree(pid) if process.pid not in seen]
        if not new:
            break
        _each(new, psutil.Process.suspend)
        seen |= {process.pid: process for process in new}
    _each(seen.values(), psutil.Process.kill)
    with contextlib.suppress(OSError, AttributeError):
        os.killpg(pid, signal.SIGKILL)  # a worker leads a group; its parent may have ended


def _tree(pid: int) -> list[psutil.Process]:
    try:
        return [each for root in _process(pid) for each in (root, *root.children(recursive=True))]
    except psutil.Error:
        return []


def _process(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid)]
    except psutil.Error:
        return []


def _each(processes: Iterable[psutil.Process], act: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            act(process)
