"""The Pareto front of a board: by hand, and against its definition."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.errors import DefinitionError
from karat.results.pareto import pareto


def board(rank, seconds, **columns):
    return pd.DataFrame({"rank": rank, "seconds": seconds, **columns}).astype(
        {"rank": float, "seconds": float}
    )


def test_the_front_by_hand():
    # the third is slower than the second and worse; the fourth is worst but cheapest
    assert pareto(board([1, 2, 3, 4], [9, 2, 4, 1])).tolist() == [True, True, False, True]


def test_equal_points_are_on_the_front_together():
    assert pareto(board([1, 1, 1], [2, 2, 3])).tolist() == [True, True, False]
    assert pareto(board([1, 2], [2, 2])).tolist() == [True, False]


def test_models_without_a_number_or_a_letter_are_not_on_the_front():
    found = pareto(board([1, np.nan, 2, 3], [np.nan, 1, 5, 4], tie=["a", "a", "", "b"]))
    assert found.tolist() == [False, False, False, True]
    assert pareto(board([np.nan], [np.nan])).tolist() == [False]


def test_any_column_may_be_the_cost_or_the_quality():
    given = board([1, 2], [1, 1], memory_mb=[9.0, 1.0], elo=[1400.0, 1600.0], t=[3.0, 1.0])
    given.attrs["higher_is_better"] = {"t": False}
    assert pareto(given, "memory_mb").tolist() == [True, True]
    # more Elo is better, a lower error is
    assert pareto(given, quality="elo").tolist() == [False, True]
    assert pareto(given, quality="t").tolist() == [False, True]
    with pytest.raises(DefinitionError, match='"memroy_mb".*"memory_mb"'):
        pareto(given, "memroy_mb")


def test_each_group_has_its_own():
    index = pd.MultiIndex.from_product([["t", "u"], ["a", "b"]], names=["task", "model"])
    long = board([1, 2, 1, 2], [1, 2, 2, 1]).set_index(index)
    assert pareto(long).tolist() == [True, False, True, True]


numbers = st.one_of(st.integers(0, 4).map(float), st.just(float("nan")))


@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12))
def test_the_front_equals_its_definition(points):
    def beaten(p):
        return any(q[0] <= p[0] and q[1] <= p[1] and q != p for q in points)

    expected = [not np.isnan(p).any() and not beaten(p) for p in points]
    assert pareto(board(*zip(*points, strict=True))).tolist() == expected


def test_a_model_that_failed_everywhere_is_not_on_the_front():
    board = pd.DataFrame({"rank": [1.0, 2.0], "seconds": [9.0, 0.1], "a": [0.9, float("nan")]})
    board.attrs["tasks"] = ["a"]
    assert pareto(board).tolist() == [True, False]
