"""Wrong columns: other units, other codes, swapped columns, a stuck sensor."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.corruptions.kinds import (
    CATEGORY,
    DATE,
    FLAG,
    LEVELS,
    NUMBER,
    TEXT,
    floats,
    from_rows,
    levels,
    places,
    put,
    with_columns,
)
from karat.corruptions.needs import Corrupted, corrupts
from karat.corruptions.shares import count, count_up, streams

#: factors between pounds and kilograms, meters and feet, Fahrenheit and Celsius
FACTORS = (0.45, 2.2, 3.28, 0.3048, 1.8, 0.5556)


@corrupts("scaling_error", needs=("numbers",))
def scaling_error(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Multiply this share of the columns of numbers by a factor each, as if units were mixed up."""
    numbers = {i: floats(X.iloc[:, i]) for i in places(X, NUMBER)}
    usable = [i for i, values in numbers.items() if np.nan_to_num(values, posinf=0, neginf=0).any()]
    factors = rng.choice(FACTORS, size=len(usable))
    changed = {}
    for j in rng.permutation(len(usable))[: count_up(len(usable), severity)]:
        values = numbers[usable[j]]
        at = np.isfinite(values)
        with np.errstate(over="ignore"):
            changed[usable[j]] = put(X.iloc[:, usable[j]], at, values[at] * factors[j])
    return with_columns(X, changed), y


@corrupts("categorical_remap", needs=("levels",))
def categorical_remap(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Replace every level by another one, in this share of the columns that have levels.

    The levels are arranged in a random circle and each becomes the next, so all of them change.
    """
    found = {i: levels(X.iloc[:, i]) for i in places(X, *LEVELS)}
    usable = [i for i, (_, rows) in found.items() if len(rows) > 1]
    generators, changed = streams(rng, len(usable)), {}
    for j in rng.permutation(len(usable))[: count_up(len(usable), severity)]:
        codes, rows = found[usable[j]]
        circle = generators[j].permutation(len(rows))
        becomes = np.empty(len(rows), dtype=np.intp)
        becomes[circle] = rows[np.roll(circle, -1)]
        source = np.where(codes < 0, np.arange(len(X)), becomes[codes])
        changed[usable[j]] = from_rows(X.iloc[:, usable[j]], source)
    return with_columns(X, changed), y


@corrupts("column_swap", needs=("pair",))
def column_swap(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Swap the contents of this share of pairs of columns of the same kind."""
    pairs: list[tuple[int, int]] = []
    for kind in (NUMBER, FLAG, CATEGORY, TEXT, DATE):
        mixed = rng.permutation(places(X, kind)).astype(int).tolist()
        pairs += zip(mixed[0::2], mixed[1::2], strict=False)
    changed: dict[int, pd.Series] = {}
    for j in rng.permutation(len(pairs))[: count_up(len(pairs), severity)]:
        one, other = pairs[j]
        changed |= {one: X.iloc[:, other], other: X.iloc[:, one]}
    return with_columns(X, changed), y


@corrupts("stuck_sensor", needs=("numbers",))
def stuck_sensor(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Repeat one value of each column of numbers for this share of consecutive rows.

    It starts at a random row; the first row follows the last one.
    """
    starts, size, changed = rng.integers(max(len(X), 1), size=X.shape[1]), len(X), {}
    for i in places(X, NUMBER):
        known = np.flatnonzero(np.isfinite(floats(X.iloc[:, i])))
        if not len(known):
            continue
        reading = known[np.searchsorted(known, starts[i]) % len(known)]
        source = np.arange(size)
        source[(reading + 1 + np.arange(count(size, severity))) % size] = reading
        changed[i] = from_rows(X.iloc[:, i], source)
    return with_columns(X, changed), y
