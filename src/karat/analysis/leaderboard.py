"""Views of a leaderboard: one row per model, or per model within each task, kind or dataset."""

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
from karat.results.significance import mean_of
from karat.results.within import fold_ratios, rank_within, within_limits

BY = ("task", "kind", "dataset")
#: group of tasks whose kind or dataset is not recorded
OTHER = "other"


@dataclass(frozen=True)
class Made:
    """The columns to compute, and the indices of the models that they refer to.

    ``baseline`` is the 0 of normalized scores (default: the worst model of each task), ``anchor``
    the model with an Elo of 1500 (default: the mean of all).
    """

    asked: Asked
    baseline: int | None = None
    anchor: int | None = None

    @classmethod
    def of(cls, asked: Asked, models: list[str]) -> Made:
        """Look up the models by name."""
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
    frame = pd.concat([_summary(compared, made), means, _whole(costs)], axis=1)
    frame.index.name = "model"
    return frame.iloc[_order(frame, compared)]


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
        frame = _summary(part, made)
        contested = part.takes.sum(axis=0) > 1
        frame["tasks"] = part.takes[:, contested].sum(axis=1)
        boards.append(frame.iloc[_order(frame, part)])
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
    frame = pd.DataFrame(columns, index=keys)
    costs = _costs(given.jobs, [given.jobs["task"], given.jobs["model"]]).drop(columns="declined")
    frame = pd.concat([frame, _whole(costs.reindex(keys))], axis=1)
    task = np.repeat(np.arange(len(cells.tasks)), len(cells.models))
    missing = (frame["status"] != OK).to_numpy()
    return frame.iloc[np.lexsort((frame["rank"].fillna(np.inf), missing, task))]


def groups_of(given: Gathered, tasks: list[str], by: str | None) -> dict[str, str]:
    """Return the group of each task in a view: its kind or dataset; none over all."""
    if by is None:
        return {}
    if not tasks:
        raise DataError(
            "no task could be run, so there is nothing to compare; karat plan shows why."
        )
    if by == "task":
        return {task: task for task in tasks}
    groups = given.kinds if by == "kind" else given.datasets
    if not groups:
        raise DataError(f'by="{by}" needs a column "{by}" in the table of scores.')
    return {task: str(groups.get(task) or OTHER) for task in tasks}


def check_by(by: str | None) -> None:
    """Raise ``DefinitionError`` if there is no such view."""
    if by is not None and by not in BY:
        raise DefinitionError(
            f'by must be "task", "kind" or "dataset", got {by!r}.{did_you_mean(str(by), BY)}'
        )


# -- parts ----------------------------------------------------------------------------------


def _summary(compared: Compared, made: Made) -> pd.DataFrame:
    # sorted by name, so that the order of tasks does not change the resamples
    tasks = compared.tasks
    compared = compared.only(sorted(range(len(tasks)), key=tasks.__getitem__))
    ranks = rank_models(compared.values, compared.takes)
    frame = pd.DataFrame(
        {"rank": ranks.mean, "rank_low": ranks.low, "rank_high": ranks.high, "tie": ranks.ties},
        index=pd.Index(compared.models, name="model"),
    )
    if made.asked.normalise is not None:
        frame["score"], frame["median"] = over_tasks(normalise(compared, made.baseline))
    if made.asked.wants("wins"):
        frame["wins"] = over_tasks(win_shares(ranks.each))[0]
    if made.asked.wants("borda"):
        frame["borda"] = borda(ranks.each)
    if made.asked.wants("elo"):
        rated = elo(ranks, made.anchor)
        frame["elo"], frame["elo_low"], frame["elo_high"] = rated.mean, rated.low, rated.high
    return frame


def _order(frame: pd.DataFrame, compared: Compared) -> np.ndarray:
    # models ranked on too few tasks come last
    return np.lexsort((frame["rank"].fillna(np.inf), ranked_on_few(compared.takes)))


def _score_intervals(cells: Cells, metrics: list[str]) -> np.ndarray:
    """Return the bounds of each score, tasks × models."""
    found = []
    for t, (table, metric) in enumerate(zip(cells.folds, metrics, strict=True)):
        low, high = _interval(table)
        ends = (low, high) if cells.higher[t] else (-high, -low)
        found.append(within_limits(*ends, cells.means[:, t], metric))
    return np.stack(found, axis=1)


def _interval(folds: np.ndarray) -> np.ndarray:
    """Return the bounds of the t interval of the mean over folds; NaN for a single fold."""
    counts = (~np.isnan(folds)).sum(axis=1)
    mean = mean_of(folds)
    squares = mean_of((folds - mean[:, None]) ** 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(squares / (counts - 1))
    half = student.ppf((1 + CONFIDENCE) / 2, np.maximum(counts - 1, 1)) * error
    half[counts < 2] = np.nan
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
    """Return costs with counts of 0 for models without jobs, unless there are no jobs at all."""
    counts = [name for name in ("failed", "declined") if name in costs]
    if costs[counts].notna().to_numpy().any():
        return costs.fillna(dict.fromkeys(counts, 0)).astype(dict.fromkeys(counts, int))
    return costs.astype(float)
