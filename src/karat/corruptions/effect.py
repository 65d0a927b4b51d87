"""Effect: how much of the data a corruption has changed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd


def affected(before: Any, after: Any) -> float:
    """Return the share of cells that changed, or of rows where rows came or went.

    Both are a table, a series, or a pair ``(X, y)``, of which ``y`` counts where ``X`` has not
    changed. A missing cell is like another, and a number like itself in any type. Where the index
    is not the same, a row counts that was dropped, that stands once more, or that differs in any
    cell.

    >>> before = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    >>> affected(before, before.assign(a=[1.0, 3.0]))
    0.25
    >>> affected(before, before[1:])
    0.5
    """
    if isinstance(before, tuple):
        items = affected(before[0], after[0])
        return items if items or before[1] is None else affected(before[1], after[1])
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
    """Return which cells differ; all of a column that is no longer there."""
    alike = one.columns.equals(other.columns)
    found = np.ones(one.shape, dtype=bool)
    for i, name in enumerate(one.columns):
        if alike or name in other.columns:
            found[:, i] = _unlike(one.iloc[:, i], other.iloc[:, i] if alike else other[name])
    return found


def _unlike(one: pd.Series, other: pd.Series) -> np.ndarray:
    lost, gone = one.isna().to_numpy(), other.isna().to_numpy()
    there = ~(lost | gone)
    if one.dtype == other.dtype == "str":
        # texts are compared where they lie, without making objects of them
        return np.asarray((lost != gone) | (there & np.asarray(one.array != other.array)))
    mine, its = (values[there] for values in _plain(one, other))
    unlike = lost != gone
    try:
        unlike[there] = mine != its
    except (TypeError, ValueError):  # arrays in cells, or a date before and a number now
        pairs = zip(mine.tolist(), its.tolist(), strict=True)
        unlike[there] = [repr(a) != repr(b) for a, b in pairs]
    return unlike


def _plain(one: pd.Series, other: pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Return two columns as numbers, moments or codes, where both are such; else as objects."""
    both = (one, other)
    if isinstance(one.dtype, pd.CategoricalDtype) and one.dtype == other.dtype:
        other = other.cat.set_categories(one.cat.categories)
        return one.cat.codes.to_numpy(), other.cat.codes.to_numpy()
    if all(isinstance(each.dtype, np.dtype) and each.dtype.kind in "iufbmM" for each in both):
        return one.to_numpy(), other.to_numpy()
    return one.to_numpy(dtype=object), other.to_numpy(dtype=object)
