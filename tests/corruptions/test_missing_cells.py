"""Cells that go missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.missing_cells import (
    missingness_mar,
    missingness_mcar,
    missingness_mnar,
    missingness_value,
)


def test_types_stay_where_they_can_be_empty(table, rng):
    X = table(200)
    found = missingness_mcar(X, None, 0.3, rng())[0]
    for name, column in X.items():
        expected = {"i": "float64", "u": "float64", "b": "object"}.get(
            column.dtype.kind if isinstance(column.dtype, np.dtype) else "", column.dtype
        )
        assert found[name].dtype == expected, name
    X = pd.DataFrame({"n": [1], "m": [2], "b": [True], "c": [3], "d": [4]})
    found = missingness_mcar(X, None, 0.2, rng())[0]
    lost = found.columns[found.isna().any()]
    assert len(lost) == 1  # a column that loses nothing keeps its type
    assert found.drop(columns=lost).dtypes.equals(X.drop(columns=lost).dtypes)


@pytest.mark.parametrize("values", [[True, False, True], [0, 1, 0]])
def test_sparse_columns_go_missing_too(values, rng):
    X = pd.DataFrame({"s": pd.arrays.SparseArray(values)})
    assert missingness_mcar(X, None, 1.0, rng())[0]["s"].isna().all()


@pytest.mark.parametrize(
    "y",
    [
        pd.Series([1] * 8 + [0] * 2),  # the rare one need not be called 1
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


def test_cells_become_missing_where_another_column_is_high(rng):
    X = pd.DataFrame({"guide": np.arange(4000), "word": "w", "flag": True})
    found = missingness_mar(X, None, 0.25, rng())[0]
    assert found.isna().sum().tolist() == [0, 1000, 1000]
    for name in ("word", "flag"):
        gone = found[name].isna().to_numpy()
        assert gone[2000:].sum() > 1.8 * gone[:2000].sum()
    assert (found["word"].isna() != found["flag"].isna()).any()


def test_missing_values_are_not_counted_and_the_guide_stays(rng):
    X = pd.DataFrame({"x": [1.0, np.nan, 2.0, np.nan, 3.0, 4.0], "none": [np.nan] * 6})
    assert missingness_value(X, None, 0.5, rng())[0].isna().sum().tolist() == [4, 6]
    guide = pd.DataFrame({"a": [np.nan, 1.0, np.nan, 1.0], "w": list("wxyz")})
    assert missingness_mar(guide, None, 0.5, rng())[0]["w"].isna().sum() == 2
    X = pd.DataFrame(np.arange(60.0).reshape(20, 3))
    for seed in range(9):
        lost = [missingness_mar(X, None, s, rng(seed))[0].isna().any() for s in (0.1, 0.4, 1.0)]
        assert [each.sum() for each in lost] == [2, 2, 2]
        assert lost[0].equals(lost[1]) and lost[1].equals(lost[2])
