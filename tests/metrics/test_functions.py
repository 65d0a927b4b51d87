"""Metric functions and scorers of scikit-learn: its values, the right direction, one name."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from sklearn import metrics
from sklearn.metrics import get_scorer_names, make_scorer

import karat
from karat.core.metric_names import NEGATED_SCORERS
from karat.core.predictions import Predictions
from karat.errors import DefinitionError
from karat.metrics.functions import function_name, scikit_learn_metric
from karat.metrics.metric import get_metric, score

RNG = np.random.default_rng(4)
ROWS = 60

pytestmark = pytest.mark.usefixtures("clean_registry")


def of_classes(labels, weight=None):
    """Return random Predictions of these labels, with the arrays that scikit-learn takes."""
    truth = np.concatenate([labels, RNG.choice(labels, ROWS - len(labels))])
    probabilities = RNG.dirichlet(np.ones(len(labels)), ROWS)
    order = np.argsort(np.array(list(map(str, labels))))
    answers = np.asarray(labels)[probabilities.argmax(axis=1)]
    made = Predictions(
        answers.astype(str),
        truth.astype(str),
        "classes",
        "classes",
        classes=tuple(np.array(labels).astype(str)[order]),
        probabilities=probabilities[:, order],
        weight=weight,
    )
    return made, truth, answers, probabilities


def value(metric, predictions):
    found, reason = score(function_name(metric), predictions)
    assert reason == ""
    return found


@pytest.mark.parametrize("labels", [[0, 1], [1, 2], [2, 10], ["no", "yes"]])
def test_two_classes(labels):
    made, truth, answers, probabilities = of_classes(labels)
    last = sorted(labels, key=str)[1]  # Karat's positive class
    positive = {} if 1 in labels else {"pos_label": last}
    for function in (metrics.f1_score, metrics.recall_score, partial(metrics.fbeta_score, beta=2)):
        assert value(function, made) == function(truth, answers, **positive)
    assert value(metrics.accuracy_score, made) == metrics.accuracy_score(truth, answers)
    of_last, scores = truth == last, probabilities[:, labels.index(last)]
    auc = metrics.roc_auc_score(of_last, scores)
    assert value(metrics.roc_auc_score, made) == pytest.approx(auc)
    assert value(metrics.log_loss, made) == pytest.approx(metrics.log_loss(of_last, scores))


@pytest.mark.parametrize("labels", [[0, 2, 10], ["a", "b", "c", "d"]])
def test_several_classes(labels):
    made, truth, answers, probabilities = of_classes(labels)
    auc = partial(metrics.roc_auc_score, multi_class="ovr")
    assert value(auc, made) == pytest.approx(auc(truth, probabilities))
    assert value(metrics.log_loss, made) == pytest.approx(metrics.log_loss(truth, probabilities))
    kappa = metrics.cohen_kappa_score
    assert value(kappa, made) == kappa(truth, answers)
    assert score("roc_auc_ovr", made)[0] == pytest.approx(auc(truth, probabilities))


def test_numbers_and_weights():
    truth, answers, weight = RNG.random(9), RNG.random(9), RNG.random(9)
    made = Predictions(answers, truth, weight=weight)
    rmse = metrics.root_mean_squared_error(truth, answers, sample_weight=weight)
    assert value(metrics.root_mean_squared_error, made) == rmse
    assert score("neg_root_mean_squared_error", made)[0] == rmse
    slowest = metrics.max_error(truth, answers)
    assert score("neg_max_error", Predictions(answers, truth))[0] == -slowest
    pinball = partial(metrics.mean_pinball_loss, alpha=0.9)
    assert value(pinball, made) == pinball(truth, answers, sample_weight=weight)


def test_every_scorer_of_scikit_learn_is_a_metric_and_only_losses_of_karat_are_not_negated():
    for name in get_scorer_names():
        assert get_metric(name).higher_is_better is (name not in NEGATED_SCORERS), name


@pytest.mark.parametrize(
    "metric, name, higher",
    [
        (metrics.f1_score, "f1_score", True),
        (metrics.mean_absolute_error, "mae", False),
        (metrics.log_loss, "logloss", False),
        (metrics.zero_one_loss, "zero_one_loss", False),
        (partial(metrics.fbeta_score, beta=2), "fbeta_score(beta=2)", True),
        (make_scorer(metrics.f1_score, average="macro"), "f1_score(average='macro')", True),
        (
            make_scorer(metrics.mean_squared_error, greater_is_better=False),
            "mse",
            False,
        ),
    ],
)
def test_names_of_scikit_learn_are_found_in_every_process(metric, name, higher):
    assert function_name(metric) == name
    assert get_metric(name).higher_is_better is higher
    assert scikit_learn_metric(name) in (None, get_metric(name))


def double_loss(y_true, y_pred):
    return float(np.abs(y_true - y_pred).mean() * 2)


def test_own_functions_are_registered_with_their_direction():
    assert function_name(double_loss) == "double_loss"
    assert not get_metric("double_loss").higher_is_better
    negated = make_scorer(double_loss, greater_is_better=False)
    assert get_metric(function_name(negated)).higher_is_better
    made = Predictions([1.0, 2.0], [1.0, 4.0])
    assert score("double_loss", made) == (2.0, "")
    assert score("neg_double_loss", made) == (-2.0, "")


def test_a_decorated_function_has_its_registered_name():
    @karat.metric("own error", higher_is_better=False)
    def own_error(predictions):
        return 0.5

    assert function_name(own_error) == "own error"


def acc(y_true, y_pred):
    return 1.0


def of_estimator(estimator, X, y):
    return 1.0


@pytest.mark.parametrize(
    "metric, word",
    [
        (lambda y_true, y_pred: 1.0, "needs a name"),
        (acc, 'there is a metric "acc"'),
        (of_estimator, "make_scorer"),
        (partial(metrics.fbeta_score, 2), "name the arguments"),
        (7, "a name or a function"),
    ],
)
def test_what_is_not_a_metric(metric, word):
    with pytest.raises(DefinitionError, match=word):
        karat.Task("t", "adult", metrics=[metric])


@pytest.mark.parametrize("name", ["f2_score", "neg_f3", "fbeta_score(", "fbeta_score(beta=x)"])
def test_unknown_names_are_an_error(name):
    with pytest.raises(DefinitionError):
        get_metric(name)
