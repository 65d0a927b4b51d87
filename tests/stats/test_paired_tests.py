"""Tests and effect sizes by hand, against other libraries, and as properties."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from karat.errors import DefinitionError
from karat.stats.paired_tests import (
    EXACT,
    benjamini_hochberg,
    cohens_d,
    corrected_t,
    correlated_t,
    holm,
    mean_of,
    rank_tasks,
    signed_rank,
    skillings_mack,
    superiority,
    wilcoxon,
)

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


def test_several_rows_with_missing_values():
    rows = np.random.default_rng(3).normal(0.01, 0.03, (3, 8))
    rows[1, 5:] = np.nan
    rows[2] = np.nan
    found = signed_rank(rows, 0.01, draws=1000)
    assert found.better.shape == (3,) and np.isnan(found.better[2])
    for i, row in enumerate((rows[0], rows[1, :5])):
        assert signed_rank(row, 0.01, draws=1000).better == found.better[i]
    assert np.isnan(signed_rank([], 0.01).equal)


@pytest.mark.parametrize("rope", [-0.1, np.nan, np.inf])
def test_a_wrong_rope_raises(rope):
    for test in (lambda: signed_rank([0.1], rope), lambda: correlated_t([0.1, 0.2], 0.1, rope)):
        with pytest.raises(DefinitionError, match="rope"):
            test()


#: differences as metrics have them: a few digits, ties and zeros among them
TENTHS = st.integers(-10, 10).map(lambda n: n / 10)
P_VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def table(models: int, tasks: int, seed: int = 0, missing: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = rng.random((models, tasks)) + np.linspace(0.3, 0, models)[:, None]
    values[rng.random(values.shape) < missing] = np.nan
    return values


def test_holm_and_benjamini_hochberg_by_hand():
    # sorted 0.01, 0.02, 0.03, 0.5: times 4, 3, 2, 1 and never less than before
    assert holm([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.06, 0.06])
    # times 4/1, 4/2, 4/3, 4/4 and never more than after
    assert benjamini_hochberg([0.5, 0.01, 0.03, 0.02]) == pytest.approx([0.5, 0.04, 0.04, 0.04])


def test_corrections_equal_those_of_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 40):
        p = np.round(rng.random(size) ** 3, 2)  # some are equal, some are 0
        for ours, theirs in ((holm, "holm"), (benjamini_hochberg, "fdr_bh")):
            expected = multitest.multipletests(p, method=theirs)[1]
            assert ours(p) == pytest.approx(expected, abs=1e-12)


@given(P_VALUES, st.randoms(use_true_random=False))
def test_corrections_only_raise_p_and_go_by_value(p, shuffler):
    places = list(range(len(p)))
    shuffler.shuffle(places)
    for correct in (holm, benjamini_hochberg):
        made = correct(p)
        assert (made >= np.array(p) - 1e-15).all() and (made <= 1).all()
        assert correct(np.array(p)[places]) == pytest.approx(made[places])
    assert (holm(p) >= benjamini_hochberg(p) - 1e-12).all()


def test_corrections_ignore_nan():
    assert holm([0.01, np.nan, 0.02]) == pytest.approx([0.02, np.nan, 0.02], nan_ok=True)
    assert holm([[np.nan]]).shape == (1, 1)
    assert holm([]).size == 0


def test_corrected_t_by_hand():
    # mean 0.03, variance 0.0002 / 3, times 1/4 + 1/3
    found = corrected_t([0.02, 0.04, 0.03, 0.03], ratio=1 / 3)
    error = np.sqrt(0.0002 / 3 * (1 / 4 + 1 / 3))
    assert found.mean == pytest.approx(0.03) and found.t == pytest.approx(0.03 / error)
    assert found.p == pytest.approx(2 * stats.t.sf(0.03 / error, 3))
    assert found.high - found.mean == pytest.approx(stats.t.ppf(0.975, 3) * error)


def test_corrected_t_without_correction_is_students():
    rows = np.random.default_rng(0).normal(0.1, 1, (5, 12))
    rows[2, 4:] = np.nan
    for row, p, t in zip(rows, corrected_t(rows, 0.0).p, corrected_t(rows, 0.0).t, strict=True):
        expected = stats.ttest_1samp(row[~np.isnan(row)], 0)
        assert (p, t) == pytest.approx((expected.pvalue, expected.statistic))


def test_corrected_t_without_variance():
    rows = [[0.1, np.nan, np.nan], [0.1, 0.1, 0.1], [0, 0, 0], [np.nan] * 3]
    found = corrected_t(rows, 0.5)
    assert found.mean == pytest.approx([0.1, 0.1, 0, np.nan], nan_ok=True)
    assert found.p == pytest.approx([np.nan, np.nan, 1, np.nan], nan_ok=True)
    assert np.isnan(found.low).all() and found.folds.tolist() == [1, 3, 3, 0]


@given(arrays(float, (3, 6), elements=TENTHS))
def test_corrected_t_mirrors(rows):
    one, other = corrected_t(rows, 0.2), corrected_t(-rows, 0.2)
    assert one.p == pytest.approx(other.p, nan_ok=True)
    assert one.low == pytest.approx(-other.high, nan_ok=True)


def test_false_alarms_of_the_corrected_test_stay_near_alpha():
    """Two models that are equally good, in 300 experiments of 10 × 5 folds: who finds a winner?

    Each sees one of two columns that tell the class equally well, and cuts it between the means of
    the classes. On the 60 rows of an experiment one of them looks better by luck, in all folds.
    """
    rng = np.random.default_rng(0)
    apart = np.array([_repeated_folds(rng) for _ in range(300)])
    plain = (corrected_t(apart, 0.0).p < 0.05).mean()
    corrected = (corrected_t(apart, 1 / 4).p < 0.05).mean()
    assert plain > 0.4
    assert 0.01 < corrected < 0.12


def _repeated_folds(rng: np.random.Generator) -> np.ndarray:
    """Return the accuracy of the first less that of the second model in 50 folds."""
    y = np.repeat([-1.0, 1.0], 30)
    x = rng.normal(0.8 * y, 1.0, (2, 60))
    tested = np.argsort(rng.random((10, 60)), axis=1).reshape(50, 12)
    train = np.ones((50, 60))
    np.put_along_axis(train, tested, 0.0, axis=1)
    ends = [(train * (y == c)) @ x.T / (train * (y == c)).sum(axis=1)[:, None] for c in (-1, 1)]
    cut = (ends[0] + ends[1]) / 2
    right = (np.sign(x[:, tested] - cut.T[:, :, None]) == y[tested]).mean(axis=2)
    return right[0] - right[1]


def test_wilcoxon_by_hand():
    # ranks 1, 2, 3, 4 of which 2 is negative: 3 of 16 sums are 2 or less
    found = wilcoxon([0.1, -0.2, 0.3, 0.4])
    assert (found.positive, found.negative) == (8, 2)
    assert found.p == pytest.approx(2 * 3 / 16) and found.effect == pytest.approx(0.6)


def test_zeros_and_ties_by_hand():
    # Pratt: two zeros take ranks 1 and 2 and leave, three equal sizes have rank 4 each
    row = [0, 0, 0.5, 0.5, -0.5]
    found = wilcoxon(row)
    assert (found.positive, found.negative, found.tasks) == (8, 4, 5)
    assert found.p == 1.0  # 4 of 8 sums are 4 or less
    dropped = wilcoxon(row, zeros="wilcox")
    assert (dropped.positive, dropped.negative) == (4, 2)
    with pytest.raises(DefinitionError, match="split"):
        wilcoxon(row, zeros="split")


def test_numbers_that_differ_in_their_last_bits_tie():
    row = [0.3 - 0.2, 0.2 - 0.1, -(0.9 - 0.8), 1.1 - 1.0]  # 0.1 each, not of the same bits
    assert len(set(np.abs(row))) == 3
    assert wilcoxon(row).negative == 2.5


@settings(max_examples=60)
@given(st.lists(TENTHS, min_size=1, max_size=9), st.sampled_from(["pratt", "wilcox"]))
def test_exact_p_is_the_share_of_all_signs(row, zeros):
    sizes = np.array([abs(x) for x in row if x or zeros == "pratt"])
    ranks = stats.rankdata(sizes)[sizes > 0] if len(sizes) else sizes
    signs = np.sign([x for x in row if x])
    sums = np.array(list(itertools.product([0, 1], repeat=len(ranks)))) @ ranks
    if not len(ranks):
        expected = 1.0 if zeros == "pratt" or len(row) else np.nan
    else:
        seen = ranks[signs > 0].sum()
        expected = min(1.0, 2 * min((sums <= seen).mean(), (sums >= seen).mean()))
    assert wilcoxon(row, zeros=zeros).p == pytest.approx(expected)


@pytest.mark.parametrize("tasks", [6, EXACT])
def test_exact_p_equals_scipys(tasks):
    rows = np.random.default_rng(tasks).normal(0.2, 1, (20, tasks))
    expected = stats.wilcoxon(rows, axis=1, method="exact")
    assert wilcoxon(rows).p == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("zeros", ["pratt", "wilcox"])
def test_the_normal_curve_equals_scipys(zeros):
    rows = np.round(np.random.default_rng(2).normal(0.1, 0.5, (30, 60)), 1)
    expected = [stats.wilcoxon(row, zero_method=zeros, method="approx").pvalue for row in rows]
    assert (rows == 0).any()
    assert wilcoxon(rows, zeros=zeros).p == pytest.approx(expected)


def test_wilcoxon_ignores_nan():
    rng = np.random.default_rng(3)
    for tasks in (10, 40):
        row = np.round(rng.normal(0.1, 0.5, tasks), 1)
        spread = np.full(2 * tasks, np.nan)
        spread[rng.permutation(2 * tasks)[:tasks]] = rng.permutation(row)
        one, other = wilcoxon(row), wilcoxon(spread)
        assert other.p == pytest.approx(one.p) and other.tasks == one.tasks
        assert other.positive == pytest.approx(one.positive)
    assert np.isnan(wilcoxon([np.nan, np.nan]).p)
    assert np.isnan(wilcoxon(np.empty((2, 0))).p).all()


@given(arrays(float, (2, 12), elements=TENTHS))
def test_wilcoxon_mirrors_and_goes_by_size(rows):
    one, other, scaled = wilcoxon(rows), wilcoxon(-rows), wilcoxon(rows[:, ::-1] * 7.3)
    assert one.p == pytest.approx(other.p) and one.p == pytest.approx(scaled.p)
    assert one.effect == pytest.approx(-other.effect)
    assert ((one.p > 0) & (one.p <= 1)).all()
    assert wilcoxon(np.zeros((1, 5))).p == [1.0]


def test_effect_sizes_by_hand():
    assert cohens_d([1.0, 2.0, 3.0]) == pytest.approx(2.0)  # mean 2, deviation 1
    assert cohens_d([[0.0, 0.0], [0.5, 0.5]]) == pytest.approx([0.0, np.nan], nan_ok=True)
    assert superiority([1.0, 1.0, 0.0, -1.0, np.nan]) == pytest.approx(0.625)


def test_friedman_by_hand():
    # three models, always in the same order on four tasks: 12/(4·3·4) · (16+64+144) - 3·4·4 = 8
    values = np.array([[0.9] * 4, [0.5] * 4, [0.1] * 4])
    assert skillings_mack(values) == (pytest.approx(8.0), pytest.approx(np.exp(-4)), 4)
    assert skillings_mack(np.ones((3, 4))) == (0.0, 1.0, 4)


@given(arrays(float, (4, 7), elements=TENTHS))
def test_without_missing_values_it_is_friedmans(values):
    if (values == values[0]).all():
        return
    expected = stats.friedmanchisquare(*values)
    found = skillings_mack(values)
    assert found[:2] == pytest.approx((expected.statistic, expected.pvalue), abs=1e-9)


def test_missing_values_as_skillings_and_mack():
    """The example of Skillings and Mack (1981): four ways of assembly, 15.493, 3 degrees."""
    nan = np.nan
    rows = [[3.2, 4.1, 3.8, 4.2], [3.1, 3.9, 3.4, 4.0], [4.3, 3.5, 4.6, 4.8], [3.5, 3.6, 3.9, 4.0]]
    rows += [[3.6, 4.2, 3.7, 3.9], [4.5, 4.7, 3.7, nan], [nan, 4.2, 3.4, nan], [4.3, 4.6, 4.4, 4.9]]
    rows += [[3.5, nan, 3.7, 3.9]]
    statistic, p, tasks = skillings_mack(np.array(rows).T)
    assert (statistic, tasks) == (pytest.approx(15.493, abs=1e-3), 9)
    assert p == pytest.approx(stats.chi2.sf(15.493, 3), rel=1e-3)


def test_models_and_tasks_without_a_pair_change_nothing():
    values = table(4, 10)
    nobody = np.vstack([values, np.full(10, np.nan)])
    assert skillings_mack(nobody) == pytest.approx(skillings_mack(values))
    alone = np.hstack([values, [[0.5], [np.nan], [np.nan], [np.nan]]])
    assert skillings_mack(alone) == pytest.approx(skillings_mack(values))
    assert np.isnan(skillings_mack(np.full((3, 2), np.nan))[1])


def test_equal_models_with_missing_values_differ_as_often_as_they_should():
    rng = np.random.default_rng(0)
    p = []
    for _ in range(1000):
        values = rng.random((6, 20))
        values[rng.random(values.shape) < 0.2] = np.nan
        p.append(skillings_mack(values)[1])
    # 5 % ± three standard errors
    assert 0.029 <= np.mean(np.array(p) < 0.05) <= 0.071


def test_mean_ranks_by_hand():
    values = np.array([[3.0, 1.0, 5.0], [2.0, 1.0, np.nan], [1.0, np.nan, np.nan]])
    # 1 and 1.5; 2 and 1.5; 3; the last task ranks nobody
    assert mean_of(rank_tasks(values)) == pytest.approx([1.25, 1.75, 3.0])
    near = np.array([[0.1 + 0.2], [0.3]])  # 0.30000000000000004 and 0.3
    assert mean_of(rank_tasks(near)).tolist() == [1.5, 1.5]


def test_published_examples():
    """Four classifiers on 14 data sets: table 6 of Demšar (2006), whose ranks are printed there."""
    c45 = [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661]
    c45 += [0.583, 0.775, 1.0, 0.940, 0.619, 0.972, 0.957]
    m = [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668]
    m += [0.583, 0.838, 1.0, 0.962, 0.666, 0.981, 0.978]
    cf = [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609]
    cf += [0.563, 0.866, 1.0, 0.965, 0.614, 0.9751, 0.946]
    both = [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685]
    both += [0.625, 0.875, 1.0, 0.962, 0.669, 0.975, 0.970]
    values = np.array([c45, m, cf, both])
    assert mean_of(rank_tasks(values)) == pytest.approx([3.143, 2.000, 2.893, 1.964], abs=1e-3)
    # the paper's 9.28 does not correct for ties
    ranks = mean_of(rank_tasks(values))
    uncorrected = 12 * 14 / 20 * ((ranks**2).sum() - 25)
    assert uncorrected == pytest.approx(9.28, abs=0.01)
    assert skillings_mack(values)[0] > uncorrected
