"""The rank-sum test within strata: by hand, against SciPy, and its false positives."""

import numpy as np
import pytest
from scipy import stats

from karat.stats.rank_sum import lower_rank_sum


def test_one_stratum_is_the_test_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    values, chosen = rng.integers(0, 6, 20).astype(float), np.arange(20) < 8
    expected = stats.mannwhitneyu(
        values[chosen], values[~chosen], alternative="less", method="asymptotic"
    )
    assert lower_rank_sum(values, chosen, ["a"] * 20) == pytest.approx(expected.pvalue)


def test_values_are_compared_within_their_stratum_only():
    # within each stratum the chosen are the highest, although all of b are lower than those of a
    values = np.array([5.0, 6, 7, 8, 1, 2, 3, 4])
    chosen = np.array([0, 0, 0, 1, 0, 1, 1, 1], dtype=bool)
    strata = ["a"] * 4 + ["b"] * 4
    assert lower_rank_sum(values, chosen, strata) > 0.9
    assert lower_rank_sum(values, ~chosen, strata) < 0.1
    assert np.isnan(lower_rank_sum(values, np.array([True] * 4 + [False] * 4), strata))


@pytest.mark.parametrize("count", [3, 6])
def test_random_choices_are_rarely_called_low(count):
    rng = np.random.default_rng(count)
    strata = ["a"] * 5 + ["b"] * 7
    found = []
    for _ in range(400):
        chosen = np.isin(np.arange(12), rng.permutation(12)[:count])
        found.append(lower_rank_sum(rng.normal(size=12), chosen, strata) < 0.05)
    assert np.mean(found) <= 0.09  # 99.9 % of binomial counts are below
