"""Stored answers: McNemar against statsmodels, a paired bootstrap against known spreads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from karat.analysis.pairing import _difference, _Units, mcnemar, paired_bootstrap
from karat.core.predictions import Predictions
from karat.errors import DefinitionError

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


# -- the bootstrap --------------------------------------------------------------------------


def mean_of(*folds: np.ndarray):
    def difference(drawn: list[np.ndarray]) -> float:
        return float(np.mean([f[rows].mean() for f, rows in zip(folds, drawn, strict=True)]))

    return difference


def test_the_interval_of_a_mean_matches_its_standard_error():
    rows = np.random.default_rng(0).normal(0.1, 1.0, 400)
    found = paired_bootstrap(mean_of(rows), [400], resamples=2000)
    error = rows.std() / 20
    assert found.difference == pytest.approx(rows.mean())
    assert found.high - found.low == pytest.approx(2 * 1.96 * error, rel=0.08)
    normal = 2 * stats.norm.sf(abs(rows.mean()) / error)
    assert found.p == pytest.approx(normal, abs=0.03)


def test_folds_are_drawn_by_themselves():
    # two folds, each of one value: nothing varies, however often they are drawn
    found = paired_bootstrap(mean_of(np.full(5, 0.2), np.full(9, 0.4)), [5, 9], resamples=50)
    assert (found.low, found.high) == pytest.approx((0.3, 0.3))
    assert found.p == pytest.approx(2 / 51)


def test_equal_models_have_no_difference():
    found = paired_bootstrap(lambda drawn: 0.0, [10], resamples=99)
    assert (found.difference, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)


def test_resamples_without_a_value_are_left_out():
    rows = np.array([np.nan, 1.0, 1.0, 1.0])
    found = paired_bootstrap(mean_of(rows), [4], resamples=200)
    assert 0 < found.resamples < 200 and (found.low, found.high) == (1.0, 1.0)
    lost = paired_bootstrap(lambda drawn: float("nan"), [4], resamples=10)
    assert lost.resamples == 0 and np.isnan(lost.p)


def test_the_same_seed_gives_the_same_interval():
    rows = np.random.default_rng(1).random(30) - 0.4
    one, other = (paired_bootstrap(mean_of(rows), [30], seed=3) for _ in range(2))
    assert one == other
    assert paired_bootstrap(mean_of(rows), [30], seed=4) != one
    turned = paired_bootstrap(mean_of(-rows), [30], seed=3)
    assert (turned.low, turned.high, turned.p) == pytest.approx((-one.high, -one.low, one.p))


# -- predictions ----------------------------------------------------------------------------


def test_a_metric_of_drawn_questions_by_hand():
    truth = [1.0, 2.0, 3.0]
    one = Predictions([1.0, 2.0, 5.0], truth)
    other = Predictions([2.0, 2.0, 3.0], truth)
    units = [_Units(one, other)]
    assert _difference(units, [np.array([0, 1, 2])], "mae") == pytest.approx((2 - 1) / 3)
    assert _difference(units, [np.array([2, 2, 2])], "mae") == pytest.approx(2.0)
    assert np.isnan(_difference(units, [np.array([0, 1, 2])], "acc"))


def test_a_metric_of_drawn_questions_equals_scikit_learns():
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(2)
    truth = np.array(["a", "b"] * 30, dtype=object)
    chances = rng.random((2, 60))
    both = [
        Predictions(
            np.where(p > 0.5, "b", "a"),
            truth,
            answers="classes",
            truths="classes",
            classes=("a", "b"),
            probabilities=np.column_stack([1 - p, p]),
        )
        for p in chances
    ]
    rows = rng.integers(60, size=60)
    one, other = (roc_auc_score(truth[rows] == "b", p[rows]) for p in chances)
    assert _difference([_Units(*both)], [rows], "auc") == pytest.approx(one - other)


def test_the_interval_is_near_scipys():
    rng = np.random.default_rng(3)
    one, other = rng.random(80), rng.random(80) * 0.8
    found = paired_bootstrap(mean_of(one - other), [80], resamples=4000)

    def apart(x, y, axis):
        return np.mean(x, axis=axis) - np.mean(y, axis=axis)

    expected = stats.bootstrap(
        (one, other), apart, paired=True, method="percentile", n_resamples=4000, random_state=rng
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=0.01)


def test_groups_are_drawn_as_a_whole():
    group = ["x", "y", "x"]
    one = Predictions([1.0, 2.0, 3.0], [0.0, 0.0, 0.0], group=group)
    unit = _Units(one, one)
    assert len(unit) == 2
    drawn, _ = unit.draw(np.array([0, 0]))
    assert drawn.predictions.tolist() == [1.0, 3.0, 1.0, 3.0]
    assert drawn.group.tolist() == ["0", "0", "1", "1"]
