"""Whole columns that are wrong: factors of units, levels that all move, places, a stuck sensor."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.corruptions.columns import (
    FACTORS,
    categorical_remap,
    column_swap,
    scaling_error,
    stuck_sensor,
)
from karat.errors import DefinitionError

steady = settings(deadline=None, derandomize=True, max_examples=60)


# -- units ----------------------------------------------------------------------------------


def factors(found, X):
    """Return the factor of each column; it must be one and the same for all its cells."""
    ratios = (found.astype(float) / X.astype(float)).dropna()
    assert np.allclose(ratios, ratios.iloc[0])
    return ratios.iloc[0].to_dict()


@pytest.mark.parametrize(
    ("severity", "columns"), [(0.01, 1), (0.1, 1), (0.2, 2), (0.25, 3), (0.4, 4), (1.0, 10)]
)
def test_a_share_of_the_columns_rounded_up_has_another_unit(severity, columns, rng):
    X = pd.DataFrame(np.arange(1.0, 61).reshape(6, 10)).assign(word="w")
    found = scaling_error(X, None, severity, rng())[0]
    used = factors(found.drop(columns="word"), X.drop(columns="word"))
    wrong = {name: factor for name, factor in used.items() if factor != 1}
    assert len(wrong) == columns
    assert all(np.isclose(factor, FACTORS).any() for factor in wrong.values())
    assert found["word"].equals(X["word"])


def test_all_units_of_the_document_are_drawn_and_a_column_keeps_its_own():
    X = pd.DataFrame(np.arange(1.0, 61).reshape(6, 10))
    seen = set()
    for seed in range(20):
        low, high = (
            factors(scaling_error(X, None, s, np.random.default_rng(seed))[0], X)
            for s in (0.3, 1.0)
        )
        assert all(high[name] == factor for name, factor in low.items() if factor != 1)
        seen |= {round(factor, 6) for factor in high.values()}
    assert seen == {0.45, 2.2, 3.28, 0.3048, 1.8, 0.5556}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        *(("int16", "float64"), ("uint8", "float64"), ("Int8", "Float64"), ("UInt64", "Float64")),
        *(("float16", "float16"), ("float32", "float32"), ("Float32", "Float32")),
    ],
)
def test_every_type_of_number_has_a_unit(dtype, expected, rng):
    X = pd.DataFrame({"x": pd.Series([1, 2, 3], dtype=dtype)})
    found = scaling_error(X, None, 0.1, rng())[0]
    assert found["x"].dtype == expected
    assert len({round(each, 2) for each in found["x"].astype(float) / [1, 2, 3]}) == 1
    assert found["x"].tolist() != [1, 2, 3]


def test_columns_with_nothing_to_scale_are_passed_over(rng):
    X = pd.DataFrame({"zero": [0, 0], "none": [np.nan] * 2, "far": [np.inf, -np.inf], "x": [1, 2]})
    for seed in range(9):
        found = scaling_error(X, None, 0.1, rng(seed))[0]
        assert found["x"].tolist() != [1, 2]
        pd.testing.assert_frame_equal(found.drop(columns="x"), X.drop(columns="x"))
    pd.testing.assert_frame_equal(scaling_error(X[["zero"]], None, 1.0, rng())[0], X[["zero"]])


def test_a_unit_that_half_floats_cannot_hold(rng):
    X = pd.DataFrame({str(i): np.array([60000, 1], dtype="float16") for i in range(30)})
    found = scaling_error(X, None, 1.0, rng())[0]
    assert {str(each) for each in found.dtypes} == {"float16", "float32"}
    assert np.isfinite(found.astype(float)).all(axis=None)


# -- codes ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(list("abca"), dtype=object),
        pd.Series(list("abca"), dtype="string"),
        pd.Series(list("abca"), dtype="str"),
        pd.Series(pd.Categorical(list("abca"), list("xcba"), ordered=True)),
        pd.Series(pd.Categorical([3, 1, 2, 3])),
        pd.Series([True, False, False, True]),
        pd.Series([True, None, False, True], dtype="boolean"),
        pd.Series([7, "seven", 7.5, 7], dtype=object),
    ],
)
def test_every_level_becomes_another_one(column, rng):
    for seed in range(20):
        found = categorical_remap(pd.DataFrame({"c": column}), None, 0.1, rng(seed))[0]["c"]
        assert found.dtype == column.dtype
        there = column.notna()
        assert found.notna().equals(there)
        becomes = dict(zip(column[there], found[there], strict=True))
        assert set(becomes.values()) == set(column[there])  # a permutation
        assert all(level != new for level, new in becomes.items())
        assert [becomes[level] for level in column[there]] == found[there].tolist()


@steady
@given(st.lists(st.sampled_from(list("abcdef")), min_size=2, max_size=30), st.integers(0, 999))
def test_no_level_ever_stays(cells, seed):
    X = pd.DataFrame({"c": cells})
    found = categorical_remap(X, None, 1.0, np.random.default_rng(seed))[0]["c"]
    if len(set(cells)) > 1:
        assert all(a != b for a, b in zip(cells, found, strict=True))
        assert set(found) == set(cells)
    else:
        assert found.tolist() == cells


def test_each_level_may_become_any_other():
    X = pd.DataFrame({"c": list("abc")})
    seen = [categorical_remap(X, None, 1.0, np.random.default_rng(s))[0]["c"] for s in range(400)]
    turned = [each.tolist() == ["b", "c", "a"] for each in seen]
    assert all(each.tolist() in (["b", "c", "a"], ["c", "a", "b"]) for each in seen)
    assert np.mean(turned) == pytest.approx(0.5, abs=0.125)  # five standard deviations


def test_columns_of_one_level_are_passed_over(rng):
    X = pd.DataFrame({"one": ["x"] * 4, "none": [None] * 4, "two": list("abab")})
    X["lists"] = pd.Series([[1], [2], [3], [4]], dtype=object)
    for seed in range(9):
        found = categorical_remap(X, None, 0.1, rng(seed))[0]
        assert found["two"].tolist() == list("baba")
        pd.testing.assert_frame_equal(found.drop(columns="two"), X.drop(columns="two"))


@pytest.mark.parametrize(
    ("severity", "columns"), [(0.01, 1), (0.1, 1), (0.2, 2), (0.25, 3), (1.0, 10)]
)
def test_a_share_of_the_columns_rounded_up_has_other_codes(severity, columns, rng):
    X = pd.DataFrame({str(i): ["a", "b"] for i in range(10)}).assign(n=[1, 2])
    found = categorical_remap(X, None, severity, rng())[0]
    assert (found != X).all().sum() == columns
    assert found["n"].equals(X["n"])


def test_a_table_of_numbers_has_no_codes(rng):
    with pytest.raises(DefinitionError, match="categories, text"):
        categorical_remap(pd.DataFrame({"x": [1.0, 2.0]}), None, 0.5, rng())


# -- places ---------------------------------------------------------------------------------


def test_columns_of_one_kind_change_places(table, rng):
    X = table(30)
    found = column_swap(X, None, 1.0, rng())[0]
    assert found.columns.equals(X.columns)
    kinds = {"i": "number", "f": "number", "u": "number", "b": "flag", "M": "date"}
    origin = {}
    for name in X:
        same = [other for other in X if found[name].rename(other).equals(X[other])]
        assert same, name
        origin[name] = same
        mine, its = (kinds.get(table[name].dtype.kind, "") for table in (X, found))
        assert mine == its
    assert origin["duration"] == ["duration"]  # no column of its kind
    assert found["date"].dtype != X["date"].dtype or found["zone"].dtype != X["zone"].dtype


def test_two_columns_are_swapped(rng):
    X = pd.DataFrame({"a": [1, 2], "b": [0.5, 1.5], "w": ["x", "y"]})
    found = column_swap(X, None, 0.01, rng())[0]
    assert found["a"].tolist() == [0.5, 1.5] and found["b"].tolist() == [1, 2]
    assert found["w"].tolist() == ["x", "y"]
    with pytest.raises(DefinitionError, match="no two columns"):
        column_swap(X[["a", "w"]], None, 0.5, rng())


# -- a sensor that hangs --------------------------------------------------------------------


@pytest.mark.parametrize(("severity", "stuck"), [(0.1, 2), (0.4, 8), (0.99, 19), (1.0, 20)])
def test_one_reading_is_repeated_for_a_run_of_rows(severity, stuck):
    X = pd.DataFrame({"x": np.arange(20), "w": "w"})
    for seed in range(20):
        found = stuck_sensor(X, None, severity, np.random.default_rng(seed))[0]["x"]
        assert found.dtype == X["x"].dtype
        changed = np.flatnonzero(found != X["x"])
        assert len(changed) == min(stuck, 19)
        reading = set(found[changed])
        assert len(reading) == 1
        (first,) = reading
        assert sorted((first + 1 + np.arange(len(changed))) % 20) == changed.tolist()


def test_a_sensor_is_never_stuck_at_a_missing_value(rng):
    X = pd.DataFrame({"x": [np.nan, np.nan, 5.0, np.nan], "none": [np.nan] * 4})
    for seed in range(9):
        found = stuck_sensor(X, None, 1.0, rng(seed))[0]
        assert found["x"].tolist() == [5.0] * 4
        assert found["none"].isna().all()
