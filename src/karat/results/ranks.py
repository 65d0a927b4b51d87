"""Ranks with their uncertainty: resampled tasks, resampled folds inside them, tie groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

#: resamples of the bootstrap, its confidence, and the seed that makes it repeatable
RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 0
#: models that share fewer tasks than this cannot be told apart
FEWEST_TASKS = 3
_TAILS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class Ranks:
    """Mean rank of each model over its tasks, an interval, and the letters of its tie groups.

    ``each`` holds the ranks themselves, models × tasks.
    """

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ties: list[str]
    each: np.ndarray


def ranked_on_few(takes: np.ndarray) -> np.ndarray:
    """Return which models take fewer tasks than can tell them apart, where others take more.

    >>> ranked_on_few(np.array([[True, True, True], [True, False, False]])).tolist()
    [False, True]
    """
    counts = takes.sum(axis=1)
    return (counts < FEWEST_TASKS) & (counts.max(initial=0) >= FEWEST_TASKS)


def rank_each(values: list[np.ndarray], takes: np.ndarray) -> np.ndarray:
    """Return models × tasks: the rank of each model's mean over folds, 1 is best.

    What is given is that of ``rank_models``. Models that do not take a task have no rank on it, and
    nobody has one on a task that is taken by one model alone.

    >>> rank_each([np.array([[0.9], [0.7], [0.8]])], np.array([[True], [True], [False]])).ravel()
    array([ 1.,  2., nan])
    """
    ranks = np.full(takes.shape, np.nan)
    for t, who in enumerate(takes.T):
        if who.sum() > 1:
            ranks[who, t] = rankdata(-_worst_for_failed(values[t][who]).mean(axis=1))
    return ranks


def rank_models(values: list[np.ndarray], takes: np.ndarray) -> Ranks:
    """Rank models on tasks; 1 is best.

    ``values[t]`` holds one row per model and one column per fold, higher is better; where a model
    that takes the task failed in a fold stands NaN, which counts as that fold's worst.
    ``takes[m, t]`` says which model takes which task; tasks taken by one model alone rank nobody.

    >>> rank_models([np.array([[0.9, 0.8], [0.7, np.nan]])], np.array([[True], [True]])).mean
    array([1., 2.])
    """
    rng = np.random.default_rng(SEED)
    contested = [t for t in range(len(values)) if takes[:, t].sum() > 1]
    models = len(takes)
    each = rank_each(values, takes)
    if not contested:
        nothing = np.full(models, np.nan)
        return Ranks(nothing, nothing, nothing, [""] * models, each)
    there = takes[:, contested]
    drawn = np.zeros((models, len(contested), RESAMPLES))
    with threadpool_limits(1):  # the products are small: more threads only cost
        for i, t in enumerate(contested):
            filled = _worst_for_failed(values[t][takes[:, t]])
            drawn[there[:, i], i] = _ranked(_weights(rng, filled.shape[1]) @ filled.T).T
    weights = _weights(rng, len(contested)).T
    low, high = _quantiles(_weighted_mean(drawn, there, weights))
    mean = _divided(np.nansum(each, axis=1), there.sum(axis=1))
    few = ranked_on_few(takes) | np.isnan(mean)
    tied = _tied(drawn, there, weights)
    letters = np.full(models, "", dtype=object)
    # who takes hardly any task can be told apart from nobody: no letter would say that
    letters[~few] = _letters(mean[~few], tied[np.ix_(~few, ~few)])
    return Ranks(mean, low, high, letters.tolist(), each)


def _weights(rng: np.random.Generator, count: int) -> np.ndarray:
    """Return how often each of so many things is drawn in each resample, with replacement."""
    drawn = rng.integers(count, size=(RESAMPLES, count))
    places = drawn + count * np.arange(RESAMPLES)[:, None]
    return np.bincount(places.ravel(), minlength=RESAMPLES * count).reshape(-1, count).astype(float)


def _ranked(scores: np.ndarray) -> np.ndarray:
    """Return the ranks within each row, the highest score first; equal scores share their mean."""
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


def _weighted_mean(drawn: np.ndarray, there: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mean over the tasks a model has (0 elsewhere), by the weights (task, resample)."""
    return _divided(np.einsum("mtr,tr->mr", drawn, weights), there.astype(float) @ weights)


def _divided(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _tied(drawn: np.ndarray, there: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return which two models cannot be told apart on the tasks they share."""
    tied = np.eye(len(drawn), dtype=bool)
    # models that have the same tasks are treated alike, so there are few patterns to go through
    patterns, pattern_of = np.unique(there, axis=0, return_inverse=True)
    groups = [np.flatnonzero(pattern_of.ravel() == p) for p in range(len(patterns))]
    for p, ours in enumerate(groups):
        for q, theirs in enumerate(groups[: p + 1]):
            shared = patterns[p] & patterns[q]
            if shared.sum() < FEWEST_TASKS:
                tied[np.ix_(ours, theirs)] = tied[np.ix_(theirs, ours)] = True
                continue
            counted = weights * shared[:, None]
            mine = _weighted_mean(drawn[ours], there[ours], counted)
            other = mine if q == p else _weighted_mean(drawn[theirs], there[theirs], counted)
            for a, row in zip(ours, mine, strict=True):
                low, high = _quantiles(other - row)
                tied[a, theirs] = tied[theirs, a] = ~((low > 0) | (high < 0))
    return tied


def _letters(mean: np.ndarray, tied: np.ndarray) -> list[str]:
    """Return the letters of the groups of neighbours none of which differ."""
    order = np.argsort(np.where(np.isnan(mean), np.inf, mean), kind="stable")
    groups: list[tuple[int, int]] = []
    end = 0  # it never goes back: a group without its first model is one too
    for start in range(len(order)):
        while end + 1 < len(order) and tied[order[end + 1], order[start : end + 1]].all():
            end += 1
        if not groups or end > groups[-1][1]:
            groups.append((start, end))
    letters = [""] * len(order)
    for i, (start, end) in enumerate(groups):
        for place in range(start, end + 1):
            letters[order[place]] += _letter(i)
    return letters


def _letter(i: int) -> str:
    return chr(ord("a") + i) if i < 26 else f"[{i + 1}]"


def _quantiles(values: np.ndarray) -> np.ndarray:
    """Return the lower and upper bound of each row, over the resamples that have a value."""
    known = ~np.isnan(values)
    if known.all():
        return np.asarray(np.quantile(values, _TAILS, axis=1))
    result = np.full((2, len(values)), np.nan)
    for i, row in enumerate(values):
        if known[i].any():
            result[:, i] = np.quantile(row[known[i]], _TAILS)
    return result
