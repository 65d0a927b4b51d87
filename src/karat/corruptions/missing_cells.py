"""Corruptions that remove cells of tables."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.corruptions.affected_cells import (
    affected_cells,
    affected_places,
    column_generators,
    count_affected,
)
from karat.corruptions.needs import (
    Corrupted,
    Rng,
    Table,
    Target,
    corrupts,
)
from karat.corruptions.row_noise import rarest
from karat.corruptions.table_columns import (
    DATE,
    NUMBER,
    dense,
    places,
    with_columns,
)


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
