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


# -- clusters -------------------------------------------------------------------------------


def clustered(rng: np.random.Generator, clusters: int, size: int) -> tuple[Predictions, np.ndarray]:
    """Return right and wrong answers, and the cluster of each."""
    labels = np.repeat([f"c{i}" for i in range(clusters)], size)
    right = np.repeat(rng.random(clusters), size) > rng.random(clusters * size)
    kinds = {"answers": "classes", "truths": "classes", "classes": ("a", "b")}
    p = np.where(right, 0.8, 0.3) + 0.1 * rng.random(len(right))
    chances = np.column_stack([p, 1 - p])
    target = np.full(len(right), "a", dtype=object)
    target[::2] = "b"
    chances[::2] = chances[::2, ::-1]
    predicted = np.where(chances[:, 0] > 0.5, "a", "b")
    return Predictions(predicted, target, probabilities=chances, **kinds), labels


@pytest.mark.parametrize("metric", ["acc", "logloss", "auc", "balacc"])
def test_a_cluster_is_one_unit_and_the_mean_stays_the_score(metric):
    answers, labels = clustered(np.random.default_rng(0), 30, 8)
    values = contributions(metric, [answers], [labels])
    assert len(values) == 30
    expected = score(metric, answers)[0] * (-1 if metric == "logloss" else 1)
    assert values.mean() == pytest.approx(
        expected, abs=0.02 if metric in ("auc", "balacc") else 1e-9
    )


def test_the_spread_over_clusters_holds_what_items_share():
    rng = np.random.default_rng(1)
    errors, found = [], []
    for _ in range(300):
        answers, labels = clustered(rng, 40, 10)
        values = contributions("acc", [answers], [labels])
        errors.append(values.std(ddof=1) / np.sqrt(len(values)))
        found.append(values.mean())
    assert np.mean(errors) == pytest.approx(np.std(found), rel=0.12)
    single = contributions("acc", [answers])
    assert single.std() / np.sqrt(len(single)) < 0.65 * np.mean(errors)


def test_clusters_may_have_items_in_several_folds():
    answers, labels = clustered(np.random.default_rng(2), 12, 10)
    order = np.random.default_rng(3).permutation(len(labels))
    halves = [order[:60], order[60:]]
    for metric in ("acc", "auc"):
        folds = [answers.take(rows) for rows in halves]
        values = contributions(metric, folds, [labels[rows] for rows in halves])
        assert len(values) == 12


def test_clusters_of_unequal_size_count_by_their_items():
    numbers = Predictions(np.array([1.0, 1.0, 1.0, 5.0]), np.zeros(4))
    values = contributions("mae", [numbers], [np.array(["a", "a", "a", "b"])])
    # mean -2; the sums of deviations are +3 and -3, times 2 clusters / 4 items
    assert values.tolist() == [-0.5, -3.5]


# -- copies of a model ----------------------------------------------------------------------

COPIED = ("acc", "logloss", "brier", "auc", "balacc", "f1_macro")


@pytest.mark.parametrize("size", [0.0, 1e-16, 1e-13, 1e-11, 1e-9, 1e-7, 1e-6])
@pytest.mark.parametrize("metric", [*COPIED, "rmse", "mae", "mse", "r2", "spearman"])
def test_a_copy_of_a_model_changes_no_other_verdict(metric, size):
    rng = np.random.default_rng(8)
    if metric in COPIED:
        models = simulated(rng, 3, 150, better=0.4)
    else:
        target = 1000 + 100 * rng.normal(size=150)
        spreads = (20.0, 30.0, 60.0)
        models = [Predictions(target + s * rng.normal(size=150), target) for s in spreads]
    copies = [*models, _copy(models[1], 1 + size * rng.normal(size=150))]
    alone, beside = (
        max_t(np.array([contributions(metric, [each]) for each in made]), resamples=999)
        for made in (models, copies)
    )
    assert beside[1, 3] > 0.05
    assert ((beside[:3, :3] < 0.05) == (alone < 0.05)).all()
    assert beside[:3, :3] == pytest.approx(alone, abs=0.03)


def _copy(model: Predictions, factor: np.ndarray) -> Predictions:
    if model.probabilities is None:
        return Predictions(model.predictions * factor, model.target)
    p = np.clip(model.probabilities[:, 1] * factor, 0, 1)
    kinds = {"answers": "classes", "truths": "classes", "classes": model.classes}
    chances = np.column_stack([1 - p, p])
    return Predictions(model.predictions, model.target, probabilities=chances, **kinds)
