"""Normalized scores: every task on one scale, so that they can be averaged over tasks."""

from __future__ import annotations

import numpy as np

from karat.results.missing import Compared

REFERENCES = ("range",)
#: relative tolerance below which scores are equal
EQUAL = 1e-12


def normalise(compared: Compared, baseline: int | None = None) -> np.ndarray:
    """Return models × tasks: 1 is the best model of a task, 0 the worst, or the baseline.

    Scores below a baseline are clipped at -1, which is as far below as the best is above. NaN on a
    task on which all are equal, the baseline has no score, or there is one model only.

    >>> two = [np.array([[0.5], [0.7], [0.9]])]
    >>> ranked = Compared(["a", "b", "c"], ["t"], two, np.ones((3, 1), bool))
    >>> normalise(ranked).round(3).ravel().tolist()
    [0.0, 0.5, 1.0]
    >>> normalise(ranked, baseline=1).round(3).ravel().tolist()
    [-1.0, 0.0, 1.0]
    """
    result = np.full(compared.takes.shape, np.nan)
    for t, values in enumerate(compared.values):
        taking = np.flatnonzero(compared.takes[:, t])
        table = values[taking]
        failed = np.isnan(table).all(axis=1)
        if len(taking) < 2 or failed.all():
            continue
        if baseline is None:
            result[taking, t] = _by_range(_means(table), failed)
        elif (taking[~failed] == baseline).any():
            result[taking, t] = _by_baseline(
                _means(table), int(np.flatnonzero(taking == baseline)[0])
            )
    return result


def _means(values: np.ndarray) -> np.ndarray:
    """Return means over the folds with any score; a failed fold counts as its worst."""
    known = values[:, ~np.isnan(values).all(axis=0)]
    return np.where(np.isnan(known), np.nanmin(known, axis=0), known).mean(axis=1)


def _by_range(means: np.ndarray, failed: np.ndarray) -> np.ndarray:
    finite = means[np.isfinite(means)]
    low, high = (finite.min(), finite.max()) if len(finite) else (0.0, 0.0)
    if not _equal(low, high):
        return np.clip((means - low) / (high - low), 0, 1)
    if failed.any():
        # a failure is worse than the only score
        return np.where(failed, 0.0, 1.0)
    return np.full(len(means), np.nan)


def _by_baseline(means: np.ndarray, baseline: int) -> np.ndarray:
    zero, best = means[baseline], means.max()
    if _equal(zero, best):
        return np.where(np.isclose(means, zero, rtol=EQUAL, atol=0), 0.0, -1.0)
    return np.clip((means - zero) / (best - zero), -1, 1)


def _equal(a: float, b: float) -> bool:
    return bool(abs(a - b) <= EQUAL * max(abs(a), abs(b)))


def win_shares(ranks: np.ndarray) -> np.ndarray:
    """Return models × tasks: the share of other models beaten on a task; a tie counts half.

    >>> win_shares(np.array([[1.0], [2.5], [2.5], [np.nan]])).ravel().tolist()
    [1.0, 0.25, 0.25, nan]
    """
    others = (~np.isnan(ranks)).sum(axis=0) - 1
    # a task of one model has no rank
    return (others + 1 - ranks) / np.where(others > 0, others, 1)


def over_tasks(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return each model's mean and median over its tasks; NaN if it has none."""
    mean, median = np.full((2, len(values)), np.nan)
    some = ~np.isnan(values).all(axis=1)
    mean[some], median[some] = np.nanmean(values[some], axis=1), np.nanmedian(values[some], axis=1)
    return mean, median
