"""The scores of each model on each task, fold by fold, and why a score is missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.errors import DataError
from karat.results.gather import JOBS, Gathered

#: states of a model on a task; only the first has a score
OK, FAILED, DECLINED, NOT_RUN = STATES = ("ok", "failed", "declined", "not run")


@dataclass(frozen=True)
class Cells:
    """Models × tasks. ``folds[t]`` holds models × folds, negated if lower is better.

    ``means`` are the scores as measured; ``tried[t]`` is which folds were run, ``takes`` whether
    any was, ``states`` one of STATES per cell.
    """

    models: list[str]
    tasks: list[str]
    higher: list[bool]
    means: np.ndarray
    folds: list[np.ndarray]
    tried: list[np.ndarray]
    takes: np.ndarray
    states: np.ndarray

    @property
    def scored(self) -> np.ndarray:
        """Which tasks have a score of some model."""
        return (self.states == OK).any(axis=0)


def make_cells(given: Gathered, chosen: dict[str, str]) -> Cells:
    """Return the cells of the chosen metrics."""
    models, tasks = given.models, list(chosen)
    higher = [given.higher(metric) for metric in chosen.values()]
    rows = _rows(given, chosen)
    starts = np.searchsorted(rows["task"], np.arange(len(tasks) + 1))
    means = np.full((len(models), len(tasks)), np.nan)
    takes = np.zeros((len(models), len(tasks)), dtype=bool)
    every, tried = [], []
    for t in range(len(tasks)):
        part = {name: column[starts[t] : starts[t + 1]] for name, column in rows.items()}
        fold, folds = pd.factorize(part["fold"], sort=True)
        table = np.full((len(models), max(len(folds), 1)), np.nan)
        run = np.zeros(table.shape, dtype=bool)
        # failures come first, so that a score of the same fold replaces them
        run[part["model"], fold] = True
        table[part["model"], fold] = part["value"]
        takes[:, t] = run.any(axis=1)
        known = (~np.isnan(table)).any(axis=1)
        means[known, t] = np.nanmean(table[known], axis=1)
        every.append(table if higher[t] else -table)
        tried.append(run)
    states = _states(given, tasks, means, takes)
    return Cells(models, tasks, higher, means, every, tried, takes, states)


def _states(given: Gathered, tasks: list[str], means: np.ndarray, takes: np.ndarray) -> np.ndarray:
    states = np.where(takes, FAILED, NOT_RUN).astype(object)
    declined = given.jobs[given.jobs["status"] == DECLINED]
    model, task = _codes(declined["model"], given.models), _codes(declined["task"], tasks)
    is_declined = np.zeros(takes.shape, dtype=bool)
    is_declined[model[task >= 0], task[task >= 0]] = True
    states[is_declined & ~takes] = DECLINED
    states[~np.isnan(means)] = OK
    return states


def _rows(given: Gathered, chosen: dict[str, str]) -> dict[str, np.ndarray]:
    """Return task, model and fold (as codes) and value of every score and every failed job."""
    names = ["task", "model", "repeat", "fold", "metric", "value"]
    failed = given.jobs[given.jobs["status"] == FAILED]
    lost = pd.DataFrame(
        {name: failed[name] if name in JOBS else np.nan for name in names}, columns=names
    ).assign(metric=failed["task"].map(chosen))
    frames = [frame[names].astype({"value": float}) for frame in (lost, given.scores)]
    both = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    task, model = _codes(both["task"], chosen), _codes(both["model"], given.models)
    metric, metrics = pd.factorize(both["metric"])
    wanted = pd.Index(metrics).get_indexer(list(chosen.values()))
    # sorted, so that the order of the runs changes nothing
    repeat, _ = pd.factorize(both["repeat"], use_na_sentinel=False, sort=True)
    fold, folds = pd.factorize(both["fold"], use_na_sentinel=False, sort=True)
    used = np.flatnonzero((task >= 0) & (metric >= 0) & (metric == np.append(wanted, -1)[task]))
    used = used[np.argsort(task[used], kind="stable")]
    fold = repeat * max(len(folds), 1) + fold
    _check_once(both, used[used >= len(lost)], (task, model, fold))
    value = both["value"].to_numpy()
    return {
        "task": task[used],
        "model": model[used],
        "fold": fold[used],
        "value": value[used],
    }


def _codes(column: pd.Series, axis: Iterable[str]) -> np.ndarray:
    codes, names = pd.factorize(column)
    places = pd.Index(list(axis), dtype=object).get_indexer(pd.Index(names, dtype=object))
    return np.append(places, -1)[codes]


def _check_once(
    rows: pd.DataFrame, used: np.ndarray, codes: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    task, model, fold = (code[used].astype(np.int64) for code in codes)
    key = (task * (model.max(initial=0) + 1) + model) * (fold.max(initial=0) + 1) + fold
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[order]) == 0)
    if len(twice):
        first = rows.loc[used[order[twice[0]]], ["model", "task", "fold"]]
        raise DataError(
            f"{first['model']} has two scores on {first['task']}, fold {first['fold']}; "
            f"rename one of the models or drop one score."
        )
