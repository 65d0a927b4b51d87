"""Views of a leaderboard: one row per model, or per model within each task, kind or data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import t as student

from karat.errors import DataError, DefinitionError, did_you_mean
from karat.results.asked import Asked
from karat.results.cells import OK, Cells
from karat.results.gather import Gathered
from karat.results.missing import BASELINE, Compared, find_baseline
from karat.results.normalise import normalise, over_tasks, win_shares
from karat.results.ranks import CONFIDENCE, rank_models, ranked_on_few
from karat.results.ratings import borda, elo
from karat.results.within import fold_ratios, rank_within, within_limits

BY = ("task", "kind", "dataset")
#: where tasks stand of which no run tells the kind or the data set
OTHER = "other"


@dataclass(frozen=True)
class Made:
    """Which columns are to be made, and where the models stand that they refer to.

    ``baseline`` is the 0 of normalised scores, without it the worst model of each task; ``anchor``
    is who has an Elo of 1500, without it the mean of all.
    """

    asked: Asked
    baseline: int | None = None
    anchor: int | None = None

    @classmethod
    def of(cls, asked: Asked, models: list[str]) -> Made:
        """Find the models that are named."""
        zero = find_baseline("normalise", asked.normalise or "", models)
        anchor = find_baseline("elo", f"{BASELINE}{asked.anchor}" if asked.anchor else "", models)
        return cls(asked, zero, anchor)


def overall(
    given: Gathered,
    cells: Cells,
    compared: Compared,
    columns: Mapping[str, str],
    made: Made,
) -> pd.DataFrame:
    """Return one row per model: its ranks over all tasks, its score on each, its costs."""
    means = pd.DataFrame(cells.means, index=cells.models, columns=list(columns.values()))
    costs = _costs(given.jobs, given.jobs["model"]).reindex(cells.models)
    board = pd.concat([_summary(compared, made), means, _whole(costs)], axis=1)
    board.index.name = "model"
    return board.iloc[_order(board, compared)]


def by_group(
    given: Gathered, compared: Compared, group_of: Mapping[str, str], made: Made
) -> pd.DataFrame:
    """Return one row per group of tasks and model: its ranks within the group, its costs."""
    groups: dict[str, list[int]] = {}
    for place, task in enumerate(compared.tasks):
        groups.setdefault(group_of[task], []).append(place)
    costs = _costs(given.jobs, [given.jobs["task"].map(group_of), given.jobs["model"]])
    boards = []
    for places in groups.values():
        part = compared.only(places)
        board = _summary(part, made)
        contested = part.takes.sum(axis=0) > 1
        board["tasks"] = part.takes[:, contested].sum(axis=1)
        boards.append(board.iloc[_order(board, part)])
    long = pd.concat(boards, keys=list(groups))
    return pd.concat([long, _whole(costs.reindex(long.index))], axis=1)


def by_task(
    given: Gathered,
    cells: Cells,
    compared: Compared,
    metrics: Mapping[str, str],
    made: Made,
) -> pd.DataFrame:
    """Return one row per task and model: its rank there, its score, the intervals over folds."""
    keys = pd.MultiIndex.from_product([cells.tasks, cells.models])
    ranks = rank_within(compared, fold_ratios(given, cells.tasks))
    low, high = _score_intervals(cells, list(metrics.values()))
    counts = [(~np.isnan(table)).sum(axis=1) for table in cells.folds]
    columns = {
        "metric": np.repeat(list(metrics.values()), len(cells.models)),
        "rank": ranks.rank.T.ravel(),
        "rank_low": ranks.low.T.ravel(),
        "rank_high": ranks.high.T.ravel(),
        "tie": ranks.ties.T.ravel(),
        "score": cells.means.T.ravel(),
        "score_low": low.ravel(),
        "score_high": high.ravel(),
    }
    if made.asked.normalise is not None:
        columns["normalised"] = normalise(compared, made.baseline).T.ravel()
    columns |= {"folds": np.concatenate(counts), "status": cells.states.T.ravel()}
    board = pd.DataFrame(columns, index=keys)
    costs = _costs(given.jobs, [given.jobs["task"], given.jobs["model"]]).drop(columns="declined")
    board = pd.concat([board, _whole(costs.reindex(keys))], axis=1)
    task = np.repeat(np.arange(len(cells.tasks)), len(cells.models))
    missing = (board["status"] != OK).to_numpy()
    return board.iloc[np.lexsort((board["rank"].fillna(np.inf), missing, task))]


def groups_of(given: Gathered, tasks: list[str], by: str | None) -> dict[str, str]:
    """Return what each task stands under in a view: its kind or data set; nothing over all."""
    if by is None:
        return {}
    if not tasks:
        raise DataError(
            "no task could be run, so there is nothing to compare; karat plan tells why."
        )
    if by == "task":
        return {task: task for task in tasks}
    told = given.kinds if by == "kind" else given.datasets
    if not told:
        raise DataError(
            f"a table of scores tells the {by} of a task in a column of that name; it has none."
        )
    return {task: str(told.get(task) or OTHER) for task in tasks}


def check_by(by: str | None) -> None:
    """Tell which views there are, if this is none."""
    if by is not None and by not in BY:
        raise DefinitionError(
            f'by is "task", "kind" or "dataset", not {by!r}.{did_you_mean(str(by), BY)}'
        )


# -- parts ----------------------------------------------------------------------------------


def _summary(compared: Compared, made: Made) -> pd.DataFrame:
    # in the order of their names, so that the order of tasks does not change the resamples
    tasks = compared.tasks
    compared = compared.only(sorted(range(len(tasks)), key=tasks.__getitem__))
    ranks = rank_models(compared.values, compared.takes)
    board = pd.DataFrame(
        {"rank": ranks.mean, "rank_low": ranks.low, "rank_high": ranks.high, "tie": ranks.ties},
        index=pd.Index(compared.models, name="model"),
    )
    if made.asked.normalise is not None:
        board["score"], board["median"] = over_tasks(normalise(compared, made.baseline))
    if made.asked.wants("wins"):
        board["wins"] = over_tasks(win_shares(ranks.each))[0]
    if made.asked.wants("borda"):
        board["borda"] = borda(ranks.each)
    if made.asked.wants("elo"):
        rated = elo(ranks, made.anchor)
        board["elo"], board["elo_low"], board["elo_high"] = rated.mean, rated.low, rated.high
    return board


def _order(board: pd.DataFrame, compared: Compared) -> np.ndarray:
    # a rank over hardly any task does not lead a board of many
    return np.lexsort((board["rank"].fillna(np.inf), ranked_on_few(compared.takes)))


def _score_intervals(cells: Cells, metrics: list[str]) -> np.ndarray:
    """Return the bounds of each score as it was measured, tasks × models."""
    found = []
    for t, (table, metric) in enumerate(zip(cells.folds, metrics, strict=True)):
        low, high = _interval(table)
        ends = (low, high) if cells.higher[t] else (-high, -low)
        found.append(within_limits(*ends, cells.means[:, t], metric))
    return np.stack(found, axis=1)


def _interval(folds: np.ndarray) -> np.ndarray:
    """Return the bounds of the t interval of the mean over folds; nothing for a single fold."""
    known = ~np.isnan(folds)
    count = known.sum(axis=1)
    few = count < 2
    some = np.where(few, 2, count)
    mean = np.where(known, folds, 0).sum(axis=1) / np.maximum(count, 1)
    spread = (np.where(known, folds - mean[:, None], 0) ** 2).sum(axis=1) / (some - 1)
    half = student.ppf((1 + CONFIDENCE) / 2, some - 1) * np.sqrt(spread / some)
    half[few] = np.nan
    return np.stack([mean - half, mean + half])


def _costs(jobs: pd.DataFrame, keys: pd.Series | list[pd.Series]) -> pd.DataFrame:
    grouped = jobs.groupby(keys, observed=True)
    declined = jobs["task"].where(jobs["status"] == "declined")
    return pd.DataFrame(
        {
            "failed": (jobs["status"] == "failed").groupby(keys, observed=True).sum(),
            "declined": declined.groupby(keys, observed=True).nunique(),
            "seconds": grouped["seconds"].sum(min_count=1),
            "memory_mb": grouped["memory"].max(),
            "dimensions": jobs["dimensions"].astype(float).groupby(keys, observed=True).max(),
        }
    )


def _whole(costs: pd.DataFrame) -> pd.DataFrame:
    """Return costs in which nothing failed where no job is known, unless no job is known at all."""
    counts = [name for name in ("failed", "declined") if name in costs]
    if costs[counts].notna().to_numpy().any():
        return costs.fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int))
    return costs.astype(float)
