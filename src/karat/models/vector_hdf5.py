"""Read vectors from HDF5: a group ``Vectors`` with one dataset per entity, named in base 32."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import DataError, MissingExtra
from karat.models.vector_text import unbracketed

GROUP = "Vectors"


def read_hdf5(path: Path) -> tuple[list[str], np.ndarray]:
    """Return all names and vectors."""
    with _group(path) as group:
        keys = list(group)
        names = [unbracketed(_name(key, path)) for key in keys]
        first = _row(group, keys[0], path)
        vectors = np.empty((len(keys), len(first)), dtype=np.float32)
        for i, key in enumerate(keys):
            vectors[i] = _row(group, key, path, len(first))
    return names, vectors


def read_hdf5_rows(path: Path, names: Iterable[str]) -> np.ndarray:
    """Read the vectors of these names only; a name without a vector is a row of NaN."""
    names = list(names)
    with _group(path) as group:
        width = len(_row(group, next(iter(group)), path))
        rows = np.full((len(names), width), np.nan, dtype=np.float32)
        for i, name in enumerate(names):
            for key in (_key(name), _key(f"<{name}>")):
                if key in group:
                    rows[i] = _row(group, key, path, width)
    return rows


@contextmanager
def _group(path: Path) -> Iterator[Any]:
    try:
        import h5py
    except ImportError as error:
        raise MissingExtra("h5py", "h5") from error
    try:
        with h5py.File(path, "r") as file:
            group = file.get(GROUP)
            if not isinstance(group, h5py.Group):
                found = ", ".join(map(str, list(file)[:5])) or "nothing"
                raise DataError(f'{path} has no group "{GROUP}"; it contains: {found}.')
            if not len(group):
                raise DataError(f"{path} contains no vectors.")
            yield group
    except (OSError, RuntimeError) as error:  # h5py raises these for truncated files
        raise DataError(f"cannot read {path}: {error}.") from error


def _key(name: str) -> str:
    return base64.b32encode(name.encode()).decode()


def _name(key: str, path: Path) -> str:
    try:
        return base64.b32decode(key).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise DataError(
            f'{path}: dataset "{GROUP}/{key}" is not named by an entity in base 32 ({error}).'
        ) from error


def _row(group: Any, key: str, path: Path, width: int = 0) -> np.ndarray:
    what = f'{path}: the vector of "{_name(key, path)}"'
    shape = getattr(group[key], "shape", None)
    if shape is None or group[key].dtype.kind not in "fiu":
        raise DataError(f"{what} is not a dataset of numbers.")
    if not (len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)) or not shape[-1]:
        raise DataError(f"{what} must have shape (d,) or (1, d), got {shape}.")
    if width and shape[-1] != width:
        raise DataError(f"{what} must have {width} numbers like the others, got {shape[-1]}.")
    row = np.asarray(group[key], dtype=np.float32).reshape(-1)
    if not np.isfinite(row).all():
        raise DataError(f"{what} contains NaN or infinity.")
    return row
