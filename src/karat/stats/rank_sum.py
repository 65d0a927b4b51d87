"""A rank-sum test within strata: whether some values are lower than others of their kind."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy

from karat.stats.paired_tests import average_ranks


def lower_rank_sum(values: np.ndarray, chosen: np.ndarray, strata: Sequence[object]) -> float:
    """Return the one-sided p that the chosen values are lower than others of their stratum.

    Wilcoxon's rank sum, added over strata, against the normal distribution with the mean and
    variance it has if the choice is random within strata (with ties), and a continuity
    correction. NaN if no stratum has both chosen and other values.

    >>> values, chosen = np.arange(8.0), np.arange(8) < 4
    >>> round(lower_rank_sum(values, chosen, ["a"] * 8), 4)  # sum 10 against 18 ± √12
    0.0152
    """
    apart = variance = 0.0
    for stratum in dict.fromkeys(strata):
        inside = np.array([stratum_of_row == stratum for stratum_of_row in strata], dtype=bool)
        ranks, is_chosen = average_ranks(values[inside]), chosen[inside]
        count, size = int(is_chosen.sum()), len(ranks)
        if 0 < count < size:
            apart += float(ranks[is_chosen].sum() - count * ranks.mean())
            variance += count * (size - count) / size * float(ranks.var(ddof=1))
    if not variance:
        return float("nan")
    return float(scipy.special.ndtr((apart + 0.5) / np.sqrt(variance)))
