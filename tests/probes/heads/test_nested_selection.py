"""The selection among heads equals an explicit nested cross-validation of the train rows."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC

import karat
from karat.core import registry
from karat.core.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.models import predictors as svm_module
from karat.probes.heads.nested_selection import BestOf, inner_folds, name_of

C = [0.001, 0.01, 0.1, 1, 10, 100, 1000]
HEADS = ["naive-bayes", {"use": "knn", "n_neighbors": 3}, {"use": "svm", "C": C}]
NAMED = [{"use": "naive-bayes"}, HEADS[1], *({"use": "svm", "C": value} for value in C)]
PLAIN = [GaussianNB(), KNeighborsClassifier(3), *(SVC(C=value) for value in C)]


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
@pytest.mark.parametrize("seed", [0, 7])
def test_the_selection_equals_nested_cross_validation(load, seed):
    X, y = load(return_X_y=True)
    X, first = np.unique(X, axis=0, return_index=True)  # equal rows are another test's matter
    order = np.random.default_rng(seed).permutation(len(X))
    X, y = X[order], y[first][order]
    train, test = slice(0, 2 * len(X) // 3), slice(2 * len(X) // 3, None)
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    means = [cross_val_score(head, X[train], y[train], cv=folds).mean() for head in PLAIN]
    best = int(np.argmax(means))
    head = BestOf(HEADS, "classification", random_state=seed).fit(X[train], y[train])
    assert head.candidates == NAMED
    assert head.scores_ == pytest.approx(means, abs=1e-12)
    assert head.choice_ == NAMED[best]
    wanted = PLAIN[best].fit(X[train], y[train]).predict(X[test])
    assert np.array_equal(head.predict(X[test]), wanted)


def test_heads_for_numbers_are_selected_by_rmse():
    X, y = load_diabetes(return_X_y=True)
    plain = [KNeighborsRegressor(), LinearRegression(), Ridge(0.1), Ridge(1.0)]
    folds = KFold(4, shuffle=True, random_state=2)
    scoring = "neg_root_mean_squared_error"
    means = [cross_val_score(head, X, y, cv=folds, scoring=scoring).mean() for head in plain]
    heads = ["knn", "linear-regression", {"use": "ridge", "alpha": [0.1, 1.0]}]
    head = BestOf(heads, "regression", folds=4, random_state=2).fit(X, y)
    assert head.scores_ == pytest.approx(means, abs=1e-9)
    best = int(np.argmax(means))
    assert head.choice_ == head.candidates[best] == {"use": "ridge", "alpha": 0.1}
    assert head.predict(X) == pytest.approx(plain[best].fit(X, y).predict(X))
    assert f"ridge alpha=0.1 (RMSE {-means[best]:.4g} " in head.notes_[0]


def test_the_note_names_the_selected_head():
    X = np.repeat([[0.0, 0], [9, 0], [0, 9], [9, 9]], 10, axis=0)
    X = X + np.random.default_rng(0).standard_normal(X.shape)
    y = np.repeat(list("abba"), 10)
    head = BestOf(["logistic-regression", {"use": "svm", "C": [1, 10]}], "classification").fit(X, y)
    # not linearly separable; both machines are perfect, and the first is selected
    assert name_of(head.choice_) == "svm C=1" and "svm C=1 (accuracy 1.000" in head.notes_[0]
    assert head.choice_ == {"use": "svm", "C": 1} and head.scores_[1] == head.scores_[2] == 1.0


def test_ties_go_to_the_first_head():
    X, y = load_iris(return_X_y=True)
    for first in ("uniform", "distance"):
        other = {"uniform": "distance", "distance": "uniform"}[first]
        heads = [{"use": "knn", "n_neighbors": 1, "weights": [first, other]}]
        assert BestOf(heads, "classification").fit(X, y).choice_["weights"] == first


def test_heads_are_never_fitted_on_rows_they_are_scored_on(monkeypatch):
    seen = []

    class Spy:
        def fit(self, X, y):
            self.rows = {tuple(row) for row in X}
            return self

        def predict(self, X):
            asked = {tuple(row) for row in X}
            seen.append((self.rows, asked))
            return np.zeros(len(X))

    monkeypatch.setitem(registry.heads._parts, "naive-bayes", lambda: Spy())
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, (90, 2)).astype(float)  # at most 16 rows that differ
    y = rng.integers(0, 2, 90)
    BestOf(["naive-bayes"], "classification", folds=4).fit(X, y)
    assert len(seen) == 4
    for taught, asked in seen:
        assert taught and asked and not taught & asked
    everything = {tuple(row) for row in X}
    assert set.union(*(asked for _, asked in seen)) == everything
    assert sum(len(asked) for _, asked in seen) == len(everything)


def test_the_selection_does_not_depend_on_test_labels(tmp_path):
    X, y = load_wine(return_X_y=True)
    part = np.where(np.arange(len(X)) % 3 == 0, "test", "train")
    notes = []
    for shift in (0, 1):
        labels = np.where(part == "test", (y + shift) % 3, y)
        table = pd.DataFrame(X, columns=[f"x{i}" for i in range(X.shape[1])]).assign(y=labels)
        data = Dataset.from_table(table, target="y", name="wine", kind="classification")
        data = replace(data, part=part)
        probe = {"use": "trained", "head": {"use": "best-of", "heads": HEADS}}
        task = karat.Task("wine", data, probe=probe, split="fixed", metrics=["acc"])
        plain = {"plain": lambda items: items.to_numpy()}
        (run,) = karat.evaluate(plain, task, output=tmp_path / str(shift))
        notes.append(run.results()["notes"].tolist())
        assert "best-of" in notes[-1][0]
    assert notes[0] == notes[1]


def test_equal_rows_are_in_one_fold_and_folds_are_stratified():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    X[40:] = X[:20]
    X[0], X[40] = 0.0, -0.0  # the same number
    y = np.arange(60) % 3
    y[40:] = y[:20]
    folds = inner_folds(X, y, 4, 0)
    assert len(folds) == 4 and np.array_equal(np.sum(folds, axis=0), np.ones(60))
    for held in folds:
        assert np.array_equal(held[40:], held[:20])
        assert np.bincount(y[:40][held[:40]]).tolist() in ([3, 3, 4], [3, 4, 3], [4, 3, 3])


def test_fewer_folds_for_few_rows():
    X = np.arange(6.0)[:, None]
    assert len(inner_folds(X, list("aaabbb"), 5, 0)) == 3
    assert len(inner_folds(X, list("aabbcd"), 5, 0)) == 2
    assert inner_folds(X, list("abcdef"), 5, 0) == []
    assert len(inner_folds(X, None, 10, 0)) == 6
    assert inner_folds(np.ones((6, 1)), None, 5, 0) == []


def test_without_folds_the_first_head_is_selected():
    head = BestOf(["decision-tree", "naive-bayes"], "classification").fit(
        np.arange(3.0)[:, None], list("abc")
    )
    assert "decision-tree" in head.notes_[0] and "too few rows" in head.notes_[0]
    assert head.predict(np.array([[1.1]])).tolist() == ["b"]


def test_a_class_with_one_member():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((21, 3)), np.array([*"ab" * 10, "c"])
    X += 5 * (y == "b")[:, None]
    head = BestOf(
        ["naive-bayes", {"use": "svm", "C": [1, 10]}, "logistic-regression"], "classification"
    ).fit(X, y)
    assert (head.predict(X[:20]) == y[:20]).all() and "failed" not in head.notes_[0]


def test_a_head_that_fails_is_not_selected():
    X, y = np.arange(8.0)[:, None], np.repeat(list("ab"), 4)
    head = BestOf([{"use": "knn", "n_neighbors": [7, 1]}], "classification", folds=2).fit(X, y)
    assert head.choice_ == {"use": "knn", "n_neighbors": 1}
    assert "knn n_neighbors=7 failed" in head.notes_[0]
    with pytest.raises(DataError, match="best-of.*Expected n_neighbors"):
        BestOf([{"use": "knn", "n_neighbors": 7}], "classification", folds=2).fit(X, y)


def test_probabilities_are_those_of_the_selected_head():
    X, y = load_iris(return_X_y=True)
    head = BestOf(["naive-bayes"], "classification").fit(X, y)
    assert np.array_equal(head.predict_proba(X), GaussianNB().fit(X, y).predict_proba(X))
    assert head.classes_.tolist() == [0, 1, 2]
    assert not hasattr(BestOf(["svm"], "classification").fit(X, y), "predict_proba")
    assert not hasattr(BestOf(["naive-bayes"], "classification"), "predict_proba")


def test_machines_with_equal_gamma_share_a_kernel(monkeypatch):
    made = []
    real = svm_module.Kernel.__init__

    def counted(self, X, gamma):
        made.append(gamma)
        real(self, X, gamma)

    monkeypatch.setattr(svm_module.Kernel, "__init__", counted)
    X, y = load_iris(return_X_y=True)
    heads = [{"use": "svm", "C": C}, {"use": "svm", "C": [1, 2], "gamma": 0.5}]
    BestOf(heads, "classification", folds=3).fit(X, y)
    assert sorted(map(str, made[:-1])) == ["0.5"] * 3 + ["scale"] * 3  # and one for the winner


@pytest.mark.parametrize(
    ("heads", "word"),
    [
        ([], r"\[\]"),
        ("naive-bayes", "naive-bayes"),
        ([{"C": 1}], "use"),
        (["knnn"], '"knnn".*"knn"'),
        ([{"use": "svm", "c": 1}], '"best-of".*"svm".*"c"'),
        ([{"use": "svm", "C": [1, -1]}], "C .*-1"),
        (["ridge"], "ridge .*classification"),
        (["dbscan"], "dbscan"),
        (["isolation-forest"], "isolation-forest"),
        ([{"use": "best-of", "heads": ["naive-bayes"]}], "another best-of"),
    ],
)
def test_wrong_definitions_fail_before_anything_is_fitted(heads, word):
    with pytest.raises(DefinitionError, match=word):
        BestOf(heads, "classification")
    with pytest.raises(DefinitionError, match="folds.*1"):
        BestOf(["naive-bayes"], "classification", folds=1)


def test_candidates_of_two_selections_are_fitted_once_per_inner_fold(monkeypatch):
    X, y = load_wine(return_X_y=True)
    fitted, made = [], {}
    fit_kernel = svm_module.RbfLabels.fit_kernel
    monkeypatch.setattr(
        svm_module.RbfLabels,
        "fit_kernel",
        lambda self, kernel, y: fitted.append(self.C) or fit_kernel(self, kernel, y),
    )

    def share(name, make):
        if name not in made:
            made[name] = make()
        return made[name]

    def select(heads, target):
        return BestOf(heads, "classification", folds=3, share=share).fit(X, target)

    machines = {"use": "svm", "C": [1, 10]}
    alone = BestOf([machines], "classification", folds=3).fit(X, y)
    fitted.clear()
    first, second = select([machines], y), select(["naive-bayes", machines], y)
    assert first.scores_.tolist() == alone.scores_.tolist() == second.scores_[1:].tolist()
    refitted = 1 + (second.choice_["use"] == "svm")
    assert len(fitted) == 2 * 3 + refitted
    # another target on the same rows has its own inner folds
    other = select([machines], y == 1)
    plain = BestOf([machines], "classification", folds=3).fit(X, y == 1)
    assert other.scores_.tolist() == plain.scores_.tolist()
