"""The cache folder and temporary folders of runs."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: prefix of temporary folders, followed by the process id
SCRATCH = "karat-run-"


def cache_folder() -> Path:
    """Return the folder for vectors and downloads: ``$KARAT_CACHE`` or the platform's own."""
    if chosen := os.environ.get("KARAT_CACHE"):
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Caches"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "karat"


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Create a temporary folder for one run; remove those of killed runs."""
    _sweep(Path(tempfile.gettempdir()))
    made = tempfile.TemporaryDirectory(
        prefix=f"{SCRATCH}{os.getpid()}-", ignore_cleanup_errors=True
    )
    with made as folder:
        yield Path(folder)


def _sweep(place: Path) -> None:
    import psutil

    for folder in place.glob(f"{SCRATCH}*-*"):
        pid = folder.name.removeprefix(SCRATCH).partition("-")[0]
        with contextlib.suppress(OSError):  # another user's, or already removed
            if pid.isdecimal() and not psutil.pid_exists(int(pid)) and not folder.is_symlink():
                shutil.rmtree(folder, ignore_errors=True)
