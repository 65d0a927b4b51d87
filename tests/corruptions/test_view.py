"""Views: generators, compositions, changed shares, and contracts of corruptions."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.core import registry
from karat.core.dataset import MODALITIES, Dataset
from karat.core.embeddings import Vectors
from karat.core.registry import corruptions
from karat.corruptions.noise import outliers
from karat.corruptions.view import (
    CATEGORY,
    CLEAN,
    DATE,
    FLAG,
    NEEDS,
    NUMBER,
    OTHER,
    TEXT,
    View,
    affected_cells,
    affected_places,
    by_row,
    changed_share,
    check_severity,
    check_view,
    column_generators,
    corrupt,
    corrupt_vectors,
    corrupt_with_share,
    corrupts,
    count_affected,
    count_up,
    floats,
    from_rows,
    kind,
    levels,
    parse_composition,
    places,
    reason_not_applicable,
    spread,
    unmet_reason,
    views,
    with_columns,
    with_values,
)
from karat.errors import ContractError, DataError, DefinitionError

ROWS = 200


def table(kind: str = "classification") -> Dataset:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({name: rng.normal(size=ROWS) for name in "ab"})
    frame["c"] = rng.choice(list("xyz"), ROWS)
    frame["y"] = rng.choice(["no", "yes"], ROWS, p=[0.8, 0.2])
    if kind == "regression":
        frame["y"] = rng.normal(size=ROWS)
    return Dataset.from_table(frame, "y", name="t", kind=kind)


def test_doses_and_names_by_hand():
    assert parse_composition("typos") == [("typos", 1.0)]
    assert parse_composition("a+b@0.5+a") == [("a", 1.0), ("b", 0.5), ("a", 1.0)]
    assert parse_composition(" a@0.2 + b ") == [("a", 0.2), ("b", 1.0)]
    assert parse_composition("") == []
    for dose in ("1_0", "nan", "inf", "true", ""):
        with pytest.raises(DefinitionError, match="not valid"):
            parse_composition(f"a@{dose}+b")
    assert View("a@0.2+b@0.1", 0.5).parts() == [("a", 0.1), ("b", 0.05)]
    assert View("a@0.2+b@0.1", 1.0).name == "a@0.2+b@0.1"
    assert View("a@0.2+b@0.1", 0.5).name == "a@0.2+b@0.1@0.5"
    assert View("a+b", 0.2, 2).name == "a+b@0.2#2"
    names = {View("noise", s).name for s in (0.1, 0.1 + 1e-9, 0.1234567, 0.1234568, 1e-7)}
    assert len(names) == 5


@pytest.mark.parametrize("text", ["a+", "+a", "a@x+b", "a@-1+b", "a@inf+b", "a@+b"])
def test_invalid_compositions(text):
    with pytest.raises(DefinitionError, match="a@0.2"):
        parse_composition(text)


def missing(view: View) -> np.ndarray:
    return corrupt(table(), view, 1, 0).items.isna().to_numpy()


def test_a_composition_is_one_after_the_other():
    data = table()
    both = corrupt(data, View("scaling_error+noise_gaussian", 0.4), 1, 0)
    first = corrupt(data, View("scaling_error", 0.4), 1, 0)
    then = corrupt(first, View("noise_gaussian", 0.4), 1, 0)
    pd.testing.assert_frame_equal(both.items, then.items)
    # the same corruption twice draws twice
    once = missing(View("missingness_mcar", 0.3))
    twice = missing(View("missingness_mcar+missingness_mcar", 0.3))
    assert (once <= twice).all()
    assert twice.mean() == pytest.approx(1 - 0.7**2, abs=0.05)


def test_draws_differ_and_the_first_is_as_ever():
    one, two, again = (missing(View("missingness_mcar", 0.3, draw)) for draw in (0, 1, 1))
    assert (one != two).any() and (two == again).all()
    names = [view.name for view in views({"typos": [0.0, 0.5]}, draws=2)]
    assert names == ["clean", "typos@0", "typos@0.5", "typos@0.5#1"]


@pytest.mark.parametrize(
    ("view", "share"),
    [
        (CLEAN, 0.0),
        (View("missingness_mcar", 0.25), 0.25),
        # two of the three columns are numbers
        (View("noise_gaussian", 0.3), 2 / 3),
        (View("missingness_mcar", 0.0), 0.0),
    ],
)
def test_the_share_of_what_changed(view, share):
    assert corrupt_with_share(table(), view, 1, 0)[1] == pytest.approx(share, abs=0.005)


def test_only_asked_items_count_for_a_search():
    items = pd.Series(["aaaa", "bbbb", "cccc", "dddd"], index=list("wxyz"))
    asked = pd.DataFrame({"q": ["w", "w"]})
    data = Dataset("s", items, asked, np.array(["x", "y"], dtype=object), "items", "text")
    seen, share = corrupt_with_share(data, View("typos", 1.0), 1, 0)
    # what is asked for stays clean, and its letters are alike: nothing can change
    assert share == 0.0
    mixed = Dataset("s", pd.Series(["abcd", "efgh"], index=["w", "x"]), asked.iloc[:1],
                    np.array(["x"], dtype=object), "items", "text")  # fmt: skip
    seen, share = corrupt_with_share(mixed, View("typos", 1.0), 1, 0)
    assert share == 1.0 and seen.items["x"] == "efgh" and seen.items["w"] != "abcd"


def test_reasons_before_anything_runs():
    def reason(name: str, role: str) -> str:
        return reason_not_applicable(View(name, 0.2), table("regression"), role)

    assert "classes" in reason("rare_class_dilution", "predictor")
    assert reason("noise_gaussian+rare_class_dilution", "encoder")
    assert reason("noise_gaussian", "encoder") == ""
    assert "vectors" in reason("vector_int8", "predictor")
    assert reason("vector_int8", "encoder") == ""
    with pytest.raises(DefinitionError, match="1.5"):
        check_view(View("missingness_mcar", 1.5))
    with pytest.raises(DefinitionError, match="missingness_mcar"):
        check_view(View("missingness_mcra", 0.5))


def test_vectors_change_and_items_do_not():
    data = table()
    vectors = Vectors(np.random.default_rng(0).normal(size=(ROWS, 8)), np.arange(ROWS))
    view = View("vector_binary", 1.0)
    assert corrupt_with_share(data, view, 1, 0) == (data, 0.0)
    blurred = corrupt_vectors(vectors, view, 1, 0)
    assert len(np.unique(np.abs(blurred.matrix).round(12))) == 1
    assert (np.sign(blurred.matrix) == np.sign(vectors.matrix)).all()
    assert corrupt_vectors(vectors, View("noise_gaussian", 0.3), 1, 0) is vectors


def test_a_whole_run_with_draws_declines_and_affected_shares(tmp_path):
    task = karat.Task(
        "t",
        table("regression"),
        split={"use": "holdout"},
        metrics=["rmse"],
        corruptions={
            "missingness_mcar": [0.2],
            "rare_class_dilution": [0.2],
            "vector_int8": [1],
            "missingness_mcar+noise_gaussian": [0.2],
        },
        draws=2,
    )
    runs = karat.evaluate(["onehot", "ridge"], task, output=tmp_path)
    tables = {run.model: run.results() for run in runs}
    for model, rows in tables.items():
        status = rows.groupby("corruption")["status"].agg(set).to_dict()
        assert status["rare_class_dilution"] == {"declined"}
        assert status["vector_int8"] == ({"ok"} if model == "onehot" else {"declined"})
        assert status["missingness_mcar"] == {"ok"}
        cut = rows[rows["corruption"] == "missingness_mcar"]
        assert sorted(cut["draw"]) == [0, 1] and cut["rmse"].nunique() == 2
        assert cut["affected"].tolist() == pytest.approx([0.2, 0.2], abs=0.01)
    # a declined view is no failed job
    assert (tables["ridge"][tables["ridge"]["corruption"] == ""]["status"] == "ok").all()
    scores = runs[0].scores()
    assert set(scores.loc[scores["corruption"] == "missingness_mcar", "draw"]) == {0, 1}


def test_all_models_see_the_same_corrupted_rows(tmp_path):
    class Remember:
        """Predict the mean, and keep the tested tables."""

        seen: list = []

        def fit(self, X, y):
            self.mean_ = float(np.mean(y))
            return self

        def predict(self, X):
            Remember.seen.append(X.copy())
            return np.full(len(X), self.mean_)

    task = karat.Task(
        "t", table("regression"), split="holdout", metrics=["rmse"],
        corruptions={"missingness_mcar": [0.3]},
    )  # fmt: skip
    karat.evaluate({"one": Remember(), "two": Remember()}, task, output=tmp_path)
    clean_1, dirty_1, clean_2, dirty_2 = Remember.seen
    pd.testing.assert_frame_equal(clean_1, clean_2)
    pd.testing.assert_frame_equal(dirty_1, dirty_2)
    assert dirty_1.isna().to_numpy().mean() == pytest.approx(0.3, abs=0.02)


def mixed_table():
    return pd.DataFrame(
        {
            "n": [1, 2, 3, 4],
            "x": [0.5, np.nan, 1.5, 2.5],
            "c": pd.Categorical(["a", "b", None, "a"]),
            "w": pd.Series(["u", None, "v", 3], dtype=object),
            "I": pd.array([1, None, 3, 4], dtype="Int64"),
        }
    )


def test_equal_values_of_another_dtype_are_equal():
    X = mixed_table()
    assert changed_share(X, X) == 0
    other = X.astype({"n": float, "c": object, "w": "str", "I": "Float64"})
    assert changed_share(X, other.assign(w=X["w"])) == 0
    turned = X.assign(c=X["c"].cat.set_categories(["b", "a", "z"], ordered=True))
    assert changed_share(X, turned) == 0
    assert (
        changed_share(X.assign(b=[True, False, True, True]), X.assign(b=[1.0, 0.0, 1.0, 1.0])) == 0
    )


@pytest.mark.parametrize(
    ("column", "values", "cells"),
    [
        ("n", [1.0, 2.5, 3.0, np.nan], 2),
        ("x", [0.5, 1.0, 1.5, 2.5], 1),
        ("x", [np.nan] * 4, 3),
        ("c", pd.Categorical(["a", "z", "b", None]), 3),
        ("c", pd.Categorical(["b", "b", None, "a"]), 1),
        ("w", ["u", None, "V", "3"], 2),
        ("I", pd.array([1, None, None, 5], dtype="Int64"), 2),
        ("n", pd.to_datetime(["2020-01-01"] * 4), 4),
    ],
)
def test_cells_that_changed_are_counted(column, values, cells):
    X = mixed_table()
    assert changed_share(X, X.assign(**{column: values})) == pytest.approx(cells / 20)


def test_rows_and_columns_that_came_or_went_are_counted():
    X = mixed_table()
    assert changed_share(X, X[1:]) == 0.25
    assert changed_share(X, X.iloc[[0, 1, 2, 3, 3]]) == 0.25
    assert changed_share(X, X.iloc[[0, 0, 2, 3]]) == 0.5  # one is missing, another occurs twice
    assert changed_share(X, X.iloc[[3, 2, 1, 0]]) == 0  # in another order
    assert changed_share(X, X[1:].assign(n=[2, 9, 4])) == 0.5  # one is gone, one is changed
    assert changed_share(X, X.iloc[[0] * 20]) == 1
    twins = X.set_axis([1, 1, 1, 1])
    assert changed_share(twins, twins[:3]) == 0.25
    assert changed_share(X, X.drop(columns="n")) == 0.2
    X.columns = pd.Index([1, 1, 2, 2, 2])
    assert changed_share(X, X.copy()) == 0
    arrays, other = (pd.Series([np.array([1, n]), [3], None], dtype=object) for n in (2, 5))
    assert changed_share(arrays, arrays.copy()) == 0
    assert changed_share(arrays, other) == pytest.approx(1 / 3)


def test_answers_count_where_nothing_else_changed():
    X, y = mixed_table(), pd.Series(list("abab"))
    assert changed_share((X, y), (X, y)) == 0
    assert changed_share((X, y), (X, pd.Series(list("abba")))) == 0.5
    assert changed_share((X, y), (X.assign(n=0), pd.Series(list("abba")))) == 0.2
    assert changed_share((X, None), (X[1:], None)) == 0.25
    assert changed_share((X, y), (X[1:], y[1:])) == 0.25


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


# -- Kinds of columns, requirements of corruptions, and affected shares ---------------------------


def test_the_kind_depends_only_on_the_dtype(table):
    X = table(5)
    found = {name: kind(column) for name, column in X.items()}
    other = {
        **dict.fromkeys(["bool", "boolean"], FLAG),
        **dict.fromkeys(["category", "ordered", "codes"], CATEGORY),
        **dict.fromkeys(["object", "string", "text"], TEXT),
        **dict.fromkeys(["date", "day", "zone"], DATE),
        "duration": OTHER,
    }
    assert found == {**dict.fromkeys(list(X)[:21], NUMBER), **other}
    # the cells are not looked at: every fold says the same
    assert {name: kind(column) for name, column in X[:0].items()} == found


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([1, 2], dtype=object), TEXT),
        (pd.Series([None, None], dtype=object), TEXT),
        (pd.Series([np.nan, np.nan]), NUMBER),
        (pd.Series([1 + 2j]), OTHER),
        (pd.Series(pd.period_range("2020", periods=2)), OTHER),
        (pd.Series(pd.interval_range(0, 2)), OTHER),
        (pd.Series(pd.arrays.SparseArray([0, 1])), NUMBER),
        (pd.Series(pd.arrays.SparseArray([True, False])), FLAG),
        ("int8[pyarrow]", NUMBER),
        ("double[pyarrow]", NUMBER),
        ("bool[pyarrow]", FLAG),
        ("large_string[pyarrow]", TEXT),
        ("timestamp[us][pyarrow]", DATE),
        ("string", TEXT),
    ],
)
def test_kinds_of_odd_columns(column, expected):
    if isinstance(column, str):
        pytest.importorskip("pyarrow")
        column = pd.Series([None, None], dtype=column)
    assert kind(column) == expected


def test_places_are_positions_whatever_the_names():
    X = pd.DataFrame([[1, "a", 0.5, "b"]])
    X.columns = pd.Index([("a", 1), None, 7, 7], tupleize_cols=False)
    assert places(X, NUMBER) == [0, 2]
    assert places(X, TEXT) == [1, 3]
    changed = with_columns(X, {3: pd.Series(["new"])})
    assert changed.iloc[0].tolist() == [1, "a", 0.5, "new"]
    assert X.iloc[0, 3] == "b"


@pytest.mark.parametrize(
    ("dtype", "new", "expected"),
    [
        ("int8", 100.0, "int8"),
        ("int8", 200.0, "int16"),
        ("int8", 0.5, "float64"),
        ("int64", 2.0**62, "int64"),
        ("int64", 2.0**63, "float64"),
        ("uint8", 300.0, "uint16"),
        ("uint8", -1.0, "int16"),
        ("uint32", -1.0, "int64"),
        ("uint64", -1.0, "float64"),
        ("uint64", 2.0**63, "uint64"),
        ("float16", 65504.0, "float16"),
        ("float16", 65505.0, "float32"),
        ("float16", 1e300, "float64"),
        ("float32", 1e39, "float64"),
        ("Int8", 200.0, "Int16"),
        ("Int64", 0.5, "Float64"),
        ("UInt8", -1.0, "Int16"),
        ("Float32", 1.5, "Float32"),
        ("Float32", 1e39, "Float64"),
        ("int8[pyarrow]", 200.0, "int16[pyarrow]"),
        ("int64[pyarrow]", 0.5, "double[pyarrow]"),
        ("float[pyarrow]", 0.5, "float[pyarrow]"),
    ],
)
def test_numbers_go_into_the_narrowest_type_that_holds_them(dtype, new, expected):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    column = pd.Series([1, 2, 3], dtype=dtype, index=list("abc"), name="n")
    found = with_values(column, np.array([1]), np.array([new]))
    assert found.dtype == expected
    assert found.tolist() == [1, new, 3]
    assert (found.name, found.index.tolist()) == ("n", list("abc"))
    assert column.tolist() == [1, 2, 3]


def test_missing_infinite_and_sparse_values():
    found = with_values(pd.Series([1, None], dtype="Int8"), np.array([0]), np.array([0.5]))
    assert found.isna().tolist() == [False, True]
    assert floats(found)[0] == 0.5
    found = with_values(pd.Series([1.0, np.inf]), np.array([0]), np.array([np.inf]))
    assert found.tolist() == [np.finfo(float).max, np.inf]
    found = with_values(pd.Series(pd.arrays.SparseArray([0, 0, 1])), np.array([0]), np.array([5.0]))
    assert found.dtype == "int64" and found.tolist() == [5, 0, 1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 3.0], 1.0),
        ([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 2.0),
        ([1.0, 3.0, np.nan, np.inf, -np.inf], 1.0),
        ([0.1] * 7, 0.0),
        ([np.nan], 0.0),
        ([], 0.0),
        ([1e308, -1e308], 1e308),
    ],
)
def test_the_spread_is_the_standard_deviation_of_what_is_there(values, expected):
    assert spread(np.array(values)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", "a", None, "b"], dtype=object),
        pd.Series(["b", "a", None, "b"], dtype="string"),
        pd.Series(pd.Categorical(["b", "a", None, "b"], list("cba"))),
        pd.Series([True, False, None, True], dtype="boolean"),
        pd.Series([5, "x", np.nan, 5], dtype=object),
    ],
)
def test_levels_are_those_that_are_there(column):
    codes, rows = levels(column)
    assert codes[2] == -1
    assert codes[0] == codes[3] != codes[1]
    assert sorted(codes) == [-1, 0, *([0, 1] if codes[0] == 0 else [1, 1])]
    assert [codes[row] for row in rows] == [0, 1]
    codes, rows = levels(pd.Series([[1], [2]], dtype=object))  # lists have no level
    assert codes.tolist() == [-1, -1] and len(rows) == 0


def test_cells_of_other_rows_keep_index_name_and_type(table):
    X = table(4).set_axis(list("wxyz"))
    for name, column in X.items():
        found = from_rows(column, np.array([3, 3, 0, 1]))
        assert found.dtype == column.dtype and found.name == name
        assert found.index.tolist() == list("wxyz")
        assert found.tolist() == [column.iloc[i] for i in (3, 3, 0, 1)]


OURS = [name for name in corruptions if corruptions.origin(name).startswith("karat.")]
MINE = [name for name in OURS if {"table", "text"} & set(corruptions.get(name).takes)]


def some_table(kind="classification", **columns):
    truth = ["a", "b", "b"] if kind == "classification" else [0.5, 1.5, 2.5]
    return Dataset.from_table(pd.DataFrame({**columns, "y": truth}), "y", name="t", kind=kind)


def some_texts(modality="text", kind="classification"):
    frame = pd.DataFrame({"t": ["one", "two", "three"], "y": ["a", "b", "b"]})
    return Dataset.from_columns(frame, ["t"], "y", name="t", modality=modality)


def some_pairs():
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["z", "x"], "y": ["same", "other"]})
    return Dataset.from_columns(frame, ["a", "b"], "y", name="pairs")


def test_the_page_has_all_names():
    page = Path(__file__).parents[2] / "docs" / "corruptions.md"
    text = page.read_text(encoding="utf-8")
    assert [name for name in OURS if f"| `{name}` |" not in text] == []
    needs = text.partition("Needs are")[2].partition("##")[0]
    assert [need for need in NEEDS if f"`{need}`" not in needs] == []


@pytest.mark.parametrize("name", MINE)
def test_each_corruption_declares_its_requirements(name):
    part = corruptions.get(name)
    assert set(part.takes) <= set(MODALITIES)
    assert set(part.needs) <= set(NEEDS)
    assert part.range == (0, np.inf if name.startswith("noise") else 1)
    check_severity(name, np.float32(0.25))
    if name.startswith("noise"):
        check_severity(name, 9.0)
    else:
        check_severity(name, 1)
        with pytest.raises(DefinitionError, match="0 to 1.*1.5"):
            check_severity(name, 1.5)


@pytest.mark.parametrize("name", MINE)
@pytest.mark.parametrize("severity", [-0.1, np.nan, np.inf, "0.1", True, None])
def test_a_severity_out_of_range_is_refused(name, severity, rng):
    for ask in (
        lambda: check_severity(name, severity),
        lambda: corruptions.get(name)(pd.DataFrame({"x": [1]}), None, severity, rng()),
    ):
        with pytest.raises(DefinitionError, match=f"{name}: severity"):
            ask()


NUMBERS = {"x": [1, 2, 3], "z": [0.5, 1.5, 2.5]}
WORDS = {"w": ["u", "v", "w"], "v": ["x", "y", "z"]}
DAYS = {"d": pd.to_datetime(["2020-01-01"] * 3)}


TEXTS = ["typos", "case", "accents", "whitespace", "word_drop", "word_swap", "truncation"]
TEXTS += ["misspellings"]
NUMERIC = ["noise_gaussian", "noise_uniform", "scaling_error", "outliers"]
NUMERIC += ["rounding", "sign_flip", "stuck_sensor"]
#: why corruptions are refused, by table
REFUSED = {
    "numbers": {
        "categorical_remap": "categories, text or booleans",
        "unseen_category": "categories or text",
        "date_shift": "dates",
        **dict.fromkeys(TEXTS, "text"),
    },
    "regression": dict.fromkeys(["missingness_mnar", "rare_class_dilution"], "not classes"),
    "words": {
        **dict.fromkeys(NUMERIC, "numbers"),
        "date_shift": "dates",
        **dict.fromkeys(["missingness_value", "missingness_mar"], "numbers or dates"),
    },
    "one": {"column_swap": "no two columns", "missingness_mar": "only one column"},
}


@pytest.mark.parametrize(
    ("data", "refused"),
    [
        (some_table(**NUMBERS), REFUSED["numbers"]),
        (some_table("regression", **NUMBERS, **WORDS, **DAYS), REFUSED["regression"]),
        (some_table(**WORDS), REFUSED["words"]),
        (some_table(**NUMBERS, **WORDS, **DAYS), {}),
        (some_table(x=[1, 2, 3]), REFUSED["one"]),
    ],
)
def test_the_reason_is_the_same_in_a_plan_and_in_a_call(data, refused, rng):
    for name in MINE:
        if len(data.items.columns) < 2 and name not in refused:
            continue
        reason = unmet_reason(name, data)
        assert refused.get(name, "") in reason and bool(reason) == (name in refused), name
        y = pd.Series(data.target)
        if name in refused:
            with pytest.raises(DefinitionError, match=f"corruption {name}: {reason}[.]"):
                corruptions.get(name)(data.items, y, 0.5, rng())
        else:
            corruptions.get(name)(data.items, y, 0.5, rng())


def test_texts_and_entities():
    tables_only = [name for name in MINE if "text" not in corruptions.get(name).takes]
    assert {"noise_gaussian", "missingness_mcar", "date_shift"} <= set(tables_only)
    for name in MINE:
        assert bool(unmet_reason(name, some_texts())) == (name in tables_only)
        # an entity is found by its id, so it cannot be repeated
        refused = name in tables_only or name == "duplicate_rows"
        assert ("entities" in unmet_reason(name, some_texts("entity"))) == refused


def test_where_questions_are_about_several_items_rows_stay():
    assert by_row(some_texts()) and not by_row(some_pairs())
    for name in ("rare_class_dilution", "duplicate_rows", "label_noise"):
        assert "rows" in unmet_reason(name, some_pairs())
    assert unmet_reason("typos", some_pairs()) == ""
    frame = pd.DataFrame({"t": ["one", "two", "one"], "y": ["a", "b", "b"]})
    twice = Dataset.from_columns(frame, ["t"], "y", name="t", modality="entity")
    assert by_row(some_texts("entity")) and not by_row(twice)


def test_hidden_and_other_truths():
    assert "target" in unmet_reason("rare_class_dilution", some_texts().blind())
    frame = pd.DataFrame({"t": ["one", "two"], "y": ["two", "one"]})
    items = Dataset.from_columns(frame, ["t"], "y", kind="items")
    assert "items" in unmet_reason("label_noise", items)
    assert "items" in unmet_reason("rare_class_dilution", items)
    assert "rows" in unmet_reason("duplicate_rows", items)


def test_a_plain_function_takes_everything_or_declares_requirements(clean_registry):
    def mine(X, y, severity, rng):
        return X, y

    karat.corruption("mine")(mine)
    assert mine.__dict__ == {} and mine(1, 2, 3, 4) == (1, 2)
    assert unmet_reason("mine", some_pairs()) == unmet_reason("mine", some_table(**NUMBERS)) == ""
    check_severity("mine", 17.0)
    declared = karat.corruption("dated", takes="table", needs=["dates"], range=(0, 3))(mine)
    assert (declared.takes, declared.needs, declared.range) == (("table",), ("dates",), (0, 3))
    assert "texts" in unmet_reason("dated", some_texts())
    assert "dates" in unmet_reason("dated", some_table(**NUMBERS))
    assert unmet_reason("dated", some_table(**DAYS)) == ""
    with pytest.raises(DefinitionError, match="0 to 3.*4"):
        check_severity("dated", 4)


def test_a_partial_of_a_built_in_corruption(clean_registry, rng):
    near = functools.partial(outliers, far=3.0)
    karat.corruption("near")(near)
    assert "numbers" in unmet_reason("near", some_table(**WORDS))
    found = corruptions.get("near")(pd.DataFrame({"x": [0.0, 2.0]}), None, 1.0, rng())[0]
    assert set((found["x"] - [0.0, 2.0]).abs()) == {3.0}


def test_an_unknown_need_is_refused(clean_registry):
    karat.corruption("mine", needs=("nmbers",))(lambda X, y, severity, rng: (X, y))
    with pytest.raises(DefinitionError, match='"mine".*"nmbers".*"numbers"'):
        unmet_reason("mine", some_table(**NUMBERS))


def test_arrays_and_seeds_will_do_and_wrong_lengths_and_types_are_refused():
    corrupt = corruptions.get("noise_gaussian")
    matrix = np.arange(12.0).reshape(6, 2)
    found, y = corrupt(matrix, [0, 1] * 3, 0.5, 7)
    assert isinstance(found, pd.DataFrame) and y.tolist() == [0, 1] * 3
    again, _ = corrupt(pd.DataFrame(matrix), None, 0.5, np.random.default_rng(7))
    pd.testing.assert_frame_equal(found, again)
    usual, fixed = corrupt(matrix, None, 0.5)[0], corrupt(matrix, None, 0.5, 42)[0]
    pd.testing.assert_frame_equal(usual, fixed)
    with pytest.raises(DataError, match="6 .*2"):
        corrupt(matrix, [0, 1], 0.5)
    with pytest.raises(DataError, match="list"):
        corrupt([1, 2], None, 0.5)


def test_severity_zero_does_not_call_the_corruption(clean_registry, rng):
    @corrupts("never", needs=("dates",))
    def never(X, y, severity, rng):
        """Be asked."""
        raise AssertionError

    X = pd.DataFrame({"x": [1]})
    found, y = never(X, None, 0, rng())
    assert found is not X and found.equals(X) and y is None
    with pytest.raises(DefinitionError, match="never: .*dates"):
        never(X, None, 0.1, rng())


steady = settings(deadline=None, derandomize=True, max_examples=200)
severities = st.floats(0, 1)


@pytest.mark.parametrize(
    ("size", "severity", "down", "up"),
    [
        (10, 0.0, 0, 0),
        (10, 0.1, 1, 1),
        (30, 0.1, 3, 3),  # 0.1 * 30 is 3.0000000000000004
        (100, 0.29, 29, 29),  # 0.29 * 100 is 28.999999999999996
        (7, 0.2, 1, 2),
        (7, 0.4, 2, 3),
        (3, 1e-12, 0, 1),
        (5, 1.0, 5, 5),
        (0, 0.5, 0, 0),
    ],
)
def test_shares_by_hand(size, severity, down, up):
    assert count_affected(size, severity) == down
    assert count_up(size, severity) == up


@steady
@given(st.integers(0, 10**6), severities, severities)
def test_more_severity_is_never_less(size, one, other):
    low, high = sorted([one, other])
    assert 0 <= count_affected(size, low) <= count_affected(size, high) <= size
    assert 0 <= count_up(size, low) <= count_up(size, high) <= size
    assert count_affected(size, low) <= count_up(size, low) <= count_affected(size, low) + 1


@steady
@given(st.integers(0, 50), st.integers(0, 5), severities, severities, st.integers(0, 9))
def test_less_is_the_beginning_of_more(rows, columns, one, other, seed):
    low, high = sorted([one, other])
    few, many = (affected_places(rows, s, np.random.default_rng(seed)) for s in (low, high))
    assert many[: len(few)].tolist() == few.tolist()
    assert len(set(many.tolist())) == len(many) == count_affected(rows, high)
    few, many = (affected_cells(rows, columns, s, np.random.default_rng(seed)) for s in (low, high))
    assert few.shape == (columns, rows)
    assert few.sum() == count_affected(rows * columns, low)
    assert (few <= many).all()


def test_a_column_draws_alone():
    one, two = column_generators(np.random.default_rng(1), 2)
    expected = two.random(3)
    one, two = column_generators(np.random.default_rng(1), 2)
    one.random(50)
    assert two.random(3).tolist() == expected.tolist()
    assert one.random() != two.random()
