"""Each requirement, and a class that violates exactly it."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler

from karat.core import registry
from karat.errors import DefinitionError, MissingExtra
from karat.metrics.metric import Metric, Undefined
from karat.models.model import Model, StatelessEncoder
from karat.models.vector_files import VectorLookup
from karat.testing import check_corruption, check_metric, check_model


def broken(checks):
    """Return the failed requirements without the kind of data."""
    for check in checks:
        assert check.passed or (check.reason and check.fix), check
    return [check.requirement.partition(": ")[2] for check in checks if not check.passed]


def requirements(checks):
    return [check.requirement.partition(": ")[2] for check in checks]


def places(checks):
    return list(dict.fromkeys(check.requirement.partition(": ")[0] for check in checks))


class Lengths(TransformerMixin, BaseEstimator):
    """Meets every requirement; the classes below violate one each."""

    takes = ("text",)

    def fit(self, items, y=None):
        self.mean_ = float(np.mean([len(text) for text in items]))
        return self

    def transform(self, items):
        return np.array([[len(text) - self.mean_, text.count("a")] for text in items])


class Changed(Lengths):
    """Vectors changed by a function."""

    def __init__(self, change=None):
        self.change = change

    def transform(self, items):
        return self.change(super().transform(items))


def with_holes(values):
    values[values[:, 1] == 0, 0] = np.nan
    return values


class Single(Lengths):
    def __init__(self, size=3):
        self.size = [size]

    def __deepcopy__(self, memo):
        raise TypeError("there is only one of me")


class Fails(Lengths):
    def fit(self, items, y=None):
        raise RuntimeError("out of cheese")


class NoTarget(Lengths):
    fit_transform = None

    def __getattribute__(self, name):
        if name == "fit_transform":
            raise AttributeError(name)
        return super().__getattribute__(name)

    def fit(self, items):
        return super().fit(items)


class NeedsTarget(Lengths):
    def fit(self, items, y):
        return super().fit(items)

    def fit_transform(self, items, y):
        return self.fit(items, y).transform(items)


class Supervised(NeedsTarget):
    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


class Widens(Lengths):
    def fit_transform(self, items, y=None):
        return self.fit(items).transform(items)[:, :1]


class RollsGlobally(Lengths):
    def fit(self, items, y=None):
        np.random.rand()
        return super().fit(items)


class Remembers(Lengths):
    seen: list[str] = []

    def fit(self, items, y=None):
        self.seen.extend(items)
        return super().fit(self.seen)


class Scribbles(Lengths):
    def transform(self, items):
        items.iloc[0] = "scribble"
        return super().transform(items)


class Locked(Lengths):
    def __reduce__(self):
        return threading.Lock, ()


class Lacking(Lengths):
    def fit(self, items, y=None):
        raise MissingExtra("cheese", "dairy")


FINITE = "returns a 2-D array of finite numbers"


def test_a_correct_encoder_passes():
    checks = check_model(Lengths)
    assert broken(checks) == [] and len(checks) == 12
    assert places(checks) == ["on texts"]


@pytest.mark.parametrize(
    ("encoder", "requirement"),
    [
        (NeedsTarget, "fits without a target"),
        (Changed(with_holes), "returns NaN only in whole rows"),
        (Widens, "has one width for train and test items"),
        (Changed(lambda values: values - values.mean(axis=0)), "encodes each row independently"),
        (RollsGlobally, "does not use np.random globally"),
        (Locked, "can be pickled"),
    ],
)
def test_one_violation_is_one_failed_check(encoder, requirement):
    checks = check_model(encoder)
    assert broken(checks) == [requirement]
    assert len(checks) == 12


@pytest.mark.parametrize(
    "encoder", [Changed(lambda values: values + np.random.default_rng().random()), Remembers]
)
def test_a_random_encoder_is_not_compared_further(encoder):
    checks = check_model(encoder)
    assert broken(checks) == requirements(checks)[-1:] == ["is reproducible with a fixed seed"]
    assert "differ" in checks[-1].reason


@pytest.mark.parametrize(
    ("encoder", "requirement", "reason"),
    [
        (Single, "can be cloned unfitted", "TypeError: there is only one of me"),
        (Fails, "runs", "RuntimeError: out of cheese"),
        (NoTarget, "runs", "TypeError: NoTarget.fit() takes 2 positional arguments"),
        (Changed(lambda values: values[1:]), "returns one row per item", "149"),
        (Changed(lambda values: values[:, 0]), FINITE, "[(150,), (50,)]"),
        (Changed(lambda values: np.array([["a!"] for _ in values])), FINITE, "ValueError"),
        (Changed(lambda values: values[:, :0]), FINITE, "[(150, 0), (50, 0)]"),
        (Changed(lambda values: values / [0.0, 1.0]), FINITE, "infinite"),
    ],
)
def test_nothing_is_reported_after_a_fatal_failure(encoder, requirement, reason):
    checks = check_model(encoder)
    assert broken(checks) == [requirement]
    assert reason in checks[-1].reason
    assert requirements(checks)[-1] == requirement


def test_an_encoder_may_declare_that_it_requires_the_target():
    checks = check_model(Supervised)
    assert broken(checks) == []
    assert "fits without a target" not in requirements(checks)


def test_an_encoder_that_modifies_its_input_and_the_global_random_state():
    before = np.random.get_state()[1].copy()
    check_model(RollsGlobally)
    assert (np.random.get_state()[1] == before).all()
    assert "does not modify its input" in broken(check_model(Scribbles))


def test_the_fix_of_an_unavailable_model_is_its_pip_line():
    check = check_model(Lacking)[-1]
    assert "cheese" in check.reason
    assert check.fix == 'pip install "karat[dairy]"'
    lacking = Model("m", None, "encoder", unavailable='x is not installed: pip install "karat[x]"')
    (check,) = check_model(lacking)
    assert not check.passed and check.reason == "x is not installed"
    assert check.fix == 'pip install "karat[x]"'
    (check,) = check_model(Model("m", None, "encoder", unavailable="the file could not be had"))
    assert (check.reason, bool(check.fix)) == ("the file could not be had", True)


@pytest.mark.parametrize(
    ("encoder", "modality", "found"),
    [
        (
            lambda items: [[len(item), 1.0] for item in items],
            None,
            ["on texts", "on entities", "on columns", "on whole tables"],
        ),
        (lambda x: np.ones((len(x), 2)), "entity", ["on entities"]),
        (HashingVectorizer(n_features=8), "text", ["on texts"]),  # sparse vectors
        (TfidfVectorizer(), None, ["on texts", "on entities"]),  # vocabulary is no list of ids
    ],
)
def test_without_declared_modalities_those_that_work_are_reported(encoder, modality, found):
    checks = check_model(encoder, modality)
    assert places(checks) == found
    assert broken(checks) == []


@pytest.mark.parametrize("model", [StandardScaler(), LogisticRegression(), LinearRegression()])
def test_if_no_modality_works_the_best_one_is_reported(model):
    checks = check_model(model)
    assert broken(checks) == ["runs"]
    assert len(places(checks)) == 1 and places(checks)[0].startswith("on tables")
    assert checks[-1].reason.startswith("ValueError: ")  # the text is that of pandas


def test_a_declared_modality_must_work():
    class Both(Lengths):
        takes = ("text", "table")

    checks = check_model(Both)
    assert places(checks) == ["on texts", "on tables"]
    on_texts = [check.passed for check in checks if check.requirement.startswith("on texts")]
    assert on_texts == [True] * 12 and not checks[-1].passed


def test_a_stateless_encoder_is_never_fitted():
    class Constant(StatelessEncoder):
        def fit(self, items, y=None):
            raise AssertionError("fitted")

        def transform(self, items):
            return np.ones((len(items), 3))

    assert broken(check_model(Constant)) == []


def test_a_lookup_model_is_checked_with_its_own_ids():
    checks = check_model({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    assert broken(checks) == []
    assert requirements(checks)[0] == "lists its ids"
    checks = check_model(VectorLookup(["a", "a"], np.eye(2)))
    assert requirements(checks) == broken(checks) == ["lists its ids"]


class Majority(ClassifierMixin, BaseEstimator):
    """Meets every requirement; the classes below violate one each."""

    takes = ("table",)

    def fit(self, X, y):
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / counts.sum()
        return self

    def predict(self, X):
        return np.repeat(self.classes_[np.argmax(self.shares_)], len(X))

    def predict_proba(self, X):
        return np.tile(self.shares_, (len(X), 1))


class Mean(RegressorMixin, BaseEstimator):
    takes = ("table",)

    def fit(self, X, y):
        self.mean_ = y.mean()
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class Answers(Majority):
    """Predictions and probabilities changed by functions."""

    def __init__(self, labels=None, chances=None):
        self.labels = labels
        self.chances = chances

    def predict(self, X):
        found = super().predict(X)
        return self.labels(found) if self.labels else found

    def predict_proba(self, X):
        found = super().predict_proba(X)
        return self.chances(found) if self.chances else found


class Column(Mean):
    def predict(self, X):
        return super().predict(X)[:, None]


class Undecided(Mean):
    def predict(self, X):
        return np.full(len(X), np.nan)


class Spoils(Majority):
    def fit(self, X, y):
        super().fit(X, y)
        y[0] = y[-1] if y[0] != y[-1] else "other"
        return self


class Crowd(Majority):
    def predict(self, X):
        if len(X) < 2:
            raise ValueError("too few")
        return super().predict(X)


LABELS = "predicts training labels or finite numbers"
CHANCES = "returns one probability per class of classes_"


def test_a_correct_classifier_passes():
    checks = check_model(Majority)
    assert broken(checks) == [] and len(checks) == 11
    assert places(checks) == ["on tables, classification"]


@pytest.mark.parametrize("predictor", [Mean, Column])
def test_a_correct_regressor_needs_no_probabilities(predictor):
    checks = check_model(predictor)
    assert broken(checks) == []
    assert len(checks) == 9
    assert places(checks) == ["on tables, regression"]


@pytest.mark.parametrize(
    ("predictor", "requirement"),
    [
        (Answers(lambda labels: labels[1:]), "returns one prediction per row"),
        (Answers(lambda labels: np.repeat("elsewhere", len(labels))), LABELS),
        (Undecided, LABELS),
        (Answers(chances=lambda chances: chances[:, :1]), CHANCES),
        (Answers(chances=lambda chances: chances / 2), "returns probabilities that sum to 1"),
        (Spoils, "does not modify its input"),
        (Crowd, "predicts a single row"),
    ],
)
def test_violations_of_predictors(predictor, requirement):
    assert requirement in broken(check_model(predictor))


def test_a_predictor_of_undeclared_kind_is_checked_on_both():
    class Echo:
        takes = ("table",)

        def fit(self, X, y):
            self.first = y[0]

        def predict(self, X):
            return [self.first] * len(X)

    checks = check_model(Echo)
    assert places(checks) == ["on tables, classification", "on tables, regression"]
    assert broken(checks) == []


@pytest.fixture
def try_metric(monkeypatch):
    def check(compute, higher=True, range=(0.0, 1.0), needs=("classes",)):
        made = Metric("tried", compute, higher, range, needs, "")
        monkeypatch.setitem(registry.metrics._parts, "tried", made)
        monkeypatch.setitem(registry.metrics._origins, "tried", "here")
        return check_metric("tried")

    return check


def share(predictions):
    return float(np.mean(predictions.predictions == predictions.target))


def test_a_correct_metric_passes(try_metric):
    checks = try_metric(share)
    assert places(checks) == ["on 2 classes", "on 3 classes"]
    assert broken(checks) == []
    assert requirements(checks)[:8] == [
        *("returns a value", "stays in its range", "is best for perfect predictions"),
        *("declares the right direction", "does not depend on the order of rows"),
        *("raises only Undefined", "does not modify its input", "does not use np.random globally"),
    ]


def test_violations_of_metrics(try_metric):
    def first(p):
        return 1.0 if share(p) == 1 else float(p.predictions[0] == "no") / 2

    def sorts(predictions):
        predictions.predictions.sort()
        predictions.target.sort()
        return share(predictions)

    best = "is best for perfect predictions"
    wrong_way = broken(try_metric(share, higher=False))
    assert set(wrong_way) == {best, "declares the right direction"}
    assert set(broken(try_metric(lambda p: 100 * share(p)))) == {best, "stays in its range"}
    checks = try_metric(first, needs=("classes", "binary"))
    assert broken(checks) == ["does not depend on the order of rows"]
    assert "does not modify its input" in broken(try_metric(sorts))


def test_a_metric_that_raises(try_metric):
    def two_only(predictions):
        if len(predictions.classes) > 2:
            raise KeyError("c")
        return share(predictions)

    checks = try_metric(two_only)
    assert [c.requirement for c in checks if not c.passed] == ["on 3 classes: returns a value"]
    assert checks[-1].reason == "KeyError: 'c'"


def test_a_metric_without_needs_must_pass_on_one_kind(try_metric):
    kinds = ("2 classes", "3 classes", "numbers", "ranked lists", "ranks")
    assert places(try_metric(share, needs=())) == [f"on {kind}" for kind in kinds]

    def never(predictions):
        raise Undefined("no value.")

    checks = try_metric(never, needs=())
    assert broken(checks) == ["returns a value"]
    assert checks[0].reason == "Undefined: no value."
    (check,) = try_metric(share, needs=("classes", "rank"))  # no data meet both
    assert "classes, rank" in check.reason


def test_unknown_names():
    with pytest.raises(DefinitionError, match="acccc"):
        check_metric("acccc")
    with pytest.raises(DefinitionError, match="typos"):
        check_corruption("typo")
    with pytest.raises(DefinitionError, match='"text"'):
        check_model(Lengths, "texts")


@pytest.fixture
def try_corruption(monkeypatch):
    def check(corrupt):
        monkeypatch.setitem(registry.corruptions._parts, "tried", corrupt)
        return check_corruption("tried")

    return check


def blank(X, y, severity, rng):
    """Meet every requirement, on tables and texts."""
    changed = X.astype(object)
    changed[rng.random(len(X)) < severity] = None
    return changed, y


TICKS = iter(range(10**6))


def halve(X, y, severity, rng):
    """Drop rows."""
    kept = rng.random(len(X)) >= severity / 2
    return X[kept], None if y is None else y[kept]


def test_a_correct_corruption_passes(try_corruption):
    checks = try_corruption(blank)
    assert places(checks) == ["on tables", "on texts"]
    assert broken(checks) == [] and len(checks) == 18


def test_a_corruption_may_drop_rows(try_corruption):
    checks = try_corruption(halve)
    assert broken(checks) == []
    assert "changes more at a higher severity" not in requirements(checks)


@pytest.mark.parametrize(
    ("corrupt", "expected"),
    [
        (lambda X, y, s, rng: X, ["returns X and y in kind"]),
        (lambda X, y, s, rng: (X.to_numpy(), y), ["returns X and y in kind"]),
        (lambda X, y, s, rng: (X[1:], y), ["returns one target per row"]),
        (lambda X, y, s, rng: (X[:0], y[:0]), ["returns one target per row"]),
        (lambda X, y, s, rng: (X, y), ["changes the data"]),
        (
            lambda X, y, s, rng: blank(X, y, s + 0.05, rng),
            ["changes nothing at severity 0"],
        ),
        (lambda X, y, s, rng: blank(X, y, s and 1 - s, rng), ["changes more at a higher severity"]),
        (
            lambda X, y, s, rng: blank(X, y, s, np.random.default_rng([int(1e6 * s), next(TICKS)])),
            ["changes more at a higher severity", "is reproducible with the same generator"],
        ),
        (lambda X, y, s, rng: (blank(X, y, s, rng)[0], y[y.index]), ["works without y"]),
        (
            lambda X, y, s, rng: (blank(X, y, s, rng)[0], y) if np.random.rand() < 2 else None,
            ["does not use np.random globally"],
        ),
    ],
)
def test_violations_of_corruptions(try_corruption, corrupt, expected):
    assert list(dict.fromkeys(broken(try_corruption(corrupt)))) == expected


def test_a_corruption_that_modifies_its_input(try_corruption):
    def scribble(X, y, severity, rng):
        if severity:
            X.iloc[:, 1] = np.where(rng.random(len(X)) < severity, 0.0, X.iloc[:, 1])
        return X, y

    checks = try_corruption(scribble)
    assert places(checks) == ["on tables"]
    assert "does not modify its input" in broken(checks)


def test_a_corruption_is_reported_where_it_works(try_corruption):
    def upper(X, y, severity, rng):
        chosen = rng.random(len(X)) < severity
        return pd.Series(np.where(chosen, X.str.upper() + "!", X), index=X.index), y

    checks = try_corruption(upper)
    assert places(checks) == ["on texts"]
    assert broken(checks) == []
