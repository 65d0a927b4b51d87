"""Compiled trees: scikit-learn's, node by node and to the bit."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import datasets
from sklearn.base import clone
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from karat.heads import cart, cart_loops
from karat.heads.cart import CartClassifier, CartRegressor
from karat.heads.classic import tree

ARRAYS = (
    *("children_left", "children_right", "feature", "threshold", "impurity", "value"),
    *("n_node_samples", "weighted_n_node_samples"),
)
SMALLEST = cart.SMALLEST
PLAIN = {CartClassifier: DecisionTreeClassifier, CartRegressor: DecisionTreeRegressor}


@pytest.fixture(scope="module")
def grown_by_loops():
    """Let the loops grow the smallest trees, and see to it that they do."""
    pytest.importorskip("numba")
    points = np.arange(6.0).reshape(3, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cart, "SMALLEST", 0)
        if not cart._is_for_loops(CartClassifier(), points, np.arange(3)):
            pytest.skip("trees are left to scikit-learn here")
        yield


def assert_same(ours, X, y):
    theirs = PLAIN[type(ours)](**ours.get_params()).fit(X, y)
    assert cart._is_for_loops(ours, X, np.asarray(y))
    ours.fit(X, y)
    for name in ARRAYS:
        assert np.array_equal(getattr(ours.tree_, name), getattr(theirs.tree_, name)), name
    inner = theirs.tree_.feature >= 0
    sides = [each.tree_.missing_go_to_left[inner] for each in (ours, theirs)]
    assert np.array_equal(*sides)
    assert ours.tree_.max_depth == theirs.tree_.max_depth
    asked = X + np.random.default_rng(0).normal(size=X.shape) * X.std()
    assert np.array_equal(ours.predict(asked), theirs.predict(asked))
    assert ours.n_features_in_ == theirs.n_features_in_
    if isinstance(ours, CartClassifier):
        assert np.array_equal(ours.predict_proba(asked), theirs.predict_proba(asked))
        assert np.array_equal(ours.classes_, theirs.classes_)
        assert ours.n_classes_ == theirs.n_classes_


@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer", "digits"])
@pytest.mark.parametrize("criterion", ["entropy", "gini"])
@pytest.mark.parametrize(("leaf", "depth"), [(1, None), (3, 4)])
def test_classes(grown_by_loops, name, criterion, leaf, depth):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    params = {"criterion": criterion, "min_samples_leaf": leaf, "max_depth": depth}
    for seed in range(3):
        assert_same(CartClassifier(random_state=seed, **params), X, y)


@pytest.mark.parametrize("leaf", [1, 4])
def test_numbers(grown_by_loops, leaf):
    # many values are equal, and logarithms do not add up exactly: the order of equals matters
    for load in (datasets.load_diabetes, datasets.load_digits, datasets.load_breast_cancer):
        X, y = load(return_X_y=True)
        noise = np.random.default_rng(1).normal(size=len(y))
        for numbers in (y, np.log(y + 1.5), noise, 1e9 + noise):
            assert_same(CartRegressor(min_samples_leaf=leaf, random_state=2), X, numbers)


def test_vectors_of_clusters(grown_by_loops):
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 8, 500)
    X = rng.normal(size=(8, 60))[groups] + 0.7 * rng.normal(size=(500, 60))
    assert_same(CartClassifier(criterion="entropy"), X, np.array(list("abcdefgh"))[groups])
    assert_same(CartClassifier(criterion="gini"), X, (groups % 3).astype(object).astype(str))
    assert_same(CartRegressor(), X, X[:, :5].sum(axis=1) + rng.normal(size=500))


SHAPES = {
    "plain": lambda X, rng: X,
    "few values": lambda X, rng: np.round(X),
    "rows twice": lambda X, rng: X[rng.integers(0, len(X), len(X))],
    "constants": lambda X, rng: np.where(rng.random(X.shape[1]) < 0.5, X, 1.5),
    "many zeros": lambda X, rng: np.where(rng.random(X.shape) < 0.7, -0.0, X),
    "nearly equal": lambda X, rng: np.round(X, 1) * 1e-7 * rng.choice([1.0, 10.0, 1e6], X.shape[1]),
}


@settings(deadline=None, max_examples=120)
@given(
    st.sampled_from(sorted(SHAPES)),
    st.integers(2, 150),
    st.integers(1, 12),
    st.sampled_from([1, 2, 5]),
    st.integers(0, 2**32 - 1),
)
def test_any_problem(grown_by_loops, shape, rows, features, leaf, seed):
    rng = np.random.default_rng(seed)
    X = SHAPES[shape](rng.normal(size=(rows, features)), rng)
    y = rng.integers(0, rng.integers(1, 6), rows)
    for criterion in ("entropy", "gini"):
        params = {"criterion": criterion, "min_samples_leaf": leaf, "random_state": seed}
        assert_same(CartClassifier(**params), X, y)
    for numbers in (y, rng.normal(size=rows), np.round(rng.normal(size=rows), 2) * 1e6):
        assert_same(CartRegressor(min_samples_leaf=leaf, random_state=seed), X, numbers)


def test_the_generator_is_marsaglias():
    state = np.array([1])
    assert [cart_loops._draw(state) for _ in range(2)] == [270369, 67634689]
    assert cart_loops._draw(np.array([0])) == 270369


@pytest.mark.parametrize("kind", ["few", "none", "pipe"])
def test_equals_are_sorted_as_scikit_learn_sorts_them(kind, monkeypatch):
    from sklearn.utils._sorting import _py_simultaneous_sort

    heaps = []
    sort_by_heap = cart_loops._heap
    monkeypatch.setattr(cart_loops, "_heap", lambda *a: heaps.append(a) or sort_by_heap(*a))
    values = {
        "few": np.random.default_rng(0).integers(0, 40, 300),
        "none": np.zeros(20),
        "pipe": np.r_[np.arange(200), np.arange(200)[::-1]],  # the middle of three is a bad pivot
    }[kind].astype(np.float32)
    ours, theirs = [(values.copy(), np.arange(len(values))) for _ in range(2)]
    cart_loops._sort(*ours, np.empty((40, 3), np.int64), len(values))
    _py_simultaneous_sort(*theirs, len(values), use_three_way_partition=True)
    assert np.array_equal(ours, theirs)
    assert bool(heaps) == (kind == "pipe")


def test_which_sums_are_exact():
    assert cart._adds_exactly(np.array([1.0, -7.5, 0.125]))
    assert not cart._adds_exactly(np.array([1.0, 0.1]))
    assert not cart._adds_exactly(np.array([1.0, 2.0**24]))  # 2²⁷ eighths, squared 2⁵⁴


def test_a_fitted_tree_is_kept_and_copied(grown_by_loops):
    X, y = datasets.load_iris(return_X_y=True)
    head = CartClassifier(criterion="entropy", random_state=5).fit(X, y)
    again = pickle.loads(pickle.dumps(head))
    assert np.array_equal(again.predict_proba(X), head.predict_proba(X))
    fresh = clone(head)
    assert fresh.get_params() == head.get_params() and not hasattr(fresh, "tree_")


def test_train_rows_stay_as_they_were(grown_by_loops):
    X, y = datasets.load_diabetes(return_X_y=True)
    before = X.copy(), y.copy()
    CartRegressor().fit(X, y)
    assert np.array_equal(X, before[0]) and np.array_equal(y, before[1])


def test_only_large_problems_are_worth_the_loops(monkeypatch):
    grown = []
    monkeypatch.setattr(cart, "_grow", lambda *asked: grown.append(asked))
    monkeypatch.setattr(cart, "MACHINES", (cart.platform.machine(),))
    monkeypatch.setattr(cart, "KNOWN", "")
    monkeypatch.setattr(cart.loops, "grower", lambda: abs)
    monkeypatch.setattr(cart, "SMALLEST", SMALLEST)
    X = np.random.default_rng(0).normal(size=(500, 200))
    tree("classes").fit(X[:499], np.arange(499) % 3)
    assert not grown
    tree("classes").fit(X, np.arange(500) % 3)
    tree("numbers").fit(X, X[:, 0])
    assert [asked[1].shape for asked in grown] == [X.shape] * 2


@pytest.mark.parametrize("what", ["loops", "machine", "version", "weights", "gap", "absolute", "y"])
def test_all_else_is_left_to_scikit_learn(what, monkeypatch):
    rng = np.random.default_rng(0)
    X, y, weights, criterion = rng.normal(size=(60, 4)), rng.normal(size=60), None, "squared_error"
    monkeypatch.setattr(cart, "SMALLEST", 0)
    monkeypatch.setattr(cart, "_grow", None)  # whoever calls it fails
    if what == "loops":
        monkeypatch.setattr(cart.loops, "grower", lambda: None)
    elif what == "machine":
        monkeypatch.setattr(cart, "MACHINES", ())
    elif what == "version":
        monkeypatch.setattr(cart, "KNOWN", "0.1.")
    elif what == "weights":
        weights = rng.random(60)
    elif what == "gap":
        X[3, 2] = np.nan
    elif what == "absolute":
        criterion = "absolute_error"
    else:
        y = np.c_[y, y]
    ours = CartRegressor(criterion=criterion).fit(X, y, weights)
    theirs = DecisionTreeRegressor(criterion=criterion, random_state=0).fit(X, y, weights)
    assert np.array_equal(ours.predict(X), theirs.predict(X))


def test_bad_parameters_and_answers_are_refused_as_before(grown_by_loops):
    X = np.arange(8.0).reshape(4, 2)
    with pytest.raises(ValueError, match="min_samples_leaf"):
        CartClassifier(min_samples_leaf=0).fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match="continuous"):
        CartClassifier().fit(X, [0.5, 1.5, 0.5, 1.0])
    with pytest.raises(ValueError, match="infinity"):
        CartRegressor().fit(X * 1e300, [0.5, 1.5, 0.5, 1.0])
    with pytest.raises(ValueError, match="NaN"):
        CartRegressor().fit(X, [0.5, 1.5, 0.5, np.nan])
    with pytest.raises(ValueError, match="Number of labels=3|inconsistent"):
        CartRegressor().fit(X, [0.5, 1.5, 0.5])
