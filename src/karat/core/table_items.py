"""Items that are columns or whole tables: how they are built, compared and written as text.

A column is a series of pandas: its name is the header, and its ``attrs`` hold the ``table`` it is
from, its ``position`` there, the ``headers`` of that table, its ``caption``, and the table itself
as ``frame``. A whole table is a data frame, whose ``attrs`` hold its ``caption``. Headers may be
empty or repeated, as in tables of the web.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import as_frame, cell_as_text, cells_as_text
from karat.errors import DataError, did_you_mean

#: the type of an item of each modality
ITEM_TYPES: dict[str, type] = {"column": pd.Series, "frame": pd.DataFrame}
#: distinct cells in the text of a column, and rows in the text of a table
SAMPLE_CELLS, SAMPLE_ROWS = 10, 3


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
    for place, item in enumerate(items):  # one by one: numpy would stack equal shapes
        cells[place] = item
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
    order = {table_id: place for place, table_id in enumerate(tables)}
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
        found = 0 if column is None else _position(tables[table_id], column, f"{name}: {table_id}")
        places.append(order[table_id] if column is None else first[table_id] + found)
    return places, list(target.values())


def _position(table: Any, column: Any, where: str) -> int:
    """Return the position of a column, given by its header or its position."""
    headers = [header_text(header) for header in as_frame(table, where).columns]
    number = isinstance(column, int | np.integer) and not isinstance(column, bool)
    if number and 0 <= column < len(headers):
        return int(column)
    wanted = header_text(column)
    found = [place for place, header in enumerate(headers) if header == wanted]
    if len(found) == 1:
        return found[0]
    if found:
        raise DataError(
            f'{where} has {len(found)} columns with the header "{wanted}"; give the position.'
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


def column_id(table: Any, position: int, header: str) -> str:
    """Return the id of a column.

    >>> column_id("cities", 0, "name"), column_id("cities", 1, "")
    ('cities/0 name', 'cities/1')
    """
    return f"{table}/{position} {header}".rstrip()


def header_text(header: Any) -> str:
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
    own = (f"\0{item_id}" for item_id in items.index)
    names = [c.attrs.get("table", alone) for c, alone in zip(items, own, strict=True)]
    return np.array(names, dtype=object)


# -- texts ----------------------------------------------------------------------------------


def sample_cells(column: pd.Series, cells: int = SAMPLE_CELLS) -> list[str]:
    """Return the texts of the first distinct cells that are not empty.

    >>> sample_cells(pd.Series(["b", None, "b", "a", "c"]), 2)
    ['b', 'a']
    """
    found: dict[str, None] = {}
    for text in cells_as_text(column):
        if len(found) == cells:
            break
        if text:
            found[text] = None
    return list(found)


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
