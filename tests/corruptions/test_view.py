"""Views: generators, compositions, changed shares, and contracts of corruptions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core import registry
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.corruptions.view import (
    CLEAN,
    View,
    changed_share,
    check_view,
    corrupt,
    corrupt_vectors,
    corrupt_with_share,
    parse_composition,
    reason_not_applicable,
    views,
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
    assert changed_share(X, X.iloc[[0, 0, 2, 3]]) == 0.5  # one is gone, another stands twice
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
