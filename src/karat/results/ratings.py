"""Ratings: Borda points, and Elo by the Bradley–Terry model of who beats whom on a task."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from threadpoolctl import threadpool_limits

from karat.results.ranks import Drawn, Ranks, interval

#: where the mean of all models, or the model named as the anchor, stands
CENTRE = 1500.0
#: points of Elo per unit of log odds: 400 points are odds of ten to one
POINTS = 400 / math.log(10)
#: as if there were one more task, on which all models are equal: who always wins stays finite
EQUAL_TASKS = 1.0
#: strengths of a resample are exact to this, which is below a fiftieth of a point
_NEAR = 1e-4
#: so many short steps lead to nearly every resample; the others are solved as the whole is
_STEPS = 12
#: so many numbers of a block of resamples stay near the processor
_BLOCK = 100_000


@dataclass(frozen=True)
class Ratings:
    """A rating per model with its 95 % interval; nothing for a model that was never compared."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def borda(ranks: np.ndarray) -> np.ndarray:
    """Return the sum over tasks of how many models each beats; a tie is half, no rank no points.

    >>> borda(np.array([[1.0, 2.0], [2.5, 1.0], [2.5, np.nan]])).tolist()
    [2.0, 1.5, 0.5]
    """
    points = (~np.isnan(ranks)).sum(axis=0) - ranks
    return np.where(np.isnan(ranks).all(axis=1), np.nan, np.nansum(points, axis=1))


def elo(ranks: Ranks, anchor: int | None = None) -> Ratings:
    """Return Elo ratings of the Bradley–Terry model, fitted to who beats whom on each task.

    A tie is half a win. The mean of all models is 1500, or the model at ``anchor`` is. The
    intervals are those of the resamples that the ranks have: tasks, and folds inside them.
    """
    nothing = np.full(len(ranks.each), np.nan)
    drawn = ranks.drawn
    if drawn is None or (anchor is not None and not drawn.there[anchor].any()):
        return Ratings(nothing, nothing, nothing)
    rated = np.asarray(drawn.there.any(axis=1))
    there = drawn.there[rated]
    with threadpool_limits(1):  # the products are small: more threads only cost
        strengths, resampled = _fitted(ranks, drawn, rated)
    # a resample without any task of a model says nothing of it
    resampled[(there.astype(float) @ drawn.weights).T == 0] = np.nan
    place = None if anchor is None else int(np.count_nonzero(rated[:anchor]))
    mean = _points(strengths, place)
    low, high = interval(mean, _points(resampled, place).T)
    found = [nothing.copy() for _ in range(3)]
    for column, values in zip(found, (mean, low, high), strict=True):
        column[rated] = values
    return Ratings(*found)


def bradley_terry(wins: np.ndarray, games: np.ndarray) -> np.ndarray:
    """Return the strengths that make these wins the likeliest; their mean is 0.

    ``wins[i]`` is how often a model won, ``games[i, j]`` how often it met another. The odds that i
    beats j are exp(strength of i - strength of j). The strengths are finite if some wins and
    losses lead from every model to every other, as ``EQUAL_TASKS`` sees to.

    >>> bradley_terry(np.array([3.0, 1.0]), np.array([[0, 4], [4, 0.0]])).round(4).tolist()
    [0.5493, -0.5493]
    """
    return _solved(np.zeros((1, len(wins))), wins[None, :], games[None, :, :])[0]


# -- the fit --------------------------------------------------------------------------------


def _fitted(ranks: Ranks, drawn: Drawn, rated: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the strengths of the rated models, and those in every resample.

    How often each model won is all that the likelihood knows of who won: no pair is counted.
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
    """Return resamples × models × models: how often two meet."""
    # models that have the same tasks meet the others alike
    patterns, pattern_of = np.unique(there, axis=0, return_inverse=True)
    met = (patterns * weights.T[:, None, :]) @ patterns.T
    which = pattern_of.ravel()
    return _with_equal_tasks(met[:, which[:, None], which])


def _with_equal_tasks(games: np.ndarray) -> np.ndarray:
    return (games + EQUAL_TASKS) * (1 - np.eye(games.shape[-1]))


def _nearby(
    start: np.ndarray, inverse: np.ndarray, wins: np.ndarray, games: np.ndarray
) -> np.ndarray:
    """Return the strengths of resamples, from those of all tasks and their curvature."""
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
    """Return the strengths by Newton's method, from what was found so far."""
    for _ in range(100):
        expected, curvature = _slopes(found, games)
        step = np.linalg.solve(curvature, (wins - expected)[:, :, None])[:, :, 0]
        longest = np.abs(step).max(axis=1, keepdims=True, initial=0.0)
        found = found + step / np.maximum(longest, 1)
        if longest.max(initial=0.0) < 1e-10:
            break
    return found - found.mean(axis=1, keepdims=True)


def _slopes(strengths: np.ndarray, games: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how often each model is expected to win, and the curvature of the likelihood."""
    share = 1 / (1 + np.exp(strengths[:, None, :] - strengths[:, :, None]))
    expected = games * share
    bend = expected * (1 - share)
    # only differences count: the ones hold the mean where it is
    diagonal = np.eye(strengths.shape[1]) * bend.sum(axis=2)[:, :, None]
    return expected.sum(axis=2), diagonal - bend + 1


def _points(strengths: np.ndarray, anchor: int | None) -> np.ndarray:
    """Return strengths in points of Elo, the anchor at the centre, or the mean."""
    centre = 0.0 if anchor is None else strengths[..., anchor, None]
    return CENTRE + POINTS * (strengths - centre)
