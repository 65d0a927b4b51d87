"""Views: generators, compositions, changed shares, and contracts of corruptions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.corruptions.corrupted_data import corrupt, corrupt_vectors, corrupt_with_share
from karat.corruptions.view import (
    CLEAN,
    View,
    check_view,
    parse_composition,
    reason_not_applicable,
    views,
)
from karat.errors import DefinitionError

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
