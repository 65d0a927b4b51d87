"""FLAML and AutoGluon, if they are installed."""

import numpy as np
import pandas as pd
import pytest

from karat.models.contrib.automl_systems import AutoGluonPredictor, FlamlPredictor, table_for_automl

rng = np.random.default_rng(0)
X = pd.DataFrame({"n": rng.normal(size=120), "w": rng.choice(["b", "a", "c"], 120)})
Y = np.where((X["n"] > 0) == (X["w"] == "a"), "yes", "no")
NUMBERS = X["n"].to_numpy() * 3


def test_words_are_strings_and_numbers_do_not_change():
    table = table_for_automl(pd.DataFrame({1: [True, None], "n": [1.5, np.nan]}, index=[7, 8]))
    assert table.columns.tolist() == ["1", "n"] and table.index.tolist() == [0, 1]
    assert table["1"].iloc[0] == "True" and pd.isna(table["1"].iloc[1])
    assert table["n"].dtype == float


def test_flaml_searches_within_its_time():
    pytest.importorskip("flaml")
    limits = {"max_runtime_seconds": 5, "optimize": "auc", "random_state": 1}
    model = FlamlPredictor(kind="classification", learners=["rf"], **limits).fit(X, Y)
    assert model.predict_proba(X).shape == (120, 2)
    assert (model.predict(X) == Y).mean() > 0.8 and model.models_count_ >= 1
    assert set(model.artifacts(["leaderboard"])) == {"leaderboard/leaderboard.csv"}
    numbers = FlamlPredictor(kind="regression", seconds=3, learners=["rf"]).fit(X, NUMBERS)
    assert np.corrcoef(numbers.predict(X), NUMBERS)[0, 1] > 0.8


def test_autogluon_fits_within_its_time():
    pytest.importorskip("autogluon.tabular")
    forests = {"hyperparameters": {"RF": {}, "XT": {}}}
    limits = {"max_runtime_seconds": 20, "optimize": "auc", "random_state": 1}
    model = AutoGluonPredictor(kind="classification", options=forests, **limits).fit(X, Y)
    assert model.predict_proba(X).shape == (120, 2) and model.models_count_ == 3
    assert (model.predict(X) == Y).mean() > 0.8
    assert set(model.artifacts(["leaderboard", "info"])) == {
        *("leaderboard/leaderboard.csv", "info/models.json")
    }
    numbers = AutoGluonPredictor(kind="regression", seconds=15, options=forests).fit(X, NUMBERS)
    assert np.corrcoef(numbers.predict(X), NUMBERS)[0, 1] > 0.8
