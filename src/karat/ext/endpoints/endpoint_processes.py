"""Which process holds something: names of processes that other processes can check, and locks.

A lock of the system is free when its process ends. Where a file system has none (``ENOLCK``), a
file with the name of its owner stands for the lock.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from karat.core.files import has_locks

#: seconds after which the owner of a file is taken for dead if its process cannot be seen
UNSEEN_SECONDS = 30.0
#: the longest wait for a lock, in seconds
LONGEST_WAIT = 120.0


@dataclass(frozen=True)
class ProcessName:
    """A process: the machine or container it runs in, its number, and when it started."""

    machine: str
    pid: int
    started: float

    @classmethod
    def current(cls) -> ProcessName:
        """Return the name of this process."""
        return _name(os.getpid())

    def is_alive(self) -> bool | None:
        """Return whether the process runs; None if it is of another machine or container."""
        import psutil

        if self.machine != _machine():
            return None
        try:
            process = psutil.Process(self.pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return False
            return abs(process.create_time() - self.started) < 1.0
        except psutil.NoSuchProcess:
            return False
        except psutil.Error:
            return True


@cache
def _name(pid: int) -> ProcessName:
    import psutil

    return ProcessName(_machine(), pid, psutil.Process(pid).create_time())


@cache
def _machine() -> str:
    """Return a name in which process numbers are unique: the start of a machine or container."""
    parts = [platform.node()]
    with suppress(OSError):
        parts = [
            Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            os.readlink("/proc/self/ns/pid"),
        ]
    return " ".join(parts)


@contextmanager
def owner_file(path: Path) -> Iterator[None]:
    """Hold a lock that is a file with the name of this process; wait while another has it."""
    deadline = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            break
        except FileExistsError:
            _remove_if_dead(path)
        if time.monotonic() > deadline:
            raise TimeoutError(f"another process has held {path} for {LONGEST_WAIT:.0f} seconds")
        time.sleep(0.005)
    try:
        with os.fdopen(descriptor, "w") as file:
            json.dump(vars(ProcessName.current()), file)
        yield
    finally:
        with suppress(OSError):
            path.unlink()


def _remove_if_dead(path: Path) -> None:
    """Remove the file of an owner that does not run any more."""
    with suppress(OSError):
        text, age = path.read_text(), time.time() - path.stat().st_mtime
        alive = None
        with suppress(ValueError, TypeError):
            alive = ProcessName(**json.loads(text)).is_alive()
        if alive is False or (alive is None and age > UNSEEN_SECONDS):
            stale = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
            path.rename(stale)  # one process gets it
            if stale.read_text() != text:  # another one had removed it and taken the lock
                os.link(stale, path)
            stale.unlink()


@cache
def locks_in(folder: Path) -> bool:
    """Return whether the file system of a folder has locks, which is tried once."""
    return has_locks(folder)
