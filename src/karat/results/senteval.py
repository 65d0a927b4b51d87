"""The tables of Ulysses SentEval: all scores of a model in its columns, and its aggregates.

They are projections of the tidy table: ``metric_test`` is Karat's ``above_chance``, ``loss_test``
is ``logloss``, and the three curves are recorded per epoch by the head ``adamw``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError
from karat.replay import bootstrap_seed, interval_seeds
from karat.results.gather import named_scores
from karat.results.intervals import Resampling, describe
from karat.results.layouts import FINAL

#: the metric of Ulysses SentEval tasks
ASKED = "above_chance"
CURVES = ("loss_per_epoch_train", "loss_per_epoch_eval", "metric_per_epoch_eval")
TESTS = {"logloss": "loss_test", ASKED: "metric_test"}
METRICS = (*CURVES, *TESTS.values())
FOLD = ["kfold_repetition", "kfold_partition"]
KEYS = ["task", *FOLD, "train_epoch", "metric"]

Aggregates = dict[str, dict[str, Any]]


def frame(runs: Any) -> pd.DataFrame:
    """Return all scores of one model's runs, or of a tidy table, in the original's columns.

    Repetitions, partitions and epochs start at 1; test scores have the epoch -1. The task
    ``F1A-exact`` is called ``F1A`` here.
    """
    scores = clean(named_scores(runs)[0])
    names = short_names(scores)
    final = (scores["epoch"] == FINAL) & scores["metric"].isin(TESTS)
    curves = (scores["epoch"] != FINAL) & scores["metric"].isin(CURVES)
    part = numbered(scores[(final | curves) & scores["task"].isin(names)])
    made = pd.DataFrame(
        {
            "task": pd.Categorical(part["task"].map(names), list(names.values())),
            **{name: part[name].to_numpy() for name in FOLD},
            "train_epoch": part["epoch"].to_numpy(dtype=int),
            "metric": pd.Categorical(part["metric"].replace(TESTS), METRICS),
            "value": part["value"].to_numpy(dtype=float),
        }
    )
    made = made.sort_values(["task", "metric", *FOLD, "train_epoch"], ignore_index=True)
    made = made.astype({"task": object, "metric": object})
    _check(made)
    return made


def aggregate(
    frame: pd.DataFrame,
    *,
    seed: int | None = None,
    confidence: float = 0.99,
    resamples: int = 10_000,
    faithful: bool = False,
) -> Aggregates:
    """Return mean, standard deviation and interval of every loss and metric, by task.

    The keys are ``avg_``, ``std_``, ``ci99_low_`` and ``ci99_high_`` plus the metric. Curves are
    arrays with one value per epoch, over the folds that reached it; test scores are numbers. The
    interval is the original's bootstrap with its seeds, clipped to the metric's range, and equal to
    the mean if all values are equal; ``faithful`` disables these two corrections.
    """
    _check(frame)
    how = Resampling(confidence, resamples, faithful)
    found: Aggregates = {}
    for task, part in frame.groupby("task", sort=False):
        seeds = metric_seeds(part["kfold_repetition"].max(), seed)
        own: dict[str, Any] = {}
        for metric in METRICS:
            limits = (0.0, math.inf) if metric.startswith("loss") else (0.0, 1.0)
            table = _by_epoch(part[part["metric"] == metric])
            statistics = describe(table, seeds[metric], how, limits)
            tested = metric in TESTS.values()
            own |= {f"{k}_{metric}": _number(v) if tested else v for k, v in statistics.items()}
        found[str(task)] = own
    return found


def metric_seeds(repetitions: int, seed: int | None = None) -> dict[str, int]:
    """Return the original's seed of each metric's interval."""
    return interval_seeds(METRICS, bootstrap_seed(int(repetitions)) if seed is None else seed)


def _by_epoch(part: pd.DataFrame) -> np.ndarray:
    """Return a row per fold and a column per epoch; NaN after the last epoch."""
    table = part.pivot(index=FOLD, columns="train_epoch", values="value")
    return table.sort_index().to_numpy(dtype=float)


def _number(values: np.ndarray) -> float:
    return float(values[0]) if len(values) else math.nan


def _check(frame: pd.DataFrame) -> None:
    missing = [name for name in (*KEYS, "value") if name not in frame.columns]
    if missing:
        raise DataError(f'the frame has no column "{missing[0]}"; create it with frame(runs).')
    twice = frame.duplicated(KEYS)
    if twice.any():
        first = frame.loc[twice.idxmax()]
        raise DataError(
            f"{first['task']} has two values of {first['metric']} in one fold; pass the runs of "
            f"one model only."
        )


def clean(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores on clean data."""
    return scores[scores["corruption"].fillna("") == ""]


def short_names(scores: pd.DataFrame) -> dict[str, str]:
    """Return the tasks scored above chance with the original's names, where these are unique."""
    rows = (scores["metric"] == ASKED) & (scores["epoch"] == FINAL)
    short = {task: task.removesuffix("-exact") for task in pd.unique(scores.loc[rows, "task"])}
    if not short:
        raise DataError(
            "no task has the metric above_chance; tasks that extend senteval have above_chance "
            "and logloss."
        )
    names = list(short.values())
    return {task: name if names.count(name) == 1 else task for task, name in short.items()}


def numbered(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores with repetitions and partitions from 1, given consecutive folds."""
    repeat, fold = scores["repeat"].astype(int), scores["fold"].astype(int)
    # the first fold of a later repetition gives the number of folds per repetition
    each = (fold // repeat.where(repeat > 0)).groupby(scores["task"]).transform("min")
    before = (repeat * each.fillna(0)).astype(int)
    return scores.assign(kfold_repetition=repeat + 1, kfold_partition=fold - before + 1)
