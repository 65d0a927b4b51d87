"""Intervals of the scores of models on single tasks.

The folds of a cross-validation test different items: their scores show how much a score varies.
Where items that belong together are in several folds, all folds vary together, and only clusters of
items show it. So they do where there is a single fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from karat.analysis.item_values import contributions
from karat.analysis.stored_items import find_sides, first_repeat
from karat.errors import KaratError
from karat.metrics.metric import get_metric
from karat.results.clusters import item_clusters
from karat.results.load import Cells, Gathered
from karat.stats.paired_tests import CONFIDENCE, corrected_t, mean_of

#: values with less skewness are symmetric; more counts as this much, since few values show it badly
SYMMETRIC, LARGEST = 1e-6, 2.0
#: reading predictions may fail in these ways
UNREADABLE = (KaratError, OSError, ValueError, KeyError, TypeError)


def half_widths(folds: np.ndarray) -> np.ndarray:
    """Return half of the 95 % interval of each model's mean score over folds, models × folds.

    NaN with one fold, 0 if all folds have the same score.

    >>> half_widths(np.array([[0.8, 0.9], [0.7, 0.7]])).round(3).tolist()  # 12.7 × 0.05
    [0.635, 0.0]
    """
    tested = corrected_t(folds, 0.0)
    equal = (tested.folds > 1) & np.isnan(tested.error)
    return np.where(equal, 0.0, tested.high - tested.mean)


def cluster_interval(units: np.ndarray, mean: float, metric: str) -> tuple[float, float]:
    """Return the bounds of the 95 % interval of a mean score, over clusters of items.

    ``units`` is what each cluster adds to the score, higher is better, as ``contributions`` returns
    it. Clusters are few and often skewed, such as a few with large errors: the t interval is that
    of a cubic transformation without skewness (Hall 1992).

    >>> np.round(cluster_interval(np.array([0.8, 0.9]), 0.85, "acc"), 3).tolist()
    [0.215, 1.485]
    >>> np.round(cluster_interval(np.array([-1.0, -1, -1, -9]), 1.7, "rmse"), 1).tolist()
    [0.3, 9.2]
    """
    low, high = _shifts(units)
    if not get_metric(metric).higher_is_better:
        low, high = -high, -low
    if metric == "rmse":  # a mean square is the square of the score
        low, high = (shift / max(2 * abs(mean), np.finfo(float).tiny) for shift in (low, high))
    return mean + low, mean + high


def _shifts(units: np.ndarray) -> tuple[float, float]:
    """Return how far the bounds of the mean of values are from it."""
    count, spread = len(units), float(units.std(ddof=1))
    half = scipy.special.stdtrit(count - 1, (1 + CONFIDENCE) / 2) / np.sqrt(count)
    skewness = float(((units - units.mean()) ** 3).mean() / spread**3) if spread else 0.0
    if abs(skewness) < SYMMETRIC:
        return -spread * half, spread * half
    skewness = float(np.clip(skewness, -LARGEST, LARGEST))
    ends = np.array([half, -half]) - skewness / (6 * count)
    low, high = -spread * 3 / skewness * (np.cbrt(1 + skewness * ends) - 1)
    return float(low), float(high)


def score_intervals(gathered: Gathered, cells: Cells, metrics: Sequence[str]) -> np.ndarray:
    """Return the bounds of each score: ends × tasks × models, in the units of the metric.

    They are those over folds, or over clusters of items: where a column names these, and where the
    data declare groups and a single fold, or folds that divide them, do not show how they vary.
    """
    intervals = np.full((2, len(cells.tasks), len(cells.models)), np.nan)
    clustered = set(cells.tasks) if gathered.cluster else _divided_tasks(gathered)
    for t, metric in enumerate(metrics):
        mean = mean_of(cells.folds[t]) * (1 if cells.higher[t] else -1)
        half = half_widths(cells.folds[t])
        low, high = mean - half, mean + half
        task = cells.tasks[t]
        units = cluster_values(gathered, task, metric) if task in clustered else {}
        for m, name in enumerate(cells.models):
            if name in units:
                low[m], high[m] = cluster_interval(units[name], float(mean[m]), metric)
        intervals[:, t] = low, high
    return intervals


def cluster_values(gathered: Gathered, task: str, metric: str) -> dict[str, Any]:
    """Return what each cluster of items adds to the score of each model that has predictions."""
    values = {}
    for name, (side, task_name) in find_sides(gathered, task, gathered.models).items():
        try:
            folds = list(first_repeat(side, task_name).values())
            by_group = get_metric(metric).by_group
            clusters = item_clusters(side.run, task_name, folds, gathered.cluster, by_group)
            if clusters is not None:
                values[name] = contributions(metric, folds, clusters)
        except UNREADABLE:
            continue
    return values


def _divided_tasks(gathered: Gathered) -> set[str]:
    """Return the tasks, as on the leaderboard, whose declared groups the folds do not show."""
    return {
        labels.get(task["name"], task["name"])
        for run, _, labels in gathered.sources
        for task in run.about.get("tasks", ())
        if has_divided_groups(task)
    }


def has_divided_groups(task: Mapping[str, Any]) -> bool:
    """Return whether the folds of a task do not show how much its declared groups vary.

    ``task`` is its entry in run.json, whose ``entities`` are the number of test questions with an
    entity that is also trained on, the number of all, and what an entity is. Blocks of time may
    divide a group, although nothing of it is trained on.

    >>> has_divided_groups({"entities": [0, 90, "group"], "folds": [0, 1, 2]})
    False
    >>> has_divided_groups({"entities": [70, 90, "group"], "folds": [0, 1, 2]})
    True
    """
    crossing, _, entity = task.get("entities") or (0, 0, "")
    by_time = (task.get("split") or {}).get("use") == "time"
    return entity == "group" and (crossing > 0 or by_time or len(task.get("folds", ())) == 1)
