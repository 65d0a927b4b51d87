"""Effects: how large a difference is, whatever its chance; each row of an array by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from karat.results.significance import corrected_t, mean_of, wilcoxon


def cohens_d(differences: Any) -> np.ndarray:
    """Return the mean of each row by its standard deviation (Cohen's d of pairs); 0 for zeros only.

    NaN where differences have no spread, or there is one.

    >>> float(cohens_d([1.0, 2.0, 3.0]).round(9))  # 2 / 1
    2.0
    """
    found = corrected_t(differences, 0.0)
    with np.errstate(invalid="ignore"):
        d = found.t / np.sqrt(found.folds)
    return np.where(np.isnan(d) & (found.p == 1), 0.0, d)


def superiority(differences: Any) -> np.ndarray:
    """Return the share of each row that is positive, zeros counted half; 0.5 is no difference.

    >>> float(superiority([0.1, 0.2, 0.0, -0.1]))
    0.625
    """
    given = np.asarray(differences, dtype=float)
    return mean_of(np.where(np.isnan(given), np.nan, (np.sign(given) + 1) / 2))


def rank_biserial(differences: Any) -> np.ndarray:
    """Return the share of ranks that is positive less that which is negative, from -1 to 1.

    >>> float(rank_biserial([0.1, 0.2, -0.3]))
    0.0
    """
    return wilcoxon(differences).effect


def vargha_delaney(first: Any, second: Any) -> float:
    """Return how probable it is that any value of the first is above any of the second.

    Equal ones count half (Vargha and Delaney's A, 2000). The values are not paired.

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
