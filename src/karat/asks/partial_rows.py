"""Partial rows: some cells of a row ask for the rows that agree with them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.asks.base import check_count, check_share, rows_of, searched
from karat.dataset import Dataset
from karat.registry import asker

#: whole numbers beyond this are not all floats, which a column with gaps is made of
EXACT = 2**53


@asker("partial-rows")
def partial_rows(
    data: Dataset, rng: np.random.Generator, queries: int = 200, keep: float = 0.5
) -> Dataset:
    """Return rows with some cells left as queries; their answers are the rows that agree.

    Of each drawn row the share ``keep`` of its filled cells stays, one or more, and the others are
    missing. Every row with the same cells there is an answer. The probe is ``nearest`` with
    ``queries: apart``.
    """
    check_count("partial-rows", "queries", queries)
    check_share("partial-rows", "keep", keep)
    table = rows_of(data, "partial-rows")
    codes = [_codes(table.iloc[:, i]) for i in range(table.shape[1])]
    filled = np.column_stack(codes) >= 0
    able = np.flatnonzero(filled.any(axis=1))
    drawn = np.sort(rng.choice(able, min(queries, len(able)), replace=False))
    kept = _kept(filled[drawn], keep, rng)
    answers = [_agreeing(codes, row, cells) for row, cells in zip(drawn, kept, strict=True)]
    names = [f"part of row {table.index[row]}" for row in drawn]
    ids = pd.Index([*(f"row {name}" for name in table.index), *names], dtype=object)
    return searched(data, _with_parts(table, drawn, kept).set_axis(ids, axis=0), names, answers)


def _codes(column: pd.Series) -> np.ndarray:
    """Return a number per cell that equal cells share, -1 where it is missing."""
    try:
        return pd.factorize(column)[0]
    except TypeError:  # a cell that cannot be compared is told by what it prints
        return pd.factorize(column.map(repr, na_action="ignore"))[0]


def _kept(filled: np.ndarray, keep: float, rng: np.random.Generator) -> np.ndarray:
    """Return which cells stay: of each row's filled ones, a share."""
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
    """Return all rows, and below them the drawn ones once more with only the kept cells."""
    whole = table.iloc[np.concatenate([np.arange(len(table)), drawn])].copy()
    for i in range(table.shape[1]):
        column = whole.iloc[:, i]
        whole_numbers = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu"
        if whole_numbers and not column.between(-EXACT, EXACT).all():
            column = column.astype(object)
        stays = np.concatenate([np.ones(len(table), dtype=bool), kept[:, i]])
        whole.isetitem(i, column.where(stays))
    return whole
