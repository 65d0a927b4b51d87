"""Stratified random samples of rows with whole groups."""

from __future__ import annotations

import numpy as np
import pandas as pd


def draw(
    size: int,
    wanted: int,
    rng: np.random.Generator,
    classes: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    nested: bool = False,
) -> np.ndarray:
    """Return the sorted positions of at most ``wanted`` of ``size`` rows.

    With classes, the sample is stratified, with at least one row per class if possible. Groups are
    drawn whole; without groups the number is exact. If every group is larger than ``wanted``, the
    smallest one is returned.

    A ``nested`` draw contains every smaller one of the same generator: groups are drawn in order
    until one does not fit, and the first is always included.

    >>> draw(6, 2, np.random.default_rng(0), classes=np.array(list("aaaaab"))).tolist()[1]
    5
    """
    codes = None if classes is None else pd.factorize(classes)[0]
    if groups is not None:
        taken = _first_groups if nested else _whole_groups
        return taken(pd.factorize(groups)[0], wanted, codes, rng)
    shuffled = rng.permutation(size)
    if codes is None or (wanted <= codes.max() and not nested):
        return np.sort(shuffled[:wanted])
    codes = codes[shuffled]
    counts = np.bincount(codes)
    turn = np.empty(size, dtype=np.intp)
    turn[np.argsort(codes, kind="stable")] = np.arange(size) - np.repeat(
        np.cumsum(counts) - counts, counts
    )
    # classes interleave in proportion: the place of a row is its quantile in its class
    place = (turn + 0.5) / counts[codes]
    return np.sort(shuffled[np.lexsort((place, turn > 0))[:wanted]])


def _whole_groups(
    groups: np.ndarray, wanted: int, codes: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    sizes = np.bincount(groups)
    order = _group_order(groups, codes, rng)
    fitting = int(np.searchsorted(np.cumsum(sizes[order]), wanted, side="right"))
    chosen = list(order[:fitting])
    left = wanted - int(sizes[chosen].sum())
    for group in order[fitting:]:
        if left < sizes.min():
            break
        if sizes[group] <= left:
            chosen.append(group)
            left -= int(sizes[group])
    if not chosen:
        chosen = [order[np.argmin(sizes[order])]]
    return np.flatnonzero(np.isin(groups, chosen))


def _first_groups(
    groups: np.ndarray, wanted: int, codes: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    order = _group_order(groups, codes, rng)
    fitting = np.searchsorted(np.cumsum(np.bincount(groups)[order]), wanted, side="right")
    return np.flatnonzero(np.isin(groups, order[: max(1, int(fitting))]))


def _group_order(
    groups: np.ndarray, codes: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    order = rng.permutation(groups.max() + 1)
    return order if codes is None else _classes_first(order, groups, codes)


def _classes_first(order: np.ndarray, groups: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Move the groups to the front that are the first to contain a class."""
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    shows = np.full(codes.max() + 1, len(order))
    np.minimum.at(shows, codes, place[groups])
    return order[np.argsort(~np.isin(np.arange(len(order)), shows), kind="stable")]
