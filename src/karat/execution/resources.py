"""Resources of a job: limits on time, memory, cores and GPUs, and what it used of them.

Limits are passed to the model and enforced twice. The process that runs a job raises TimedOut when
its parent signals the deadline, cannot allocate more than its memory limit (Linux), and computes on
its own cores and GPUs. Its parent watches the memory and time of the process tree and ends it.
"""

from __future__ import annotations

import logging
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from karat.core.dataset import Dataset

#: environment variables with the number of threads of BLAS and OpenMP libraries
THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
#: a job is ended at most this many seconds after the model's own time limit
OVERHEAD = 3600.0
#: the signal by which the parent process announces the deadline; None on Windows
DEADLINE_SIGNAL = getattr(signal, "SIGUSR1", None)
#: the environment variable that lists the GPUs of a process
VISIBLE = "CUDA_VISIBLE_DEVICES"
#: where the limits of the container are (Linux)
CGROUPS = Path("/sys/fs/cgroup")
#: number of timings per batch size; the median is reported
REPEATS = 5
#: seconds between two looks at a process
PAUSE = 0.05
#: seconds a job has to end by itself after its deadline signal
GRACE = 5.0

log = logging.getLogger(__name__)


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

    def as_params(self) -> dict[str, Any]:
        """Return the limits that are set, by the names of model parameters."""
        names = ("max_runtime_seconds", "max_mem_size_mb", "cores", "gpus")
        values = zip(names, astuple(self), strict=True)
        return {name: value for name, value in values if value is not None}


class Clock:
    """Raises TimedOut in the main thread when the parent signals it while a job runs."""

    def __init__(self) -> None:
        self.running = False
        if DEADLINE_SIGNAL is not None:
            signal.signal(DEADLINE_SIGNAL, self._ring)

    def _ring(self, *_: object) -> None:
        if self.running:
            self.running = False
            raise TimedOut

    @contextmanager
    def job(self) -> Iterator[None]:
        """React to the signal inside this context only."""
        self.running = True
        try:
            yield
        finally:
            self.running = False


@contextmanager
def limits_enforced(limits: Limits | None, slot: int = 0) -> Iterator[None]:
    """Apply the memory, core and GPU limits of a job to this process.

    ``slot`` is the number of the process; it selects other cores and GPUs for each process.
    """
    limits = limits or Limits()
    with ExitStack() as stack:
        if limits.memory_mb is not None and os.path.exists("/proc/self/status"):
            _limit_memory(limits.memory_mb, stack)
        if limits.cores is not None:
            _limit_cores(limits.cores, slot, stack)
        if limits.gpus is not None and (gpus := visible_gpus()):
            before = os.environ.get(VISIBLE)
            stack.callback(restore_environment, {VISIBLE: before})
            os.environ[VISIBLE] = ",".join(_share(gpus, limits.gpus, slot))
        yield


@contextmanager
def restored_folder() -> Iterator[None]:
    """Restore the current folder, whatever the code of a model does when it is imported."""
    folder = os.getcwd()
    try:
        yield
    finally:
        os.chdir(folder)


@contextmanager
def restored_process() -> Iterator[None]:
    """Restore the current folder, ``sys.path`` and the environment, whatever a model changes."""
    folder, path, environment = os.getcwd(), list(sys.path), dict(os.environ)
    try:
        yield
    finally:
        os.chdir(folder)
        sys.path[:] = path
        if dict(os.environ) != environment:
            os.environ.clear()
            os.environ.update(environment)


def restore_environment(before: Mapping[str, str | None]) -> None:
    """Set environment variables to earlier values; None means unset."""
    for name, value in before.items():
        os.environ.pop(name, None) if value is None else os.environ.update({name: value})


def _limit_memory(megabytes: int, stack: ExitStack) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    stack.callback(resource.setrlimit, resource.RLIMIT_DATA, before)
    # memory that is reserved but never touched, such as BLAS buffers, does not count
    reserved = max(_status_kb("VmData") - _status_kb("RssAnon"), 0) * 1024
    resource.setrlimit(resource.RLIMIT_DATA, (megabytes * 2**20 + reserved, before[1]))


def _limit_cores(count: int, slot: int, stack: ExitStack) -> None:
    from threadpoolctl import threadpool_limits

    if hasattr(os, "sched_setaffinity"):
        before = os.sched_getaffinity(0)
        stack.callback(os.sched_setaffinity, 0, before)
        if count < len(before):
            os.sched_setaffinity(0, _share(sorted(before), count, slot))
    stack.enter_context(threadpool_limits(count))


def _status_kb(name: str) -> int:
    """Return a value of /proc/self/status in KB; 0 if there is none."""
    with suppress(OSError, ValueError), open("/proc/self/status") as status:
        return next((int(line.split()[1]) for line in status if line.startswith(f"{name}:")), 0)
    return 0


def visible_gpus() -> list[str]:
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


class Meter:
    """Measures wall and CPU seconds, seconds by phase and peak memory since it was created."""

    def __init__(self) -> None:
        # Linux has one peak per process, and each job needs its own
        with suppress(OSError), open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        self.started = time.perf_counter()
        self.cpu_started = time.process_time()
        self.seconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the seconds spent in this context to a phase."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun

    def costs(self) -> dict[str, float]:
        """Return the seconds by phase, the total, CPU seconds and the peak memory so far."""
        return {
            **{f"{name}_seconds": seconds for name, seconds in self.seconds.items()},
            "seconds": time.perf_counter() - self.started,
            "cpu_seconds": time.process_time() - self.cpu_started,
            "peak_memory_mb": peak_memory(),
        }


def peak_memory() -> float:
    """Return the peak memory of this process in MB; on Linux, since the last reset."""
    if peak := _status_kb("VmHWM"):
        return peak / 1024
    try:
        import resource
    except ImportError:  # Windows has no such module
        return float(psutil.Process().memory_info().rss) / 2**20
    unit = 2**20 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def inference_seconds(
    answer: Callable[[Dataset], Any], test: Dataset, sizes: Sequence[int], seed: int
) -> dict[str, float]:
    """Return the seconds per batch by batch size; sizes above the test fold are omitted.

    >>> from karat.core.dataset import Dataset
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": range(9), "y": range(9)})
    >>> data = Dataset.from_table(table, "y", kind="regression")
    >>> sorted(inference_seconds(lambda part: None, data, [1, 5, 100], seed=0))
    ['1', '5']
    """
    seconds_by_size = {}
    for size in [size for size in sizes if size <= len(test)]:
        rng = np.random.default_rng([seed, size])
        taken = []
        for _ in range(REPEATS):
            part = test.take(rng.choice(len(test), size, replace=False))
            begun = time.perf_counter()
            answer(part)
            taken.append(time.perf_counter() - begun)
        seconds_by_size[str(size)] = float(np.median(taken))
    return seconds_by_size


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
        sizes: list[int] = []
        _each(self.family, lambda process: sizes.append(process.memory_info().rss))
        held, limit = sum(sizes) / 2**20, self.limits.memory_mb
        self.peak_mb = max(self.peak_mb, held)
        self.cpu_seconds = max(self.cpu_seconds, _cpu(self.family) - self._cpu_before)
        if limit is not None and held > limit:
            self._exceeded("memory", f"used {held:,.0f} MB; the memory limit is {limit:,} MB")
        deadline = self.limits.deadline
        if deadline is None or self.seconds < deadline:
            return
        if self._signaled is None:
            self._signaled = self.seconds
            if DEADLINE_SIGNAL is not None:
                with suppress(OSError):
                    os.kill(self.pid, DEADLINE_SIGNAL)
        if self.seconds - self._signaled > GRACE or DEADLINE_SIGNAL is None:
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


def _cpu(processes: Iterable[psutil.Process]) -> float:
    """Return the CPU seconds of processes and of their children that have ended."""
    seconds: list[float] = []
    _each(processes, lambda process: seconds.append(sum(process.cpu_times()[:4])))
    return sum(seconds)


def has_children(pid: int) -> bool:
    """Return whether a process has running children."""
    return bool(children(pid))


def children(pid: int) -> list[int]:
    """Return the process ids of the children of a process."""
    try:
        return [child.pid for child in psutil.Process(pid).children()]
    except psutil.Error:
        return []


def adopt_orphans() -> None:
    """Become the parent of descendants whose parents end, so that they are counted and ended.

    Linux only; elsewhere a process that detaches itself twice outlives its job.
    """
    _prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def end_with_parent(number: int) -> None:
    """Receive a signal when the thread that started this process ends (Linux)."""
    _prctl(1, number)  # PR_SET_PDEATHSIG


def enter_cgroup() -> None:
    """Move this process into a cgroup of its own, which ends with it, where that is allowed."""
    with suppress(OSError, StopIteration):
        folder = _cgroup(os.getpid()) / f"karat-{os.getpid()}"
        for _ in range(5):  # another process may remove it before it is in use
            folder.mkdir(exist_ok=True)
            with suppress(FileNotFoundError):
                (folder / "cgroup.procs").write_text(str(os.getpid()))
                return


def remove_cgroups() -> None:
    """Remove the cgroups of ended processes; those that are in use cannot be removed."""
    with suppress(OSError, StopIteration):
        for folder in _cgroup(os.getpid()).glob("karat-*"):
            with suppress(OSError):
                folder.rmdir()


def container_cores(root: Path = CGROUPS) -> int | None:
    """Return how many cores the limit of the container amounts to, at least 1; None without one."""
    version_1 = [f"cpu/cpu.cfs_{name}_us" for name in ("quota", "period")]
    for files in (["cpu.max"], version_1):
        with suppress(OSError, ValueError):
            quota, period = map(int, " ".join((root / file).read_text() for file in files).split())
            if quota > 0 and period > 0:
                return max(1, math.ceil(quota / period))
    return None


def _cgroup(pid: int) -> Path:
    """Return the folder of the cgroup (version 2) of a process."""
    mounts = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
    mount = next(fields[1] for fields in mounts if fields[2] == "cgroup2")
    lines = Path(f"/proc/{pid}/cgroup").read_text().splitlines()
    inside = next(line for line in lines if line.startswith("0::")).removeprefix("0::")
    return Path(mount) / inside.strip("/")


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def end_tree(pid: int) -> None:
    """End a process and all its children, also those in a session of their own.

    A cgroup of its own is ended at once. Otherwise all processes are suspended first, so that none
    can start another one meanwhile.
    """
    with suppress(OSError, StopIteration):
        group = _cgroup(pid)
        if group.name == f"karat-{pid}":
            (group / "cgroup.kill").write_text("1")
    seen: dict[int, psutil.Process] = {}
    for _ in range(3):
        new = [process for process in _tree(pid) if process.pid not in seen]
        if not new:
            break
        _each(new, psutil.Process.suspend)
        seen |= {process.pid: process for process in new}
    _each(seen.values(), psutil.Process.kill)
    with suppress(OSError, AttributeError):
        os.killpg(pid, signal.SIGKILL)  # a worker leads a group; its parent may have ended


def _tree(pid: int) -> list[psutil.Process]:
    try:
        return [
            process for root in _process(pid) for process in (root, *root.children(recursive=True))
        ]
    except psutil.Error:
        return []


def _process(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid)]
    except psutil.Error:
        return []


def _each(processes: Iterable[psutil.Process], act: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with suppress(psutil.Error):
            act(process)
