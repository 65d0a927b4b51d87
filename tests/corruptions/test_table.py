"""Corruptions of tables: the right share of cells, of every type of column, more with more."""

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.table import missingness_mcar, noise_gaussian
from karat.errors import DefinitionError

ROWS = 4000


def table(rows=ROWS):
    """A table with a column of every type."""
    rng = np.random.default_rng(9)
    words = rng.choice(["a", "b", "c"], rows)
    return pd.DataFrame(
        {
            "int": rng.integers(0, 9, rows),
            "int16": rng.integers(0, 9, rows).astype("int16"),
            "float": rng.standard_normal(rows) * 5,
            "float32": rng.standard_normal(rows).astype("float32"),
            "bool": rng.random(rows) < 0.5,
            "category": pd.Categorical(words),
            "string": words,
            "object": pd.Series(words, dtype=object),
            "nullable": pd.array(rng.integers(0, 9, rows), dtype="Int64"),
            "boolean": pd.array(rng.random(rows) < 0.5, dtype="boolean"),
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(rows), unit="h"),
            "number in text": pd.Series(rng.integers(0, 9, rows)).astype(str),
        }
    )


def rng(seed=3):
    return np.random.default_rng(seed)


NUMBERS = ["int", "int16", "float", "float32", "nullable"]


@pytest.mark.parametrize("severity", [0.1, 0.2, 0.4])
def test_cells_of_every_column_go_missing_in_the_share_asked_for(severity):
    X, y = table(), pd.Series(range(ROWS))
    found, same = missingness_mcar(X, y, severity, rng())
    assert same is y
    spread = np.sqrt(severity * (1 - severity) / ROWS)
    for column in X.columns:
        assert abs(found[column].isna().mean() - severity) < 5 * spread, column
    # what is not gone is what it was
    for column in X.columns:
        kept = found[column].notna()
        assert (found.loc[kept, column] == X.loc[kept, column]).all(), column


def test_more_go_missing_with_more_severity_and_the_same_ones():
    X = table(500)
    gone = [missingness_mcar(X, None, s, rng())[0].isna().to_numpy() for s in (0.1, 0.2, 0.4)]
    assert (gone[0] <= gone[1]).all()
    assert (gone[1] <= gone[2]).all()
    assert gone[0].sum() < gone[1].sum() < gone[2].sum()


def test_types_stay_where_they_can_be_empty():
    X = table(200)
    found = missingness_mcar(X, None, 0.3, rng())[0]
    kept = ["float", "float32", "category", "string", "object", "nullable", "boolean", "date"]
    assert found[kept].dtypes.equals(X[kept].dtypes)
    assert (found[["int", "int16"]].dtypes.map(lambda t: t.kind) == "f").all()


def test_noise_is_so_many_standard_deviations():
    X = table()
    found = noise_gaussian(X, None, 0.2, rng())[0]
    for column in NUMBERS:
        added = (found[column].astype(float) - X[column].astype(float)).to_numpy()
        spread = X[column].astype(float).std(ddof=0)
        assert added.std() == pytest.approx(0.2 * spread, rel=0.05), column
        assert abs(added.mean()) < 5 * 0.2 * spread / np.sqrt(ROWS), column
    others = [column for column in X.columns if column not in NUMBERS]
    pd.testing.assert_frame_equal(found[others], X[others])


def test_noise_grows_in_proportion():
    X = table(50)
    added = [noise_gaussian(X, None, s, rng())[0]["float"] - X["float"] for s in (0.1, 0.4)]
    np.testing.assert_allclose(added[1], 4 * added[0])


def test_noise_keeps_what_is_missing_and_what_is_constant():
    X = pd.DataFrame({"gap": [1.0, np.nan, 3.0], "still": [7, 7, 7], "none": [np.nan] * 3})
    X["nullable"] = pd.array([1, None, 2], dtype="Int64")
    found = noise_gaussian(X, None, 0.5, rng())[0]
    assert found.isna().equals(X.isna())
    assert found["still"].tolist() == [7, 7, 7]


def test_the_noise_of_a_column_hangs_on_its_place_only():
    X = table(50)
    typed = X.assign(int=X["int"].astype(str))
    one, other = (noise_gaussian(t, None, 0.3, rng())[0]["float"] for t in (X, typed))
    pd.testing.assert_series_equal(one, other)


@pytest.mark.parametrize("corrupt", [missingness_mcar, noise_gaussian])
def test_nothing_is_changed_in_place_and_zero_is_the_identity(corrupt):
    X = table(100)
    before = X.copy(deep=True)
    corrupt(X, None, 0.5, rng())
    pd.testing.assert_frame_equal(X, before)
    found, _ = corrupt(X, None, 0.0, rng())
    pd.testing.assert_frame_equal(found, X, check_dtype=False)


@pytest.mark.parametrize("corrupt", [missingness_mcar, noise_gaussian])
def test_one_float_block_is_no_special_case(corrupt):
    X = pd.DataFrame(np.random.default_rng(0).random((30, 4), dtype=np.float32))
    found, _ = corrupt(X, None, 0.5, rng())
    assert not found.equals(X)
    assert list(found.columns) == [0, 1, 2, 3]


@pytest.mark.parametrize("corrupt", [missingness_mcar, noise_gaussian])
def test_texts_are_no_tables(corrupt):
    with pytest.raises(DefinitionError, match="takes tables, and these items are texts"):
        corrupt(pd.Series(["a", "b"]), None, 0.5, rng())
