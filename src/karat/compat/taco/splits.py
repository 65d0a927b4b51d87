"""A given train/test split as one dataset."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import answers, infer_kind, refuse_fractions
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean

#: the kind of target of each task
KINDS = {"classification": "classes", "regression": "numbers"}
TASKS = {kind: task for task, kind in KINDS.items()}


def check_task(task: str | None) -> None:
    """Raise if the task is unknown."""
    if task is not None and task not in KINDS:
        hint = did_you_mean(str(task), KINDS)
        raise DefinitionError(f'task must be "classification" or "regression", got {task!r}.{hint}')


def given_split(name: str, X: Sequence[Any], y: Sequence[Any], task: str | None) -> Dataset:
    """Return train and test rows as one dataset; the task is inferred if None."""
    check_task(task)
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError(f"dataset_name must be a non-empty string, got {name!r}.")
    tables = [_table(each, f"{name}: X_{side}") for each, side in zip(X, _SIDES, strict=True)]
    targets = [_target(each, f"{name}: y_{side}") for each, side in zip(y, _SIDES, strict=True)]
    for table, target, side in zip(tables, targets, _SIDES, strict=True):
        if len(table) != len(target):
            raise DataError(
                f"{name}: X_{side} has {len(table)} rows but y_{side} has {len(target)}."
            )
    _check_columns(name, *tables)
    items = pd.concat([tables[0], tables[1][tables[0].columns]], ignore_index=True)
    target = pd.concat(targets, ignore_index=True)
    kind = KINDS[task] if task is not None else _inferred(target, name)
    truth = answers(target, kind, f"{name}: y")
    if kind == "classes":
        refuse_fractions(truth, f"{name}: y")
    return Dataset(
        name=name,
        items=items,
        questions=pd.DataFrame({"row": items.index}),
        truth=truth,
        kind=kind,
        modality="table",
        part=np.repeat(_SIDES, [len(table) for table in tables]),
    )


_SIDES = ("train", "test")


def _table(X: Any, where: str) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        values = np.asarray(X)
        if values.ndim != 2:
            raise DataError(f"{where} must have two dimensions, got {values.ndim}.")
        return pd.DataFrame(values).infer_objects().add_prefix("column ")
    if not len(X) or not X.shape[1]:
        raise DataError(f"{where} is empty: {X.shape[0]} rows, {X.shape[1]} columns.")
    return X.rename(columns=str)


def _target(y: Any, where: str) -> pd.Series:
    if isinstance(y, pd.DataFrame) and y.shape[1] == 1:
        y = y.iloc[:, 0]
    if not isinstance(y, pd.Series):
        y = np.asarray(y)
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
    if np.ndim(y) != 1:
        raise DataError(f"{where} must have one value per row, got {np.ndim(y)} dimensions.")
    target = pd.Series(y)
    missing = int(target.isna().sum())
    if missing:
        raise DataError(f"{where} is missing in {missing} of {len(target)} rows; remove these.")
    return target


def _check_columns(name: str, train: pd.DataFrame, test: pd.DataFrame) -> None:
    for one, other, side in ((train, test, "test"), (test, train, "train")):
        missing = [column for column in one.columns if column not in other.columns]
        if missing:
            hint = did_you_mean(missing[0], other.columns)
            raise DataError(f'{name}: X_{side} has no column "{missing[0]}".{hint}')


def _inferred(target: pd.Series, name: str) -> str:
    values = answers(target, None, f"{name}: y")
    with warnings.catch_warnings(record=True) as guesses:
        warnings.simplefilter("always")
        kind = infer_kind(values, name)
    distinct = target.nunique()
    if guesses and distinct > 2:
        warnings.warn(
            f"{name}: y has {distinct} distinct integers; assuming {TASKS[kind]}. Pass "
            f'task="classification" or task="regression" to silence this warning.',
            stacklevel=4,
        )
    return kind
