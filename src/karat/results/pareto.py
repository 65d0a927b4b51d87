"""Pareto front: the models that no other beats in both quality and cost."""

from __future__ import annotations

import numpy as np
import pandas as pd

from karat.results.order import better_first


def pareto(board: pd.DataFrame, cost: str = "seconds", quality: str = "rank") -> pd.Series:
    """Return which rows of a leaderboard are on the Pareto front of quality against cost.

    A model is on the front of its group if no other is at least as good at no higher cost, and
    better in one of them. Models that lack either number, have no score, or have too few tasks to
    be ranked are not. ``cost`` and ``quality`` are columns of the leaderboard.

    >>> board = pd.DataFrame({"rank": [1.0, 2.0, 3.0], "seconds": [9.0, 2.0, 4.0]})
    >>> pareto(board).tolist()
    [True, True, False]
    """
    higher = board.attrs.get("higher_is_better", {})
    good = better_first(board, quality, higher, "pareto")
    cheap = better_first(board, cost, higher, "pareto")
    known = np.isfinite(good) & np.isfinite(cheap)
    if "tie" in board:
        known &= (board["tie"] != "").to_numpy()
    scored = [task for task in board.attrs.get("tasks", ()) if task in board]
    if scored:  # a model that failed on every task is cheap but not on the front
        known &= board[scored].notna().any(axis=1).to_numpy()
    group = np.zeros(len(board)) if board.index.nlevels == 1 else _codes(board)
    on = np.zeros(len(board), dtype=bool)
    for each in np.unique(group[known]):
        rows = np.flatnonzero(known & (group == each))
        on[rows] = _front(good[rows], cheap[rows])
    return pd.Series(on, index=board.index, name="pareto")


def _codes(board: pd.DataFrame) -> np.ndarray:
    return np.asarray(pd.factorize(board.index.get_level_values(0))[0])


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
