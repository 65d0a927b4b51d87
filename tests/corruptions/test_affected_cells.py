"""The cells that a severity affects."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.corruptions.affected_cells import (
    affected_cells,
    affected_places,
    column_generators,
    count_affected,
    count_up,
)

steady = settings(deadline=None, derandomize=True, max_examples=200)
severities = st.floats(0, 1)


@pytest.mark.parametrize(
    ("size", "severity", "down", "up"),
    [
        (10, 0.0, 0, 0),
        (10, 0.1, 1, 1),
        (30, 0.1, 3, 3),  # 0.1 * 30 is 3.0000000000000004
        (100, 0.29, 29, 29),  # 0.29 * 100 is 28.999999999999996
        (7, 0.2, 1, 2),
        (7, 0.4, 2, 3),
        (3, 1e-12, 0, 1),
        (5, 1.0, 5, 5),
        (0, 0.5, 0, 0),
    ],
)
def test_shares_by_hand(size, severity, down, up):
    assert count_affected(size, severity) == down
    assert count_up(size, severity) == up


@steady
@given(st.integers(0, 10**6), severities, severities)
def test_more_severity_is_never_less(size, one, other):
    low, high = sorted([one, other])
    assert 0 <= count_affected(size, low) <= count_affected(size, high) <= size
    assert 0 <= count_up(size, low) <= count_up(size, high) <= size
    assert count_affected(size, low) <= count_up(size, low) <= count_affected(size, low) + 1


@steady
@given(st.integers(0, 50), st.integers(0, 5), severities, severities, st.integers(0, 9))
def test_less_is_the_beginning_of_more(rows, columns, one, other, seed):
    low, high = sorted([one, other])
    few, many = (affected_places(rows, s, np.random.default_rng(seed)) for s in (low, high))
    assert many[: len(few)].tolist() == few.tolist()
    assert len(set(many.tolist())) == len(many) == count_affected(rows, high)
    few, many = (affected_cells(rows, columns, s, np.random.default_rng(seed)) for s in (low, high))
    assert few.shape == (columns, rows)
    assert few.sum() == count_affected(rows * columns, low)
    assert (few <= many).all()


def test_a_column_draws_alone():
    one, two = column_generators(np.random.default_rng(1), 2)
    expected = two.random(3)
    one, two = column_generators(np.random.default_rng(1), 2)
    one.random(50)
    assert two.random(3).tolist() == expected.tolist()
    assert one.random() != two.random()
