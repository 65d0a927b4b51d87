"""Turn a data frame into a Dataset, and checks that readers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from karat.columns import need_columns
from karat.data.load import DataSpec, Files
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean


def ask(frame: pd.DataFrame, spec: DataSpec, label: Callable[[str], str] | None) -> Dataset:
    """Return a dataset with one question per row about the cells of the spec's fields."""
    target = need_target(spec)
    need_columns(frame, [*spec.fields, target], spec.name)
    frame = _drop_missing_targets(frame, spec)
    data = Dataset.from_columns(
        frame,
        list(spec.fields),
        target,
        name=spec.name,
        kind=spec.kind,
        modality="entity" if spec.modality == "entity" else "text",
        group=spec.group,
        part=spec.part,
        label=label,
        about=spec.about,
    )
    return _order_classes(data, spec)


def ask_rows(frame: pd.DataFrame, spec: DataSpec) -> Dataset:
    """Return a dataset whose items are the rows of a table, with one question about each."""
    target = need_target(spec)
    need_columns(frame, [target, *spec.fields], spec.name)
    frame = _drop_missing_targets(frame, spec)
    kept = {target, spec.group, spec.part, *spec.fields}
    unused = [c for c in frame.columns if c not in kept] if spec.fields else []
    data = Dataset.from_table(
        frame,
        target,
        name=spec.name,
        kind=spec.kind,
        group=spec.group,
        drop=list(dict.fromkeys([*spec.drop, *unused])),
        part=spec.part,
        about=spec.about,
    )
    return _order_classes(data, spec)


def need_target(spec: DataSpec) -> str:
    """Return the target column, or raise a DefinitionError if there is none."""
    if not spec.target:
        raise DefinitionError(f'{spec.name}: the target column is missing; add "target: NAME".')
    return spec.target


def one_file(files: Files, spec: DataSpec) -> Path:
    """Return the file, for readers that do not support a train and a test file."""
    if not isinstance(files, Path):
        raise DefinitionError(f"{spec.name}: this reader takes one file, not train and test.")
    return files


def file_in(folder: Path, name: object) -> Path:
    """Return the path of a file in a folder, or raise a DataError."""
    path = folder / str(name)
    if not path.is_file():
        near = did_you_mean(str(name), [other.name for other in folder.iterdir()])
        raise DataError(f'{folder} has no file "{name}".{near}')
    return path


def _drop_missing_targets(frame: pd.DataFrame, spec: DataSpec) -> pd.DataFrame:
    drop = spec.choice("unanswered", "refuse", "drop") == "drop"
    return frame[frame[spec.target].notna()] if drop else frame


def _order_classes(data: Dataset, spec: DataSpec) -> Dataset:
    """Order the classes as in the option ``labels``; the last one is the positive class."""
    names = list(dict.fromkeys(map(str, (spec.options.get("labels") or {}).values())))
    if not names or data.kind != "classes":
        return data
    return replace(data, classes=tuple(name for name in names if name in data.classes))
