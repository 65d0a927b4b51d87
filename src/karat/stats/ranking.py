"""Ranks with bootstrap intervals and tie groups, Borda points, and Elo ratings.

The bootstrap resamples tasks, and folds within them. Elo ratings come from a Bradley–Terry model of
the wins on tasks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from karat.stats.paired_tests import ALPHA, tie_groups

#: resamples of the bootstrap, its confidence and its seed
RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 0
#: models with fewer tasks come last
_FEWEST = 3
#: number of models compared in one block
_BLOCK = 50
_TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Drawn:
    """The resamples of the bootstrap.

    ``ranks`` are models × tasks × resamples on the contested tasks, with resampled folds; 0 where a
    model does not take the task. ``there`` is models × tasks, whether a model takes a task,
    ``weights`` how often a task is drawn in a resample.
    """

    ranks: np.ndarray
    there: np.ndarray
    weights: np.ndarray


@dataclass(frozen=True)
class Ranks:
    """Mean rank of each model over its tasks, an interval, and the letters of its tie groups.

    ``each`` holds the ranks by task, models × tasks; ``drawn`` the resamples of the interval.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ties: list[str]
    each: np.ndarray
    drawn: Drawn | None = None


def ranked_on_few(takes: np.ndarray) -> np.ndarray:
    """Return which models take too few tasks, if at least half of those with any take enough.

    >>> ranked_on_few(np.array([[True, True, True], [True, False, False]])).tolist()
    [False, True]
    """
    counts = takes.sum(axis=1)
    enough = counts >= _FEWEST
    usual = 2 * enough.sum() >= (counts > 0).sum()
    return np.asarray(~enough & bool(enough.any() and usual))


def rank_each(values: list[np.ndarray], takes: np.ndarray) -> np.ndarray:
    """Return models × tasks: the rank of each model's mean over folds, 1 is best.

    Arguments as in ``rank_models``. NaN where a model does not take a task, or is the only one.

    >>> rank_each([np.array([[0.9], [0.7], [0.8]])], np.array([[True], [True], [False]])).ravel()
    array([ 1.,  2., nan])
    """
    ranks = np.full(takes.shape, np.nan)
    for t, taking in enumerate(takes.T):
        if taking.sum() > 1:
            ranks[taking, t] = rankdata(-_worst_for_failed(values[t][taking]).mean(axis=1))
    return ranks


def rank_models(values: list[np.ndarray], takes: np.ndarray) -> Ranks:
    """Rank models on tasks; 1 is best.

    ``values[t]`` holds models × folds, higher is better; NaN is a failed fold, which counts as the
    worst of that fold. ``takes[m, t]`` is whether a model takes a task; tasks of a single model are
    ignored.

    >>> rank_models([np.array([[0.9, 0.8], [0.7, np.nan]])], np.array([[True], [True]])).mean
    array([1., 2.])
    """
    contested = [t for t in range(len(values)) if takes[:, t].sum() > 1]
    models = len(takes)
    each = rank_each(values, takes)
    if not contested:
        nothing = np.full(models, np.nan)
        return Ranks(nothing, nothing, nothing, [""] * models, each)
    with threadpool_limits(1):  # small products: more threads only add overhead
        drawn = draw([values[t] for t in contested], takes[:, contested])
        total = np.einsum("mtr,tr->mr", drawn.ranks, drawn.weights)
        tied = _tied(drawn)
    mean = _divided(np.nansum(each, axis=1), drawn.there.sum(axis=1))
    resampled = _divided(total, drawn.there.astype(np.float32) @ drawn.weights)
    low, high = np.clip(interval(mean, resampled), 1, models)
    few = ranked_on_few(takes) | np.isnan(mean)
    letters = np.full(models, "", dtype=object)
    # a model with too few tasks never differs significantly, so it gets no letter
    letters[~few] = letters_of(mean[~few], tied[np.ix_(~few, ~few)])
    return Ranks(mean, low, high, letters.tolist(), each, drawn)


def draw(values: list[np.ndarray], there: np.ndarray) -> Drawn:
    """Return the ranks in every resample: folds are resampled within tasks, then tasks."""
    rng = np.random.default_rng(SEED)
    ranks = np.zeros((*there.shape, RESAMPLES), dtype=np.float32)
    for t, taking in enumerate(there.T):
        filled = _worst_for_failed(values[t][taking])
        weights = _weights(rng, filled.shape[1])
        # resampling a single fold changes nothing
        ranks[taking, t] = _ranked((weights if filled.shape[1] > 1 else weights[:1]) @ filled.T).T
    # ranks are multiples of 0.5, whose sums are exact in single precision
    return Drawn(ranks, there, _weights(rng, len(values)).T.astype(np.float32))


def _weights(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return how often each of ``count`` items is drawn in each resample, with replacement."""
    drawn = rng.integers(count, size=(RESAMPLES, count))
    places = drawn + count * np.arange(RESAMPLES)[:, None]
    return np.bincount(places.ravel(), minlength=RESAMPLES * count).reshape(-1, count).astype(float)


def _ranked(scores: np.ndarray) -> np.ndarray:
    """Return the ranks within each row, highest score first; ties share their mean rank."""
    order = np.argsort(-scores, axis=1)
    if (np.diff(np.take_along_axis(scores, order, axis=1), axis=1) == 0).any():
        return rankdata(-scores, axis=1)
    ranks = np.empty(scores.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, scores.shape[1] + 1)[None, :], axis=1)
    return ranks


def _worst_for_failed(values: np.ndarray) -> np.ndarray:
    worst = np.where(np.isnan(values), np.inf, values).min(axis=0)
    worst = np.where(np.isfinite(worst), worst, 0.0)
    return np.where(np.isnan(values), worst - 1e-12 - np.abs(worst) * 1e-9, values)


def _divided(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(
        total, count, out=np.full(total.shape, np.nan), where=count > 0, dtype=np.float64
    )


def _tied(drawn: Drawn) -> np.ndarray:
    """Return which pairs do not differ significantly on their shared tasks."""
    models = len(drawn.there)
    tied = np.eye(models, dtype=bool)
    weighted = drawn.ranks * drawn.weights
    blocks = [slice(i, i + _BLOCK) for i in range(0, models, _BLOCK)]
    for i, rows in enumerate(blocks):
        for columns in blocks[: i + 1]:
            here, there = drawn.there[rows], drawn.there[columns]
            count = _counts(here, there, drawn.weights)
            first = _divided(_sums(weighted[rows], there), count)
            second = _divided(_sums(weighted[columns], here).swapaxes(0, 1), count)
            low, high = quantiles(second - first)
            differ = ((low > 0) | (high < 0)) & (here.astype(int) @ there.T >= _FEWEST)
            tied[rows, columns], tied[columns, rows] = ~differ, ~differ.T
    return tied


def _sums(weighted: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return models × others × resamples: a model's rank sum over the tasks both take."""
    # models with the same tasks are computed once
    patterns, which = np.unique(others, axis=0, return_inverse=True)
    return (patterns.astype(np.float32) @ weighted)[:, which.ravel()]


def _counts(here: np.ndarray, there: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return models × others × resamples: the number of tasks both take."""
    first, i = np.unique(here, axis=0, return_inverse=True)
    second, j = np.unique(there, axis=0, return_inverse=True)
    shared = first[:, None, :] & second
    return (shared.astype(np.float32) @ weights)[i.ravel()[:, None], j.ravel()]


def letters_of(mean: np.ndarray, tied: np.ndarray) -> list[str]:
    """Return the letters of groups of adjacent models that do not differ significantly."""
    order = np.argsort(np.where(np.isnan(mean), np.inf, mean), kind="stable")
    letters = [""] * len(order)
    for i, (start, end) in enumerate(tie_groups(order, tied)):
        for place in range(start, end + 1):
            letters[order[place]] += chr(ord("a") + i) if i < 26 else f"[{i + 1}]"
    return letters


def interval(mean: np.ndarray, resampled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return bounds of resampled means, shifted by their bias, which contain the mean.

    Resampled folds are noisier than the folds themselves, which pulls all ranks to the middle.
    """
    known = ~np.isnan(resampled)
    off = _divided(np.where(known, resampled, 0.0).sum(axis=1), known.sum(axis=1)) - mean
    low, high = quantiles(resampled) - off
    return np.minimum(low, mean), np.maximum(high, mean)


def quantiles(values: np.ndarray) -> np.ndarray:
    """Return the 95 % interval over the last axis, ignoring NaN.

    >>> quantiles(np.array([np.arange(0.0, 41.0), np.full(41, np.nan)]))
    array([[ 1., nan],
           [39., nan]])
    """
    found = np.asarray(np.quantile(values, _TAILS, axis=-1))
    for place in np.argwhere(np.isnan(found[0])):
        row = values[tuple(place)]
        if not np.isnan(row).all():
            found[(slice(None), *place)] = np.quantile(row[~np.isnan(row)], _TAILS)
    return found


#: pairs that share fewer tasks are not tested: with five, no sign pattern is rarer than 5 %
FEWEST_TASKS = 6
#: up to this many tasks all sign patterns are used, beyond that a fixed number of random ones
EXACT_TASKS = 12
PATTERNS = 2048
#: added to the sum of squares of a pair's rank differences, per model
PRIOR = 0.5
#: numbers per block of pairs × sign patterns
_PAIRS_BLOCK = 200_000


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
        negative = _hashed(np.arange(tasks)[:, None], np.arange(PATTERNS)) >> np.uint32(31)
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
        exact = np.float32 if ranks.size < 2**22 else np.float64
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

    def observed(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the statistic of each pair, with the sign of its sum."""
        sums = self.sums[one, other]
        return np.asarray(sums * np.abs(sums) / self.squares[one, other])

    def resampled(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
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
    with threadpool_limits(1):  # small products: more threads only add overhead
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
        found = paired.resampled(one[here], other[here])
        found *= found
        found /= paired.squares[one[here], other[here]][:, None]
        for place, row in enumerate(found, start):
            highest = np.maximum(row, highest, out=row)
            shares[place] = np.count_nonzero(row >= observed[place]) / patterns
    return shares


def top_set(ranks: np.ndarray) -> np.ndarray:
    """Return which models may be the best, with 95 % confidence.

    A model is left out if some other is significantly better: the maximum over all others of the
    one-sided statistic of ``step_down``, when the signs of whole tasks are flipped (Hsu 1981,
    Mogstad and others 2024). Models that share ``FEWEST_TASKS`` tasks with no other are not in it.

    >>> top_set(np.array([[1.0] * 6, [2.0] * 6])).tolist()
    [True, False]
    """
    paired = _Paired(np.asarray(ranks, dtype=float))
    tested = paired.shared >= FEWEST_TASKS
    np.fill_diagonal(tested, False)
    top = np.zeros(len(tested), dtype=bool)
    with threadpool_limits(1):
        for m in np.flatnonzero(tested.any(axis=1)):
            others = np.flatnonzero(tested[m])
            behind = paired.observed(m, others).max()
            if _certain(behind, len(others)):
                continue
            found = paired.resampled(m, others)
            found *= np.abs(found)
            found /= paired.squares[m, others][:, None]
            # a pattern and its negative
            reached = (found.max(axis=0) >= behind).mean() + (-found.min(axis=0) >= behind).mean()
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
        for place in np.flatnonzero(group):
            letters[order[place]] += chr(ord("a") + i) if i < 26 else f"[{i + 1}]"
    return letters


def _cover(tied: np.ndarray) -> list[np.ndarray]:
    """Return groups of models that all tie, which together hold every pair that ties."""
    groups: list[np.ndarray] = []
    covered = np.zeros(tied.shape, dtype=int)
    for one, row in enumerate(tied):
        # a model that ties with no other has the pair with itself
        for other in np.flatnonzero(row[one:]) + one:
            if not covered[one, other]:
                groups.append(_grown(tied, tied & (covered == 0), [one, other]))
                covered[np.ix_(groups[-1], groups[-1])] += 1
    kept = []
    for group in groups[::-1]:
        pairs = np.ix_(group, group)
        if (covered[pairs] > 1).all():  # all its pairs are in other groups
            covered[pairs] -= 1
        else:
            kept.append(group)
    return sorted(kept, key=lambda group: np.flatnonzero(group).tolist())


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


#: rating of the mean of all models, or of the anchor
CENTER = 1500.0
#: points of Elo per unit of log odds: 400 points are odds of ten to one
POINTS = 400 / math.log(10)
#: prior: one more task on which all models are equal keeps ratings finite
EQUAL_TASKS = 1.0
#: precision of the strengths of a resample, less than 0.02 points
_NEAR = 1e-4
#: fixed-Hessian steps; resamples that need more are solved by Newton's method
_STEPS = 12
#: numbers per block of resamples, which fit the processor's cache
_RATINGS_BLOCK = 100_000


@dataclass(frozen=True)
class Ratings:
    """A rating per model with its 95 % interval; NaN for a model that was never compared."""

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


def elo(ranks: Ranks, anchor: int | None = None) -> Ratings:
    """Return Elo ratings of a Bradley–Terry model of the wins on each task.

    A tie is half a win. The mean of all models is 1500, or the model at ``anchor`` is. The
    intervals use the resamples of the ranks: tasks, and folds within them.
    """
    nothing = np.full(len(ranks.each), np.nan)
    drawn = ranks.drawn
    if drawn is None or (anchor is not None and not drawn.there[anchor].any()):
        return Ratings(nothing, nothing, nothing)
    rated = np.asarray(drawn.there.any(axis=1))
    there = drawn.there[rated]
    with threadpool_limits(1):  # the products are small: more threads only cost
        strengths, resampled = _fitted(ranks, drawn, rated)
    # a resample without any task of a model has no rating of it
    resampled[(there.astype(float) @ drawn.weights).T == 0] = np.nan
    place = None if anchor is None else int(np.count_nonzero(rated[:anchor]))
    mean = _points(strengths, place)
    low, high = interval(mean, _points(resampled, place).T)
    found = [nothing.copy() for _ in range(3)]
    for column, values in zip(found, (mean, low, high), strict=True):
        column[rated] = values
    return Ratings(*found)


def bradley_terry(wins: np.ndarray, games: np.ndarray) -> np.ndarray:
    """Return the maximum-likelihood strengths, with a mean of 0.

    ``wins[i]`` is the number of wins of a model, ``games[i, j]`` the number of games of two. The
    odds that i beats j are exp(strength of i - strength of j). ``EQUAL_TASKS`` keeps them finite.

    >>> bradley_terry(np.array([3.0, 1.0]), np.array([[0, 4], [4, 0.0]])).round(4).tolist()
    [0.5493, -0.5493]
    """
    return _solved(np.zeros((1, len(wins))), wins[None, :], games[None, :, :])[0]


def _fitted(ranks: Ranks, drawn: Drawn, rated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the strengths of the rated models, and those in every resample.

    The likelihood depends only on each model's number of wins, not on whom it beat.
    """
    there = drawn.there[rated].astype(float)
    half = EQUAL_TASKS * (len(there) - 1) / 2
    games = _with_equal_tasks(there @ there.T)
    strengths = bradley_terry(borda(ranks.each[rated]) + half, games)
    wins = (there * there.sum(axis=0)) @ drawn.weights
    wins -= np.einsum("mtr,tr->mr", drawn.ranks[rated], drawn.weights)
    inverse = np.linalg.inv(_slopes(strengths[None, :], games)[1][0])
    resampled = np.empty(wins.shape[::-1])
    size = max(1, _RATINGS_BLOCK // games.size)
    for start in range(0, len(resampled), size):
        part = slice(start, start + size)
        met = games[None, :, :] if there.all() else _games(there, drawn.weights[:, part])
        resampled[part] = _nearby(strengths, inverse, wins[:, part].T + half, met)
    return strengths, resampled


def _games(there: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return resamples × models × models: the number of games of two."""
    # models with the same tasks are computed once
    patterns, pattern_of = np.unique(there, axis=0, return_inverse=True)
    met = (patterns * weights.T[:, None, :]) @ patterns.T
    which = pattern_of.ravel()
    return _with_equal_tasks(met[:, which[:, None], which])


def _with_equal_tasks(games: np.ndarray) -> np.ndarray:
    return (games + EQUAL_TASKS) * (1 - np.eye(games.shape[-1]))


def _nearby(
    start: np.ndarray, inverse: np.ndarray, wins: np.ndarray, games: np.ndarray
) -> np.ndarray:
    """Return the strengths of resamples, starting at those of all tasks with their Hessian."""
    found = np.repeat(start[None, :], len(wins), axis=0)
    for _ in range(_STEPS):
        odds = np.exp(found)
        expected = odds * (games / (odds[:, :, None] + odds[:, None, :])).sum(axis=2)
        step = ((wins - expected) @ inverse).clip(-1, 1)
        found += step
        far = np.abs(step).max(axis=1) > _NEAR
        if not far.any():
            return found
    games = games if len(games) == 1 else games[far]
    found[far] = _solved(np.repeat(start[None, :], far.sum(), axis=0), wins[far], games)
    return found


def _solved(found: np.ndarray, wins: np.ndarray, games: np.ndarray) -> np.ndarray:
    """Return the strengths by Newton's method, from a starting point."""
    for _ in range(100):
        expected, curvature = _slopes(found, games)
        step = np.linalg.solve(curvature, (wins - expected)[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True, initial=0.0)
        found = found + step / np.maximum(longest, 1)
        if longest.max(initial=0.0) < 1e-10:
            break
    return found - found.mean(axis=1, keepdims=True)


def _slopes(strengths: np.ndarray, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each model's expected number of wins, and the Hessian of the likelihood."""
    share = 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
    expected = games * share
    bend = expected * (1 - share)
    # the likelihood depends on differences only: adding 1 fixes the mean
    diagonal = np.eye(strengths.shape[1]) * bend.sum(axis=2)[:, :, None]
    return expected.sum(axis=2), diagonal - bend + 1


def _points(strengths: np.ndarray, anchor: int | None) -> np.ndarray:
    """Return strengths in Elo points, with the anchor or the mean at the center."""
    center = 0.0 if anchor is None else strengths[..., anchor, None]
    return CENTER + POINTS * (strengths - center)
