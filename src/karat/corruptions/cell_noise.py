"""Corruptions of numbers, categories and dates in the cells of tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from karat.corruptions.affected_cells import (
    affected_cells,
    column_generators,
    count_affected,
    count_up,
)
from karat.corruptions.needs import (
    Corrupted,
    Rng,
    Table,
    Target,
    corrupts,
)
from karat.corruptions.table_columns import (
    CATEGORY,
    DATE,
    FLAG,
    LEVELS,
    NUMBER,
    TEXT,
    floats,
    from_rows,
    kind,
    levels,
    places,
    spread,
    with_columns,
    with_values,
)
from karat.errors import DefinitionError

Spreads: TypeAlias = Mapping[Any, float] | None
#: takes a column, the affected rows and its number among those of its kind; returns a new column
Change = Callable[[pd.Series, np.ndarray, int], pd.Series]
#: days that every unit of time of pandas can hold
_FIRST, _LAST = pd.Timestamp("1678-01-01"), pd.Timestamp("2262-01-01")
#: factors between pounds and kilograms, meters and feet, Fahrenheit and Celsius
FACTORS = (0.45, 2.2, 3.28, 0.3048, 1.8, 0.5556)


@corrupts("noise_gaussian", needs=("numbers",), range=(0.0, math.inf))
def noise_gaussian(
    X: Table, y: Target, severity: float, rng: Rng, *, spreads: Spreads = None
) -> Corrupted:
    """Add noise of ``severity`` standard deviations to every number.

    ``spreads`` are the standard deviations by column; by default those of X.
    """
    return _shaken(X, severity, rng, lambda g, size: g.standard_normal(size), spreads), y


@corrupts("noise_uniform", needs=("numbers",), range=(0.0, math.inf))
def noise_uniform(
    X: Table, y: Target, severity: float, rng: Rng, *, spreads: Spreads = None
) -> Corrupted:
    """Add noise of at most ``severity`` standard deviations, up or down, to every number.

    ``spreads`` are the standard deviations by column; by default those of X.
    """
    return _shaken(X, severity, rng, lambda g, size: g.uniform(-1.0, 1.0, size), spreads), y


@corrupts("outliers", needs=("numbers",))
def outliers(X: Table, y: Target, severity: float, rng: Rng, *, far: float = 10.0) -> Corrupted:
    """Move this share of the numbers ``far`` standard deviations up or down."""
    signs = rng.choice([-1.0, 1.0], size=(len(places(X, NUMBER)), len(X)))

    def moved(values: np.ndarray, i: int, at: np.ndarray, whole: bool) -> np.ndarray:
        with np.errstate(over="ignore"):
            shifted = values[at] + signs[i, at] * far * spread(values)
        return np.rint(shifted) if whole else shifted

    return _each(X, severity, rng, moved), y


@corrupts("rounding", needs=("numbers",))
def rounding(X: Table, y: Target, severity: float, rng: Rng, *, digits: int = 1) -> Corrupted:
    """Round this share of the numbers to ``digits`` significant digits."""
    if digits < 1:
        raise DefinitionError(f"corruption rounding: digits must be >= 1, got {digits}.")

    def rounded(values: np.ndarray, i: int, at: np.ndarray, whole: bool) -> np.ndarray:
        # formatting as text is exact, also for the largest and the smallest numbers
        distinct, where = np.unique(values[at], return_inverse=True)
        return np.array([float(f"{value:.{digits - 1}e}") for value in distinct.tolist()])[where]

    return _each(X, severity, rng, rounded), y


@corrupts("sign_flip", needs=("numbers",))
def sign_flip(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Flip the sign of this share of the numbers."""
    return _each(X, severity, rng, lambda values, i, at, whole: -values[at]), y


def _shaken(
    X: Table, severity: float, rng: Rng, draw: Callable[[Rng, int], Any], spreads: Spreads
) -> Table:
    changed = {}
    # one stream per column, so that its noise does not depend on the other columns
    for i, stream in enumerate(column_generators(rng, X.shape[1])):
        if kind(X.iloc[:, i]) != NUMBER:
            continue
        values = floats(X.iloc[:, i])
        deviation = (spreads or {}).get(X.columns[i])
        size = severity * (spread(values) if deviation is None else float(deviation))
        at = np.isfinite(values)
        if size > 0:
            with np.errstate(over="ignore"):
                noisy = values[at] + size * draw(stream, len(X))[at]
            changed[i] = with_values(X.iloc[:, i], at, noisy)
    return with_columns(X, changed)


def _each(
    X: Table,
    severity: float,
    rng: Rng,
    change: Callable[[np.ndarray, int, np.ndarray, bool], np.ndarray],
) -> Table:
    """Return the table with a share of its finite numbers changed."""

    def changed(column: pd.Series, at: np.ndarray, i: int) -> pd.Series:
        values = floats(column)
        at = at[np.isfinite(values)[at]]
        whole = getattr(column.dtype, "kind", "") in "iu"
        return with_values(column, at, change(values, i, at, whole))

    return _cells_each(X, (NUMBER,), severity, rng, changed)


@corrupts("sentinel", needs=("codes",))
def sentinel(
    X: Table, y: Target, severity: float, rng: Rng, *, number: int = -999, text: str = "?"
) -> Corrupted:
    """Replace this share of the cells by a code for missing: -999, ``?``, or 1 January 1900."""

    def coded(column: pd.Series, at: np.ndarray, i: int) -> pd.Series:
        if kind(column) == NUMBER:
            return with_values(column, at, np.full(len(at), float(number)))
        if kind(column) == DATE:
            return _with(column, at, pd.Timestamp("1900-01-01").tz_localize(column.dt.tz))
        return _with_level(column, at, text, number)

    return _cells_each(X, (NUMBER, CATEGORY, TEXT, DATE), severity, rng, coded), y


@corrupts("unseen_category", needs=("names",))
def unseen_category(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Replace this share of the cells of text or categories by an unseen category."""

    def strange(column: pd.Series, at: np.ndarray, i: int) -> pd.Series:
        at = at[column.notna().to_numpy()[at]]
        category = isinstance(column.dtype, pd.CategoricalDtype)
        seen = column.cat.categories if category else {c for c in column if isinstance(c, str)}
        number = column.cat.categories.max() + 1 if _holds_numbers(column) else None
        text = "(unseen)"
        while text in seen:
            text += "*"
        return _with_level(column, at, text, number)

    return _cells_each(X, (CATEGORY, TEXT), severity, rng, strange), y


@corrupts("date_shift", needs=("dates",))
def date_shift(X: Table, y: Target, severity: float, rng: Rng, *, days: int = 365) -> Corrupted:
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

    return _cells_each(X, (DATE,), severity, rng, moved), y


def _cells_each(
    X: Table, kinds: tuple[str, ...], severity: float, rng: Rng, change: Change
) -> Table:
    """Return the table with a share of the cells of some kinds of columns changed."""
    changed, columns = {}, places(X, *kinds)
    hits = affected_cells(len(X), len(columns), severity, rng)
    for i, position in enumerate(columns):
        if hits[i].any():
            changed[position] = change(X.iloc[:, position], np.flatnonzero(hits[i]), i)
    return with_columns(X, changed)


def _with(column: pd.Series, at: np.ndarray, values: object) -> pd.Series:
    changed = column.copy()
    changed.iloc[at] = values
    return changed


def _with_level(column: pd.Series, at: np.ndarray, text: str, number: object) -> pd.Series:
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


@corrupts("scaling_error", needs=("numbers",))
def scaling_error(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Multiply this share of the columns of numbers by a factor each, as if units were mixed up."""
    numbers = {i: floats(X.iloc[:, i]) for i in places(X, NUMBER)}
    usable = [i for i, values in numbers.items() if np.nan_to_num(values, posinf=0, neginf=0).any()]
    factors = rng.choice(FACTORS, size=len(usable))
    changed = {}
    for j in rng.permutation(len(usable))[: count_up(len(usable), severity)]:
        values = numbers[usable[j]]
        at = np.isfinite(values)
        with np.errstate(over="ignore"):
            changed[usable[j]] = with_values(X.iloc[:, usable[j]], at, values[at] * factors[j])
    return with_columns(X, changed), y


@corrupts("categorical_remap", needs=("levels",))
def categorical_remap(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Replace every level by another one, in this share of the columns that have levels.

    The levels are arranged in a random circle and each becomes the next, so all of them change.
    """
    levels_of = {i: levels(X.iloc[:, i]) for i in places(X, *LEVELS)}
    usable = [i for i, (_, rows) in levels_of.items() if len(rows) > 1]
    generators, changed = column_generators(rng, len(usable)), {}
    for j in rng.permutation(len(usable))[: count_up(len(usable), severity)]:
        codes, rows = levels_of[usable[j]]
        circle = generators[j].permutation(len(rows))
        becomes = np.empty(len(rows), dtype=np.intp)
        becomes[circle] = rows[np.roll(circle, -1)]
        source = np.where(codes < 0, np.arange(len(X)), becomes[codes])
        changed[usable[j]] = from_rows(X.iloc[:, usable[j]], source)
    return with_columns(X, changed), y


@corrupts("column_swap", needs=("pair",))
def column_swap(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Swap the contents of this share of pairs of columns of the same kind."""
    pairs: list[tuple[int, int]] = []
    for column_kind in (NUMBER, FLAG, CATEGORY, TEXT, DATE):
        mixed = rng.permutation(places(X, column_kind)).astype(int).tolist()
        pairs += zip(mixed[0::2], mixed[1::2], strict=False)
    changed: dict[int, pd.Series] = {}
    for j in rng.permutation(len(pairs))[: count_up(len(pairs), severity)]:
        one, other = pairs[j]
        changed |= {one: X.iloc[:, other], other: X.iloc[:, one]}
    return with_columns(X, changed), y


@corrupts("stuck_sensor", needs=("numbers",))
def stuck_sensor(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Repeat one value of each column of numbers for this share of consecutive rows.

    It starts at a random row; the first row follows the last one.
    """
    starts, size, changed = rng.integers(max(len(X), 1), size=X.shape[1]), len(X), {}
    for i in places(X, NUMBER):
        finite = np.flatnonzero(np.isfinite(floats(X.iloc[:, i])))
        if not len(finite):
            continue
        reading = finite[np.searchsorted(finite, starts[i]) % len(finite)]
        source = np.arange(size)
        source[(reading + 1 + np.arange(count_affected(size, severity))) % size] = reading
        changed[i] = from_rows(X.iloc[:, i], source)
    return with_columns(X, changed), y
