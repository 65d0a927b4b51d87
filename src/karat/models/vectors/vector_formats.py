"""All formats of vector files: which reader reads a file, and whether what it read is valid."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd

from karat.core import registry
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.models.vectors.decompression import plain_suffix
from karat.models.vectors.hdf5 import read_hdf5
from karat.models.vectors.npz import read_npz
from karat.models.vectors.safetensors import read_safetensors
from karat.models.vectors.vector_columns import read_vector_columns
from karat.models.vectors.vector_names import NamedVectors
from karat.models.vectors.vector_text import read_vector_table, read_vector_text
from karat.models.vectors.word2vec import read_word2vec

HDF5 = (".h5", ".hdf5")
VectorReader = Callable[[Path], NamedVectors]
VECTOR_FILE_READERS: dict[str, VectorReader] = {
    **dict.fromkeys((".txt", ".vec", ".tsv"), read_vector_text),
    ".csv": read_vector_table,
    ".npz": read_npz,
    ".bin": read_word2vec,
    **dict.fromkeys(HDF5, read_hdf5),
    **dict.fromkeys((".parquet", ".feather"), read_vector_columns),
    ".safetensors": read_safetensors,
}
VECTOR_FILE_SUFFIXES = tuple(VECTOR_FILE_READERS)
#: values of the parameter ``format``, and the suffix of each
VECTOR_FILE_FORMATS = {
    "hdf5": ".h5",
    **{end: f".{end}" for end in ("txt", "csv", "npz", "bin", "parquet", "feather", "safetensors")},
}
#: library and extra needed to read some files
REQUIRED_LIBRARIES = {
    **dict.fromkeys(HDF5, ("h5py", "h5")),
    **dict.fromkeys((".parquet", ".feather"), ("pyarrow", "tables")),
    ".zst": ("zstandard", "zst"),
}


def check_format(name: str) -> None:
    """Raise a DefinitionError unless a vector file format is built in or registered."""
    if name not in VECTOR_FILE_FORMATS and ":" not in name and name not in registry.vector_formats:
        names = [*VECTOR_FILE_FORMATS, *registry.vector_formats]
        raise DefinitionError(
            f'unknown vector file format "{name}".{did_you_mean(name, names)} '
            f"Expected one of: {', '.join(names)}."
        )


def read_vectors(path: Path, size: int | None = None, suffix: str | None = None) -> NamedVectors:
    """Return the ids and float32 vectors of a file; raise DataError if it is invalid."""
    suffix = suffix or plain_suffix(path)
    if suffix and not suffix.startswith("."):
        read = _registered_reader(suffix, size)
    else:
        read = VECTOR_FILE_READERS.get(suffix, read_vector_text)
    with clear_errors(path):
        ids, vectors = read(path)
    check_vector_size(path, vectors, size)
    if read not in (read_vector_text, read_vector_table):  # these check every line
        check_ids_and_vectors(pd.Index(ids), vectors, str(path))
        with np.errstate(invalid="ignore"):
            # a sum is finite only if all terms are, and it is cheaper than isfinite
            finite = np.isfinite(vectors.sum(dtype=np.float64))
        if not finite:
            name = ids[int((~np.isfinite(vectors).all(axis=1)).argmax())]
            raise DataError(f'{path}: the vector of "{name}" contains NaN or infinity.')
    return ids, vectors


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Turn the errors of a file that cannot be read into DataErrors that name it."""
    try:
        yield
    except (UnicodeDecodeError, OSError, EOFError, csv.Error, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}.") from error


def _registered_reader(name: str, size: int | None) -> VectorReader:
    """Return the reader of a registered format, with its result and its errors checked."""
    part = registry.vector_formats.get(name)

    def read(path: Path) -> NamedVectors:
        try:
            by_class = hasattr(part, "read_vectors")
            ids, vectors = part.read_vectors(path, size) if by_class else part(path)
            return [str(name) for name in ids], np.asarray(vectors, dtype=np.float32)
        except (DataError, DefinitionError, OSError):
            raise
        except Exception as error:  # the code of a user may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise DataError(f'{path}: the vector file format "{name}" failed: {reason}.') from error

    return read


def check_vector_size(path: Path, vectors: np.ndarray, size: int | None) -> None:
    """Raise a DataError unless the vectors of a file have the expected size."""
    if size is not None and vectors.shape[-1] != size:
        raise DataError(f"{path}: expected vectors of size {size}, got {vectors.shape[-1]}.")


def check_ids_and_vectors(
    ids: pd.Index, vectors: np.ndarray, what: str
) -> tuple[pd.Index, np.ndarray]:
    """Return ids and vectors as numbers; raise a DataError if they do not fit each other."""
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
