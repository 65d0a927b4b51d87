"""Order: the rows of a leaderboard by any of its columns, the better first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from karat.errors import DefinitionError, did_you_mean

#: columns of which more is better, besides the tasks whose metric says so
MORE = {"score", "median", "wins", "borda", "elo", "elo_low", "elo_high", "pareto"}
MORE |= {"normalised", "tasks", "folds"}
#: columns that a board of its view has if it is asked for them
ON_REQUEST = ("score", "median", "wins", "borda", "elo", "pareto")
#: columns of the view by task that have the direction of the task's metric
OF_METRIC = {"score", "score_low", "score_high"}


def sort_board(board: pd.DataFrame, sort: str, higher: Mapping[str, bool]) -> pd.DataFrame:
    """Return a board sorted by a column, the better first; groups of rows stay together.

    Empty cells come last, equal ones stay as they were. ``higher`` tells which way each task is
    better.
    """
    key = better_first(board, sort, higher)
    if sort == "rank":
        return board
    names = board.index.names
    if len(names) == 1:
        return board.iloc[np.argsort(key, kind="stable")]
    group, _ = pd.factorize(board.index.get_level_values(0))
    places = (key,) if sort == names[0] else (key, group)
    return board.iloc[np.lexsort(places)]


def better_first(
    board: pd.DataFrame, column: str, higher: Mapping[str, bool], option: str = "sort"
) -> np.ndarray:
    """Return a number per row, the better the lower; an empty cell is the worst."""
    names = [str(name) for name in board.index.names]
    if column not in (*names, *board.columns):
        known = [*names, *map(str, board.columns)]
        hint = other_names(str(column), known, names[0])
        raise DefinitionError(f'{option}: the board has no column "{column}".{hint}')
    values = board.index.get_level_values(column) if column in names else board[column]
    return _key(pd.Series(values), _signs(board, column, higher))


def other_names(name: str, known: Sequence[str], by: str | None) -> str:
    """Return which column of a view may be meant by a name, or which there are and can be.

    >>> other_names("zzz", ["rank", "elo"], "kind")
    ' It has: rank, elo; on request: score, median, wins, borda, pareto.'
    """
    more = ("normalised", "pareto") if by == "task" else ON_REQUEST
    could = [each for each in more if each not in known]
    asked = f"; on request: {', '.join(could)}" if could else ""
    return did_you_mean(name, [*known, *could]) or f" It has: {', '.join(known)}{asked}."


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
