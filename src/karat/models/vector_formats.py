"""Read vectors from ``.npz``, word2vec binary, Parquet, Feather and safetensors files."""

from __future__ import annotations

import json
import mmap
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from karat.errors import DataError, MissingExtra
from karat.models.vector_text import pieces, unbracketed

Read = tuple[list[str], np.ndarray]


def read_npz(path: Path) -> Read:
    """Return the arrays ``ids`` and ``vectors`` of a file."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            return [str(i) for i in arrays["ids"]], arrays["vectors"].astype(np.float32, copy=False)
    except (
        *(KeyError, ValueError, OSError, TypeError, AttributeError, EOFError),
        *(zipfile.BadZipFile, zlib.error),
    ) as error:
        raise DataError(f'{path}: not an .npz with "ids" and "vectors": {error}.') from error


# -- word2vec -------------------------------------------------------------------------------


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
        yield b"".join(pieces(path))
        return
    if not path.stat().st_size:
        raise DataError(f"{path} contains no vectors.")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        yield data


def _word(raw: bytes, row: int, path: Path) -> str:
    try:
        # some programs write a newline after each vector
        return unbracketed(raw.lstrip(b"\n").decode())
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: name {row + 1} is not UTF-8 ({error.reason}).") from error


# -- columns --------------------------------------------------------------------------------


def read_columns(path: Path) -> Read:
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
    return [unbracketed(str(name)) for name in ids.to_pylist()], vectors


def _table(path: Path) -> Any:
    try:
        from pyarrow import feather, parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "tables") from error
    read = parquet.read_table if path.suffix.lower() == ".parquet" else feather.read_table
    try:
        return read(path)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}.") from error


def _is_text(kind: Any) -> bool:
    name = str(getattr(kind, "value_type", kind) if "dictionary" in str(kind) else kind)
    return name in ("string", "large_string", "string_view")


def _number_columns(table: Any, path: Path) -> np.ndarray:
    for name in table.column_names:
        if np.dtype(table.schema.field(name).type.to_pandas_dtype()).kind not in "fiu":
            raise DataError(f'{path}: column "{name}" is not numeric.')
    vectors = np.empty(table.shape, dtype=np.float32)
    for i in range(table.num_columns):
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


# -- safetensors ----------------------------------------------------------------------------

TYPES = {"F16": "<f2", "F32": "<f4", "F64": "<f8"}


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
            matrices = {name: each for name, each in header.items() if len(each["shape"]) == 2}
            name = "vectors" if "vectors" in matrices else next(iter(matrices), "")
            if not name or (len(matrices) > 1 and name != "vectors"):
                found = ", ".join(matrices) or "none"
                raise DataError(f'{path} needs one matrix, or one named "vectors"; got: {found}.')
            vectors = _tensor(data, begin, matrices[name], f'{path}: the tensor "{name}"')
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"cannot read {path} as safetensors: {error}.") from error
    return [unbracketed(str(name)) for name in names or _names_from_file(path)], vectors


def _tensor(data: Any, begin: int, about: dict[str, Any], what: str) -> np.ndarray:
    if about["dtype"] not in (*TYPES, "BF16"):
        raise DataError(f"{what} must be one of {', '.join(TYPES)}, BF16, got {about['dtype']}.")
    first, last = about["data_offsets"]
    if begin + last > len(data):
        raise DataError(f"{what} is truncated.")
    raw = bytes(data[begin + first : begin + last])
    if about["dtype"] == "BF16":  # the upper half of a float32
        wide = np.frombuffer(raw, dtype="<u2").astype(np.uint32) << 16
        return wide.view(np.float32).reshape(about["shape"])
    return np.frombuffer(raw, dtype=TYPES[about["dtype"]]).reshape(about["shape"]).astype("f4")


def _names_from_file(path: Path) -> list[str]:
    file = names_file(path)
    if file is None:
        raise DataError(
            f"{path} has no row names; write one per line to {path.with_suffix('.names').name}."
        )
    return file.read_text(encoding="utf-8-sig").removesuffix("\n").split("\n")
