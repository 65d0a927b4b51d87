"""Leaderboard: models in the order of their mean rank, with intervals, ties, failures and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError
from karat.metrics.base import get_metric
from karat.results.layouts import FINAL, SCORES
from karat.results.ranks import rank_models
from karat.results.run import Run, open_runs


def leaderboard(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    *,
    metrics: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return one row per model, best first: rank, its 95 % interval, tie letters, a score per task.

    A score is the mean over folds of the task's first metric on clean data; ``metrics`` chooses
    another per task. Ranks know each metric's direction. A failed fold counts as the worst score of
    that fold; a declined task (not applicable) does not count. The columns' metrics stand in
    ``frame.attrs["metrics"]``.
    """
    scores, jobs, first = _gather(runs)
    chosen = {**first, **dict(metrics or {})}
    models = list(dict.fromkeys([*jobs["model"], *scores["model"]]))
    tasks = list(dict.fromkeys([*first, *scores["task"].unique()]))
    cells, values, takes = _cells(scores, jobs, chosen, (models, tasks))
    ranks = rank_models(values, takes)
    board = pd.DataFrame(
        {"rank": ranks.mean, "rank_low": ranks.low, "rank_high": ranks.high, "tie": ranks.ties},
        index=pd.Index(models, name="model"),
    )
    board = pd.concat([board, cells, _costs(jobs, models)], axis=1)
    board = board.sort_values("rank", kind="stable")
    board.attrs["metrics"] = {task: chosen[task] for task in tasks}
    board.attrs["tasks"] = tasks
    return board


def _gather(runs: Any) -> tuple[pd.DataFrame, pd.DataFrame, dict[str, str]]:
    """Return all scores, all jobs (model, task, fold, status, costs), and each task's metric."""
    if isinstance(runs, pd.DataFrame):
        missing = [name for name in SCORES if name not in runs.columns]
        if missing:
            raise DataError(f"a table of scores needs the columns {', '.join(missing)}.")
        firsts = runs.drop_duplicates("task")
        first = dict(zip(firsts["task"], firsts["metric"], strict=True))
        jobs = pd.DataFrame(columns=["model", "task", "fold", "status", "seconds", "memory"])
        return runs, jobs, first
    several = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    opened = [r for run in several for r in ([run] if isinstance(run, Run) else open_runs([run]))]
    if not opened:
        raise DataError("a leaderboard needs at least one run.")
    first = {
        task["name"]: task["metrics"][0]
        for run in opened
        for task in run.about["tasks"]
        if task["metrics"][0] != "?"
    }
    return _scores_of(opened), _jobs_of(opened), first


def _scores_of(runs: list[Run]) -> pd.DataFrame:
    names = _names(runs)
    return pd.concat(
        [run.scores().assign(model=name) for run, name in zip(runs, names, strict=True)],
        ignore_index=True,
    )


def _jobs_of(runs: list[Run]) -> pd.DataFrame:
    rows = [
        (
            name,
            record["task"],
            record["fold"],
            record["status"],
            record.get("seconds"),
            record.get("peak_memory_mb"),
        )
        for run, name in zip(runs, _names(runs), strict=True)
        for record in run.records()
    ]
    return pd.DataFrame(rows, columns=["model", "task", "fold", "status", "seconds", "memory"])


def _names(runs: list[Run]) -> list[str]:
    # two runs of one model stand side by side under their time stamps
    models = [run.model for run in runs]
    return [
        f"{model} ({run.about['stamp']})" if models.count(model) > 1 else model
        for run, model in zip(runs, models, strict=True)
    ]


def _cells(
    scores: pd.DataFrame,
    jobs: pd.DataFrame,
    chosen: Mapping[str, str],
    axes: tuple[list[str], list[str]],
) -> tuple[pd.DataFrame, list[np.ndarray], np.ndarray]:
    """Return the means per model and task, fold scores (higher is better), and who takes what."""
    models, tasks = axes
    row = pd.Series(range(len(models)), index=models)
    final = scores[(scores["epoch"] == FINAL) & (scores["corruption"] == "")]
    final = final[final["metric"].to_numpy() == final["task"].map(chosen).to_numpy()]
    by_task = dict(tuple(final.groupby("task", sort=False, observed=True)))
    failed = jobs[jobs["status"] == "failed"]
    means = np.full((len(models), len(tasks)), np.nan)
    takes = np.zeros((len(models), len(tasks)), dtype=bool)
    values = []
    for t, task in enumerate(tasks):
        part = by_task.get(task, final.iloc[:0])
        lost = failed[failed["task"] == task]
        folds = pd.Index(pd.unique(part["fold"])).union(pd.Index(pd.unique(lost["fold"])))
        table = np.full((len(models), max(len(folds), 1)), np.nan)
        tried = np.zeros(table.shape, dtype=bool)
        for rows in (part, lost):
            places = (row.loc[rows["model"]].to_numpy(), folds.get_indexer(rows["fold"]))
            tried[places] = True
            if rows is part:
                table[places] = rows["value"]
        takes[:, t] = tried.any(axis=1)
        known = (~np.isnan(table)).any(axis=1)
        means[known, t] = np.nanmean(table[known], axis=1)
        signed = table if get_metric(chosen[task]).higher_is_better else -table
        # models are ranked on the folds they all have, so that a stopped run is not punished
        common = tried[takes[:, t]].all(axis=0)
        values.append(signed[:, common] if common.any() else signed)
    return pd.DataFrame(means, index=models, columns=tasks), values, takes


def _costs(jobs: pd.DataFrame, models: list[str]) -> pd.DataFrame:
    grouped = jobs.groupby("model")
    return pd.DataFrame(
        {
            "failed": (jobs["status"] == "failed").groupby(jobs["model"]).sum(),
            "declined": (jobs["status"] == "declined").groupby(jobs["model"]).sum(),
            "seconds": grouped["seconds"].sum(min_count=1),
            "memory_mb": grouped["memory"].max(),
        }
    ).reindex(models)
