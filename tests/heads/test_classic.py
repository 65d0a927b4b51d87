"""Nearest neighbours: votes and means by hand."""

import numpy as np
import pytest

from karat.heads.classic import knn

X = np.array([[0.0], [1.0], [2.0], [10.0]])


def test_the_nearest_vote():
    head = knn("classes", n_neighbors=3).fit(X, list("aabb"))
    assert head.predict([[0.0]]).tolist() == ["a"]
    assert head.predict_proba([[0.0]]).tolist() == [[pytest.approx(2 / 3), pytest.approx(1 / 3)]]


def test_the_mean_of_the_nearest_is_the_number():
    head = knn("numbers", n_neighbors=2).fit(X, [1.0, 2.0, 4.0, 100.0])
    assert head.predict([[1.6]]).tolist() == [3.0]


def test_near_ones_may_weigh_more():
    head = knn("numbers", n_neighbors=2, weights="distance").fit(X, [0.0, 6.0, 0.0, 0.0])
    # distances 0.75 and 0.25: weights 4/3 and 4
    assert head.predict([[0.75]])[0] == pytest.approx(6 * 4 / (4 + 4 / 3))


def test_five_neighbours_by_default():
    assert knn("classes").n_neighbors == knn("numbers").n_neighbors == 5
