"""Predictors of table rows."""

import numpy as np
import pandas as pd
import pytest

from karat.errors import Declined
from karat.models.predictors import ConstantPredictor, TablePredictor

ROWS = pd.DataFrame({"x": [0.0, 1.0, 10.0, 11.0], "w": ["a", "a", "b", "b"]})


def test_the_constant_predictor_knows_the_shares():
    fitted = ConstantPredictor("classes").fit(ROWS, np.array(["no", "no", "no", "yes"]))
    assert fitted.predict(ROWS).tolist() == ["no"] * 4
    assert fitted.predict_proba(ROWS).tolist() == [[0.75, 0.25]] * 4
    assert fitted.classes_.tolist() == ["no", "yes"]


def test_the_constant_predictor_knows_the_mean():
    fitted = ConstantPredictor("numbers").fit(ROWS, np.array([0.0, 0.0, 0.0, 4.0]))
    assert fitted.predict(ROWS).tolist() == [1.0] * 4
    assert not hasattr(fitted, "predict_proba")


def test_a_table_predictor_separates_what_can_be_separated():
    predictor = TablePredictor("sklearn.linear_model:LogisticRegression", kind="classes")
    fitted = predictor.fit(ROWS, np.array(["no", "no", "yes", "yes"]))
    assert fitted.predict(ROWS).tolist() == ["no", "no", "yes", "yes"]
    assert fitted.predict_proba(ROWS).shape == (4, 2)
    assert fitted.classes_.tolist() == ["no", "yes"]


def test_options_and_seed_reach_the_estimator():
    predictor = TablePredictor(
        numbers="sklearn.ensemble:RandomForestRegressor",
        options={"n_estimators": 3},
        kind="numbers",
        random_state=7,
    )
    forest = predictor.fit(ROWS, np.arange(4.0)).pipeline_[-1]
    assert (forest.n_estimators, forest.random_state) == (3, 7)


@pytest.mark.parametrize(
    "predictor, kind, said",
    [
        (TablePredictor(classes="a:B"), "numbers", "it predicts classes, not numbers"),
        (TablePredictor(numbers="a:B"), "classes", "it predicts numbers, not classes"),
        (TablePredictor("a:B", "a:B"), "classes", ""),
    ],
)
def test_it_declines_what_it_has_no_estimator_for(predictor, kind, said):
    assert predictor.declines(kind) == said


def test_fitting_what_it_declines_is_a_decline():
    with pytest.raises(Declined, match="it predicts classes, not numbers"):
        TablePredictor(classes="a:B", kind="numbers").fit(ROWS, np.arange(4.0))
