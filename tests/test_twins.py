"""Twins: test rows that stand in their train part too, counted by hand and by brute force."""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.dataset import Dataset
from karat.models.tables import OneHotTable
from karat.splits import Fold, split
from karat.task import Task
from karat.twins import twins

steady = settings(deadline=None, derandomize=True, max_examples=60)


def table(**columns: object) -> Dataset:
    frame = pd.DataFrame(columns)
    return Dataset(
        "toy",
        frame,
        pd.DataFrame({"row": frame.index}),
        np.arange(len(frame)) / 7,
        "numbers",
        "table",
    )


def fold(train: list[int], test: list[int]) -> Fold:
    return Fold(np.array(train), np.array(test))


def test_rows_with_equal_cells_are_duplicates_whatever_their_targets():
    data = table(a=[1, 1, 2, 1], b=list("xxxy"))
    assert twins(data, [fold([0, 2], [1, 3])]) == (1, 2)
    assert twins(data, [fold([0, 2], [1, 3]), fold([3], [0]), fold([1], [0])]) == (2, 4)


def test_only_train_rows_of_the_same_fold_count():
    data = table(a=[1, 1, 2, 2])
    assert twins(data, [fold([0, 1], [2, 3])]) == (0, 2)
    assert twins(data, [fold([0], [2]), fold([2], [1])]) == (0, 2)


@pytest.mark.parametrize(
    "cells",
    [
        [1.5, 1.5, 2.5],
        [np.nan, None, 1.0],
        [None, None, "x"],
        pd.array([None, None, 3], dtype="Int64"),
        pd.Categorical(["u", "u", "v"]),
        pd.to_datetime(["2024-01-01", "2024-01-01", "2024-01-02"]),
        [True, True, False],
        [[1], [1], [2]],
        [0.0, -0.0, 1.0],
        [1, 1.0, "1"],
    ],
    ids=str,
)
def test_cells_of_every_type(cells):
    data = table(a=cells, b=[7, 7, 7])
    assert twins(data, [fold([0], [1, 2])]) == (1, 2)


def test_columns_need_not_have_names_of_text():
    frame = pd.DataFrame([[1, 2], [1, 2], [1, 3]])
    data = Dataset(
        "n", frame, pd.DataFrame({"row": frame.index}), np.arange(3) / 7, "numbers", "table"
    )
    assert twins(data, [fold([0], [1, 2])]) == (1, 2)


def test_cells_of_two_columns_are_not_mixed_up():
    data = table(a=["x", "y", "x"], b=["y", "x", "y"])
    assert twins(data, [fold([0], [1, 2])]) == (1, 2)
    assert twins(table(a=[0, 0, 1], b=[1, np.nan, np.nan]), [fold([0, 1], [2])]) == (0, 1)


def test_texts_are_compared_by_content_and_entities_by_id():
    frame = pd.DataFrame({"t": ["a", "b", "a"], "y": [0.5, 1.5, 2.5]})
    text = Dataset.from_columns(frame, ["t"], "y")
    assert twins(text, [fold([0], [1, 2])]) == (1, 2)
    frame = pd.DataFrame({"e": ["Georgia_1", "Georgia_2", "Georgia_1"], "y": [0.5, 1.5, 2.5]})
    entity = Dataset.from_columns(
        frame, ["e"], "y", modality="entity", label=lambda e: e.split("_")[0]
    )
    assert set(entity.items) == {"Georgia"}
    assert twins(entity, [fold([0], [1, 2])]) == (1, 2)


def test_pairs_bags_and_searches_have_no_duplicates():
    frame = pd.DataFrame(
        {"a": list("xyx"), "b": list("yxy"), "y": [0.5, 1.5, 2.5], "z": list("xyx")}
    )
    pairs = Dataset.from_columns(frame, ["a", "b"], "y")
    search = Dataset.from_columns(frame, ["a"], "z", kind="items", modality="entity")
    bags = Dataset.from_columns(frame.assign(a=[{"x": 1, "y": 1}] * 3), ["a"], "y")
    for data in (pairs, search, bags):
        assert twins(data, [fold([0], [1, 2])]) == (0, 2)


@steady
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from(["a", "b", None])), min_size=4, max_size=40
    ),
    st.integers(0, 20),
)
def test_the_count_equals_brute_force(rows, seed):
    data = table(a=[a for a, _ in rows], b=[b for _, b in rows])
    folds = split(data, {"use": "kfold", "folds": 2, "repeats": 2}, seed)
    expected = sum(any(rows[i] == rows[j] for j in each.train) for each in folds for i in each.test)
    assert twins(data, folds) == (expected, 2 * len(rows))


def test_wide_tables_are_cheap():
    rng = np.random.default_rng(0)
    data = table(**{f"c{i}": rng.normal(size=100_000) for i in range(60)})
    begun = time.process_time()
    assert twins(data, [Fold(np.arange(50_000), np.arange(50_000, 100_000))]) == (0, 50_000)
    # two columns tell all rows apart; all sixty take several seconds
    assert time.process_time() - begun < 2


def test_duplicates_are_written_to_run_json(tmp_path):
    frame = pd.DataFrame({"x": [0, 1, 2, 3, 4] * 4, "y": ["p", "q"] * 10})
    data = Dataset.from_table(frame, "y", name="five")
    tasks = [
        Task("apart", data, split={"use": "fixed", "test": [0, 1, 2]}, metrics=["acc"]),
        Task("folds", data, split={"use": "kfold", "folds": 4}, metrics=["acc"]),
        Task(
            "blind",
            data,
            probe={"use": "trained", "head": "kmeans"},
            split="all",
            metrics=["v_measure"],
        ),
    ]
    (run,) = karat.evaluate(OneHotTable(), tasks, output=tmp_path, folds=[0])
    told = {task["name"]: task["twins"] for task in karat.Run.open(run.folder).about["tasks"]}
    # of the four folds one is run; where nothing is held out there is nothing to tell
    assert told["apart"] == [3, 3] and told["blind"] == [0, 0]
    assert told["folds"][1] == 5
