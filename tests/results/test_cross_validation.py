"""Scores of scikit-learn in the leaderboard and in comparisons."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, ShuffleSplit, cross_validate
from sklearn.naive_bayes import GaussianNB

import karat
from karat.errors import DataError, DefinitionError
from karat.results.load import gather_scores

X, Y = load_iris(return_X_y=True)
MODELS = {"dummy": DummyClassifier(), "bayes": GaussianNB()}
MANY = ["accuracy", "neg_log_loss", "f1_macro"]


@pytest.fixture(scope="module")
def single():
    return {name: cross_validate(model, X, Y) for name, model in MODELS.items()}


@pytest.fixture(scope="module")
def several():
    return {name: cross_validate(model, X, Y, scoring=MANY) for name, model in MODELS.items()}


def test_one_metric(single):
    board = karat.leaderboard(single)
    assert board.index.tolist() == ["bayes", "dummy"]
    mean = single["bayes"]["test_score"].mean()
    assert board.loc["bayes", "cross_validate"] == pytest.approx(mean)
    spent = single["bayes"]["fit_time"] + single["bayes"]["score_time"]
    assert board.loc["bayes", "seconds"] == pytest.approx(spent.sum())
    found = karat.compare(single, "bayes", "dummy")
    apart = single["bayes"]["test_score"] - single["dummy"]["test_score"]
    assert found.tasks.loc[0, "difference"] == pytest.approx(apart.mean())
    assert found.tasks.loc[0, "folds"] == 5


def test_several_metrics_get_the_names_and_signs_of_karat(several):
    given = gather_scores(several)
    assert given.metrics == {"cross_validate": "acc"}
    assert {m: given.higher(m) for m in ("acc", "logloss", "f1_macro")} == {
        "acc": True,
        "logloss": False,
        "f1_macro": True,
    }
    board = karat.leaderboard(several, metrics={"cross_validate": "logloss"})
    loss = -several["bayes"]["test_neg_log_loss"].mean()
    assert board.loc["bayes", "cross_validate"] == pytest.approx(loss) and board.index[0] == "bayes"
    assert karat.compare(several, "bayes", "dummy", metric="f1_macro").tasks["metric"].tolist() == [
        "f1_macro"
    ]


def test_a_scorer_of_the_user_is_higher_is_better():
    found = {"a": {"test_gain": [3.0, 4.0]}, "b": {"test_gain": [1.0, 2.0]}}
    assert karat.leaderboard(found).index.tolist() == ["a", "b"]
    # not Karat's rmse: scikit-learn's scores are always higher-is-better
    found = {"a": {"test_rmse": [-3.0, -4.0]}, "b": {"test_rmse": [-1.0, -2.0]}}
    assert karat.leaderboard(found).index.tolist() == ["b", "a"]


def test_models_by_task(single):
    found = {name: {"iris": each, "again": each} for name, each in single.items()}
    board = karat.leaderboard(found)
    assert {"iris", "again"} <= set(board.columns) and board.index[0] == "bayes"
    assert sorted(karat.compare_all(found).models) == ["bayes", "dummy"]


def test_candidates_of_a_search_are_models():
    search = GridSearchCV(LogisticRegression(max_iter=200), {"C": [0.0001, 1.0]}, cv=4).fit(X, Y)
    board = karat.leaderboard(search.cv_results_)
    assert board.index.tolist() == ["C=1.0", "C=0.0001"]
    mean = search.cv_results_["mean_test_score"][1]
    assert board.loc["C=1.0", "cross_validate"] == pytest.approx(mean)
    named = karat.leaderboard({"logistic": search.cv_results_, "dummy": {"test_score": [0.3] * 4}})
    assert named.index[0] == "logistic C=1.0" and len(named) == 3


def test_sizes_of_folds_are_those_of_the_splits():
    splits = ShuffleSplit(6, test_size=0.5, random_state=0)
    found = {
        name: cross_validate(model, X, Y, cv=splits, return_indices=True)
        for name, model in MODELS.items()
    }
    from karat.analysis.leaderboard import fold_ratios

    assert fold_ratios(gather_scores(found), ["cross_validate"]) == [1.0]


def test_a_failed_fold_counts_as_the_worst():
    found = {"a": {"test_score": [0.9, np.nan]}, "b": {"test_score": [0.5, 0.5]}}
    given = gather_scores(found)
    assert given.jobs["status"].tolist() == ["ok", "failed", "ok", "ok"]
    assert karat.leaderboard(found).loc["a", "failed"] == 1


@pytest.mark.parametrize(
    ("found", "named"),
    [
        ({}, "empty"),
        ({"a": 3}, '"a"'),
        ({"a": {}}, '"a"'),
        ({"a": {"fit_time": [1.0]}}, "fit_time"),
        ({"a": {"test_score": ["x"]}}, "test_score"),
        ({"a": {"test_score": []}}, "test_score"),
        ({"a": {"test_acc": [1.0], "test_f1": [1.0, 2.0]}}, '"a"'),
    ],
)
def test_other_dictionaries_are_refused(found, named):
    with pytest.raises(DataError, match=named):
        karat.leaderboard(found)


def test_a_mapping_has_no_predictions(single):
    with pytest.raises(DefinitionError, match="rows"):
        karat.compare(single, "bayes", "dummy", on="rows")
    with pytest.raises(DefinitionError, match="bayes"):
        karat.compare(single, "byes", "dummy")
