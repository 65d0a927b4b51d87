"""Regression metrics beside numbers worked out by hand and scikit-learn's."""

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.metrics import get_metric, score
from karat.predictions import Predictions

steady = settings(deadline=None, derandomize=True)

NAMES = ["mse", "rmse", "mae", "msle", "rmsle", "r2"]


def value(name, answers, truth):
    found, reason = score(name, Predictions(answers, truth))
    assert reason == ""
    return found


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mse", (1 + 0 + 4) / 3),
        ("rmse", np.sqrt(5 / 3)),
        ("mae", 1.0),
        ("msle", (np.log(2) ** 2 + np.log(6 / 4) ** 2) / 3),
        ("rmsle", np.sqrt((np.log(2) ** 2 + np.log(6 / 4) ** 2) / 3)),
        # the truth 0 1 5 has the mean 2: spread 4 + 1 + 9
        ("r2", 1 - 5 / 14),
    ],
)
def test_three_rows_by_hand(name, expected):
    assert value(name, [1, 1, 3], [0, 1, 5]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("seed", range(10))
def test_they_are_scikit_learns(seed):
    rng = np.random.default_rng(seed)
    truth, answers = rng.gamma(2, size=(2, 50)) * 10.0 ** rng.integers(-3, 4)
    expected = {
        "mse": sk.mean_squared_error,
        "rmse": sk.root_mean_squared_error,
        "mae": sk.mean_absolute_error,
        "msle": sk.mean_squared_log_error,
        "rmsle": sk.root_mean_squared_log_error,
        "r2": sk.r2_score,
    }
    for name, function in expected.items():
        assert value(name, answers, truth) == pytest.approx(function(truth, answers), rel=1e-12)


@pytest.mark.parametrize("name", ["msle", "rmsle"])
def test_negative_values_have_no_logarithm(name):
    assert score(name, Predictions([1, -2], [1, 2]))[1] == (
        f"Scoring {name}: 1 of 2 predictions are negative."
    )
    assert score(name, Predictions([1, 2], [-1, -2]))[1] == (
        f"Scoring {name}: 2 of 2 targets are negative."
    )


@pytest.mark.parametrize(("answers", "truth"), [([1, 2], [3, 3]), ([3, 3], [3, 3]), ([1], [1])])
def test_a_constant_truth_has_no_variance_to_explain(answers, truth):
    assert score("r2", Predictions(answers, truth)) == (None, "Scoring r2: the target is constant.")


def test_constant_answers_at_the_mean_explain_nothing():
    assert value("r2", [2, 2, 2], [1, 2, 3]) == 0.0


def test_infinite_answers_give_a_reason():
    for name in NAMES:
        found, reason = score(name, Predictions([np.inf, 1], [1, 2]))
        assert found is None
        assert "inf" in reason


VALUES = st.lists(
    st.tuples(*[st.floats(0, 1e6, allow_subnormal=False)] * 2), min_size=1, max_size=30
)


@steady
@given(VALUES, st.sampled_from(NAMES), st.randoms())
def test_range_and_order_of_rows(pairs, name, random):
    low, high = get_metric(name).range
    found, reason = score(name, Predictions(*zip(*pairs, strict=True)))
    random.shuffle(pairs)
    shuffled, other_reason = score(name, Predictions(*zip(*pairs, strict=True)))
    assert reason == other_reason
    if found is not None:
        assert low <= found <= high
        assert shuffled == pytest.approx(found, rel=1e-9, abs=1e-12)


@steady
@given(VALUES, st.sampled_from(NAMES))
def test_the_truth_itself_is_best(pairs, name):
    truth = [pair[1] for pair in pairs]
    part = get_metric(name)
    found, _ = score(name, Predictions(truth, truth))
    assert found == (part.range[1] if part.higher_is_better else 0.0) or (
        name == "r2" and len(set(truth)) == 1
    )
