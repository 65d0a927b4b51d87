"""Missing cells: at random, by class, by their own value, or by another column."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.corruptions.kinds import DATE, NUMBER, dense, places, with_columns
from karat.corruptions.needs import Corrupted, corrupts
from karat.corruptions.rows import rarest
from karat.corruptions.shares import cells, count, some, streams


@corrupts("missingness_mcar")
def missingness_mcar(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Remove this share of all cells, independent of their values."""
    return _emptied(X, cells(len(X), X.shape[1], severity, rng)), y


@corrupts("missingness_mnar", needs=("classes",))
def missingness_mnar(
    X: pd.DataFrame, y: pd.Series, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Remove this share of the cells of the rarest class, in all columns.

    Among equally rare classes it is the last in text order: 1 of 0 and 1.
    """
    rows = np.flatnonzero(rarest(y))
    hit = some(len(rows) * X.shape[1], severity, rng)
    gone = np.zeros((X.shape[1], len(X)), dtype=bool)
    if len(rows):
        gone[hit // len(rows), rows[hit % len(rows)]] = True
    return _emptied(X, gone), y


@corrupts("missingness_value", needs=("order",))
def missingness_value(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Remove this share of each column of numbers or dates, preferably high values.

    Cells are drawn without replacement, with a probability proportional to their rank.
    """
    gone = np.zeros((X.shape[1], len(X)), dtype=bool)
    for i, stream in enumerate(streams(rng, X.shape[1])):
        if places(X.iloc[:, [i]], NUMBER, DATE):
            gone[i, _by_rank(_ranks(X.iloc[:, i]), severity, stream)] = True
    return _emptied(X, gone), y


@corrupts("missingness_mar", needs=("order", "two columns"))
def missingness_mar(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Remove this share of each column but one, preferably where that one is high.

    A random column of numbers or dates does not change. The cells of all others are drawn without
    replacement, with a probability proportional to the rank of that column in their row.
    """
    guide = int(rng.choice(places(X, NUMBER, DATE)))
    ranks = np.nan_to_num(_ranks(X.iloc[:, guide]), nan=1.0)
    gone = np.zeros((X.shape[1], len(X)), dtype=bool)
    for i, stream in enumerate(streams(rng, X.shape[1])):
        if i != guide:
            gone[i, _by_rank(ranks, severity, stream)] = True
    return _emptied(X, gone), y


def _emptied(X: pd.DataFrame, gone: np.ndarray) -> pd.DataFrame:
    hit = np.flatnonzero(gone.any(axis=1)).tolist()
    return with_columns(X, {i: dense(X.iloc[:, i]).mask(gone[i]) for i in hit})


def _ranks(column: pd.Series) -> np.ndarray:
    return dense(column).rank().to_numpy(dtype=float, na_value=np.nan)


def _by_rank(ranks: np.ndarray, severity: float, rng: np.random.Generator) -> np.ndarray:
    """Draw rows with probabilities proportional to their ranks, by exponential waiting times."""
    waiting = rng.standard_exponential(len(ranks)) / ranks
    known = int(np.isfinite(ranks).sum())
    return np.argsort(waiting, kind="stable")[: count(known, severity)]  # NaN are the last
