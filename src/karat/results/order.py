"""Sort the rows of a leaderboard by any of its columns, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from karat.errors import DefinitionError, did_you_mean

#: columns of which more is better, besides tasks by their metric
MORE = {"score", "median", "wins", "borda", "elo", "elo_low", "elo_high", "pareto"}
MORE |= {"normalised", "tasks", "folds"}
#: columns computed on request
ON_REQUEST = ("score", "median", "wins", "borda", "elo", "pareto")
#: columns of the view by task with the direction of the task's metric
OF_METRIC = {"score", "score_low", "score_high"}


def sort_leaderboard(frame: pd.DataFrame, sort: str, higher: Mapping[str, bool]) -> pd.DataFrame:
    """Return a leaderboard sorted by a column, best first, within groups of rows.

    Missing values come last; the sort is stable. ``higher`` is the direction of each task.
    """
    key = better_first(frame, sort, higher)
    if sort == "rank":
        return frame
    names = frame.index.names
    if len(names) == 1:
        return frame.iloc[np.argsort(key, kind="stable")]
    group, _ = pd.factorize(frame.index.get_level_values(0))
    places = (key,) if sort == names[0] else (key, group)
    return frame.iloc[np.lexsort(places)]


def better_first(
    frame: pd.DataFrame, column: str, higher: Mapping[str, bool], option: str = "sort"
) -> np.ndarray:
    """Return a sort key per row, lower is better; missing values are worst."""
    names = [str(name) for name in frame.index.names]
    if column not in (*names, *frame.columns):
        known = [*names, *map(str, frame.columns)]
        hint = other_names(str(column), known, names[0])
        raise DefinitionError(f'{option}: there is no column "{column}".{hint}')
    values = frame.index.get_level_values(column) if column in names else frame[column]
    return _key(pd.Series(values), _signs(frame, column, higher))


def other_names(name: str, known: Sequence[str], by: str | None) -> str:
    """Return a suggestion for an unknown column, or all columns of a view.

    >>> other_names("zzz", ["rank", "elo"], "kind")
    ' There are: rank, elo; on request: score, median, wins, borda, pareto.'
    """
    more = ("normalised", "pareto") if by == "task" else ON_REQUEST
    could = [each for each in more if each not in known]
    asked = f"; on request: {', '.join(could)}" if could else ""
    return did_you_mean(name, [*known, *could]) or f" There are: {', '.join(known)}{asked}."


def _signs(frame: pd.DataFrame, sort: str, higher: Mapping[str, bool]) -> np.ndarray:
    """Return -1 for every row in which more is better, 1 elsewhere."""
    more = np.full(len(frame), sort in MORE)
    if "task" in frame.index.names and sort in OF_METRIC:
        more = np.array([higher[task] for task in frame.index.get_level_values("task")])
    elif frame.index.nlevels == 1 and sort in higher:
        more[:] = higher[sort]
    return np.where(more, -1.0, 1.0)


def _key(column: pd.Series, signs: np.ndarray) -> np.ndarray:
    if pd.api.types.is_numeric_dtype(column):
        numbers = column.to_numpy(dtype=float) * signs
        return np.where(np.isnan(numbers), np.inf, numbers)
    codes, words = pd.factorize(column, sort=True)
    empty = (column.to_numpy() == "") | (codes < 0)
    return np.where(empty, len(words), codes)
