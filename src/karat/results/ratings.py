"""Borda points, and Elo ratings by a Bradley–Terry model of wins on tasks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from karat.results.ranks import Drawn, Ranks, interval

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
_BLOCK = 100_000


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


# -- the fit --------------------------------------------------------------------------------


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
    size = max(1, _BLOCK // games.size)
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
