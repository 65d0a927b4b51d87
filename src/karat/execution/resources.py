"""Limits of a job: time, memory, cores and GPUs, passed to the model and enforced in its process.

The process that runs a job raises TimedOut when its parent signals the deadline, cannot allocate
more than its memory limit (Linux), and computes on its own cores and GPUs.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

#: a job is ended at most this many seconds after the model's own time limit
OVERHEAD = 3600.0
#: the signal by which the parent process announces the deadline; None on Windows
TIME_IS_UP = getattr(signal, "SIGUSR1", None)
#: the environment variable that lists the GPUs of a process
VISIBLE = "CUDA_VISIBLE_DEVICES"


class TimedOut(BaseException):
    """A job is over its deadline; not an Exception, so that ``except Exception`` ignores it."""


@dataclass(frozen=True)
class Limits:
    """Resources of a job; None means no limit.

    Attributes
    ----------
    seconds
        Passed to the model; the job is ended after twice that time, or one hour later.
    memory_mb
        Maximum memory of the job's process and its children together.
    cores
        Number of cores, and of threads.
    gpus
        Number of GPUs, used by no other job at the same time.
    """

    seconds: float | None = None
    memory_mb: int | None = None
    cores: int | None = None
    gpus: int | None = None

    def __bool__(self) -> bool:
        return any(value is not None for value in astuple(self))

    @property
    def deadline(self) -> float | None:
        """Seconds after which the whole job is ended.

        >>> Limits(seconds=60).deadline, Limits(seconds=7200).deadline
        (120, 10800.0)
        """
        return None if self.seconds is None else min(2 * self.seconds, self.seconds + OVERHEAD)

    def told(self) -> dict[str, Any]:
        """Return the limits that are set, by the names of model parameters."""
        names = ("max_runtime_seconds", "max_mem_size_mb", "cores", "gpus")
        values = zip(names, astuple(self), strict=True)
        return {name: value for name, value in values if value is not None}


class Clock:
    """Raises TimedOut in the main thread when the parent signals it while a job runs."""

    def __init__(self) -> None:
        self.running = False
        if TIME_IS_UP is not None:
            signal.signal(TIME_IS_UP, self._ring)

    def _ring(self, *_: Any) -> None:
        if self.running:
            self.running = False
            raise TimedOut

    @contextlib.contextmanager
    def job(self) -> Iterator[None]:
        """React to the signal inside this context only."""
        self.running = True
        try:
            yield
        finally:
            self.running = False


@contextlib.contextmanager
def held(limits: Limits | None, slot: int = 0) -> Iterator[None]:
    """Apply the memory, core and GPU limits of a job to this process.

    ``slot`` is the number of the process; it selects other cores and GPUs for each process.
    """
    limits = limits or Limits()
    with _memory(limits.memory_mb), _cores(limits.cores, slot), _gpus(limits.gpus, slot):
        yield


@contextlib.contextmanager
def _memory(megabytes: int | None) -> Iterator[None]:
    if megabytes is None or not os.path.exists("/proc/self/status"):  # RLIMIT_DATA: Linux only
        yield
        return
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    # memory that is reserved but never touched, such as BLAS buffers, does not count
    wanted = megabytes * 2**20 + _reserved()
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)


def _reserved() -> int:
    sizes = {"VmData": 0, "RssAnon": 0}
    with open("/proc/self/status") as status:
        for line in status:
            name = line.partition(":")[0]
            if name in sizes:
                sizes[name] = int(line.split()[1]) * 1024
    return max(sizes["VmData"] - sizes["RssAnon"], 0)


def cards() -> list[str]:
    """Return the GPUs this process may use, by their CUDA names."""
    visible = os.environ.get(VISIBLE)
    if visible is not None:
        return [name.strip() for name in visible.split(",") if name.strip() not in ("", "-1")]
    try:
        return [str(i) for i in range(len(os.listdir("/proc/driver/nvidia/gpus")))]
    except OSError:
        return []


def _share(things: list[Any], count: int, slot: int) -> list[Any]:
    """Return ``count`` of some things; consecutive slots get consecutive ones."""
    start = slot * count % len(things)
    return (things * 2)[start : start + count]


@contextlib.contextmanager
def _gpus(count: int | None, slot: int) -> Iterator[None]:
    found = cards()
    if count is None or not found:
        yield
        return
    before = os.environ.get(VISIBLE)
    os.environ[VISIBLE] = ",".join(_share(found, count, slot))
    try:
        yield
    finally:
        os.environ.pop(VISIBLE) if before is None else os.environ.update({VISIBLE: before})


@contextlib.contextmanager
def _cores(count: int | None, slot: int) -> Iterator[None]:
    if count is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    before = os.sched_getaffinity(0) if hasattr(os, "sched_setaffinity") else set()
    if count < len(before):
        os.sched_setaffinity(0, _share(sorted(before), count, slot))
    try:
        with threadpool_limits(count):
            yield
    finally:
        if before:
            os.sched_setaffinity(0, before)
