"""Read vectors from the columns of a Parquet or Feather file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.core.files import check_parquet, read_feather
from karat.errors import DataError
from karat.models.model import import_extra
from karat.models.vectors.vector_names import NamedVectors, strip_angle_brackets

if TYPE_CHECKING:
    import pyarrow


def read_vector_columns(path: Path) -> NamedVectors:
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


def _is_text(kind: pyarrow.DataType) -> bool:
    name = str(getattr(kind, "value_type", kind) if "dictionary" in str(kind) else kind)
    return name in ("string", "large_string", "string_view")


def _number_columns(table: pyarrow.Table, path: Path) -> np.ndarray:
    vectors = np.empty(table.shape, dtype=np.float32)
    for i, name in enumerate(table.column_names):
        if np.dtype(table.schema.field(name).type.to_pandas_dtype()).kind not in "fiu":
            raise DataError(f'{path}: column "{name}" is not numeric.')
        vectors[:, i] = table.column(i).to_numpy()
    return vectors


def _list_column(table: pyarrow.Table, path: Path) -> np.ndarray | None:
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
