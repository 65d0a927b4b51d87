"""Leaderboard: models in the order of their mean rank, with intervals, ties, failures and costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError, did_you_mean
from karat.metrics.base import get_metric
from karat.results.layouts import FINAL, SCORES
from karat.results.ranks import rank_models, ranked_on_few
from karat.results.run import Run, open_runs

#: the columns of a board besides the tasks; a task of such a name gets a longer one
COLUMNS = ("model", "rank", "rank_low", "rank_high", "tie")
COSTS = ("failed", "declined", "seconds", "memory_mb")
JOBS = ("model", "task", "repeat", "fold", "status", "seconds", "memory", "coverage")


@dataclass(frozen=True)
class Gathered:
    """All scores and jobs of some runs; each task's metric; which way every metric is better."""

    scores: pd.DataFrame
    jobs: pd.DataFrame
    metrics: dict[str, str]
    higher_is_better: Mapping[str, bool]


def leaderboard(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    *,
    metrics: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Return one row per model, best first: rank, its 95 % interval, tie letters, a score per task.

    A score is the mean over folds of the task's first metric on clean data; ``metrics`` chooses
    another per task. Ranks know each metric's direction. A failed fold counts as the worst score of
    that fold; a declined task (not applicable) does not count. Models are ranked on the folds they
    all have; those that take fewer than three tasks stand last and without a letter. The tasks' columns stand in ``frame.attrs["tasks"]``, their metrics in
    ``frame.attrs["metrics"]``.
    """
    given = _of_table(runs) if isinstance(runs, pd.DataFrame) else _of_runs(_opened(runs))
    chosen = _chosen(given, dict(metrics or {}))
    models = list(pd.unique(pd.concat([given.jobs["model"], given.scores["model"]])))
    columns = {task: f"{task} (task)" if task in (*COLUMNS, *COSTS) else task for task in chosen}
    higher = {task: _higher_is_better(given, metric) for task, metric in chosen.items()}
    means, values, takes = _cells(given, chosen, models, higher)
    ranks = rank_models(values, takes)
    board = pd.DataFrame(
        {"rank": ranks.mean, "rank_low": ranks.low, "rank_high": ranks.high, "tie": ranks.ties},
        index=pd.Index(models, name="model"),
    )
    cells = pd.DataFrame(means, index=models, columns=list(columns.values()))
    board = pd.concat([board, cells, _costs(given.jobs, models)], axis=1)
    # a rank over hardly any task does not lead a board of many
    board = board.iloc[np.lexsort((board["rank"].fillna(np.inf), ranked_on_few(takes)))]
    board.index.name = "model"
    board.attrs["tasks"] = list(columns.values())
    board.attrs["coverage"] = _coverage(given.jobs, columns)
    board.attrs["metrics"] = {columns[task]: metric for task, metric in chosen.items()}
    board.attrs["higher_is_better"] = {columns[task]: up for task, up in higher.items()}
    return board


def _coverage(jobs: pd.DataFrame, columns: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Return the share of questions a model could answer, where it was not all of them."""
    told = jobs.dropna(subset=["coverage"])
    means = told.astype({"coverage": float}).groupby(["model", "task"], sort=False)["coverage"]
    return {(m, columns.get(t, t)): float(c) for (m, t), c in means.mean().items() if c < 1}


# -- what is compared -----------------------------------------------------------------------


def _of_table(table: pd.DataFrame) -> Gathered:
    missing = [name for name in SCORES if name not in table.columns]
    if missing:
        raise DataError(f"a table of scores needs the columns {', '.join(missing)}.")
    final = _final(table)
    firsts = final.drop_duplicates("task")
    first = dict(zip(firsts["task"], firsts["metric"], strict=True))
    if not first:
        raise DataError("the table holds no final score on clean data (epoch -1, no corruption).")
    return Gathered(final, pd.DataFrame(columns=list(JOBS)), first, {})


def _opened(runs: Any) -> list[Run]:
    several = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    opened = [r for run in several for r in ([run] if isinstance(run, Run) else open_runs([run]))]
    if not opened:
        raise DataError("a leaderboard needs at least one run.")
    return list({run.folder.resolve(): run for run in opened}.values())


def _of_runs(runs: list[Run]) -> Gathered:
    labels = _task_labels(runs)
    names = _model_names(runs)
    scores, jobs = [], []
    metrics: dict[str, str] = {}
    higher: dict[str, bool] = {}
    for run, name, label in zip(runs, names, labels, strict=True):
        table = run.scores()
        scores.append(_final(table.assign(model=name, task=table["task"].map(label))))
        jobs += list(_jobs(run, name, label))
        for task in run.about["tasks"]:
            higher.update(task.get("higher_is_better", {}))
            if task["metrics"][0] != "?":
                metrics.setdefault(label[task["name"]], task["metrics"][0])
    table = pd.DataFrame(jobs, columns=list(JOBS))
    return Gathered(pd.concat(scores, ignore_index=True), table, metrics, higher)


def _jobs(run: Run, name: str, label: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    data = {task["name"]: task.get("fingerprint") for task in run.about["tasks"]}
    embedded = set()
    for record in run.records():
        job = (name, label[record["task"]], record["repeat"], record["fold"], record["status"])
        seconds = record.get("seconds")
        if record.get("embed_seconds") and data.get(record["task"]) not in embedded:
            # vectors are made once per data set, and all its jobs share them
            embedded.add(data.get(record["task"]))
            seconds = (seconds or 0.0) + record["embed_seconds"]
        coverage = record["views"][0].get("coverage") if record["views"] else None
        yield *job, seconds, record.get("peak_memory_mb"), coverage


def _final(scores: pd.DataFrame) -> pd.DataFrame:
    clean = scores["corruption"].isin(["", None]) | scores["corruption"].isna()
    return scores[clean & (scores["epoch"] == FINAL)]


def _task_labels(runs: list[Run]) -> list[dict[str, str]]:
    """Return what each run's tasks are called; two tasks of one name on other data stay apart."""
    seen: dict[str, dict[str, str]] = {}
    labels = []
    for run in runs:
        own = {record["task"]: record["task"] for record in run.records()}
        for task in run.about["tasks"]:
            name, data = task["name"], task.get("fingerprint", "")
            known = seen.setdefault(name, {})
            new = name if not known else f"{name} [{data[:6]}]"
            own[name] = known.setdefault(data, new) if data else name
        labels.append(own)
    return labels


def _model_names(runs: list[Run]) -> list[str]:
    # two runs of one model stand side by side under their time stamps
    models = [run.model for run in runs]
    return [
        f"{model} ({run.folder.name.rpartition('.')[2]})" if models.count(model) > 1 else model
        for run, model in zip(runs, models, strict=True)
    ]


def _chosen(given: Gathered, wanted: Mapping[str, str]) -> dict[str, str]:
    for task, metric in wanted.items():
        if task not in given.metrics:
            hint = did_you_mean(task, given.metrics)
            raise DataError(f'no run has a task "{task}".{hint}')
        there = set(given.scores.loc[given.scores["task"] == task, "metric"])
        if metric not in there:
            hint = did_you_mean(metric, there) or f" It has: {', '.join(sorted(there))}."
            raise DataError(f'no run has the metric "{metric}" on {task}.{hint}')
    return {**given.metrics, **wanted}


def _higher_is_better(given: Gathered, metric: str) -> bool:
    # a run tells of metrics that are registered nowhere here
    if metric in given.higher_is_better:
        return given.higher_is_better[metric]
    return get_metric(metric).higher_is_better


# -- the cells ------------------------------------------------------------------------------


def _cells(
    given: Gathered, chosen: Mapping[str, str], models: list[str], higher: Mapping[str, bool]
) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
    """Return the means per model and task, fold scores (higher is better), and who takes what."""
    rows = _rows(given, chosen, models)
    starts = np.searchsorted(rows["task"], np.arange(len(chosen) + 1))
    means = np.full((len(models), len(chosen)), np.nan)
    takes = np.zeros((len(models), len(chosen)), dtype=bool)
    values = []
    for t, task in enumerate(chosen):
        part = {name: column[starts[t] : starts[t + 1]] for name, column in rows.items()}
        fold, folds = pd.factorize(part["fold"])
        table = np.full((len(models), max(len(folds), 1)), np.nan)
        tried = np.zeros(table.shape, dtype=bool)
        # what failed comes first, so that a score of the same fold takes its place
        tried[part["model"], fold] = True
        table[part["model"], fold] = part["value"]
        takes[:, t] = tried.any(axis=1)
        known = (~np.isnan(table)).any(axis=1)
        means[known, t] = np.nanmean(table[known], axis=1)
        values.append(_compared(table if higher[task] else -table, tried, takes[:, t]))
    return means, values, takes


def _compared(values: np.ndarray, tried: np.ndarray, takes: np.ndarray) -> np.ndarray:
    """Return the scores of the folds all models have, so that a stopped run is not punished."""
    common = tried[takes].all(axis=0) if takes.any() else np.zeros(values.shape[1], dtype=bool)
    if common.any():
        return values[:, common]
    counts = np.maximum((~np.isnan(values)).sum(axis=1), 1)
    own = np.nansum(values, axis=1) / counts
    return np.where(np.isnan(values).all(axis=1), np.nan, own)[:, None]


def _rows(given: Gathered, chosen: Mapping[str, str], models: list[str]) -> dict[str, np.ndarray]:
    """Return task, model, fold and value of every score and every failed job, as numbers."""
    names = ["task", "model", "repeat", "fold", "metric", "value"]
    failed = given.jobs[given.jobs["status"] == "failed"]
    lost = pd.DataFrame(
        {name: failed[name] if name in JOBS else np.nan for name in names}, columns=names
    ).assign(metric=failed["task"].map(chosen))
    frames = [frame[names].astype({"value": float}) for frame in (lost, given.scores)]
    both = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    task, model = (_codes(both[name], axis) for name, axis in (("task", chosen), ("model", models)))
    metric, metrics = pd.factorize(both["metric"])
    wanted = pd.Index(metrics).get_indexer(list(chosen.values()))
    repeat, _ = pd.factorize(both["repeat"], use_na_sentinel=False)
    fold, folds = pd.factorize(both["fold"], use_na_sentinel=False)
    kept = np.flatnonzero((task >= 0) & (metric >= 0) & (metric == np.append(wanted, -1)[task]))
    kept = kept[np.argsort(task[kept], kind="stable")]
    fold = repeat * max(len(folds), 1) + fold
    _check_once(both, kept[kept >= len(lost)], (task, model, fold))
    value = both["value"].to_numpy()
    return {"task": task[kept], "model": model[kept], "fold": fold[kept], "value": value[kept]}


def _codes(column: pd.Series, axis: Iterable[str]) -> np.ndarray:
    codes, names = pd.factorize(column)
    places = pd.Index(list(axis), dtype=object).get_indexer(pd.Index(names, dtype=object))
    return np.append(places, -1)[codes]


def _check_once(
    rows: pd.DataFrame, kept: np.ndarray, codes: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    task, model, fold = (code[kept].astype(np.int64) for code in codes)
    key = (task * (model.max(initial=0) + 1) + model) * (fold.max(initial=0) + 1) + fold
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[order]) == 0)
    if len(twice):
        first = rows.loc[kept[order[twice[0]]], ["model", "task", "fold"]]
        raise DataError(
            f"{first['model']} has two scores on {first['task']}, fold {first['fold']}; "
            f"name the models apart or keep one."
        )


def _costs(jobs: pd.DataFrame, models: list[str]) -> pd.DataFrame:
    by_model = jobs.groupby("model", observed=True)
    declined = jobs[jobs["status"] == "declined"].groupby("model", observed=True)["task"].nunique()
    there = jobs["model"].unique()
    return pd.DataFrame(
        {
            "failed": (jobs["status"] == "failed").groupby(jobs["model"]).sum(),
            "declined": declined.reindex(there, fill_value=0),
            "seconds": by_model["seconds"].sum(min_count=1),
            "memory_mb": by_model["memory"].max(),
        }
    ).reindex(models)
