"""Is one model better than another on a task? By folds, or by rows where there is one fold."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri
from scipy.stats import t as student

from karat.results.rules.base import Facts, is_share, several
from karat.results.significance import corrected_variance

#: how sure an interval is, and how surely a difference that is there must be found
CONFIDENCE, POWER = 0.95, 0.8


def bounds(facts: Facts, task: str, other: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by how much each model is better than another one, and the 95 % interval of that.

    Differences are taken fold by fold; the interval is that of Nadeau and Bengio for folds that
    share their train rows. With one fold, shares of right answers are compared by the number of
    rows, as if of two groups of them; other metrics have no interval (NaN).
    """
    folds = facts.cells.folds[facts.place[task]]
    mean, error, counts = _errors(facts, task, folds - folds[other])
    # student's t of no degrees of freedom is none
    t = student.ppf((1 + CONFIDENCE) / 2, np.maximum(counts - 1, 1))
    by_rows = ndtri((1 + CONFIDENCE) / 2) * _errors_of_shares(facts, task, other)
    half = np.where(counts > 1, t * error, by_rows)
    return mean, mean - half, mean + half


def detectable(facts: Facts, task: str, model: int, other: int) -> tuple[float, str] | None:
    """Return the smallest difference of two models that a test at 5 % finds 4 times in 5.

    By folds and, for shares of right answers, by rows: the smaller of both, and what it rests on.
    Nothing where neither can be told.
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
    """Return the mean of each row, its standard error (NaN of one fold), and how many folds."""
    there = ~np.isnan(differences)
    counts = there.sum(axis=1)
    safe = np.where(there, differences, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = safe.sum(axis=1) / counts
        squares = (np.where(there, differences - mean[:, None], 0.0) ** 2).sum(axis=1)
        variance = np.where(counts > 1, squares / (counts - 1), np.nan)
        return mean, np.sqrt(corrected_variance(variance, counts, facts.ratios[task])), counts


def _errors_of_shares(facts: Facts, task: str, other: int) -> np.ndarray:
    """Return the standard errors of the differences of shares of rows; NaN of other metrics."""
    shares = np.clip(facts.cells.means[:, facts.place[task]], 0, 1)
    rows = facts.tested(task)
    if not rows or not is_share(facts.given.metrics[task]):
        return np.full(len(shares), np.nan)
    spread = shares * (1 - shares)
    return np.asarray(np.sqrt((spread + spread[other]) / rows))
