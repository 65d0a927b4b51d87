"""What items add to a score: gains, pseudo-values, clusters, and error rates of their tests."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from karat.analysis.item_values import contributions
from karat.core.predictions import Predictions
from karat.errors import DataError
from karat.metrics.metric import score
from karat.stats.paired_items import max_t


def simulated(rng: np.random.Generator, models: int, items: int, better: float = 0.0) -> list:
    """Return classifiers of equal quality, fitted once: the logit of the truth plus own noise."""
    logit = 1.5 * rng.normal(size=items)
    truth = np.where(rng.random(items) < 1 / (1 + np.exp(-logit)), "b", "a")
    found = []
    for model in range(models):
        noisy = (
            logit + rng.normal(size=items) + (model == 0) * better * np.where(truth == "b", 1, -1)
        )
        p = 1 / (1 + np.exp(-noisy))
        kinds = {"answers": "classes", "truths": "classes", "classes": ("a", "b")}
        chances = np.column_stack([1 - p, p])
        found.append(
            Predictions(np.where(p > 0.5, "b", "a"), truth, probabilities=chances, **kinds)
        )
    return found


@pytest.mark.parametrize("metric", ["acc", "logloss", "auc"])
def test_few_families_of_equal_models_are_separated(metric):
    rng = np.random.default_rng(3)
    false = 0
    for _ in range(60):
        models = simulated(rng, 4, 80)
        values = np.array([contributions(metric, [each]) for each in models])
        false += bool((max_t(values, centered=metric != "acc", resamples=199) < 0.05).any())
    # 5 % of 60 are 3; more than 8 have a chance below 0.5 %
    assert false <= 8 and stats.binom.sf(8, 60, 0.05) < 0.005


def test_a_clearly_better_model_is_separated_in_every_metric():
    models = simulated(np.random.default_rng(5), 3, 150, better=2.0)
    for metric in ("acc", "logloss", "brier", "auc", "balacc", "f1_macro"):
        p = max_t(np.array([contributions(metric, [each]) for each in models]), resamples=499)
        assert (p[0, 1:] < 0.05).all() and p[1, 2] > 0.05, metric


# -- what each item contributes -------------------------------------------------------------


@pytest.mark.parametrize("metric", ["acc", "logloss", "brier"])
def test_the_mean_gain_is_the_score(metric):
    (model,) = simulated(np.random.default_rng(0), 1, 50)
    sign = 1 if metric == "acc" else -1
    expected = score(metric, model)[0]
    assert sign * contributions(metric, [model]).mean() == pytest.approx(expected)


def test_numbers_have_squared_or_absolute_errors():
    given = Predictions([1.0, 2.0, 5.0], [1.0, 3.0, 3.0])
    assert contributions("mae", [given]).tolist() == [0.0, -1.0, -2.0]
    assert contributions("rmse", [given]).tolist() == [0.0, -1.0, -4.0]
    with pytest.raises(DataError):
        contributions("acc", [given])


def test_pseudo_values_have_the_spread_of_delong():
    """The variance of an AUC by its jackknife, against the closed form of DeLong."""
    (model,) = simulated(np.random.default_rng(2), 1, 400)
    p, positive = model.probabilities[:, 1], model.target == "b"
    above = (p[positive][:, None] > p[~positive][None, :]).astype(float)
    tens, ones = above.mean(axis=1), above.mean(axis=0)
    delong = tens.var(ddof=1) / len(tens) + ones.var(ddof=1) / len(ones)
    values = contributions("auc", [model])
    assert values.mean() == pytest.approx(above.mean(), abs=0.002)
    assert values.var(ddof=1) / len(values) == pytest.approx(delong, rel=0.35)


def test_groups_count_as_a_whole():
    group = [f"q{i // 2}" for i in range(40)]
    rank = [1, 2] * 20
    given = Predictions(
        ["a"] * 40, ["a"] * 40, answers="items", truths="items", group=group, rank=rank
    )
    assert len(contributions("mrr", [given])) == 20
