import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from karat.report.compact import clean, compact, size, to_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.123456789, 0.123457),
        (1234567.8, 1234570),
        (-0.0, 0),
        (float("inf"), None),
        (np.float64("nan"), None),
        (np.int64(3), 3),
        (np.array([[1.0, np.nan]]), [[1, None]]),
        (True, True),
        ({1: (2.5,)}, {"1": [2.5]}),
    ],
)
def test_values_become_short_ones(value, expected):
    found = compact(value)
    assert found == expected and type(found) is type(expected)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_six_digits(value):
    assert compact(value) == pytest.approx(value, rel=5e-6, abs=0)


@given(st.text() | st.lists(st.text()) | st.dictionaries(st.text(), st.floats()))
def test_what_is_written_reads_back_and_ends_no_script(value):
    short = compact(value)
    text = to_json(short)
    assert json.loads(text) == short
    assert not {"<", "\u2028", "\u2029"} & set(text)
    assert size(short) == len(text.encode())


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_written_and_whole_ones_stay(text):
    clean(text).encode()
    if not any("\ud800" <= sign <= "\udfff" for sign in text):
        assert clean(text) == text


def test_surrogate_pairs_are_joined():
    assert clean("\ud83d\ude00!\ud83d") == "\U0001f600!\ufffd"
