"""Encoders that look up precomputed vectors, from a file or from arrays, by item id."""

from __future__ import annotations

import csv
import hashlib
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

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
#: values of the parameter ``format``, and the suffix each stands for
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
#: library and extra needed to read some files
NEEDS = {
    **dict.fromkeys(HDF5, ("h5py", "h5")),
    **dict.fromkeys((".parquet", ".feather"), ("pyarrow", "tables")),
    ".zst": ("zstandard", "zst"),
}


@dataclass(eq=False, repr=False)
class KnownVectors(TextEncoder):
    """Look up entities by id and texts by the text itself; a missing vector is a row of NaN."""

    takes = ("entity", "text")
    by_text = ("text",)
    #: None: all items in one call
    chunk: ClassVar[int | None] = None

    ids: list[Any]
    vectors: np.ndarray

    def transform(self, items: Any) -> np.ndarray:
        """Return the vectors of the items by id."""
        framed = isinstance(items, pd.Series | pd.DataFrame)
        return self._look_up(items.index if framed else pd.Index(list(items)))

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of the texts."""
        return self._look_up(pd.Index(texts, dtype=object))

    def _look_up(self, names: pd.Index) -> np.ndarray:
        ids, vectors = self.vocabulary()
        found = ids.get_indexer(names)
        rows = np.array(vectors[np.maximum(found, 0)])
        rows[found < 0] = np.nan
        return rows

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids and their vectors."""
        if not hasattr(self, "vocabulary_"):  # indexing a million names is slow
            vectors = np.asarray(self.vectors)
            self.vocabulary_ = _checked(pd.Index(self.ids), vectors, "the vectors")
        return self.vocabulary_

    def __getstate__(self) -> dict[str, Any]:
        return {"ids": self.ids, "vectors": self.vectors}


class VectorFile(TextEncoder):
    """Look up entities or texts in a vector file.

    Text files have one name and its numbers per line, separated by spaces; a name may end with a
    tab. ``.csv`` files use commas. A word2vec header and the angle brackets of an IRI are removed.
    Also supported: HDF5 (reads only the requested rows), word2vec binary, ``.npz``, Parquet,
    Feather and safetensors; ``.gz`` and ``.zst`` are decompressed.

    ``size`` is the expected dimension of the vectors. ``format`` overrides the file name's suffix:
    ``txt``, ``csv``, ``hdf5``, ``npz``, ``bin``, ``parquet``, ``feather`` or ``safetensors``.
    """

    takes = ("entity", "text")
    by_text = ("text",)
    chunk: ClassVar[int | None] = None

    def __init__(self, path: str, size: int | None = None, format: str | None = None) -> None:
        if format is not None and format not in FORMATS:
            raise DefinitionError(
                f'unknown vector file format "{format}".{did_you_mean(format, FORMATS)} '
                f"Expected one of: {', '.join(FORMATS)}."
            )
        self.path = path
        self.size = size
        self.format = format

    @property
    def suffix(self) -> str:
        """The suffix that selects the reader: from ``format``, or from the file name."""
        return plain_suffix(Path(self.path)) if self.format is None else FORMATS[self.format]

    def transform(self, items: Any) -> np.ndarray:
        """Return the vectors of the items by id, NaN for a missing one."""
        framed = isinstance(items, pd.Series | pd.DataFrame)
        return self._look_up([str(name) for name in (items.index if framed else items)])

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of the texts, NaN for a missing one."""
        return self._look_up(texts)

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids and vectors of the file."""
        return self._known().vocabulary()

    @property
    def reads_rows(self) -> bool:
        """Whether single rows can be read without the rest of the file."""
        return self.suffix in HDF5

    def use(self, ids: Sequence[str], vectors: np.ndarray) -> None:
        """Use these vectors instead of reading the file."""
        self.known_ = KnownVectors(list(ids), vectors)

    def unavailable(self) -> str:
        """Return the library missing to read the file, or an empty string."""
        for suffix in (Path(self.path).suffix.lower(), self.suffix):
            if suffix in NEEDS and find_spec(NEEDS[suffix][0]) is None:
                return str(MissingExtra(*NEEDS[suffix]))
        return ""

    def fingerprint(self) -> str:
        """Return the hash of the file's content, its suffix and the size."""
        path = _existing(self.path)
        names = names_file(path) if self.suffix == ".safetensors" else None
        hashes = [_hash(file) for file in (path, names) if file]
        return " ".join([*hashes, self.suffix, str(self.size or "")]).rstrip()

    def _look_up(self, names: list[str]) -> np.ndarray:
        # angle brackets are ignored in the file and in the data
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
        raise DataError(f"vector file not found: {path}.")
    return file


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_vectors(
    path: Path, size: int | None = None, suffix: str | None = None
) -> tuple[list[str], np.ndarray]:
    """Return the ids and float32 vectors of a file; raise DataError if it is invalid."""
    read = READERS.get(suffix or plain_suffix(path), read_text)
    try:
        ids, vectors = read(path)
    except (UnicodeDecodeError, OSError, EOFError, csv.Error, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}.") from error
    _check_size(path, vectors, size)
    if read not in (read_text, read_table):  # these check every line
        _checked(pd.Index(ids), vectors, str(path))
        _check_finite(path, ids, vectors)
    return ids, vectors


def _check_finite(path: Path, ids: list[str], vectors: np.ndarray) -> None:
    # a sum is finite only if all terms are, and it is cheaper than isfinite
    if not np.isfinite(vectors.sum(dtype=np.float64)):
        name = ids[int((~np.isfinite(vectors).all(axis=1)).argmax())]
        raise DataError(f'{path}: the vector of "{name}" contains NaN or infinity.')


def _check_size(path: Path, vectors: np.ndarray, size: int | None) -> None:
    if size is not None and vectors.shape[-1] != size:
        raise DataError(f"{path}: expected vectors of size {size}, got {vectors.shape[-1]}.")


def _checked(ids: pd.Index, vectors: np.ndarray, what: str) -> tuple[pd.Index, np.ndarray]:
    if vectors.ndim != 2 or len(ids) != len(vectors) or not vectors.size:
        raise DataError(f"{what}: {len(ids)} ids do not match an array of shape {vectors.shape}.")
    if not ids.is_unique:
        raise DataError(f'{what}: duplicate id "{ids[ids.duplicated()][0]}".')
    if vectors.dtype not in (np.float32, np.float64):
        try:
            vectors = vectors.astype(np.float32)
        except (TypeError, ValueError) as error:
            raise DataError(f"{what}: the vectors must be numbers: {error}.") from error
    return ids, vectors
