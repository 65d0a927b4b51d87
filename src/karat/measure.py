"""Costs of a job: seconds by phase, CPU seconds and peak memory."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Meter:
    """Measures wall and CPU seconds, seconds by phase and peak memory since it was created."""

    def __init__(self) -> None:
        _forget_peak()
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
    with suppress(OSError, ValueError), open("/proc/self/status") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    try:
        import resource
    except ImportError:  # Windows has no such module
        import psutil

        return float(psutil.Process().memory_info().rss) / 2**20
    unit = 2**20 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def _forget_peak() -> None:
    # Linux has one peak per process; writing 5 resets it, so that each job has its own
    with suppress(OSError), open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
