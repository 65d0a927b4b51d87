"""Names of scikit-learn's metrics: equal values, Karat's names in tasks, suggestions."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import get_scorer, get_scorer_names

from karat.core.metric_names import ALIASES, FUNCTIONS, NEAREST, NEGATED_SCORERS, SCORERS
from karat.core.predictions import Predictions
from karat.core.task import Task
from karat.errors import DefinitionError
from karat.metrics.metric import get_metric, metric, score

CLUSTERINGS = {"ami", "ari", "completeness", "fowlkes_mallows", "homogeneity", "nmi", "v_measure"}
BINARY = {"f1", "precision", "recall", "roc_auc", "average_precision"}


def classified(classes: int):
    """Return a classifier, rows and labels of scikit-learn, and the predictions with names."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.clip((X[:, 0] + rng.normal(size=300) + 1).astype(int), 0, classes - 1)
    model = LogisticRegression().fit(X[:100], y[:100])
    names = np.array(["a", "b", "c"], dtype=object)
    tested = X[100:]
    predictions = Predictions(
        predictions=names[model.predict(tested)],
        target=names[y[100:]],
        answers="classes",
        truths="classes",
        probabilities=model.predict_proba(tested),
        classes=tuple(names[:classes]),
    )
    return model, tested, y[100:], predictions


@pytest.mark.parametrize("classes", [2, 3])
def test_a_scorer_and_its_metric_have_one_value(classes):
    model, X, y, predictions = classified(classes)
    for scorer, name in {**SCORERS, "neg_log_loss": "logloss"}.items():
        if name in CLUSTERINGS or name == "r2" or (classes > 2 and scorer in BINARY):
            continue
        value, reason = score(name, predictions)
        assert value is not None, reason
        assert value == pytest.approx(abs(get_scorer(scorer)(model, X, y))), scorer


def test_a_negated_scorer_and_its_metric_differ_by_the_sign():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = X[:, 0] + 5 + rng.normal(size=50) / 9
    model = LinearRegression().fit(X, y)
    predictions = Predictions(predictions=model.predict(X), target=y)
    for scorer, name in {**NEGATED_SCORERS, "r2": "r2"}.items():
        if name != "logloss":
            sign = -1 if scorer in NEGATED_SCORERS else 1
            assert score(name, predictions)[0] == pytest.approx(
                sign * get_scorer(scorer)(model, X, y)
            )
            assert get_metric(name).higher_is_better == (sign == 1)


def test_the_names_are_those_of_scikit_learn():
    import sklearn.metrics

    assert {*SCORERS, *NEGATED_SCORERS} <= {*get_scorer_names()}
    assert all(hasattr(sklearn.metrics, name) for name in FUNCTIONS)
    for name in {*ALIASES.values(), *(name for name, _ in NEAREST.values())}:
        assert get_metric(name).name == name
    assert not {*NEAREST} & {*ALIASES}


def test_a_task_has_the_names_of_karat():
    task = Task("t", "churn", metrics=["roc_auc", "auc", "neg_log_loss", "accuracy", "mine"])
    assert task.metrics == ("auc", "logloss", "accuracy", "mine")


def test_a_registered_metric_keeps_its_name(clean_registry):
    metric("auroc")(lambda predictions: 0.5)
    assert Task("t", "churn", metrics=["auroc"]).metrics == ("auroc",)
    assert get_metric("auroc").name == "auroc"


@pytest.mark.parametrize(
    "name, nearest",
    [
        ("aur_oc", "auc"),
        ("f_score", "f1"),
        ("acurracy", "acc"),
    ],
)
def test_suggestions_name_a_metric_of_karat(name, nearest):
    with pytest.raises(DefinitionError) as error:
        get_metric(name)
    assert f'Did you mean "{nearest}"?' in str(error.value)
