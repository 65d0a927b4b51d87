"""The tables of a task, from a folder in TabEB's layout or from Karat's datasets."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from karat.catalogue import Catalogue
from karat.data.tabeb import ENDING, KINDS, load_tabeb, read_metadata
from karat.dataset import Dataset
from karat.errors import DataError, Unavailable, did_you_mean

Table = tuple[pd.DataFrame, dict[str, Any]]


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
    return next((place for place in places if place.is_file()), None)


def find_table(name: str, data_dir: str | Path | None) -> Table:
    """Return a table with its target column, and its metadata; the folder takes precedence."""
    path = folder_file(data_dir, name)
    if path is not None:
        return _of_folder(path, name)
    catalogue = Catalogue()
    known = catalogue.definitions.names("datasets")
    where = "no data_dir given"
    if data_dir:
        where = f"no file {Path(data_dir) / name / name}.parquet"
    if name in known:
        try:
            return _of_catalogue(name, catalogue)
        except Unavailable as error:
            raise Unavailable(f"{name}: {where}, and {error}") from error
    raise DataError(
        f"{name}: {where}, and Karat has no dataset with this name."
        f"{did_you_mean(name, known)}   (karat list datasets)"
    )


def warn_of_own(names: Iterable[str], data_dir: str | Path | None) -> None:
    """Warn about tables that are taken from Karat because the folder does not have them."""
    own = [name for name in names if data_dir and folder_file(data_dir, name) is None]
    if own:
        warnings.warn(
            f"data_dir: {data_dir} does not contain {', '.join(own)}; using Karat's datasets of "
            f"these names.",
            stacklevel=3,
        )


def _of_folder(path: Path, name: str) -> Table:
    data = load_tabeb(path.parent, name, by_entity=False)
    place = path.with_name(f"{name}{ENDING}")
    metadata = dataclasses.asdict(read_metadata(place))
    wrong = metadata.pop("warnings")
    if wrong:
        warnings.warn(
            f"{place.name}: ignored {len(wrong)} of {len(metadata['dtype'])} declared types that "
            f"are wrong; the first: {wrong[0]}",
            stacklevel=4,
        )
    return _with_target(data, metadata["target_name"]), metadata


def _of_catalogue(name: str, catalogue: Catalogue) -> Table:
    data = catalogue.dataset(name)()
    kinds = {kind: task for task, kind in KINDS.items()}
    if data.modality != "table" or data.kind not in kinds or len(data.fields) != 1:
        raise DataError(
            f"{name} is not a table with one class or number per row: it has {data.modality} "
            f"items, {len(data.fields)} fields and the target kind {data.kind}."
        )
    definitions = catalogue.definitions
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
        "task": kinds[data.kind],
        "target_name": target,
        "entity_name": entity if entity in data.items.columns else None,
        "repeated": bool(definition.get("group")) and entity in data.items.columns,
        "dtype": {},
    }
    return _with_target(data, target), metadata


def _with_target(data: Dataset, target: str) -> pd.DataFrame:
    table = data.frame()
    assert isinstance(table, pd.DataFrame)
    return table.assign(**{target: data.truth})
