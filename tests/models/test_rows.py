"""Prepared rows and the memory of what was answered about them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.models.predictors import MatrixPredictor
from karat.models.rows import Memory, Rows


class Asked:
    """Answers the sum of a row, and notes how many rows it was asked about."""

    def __init__(self):
        self.counts = []

    def __call__(self, matrix):
        self.counts.append(len(matrix))
        return matrix.sum(axis=1), matrix * 2


def rows(*numbers):
    return Rows(np.array([[number, 1.0] for number in numbers], dtype=float).reshape(-1, 2))


def test_a_row_is_asked_about_once():
    memory, ask = Memory(), Asked()
    sums, doubles = memory.recall(rows(1, 2, 1), ask)
    assert sums.tolist() == [2, 3, 2]
    assert doubles[:, 0].tolist() == [2, 4, 2]
    sums, _ = memory.recall(rows(3, 2, 1, 3), ask)
    assert sums.tolist() == [4, 3, 2, 4]
    assert memory.recall(rows(2, 3), ask)[0].tolist() == [3, 4]
    assert ask.counts == [2, 1]


@given(st.lists(st.lists(st.integers(0, 5), max_size=6), max_size=5), st.integers(0, 4))
def test_what_is_remembered_is_what_would_be_answered(views, most):
    memory = Memory(most)
    for view in views:
        sums, doubles = memory.recall(rows(*view), Asked())
        assert sums.tolist() == [number + 1 for number in view]
        assert doubles.tolist() == [[2 * number, 2] for number in view]
    assert len(memory.indices) <= most


def test_no_more_is_learned_than_there_is_room_for():
    memory, ask = Memory(most=2), Asked()
    memory.recall(rows(1, 2), ask)
    memory.recall(rows(1, 3), ask)
    memory.recall(rows(2, 1), ask)
    assert ask.counts == [2, 2]


def test_an_error_leaves_no_row_behind_that_has_no_answer():
    memory = Memory()

    def fail(matrix):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        memory.recall(rows(1), fail)
    assert memory.recall(rows(1), Asked())[0].tolist() == [2]


def test_rows_that_differ_in_a_bit_are_two():
    near = np.nextafter(1.0, 2.0)
    assert len(set(Rows(np.array([[1.0], [near], [0.0], [-0.0]])).digests)) == 4


def test_rows_cannot_be_written_to_and_are_an_array_to_numpy():
    made = rows(1, 2)
    with pytest.raises(ValueError, match="read-only"):
        made.matrix[0, 0] = 5
    assert np.asarray(made).tolist() == [[1, 1], [2, 1]]
    assert np.asarray(made, dtype=np.float32).dtype == np.float32
    assert made.nbytes > made.matrix.nbytes


class Summing:
    """A regressor that counts the rows it is asked about."""

    asked = 0

    def fit(self, X, y):
        return self

    def predict(self, X):
        self.asked += len(X)
        return X.sum(axis=1)


def test_a_predictor_forgets_when_it_is_fitted_again():
    predictor = MatrixPredictor(Summing(), "numbers")
    for _ in range(2):
        predictor.fit(np.zeros((2, 2)), np.zeros(2))
        assert predictor.predict(rows(1, 2)).tolist() == [2, 3]
        assert predictor.predict(rows(2, 1)).tolist() == [3, 2]
    assert predictor.estimator.asked == 4
    assert predictor.predict(np.ones((3, 2))).tolist() == [2, 2, 2]
    assert predictor.estimator.asked == 7
