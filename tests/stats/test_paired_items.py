"""Tests on items: McNemar against statsmodels, max-T against t-tests."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.errors import DefinitionError
from karat.stats.paired_items import max_t, mcnemar

RIGHT = st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60)


def counted(left: int, right: int, both: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Return right answers of two: so many of the first alone, of the second alone, of both."""
    one = np.repeat([True, False, True], [left, right, both])
    other = np.repeat([False, True, True], [left, right, both])
    return one, other


# -- McNemar --------------------------------------------------------------------------------


def test_mcnemar_by_hand():
    found = mcnemar(*counted(5, 1))
    assert (found.first_only, found.second_only, found.exact) == (5, 1, True)
    assert found.p == pytest.approx(2 * 7 / 64)  # none or one of six coins
    found = mcnemar(*counted(30, 10))
    assert not found.exact and found.statistic == pytest.approx(19**2 / 40)
    assert found.p == pytest.approx(stats.chi2.sf(19**2 / 40, 1))
    assert mcnemar(*counted(20, 20)).p == 1.0


@pytest.mark.parametrize(("left", "right"), [(0, 0), (3, 0), (12, 4), (30, 9), (17, 18)])
@pytest.mark.parametrize("exact", [True, False])
def test_mcnemar_equals_that_of_statsmodels(left, right, exact):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    if not exact and not left + right:
        pytest.skip("theirs divides by zero")
    expected = tables.mcnemar([[5, left], [right, 7]], exact=exact, correction=True)
    assert mcnemar(*counted(left, right), exact=exact).p == pytest.approx(expected.pvalue)


@given(RIGHT)
def test_mcnemar_is_symmetric_and_uses_only_disagreements(answers):
    one, other = (np.array(each) for each in zip(*answers, strict=True))
    found, turned = mcnemar(one, other), mcnemar(other, one)
    assert found.p == turned.p and found.first_only == turned.second_only
    apart = one != other
    assert mcnemar(one[apart], other[apart]).p == found.p
    assert mcnemar(one, one).p == 1.0


def test_answers_must_be_to_the_same_questions():
    with pytest.raises(DefinitionError, match="3 answers with 2"):
        mcnemar([1, 0, 1], [1, 0])


# -- max-T over items -----------------------------------------------------------------------


def test_two_models_have_the_p_of_a_paired_t_test():
    rng = np.random.default_rng(0)
    one = rng.normal(0.0, 1.0, 400)
    other = one + rng.normal(0.12, 1.0, 400)
    expected = stats.ttest_rel(one, other).pvalue
    assert 0.001 < expected < 0.1
    assert max_t([one, other], resamples=9999)[0, 1] == pytest.approx(expected, abs=0.006)


def test_right_answers_of_two_models_have_the_exact_p_of_mcnemar():
    one, other = counted(12, 4, both=20)
    found = max_t([one, other], centered=False, resamples=19_999)[0, 1]
    assert found == pytest.approx(mcnemar(one, other, exact=True).p, abs=0.006)


def test_adjusted_p_rise_with_the_number_of_models():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(8, 120))
    values[0] += 0.35
    pair, family = max_t(values[:2])[0, 1], max_t(values)[0, 1]
    assert pair < 0.05 and family >= pair
    everything = max_t(values)
    assert np.array_equal(everything, everything.T) and (np.diag(everything) == 1).all()
    # an order of the models changes no p by more than the resamples do
    turned = max_t(values[::-1])[::-1, ::-1]
    assert turned == pytest.approx(everything, abs=0.03)


def test_equal_models_never_differ_and_few_items_are_not_tested():
    assert max_t(np.ones((2, 50)))[0, 1] == 1.0
    assert np.isnan(max_t(np.eye(2, 5))[0, 1])
    # a constant difference is as sure as the number of items: 2 / 2⁸ for eight
    shifted = np.vstack([np.zeros(8), np.ones(8)])
    assert max_t(shifted, centered=False, resamples=19_999)[0, 1] == pytest.approx(2**-7, abs=0.002)
