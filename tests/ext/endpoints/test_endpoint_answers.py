"""Checks of answers, numbers of tokens and messages; servers that send them are in tests/faults."""

import math

import pytest

from karat.errors import ContractError
from karat.ext.endpoints.endpoint_answers import (
    MESSAGE_LENGTH,
    answer_json,
    check_answer,
    error_text,
    largest_answer,
    plain_message,
    token_count,
)


@pytest.mark.parametrize(
    "values", [["??"], [["a"]], [["0.5"]], [[True]], [[None]], [[]], [[[1.0]]], [1.0], [[1e39]]]
)
def test_what_is_not_a_vector_is_refused(values):
    with pytest.raises(ContractError):
        check_answer(values, 1)


def test_the_largest_answer_grows_with_texts_and_width():
    assert largest_answer(10, 1000) - largest_answer(9, 1000) == 28_000
    assert largest_answer(2, None) == largest_answer(2, 8192)


def test_an_answer_with_many_values_is_not_read():
    assert answer_json(b"[1, 2]", 1) == [1, 2]
    for content in (b"[" * 5000, b'{"a":' * 5000, b'"",' * 5000, b"[1", b"\xff"):
        with pytest.raises(ValueError):
            answer_json(content, 1)


def test_a_message_is_one_line_that_can_be_printed():
    text = "\x1b]0;title\x07a\x1b[31;1mb\x1b[0m\r\nc\u202ed\x9b\x00 secret"
    assert plain_message(text, "secret") == "ab c d ***"
    assert plain_message("sec\x1b[0mret", "secret") == "***"  # put together by cleaning
    assert len(plain_message("x" * 10**6)) <= 20 * MESSAGE_LENGTH
    assert plain_message("\x1b]never ended") == ""


def test_the_message_of_an_error_is_found():
    assert error_text({"error": {"message": "no"}}) == "no"
    assert error_text({"detail": [1]}) == "[1]"
    assert error_text("text") == "text"
    deep: object = "x"
    for _ in range(50):
        deep = {"error": deep}
    assert isinstance(error_text(deep), str)


@pytest.mark.parametrize("value", ["12", None, True, math.nan, math.inf, -1, [3], 10**400, 6500])
def test_what_is_no_number_of_tokens(value):
    assert token_count(value, 100.0) is None
    assert token_count(6400, 100.0) == 6400.0 and token_count(0, 1.0) == 0.0
