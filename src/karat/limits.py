"""Limits of a job: seconds, memory and cores; told to the model, held in its process.

The process that runs a job raises TimedOut when its parent says that the time is over, cannot
allocate more than its share (Linux), and computes on as many cores as it may.
"""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

#: at most so many seconds above its own limit a model may take before its job is ended
OVERHEAD = 3600.0
#: the signal by which a parent says that the time is over, where there are such signals
TIME_IS_UP = getattr(signal, "SIGUSR1", None)


#: by which CUDA is told what cards there are
VISIBLE = "CUDA_VISIBLE_DEVICES"


class TimedOut(BaseException):
    """The time of a job is over; not an Exception, so that ``except Exception`` lets it pass."""


@dataclass(frozen=True)
class Limits:
    """What a job may take; nothing where there is no limit.

    Attributes
    ----------
    seconds
        What the model is told; its job is ended after twice that, or an hour later.
    memory_mb
        The most memory of the job's process and its children together.
    cores
        On how many cores, with as many threads, it may compute.
    gpus
        How many graphics cards it sees, those of no other job at the same time.
    """

    seconds: float | None = None
    memory_mb: int | None = None
    cores: int | None = None
    gpus: int | None = None

    def __bool__(self) -> bool:
        given = (self.seconds, self.memory_mb, self.cores, self.gpus)
        return any(value is not None for value in given)

    @property
    def deadline(self) -> float | None:
        """After how many seconds the whole job is ended.

        >>> Limits(seconds=60).deadline, Limits(seconds=7200).deadline
        (120, 10800.0)
        """
        return None if self.seconds is None else min(2 * self.seconds, self.seconds + OVERHEAD)

    def told(self) -> dict[str, Any]:
        """Return the limits by the names that models have parameters of."""
        named = {
            "max_runtime_seconds": self.seconds,
            "max_mem_size_mb": self.memory_mb,
            "cores": self.cores,
            "gpus": self.gpus,
        }
        return {name: value for name, value in named.items() if value is not None}


class Clock:
    """Raises TimedOut in the main thread when the parent says so, and only inside a job."""

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
        """Hear the clock inside."""
        self.running = True
        try:
            yield
        finally:
            self.running = False


@contextlib.contextmanager
def held(limits: Limits | None, slot: int = 0) -> Iterator[None]:
    """Hold this process, the one of this number, to the memory and the cores of a job."""
    if not limits:
        yield
        return
    with _memory(limits.memory_mb), _cores(limits.cores, slot), _gpus(limits.gpus, slot):
        yield


@contextlib.contextmanager
def _memory(megabytes: int | None) -> Iterator[None]:
    data = _data_limit()
    if megabytes is None or data is None:
        yield
        return
    import resource

    before = resource.getrlimit(data)
    # what is reserved and never touched, such as the buffers of BLAS, is nobody's memory
    wanted = megabytes * 2**20 + _reserved()
    resource.setrlimit(data, (wanted, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(data, before)


def cards() -> list[str]:
    """Return the graphics cards this process may use, by CUDA's names for them."""
    told = os.environ.get(VISIBLE)
    if told is not None:
        return [name.strip() for name in told.split(",") if name.strip() not in ("", "-1")]
    try:
        return [str(i) for i in range(len(os.listdir("/proc/driver/nvidia/gpus")))]
    except OSError:
        return []


@contextlib.contextmanager
def _gpus(count: int | None, slot: int) -> Iterator[None]:
    found = cards()
    if count is None or not found:
        yield
        return
    before = os.environ.get(VISIBLE)
    start = slot * count % len(found)
    os.environ[VISIBLE] = ",".join((found * 2)[start : start + count])
    try:
        yield
    finally:
        if before is None:
            del os.environ[VISIBLE]
        else:
            os.environ[VISIBLE] = before


def _data_limit() -> int | None:
    """Return the limit of what a process allocates; file maps do not count there as elsewhere."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    return getattr(resource, "RLIMIT_DATA", None) if os.path.exists("/proc/self/status") else None


def _reserved() -> int:
    held = {"VmData": 0, "RssAnon": 0}
    with open("/proc/self/status") as status:
        for line in status:
            name = line.partition(":")[0]
            if name in held:
                held[name] = int(line.split()[1]) * 1024
    return max(held["VmData"] - held["RssAnon"], 0)


@contextlib.contextmanager
def _cores(count: int | None, slot: int) -> Iterator[None]:
    if count is None:
        yield
        return
    from threadpoolctl import threadpool_limits

    bound = hasattr(os, "sched_setaffinity")
    before = os.sched_getaffinity(0) if bound else set()
    if bound and count < len(before):
        # processes side by side take cores side by side
        ordered = sorted(before)
        start = slot * count % len(ordered)
        os.sched_setaffinity(0, (ordered * 2)[start : start + count])
    try:
        with threadpool_limits(count):
            yield
    finally:
        if bound:
            os.sched_setaffinity(0, before)
