"""The printed leaderboard of large run folders, which is kept until something it shows changes.

A file in the cache folder holds what was printed. Its name is a hash of all that determines the
output: options, folders, the plan and the number, times and sizes of the records of each run, the
terminal, and the versions of Karat and its libraries.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console

from karat import __version__
from karat.core.files import cache_folder, write_atomic
from karat.errors import KaratError
from karat.results.compact import stamp_records
from karat.results.run import about_stamp

FOLDER = "printed"
#: outputs that are kept, the newest
MOST_FILES = 20
#: the leaderboard of fewer records is computed again
FEWEST_RECORDS = 5_000
LIBRARIES = ("click", "numpy", "pandas", "rich", "scipy")


@dataclass
class Printed:
    """The output of a command on these runs: ``stamps`` are those of the records of each run."""

    file: Path
    stamps: dict[Path, list[int]]
    _parts: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, paths: Sequence[Path], options: Mapping[str, Any]) -> Printed:
        """Return the output of the leaderboard of these folders with these options."""
        folders = [folder for path in paths for folder in _run_folders(path)]
        stamps = {folder: stamp_records(folder) for folder in folders}
        runs = [(os.path.realpath(f), about_stamp(f), stamps[f]) for f in folders]
        console = Console()
        facts = {
            "paths": [os.getcwd(), *map(str, paths)],
            "options": options,
            "runs": runs,
            "terminal": [console.width, console.color_system, console.no_color, console.encoding],
            "settings": sorted(item for item in os.environ.items() if item[0].startswith("KARAT_")),
            "code": [sys.version, __version__, *map(version, LIBRARIES), _code_stamp()],
        }
        digest = hashlib.sha256(json.dumps(facts, default=str).encode("utf-8", "replace"))
        return cls(cache_folder() / FOLDER / f"{digest.hexdigest()}.txt", stamps)

    def show(self) -> bool:
        """Print the output if it is kept; return whether it is."""
        try:
            text = self.file.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            return False
        sys.stdout.write(text)
        return True

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        """Record what is printed; after a warning, nothing can be kept."""
        shown = warnings.showwarning

        def show(*given: Any, **more: Any) -> None:
            self.stamps.clear()
            shown(*given, **more)

        with warnings.catch_warnings(), contextlib.redirect_stdout(_Copy(sys.stdout, self._parts)):
            warnings.showwarning = show
            yield

    def keep(self) -> None:
        """Keep what was recorded, if there are enough records; remove the oldest outputs."""
        if sum(count for count, *_ in self.stamps.values()) < FEWEST_RECORDS:
            return
        with contextlib.suppress(OSError, KaratError, UnicodeEncodeError):
            write_atomic(self.file, "".join(self._parts).encode())
            files = sorted(self.file.parent.glob("*.txt"), key=lambda path: path.stat().st_mtime_ns)
            for path in files[:-MOST_FILES]:
                path.unlink()


class _Copy:
    """A text stream whose output is also added to a list."""

    def __init__(self, stream: Any, parts: list[str]) -> None:
        self._stream, self._parts = stream, parts

    def write(self, text: str) -> int:
        written = self._stream.write(text)
        self._parts.append(text)
        return int(written)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _run_folders(path: Path) -> list[Path]:
    """Return a run folder, or those inside a folder."""
    if (path / "run.json").is_file():
        return [path]
    return sorted(found.parent for found in path.glob("*/run.json"))


def _code_stamp() -> list[int]:
    """Return the number, times and sizes of the files of the package."""
    root = Path(__file__).parents[1]
    files = [file.stat() for file in root.rglob("*.py")]
    return [
        len(files),
        sum(file.st_mtime_ns for file in files),
        sum(file.st_size for file in files),
    ]
