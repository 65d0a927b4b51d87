"""Kinds of columns, and the types that hold changed cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.table_columns import (
    CATEGORY,
    DATE,
    FLAG,
    NUMBER,
    OTHER,
    TEXT,
    floats,
    from_rows,
    kind,
    levels,
    places,
    spread,
    with_columns,
    with_values,
)


def test_the_kind_depends_only_on_the_dtype(table):
    X = table(5)
    found = {name: kind(column) for name, column in X.items()}
    other = {
        **dict.fromkeys(["bool", "boolean"], FLAG),
        **dict.fromkeys(["category", "ordered", "codes"], CATEGORY),
        **dict.fromkeys(["object", "string", "text"], TEXT),
        **dict.fromkeys(["date", "day", "zone"], DATE),
        "duration": OTHER,
    }
    assert found == {**dict.fromkeys(list(X)[:21], NUMBER), **other}
    # the cells are not looked at: every fold says the same
    assert {name: kind(column) for name, column in X[:0].items()} == found


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pd.Series([1, 2], dtype=object), TEXT),
        (pd.Series([None, None], dtype=object), TEXT),
        (pd.Series([np.nan, np.nan]), NUMBER),
        (pd.Series([1 + 2j]), OTHER),
        (pd.Series(pd.period_range("2020", periods=2)), OTHER),
        (pd.Series(pd.interval_range(0, 2)), OTHER),
        (pd.Series(pd.arrays.SparseArray([0, 1])), NUMBER),
        (pd.Series(pd.arrays.SparseArray([True, False])), FLAG),
        ("int8[pyarrow]", NUMBER),
        ("double[pyarrow]", NUMBER),
        ("bool[pyarrow]", FLAG),
        ("large_string[pyarrow]", TEXT),
        ("timestamp[us][pyarrow]", DATE),
        ("string", TEXT),
    ],
)
def test_kinds_of_odd_columns(column, expected):
    if isinstance(column, str):
        pytest.importorskip("pyarrow")
        column = pd.Series([None, None], dtype=column)
    assert kind(column) == expected


def test_places_are_positions_whatever_the_names():
    X = pd.DataFrame([[1, "a", 0.5, "b"]])
    X.columns = pd.Index([("a", 1), None, 7, 7], tupleize_cols=False)
    assert places(X, NUMBER) == [0, 2]
    assert places(X, TEXT) == [1, 3]
    changed = with_columns(X, {3: pd.Series(["new"])})
    assert changed.iloc[0].tolist() == [1, "a", 0.5, "new"]
    assert X.iloc[0, 3] == "b"


@pytest.mark.parametrize(
    ("dtype", "new", "expected"),
    [
        ("int8", 100.0, "int8"),
        ("int8", 200.0, "int16"),
        ("int8", 0.5, "float64"),
        ("int64", 2.0**62, "int64"),
        ("int64", 2.0**63, "float64"),
        ("uint8", 300.0, "uint16"),
        ("uint8", -1.0, "int16"),
        ("uint32", -1.0, "int64"),
        ("uint64", -1.0, "float64"),
        ("uint64", 2.0**63, "uint64"),
        ("float16", 65504.0, "float16"),
        ("float16", 65505.0, "float32"),
        ("float16", 1e300, "float64"),
        ("float32", 1e39, "float64"),
        ("Int8", 200.0, "Int16"),
        ("Int64", 0.5, "Float64"),
        ("UInt8", -1.0, "Int16"),
        ("Float32", 1.5, "Float32"),
        ("Float32", 1e39, "Float64"),
        ("int8[pyarrow]", 200.0, "int16[pyarrow]"),
        ("int64[pyarrow]", 0.5, "double[pyarrow]"),
        ("float[pyarrow]", 0.5, "float[pyarrow]"),
    ],
)
def test_numbers_go_into_the_narrowest_type_that_holds_them(dtype, new, expected):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow")
    column = pd.Series([1, 2, 3], dtype=dtype, index=list("abc"), name="n")
    found = with_values(column, np.array([1]), np.array([new]))
    assert found.dtype == expected
    assert found.tolist() == [1, new, 3]
    assert (found.name, found.index.tolist()) == ("n", list("abc"))
    assert column.tolist() == [1, 2, 3]


def test_missing_infinite_and_sparse_values():
    found = with_values(pd.Series([1, None], dtype="Int8"), np.array([0]), np.array([0.5]))
    assert found.isna().tolist() == [False, True]
    assert floats(found)[0] == 0.5
    found = with_values(pd.Series([1.0, np.inf]), np.array([0]), np.array([np.inf]))
    assert found.tolist() == [np.finfo(float).max, np.inf]
    found = with_values(pd.Series(pd.arrays.SparseArray([0, 0, 1])), np.array([0]), np.array([5.0]))
    assert found.dtype == "int64" and found.tolist() == [5, 0, 1]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 3.0], 1.0),
        ([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0], 2.0),
        ([1.0, 3.0, np.nan, np.inf, -np.inf], 1.0),
        ([0.1] * 7, 0.0),
        ([np.nan], 0.0),
        ([], 0.0),
        ([1e308, -1e308], 1e308),
    ],
)
def test_the_spread_is_the_standard_deviation_of_what_is_there(values, expected):
    assert spread(np.array(values)) == pytest.approx(expected)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["b", "a", None, "b"], dtype=object),
        pd.Series(["b", "a", None, "b"], dtype="string"),
        pd.Series(pd.Categorical(["b", "a", None, "b"], list("cba"))),
        pd.Series([True, False, None, True], dtype="boolean"),
        pd.Series([5, "x", np.nan, 5], dtype=object),
    ],
)
def test_levels_are_those_that_are_there(column):
    codes, rows = levels(column)
    assert codes[2] == -1
    assert codes[0] == codes[3] != codes[1]
    assert sorted(codes) == [-1, 0, *([0, 1] if codes[0] == 0 else [1, 1])]
    assert [codes[row] for row in rows] == [0, 1]
    codes, rows = levels(pd.Series([[1], [2]], dtype=object))  # lists have no level
    assert codes.tolist() == [-1, -1] and len(rows) == 0


def test_cells_of_other_rows_keep_index_name_and_type(table):
    X = table(4).set_axis(list("wxyz"))
    for name, column in X.items():
        found = from_rows(column, np.array([3, 3, 0, 1]))
        assert found.dtype == column.dtype and found.name == name
        assert found.index.tolist() == list("wxyz")
        assert found.tolist() == [column.iloc[i] for i in (3, 3, 0, 1)]
