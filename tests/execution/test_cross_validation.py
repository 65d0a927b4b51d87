"""Folds of scikit-learn: the same rows as it, and the same jobs again."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
)

import karat
from karat.core.dataset import Dataset
from karat.errors import DefinitionError
from karat.execution.cross_validation import cv_folds

ROWS = 24
FRAME = pd.DataFrame({"x": np.arange(ROWS) % 7, "y": list("aab") * 8, "g": np.arange(ROWS) // 3})
DATA = Dataset.from_table(FRAME, "y", group="g")
PLAIN = Dataset.from_table(FRAME.drop(columns="g"), "y")
HALVES = [(np.arange(0, ROWS, 2), np.arange(1, ROWS, 2)), (range(1, ROWS, 2), range(0, ROWS, 2))]


def pairs(folds):
    return [(fold["train"].tolist(), fold["test"].tolist()) for fold in folds]


@pytest.mark.parametrize(
    "cv",
    [
        KFold(3),
        StratifiedKFold(4, shuffle=True, random_state=1),
        GroupKFold(4),
        LeaveOneGroupOut(),
        TimeSeriesSplit(3),
        PredefinedSplit(np.arange(ROWS) % 3 - 1),
        RepeatedStratifiedKFold(n_splits=2, n_repeats=3, random_state=5),
        ShuffleSplit(2, random_state=np.random.RandomState(3)),
    ],
    ids=lambda cv: type(cv).__name__,
)
def test_a_splitter_makes_the_folds_of_scikit_learn(cv):
    state = getattr(cv, "random_state", None)
    if isinstance(state, np.random.RandomState):
        cv.random_state = np.random.RandomState(3)
    made = pairs(cv_folds(DATA, cv, 42))
    assert made == pairs(cv_folds(DATA, cv, 7))  # its own state, if it has one, is not used up
    expected = cv.split(FRAME[["x"]], FRAME["y"], FRAME["g"])
    assert made == [(train.tolist(), test.tolist()) for train, test in expected]


def test_an_integer_is_stratified_in_the_order_of_the_rows_and_divides_no_groups():
    expected = StratifiedKFold(4).split(FRAME, FRAME["y"])
    assert pairs(cv_folds(PLAIN, 4, 42)) == [(a.tolist(), b.tolist()) for a, b in expected]
    with pytest.raises(DefinitionError, match=r"leave it out.*GroupKFold\(4\)"):
        cv_folds(DATA, 4, 42)


def test_a_shuffling_splitter_without_a_state_gets_the_seed():
    cv = KFold(3, shuffle=True)
    expected = pairs(cv_folds(PLAIN, KFold(3, shuffle=True, random_state=9), 42))
    assert pairs(cv_folds(PLAIN, cv, 9)) == expected != pairs(cv_folds(PLAIN, cv, 10))
    assert cv.random_state is None


def test_repeats_begin_when_a_row_is_tested_again():
    repeated = cv_folds(PLAIN, RepeatedStratifiedKFold(n_splits=2, n_repeats=3), 42)
    assert [fold["repeat"] for fold in repeated] == [0, 0, 1, 1, 2, 2]


def test_the_text_of_folds_is_a_hash_of_their_rows():
    by_object, by_rows = (
        cv_folds(PLAIN, KFold(3), 1),
        cv_folds(PLAIN, list(KFold(3).split(FRAME)), 1),
    )
    assert repr(by_object) == repr(by_rows) != repr(cv_folds(PLAIN, KFold(4), 1))
    assert by_object.origin.startswith("KFold(n_splits=3")


@pytest.mark.parametrize(
    "data, cv, more, word",
    [
        (PLAIN, GroupKFold(2), {}, "Give the groups"),
        (PLAIN, KFold(100), {}, "ValueError"),
        (PLAIN, HALVES, {"is_sample": True}, "max_rows"),
        (Dataset.from_table(FRAME.assign(p=["train", "test"] * 12), "y", part="p"), 3, {}, "part"),
    ],
)
def test_what_cannot_be_split(data, cv, more, word):
    with pytest.raises(DefinitionError, match=word):
        cv_folds(data, cv, 42, **more)


@pytest.mark.parametrize("cv", [1, 0, True, "5", [], [1, 2], {"a": 1}, 2.5, [(1, 2, 3)]])
def test_what_is_not_a_cv(cv):
    with pytest.raises(DefinitionError, match="cv must be a number of folds >= 2"):
        karat.Task("t", PLAIN, cv=cv)


@pytest.mark.parametrize("more", [{"folds": 3}, {"split": "holdout"}])
def test_cv_excludes_other_splits(more):
    with pytest.raises(DefinitionError, match="exclude each other"):
        karat.Task("t", PLAIN, cv=3, **more)


class Splitter:
    """A user's own splitter, whose text has its address."""

    def split(self, X, y=None, groups=None):
        yield from ((np.array(train), np.array(test)) for train, test in HALVES)


def test_a_run_with_own_folds_is_resumed(tmp_path):
    def run(cv, **more):
        options = {"groups": "g", "metrics": "acc", "output": tmp_path, **more}
        return karat.evaluate({"d": DummyClassifier()}, FRAME, "y", cv=cv, **options)[0]

    first = run(Splitter(), only=karat.Only(folds=0))
    assert first.scores()["fold"].tolist() == [0]
    written = first.records()[0]
    again = run(HALVES, resume=True)  # the same rows, written in another way
    assert again.folder == first.folder and again.scores()["fold"].tolist() == [0, 1]
    assert again.records()[0] == written
    other = run(GroupKFold(2), resume=True)
    assert other.records()[0]["spec"] != written["spec"]


def test_workers_get_the_same_folds(tmp_path):
    numbers = FRAME[["x"]].assign(y=np.arange(ROWS) / 7)
    data = Dataset.from_table(numbers, "y", kind="regression")
    task = karat.Task("t", data, cv=TimeSeriesSplit(3), metrics=["mae"])
    runs = [
        karat.evaluate(
            {"mean": DummyRegressor()}, task, output=tmp_path / str(count), workers=count
        )[0]
        for count in (0, 2)
    ]
    y = numbers["y"].to_numpy()
    sides = TimeSeriesSplit(3).split(numbers)
    expected = [abs(y[train].mean() - y[test]).mean() for train, test in sides]
    for run in runs:
        assert np.allclose(run.scores()["value"], expected)


def test_masks_are_rows():
    test = np.arange(ROWS) % 3 == 0
    (fold,) = cv_folds(PLAIN, [(~test, test)], 42).folds
    assert fold.test.tolist() == list(range(0, ROWS, 3)) and len(fold.train) == ROWS * 2 // 3


def test_a_class_is_no_splitter():
    with pytest.raises(DefinitionError, match=r"not a class: KFold\(\)"):
        karat.Task("t", PLAIN, metrics=["acc"], cv=KFold)
