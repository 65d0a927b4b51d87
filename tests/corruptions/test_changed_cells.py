"""The share of cells that differ."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.changed_cells import changed_share


def mixed_table():
    return pd.DataFrame(
        {
            "n": [1, 2, 3, 4],
            "x": [0.5, np.nan, 1.5, 2.5],
            "c": pd.Categorical(["a", "b", None, "a"]),
            "w": pd.Series(["u", None, "v", 3], dtype=object),
            "I": pd.array([1, None, 3, 4], dtype="Int64"),
        }
    )


def test_equal_values_of_another_dtype_are_equal():
    X = mixed_table()
    assert changed_share(X, X) == 0
    other = X.astype({"n": float, "c": object, "w": "str", "I": "Float64"})
    assert changed_share(X, other.assign(w=X["w"])) == 0
    turned = X.assign(c=X["c"].cat.set_categories(["b", "a", "z"], ordered=True))
    assert changed_share(X, turned) == 0
    assert (
        changed_share(X.assign(b=[True, False, True, True]), X.assign(b=[1.0, 0.0, 1.0, 1.0])) == 0
    )


@pytest.mark.parametrize(
    ("column", "values", "cells"),
    [
        ("n", [1.0, 2.5, 3.0, np.nan], 2),
        ("x", [0.5, 1.0, 1.5, 2.5], 1),
        ("x", [np.nan] * 4, 3),
        ("c", pd.Categorical(["a", "z", "b", None]), 3),
        ("c", pd.Categorical(["b", "b", None, "a"]), 1),
        ("w", ["u", None, "V", "3"], 2),
        ("I", pd.array([1, None, None, 5], dtype="Int64"), 2),
        ("n", pd.to_datetime(["2020-01-01"] * 4), 4),
    ],
)
def test_cells_that_changed_are_counted(column, values, cells):
    X = mixed_table()
    assert changed_share(X, X.assign(**{column: values})) == pytest.approx(cells / 20)


def test_rows_and_columns_that_came_or_went_are_counted():
    X = mixed_table()
    assert changed_share(X, X[1:]) == 0.25
    assert changed_share(X, X.iloc[[0, 1, 2, 3, 3]]) == 0.25
    assert changed_share(X, X.iloc[[0, 0, 2, 3]]) == 0.5  # one is missing, another occurs twice
    assert changed_share(X, X.iloc[[3, 2, 1, 0]]) == 0  # in another order
    assert changed_share(X, X[1:].assign(n=[2, 9, 4])) == 0.5  # one is gone, one is changed
    assert changed_share(X, X.iloc[[0] * 20]) == 1
    twins = X.set_axis([1, 1, 1, 1])
    assert changed_share(twins, twins[:3]) == 0.25
    assert changed_share(X, X.drop(columns="n")) == 0.2
    X.columns = pd.Index([1, 1, 2, 2, 2])
    assert changed_share(X, X.copy()) == 0
    arrays, other = (pd.Series([np.array([1, n]), [3], None], dtype=object) for n in (2, 5))
    assert changed_share(arrays, arrays.copy()) == 0
    assert changed_share(arrays, other) == pytest.approx(1 / 3)


def test_answers_count_where_nothing_else_changed():
    X, y = mixed_table(), pd.Series(list("abab"))
    assert changed_share((X, y), (X, y)) == 0
    assert changed_share((X, y), (X, pd.Series(list("abba")))) == 0.5
    assert changed_share((X, y), (X.assign(n=0), pd.Series(list("abba")))) == 0.2
    assert changed_share((X, None), (X[1:], None)) == 0.25
    assert changed_share((X, y), (X[1:], y[1:])) == 0.25
