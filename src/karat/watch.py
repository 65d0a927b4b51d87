"""Watch: how much a process and its children hold, when their time is over, and how to end them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable

import psutil

from karat.limits import TIME_IS_UP, Limits

#: seconds between two looks at a process
PAUSE = 0.05
#: seconds a job has to end by itself after it was told that its time is over
GRACE = 5.0


class Ended(Exception):
    """A process was ended because its job went over a limit: which one, and by how much."""

    def __init__(self, status: str, cause: str) -> None:
        self.status = status
        self.cause = cause
        super().__init__(cause)


class Watch:
    """Waits for a process's answer, and ends the process when its job goes over a limit.

    ``peak_mb`` is the most memory that was seen, ``cpu_seconds`` the CPU time when it was last
    looked at, ``seconds`` how long the job has taken.
    """

    def __init__(self, pid: int, limits: Limits) -> None:
        self.pid = pid
        self.limits = limits
        self.begun = time.monotonic()
        self.peak_mb = 0.0
        self.cpu_seconds = 0.0
        self.family: list[psutil.Process] = []
        # the worker alone: to look for its children takes as long as a small job
        self._cpu_before = _cpu(_alone(pid))
        self._told: float | None = None

    @property
    def seconds(self) -> float:
        """How long the job has taken so far."""
        return time.monotonic() - self.begun

    @property
    def costs(self) -> dict[str, float]:
        """What was seen of the job, as its record has it."""
        return {
            "seconds": self.seconds,
            "cpu_seconds": self.cpu_seconds,
            "peak_memory_mb": self.peak_mb,
        }

    def wait(self, answered: Callable[[float], bool]) -> None:
        """Return when there is an answer; ``answered`` waits for one so many seconds."""
        while not answered(PAUSE):
            self._look()

    def _look(self) -> None:
        self.family = _tree(self.pid) or self.family
        held, limit = _memory(self.family), self.limits.memory_mb
        self.peak_mb = max(self.peak_mb, held)
        self.cpu_seconds = max(self.cpu_seconds, _cpu(self.family) - self._cpu_before)
        if limit is not None and held > limit:
            self.end()
            raise Ended("memory", f"it held {held:,.0f} MB; {limit:,} MB are allowed")
        deadline = self.limits.deadline
        if deadline is None or self.seconds < deadline:
            return
        if self._told is None:
            self._told = self.seconds
            if TIME_IS_UP is not None:
                with contextlib.suppress(OSError):
                    os.kill(self.pid, TIME_IS_UP)
        if self.seconds - self._told > GRACE or TIME_IS_UP is None:
            self.end()
            raise Ended("timeout", f"{over_time(self.limits)}; it had to be killed")

    def end(self) -> None:
        """End the process and its children, those too whose parent is gone since."""
        end_tree(self.pid)
        _each(self.family, psutil.Process.kill)


def over_time(limits: Limits) -> str:
    """Return the sentence about a job that took too long.

    >>> over_time(Limits(seconds=60))
    'over the time limit of 60 s, ended after 120 s'
    """
    return f"over the time limit of {limits.seconds:g} s, ended after {limits.deadline:g} s"


def _memory(processes: Iterable[psutil.Process]) -> float:
    """Return the memory that processes hold, in MB."""
    total = 0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += process.memory_info().rss
    return total / 2**20


def _cpu(processes: Iterable[psutil.Process]) -> float:
    """Return the CPU seconds of processes, those of children that have ended too."""
    total = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            total += sum(process.cpu_times()[:4])
    return total


def has_children(pid: int) -> bool:
    """Return whether a process has left children running."""
    return len(_tree(pid)) > 1


def end_tree(pid: int) -> None:
    """End a process and all its children, those with a session of their own too.

    All are stopped first, so that none can start another while it is looked for.
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
        os.killpg(pid, signal.SIGKILL)  # a worker leads a group; its parent may be gone already


def _tree(pid: int) -> list[psutil.Process]:
    try:
        return [each for root in _alone(pid) for each in (root, *root.children(recursive=True))]
    except psutil.Error:
        return []


def _alone(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid)]
    except psutil.Error:
        return []


def _each(processes: Iterable[psutil.Process], act: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error):
            act(process)
