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

from karat.stats.paired_tests import tie_groups

#: resamples of the bootstrap, its confidence and its seed
RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 0
#: models that share fewer tasks than this are never significantly different
FEWEST_TASKS = 3
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
    enough = counts >= FEWEST_TASKS
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
            differ = ((low > 0) | (high < 0)) & (here.astype(int) @ there.T >= FEWEST_TASKS)
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
