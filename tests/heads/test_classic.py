"""Nearest neighbors, naive Bayes and trees: results by hand, and scikit-learn's."""

import math

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from karat.errors import DefinitionError
from karat.heads.classic import knn, naive_bayes, tree

X = np.array([[0.0], [1.0], [2.0], [10.0]])


def test_the_nearest_neighbors_vote():
    head = knn("classes", n_neighbors=3).fit(X, list("aabb"))
    assert head.predict([[0.0]]).tolist() == ["a"]
    assert head.predict_proba([[0.0]]).tolist() == [[pytest.approx(2 / 3), pytest.approx(1 / 3)]]


def test_numbers_are_the_mean_of_the_nearest_neighbors():
    head = knn("numbers", n_neighbors=2).fit(X, [1.0, 2.0, 4.0, 100.0])
    assert head.predict([[1.6]]).tolist() == [3.0]
    assert knn("classes").n_neighbors == knn("numbers").n_neighbors == 5


def test_neighbors_weighted_by_distance():
    head = knn("numbers", n_neighbors=2, weights="distance").fit(X, [0.0, 6.0, 0.0, 0.0])
    # distances 0.75 and 0.25: weights 4/3 and 4
    assert head.predict([[0.75]])[0] == pytest.approx(6 * 4 / (4 + 4 / 3))


def test_naive_bayes_by_hand():
    # both classes have the variance 1 and as many members: at 1 the odds are exp(((1-4)² - 1²) / 2)
    head = naive_bayes(var_smoothing=1e-12).fit([[-1.0], [1.0], [3.0], [5.0]], list("aabb"))
    odds = math.exp((9 - 1) / 2)
    assert head.predict_proba([[1.0]])[0, 0] == pytest.approx(odds / (1 + odds))
    assert head.predict([[1.9], [2.1]]).tolist() == ["a", "b"]


def test_naive_bayes_is_scikit_learns():
    points, labels = load_iris(return_X_y=True)
    ours, theirs = naive_bayes().fit(points, labels), GaussianNB().fit(points, labels)
    assert np.array_equal(ours.predict_proba(points), theirs.predict_proba(points))
    labels, chances = ours.predict_both(points)
    assert np.array_equal(labels, ours.predict(points))
    assert np.array_equal(labels, theirs.predict(points))
    np.testing.assert_allclose(chances, theirs.predict_proba(points), rtol=1e-12, atol=1e-300)


def test_equal_vectors_give_the_class_frequencies():
    head = naive_bayes().fit(np.ones((8, 3)), list("aabbbbbb"))
    labels, chances = head.predict_both(np.ones((2, 3)))
    assert labels.tolist() == ["b", "b"]
    assert chances == pytest.approx(np.array([[0.25, 0.75]] * 2))


@pytest.mark.parametrize(
    ("criterion", "cut"),
    # behind the 4th: 4 · 1 bit, or 4 · 1/2; behind the 7th: 7 · 0.592 = 4.14, or 7 · 12/49 = 1.71
    [(None, 3.5), ("entropy", 3.5), ("gini", 6.5)],
)
def test_the_criterion_decides_the_split(criterion, cut):
    head = tree("classes", criterion, max_depth=1).fit(np.arange(8.0)[:, None], list("aaaabaab"))
    assert head.tree_.threshold[0] == cut


def test_a_tree_is_scikit_learns_with_a_seed():
    points, labels = load_iris(return_X_y=True)
    asked = points + 0.3
    ours = tree("classes", random_state=3).fit(points, labels)
    theirs = DecisionTreeClassifier(criterion="entropy", random_state=3).fit(points, labels)
    assert np.array_equal(ours.predict(asked), theirs.predict(asked))
    ours = tree("numbers", random_state=4).fit(points[:, 1:], points[:, 0])
    theirs = DecisionTreeRegressor(random_state=4).fit(points[:, 1:], points[:, 0])
    assert np.array_equal(ours.predict(asked[:, 1:]), theirs.predict(asked[:, 1:]))
    assert theirs.criterion == ours.criterion == "squared_error"


def test_a_tree_does_not_use_the_global_generator():
    before = np.random.get_state()[1].copy()
    tree("classes").fit(X, list("aabb"))
    tree("numbers").fit(X, [1.0, 2.0, 3.0, 4.0])
    assert np.array_equal(before, np.random.get_state()[1])


def test_min_samples_leaf():
    head = tree("numbers", min_samples_leaf=2).fit(X, [1.0, 3.0, 5.0, 9.0])
    assert head.predict(X).tolist() == [2.0, 2.0, 7.0, 7.0]


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: naive_bayes("numbers"), "ridge"),
        (lambda: naive_bayes(var_smoothing=0), "var_smoothing"),
        (lambda: tree("classes", "entrpy"), '"entrpy".*"entropy"'),
        (lambda: tree("numbers", "gini"), "squared_error, absolute_error"),
    ],
)
def test_wrong_parameters(make, word):
    with pytest.raises(DefinitionError, match=word):
        make()
