"""Columns of tables: checks, targets as arrays, bags of items, rows as sentences, table items.

A column that is an item is a series of pandas: its name is the header, and its ``attrs`` hold the
``table`` it is from, its ``position`` there, the ``headers`` of that table, its ``caption``, and
the table itself as ``frame``. A whole table is a data frame, whose ``attrs`` hold its ``caption``.
Headers may be empty or repeated, as in tables of the web.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
import pandas as pd

from karat.core.numbers import (
    COMMAS,
    NUMBER,
    POINTS,
    NumberFormat,
    WrittenNumbers,
    written_numbers,
)
from karat.errors import DataError, did_you_mean, warn_caller

#: the type of an item of each modality
ITEM_TYPES: dict[str, type] = {"column": pd.Series, "frame": pd.DataFrame}
#: distinct cells in the text of a column, and rows in the text of a table
SAMPLE_CELLS, SAMPLE_ROWS = 10, 3


def check_table(table: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a table with a new index, or raise a DataError if it cannot be used."""
    table = as_frame(table, name)
    if table.empty:
        raise DataError(f"{name} is empty: {table.shape[0]} rows, {table.shape[1]} columns.")
    check_names(table.columns, name)
    return table.reset_index(drop=True)


def as_frame(table: Any, name: str) -> pd.DataFrame:
    """Return a data frame of pandas; those of polars and similar libraries are converted."""
    if isinstance(table, pd.DataFrame):
        return table
    if isinstance(table, str | PathLike):
        raise DataError(f"{name}: expected a data frame, got a path; use Dataset.from_csv.")
    table = table.collect() if hasattr(table, "collect") else table
    if not hasattr(table, "columns") or not hasattr(table, "to_pandas"):
        raise DataError(f"{name}: expected a data frame, got {type(table).__name__}.")
    try:
        return pd.DataFrame(table.to_pandas())
    except ImportError as error:  # polars needs pyarrow for this
        if not hasattr(table, "to_dict"):
            raise DataError(f"{name}: the data frame cannot be converted: {error}.") from error
        columns = table.to_dict(as_series=False)
        return pd.DataFrame({column: _converted(cells) for column, cells in columns.items()})


def _converted(cells: Sequence[Any]) -> pd.Series:
    """Return cells as a series; those of Python's dates are dates."""
    column = pd.Series(list(cells))
    dates = pd.api.types.infer_dtype(column, skipna=True) in ("date", "datetime")
    return pd.to_datetime(column) if dates and column.dtype == object else column


def attach_target(table: pd.DataFrame, target: Any, name: str) -> tuple[pd.DataFrame, Any]:
    """Return the table with its target as a column, and the column's name.

    ``target`` is a column, or one value per row: a series, an array or a list. A series of pandas
    must have the index of the table.

    >>> table, column = attach_target(pd.DataFrame({"x": [1, 2]}), ["a", "b"], "mine")
    >>> table[column].tolist()
    ['a', 'b']
    """
    names = _target_names(table, target)
    if len(names) > 1:
        raise _several_targets(f"{name}: the targets {', '.join(map(str, names))}")
    if names:
        return table, names[0]
    if isinstance(target, str) or not hasattr(target, "__len__"):
        return table, target
    if np.ndim(target) > 1 and np.shape(target)[1] != 1:
        raise _several_targets(f"{name}: the target with {np.shape(target)[1]} columns")
    values = _target_cells(table, target, name)
    if len(values) != len(table):
        raise DataError(f"{name}: the target has {len(values)} values for {len(table)} rows.")
    column = getattr(target, "name", None)
    column = "target" if column is None else column
    if column in table.columns:
        raise DataError(
            f'{name}: the target is given as values, and the table also has a column "{column}", '
            f'which would be a feature; drop it, or give target="{column}".',
            value=str(column),
        )
    return table.assign(**{str(column): values}), str(column)


def _target_names(table: pd.DataFrame, target: object) -> list[Any]:
    """Return the columns that a target names; none if it is values or an unknown name."""
    if isinstance(target, str):
        parts = [part.strip() for part in target.split(",")]
        several = target not in table.columns and all(part in table.columns for part in parts)
        return parts if several else [target] if target in table.columns else []
    if not isinstance(target, list | tuple) or not target or len(target) == len(table):
        return []
    texts = all(isinstance(name, str) and name in table.columns for name in target)
    return list(target) if texts else []


def _several_targets(what: str, value: str | None = None) -> DataError:
    return DataError(
        f"{what}: multi-label targets are not supported; choose one, or create one dataset per "
        f"target and drop the others.",
        value,
    )


def _target_cells(table: pd.DataFrame, target: Any, name: str) -> Any:
    """Return the values of a target in the order of the rows."""
    if isinstance(target, pd.DataFrame):
        target = target.iloc[:, 0]
    if not isinstance(target, pd.Series):
        values = target.to_list() if hasattr(target, "to_list") else target
        return np.ravel(values) if np.ndim(values) == 2 else list(values)
    same = len(target) == len(table) and target.index.isin(table.index).all()
    if same and target.index.equals(table.index):
        return target.array
    if not same or not target.index.is_unique or not table.index.is_unique:
        raise DataError(
            f"{name}: the index of the target is not the index of the table; give "
            f"target.to_numpy() to match them by position."
        )
    return target.reindex(table.index).array


def check_names(columns: pd.Index, name: str) -> None:
    """Refuse duplicate column names."""
    duplicates = columns[columns.duplicated()]
    if len(duplicates):
        raise DataError(f'{name}: duplicate column "{duplicates[0]}"; rename or drop one.')


def require_columns(table: pd.DataFrame, columns: Sequence[Any], name: str) -> None:
    """Refuse a table that lacks one of these columns."""
    for column in columns:
        if column not in table.columns:
            headers = [str(c) for c in table.columns]
            raise DataError(
                f'{name}: "{column}" is not a column.{did_you_mean(str(column), headers)} '
                f"It has: {', '.join(headers[:20])}{' …' if len(headers) > 20 else ''}"
                f"{_header_hint(headers, str(column))}",
                value=str(column),
            )


def _header_hint(headers: Sequence[str], wanted: str) -> str:
    """Return what may be wrong with all headers: another separator, or rows without a header.

    >>> _header_hint(["age plan churn"], "churn")
    '. If " " separates the columns: --separator " ".'
    >>> _header_hint(["70", "yes"], "churn")
    '. The first line of a file must have the names of its columns.'
    """
    if len(headers) == 1:
        marks = [mark for mark in ";,|: " if wanted in map(str.strip, headers[0].split(mark))]
        if marks:
            return f'. If "{marks[0]}" separates the columns: --separator "{marks[0]}".'
    if any(map(NUMBER.fullmatch, headers)):
        return ". The first line of a file must have the names of its columns."
    return ""


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
            f"(first: row {int(np.flatnonzero(empty)[0])}); fill them, or drop these rows (of a "
            f'file: --unanswered drop, or "unanswered: drop" among the options).',
            value,
        )
    values = column.infer_objects().to_numpy()
    if kind != "items" and values.dtype == object:
        _refuse_collections(values, where, value)
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


def _refuse_collections(values: np.ndarray, where: str, setting: str | None) -> None:
    several = (list, tuple, set, frozenset, dict, np.ndarray)
    if not any(issubclass(kind, several) for kind in set(map(type, values.tolist()))):
        return
    for row, value in enumerate(values.tolist()):
        if isinstance(value, several):
            raise _several_targets(f"{where} holds {str(value)[:60]} in row {row}", setting)


def parse_numbers(column: pd.Series, decimal: bool = False) -> tuple[pd.Series | None, str]:
    """Return text with decimal or thousands commas as numbers and which it was, or None.

    ``decimal`` says which it is if all commas may be either, as in "1,234".

    >>> parse_numbers(pd.Series(["1,5", "20"]))[0].tolist()
    [1.5, 20.0]
    >>> parse_numbers(pd.Series(["a", "20"]))[0] is None
    True
    """
    cells = list(dict.fromkeys(cell for cell in column if isinstance(cell, str)))
    written = written_numbers(cells) if any("," in cell for cell in cells) else None
    if written is None or written.problem or written.unit or written.missing:
        return None, ""
    form = COMMAS if (written.decimal or (decimal and ",") or ".") == "," else POINTS
    return as_numbers(
        column, written, form
    ), f"{'decimal' if form is COMMAS else 'thousands'} commas"


def as_numbers(column: pd.Series, written: WrittenNumbers, form: NumberFormat) -> pd.Series:
    """Return a column of texts as the numbers in them, and other cells as they are.

    >>> as_numbers(pd.Series(["1,5 kg", "?"]), written_numbers(["1,5 kg", "?"]), COMMAS).tolist()
    [1.5, nan]
    """
    numbers: dict[str, Any] = {cell: form.number(text) for cell, text in written.digits.items()}
    numbers |= dict.fromkeys(written.missing, np.nan)
    others = {cell: cell for cell in column.dropna().unique() if not isinstance(cell, str)}
    return pd.to_numeric(column.map(pd.Series(numbers | others, dtype=object).infer_objects()))


def number_target(column: pd.Series, kind: str | None, where: str) -> pd.Series:
    """Return a target of numbers that are written as text as numbers, with a warning.

    Text stays text if ``kind`` is given, or if there are as few distinct numbers as classes have.

    >>> number_target(pd.Series(["a", "b"]), None, "the target").tolist()
    ['a', 'b']
    """
    if kind is not None or column.dtype.kind in "iufbmM" or not len(column):
        return column
    if isinstance(column.dtype, pd.CategoricalDtype) or column.isna().any():
        return column
    if pd.api.types.infer_dtype(column, skipna=False) != "string":
        return column
    codes, cells = pd.factorize(column)
    distinct = pd.Series(cells, dtype=object)
    numbers = pd.to_numeric(distinct, errors="coerce")
    if numbers.isna().any():
        numbers = numbers if (read := parse_numbers(distinct)[0]) is None else read
    numbers = numbers.iloc[codes].set_axis(column.index).rename(column.name)
    valid, labels = np.isfinite(numbers), len(cells)
    if valid.all() and guess_kind(numbers.to_numpy()) == "regression":
        warn_caller(
            f"{where} is numbers written as text, {labels} distinct; taken as "
            f'"regression". Set kind="classification" if they are labels.',
        )
        return numbers
    if valid.mean() >= 0.5 and not valid.all() and labels > 20:
        warn_caller(
            f'{where} has {labels} distinct labels, mostly numbers, but "{column[~valid].iloc[0]}" '
            f'is not; taken as "classification". Set kind="classification" or correct the cells.',
        )
    return column


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
    kind = guess_kind(target)
    if target.dtype.kind not in "iuf" or not (target == np.round(target)).all():
        return kind
    warn_caller(
        f"{name}: the target is whole numbers, {len(pd.unique(target))} distinct; taken as "
        f'"{kind}". '
        f'Set kind="classification" or kind="regression".',
    )
    return kind


def guess_kind(target: np.ndarray) -> str:
    """Return the kind that a target has or, if it is whole numbers, probably has.

    >>> guess_kind(np.array([0, 1, 1])), guess_kind(np.array([0.5, 1.5]))
    ('classification', 'regression')
    """
    if target.dtype.kind not in "iuf":
        return "classification"
    if target.dtype.kind == "f" and not (target == np.round(target)).all():
        return "regression"
    few = len(pd.unique(target)) <= max(2, min(20, len(target) // 10))
    return "classification" if few else "regression"


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


def ordered_classes(column: pd.Series, target: np.ndarray) -> tuple[Any, ...]:
    """Return the labels of an ordered categorical column in its order; else an empty tuple."""
    dtype = column.dtype
    if not isinstance(dtype, pd.CategoricalDtype) or not dtype.ordered:
        return ()
    seen = {str(label): label for label in pd.unique(target).tolist()}
    return tuple(seen[str(label)] for label in dtype.categories if str(label) in seen)


def put_last(classes: tuple[Any, ...], positive: object, name: str) -> tuple[Any, ...]:
    """Return two classes with the positive one last, or raise a DataError.

    >>> put_last(("no", "yes"), "no", "churn")
    ('yes', 'no')
    """
    labels = ", ".join(map(str, classes[:20]))
    matches = [c for c in classes if str(c) == str(positive)]
    matches = matches or [c for c in classes if c == positive]
    if not matches and isinstance(positive, bool):
        matches = [c for c in classes if str(c).casefold() == str(positive).casefold()]
    if not matches:
        near = did_you_mean(str(positive), [str(c) for c in classes])
        raise DataError(
            f'{name}: the positive class "{positive}" is not a class.{near} Classes: {labels}.',
            value=str(positive),
        )
    if len(classes) != 2:
        raise DataError(
            f"{name}: a positive class needs two classes, there are {len(classes)}: {labels}.",
            value=str(positive),
        )
    return (*(c for c in classes if c is not matches[0]), matches[0])


@dataclass(frozen=True)
class Bags:
    """The items of a field: those of question i are ``rows[offsets[i]:offsets[i+1]]``."""

    rows: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray

    def take(self, questions: np.ndarray) -> Bags:
        """Return the bags of some questions, in this order."""
        if len(self.rows) == len(self.offsets) - 1:  # one item each: no bag is empty
            one_each = np.arange(len(questions) + 1)
            return Bags(self.rows[questions], one_each, self.weights[questions])
        sizes = (self.offsets[1:] - self.offsets[:-1])[questions]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        starts = np.repeat(self.offsets[:-1][questions] - offsets[:-1], sizes)
        cells = np.arange(offsets[-1]) + starts
        return Bags(self.rows[cells], offsets, self.weights[cells])


@dataclass(frozen=True)
class FieldCells:
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


def flatten_cells(cells: pd.Series, where: str) -> FieldCells:
    """Return the flattened cells; a plain cell is a bag of one item with weight 1.

    >>> flatten_cells(pd.Series([{"a": 2, "b": 1}, "c"]), "pairs").ids.tolist()
    ['a', 'b', 'c']
    """
    if not holds_bags(cells):
        count = len(cells)
        flat = FieldCells(cells.to_numpy(), np.ones(count), np.ones(count, dtype=np.intp))
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
        flat = FieldCells(
            np.fromiter(ids, dtype=object, count=len(ids)),
            weights,
            np.array([len(bag) for bag in bags], dtype=np.intp),
        )
        if (flat.sizes == 0).any():
            question = int(np.argmin(flat.sizes))
            raise DataError(f"{where}: question {question} has an empty bag.")
    empty = pd.isna(flat.ids)
    if empty.any():
        first = flat.question(int(np.argmax(empty)))
        raise DataError(f"{where} is missing in {int(empty.sum())} rows (first: row {first}).")
    return flat


def find_items(cells: pd.Series, items: pd.Index, where: str) -> Bags:
    """Return the positions of the items; an id that is not an item is an error."""
    flat = flatten_cells(cells, where)
    rows = items.get_indexer(pd.Index(flat.ids, tupleize_cols=False))
    if (rows < 0).any():
        position = int(np.argmax(rows < 0))
        raise DataError(
            f'{where}: question {flat.question(position)} refers to "{flat.ids[position]}", '
            f"which is not an item."
        )
    offsets = np.concatenate([[0], np.cumsum(flat.sizes)]).astype(np.intp)
    return Bags(rows, offsets, flat.weights)


def column_type(column: pd.Series) -> str:
    """Return what a column holds: numbers, dates, booleans, categories or text.

    >>> column_type(pd.Series([1.5])), column_type(pd.Series(["a"]))
    ('numbers', 'text')
    """
    types = pd.api.types
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "categories"
    if types.is_bool_dtype(column):
        return "booleans"
    if types.is_numeric_dtype(column):
        return "numbers"
    if types.is_datetime64_any_dtype(column):
        return "dates"
    return "text" if types.is_object_dtype(column) or types.is_string_dtype(column) else "other"


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


def cell_as_text(cell: object) -> str:
    """Return the text of a cell, independent of the type of its column."""
    if isinstance(cell, float | np.floating):
        cell = float(cell)
        whole = cell.is_integer() and abs(cell) < 1e15
        return str(int(cell)) if whole else f"{cell:.6g}"
    if isinstance(cell, pd.Timestamp):
        return str(cell).removesuffix(" 00:00:00")
    return str(cell).strip()


# -- items that are columns or whole tables ---------------------------------------------------


class SharedFrame(pd.DataFrame):
    """The table of a column. pandas copies ``attrs`` with every operation, but not this table."""

    def __deepcopy__(self, memo: Any = None) -> SharedFrame:
        return self


def pack(items: Sequence[Any], ids: Iterable[Any]) -> pd.Series:
    """Return columns or tables as the values of a series, whose index are their ids.

    >>> pack([pd.Series([1, 2]), pd.Series([3])], ["a", "b"]).map(len).tolist()
    [2, 1]
    """
    cells = np.empty(len(items), dtype=object)
    for position, item in enumerate(items):  # one by one: numpy would stack equal shapes
        cells[position] = item
    return pd.Series(cells, index=pd.Index(list(ids), dtype=object, tupleize_cols=False))


def check_cells(items: pd.Series, modality: str, name: str) -> None:
    """Raise a DataError for an item that is not a column or not a table."""
    wanted = ITEM_TYPES[modality]
    for item_id, item in zip(items.index, items, strict=True):
        if not isinstance(item, wanted):
            raise DataError(
                f'{name}: the item "{item_id}" of modality {modality} must be a '
                f"{wanted.__name__} of pandas, got {type(item).__name__}."
            )


def column_items(tables: Mapping[Any, Any]) -> pd.Series:
    """Return every column of some tables as an item; the ids are ``"table/position header"``.

    >>> items = column_items({"t": pd.DataFrame({"city": ["Rome"], "people": [2.8]})})
    >>> items.index.tolist(), items.iloc[0].attrs["headers"]
    (['t/0 city', 't/1 people'], ['city', 'people'])
    """
    columns, ids = [], []
    for table_id, frame in zip(tables, frame_items(tables), strict=True):
        headers = frame.columns.tolist()
        shared = SharedFrame(frame)
        for position, header in enumerate(headers):
            column = frame.iloc[:, position].copy()
            column.attrs = {
                "table": str(table_id),
                "position": position,
                "headers": headers,
                "caption": caption_of(frame),
                "frame": shared,
            }
            columns.append(column)
            ids.append(column_id(table_id, position, header))
    return pack(columns, ids)


def frame_items(tables: Mapping[Any, Any]) -> pd.Series:
    """Return whole tables as items; the ids are those of the tables.

    >>> frame_items({"t": pd.DataFrame({"city": ["Rome"]})})["t"].shape
    (1, 1)
    """
    frames = []
    for table_id, table in tables.items():
        frame = as_frame(table, str(table_id)).reset_index(drop=True)
        frame = frame.set_axis([header_text(header) for header in frame.columns], axis=1)
        frame.attrs = {"caption": caption_of(as_frame(table, str(table_id)))}
        frames.append(frame)
    return pack(frames, [str(table_id) for table_id in tables])


def find_targets(
    tables: Mapping[Any, Any], target: Mapping[Any, Any], name: str
) -> tuple[list[int], list[Any]]:
    """Return the places of the targets among all columns, or among all tables, and their values.

    >>> tables = {"t": pd.DataFrame({"a": [1], "b": [2]})}
    >>> find_targets(tables, {("t", "b"): "x", ("t", 0): "y"}, "mine")
    ([1, 0], ['x', 'y'])
    """
    if not isinstance(tables, Mapping) or not isinstance(target, Mapping):
        wrong = target if isinstance(tables, Mapping) else tables
        wanted = "{name: table}" if wrong is tables else "{(table, column): value}"
        raise DataError(f"{name}: expected a mapping {wanted}, got {type(wrong).__name__}.")
    widths = [as_frame(table, str(table_id)).shape[1] for table_id, table in tables.items()]
    first = dict(zip(tables, np.cumsum([0, *widths]).tolist(), strict=False))
    order = {table_id: position for position, table_id in enumerate(tables)}
    several = {isinstance(key, tuple) for key in target}
    if len(several) > 1:
        raise DataError(f"{name}: the target mixes tables and (table, column) pairs.")
    places = []
    for key in target:
        if isinstance(key, tuple) and len(key) != 2:
            raise DataError(f"{name}: the target {key!r} is not a table or a (table, column) pair.")
        table_id, column = key if isinstance(key, tuple) else (key, None)
        if table_id not in order:
            near = did_you_mean(str(table_id), list(map(str, order)))
            raise DataError(f'{name}: there is no table "{table_id}".{near}', value=str(table_id))
        offset = 0 if column is None else _position(tables[table_id], column, f"{name}: {table_id}")
        places.append(order[table_id] if column is None else first[table_id] + offset)
    return places, list(target.values())


def _position(table: Any, column: Any, where: str) -> int:
    """Return the position of a column, given by its header or its position."""
    headers = [header_text(header) for header in as_frame(table, where).columns]
    number = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if number and 0 <= column < len(headers):
        return int(column)
    wanted = header_text(column)
    positions = [position for position, header in enumerate(headers) if header == wanted]
    if len(positions) == 1:
        return positions[0]
    if positions:
        raise DataError(
            f'{where} has {len(positions)} columns with the header "{wanted}"; give the position.'
        )
    raise DataError(
        f'{where} has no column "{column}".{did_you_mean(wanted, headers)} It has: '
        f"{', '.join(headers)}",
        value=str(column),
    )


def caption_item(text: str) -> pd.DataFrame:
    """Return a text query for tables: a table without columns that has only a caption.

    >>> item_text(caption_item("Rivers of Italy"))
    'Rivers of Italy'
    """
    frame = pd.DataFrame()
    frame.attrs = {"caption": text}
    return frame


def column_id(table: object, position: int, header: str) -> str:
    """Return the id of a column.

    >>> column_id("cities", 0, "name"), column_id("cities", 1, "")
    ('cities/0 name', 'cities/1')
    """
    return f"{table}/{position} {header}".rstrip()


def header_text(header: object) -> str:
    """Return a header as text; a missing one is empty.

    >>> header_text(" city "), header_text(float("nan")), header_text(2020)
    ('city', '', '2020')
    """
    return "" if header is None or header is pd.NA or header != header else cell_as_text(header)


def caption_of(item: pd.Series | pd.DataFrame) -> str:
    """Return the caption of a table, or of the table of a column."""
    return str(item.attrs.get("caption") or "")


def table_names(items: pd.Series) -> np.ndarray:
    """Return the table of each column; that of a column without one is unique.

    >>> table_names(column_items({"t": pd.DataFrame({"a": [1], "b": [2]})})).tolist()
    ['t', 't']
    """
    unique_names = (f"\0{item_id}" for item_id in items.index)
    names = [c.attrs.get("table", alone) for c, alone in zip(items, unique_names, strict=True)]
    return np.array(names, dtype=object)


# -- texts ----------------------------------------------------------------------------------


def sample_cells(column: pd.Series, cells: int = SAMPLE_CELLS) -> list[str]:
    """Return the texts of the first distinct cells that are not empty.

    >>> sample_cells(pd.Series(["b", None, "b", "a", "c"]), 2)
    ['b', 'a']
    """
    texts: dict[str, None] = {}
    for text in cells_as_text(column):
        if len(texts) == cells:
            break
        if text:
            texts[text] = None
    return list(texts)


def item_text(item: pd.Series | pd.DataFrame, cells: int = SAMPLE_CELLS) -> str:
    """Return a column as header and first cells, a table as caption, headers and first rows.

    >>> item_text(pd.Series(["Rome", "Oslo"], name="city"))
    'city: Rome, Oslo'
    >>> item_text(pd.DataFrame({"city": ["Rome", "Oslo"], "rank": [1, 2]}))
    'city, rank. Rome, 1. Oslo, 2'
    """
    if isinstance(item, pd.Series):
        header, sample = header_text(item.name), ", ".join(sample_cells(item, cells))
        return f"{header}: {sample}" if header and sample else header or sample
    head = item.head(SAMPLE_ROWS)
    rows = zip(*(cells_as_text(head.iloc[:, i]) for i in range(head.shape[1])), strict=True)
    lines = [[header_text(header) for header in item.columns], *rows]
    parts = [caption_of(item), *(", ".join(filter(None, line)) for line in lines)]
    return ". ".join(filter(None, parts))
