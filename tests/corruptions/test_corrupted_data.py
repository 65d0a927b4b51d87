"""Corruptions applied to datasets of every kind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.core import registry
from karat.core.dataset import Dataset
from karat.corruptions.corrupted_data import corrupt
from karat.corruptions.view import (
    CLEAN,
    View,
)
from karat.errors import ContractError, DataError

GROUPED_ROWS = 40


@pytest.fixture
def own(monkeypatch):
    """Register corruptions for one test."""

    def add(**parts):
        corruptions = registry.corruptions
        corruptions.get("typos")
        monkeypatch.setattr(corruptions, "_parts", {**corruptions._parts, **parts})

    return add


def grouped_table(**given):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.standard_normal(GROUPED_ROWS),
            "n": rng.integers(0, 9, GROUPED_ROWS),
            "g": np.arange(GROUPED_ROWS) // 4,
            "y": rng.choice(["rare", "common", "usual"], GROUPED_ROWS),
        }
    )
    return Dataset.from_table(frame, "y", name="toy", group="g", **given)


def texts(modality="text", repeat=False):
    words = ["alpha", "bravo", "alpha" if repeat else "charlie", "delta"]
    frame = pd.DataFrame({"t": words, "y": ["a", "b", "a", "b"]})
    return Dataset.from_columns(frame, ["t"], "y", name="words", modality=modality)


def test_the_generator_comes_from_seed_fold_and_name_alone(own):
    drawn = {}

    def spy(name):
        def corrupt(X, y, severity, rng):
            drawn.setdefault(name, []).append(tuple(rng.random(3)))
            return X, y

        return corrupt

    own(one=spy("one"), two=spy("two"))
    data = grouped_table()
    assert corrupt(data, CLEAN, 1, 0) is corrupt(data, View("one", 0.0), 1, 0) is data
    assert drawn == {}
    corrupt(data, View("one", 0.1), 1, 0)
    corrupt(data, View("two", 0.1), 1, 0)
    corrupt(data, View("one", 0.4), 1, 0)  # all severities share their draws
    corrupt(data.take(np.arange(5)), View("one", 0.1), 1, 0)
    assert len(set(drawn["one"])) == 1
    assert not set(drawn["one"]) & set(drawn["two"])
    corrupt(data, View("one", 0.1), 1, 1)
    corrupt(data, View("one", 0.1), 2, 0)
    assert len(set(drawn["one"])) == 3


def test_rows_ids_groups_and_truth_stay_together():
    data = grouped_table().take(np.array([7, 3, 30, 12]))
    seen = corrupt(data, View("noise_gaussian", 0.5), 1, 0)
    assert seen.target.tolist() == data.target.tolist()
    assert seen.group.tolist() == data.group.tolist() == [1, 0, 7, 3]
    assert seen.classes == data.classes
    assert seen.frame().index.tolist() == [7, 3, 30, 12]
    moved = (seen.frame()["x"] - data.frame()["x"]).abs()
    assert (moved > 0).all()
    assert (moved < 5 * data.frame()["x"].std()).all()


def drop_rare(X, y, severity, rng):
    rare = y == "rare"
    kept = ~(rare & (rng.random(len(y)) < severity))
    return X[kept], y[kept]


def check_rows(seen, data, order):
    assert seen.group.tolist() == data.group[order].tolist()
    assert seen.target.tolist() == data.target[order].tolist()
    assert seen.frame()["x"].tolist() == data.frame()["x"].to_numpy()[order].tolist()
    assert seen.items.index.is_unique
    assert seen.classes == data.classes  # the rare class is still a class


def test_a_corruption_may_drop_repeat_and_reorder_rows_and_change_the_truth(own):
    def twice(X, y, severity, rng):
        both = pd.concat([X, X.iloc[::-1]])
        return both, y.loc[both.index]

    def flip(X, y, severity, rng):
        return X, y.where(rng.random(len(y)) >= severity, "common")

    own(drop_rare=drop_rare, twice=twice, flip=flip)
    data = grouped_table()
    seen = corrupt(data, View("drop_rare", 1.0), 1, 0)
    kept = np.flatnonzero(data.target != "rare")
    assert 0 < len(kept) < GROUPED_ROWS
    check_rows(seen, data, kept)
    assert seen.items.index.tolist() == kept.tolist()
    some = corrupt(data, View("drop_rare", 0.5), 1, 0)
    assert set(seen.items.index) <= set(some.items.index)
    order = np.concatenate([np.arange(GROUPED_ROWS), np.arange(GROUPED_ROWS)[::-1]])
    check_rows(corrupt(data, View("twice", 1.0), 1, 0), data, order)
    assert set(corrupt(data, View("flip", 1.0), 1, 0).target) == {"common"}


@pytest.mark.parametrize(
    ("broken", "word"),
    [
        (lambda X, y, s, rng: X, "DataFrame"),
        (lambda X, y, s, rng: (X.to_numpy(), y), "DataFrame"),
        (lambda X, y, s, rng: (X["x"], y), "DataFrame"),
        (lambda X, y, s, rng: None, "DataFrame"),
        (lambda X, y, s, rng: (X, None), "40 .*0"),
        (lambda X, y, s, rng: (X[:5], y), "5 .*40"),
        (lambda X, y, s, rng: (X[:0], y[:0]), "no rows"),
        (lambda X, y, s, rng: (X.add_prefix("r", axis=0), y), "index of X"),
        (lambda X, y, s, rng: (X.set_axis(range(100, 140)), y), "index of X"),
        (lambda X, y, s, rng: (X[:5], y[5:10]), "indexes"),
    ],
)
def test_wrong_results_of_a_corruption(own, broken, word):
    own(broken=broken)
    with pytest.raises(ContractError, match=f"broken@0.5 .*{word}"):
        corrupt(grouped_table(), View("broken", 0.5), 1, 0)


def test_new_labels_and_lost_items_are_refused(own):
    own(
        relabel=lambda X, y, s, rng: (X, y.where(y != "rare", "new")),
        drop=lambda X, y, s, rng: (X[1:], y),
    )
    with pytest.raises(DataError, match='"new"'):
        corrupt(grouped_table(), View("relabel", 0.5), 1, 0)
    with pytest.raises(ContractError, match="drop@0.5 .*pairs"):
        corrupt(pairs(pd.Series(list("abcd"))), View("drop", 0.5), 1, 0)


@pytest.mark.parametrize("repeat", [False, True])
def test_texts_are_changed_row_by_row_and_entities_keep_their_ids(repeat):
    seen = corrupt(texts(repeat=repeat), View("typos", 1.0), 1, 0)
    assert seen.frame().tolist() == ["lahpa", "rbvao", "lahpa" if repeat else "hcraile", "edtla"]
    assert seen.target.tolist() == list("abab")
    data = texts("entity", repeat)
    seen = corrupt(data, View("typos", 1.0), 1, 0)
    assert seen.items.loc["alpha"] == "lahpa"
    assert seen.frame().index.tolist() == data.frame().index.tolist()
    assert seen.target.tolist() == list("abab")


def pairs(items, kind="regression", truth=(1.0, 2.0)):
    questions = pd.DataFrame({"one": [0, 1], "two": [2, 0]})
    modality = "table" if isinstance(items, pd.DataFrame) else "text"
    return Dataset("pairs", items, questions, np.array(truth), kind, modality)


def test_an_item_of_several_questions_or_bags_is_changed_once():
    data = pairs(pd.Series(["abcd", "efgh", "ijkl", "mnop"]))
    seen = corrupt(data, View("typos", 1.0), 1, 0)
    assert seen.items.to_dict() == {0: "badc", 1: "fehg", 2: "jilk"}
    assert seen.questions.equals(data.questions)
    assert seen.target.tolist() == [1, 2]
    items = pd.Series(["abcd", "efgh"], index=["p", "q"])
    questions = pd.DataFrame({"doc": [{"p": 1.0, "q": 2.0}, {"q": 1.0}]})
    data = Dataset("docs", items, questions, np.ones(2), "regression", "entity")
    seen = corrupt(data, View("typos", 1.0), 1, 0)
    assert seen.items.to_dict() == {"p": "badc", "q": "fehg"}
    assert seen.mentions("doc").weights.tolist() == [1, 2, 1]


def test_pairs_of_table_rows_keep_the_types_of_their_columns():
    items = pd.DataFrame({"n": [1, 2, 3], "w": ["a", "b", "c"], "x": [0.5, 1.5, 2.5]})
    seen = corrupt(pairs(items), View("noise_gaussian", 0.5), 1, 0)
    assert seen.items["w"].tolist() == ["a", "b", "c"]
    assert [t.kind for t in seen.items.dtypes[["n", "x"]]] == ["f", "f"]
    empty = corrupt(pairs(items), View("missingness_mcar", 1.0), 1, 0)
    assert empty.items.isna().all(axis=None)


def search(items):
    """The items at 3 and 1 ask for others; the item at 3 asks twice."""
    names = items.index
    questions = pd.DataFrame({"query": names[[3, 1, 3]]})
    modality = "table" if isinstance(items, pd.DataFrame) else "text"
    return Dataset("search", items, questions, names[[0, 2, 4]].to_numpy(), "items", modality)


@pytest.mark.parametrize("index", [list("pqrst"), [9, 7, 5, 3, 1], [("a", i) for i in range(5)]])
def test_only_what_is_asked_about_is_changed(own, index):
    calls = []

    def louder(X, y, s, rng):
        calls.append((X.tolist(), y))
        return X.str.upper(), y

    own(louder=louder)
    items = pd.Series(list("vwxyz"), index=pd.Index(index, tupleize_cols=False))
    data = search(items)
    seen = corrupt(data, View("louder", 0.5), 1, 0)
    assert calls == [(["w", "y"], None)]  # each item once, and no answer is shown
    assert seen.items.tolist() == ["v", "W", "x", "Y", "z"]
    assert seen.items.index.equals(items.index) and data.items.tolist() == list("vwxyz")
    assert seen.questions.equals(data.questions) and seen.target.tolist() == data.target.tolist()


def test_only_the_cells_of_queries_are_changed(own):
    def empty(X, y, s, rng):
        return X.mask(np.ones(X.shape, dtype=bool)), y

    own(empty=empty)
    items = pd.DataFrame(
        {
            "n": [1, 2, 3, 4, 5],
            "w": list("vwxyz"),
            "flag": [True, False] * 2 + [True],
            "kind": pd.Categorical(list("uvuvu")),
            "day": pd.date_range("2024-01-01", periods=5),
        },
        index=list("pqrst"),
    )
    seen = corrupt(search(items), View("empty", 1.0), 1, 0).items
    asked, others = ["q", "s"], ["p", "r", "t"]
    assert seen.loc[asked].isna().all(axis=None)
    assert (seen.loc[others] == items.loc[others]).all(axis=None)
    assert seen.index.equals(items.index) and seen["day"].dtype == items["day"].dtype
    assert seen["kind"].dtype == items["kind"].dtype and seen["n"].dtype.kind == "f"


def test_the_three_items_of_an_analogy_are_changed_and_the_answer_is_not(own):
    own(louder=lambda X, y, s, rng: (X.str.upper(), y))
    ids = list("abcd")
    asked = pd.DataFrame({"a": ["a"], "b": ["b"], "c": ["c"]})
    data = Dataset("four", pd.Series(ids, index=ids), asked, np.array(["d"]), "items", "entity")
    assert corrupt(data, View("louder", 0.5), 1, 0).items.tolist() == ["A", "B", "C", "d"]
