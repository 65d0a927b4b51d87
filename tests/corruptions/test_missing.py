"""Cells that go missing: how many, whose, and what becomes of the types."""

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.missing import (
    missingness_mar,
    missingness_mcar,
    missingness_mnar,
    missingness_value,
)
from karat.errors import DefinitionError


@pytest.mark.parametrize(("severity", "gone"), [(0.1, 12), (0.2, 24), (0.25, 30), (1.0, 120)])
def test_exactly_this_share_of_all_cells_is_emptied(severity, gone, rng):
    X = pd.DataFrame(np.arange(120).reshape(40, 3), columns=list("abc"))
    found, y = missingness_mcar(X, None, severity, rng())
    assert found.isna().sum().sum() == gone
    assert y is None
    kept = found.notna()
    assert (found[kept] == X[kept]).sum().sum() == 120 - gone


def test_cells_of_every_column_go_missing(table, rng):
    X = table(1000)
    found = missingness_mcar(X, None, 0.2, rng())[0]
    shares = found.isna().mean()
    assert (abs(shares - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 1000)).all()


def test_types_stay_where_they_can_be_empty(table, rng):
    X = table(200)
    found = missingness_mcar(X, None, 0.3, rng())[0]
    for name, column in X.items():
        expected = {"i": "float64", "u": "float64", "b": "object"}.get(
            column.dtype.kind if isinstance(column.dtype, np.dtype) else "", column.dtype
        )
        assert found[name].dtype == expected, name


def test_a_column_that_loses_nothing_keeps_its_type(rng):
    X = pd.DataFrame({"n": [1], "m": [2], "b": [True], "c": [3], "d": [4]})
    found = missingness_mcar(X, None, 0.2, rng())[0]
    lost = found.columns[found.isna().any()]
    assert len(lost) == 1
    assert found.drop(columns=lost).dtypes.equals(X.drop(columns=lost).dtypes)


@pytest.mark.parametrize("values", [[True, False, True], [0, 1, 0]])
def test_sparse_columns_go_missing_too(values, rng):
    X = pd.DataFrame({"s": pd.arrays.SparseArray(values)})
    assert missingness_mcar(X, None, 1.0, rng())[0]["s"].isna().all()


# -- by class -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "y",
    [
        pd.Series(["no"] * 8 + ["yes"] * 2),
        pd.Series([1] * 8 + [0] * 2),  # the rare one need not be called 1
        pd.Series([True] * 8 + [False] * 2),
        pd.Series([1.0] * 8 + [0.0] * 2),
        pd.Series(pd.Categorical(["a"] * 8 + ["b"] * 2, ["c", "b", "a"])),
        pd.Series(["a"] * 5 + ["b"] * 3 + ["c"] * 2),
    ],
)
def test_only_rows_of_the_rarest_class_lose_cells(y, rng):
    X = pd.DataFrame(np.ones((10, 5))).assign(w="word")
    found, same = missingness_mnar(X, y, 0.5, rng())
    assert same is y
    assert found[:8].notna().all(axis=None)
    assert found[8:].isna().sum().sum() == 6  # half of two rows of six cells


@pytest.mark.parametrize("y", [pd.Series([0.5, 1.5]), None])
def test_classes_are_needed(y, rng):
    with pytest.raises(DefinitionError, match="missingness_mnar: .*target"):
        missingness_mnar(pd.DataFrame({"x": [1, 2]}), y, 0.5, rng())


# -- by value -------------------------------------------------------------------------------


def test_high_values_go_missing_rather_than_low_ones(rng):
    X = pd.DataFrame({"x": np.arange(10000.0), "word": "w"})
    X["day"] = pd.Timestamp("2020-01-01") - pd.to_timedelta(X["x"], unit="h")
    found = missingness_value(X, None, 0.2, rng())[0]
    assert found.isna().sum().tolist() == [2000, 0, 2000]
    # waiting times of rate rank: by the time t at which a fifth is drawn, the chance of rank r is
    # 1 - exp(-rt), and 1 - (1 - exp(-nt)) / (nt) = 0.2 for nt = 0.464
    t = 0.464
    for ranks, name in ((np.arange(10000), "x"), (np.arange(10000)[::-1], "day")):
        for part in range(4):
            rows = ranks // 2500 == part
            chance = 1 - np.exp(-t * (part + 0.5) / 4)
            assert found[name].isna()[rows].mean() == pytest.approx(chance, abs=0.045)


def test_values_that_are_missing_already_are_not_counted(rng):
    X = pd.DataFrame({"x": [1.0, np.nan, 2.0, np.nan, 3.0, 4.0], "none": [np.nan] * 6})
    assert missingness_value(X, None, 0.5, rng())[0].isna().sum().tolist() == [4, 6]


def test_cells_become_missing_where_another_column_is_high(rng):
    X = pd.DataFrame({"guide": np.arange(4000), "word": "w", "flag": True})
    found = missingness_mar(X, None, 0.25, rng())[0]
    assert found.isna().sum().tolist() == [0, 1000, 1000]
    for name in ("word", "flag"):
        gone = found[name].isna().to_numpy()
        assert gone[2000:].sum() > 1.8 * gone[:2000].sum()
    assert (found["word"].isna() != found["flag"].isna()).any()


def test_the_guide_is_the_same_at_every_severity(rng):
    X = pd.DataFrame(np.arange(60.0).reshape(20, 3))
    for seed in range(9):
        lost = [missingness_mar(X, None, s, rng(seed))[0].isna().any() for s in (0.1, 0.4, 1.0)]
        assert [each.sum() for each in lost] == [2, 2, 2]
        assert lost[0].equals(lost[1]) and lost[1].equals(lost[2])


def test_a_guide_with_gaps_or_of_one_value_still_guides(rng):
    X = pd.DataFrame({"a": [np.nan, 1.0, np.nan, 1.0], "w": list("wxyz")})
    assert missingness_mar(X, None, 0.5, rng())[0]["w"].isna().sum() == 2


def test_one_column_has_none_to_be_guided_by(rng):
    with pytest.raises(DefinitionError, match="only one column"):
        missingness_mar(pd.DataFrame({"x": [1.0, 2.0]}), None, 0.5, rng())
    with pytest.raises(DefinitionError, match="numbers or dates"):
        missingness_mar(pd.DataFrame({"x": ["a"], "y": ["b"]}), None, 0.5, rng())
