"""Columns: answers as plain arrays whatever they were stored as, and the kind they are of."""

import warnings

import numpy as np
import pandas as pd
import pytest

from karat.columns import answers, check_table, find_classes, infer_kind, need_columns
from karat.errors import DataError


@pytest.mark.parametrize(
    ("stored", "kind", "dtype", "values"),
    [
        (pd.Series([1, 2], dtype="Int64"), None, "int64", [1, 2]),
        (pd.Series([1.5, 2], dtype="Float64"), None, "float64", [1.5, 2]),
        (pd.Series([True, False], dtype="boolean"), None, "bool", [True, False]),
        (pd.Series([True, False], dtype=object), None, "bool", [True, False]),
        (pd.Series([1, 2], dtype=object), None, "int64", [1, 2]),
        (pd.Series(["a", "b"], dtype="string"), None, "object", ["a", "b"]),
        (pd.Series(["a", "b"], dtype="category"), None, "object", ["a", "b"]),
        (pd.Series([3, 1], dtype="category"), None, "int64", [3, 1]),
        (pd.Series(["NA", "None", " x", "a,b"]), None, "object", ["NA", "None", " x", "a,b"]),
        (pd.Series([1, "a"], dtype=object), "classes", "object", ["1", "a"]),
        (pd.Series([True, "a"], dtype=object), "classes", "object", ["True", "a"]),
        (pd.Series([True, 1], dtype=object), "classes", "object", ["True", "1"]),
        (pd.Series(["1.5", "2"]), "numbers", "float64", [1.5, 2]),
        (pd.Series([True, False]), "numbers", "bool", [True, False]),
        (pd.Series([("a", 1), ("b", 2)]), "items", "object", [("a", 1), ("b", 2)]),
    ],
)
def test_answers_become_plain_arrays(stored, kind, dtype, values):
    found = answers(stored, kind, "target")
    assert found.dtype == dtype
    assert found.tolist() == values


def test_dates_as_classes_are_written_as_they_are_read():
    days = pd.Series(pd.to_datetime(["2020-01-31", "2021-02-28"]))
    assert answers(days, None, "target").tolist() == ["2020-01-31", "2021-02-28"]


@pytest.mark.parametrize(
    ("stored", "kind", "word"),
    [
        (pd.Series([1.0, np.nan, np.nan]), None, "is missing in 2 of 3 rows (first: row 1)"),
        (pd.Series(["a", None]), "classes", "is missing in 1 of 2 rows"),
        (pd.Series([1, pd.NA], dtype="Int64"), None, "is missing in 1 of 2 rows"),
        (pd.Series([1.0, np.inf]), "numbers", "infinite"),
        (pd.Series(["1", "two"]), "numbers", '"two"'),
        (pd.Series(["1", "inf"]), "numbers", '"inf"'),
        (pd.Series(pd.to_datetime(["2020-01-31"])), "numbers", "numbers"),
        (pd.Series([1, "1"], dtype=object), "classes", "['1']"),
        (pd.Series([[1], [2]]), "classes", "is not a label"),
    ],
)
def test_invalid_targets(stored, kind, word):
    with pytest.raises(DataError) as caught:
        answers(stored, kind, 'toy: the target "y"', "y")
    assert word in str(caught.value)
    assert str(caught.value).startswith('toy: the target "y" ')
    assert caught.value.value == "y"


@pytest.mark.parametrize(
    ("truth", "kind", "warned"),
    [
        (["a", "b"], "classes", False),
        ([True, False], "classes", False),
        ([0.5, 1.0], "numbers", False),
        ([0, 1] * 10, "classes", True),
        ([0.0, 1.0] * 10, "classes", True),
        (list(range(30)), "numbers", True),
        ([1, 2, 3], "numbers", True),  # three values in three rows
        (list(range(20)) * 10, "classes", True),
        (list(range(21)) * 10, "numbers", True),
    ],
)
def test_the_kind_is_inferred_and_a_guess_is_said(truth, kind, warned):
    values = np.array(truth, dtype=object if isinstance(truth[0], str) else None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert infer_kind(values, "toy") == kind
    assert [f'taken as "{kind}"' in str(w.message) for w in caught] == [True] * warned


def test_classes_stand_in_the_order_of_their_text():
    assert find_classes("toy", np.array([10, 9, 1, 10])) == (1, 10, 9)
    assert find_classes("toy", np.array([True, False])) == (False, True)
    with pytest.raises(DataError, match='"x"'):
        find_classes("toy", np.array(["x", "x"], dtype=object))


def test_invalid_tables():
    with pytest.raises(DataError, match="list"):
        check_table([1], "toy")
    with pytest.raises(DataError, match="0 rows"):
        check_table(pd.DataFrame({"a": []}), "toy")
    with pytest.raises(DataError, match='"a"'):
        check_table(pd.DataFrame([[1, 2]], columns=["a", "a"]), "toy")
    table = pd.DataFrame({"a": [1, 2]}, index=[7, 7])
    assert check_table(table, "toy").index.tolist() == [0, 1]
    assert table.index.tolist() == [7, 7]


def test_an_absent_column_names_the_nearest_and_what_there_is():
    table = pd.DataFrame({f"column{i}": [1] for i in range(25)})
    with pytest.raises(DataError) as caught:
        need_columns(table, ["column3", "colum4"], "toy")
    assert 'Did you mean "column4"?' in str(caught.value)
    assert str(caught.value).endswith("column19 …")
    assert caught.value.value == "colum4"
