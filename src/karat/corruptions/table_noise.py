"""Wrong cells: codes for missing values, unseen categories, shifted dates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.kinds import CATEGORY, DATE, NUMBER, TEXT, kind, places, put, with_columns
from karat.corruptions.needs import Corrupted, corrupts
from karat.corruptions.shares import cells
from karat.errors import DefinitionError

#: takes a column, the affected rows and its number among those of its kind; returns a new column
Change = Callable[[pd.Series, np.ndarray, int], pd.Series]


@corrupts("sentinel", needs=("codes",))
def sentinel(
    X: pd.DataFrame,
    y: pd.Series | None,
    severity: float,
    rng: np.random.Generator,
    *,
    number: int = -999,
    text: str = "?",
) -> Corrupted:
    """Replace this share of the cells by a code for missing: -999, ``?``, or 1 January 1900."""

    def coded(column: pd.Series, at: np.ndarray, i: int) -> pd.Series:
        if kind(column) == NUMBER:
            return put(column, at, np.full(len(at), float(number)))
        if kind(column) == DATE:
            return _with(column, at, pd.Timestamp("1900-01-01").tz_localize(column.dt.tz))
        return _with_level(column, at, text, number)

    return _each(X, (NUMBER, CATEGORY, TEXT, DATE), severity, rng, coded), y


@corrupts("unseen_category", needs=("names",))
def unseen_category(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Replace this share of the cells of text or categories by an unseen category."""

    def strange(column: pd.Series, at: np.ndarray, i: int) -> pd.Series:
        at = at[column.notna().to_numpy()[at]]
        category = isinstance(column.dtype, pd.CategoricalDtype)
        known = column.cat.categories if category else _texts(column)
        number = column.cat.categories.max() + 1 if _holds_numbers(column) else None
        text = "(unseen)"
        while text in known:
            text += "*"
        return _with_level(column, at, text, number)

    return _each(X, (CATEGORY, TEXT), severity, rng, strange), y


@corrupts("date_shift", needs=("dates",))
def date_shift(
    X: pd.DataFrame,
    y: pd.Series | None,
    severity: float,
    rng: np.random.Generator,
    *,
    days: int = 365,
) -> Corrupted:
    """Shift this share of the dates by 1 to ``days`` days, forward or back.

    Dates near the limits of pandas are shifted away from them.
    """
    if days < 1:
        raise DefinitionError(f"corruption date_shift: days must be >= 1, got {days}.")
    size = (len(places(X, DATE)), len(X))
    moves = rng.integers(1, days + 1, size=size) * rng.choice([-1, 1], size=size)

    def moved(column: pd.Series, at: np.ndarray, i: int) -> pd.Series:
        if isinstance(column.dtype, pd.ArrowDtype):
            plain = pd.to_datetime(column.astype(object))
            return moved(plain, at, i).astype(column.dtype)
        at = at[column.notna().to_numpy()[at]]
        dates, by, room = column.iloc[at], moves[i, at], pd.Timedelta(days + 1, unit="D")
        first, last = (end.tz_localize(column.dt.tz) for end in (_FIRST + room, _LAST - room))
        by = np.where(dates < first, np.abs(by), np.where(dates > last, -np.abs(by), by))
        return _with(column, at, (dates + pd.to_timedelta(by, "D").as_unit(dates.dt.unit)).array)

    return _each(X, (DATE,), severity, rng, moved), y


#: days that every unit of time of pandas can hold
_FIRST, _LAST = pd.Timestamp("1678-01-01"), pd.Timestamp("2262-01-01")


def _each(
    X: pd.DataFrame,
    kinds: tuple[str, ...],
    severity: float,
    rng: np.random.Generator,
    change: Change,
) -> pd.DataFrame:
    """Return the table with a share of the cells of some kinds of columns changed."""
    columns = places(X, *kinds)
    rows = [np.flatnonzero(hit) for hit in cells(len(X), len(columns), severity, rng)]
    changed = {
        place: change(X.iloc[:, place], rows[i], i)
        for i, place in enumerate(columns)
        if len(rows[i])
    }
    return with_columns(X, changed)


def _with(column: pd.Series, at: np.ndarray, values: Any) -> pd.Series:
    changed = column.copy()
    changed.iloc[at] = values
    return changed


def _with_level(column: pd.Series, at: np.ndarray, text: str, number: Any) -> pd.Series:
    """Set some rows of a column to a text, or to a number if its categories are numbers.

    Categories of other kinds, such as intervals, do not change.
    """
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return _with(column, at, text)
    categories = column.cat.categories
    level = number if _holds_numbers(column) else text
    if kind(categories.to_series()) not in (NUMBER, TEXT):
        return column
    wider = column if level in categories else column.cat.add_categories([level])
    return _with(wider, at, level)


def _holds_numbers(column: pd.Series) -> bool:
    if not isinstance(column.dtype, pd.CategoricalDtype):
        return False
    categories = column.cat.categories
    return bool(len(categories) and kind(categories.to_series()) == NUMBER)


def _texts(column: pd.Series) -> set[str]:
    return {cell for cell in column.tolist() if isinstance(cell, str)}
