"""HTTP requests whose answers have a largest size and a deadline; see also tests/faults."""

import gzip

import pytest

from karat.ext.endpoints.endpoint_http import (
    ERROR_BYTES,
    AnswerTooLarge,
    HttpConnections,
    LostAnswer,
    NotSent,
)

from ...faults.endpoint_misbehaving import CLOSE, http, misbehaving

pytest.importorskip("httpx")


def post(answer, most=1000, timeout=30.0):
    """Return the response to a request, and the number of requests."""
    with misbehaving(answer) as server, HttpConnections({"x-y": "z"}, timeout) as connections:
        return connections.post(f"{server.url}/v1", {"input": ["a"]}, most)


def test_an_answer_of_the_largest_size_is_read():
    response = post(lambda texts: http(b"x" * 1000))
    assert (response.status, len(response.content)) == (200, 1000) and response.seconds > 0
    with pytest.raises(AnswerTooLarge, match="1,001 bytes"):
        post(lambda texts: http(b"x" * 1001))


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 10**6])
def test_the_size_is_that_after_decompression(size):
    def answer(texts):
        return http(gzip.compress(b"x" * size), headers="content-encoding: gzip\r\n")

    if size <= 1000:
        assert post(answer).content == b"x" * size
    else:
        with pytest.raises(AnswerTooLarge):
            post(answer)


def test_only_the_beginning_of_an_error_is_read():
    response = post(lambda texts: http(b"x" * 10**6, "500 Broken"), most=10**9)
    assert response.status == 500 and len(response.content) == ERROR_BYTES


def test_connections_are_used_again_until_they_are_lost():
    answers = [http(b"1"), http(b"2"), [CLOSE], http(b"3")]
    with misbehaving(lambda texts: answers.pop(0)) as server:
        with HttpConnections({}, 30.0) as connections:
            assert connections.post(server.url, {"input": []}, 9).content == b"1"
            assert connections.post(server.url, {"input": []}, 9).content == b"2"
            with pytest.raises(LostAnswer):
                connections.post(server.url, {"input": []}, 9)
            assert connections.post(server.url, {"input": []}, 9).content == b"3"


def test_without_a_server_nothing_was_sent():
    with misbehaving(lambda texts: []) as server:
        url = server.url
    with HttpConnections({}, 5.0) as connections:
        with pytest.raises(NotSent) as error:
            connections.post(url, {}, 9)
        assert error.value.refused
        with pytest.raises(ValueError):
            connections.post("http://a\x00b", {}, 9)
