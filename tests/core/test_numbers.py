"""Numbers written as text: one pattern, marks, units."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.core.numbers import (
    COMMAS,
    POINTS,
    NumberFormat,
    parse_number,
    written_numbers,
)
from karat.errors import DataError


@pytest.mark.parametrize("text", ["1", "-1.5", ".5", "2.", "1e-3", "+7E2", " 3 "])
def test_numbers(text):
    assert parse_number(text, "line 1") == float(text)


@pytest.mark.parametrize(
    "text", ["1_0", "inf", "-Infinity", "nan", "1e999", "١", "true", "None", "0x10", "1,5", "", "."]
)
def test_other_texts_are_no_numbers_and_the_error_has_the_line(text):
    with pytest.raises(DataError, match='line 7: .*"size"'):
        parse_number(text, "f.arff, line 7", "size")


@given(st.integers(-(10**15), 10**15), st.integers(0, 10**6), st.sampled_from("., \u202f'’"))
def test_grouped_numbers_are_read_back(whole, fraction, thousands):
    decimal = "," if thousands == "." else "."
    text = f"{whole:,}".replace(",", thousands) + f"{decimal}{fraction}"
    form = NumberFormat(decimal)
    assert form.fits([text]) and form.number(text) == float(f"{whole}.{fraction}")
    wrong = NumberFormat(thousands if thousands in ".," else ",")
    assert not wrong.fits([text]) or wrong.number(text) != form.number(text)


def test_a_group_of_thousands_has_three_digits():
    for text in ("0.95", "12.5", "1.2345", "1234.567", "0.123", "1.23.456"):
        assert not COMMAS.fits([text])
    assert COMMAS.fits(["56.664", "656", "1.234.567,8"]) and not POINTS.fits(["1.234.567"])


@pytest.mark.parametrize(
    ("cells", "digits", "unit", "missing"),
    [
        (["$1,234.56", "-$5"], ["1,234.56", "-5"], "$", ()),
        (["12%", "7 %", "3\u00a0%"], ["12", "7", "3"], "%", ()),
        (["65 kg", "7 kg", "?"], ["65", "7"], "kg", ("?",)),
        (["1 day", "2 days"], ["1", "2"], "day", ()),
        (["−3 °C", "4 °C"], ["-3", "4"], "°C", ()),
        (["EUR 5", "EUR 6,50"], ["5", "6,50"], "EUR", ()),
        (["1", "-", "2"], ["1", "2"], "", ("-",)),
    ],
)
def test_units_and_missing_values(cells, digits, unit, missing):
    found = written_numbers(cells)
    assert found is not None and not found.problem
    assert (list(found.digits.values()), found.unit, found.missing) == (digits, unit, missing)


@pytest.mark.parametrize(
    "cells",
    [
        ["12A", "13B", "14C", "15D"],
        ["1.2.3", "1.2.4"],
        ["10.0.0.1", "10.0.0.2"],
        ["A12", "A13"],
        ["Room 12", "Room 13"],
        ["12:30", "13:30"],
        ["2024-01-31", "2024-02-28"],
        ["1,2,3", "4"],
        ["a", "1", "2", "b"],
        ["1" * 100],
    ],
)
def test_texts_with_digits_are_no_numbers(cells):
    assert written_numbers(cells) is None


@pytest.mark.parametrize(
    ("cells", "problem"),
    [
        ([*map(str, range(20)), "unknown"], "words"),
        (["65 kg", "140 lb"], "units"),
        (["00123", "456"], "zeros"),
        (["1.5", "1,5"], "marks"),
    ],
)
def test_a_column_of_numbers_that_stays_text_has_a_reason(cells, problem):
    assert written_numbers(cells).problem == problem
