"""Corruptions of tables: cells that go missing, instruments that shake."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.errors import DefinitionError
from karat.registry import corruption

Corrupted = tuple[pd.DataFrame, pd.Series | None]


@corruption("missingness_mcar")
def missingness_mcar(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Empty each cell with a probability of ``severity``, whatever stands in it."""
    _need_table("missingness_mcar", X)
    gone = rng.random(X.shape) < severity
    return X.mask(pd.DataFrame(gone, index=X.index, columns=X.columns)), y


@corruption("noise_gaussian")
def noise_gaussian(
    X: pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> Corrupted:
    """Add noise of ``severity`` standard deviations to every number."""
    _need_table("noise_gaussian", X)
    noisy = X.copy()
    for column in X.columns:
        # drawn for every column, so that a column's noise hangs on its place and not on the types
        draws = rng.standard_normal(len(X))
        if pd.api.types.is_numeric_dtype(X[column]) and not pd.api.types.is_bool_dtype(X[column]):
            values = X[column].astype(float)
            spread = values.std(ddof=0)
            noisy[column] = values + severity * (spread if spread > 0 else 0.0) * draws
    return noisy, y


def _need_table(name: str, X: pd.DataFrame | pd.Series) -> None:
    if not isinstance(X, pd.DataFrame):
        raise DefinitionError(f"corruption: {name} takes tables, and these items are texts.")
