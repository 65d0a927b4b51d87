"""Reasons why a model cannot run a task."""

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


def test_no_reason_if_the_model_can_run_the_task():
    assert declines(ONEHOT, TASK, CLASSES, blind=False) == ""
    assert declines(ONEHOT, TASK, CLASSES, blind=True) == ""
    assert declines(LOGISTIC, TASK, CLASSES, blind=False) == ""
    assert declines(RIDGE, TASK, NUMBERS, blind=False) == ""
    assert declines(adapt(lambda items: np.ones((len(items), 1))), TASK, SEARCH, False) == ""


def test_a_missing_library_is_the_first_reason():
    lacking = Model("m", None, "encoder", takes=("text",), unavailable="torch is not installed")
    assert declines(lacking, TASK, CLASSES, blind=False) == "torch is not installed"


@pytest.mark.parametrize(
    "takes, data, reason",
    [
        (("table",), TEXTS, "tables, not texts"),
        (("table",), ENTITIES, "tables, not entities"),
        (("text", "entity"), CLASSES, "texts and entities, not tables"),
        (("text", "entity"), ENTITIES, ""),
        (None, TEXTS, ""),
    ],
)
def test_an_encoder_declines_other_modalities(takes, data, reason):
    found = declines(Model("m", None, "encoder", takes=takes), TASK, data, blind=False)
    assert found.endswith(reason) and bool(found) == bool(reason)


@pytest.mark.parametrize("probe", ["nearest", "same-class", "duplicates", "similarity", "analogy"])
def test_a_predictor_declines_probes_of_vectors(probe):
    assert probe in declines(LOGISTIC, Task("t", CLASSES, probe=probe), CLASSES, blind=False)


@pytest.mark.parametrize(
    "model, data, blind, reason",
    [
        (LOGISTIC, SEARCH, False, "vectors"),
        (LOGISTIC, CLASSES, True, "targets"),
        (LOGISTIC, PAIRS, False, "one item"),
        (LOGISTIC, BAGS, False, "one item"),
        (LOGISTIC, NUMBERS, False, "classifier"),
        (RIDGE, CLASSES, False, "regressor"),
    ],
)
def test_a_predictor_declines_what_it_cannot_answer(model, data, blind, reason):
    assert reason in declines(model, TASK, data, blind)


class Own:
    """A predictor that is not a scikit-learn estimator."""

    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


class Choosy(Own):
    def declines(self, kind):
        return f"no {kind}"


def test_a_predictor_may_define_what_it_declines():
    assert declines(adapt(Own()), TASK, CLASSES, blind=False) == ""
    assert declines(adapt(Choosy()), TASK, CLASSES, blind=False) == "no classes"
    assert declines(adapt(Choosy()), TASK, NUMBERS, blind=False) == "no numbers"
    assert "one item" in declines(adapt(Choosy()), TASK, PAIRS, blind=False)
