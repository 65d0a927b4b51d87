"""Small versions of benchmarks/retraining.py: learners that are trained several times."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from karat.analysis.item_values import contributions
from karat.core.predictions import Predictions
from karat.metrics.metric import score

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def simulated():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import retraining
    finally:
        sys.path.remove(str(BENCHMARKS))
    return retraining


def shares(simulated, setting, design, boards):
    """Return how often models are separated, and gates fail, as numbers."""
    how = simulated.DESIGNS[design]
    made = simulated.boards(setting, how, boards)
    found = simulated.shares(setting, how, setting.metrics[0], made)
    return {name: float(number) for name, number in found.items()}


@pytest.mark.parametrize("metric", ["acc", "auc", "f1_macro"])
def test_item_values_of_arrays_are_those_of_predictions(simulated, metric):
    rng = np.random.default_rng(0)
    target = (rng.random(137) > 0.4).astype(float)
    p = np.round(np.clip(0.3 * target + 0.7 * rng.random(137), 0, 1), 2)
    named = np.where(np.stack([p > 0.5, target > 0.5]), "b", "a")
    kinds = {"answers": "classes", "truths": "classes", "classes": ("a", "b")}
    fold = Predictions(*named, probabilities=np.column_stack([1 - p, p]), **kinds)
    values, whole = simulated.item_values(metric, p, target, 5), simulated.score(metric, p, target)
    expected = contributions(metric, [fold] * 5)[: len(values)]
    assert values == pytest.approx(expected) and whole == pytest.approx(score(metric, fold)[0])


def test_errors_of_arrays_are_those_of_predictions(simulated):
    rng = np.random.default_rng(1)
    target, answers = rng.normal(size=(2, 80))
    values, whole = (
        simulated.item_values("rmse", answers, target, 1),
        simulated.score("rmse", answers, target),
    )
    fold = Predictions(answers, target)
    assert values == pytest.approx(contributions("rmse", [fold]))
    assert whole == pytest.approx(-score("rmse", fold)[0])


def test_learners_on_arrays_are_those_of_scikit_learn(simulated):
    rng = np.random.default_rng(2)
    X, new = rng.normal(size=(2, 150, 6))
    signal = X[:, 0] + rng.normal(size=150)
    target = (signal > 0).astype(float)
    expected = LogisticRegression(tol=1e-10).fit(X, target).predict_proba(new)[:, 1]
    assert simulated.logistic((X, target), new, 0) == pytest.approx(expected, abs=1e-6)
    layers = [simulated._layer(rows, 7, simulated.FEATURES) for rows in (X, new)]
    expected = Ridge(alpha=1.0).fit(layers[0], signal).predict(layers[1])
    assert simulated.ridge((X, signal), new, 7) == pytest.approx(expected)


@pytest.mark.parametrize(("design", "models"), [("5 folds", 2), ("5 folds", 4), ("3 seeds", 2)])
def test_equal_learners_are_rarely_separated(simulated, design, models):
    """Ridge regressions on random features; their items alone separate more than a sixth."""
    setting = simulated.Setting(simulated.ridge, ("rmse",), models, 1000)
    found = shares(simulated, setting, design, 60)
    assert found["separated"] <= 0.1 and found["as fitted"] > 1 / 6
    if models == 2:
        assert found["gate"] <= 0.1 < found["gate, as fitted"]


def test_training_rows_that_folds_share_are_part_of_the_noise(simulated):
    setting = simulated.Setting(simulated.logistic, ("acc",), 2, 200, "blocks")
    found = shares(simulated, setting, "5 folds", 100)
    assert found["separated"] <= 0.1 and found["gate"] <= 0.1


def test_stable_learners_keep_most_of_the_power(simulated):
    setting = simulated.Setting(simulated.logistic, ("acc",), 2, 500, "power", 1.5)
    found = shares(simulated, setting, "5 folds", 100)
    assert found["as fitted"] > 0.6 and found["share"] >= 0.6


def test_repeats_of_folds_separate_few_equal_learners_and_keep_the_power(simulated):
    """Logistic models on exchangeable columns, and those of which one lacks a column."""
    equal = simulated.Setting(simulated.logistic, ("acc",), 2, 150, "blocks")
    differ = simulated.Setting(simulated.logistic, ("acc",), 2, 400, "power", 1.2)
    many = simulated.Design(4, 5)
    found = [
        simulated.shares(setting, many, "acc", simulated.boards(setting, many, 60))
        for setting in (equal, differ)
    ]
    assert float(found[0]["separated"]) <= 0.1 and float(found[0]["gate"]) <= 0.1
    assert 0.3 < float(found[1]["as fitted"]) < 0.9 and float(found[1]["share"]) >= 2 / 3


def test_kept_boards_are_read_again(simulated, tmp_path):
    setting = simulated.Setting(simulated.ridge, ("rmse",), 2, 60)
    design = simulated.DESIGNS["3 seeds"]
    made = simulated.boards(setting, design, 2, tmp_path)
    again = simulated.boards(setting, design, 2, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    assert np.array_equal(made[1]["rmse"].values, again[1]["rmse"].values)
