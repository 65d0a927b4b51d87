"""TabEB's own folders: a Parquet file per table, and a metadata file that says what is asked."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from karat.data.frames import read_bytes, read_frame
from karat.data.load import DataSpec
from karat.data.sources import sha256_of
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean

ENDING = "_metadata.json"
KINDS = {"regression": "numbers", "classification": "classes"}
KEYS = ("name", "task", "target_name", "entity_name", "repeated", "dtype")


@dataclass(frozen=True)
class Metadata:
    """What a metadata file says about its table.

    Attributes
    ----------
    task
        ``"regression"`` or ``"classification"``.
    entity_name
        The column that names what a row is about, if the file gives one.
    repeated
        Whether rows about one entity are to stay on one side of a split.
    dtype
        The declared types of columns; those that are wrong stand under ``warnings``.
    """

    name: str
    task: str
    target_name: str
    entity_name: str | None = None
    repeated: bool = False
    dtype: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


def read_metadata(
    path: str | Path, table: pd.DataFrame | None = None, *, strict: bool = False
) -> Metadata:
    """Return the record of a metadata file, checked against its table.

    The table is the Parquet file beside it, unless one is given. All mistakes are said in one
    DataError; wrong types of columns are only among them if ``strict``, else they are warnings.
    """
    path = Path(path)
    said = _json(path)
    name = str(said.get("name") or path.name.removesuffix(ENDING))
    if table is None:
        table = _read_table(path.with_name(f"{path.name.removesuffix(ENDING)}.parquet"), name)
    mistakes = list(_mistakes(said, table))
    warnings = list(_wrong_types(said.get("dtype"), table))
    if strict:
        mistakes += warnings
    if mistakes:
        raise DataError("\n".join(f"{path}: {mistake}" for mistake in mistakes))
    return Metadata(
        name=name,
        task=said["task"],
        target_name=said["target_name"],
        entity_name=said.get("entity_name"),
        repeated=said.get("repeated", False),
        dtype=dict(said.get("dtype") or {}),
        warnings=tuple(warnings),
    )


def load_tabeb(
    folder: str | Path, name: str, *, max_rows: int | None = None, by_entity: bool | None = None
) -> Dataset:
    """Return a table of a TabEB folder: ``<name>/<name>.parquet`` with its metadata, or both flat.

    Rows about one entity are a group if the metadata say ``repeated``, or as ``by_entity`` says.
    ``max_rows`` keeps the first rows, as TabEB does; ``Dataset.sample`` draws them instead.
    """
    path = _place(Path(folder).expanduser(), name)
    table = _read_table(path, name)
    metadata = read_metadata(path.with_name(f"{name}{ENDING}"), table)
    grouped = metadata.repeated if by_entity is None else by_entity
    if grouped and not metadata.entity_name:
        raise DataError(f'{name}: its metadata have no "entity_name" to group the rows by.')
    if max_rows is not None and max_rows < 1:
        raise DefinitionError(f"{name}: max_rows is a whole number of 1 or more, not {max_rows!r}.")
    return Dataset.from_table(
        table.head(max_rows) if max_rows else table,
        metadata.target_name,
        name=name,
        kind=KINDS[metadata.task],
        group=metadata.entity_name if grouped else None,
        about={"source": f"TabEB folder, {name}.parquet", "sha256": sha256_of(path)},
    )


def _place(folder: Path, name: str) -> Path:
    places = [folder / name / f"{name}.parquet", folder / f"{name}.parquet"]
    for place in places:
        if place.is_file():
            return place
    inside = [path.stem for path in folder.iterdir()] if folder.is_dir() else []
    raise DataError(f"{name}: there is no file {places[0]}.{did_you_mean(name, inside)}")


def _read_table(path: Path, name: str) -> pd.DataFrame:
    if not path.is_file():
        raise DataError(f"{name}: there is no table {path} to check its metadata against.")
    return read_frame(path, DataSpec(name))


def _json(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(read_bytes(path).decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not a UTF-8 text file.") from error
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno}: {error.msg}.") from error
    if not isinstance(said, dict):
        raise DataError(f"{path} holds no metadata {{key: value, …}}.")
    return said


# -- what can be wrong ----------------------------------------------------------------------


def _mistakes(said: Mapping[str, Any], table: pd.DataFrame) -> Iterator[str]:
    for key in said:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS)
            yield f'unknown key "{key}".{hint} Known: {", ".join(KEYS)}.'
    task = said.get("task")
    if str(task) not in KINDS:
        hint = did_you_mean(str(task), KINDS)
        yield f'"task" is regression or classification, not {task!r}.{hint}'
    for key in ("target_name", "entity_name"):
        if said.get(key) is not None or key == "target_name":
            yield from _no_column(key, said.get(key), table)
    if not isinstance(said.get("repeated", False), bool):
        yield f'"repeated" is true or false, not {said["repeated"]!r}.'
    if not isinstance(said.get("dtype") or {}, dict):
        yield '"dtype" is a mapping {column: type}.'


def _no_column(key: str, name: Any, table: pd.DataFrame) -> Iterator[str]:
    if name is None:
        yield f'"{key}" is missing.'
    elif str(name) not in table.columns:
        known = [str(column) for column in table.columns]
        yield f'{key}: "{name}" is not a column.{did_you_mean(str(name), known)}'


def _wrong_types(declared: Any, table: pd.DataFrame) -> Iterator[str]:
    for column, type_name in declared.items() if isinstance(declared, dict) else ():
        if column not in table.columns:
            hint = did_you_mean(column, map(str, table.columns))
            yield f'dtype: "{column}" is not a column.{hint}'
            continue
        try:
            numbers = pd.api.types.is_numeric_dtype(pd.api.types.pandas_dtype(type_name))
        except TypeError:
            yield f'dtype: "{type_name}" of "{column}" is not a type.'
            continue
        if numbers != pd.api.types.is_numeric_dtype(table[column]):
            held = "text" if numbers else "numbers"
            yield f'dtype: "{column}" is said to be {type_name} and holds {held}.'
