"""Vectors on disk, found by a hash of the model and the items.

The key is a hash of the model's identity (code, parameters, versions, files) and of the items, so
other data or parameters never return old vectors. An entry is written to a temporary folder and
renamed, so several processes can write at the same time.

Vectors of texts are stored with a hash of each text, and the matrices of one encoder form a family:
a text that occurs in another dataset is found there and not encoded again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: number of bytes of the hash of a text
MARK = 16


@dataclass(frozen=True)
class Entry:
    """A cached matrix: its folder, its facts and its size on disk."""

    folder: Path
    about: Mapping[str, Any]
    bytes: int


@dataclass(frozen=True)
class Kept:
    """Cached vectors of some texts: their positions in the request, and the time they took."""

    places: np.ndarray
    vectors: np.ndarray
    seconds: float


def mark(text: str) -> bytes:
    """Return the hash of a text."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=MARK).digest()


class VectorCache:
    """A folder of memory-mapped matrices, each with a file of facts."""

    def __init__(self, root: Path) -> None:
        self.root = root / "vectors"

    @staticmethod
    def key(*parts: str) -> str:
        """Return the key of a matrix from everything it depends on."""
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def folder(self, key: str) -> Path:
        """Return the folder of a key, whether it exists or not."""
        return self.root / key[:2] / key

    def get(self, key: str) -> np.ndarray | None:
        """Return the matrix of a key, memory-mapped; None if it is missing or damaged."""
        folder = self.folder(key)
        try:
            json.loads((folder / "about.json").read_text())
            return np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        except (ValueError, OSError, EOFError):
            return None

    def put(
        self, key: str, matrix: np.ndarray, about: Mapping[str, Any], marks: Sequence[bytes] = ()
    ) -> Path:
        """Store a matrix and return its folder; an entry of another writer is not replaced.

        With ``marks``, the hash of each row's text, texts are found in the family of ``about``.
        """
        folder = self.folder(key)
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
        try:
            np.save(draft / "vectors.npy", matrix, allow_pickle=False)
            (draft / "about.json").write_text(json.dumps(dict(about), indent=1))
            if marks:
                texts = np.frombuffer(b"".join(marks), dtype=f"V{MARK}")
                np.save(draft / "texts.npy", texts, allow_pickle=False)
            self._place(draft, key)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        if marks:
            family = self._family(str(about["family"]))
            family.mkdir(parents=True, exist_ok=True)
            (family / key).touch()
        return folder

    def find(self, family: str, marks: Sequence[bytes]) -> Iterator[Kept]:
        """Yield the cached vectors of these texts in a family, each text once."""
        left = {each: place for place, each in enumerate(marks)}
        folder = self._family(family)
        for key in sorted(path.name for path in folder.iterdir()) if folder.is_dir() else ():
            matrix = self.get(key) if left else None
            rows = self._marks(key)
            if matrix is None or len(rows) != len(matrix):
                continue
            hits = [(left.pop(each), row) for row, each in enumerate(rows) if each in left]
            if hits:
                places, found = np.array(hits).T
                share = len(hits) / len(set(rows))
                yield Kept(places, matrix[found], share * self._seconds(key))

    def _seconds(self, key: str) -> float:
        try:
            return float(json.loads((self.folder(key) / "about.json").read_text())["seconds"])
        except (ValueError, OSError, KeyError):
            return 0.0

    def _family(self, family: str) -> Path:
        return self.root / "families" / family

    def _marks(self, key: str) -> list[bytes]:
        try:
            marks = np.load(self.folder(key) / "texts.npy", allow_pickle=False)
        except (ValueError, OSError, EOFError):
            return []
        return [each.tobytes() for each in marks]

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
                # a damaged entry is replaced
                shutil.rmtree(folder, ignore_errors=True)

    def entries(self) -> Iterator[Entry]:
        """Yield the entries in the order of their keys, without drafts of other writers."""
        for folder in sorted(self.root.glob("??/*")):
            if folder.name.startswith("."):
                continue
            try:
                about = json.loads((folder / "about.json").read_text())
                yield Entry(folder, about, _bytes_in(folder))
            except (OSError, ValueError):
                continue  # partly removed or damaged

    def clear(self) -> int:
        """Remove all vectors and return the number of freed bytes."""
        before = _bytes_in(self.root)
        shutil.rmtree(self.root, ignore_errors=True)
        return before - _bytes_in(self.root)


def _bytes_in(folder: Path) -> int:
    size = 0
    for file in folder.rglob("*"):
        with suppress(OSError):  # removed by another process
            size += file.stat().st_size if file.is_file() else 0
    return size
