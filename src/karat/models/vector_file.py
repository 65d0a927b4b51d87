"""Vectors that already exist: a file or a table of them, looked up by item id."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError
from karat.models.base import StatelessEncoder

SUFFIXES = (".txt", ".vec", ".tsv", ".csv", ".npz")


class KnownVectors(StatelessEncoder):
    """An encoder that looks items up by id; an item it does not have is a row of NaN."""

    takes = ("entity",)

    def __init__(self, ids: list[Any], vectors: np.ndarray) -> None:
        self.ids = ids
        self.vectors = vectors

    def transform(self, items: pd.Series) -> np.ndarray:
        """Return the vectors of the items by their ids, NaN where there is none."""
        ids, vectors = self.vocabulary()
        found = ids.get_indexer(items.index)
        rows = np.asarray(vectors[np.maximum(found, 0)], dtype=vectors.dtype)
        rows[found < 0] = np.nan
        return rows

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids and their vectors."""
        return _checked(pd.Index(self.ids), np.asarray(self.vectors), "the given vectors")


class VectorFile(StatelessEncoder):
    """An encoder that reads a vector file: one entity and its numbers per line, or an ``.npz``.

    Text files are split at white space or tabs and may begin with a word2vec header; angle brackets
    around an IRI are left away. An ``.npz`` holds the arrays ``ids`` and ``vectors``.
    """

    takes = ("entity",)

    def __init__(self, path: str) -> None:
        self.path = path

    def transform(self, items: pd.Series) -> np.ndarray:
        """Return the vectors of the items by their ids, NaN where the file has none."""
        return self._known().transform(items)

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids of the file and their vectors."""
        return self._known().vocabulary()

    def fingerprint(self) -> str:
        """Return a hash of the file's bytes: another file of the same name is another model."""
        with _existing(self.path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _known(self) -> KnownVectors:
        if not hasattr(self, "known_"):
            self.known_ = KnownVectors(*read_vectors(_existing(self.path)))
        return self.known_

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}


def _existing(path: str) -> Path:
    file = Path(path)
    if not file.is_file():
        raise DataError(f"there is no vector file {path}.")
    return file


def read_vectors(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the ids and the float32 vectors of a file, or say which line is wrong."""
    if path.suffix == ".npz":
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return [str(i) for i in arrays["ids"]], arrays["vectors"].astype(np.float32)
        except (KeyError, ValueError, OSError) as error:
            raise DataError(f'{path}: not an .npz with "ids" and "vectors": {error}.') from error
    return _read_text(path)


def _read_text(path: Path) -> tuple[list[str], np.ndarray]:
    import gzip

    opened = gzip.open if path.suffix == ".gz" else open
    ids: list[str] = []
    rows: list[np.ndarray] = []
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            for number, text in enumerate(lines, 1):
                line = text.strip()
                cells = line.split("\t") if "\t" in line else line.split()
                if not line or (number == 1 and _is_header(cells)):
                    continue
                ids.append(cells[0].strip().strip("<>"))
                rows.append(_numbers(cells[1:], path, number))
                if len(rows[-1]) != len(rows[0]):
                    raise DataError(
                        f"{path}, line {number}: {len(rows[-1])} numbers, "
                        f"the lines before have {len(rows[0])}."
                    )
    except (UnicodeDecodeError, OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read as text: {error}.") from error
    if not rows:
        raise DataError(f"{path} holds no vectors.")
    return ids, np.vstack(rows)


def _is_header(cells: list[str]) -> bool:
    return len(cells) == 2 and all(cell.strip().isdigit() for cell in cells)


def _numbers(cells: list[str], path: Path, number: int) -> np.ndarray:
    try:
        values = np.array(cells, dtype=np.float32)
    except ValueError as error:
        raise DataError(f"{path}, line {number}: {error}.") from error
    if not len(values) or not np.isfinite(values).all():
        what = "no numbers" if not len(values) else "NaN or infinity"
        raise DataError(f"{path}, line {number}: {what} in the vector.")
    return values


def _checked(ids: pd.Index, vectors: np.ndarray, what: str) -> tuple[pd.Index, np.ndarray]:
    if vectors.ndim != 2 or len(ids) != len(vectors):
        raise DataError(f"{what}: {len(ids)} ids and an array of the shape {vectors.shape}.")
    if not ids.is_unique:
        raise DataError(f'{what}: "{ids[ids.duplicated()][0]}" stands twice.')
    if vectors.dtype not in (np.float32, np.float64):
        vectors = vectors.astype(np.float32)
    return ids, vectors
