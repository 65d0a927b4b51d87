"""TabEB's tables and metadata files, from a folder in its layout or from Karat's datasets."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.digest import sha256_of_file
from karat.data.load_dataset import DataSpec, check_integer
from karat.data.readers.table_files import parse_json, read_frame, read_text
from karat.errors import DataError, Unavailable, did_you_mean

METADATA_SUFFIX = "_metadata.json"
KINDS = ("regression", "classification")
KEYS = ("name", "task", "target_name", "entity_name", "repeated", "dtype")
Table = tuple[pd.DataFrame, dict[str, Any]]


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
    content = parse_json(read_text(path), path)
    if not isinstance(content, dict):
        raise DataError(f"{path} is not a JSON object {{key: value, …}}.")
    name = str(content.get("name") or path.name.removesuffix(METADATA_SUFFIX))
    if table is None:
        table = _read_table(
            path.with_name(f"{path.name.removesuffix(METADATA_SUFFIX)}.parquet"), name
        )
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
    folder = Path(folder).expanduser()
    path = folder_file(folder, name)
    if path is None:
        inside = [file.stem for file in folder.iterdir()] if folder.is_dir() else []
        hint = did_you_mean(name, inside)
        raise DataError(f"{name}: there is no file {folder / name / name}.parquet.{hint}")
    table = _read_table(path, name)
    metadata = read_metadata(path.with_name(f"{name}{METADATA_SUFFIX}"), table)
    grouped = metadata.repeated if by_entity is None else by_entity
    if grouped and not metadata.entity_name:
        raise DataError(f'{name}: the metadata have no "entity_name" to group the rows by.')
    if max_rows is not None:
        check_integer(name, "max_rows", max_rows, 1)
    return Dataset.from_table(
        table.head(max_rows) if max_rows else table,
        metadata.target_name,
        name=name,
        kind=metadata.task,
        group=metadata.entity_name if grouped else None,
        group_feature=True,
        about={"source": f"TabEB folder, {name}.parquet", "sha256": sha256_of_file(path)},
    ).with_drawn_by("name")


def _read_table(path: Path, name: str) -> pd.DataFrame:
    if not path.is_file():
        raise DataError(f"{name}: there is no table {path} to check its metadata against.")
    return read_frame(path, DataSpec(name))


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
        column = content.get(key)
        if column is None and key == "target_name":
            yield f'"{key}" is missing.'
        elif column is not None and str(column) not in table.columns:
            hint = did_you_mean(str(column), map(str, table.columns))
            yield f'{key}: "{column}" is not a column.{hint}'
    if not isinstance(content.get("repeated", False), bool):
        yield f'"repeated" must be true or false, got {content["repeated"]!r}.'
    if not isinstance(content.get("dtype") or {}, dict):
        yield '"dtype" must be a mapping {column: type}.'


def _wrong_types(declared: object, table: pd.DataFrame) -> Iterator[str]:
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


def check_tabeb_table(name: str, pair: object) -> Table:
    """Return a table and its metadata; raise if they are not a pair."""
    if isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Mapping):
        return pair
    raise DataError(
        f"{name}: data_dict[{name!r}] must be a table and its metadata, "
        f'(frame, {{"target_name": ...}}), got {type(pair).__name__}.'
    )


class LostData(DataError):
    """Some datasets are not available; ``reasons`` holds the reasons by name."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        super().__init__("\n".join(self.reasons.values()))


def folder_file(data_dir: str | Path | None, name: str) -> Path | None:
    """Return the Parquet file of a dataset in a folder with TabEB's layout, or None."""
    if not data_dir:
        return None
    folder = Path(data_dir).expanduser()
    places = (folder / name / f"{name}.parquet", folder / f"{name}.parquet")
    return next((path for path in places if path.is_file()), None)


def find_table(name: str, data_dir: str | Path | None) -> Table:
    """Return a table with its target column, and its metadata; the folder takes precedence."""
    path = folder_file(data_dir, name)
    if path is not None:
        return _of_folder(path, name)
    catalog = Catalog()
    available = catalog.definitions.names("datasets")
    where = f"no file {Path(data_dir) / name / name}.parquet" if data_dir else "no data_dir given"
    if name in available:
        try:
            return _of_catalog(name, catalog)
        except Unavailable as error:
            raise Unavailable(f"{name}: {where}, and {error}") from error
    raise DataError(
        f"{name}: {where}, and Karat has no dataset with this name."
        f"{did_you_mean(name, available)}   (karat list datasets)"
    )


def warn_of_own(names: Iterable[str], data_dir: str | Path | None) -> None:
    """Warn about tables that are taken from Karat because the folder does not have them."""
    of_karat = [name for name in names if data_dir and folder_file(data_dir, name) is None]
    if of_karat:
        warnings.warn(
            f"data_dir: {data_dir} does not contain {', '.join(of_karat)}; using Karat's "
            f"datasets of these names.",
            stacklevel=3,
        )


def _of_folder(path: Path, name: str) -> Table:
    data = load_tabeb(path.parent, name, by_entity=False)
    metadata_path = path.with_name(f"{name}{METADATA_SUFFIX}")
    metadata = dataclasses.asdict(read_metadata(metadata_path))
    wrong = metadata.pop("warnings")
    if wrong:
        warnings.warn(
            f"{metadata_path.name}: ignored {len(wrong)} of {len(metadata['dtype'])} declared "
            f"types that are wrong; the first: {wrong[0]}",
            stacklevel=4,
        )
    return _with_target(data, metadata["target_name"]), metadata


def _of_catalog(name: str, catalog: Catalog) -> Table:
    data = catalog.dataset(name)()
    if data.modality != "table" or data.kind not in KINDS or len(data.fields) != 1:
        raise DataError(
            f"{name} is not a table with one class or number per row: it has {data.modality} "
            f"items, {len(data.fields)} fields and the target kind {data.kind}."
        )
    definitions = catalog.definitions
    definition = definitions.get("datasets", name)
    entity = definition.get("group")
    if entity is None and f"{name}_by_entity" in definitions.names("datasets"):
        entity = definitions.get("datasets", f"{name}_by_entity").get("group")
    loader = definition.get("load")
    target = definition.get("target") or (isinstance(loader, dict) and loader.get("target"))
    target = str(target or "target")
    while target in data.items.columns:
        target += "_"
    metadata: dict[str, Any] = {
        "name": name,
        "task": data.kind,
        "target_name": target,
        "entity_name": entity if entity in data.items.columns else None,
        "repeated": bool(definition.get("group")) and entity in data.items.columns,
        "dtype": {},
    }
    return _with_target(data, target), metadata


def _with_target(data: Dataset, target: str) -> pd.DataFrame:
    table = data.frame()
    assert isinstance(table, pd.DataFrame)
    return table.assign(**{target: data.target})
