"""Noise in numbers, categories and dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.cell_noise import (
    categorical_remap,
    column_swap,
    date_shift,
    noise_gaussian,
    noise_uniform,
    outliers,
    rounding,
    scaling_error,
    sentinel,
    sign_flip,
    stuck_sensor,
    unseen_category,
)
from karat.errors import DefinitionError


def test_texts_categories_and_dates_have_codes_of_their_own(rng):
    X = pd.DataFrame(
        {
            "object": pd.Series(["a", None, 3], dtype=object),
            "string": pd.Series(list("abc"), dtype="string"),
            "category": pd.Categorical(list("aba"), ordered=True),
            "codes": pd.Categorical([1, 2, 1]),
            "known": pd.Categorical(["?", "a", "a"]),
            "interval": pd.cut([1, 2, 3], 2),
            "date": pd.to_datetime(["2020-01-01"] * 3),
            "zone": pd.to_datetime(["2020-01-01"] * 3, utc=True).tz_convert("Asia/Tokyo"),
            "flag": [True, False, True],
        }
    )
    found = sentinel(X, None, 1.0, rng())[0]
    for name in ("object", "string", "category", "known"):
        assert found[name].tolist() == ["?"] * 3
    assert found["category"].cat.categories.tolist() == ["a", "b", "?"]
    assert found["category"].cat.ordered
    assert found["known"].cat.categories.tolist() == ["?", "a"]
    assert found["codes"].tolist() == [-999] * 3
    assert (found["date"] == pd.Timestamp("1900-01-01")).all()
    assert (found["zone"] == pd.Timestamp("1900-01-01", tz="Asia/Tokyo")).all()
    same = ["object", "string", "date", "zone"]
    assert found[same].dtypes.equals(X[same].dtypes)
    pd.testing.assert_frame_equal(found[["interval", "flag"]], X[["interval", "flag"]])
    found = sentinel(X[["codes", "string"]], None, 1.0, rng(), number=99, text="NA")[0]
    assert found["codes"].tolist() == [99] * 3 and found["string"].tolist() == ["NA"] * 3


def test_unseen_category_by_type(rng):
    X = pd.DataFrame(
        {
            "object": pd.Series(["a", None, "b"], dtype=object),
            "category": pd.Categorical(["a", None, "b"], list("cba")),
            "codes": pd.Categorical([4, 4, 7]),
            "taken": ["(unseen)", "(unseen)*", "x"],
            "flag": [True, False, True],
            "n": [1, 2, 3],
        }
    )
    found = unseen_category(X, None, 1.0, rng())[0]
    assert found["object"].tolist()[::2] == ["(unseen)"] * 2
    assert found["object"].isna().tolist() == [False, True, False]
    assert found["category"].tolist()[::2] == ["(unseen)"] * 2
    assert found["category"].cat.categories.tolist() == [*"cba", "(unseen)"]
    assert found["codes"].tolist() == [8, 8, 8]
    assert found["taken"].tolist() == ["(unseen)**"] * 3
    pd.testing.assert_frame_equal(found[["flag", "n"]], X[["flag", "n"]])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_days_are_moved_by_whole_days_and_types_stay(unit, zone, rng):
    days = pd.Series(pd.date_range("2020-01-01", periods=500, freq="7h")).dt.as_unit(unit)
    X = pd.DataFrame({"d": days.dt.tz_localize("UTC").dt.tz_convert(zone), "n": range(500)})
    found = date_shift(X, None, 0.4, rng())[0]
    assert found["d"].dtype == X["d"].dtype
    moved = (found["d"] - X["d"]) / pd.Timedelta(1, unit="D")
    assert (moved != 0).sum() == 200
    assert (moved == moved.round()).all()
    assert moved.abs().max() <= 365 and moved.min() < -300 and moved.max() > 300
    assert found["n"].equals(X["n"])
    near = date_shift(X, None, 0.4, rng(), days=1)[0]["d"] - X["d"]
    assert set(near / pd.Timedelta(1, unit="D")) == {-1, 0, 1}


@pytest.mark.parametrize("unit", ["s", "ns"])
def test_dates_at_the_ends_of_time_stay_within(unit, rng):
    ends = pd.Series(pd.to_datetime(["1677-09-22", "2262-04-10", None] * 40)).dt.as_unit(unit)
    found = date_shift(pd.DataFrame({"d": ends}), None, 1.0, rng())[0]["d"]
    moved = (found - ends) / pd.Timedelta(1, unit="D")
    assert (moved[0::3] > 0).all() and (moved[1::3] < 0).all()
    assert found[2::3].isna().all()


def test_dates_of_arrow_stay_with_arrow(rng):
    pytest.importorskip("pyarrow")
    for dtype in ("timestamp[us][pyarrow]", "timestamp[ns, tz=UTC][pyarrow]"):
        zone = "UTC" if "UTC" in dtype else None
        days = pd.Series(pd.date_range("2020-01-01", periods=9, tz=zone)).astype(dtype)
        found = date_shift(pd.DataFrame({"d": days}), None, 1.0, rng())[0]["d"]
        assert found.dtype == days.dtype
        assert (found != days).all()


def test_days_must_be_positive(rng):
    dates = pd.DataFrame({"d": [pd.Timestamp("2020-01-01")]})
    with pytest.raises(DefinitionError, match="days.*0"):
        date_shift(dates, None, 0.5, rng(), days=0)


def factors(found, X):
    """Return the factor of each column; it must be one and the same for all its cells."""
    ratios = (found.astype(float) / X.astype(float)).dropna()
    assert np.allclose(ratios, ratios.iloc[0])
    return ratios.iloc[0].to_dict()


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


def test_columns_with_nothing_to_change_are_passed_over(rng):
    X = pd.DataFrame({"zero": [0, 0], "none": [np.nan] * 2, "far": [np.inf, -np.inf], "x": [1, 2]})
    Y = pd.DataFrame({"one": ["x"] * 4, "none": [None] * 4, "two": list("abab")})
    Y["lists"] = pd.Series([[1], [2], [3], [4]], dtype=object)
    for seed in range(9):
        found = scaling_error(X, None, 0.1, rng(seed))[0]
        assert found["x"].tolist() != [1, 2]
        pd.testing.assert_frame_equal(found.drop(columns="x"), X.drop(columns="x"))
        found = categorical_remap(Y, None, 0.1, rng(seed))[0]
        assert found["two"].tolist() == list("baba")
        pd.testing.assert_frame_equal(found.drop(columns="two"), Y.drop(columns="two"))
    pd.testing.assert_frame_equal(scaling_error(X[["zero"]], None, 1.0, rng())[0], X[["zero"]])


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


def test_each_level_may_become_any_other():
    X = pd.DataFrame({"c": list("abc")})
    seen = [categorical_remap(X, None, 1.0, np.random.default_rng(s))[0]["c"] for s in range(400)]
    turned = [each.tolist() == ["b", "c", "a"] for each in seen]
    assert all(each.tolist() in (["b", "c", "a"], ["c", "a", "b"]) for each in seen)
    assert np.mean(turned) == pytest.approx(0.5, abs=0.125)  # five standard deviations


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
        whole = {"i": "float64", "I": "Float64", "u": "float64", "U": "Float64"}
        assert found[name].dtype == whole.get(name[0], name)
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
    X = pd.DataFrame({str(i): np.array([60000, 1], dtype="float16") for i in range(30)})
    found = scaling_error(X, None, 1.0, rng())[0]
    assert {str(each) for each in found.dtypes} == {"float16", "float32"}
    assert np.isfinite(found.astype(float)).all(axis=None)


@pytest.mark.parametrize("corrupt", [noise_gaussian, noise_uniform])
def test_the_noise_of_a_column_depends_only_on_its_position(corrupt, table, rng):
    X = table(50)
    typed = X.assign(int8=X["int8"].astype(str))
    one, other = (corrupt(t, None, 0.3, rng())[0]["float64"] for t in (X, typed))
    pd.testing.assert_series_equal(one, other)


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
