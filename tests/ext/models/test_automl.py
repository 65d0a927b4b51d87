"""Baselines of the AutoML Benchmark, within their time and memory limits."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

from karat.ext.models import automl
from karat.ext.models.automl import (
    AutoGluonPredictor,
    Budget,
    BudgetForest,
    FlamlPredictor,
    OneTree,
    PriorPredictor,
    TunedForest,
    candidates,
    table_for_automl,
)
from karat.models.model import Model

rng = np.random.default_rng(0)
X = pd.DataFrame({"n": rng.normal(size=120), "w": rng.choice(["b", "a", "c"], 120)})
X.loc[3, "n"] = np.nan
X.loc[5, "w"] = None
Y = np.where((X["n"].fillna(0) > 0) == (X["w"] == "a"), "yes", "no")
NUMBERS = X["n"].fillna(0).to_numpy() * 3


def test_the_constant_is_the_prior_or_the_median():
    classes = PriorPredictor(kind="classification").fit(X[:5], np.array(["a", "b", "b", "b", "b"]))
    assert classes.predict_proba(X[:1]).tolist() == [[0.2, 0.8]]
    numbers = PriorPredictor(kind="regression").fit(X[:5], np.array([1.0, 2.0, 9.0, 10.0, 100.0]))
    assert numbers.predict(X[:2]).tolist() == [9.0, 9.0]
    assert numbers.models_count_ == 1 and not hasattr(numbers, "predict_proba")


def test_one_tree_fits_its_train_rows_and_accepts_unseen_words():
    tree = OneTree(kind="classification", random_state=0).fit(X, Y)
    assert (tree.predict(X) == Y).all()
    assert tree.predict(pd.DataFrame({"n": [np.nan], "w": ["new"]})).shape == (1,)
    numbers = OneTree(kind="regression").fit(X, NUMBERS)
    assert np.allclose(numbers.predict(X), NUMBERS)


def trees(forest: BudgetForest) -> list[list[float]]:
    return [tree.tree_.threshold.tolist() for tree in forest.trees_.estimators_]


def test_without_limits_all_trees_are_grown_at_once():
    forest = BudgetForest(n_estimators=12, kind="classification", random_state=3).fit(X, Y)
    assert forest.models_count_ == 12 and forest.notes_ == []
    words = {"a": 0.0, "b": 1.0, "c": 2.0}
    mean = X["n"].mean()
    # numbers first, then words by their place in the alphabet; the empty text comes before "a"
    plain = np.column_stack(
        [X["n"].fillna(mean), [0.0 if pd.isna(w) else words[w] + 1 for w in X["w"]]]
    ).astype(np.float32)
    sklearns = RandomForestClassifier(12, random_state=3).fit(plain, Y)
    assert np.array_equal(forest.predict_proba(X), sklearns.predict_proba(plain))


def test_grown_in_steps_it_is_the_same_forest():
    whole = BudgetForest(n_estimators=23, kind="classification", random_state=3).fit(X, Y)
    steps = BudgetForest(
        n_estimators=23, step_size=4, kind="classification", random_state=3, max_runtime_seconds=600
    ).fit(X, Y)
    assert trees(steps) == trees(whole)


@pytest.fixture
def counted(monkeypatch):
    """Count the trees, each of which takes 1 MB and 1/64 of a second of a fake clock."""
    counted, grow = {"trees": 0}, automl.Budget.grown
    monkeypatch.setattr(automl, "_memory", lambda: (10 + counted["trees"]) * 2**20)
    clock = SimpleNamespace(monotonic=lambda: counted["trees"] / 64)
    monkeypatch.setattr(automl, "time", clock)

    def grown(self, number):
        counted["trees"] += number
        grow(self, number)

    monkeypatch.setattr(automl.Budget, "grown", grown)
    return counted


def test_it_stops_before_its_time_is_over(counted):
    forest = BudgetForest(n_estimators=10**6, kind="classification", max_runtime_seconds=1.0).fit(
        X, Y
    )
    assert forest.models_count_ == len(forest.trees_.estimators_) == 57  # 90 % of 64
    assert forest.notes_ == ["57 of 1,000,000 trees in 1 s"]


def test_it_stops_before_its_memory_is_full(counted):
    """Of 50 MB, 90 % may be used and 10 are used already."""
    forest = BudgetForest(n_estimators=1000, kind="regression", max_mem_size_mb=50)
    assert forest.fit(X, NUMBERS).models_count_ == 35  # 10 + 35 = 45, which is 90 % of 50
    assert forest.notes_ == ["35 of 1,000 trees in 50 MB"]


def test_a_budget_goes_by_the_worst_of_the_last_steps(monkeypatch):
    now = {"time": 100.0}
    monkeypatch.setattr(automl.time, "monotonic", lambda: now["time"])
    budget = Budget(10.0, None)
    assert budget.room(10) == 10  # nothing is known yet
    now["time"] += 2.0
    budget.grown(2)  # a second for each tree
    assert budget.left == 8.0 and budget.room(10) == 8 and budget.first == 2.0
    for _ in range(5):
        now["time"] += 0.5
        budget.grown(1)
    assert budget.room(100) == 11  # 5.5 s at half a second: the first step is forgotten
    now["time"] += 100
    assert budget.room(1) == 0


def test_parameters_go_to_the_forest():
    forest = BudgetForest(
        n_estimators=3, max_depth=1, options={"criterion": "entropy"}, kind="classification"
    )
    assert max(tree.get_depth() for tree in forest.fit(X, Y).trees_.estimators_) == 1
    with pytest.raises(Exception, match='"criterium".*"criterion"'):
        BudgetForest(options={"criterium": "gini"}, kind="classification").fit(X, Y)
    with pytest.raises(Exception, match='"depth"'):
        OneTree(options={"depth": 3}, kind="classification").fit(X, Y)


def test_limits_reach_it_by_name():
    model = Model("rf", BudgetForest(), "predictor", limits={"max_runtime_seconds": 9, "cores": 2})
    made = model.fresh(7, "regression")
    assert (made.max_runtime_seconds, made.cores, made.kind, made.random_state) == (
        9,
        2,
        "regression",
        7,
    )


def test_its_artifacts():
    forest = BudgetForest(n_estimators=3, kind="regression").fit(X, NUMBERS)
    assert forest.artifacts(["models"]) == {}
    assert '"trees": 3' in forest.artifacts(["info"])["info/forest.json"]


def test_which_values_are_tried():
    assert candidates(1) == [1]
    assert candidates(100) == [10, 1, 2, 4, 6, 8, 28, 46, 64, 82, 100]
    for columns in range(1, 60):
        values = candidates(columns)
        assert len(set(values)) == len(values) <= 11 and {1, columns} <= set(values)


def test_max_features_is_tuned_by_inner_folds():
    """Only one of nine columns says anything: a forest that looks at all of them finds it."""
    draw = np.random.default_rng(1)
    noise = pd.DataFrame(draw.normal(size=(150, 9)), columns=list("abcdefghi"))
    truth = np.where(noise["e"] > 0, "yes", "no")
    tuned = TunedForest(n_estimators=20, kind="classification", random_state=0, optimize="acc")
    tuned.fit(noise, truth)
    assert set(tuned.scores_) == set(candidates(9))
    assert tuned.scores_[9] > tuned.scores_[1]
    best = max(tuned.scores_, key=tuned.scores_.get)
    assert tuned.trees_.max_features == best
    assert tuned.notes_ == [f"max_features {best} of 9, 8 tried"] and tuned.models_count_ == 20


@pytest.mark.parametrize("optimize", ["auc", "balacc", "logloss", "f1", None, "mae", "r2", "rmse"])
def test_every_metric_prefers_the_better_value(optimize):
    regression = optimize in ("mae", "r2", "rmse")
    kind, columns = ("regression", 4) if regression else ("classification", 16)
    noise = pd.DataFrame(np.random.default_rng(2).normal(size=(90, columns))).rename(columns=str)
    target = noise["0"].to_numpy() * 5
    tuned = TunedForest(n_estimators=10, kind=kind, optimize=optimize, k_folds=3)
    tuned.fit(noise, target if kind == "regression" else np.where(target > 0, "yes", "no"))
    assert tuned.scores_[columns] > tuned.scores_[1]


def test_a_tuned_forest_stops_before_its_time_is_over(counted):
    tuned = TunedForest(n_estimators=10**6, kind="classification", max_runtime_seconds=2.0).fit(
        X, Y
    )
    assert len(tuned.scores_) >= 1 and tuned.models_count_ > 1
    assert counted["trees"] / 64 <= 2.0


def test_too_few_rows_to_tune_use_the_default():
    tuned = TunedForest(n_estimators=5, kind="classification").fit(X[:6], np.array(["a", "b"] * 3))
    assert tuned.scores_ == {} and tuned.trees_.max_features == 1


# -- FLAML and AutoGluon, if they are installed ---------------------------------------------------


plain_rng = np.random.default_rng(0)
PLAIN = pd.DataFrame({"n": plain_rng.normal(size=120), "w": plain_rng.choice(["b", "a", "c"], 120)})
PLAIN_Y = np.where((PLAIN["n"] > 0) == (PLAIN["w"] == "a"), "yes", "no")
TRIPLE = PLAIN["n"].to_numpy() * 3


def test_words_are_strings_and_numbers_do_not_change():
    table = table_for_automl(pd.DataFrame({1: [True, None], "n": [1.5, np.nan]}, index=[7, 8]))
    assert table.columns.tolist() == ["1", "n"] and table.index.tolist() == [0, 1]
    assert table["1"].iloc[0] == "True" and pd.isna(table["1"].iloc[1])
    assert table["n"].dtype == float


def test_flaml_searches_within_its_time():
    pytest.importorskip("flaml")
    limits = {"max_runtime_seconds": 5, "optimize": "auc", "random_state": 1}
    model = FlamlPredictor(kind="classification", learners=["rf"], **limits).fit(PLAIN, PLAIN_Y)
    assert model.predict_proba(PLAIN).shape == (120, 2)
    assert (model.predict(PLAIN) == PLAIN_Y).mean() > 0.8 and model.models_count_ >= 1
    assert set(model.artifacts(["leaderboard"])) == {"leaderboard/leaderboard.csv"}
    numbers = FlamlPredictor(kind="regression", seconds=3, learners=["rf"]).fit(PLAIN, TRIPLE)
    assert np.corrcoef(numbers.predict(PLAIN), TRIPLE)[0, 1] > 0.8


def test_autogluon_fits_within_its_time():
    pytest.importorskip("autogluon.tabular")
    forests = {"hyperparameters": {"RF": {}, "XT": {}}}
    limits = {"max_runtime_seconds": 20, "optimize": "auc", "random_state": 1}
    model = AutoGluonPredictor(kind="classification", options=forests, **limits).fit(PLAIN, PLAIN_Y)
    assert model.predict_proba(PLAIN).shape == (120, 2) and model.models_count_ == 3
    assert (model.predict(PLAIN) == PLAIN_Y).mean() > 0.8
    assert set(model.artifacts(["leaderboard", "info"])) == {
        "leaderboard/leaderboard.csv",
        "info/models.json",
    }
    numbers = AutoGluonPredictor(kind="regression", seconds=15, options=forests).fit(PLAIN, TRIPLE)
    assert np.corrcoef(numbers.predict(PLAIN), TRIPLE)[0, 1] > 0.8
