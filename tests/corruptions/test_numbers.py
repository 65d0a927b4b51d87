"""Numbers that are off: so many standard deviations, digits and signs, in types that hold them."""

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.numbers import (
    noise_gaussian,
    noise_uniform,
    outliers,
    rounding,
    sign_flip,
)
from karat.errors import DefinitionError


def numbers(X):
    return [name for name in X if pd.api.types.is_numeric_dtype(X[name]) and "bool" not in name]


def added(found, X, name):
    return (found[name].astype(float) - X[name].astype(float)).to_numpy()


@pytest.mark.parametrize(("corrupt", "size"), [(noise_gaussian, 1.0), (noise_uniform, 3**-0.5)])
def test_noise_is_in_standard_deviations_of_the_column(corrupt, size, table, rng):
    X = table(4000)
    found = corrupt(X, None, 0.2, rng())[0]
    for name in numbers(X):
        noise, spread = added(found, X, name), X[name].astype(float).std(ddof=0)
        assert noise.std() == pytest.approx(0.2 * spread * size, rel=0.05), name
        assert abs(noise.mean()) < 5 * 0.2 * spread * size / np.sqrt(4000), name
        if corrupt is noise_uniform:
            assert np.abs(noise).max() <= 0.2 * spread * 1.001
    others = [name for name in X if name not in numbers(X)]
    pd.testing.assert_frame_equal(found[others], X[others])


@pytest.mark.parametrize("corrupt", [noise_gaussian, noise_uniform])
def test_noise_grows_in_proportion(corrupt, rng):
    X = pd.DataFrame({"x": [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]})  # of standard deviation 2
    seen = {s: added(corrupt(X, None, s, rng())[0], X, "x") for s in (0.1, 0.4, 3.0)}
    np.testing.assert_allclose(seen[0.4], 4 * seen[0.1])
    np.testing.assert_allclose(seen[3.0], 30 * seen[0.1])
    if corrupt is noise_uniform:
        assert 0.01 < np.abs(seen[0.1]).max() <= 0.2


def test_numbers_become_floats_of_their_family(table, rng):
    X = table(50)
    found = noise_gaussian(X, None, 0.2, rng())[0]
    for name in numbers(X):
        whole = {"i": "float64", "I": "Float64", "u": "float64", "U": "Float64"}
        assert found[name].dtype == whole.get(name[0], name)


def test_noise_keeps_what_is_missing_infinite_or_constant(rng):
    X = pd.DataFrame({"gap": [1.0, np.nan, 3.0], "still": [7, 7, 7], "none": [np.nan] * 3})
    X["nullable"] = pd.array([1, None, 2], dtype="Int64")
    X["far"] = [1.0, -np.inf, 2.0]
    X["tenth"] = [0.1, 0.1, 0.1]
    found = noise_gaussian(X, None, 0.5, rng())[0]
    assert found.isna().equals(X.isna())
    pd.testing.assert_frame_equal(found[["still", "none", "tenth"]], X[["still", "none", "tenth"]])
    assert found["far"].tolist()[1] == -np.inf
    assert np.isfinite(found["far"].to_numpy()[[0, 2]]).all()


def test_half_floats_never_overflow_in_silence(rng):
    X = pd.DataFrame({"h": np.array([-65504, 0, 65504] * 50, dtype="float16")})
    near = noise_gaussian(X, None, 0.3, rng())[0]["h"]
    assert near.dtype == "float32"
    assert np.isfinite(near).all()
    assert near.max() > 65504
    assert added({"h": near}, X, "h").std() == pytest.approx(0.3 * 53484, rel=0.1)
    far = noise_gaussian(pd.DataFrame({"x": [1.7e308, -1.7e308] * 50}), None, 5.0, rng())[0]
    assert np.isfinite(far["x"]).all()


@pytest.mark.parametrize("corrupt", [noise_gaussian, noise_uniform])
def test_the_noise_of_a_column_depends_only_on_its_position(corrupt, table, rng):
    X = table(50)
    typed = X.assign(int8=X["int8"].astype(str))
    one, other = (corrupt(t, None, 0.3, rng())[0]["float64"] for t in (X, typed))
    pd.testing.assert_series_equal(one, other)


# -- outliers -------------------------------------------------------------------------------


def test_outliers_are_ten_standard_deviations_away(rng):
    X = pd.DataFrame({"x": [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0] * 10})
    moved = added(outliers(X, None, 0.25, rng())[0], X, "x")
    assert sorted(set(moved.tolist())) == [-20, 0, 20]
    assert (moved != 0).sum() == 20
    near = added(outliers(X, None, 0.25, rng(), far=0.5)[0], X, "x")
    np.testing.assert_allclose(near, moved / 20)


@pytest.mark.parametrize(
    ("dtype", "expected"), [("int8", "int16"), ("uint8", "int16"), ("Int8", "Int16")]
)
def test_whole_numbers_have_whole_outliers(dtype, expected, rng):
    X = pd.DataFrame({"x": pd.Series([0, 100] * 20, dtype=dtype)})  # of standard deviation 50
    found = outliers(X, None, 1.0, rng())[0]["x"]
    assert found.dtype == expected
    assert set(found) == {-500, 500, -400, 600}


def test_what_does_not_vary_has_no_outliers(rng):
    X = pd.DataFrame({"x": [3, 3, 3], "none": [np.nan] * 3})
    pd.testing.assert_frame_equal(outliers(X, None, 1.0, rng())[0], X)


# -- rounding -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "digits", "expected"),
    [
        ([39, 77516, -123, 5, 0], 1, [40, 80000, -100, 5, 0]),
        ([0.1234, 1e-300, 9.6e19, -0.0456], 1, [0.1, 1e-300, 1e20, -0.05]),
        ([39, 77516, -123, 5, 0], 2, [39, 78000, -120, 5, 0]),
    ],
)
def test_numbers_are_rounded_to_significant_digits(values, digits, expected, rng):
    X = pd.DataFrame({"x": values})
    found = rounding(X, None, 1.0, rng(), digits=digits)[0]["x"]
    assert found.tolist() == expected
    assert found.dtype == X["x"].dtype


def test_rounding_up_may_need_a_wider_type(rng):
    X = pd.DataFrame({"x": np.array([255, 1], dtype="uint8")})
    found = rounding(X, None, 1.0, rng())[0]["x"]
    assert found.dtype == "uint16" and found.tolist() == [300, 1]
    with pytest.raises(DefinitionError, match="digits.*0"):
        rounding(X, None, 1.0, rng(), digits=0)


# -- signs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "values", "expected"),
    [
        ("int8", [1, -2, 0, -128], "int16"),
        ("int64", [1, -2, 0], "int64"),
        ("uint8", [1, 255, 0], "int16"),
        ("uint64", [1, 2, 0], "float64"),
        ("Int16", [1, None, -3], "Int16"),
        ("float16", [0.5, -65504, np.inf], "float16"),
    ],
)
def test_signs_are_turned_in_a_type_that_holds_them(dtype, values, expected, rng):
    X = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    found = sign_flip(X, None, 1.0, rng())[0]["x"]
    assert found.dtype == expected
    for before, after in zip(values, found.tolist(), strict=True):
        assert before is None or after == (before if before == np.inf else -before)


@pytest.mark.parametrize("corrupt", [noise_gaussian, noise_uniform, outliers, rounding, sign_flip])
def test_a_table_without_numbers_is_refused(corrupt, rng):
    with pytest.raises(DefinitionError, match="numbers"):
        corrupt(pd.DataFrame({"w": ["a"], "b": [True]}), None, 0.5, rng())
    with pytest.raises(DefinitionError, match="texts"):
        corrupt(pd.Series(["a", "b"]), None, 0.5, rng())
