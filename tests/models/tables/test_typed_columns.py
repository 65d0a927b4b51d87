"""Numbers, dates and words of a table."""

import numpy as np
import pandas as pd

from karat.models.tables.one_hot_table import OneHotTable, table_to_numbers
from karat.models.tables.typed_columns import numeric_columns


def dated(*texts):
    return pd.DataFrame({"d": pd.to_datetime(list(texts), format="mixed")})


def parts(table):
    """Return the parts of dates before they are scaled."""
    columns = table_to_numbers().fit(table)
    return [read(table[names]).tolist() for names, read, _ in columns.steps_]


def test_a_date_is_six_numbers():
    # 2024-02-29 was a Thursday
    table = dated("1970-01-01", "2024-02-29 13:30:00", None)
    first, second, missing = parts(table)[0]
    assert first == [1970, 1, 1, 3, 0, 0]
    assert second == [2024, 2, 29, 3, 13, 1709213400]
    assert np.isnan(missing).all()
    assert OneHotTable().fit_transform(table).shape == (3, 6)


def test_the_hour_is_local_and_the_seconds_are_not():
    table = dated("2024-06-01 12:00:00+00:00")
    table["d"] = table["d"].dt.tz_convert("Asia/Tokyo")
    ((row,),) = parts(table)
    assert row == [2024, 6, 1, 5, 21, 1717243200]


def test_a_missing_date_is_the_median_and_a_later_one_is_read():
    encoder = OneHotTable().fit(dated("2020-01-01", "2021-01-01", "2022-01-01"))
    assert (encoder.transform(dated(None)) == encoder.transform(dated("2021-01-01"))).all()
    year = encoder.transform(dated("2023-01-01"))[0, 0]
    np.testing.assert_allclose(year, 2 * np.sqrt(1.5))


def test_dates_that_lost_their_type_in_test_are_still_read():
    encoder = OneHotTable().fit(dated("2020-01-01", "2021-06-05", "2022-01-01"))
    there = encoder.transform(dated("2021-06-05"))[0]
    zones = [pd.Timestamp("2021-06-05", tz="UTC"), pd.Timestamp("2020-01-01", tz="Asia/Tokyo")]
    for values in (["2021-06-05", 7, None, "no date", True], zones):
        found = encoder.transform(pd.DataFrame({"d": pd.Series(values, dtype=object)}))
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found[0], there)


def test_a_date_written_as_text_is_a_word():
    table = pd.DataFrame({"d": ["2020-01-01", "2021-01-01"]})
    assert OneHotTable().fit_transform(table).tolist() == [[1, 0], [0, 1]]


def test_a_duration_is_a_number():
    table = pd.DataFrame({"t": pd.to_timedelta([1, 3, None], unit="h")})
    assert parts(table)[0][:2] == [[3600.0], [7200.0 + 3600.0]]
    assert OneHotTable().fit_transform(table)[2, 0] == 0


def test_a_missing_number_is_the_median_and_a_missing_word_a_category():
    train = pd.DataFrame({"n": [0.0, 10.0, 20.0, np.nan], "w": ["a", None, "a", "a"]})
    encoder = OneHotTable(None).fit(train)
    seen = encoder.transform(train)
    assert seen[3, 0] == seen[1, 0] == 0.0
    assert seen[:, 1:].tolist() == [[0, 1], [1, 0], [0, 1], [0, 1]]
    table = pd.DataFrame({"b": [True, False], "e": [np.nan, np.nan], "n": [1, 2]})
    assert numeric_columns(table) == ["e", "n"]
    assert OneHotTable(None).fit_transform(table).shape == (2, 4)


def test_a_column_that_loses_its_type_in_test_is_still_read():
    train = pd.DataFrame({"n": [0, 10], "b": [True, False]})
    encoder = OneHotTable(None).fit(train)
    masked = train.mask(np.array([[True, False], [False, True]]))
    assert encoder.transform(masked).tolist() == [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
