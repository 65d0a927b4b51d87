"""TabEB's folders: one Parquet file and one metadata file per table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from karat.data.frames import parse_json, read_frame, read_text
from karat.data.load import DataSpec, check_integer
from karat.data.sources import sha256_of
from karat.dataset import Dataset
from karat.errors import DataError, did_you_mean

ENDING = "_metadata.json"
KINDS = {"regression": "numbers", "classification": "classes"}
KEYS = ("name", "task", "target_name", "entity_name", "repeated", "dtype")


@dataclass(frozen=True)
class Metadata:
    """The content of a metadata file.

    Attributes
    ----------
    task
        ``"regression"`` or ``"classification"``.
    entity_name
        The column with the entity of a row, if any.
    repeated
        Whether rows of one entity stay on one side of a split.
    dtype
        The declared types of columns; wrong ones are listed in ``warnings``.
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
    """Return the content of a metadata file, checked against its table.

    The table is by default the Parquet file in the same folder. One DataError lists all mistakes;
    wrong column types are errors if ``strict``, else warnings.
    """
    path = Path(path)
    content = _json(path)
    name = str(content.get("name") or path.name.removesuffix(ENDING))
    if table is None:
        table = _read_table(path.with_name(f"{path.name.removesuffix(ENDING)}.parquet"), name)
    mistakes = list(_mistakes(content, table))
    warnings = list(_wrong_types(content.get("dtype"), table))
    if strict:
        mistakes += warnings
    if mistakes:
        raise DataError("\n".join(f"{path}: {mistake}" for mistake in mistakes))
    return Metadata(
        name=name,
        task=content["task"],
        target_name=content["target_name"],
        entity_name=content.get("entity_name"),
        repeated=content.get("repeated", False),
        dtype=dict(content.get("dtype") or {}),
        warnings=tuple(warnings),
    )


def load_tabeb(
    folder: str | Path, name: str, *, max_rows: int | None = None, by_entity: bool | None = None
) -> Dataset:
    """Return a table of a TabEB folder: ``<name>/<name>.parquet`` or ``<name>.parquet``.

    Rows of one entity are a group if the metadata declare ``repeated``; ``by_entity`` overrides
    it. ``max_rows`` keeps the first rows, as TabEB does; ``Dataset.sample`` draws random ones.
    """
    path = _place(Path(folder).expanduser(), name)
    table = _read_table(path, name)
    metadata = read_metadata(path.with_name(f"{name}{ENDING}"), table)
    grouped = metadata.repeated if by_entity is None else by_entity
    if grouped and not metadata.entity_name:
        raise DataError(f'{name}: the metadata have no "entity_name" to group the rows by.')
    if max_rows is not None:
        check_integer(name, "max_rows", max_rows, 1)
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
    content = parse_json(read_text(path), path)
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a JSON object {{key: value, …}}.")
    return content


# -- mistakes ------------------------------------------------------------------------------


def _mistakes(content: Mapping[str, Any], table: pd.DataFrame) -> Iterator[str]:
    for key in content:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS)
            yield f'unknown key "{key}".{hint} Allowed: {", ".join(KEYS)}.'
    task = content.get("task")
    if str(task) not in KINDS:
        hint = did_you_mean(str(task), KINDS)
        yield f'"task" must be regression or classification, got {task!r}.{hint}'
    for key in ("target_name", "entity_name"):
        if content.get(key) is not None or key == "target_name":
            yield from _no_column(key, content.get(key), table)
    if not isinstance(content.get("repeated", False), bool):
        yield f'"repeated" must be true or false, got {content["repeated"]!r}.'
    if not isinstance(content.get("dtype") or {}, dict):
        yield '"dtype" must be a mapping {column: type}.'


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
            actual = "text" if numbers else "numbers"
            yield f'dtype: "{column}" is declared as {type_name} but contains {actual}.'
