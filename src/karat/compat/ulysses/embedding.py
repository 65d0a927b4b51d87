"""From texts to one row of numbers per question, and a cache of such rows."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType
from typing import Any

import numpy as np

from karat.compose import concat, interaction, single
from karat.errors import ContractError, DataError
from karat.models.base import StatelessEncoder
from karat.results.files import safe_name, write_atomic
from karat.vectors import check_vectors, distinct

Encode = Callable[[list[str]], Any]


def as_rows(values: Any, rows: int, name: str) -> np.ndarray:
    """Return embedded rows as a float32 matrix.

    >>> as_rows([[1, 2]], 1, "embed").dtype
    dtype('float32')
    """
    with np.errstate(over="ignore"):  # overflow becomes infinity, which is an error below
        matrix = check_vectors(values, rows, name).astype(np.float32, copy=False)
    broken = ~np.isfinite(matrix).all(axis=1)
    if broken.any():
        raise ContractError(
            f"{name} returned NaN or infinity in {int(broken.sum())} of {rows} rows (first: row "
            f"{int(np.argmax(broken))}); every text needs a finite vector."
        )
    return matrix


def columns_of(a: Sequence[str], b: Sequence[str] | None, separator: str | None) -> list[list[str]]:
    """Return the columns to embed: one text, two texts, or a text and its options."""
    if b is None:
        return [list(a)]
    if separator is None:
        return [list(a), list(b)]
    options = [text.split(separator) for text in b]
    for row, found in enumerate(options):
        if len(found) != len(options[0]):
            raise DataError(
                f"row {row} has {len(found)} options but row 0 has {len(options[0])}; all "
                f'questions need the same number of options, separated by "{separator}".'
            )
    return [list(a), *map(list, zip(*options, strict=True))]


def composed(columns: Sequence[list[str]], encode: Encode, chosen: bool, name: str) -> np.ndarray:
    """Return one row per question: (a), (a, b, |a − b|, a · b), or (a, b1 … bk) with options.

    Each distinct text is encoded once.
    """
    codes, texts = distinct([text for column in columns for text in column])
    matrix = as_rows(encode(texts), len(texts), name)
    parts = [matrix[part] for part in np.split(codes, len(columns))]
    compose = concat if chosen else single if len(parts) == 1 else interaction
    return compose(*parts)


class StoredRows(StatelessEncoder):
    """Embedded rows in a file; items are row numbers."""

    takes = ("entity",)

    def __init__(self, path: str, digest: str) -> None:
        self.path = path
        self.digest = digest

    def transform(self, items: Any) -> np.ndarray:
        """Return the rows of the items."""
        matrix = np.load(self.path, mmap_mode="r", allow_pickle=False)
        return np.asarray(matrix[np.asarray(items, dtype=int)])

    def fingerprint(self) -> str:
        """Return a hash of the rows."""
        return self.digest


def store(path: Path, matrix: np.ndarray) -> StoredRows:
    """Write rows atomically and return their encoder."""
    buffer = io.BytesIO()
    np.save(buffer, matrix, allow_pickle=False)
    write_atomic(path, buffer.getvalue())
    return _stored(path, matrix)


def _stored(path: Path, matrix: np.ndarray) -> StoredRows:
    return StoredRows(str(path), hashlib.sha256(np.ascontiguousarray(matrix).data).hexdigest())


def find(path: Path, rows: int) -> StoredRows | None:
    """Return the encoder of cached rows, or None if they are missing or invalid."""
    try:
        matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        valid = matrix.ndim == 2 and len(matrix) == rows and matrix.dtype == np.float32
        return _stored(path, matrix) if valid else None
    except (OSError, ValueError, EOFError):
        return None


def place(folder: Path, key: str, task: str, facts: Sequence[Any]) -> Path:
    """Return the cache file of a task's rows, which depends on the facts."""
    digest = hashlib.sha256(repr(list(facts)).encode("utf-8", "surrogatepass")).hexdigest()
    return folder / safe_name(key) / f"{task}-{digest[:16]}.npy"


def method_of(embed: Any) -> str:
    """Return the qualified name and the bytecode of a method, to detect changes of it."""
    code = getattr(getattr(embed, "__func__", embed), "__code__", None)
    named = f"{getattr(embed, '__module__', '')}.{getattr(embed, '__qualname__', '')}"
    return f"{named} {_instructions(code)}" if isinstance(code, CodeType) else named


def _instructions(code: CodeType) -> str:
    parts = [_instructions(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return repr((code.co_code.hex(), code.co_names, parts))
