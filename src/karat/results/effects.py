"""Effect sizes of differences, for each row of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from karat.results.significance import corrected_t, mean_of, wilcoxon


def cohens_d(differences: Any) -> np.ndarray:
    """Return Cohen's d of paired differences: mean divided by standard deviation.

    0 if all are 0; NaN if all are equal or there is only one.

    >>> float(cohens_d([1.0, 2.0, 3.0]).round(9))  # 2 / 1
    2.0
    """
    found = corrected_t(differences, 0.0)
    with np.errstate(invalid="ignore"):
        d = found.t / np.sqrt(found.folds)
    return np.where(np.isnan(d) & (found.p == 1), 0.0, d)


def superiority(differences: Any) -> np.ndarray:
    """Return the share of each row that is positive; zeros count half.

    >>> float(superiority([0.1, 0.2, 0.0, -0.1]))
    0.625
    """
    given = np.asarray(differences, dtype=float)
    return mean_of(np.where(np.isnan(given), np.nan, (np.sign(given) + 1) / 2))


def rank_biserial(differences: Any) -> np.ndarray:
    """Return the matched rank-biserial correlation of each row, from -1 to 1.

    >>> float(rank_biserial([0.1, 0.2, -0.3]))
    0.0
    """
    return wilcoxon(differences).effect


def vargha_delaney(first: Any, second: Any) -> float:
    """Return Vargha and Delaney's A (2000): the probability that a first value is above a second.

    Equal ones count half. The values are not paired.

    >>> vargha_delaney([1, 2, 3], [2, 2])
    0.5
    """
    one, other = (values[~np.isnan(values)] for values in map(_floats, (first, second)))
    if not len(one) or not len(other):
        return float("nan")
    ranks = rankdata(np.concatenate([one, other]))[: len(one)].sum()
    return float((ranks / len(one) - (len(one) + 1) / 2) / len(other))


def _floats(values: Any) -> np.ndarray:
    return np.asarray(values, dtype=float).ravel()
