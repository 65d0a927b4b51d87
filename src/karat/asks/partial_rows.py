"""Partial rows: queries of some cells of a row for the rows with the same values."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.asks.base import check_count, check_share, rows_of, searched
from karat.dataset import Dataset
from karat.registry import asker

#: larger integers are not exact as floats, which a column with missing values has
EXACT = 2**53


@asker("partial-rows")
def partial_rows(
    data: Dataset, rng: np.random.Generator, queries: int = 200, keep: float = 0.5
) -> Dataset:
    """Return partial rows as queries; their targets are the rows with the same values.

    A query keeps the fraction ``keep`` of the non-missing cells of a random row, at least one; the
    others are missing. Every row with the same values in these cells is a target. Use the probe
    ``nearest`` with ``queries: apart``.
    """
    check_count("partial-rows", "queries", queries)
    check_share("partial-rows", "keep", keep)
    table = rows_of(data, "partial-rows")
    codes = [_codes(table.iloc[:, i]) for i in range(table.shape[1])]
    filled = np.column_stack(codes) >= 0
    usable = np.flatnonzero(filled.any(axis=1))
    drawn = np.sort(rng.choice(usable, min(queries, len(usable)), replace=False))
    kept = _draw_cells(filled[drawn], keep, rng)
    answers = [_agreeing(codes, row, cells) for row, cells in zip(drawn, kept, strict=True)]
    names = [f"part of row {table.index[row]}" for row in drawn]
    ids = pd.Index([*(f"row {name}" for name in table.index), *names], dtype=object)
    return searched(data, _with_parts(table, drawn, kept).set_axis(ids, axis=0), names, answers)


def _codes(column: pd.Series) -> np.ndarray:
    """Return a code per cell, equal for equal cells, -1 if missing."""
    try:
        return pd.factorize(column)[0]
    except TypeError:  # unhashable cells are compared by their repr
        return pd.factorize(column.map(repr, na_action="ignore"))[0]


def _draw_cells(filled: np.ndarray, keep: float, rng: np.random.Generator) -> np.ndarray:
    """Return a mask with a random fraction of the filled cells of each row."""
    wanted = np.maximum(1, np.rint(keep * filled.sum(axis=1)))
    order = np.argsort(np.where(filled, rng.random(filled.shape), 2.0), axis=1)
    place = np.argsort(order, axis=1)
    return filled & (place < wanted[:, None])


def _agreeing(codes: list[np.ndarray], row: int, cells: np.ndarray) -> np.ndarray:
    rows = np.arange(len(codes[0]))
    for i in np.flatnonzero(cells):
        rows = rows[codes[i][rows] == codes[i][row]]
    return rows


def _with_parts(table: pd.DataFrame, drawn: np.ndarray, kept: np.ndarray) -> pd.DataFrame:
    """Return all rows, followed by the drawn ones with only the kept cells."""
    rows = table.iloc[np.concatenate([np.arange(len(table)), drawn])].copy()
    for i in range(table.shape[1]):
        column = rows.iloc[:, i]
        integers = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu"
        if integers and not column.between(-EXACT, EXACT).all():
            column = column.astype(object)
        stays = np.concatenate([np.ones(len(table), dtype=bool), kept[:, i]])
        rows.isetitem(i, column.where(stays))
    return rows
