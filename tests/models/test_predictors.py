"""Predictors of table rows."""

from dataclasses import replace
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest
from sklearn.svm import SVC

import karat
from karat.catalogue import Catalogue
from karat.dataset import Dataset
from karat.errors import Declined, DefinitionError
from karat.models.adapters import adapt
from karat.models.ordered_forest import OrderedForestClassifier
from karat.models.predictors import (
    ConstantPredictor,
    MatrixPredictor,
    PreparedTable,
    TablePredictor,
)
from karat.solve import Direct
from karat.splits import split
from karat.task import Task

ROWS = pd.DataFrame({"x": [0.0, 1.0, 10.0, 11.0], "w": ["a", "a", "b", "b"]})
LOGISTIC = "sklearn.linear_model:LogisticRegression"
FOREST = "sklearn.ensemble:RandomForestClassifier"
PRIOR = "sklearn.dummy:DummyClassifier"

#: the predictors of TACO, each with what it needs
NAMED = {"logreg": "", "linreg": "", "svm": "", "rf": "", "xgb": "xgboost", "ffn": "torch"}


def named(name, kind="classes", **changes):
    """Return a named predictor, fresh; with fewer trees or epochs, to save time."""
    if NAMED[name]:
        pytest.importorskip(NAMED[name])
    made = Catalogue().model(name).fresh(3, kind)
    for options in (made.class_options, made.number_options):
        if options:
            options["n_estimators"] = 100 if name == "xgb" else 20
    if name == "ffn":
        made.options = {"epochs": 60}
    return made.set_params(**changes)


def rows(count=300, seed=0):
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


# -- the constant one -----------------------------------------------------------------------


def test_constant_predictor_returns_the_class_shares():
    fitted = ConstantPredictor("classes").fit(ROWS, np.array(["no", "no", "no", "yes"]))
    assert fitted.predict(ROWS).tolist() == ["no"] * 4
    assert fitted.predict_proba(ROWS).tolist() == [[0.75, 0.25]] * 4
    assert fitted.classes_.tolist() == ["no", "yes"]


def test_constant_predictor_returns_the_mean():
    fitted = ConstantPredictor("numbers").fit(ROWS, np.array([0.0, 0.0, 0.0, 4.0]))
    assert fitted.predict(ROWS).tolist() == [1.0] * 4
    assert not hasattr(fitted, "predict_proba")


# -- preprocessing and estimator ------------------------------------------------------------


def test_a_table_predictor_separates_what_can_be_separated():
    predictor = TablePredictor(LOGISTIC, kind="classes")
    fitted = predictor.fit(ROWS, np.array(["no", "no", "yes", "yes"]))
    assert fitted.predict(ROWS).tolist() == ["no", "no", "yes", "yes"]
    assert fitted.predict_proba(ROWS).shape == (4, 2)
    assert fitted.classes_.tolist() == ["no", "yes"]


def test_options_and_seed_reach_the_estimator():
    for kind, trees in (("classes", 2), ("numbers", 3)):
        predictor = TablePredictor(
            classes=FOREST,
            numbers="sklearn.ensemble:RandomForestRegressor",
            options={"n_estimators": 9, "max_depth": 4},
            class_options={"n_estimators": 2},
            number_options={"n_estimators": 3},
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
    "predictor, kind, reason",
    [
        (TablePredictor(classes="a:B"), "numbers", "it predicts classes, not numbers"),
        (TablePredictor(numbers="a:B"), "classes", "it predicts numbers, not classes"),
        (TablePredictor("a:B", "a:B"), "classes", ""),
    ],
)
def test_it_declines_what_it_has_no_estimator_for(predictor, kind, reason):
    assert predictor.declines(kind) == reason


def test_fitting_what_it_declines_is_a_decline():
    with pytest.raises(Declined, match="numbers"):
        TablePredictor(classes="a:B", kind="numbers").fit(ROWS, np.arange(4.0))


def test_labels_come_back_as_they_were_whatever_the_estimator_takes():
    for labels in (["no", "yes"], [0.5, 1.5], [7, 3]):
        y = np.repeat(labels, 2)
        fitted = TablePredictor(LOGISTIC).fit(ROWS, y)
        assert fitted.predict(ROWS).tolist() == y.tolist()
        assert fitted.classes_.tolist() == sorted(labels)


def test_test_rows_are_only_looked_at():
    fitted = TablePredictor(LOGISTIC).fit(ROWS, np.array([0, 0, 1, 1]))
    before = fitted.predict_proba(ROWS)
    far = pd.DataFrame({"x": [1e6, -1e6, np.nan], "w": ["z", None, "b"]})
    fitted.predict_proba(far)
    assert np.array_equal(fitted.predict_proba(ROWS), before)


@pytest.mark.parametrize("name", [name for name in NAMED if name != "linreg"])
def test_holes_infinities_and_new_words_in_test_rows_are_answered(name):
    table = rows()
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


def test_every_column_may_be_empty_in_test_rows():
    fitted = TablePredictor(LOGISTIC).fit(ROWS, np.array([0, 0, 1, 1]))
    empty = pd.DataFrame({"x": [None, None], "w": [None, None]})
    chances = fitted.predict_proba(empty)
    assert chances[0] == pytest.approx(chances[1])


def test_prepared_rows_are_within_32_bits_and_cannot_be_changed():
    prepared = PreparedTable()
    prepared.fit(ROWS)
    matrix = prepared.transform(pd.DataFrame({"x": [1e200, -1e200], "w": ["a", "b"]})).matrix
    assert matrix[:, 0].tolist() == [1e30, -1e30]
    assert np.isfinite(matrix.astype(np.float32)).all()
    with pytest.raises(ValueError, match="read-only"):
        matrix[0, 0] = 1


# -- one pass for labels and probabilities --------------------------------------------------


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
        predictor = MatrixPredictor(Counts(), "classes", likeliest=likeliest).fit(X, y)
        labels, chances = predictor.predict_both(X)
        assert labels.tolist() == [label] * 4
        assert chances.tolist() == [[0.4, 0.6]] * 4
        assert predictor.estimator.asked == passes
        assert predictor.predict(X).tolist() == [label] * 4


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("name", [name for name in NAMED if name != "linreg"])
def test_a_named_predictor_answers_alike_however_it_is_asked(name, classes):
    table, test = rows(), rows(60, seed=1)
    label = dict(zip("abcd", ["p", "q", "r", "s"] if classes == 4 else "pqpq", strict=True))
    fitted = named(name).fit(table, table["w"].map(label).to_numpy(dtype=object))
    labels, chances = fitted.predict_both(test)
    assert np.array_equal(labels, fitted.predict(test))
    assert np.array_equal(chances, fitted.predict_proba(test))
    assert chances.shape == (60, classes)
    assert chances.sum(axis=1) == pytest.approx(np.ones(60))
    assert np.mean(labels == test["w"].map(label)) > 0.95


@pytest.mark.parametrize("name", [name for name in NAMED if name != "logreg"])
def test_a_named_predictor_follows_numbers_in_their_own_units(name):
    table, test = rows(600), rows(100, seed=1)

    def truth(of):
        return 1e5 + 2e4 * of["n"].to_numpy() + np.where(of["w"] == "a", 3e4, 0)

    fitted = named(name, "numbers").fit(table, truth(table))
    residue = fitted.predict(test) - truth(test)
    assert np.var(residue) / np.var(truth(test)) < 0.05
    assert not hasattr(fitted, "predict_both")


def test_named_predictors_have_the_documented_parameters():
    found = {name: Catalogue().model(name) for name in NAMED}
    asked = {name: model.params for name, model in found.items()}
    assert asked["rf"]["class_options"] == {"n_estimators": 200}
    assert asked["rf"]["number_options"] == {"n_estimators": 300}
    assert asked["xgb"]["class_options"] == {
        "n_estimators": 400,
        "max_depth": 6,
        "learning_rate": 0.1,
    }
    assert asked["xgb"]["number_options"] == {
        "n_estimators": 500,
        "max_depth": 8,
        "learning_rate": 0.05,
    }
    shared = asked["xgb"]["options"]
    assert (shared["subsample"], shared["colsample_bytree"]) == (0.8, 0.8)
    assert shared["tree_method"] == "hist"
    assert asked["svm"]["max_train_rows"] == 5000
    assert found["logreg"].prototype.declines("numbers") == "it predicts classes, not numbers"
    assert found["linreg"].prototype.declines("classes") == "it predicts numbers, not classes"


# -- fewer rows -----------------------------------------------------------------------------


def test_a_cap_draws_a_stratified_sample_and_notes_it():
    y = np.repeat(["common", "rare"], [950, 50])
    table = pd.DataFrame({"x": np.arange(1000.0)})
    capped = TablePredictor(PRIOR, max_train_rows=100, random_state=1).fit(table, y)
    assert capped.notes_ == ["fitted on 100 of 1,000 rows"]
    assert capped.predict_proba(table[:1]).tolist() == [[0.95, 0.05]]
    whole = TablePredictor(PRIOR, max_train_rows=1000).fit(table, y)
    assert whole.notes_ == []


def test_the_rows_under_a_cap_are_the_seeds():
    X, y = np.arange(200.0)[:, None], np.arange(200) % 2

    def drawn(seed):
        made = MatrixPredictor(SVC(), "classes", max_train_rows=20, random_state=seed)
        return made.fit(X, y).estimator.support_vectors_

    assert np.array_equal(drawn(5), drawn(5))
    assert not np.array_equal(drawn(5), drawn(6))


def test_the_preprocessing_learns_from_all_rows_whatever_the_cap():
    table = pd.DataFrame({"x": np.arange(1000.0)})
    capped = TablePredictor(PRIOR, max_train_rows=10).fit(table, np.arange(1000) % 2)
    whole = TablePredictor(PRIOR).fit(table, np.arange(1000) % 2)
    one, other = (each.preparation_.transform(table).matrix for each in (capped, whole))
    assert np.array_equal(one, other)


# -- through Karat --------------------------------------------------------------------------


@pytest.fixture
def task():
    table = rows(120)
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


def test_the_cap_is_recorded_in_the_results(task, tmp_path):
    model = TablePredictor(LOGISTIC, max_train_rows=30)
    (run,) = karat.evaluate({"capped": model}, task, output=tmp_path)
    assert set(run.results()["notes"]) == {"fitted on 30 of 60 rows"}
    table = pd.read_csv(run.folder / "scores" / "results.csv")
    assert set(table["notes"]) == {"fitted on 30 of 60 rows"}


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
    models = {name: named(name, max_train_rows=40) for name in ("logreg", "svm", "rf")}
    together = {run.model: written(run) for run in karat.evaluate(models, task, output=tmp_path)}
    for name, model in models.items():
        (alone,) = karat.evaluate({name: model}, task, output=tmp_path / name)
        assert written(alone) == together[name]
    monkeypatch.setattr(Direct, "_kept", lambda self, name, make: make())
    for run in karat.evaluate(models, task, output=tmp_path / "apart"):
        assert written(run) == together[run.model]


def test_one_worker_and_two_write_the_same_bytes(task, tmp_path):
    able = [name for name, needs in NAMED.items() if not needs or find_spec(needs)]
    models = {name: named(name) for name in able if name != "linreg"}
    one, two = (
        karat.evaluate(models, task, output=tmp_path / str(workers), workers=workers)
        for workers in (1, 2)
    )
    for first, second in zip(one, two, strict=True):
        assert written(first) == written(second)
        files = [run.folder / "scores" / "scores.csv" for run in (first, second)]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_job_answers_what_the_predictor_itself_answers(task, tmp_path):
    (run,) = karat.evaluate({"logreg": named("logreg")}, task, output=tmp_path)
    data = task.dataset
    for number, fold in enumerate(split(data, task.split, 42)):
        train, test = data.take(fold.train), data.take(fold.test)
        made = adapt(named("logreg")).fresh(42 + number, "classes")
        made.fit(train.frame(), train.truth)
        found = run.predictions("toy", number).probabilities
        assert np.array_equal(found, made.predict_proba(test.frame()))


@pytest.mark.parametrize("name", ["svm", "rf", "xgb"])
def test_no_view_hangs_on_the_others(task, tmp_path, name):
    model = {name: named(name)}
    (every,) = karat.evaluate(model, task, output=tmp_path / "every")
    all_views = written(every)
    for corruption, severities in task.corruptions.items():
        only = replace(task, corruptions={corruption: severities[-1:]})
        (alone,) = karat.evaluate(model, only, output=tmp_path / corruption)
        views = written(alone)
        assert len(views) == 4  # two folds, clean and corrupted
        assert views.items() <= all_views.items()


def test_rows_that_a_view_leaves_alone_are_not_asked_about_again(task, tmp_path, monkeypatch):
    asked = []
    whole = OrderedForestClassifier.predict_proba

    def noted(self, X):
        asked.append(len(X))
        return whole(self, X)

    monkeypatch.setattr(OrderedForestClassifier, "predict_proba", noted)
    thinned = replace(task, corruptions={"rare_class_dilution": [0.2, 0.4]}, draws=2)
    (run,) = karat.evaluate({"rf": named("rf")}, thinned, output=tmp_path)
    assert len(asked) == 2  # about the clean rows of each fold
    scores = run.scores()
    assert scores[scores["metric"] == "acc"].groupby("fold").size().tolist() == [5, 5]
