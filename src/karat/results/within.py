"""Ranks on single tasks, with intervals over folds and tie groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from karat.errors import KaratError
from karat.metrics.base import get_metric
from karat.results.gather import Gathered
from karat.results.missing import Compared
from karat.results.ranks import draw, interval, letters_of, rank_each
from karat.results.significance import ALPHA, corrected_t, fold_ratio, holm, subtract


@dataclass(frozen=True)
class Within:
    """Models × tasks: the rank on each task, its interval, and the letters of tie groups."""

    rank: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ties: np.ndarray


def rank_within(compared: Compared, ratios: Sequence[float]) -> Within:
    """Return the ranks on each task; ``ratios`` are n_test / n_train of its folds.

    Intervals resample the folds; a single fold has none. A model that does not take a task, or is
    the only one, has no rank and no letter there.
    """
    rank = rank_each(compared.values, compared.takes)
    low, high = np.full((2, *rank.shape), np.nan)
    ties = np.full(rank.shape, "", dtype=object)
    with threadpool_limits(1):  # small products: more threads only add overhead
        for t, taking in enumerate(compared.takes.T):
            if taking.sum() < 2:
                continue
            values, own = compared.values[t][taking], rank[taking, t]
            low[taking, t], high[taking, t] = _rank_interval(values, own)
            ties[taking, t] = letters_of(own, tied_folds(values, ratios[t]))
    return Within(rank, low, high, ties)


def _rank_interval(values: np.ndarray, rank: np.ndarray) -> np.ndarray:
    if values.shape[1] < 2:
        return np.full((2, len(rank)), np.nan)
    drawn = draw([values], np.ones((len(rank), 1), dtype=bool))
    return np.clip(interval(rank, drawn.ranks[:, 0]), 1, len(rank))


def tied_folds(values: np.ndarray, ratio: float) -> np.ndarray:
    """Return which pairs of models do not differ significantly over the folds of one task.

    ``values`` are models × folds, a failed fold counts as the worst of that fold. Corrected
    resampled t-test of each pair, with Holm's correction. Pairs without a p, because of a single
    fold or a constant difference, count as tied.

    >>> tied_folds(np.array([[0.9, 0.8, 0.9], [0.1, 0.1, 0.2]]), ratio=0.5).tolist()
    [[True, False], [False, True]]
    """
    lost = np.isnan(values)
    worst = np.where(lost, np.inf, values).min(axis=0)
    filled = np.where(lost, np.where(np.isfinite(worst), worst, 0.0), values)
    one, other = np.triu_indices(len(values), 1)
    with np.errstate(invalid="ignore"):
        p = holm(corrected_t(subtract(filled[one], filled[other]), ratio).p)
    tied = np.ones((len(values), len(values)), dtype=bool)
    tied[one, other] = tied[other, one] = ~(p < ALPHA)
    return tied


def fold_ratios(given: Gathered, tasks: Sequence[str]) -> list[float]:
    """Return n_test / n_train of each task's folds; see ``significance.fold_ratio``."""
    repeats = given.scores.groupby(["task", "repeat"], dropna=False, observed=True)["fold"]
    folds = repeats.nunique().groupby(level=0).max()
    sizes = given.jobs.groupby("task", observed=True)[["train", "test"]].sum()
    rows = pd.concat([sizes, folds], axis=1).reindex(list(tasks)).fillna(0)
    columns = zip(rows["train"], rows["test"], rows["fold"], strict=True)
    return [fold_ratio(train, test, int(k)) for train, test, k in columns]


def within_limits(low: np.ndarray, high: np.ndarray, scores: np.ndarray, metric: str) -> np.ndarray:
    """Return an interval clipped to the range of a registered metric.

    Scores outside that range are on another scale, such as percent; they are not clipped.

    >>> ends = np.array([0.9, 90.0]), np.array([1.1, 110.0]), np.array([1.0, 100.0])
    >>> within_limits(*ends, "acc").tolist()
    [[0.9, 90.0], [1.0, 110.0]]
    """
    ends = np.stack([low, high])
    try:
        least, most = get_metric(metric).range
    except KaratError:
        return ends
    return np.where((scores >= least) & (scores <= most), np.clip(ends, least, most), ends)
