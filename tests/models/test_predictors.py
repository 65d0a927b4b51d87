"""Predictors of table rows, cached predictions, forests and support vector machines."""

import pickle
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR

import karat
from karat.config.catalog import Catalog
from karat.core.dataset import Dataset
from karat.core.task import Task
from karat.errors import DefinitionError, MissingExtra
from karat.execution.solvers import PredictorSolver
from karat.execution.splits import split
from karat.models import predictors, table_predictor
from karat.models.adapters import adapt
from karat.models.predictors import (
    LEAST_STEPS,
    Adam,
    Kernel,
    NetClassifier,
    NetRegressor,
    OrderedForestClassifier,
    OrderedForestRegressor,
    RbfClassifier,
    RbfLabels,
    RbfRegressor,
)
from karat.models.table_predictor import (
    ConstantPredictor,
    MatrixPredictor,
    PreparedRows,
    PreparedTable,
    TablePredictor,
    distinct_rows,
)


def rows(count, seed=0):
    return np.random.default_rng(seed).normal(size=(count, 5))


@pytest.mark.parametrize("block", [7, 2**14])
@pytest.mark.parametrize("classes", [1, 2, 5])
def test_classes_and_probabilities_are_scikit_learns(monkeypatch, classes, block):
    monkeypatch.setattr(predictors, "BLOCK", block)
    X, test = rows(200), rows(150, seed=1)
    y = np.array(list("abcde"))[(np.abs(X[:, 0]) * 9).astype(int) % classes]
    ours = OrderedForestClassifier(20, random_state=3).fit(X, y)
    theirs = RandomForestClassifier(20, random_state=3).fit(X, y)
    assert np.array_equal(ours.predict_proba(test), theirs.predict_proba(test))
    assert np.array_equal(ours.predict(test), theirs.predict(test))


def test_numbers_are_scikit_learns():
    X, test = rows(200), rows(150, seed=1)
    y = 1e5 * X[:, 0] + X[:, 1] ** 2
    ours = OrderedForestRegressor(20, random_state=3).fit(X, y)
    theirs = RandomForestRegressor(20, random_state=3).fit(X, y)
    assert np.array_equal(ours.predict(test), theirs.predict(test))


def test_rows_of_another_width_are_refused():
    forest = OrderedForestClassifier(3, random_state=0).fit(rows(20), np.arange(20) % 2)
    with pytest.raises(ValueError, match="5 features"):
        forest.predict_proba(rows(4)[:, :3])


ROWS = pd.DataFrame({"x": [0.0, 1.0, 10.0, 11.0], "w": ["a", "a", "b", "b"]})
LOGISTIC = "sklearn.linear_model:LogisticRegression"
FOREST = "sklearn.ensemble:RandomForestClassifier"
PRIOR = "sklearn.dummy:DummyClassifier"

#: the predictors of TACO, each with what it needs
NAMED = {
    "logistic-regression": "",
    "linear-regression": "",
    "svm": "",
    "random-forest": "",
    "xgboost": "xgboost",
    "mlp": "torch",
}


def named(name, kind="classification", **changes):
    """Return a named predictor, fresh; with fewer trees or epochs, to save time."""
    if NAMED[name]:
        pytest.importorskip(NAMED[name])
    made = Catalog().model(name).fresh(3, kind)
    for options in (made.classifier_options, made.regressor_options):
        if options:
            options["n_estimators"] = 100 if name == "xgboost" else 20
    if name == "mlp":
        made.options = {"epochs": 60}
    return made.set_params(**changes)


def made_table(count=300, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "x": rng.normal(50, 10, count),
            "n": rng.integers(0, 5, count),
            "w": rng.choice(["a", "b", "c", "d"], count),
        }
    )
    table.loc[::17, "x"] = np.nan
    return table


def test_constant_predictor_returns_the_class_shares_or_the_mean():
    fitted = ConstantPredictor("classification").fit(ROWS, np.array(["no", "no", "no", "yes"]))
    assert fitted.predict(ROWS).tolist() == ["no"] * 4
    assert fitted.predict_proba(ROWS).tolist() == [[0.75, 0.25]] * 4
    assert fitted.classes_.tolist() == ["no", "yes"]
    fitted = ConstantPredictor("regression").fit(ROWS, np.array([0.0, 0.0, 0.0, 4.0]))
    assert fitted.predict(ROWS).tolist() == [1.0] * 4
    assert not hasattr(fitted, "predict_proba")


def test_options_and_seed_reach_the_estimator():
    for kind, trees in (("classification", 2), ("regression", 3)):
        predictor = TablePredictor(
            classifier=FOREST,
            regressor="sklearn.ensemble:RandomForestRegressor",
            options={"n_estimators": 9, "max_depth": 4},
            classifier_options={"n_estimators": 2},
            regressor_options={"n_estimators": 3},
            kind=kind,
            random_state=7,
        )
        forest = predictor.fit(ROWS, np.arange(4.0)).last_.estimator
        assert (forest.n_estimators, forest.max_depth, forest.random_state) == (trees, 4, 7)


def test_a_mistyped_option_raises():
    predictor = TablePredictor(FOREST, options={"n_estimator": 3})
    with pytest.raises(DefinitionError, match='"n_estimator".*"n_estimators"'):
        predictor.fit(ROWS, np.arange(4))


@pytest.mark.parametrize(
    "own, other", [("classification", "regression"), ("regression", "classification")]
)
def test_it_declines_what_it_has_no_estimator_for(own, other):
    predictor = TablePredictor(**{{"classification": "classifier"}.get(own, "regressor"): "a:B"})
    assert predictor.declines(other) == f"it is for {own}, not {other}"
    assert predictor.declines(own) == ""


def test_labels_come_back_as_they_were_whatever_the_estimator_takes():
    for labels in (["no", "yes"], [0.5, 1.5], [7, 3]):
        y = np.repeat(labels, 2)
        fitted = TablePredictor(LOGISTIC).fit(ROWS, y)
        assert fitted.predict(ROWS).tolist() == y.tolist()
        assert fitted.classes_.tolist() == sorted(labels)


@pytest.mark.parametrize("name", [name for name in NAMED if name != "linear-regression"])
def test_holes_infinities_and_new_words_in_test_rows_are_answered(name):
    table = made_table()
    y = np.where(table["n"] > 2, "many", "few")
    fitted = named(name).fit(table, y)
    row = table.iloc[[1]]
    odd = pd.concat([row] * 6, ignore_index=True).astype({"n": float, "x": float})
    odd.loc[0, "x"], odd.loc[1, "x"] = np.inf, np.nan
    odd.loc[2, "x"] = np.nanmedian(table["x"])
    odd.loc[3, "x"], odd.loc[4, ["x", "n"]] = 1e300, -np.inf
    odd.loc[5, "w"] = "never seen"
    chances = fitted.predict_proba(odd)
    assert np.isfinite(chances).all()
    # what is infinite or missing is read as the median of the train rows
    assert chances[0] == pytest.approx(chances[2])
    assert chances[1] == pytest.approx(chances[2])


def test_prepared_rows_are_within_32_bits_and_cannot_be_changed():
    prepared = PreparedTable()
    prepared.fit(ROWS)
    matrix = prepared.transform(pd.DataFrame({"x": [1e200, -1e200], "w": ["a", "b"]})).matrix
    assert matrix[:, 0].tolist() == [1e30, -1e30]
    assert np.isfinite(matrix.astype(np.float32)).all()
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 1


class Counts:
    """Answers 0 with probability 0.4, and counts how often it is asked."""

    def __init__(self):
        self.asked = 0

    def fit(self, X, y):
        return self

    def predict(self, X):
        self.asked += 1
        return np.zeros(len(X), dtype=int)

    def predict_proba(self, X):
        self.asked += 1
        return np.tile([0.4, 0.6], (len(X), 1))


def test_the_likeliest_label_costs_one_pass_and_the_estimators_own_two():
    X, y = np.zeros((4, 1)), np.array(["a", "a", "b", "b"])
    for likeliest, label, passes in ((True, "b", 1), (False, "a", 2)):
        predictor = MatrixPredictor(Counts(), "classification", likeliest=likeliest).fit(X, y)
        labels, chances = predictor.predict_both(X)
        assert labels.tolist() == [label] * 4
        assert chances.tolist() == [[0.4, 0.6]] * 4
        assert predictor.estimator.asked == passes
        assert predictor.predict(X).tolist() == [label] * 4


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", [name for name in NAMED if name != "linear-regression"])
def test_a_named_predictor_answers_alike_however_it_is_asked(name, classes):
    table, test = made_table(), made_table(60, seed=1)
    label = dict(zip("abcd", ["p", "q", "r", "s"] if classes == 4 else "pqpq", strict=True))
    fitted = named(name).fit(table, table["w"].map(label).to_numpy(dtype=object))
    labels, chances = fitted.predict_both(test)
    assert np.array_equal(labels, fitted.predict(test))
    assert np.array_equal(chances, fitted.predict_proba(test))
    assert chances.shape == (60, classes)
    assert chances.sum(axis=1) == pytest.approx(np.ones(60))
    assert np.mean(labels == test["w"].map(label)) > 0.95


@pytest.mark.parametrize("name", [name for name in NAMED if name != "logistic-regression"])
def test_a_named_predictor_follows_numbers_in_their_own_units(name):
    table, test = made_table(600), made_table(100, seed=1)

    def truth(of):
        return 1e5 + 2e4 * of["n"].to_numpy() + np.where(of["w"] == "a", 3e4, 0)

    fitted = named(name, "regression").fit(table, truth(table))
    residue = fitted.predict(test) - truth(test)
    assert np.var(residue) / np.var(truth(test)) < 0.05
    assert not hasattr(fitted, "predict_both")


def test_named_predictors_have_the_documented_parameters():
    found = {name: Catalog().model(name) for name in NAMED}
    asked = {name: model.params for name, model in found.items()}
    assert asked["random-forest"]["classifier_options"] == {"n_estimators": 200}
    assert asked["random-forest"]["regressor_options"] == {"n_estimators": 300}
    names = ("n_estimators", "max_depth", "learning_rate")
    assert asked["xgboost"]["classifier_options"] == dict(zip(names, (400, 6, 0.1), strict=True))
    assert asked["xgboost"]["regressor_options"] == dict(zip(names, (500, 8, 0.05), strict=True))
    shared = asked["xgboost"]["options"]
    assert (shared["subsample"], shared["colsample_bytree"]) == (0.8, 0.8)
    assert shared["tree_method"] == "hist"
    assert asked["svm"]["max_train_rows"] == 5000
    assert found["logistic-regression"].prototype.declines("regression")
    assert found["linear-regression"].prototype.declines("classification")


def test_a_cap_draws_a_stratified_sample_and_notes_it():
    y = np.repeat(["common", "rare"], [950, 50])
    table = pd.DataFrame({"x": np.arange(1000.0)})
    capped = TablePredictor(PRIOR, max_train_rows=100, random_state=1).fit(table, y)
    assert capped.notes_ == ["fitted on 100 of 1,000 rows"]
    assert capped.predict_proba(table[:1]).tolist() == [[0.95, 0.05]]
    whole = TablePredictor(PRIOR, max_train_rows=1000).fit(table, y)
    assert whole.notes_ == []
    # the preprocessing learns from all rows
    one, other = (each.preparation_.transform(table).matrix for each in (capped, whole))
    assert np.array_equal(one, other)


def test_the_rows_under_a_cap_are_the_seeds():
    X, y = np.arange(200.0)[:, None], np.arange(200) % 2

    def drawn(seed):
        made = MatrixPredictor(SVC(), "classification", max_train_rows=20, random_state=seed)
        return made.fit(X, y).estimator.support_vectors_

    assert np.array_equal(drawn(5), drawn(5))
    assert not np.array_equal(drawn(5), drawn(6))


@pytest.fixture
def task():
    table = made_table(120)
    data = Dataset.from_table(
        table.assign(y=np.where(table["n"] > 2, "many", "few")), target="y", name="toy"
    )
    return Task(
        "toy",
        data,
        split={"use": "kfold", "folds": 2},
        metrics=["acc", "auc"],
        corruptions={"missingness_mcar": [0.2, 0.4], "noise_gaussian": [0.4]},
    )


def written(run):
    """Return the predictions of a run by their place, as they were written."""
    folder = run.folder / "predictions"
    files = [file for file in folder.rglob("predictions.csv") if file.is_file()]
    assert files
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def counted(monkeypatch):
    calls = {"fit_transform": 0, "transform": 0}

    def count(name, real):
        def method(self, *given):
            calls[name] += 1
            return real(self, *given)

        monkeypatch.setattr(PreparedTable, name, method)

    for name in calls:
        count(name, getattr(PreparedTable, name))
    return calls


def test_models_that_prepare_alike_prepare_each_view_once(task, tmp_path, monkeypatch):
    calls = counted(monkeypatch)
    alike = {
        "one": TablePredictor(LOGISTIC, likeliest=True),
        "two": TablePredictor(FOREST, options={"n_estimators": 3}),
    }
    karat.evaluate(alike, task, output=tmp_path / "a")
    assert calls == {"fit_transform": 2, "transform": 8}  # two folds, four views
    unlike = {**alike, "three": TablePredictor(LOGISTIC, min_frequency=None)}
    karat.evaluate(unlike, task, output=tmp_path / "b")
    assert calls == {"fit_transform": 2 + 4, "transform": 8 + 16}


def test_what_is_shared_changes_no_bit(task, tmp_path, monkeypatch):
    models = {
        name: named(name, max_train_rows=40)
        for name in ("logistic-regression", "svm", "random-forest")
    }
    together = {run.model: written(run) for run in karat.evaluate(models, task, output=tmp_path)}
    for name, model in models.items():
        (alone,) = karat.evaluate({name: model}, task, output=tmp_path / name)
        assert written(alone) == together[name]
    monkeypatch.setattr(PredictorSolver, "_shared", lambda self, name, make: make())
    for run in karat.evaluate(models, task, output=tmp_path / "apart"):
        assert written(run) == together[run.model]


def test_a_job_answers_what_the_predictor_itself_answers(task, tmp_path):
    (run,) = karat.evaluate(
        {"logistic-regression": named("logistic-regression")}, task, output=tmp_path
    )
    data = task.dataset
    for number, fold in enumerate(split(data, task.split, 42)):
        train, test = data.take(fold.train), data.take(fold.test)
        made = adapt(named("logistic-regression")).fresh(42 + number, "classification")
        made.fit(train.frame(), train.target)
        found = run.predictions("toy", number).probabilities
        assert np.array_equal(found, made.predict_proba(test.frame()))


def test_rows_that_a_view_leaves_alone_are_not_asked_about_again(task, tmp_path, monkeypatch):
    asked = []
    whole = OrderedForestClassifier.predict_proba

    def noted(self, X):
        asked.append(len(X))
        return whole(self, X)

    monkeypatch.setattr(OrderedForestClassifier, "predict_proba", noted)
    thinned = replace(task, corruptions={"rare_class_dilution": [0.2, 0.4]}, draws=2)
    (run,) = karat.evaluate({"random-forest": named("random-forest")}, thinned, output=tmp_path)
    assert len(asked) == 2  # about the clean rows of each fold
    scores = run.scores()
    assert scores[scores["metric"] == "acc"].groupby("fold").size().tolist() == [5, 5]
    clean, thin = (run.predictions("toy", 0, view) for view in ("clean", "rare_class_dilution@0.4"))
    assert len(thin) < len(clean)
    targets = dict(zip(clean.key, clean.target, strict=True))
    assert [targets[key] for key in thin.key] == thin.target.tolist()


def numbered(*numbers):
    return np.array([[number, 1.0] for number in numbers], dtype=float).reshape(-1, 2)


def prepared(*numbers):
    return PreparedRows(numbered(*numbers))


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=5), st.integers(0, 6))
def test_views_share_distinct_rows(views, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table_predictor, "MAX_SHARED", 16 * most)
        named = [(str(i), numbered(*view)) for i, view in enumerate(views)]
        matrix, indices = distinct_rows(named)
    assert len(matrix) == len(np.unique(matrix, axis=0)) <= most
    assert list(indices) == [name for name, _ in named][: len(indices)]
    for name, view in named[: len(indices)]:
        assert np.array_equal(matrix[indices[name]], view)
    for _, view in named[len(indices) :][:1]:  # it did not fit
        assert len(np.unique(np.vstack([matrix.reshape(-1, 2), view]), axis=0)) > most


def test_rows_that_differ_in_a_bit_are_two():
    near = np.nextafter(1.0, 2.0)
    matrix, _ = distinct_rows([("a", np.array([[1.0], [near], [0.0], [-0.0]]))])
    assert len(matrix) == 4


def test_pickled_rows_stay_read_only():
    given = prepared(1, 2)
    copy = pickle.loads(pickle.dumps(given))
    assert copy.matrix.tolist() == given.matrix.tolist() and copy.nbytes == 32
    with pytest.raises(ValueError, match="read-only"):
        copy.matrix[0, 0] = 5.0


class Summing:
    """A regressor that counts the rows it is asked about."""

    asked = 0

    def fit(self, X, y):
        return self

    def predict(self, X):
        self.asked += len(X)
        return X.sum(axis=1)


def test_all_rows_of_a_matrix_are_predicted_once_after_each_fit():
    predictor = MatrixPredictor(Summing(), "regression")
    matrix = numbered(1, 2)
    for _ in range(2):
        predictor.fit(np.zeros((2, 2)), np.zeros(2))
        assert predictor.predict(PreparedRows(matrix, np.array([1, 0, 1]))).tolist() == [3, 2, 3]
        assert predictor.predict(PreparedRows(matrix, np.array([0]))).tolist() == [2]
    assert predictor.estimator.asked == 4
    assert predictor.predict(np.ones((3, 2))).tolist() == [2, 2, 2]
    assert predictor.predict(prepared(2, 1)).tolist() == [3, 2]
    assert predictor.estimator.asked == 9
    assert predictor.predict(PreparedRows(numbered(3), np.array([0]))).tolist() == [4]
    assert pickle.loads(pickle.dumps(predictor)).known_ is None


def test_rows_are_predicted_in_blocks_unless_the_estimator_wants_all(monkeypatch):
    monkeypatch.setattr(table_predictor, "BLOCK", 2)
    sizes, matrix = [], numbered(1, 2, 3, 4, 5)
    monkeypatch.setattr(Summing, "predict", lambda self, X: sizes.append(len(X)) or X.sum(axis=1))
    for every in (False, True):
        monkeypatch.setattr(Summing, "all_at_once", every, raising=False)
        predictor = MatrixPredictor(Summing(), "regression").fit(matrix, np.zeros(5))
        assert predictor.predict(PreparedRows(matrix, np.array([4, 0]))).tolist() == [6, 2]
    assert sizes == [2, 2, 1, 5]
    assert OrderedForestClassifier.all_at_once and OrderedForestRegressor.all_at_once
    empty = PreparedRows(np.empty((0, 2)), np.empty(0, dtype=int))
    assert predictor.predict(empty).tolist() == []


class Refusing(Summing):
    """Raises an error about rows that start with a 3."""

    def predict(self, X):
        if (X[:, 0] == 3).any():
            raise ValueError("three")
        return super().predict(X)


def test_a_view_that_cannot_be_predicted_leaves_the_others_alone():
    predictor = MatrixPredictor(Refusing(), "regression").fit(np.zeros((2, 2)), np.zeros(2))
    matrix = numbered(1, 2, 3)
    assert predictor.predict(PreparedRows(matrix, np.array([1, 0]))).tolist() == [3, 2]
    with pytest.raises(ValueError, match="three"):
        predictor.predict(PreparedRows(matrix, np.array([2])))
    assert predictor.predict(PreparedRows(matrix, np.array([0]))).tolist() == [2]


def bands(classes, count=200, seed=0):
    """Return rows and which band of the first column they lie in, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4))
    edges = np.linspace(-1, 1, classes + 1)[1:-1]
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=count), edges)


def test_the_kernel_equals_scikit_learns():
    X = np.random.default_rng(3).normal(size=(60, 3)) * [1, 1e3, 1e-3] + [1e5, 0, 0]
    kernel = Kernel(X[:50], "scale")
    gamma = 1 / (3 * X[:50].var())
    assert kernel.gamma == pytest.approx(gamma)
    np.testing.assert_allclose(kernel.square, rbf_kernel(X[:50], gamma=gamma), rtol=0, atol=1e-12)
    # (i, j) and (j, i) subtract the two half squares in opposite orders, and round differently
    np.testing.assert_allclose(kernel.square, kernel.square.T, rtol=0, atol=1e-12)
    assert kernel.square.diagonal().tolist() == [1.0] * 50
    some = kernel.against(X[50:], np.array([3, 1]))
    expected = rbf_kernel(X[50:], X[[3, 1]], gamma=gamma)
    np.testing.assert_allclose(some, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", [1, 777, 2**18])
@pytest.mark.parametrize("largest", [100, 8192])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_decisions_and_labels_equal_those_of_scikit_learn(monkeypatch, classes, largest, block):
    monkeypatch.setattr(predictors, "BLOCK", block)
    monkeypatch.setattr(predictors, "LARGEST", largest)
    X, y = bands(classes)
    test, _ = bands(classes, 101, seed=1)
    ours, theirs = RbfClassifier().fit(X, y), SVC().fit(X, y)
    assert ours.machine_.kernel == ("rbf" if largest < len(X) else "precomputed")
    assert ours.decision_function(test) == pytest.approx(theirs.decision_function(test), abs=1e-6)
    assert np.array_equal(ours.predict(test), theirs.predict(test))
    assert np.array_equal(RbfLabels().fit(X, y).predict(test), theirs.predict(test))
    assert len(ours.predict(test[:0])) == 0


#: libsvm stops at violations of 1e-3, up to which two solutions of one problem differ
EXACT = 1e-9


@contextmanager
def exact_solvers():
    """Make our machines solve their problem up to rounding."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sklearn.svm.SVC", partial(SVC, tol=EXACT))
        patch.setattr("sklearn.svm.SVR", partial(SVR, tol=EXACT))
        yield


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.floats(0.01, 100), st.floats(0.001, 10), st.integers(0, 99))
def test_decisions_agree_for_any_parameters(classes, C, gamma, seed):
    X, y = bands(classes, 60, seed)
    y[:classes] = np.arange(classes)
    with exact_solvers():
        found = RbfClassifier(C, gamma, folds=2).fit(X, y).decision_function(X)
    wanted = SVC(C=C, gamma=gamma, tol=EXACT).fit(X, y).decision_function(X)
    assert np.abs(found - wanted).max() <= 1e-6 * max(1.0, np.abs(found).max())


def test_far_away_rows_get_only_the_intercept():
    X, y = bands(2)
    ours = RbfClassifier().fit(X, y)
    decisions = ours.decision_function(np.array([[1e30, 0, 0, 0], [-1e30, 1e30, 0, 0]]))
    assert decisions == pytest.approx([ours.machine_.intercept_[0]] * 2)


@pytest.mark.parametrize(("C", "gamma", "epsilon"), [(1.0, "scale", 0.1), (10.0, 3.0, 0.3)])
def test_numbers_equal_those_of_scikit_learn_on_the_standardized_target(C, gamma, epsilon):
    X, _ = bands(2)
    y = 1e6 + 5e4 * np.sin(X[:, 0])
    scaled = (y - y.mean()) / y.std()
    theirs = SVR(C=C, gamma=gamma, epsilon=epsilon, tol=EXACT).fit(X, scaled).predict(X)
    with exact_solvers():
        ours = RbfRegressor(C, gamma, epsilon).fit(X, y).predict(X)
    assert ours == pytest.approx(theirs * y.std() + y.mean(), rel=1e-9)


def test_a_constant_target_is_predicted():
    X, _ = bands(2, 30)
    assert RbfRegressor().fit(X, np.full(30, 7.0)).predict(X) == pytest.approx(np.full(30, 7.0))
    fitted = RbfClassifier().fit(X, ["a"] * 30)
    assert set(fitted.predict(X)) == {"a"} and (fitted.predict_proba(X) == 1).all()


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_sum_to_one_and_beat_the_class_frequencies(classes):
    X, y = bands(classes, 400)
    test, target = bands(classes, 1000, seed=1)
    fitted = RbfClassifier(random_state=2).fit(X, y)
    chances = fitted.predict_proba(test)
    assert chances.sum(axis=1) == pytest.approx(np.ones(1000))
    frequencies = np.tile(np.bincount(y) / len(y), (1000, 1))
    assert log_loss(target, chances) < 0.7 * log_loss(target, frequencies)
    assert chances.mean(axis=0) == pytest.approx(np.bincount(target) / 1000, abs=0.05)


def test_the_probability_increases_with_the_decision():
    X, y = bands(2)
    noise = np.random.default_rng(0).permutation(y)
    for target in (y, noise):  # on noise, an unbounded slope would become negative
        fitted = RbfClassifier().fit(X, target)
        order = np.argsort(fitted.decision_function(X))
        steps = np.diff(fitted.predict_proba(X)[order, 1])
        assert (steps >= 0).all() and steps.sum() > 0


def test_platts_targets_prevent_probabilities_of_one():
    X = np.array([[-5.0], [-5.1], [-5.2], [5.0], [5.1], [5.2]] * 5)
    fitted = RbfClassifier().fit(X, (X[:, 0] > 0).astype(int))
    chances = fitted.predict_proba(np.array([[-5.0], [5.0]]))
    # 15 rows per class, all on the right side: (15 + 1) / (15 + 2)
    assert chances[:, 1] == pytest.approx([1 / 17, 16 / 17], abs=0.01)


def test_the_only_row_of_a_class_is_always_used_to_fit():
    X, y = bands(2, 60)
    y[0] = 9
    fitted = RbfClassifier().fit(X, y)
    assert fitted.classes_.tolist() == [0, 1, 9]
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_the_seed_decides_and_neither_rows_nor_the_global_generator_change():
    X, y = bands(3)
    before, state = X.copy(), repr(np.random.get_state())
    one, two, other = (RbfClassifier(random_state=s).fit(X, y).predict_proba(X) for s in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    RbfRegressor().fit(X, X[:, 0])
    assert repr(np.random.get_state()) == state and np.array_equal(X, before)


def test_labels_and_probabilities_come_from_one_pass(monkeypatch):
    X, y = bands(3)
    fitted = RbfClassifier().fit(X, np.array(["a", "b", "c"])[y])
    passes, real = [], predictors._pair_decisions
    monkeypatch.setattr(
        predictors, "_pair_decisions", lambda *given: passes.append(1) or real(*given)
    )
    labels, chances = fitted.predict_both(X[:16])
    assert len(passes) == 1
    assert np.array_equal(labels, fitted.predict(X[:16]))
    assert np.array_equal(chances, fitted.predict_proba(X[:16]))
    assert set(labels) <= {"a", "b", "c"}


@pytest.mark.parametrize("classes", [2, 3])
def test_no_bit_of_a_prediction_depends_on_the_other_rows(classes):
    X, y = bands(classes)
    fitted = RbfClassifier(random_state=0).fit(X, y)
    whole = fitted.decision_function(X), fitted.predict_proba(X)
    rng = np.random.default_rng(0)
    for size in (1, 2, 15, 17, len(X) - 1):
        some = rng.permutation(len(X))[:size]
        assert np.array_equal(fitted.decision_function(X[some]), whole[0][some])
        assert np.array_equal(fitted.predict_proba(X[some]), whole[1][some])


# -- The feed-forward network: training, early stopping and reproducibility -----------------------


def corners(count=600, seed=0):
    """Return points and which side of zero the product of their coordinates lies on."""
    X = np.random.default_rng(seed).uniform(-1, 1, (count, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"karat\[net\]"):
        NetClassifier().fit(*corners(40))


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def test_it_learns_what_no_line_separates(torch):
    X, y = corners()
    test, truth = corners(500, seed=1)
    fitted = NetClassifier(random_state=0).fit(X, np.array(["out", "in"])[y])
    assert np.mean(fitted.predict(test) == np.array(["out", "in"])[truth]) > 0.93
    chances = fitted.predict_proba(test)
    assert chances.sum(axis=1) == pytest.approx(np.ones(500))
    assert np.array_equal(fitted.classes_[chances.argmax(axis=1)], fitted.predict(test))


def test_it_learns_numbers_in_their_own_units(torch):
    X, _ = corners()
    y = 1e6 + 1e5 * X[:, 0] * X[:, 1]
    fitted = NetRegressor(random_state=0).fit(X, y)
    assert np.var(fitted.predict(X) - y) / np.var(y) < 0.05


def test_a_truth_that_does_not_vary_is_nearly_the_answer(torch):
    X, _ = corners(60)
    found = NetRegressor(random_state=0).fit(X, np.full(60, 1000.0)).predict(X)
    assert found == pytest.approx(np.full(60, 1000.0), abs=0.5)


def test_it_stops_after_the_lowest_loss_and_goes_back_to_it(torch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 20)), rng.integers(0, 2, 300)  # nothing to learn: it must overfit
    fitted = NetClassifier(patience=4, random_state=0).fit(X, y)
    losses = [step["value"] for step in fitted.history_]
    assert [step["epoch"] for step in fitted.history_] == list(range(1, len(losses) + 1))
    assert len(losses) == int(np.argmin(losses)) + 1 + 4 < 200
    # stopping at that epoch gives those weights; going on does not
    short = NetClassifier(epochs=int(np.argmin(losses)) + 1, patience=999, random_state=0).fit(X, y)
    for one, other in zip(fitted.weights_, short.weights_, strict=True):
        assert np.array_equal(one, other)


def test_held_out_rows_teach_nothing(torch, monkeypatch):
    X, y = corners(200)
    drawn = np.zeros(200, dtype=bool)
    drawn[::10] = True
    monkeypatch.setattr("karat.models.predictors.sample_rows", lambda *_: np.flatnonzero(drawn))
    one = NetClassifier(epochs=3, random_state=0).fit(X, y)
    changed = np.where(drawn[:, None], X + 0.1, X)
    two = NetClassifier(epochs=3, random_state=0).fit(changed, y)
    assert [h["value"] for h in one.history_] != [h["value"] for h in two.history_]
    assert all(np.array_equal(a, b) for a, b in zip(one.weights_, two.weights_, strict=True))


def test_few_rows_are_all_learned_from(torch):
    X, y = corners(40)
    fitted = NetClassifier(epochs=50, random_state=0).fit(X, y)
    assert fitted.history_ == []
    assert np.mean(fitted.predict(X) == y) > 0.9


def test_every_row_is_met_in_an_epoch_and_batches_are_shuffled(torch):
    net, rng = NetClassifier(batch=16), np.random.default_rng(0)
    batches = [part.tolist() for part in net._batches(1000, rng)]
    met = [row for part in batches for row in part]
    assert sorted(met) == list(range(1000)) and met != sorted(met)
    assert len(list(net._batches(30, rng))) == LEAST_STEPS


def test_the_seed_decides_all_and_other_generators_are_left_alone(torch):
    X, y = corners(120)
    before = torch.random.get_rng_state().clone(), repr(np.random.get_state())
    threads = torch.get_num_threads()
    one, two, other = (NetClassifier(epochs=5, random_state=s).fit(X, y) for s in (1, 1, 2))
    assert np.array_equal(one.predict_proba(X), two.predict_proba(X))
    assert not np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert before[1] == repr(np.random.get_state())
    assert torch.get_num_threads() == threads


def test_a_fitted_net_answers_without_torch(torch, monkeypatch):
    X, y = corners(120)
    fitted = NetClassifier(epochs=5, random_state=1).fit(X, y)
    expected = fitted.predict_proba(X)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict_proba(X), expected)


def test_adam_steps_as_torchs_own(torch):
    begin = torch.tensor(np.random.default_rng(0).normal(size=(5, 3)))
    ours, theirs = (begin.clone().requires_grad_() for _ in range(2))
    adam, reference = Adam([ours], 0.01), torch.optim.Adam([theirs], lr=0.01)
    for _ in range(60):
        for weights in (ours, theirs):
            (weights.sin() ** 2).sum().backward()
        adam.step()
        reference.step()
        reference.zero_grad()
    assert ours.detach().numpy() == pytest.approx(theirs.detach().numpy(), abs=1e-12)
