"""Pareto front: the models that no other beats in both quality and cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.results.order import better_first


def pareto(frame: pd.DataFrame, cost: str = "seconds", quality: str = "rank") -> pd.Series:
    """Return which rows of a leaderboard are on the Pareto front of quality against cost.

    A model is on the front of its group if no other is at least as good at no higher cost, and
    better in one of them. Models that lack either number, have no score, or have too few tasks to
    be ranked are not. ``cost`` and ``quality`` are columns of the leaderboard.

    >>> frame = pd.DataFrame({"rank": [1.0, 2.0, 3.0], "seconds": [9.0, 2.0, 4.0]})
    >>> pareto(frame).tolist()
    [True, True, False]
    """
    higher = frame.attrs.get("higher_is_better", {})
    good = better_first(frame, quality, higher, "pareto")
    cheap = better_first(frame, cost, higher, "pareto")
    known = np.isfinite(good) & np.isfinite(cheap)
    if "tie" in frame:
        known &= (frame["tie"] != "").to_numpy()
    scored = [task for task in frame.attrs.get("tasks", ()) if task in frame]
    if scored:  # a model that failed on every task is cheap but not on the front
        known &= frame[scored].notna().any(axis=1).to_numpy()
    group = np.zeros(len(frame)) if frame.index.nlevels == 1 else _codes(frame)
    on = np.zeros(len(frame), dtype=bool)
    for each in np.unique(group[known]):
        rows = np.flatnonzero(known & (group == each))
        on[rows] = _front(good[rows], cheap[rows])
    return pd.Series(on, index=frame.index, name="pareto")


def _codes(frame: pd.DataFrame) -> np.ndarray:
    return np.asarray(pd.factorize(frame.index.get_level_values(0))[0])


def _front(good: np.ndarray, cheap: np.ndarray) -> np.ndarray:
    """Return which points are not dominated."""
    order = np.lexsort((cheap, good))
    # the lowest cost among the strictly better points, and among equally good ones
    lowest = np.minimum.accumulate(cheap[order])
    start = np.searchsorted(good[order], good[order], side="left")
    before = np.append(np.inf, lowest)[start]
    on = np.empty(len(good), dtype=bool)
    on[order] = (cheap[order] < before) & (cheap[order] == cheap[order][start])
    return on
