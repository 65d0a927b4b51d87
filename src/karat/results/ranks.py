"""Ranks with their uncertainty: resampled tasks, resampled folds inside them, tie groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

#: resamples of the bootstrap, its confidence, and the seed that makes it repeatable
RESAMPLES = 1000
CONFIDENCE = 0.95
SEED = 0
#: models that share fewer tasks than this cannot be told apart
FEWEST_TASKS = 3


@dataclass(frozen=True)
class Ranks:
    """Mean rank of each model over its tasks, an interval, and the letters of its tie groups."""

    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray
    ties: list[str]


def rank_models(values: list[np.ndarray], takes: np.ndarray) -> Ranks:
    """Rank models on tasks; 1 is best.

    ``values[t]`` holds one row per model and one column per fold, higher is better; where a model
    that takes the task failed in a fold stands NaN, which counts as that fold's worst.
    ``takes[m, t]`` says which model takes which task; tasks taken by one model alone rank nobody.
    """
    rng = np.random.default_rng(SEED)
    contested = [t for t in range(len(values)) if takes[:, t].sum() > 1]
    models = len(takes)
    if not contested:
        nothing = np.full(models, np.nan)
        return Ranks(nothing, nothing, nothing, ["a"] * models)
    exact = np.full((models, len(contested)), np.nan)
    drawn = np.full((models, len(contested), RESAMPLES), np.nan)
    for i, t in enumerate(contested):
        rows = takes[:, t]
        filled = _worst_for_failed(values[t][rows])
        folds = filled.shape[1]
        draws = rng.multinomial(folds, np.full(folds, 1 / folds), size=RESAMPLES)
        exact[rows, i] = rankdata(-filled.mean(axis=1))
        drawn[rows, i] = rankdata(-(filled @ draws.T) / folds, axis=0)
    weights = rng.multinomial(
        len(contested), np.full(len(contested), 1 / len(contested)), RESAMPLES
    )
    resampled = _weighted_mean(drawn, weights.T)
    tail = (1 - CONFIDENCE) / 2
    low, high = _quantiles(resampled, [tail, 1 - tail])
    mean = np.array([_mean(row) for row in exact])
    return Ranks(mean, low, high, _letters(mean, _tied(drawn, weights.T)))


def _worst_for_failed(values: np.ndarray) -> np.ndarray:
    worst = np.where(np.isnan(values), np.inf, values).min(axis=0)
    worst = np.where(np.isfinite(worst), worst, 0.0)
    return np.where(np.isnan(values), worst - 1e-12 - np.abs(worst) * 1e-9, values)


def _weighted_mean(drawn: np.ndarray, weights: np.ndarray) -> np.ndarray:
    there = ~np.isnan(drawn)
    total = (np.where(there, drawn, 0.0) * weights).sum(axis=1)
    count = (there * weights).sum(axis=1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def _tied(drawn: np.ndarray, weights: np.ndarray) -> np.ndarray:
    models = len(drawn)
    tied = np.eye(models, dtype=bool)
    for a in range(models):
        difference = drawn[a + 1 :] - drawn[a]
        shared = (~np.isnan(difference[:, :, 0])).sum(axis=1)
        low, high = _quantiles(
            _weighted_mean(difference, weights), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
        )
        same = (shared < FEWEST_TASKS) | ~((low > 0) | (high < 0))
        tied[a, a + 1 :] = tied[a + 1 :, a] = same
    return tied


def _letters(mean: np.ndarray, tied: np.ndarray) -> list[str]:
    """Return the letters of the groups of neighbours none of which differ."""
    order = np.argsort(np.where(np.isnan(mean), np.inf, mean), kind="stable")
    groups: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start
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


def _quantiles(values: np.ndarray, at: list[float]) -> np.ndarray:
    known = ~np.isnan(values)
    result = np.full((len(at), len(values)), np.nan)
    for i, row in enumerate(values):
        if known[i].any():
            result[:, i] = np.quantile(row[known[i]], at)
    return result


def _mean(row: np.ndarray) -> float:
    return float(np.mean(row[~np.isnan(row)])) if (~np.isnan(row)).any() else float("nan")
