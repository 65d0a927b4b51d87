"""Encoders that look up precomputed vectors by item id, and readers of all file formats but text.

HDF5 files have a group ``Vectors`` with one dataset per entity, named in base 32.
"""

from __future__ import annotations

import base64
import binascii
import csv
import itertools
import json
import math
import mmap
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
from numpy.lib.stride_tricks import sliding_window_view

from karat.core import registry
from karat.core.files import check_array, check_content, check_parquet, file_hash, read_feather
from karat.errors import DataError, DefinitionError, MissingExtra, did_you_mean
from karat.models.model import TextEncoder, import_extra
from karat.models.model_identity import object_identity
from karat.models.vector_text import (
    plain_suffix,
    read_decompressed,
    read_text_rows,
    read_vector_table,
    read_vector_text,
    strip_angle_brackets,
)

Read = tuple[list[str], np.ndarray]
#: bytes of a vector file that is read before jobs run, to find out whether it can be
SMALL_FILE = 2**24


def read_npz(path: Path) -> Read:
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
    except (
        *(KeyError, ValueError, OSError, TypeError, AttributeError, EOFError),
        # numpy raises a SystemError for a text that is not Unicode
        *(zipfile.BadZipFile, zlib.error, RuntimeError, struct.error, IndexError, SystemError),
    ) as error:
        raise DataError(f'{path}: not an .npz with "ids" and "vectors": {error}.') from error


def _npz_ids(ids: np.ndarray) -> list[str]:
    """Return ids as texts; raise a ValueError if they are no texts or integers."""
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "USiu"):
        raise ValueError(f'"ids" must be a list of texts, got {ids.dtype} of shape {ids.shape}')
    if ids.dtype.kind == "U" and ids.size:
        codes = np.frombuffer(np.ascontiguousarray(ids).tobytes(), dtype=ids.dtype.byteorder + "u4")
        if codes.max() > sys.maxunicode:
            raise ValueError('"ids" has a text that is not Unicode')
    texts = [i.decode() for i in ids.tolist()] if ids.dtype.kind == "S" else map(str, ids.tolist())
    found = list(texts)
    for text in found:
        text.encode()  # raises a ValueError for a lone surrogate
    return found


def read_word2vec(path: Path) -> Read:
    """Read word2vec's binary format: a header, then name, space and float32 values per vector."""
    with _bytes(path) as data:
        header = data.find(b"\n")
        counts = bytes(data[: max(header, 0)]).split()
        if not (0 < header < 100 and len(counts) == 2 and all(c.isdigit() for c in counts)):
            raise DataError(
                f"{path} is not in word2vec's binary format: the first line is not two integers."
            )
        count, width = map(int, counts)
        if not count:
            raise DataError(f"{path} contains no vectors.")
        short = DataError(
            f"{path} is truncated: the header announces {count} vectors of {width} numbers."
        )
        # checked first, so that a wrong count does not allocate memory
        if not width or count * (4 * width + 1) > len(data):
            raise short
        names, vectors, at = [], np.empty((count, width), dtype=np.float32), header + 1
        for row in range(count):
            space = data.find(b" ", at)
            if space < 0 or space + 1 + 4 * width > len(data):
                raise short
            names.append(_word(data[at:space], row, path))
            vectors[row] = np.frombuffer(data, "<f4", width, space + 1)
            at = space + 1 + 4 * width
        if bytes(data[at:]).strip(b"\n"):
            raise DataError(f"{path} has more than the {count} vectors of its header.")
    return names, vectors


@contextmanager
def _bytes(path: Path) -> Iterator[Any]:
    if path.suffix.lower() in (".gz", ".zst"):
        yield b"".join(read_decompressed(path))
        return
    if not path.stat().st_size:
        raise DataError(f"{path} contains no vectors.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _word(raw: bytes, row: int, path: Path) -> str:
    try:
        # some programs write a newline after each vector
        return strip_angle_brackets(raw.lstrip(b"\n").decode())
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: name {row + 1} is not UTF-8 ({error.reason}).") from error


def _read_columns(path: Path) -> Read:
    """Read a Parquet or Feather file: one string column, and number columns or one list column."""
    table = _table(path)
    texts = [name for name in table.column_names if _is_text(table.schema.field(name).type)]
    if len(texts) != 1:
        raise DataError(
            f"{path} must have exactly one string column (the names), "
            f"got {len(texts)}: {', '.join(texts)}."
        )
    ids = table.column(texts[0])
    others = table.drop_columns(texts)
    for name in table.column_names:
        if table.column(name).null_count:
            row = table.column(name).is_null().to_pylist().index(True)
            raise DataError(f'{path}, row {row + 1}: missing value in column "{name}".')
    vectors = _list_column(others, path) if others.num_columns == 1 else None
    if vectors is None:
        vectors = _number_columns(others, path)
    return [strip_angle_brackets(str(name)) for name in ids.to_pylist()], vectors


def _table(path: Path) -> Any:
    import_extra("pyarrow", "tables")
    from pyarrow import parquet

    try:
        if path.suffix.lower() == ".parquet":
            check_parquet(path)
            return parquet.read_table(path)
        return read_feather(path)
    except (OSError, ValueError, TypeError, LookupError, RuntimeError) as error:
        raise DataError(f"cannot read {path}: {error}.") from error


def _is_text(kind: Any) -> bool:
    name = str(getattr(kind, "value_type", kind) if "dictionary" in str(kind) else kind)
    return name in ("string", "large_string", "string_view")


def _number_columns(table: Any, path: Path) -> np.ndarray:
    vectors = np.empty(table.shape, dtype=np.float32)
    for i, name in enumerate(table.column_names):
        if np.dtype(table.schema.field(name).type.to_pandas_dtype()).kind not in "fiu":
            raise DataError(f'{path}: column "{name}" is not numeric.')
        vectors[:, i] = table.column(i).to_numpy()
    return vectors


def _list_column(table: Any, path: Path) -> np.ndarray | None:
    """Return the vectors of a list column, or None for another type."""
    column = table.column(0).combine_chunks()
    if "list" not in str(column.type):
        return None
    values = column.flatten()
    lengths = np.diff(column.offsets) if hasattr(column, "offsets") else [column.type.list_size]
    width = int(lengths[0]) if len(lengths) else 0
    if ragged := [row for row, length in enumerate(lengths) if length != width]:
        raise DataError(
            f"{path}, row {ragged[0] + 1}: expected {width} numbers as in the rows before, "
            f"got {lengths[ragged[0]]}."
        )
    if values.null_count or np.dtype(values.type.to_pandas_dtype()).kind not in "fiu":
        raise DataError(f'{path}: the lists in "{table.column_names[0]}" must be numeric.')
    return values.to_numpy().astype(np.float32).reshape(-1, max(width, 1))


SAFETENSORS_TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}
#: bits per number of the types with whole bytes
SAFETENSORS_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0"), 8),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
}


def names_file(path: Path) -> Path | None:
    """Return the text file with the row names of a ``.safetensors`` file, or None."""
    candidates = (path.with_suffix(end) for end in (".names", ".names.txt", ".txt"))
    return next((file for file in candidates if file.is_file()), None)


def read_safetensors(path: Path) -> Read:
    """Read a matrix; its row names are a JSON list in the metadata or lines of a text file."""
    with _bytes(path) as data:
        begin = 8 + int.from_bytes(data[:8], "little")
        try:
            header = json.loads(bytes(data[8:begin]))
            names = json.loads(header.pop("__metadata__", {}).get("names", "null"))
            _check_tensors(header, len(data) - begin, path)
            matrices = {name: each for name, each in header.items() if len(each["shape"]) == 2}
            name = "vectors" if "vectors" in matrices else next(iter(matrices), "")
            if not name or (len(matrices) > 1 and name != "vectors"):
                found = ", ".join(matrices) or "none"
                raise DataError(f'{path} needs one matrix, or one named "vectors"; got: {found}.')
            vectors = _tensor(data, begin, matrices[name], f'{path}: the tensor "{name}"')
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise DataError(f"cannot read {path} as safetensors: {error}.") from error
    if names is not None and not isinstance(names, list):
        raise DataError(f'{path}: "names" in the metadata must be a JSON list.')
    return [strip_angle_brackets(str(name)) for name in names or _names_from_file(path)], vectors


def _check_tensors(header: dict[str, Any], size: int, path: Path) -> None:
    """Check that each tensor has its own bytes in the file, as many as its shape needs."""
    spans = []
    for name, about in header.items():
        what = f'{path}: the tensor "{name}"'
        shape, (first, last) = about["shape"], about["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (*shape, first, last)):
            raise DataError(f"{what}: shape and data_offsets must be integers >= 0.")
        if not first <= last <= size:
            raise DataError(f"{what} is truncated: its data_offsets are not in the file.")
        width = SAFETENSORS_BITS.get(about["dtype"])
        if width is not None and math.prod(shape) * width != 8 * (last - first):
            raise DataError(f"{what}: {last - first} bytes do not match the shape {shape}.")
        spans += [(first, last, name)] if last > first else []
    spans.sort()
    for (_, end, name), (begin, _, other) in itertools.pairwise(spans):
        if begin < end:
            raise DataError(f'{path}: the tensors "{name}" and "{other}" overlap.')


def _tensor(data: Any, begin: int, about: dict[str, Any], what: str) -> np.ndarray:
    if about["dtype"] not in (*SAFETENSORS_TYPES, "BF16"):
        raise DataError(
            f"{what} must be one of {', '.join(SAFETENSORS_TYPES)}, BF16, got {about['dtype']}."
        )
    first, last = about["data_offsets"]
    raw = bytes(data[begin + first : begin + last])
    if about["dtype"] == "BF16":  # the upper half of a float32
        wide = np.frombuffer(raw, dtype="<u2").astype(np.uint32) << 16
        return wide.view(np.float32).reshape(about["shape"])
    values = np.frombuffer(raw, dtype=SAFETENSORS_TYPES[about["dtype"]])
    return values.reshape(about["shape"]).astype("f4")


def _names_from_file(path: Path) -> list[str]:
    file = names_file(path)
    if file is None:
        raise DataError(
            f"{path} has no row names; write one per line to {path.with_suffix('.names').name}."
        )
    return file.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")


GROUP = "Vectors"
#: types of the messages of an object header: none, where the data is, time of the last change
NOTHING, LAYOUT, CHANGED = 0, 8, 18
#: version and class of the layout of data in one piece
CONTIGUOUS = [3, 1]
LONGEST_HEADER = 4096
HARD_LINK = 0
#: number of object headers in memory at a time
HEADERS = 10_000

_BASE32 = re.compile(
    "([A-Z2-7]{8})*(([A-Z2-7]{2}(={6}|[A-Z2-7]{2}(={4}|[A-Z2-7]={3}|[A-Z2-7]{3}=)))?)"
)
_BASE32_DIGITS = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789ABCDEFGHIJKLMNOPQRSTUV", "="
)


def read_hdf5(path: Path) -> tuple[list[str], np.ndarray]:
    """Return all names and vectors."""
    with _group(path) as group:
        links = _links(group)
        names = [strip_angle_brackets(_name(link.key, path)) for link in links]
        return names, _read_links(group, links, path)


def read_hdf5_rows(path: Path, names: Iterable[str]) -> np.ndarray:
    """Read the vectors of these names only; a name without a vector is a row of NaN."""
    names = list(names)
    with _group(path) as group:
        links: list[_Link] = []

        def take(key: bytes) -> bool:
            links.append(_link(group, key.decode()))
            return True  # ends the iteration

        group.id.links.iterate(take)
        places = []
        for i, name in enumerate(names):
            for key in (_key(name), _key(f"<{name}>")):
                if group.id.links.exists(key.encode()):
                    links.append(_link(group, key))
                    places.append(i)
        vectors = _read_links(group, links, path)
        rows = np.full((len(names), vectors.shape[1]), np.nan, dtype=np.float32)
        rows[places] = vectors[1:]
    return rows


class _Link(NamedTuple):
    """A link of a group: its name, and the place of its object in the file if it is a hard link."""

    key: str
    hard: bool
    place: int

    @classmethod
    def of(cls, key: bytes, info: Any) -> _Link:
        """Return a link from what h5py knows of it."""
        return cls(key.decode(), info.type == HARD_LINK, info.u)


def _read_links(group: Any, links: list[_Link], path: Path) -> np.ndarray:
    """Return the vectors of some links, which must have the size of the first one."""
    first = _row(group, links[0].key, path)
    check_content(path, 4 * len(links) * len(first))
    vectors = np.empty((len(links), len(first)), dtype=np.float32)
    done = _read_like_first(group, links, path, vectors)
    for i in np.flatnonzero(~done):
        vectors[i] = _row(group, links[i].key, path, len(first))
    return vectors


def _link(group: Any, key: str) -> _Link:
    return _Link.of(key.encode(), group.id.links.get_info(key.encode()))


def _links(group: Any) -> list[_Link]:
    """Return all links in the order in which h5py lists them."""
    from h5py import h5, h5p

    tracked = group.id.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_TRACKED
    found: list[_Link] = []
    group.id.links.iterate(
        lambda key, info: found.append(_Link.of(key, info)),
        idx_type=h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME,
        info=True,
    )
    return found


def _read_like_first(group: Any, links: list[_Link], path: Path, vectors: np.ndarray) -> np.ndarray:
    """Fill the rows of datasets that are stored like the first one; return which these are.

    HDF5 takes 60 microseconds to open a dataset. A dataset whose object header has the same bytes
    as that of the first one, except for the address of its data, is read from the mapped file.
    """
    done = np.zeros(len(links), dtype=bool)
    first = group[links[0].key]
    begin, size = first.id.get_offset(), first.id.get_storage_size()
    hard = all(link.hard for link in links)
    if begin is None or size != first.size * first.dtype.itemsize or not hard:
        return done
    data = np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    if any(link.place >= len(data) for link in links):  # h5py says which
        return done
    values = sliding_window_view(data, size)
    places = np.array([link.place for link in links], dtype=np.int64)
    for start in range(0, len(links), HEADERS):
        part = slice(start, start + HEADERS)
        begins = _data_addresses(data, np.append(places[0], places[part]))
        if begins[0] != begin:  # addresses do not count from the begin of the file
            break
        rows = np.flatnonzero((begins[1:] > 0) & (begins[1:] < len(values)))
        with np.errstate(over="ignore"):
            vectors[start + rows] = values[begins[1 + rows]].view(first.dtype)
        done[start + rows] = np.isfinite(vectors[start + rows]).all(axis=1)
    return done


def _data_addresses(data: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return where the data of each dataset begins, 0 if it is not stored like the first one.

    In version 1 of the object header, 16 bytes, of which four are the size of all messages, are
    followed by the messages: type and size in two bytes each, four other bytes, and the content.
    """
    unknown = np.zeros(len(places), dtype=np.int64)
    length = 16 + int(data[places[0] + 8 : places[0] + 12].view("<u4")[0])
    if data[places[0]] != 1 or length > LONGEST_HEADER or places.max() + length > len(data):
        return unknown
    headers = sliding_window_view(data, length)[places]
    fixed, address, at = np.ones(length, dtype=bool), None, 16
    while at + 8 <= length:
        kind, size = map(int, headers[0, at : at + 4].view("<u2"))
        if kind == LAYOUT and headers[0, at + 8 : at + 10].tolist() == CONTIGUOUS:
            address = slice(at + 10, at + 18)
            fixed[address] = False
        elif kind in (NOTHING, CHANGED):
            fixed[at + 8 : at + 8 + size] = False
        at += 8 + size
    if address is None:
        return unknown
    same = (headers[:, fixed] == headers[0, fixed]).all(axis=1)
    begins = np.ascontiguousarray(headers[:, address]).view("<i8")[:, 0]
    return np.where(same, begins, 0)


@contextmanager
def _group(path: Path) -> Iterator[Any]:
    h5py = import_extra("h5py", "h5")
    try:
        with h5py.File(path, "r") as file:
            group = _own(file, GROUP, path)
            if not isinstance(group, h5py.Group):
                found = ", ".join(map(str, list(file)[:5])) or "nothing"
                raise DataError(f'{path} has no group "{GROUP}"; it contains: {found}.')
            if not len(group):
                raise DataError(f"{path} contains no vectors.")
            yield group
    # h5py raises these for truncated and damaged files, and for names that are not UTF-8
    except (OSError, RuntimeError, ValueError, TypeError, LookupError, SystemError) as error:
        raise DataError(f"cannot read {path}: {error}.") from error


def _own(group: Any, key: str, path: Path) -> Any:
    """Return an object stored in this file, or None; data in another file is an error."""
    import h5py

    link = group.get(key, getlink=True)
    if link is None:
        return None
    # a soft link may lead through an external one
    if not isinstance(link, h5py.HardLink):
        raise DataError(f'{path}: "{key}" is a link; the vectors must be in the file itself.')
    found = group[key]
    if isinstance(found, h5py.Dataset) and (found.external or found.is_virtual):
        raise DataError(f'{path}: "{key}" refers to another file, which is not read.')
    return found


def _key(name: str) -> str:
    return base64.b32encode(name.encode()).decode()


def _name(key: str, path: Path) -> str:
    try:
        if _BASE32.fullmatch(key) and key:  # several times faster than base64
            digits = key.translate(_BASE32_DIGITS)
            count, rest = divmod(5 * len(digits), 8)
            return (int(digits, 32) >> rest).to_bytes(count).decode()
        return base64.b32decode(key).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError) as error:
        raise DataError(
            f'{path}: dataset "{GROUP}/{key}" is not named by an entity in base 32 ({error}).'
        ) from error


def _row(group: Any, key: str, path: Path, width: int = 0) -> np.ndarray:
    what = f'{path}: the vector of "{_name(key, path)}"'
    found = _own(group, key, path)
    shape = getattr(found, "shape", None)
    if shape is None or found.dtype.kind not in "fiu":
        raise DataError(f"{what} is not a dataset of numbers.")
    if not (len(shape) == 1 or (len(shape) == 2 and shape[0] == 1)) or not shape[-1]:
        raise DataError(f"{what} must have shape (d,) or (1, d), got {shape}.")
    if width and shape[-1] != width:
        raise DataError(f"{what} must have {width} numbers like the others, got {shape[-1]}.")
    # a chunk is decompressed as a whole, and may be larger than the dataset
    check_content(path, found.dtype.itemsize * max(shape[-1], math.prod(found.chunks or ())))
    row = np.asarray(found, dtype=np.float32).reshape(-1)
    if not np.isfinite(row).all():
        raise DataError(f"{what} contains NaN or infinity.")
    return row


HDF5 = (".h5", ".hdf5")
VECTOR_FILE_READERS: dict[str, Callable[[Path], tuple[list[str], np.ndarray]]] = {
    **dict.fromkeys((".txt", ".vec", ".tsv"), read_vector_text),
    ".csv": read_vector_table,
    ".npz": read_npz,
    ".bin": read_word2vec,
    **dict.fromkeys(HDF5, read_hdf5),
    **dict.fromkeys((".parquet", ".feather"), _read_columns),
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


class Lookup(TextEncoder):
    """Base of encoders that look up entities by id and texts by the text itself."""

    takes = ("entity", "text")
    by_text = ("text",)
    #: None: all items in one call
    chunk: ClassVar[int | None] = None

    def transform(self, items: Any) -> np.ndarray:
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
    found = ids.get_indexer(names)
    rows = np.array(vectors[np.maximum(found, 0)])
    rows[found < 0] = np.nan
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
            self.vocabulary_ = _checked(pd.Index(self.ids), vectors, "the vectors")
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
        own = self.format is not None and self.format not in VECTOR_FILE_FORMATS
        return (
            not own and VECTOR_FILE_READERS.get(self.suffix, read_vector_text) is read_vector_text
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
        with _readable(path):
            ids, vectors = read_text_rows(path, wanted)
        _check_size(path, vectors, self.size)
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
        own = self.format is not None and self.format not in VECTOR_FILE_FORMATS
        code = object_identity(registry.vector_formats.get(str(self.format))) if own else ""
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
        _check_size(path, rows, self.size)
        return rows

    def _known(self) -> VectorLookup:
        if not hasattr(self, "known_"):
            self.use(*read_vectors(_existing(self.path), self.size, self.suffix))
        return self.known_

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "size": self.size, "format": self.format}


def check_format(name: str) -> None:
    """Raise a DefinitionError unless a vector file format is built in or registered."""
    if name not in VECTOR_FILE_FORMATS and ":" not in name and name not in registry.vector_formats:
        known = [*VECTOR_FILE_FORMATS, *registry.vector_formats]
        raise DefinitionError(
            f'unknown vector file format "{name}".{did_you_mean(name, known)} '
            f"Expected one of: {', '.join(known)}."
        )


def _existing(path: str) -> Path:
    file = Path(path).expanduser()
    if not file.is_file():
        raise DataError(f"vector file not found: {path}.")
    return file


def read_vectors(
    path: Path, size: int | None = None, suffix: str | None = None
) -> tuple[list[str], np.ndarray]:
    """Return the ids and float32 vectors of a file; raise DataError if it is invalid."""
    suffix = suffix or plain_suffix(path)
    own = suffix and not suffix.startswith(".")
    read = _own_reader(suffix, size) if own else VECTOR_FILE_READERS.get(suffix, read_vector_text)
    with _readable(path):
        ids, vectors = read(path)
    _check_size(path, vectors, size)
    if read not in (read_vector_text, read_vector_table):  # these check every line
        _checked(pd.Index(ids), vectors, str(path))
        # a sum is finite only if all terms are, and it is cheaper than isfinite
        if not np.isfinite(vectors.sum(dtype=np.float64)):
            name = ids[int((~np.isfinite(vectors).all(axis=1)).argmax())]
            raise DataError(f'{path}: the vector of "{name}" contains NaN or infinity.')
    return ids, vectors


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        yield
    except (UnicodeDecodeError, OSError, EOFError, csv.Error, zlib.error) as error:
        raise DataError(f"cannot read {path}: {error}.") from error


def _own_reader(name: str, size: int | None) -> Callable[[Path], Read]:
    """Return the reader of a registered format, with its result and its errors checked."""
    part = registry.vector_formats.get(name)

    def read(path: Path) -> Read:
        try:
            found = part.read_vectors(path, size) if hasattr(part, "read_vectors") else part(path)
            ids, vectors = found
            return [str(name) for name in ids], np.asarray(vectors, dtype=np.float32)
        except (DataError, DefinitionError, OSError):
            raise
        except Exception as error:  # the code of a user may raise anything
            reason = f"{type(error).__name__}: {error}"
            raise DataError(f'{path}: the vector file format "{name}" failed: {reason}.') from error

    return read


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
