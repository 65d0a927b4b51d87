"""Task and Suite: mistakes are found on creation, everything else has a default."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

from karat.core.dataset import Dataset
from karat.core.task import Suite, Task
from karat.errors import DefinitionError

DATA = Dataset.from_table(pd.DataFrame({"x": [1.5, 2.5], "y": ["a", "b"]}), "y")


def test_defaults_and_short_forms():
    task = Task("churn", DATA)
    assert task.probe == {"use": "trained"}
    assert task.split == {"use": "auto"}
    assert (task.metrics, task.missing, task.corruptions) == ((), "ignore", {})
    split = {"use": "kfold", "folds": 3}
    levels = {"noise": 0.5, "typos": [0, np.float32(0.25), 0.25]}
    task = Task("churn", DATA, "similarity", split, metrics="acc", corruptions=levels)
    split["folds"] = 99  # arguments are copied
    assert task.probe == {"use": "similarity"}
    assert task.split == {"use": "kfold", "folds": 3}
    assert task.metrics == ("acc",)
    assert task.corruptions == {"noise": (0.5,), "typos": (0.0, 0.25)}
    assert Task("t", DATA, metrics=["acc", "f1", "acc"]).metrics == ("acc", "f1")


def test_a_task_is_frozen_and_checked_when_replaced():
    task = Task("churn", DATA)
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.name = "other"
    with pytest.raises(DefinitionError):
        dataclasses.replace(task, missing="drop")
    assert dataclasses.replace(task, metrics=("acc",)).metrics == ("acc",)
    again = pickle.loads(pickle.dumps(Task("churn", "adult", corruptions={"noise": [0.1]})))
    assert again == Task("churn", "adult", corruptions={"noise": [0.1]})


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"name": ""}, "name"),
        ({"name": "  "}, "name"),
        ({"name": None}, "name"),
        ({"dataset": 3}, "from_table"),
        ({"dataset": pd.DataFrame()}, "DataFrame"),
        ({"probe": {"head": "ridge"}}, "probe"),
        ({"probe": None}, "probe"),
        ({"split": ["kfold"]}, "split"),
        ({"split": {"use": 5}}, "split"),
        ({"missing": "penalise"}, 'Did you mean "penalize"?'),
        ({"missing": None}, '"None"'),
        ({"metrics": 5}, "got 5"),
        ({"metrics": {"acc": 1}}, "metrics"),
        ({"metrics": [1]}, "got 1"),
        ({"max_rows": 0}, "max_rows"),
        ({"keep_predictions": "claen"}, '"clean"'),
        ({"max_rows": 1.5}, "1.5"),
        ({"max_rows": True}, "True"),
        ({"corruptions": ["noise"]}, "severities"),
        ({"corruptions": {"noise": [-0.1]}}, ">= 0"),
        ({"corruptions": {"noise": "0.1"}}, "'0.1'"),
        ({"corruptions": {"noise": ["high"]}}, "'high'"),
        ({"corruptions": {"noise": [float("nan")]}}, "nan"),
        ({"corruptions": {"noise": [float("inf")]}}, "inf"),
        ({"corruptions": {"noise": None}}, "None"),
        ({"corruptions": {"noise": True}}, "True"),
    ],
)
def test_a_mistake_is_one_message(wrong, word):
    with pytest.raises(DefinitionError) as caught:
        Task(**{"name": "churn", "dataset": DATA, **wrong})
    assert word in str(caught.value)


def test_a_number_of_folds_is_not_a_list_of_folds():
    assert Task("t", "d", folds=10).folds == 10
    for wrong, word in (([0], r"folds=\[0\]\) runs these"), (1, r"Only\(folds=1\)"), (2.0, "2.0")):
        with pytest.raises(DefinitionError, match=word):
            Task("t", "d", folds=wrong)


def test_a_suite_is_a_named_list_of_tasks():
    tasks = [Task("one", DATA), Task("two", "adult")]
    suite = Suite("mine", tasks, models=["onehot"])
    assert list(suite) == tasks and len(suite) == 2
    assert suite.tasks == tuple(tasks)
    assert suite.models == ("onehot",)
    with pytest.raises(DefinitionError, match="'adult'"):
        Suite("mine", ("adult",))
