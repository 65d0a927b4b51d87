"""Corruptions of texts: fingers that slip."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.registry import corruption


@corruption("typos")
def typos(
    X: pd.Series | pd.DataFrame, y: pd.Series | None, severity: float, rng: np.random.Generator
) -> tuple[pd.Series | pd.DataFrame, pd.Series | None]:
    """Swap each pair of neighbouring letters with a probability of ``severity``.

    In a table, only the columns of text have letters.
    """
    if isinstance(X, pd.Series):
        return _slipped(X, severity, rng), y
    changed = X.copy()
    for column in X.columns:
        if _is_text(X[column]):
            changed[column] = _slipped(X[column], severity, rng)
    return changed, y


def _is_text(column: pd.Series) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return False
    return column.dtype == object or pd.api.types.is_string_dtype(column)


def _slipped(texts: pd.Series, severity: float, rng: np.random.Generator) -> pd.Series:
    cells = texts.tolist()
    pairs = np.array([len(cell) // 2 if isinstance(cell, str) else 0 for cell in cells], dtype=int)
    # one draw for all pairs: the same ones slip at a higher severity, and more
    ends = np.cumsum(pairs)
    slips = np.flatnonzero(rng.random(int(pairs.sum())) < severity)
    owners, first = np.unique(np.searchsorted(ends, slips, side="right"), return_index=True)
    for text, mine in zip(owners, np.split(slips, first[1:]), strict=False):
        cells[text] = _swapped(cells[text], mine - ends[text] + pairs[text])
    return pd.Series(cells, index=texts.index, dtype=texts.dtype, name=texts.name)


def _swapped(text: str, pairs: np.ndarray) -> str:
    letters = list(text)
    for i in (2 * pairs).tolist():
        letters[i], letters[i + 1] = letters[i + 1], letters[i]
    return "".join(letters)
