"""Chances of being better: against baycomp, by hand, and as properties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from karat.errors import DefinitionError
from karat.results.bayes import correlated_t, signed_rank

ROWS = st.lists(st.integers(-10, 10).map(lambda n: n / 100), min_size=2, max_size=9)


def test_correlated_t_by_hand():
    # mean 0.02, variance 0.0001, times 1/3 + 1/2; t of 2 degrees
    found = correlated_t([0.01, 0.02, 0.03], ratio=1 / 2, rope=0.01)
    error = np.sqrt(0.0001 * (1 / 3 + 1 / 2))
    assert found.better == pytest.approx(stats.t.sf(0.01, 2, loc=0.02, scale=error))
    assert found.worse == pytest.approx(stats.t.cdf(-0.01, 2, loc=0.02, scale=error))
    assert found.better + found.equal + found.worse == pytest.approx(1)


def test_correlated_t_equals_baycomps():
    baycomp = pytest.importorskip("baycomp")
    rng = np.random.default_rng(0)
    first, second = rng.normal(0.8, 0.05, 30), rng.normal(0.79, 0.05, 30)
    # three runs of ten folds: one part tests, nine teach; theirs is worse, equal, better
    expected = baycomp.two_on_single(second, first, rope=0.01, runs=3)
    found = correlated_t(first - second, ratio=1 / 9, rope=0.01)
    assert (found.worse, found.equal, found.better) == tuple(map(pytest.approx, expected))


def test_folds_without_variance():
    rows = [[0.0, 0.0], [0.1, 0.1], [0.1, np.nan]]
    found = correlated_t(rows, 0.5, rope=0.01)
    assert found.equal == pytest.approx([1, np.nan, np.nan], nan_ok=True)
    assert found.better == pytest.approx([0, np.nan, np.nan], nan_ok=True)


@pytest.mark.parametrize("rope", [0.01, 0.03])
def test_signed_rank_equals_baycomps(rope):
    baycomp = pytest.importorskip("baycomp")
    rng = np.random.default_rng(1)
    second = rng.normal(0.8, 0.1, 20)
    first = second + rng.normal(0.015, 0.04, 20)
    theirs = baycomp.two_on_multiple(second, first, rope=rope, nsamples=20_000, random_state=1)
    found = signed_rank(first - second, rope, draws=20_000)
    ours = (found.worse, found.equal, found.better)
    # both draw at random: 20,000 draws are right to 0.0035, and so is their difference to 0.02
    assert ours == tuple(pytest.approx(float(p), abs=0.02) for p in theirs)


def test_signed_rank_by_hand():
    """One task: its weight w and the prior's 1 - w; the task wins where w² is above both others.

    Means of two: the task twice (w²) is above the ROPE, the two others are w(1-w) twice and (1-w)².
    Half of 0.1 is above the ROPE of 0.01 too: above it is 1 - (1-w)², which wins from w = 1 - √½.
    """
    found = signed_rank([0.1], rope=0.01)
    # w is Beta(1, ½), of which 1 - √(1 - x) is below x
    assert found.better == pytest.approx(np.sqrt(np.sqrt(0.5)), abs=0.01)
    assert found.worse == 0 and found.equal == pytest.approx(1 - found.better)


def test_the_bounds_of_the_rope_are_inside():
    assert signed_rank([0.01] * 20, rope=0.01).equal == 1
    assert signed_rank([0.0101] * 20, rope=0.01).better > 0.95
    assert signed_rank([0.0] * 5, rope=0.0).equal == 1


@settings(max_examples=40)
@given(ROWS, st.sampled_from([0.0, 0.01, 0.05]))
def test_swapping_mirrors_and_the_order_of_tasks_does_not_matter(row, rope):
    found = signed_rank(row, rope, draws=500)
    other = signed_rank(-np.array(row), rope, draws=500)
    assert other.better == pytest.approx(found.worse, abs=0.011)
    assert other.worse == pytest.approx(found.better, abs=0.011)
    sizes = np.abs(row)
    if len(set(sizes)) == len(sizes):  # those of one size may swap their weights
        turned = signed_rank(row[::-1], rope, draws=500)
        assert (turned.better, turned.worse) == (found.better, found.worse)
    assert found.better + found.equal + found.worse == pytest.approx(1)


def test_effect_of_a_wider_rope_and_of_more_tasks():
    row = np.random.default_rng(2).normal(0.02, 0.03, 30)
    equal = [float(signed_rank(row, rope, draws=5000).equal) for rope in (0, 0.01, 0.02, 0.1)]
    assert equal == sorted(equal) and equal[-1] == 1
    few, more = signed_rank([0.02, 0.03], 0.01), signed_rank([0.02, 0.03] * 5, 0.01)
    assert more.better > few.better


def test_several_rows_with_missing_values():
    rows = np.random.default_rng(3).normal(0.01, 0.03, (3, 8))
    rows[1, 5:] = np.nan
    rows[2] = np.nan
    found = signed_rank(rows, 0.01, draws=1000)
    assert found.better.shape == (3,) and np.isnan(found.better[2])
    for i, row in enumerate((rows[0], rows[1, :5])):
        assert signed_rank(row, 0.01, draws=1000).better == found.better[i]
    assert np.isnan(signed_rank([], 0.01).equal)


def test_the_same_seed_gives_the_same_chances():
    row = [0.01, 0.03, -0.02, 0.04]
    one, other = signed_rank(row, 0.01, seed=4), signed_rank(row, 0.01, seed=4)
    assert (one.better, one.equal) == (other.better, other.equal)
    assert signed_rank(row, 0.01, draws=999, seed=5).better != signed_rank(row, 0.01).better


@pytest.mark.parametrize("rope", [-0.1, np.nan, np.inf])
def test_a_wrong_rope_raises(rope):
    for test in (lambda: signed_rank([0.1], rope), lambda: correlated_t([0.1, 0.2], 0.1, rope)):
        with pytest.raises(DefinitionError, match="rope"):
            test()
