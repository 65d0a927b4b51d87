"""The tables of Ulysses SentEval: every number of a model in its columns, and its aggregates.

Everything is a projection of the tidy table: what it calls ``metric_test`` is our ``above_chance``,
``loss_test`` our ``logloss``, and the three curves are what the head ``adamw`` leaves per epoch.
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

#: the metric that a task must have to be one of these
ASKED = "above_chance"
CURVES = ("loss_per_epoch_train", "loss_per_epoch_eval", "metric_per_epoch_eval")
TESTS = {"logloss": "loss_test", ASKED: "metric_test"}
METRICS = (*CURVES, *TESTS.values())
FOLD = ["kfold_repetition", "kfold_partition"]
KEYS = ["task", *FOLD, "train_epoch", "metric"]

Aggregates = dict[str, dict[str, Any]]


def frame(runs: Any) -> pd.DataFrame:
    """Return every number of one model's runs, or of a tidy table, in the original's columns.

    Repetitions, partitions and epochs are counted from 1; a test has the epoch -1. A task that is
    called ``F1A-exact`` is ``F1A`` here.
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

    The keys are ``avg_``, ``std_``, ``ci99_low_`` and ``ci99_high_`` before the name of a metric;
    curves are arrays, one value per epoch over the runs that reached it, tests are numbers. The
    interval is the original's, drawn with its seeds. It stays within the metric's range, and where
    all values are equal it is the mean; ``faithful`` leaves both as the original has them.
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
            told = describe(table, seeds[metric], how, limits)
            tested = metric in TESTS.values()
            own |= {f"{k}_{metric}": _number(v) if tested else v for k, v in told.items()}
        found[str(task)] = own
    return found


def metric_seeds(repetitions: int, seed: int | None = None) -> dict[str, int]:
    """Return the original's seed of each metric's interval; it hangs on how many repetitions."""
    return interval_seeds(METRICS, bootstrap_seed(int(repetitions)) if seed is None else seed)


def _by_epoch(part: pd.DataFrame) -> np.ndarray:
    """Return a row per run, in their order, and a column per epoch; NaN where it had stopped."""
    table = part.pivot(index=FOLD, columns="train_epoch", values="value")
    return table.sort_index().to_numpy(dtype=float)


def _number(values: np.ndarray) -> float:
    return float(values[0]) if len(values) else math.nan


def _check(frame: pd.DataFrame) -> None:
    missing = [name for name in (*KEYS, "value") if name not in frame.columns]
    if missing:
        raise DataError(f'the frame has no column "{missing[0]}"; frame(runs) makes one that does.')
    twice = frame.duplicated(KEYS)
    if twice.any():
        first = frame.loc[twice.idxmax()]
        raise DataError(
            f"{first['task']} has two values of {first['metric']} in one fold; give the runs of "
            f"one model."
        )


# -- from the tidy table --------------------------------------------------------------------


def clean(scores: pd.DataFrame) -> pd.DataFrame:
    """Return the scores on data as they are."""
    return scores[scores["corruption"].fillna("") == ""]


def short_names(scores: pd.DataFrame) -> dict[str, str]:
    """Return the tasks that are ours to tell of, each with the original's name.

    Where two would be called the same, both keep their own names.
    """
    rows = (scores["metric"] == ASKED) & (scores["epoch"] == FINAL)
    short = {task: task.removesuffix("-exact") for task in pd.unique(scores.loc[rows, "task"])}
    if not short:
        raise DataError(
            "no run was scored above chance; a task that extends senteval has the metrics "
            "above_chance and logloss."
        )
    names = list(short.values())
    return {task: name if names.count(name) == 1 else task for task, name in short.items()}


def numbered(scores: pd.DataFrame) -> pd.DataFrame:
    """Return scores with repetitions and partitions, from 1; folds are counted through."""
    repeat, fold = scores["repeat"].astype(int), scores["fold"].astype(int)
    # the first fold of a later repetition tells how many there are in one
    each = (fold // repeat.where(repeat > 0)).groupby(scores["task"]).transform("min")
    before = (repeat * each.fillna(0)).astype(int)
    return scores.assign(kfold_repetition=repeat + 1, kfold_partition=fold - before + 1)
