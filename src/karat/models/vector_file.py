"""Vectors that already exist: a file or a table of them, looked up by item id."""

from __future__ import annotations

import csv
import gzip
import hashlib
import itertools
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError
from karat.models.base import TextEncoder

Line = tuple[int, list[str]]
SUFFIXES = (".txt", ".vec", ".tsv", ".csv", ".npz")


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
        return _checked(pd.Index(self.ids), np.asarray(self.vectors), "the given vectors")


class VectorFile(TextEncoder):
    """An encoder that reads a vector file: one entity and its numbers per line, or an ``.npz``.

    Texts, too, may stand in the place of the ids.

    Lines are split at blanks, or the id ends at the first tab; ``.csv`` at commas. A word2vec
    header and the angle brackets around an IRI are left away, ``.gz`` is unpacked. An ``.npz``
    holds the arrays ``ids`` and ``vectors``.
    """

    takes = ("entity", "text")
    by_text = ("text",)
    chunk: int | None = None

    def __init__(self, path: str) -> None:
        self.path = path

    def transform(self, items: Any) -> np.ndarray:
        """Return the vectors of the items by their ids, NaN where the file has none."""
        framed = isinstance(items, pd.Series | pd.DataFrame)
        # a name is the same with and without brackets, in the file and in the data
        ids = [_unbracketed(str(name)) for name in (items.index if framed else items)]
        return self._known().transform(ids)

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of the texts by themselves, NaN where the file has none."""
        return self._known().transform([_unbracketed(text) for text in texts])

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return all ids of the file and their vectors."""
        return self._known().vocabulary()

    def fingerprint(self) -> str:
        """Return a hash of the file's bytes: another file of the same name is another model."""
        path = _existing(self.path)
        with path.open("rb") as file:
            return f"{hashlib.file_digest(file, 'sha256').hexdigest()} {_plain_suffix(path)}"

    def _known(self) -> KnownVectors:
        if not hasattr(self, "known_"):
            self.known_ = KnownVectors(*read_vectors(_existing(self.path)))
        return self.known_

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}


def _existing(path: str) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError(f"there is no vector file {path}.")
    return file


def read_vectors(path: Path) -> tuple[list[str], np.ndarray]:
    """Return the ids and the float32 vectors of a file, or say which line is wrong."""
    try:
        read = _read_arrays if path.suffix.lower() == ".npz" else _read_text
        ids, vectors = read(path)
    except (UnicodeDecodeError, OSError, EOFError, csv.Error) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error
    _checked(pd.Index(ids), vectors, str(path))
    return ids, vectors


def _read_arrays(path: Path) -> tuple[list[str], np.ndarray]:
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return [str(i) for i in arrays["ids"]], arrays["vectors"].astype(np.float32)
    except (KeyError, ValueError, OSError, TypeError, zipfile.BadZipFile) as error:
        raise DataError(f'{path}: not an .npz with "ids" and "vectors": {error}.') from error


def _read_text(path: Path) -> tuple[list[str], np.ndarray]:
    ids: dict[str, int] = {}
    rows: list[np.ndarray] = []
    for number, cells in _without_header((line for line in _lines(path) if any(line[1])), path):
        name, values = _unbracketed(cells[0]), _numbers(cells[1:], path, number)
        if ids.setdefault(name, number) != number:
            raise DataError(f'{path}, line {number}: "{name}" stands already in line {ids[name]}.')
        if rows and len(values) != len(rows[0]):
            raise DataError(
                f"{path}, line {number}: {len(values)} numbers, "
                f"the lines before have {len(rows[0])}."
            )
        rows.append(values)
    if not rows:
        raise DataError(f"{path} holds no vectors.")
    return list(ids), np.vstack(rows)


def _lines(path: Path) -> Iterator[Line]:
    opened = gzip.open if path.suffix.lower() == ".gz" else open
    commas = _plain_suffix(path) == ".csv"
    with opened(path, "rt", encoding="utf-8-sig", newline="" if commas else None) as lines:
        if commas:
            yield from enumerate(csv.reader(lines), 1)
            return
        for number, text in enumerate(lines, 1):
            # only blanks and tabs part cells: rarer white space may belong to a word
            name, tab, rest = text.strip(" \t\r\n").partition("\t")
            cells = (rest if tab else name).replace("\t", " ").split(" ")
            yield number, [*([name] if tab else []), *filter(None, cells)]


def _without_header(lines: Iterator[Line], path: Path) -> Iterator[Line]:
    begin = list(itertools.islice(lines, 2))
    first = begin[0][1] if begin else []
    counts = len(first) == 2 and all(cell.strip().isdigit() for cell in first)
    # "6 200" is word2vec's header unless the vectors themselves have one dimension
    word2vec = counts and not (len(begin) == 2 and len(begin[1][1]) == 2)
    # a table may begin with the names of its columns
    named = len(first) > 1 and not any(map(_is_number, first[1:]))
    table = named and _plain_suffix(path) == ".csv"
    return itertools.chain(begin[1:] if word2vec or table else begin, lines)


def _plain_suffix(path: Path) -> str:
    return Path(path.name.lower().removesuffix(".gz")).suffix


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _unbracketed(name: str) -> str:
    name = name.strip(" \t")
    return name[1:-1] if name.startswith("<") and name.endswith(">") else name


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
