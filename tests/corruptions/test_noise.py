"""Corruptions of tables, by hand."""

from __future__ import annotations

import unicodedata

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.core.columns import column_items, frame_items
from karat.core.dataset import Dataset
from karat.core.registry import corruptions
from karat.corruptions.needs import unmet_reason
from karat.corruptions.noise import (
    accents,
    case,
    categorical_remap,
    column_swap,
    date_shift,
    duplicate_rows,
    label_noise,
    missingness_mar,
    missingness_mcar,
    missingness_mnar,
    missingness_value,
    misspellings,
    noise_gaussian,
    noise_uniform,
    outliers,
    rare_class_dilution,
    rarest,
    rounding,
    scaling_error,
    sentinel,
    sign_flip,
    stuck_sensor,
    truncation,
    typos,
    unseen_category,
    vector_binary,
    vector_dropped,
    vector_int8,
    vector_noise,
    vector_truncation,
    whitespace,
    word_drop,
    word_swap,
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


def rows(count=30):
    return pd.DataFrame({"x": np.arange(count), "w": "w"}), pd.Series([0, 0, 1] * (count // 3))


@pytest.mark.parametrize(("severity", "lost"), [(0.1, 1), (0.25, 2), (0.4, 4), (1.0, 10)])
def test_a_share_of_the_rarest_class_is_dropped(severity, lost, rng):
    X, y = rows()
    found, truth = rare_class_dilution(X, y, severity, rng())
    assert len(found) == 30 - lost
    assert (truth == 1).sum() == 10 - lost and (truth == 0).sum() == 20
    assert found["x"].tolist() == found.index.tolist() == truth.index.tolist()  # in their order
    assert truth.tolist() == y[found.index].tolist()
    only = pd.Series(["a"] * 30)  # the only class is not dropped, and no answer is wrong
    assert len(rare_class_dilution(X, only, severity, rng())[0]) == 30
    assert set(label_noise(X, only, severity, rng())[1]) == {"a"}


@pytest.mark.parametrize(
    ("y", "rare"),
    [
        ([0, 0, 1], [2]),
        ([1, 1, 0], [2]),
        (["yes", "no", "no"], [0]),
        ([0, 1], [1]),
        ([10, 9], [1]),  # in the order of text
        (["c", "a", "b", "a", "b", "c", "c"], [2, 4]),
        ([True, False, True], [1]),
        ([2.0, 1.0, 2.0], [1]),
        (["a", None, None, "b", "b"], [0]),
        (["a", "a"], []),
        ([], []),
    ],
)
def test_the_rarest_class_is_found_in_the_data(y, rare):
    assert np.flatnonzero(rarest(pd.Series(y, dtype=object))).tolist() == rare
    assert np.flatnonzero(rarest(pd.Series(y, dtype="category"))).tolist() == rare


@pytest.mark.parametrize(("severity", "changed"), [(0.1, 3), (0.25, 7), (1.0, 30)])
@pytest.mark.parametrize(
    "y",
    [
        pd.Series([0, 1, 2] * 10),
        pd.Series(["a", "b"] * 15),
        pd.Series(["a", "b"] * 15, dtype="category"),
        pd.Series([True, False] * 15),
        pd.Series(np.arange(30) / 7),
    ],
)
def test_a_share_of_rows_is_repeated_and_of_answers_is_wrong(y, severity, changed, rng):
    X, _ = rows()
    found, truth = label_noise(X, y, severity, rng())
    pd.testing.assert_frame_equal(found, X)
    assert truth.dtype == y.dtype and truth.index.equals(y.index)
    assert (truth.astype(object) != y.astype(object)).sum() == changed
    assert set(truth) <= set(y)
    found, truth = duplicate_rows(X, y, severity, rng())
    assert len(found) == 30 + changed
    assert found.index.tolist()[:30] == list(range(30))
    assert found.index.value_counts().max() == 2
    assert truth.tolist() == y[found.index].tolist()
    assert found["x"].tolist() == found.index.tolist()
    assert duplicate_rows(X, None, severity, rng())[1] is None


def test_every_other_answer_is_as_likely():
    X, y = pd.DataFrame({"x": range(6000)}), pd.Series(["a"] * 2000 + ["b"] * 3000 + ["c"] * 1000)
    truth = label_noise(X, y, 1.0, np.random.default_rng(0))[1]
    table = pd.crosstab(y, truth)
    assert (np.diag(table) == 0).all()
    shares = table.div(table.sum(axis=1), axis=0)
    assert shares.loc["a", "b"] == pytest.approx(0.5, abs=5 * 0.5 / 2000**0.5)
    assert shares.loc["b", "a"] == pytest.approx(0.5, abs=5 * 0.5 / 3000**0.5)


# -- columns and whole tables ---------------------------------------------------------------


def columns_and_tables():
    tables = {
        f"t{n}": pd.DataFrame({f"a{n}": range(10), f"b{n}": [f"{n} {i}" for i in range(10)]})
        for n in range(5)
    }
    return column_items(tables), frame_items(tables)


def headers_of(items):
    return [
        header for i in items for header in ([i.name] if isinstance(i, pd.Series) else i.columns)
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_headers_are_dropped_and_replaced(which):
    items = columns_and_tables()[which]
    before = headers_of(items)
    for name, severity, changed in (
        ("header_dropped", 0.4, 4),
        ("header_dropped", 1, 10),
        ("header_replaced", 0.4, 4),
        ("header_replaced", 1, 10),
    ):
        found, _ = corruptions.get(name)(items, None, severity, np.random.default_rng(1))
        after = headers_of(found)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == changed
        new = {b for a, b in zip(before, after, strict=True) if a != b}
        assert new == {""} if name == "header_dropped" else new <= set(before)
        assert headers_of(items) == before
        for one, other in zip(items, found, strict=True):
            assert np.array_equal(one.to_numpy(), other.to_numpy())


def test_the_list_of_headers_of_a_column_changes_with_its_header():
    items = columns_and_tables()[0]
    found, _ = corruptions.get("header_dropped")(items, None, 1, np.random.default_rng(1))
    assert found.iloc[0].attrs["headers"] == ["", ""]
    assert found.iloc[0].attrs["frame"].columns.tolist() == ["", ""]
    assert items.iloc[0].attrs["headers"] == ["a0", "b0"]
    found, _ = corruptions.get("header_dropped")(items.iloc[:1], None, 1, np.random.default_rng(1))
    assert found.iloc[0].attrs["headers"] == ["", "b0"]


@pytest.mark.parametrize("name", ["header_replaced", "rows_shuffled", "rows_dropped"])
def test_a_corrupted_column_is_a_column_of_its_table(name):
    items = columns_and_tables()[0]
    found, _ = corruptions.get(name)(items, None, 0.5, np.random.default_rng(1))
    for column in found:
        own = column.attrs["frame"].iloc[:, column.attrs["position"]]
        assert own.tolist() == column.tolist() and own.name == column.name


@pytest.mark.parametrize("which", [0, 1])
def test_rows_are_shuffled_and_dropped(which):
    items = columns_and_tables()[which]
    found, _ = corruptions.get("rows_shuffled")(items, None, 1, np.random.default_rng(1))
    for one, other in zip(items, found, strict=True):
        rows = [sorted(map(str, np.asarray(each).tolist())) for each in (one, other)]
        assert rows[0] == rows[1] and one.attrs["caption"] == other.attrs["caption"]
        assert other.index.tolist() == list(range(10))
    assert not any(a.equals(b) for a, b in zip(items, found, strict=True))
    found, _ = corruptions.get("rows_dropped")(items, None, 0.3, np.random.default_rng(1))
    assert [len(item) for item in found] == [7] * len(items)
    found, _ = corruptions.get("rows_dropped")(items, None, 1, np.random.default_rng(1))
    assert [len(item) for item in found] == [1] * len(items)


def test_columns_of_a_table_keep_their_cells_in_another_order():
    wide = frame_items({n: pd.DataFrame([range(8)], columns=list("abcdefgh")) for n in range(6)})
    found, _ = corruptions.get("columns_shuffled")(wide, None, 0.5, np.random.default_rng(0))
    moved = [list(item.columns) != list("abcdefgh") for item in found]
    assert sum(moved) == 3
    for item in found:
        assert item.to_dict("records") == [dict(zip("abcdefgh", range(8), strict=True))]


def test_texts_are_no_columns():
    with pytest.raises(DefinitionError, match="columns and whole tables, not texts"):
        corruptions.get("header_dropped")(pd.Series(["a"]), None, 0.5, None)
    with pytest.raises(DefinitionError, match="not columns"):
        corruptions.get("columns_shuffled")(columns_and_tables()[0], None, 0.5, None)


# -- Corruptions of texts and vectors, by hand and as properties ----------------------------------


ALL = [typos, case, accents, whitespace, word_drop, word_swap, truncation]
steady = settings(deadline=None, derandomize=True, max_examples=60)
severities = st.floats(0, 1)
sentences = st.lists(st.text(st.sampled_from("ab Cé\u0301🙂\t"), max_size=12), min_size=1)


def changed(corrupt, texts, severity=1.0, seed=3):
    texts = pd.Series(texts, dtype=object)
    return corrupt(texts, None, severity, np.random.default_rng(seed))[0].tolist()


@pytest.mark.parametrize(
    ("corrupt", "before", "after"),
    [
        (typos, ["abcdef", "abc", "a", "", "xy", "🙂é"], ["badcfe", "bac", "a", "", "yx", "é🙂"]),
        (case, ["Paris in May", "USA 2 état", "straße"], ["PARIS IN MAY", "usa 2 ÉTAT", "STRASSE"]),
        (case, ["", "123 ?!", "a  b\tc", "🙂 x"], ["", "123 ?!", "A  B\tC", "🙂 X"]),
        (accents, ["Été à", "Größe", "øßł", "e\u0301te\u0301"], ["Ete a", "Große", "øßł", "ete"]),
        (accents, ["ếộ", "", "日本語 がぎ", "हिन्दी", "❤️"], ["eo", "", "日本語 がぎ", "हिन्दी", "❤️"]),
        (whitespace, ["one two", "one", "", " a\tb "], [" one  two ", " one ", " ", "  a \tb  "]),
        (word_swap, ["a b c d", "a  b\tc", "one", " a b "], ["b a d c", "b  a\tc", "one", " b a "]),
    ],
)
def test_every_place_changes_at_severity_one(corrupt, before, after):
    assert changed(corrupt, before) == after


@steady
@given(st.lists(st.text(max_size=12), min_size=1, max_size=5), severities, severities)
def test_no_letter_is_lost_and_what_slips_slips_again(texts, one, other):
    low, high = sorted([one, other])
    few, many = changed(typos, texts, low), changed(typos, texts, high)
    for text, less, more in zip(texts, few, many, strict=True):
        assert sorted(text) == sorted(less) == sorted(more)
        for i in range(0, len(text) - 1, 2):
            if less[i : i + 2] != text[i : i + 2]:
                assert more[i : i + 2] == less[i : i + 2]
    assert changed(typos, texts, 0.0) == texts


def without_accents(text):
    return "".join(c for c in unicodedata.normalize("NFD", text) if not unicodedata.combining(c))


@steady
@given(sentences, severities)
def test_what_accents_whitespace_and_swaps_do_not_change(texts, severity):
    for text, found in zip(texts, changed(accents, texts, severity), strict=True):
        assert without_accents(text) == without_accents(found)
        assert len(found) <= len(text)
    for text, found in zip(texts, changed(whitespace, texts, severity), strict=True):
        assert found.split() == text.split()
    for text, found in zip(texts, changed(word_swap, texts, severity), strict=True):
        assert sorted(found.split()) == sorted(text.split())
        assert len(found) == len(text)


@steady
@given(sentences, severities, severities)
def test_dropped_words_stay_dropped_and_one_stays(texts, one, other):
    low, high = sorted([one, other])
    few, many = changed(word_drop, texts, low), changed(word_drop, texts, high)
    for text, less, more in zip(texts, few, many, strict=True):
        words, some, least = text.split(), less.split(), more.split()
        for part, whole in ((least, some), (some, words)):
            left = iter(whole)
            assert all(word in left for word in part)  # a part of it, in its order
        assert bool(least) == bool(words)
    for text, found in zip(texts, changed(word_drop, texts), strict=True):
        assert len(found.split()) == min(len(text.split()), 1)


def test_the_share_of_dropped_words_is_the_severity_and_any_word_stays():
    found = changed(word_drop, ["word " * 100] * 50, 0.2)
    dropped = 1 - sum(len(text.split()) for text in found) / 5000
    assert dropped == pytest.approx(0.2, abs=5 * np.sqrt(0.16 / 5000))
    assert set(changed(word_drop, ["a b c"] * 60)) == {"a ", "b ", "c"}


@pytest.mark.parametrize(
    ("severity", "expected"), [(0.1, "abcdefghi"), (0.25, "abcdefgh"), (0.5, "abcde"), (1.0, "a")]
)
def test_the_end_is_cut_off(severity, expected):
    assert changed(truncation, ["abcdefghij", "", "🙂"], severity) == [expected, "", "🙂"]


@pytest.mark.parametrize("corrupt", ALL)
@pytest.mark.parametrize("dtype", [object, "str", "string", "category"])
def test_index_name_type_and_missing_texts_stay(corrupt, dtype, rng):
    texts = pd.Series(["ab Cé", None, "ef Gà"], index=[7, 8, 9], name="title", dtype=dtype)
    y = pd.Series([1, 2, 3], index=[7, 8, 9])
    found, same = corrupt(texts, y, 1.0, rng())
    assert same is y
    assert found.index.tolist() == [7, 8, 9] and found.name == "title"
    assert found.isna().tolist() == [False, True, False]
    assert (found != texts.astype(object)).tolist()[::2] == [True, True]
    assert texts.dropna().tolist() == ["ab Cé", "ef Gà"]
    if dtype != "category":
        assert found.dtype == texts.dtype
    assert isinstance(found.dtype, pd.CategoricalDtype) == (dtype == "category")


@pytest.mark.parametrize("corrupt", ALL)
def test_in_a_table_only_columns_of_text_have_letters(corrupt, rng):
    X = pd.DataFrame(
        {
            "word": ["ab Cé", "ef Gà"],
            5: [1, 2],
            "kind": pd.Categorical(["ab é", "cd é"]),
            "mixed": pd.Series(["ab Cé", 3], dtype=object),
            "date": pd.to_datetime(["2020-01-01"] * 2),
        }
    )
    before = X.copy(deep=True)
    found, _ = corrupt(X, None, 1.0, rng())
    assert (found["word"] != X["word"]).all()
    assert found["mixed"][0] != "ab Cé" and found["mixed"][1] == 3
    others = [5, "kind", "date"]
    pd.testing.assert_frame_equal(found[others], X[others])
    pd.testing.assert_frame_equal(X, before)
    with pytest.raises(DefinitionError, match="text"):
        corrupt(X[others], None, 0.5, rng())


VECTORS_ALL = [
    name for name in corruptions if "vectors" in getattr(corruptions.get(name), "takes", ())
]


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


def matrix(rows: int = 50, columns: int = 12) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(rows, columns))


@pytest.mark.parametrize(
    ("corrupt", "severity", "X", "expected"),
    [
        (vector_int8, 1.0, [[127, 0], [1.4, 0], [-126.6, 0]], [[127, 0], [1, 0], [-127, 0]]),
        (vector_binary, 1.0, [[2, -4], [0, 2]], [[2, -2], [-2, 2]]),
        (vector_truncation, 0.5, [[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 2, 0, 0], [5, 6, 0, 0]]),
        (vector_truncation, 1.0, [[1, 2, 3, 4], [5, 6, 7, 8]], [[1, 0, 0, 0], [5, 0, 0, 0]]),
    ],
)
def test_vectors_by_hand(corrupt, severity, X, expected):
    changed, _ = corrupt(np.array(X, dtype=float), None, severity, generator())
    assert changed.tolist() == expected


def test_noise_is_in_standard_deviations():
    X = np.tile([0.0, 10.0], 20_000).reshape(-1, 1) * np.array([1.0, 3.0])
    changed, _ = vector_noise(X.copy(), None, 0.4, generator())
    assert (changed - X).std(axis=0) == pytest.approx([0.4 * 5, 0.4 * 15], rel=0.03)


def test_dropped_items_are_unknown():
    changed, _ = vector_dropped(matrix(), None, 0.3, generator())
    lost = np.isnan(changed).all(axis=1)
    assert lost.sum() == 15 and not np.isnan(changed[~lost]).any()


@pytest.mark.parametrize("name", VECTORS_ALL)
def test_properties_of_all_vector_corruptions(name):
    def corrupted(X, severity):
        return corruptions.get(name)(X.copy(), None, severity, generator())[0]

    X = matrix()
    low, high = (corrupted(X, severity) != X for severity in (0.25, 0.75))  # NaN differs from all
    assert (low <= high).all() and low.any()  # more contains less
    X[3] = np.nan
    with np.errstate(all="raise"):
        changed = corrupted(X, 0.5)
    assert changed.shape == X.shape and np.isnan(changed[3]).all()
    if name != "vector_dropped":
        assert not np.isnan(np.delete(changed, 3, axis=0)).any()
    for X in (np.zeros((4, 3)), matrix(1, 1), np.full((2, 2), np.nan)):
        changed = corrupted(X, 1.0)
        assert changed.shape == X.shape and not np.isinf(changed).any()


LIST = """their thier Their ther?
because becouse becuse
I i
we've weve we'v
because becouse bcause
"""


@pytest.fixture
def word_list(tmp_path, monkeypatch):
    path = tmp_path / "misspellings" / "spelling_en.txt"
    path.parent.mkdir()
    path.write_text(LIST, encoding="utf-8")
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))


def test_listed_words_are_misspelled_as_in_the_list(word_list):
    texts = ["Their house, because I said so.", "THEIR we've", "theirs", "", None, "42 ?!"]
    found = [changed(misspellings, texts, seed=seed) for seed in range(60)]
    # "i" differs in case only and "ther?" has another character: both are left out
    firsts = {f"Thier house, {word} I said so." for word in ("becouse", "becuse", "bcause")}
    assert {texts[0] for texts in found} == firsts
    assert {texts[1] for texts in found} == {"THIER weve", "THIER we'v"}
    assert all(texts[2:] == ["theirs", "", None, "42 ?!"] for texts in found)


def test_share_of_misspelled_words(word_list):
    texts = ["because"] * 4000
    clean, few, many = (changed(misspellings, texts, s) for s in (0.0, 0.2, 0.6))
    assert clean == texts
    assert abs(sum(text != "because" for text in few) / 4000 - 0.2) < 0.025  # 4 standard errors
    assert all(more == less for less, more in zip(few, many, strict=True) if less != "because")
    share = sum(text == "becuse" for text in changed(misspellings, texts)) / 4000
    assert abs(share - 1 / 3) < 0.03


def test_misspellings_of_a_table_are_those_of_its_text_columns(word_list):
    X = pd.DataFrame({"n": [1, 2], "t": ["because", "no"], "c": pd.Categorical(["their", "x"])})
    found = misspellings(X, None, 1.0, np.random.default_rng(0))[0]
    assert found["t"].tolist()[0] in ("becouse", "becuse", "bcause")
    assert found[["n", "c"]].equals(X[["n", "c"]]) and found["t"][1] == "no"


def test_a_missing_list_is_an_error_that_names_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    monkeypatch.delenv("KARAT_DATA", raising=False)
    with pytest.raises(DefinitionError, match="unset KARAT_OFFLINE"):
        changed(misspellings, ["because"])
    assert changed(misspellings, ["because"], 0.0) == ["because"]
    data = Dataset.from_columns(
        pd.DataFrame({"t": ["because", "no"], "y": ["a", "b"]}), ["t"], "y", name="two"
    )
    assert "misspellings_en" in unmet_reason("misspellings", data)
