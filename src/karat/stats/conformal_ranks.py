"""The rank of each model on a new task: conformal intervals, the chance to be first, the loss.

The new task is exchangeable with the tasks at hand: drawn as they were. Nothing else is assumed
about the distribution of ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from karat.stats.paired_tests import CONFIDENCE

#: the part of new tasks whose rank an interval may miss, half of it at either end
MISSED = 0.1
#: with fewer tasks the interval is all ranks: 1 of 20 may be below and 1 of 20 above it
FEWEST_SEEN = 19
#: of the other models at least this part must take a task for a rank among all models
TAKEN_PART = 0.5
#: added to the spread of ranks within a class, in ranks: a model of one rank may have another
_SPREAD = 0.5
#: how many tasks the expectation counts that facts change nothing about a rank, and its spread
_PLACE_TASKS, _SPREAD_TASKS = 2.0, 20.0
#: steps until the chances to be first are settled if models skip tasks
_STEPS = 200


@dataclass(frozen=True)
class NextRanks:
    """What to expect of each model on a new task; NaN where a model has too few tasks.

    ``low`` and ``high`` bound its rank among all models in 90 % of new tasks, ``first`` is the
    chance to be the best and ``first_low`` and ``first_high`` its 95 % interval, ``tasks`` the
    number of tasks used.
    """

    low: np.ndarray
    high: np.ndarray
    first: np.ndarray
    first_low: np.ndarray
    first_high: np.ndarray
    tasks: np.ndarray


def next_ranks(ranks: np.ndarray) -> NextRanks:
    """Return what the ranks on tasks, models × tasks, say about the rank on a new task.

    NaN where a model does not take a task. Tasks that fewer than half of the other models take
    are not used.

    >>> found = next_ranks(np.array([[1.0] * 12 + [2.0] * 8, [2.0] * 12 + [1.0] * 8]))
    >>> found.low.tolist(), found.high.tolist(), found.first.round(3).tolist()
    ([1.0, 1.0], [2.0, 2.0], [0.595, 0.405])
    """
    used = ranks_among_all(ranks)
    low, high = next_rank_bounds(used)
    counts = (~np.isnan(used)).sum(axis=1)
    first = first_shares(used)
    first_low, first_high = share_interval(first, counts)
    models = np.count_nonzero(counts)
    with np.errstate(invalid="ignore", divide="ignore"):
        # one more task, which each model wins with the same chance: nothing is impossible
        chance = (first * counts + 1 / models) / (counts + 1)
    few = counts < FEWEST_SEEN
    for column in (low, high, chance, first_low, first_high):
        column[few] = np.nan
    return NextRanks(
        low=low, high=high, first=chance, first_low=first_low, first_high=first_high, tasks=counts
    )


def ranks_among_all(ranks: np.ndarray) -> np.ndarray:
    """Return ranks as if every model took every task: 1 stays 1, the last becomes the last.

    A rank among the models of a task is stretched to the number of all models that take any task.
    NaN on tasks that fewer than half of the other models take: most of the rank would be a guess.

    >>> ranks_among_all(np.array([[1.0, 1.0], [2.0, 2.0], [3.0, np.nan]])).tolist()
    [[1.0, 1.0], [2.0, 3.0], [3.0, nan]]
    """
    taken = ~np.isnan(ranks)
    others = np.count_nonzero(taken.any(axis=1)) - 1
    rivals = taken.sum(axis=0) - 1
    enough = (rivals > 0) & (rivals >= TAKEN_PART * others)
    stretched = 1 + (ranks - 1) * (others / np.where(enough, rivals, 1))
    return np.where(enough, stretched, np.nan)


def tail_counts(tasks: int) -> tuple[int, int]:
    """Return how many of the tasks seen may be below and above an interval, plus one each.

    The interval from the ``below``-th smallest to the ``above``-th largest value misses at most
    (below + above) / (tasks + 1) of new ones. An odd one is spent at the upper, worse end.

    >>> [tail_counts(tasks) for tasks in (18, 19, 29, 39, 79)]
    [(0, 1), (1, 1), (1, 2), (2, 2), (4, 4)]
    """
    both = int(MISSED * (tasks + 1) + 1e-9)
    return both // 2, both - both // 2


def next_rank_bounds(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of each model's rank on a new task, as whole ranks.

    Order statistics of its ranks (a conformal interval, without a split): if the new task is
    exchangeable with those at hand, its rank is below the k-th smallest of n with a chance of at
    most k / (n + 1). Equal ranks only make this chance smaller; a shared rank such as 1.5 is
    rounded outwards. NaN with fewer than ``FEWEST_SEEN`` tasks.

    >>> low, high = next_rank_bounds(np.array([[2.0] * 18 + [1.0, 4.5]]))
    >>> low.tolist(), high.tolist()
    ([1.0], [5.0])
    """
    low, high = np.full((2, len(ranks)), np.nan)
    for position, row in enumerate(ranks):
        ordered = np.sort(row[~np.isnan(row)])
        if len(ordered) >= FEWEST_SEEN:
            below, above = tail_counts(len(ordered))
            low[position] = np.floor(ordered[below - 1] + 1e-9)
            high[position] = np.ceil(ordered[-above] - 1e-9)
    return low, high


def alike_rank_bounds(
    ranks: np.ndarray, facts: np.ndarray, wanted: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the bounds of each model's rank on a new task with these facts, as whole ranks.

    ``facts`` are tasks × numbers that describe them, ``wanted`` those of the new task; tasks of
    equal facts are a class. A rank counts by its distance from the one that a ridge regression on
    the facts expects, divided by the mean distance in its class (plus half a rank): the facts say
    where a model stands and how much it varies, all tasks how far it may be off. Both are shrunk
    towards those of all tasks. A rank belongs to the interval if this distance, with the new task
    among the others, is not among the 5 % farthest at either end (full conformal prediction), so
    that 90 % of new tasks are covered whatever the ranks. NaN where a model has fewer than
    ``FEWEST_SEEN`` tasks of the wanted class.

    >>> ranks = np.array([[1.0] * 20 + [2.0] * 20, [2.0] * 20 + [1.0] * 20])
    >>> low, high = alike_rank_bounds(ranks, np.repeat([[0.0], [1.0]], 20, axis=0), np.zeros(1))
    >>> low.tolist(), high.tolist()
    ([1.0, 2.0], [1.0, 2.0])
    """
    low, high = np.full((2, len(ranks)), np.nan)
    last = np.count_nonzero((~np.isnan(ranks)).any(axis=1))
    candidates, alike = np.arange(1, last + 0.5, 0.5), (facts == wanted).all(axis=1)
    for position, row in enumerate(ranks):
        taken = ~np.isnan(row)
        if np.count_nonzero(taken & alike) >= FEWEST_SEEN:
            described = np.vstack([facts[taken], wanted])
            inside = candidates[_conforms(row[taken], described, candidates)]
            low[position], high[position] = np.floor(inside.min()), np.ceil(inside.max())
    return low, high


def _conforms(ranks: np.ndarray, facts: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return which ranks of a new task, the last one, are not too far out for one model."""
    observed = np.broadcast_to(ranks[:, None], (len(ranks), len(candidates)))
    distances = _distances(np.vstack([observed, candidates]), facts)
    seen, new = distances[:-1], distances[-1]
    below, above = tail_counts(len(seen))
    # equal distances count as farther out: the new one is kept
    lower, upper = (seen <= new + 1e-9).sum(axis=0), (seen >= new - 1e-9).sum(axis=0)
    return np.asarray((lower >= below) & (upper >= above))


def _distances(ranks: np.ndarray, facts: np.ndarray) -> np.ndarray:
    """Return how far each task's ranks are from what all others say, by the spread in its class.

    ``ranks`` are tasks × candidates.
    """
    design = np.column_stack([np.ones(len(facts)), facts])
    penalty = np.diag([1e-9, *[_PLACE_TASKS] * facts.shape[1]])
    fit = design @ np.linalg.solve(design.T @ design + penalty, design.T)
    apart = (ranks - fit @ ranks) / (1 - np.diag(fit))[:, None]
    sizes = np.abs(apart)
    alike = (facts[:, None] == facts).all(axis=2).astype(float)
    spread = alike @ sizes + _SPREAD_TASKS * sizes.mean(axis=0)
    spread /= alike.sum(axis=1, keepdims=True) + _SPREAD_TASKS
    return np.asarray(apart / (spread + _SPREAD))


def first_shares(ranks: np.ndarray) -> np.ndarray:
    """Return the share of tasks on which each model is first among all; ties share a task.

    A model that skips a task is taken to win it as often as it wins the tasks it takes, so that
    a model is not first because a better one is absent. The shares add up to 1.

    >>> first_shares(np.array([[1.0, 1.5], [2.0, 1.5]])).tolist()
    [0.75, 0.25]
    >>> first_shares(np.array([[1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 2.0, 2.0]])).tolist()
    [1.0, 0.0]
    """
    taken = ~np.isnan(ranks)
    counts = taken.sum(axis=1)
    taken_ranks = np.where(taken, ranks, np.inf)
    best = (taken_ranks == taken_ranks.min(axis=0)) & taken
    credit = best / np.maximum(best.sum(axis=0), 1)
    share = np.full(len(ranks), 1 / max(len(ranks), 1))
    for _ in range(_STEPS):
        before, absent = share, share @ ~taken
        share = credit @ (1 - absent) / np.maximum(counts, 1)
        if np.abs(share - before).max(initial=0.0) < 1e-13:
            break
    share[counts == 0] = np.nan
    return share


def share_interval(share: np.ndarray, tasks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Wilson's 95 % interval of a share of tasks.

    >>> low, high = share_interval(np.array([0.5]), np.array([20]))
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.299], [0.701])
    """
    z = scipy.special.ndtri((1 + CONFIDENCE) / 2)
    with np.errstate(invalid="ignore", divide="ignore"):
        center = (share * tasks + z**2 / 2) / (tasks + z**2)
        half = z * np.sqrt(share * (1 - share) * tasks + z**2 / 4) / (tasks + z**2)
    return np.clip(center - half, 0, 1), np.clip(center + half, 0, 1)


def mean_loss(losses: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each model's mean loss over tasks and its 95 % interval, a t interval over tasks.

    ``losses`` are models × tasks, 0 for the best model of a task. NaN with fewer than
    ``FEWEST_SEEN`` tasks.

    >>> mean, low, high = mean_loss(np.array([[0.0, 0.2] * 10]))
    >>> mean.round(3).tolist(), low.round(3).tolist(), high.round(3).tolist()
    ([0.1], [0.052], [0.148])
    """
    taken = ~np.isnan(losses)
    counts = taken.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(taken, losses, 0.0).sum(axis=1) / counts
        apart = np.where(taken, losses - mean[:, None], 0.0)
        error = np.sqrt((apart**2).sum(axis=1) / (counts - 1) / counts)
        half = scipy.special.stdtrit(counts - 1, (1 + CONFIDENCE) / 2) * error
    mean[counts < FEWEST_SEEN] = np.nan
    return mean, np.maximum(mean - half, 0), mean + half
