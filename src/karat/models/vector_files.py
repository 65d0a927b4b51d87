"""Encoders that look up precomputed vectors by item id, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.core import registry
from karat.core.files import file_hash
from karat.errors import DataError, MissingExtra
from karat.models.model import Items, TextEncoder
from karat.models.model_identity import object_identity
from karat.models.vectors.decompression import plain_suffix
from karat.models.vectors.hdf5 import read_hdf5_rows
from karat.models.vectors.safetensors import names_file
from karat.models.vectors.vector_formats import (
    HDF5,
    REQUIRED_LIBRARIES,
    VECTOR_FILE_FORMATS,
    VECTOR_FILE_READERS,
    check_format,
    check_ids_and_vectors,
    check_vector_size,
    clear_errors,
    read_vectors,
)
from karat.models.vectors.vector_names import strip_angle_brackets
from karat.models.vectors.vector_text import read_text_rows, read_vector_text

#: bytes of a vector file that is read before jobs run, to find out whether it can be
SMALL_FILE = 2**24


class Lookup(TextEncoder):
    """Base of encoders that look up entities by id and texts by the text itself."""

    takes = ("entity", "text")
    by_text = ("text",)
    #: None: all items in one call
    chunk: ClassVar[int | None] = None

    def transform(self, items: Items) -> np.ndarray:
        """Return the vectors of the items by id, NaN for a missing one."""
        framed = isinstance(items, pd.Series | pd.DataFrame)
        return self._look_up(items.index if framed else pd.Index(list(items)))

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of the texts, NaN for a missing one."""
        return self._look_up(pd.Index(texts, dtype=object))

    def _look_up(self, names: pd.Index) -> np.ndarray:
        raise NotImplementedError


def rows_of(names: pd.Index, ids: pd.Index, vectors: np.ndarray) -> np.ndarray:
    """Return the vectors of names; a missing one is a row of NaN."""
    positions = ids.get_indexer(names)
    rows = np.array(vectors[np.maximum(positions, 0)])
    rows[positions < 0] = np.nan
    return rows


@dataclass(eq=False, repr=False)
class VectorLookup(Lookup):
    """Look up entities by id and texts by the text itself; a missing vector is a row of NaN."""

    ids: list[Any]
    vectors: np.ndarray

    @property
    def embedding_dimension(self) -> int | None:
        """The width of the vectors; None if they are no matrix."""
        shape = np.shape(self.vectors)
        return int(shape[1]) if len(shape) == 2 else None

    def _look_up(self, names: pd.Index) -> np.ndarray:
        return rows_of(names, *self.vocabulary())

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids and their vectors."""
        if not hasattr(self, "vocabulary_"):  # indexing a million names is slow
            vectors = np.asarray(self.vectors)
            self.vocabulary_ = check_ids_and_vectors(pd.Index(self.ids), vectors, "the vectors")
        return self.vocabulary_

    def __getstate__(self) -> dict[str, Any]:
        return {"ids": self.ids, "vectors": self.vectors}


class VectorFile(Lookup):
    """Look up entities or texts in a vector file.

    Text files have one name and its numbers per line, separated by spaces; a name may end with a
    tab. ``.csv`` files use commas. A word2vec header and the angle brackets of an IRI are removed.
    Also supported: HDF5 (reads only the requested rows), word2vec binary, ``.npz``, Parquet,
    Feather and safetensors; ``.gz`` and ``.zst`` are decompressed.

    ``size`` is the expected dimension of the vectors. ``format`` overrides the file name's suffix:
    ``txt``, ``csv``, ``hdf5``, ``npz``, ``bin``, ``parquet``, ``feather``, ``safetensors``, or the
    name of a registered format: a function of the path that returns the names and the vectors, or a
    class with a class method ``read_vectors(path, size)`` that does.
    """

    def __init__(self, path: str, size: int | None = None, format: str | None = None) -> None:
        if format is not None:
            check_format(format)
        self.path = path
        self.size = size
        self.format = format

    @property
    def embedding_dimension(self) -> int | None:
        """The width of the vectors if it is stated; the file is not read for it."""
        return self.size

    @property
    def suffix(self) -> str:
        """The suffix that selects the reader: from ``format``, or from the file name."""
        if self.format:
            return VECTOR_FILE_FORMATS.get(self.format, self.format)
        return plain_suffix(Path(self.path))

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids and vectors of the file."""
        return self._known().vocabulary()

    @property
    def reads_rows(self) -> bool:
        """Whether single rows can be read without the rest of the file."""
        return self.suffix in HDF5 or hasattr(self, "some_")

    @property
    def is_text(self) -> bool:
        """Whether the file has one name and its numbers per line."""
        is_registered = self.format is not None and self.format not in VECTOR_FILE_FORMATS
        return (
            not is_registered
            and VECTOR_FILE_READERS.get(self.suffix, read_vector_text) is read_vector_text
        )

    def problem(self) -> str:
        """Return why a small file cannot be read, or an empty string; large ones are not read."""
        try:
            path = _existing(self.path)
            if path.stat().st_size <= SMALL_FILE:
                read_vectors(path, self.size, self.suffix)
        except DataError as error:
            return str(error)
        except MissingExtra:  # the model is declined
            pass
        return ""

    def use(self, ids: Sequence[str], vectors: np.ndarray) -> None:
        """Use these vectors instead of reading the file."""
        self.known_ = VectorLookup(list(ids), vectors)

    def read_only(self, names: Iterable[str]) -> None:
        """Read only the vectors of these names from a text file; others are read when asked for."""
        path, wanted = _existing(self.path), set(map(strip_angle_brackets, map(str, names)))
        with clear_errors(path):
            ids, vectors = read_text_rows(path, wanted)
        check_vector_size(path, vectors, self.size)
        # the last row is that of missing names
        vectors = np.vstack([vectors, np.full((1, vectors.shape[1]), np.nan, dtype=np.float32)])
        self.some_ = wanted, (pd.Index(ids, dtype=object), vectors)

    def unavailable(self) -> str:
        """Return the library missing to read the file, or an empty string."""
        for suffix in (Path(self.path).suffix.lower(), self.suffix):
            if suffix in REQUIRED_LIBRARIES and find_spec(REQUIRED_LIBRARIES[suffix][0]) is None:
                return str(MissingExtra(*REQUIRED_LIBRARIES[suffix]))
        return ""

    def fingerprint(self) -> str:
        """Return the hash of the file's content, its suffix and the size."""
        path = _existing(self.path)
        names = names_file(path) if self.suffix == ".safetensors" else None
        hashes = [file_hash(file) for file in (path, names) if file]
        is_registered = self.format is not None and self.format not in VECTOR_FILE_FORMATS
        code = (
            object_identity(registry.vector_formats.get(str(self.format))) if is_registered else ""
        )
        parts = [*hashes, self.suffix, code or "", str(self.size or "")]
        return " ".join(part for part in parts if part)

    def _look_up(self, names: pd.Index) -> np.ndarray:
        # angle brackets are ignored in the file and in the data
        plain = [strip_angle_brackets(str(name)) for name in names]
        if hasattr(self, "some_") and self.some_[0].issuperset(plain):
            return rows_of(pd.Index(plain, dtype=object), *self.some_[1])
        if self.suffix not in HDF5 or hasattr(self, "known_"):
            return self._known().transform(plain)
        path = _existing(self.path)
        rows = read_hdf5_rows(path, plain)
        check_vector_size(path, rows, self.size)
        return rows

    def _known(self) -> VectorLookup:
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
