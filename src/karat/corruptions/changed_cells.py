"""The share of cells in which two tables differ."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.core.files import cell_text
from karat.corruptions.needs import Items


def changed_share(
    before: Items | tuple[Items, pd.Series | None], after: Items | tuple[Items, pd.Series | None]
) -> float:
    """Return the share of changed cells, or of changed rows if rows were dropped or repeated.

    Both arguments are a table, a series, or a pair ``(X, y)``; ``y`` counts if ``X`` has not
    changed. Missing cells are equal, and so are equal numbers of different types. If the index
    differs, rows count that were dropped, repeated, or differ in any cell.

    >>> before = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> changed_share(before, before.assign(a=[1.0, 3.0]))
    0.25
    >>> changed_share(before, before[1:])
    0.5
    """
    if isinstance(before, tuple):
        items = changed_share(before[0], after[0])
        return items if items or before[1] is None else changed_share(before[1], after[1])
    one, other = pd.DataFrame(before), pd.DataFrame(after)
    if not one.size:
        return 0.0
    if one.index.equals(other.index):
        return float(_differing(one, other).mean())
    return min(1.0, _rows_changed(one, other) / len(one))


def _rows_changed(one: pd.DataFrame, other: pd.DataFrame) -> float:
    labels = one.index.append(other.index)
    numbers = pd.factorize(labels)[0]
    had, has = (
        np.bincount(part, minlength=numbers.max() + 1) for part in np.split(numbers, [len(one)])
    )
    moved = float(np.abs(had - has).sum())
    if not one.index.is_unique:
        return moved
    still = other[~other.index.duplicated()]
    still = still[still.index.isin(one.index)]
    return moved + float(_differing(one.loc[still.index], still).any(axis=1).sum())


def _differing(one: pd.DataFrame, other: pd.DataFrame) -> np.ndarray:
    """Return which cells differ; all of a removed column."""
    same_columns = one.columns.equals(other.columns)
    differs = np.ones(one.shape, dtype=bool)
    for i, name in enumerate(one.columns):
        if same_columns or name in other.columns:
            column = other.iloc[:, i] if same_columns else other[name]
            differs[:, i] = _differing_cells(one.iloc[:, i], column)
    return differs


def _differing_cells(one: pd.Series, other: pd.Series) -> np.ndarray:
    missing_before, missing_after = one.isna().to_numpy(), other.isna().to_numpy()
    present = ~(missing_before | missing_after)
    differing = missing_before != missing_after
    if one.dtype == other.dtype == "str":
        # compared without conversion to objects
        return np.asarray(differing | (present & np.asarray(one.array != other.array)))
    before, after = (values[present] for values in _plain(one, other))
    try:
        differing[present] = before != after
    except (TypeError, ValueError):  # arrays in cells, or a date that became a number
        pairs = zip(before.tolist(), after.tolist(), strict=True)
        differing[present] = [cell_text(a) != cell_text(b) for a, b in pairs]
    return differing


def _plain(one: pd.Series, other: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return two columns as numbers, dates or codes if both are; otherwise as objects."""
    both = (one, other)
    if isinstance(one.dtype, pd.CategoricalDtype) and one.dtype == other.dtype:
        other = other.cat.set_categories(one.cat.categories)
        return one.cat.codes.to_numpy(), other.cat.codes.to_numpy()
    if all(isinstance(column.dtype, np.dtype) and column.dtype.kind in "iufbmM" for column in both):
        return one.to_numpy(), other.to_numpy()
    return one.to_numpy(dtype=object), other.to_numpy(dtype=object)
