"""Declines: the reason is told before anything runs, and nothing where a model takes a task."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from karat.dataset import Dataset
from karat.declines import declines
from karat.models.adapters import adapt
from karat.models.base import Model
from karat.models.tables import OneHotTable
from karat.task import Task

TABLE = pd.DataFrame({"x": range(6), "z": list("abcabc"), "y": ["p", "q"] * 3})
CLASSES = Dataset.from_table(TABLE, "y", name="six")
NUMBERS = Dataset.from_table(TABLE.assign(y=np.arange(6) / 7), "y", name="six", kind="numbers")
TEXTS = Dataset.from_columns(TABLE, ["z"], "y")
ENTITIES = Dataset.from_columns(TABLE, ["z"], "y", modality="entity")
PAIRS = Dataset.from_columns(TABLE.assign(w=list("bcabca")), ["z", "w"], "y")
BAGS = Dataset.from_columns(TABLE.assign(z=[{"a": 1, "b": 2}] * 6), ["z"], "y")
SEARCH = Dataset.from_columns(TABLE.assign(w=list("bcabca")), ["z"], "w", kind="items")
TASK = Task("t", CLASSES)
ONEHOT, LOGISTIC, RIDGE = adapt(OneHotTable()), adapt(LogisticRegression()), adapt(Ridge())


def test_who_takes_it_declines_nothing():
    assert declines(ONEHOT, TASK, CLASSES, blind=False) == ""
    assert declines(ONEHOT, TASK, CLASSES, blind=True) == ""
    assert declines(LOGISTIC, TASK, CLASSES, blind=False) == ""
    assert declines(RIDGE, TASK, NUMBERS, blind=False) == ""
    assert declines(adapt(lambda items: np.ones((len(items), 1))), TASK, SEARCH, False) == ""


def test_what_is_missing_comes_before_all_else():
    lacking = Model("m", None, "encoder", takes=("text",), unavailable="torch is not installed")
    assert declines(lacking, TASK, CLASSES, blind=False) == "torch is not installed"


@pytest.mark.parametrize(
    "takes, data, said",
    [
        (("table",), TEXTS, "it takes tables, not texts"),
        (("table",), ENTITIES, "it takes tables, not entities"),
        (("text", "entity"), CLASSES, "it takes texts and entities, not tables"),
        (("text", "entity"), ENTITIES, ""),
        (None, TEXTS, ""),
    ],
)
def test_encoders_take_what_they_say(takes, data, said):
    assert declines(Model("m", None, "encoder", takes=takes), TASK, data, blind=False) == said


@pytest.mark.parametrize("probe", ["nearest", "same-class", "duplicates", "similarity", "analogy"])
def test_a_predictor_has_no_vectors(probe):
    said = f"a predictor has no vectors for the {probe} probe"
    assert declines(LOGISTIC, Task("t", CLASSES, probe=probe), CLASSES, blind=False) == said


@pytest.mark.parametrize(
    "model, data, blind, said",
    [
        (LOGISTIC, SEARCH, False, "a predictor has no vectors for the trained probe"),
        (LOGISTIC, CLASSES, True, "a predictor cannot learn where the truth is hidden"),
        (LOGISTIC, PAIRS, False, "a predictor takes questions about one item each"),
        (LOGISTIC, BAGS, False, "a predictor takes questions about one item each"),
        (LOGISTIC, NUMBERS, False, "it predicts classes, not numbers"),
        (RIDGE, CLASSES, False, "it predicts numbers, not classes"),
    ],
)
def test_what_predictors_cannot_answer(model, data, blind, said):
    assert declines(model, TASK, data, blind) == said


class Own:
    """A predictor that is no scikit-learn estimator."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Choosy(Own):
    """A predictor with a mind of its own."""

    def declines(self, kind):
        return f"no {kind}, please"


def test_a_predictor_may_speak_for_itself():
    assert declines(adapt(Own()), TASK, CLASSES, blind=False) == ""
    assert declines(adapt(Choosy()), TASK, CLASSES, blind=False) == "no classes, please"
    assert declines(adapt(Choosy()), TASK, NUMBERS, blind=False) == "no numbers, please"
    # what cannot be asked at all is told first
    assert "one item each" in declines(adapt(Choosy()), TASK, PAIRS, blind=False)
