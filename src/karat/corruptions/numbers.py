"""Wrong numbers: noise, outliers, rounding and flipped signs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd

from karat.corruptions.kinds import NUMBER, floats, kind, places, put, spread, with_columns
from karat.corruptions.needs import Corrupted, corrupts
from karat.corruptions.shares import cells, streams
from karat.errors import DefinitionError

Draw = Callable[[np.random.Generator, int], np.ndarray]


@corrupts("noise_gaussian", needs=("numbers",), range=(0.0, math.inf))
def noise_gaussian(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Add noise of ``severity`` standard deviations to every number."""
    return _shaken(X, severity, rng, lambda stream, size: stream.standard_normal(size)), y


@corrupts("noise_uniform", needs=("numbers",), range=(0.0, math.inf))
def noise_uniform(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Add noise of at most ``severity`` standard deviations, up or down, to every number."""
    return _shaken(X, severity, rng, lambda stream, size: stream.uniform(-1.0, 1.0, size)), y


@corrupts("outliers", needs=("numbers",))
def outliers(
    X: pd.DataFrame,
    y: pd.Series | None,
    severity: float,
    rng: np.random.Generator,
    *,
    far: float = 10.0,
) -> Corrupted:
    """Move this share of the numbers ``far`` standard deviations up or down."""
    signs = rng.choice([-1.0, 1.0], size=(len(places(X, NUMBER)), len(X)))

    def moved(values: np.ndarray, i: int, at: np.ndarray, whole: bool) -> np.ndarray:
        with np.errstate(over="ignore"):
            found = values[at] + signs[i, at] * far * spread(values)
        return np.rint(found) if whole else found

    return _each(X, severity, rng, moved), y


@corrupts("rounding", needs=("numbers",))
def rounding(
    X: pd.DataFrame,
    y: pd.Series | None,
    severity: float,
    rng: np.random.Generator,
    *,
    digits: int = 1,
) -> Corrupted:
    """Round this share of the numbers to ``digits`` significant digits."""
    if digits < 1:
        raise DefinitionError(f"corruption rounding: digits must be >= 1, got {digits}.")

    def rounded(values: np.ndarray, i: int, at: np.ndarray, whole: bool) -> np.ndarray:
        # formatting as text is exact, also for the largest and the smallest numbers
        known, where = np.unique(values[at], return_inverse=True)
        return np.array([float(f"{value:.{digits - 1}e}") for value in known.tolist()])[where]

    return _each(X, severity, rng, rounded), y


@corrupts("sign_flip", needs=("numbers",))
def sign_flip(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Flip the sign of this share of the numbers."""
    return _each(X, severity, rng, lambda values, i, at, whole: -values[at]), y


def _shaken(X: pd.DataFrame, severity: float, rng: np.random.Generator, draw: Draw) -> pd.DataFrame:
    changed = {}
    # one stream per column, so that its noise does not depend on the other columns
    for i, stream in enumerate(streams(rng, X.shape[1])):
        if kind(X.iloc[:, i]) != NUMBER:
            continue
        values = floats(X.iloc[:, i])
        size, at = severity * spread(values), np.isfinite(values)
        if size > 0:
            with np.errstate(over="ignore"):
                noisy = values[at] + size * draw(stream, len(X))[at]
            changed[i] = put(X.iloc[:, i], at, noisy)
    return with_columns(X, changed)


def _each(
    X: pd.DataFrame,
    severity: float,
    rng: np.random.Generator,
    change: Callable[[np.ndarray, int, np.ndarray, bool], np.ndarray],
) -> pd.DataFrame:
    """Return the table with a share of its finite numbers changed."""
    numbers = places(X, NUMBER)
    hit, changed = cells(len(X), len(numbers), severity, rng), {}
    for i, place in enumerate(numbers):
        column = X.iloc[:, place]
        values = floats(column)
        at = np.flatnonzero(hit[i] & np.isfinite(values))
        whole = getattr(column.dtype, "kind", "") in "iu"
        changed[place] = put(column, at, change(values, i, at, whole))
    return with_columns(X, changed)
