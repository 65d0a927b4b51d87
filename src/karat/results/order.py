"""Order: the rows of a leaderboard by any of its columns, the better first."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from karat.errors import DefinitionError, did_you_mean

#: columns of which more is better, besides the tasks whose metric says so
MORE = {"score", "median", "wins", "normalised", "tasks", "folds"}
#: columns of the view by task that have the direction of the task's metric
OF_METRIC = {"score", "score_low", "score_high"}


def sort_board(board: pd.DataFrame, sort: str, higher: Mapping[str, bool]) -> pd.DataFrame:
    """Return a board sorted by a column, the better first; groups of rows stay together.

    Empty cells come last, equal ones stay as they were. ``higher`` tells which way each task is
    better.
    """
    names = [str(name) for name in board.index.names]
    if sort not in (*names, *board.columns):
        known = [*names, *map(str, board.columns)]
        could = ["normalised"] if "task" in names else ["score", "median", "wins"]
        hint = did_you_mean(str(sort), [*known, *could]) or f" It has: {', '.join(known)}."
        raise DefinitionError(f'sort: the board has no column "{sort}".{hint}')
    if sort == "rank":
        return board
    column = board.index.get_level_values(sort) if sort in names else board[sort]
    key = _key(pd.Series(column), _signs(board, sort, higher))
    if len(names) == 1:
        return board.iloc[np.argsort(key, kind="stable")]
    group, _ = pd.factorize(board.index.get_level_values(0))
    places = (key,) if sort == names[0] else (key, group)
    return board.iloc[np.lexsort(places)]


def _signs(board: pd.DataFrame, sort: str, higher: Mapping[str, bool]) -> np.ndarray:
    """Return -1 for every row in which more is better, 1 elsewhere."""
    more = np.full(len(board), sort in MORE)
    if "task" in board.index.names and sort in OF_METRIC:
        more = np.array([higher[task] for task in board.index.get_level_values("task")])
    elif board.index.nlevels == 1 and sort in higher:
        more[:] = higher[sort]
    return np.where(more, -1.0, 1.0)


def _key(column: pd.Series, signs: np.ndarray) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy(dtype=float) * signs
        return np.where(np.isnan(numbers), np.inf, numbers)
    codes, words = pd.factorize(column, sort=True)
    empty = (column.to_numpy() == "") | (codes < 0)
    return np.where(empty, len(words), codes)
