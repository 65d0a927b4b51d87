"""Vectors that already exist: a file or a table of them, looked up by item id."""

from __future__ import annotations

import csv
import hashlib
import zlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError, DefinitionError, MissingExtra, did_you_mean
from karat.models.base import TextEncoder
from karat.models.vector_formats import (
    names_file,
    read_columns,
    read_npz,
    read_safetensors,
    read_word2vec,
)
from karat.models.vector_hdf5 import read_hdf5, read_hdf5_rows
from karat.models.vector_text import plain_suffix, read_table, read_text, unbracketed

HDF5 = (".h5", ".hdf5")
READERS: dict[str, Callable[[Path], tuple[list[str], np.ndarray]]] = {
    **dict.fromkeys((".txt", ".vec", ".tsv"), read_text),
    ".csv": read_table,
    ".npz": read_npz,
    ".bin": read_word2vec,
    **dict.fromkeys(HDF5, read_hdf5),
    **dict.fromkeys((".parquet", ".feather"), read_columns),
    ".safetensors": read_safetensors,
}
SUFFIXES = tuple(READERS)
#: what a file may be said to be, whatever its name, and the ending such files have
FORMATS = {
    "txt": ".txt",
    "csv": ".csv",
    "hdf5": ".h5",
    "npz": ".npz",
    "bin": ".bin",
    "parquet": ".parquet",
    "feather": ".feather",
    "safetensors": ".safetensors",
}
#: what some files cannot be read without, and the extra that has it
NEEDS = {
    **dict.fromkeys(HDF5, ("h5py", "h5")),
    **dict.fromkeys((".parquet", ".feather"), ("pyarrow", "tables")),
    ".zst": ("zstandard", "zst"),
}


class KnownVectors(TextEncoder):
    """An encoder that looks entities up by id and texts by the text itself.

    One that it does not have is a row of NaN.
    """

    takes = ("entity", "text")
    by_text = ("text",)
    #: all are looked up at once
    chunk: int | None = None

    def __init__(self, ids: list[Any], vectors: np.ndarray) -> None:
        self.ids = ids
        self.vectors = vectors

    def transform(self, items: Any) -> np.ndarray:
        """Return the vectors of the items by their ids, NaN where there is none."""
        framed = isinstance(items, pd.Series | pd.DataFrame)
        return self._looked_up(items.index if framed else pd.Index(list(items)))

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of the texts by themselves, NaN where there is none."""
        return self._looked_up(pd.Index(texts, dtype=object))

    def _looked_up(self, names: pd.Index) -> np.ndarray:
        ids, vectors = self.vocabulary()
        found = ids.get_indexer(names)
        rows = np.array(vectors[np.maximum(found, 0)])
        rows[found < 0] = np.nan
        return rows

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids and their vectors."""
        if not hasattr(self, "stock_"):  # the index of a million names is made once
            given = np.asarray(self.vectors)
            self.stock_ = _checked(pd.Index(self.ids), given, "the given vectors")
        return self.stock_

    def __getstate__(self) -> dict[str, Any]:
        return {"ids": self.ids, "vectors": self.vectors}


class VectorFile(TextEncoder):
    """An encoder that looks entities, or texts, up in a vector file.

    Text has one entity and its numbers per line: lines are split at blanks, or the name ends at the
    first tab; ``.csv`` at commas. A word2vec header and the angle brackets around an IRI are left
    away. Also read are HDF5 (of which only the rows asked for), word2vec's binary, ``.npz``,
    Parquet, Feather and safetensors; ``.gz`` and ``.zst`` are unpacked.

    With ``size``, a file whose vectors are longer or shorter is refused. ``format`` tells what the
    file is where its name does not: ``txt``, ``csv``, ``hdf5``, ``npz``, ``bin``, ``parquet``,
    ``feather`` or ``safetensors``.
    """

    takes = ("entity", "text")
    by_text = ("text",)
    chunk: int | None = None

    def __init__(self, path: str, size: int | None = None, format: str | None = None) -> None:
        if format is not None and format not in FORMATS:
            raise DefinitionError(
                f'there is no vector file format "{format}".{did_you_mean(format, FORMATS)} '
                f"There are: {', '.join(FORMATS)}."
            )
        self.path = path
        self.size = size
        self.format = format

    @property
    def suffix(self) -> str:
        """What the file is: the ending of its name, or that of the format it was said to have."""
        return plain_suffix(Path(self.path)) if self.format is None else FORMATS[self.format]

    def transform(self, items: Any) -> np.ndarray:
        """Return the vectors of the items by their ids, NaN where the file has none."""
        framed = isinstance(items, pd.Series | pd.DataFrame)
        return self._looked_up([str(name) for name in (items.index if framed else items)])

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of the texts by themselves, NaN where the file has none."""
        return self._looked_up(texts)

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids of the file and their vectors."""
        return self._known().vocabulary()

    @property
    def reads_rows(self) -> bool:
        """Whether some vectors can be read without all others."""
        return self.suffix in HDF5

    def use(self, ids: Sequence[str], vectors: np.ndarray) -> None:
        """Take these for what the file holds, so that it need not be read again."""
        self.known_ = KnownVectors(list(ids), vectors)

    def unavailable(self) -> str:
        """Return which library is missing to read the file, or nothing."""
        for suffix in (Path(self.path).suffix.lower(), self.suffix):
            if suffix in NEEDS and find_spec(NEEDS[suffix][0]) is None:
                return str(MissingExtra(*NEEDS[suffix]))
        return ""

    def fingerprint(self) -> str:
        """Return a hash of the file's bytes: another file of the same name is another model."""
        path = _existing(self.path)
        suffix = self.suffix
        beside = names_file(path) if suffix == ".safetensors" else None
        return " ".join(
            [*(_hash(file) for file in (path, beside) if file), suffix, str(self.size or "")]
        ).rstrip()

    def _looked_up(self, names: list[str]) -> np.ndarray:
        # a name is the same with and without brackets, in the file and in the data
        plain = [unbracketed(name) for name in names]
        if not self.reads_rows or hasattr(self, "known_"):
            return self._known().transform(plain)
        path = _existing(self.path)
        rows = read_hdf5_rows(path, plain)
        _check_size(path, rows, self.size)
        return rows

    def _known(self) -> KnownVectors:
        if not hasattr(self, "known_"):
            self.use(*read_vectors(_existing(self.path), self.size, self.suffix))
        return self.known_

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size, "format": self.format}


def _existing(path: str) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError(f"there is no vector file {path}.")
    return file


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_vectors(
    path: Path, size: int | None = None, suffix: str | None = None
) -> tuple[list[str], np.ndarray]:
    """Return the ids and the float32 vectors of a file, or say which line is wrong."""
    read = READERS.get(suffix or plain_suffix(path), read_text)
    try:
        ids, vectors = read(path)
    except (UnicodeDecodeError, OSError, EOFError, csv.Error, zlib.error) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    _check_size(path, vectors, size)
    if read not in (read_text, read_table):  # these look at each line
        _checked(pd.Index(ids), vectors, str(path))
        _check_finite(path, ids, vectors)
    return ids, vectors


def _check_finite(path: Path, ids: list[str], vectors: np.ndarray) -> None:
    # a sum is finite only if all its parts are, and it costs less than to look at each
    if not np.isfinite(vectors.sum(dtype=np.float64)):
        name = ids[int((~np.isfinite(vectors).all(axis=1)).argmax())]
        raise DataError(f'{path}: the vector of "{name}" holds NaN or infinity.')


def _check_size(path: Path, vectors: np.ndarray, size: int | None) -> None:
    if size is not None and vectors.shape[-1] != size:
        raise DataError(f"{path}: the vectors have {vectors.shape[-1]} numbers, not {size}.")


def _checked(ids: pd.Index, vectors: np.ndarray, what: str) -> tuple[pd.Index, np.ndarray]:
    if vectors.ndim != 2 or len(ids) != len(vectors) or not vectors.size:
        raise DataError(f"{what}: {len(ids)} ids and an array of the shape {vectors.shape}.")
    if not ids.is_unique:
        raise DataError(f'{what}: "{ids[ids.duplicated()][0]}" stands twice.')
    if vectors.dtype not in (np.float32, np.float64):
        try:
            vectors = vectors.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{what}: the vectors must be numbers: {error}.") from error
    return ids, vectors
