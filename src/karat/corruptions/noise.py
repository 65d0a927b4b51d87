"""Corruptions of tables, of texts (typing and copying errors) and of vectors.

Those of tables change rows, targets, cells and columns, or items that are columns or whole tables.
Those of texts apply to a series of texts and to the text columns of a table; other cells do not
change. For those of vectors, X is the matrix of the test items; an item without a vector is a row
of NaN. Heads are trained on uncorrupted vectors.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from karat.core.columns import SharedFrame, header_text, pack
from karat.core.registry import corruption
from karat.corruptions.affected_cells import (
    affected_cells,
    affected_places,
    column_generators,
    count_affected,
    count_up,
)
from karat.corruptions.needs import MISSPELLINGS, Corrupted, corrupts, needed_file
from karat.corruptions.table_columns import (
    CATEGORY,
    DATE,
    FLAG,
    LEVELS,
    NUMBER,
    TEXT,
    dense,
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

Rng: TypeAlias = np.random.Generator
Table: TypeAlias = pd.DataFrame
Target: TypeAlias = pd.Series | None
Spreads: TypeAlias = Mapping[Any, float] | None
_ITEMS = ("table", "text", "entity", "column", "frame")
#: takes a column, the affected rows and its number among those of its kind; returns a new column
Change = Callable[[pd.Series, np.ndarray, int], pd.Series]
#: days that every unit of time of pandas can hold
_FIRST, _LAST = pd.Timestamp("1678-01-01"), pd.Timestamp("2262-01-01")
#: factors between pounds and kilograms, meters and feet, Fahrenheit and Celsius
FACTORS = (0.45, 2.2, 3.28, 0.3048, 1.8, 0.5556)
_COLUMNS = ("column", "frame")
#: returns the number of places of a text that can change
Count = Callable[[str], int]
#: takes a text and the places to change, returns the changed text
WordChange = Callable[[str, tuple[int, ...]], str]
_WITH_TEXT = ("table", "text", "entity")
_WORD = re.compile(r"\S+")
_MARK = re.compile("[\u0300-\u036f]")
_LETTERS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
Blurred = tuple[np.ndarray, Any]


@corrupts("rare_class_dilution", takes=_ITEMS, needs=("classes",))
def rare_class_dilution(
    X: Any, y: pd.Series, severity: float, rng: Rng, *, label: Any = None
) -> Corrupted:
    """Drop this share of the rows of the class ``label``, by default the rarest one.

    Among equally rare classes it is the last in text order: 1 of 0 and 1.
    """
    rare = np.flatnonzero(rarest(y) if label is None else (y == label).to_numpy())
    rest = np.delete(np.arange(len(X)), rare[affected_places(len(rare), severity, rng)])
    return X.iloc[rest], y.iloc[rest]


@corrupts("duplicate_rows", takes=("table", "text"), needs=("rows",))
def duplicate_rows(X: Any, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Repeat this share of the rows after all others."""
    rows = np.concatenate([np.arange(len(X)), affected_places(len(X), severity, rng)])
    return X.iloc[rows], None if y is None else y.iloc[rows]


@corrupts("label_noise", takes=_ITEMS, needs=("target",))
def label_noise(X: Any, y: pd.Series, severity: float, rng: Rng) -> Corrupted:
    """Replace the target of this share of the rows by another one, drawn uniformly."""
    codes, rows = levels(y)
    if len(rows) < 2:
        return X.copy(), y
    others = (codes + rng.integers(1, len(rows), size=len(y))) % len(rows)
    source = np.arange(len(y))
    hit = affected_places(len(y), severity, rng)
    hit = hit[codes[hit] >= 0]
    source[hit] = rows[others[hit]]
    return X.copy(), from_rows(y, source)


def rarest(y: pd.Series) -> np.ndarray:
    """Return which rows are of the rarest class; none if there is only one class.

    >>> rarest(pd.Series(["no", "yes", "no"])).tolist(), rarest(pd.Series([0, 1])).tolist()
    ([False, True, False], [False, True])
    """
    codes, rows = levels(y)
    if len(rows) < 2:
        return np.zeros(len(y), dtype=bool)
    counts = np.bincount(codes[codes >= 0])
    fewest = np.flatnonzero(counts == counts.min())
    return codes == max(fewest, key=lambda code: str(y.iloc[rows[code]]))


@corrupts("missingness_mcar")
def missingness_mcar(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Remove this share of all cells, independent of their values."""
    return _emptied(X, affected_cells(len(X), X.shape[1], severity, rng)), y


@corrupts("missingness_mnar", needs=("classes",))
def missingness_mnar(X: Table, y: pd.Series, severity: float, rng: Rng) -> Corrupted:
    """Remove this share of the cells of the rarest class, in all columns.

    Among equally rare classes it is the last in text order: 1 of 0 and 1.
    """
    rows = np.flatnonzero(rarest(y))
    hit = affected_places(len(rows) * X.shape[1], severity, rng)
    gone = np.zeros((X.shape[1], len(X)), dtype=bool)
    if len(rows):
        gone[hit // len(rows), rows[hit % len(rows)]] = True
    return _emptied(X, gone), y


@corrupts("missingness_value", needs=("order",))
def missingness_value(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Remove this share of each column of numbers or dates, preferably high values.

    Cells are drawn without replacement, with a probability proportional to their rank.
    """
    gone = np.zeros((X.shape[1], len(X)), dtype=bool)
    for i, stream in enumerate(column_generators(rng, X.shape[1])):
        if places(X.iloc[:, [i]], NUMBER, DATE):
            gone[i, _by_rank(_ranks(X.iloc[:, i]), severity, stream)] = True
    return _emptied(X, gone), y


@corrupts("missingness_mar", needs=("order", "two columns"))
def missingness_mar(X: Table, y: Target, severity: float, rng: Rng) -> Corrupted:
    """Remove this share of each column but one, preferably where that one is high.

    A random column of numbers or dates does not change. The cells of all others are drawn without
    replacement, with a probability proportional to the rank of that column in their row.
    """
    guide = int(rng.choice(places(X, NUMBER, DATE)))
    ranks = np.nan_to_num(_ranks(X.iloc[:, guide]), nan=1.0)
    gone = np.zeros((X.shape[1], len(X)), dtype=bool)
    for i, stream in enumerate(column_generators(rng, X.shape[1])):
        if i != guide:
            gone[i, _by_rank(ranks, severity, stream)] = True
    return _emptied(X, gone), y


def _emptied(X: Table, gone: np.ndarray) -> Table:
    hit = np.flatnonzero(gone.any(axis=1)).tolist()
    return with_columns(X, {i: dense(X.iloc[:, i]).mask(gone[i]) for i in hit})


def _ranks(column: pd.Series) -> np.ndarray:
    return dense(column).rank().to_numpy(dtype=float, na_value=np.nan)


def _by_rank(ranks: np.ndarray, severity: float, rng: Rng) -> np.ndarray:
    """Draw rows with probabilities proportional to their ranks, by exponential waiting times."""
    waiting = rng.standard_exponential(len(ranks)) / ranks
    ranked = int(np.isfinite(ranks).sum())
    # NaN are the last
    return np.argsort(waiting, kind="stable")[: count_affected(ranked, severity)]


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


# -- columns and whole tables ---------------------------------------------------------------


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


def _keep_attrs(changed: Any, item: Any) -> Any:
    changed.attrs = dict(item.attrs)
    return changed


# -- texts and vectors ------------------------------------------------------------------------


@corrupts("typos", takes=_WITH_TEXT, needs=("text",))
def typos(X: Any, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Swap each pair of neighboring letters with a probability of ``severity``."""

    def slipped(text: str, pairs: tuple[int, ...]) -> str:
        letters = list(text)
        for pair in pairs:
            i = 2 * pair
            letters[i], letters[i + 1] = letters[i + 1], letters[i]
        return "".join(letters)

    return _by_place(X, severity, rng, lambda text: len(text) // 2, slipped), y


@corrupts("case", takes=_WITH_TEXT, needs=("text",))
def case(X: Any, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Change each word to upper case, or back, with a probability of ``severity``."""

    def cased(text: str) -> list[re.Match[str]]:
        return [word for word in _WORD.finditer(text) if word[0].upper() != word[0].lower()]

    def other(word: str) -> str:
        return word.lower() if word == word.upper() else word.upper()

    def turned(text: str, words: tuple[int, ...]) -> str:
        changeable = cased(text)
        return _replaced(text, [(changeable[i].span(), other(changeable[i][0])) for i in words])

    return _by_place(X, severity, rng, lambda text: len(cased(text)), turned), y


@corrupts("accents", takes=_WITH_TEXT, needs=("text",))
def accents(X: Any, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Remove the accent of each accented letter with a probability of ``severity``.

    Letters such as ø or ß have no accent.
    """

    def bare(letter: str) -> str:
        return unicodedata.normalize("NFC", _MARK.sub("", unicodedata.normalize("NFD", letter)))

    def accented(text: str) -> list[int]:
        if text.isascii():
            return []
        return [
            i
            for i, letter in enumerate(text)
            if not letter.isascii() and _MARK.search(unicodedata.normalize("NFD", letter))
        ]

    def stripped(text: str, letters: tuple[int, ...]) -> str:
        chosen = [accented(text)[i] for i in letters]
        return _replaced(text, [((i, i + 1), bare(text[i])) for i in chosen])

    return _by_place(X, severity, rng, lambda text: len(accented(text)), stripped), y


@corrupts("whitespace", takes=_WITH_TEXT, needs=("text",))
def whitespace(X: Any, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Add a space before, between and after words, each with a probability of ``severity``."""

    def spaced(text: str, gaps: tuple[int, ...]) -> str:
        ends = [0, *(word.end() for word in _WORD.finditer(text))]
        return _replaced(text, [((ends[i], ends[i]), " ") for i in gaps])

    return _by_place(X, severity, rng, lambda text: _words(text) + 1, spaced), y


@corrupts("word_drop", takes=_WITH_TEXT, needs=("text",))
def word_drop(X: Any, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Drop each word with a probability of ``severity``; at least one word of a text remains."""

    def shortened(text: str, words: tuple[int, ...]) -> str:
        starts = [*(word.start() for word in _WORD.finditer(text)), len(text)]
        return _replaced(text, [((starts[i], starts[i + 1]), "") for i in words])

    return _by_place(X, severity, rng, _words, shortened, spare=True), y


@corrupts("word_swap", takes=_WITH_TEXT, needs=("text",))
def word_swap(X: Any, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Swap each pair of neighboring words with a probability of ``severity``."""

    def swapped(text: str, pairs: tuple[int, ...]) -> str:
        words = list(_WORD.finditer(text))
        turned = [(words[2 * i], words[2 * i + 1]) for i in pairs]
        both = [edit for a, b in turned for edit in ((a.span(), b[0]), (b.span(), a[0]))]
        return _replaced(text, both)

    return _by_place(X, severity, rng, lambda text: _words(text) // 2, swapped), y


@corrupts("misspellings", takes=_WITH_TEXT, needs=("text", "misspellings"))
def misspellings(
    X: Any, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Misspell each word of an English list, as people did, with a probability of ``severity``.

    All misspellings of a word are equally likely.
    """
    path = needed_file(MISSPELLINGS)
    listed = _misspelled(str(path), path.stat().st_mtime_ns)

    def places_of(text: Any) -> list[tuple[re.Match[str], list[str]]]:
        words = _LETTERS.finditer(text) if isinstance(text, str) else ()
        candidates = [(word, listed.get(word[0]) or listed.get(word[0].lower())) for word in words]
        return [(word, others) for word, others in candidates if others]

    def wrong(texts: pd.Series) -> list[Any]:
        cells = texts.tolist()
        candidates = [places_of(cell) for cell in cells]
        draws = iter(rng.random((sum(map(len, candidates)), 2)).tolist())
        for i, words in enumerate(candidates):
            drawn = [(word, others, next(draws)) for word, others in words]
            edits = [
                (word.span(), _cased_like(word[0], others[int(which * len(others))]))
                for word, others, (hit, which) in drawn
                if hit < severity
            ]
            cells[i] = _replaced(cells[i], edits) if edits else cells[i]
        return cells

    return _on_texts(X, wrong), y


@functools.lru_cache(maxsize=4)
def _misspelled(path: str, _: int) -> dict[str, list[str]]:
    """Return the misspellings of each word of a file, in its order.

    Those that differ from the word in case only, or have other characters than letters,
    apostrophes and hyphens, are left out.
    """
    listed: dict[str, dict[str, None]] = {}
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        word, *others = line.split() or [""]
        good = [o for o in others if _LETTERS.fullmatch(o) and o.casefold() != word.casefold()]
        listed.setdefault(word, {}).update(dict.fromkeys(good))
    return {word: list(others) for word, others in listed.items() if others}


def _cased_like(word: str, other: str) -> str:
    """Return the other word in upper case or with a capital, if the word is not in lower case.

    >>> _cased_like("THEIR", "thier"), _cased_like("Their", "thier"), _cased_like("I", "i'm")
    ('THIER', 'Thier', "I'm")
    """
    if len(word) > 1 and word.isupper():
        return other.upper()
    return other[0].upper() + other[1:] if word[0].isupper() else other


@corrupts("truncation", takes=_WITH_TEXT, needs=("text",))
def truncation(X: Any, y: pd.Series | None, severity: float, rng: np.random.Generator) -> Corrupted:
    """Remove this share of the letters at the end of every text; the first one remains."""
    length_left = _Memo(lambda size: max(1, size - count_affected(size, severity)))

    def cut(texts: pd.Series) -> list[Any]:
        return [
            text[: length_left[len(text)]] if isinstance(text, str) else text
            for text in texts.tolist()
        ]

    return _on_texts(X, cut), y


def _words(text: str) -> int:
    return len(text.split())


def _replaced(text: str, edits: list[tuple[tuple[int, int], str]]) -> str:
    """Return a text with replaced spans, which are in order and do not overlap."""
    parts, done = [], 0
    for (start, end), new in edits:
        parts += [text[done:start], new]
        done = end
    return "".join([*parts, text[done:]])


def _on_texts(X: Any, change: Callable[[pd.Series], list[Any]]) -> Any:
    if isinstance(X, pd.DataFrame):
        return with_columns(X, {i: _on_texts(X.iloc[:, i], change) for i in places(X, TEXT)})
    dtype = "category" if isinstance(X.dtype, pd.CategoricalDtype) else X.dtype
    return pd.Series(change(X), index=X.index, dtype=dtype, name=X.name)


def _by_place(
    X: Any,
    severity: float,
    rng: np.random.Generator,
    counted: Count,
    change: WordChange,
    spare: bool = False,
) -> Any:
    """Return the texts changed at random places, drawn for all texts at once.

    ``spare`` excludes the place with the highest draw of every text.
    """
    sizes_of, done = _Memo(counted), _Memo(lambda key: change(*key))

    def changed(texts: pd.Series) -> list[Any]:
        cells = texts.tolist()
        sizes = np.array([sizes_of[c] if isinstance(c, str) else 0 for c in cells], dtype=np.intp)
        draws = rng.random(int(sizes.sum()))
        if spare:
            draws[_highest(draws, sizes)] = 1.0
        ends = np.cumsum(sizes)
        hits = np.flatnonzero(draws < severity)
        owners = np.searchsorted(ends, hits, side="right")
        local = (hits - (ends - sizes)[owners]).tolist()
        texts_hit, first = np.unique(owners, return_index=True)
        bounds = [*first.tolist(), len(local)]
        for k, i in enumerate(texts_hit.tolist()):
            cells[i] = done[cells[i], tuple(local[bounds[k] : bounds[k + 1]])]
        return cells

    return _on_texts(X, changed)


def _highest(draws: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Return which draws are the highest of their text."""
    sizes = sizes[sizes > 0]
    if not len(sizes):
        return np.zeros(0, dtype=bool)
    return draws == np.repeat(np.maximum.reduceat(draws, np.cumsum(sizes) - sizes), sizes)


class _Memo(dict[Any, Any]):
    """A cache of function results: the same words are in many cells."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.function = function

    def __missing__(self, key: Any) -> Any:
        self[key] = self.function(key)
        return self[key]


@corruption("vector_int8", takes=("vectors",), range=(0.0, 1.0))
def vector_int8(X: np.ndarray, y: Any, severity: float, rng: np.random.Generator) -> Blurred:
    """Round this share of the dimensions to 255 steps (int8), scaled by the largest number."""
    chosen = _dimensions(X, severity, rng)
    part = X[:, chosen]
    step = np.nanmax(np.abs(part), axis=0, initial=0.0) / 127
    step[step == 0] = 1.0
    X[:, chosen] = np.rint(part / step) * step
    return X, y


@corruption("vector_binary", takes=("vectors",), range=(0.0, 1.0))
def vector_binary(X: np.ndarray, y: Any, severity: float, rng: np.random.Generator) -> Blurred:
    """Reduce this share of the dimensions to one bit, whether a number is above 0.

    The two values are plus and minus the mean absolute value of all numbers.
    """
    chosen = _dimensions(X, severity, rng)
    size = np.nanmean(np.abs(X)) if np.isfinite(X).any() else 0.0
    part = X[:, chosen]
    X[:, chosen] = np.where(np.isnan(part), np.nan, np.where(part > 0, size, -size))
    return X, y


@corruption("vector_truncation", takes=("vectors",), range=(0.0, 1.0))
def vector_truncation(X: np.ndarray, y: Any, severity: float, rng: np.random.Generator) -> Blurred:
    """Set this share of the dimensions, the last ones, to 0; the first one never changes.

    For cosines and linear heads this is the same as removing them.
    """
    cut = min(count_affected(X.shape[1], severity), X.shape[1] - 1)
    part = X[:, X.shape[1] - cut :]
    part[~np.isnan(part)] = 0.0
    return X, y


@corruption("vector_noise", takes=("vectors",), range=(0.0, np.inf))
def vector_noise(X: np.ndarray, y: Any, severity: float, rng: np.random.Generator) -> Blurred:
    """Add Gaussian noise of ``severity`` times the standard deviation of each dimension."""
    has_vector = ~np.isnan(X[:, 0])
    spread = X[has_vector].std(axis=0) if has_vector.any() else np.zeros(X.shape[1])
    return X + severity * spread * rng.standard_normal(X.shape), y


@corruption("vector_dropped", takes=("vectors",), range=(0.0, 1.0))
def vector_dropped(X: np.ndarray, y: Any, severity: float, rng: np.random.Generator) -> Blurred:
    """Remove the vectors of this share of the items."""
    X[affected_places(len(X), severity, rng)] = np.nan
    return X, y


def _dimensions(X: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    return rng.permutation(X.shape[1])[: count_up(X.shape[1], severity)]
