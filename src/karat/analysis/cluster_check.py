"""Which columns of the items would make the effective number of items much smaller.

Answers to items that share a value, such as those of one author, may be right or wrong together.
Then the mean of n items is as uncertain as that of fewer independent ones: n over the design
effect, 1 + (m - 1) times the intraclass correlation for clusters of m items (Kish 1965).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy

from karat.analysis.item_values import is_accuracy
from karat.analysis.items import item_losses
from karat.analysis.stored_items import first_repeat
from karat.core.predictions import Predictions
from karat.errors import DataError, KaratError
from karat.metrics.metric import get_metric
from karat.results.clusters import (
    FEWEST_CLUSTERS,
    column_labels,
    declared_groups,
    known_clusters,
)
from karat.results.item_tables import GROUP
from karat.results.selection import ModelRuns

#: level of the test, over all columns of a task
LEVEL = 0.05
#: reported from this design effect on: half of the items
LEAST_EFFECT = 2.0
#: a value of more items, as a share of all, is a category and no name
LARGEST_CLUSTER = 0.2
#: correlation of neighboring numbers from which they are a scale, in standard errors
ALIKE = 1.64
#: random orders of the values, at least
ORDERS = 1999
#: with more items the F test needs no random orders
MANY_ITEMS = 5_000
SEED = 0


@dataclass(frozen=True)
class ClusterEffect:
    """A column by which items belong together, with its effect on the number of items.

    ``correlation`` is that of two items of a cluster, ``design_effect`` by how much it increases
    the variance of a mean, ``p`` that of the test that the column says nothing.
    """

    column: str
    clusters: int
    items: int
    correlation: float
    design_effect: float
    p: float

    @property
    def effective(self) -> int:
        """The number of independent items that would be as certain."""
        return round(self.items / self.design_effect)


def design_effect(values: np.ndarray, codes: np.ndarray) -> tuple[float, float, float]:
    """Return the intraclass correlation, the design effect, and F of the means of clusters.

    ``codes`` are the clusters of the values, from 0. The correlation is that of the analysis of
    variance (Donner 1986), at least 0.

    >>> design_effect(np.array([1.0, 1.0, 2.0, 2.0]), np.array([0, 0, 1, 1]))
    (1.0, 2.0, inf)
    """
    sizes = np.bincount(codes)
    items, clusters = len(values), len(sizes)
    centered = values - values.mean()
    between = float((np.bincount(codes, centered) ** 2 / sizes).sum())
    within = max(float((centered**2).sum()) - between, 0.0)
    squares = float((sizes.astype(float) ** 2).sum()) / items
    if between <= 0 or clusters < 2 or items <= clusters:
        return 0.0, 1.0, 0.0
    by_cluster, by_item = between / (clusters - 1), within / (items - clusters)
    mean_size = (items - squares) / (clusters - 1)
    correlation = (by_cluster - by_item) / (by_cluster + (mean_size - 1) * by_item)
    correlation = min(max(correlation, 0.0), 1.0)
    ratio = by_cluster / by_item if by_item > 1e-12 * by_cluster else np.inf
    return correlation, 1 + (squares - 1) * correlation, float(ratio)


def strongest_cluster(
    values: np.ndarray, columns: Mapping[str, np.ndarray]
) -> ClusterEffect | None:
    """Return the column with the largest design effect that is not by chance, or None.

    ``values`` are what the items add to a score, or to the difference of two. A random column is
    found in at most 5 % of tasks, however many columns there are (Bonferroni).

    >>> authors, rng = np.repeat(np.arange(40), 25), np.random.default_rng(0)
    >>> found = strongest_cluster(rng.normal(size=40)[authors], {"author": authors.astype(str)})
    >>> found.column, found.clusters, found.items, found.effective
    ('author', 40, 1000, 40)
    """
    if not np.ptp(values) > 0:
        return None
    candidates = []
    for name, labels in columns.items():
        codes, names = pd.factorize(np.asarray(labels, dtype=object))
        candidates.append((name, codes, len(names), *design_effect(values, codes)))
    large = [candidate for candidate in candidates if candidate[4] >= LEAST_EFFECT]
    for name, codes, clusters, correlation, effect, ratio in sorted(large, key=lambda e: -e[4]):
        if is_scale(values, columns[name]):
            continue
        p = _chance(values, codes, ratio, len(columns))
        if p * len(columns) <= LEVEL:
            return ClusterEffect(name, clusters, len(values), correlation, effect, p)
    return None


def _chance(values: np.ndarray, codes: np.ndarray, ratio: float, columns: int) -> float:
    """Return p of the means of clusters: that of F, and of random orders of the values."""
    sizes = np.bincount(codes)
    p = float(scipy.special.fdtrc(len(sizes) - 1, len(values) - len(sizes), ratio))
    if len(values) > MANY_ITEMS or p > LEVEL:
        return p
    rng, orders = np.random.default_rng(SEED), max(ORDERS, 2 * columns * round(1 / LEVEL) - 1)
    centered = values - values.mean()
    observed = float((np.bincount(codes, centered) ** 2 / sizes).sum()) * (1 - 1e-9)
    beyond = 0
    for _ in range(orders):
        rng.shuffle(centered)
        beyond += float((np.bincount(codes, centered) ** 2 / sizes).sum()) >= observed
    return (1 + beyond) / (1 + orders)


def candidate_columns(items: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the columns of an item table that may name clusters, and near duplicates of texts.

    A column has from six values to half as many as there are items, and none of them is that of
    more than a fifth of the items; measurements, with a decimal point, are no names.

    >>> items = pd.DataFrame({"user": list("abcdef") * 3, "price": ["1.5", "2.5"] * 9})
    >>> list(candidate_columns(items))
    ['user']
    """
    return dict(_candidates(items))


def _candidates(items: pd.DataFrame) -> Iterator[tuple[str, np.ndarray]]:
    for name in known_clusters(items):
        if name == GROUP:
            continue
        labels = column_labels(items, name)
        sizes = labels.value_counts(sort=False)
        if not FEWEST_CLUSTERS <= len(sizes) <= len(items) / 2:
            continue
        is_column = name in items
        if is_column and (sizes.max() > LARGEST_CLUSTER * len(items) or is_measured(items[name])):
            continue
        yield name, labels.to_numpy(dtype=object)


def is_measured(cells: pd.Series) -> bool:
    """Return whether the cells of a column are numbers, some with decimals.

    >>> is_measured(pd.Series(["1.5", "", "2"])), is_measured(pd.Series(["1", "2"]))
    (True, False)
    """
    numbers = pd.to_numeric(pd.Series(cells[cells != ""].unique()), errors="coerce")
    return bool(numbers.notna().all()) and bool((numbers % 1 != 0).any())


def is_scale(values: np.ndarray, labels: np.ndarray) -> bool:
    """Return whether clusters are numbers whose neighbors are alike, as those of an age.

    Names that are numbers have no order: the means of neighbors are not correlated.

    >>> ages = np.repeat(np.arange(20, 60), 5)
    >>> is_scale(ages / 10, ages.astype(str)), is_scale(ages * 7 % 11 / 10, ages.astype(str))
    (True, False)
    """
    names, codes = np.unique(labels.astype(str), return_inverse=True)
    numbers = pd.to_numeric(pd.Series(names), errors="coerce").to_numpy(dtype=float)
    if np.isnan(numbers).any():
        return False
    means = np.bincount(codes, values) / np.bincount(codes)
    ordered = means[np.argsort(numbers)] - means.mean()
    squares = float((ordered**2).sum())
    together = float((ordered[1:] * ordered[:-1]).sum())
    return bool(squares > 0 and together / squares > ALIKE / np.sqrt(len(names)))


# -- of stored predictions ------------------------------------------------------------------


def task_cluster(sides: Sequence[ModelRuns], task: str, metric: str) -> ClusterEffect | None:
    """Return the column by which the differences of two models belong together, or None.

    None also if the data declare groups, if ranked lists or groups have a score of their own, or
    if items or predictions are not stored.
    """
    try:
        items = sides[0].run.items(task)
        return _of_predictions(sides, task, metric, items) if candidate_columns(items) else None
    except (KaratError, OSError, ValueError, KeyError, TypeError):
        return None


def _of_predictions(
    sides: Sequence[ModelRuns], task: str, metric: str, items: pd.DataFrame
) -> ClusterEffect | None:
    folds = [list(first_repeat(side, task).values()) for side in sides]
    # ranked lists, and groups that have a score, are the unit already
    by_group = get_metric(metric).by_group or any(fold.rank is not None for fold in folds[0])
    if by_group or declared_groups(folds[0], by_group) is not None:
        return None
    kind = str(sides[0].tasks[task].get("kind", ""))
    losses = [pd.concat([_losses(fold, kind, metric) for fold in several]) for several in folds]
    both = pd.concat(losses, axis=1, join="inner").dropna()
    both = both[both.index.isin(items.index)]
    columns = candidate_columns(items.loc[both.index])
    values = (both.iloc[:, 0] - both.iloc[:, 1]).to_numpy(dtype=float)
    return strongest_cluster(values, columns) if len(values) and columns else None


def _losses(answers: Predictions, kind: str, metric: str) -> pd.Series:
    """Return the loss of each item by its key; of probabilities if the metric may use them."""
    covered = answers.covered()
    if covered.key is None or len(set(covered.key.tolist())) < len(covered):
        raise DataError("a row of the predictions is not about one item.")
    chance = covered.target_chance
    if chance is not None and not is_accuracy(metric):
        return pd.Series(1 - chance, index=covered.key)
    return pd.Series(item_losses(covered, kind)[0], index=covered.key)
