"""Seeds of replicates, and which models use a seed."""

from __future__ import annotations

import pytest
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from karat.core.replicates import depends_on_seed, fit_seed, model_seed, seed_parameters
from karat.ext.models.automl import TablePredictor


def test_the_first_fit_has_the_seed_of_a_run_without_replicates():
    assert model_seed(42, 3) == 45
    assert model_seed(2**31 - 2, 1) == 0  # within 31 bits
    seeds = {model_seed(42, fold, fit) for fold in range(100) for fit in range(50)}
    assert len(seeds) == 5000


def test_runs_of_other_seeds_and_replicates_are_told_apart():
    abouts = [{"seed": 1}, {"seed": 2}, {"seed": 1, "replicate": 1}, {"seed": 1, "replicate": 2}]
    assert len({fit_seed(about) for about in abouts}) == 4
    assert fit_seed({"seed": 1, "replicate": 0}) == 1


@pytest.mark.parametrize(
    ("estimator", "uses"),
    [
        (RandomForestClassifier(), True),
        (make_pipeline(StandardScaler(), RandomForestClassifier()), True),
        (GaussianNB(), False),
        (LogisticRegression(), False),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),
        (LogisticRegression(solver="saga"), True),
        (Ridge(), False),
        (SVC(probability=True), True),
        (DummyClassifier(), True),
    ],
)
def test_a_model_uses_a_seed_if_a_parameter_for_it_has_an_effect(estimator, uses):
    assert depends_on_seed(estimator) is uses


def test_a_class_that_stores_a_random_state_uses_a_seed():
    class Own:
        def __init__(self):
            self.random_state = None

    assert depends_on_seed(Own()) and seed_parameters(Own()) == ["random_state"]


def test_a_model_may_say_whether_it_uses_a_seed():
    linear = "sklearn.linear_model:LogisticRegression"
    forest = "sklearn.ensemble:RandomForestRegressor"
    model = TablePredictor(classifier=linear, regressor=forest)
    assert not depends_on_seed(model, "classification")
    assert depends_on_seed(model, "regression")
    assert depends_on_seed(TablePredictor(classifier=linear, max_train_rows=9), "classification")
