"""Small file systems, mounted where that is allowed (root)."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

#: the unit in which a file system has room
PAGE = 4096


@contextmanager
def small_disk(folder: Path, size: float) -> Iterator[None]:
    """Mount a file system of a size in an empty folder, which is made if it does not exist."""
    folder.mkdir(exist_ok=True)
    options = f"size={int(size) // PAGE * PAGE}"
    call = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    done = subprocess.run(call, capture_output=True, check=False) if shutil.which("mount") else None
    if done is None or done.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
