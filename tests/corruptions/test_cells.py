"""Cells that hold what does not belong there: codes, strange categories, other days."""

import numpy as np
import pandas as pd
import pytest

from karat.corruptions.cells import date_shift, sentinel, unseen_category
from karat.errors import DefinitionError

# -- codes for unknown ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        *(("int8", "int16"), ("int16", "int16"), ("uint8", "int16"), ("uint64", "float64")),
        *(("float16", "float16"), ("Int8", "Int16"), ("UInt32", "Int64"), ("Float32", "Float32")),
    ],
)
def test_numbers_become_minus_999_in_a_type_that_holds_it(dtype, expected, rng):
    X = pd.DataFrame({"x": pd.Series([1, 2, 3, 4], dtype=dtype)})
    found = sentinel(X, None, 0.5, rng())[0]["x"]
    assert found.dtype == expected
    assert sorted(found)[:2] == [-999, -999] and (found == -999).sum() == 2


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
    assert found["object"].tolist() == found["string"].tolist() == ["?"] * 3
    assert found["category"].tolist() == found["known"].tolist() == ["?"] * 3
    assert found["category"].cat.categories.tolist() == ["a", "b", "?"]
    assert found["category"].cat.ordered
    assert found["known"].cat.categories.tolist() == ["?", "a"]
    assert found["codes"].tolist() == [-999] * 3
    assert (found["date"] == pd.Timestamp("1900-01-01")).all()
    assert (found["zone"] == pd.Timestamp("1900-01-01", tz="Asia/Tokyo")).all()
    same = ["object", "string", "date", "zone"]
    assert found[same].dtypes.equals(X[same].dtypes)
    pd.testing.assert_frame_equal(found[["interval", "flag"]], X[["interval", "flag"]])


def test_codes_can_be_chosen(rng):
    X = pd.DataFrame({"x": [1, 2], "w": ["a", "b"]})
    found = sentinel(X, None, 1.0, rng(), number=99, text="NA")[0]
    assert found["x"].tolist() == [99, 99] and found["w"].tolist() == ["NA", "NA"]


# -- strange categories ---------------------------------------------------------------------


def test_a_category_nobody_knows(rng):
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


def test_only_names_can_be_strange(rng):
    with pytest.raises(DefinitionError, match="categories or text"):
        unseen_category(pd.DataFrame({"x": [1.0], "b": [True]}), None, 0.5, rng())


# -- other days -----------------------------------------------------------------------------


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


def test_dates_are_needed(rng):
    with pytest.raises(DefinitionError, match="dates"):
        date_shift(pd.DataFrame({"x": ["2020-01-01"]}), None, 0.5, rng())
    dates = pd.DataFrame({"d": [pd.Timestamp("2020-01-01")]})
    with pytest.raises(DefinitionError, match="days.*0"):
        date_shift(dates, None, 0.5, rng(), days=0)


@pytest.mark.parametrize("corrupt", [sentinel, unseen_category])
def test_empty_columns_survive(corrupt, rng):
    X = pd.DataFrame(
        {
            "none": pd.Series([None, None], dtype=object),
            "category": pd.Categorical([None, None]),
            "levels": pd.Categorical([None, None], [1, 2]),
            "nan": [np.nan, np.nan],
        }
    )
    found = corrupt(X, None, 1.0, rng())[0]
    assert found.shape == X.shape
