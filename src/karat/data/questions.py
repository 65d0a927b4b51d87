"""From a data frame to a data set: which columns are asked about, and which one answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pandas as pd

from karat.columns import need_columns
from karat.data.load import DataSpec, Files
from karat.dataset import Dataset
from karat.errors import DefinitionError


def ask(frame: pd.DataFrame, spec: DataSpec, label: Callable[[str], str] | None) -> Dataset:
    """Return the data set that asks, row by row, about the cells of the spec's fields."""
    target = need_target(spec)
    need_columns(frame, [*spec.fields, target], spec.name)
    frame = _answered(frame, spec)
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
    return _in_order(data, spec)


def ask_rows(frame: pd.DataFrame, spec: DataSpec) -> Dataset:
    """Return the data set whose items are the rows of a table, one question about each."""
    target = need_target(spec)
    need_columns(frame, [target, *spec.fields], spec.name)
    frame = _answered(frame, spec)
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
    return _in_order(data, spec)


def need_target(spec: DataSpec) -> str:
    """Return the column of the answers, which the definition must name."""
    if not spec.target:
        raise DefinitionError(f'{spec.name}: say which column holds the answers: "target: NAME".')
    return spec.target


def one_file(files: Files, spec: DataSpec) -> Path:
    """Return the file, for readers that cannot take a train and a test file."""
    if not isinstance(files, Path):
        raise DefinitionError(f"{spec.name}: this reader takes one file, not train and test.")
    return files


def _answered(frame: pd.DataFrame, spec: DataSpec) -> pd.DataFrame:
    """Return the rows that have an answer, if the option ``unanswered`` says to drop the others."""
    how = spec.options.get("unanswered", "refuse")
    if how not in ("refuse", "drop"):
        raise DefinitionError(f'{spec.name}: "unanswered" is "refuse" or "drop", not "{how}".')
    return frame[frame[spec.target].notna()] if how == "drop" else frame


def _in_order(data: Dataset, spec: DataSpec) -> Dataset:
    """Return it with its classes in the order of the option ``labels``: the last is positive."""
    names = list(dict.fromkeys(map(str, (spec.options.get("labels") or {}).values())))
    if not names or data.kind != "classes":
        return data
    return replace(data, classes=tuple(name for name in names if name in data.classes))
