"""Ranks of models by pairs: how often each other model is better on the tasks that both take.

With missing cells, ranks within tasks are ranks among different numbers of models. Their mean is
therefore replaced by a sum over pairs, which with complete data is the same number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class PairwiseRanks:
    """The rank of each model, the number of its tasks, and the variance of its rank.

    Models without a rank have NaN and no task; the variance over a single task is NaN.
    """

    rank: np.ndarray
    tasks: np.ndarray
    variance: np.ndarray


def comparable_models(takes: np.ndarray) -> np.ndarray:
    """Return which models have a rank among each other; ``takes`` is models × tasks.

    Each must share a task with every other, as the rank of a pair without a common task could only
    be guessed. Models that lack most of the others are left out first, of these the ones with the
    fewest tasks; equal ones leave together, so that the order of models does not matter.

    >>> takes = np.array([[1, 1, 1, 0], [1, 1, 1, 0], [1, 0, 1, 1], [0, 0, 0, 1]])
    >>> comparable_models(takes).tolist()
    [True, True, True, False]
    """
    there = np.asarray(takes, dtype=float)
    there = there * (there.sum(axis=0) > 1)
    ranked = there.any(axis=1)
    lacking = there @ there.T == 0
    while (lacking_others := lacking[np.ix_(ranked, ranked)].sum(axis=1)).any():
        places = np.flatnonzero(ranked)[lacking_others == lacking_others.max()]
        counts = there[places].sum(axis=1)
        ranked[places[counts == counts.min()]] = False
    return np.asarray(ranked & (ranked.sum() > 1))


def mean_ranks(ranks: np.ndarray) -> np.ndarray:
    """Return the rank of each model by pairs, from models × tasks of ranks; NaN is not taken.

    It is 1 + the sum, over the other models, of the share of common tasks on which the other is
    better; a tie counts half. If all models take the same tasks, it is the mean rank. NaN for
    models that are not comparable, see ``comparable_models``.

    >>> mean_ranks(np.array([[1.0, 2, 2], [2, 1, 1], [3, np.nan, np.nan]])).round(3).tolist()
    [1.667, 1.333, 3.0]
    """
    return _spread_out(ranks, lambda chosen_ranks: (_Pairs(chosen_ranks).ranks(),))[0]


def pairwise_ranks(ranks: np.ndarray) -> PairwiseRanks:
    """Return ranks by pairs with their variance over tasks; ``ranks`` as in ``mean_ranks``.

    The variance is that of a jackknife over a model's n tasks, with weight n - 1, and that of
    ranks in random order, with weight 1: a model that is first on six tasks is not first on all.

    >>> found = pairwise_ranks(np.array([[1.0] * 6, [2.0] * 6]))
    >>> found.rank.tolist(), found.variance.round(6).tolist()  # (3/12 / 6) / 6
    ([1.0, 2.0], [0.006944, 0.006944])
    """

    def measured(chosen_ranks: np.ndarray) -> tuple[np.ndarray, ...]:
        pairs = _Pairs(chosen_ranks)
        return pairs.ranks(), pairs.tasks, pairs.variances()

    rank, tasks, variance = _spread_out(ranks, measured)
    return PairwiseRanks(rank, np.nan_to_num(tasks).astype(int), variance)


@dataclass(frozen=True)
class RankDifferences:
    """By how much the rank of one model is better than that of each, with errors and common tasks.

    ``models`` is the number of models with a rank.
    """

    value: np.ndarray
    error: np.ndarray
    tasks: np.ndarray
    models: int


def rank_differences(ranks: np.ndarray, first: int) -> RankDifferences:
    """Return by how much a model's rank is better than that of each model; ``ranks`` as above.

    The error is that of a jackknife over the tasks of either model; if all models take the same
    tasks, it is that of the mean of paired differences. NaN if a model has no rank, the error also
    with fewer than two common tasks.

    >>> found = rank_differences(np.array([[1.0, 1, 1, 2], [2.0, 2, 2, 1]]), 0)
    >>> found.value.tolist(), found.error.tolist()  # mean of 1, 1, 1, -1; √(3 / (4 · 3))
    ([0.0, 0.5], [0.0, 0.5])
    """
    ranks = np.asarray(ranks, dtype=float)
    there = ~np.isnan(ranks)
    common, chosen = (there & there[first]).sum(axis=1), comparable_models(there)
    mean, error = mean_ranks(ranks), np.full(len(ranks), np.nan)
    if chosen[first]:
        chosen_ranks = ranks[chosen]
        pairs = _Pairs(chosen_ranks[:, (~np.isnan(chosen_ranks)).sum(axis=0) > 1])
        position, left_out = int(chosen[:first].sum()), pairs.left_out()
        tasks = (pairs.there + pairs.there[position] > 0).sum(axis=1)
        squares = ((left_out - left_out[position]) ** 2).sum(axis=1)
        error[chosen] = np.sqrt(squares * (tasks - 1) / tasks)
        error[common < 2] = np.nan
    return RankDifferences(
        value=mean - mean[first], error=error, tasks=common, models=int(chosen.sum())
    )


def _spread_out(
    ranks: np.ndarray, measure: Callable[[np.ndarray], tuple[np.ndarray, ...]]
) -> list[np.ndarray]:
    """Return numbers of the comparable models on their common tasks; NaN for other models."""
    ranks = np.asarray(ranks, dtype=float)
    chosen = comparable_models(~np.isnan(ranks))
    chosen_ranks = ranks[chosen]
    measures = measure(chosen_ranks[:, (~np.isnan(chosen_ranks)).sum(axis=0) > 1])
    spread = [np.full(len(ranks), np.nan) for _ in measures]
    for column, values in zip(spread, measures, strict=True):
        column[chosen] = values
    return spread


class _Pairs:
    """All pairs of models on their common tasks, from models × tasks of ranks."""

    def __init__(self, ranks: np.ndarray) -> None:
        self.values = ranks
        self.there = (~np.isnan(ranks)).astype(float)
        self.tasks = self.there.sum(axis=1)
        self.common = self.there @ self.there.T
        #: ranks within tasks are then ranks among all models
        self.complete = bool(self.there.all())

    def ranks(self) -> np.ndarray:
        """Return ranks; shares of as many common tasks are added before they are divided.

        With complete data this is the sum of ranks divided by the number of tasks, to the last bit.
        """
        if self.complete:
            return np.asarray(self.values.sum(axis=1) / self.tasks)
        most, models = int(self.tasks.max(initial=0)) + 1, len(self.values)
        cells = (np.arange(models)[:, None] * most + self.common.astype(int)).ravel()
        sums = np.bincount(cells, self._lost().ravel(), models * most).reshape(models, most)
        shares = sums[:, 1:] / np.arange(1, most)
        # added one by one, as the page does
        return np.asarray(np.add.accumulate(shares, axis=1)[:, -1])

    def _lost(self) -> np.ndarray:
        """Return models × models: on how many tasks the other is better; all with itself."""
        fewer = np.zeros(self.common.shape)
        for _, twice in self._compared():
            fewer += twice
        fewer /= 2
        np.fill_diagonal(fewer, self.tasks)
        return fewer

    def _compared(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield each task with models × models: 2 if the other is better, 1 if it ties."""
        for t, column in enumerate(self.values.T):
            behind = (column < column[:, None]).view(np.uint8)
            behind += (column <= column[:, None]).view(np.uint8)
            yield t, behind

    def variances(self) -> np.ndarray:
        """Return the variance of each rank, of a jackknife and of random ranks together."""
        with np.errstate(invalid="ignore", divide="ignore"):
            # the jackknife's variance is (n - 1) / n times the sum of squares
            left_out = self.left_out()
            jackknife = (self.tasks - 1) / self.tasks * (left_out**2).sum(axis=1)
            return np.asarray(((self.tasks - 1) * jackknife + self._random()) / self.tasks)

    def left_out(self) -> np.ndarray:
        """Return models × tasks: by how much a rank is lower without the task."""
        if self.complete:
            return np.asarray((self.values - self.ranks()[:, None]) / (self.tasks - 1)[:, None])
        weights = np.where(self.common > 1, 1 / np.maximum(self.common - 1, 1), 0.0)
        np.fill_diagonal(weights, 0.0)
        shares = self._lost() / np.maximum(self.common, 1)
        without = -((weights * shares) @ self.there)
        for t, twice in self._compared():
            without[:, t] += np.einsum("ij,ij->i", weights, twice) / 2
        return without * self.there

    def _random(self) -> np.ndarray:
        """Return the variance of each rank if the order of models is random on every task.

        Two others are both better in a third of the cases, so their covariance is 1/12.
        """
        weights = 1 / np.maximum(self.common, 1)
        np.fill_diagonal(weights, 0.0)
        variance = ((weights @ self.there) ** 2 + 2 * (weights**2 @ self.there)) / 12
        return np.asarray((variance * self.there).sum(axis=1))
