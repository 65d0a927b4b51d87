"""Support vector machines: scikit-learn's decisions, and calibrated probabilities."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC, SVR

from karat.models import svm
from karat.models.svm import Kernel, RbfClassifier, RbfLabels, RbfRegressor


def bands(classes, count=200, seed=0):
    """Return rows and which band of the first column they lie in, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 4))
    edges = np.linspace(-1, 1, classes + 1)[1:-1]
    return X, np.digitize(X[:, 0] + 0.3 * rng.normal(size=count), edges)


# -- decisions ------------------------------------------------------------------------------


def test_the_kernel_equals_scikit_learns():
    X = np.random.default_rng(3).normal(size=(60, 3)) * [1, 1e3, 1e-3] + [1e5, 0, 0]
    kernel = Kernel(X[:50], "scale")
    gamma = 1 / (3 * X[:50].var())
    assert kernel.gamma == pytest.approx(gamma)
    np.testing.assert_allclose(kernel.square, rbf_kernel(X[:50], gamma=gamma), rtol=0, atol=1e-12)
    assert np.array_equal(kernel.square, kernel.square.T)
    assert kernel.square.diagonal().tolist() == [1.0] * 50
    some = kernel.against(X[50:], np.array([3, 1]))
    expected = rbf_kernel(X[50:], X[[3, 1]], gamma=gamma)
    np.testing.assert_allclose(some, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("block", [1, 777, 2**18])
@pytest.mark.parametrize("largest", [100, 8192])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_decisions_and_labels_equal_those_of_scikit_learn(monkeypatch, classes, largest, block):
    monkeypatch.setattr(svm, "BLOCK", block)
    monkeypatch.setattr(svm, "LARGEST", largest)
    X, y = bands(classes)
    test, _ = bands(classes, 101, seed=1)
    ours, theirs = RbfClassifier().fit(X, y), SVC().fit(X, y)
    assert ours.machine_.kernel == ("rbf" if largest < len(X) else "precomputed")
    assert ours.decision_function(test) == pytest.approx(theirs.decision_function(test), abs=1e-6)
    assert np.array_equal(ours.predict(test), theirs.predict(test))
    assert np.array_equal(RbfLabels().fit(X, y).predict(test), theirs.predict(test))
    assert len(ours.predict(test[:0])) == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.floats(0.01, 100), st.floats(0.001, 10), st.integers(0, 99))
def test_decisions_agree_for_any_parameters(classes, C, gamma, seed):
    X, y = bands(classes, 60, seed)
    y[:classes] = np.arange(classes)
    ours = RbfClassifier(C, gamma, folds=2).fit(X, y)
    theirs = SVC(C=C, gamma=gamma).fit(X, y)
    found = ours.decision_function(X)
    # both solve the dual problem up to libsvm's tolerance of 1e-3
    assert np.abs(found - theirs.decision_function(X)).max() <= 2e-3 * max(1.0, np.abs(found).max())


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
    theirs = SVR(C=C, gamma=gamma, epsilon=epsilon).fit(X, scaled).predict(X)
    ours = RbfRegressor(C, gamma, epsilon).fit(X, y).predict(X)
    assert np.abs(ours - (theirs * y.std() + y.mean())).max() < 1e-3 * y.std()


def test_a_constant_target_is_predicted():
    X, _ = bands(2, 30)
    assert RbfRegressor().fit(X, np.full(30, 7.0)).predict(X) == pytest.approx(np.full(30, 7.0))
    fitted = RbfClassifier().fit(X, ["a"] * 30)
    assert set(fitted.predict(X)) == {"a"} and (fitted.predict_proba(X) == 1).all()


# -- probabilities --------------------------------------------------------------------------


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
    passes, real = [], svm._pair_decisions
    monkeypatch.setattr(svm, "_pair_decisions", lambda *given: passes.append(1) or real(*given))
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
