"""Bootstrap intervals against SciPy, corrected intervals by hand."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from karat.core.torch_random import interval_seeds, resamples
from karat.errors import DefinitionError
from karat.stats.intervals import (
    Resampling,
    bootstrap,
    corrected,
    describe,
    pooled_bootstrap,
    pooled_corrected,
    resampled_means,
)


def short(values: np.ndarray) -> np.ndarray:
    """Return values of so few bits that their sums are exact, whatever their order."""
    return np.round(values * 1024) / 1024


@pytest.mark.parametrize("confidence", [0.99, 0.9])
@pytest.mark.parametrize("size", [2, 3, 10, 50])
@pytest.mark.parametrize("faithful", [False, True])
def test_the_bootstrap_equals_scipys(size, confidence, faithful):
    values = np.random.default_rng(size).gamma(2, size=(size, 3))
    values = values if faithful else short(values)
    low, high = bootstrap(values, 77, confidence, faithful=faithful)
    for column in range(3):
        mean = values[:, column].mean()
        theirs = stats.bootstrap(
            (values[:, column],),
            lambda x, axis=-1, mean=mean: mean - np.mean(x, axis=axis),
            n_resamples=10_000,
            confidence_level=confidence,
            random_state=77,
        ).confidence_interval
        assert low[column] == pytest.approx(mean + theirs.low, abs=1e-12)
        assert high[column] == pytest.approx(mean + theirs.high, abs=1e-12)


def test_resamples_are_those_of_numpys_old_generator():
    drawn = resamples(7, 100, 5)
    assert (drawn == np.random.RandomState(5).randint(0, 7, size=(100, 7))).all()
    values = np.random.default_rng(0).normal(size=(7, 4))
    assert resampled_means(values, drawn) == pytest.approx(values[drawn].mean(axis=1))


def test_each_metric_has_a_seed_by_its_place_among_the_sorted():
    draws = np.random.RandomState(1260762361)
    first, second = draws.randint(0, 2**32 - 1), draws.randint(0, 2**32 - 1)
    assert interval_seeds(["metric", "loss"], 1260762361) == {"loss": first, "metric": second}


def test_rounding_does_not_move_the_interval():
    """A resample of every value once is the mean itself, also where its sum is rounded."""
    values = np.random.default_rng(3).normal(size=(5, 1))
    exact = short(values)
    plain = np.array(bootstrap(values, 1)) - values.mean()
    rough = np.array(bootstrap(exact, 1)) - exact.mean()
    assert plain == pytest.approx(rough, abs=5e-3)
    shifted = np.array(bootstrap(exact + 1e-3, 1)) - (exact + 1e-3).mean()
    assert shifted == pytest.approx(rough, abs=1e-12)


def test_one_value_has_itself_as_interval_and_equal_ones_have_none():
    assert [each.tolist() for each in bootstrap(np.array([[0.3]]), 0)] == [[0.3], [0.3]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        low, high = bootstrap(np.full((4, 1), 0.3), 0)
    assert np.isnan([low, high]).all()


def test_columns_are_described_over_the_rows_that_have_them():
    table = np.array([[1.0, 4.0, 7.0], [2.0, 6.0, np.nan], [6.0, np.nan, np.nan]])
    found = describe(table, 0, Resampling(), (0.0, math.inf))
    assert found["avg"].tolist() == [3.0, 5.0, 7.0]
    assert found["std"] == pytest.approx([math.sqrt(7), math.sqrt(2), 0.0])
    for column, rows in enumerate((3, 2, 1)):
        low, high = bootstrap(table[:rows, column : column + 1], 0)
        assert found["ci99_low"][column] == max(low[0], 0) and found["ci99_high"][column] == high[0]


def test_an_interval_stays_within_the_range_and_around_equal_values():
    """Nine times nothing and one 1: the reflected interval begins below 0."""
    table = np.array([[0.0, 0.5]] * 9 + [[1.0, 0.5]])
    plain = describe(table, 1, Resampling(faithful=True), (0.0, 1.0))
    assert plain["ci99_low"][0] < -0.1 and np.isnan(plain["ci99_low"][1])
    found = describe(table, 1, Resampling(), (0.0, 1.0))
    assert found["ci99_low"].tolist() == [0.0, 0.5]
    assert found["ci99_high"].tolist() == [plain["ci99_high"][0], 0.5]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(0, 1, allow_subnormal=False), min_size=1, max_size=20),
    st.integers(0, 2**32 - 1),
)
def test_every_interval_of_shares_lies_between_0_and_1(values, seed):
    found = describe(np.array(values)[:, None], seed, Resampling(times=200), (0.0, 1.0))
    assert 0 <= found["ci99_low"][0] <= found["ci99_high"][0] <= 1


def test_names_contain_the_confidence():
    found = describe(np.ones((2, 1)), 0, Resampling(0.95), (0, 1))
    assert list(found) == ["avg", "std", "ci95_low", "ci95_high"]
    assert list(describe(np.ones((2, 1)), 0, Resampling(0.995), (0, 1)))[2] == "ci99.5_low"


@pytest.mark.parametrize("wrong", [{"confidence": 1.0}, {"confidence": 99}, {"times": 0}])
def test_wrong_options_raise(wrong):
    with pytest.raises(DefinitionError, match=r"confidence|resamples"):
        Resampling(**wrong)


def test_the_corrected_interval_by_hand():
    """Ten folds of five parts: 0.116/9 times 1/10 + 1/4; t of 9 degrees at 99 % is 3.249836."""
    values = np.array([0.0, 0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.2, 0.3, 0.4])[:, None]
    squares = 0.0324 + 3 * 0.0064 + 4 * 0.0004 + 0.0144 + 0.0484
    half = 3.249836 * math.sqrt(squares / 9 * (1 / 10 + 1 / 4))
    low, high = corrected(values, parts=5)
    assert low[0] == pytest.approx(0.18 - half, abs=1e-6)
    assert high[0] == pytest.approx(0.18 + half, abs=1e-6)
    naive = stats.t.interval(0.99, 9, 0.18, stats.sem(values[:, 0]))
    ratio = math.sqrt((1 / 10 + 1 / 4) / (1 / 10))
    assert high[0] - low[0] == pytest.approx(ratio * (naive[1] - naive[0]))


def test_one_fold_has_no_corrected_interval_and_equal_ones_have_no_width():
    assert np.isnan(corrected(np.array([[0.5]]), 5)).all()
    low, high = corrected(np.full((10, 1), 0.25), 5)
    assert low.tolist() == high.tolist() == [0.25]


def test_the_corrected_interval_of_two_tasks_by_hand():
    """Variances 0.02 and 0.08 of two folds in two parts: 1.5 times as much, Welch's degrees."""
    a, b = np.array([[0.4], [0.6]]), np.array([[0.3], [0.7]])
    first, second = 0.02 * 1.5, 0.08 * 1.5
    degrees = (first + second) ** 2 / (first**2 + second**2)
    half = stats.t.ppf(0.95, degrees) * math.sqrt(first + second) / 2
    low, high = pooled_corrected([a, b], [2, 2], confidence=0.9)
    assert (low[0], high[0]) == pytest.approx((0.5 - half, 0.5 + half))


def test_the_percentile_interval_of_some_tasks():
    rng = np.random.default_rng(0)
    tasks = {name: rng.normal(0.5, 0.1, (50, 1)) for name in "ab"}
    low, high = pooled_bootstrap(tasks, 0, 0.9, 20_000)
    middle = (tasks["a"].mean() + tasks["b"].mean()) / 2
    error = math.sqrt(tasks["a"].var() / 50 + tasks["b"].var() / 50) / 2
    assert (high[0] - low[0]) / 2 == pytest.approx(1.645 * error, rel=0.03)
    assert (high[0] + low[0]) / 2 == pytest.approx(middle, abs=error / 10)
    other = pooled_bootstrap(dict(reversed(tasks.items())), 0, 0.9, 20_000)
    assert other[0][0] == pytest.approx(low[0]) and other[1][0] == pytest.approx(high[0])
