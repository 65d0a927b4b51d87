"""Datasets from what scikit-learn takes: arrays, frames or texts, and one target value per row."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from karat.core.columns import as_frame, require_columns
from karat.core.dataset import PARTS, Dataset
from karat.errors import DataError, DefinitionError, warn_caller

#: name of data without a name of their own, and of the column of texts
NAME, TEXT = "data", "text"
#: most columns that a message lists
MOST_COLUMNS = 12


def is_table_like(thing: object) -> bool:
    """Return whether an object is an array, a frame or a series, or a pair (train, test) of them.

    >>> is_table_like(np.zeros((2, 2))), is_table_like(["adult", "diabetes"])
    (True, False)
    """
    if isinstance(thing, tuple):
        return len(thing) == len(PARTS) and all(map(is_table_like, thing))
    return hasattr(thing, "shape") and not isinstance(thing, type)


def data_from_arrays(
    X: object,
    target: object,
    *,
    kind: str | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Dataset:
    """Return the dataset of rows and their targets.

    ``X`` is an array, a frame, or texts; a pair of them is a train and a test part. ``target``,
    ``groups`` and ``sample_weight`` are columns of ``X`` or one value per row. The dataset is named
    after its target.
    """
    _check_target(X, target)
    part, is_frame = None, hasattr(X[0] if isinstance(X, tuple) else X, "columns")
    if isinstance(X, tuple):
        part = np.repeat(PARTS, [_length(rows) for rows in X])
        X, target = _joined(X), _joined_values(target, part)
    table = _frame(X)
    name = _name_of(table, target)
    values = {"group": groups, "weight": sample_weight}
    columns = {key: column for key, column in values.items() if isinstance(column, str)}
    group, weight = columns.get("group"), columns.get("weight")
    require_columns(table, list(columns.values()), name)
    arrays: dict[str, Any] = {
        key: _values(column, len(table), key, name)
        for key, column in {**values, "part": part}.items()
        if column is not None and key not in columns
    }
    if not is_frame and not isinstance(target, str):
        target = np.asarray(target)  # rows of an array have no names to match
    options: dict[str, Any] = {"name": name, "kind": kind, "group": group, "weight": weight}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*the target is whole numbers")
        if not is_frame and list(table.columns) == [TEXT]:
            frame = table.assign(target=np.asarray(target))
            data = Dataset.from_columns(frame, [TEXT], "target", **options)
        else:
            data = Dataset.from_table(table, target, **options)
    if kind is None:
        _note_kind(data)
    return dataclasses.replace(data, **arrays) if arrays else data


def _note_kind(data: Dataset) -> None:
    """Warn if whole numbers were taken for one kind of target and may be the other."""
    answers: Any = data.target
    if data.kind == "items" or answers.dtype.kind not in "iuf" or len(set(answers.tolist())) == 2:
        return
    if (answers == np.round(answers)).all():
        warn_caller(
            f"{data.name}: the target is whole numbers, taken as {data.kind}; labels are text "
            f"(y.astype(str)), and karat.Dataset.from_table(…, kind=…) sets the kind."
        )


def _name_of(table: pd.DataFrame, target: object) -> str:
    name = getattr(target, "name", None)
    if isinstance(target, str):
        name = target if target in table.columns else None
    return name if isinstance(name, str) and name.strip() else NAME


def _check_target(X: object, target: object) -> None:
    if target is not None:
        return
    parts = X if isinstance(X, tuple) else (X,)
    columns = getattr(parts[0], "columns", None)
    if columns is None:
        raise DefinitionError(
            "the rows have no target; give one value per row: karat.evaluate(model, X, y)."
        )
    names = [str(column) for column in columns]
    more = f" and {len(names) - MOST_COLUMNS} more" if len(names) > MOST_COLUMNS else ""
    raise DefinitionError(
        f"the table has no target; name its column: karat.evaluate(model, table, "
        f'target="{names[-1] if names else "y"}"). Its columns are '
        f"{', '.join(names[:MOST_COLUMNS])}{more}."
    )


def _length(rows: Any) -> int:
    return int(rows.shape[0])


def _joined(parts: Sequence[Any]) -> Any:
    """Return the rows of the train and the test part, which must have the same columns."""
    train, test = (_frame(rows) for rows in parts)
    if list(train.columns) != list(test.columns):
        unlike = sorted(map(str, set(train.columns) ^ set(test.columns))) or ["their order"]
        raise DataError(f"the columns of the train and the test part differ: {', '.join(unlike)}.")
    return pd.concat([train, test], ignore_index=True)


def _joined_values(target: object, part: np.ndarray) -> Any:
    """Return the targets of the train and the test part; one column, or a pair of values."""
    if isinstance(target, str):
        return target
    sizes = [int((part == name).sum()) for name in PARTS]
    arrays = [np.asarray(values) for values in target] if isinstance(target, tuple) else []
    if [len(values) for values in arrays] != sizes:
        raise DataError(
            f"the target of a train and a test part must be a column, or a pair of {sizes[0]} and "
            f"{sizes[1]} values."
        )
    return np.concatenate(arrays)


def _frame(X: object) -> pd.DataFrame:
    """Return rows as a frame; the columns of an array are named x0, x1 and so on."""
    if hasattr(X, "tocsr") or hasattr(X, "sparse") and hasattr(X.sparse, "to_dense"):
        raise DataError(
            "X is sparse, and a table is dense; give X.toarray(), or the texts or cells themselves "
            "and a pipeline that vectorizes them."
        )
    if hasattr(X, "columns"):
        return as_frame(X, NAME)
    values = X if isinstance(X, pd.Series) else np.asarray(X)
    if values.ndim == 1 and len(values) and all(isinstance(value, str) for value in values):
        return pd.DataFrame({TEXT: np.asarray(values, dtype=object)})
    if values.ndim != 2:
        raise DataError(
            f"X must have rows and columns, or be texts; it has {values.ndim} "
            f"dimension{'s' * (values.ndim != 1)} (X.reshape(-1, 1) makes one column)."
        )
    return pd.DataFrame(values, columns=[f"x{number}" for number in range(values.shape[1])])


def _values(column: ArrayLike | None, rows: int, what: str, name: str) -> np.ndarray:
    values = np.asarray(column)
    if values.shape != (rows,):
        raise DataError(f"{name}: {what} must have {rows} values, one per row, got {len(values)}.")
    return values
