"""A split that somebody made, as a data set that knows its parts."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.columns import answers, infer_kind, refuse_fractions
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError, did_you_mean

#: what the truth of each task is
KINDS = {"classification": "classes", "regression": "numbers"}
TASKS = {kind: task for task, kind in KINDS.items()}


def check_task(task: str | None) -> None:
    """Refuse what is no task."""
    if task is not None and task not in KINDS:
        hint = did_you_mean(str(task), KINDS)
        raise DefinitionError(f'task is "classification" or "regression", not {task!r}.{hint}')


def given_split(name: str, X: Sequence[Any], y: Sequence[Any], task: str | None) -> Dataset:
    """Return train and test rows as one data set; the task is inferred where none is given."""
    check_task(task)
    if not isinstance(name, str) or not name.strip():
        raise DefinitionError(f"dataset_name is a text, not {name!r}.")
    tables = [_table(each, f"{name}: X_{side}") for each, side in zip(X, _SIDES, strict=True)]
    truths = [_truth(each, f"{name}: y_{side}") for each, side in zip(y, _SIDES, strict=True)]
    for table, truth, side in zip(tables, truths, _SIDES, strict=True):
        if len(table) != len(truth):
            raise DataError(
                f"{name}: X_{side} has {len(table)} rows and y_{side} {len(truth)} answers."
            )
    _check_columns(name, *tables)
    items = pd.concat([tables[0], tables[1][tables[0].columns]], ignore_index=True)
    truth = pd.concat(truths, ignore_index=True)
    kind = KINDS[task] if task is not None else _inferred(truth, name)
    return Dataset(
        name=name,
        items=items,
        questions=pd.DataFrame({"row": items.index}),
        truth=_checked(truth, kind, name),
        kind=kind,
        modality="table",
        part=np.repeat(_SIDES, [len(table) for table in tables]),
    )


_SIDES = ("train", "test")


def _table(X: Any, where: str) -> pd.DataFrame:
    if not isinstance(X, pd.DataFrame):
        values = np.asarray(X)
        if values.ndim != 2:
            raise DataError(f"{where} is a table, not {values.ndim}-dimensional.")
        return pd.DataFrame(values).infer_objects().add_prefix("column ")
    if not len(X) or not X.shape[1]:
        raise DataError(f"{where} is empty: {X.shape[0]} rows, {X.shape[1]} columns.")
    return X.rename(columns=str)


def _truth(y: Any, where: str) -> pd.Series:
    if isinstance(y, pd.DataFrame):
        y = y.iloc[:, 0] if y.shape[1] == 1 else y.to_numpy()
    values = y if isinstance(y, pd.Series) else np.squeeze(np.asarray(y), axis=_second(np.shape(y)))
    if np.ndim(values) != 1:
        raise DataError(f"{where} is one answer per row, not {np.ndim(values)}-dimensional.")
    truth = pd.Series(values)
    lost = int(truth.isna().sum())
    if lost:
        raise DataError(f"{where} is missing in {lost} of {len(truth)} rows; leave those out.")
    return truth


def _second(shape: tuple[int, ...]) -> tuple[int, ...]:
    return (1,) if len(shape) == 2 and shape[1] == 1 else ()


def _check_columns(name: str, train: pd.DataFrame, test: pd.DataFrame) -> None:
    for one, other, side in ((train, test, "test"), (test, train, "train")):
        lost = [column for column in one.columns if column not in other.columns]
        if lost:
            hint = did_you_mean(lost[0], other.columns)
            raise DataError(f'{name}: X_{side} has no column "{lost[0]}".{hint}')


def _inferred(truth: pd.Series, name: str) -> str:
    values = answers(truth, None, f"{name}: y")
    with warnings.catch_warnings(record=True) as guesses:
        warnings.simplefilter("always")
        kind = infer_kind(values, name)
    distinct = truth.nunique()
    if guesses and distinct > 2:
        warnings.warn(
            f"{name}: y is whole numbers, {distinct} distinct; taken as {TASKS[kind]}. Say "
            f'task="classification" or task="regression" to be sure.',
            stacklevel=4,
        )
    return kind


def _checked(truth: pd.Series, kind: str, name: str) -> np.ndarray:
    values: np.ndarray = answers(truth, kind, f"{name}: y")
    if kind == "classes":
        refuse_fractions(values, f"{name}: y")
    return values
