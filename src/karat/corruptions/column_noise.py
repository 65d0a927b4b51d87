"""Corruptions of items that are columns or whole tables: their headers, rows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import SharedFrame, header_text, pack
from karat.corruptions.affected_cells import (
    affected_places,
    column_generators,
)
from karat.corruptions.needs import (
    Corrupted,
    Rng,
    Target,
    corrupts,
)

_COLUMNS = ("column", "frame")


@corrupts("header_dropped", takes=_COLUMNS)
def header_dropped(X: pd.Series, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Remove this share of all headers."""
    headers = _headers(X)
    headers[affected_places(len(headers), severity, rng)] = ""
    return _with_headers(X, headers), y


@corrupts("header_replaced", takes=_COLUMNS)
def header_replaced(X: pd.Series, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Replace this share of all headers by another one, drawn uniformly from all tables."""
    headers = _headers(X)
    codes, names = pd.factorize(headers)
    hit = affected_places(len(headers), severity, rng)
    if len(names) > 1:
        others = (codes + rng.integers(1, len(names), size=len(codes))) % len(names)
        headers[hit] = names[others[hit]]
    return _with_headers(X, headers), y


@corrupts("rows_shuffled", takes=_COLUMNS)
def rows_shuffled(X: pd.Series, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Put the rows of this share of the items in a random order."""
    hit = set(affected_places(len(X), severity, rng).tolist())
    orders = [g.permutation(len(i)) for g, i in zip(column_generators(rng, len(X)), X, strict=True)]
    row_orders = [order if position in hit else None for position, order in enumerate(orders)]
    return _with_rows(X, row_orders), y


@corrupts("rows_dropped", takes=_COLUMNS)
def rows_dropped(X: pd.Series, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Drop this share of the rows of every item; at least one remains."""
    rows_left: list[np.ndarray | None] = []
    for generator, item in zip(column_generators(rng, len(X)), X, strict=True):
        dropped = affected_places(len(item), severity, generator)[: max(0, len(item) - 1)]
        rows_left.append(np.delete(np.arange(len(item)), dropped))
    return _with_rows(X, rows_left), y


@corrupts("columns_shuffled", takes=("frame",))
def columns_shuffled(X: pd.Series, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Put the columns of this share of the tables in a random order."""
    hit = set(affected_places(len(X), severity, rng).tolist())
    orders = [
        g.permutation(i.shape[1]) for g, i in zip(column_generators(rng, len(X)), X, strict=True)
    ]
    tables = [
        _keep_attrs(item.iloc[:, order], item) if position in hit else item
        for position, (item, order) in enumerate(zip(X, orders, strict=True))
    ]
    return pack(tables, X.index), y


def _headers(X: pd.Series) -> np.ndarray:
    """Return the headers of all columns, in order."""
    headers = [[i.name] if isinstance(i, pd.Series) else i.columns.tolist() for i in X]
    return np.array([header_text(header) for part in headers for header in part], dtype=object)


def _with_headers(X: pd.Series, headers: np.ndarray) -> pd.Series:
    """Return the items with other headers; the table of a column changes with all its columns."""
    if len(X) and isinstance(X.iloc[0], pd.Series):
        columns = [_keep_attrs(c.rename(h), c) for c, h in zip(X, headers, strict=True)]
        new = {(c.attrs.get("table"), c.attrs.get("position")): c.name for c in columns}
        return pack([_in_table(column, new) for column in columns], X.index)
    ends = np.cumsum([item.shape[1] for item in X])[:-1]
    parts = np.split(headers, ends)
    tables = [_keep_attrs(i.set_axis(part, axis=1), i) for i, part in zip(X, parts, strict=True)]
    return pack(tables, X.index)


def _in_table(column: pd.Series, new: dict[Any, Any]) -> pd.Series:
    """Return a column whose table has the new headers."""
    table, old = column.attrs.get("table"), column.attrs.get("headers")
    if old is None:
        return column
    headers = [new.get((table, position), header) for position, header in enumerate(old)]
    column.attrs["headers"] = headers
    if "frame" in column.attrs:
        column.attrs["frame"] = SharedFrame(column.attrs["frame"].set_axis(headers, axis=1))
    return column


def _with_rows(X: pd.Series, rows_of_items: Sequence[np.ndarray | None]) -> pd.Series:
    items = []
    for item, rows in zip(X, rows_of_items, strict=True):
        changed = item
        if rows is not None:
            changed = _keep_attrs(item.iloc[rows].reset_index(drop=True), item)
            if "frame" in item.attrs:  # the rows of its table stay next to those of a column
                whole = item.attrs["frame"].iloc[rows].reset_index(drop=True)
                changed.attrs["frame"] = SharedFrame(whole)
        items.append(changed)
    return pack(items, X.index)


def _keep_attrs(changed: pd.DataFrame | pd.Series, item: pd.DataFrame | pd.Series) -> Any:
    changed.attrs = dict(item.attrs)
    return changed
