"""Task and Suite: what is wrong is said when they are made, everything else has a default."""

import dataclasses
import pickle

import numpy as np
import pandas as pd
import pytest

from karat.dataset import Dataset
from karat.errors import DefinitionError
from karat.task import Suite, Task

DATA = Dataset.from_table(pd.DataFrame({"x": [1.5, 2.5], "y": ["a", "b"]}), "y")


def test_name_and_dataset_are_enough():
    task = Task("churn", DATA)
    assert task.probe == {"use": "trained"}
    assert task.split == {"use": "kfold"}
    assert (task.metrics, task.missing, task.corruptions) == ((), "ignore", {})


def test_short_forms_become_the_long_ones():
    task = Task(
        "churn",
        DATA,
        probe="similarity",
        split={"use": "kfold", "folds": 3},
        metrics="acc",
        corruptions={"noise": 0.5, "typos": [0, np.float32(0.25), 0.25]},
    )
    assert task.probe == {"use": "similarity"}
    assert task.split == {"use": "kfold", "folds": 3}
    assert task.metrics == ("acc",)
    assert task.corruptions == {"noise": (0.5,), "typos": (0.0, 0.25)}
    assert Task("t", DATA, metrics=["acc", "f1", "acc"]).metrics == ("acc", "f1")


def test_a_task_is_frozen_and_takes_its_checks_along():
    task = Task("churn", DATA)
    with pytest.raises(dataclasses.FrozenInstanceError):
        task.name = "other"
    with pytest.raises(DefinitionError):
        dataclasses.replace(task, missing="drop")
    assert dataclasses.replace(task, metrics=("acc",)).metrics == ("acc",)
    again = pickle.loads(pickle.dumps(Task("churn", "adult", corruptions={"noise": [0.1]})))
    assert again == Task("churn", "adult", corruptions={"noise": [0.1]})


def test_what_is_given_is_not_changed_later():
    split = {"use": "kfold", "folds": 3}
    task = Task("churn", DATA, split=split)
    split["folds"] = 99
    assert task.split == {"use": "kfold", "folds": 3}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": ""}, "a task needs a name"),
        ({"name": "  "}, "a task needs a name"),
        ({"name": None}, "a task needs a name"),
        ({"dataset": 3}, "make one with karat.Dataset.from_table"),
        ({"dataset": pd.DataFrame()}, "not DataFrame"),
        ({"probe": {"head": "ridge"}}, 'probe: write a name, or a mapping with "use"'),
        ({"probe": None}, "probe: write a name"),
        ({"split": ["kfold"]}, "split: write a name"),
        ({"split": {"use": 5}}, "split: write a name"),
        ({"missing": "penalize"}, 'not "penalize". Did you mean "penalise"?'),
        ({"missing": None}, 'missing is "ignore" or "penalise", not "None".'),
        ({"metrics": 5}, "metrics is a list of names, not 5"),
        ({"metrics": {"acc": 1}}, "metrics is a list of names"),
        ({"metrics": [1]}, "1 is not the name of a metric"),
        ({"max_rows": 0}, "max_rows is a whole number of 1 or more, not 0"),
        ({"max_rows": 1.5}, "not 1.5"),
        ({"max_rows": True}, "not True"),
        ({"corruptions": ["noise"]}, "corruptions: write {name: [severities]}"),
        ({"corruptions": {"noise": [-0.1]}}, "noise: a severity is a number of 0 or more"),
        ({"corruptions": {"noise": "0.1"}}, "not '0.1'"),
        ({"corruptions": {"noise": ["high"]}}, "not 'high'"),
        ({"corruptions": {"noise": [float("nan")]}}, "not nan"),
        ({"corruptions": {"noise": [float("inf")]}}, "not inf"),
        ({"corruptions": {"noise": None}}, "not None"),
        ({"corruptions": {"noise": True}}, "not True"),
    ],
)
def test_a_mistake_is_one_message(wrong, said):
    with pytest.raises(DefinitionError) as caught:
        Task(**{"name": "churn", "dataset": DATA, **wrong})
    assert said in str(caught.value)


def test_a_suite_is_a_named_list_of_tasks():
    tasks = [Task("one", DATA), Task("two", "adult")]
    suite = Suite("mine", tasks, models=["onehot"])
    assert list(suite) == tasks
    assert len(suite) == 2
    assert suite.tasks == tuple(tasks)
    assert suite.models == ("onehot",)


def test_a_suite_holds_tasks_only():
    with pytest.raises(DefinitionError, match="'adult' is not a karat.Task"):
        Suite("mine", ("adult",))
