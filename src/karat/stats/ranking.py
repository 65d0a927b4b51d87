"""Ranks of models on tasks: intervals, which models differ, Borda points and Elo ratings.

Two models differ if a step-down max-T test of their paired rank differences over tasks says so.
Elo ratings come from a Bradley–Terry model of the wins on tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from karat.stats.paired_tests import ALPHA, CONFIDENCE, agreeing, average_ranks
from karat.stats.pairwise_ranks import pairwise_ranks, rank_differences
from karat.stats.threads import single_thread

#: pairs that share fewer tasks are not tested: with five, no sign pattern is rarer than 5 %
FEWEST_TASKS = 6
#: models with fewer tasks come last where no model has enough for the test
FEWEST_RANKED = 3
#: up to this many tasks all sign patterns are used, beyond that a fixed number of random ones
EXACT_TASKS = 12
PATTERNS = 2048
#: added to the sum of squares of a pair's rank differences, per model
PRIOR = 0.5
#: numbers per block of pairs × sign patterns
_PAIRS_BLOCK = 200_000
#: rating of the mean of all rated models, or of the anchor
CENTER = 1500.0
#: points of Elo per unit of log odds: 400 points are odds of ten to one
POINTS = 400 / math.log(10)
#: weight of one more task on which all models are equal, which keeps ratings finite
EQUAL_TASKS = 0.2
#: significant digits in which scores are compared; the rest is numerical noise
DIGITS = 6


@dataclass(frozen=True)
class Ranks:
    """Mean rank of each model by pairs, its interval, letters, and whether it may be best.

    ``each`` holds the ranks by task, models × tasks; ``p`` the adjusted p of each pair, models ×
    models, NaN if not tested. Models with fewer than ``FEWEST_TASKS`` tasks have neither interval
    nor letters. Models that share no task with some others have no rank, see ``mean_ranks``.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ties: list[str]
    top: np.ndarray
    each: np.ndarray
    p: np.ndarray


def ranked_on_few(takes: np.ndarray) -> np.ndarray:
    """Return which models take too few tasks to be ranked with the others.

    Fewer than six if at least half of the models with any task take six, otherwise fewer than
    three if at least half take three.

    >>> ranked_on_few(np.array([[True] * 6, [True] * 5 + [False]])).tolist()
    [False, True]
    >>> ranked_on_few(np.array([[True] * 4, [True] * 2 + [False] * 2])).tolist()
    [False, True]
    """
    counts = takes.sum(axis=1)
    for fewest in (FEWEST_TASKS, FEWEST_RANKED):
        enough = counts >= fewest
        if enough.any() and 2 * enough.sum() >= (counts > 0).sum():
            return np.asarray(~enough)
    return np.zeros(len(counts), dtype=bool)


def rank_each(values: list[np.ndarray], takes: np.ndarray) -> np.ndarray:
    """Return models × tasks: the rank of each model's mean over folds, 1 is best.

    Arguments as in ``rank_models``. NaN where a model does not take a task, or is the only one.

    >>> rank_each([np.array([[0.9], [0.7], [0.8]])], np.array([[True], [True], [False]])).ravel()
    array([ 1.,  2., nan])
    """
    ranks = np.full(takes.shape, np.nan)
    for t, taking in enumerate(takes.T):
        if taking.sum() > 1:
            ranks[taking, t] = average_ranks(-_worst_for_failed(values[t][taking]).mean(axis=1))
    return ranks


def rank_models(values: list[np.ndarray], takes: np.ndarray) -> Ranks:
    """Rank models on tasks; 1 is best.

    ``values[t]`` holds models × folds, higher is better; NaN is a failed fold, which counts as the
    worst of that fold. ``takes[m, t]`` is whether a model takes a task; tasks of a single model are
    ignored. See ``step_down`` for the order of tasks.

    >>> rank_models([np.array([[0.9, 0.8], [0.7, np.nan]])], np.array([[True], [True]])).mean
    array([1., 2.])
    """
    task_ranks = rank_each(values, takes)
    mean, low, high = rank_intervals(task_ranks)
    with single_thread():
        p, top = step_down(task_ranks), top_set(task_ranks) & ~np.isnan(mean)
    return Ranks(
        mean=mean, low=low, high=high, ties=letters_of(mean, p), top=top, each=task_ranks, p=p
    )


def rank_intervals(ranks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return each model's mean rank and the bounds of its 95 % interval; see ``mean_ranks``.

    A t interval of a jackknife over tasks, whose variance has one more task with the variance of
    random ranks: a model that is first on six tasks is not first on all. Within 1 and the number of
    models; NaN for models with fewer than ``FEWEST_TASKS`` tasks.

    >>> mean, low, high = rank_intervals(np.array([[1.0] * 6, [2.0] * 6]))
    >>> mean.tolist(), high.round(3).tolist()  # 1 + 2.571 √(0.25 / 6 / 6)
    ([1.0, 2.0], [1.214, 2.0])
    """
    pairwise = pairwise_ranks(ranks)
    half = np.full(len(pairwise.tasks), np.nan)
    enough = pairwise.tasks >= FEWEST_TASKS
    if enough.any():  # else scipy.special is not imported, which takes as long as a small run
        factor = scipy.special.stdtrit(pairwise.tasks[enough] - 1.0, (1 + CONFIDENCE) / 2)
        half[enough] = factor * np.sqrt(pairwise.variance[enough])
    last = np.count_nonzero(pairwise.tasks)
    mean = pairwise.rank
    return mean, np.clip(mean - half, 1, last), np.clip(mean + half, 1, last)


@dataclass(frozen=True)
class RankLeads:
    """By how much the rank of one model is better than that of each, with 95 % intervals and p.

    ``tasks`` are the common tasks. Interval and p are NaN where the two are not tested; the model
    itself has no interval.
    """

    value: np.ndarray
    low: np.ndarray
    high: np.ndarray
    p: np.ndarray
    tasks: np.ndarray


def rank_leads(ranks: np.ndarray, first: int) -> RankLeads:
    """Return by how much a model's rank is better than that of each, as the letters test it.

    ``ranks`` are models × tasks, see ``step_down``, whose p this is. The t intervals of a jackknife
    have one more task with the variance of random ranks, as those of ``rank_intervals``, and are
    corrected for all pairs (Bonferroni). They contain 0 if and only if p is at least 0.05.

    >>> found = rank_leads(np.array([[1.0] * 8, [2.0] * 8]), 0)
    >>> [float(x[1].round(3)) for x in (found.value, found.low, found.high, found.p)]
    [1.0, 0.704, 1.296, 0.008]
    """
    differences = rank_differences(ranks, first)
    with single_thread():
        p = step_down(ranks)
    tested = max(int(np.isfinite(p[np.triu_indices(len(p), 1)]).sum()), 1)
    tasks = differences.tasks.astype(float)
    random = differences.models * (differences.models + 1) / 6
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(((tasks - 1) * differences.error**2 + random / tasks) / tasks)
        half = scipy.special.stdtrit(tasks - 1, 1 - ALPHA / 2 / tested) * error
    half = agreeing(differences.value, half, p[first])
    half[np.isnan(p[first])] = half[first] = np.nan
    return RankLeads(
        value=differences.value,
        low=differences.value - half,
        high=differences.value + half,
        p=p[first],
        tasks=differences.tasks,
    )


def rank_bounds(ranks: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the bounds of each model's true rank, and whether it may be the best, from p-values.

    ``ranks`` are those of one task, or mean ranks; ``p`` is the p of each pair, corrected for all
    pairs. At least 1 + the models that are significantly better, at most all but those that are
    significantly worse (Mogstad and others 2024). NaN for models of which no pair is tested.

    >>> p = np.array([[1, 0.2, 0.01], [0.2, 1, 0.3], [0.01, 0.3, 1]])
    >>> low, high, top = rank_bounds(np.array([1.0, 2, 3]), p)
    >>> low.tolist(), high.tolist(), top.tolist()
    ([1.0, 1.0, 2.0], [2.0, 3.0, 3.0], [True, True, False])
    """
    differ = p < ALPHA
    better = differ & (ranks < ranks[:, None])
    worse = differ & (ranks > ranks[:, None])
    ranked = ~np.isnan(ranks)
    tested = ranked & (np.isnan(p).sum(axis=1) < len(p) - 1)
    low = np.where(tested, 1.0 + better.sum(axis=1), np.nan)
    high = np.where(tested, ranked.sum() - worse.sum(axis=1), np.nan)
    return low, high, ranked & ~better.any(axis=1)


def letters_of(ranks: np.ndarray, p: np.ndarray) -> list[str]:
    """Return the compact letters of models, best first; none where no pair of a model is tested.

    ``ranks`` give the order of the letters, ``p`` is the p of each pair, corrected for all pairs.
    """
    tested = ~np.isnan(ranks) & (np.isnan(p).sum(axis=1) < len(p) - 1)
    order = np.argsort(ranks, kind="stable")
    return compact_letters(order[tested[order]], p < ALPHA)


def _worst_for_failed(values: np.ndarray) -> np.ndarray:
    worst = np.where(np.isnan(values), np.inf, values).min(axis=0)
    worst = np.where(np.isfinite(worst), worst, 0.0)
    return np.where(np.isnan(values), worst - 1e-12 - np.abs(worst) * 1e-9, values)


def sign_patterns(tasks: int) -> np.ndarray:
    """Return tasks × patterns of ±1, the signs under which the statistics are computed again.

    The first pattern is all 1, the data as observed. A pattern and its negative give the same
    two-sided statistics, so only one of the two is used. Random signs are a hash of the numbers of
    pattern and task, which the page computes as well.

    >>> sign_patterns(3)
    array([[ 1., -1.,  1., -1.],
           [ 1.,  1., -1., -1.],
           [ 1.,  1.,  1.,  1.]])
    """
    if tasks <= EXACT_TASKS:
        patterns = np.arange(2 ** max(tasks - 1, 0))
        negative = (patterns >> np.arange(tasks)[:, None]) & 1
    else:
        hashed = _hashed(np.arange(tasks)[:, None], np.arange(PATTERNS))
        negative = (hashed >> np.uint32(31)).astype(int)
        negative[:, 0] = 0
    return 1.0 - 2.0 * negative


def _hashed(task: np.ndarray, pattern: np.ndarray) -> np.ndarray:
    """Return 32 well-mixed bits per task and pattern (the finalizer of MurmurHash3)."""
    bits = pattern.astype(np.uint32) * np.uint32(0x9E3779B1)
    bits = bits + (task + 1).astype(np.uint32) * np.uint32(0x85EBCA77)
    bits = (bits ^ (bits >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    return bits ^ (bits >> np.uint32(16))


class _Paired:
    """Paired rank differences of models over tasks, and their sums under sign patterns.

    Ranks are multiples of 0.5, so sums and squares are exact, and equal statistics are equal bits.
    ``sums`` and ``shared`` are models × models: the sum of rank differences over shared tasks, and
    the number of these tasks.
    """

    def __init__(self, ranks: np.ndarray) -> None:
        ranks = ranks[:, (~np.isnan(ranks)).sum(axis=0) > 1]
        # sums of this size are exact in single precision
        exact: Any = np.float32 if ranks.size < 2**22 else np.float64
        self.there = ~np.isnan(ranks)
        self.ranks = np.where(self.there, ranks, 0.0).astype(exact)
        self.signs = sign_patterns(ranks.shape[1]).astype(exact)
        self.flipped = self.ranks @ self.signs if self.there.all() else None
        takes, wide = self.there.astype(float), self.ranks.astype(float)
        self.shared = takes @ takes.T
        self.sums = wide @ takes.T - takes @ wide.T
        squares = wide**2 @ takes.T
        # the prior keeps pairs that differ by a single rank from dominating few tasks
        prior = np.count_nonzero(self.there.any(axis=1)) * PRIOR
        self.squares = squares + squares.T - 2 * wide @ wide.T + prior

    def observed(self, one: np.ndarray | np.integer | int, other: np.ndarray) -> np.ndarray:
        """Return the statistic of each pair, with the sign of its sum."""
        sums = self.sums[one, other]
        return np.asarray(sums * np.abs(sums) / self.squares[one, other])

    def resampled(self, one: np.ndarray | np.integer | int, other: np.ndarray) -> np.ndarray:
        """Return pairs × patterns: the sums under every sign pattern."""
        if self.flipped is not None:
            return np.subtract(self.flipped[one], self.flipped[other], dtype=float)
        both = self.there[one] & self.there[other]
        return ((self.ranks[one] - self.ranks[other]) * both @ self.signs).astype(float)


def step_down(ranks: np.ndarray) -> np.ndarray:
    """Return models × models: the p of each pair, corrected for all pairs (step-down max-T).

    ``ranks`` are models × tasks, NaN where a model does not take a task. The statistic of a pair
    is the squared sum of its rank differences over shared tasks, divided by the sum of their
    squares (plus half the number of models). It is compared with the maximum over all pairs with
    no larger statistic when the signs of whole tasks are flipped (Westfall and Young 1993), which
    keeps the correlation between pairs. The diagonal is 1; NaN, not tested, where a pair shares
    fewer than ``FEWEST_TASKS`` tasks. Random signs depend on the order of tasks: sort them.

    >>> step_down(np.array([[1.0] * 6, [2.0] * 6])).tolist()  # 2 of 64 sign patterns
    [[1.0, 0.03125], [0.03125, 1.0]]
    """
    paired = _Paired(np.asarray(ranks, dtype=float))
    adjusted = np.full(paired.shared.shape, np.nan)
    np.fill_diagonal(adjusted, 1.0)
    one, other = np.nonzero(np.triu(paired.shared >= FEWEST_TASKS, 1))
    observed = np.abs(paired.observed(one, other))
    order = np.argsort(observed, kind="stable")
    one, other, observed = one[order], other[order], observed[order]
    shares = _exceeded(paired, one, other, observed)
    p = np.maximum.accumulate(shares[::-1])[::-1]
    adjusted[one, other] = adjusted[other, one] = p
    return adjusted


def _exceeded(
    paired: _Paired, one: np.ndarray, other: np.ndarray, observed: np.ndarray
) -> np.ndarray:
    """Return how often the maximum of a pair and those before it reaches what was observed."""
    patterns = paired.signs.shape[1]
    highest = np.zeros(patterns)
    shares = np.empty(len(observed))
    step = max(1, _PAIRS_BLOCK // patterns)
    for start in range(0, len(observed), step):
        here = slice(start, start + step)
        statistics = paired.resampled(one[here], other[here])
        statistics *= statistics
        statistics /= paired.squares[one[here], other[here]][:, None]
        for pair, row in enumerate(statistics, start):
            highest = np.maximum(row, highest, out=row)
            shares[pair] = np.count_nonzero(row >= observed[pair]) / patterns
    return shares


def top_set(ranks: np.ndarray) -> np.ndarray:
    """Return which models may be the best, with 95 % confidence.

    A model is left out if some other is significantly better: the maximum over all others of the
    one-sided statistic of ``step_down``, when the signs of whole tasks are flipped (Hsu 1981,
    Mogstad and others 2024). Models that share ``FEWEST_TASKS`` tasks with no other are not tested,
    so they may be the best; models without any rank may not.

    >>> top_set(np.array([[1.0] * 6, [2.0] * 6])).tolist()
    [True, False]
    """
    ranks = np.asarray(ranks, dtype=float)
    paired = _Paired(ranks)
    tested = paired.shared >= FEWEST_TASKS
    np.fill_diagonal(tested, False)
    top = ~np.isnan(ranks).all(axis=1)
    for m in np.flatnonzero(tested.any(axis=1)):
        others = np.flatnonzero(tested[m])
        behind = paired.observed(m, others).max()
        if _certain(behind, len(others)):
            top[m] = False
            continue
        statistics = paired.resampled(m, others)
        statistics *= np.abs(statistics)
        statistics /= paired.squares[m, others][:, None]
        # a pattern and its negative
        reached = (statistics.max(axis=0) >= behind).mean() + (
            -statistics.min(axis=0) >= behind
        ).mean()
        top[m] = reached / 2 >= ALPHA
    return top


def _certain(statistic: float, pairs: int) -> bool:
    """Return whether Hoeffding's bound shows that a maximum over pairs rarely gets this high."""
    return pairs * math.exp(-statistic / 2) < ALPHA


def compact_letters(order: np.ndarray, differ: np.ndarray) -> list[str]:
    """Return letters such that two models share one if and only if they do not differ.

    ``order`` holds the models, best first; models that are not in it get no letter. ``differ`` is
    models × models. This is the compact letter display of Piepho (2004). All its maximal groups
    may be exponentially many, so groups are added only for pairs that share no letter yet, which
    needs at most one per pair.

    >>> differ = np.zeros((3, 3), dtype=bool)
    >>> differ[0, 2] = differ[2, 0] = True
    >>> compact_letters(np.arange(3), differ)
    ['a', 'ab', 'b']
    """
    tied = ~differ[np.ix_(order, order)]
    np.fill_diagonal(tied, True)
    letters = [""] * len(differ)
    for i, group in enumerate(_cover(tied)):
        for position in np.flatnonzero(group):
            letters[order[position]] += chr(ord("a") + i) if i < 26 else f"[{i + 1}]"
    return letters


def _cover(tied: np.ndarray) -> list[np.ndarray]:
    """Return groups of models that all tie, which together hold every pair that ties."""
    groups: list[np.ndarray] = []
    covered = np.zeros(tied.shape, dtype=int)
    for one, row in enumerate(tied):
        # a model that ties with no other has the pair with itself
        for other in np.flatnonzero(row[one:]) + one:
            if not covered[one, other]:
                groups.append(_grown(tied, tied & (covered == 0), [one, int(other)]))
                covered[np.ix_(groups[-1], groups[-1])] += 1
    needed = []
    for group in groups[::-1]:
        pairs = np.ix_(group, group)
        if (covered[pairs] > 1).all():  # all its pairs are in other groups
            covered[pairs] -= 1
        else:
            needed.append(group)
    return sorted(needed, key=lambda group: np.flatnonzero(group).tolist())


def _grown(tied: np.ndarray, wanted: np.ndarray, pair: list[int]) -> np.ndarray:
    """Return a pair with others that tie with all members: those with most wanted pairs first."""
    group = np.zeros(len(tied), dtype=bool)
    group[pair] = True
    could = tied[pair].all(axis=0) & ~group
    gain = wanted[pair].sum(axis=0)
    while could.any():
        added = int(np.where(could, gain, -1).argmax())
        group[added] = True
        could &= tied[added] & ~group
        gain += wanted[added]
    return group


@dataclass(frozen=True)
class Ratings:
    """A rating per model with its 95 % interval; NaN where it cannot be estimated."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def borda(ranks: np.ndarray) -> np.ndarray:
    """Return the sum over tasks of the number of models beaten; a tie counts half.

    >>> borda(np.array([[1.0, 2.0], [2.5, 1.0], [2.5, np.nan]])).tolist()
    [2.0, 1.5, 0.5]
    """
    points = (~np.isnan(ranks)).sum(axis=0) - ranks
    return np.where(np.isnan(ranks).all(axis=1), np.nan, np.nansum(points, axis=1))


def elo(ranks: np.ndarray, anchor: int | None = None) -> Ratings:
    """Return Elo ratings of a Bradley–Terry model of the wins on each task.

    ``ranks`` are models × tasks. A tie is half a win. The mean of the rated models is 1500, or the
    model at ``anchor`` is. Intervals are t intervals of a sandwich estimate over tasks; the task
    on which all are equal counts as one of them, so that they include the shrinkage it causes.

    NaN for models with fewer than ``FEWEST_TASKS`` tasks, and where wins and losses do not
    determine a rating, as for a model that beats all others (see ``_comparable``).
    """
    ratings = np.full((3, len(ranks)), np.nan)
    rated = _comparable(ranks)
    if rated.any() and (anchor is None or rated[anchor]):
        position = None if anchor is None else int(np.count_nonzero(rated[:anchor]))
        ratings[:, rated] = _rated(average_ranks(ranks[rated]), position)
    return Ratings(*ratings)


def _comparable(ranks: np.ndarray) -> np.ndarray:
    """Return the models that can be rated: most of them, linked by wins and by losses.

    Finite maximum-likelihood strengths need a chain of wins from each model to every other. The
    chains must hold without any one task, as a single upset says little about its odds.
    """
    enough = (~np.isnan(ranks)).sum(axis=1) >= FEWEST_TASKS
    comparable = enough.copy()
    ranks = ranks[enough]
    wins = np.zeros((len(ranks), len(ranks)), dtype=int)
    for column in ranks.T:
        wins += _won(column)
    for column in ranks.T:
        comparable[enough] &= _linked(wins - _won(column))
    most = 2 * np.count_nonzero(comparable) > np.count_nonzero(enough)
    return comparable & (most and np.count_nonzero(comparable) > 1)


def _won(ranks: np.ndarray) -> np.ndarray:
    """Return models × models: whether the first won or tied a task."""
    won = ranks[:, None] <= ranks
    np.fill_diagonal(won, False)
    return won


def _linked(wins: np.ndarray) -> np.ndarray:
    """Return the largest group of models with a chain of wins from each to every other."""
    if not len(wins):
        return np.zeros(0, dtype=bool)
    from scipy.sparse.csgraph import connected_components

    _, groups = connected_components(wins > 0, directed=True, connection="strong")
    return np.asarray(groups == np.bincount(groups).argmax())


def _rated(ranks: np.ndarray, anchor: int | None) -> np.ndarray:
    """Return ratings and their bounds, 3 × models."""
    there = (~np.isnan(ranks)).astype(float)
    others = 1 - np.eye(len(ranks))
    games = (there @ there.T + EQUAL_TASKS) * others
    half = EQUAL_TASKS * (len(ranks) - 1) / 2
    strengths = bradley_terry(borda(ranks) + half, games)
    share = others / (1 + np.exp(strengths - strengths[:, None]))
    # wins of each task beyond the expected, last those of the task on which all are equal
    beyond = np.where(there > 0, there.sum(axis=0) - np.nan_to_num(ranks) - share @ there, 0.0)
    beyond = np.column_stack([beyond, half - EQUAL_TASKS * share.sum(axis=1)])
    moved = np.linalg.solve(_slopes(strengths, games)[1], beyond)
    moved = moved - (moved.mean(axis=0) if anchor is None else moved[anchor])
    tasks = ranks.shape[1]
    error = np.sqrt((moved**2).sum(axis=1) * (tasks + 1) / tasks)
    half_width = scipy.special.stdtrit(tasks - 1, (1 + CONFIDENCE) / 2) * error
    ends = np.stack([strengths, strengths - half_width, strengths + half_width])
    return CENTER + POINTS * (ends - (0.0 if anchor is None else strengths[anchor]))


def bradley_terry(wins: np.ndarray, games: np.ndarray) -> np.ndarray:
    """Return the maximum-likelihood strengths, with a mean of 0.

    ``wins[i]`` is the number of wins of a model, ``games[i, j]`` the number of games of two. The
    odds that i beats j are exp(strength of i - strength of j). The likelihood depends only on each
    model's number of wins, not on whom it beat.

    >>> bradley_terry(np.array([3.0, 1.0]), np.array([[0, 4], [4, 0.0]])).round(4).tolist()
    [0.5493, -0.5493]
    """
    strengths = np.zeros(len(wins))
    for _ in range(100):
        expected, curvature = _slopes(strengths, games)
        step = np.linalg.solve(curvature, wins - expected)
        longest = np.abs(step).max(initial=0.0)
        strengths = strengths + step / max(longest, 1)
        if longest < 1e-10:
            break
    return strengths - strengths.mean()


def _slopes(strengths: np.ndarray, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each model's expected number of wins, and the Hessian of the likelihood."""
    share = 1 / (1 + np.exp(strengths - strengths[:, None]))
    bend = games * share * (1 - share)
    # the likelihood depends on differences only: adding 1 fixes the mean
    return (games * share).sum(axis=1), np.diag(bend.sum(axis=1)) - bend + 1


def significant(values: np.ndarray) -> np.ndarray:
    """Return numbers rounded to significant digits.

    >>> significant(np.array([54.91703041, 54.91703046, 0.0, -1234567.0])).tolist()
    [54.917, 54.917, 0.0, -1234570.0]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.floor(np.log10(np.abs(values)))
    places = DIGITS - 1 - np.where(np.isfinite(size), size, 0.0)
    # scaled by whole powers of ten, so that equal digits give equal bits
    up, down = 10.0 ** np.maximum(places, 0), 10.0 ** np.maximum(-places, 0)
    rounded = np.round(values / down * up) / up * down
    return np.where(np.isfinite(values), rounded, values)
