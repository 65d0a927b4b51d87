"""Read a ``.npz`` file with the arrays ``ids`` and ``vectors``."""

from __future__ import annotations

import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy as np

from karat.core.files import check_array, check_content
from karat.errors import DataError
from karat.models.vectors.vector_names import NamedVectors

#: what damaged files raise; numpy raises a SystemError for a text that is not Unicode
NPZ_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SystemError,
    TypeError,
    ValueError,
)


def read_npz(path: Path) -> NamedVectors:
    """Return the arrays ``ids`` and ``vectors`` of a file."""
    try:
        with zipfile.ZipFile(path) as members:
            for member in members.infolist():
                check_content(path, member.file_size)
                if member.filename in ("ids.npy", "vectors.npy"):
                    with members.open(member) as file:
                        check_array(file, member.file_size)
        with np.load(path, allow_pickle=False) as arrays:
            return _npz_ids(arrays["ids"]), arrays["vectors"].astype(np.float32, copy=False)
    except NPZ_ERRORS as error:
        raise DataError(f'{path}: not an .npz with "ids" and "vectors": {error}.') from error


def _npz_ids(ids: np.ndarray) -> list[str]:
    """Return ids as texts; raise a ValueError if they are no texts or integers."""
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "USiu"):
        raise ValueError(f'"ids" must be a list of texts, got {ids.dtype} of shape {ids.shape}')
    if ids.dtype.kind == "U" and ids.size:
        codes = np.frombuffer(np.ascontiguousarray(ids).tobytes(), dtype=ids.dtype.byteorder + "u4")
        if codes.max() > sys.maxunicode:
            raise ValueError('"ids" has a text that is not Unicode')
    as_bytes = ids.dtype.kind == "S"
    texts = [text.decode() if as_bytes else str(text) for text in ids.tolist()]
    for text in texts:
        text.encode()  # raises a ValueError for a lone surrogate
    return texts
