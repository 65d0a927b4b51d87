"""Check tables and columns; convert targets to arrays and infer their kind."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError, did_you_mean


def check_table(table: Any, name: str) -> pd.DataFrame:
    """Return a table with a new index, or raise a DataError if it cannot be used."""
    if not isinstance(table, pd.DataFrame):
        raise DataError(f"{name}: expected a data frame, got {type(table).__name__}.")
    if table.empty:
        raise DataError(f"{name} is empty: {table.shape[0]} rows, {table.shape[1]} columns.")
    check_names(table.columns, name)
    return table.reset_index(drop=True)


def check_names(columns: pd.Index, name: str) -> None:
    """Refuse duplicate column names."""
    duplicates = columns[columns.duplicated()]
    if len(duplicates):
        raise DataError(f'{name}: duplicate column "{duplicates[0]}"; rename or drop one.')


def need_columns(table: pd.DataFrame, columns: Sequence[Any], name: str) -> None:
    """Refuse a table that lacks one of these columns."""
    for column in columns:
        if column not in table.columns:
            known = [str(c) for c in table.columns]
            raise DataError(
                f'{name}: "{column}" is not a column.{did_you_mean(str(column), known)} '
                f"It has: {', '.join(known[:20])}{' …' if len(known) > 20 else ''}",
                value=str(column),
            )


def answers(column: pd.Series, kind: str | None, where: str, value: str | None = None) -> Any:
    """Return a target column as an array of numbers, booleans or text.

    Labels of several types become text.

    >>> answers(pd.Series([1, 2], dtype="Int64"), "classes", "the target").dtype
    dtype('int64')
    """
    empty = column.isna().to_numpy()
    if empty.any():
        raise DataError(
            f"{where} is missing in {int(empty.sum())} of {len(column)} rows "
            f"(first: row {int(np.flatnonzero(empty)[0])}); fill them, or drop them "
            f'("unanswered: drop" among the options).',
            value,
        )
    values = column.infer_objects().to_numpy()
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise DataError(f"{where} contains infinite values.", value)
    if values.dtype.kind in "iufb":
        return values
    if kind == "numbers":
        return _numbers(values, where, value)
    if kind == "items":
        return values
    if values.dtype == object and set(map(type, values.tolist())) == {str}:
        return values
    return _as_written(column, where, value)


def _numbers(values: np.ndarray, where: str, value: str | None) -> np.ndarray:
    texts = values if values.dtype == object else values.astype(str)
    numbers = pd.to_numeric(pd.Series(texts), errors="coerce").to_numpy(dtype=float)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        first = texts[int(np.argmax(wrong))]
        raise DataError(f'{where} must be numbers, got "{first}".', value)
    return numbers


def _as_written(column: pd.Series, where: str, value: str | None) -> np.ndarray:
    labels = column.astype(str) if column.dtype.kind in "mM" else column.map(str)
    texts = labels.to_numpy(dtype=object)
    try:
        distinct = len(set(column.tolist()))
    except TypeError as error:
        raise DataError(f"{where} contains a value that is not a label: {error}.", value) from error
    if distinct > len(set(texts)):
        raise DataError(
            f"{where} has different labels with the same text: {sorted(set(texts))}.", value
        )
    return texts


def infer_kind(truth: np.ndarray, name: str) -> str:
    """Return ``"classes"`` or ``"numbers"``; warn if it is a guess."""
    if truth.dtype.kind not in "iuf":
        return "classes"
    if truth.dtype.kind == "f" and not (truth == np.round(truth)).all():
        return "numbers"
    distinct = len(pd.unique(truth))
    kind = "classes" if distinct <= max(2, min(20, len(truth) // 10)) else "numbers"
    warnings.warn(
        f'{name}: the target is whole numbers, {distinct} distinct; taken as "{kind}". '
        f'Set kind="classes" or kind="numbers".',
        stacklevel=3,
    )
    return kind


def refuse_fractions(truth: np.ndarray, where: str) -> None:
    """Refuse a target of more than 20 labels with fractions: it is a regression target.

    >>> refuse_fractions(np.array(["1.5", "2.5"]), "sizes")
    """
    labels = pd.Series(pd.unique(truth))
    numbers = pd.to_numeric(labels, errors="coerce")
    fractions = labels[numbers.notna() & (numbers % 1 != 0)]
    if numbers.notna().all() and len(labels) > 20 and len(fractions):
        raise DataError(
            f"{where} contains {fractions.iloc[0]}, which is not a class; use a regression task."
        )


def find_classes(name: str, truth: np.ndarray) -> tuple[Any, ...]:
    """Return the labels sorted as text; there must be at least two.

    >>> find_classes("digits", np.array([10, 9, 9]))
    (10, 9)
    """
    labels = pd.unique(truth).tolist()
    if len(labels) < 2:
        raise DataError(f'{name}: there is only one class, "{labels[0]}"; at least two are needed.')
    return tuple(sorted(labels, key=str))
