"""Finding run folders: a folder is one if it holds the plan of a run."""

from collections.abc import Iterator, Sequence
from pathlib import Path

#: the file that makes a folder a run folder
RUN_FILE = "run.json"


def is_run_folder(path: Path) -> bool:
    """Return whether a path is a run folder."""
    return (path / RUN_FILE).is_file()


def find_run_folders(path: Path, levels: Sequence[int] = (1,)) -> Iterator[Path]:
    """Yield the run folders in a folder, by level and then by name.

    Level 0 is the folder itself, 1 the folders in it, and so on. A level is read only when it is
    asked for, as the folders of jobs may be large.
    """
    for level in levels:
        yield from sorted(file.parent for file in path.glob("*/" * level + RUN_FILE))
