"""Columns of tables: checks, targets as arrays, bags of items, and rows as sentences."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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


def require_columns(table: pd.DataFrame, columns: Sequence[Any], name: str) -> None:
    """Refuse a table that lacks one of these columns."""
    for column in columns:
        if column not in table.columns:
            known = [str(c) for c in table.columns]
            raise DataError(
                f'{name}: "{column}" is not a column.{did_you_mean(str(column), known)} '
                f"It has: {', '.join(known[:20])}{' …' if len(known) > 20 else ''}",
                value=str(column),
            )


def target_values(column: pd.Series, kind: str | None, where: str, value: str | None = None) -> Any:
    """Return a target column as an array of numbers, booleans or text.

    Labels of several types become text.

    >>> target_values(pd.Series([1, 2], dtype="Int64"), "classification", "the target").dtype
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
    if kind == "regression":
        texts = values if values.dtype == object else values.astype(str)
        numbers = pd.to_numeric(pd.Series(texts), errors="coerce").to_numpy(dtype=float)
        wrong = ~np.isfinite(numbers)
        if wrong.any():
            first = texts[int(np.argmax(wrong))]
            raise DataError(f'{where} must be numbers, got "{first}".', value)
        return numbers
    all_text = values.dtype == object and set(map(type, values.tolist())) == {str}
    return values if kind == "items" or all_text else _as_written(column, where, value)


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


def infer_kind(target: np.ndarray, name: str) -> str:
    """Return ``"classification"`` or ``"regression"``; warn if it is a guess."""
    if target.dtype.kind not in "iuf":
        return "classification"
    if target.dtype.kind == "f" and not (target == np.round(target)).all():
        return "regression"
    distinct = len(pd.unique(target))
    kind = "classification" if distinct <= max(2, min(20, len(target) // 10)) else "regression"
    warnings.warn(
        f'{name}: the target is whole numbers, {distinct} distinct; taken as "{kind}". '
        f'Set kind="classification" or kind="regression".',
        stacklevel=3,
    )
    return kind


def refuse_fractions(target: np.ndarray, where: str) -> None:
    """Refuse a target of more than 20 labels with fractions: it is a regression target.

    >>> refuse_fractions(np.array(["1.5", "2.5"]), "sizes")
    """
    labels = pd.Series(pd.unique(target))
    numbers = pd.to_numeric(labels, errors="coerce")
    fractions = labels[numbers.notna() & (numbers % 1 != 0)]
    if numbers.notna().all() and len(labels) > 20 and len(fractions):
        raise DataError(
            f"{where} contains {fractions.iloc[0]}, which is not a class; use a regression task."
        )


def find_classes(name: str, target: np.ndarray) -> tuple[Any, ...]:
    """Return the labels sorted as text; there must be at least two.

    >>> find_classes("digits", np.array([10, 9, 9]))
    (10, 9)
    """
    labels = pd.unique(target).tolist()
    if len(labels) < 2:
        raise DataError(f'{name}: there is only one class, "{labels[0]}"; at least two are needed.')
    return tuple(sorted(labels, key=str))


@dataclass(frozen=True)
class Bags:
    """The items of a field: those of question i are ``rows[offsets[i]:offsets[i+1]]``."""

    rows: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray

    def take(self, questions: np.ndarray) -> Bags:
        """Return the bags of some questions, in this order."""
        sizes = (self.offsets[1:] - self.offsets[:-1])[questions]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        starts = np.repeat(self.offsets[:-1][questions] - offsets[:-1], sizes)
        cells = np.arange(offsets[-1]) + starts
        return Bags(self.rows[cells], offsets, self.weights[cells])


@dataclass(frozen=True)
class Cells:
    """The flattened cells of a field: ids, weights, and the number of ids per question."""

    ids: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray

    def question(self, position: int) -> int:
        """Return the question of the id at this position."""
        return int(np.searchsorted(np.cumsum(self.sizes), position, side="right"))

    def renamed(self, ids: np.ndarray) -> Any:
        """Return the cells with other ids; bags stay bags."""
        if len(ids) == len(self.sizes):
            return ids
        ends = np.cumsum(self.sizes)
        pairs = list(zip(ids.tolist(), self.weights.tolist(), strict=True))
        return [dict(pairs[end - size : end]) for end, size in zip(ends, self.sizes, strict=True)]


def holds_bags(cells: pd.Series) -> bool:
    """Return whether any cell is a bag ``{id: weight}``.

    >>> holds_bags(pd.Series([{"a": 1}, "b"])), holds_bags(pd.Series([1, 2]))
    (True, False)
    """
    if cells.dtype != object:
        return False
    return any(issubclass(kind, Mapping) for kind in set(map(type, cells.tolist())))


def flatten_cells(cells: pd.Series, where: str) -> Cells:
    """Return the flattened cells; a plain cell is a bag of one item with weight 1.

    >>> flatten_cells(pd.Series([{"a": 2, "b": 1}, "c"]), "pairs").ids.tolist()
    ['a', 'b', 'c']
    """
    if not holds_bags(cells):
        count = len(cells)
        found = Cells(cells.to_numpy(), np.ones(count), np.ones(count, dtype=np.intp))
    else:
        bags = [cell if isinstance(cell, Mapping) else {cell: 1.0} for cell in cells]
        ids = [key for bag in bags for key in bag]
        try:
            weights = np.array([weight for bag in bags for weight in bag.values()], dtype=float)
        except (TypeError, ValueError) as error:
            raise DataError(f"{where}: the weights of a bag must be numbers: {error}.") from error
        wrong = ~(np.isfinite(weights) & (weights > 0))
        if wrong.any():
            raise DataError(f"{where}: the weights of a bag must be > 0, got {weights[wrong][0]}.")
        found = Cells(
            np.fromiter(ids, dtype=object, count=len(ids)),
            weights,
            np.array([len(bag) for bag in bags], dtype=np.intp),
        )
        if (found.sizes == 0).any():
            question = int(np.argmin(found.sizes))
            raise DataError(f"{where}: question {question} has an empty bag.")
    empty = pd.isna(found.ids)
    if empty.any():
        first = found.question(int(np.argmax(empty)))
        raise DataError(f"{where} is missing in {int(empty.sum())} rows (first: row {first}).")
    return found


def find_items(cells: pd.Series, items: pd.Index, where: str) -> Bags:
    """Return the positions of the items; an id that is not an item is an error."""
    found = flatten_cells(cells, where)
    rows = items.get_indexer(pd.Index(found.ids, tupleize_cols=False))
    if (rows < 0).any():
        position = int(np.argmax(rows < 0))
        raise DataError(
            f'{where}: question {found.question(position)} refers to "{found.ids[position]}", '
            f"which is not an item."
        )
    offsets = np.concatenate([[0], np.cumsum(found.sizes)]).astype(np.intp)
    return Bags(rows, offsets, found.weights)


def rows_as_sentences(table: pd.DataFrame) -> list[str]:
    """Return each row as text; missing and empty cells are left out.

    The text of a cell does not depend on the type of its column: 31 and 31.0 are both "31", other
    fractions have six digits, and midnight is left out of a date.

    >>> rows_as_sentences(pd.DataFrame({"age": [31, None], "plan": ["basic", "plus"]}))
    ['age is 31. plan is basic.', 'plan is plus.']
    """
    columns = [
        [f"{name} is {text}." if text else "" for text in cells_as_text(column)]
        for name, column in table.items()
    ]
    return [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]


def cells_as_text(column: pd.Series) -> list[str]:
    """Return the text of each cell; that of a missing one is empty."""
    cells = zip(column.astype(object), column.notna(), strict=True)
    return [cell_as_text(cell) if present else "" for cell, present in cells]


def cell_as_text(cell: Any) -> str:
    """Return the text of a cell, independent of the type of its column."""
    if isinstance(cell, float | np.floating):
        cell = float(cell)
        whole = cell.is_integer() and abs(cell) < 1e15
        return str(int(cell)) if whole else f"{cell:.6g}"
    if isinstance(cell, pd.Timestamp):
        return str(cell).removesuffix(" 00:00:00")
    return str(cell).strip()
