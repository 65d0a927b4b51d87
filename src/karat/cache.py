"""Vectors on disk, found by what they are made of, never by a name.

The key is a hash of the model's identity (code, parameters, versions, files) and of the items, so
other data or other parameters can never return old vectors. Entries are written into a folder of
their own and renamed into place: writers at the same time cannot harm each other.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Entry:
    """One kept matrix: where it lies, what it is of, and its size on disk."""

    folder: Path
    about: Mapping[str, Any]
    bytes: int


class VectorCache:
    """A folder of memory-mapped matrices, each with the ids or facts kept beside it."""

    def __init__(self, root: Path) -> None:
        self.root = root / "vectors"

    @staticmethod
    def key(*parts: str) -> str:
        """Return the key of a matrix from everything it depends on."""
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def folder(self, key: str) -> Path:
        """Return where the entry of a key lies, whether it exists or not."""
        return self.root / key[:2] / key

    def get(self, key: str) -> np.ndarray | None:
        """Return the matrix of a key, memory-mapped, or nothing; a damaged entry counts as none."""
        folder = self.folder(key)
        try:
            json.loads((folder / "about.json").read_text())
            return np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError):
            return None

    def put(self, key: str, matrix: np.ndarray, about: Mapping[str, Any]) -> Path:
        """Keep a matrix and return its folder; if another writer was first, theirs stays."""
        folder = self.folder(key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
        try:
            np.save(draft / "vectors.npy", matrix, allow_pickle=False)
            (draft / "about.json").write_text(json.dumps(dict(about), indent=1))
            self._place(draft, key)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return folder

    def _place(self, draft: Path, key: str) -> None:
        folder = self.folder(key)
        for last in (False, True):
            try:
                os.rename(draft, folder)
                return
            except OSError:
                if self.get(key) is not None:
                    return
                if last:
                    raise
                # what is left of a damaged entry stands in the way
                shutil.rmtree(folder, ignore_errors=True)

    def entries(self) -> Iterator[Entry]:
        """Yield what is kept, in the order of the keys; drafts of others at work are left out."""
        for folder in sorted(self.root.glob("??/*")):
            if folder.name.startswith("."):
                continue
            try:
                about = json.loads((folder / "about.json").read_text())
                yield Entry(folder, about, _bytes_in(folder))
            except (OSError, ValueError):
                continue  # half removed or cut short: as good as not there

    def clear(self) -> int:
        """Remove all vectors and return how many bytes that freed."""
        before = _bytes_in(self.root)
        shutil.rmtree(self.root, ignore_errors=True)
        return before - _bytes_in(self.root)


def _bytes_in(folder: Path) -> int:
    size = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # another process may remove it meanwhile
            size += file.stat().st_size if file.is_file() else 0
    return size
