"""Is one model better than another on a task? By folds, or by rows if there is one fold."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import t as student

from karat.results.rules.base import Facts, is_share, several
from karat.results.significance import corrected_variance

#: confidence of intervals, and power with which a true difference is detected
CONFIDENCE, POWER = 0.95, 0.8


def bounds(facts: Facts, task: str, other: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean difference of each model from another one, and its 95 % interval.

    Differences are taken fold by fold, with the Nadeau-Bengio correction. With one fold, shares of
    correct answers are compared as two independent proportions; other metrics have no interval.
    """
    folds = facts.cells.folds[facts.place[task]]
    mean, error, counts = _errors(facts, task, folds - folds[other])
    # Student's t needs a degree of freedom
    t = student.ppf((1 + CONFIDENCE) / 2, np.maximum(counts - 1, 1))
    by_rows = ndtri((1 + CONFIDENCE) / 2) * _errors_of_shares(facts, task, other)
    half = np.where(counts > 1, t * error, by_rows)
    return mean, mean - half, mean + half


def detectable(facts: Facts, task: str, model: int, other: int) -> tuple[float, str] | None:
    """Return the smallest difference of two models that a test at 5 % detects with 80 % power.

    By folds and, for shares of correct answers, by rows: the smaller of both, and its basis. None
    if neither can be computed.
    """
    folds = facts.cells.folds[facts.place[task]]
    _, error, counts = _errors(facts, task, folds[[model]] - folds[other])
    freedom = np.maximum(counts - 1, 1)
    t = student.ppf((1 + CONFIDENCE) / 2, freedom) + student.ppf(POWER, freedom)
    by_rows = ndtri((1 + CONFIDENCE) / 2) + ndtri(POWER)
    found = [
        (float((t * error)[0]), several(int(counts[0]), "fold")),
        (
            float(by_rows * _errors_of_shares(facts, task, other)[model]),
            several(facts.tested(task), "test row"),
        ),
    ]
    return min((each for each in found if not np.isnan(each[0])), default=None)


def _errors(
    facts: Facts, task: str, differences: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean of each row, its standard error (NaN for one fold), and the fold counts."""
    there = ~np.isnan(differences)
    counts = there.sum(axis=1)
    safe = np.where(there, differences, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = safe.sum(axis=1) / counts
        squares = (np.where(there, differences - mean[:, None], 0.0) ** 2).sum(axis=1)
        variance = np.where(counts > 1, squares / (counts - 1), np.nan)
        return mean, np.sqrt(corrected_variance(variance, counts, facts.ratios[task])), counts


def _errors_of_shares(facts: Facts, task: str, other: int) -> np.ndarray:
    """Return the standard errors of differences of proportions; NaN for other metrics."""
    shares = np.clip(facts.cells.means[:, facts.place[task]], 0, 1)
    rows = facts.tested(task)
    if not rows or not is_share(facts.given.metrics[task]):
        return np.full(len(shares), np.nan)
    spread = shares * (1 - shares)
    return np.asarray(np.sqrt((spread + spread[other]) / rows))
