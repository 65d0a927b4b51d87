"""Support vector machines: the decisions are scikit-learn's, the probabilities are calibrated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from sklearn.svm import SVC, SVR

from karat.models import svm
from karat.models.svm import RbfClassifier, RbfRegressor


def bands(classes, count=200, seed=0):
    """Return rows and which band of the first column they lie in, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4))
    edges = np.linspace(-1, 1, classes + 1)[1:-1]
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=count), edges)


# -- decisions ------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 777, 2**18])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_decisions_and_labels_are_those_of_scikit_learn(monkeypatch, classes, block):
    monkeypatch.setattr(svm, "BLOCK", block)
    X, y = bands(classes)
    test, _ = bands(classes, 101, seed=1)
    ours, theirs = RbfClassifier().fit(X, y), SVC().fit(X, y)
    assert ours.decision_function(test) == pytest.approx(theirs.decision_function(test), abs=1e-6)
    assert np.array_equal(ours.predict(test), theirs.predict(test))


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.floats(0.01, 100), st.floats(0.001, 10), st.integers(0, 99))
def test_decisions_agree_whatever_the_parameters(classes, C, gamma, seed):
    X, y = bands(classes, 60, seed)
    y[:classes] = np.arange(classes)
    ours = RbfClassifier(C, gamma, folds=2).fit(X, y)
    theirs = SVC(C=C, gamma=gamma).fit(X, y)
    found = ours.decision_function(X)
    assert np.abs(found - theirs.decision_function(X)).max() <= 1e-6 * max(1.0, np.abs(found).max())


def test_far_away_rows_get_the_offset_alone():
    X, y = bands(2)
    ours = RbfClassifier().fit(X, y)
    decisions = ours.decision_function(np.array([[1e30, 0, 0, 0], [-1e30, 1e30, 0, 0]]))
    assert decisions == pytest.approx([ours.machine_.intercept_[0]] * 2)


def test_numbers_are_those_of_scikit_learn_on_the_scaled_truth():
    X, _ = bands(2)
    y = 1e6 + 5e4 * np.sin(X[:, 0])
    scaled = (y - y.mean()) / y.std()
    theirs = SVR().fit(X, scaled).predict(X) * y.std() + y.mean()
    assert RbfRegressor().fit(X, y).predict(X) == pytest.approx(theirs, rel=1e-9)


def test_a_truth_that_does_not_vary_is_the_answer():
    X, _ = bands(2, 30)
    assert RbfRegressor().fit(X, np.full(30, 7.0)).predict(X) == pytest.approx(np.full(30, 7.0))


# -- probabilities --------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 4])
def test_probabilities_are_worth_more_than_the_shares_and_sum_to_one(classes):
    X, y = bands(classes, 400)
    test, truth = bands(classes, 1000, seed=1)
    fitted = RbfClassifier(random_state=2).fit(X, y)
    chances = fitted.predict_proba(test)
    assert chances.sum(axis=1) == pytest.approx(np.ones(1000))
    shares = np.tile(np.bincount(y) / len(y), (1000, 1))
    assert log_loss(truth, chances) < 0.7 * log_loss(truth, shares)
    # calibrated: what is said to happen so often happens about so often
    assert chances.mean(axis=0) == pytest.approx(np.bincount(truth) / 1000, abs=0.05)


def test_the_probability_rises_with_the_decision():
    X, y = bands(2)
    noise = np.random.default_rng(0).permutation(y)
    for truth in (y, noise):  # noise would turn an unbound slope round
        fitted = RbfClassifier().fit(X, truth)
        order = np.argsort(fitted.decision_function(X))
        steps = np.diff(fitted.predict_proba(X)[order, 1])
        assert (steps >= 0).all() and steps.sum() > 0


def test_platts_targets_keep_sure_decisions_from_certainty():
    X = np.array([[-5.0], [-5.1], [-5.2], [5.0], [5.1], [5.2]] * 5)
    fitted = RbfClassifier().fit(X, (X[:, 0] > 0).astype(int))
    chances = fitted.predict_proba(np.array([[-5.0], [5.0]]))
    # of 15 rows of a class that are all on its side, 16 of 17 are said to be
    assert chances[:, 1] == pytest.approx([1 / 17, 16 / 17], abs=0.01)


def test_the_only_row_of_a_class_is_learned_from():
    X, y = bands(2, 60)
    y[0] = 9
    fitted = RbfClassifier().fit(X, y)
    assert fitted.classes_.tolist() == [0, 1, 9]
    assert np.isfinite(fitted.predict_proba(X)).all()


def test_the_same_seed_gives_the_same_bits_and_touches_no_other_generator():
    X, y = bands(3)
    state = repr(np.random.get_state())
    one, two, other = (RbfClassifier(random_state=s).fit(X, y).predict_proba(X) for s in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)
    RbfRegressor().fit(X, X[:, 0])
    assert repr(np.random.get_state()) == state


def test_labels_and_probabilities_come_from_one_pass(monkeypatch):
    X, y = bands(3)
    fitted = RbfClassifier().fit(X, np.array(["a", "b", "c"])[y])
    passes, real = [], svm._pair_decisions
    monkeypatch.setattr(svm, "_pair_decisions", lambda *given: passes.append(1) or real(*given))
    labels, chances = fitted.predict_both(X)
    assert len(passes) == 1
    assert np.array_equal(labels, fitted.predict(X))
    assert np.array_equal(chances, fitted.predict_proba(X))
    assert set(labels) <= {"a", "b", "c"}


@pytest.mark.parametrize("classes", [2, 3])
def test_no_bit_of_an_answer_hangs_on_the_rows_beside_it(classes):
    X, y = bands(classes)
    fitted = RbfClassifier(random_state=0).fit(X, y)
    whole = fitted.decision_function(X), fitted.predict_proba(X)
    rng = np.random.default_rng(0)
    for size in (1, 2, 15, 17, len(X) - 1):
        some = rng.permutation(len(X))[:size]
        assert np.array_equal(fitted.decision_function(X[some]), whole[0][some])
        assert np.array_equal(fitted.predict_proba(X[some]), whole[1][some])
