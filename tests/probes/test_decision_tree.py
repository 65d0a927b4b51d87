"""When trees are grown by compiled loops, and when by scikit-learn."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from karat.errors import DefinitionError
from karat.probes import decision_tree
from karat.probes.decision_tree import (
    ClassTree,
    Grown,
    NumberTree,
    _line,
    adjusted,
)
from karat.probes.estimators import model_tree


@pytest.fixture
def loops(monkeypatch):
    """Use the compiled loops from the first tree on."""
    pytest.importorskip("numba")
    monkeypatch.setattr(decision_tree, "PATIENCE", 0)


def points() -> tuple[np.ndarray, np.ndarray]:
    """Return vectors, and integers as targets."""
    rng = np.random.default_rng(0)
    return rng.standard_normal((150, 12)), rng.integers(0, 4, 150)


@pytest.mark.parametrize(
    "change",
    [
        lambda X, y: (X, y / 10, None),  # sums depend on the order of rows
        lambda X, y: (X, y, 1.0 + y),
        lambda X, y: (np.where(X > 2, np.nan, X), y, None),
    ],
    ids=["fractions", "weights", "missing"],
)
def test_other_trees_are_grown_by_scikit_learn(loops, change):
    X, y, weight = change(*points())
    found = NumberTree(random_state=0).fit(X, y, weight)
    wanted = DecisionTreeRegressor(random_state=0).fit(X, y, weight)
    assert not isinstance(found.tree_, Grown)
    asked = np.random.default_rng(0).standard_normal((40, 12))
    assert np.array_equal(found.predict(asked), wanted.predict(asked))


def test_a_single_class_is_a_leaf(loops):
    X, _ = points()
    labels, shares = ClassTree().fit(X, ["a"] * len(X)).predict_both(X[:2])
    assert labels.tolist() == ["a", "a"] and shares.tolist() == [[1], [1]]


def test_few_small_trees_do_not_load_numba(monkeypatch):
    monkeypatch.setattr(decision_tree, "_seen", [0])
    for name in ("numba", "karat.probes.heads_numba"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert not isinstance(ClassTree().fit(*points()).tree_, Grown)
    assert "numba" not in sys.modules


def pieces(rows: int, noise: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Return two lines, one on each side of 0 in the first dimension."""
    rng = np.random.default_rng(rows)
    X = rng.uniform(-1, 1, (rows, 3))
    y = np.where(X[:, 0] < 0, 2 * X[:, 1] + 1, 20 - 3 * X[:, 2] + X[:, 1])
    return X, y + noise * rng.standard_normal(rows)


def rmse(head, train, test) -> float:
    return float(np.sqrt(np.mean((head.fit(*train).predict(test[0]) - test[1]) ** 2)))


def test_piecewise_linear_targets_are_fitted_exactly():
    train, test = pieces(300), pieces(301)
    # rows between the split and 0 are on the wrong side
    cut = DecisionTreeRegressor(max_depth=1).fit(*train).tree_.threshold[0]
    sure = np.abs(test[0][:, 0]) > abs(cut)
    head = model_tree(smoothing=0)
    assert rmse(head, train, (test[0][sure], test[1][sure])) < 1e-12
    assert len(head.leaves_) == 2
    left, right = sorted(head.leaves_.values(), key=lambda line: line[-1])
    assert left == pytest.approx([0, 2, 0, 1], abs=1e-12)
    assert right == pytest.approx([0, 1, -3, 20], abs=1e-12)


def test_it_is_better_than_a_tree_and_a_line_on_noisy_data():
    train, test = pieces(2000, noise=0.3), pieces(1001, noise=0.3)
    ours = rmse(model_tree(), train, test)
    assert ours < 0.9 * rmse(DecisionTreeRegressor(random_state=0), train, test)
    assert ours < 0.2 * rmse(LinearRegression(), train, test)
    assert ours < 0.36


def test_a_single_line_becomes_a_single_leaf():
    X, _ = pieces(200)
    head = model_tree().fit(X, X @ [1.0, -2.0, 0.5] + 7)
    assert list(head.leaves_) == [0] and len(head.lines_) > 1
    assert head.leaves_[0] == pytest.approx([1, -2, 0.5, 7])


@pytest.mark.parametrize("rows", [1, 2, 3, 9])
def test_a_constant_is_its_mean(rows):
    X = np.arange(2.0 * rows).reshape(rows, 2)
    assert model_tree().fit(X, np.full(rows, 4.25)).predict(X + 3).tolist() == [4.25] * rows
    same = model_tree().fit(np.ones((rows, 2)), np.arange(float(rows)))
    assert same.predict(np.zeros((1, 2))) == pytest.approx([(rows - 1) / 2])


def test_smoothing_mixes_in_the_model_above():
    X, y = pieces(300)
    plain, mixed = model_tree(smoothing=0).fit(X, y), model_tree().fit(X, y)
    assert set(plain.leaves_) == set(mixed.leaves_) and len(mixed.leaves_) == 2
    root = mixed.lines_[0].dense(3)
    sizes = {True: int((X[:, 0] < 0).sum()), False: int((X[:, 0] >= 0).sum())}
    for node, weights in mixed.leaves_.items():
        rows = sizes[plain.leaves_[node][-1] < 10]
        assert weights == pytest.approx((rows * plain.leaves_[node] + 15 * root) / (rows + 15))


def test_the_error_is_adjusted_for_parameters():
    assert adjusted(2.0, rows=10, parameters=2) == 3.0
    assert adjusted(2.0, rows=2, parameters=2) == np.inf


def test_terms_that_do_not_reduce_the_adjusted_error_are_dropped():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    X[:, 5] = X[:, 0] - X[:, 1]  # linearly dependent
    line = _line(X, 3 * X[:, 2] + 1, np.arange(10, 16), 1e-9)
    assert line.terms.tolist() == [12] and line.weights == pytest.approx([3.0])
    assert line.offset == pytest.approx(1.0) and line.error < 1e-12
    # the same terms as with refitting after each removal
    y = X @ [1, 0.2, 0, 0.05, 0, 0] + 0.5 * rng.standard_normal(40)
    kept, error = [0, 1, 2, 3, 4], np.inf
    while True:
        fits = [_refit(X, y, [k for k in kept if k != gone]) for gone in kept]
        best = min(range(len(kept)), key=lambda place: fits[place][0])
        now = _refit(X, y, kept)[1]
        if fits[best][1] > now:
            break
        kept.remove(kept[best])
        error = fits[best][1]
    line = _line(X[:, :5], y, np.arange(5), 0.0)
    assert line.terms.tolist() == kept
    assert adjusted(line.error, 40, len(kept) + 1) == pytest.approx(min(error, now))


def _refit(X, y, kept):
    """Return the squared error of least squares on some columns, and the adjusted error."""
    design = np.column_stack([X[:, kept], np.ones(len(y))])
    rest = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return float(rest @ rest), adjusted(float(np.abs(rest).mean()), len(y), len(kept) + 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.integers(1, 4), st.booleans())
def test_the_order_of_rows_does_not_matter(seed, rows, width, coarse):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((rows, width)), rng.standard_normal(rows)
    if coarse:  # many equal rows and equal cuts
        X, y = np.round(X), np.round(y)
    asked, order = rng.standard_normal((20, width)) * 3, rng.permutation(rows)
    first = model_tree().fit(X, y).predict(asked)
    assert np.isfinite(first).all()
    assert np.array_equal(first, model_tree().fit(X[order], y[order]).predict(asked))


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"kind": "classification"}, "classification"),
        ({"min_samples_leaf": 0}, "min_samples_leaf.*0"),
        ({"smoothing": -1}, "smoothing.*-1"),
    ],
)
def test_parameters_are_checked(params, word):
    with pytest.raises(DefinitionError, match=word):
        model_tree(**params)
