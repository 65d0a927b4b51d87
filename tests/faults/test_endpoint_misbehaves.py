"""Servers that misbehave in the ways that are known: one clear message, and never a wrong vector.

Each way is sent by a real server. Whatever it is, the process stays small, ends in time, sends few
requests, and stores nothing of a wrong answer; when the server is well again, its vectors arrive.
"""

import base64
import functools
import itertools
import json
import tracemalloc
import zlib

import numpy as np
import pytest

from karat.core.services import current_services
from karat.errors import ContractError, Postponed
from karat.ext.endpoints import endpoint_delivery
from karat.ext.endpoints.endpoint_encoder import EndpointEncoder

from ..endpoint_server import text_vector
from ..ext.endpoints.accounts import make_account, use_account
from .endpoint_misbehaving import CLOSE, WIDTH, http, misbehaving, right, vectors_of, well

pytest.importorskip("httpx")

TEXTS = [f"text number {i}" for i in range(6)]
KEY = "sk-Zq83-secret-key-0451"
#: a sequence that sets the title of a terminal, one that clears it, a bell, and one in one byte
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x1b[1;31mred\x1b[0m\x07\x9b31m\r\n\u202etfel"
#: bytes that no answer needs
LARGE = 64 * 2**20
MANY_LISTS = b'{"data": [' + b"[]," * 400_000 + b"[]]}"


@pytest.fixture(autouse=True)
def quick(monkeypatch, tmp_path):
    """Use an empty cache, and do not wait between attempts."""
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("MY_KEY", KEY)
    monkeypatch.setattr(endpoint_delivery, "_wait", lambda stop, seconds: None)
    monkeypatch.setattr(endpoint_delivery, "ATTEMPTS", 2)


def encoder_of(server, **params):
    params = {"api_key_env": "MY_KEY", "batch_texts": 3, "concurrency": 2, **params}
    return EndpointEncoder(f"{server.url}/v1", "m", **params)


def endless(first, part):
    yield from first
    while True:
        yield part


def chunked(*parts):
    head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
    yield head.encode()
    yield from parts


def compressed(content, coding="gzip", status="200 OK", times=1):
    packed = packed_bytes(content, {"gzip": 31, "deflate": 15}[coding], times)
    return http(packed, status, headers=f"content-encoding: {coding}\r\n")


@functools.cache
def packed_bytes(content, window, times):
    packer = zlib.compressobj(9, wbits=window)
    return b"".join([*(packer.compress(content) for _ in range(times)), packer.flush()])


def bomb(**how):
    """Answer with a few KB that are 128 MB of zeros."""
    return lambda texts: compressed(bytes(2**20), times=128, **how)


def one_value(value):
    """Answer with a value in the place of the second number of the third vector."""
    marker = 0.123456789

    def answer(texts):
        rows = vectors_of(texts)
        rows[-1][1] = marker
        return http(json.dumps(right(rows)).replace(str(marker), value))

    return answer


def one_vector(vector):
    return lambda texts: http(right([*vectors_of(texts)[:-1], vector]))


def one_index(index):
    def answer(texts):
        body = right(vectors_of(texts))
        body["data"][-1]["index"] = index
        return http(body)

    return answer


def refused(status, message):
    return lambda texts: http({"error": {"message": message}}, status)


# -- answers that are wrong ------------------------------------------------------------------

#: what is sent, and words of the message; nothing of it is repeated
WRONG = {
    "HTML": (lambda texts: http("<!doctype html><html>"), "wrong JSON"),
    "nothing": (lambda texts: http(b""), "JSON"),
    "no content": (lambda texts: [b"HTTP/1.1 204 No Content\r\n\r\n"], "204"),
    "half of the JSON": (lambda texts: http(json.dumps(right(vectors_of(texts)))[:-9]), "JSON"),
    "null": (lambda texts: http("null"), "another form"),
    "a number": (lambda texts: http("3"), "another form"),
    "a list": (lambda texts: http([1, 2]), "another form"),
    "an empty mapping": (lambda texts: http({}), "another form"),
    "data is a text": (lambda texts: http({"data": "text"}), "another form"),
    "items are numbers": (lambda texts: http({"data": [1, 2, 3]}), "another form"),
    "no embedding": (lambda texts: http({"data": [{}] * len(texts)}), "another form"),
    "an error with 200": (lambda texts: http({"error": {"message": "busy"}}), "busy"),
    "not UTF-8": (lambda texts: http(b'{"data": "\xff\xfe"}'), "JSON"),
    "nested deeply": (lambda texts: http("[" * 200_000), "far more values"),
    "nested a little": (lambda texts: http("[" * 1200 + "]" * 1200), "wrong JSON|another form"),
    "many lists": (lambda texts: http(MANY_LISTS), "far more values"),
    "too few vectors": (lambda texts: http(right(vectors_of(texts)[1:])), "2 vectors for 3"),
    "too many vectors": (lambda texts: http(right(vectors_of([*texts, "x"]))), "4 vectors for 3"),
    "no vectors": (lambda texts: http(right([])), "0 vectors for 3"),
    "an index twice": (one_index(0), "index"),
    "an index too large": (one_index(3), "index"),
    "a negative index": (one_index(-1), "index"),
    "an index that is true": (one_index(True), "index"),
    "an index that is text": (one_index("2"), "index"),
    "an index that is 2.0": (one_index(2.0), "index"),
    "no index once": (one_index(None), "index"),
    "a text as value": (one_value('"0.5"'), "not lists of numbers"),
    "a boolean as value": (one_value("true"), "not lists of numbers"),
    "null as value": (one_value("null"), "not lists of numbers"),
    "a list as value": (one_value("[1]"), "not lists of numbers"),
    "a mapping as value": (one_value("{}"), "not lists of numbers"),
    "NaN": (one_value("NaN"), "NaN or infinite"),
    "Infinity": (one_value("-Infinity"), "NaN or infinite"),
    "1e999": (one_value("1e999"), "NaN or infinite"),
    "too large for 32 bits": (one_value("1e39"), "NaN or infinite"),
    "an integer of 400 digits": (one_value("9" * 400), "not lists of numbers"),
    "an integer of 5,000 digits": (one_value("9" * 5000), "wrong JSON"),
    "vectors of two lengths": (one_vector([1.0] * (WIDTH - 1)), "different or wrong shapes"),
    "an empty vector": (one_vector([]), "different or wrong shapes"),
    "only empty vectors": (lambda texts: http(right([[]] * len(texts))), "wrong shapes"),
    "a matrix": (lambda texts: http(right([[[1.0]]] * len(texts))), "wrong shapes"),
    "a vector that is a number": (one_vector(1.0), "not lists of numbers"),
    "a vector that is a mapping": (one_vector({"0": 1.0}), "not lists of numbers"),
    "a vector that is null": (one_vector(None), "not lists of numbers"),
    "no base64": (one_vector("??"), "not lists of numbers"),
    "base64 of five bytes": (one_vector("AAAAAAA="), "not lists of numbers"),
    "base64 of NaN": (
        one_vector(base64.b64encode(np.full(WIDTH, np.nan, "<f4").tobytes()).decode()),
        "NaN or infinite",
    ),
    "2 GB are announced": (lambda texts: http(b"", length=2 * 10**9), "2,000,000,000 bytes"),
    "an endless answer": (
        lambda texts: endless(http(b"[", length=10**12)[:1], b" " * 2**20),
        "1,000,000,000,000 bytes",
    ),
    "endless chunks": (lambda texts: endless(chunked(), b"10000\r\n" + b" " * 65536 + b"\r\n"),
                       "more than [0-9,]+ bytes"),
    "an answer until the end of the connection": (
        lambda texts: endless([b"HTTP/1.1 200 OK\r\n\r\n"], b" " * 2**20),
        "more than [0-9,]+ bytes"),
    "a gzip bomb": (bomb(), "more than [0-9,]+ bytes"),
    "a deflate bomb": (bomb(coding="deflate"), "more than [0-9,]+ bytes"),
    "an unknown compression": (lambda texts: http(b"??", headers="content-encoding: br\r\n"), "br"),
    "a million dimensions": (
        lambda texts: http('{"data": [' + ",".join(
            [f'{{"embedding": [{"1," * 999_999}1]}}'] * len(texts)) + "]}"),
        "bytes"),
    "a redirect": (lambda texts: http(b"", "301 Moved", "location: /v2/embeddings\r\n"),
                   "redirects to /v2"),
    "a redirect to nowhere": (lambda texts: http(b"", "307 Moved"), "redirects"),
    "a teapot": (refused("418 Teapot", "no tea"), "418: no tea"),
    "a status without a reason": (lambda texts: http(b"", "499"), "499"),
    "the key is wrong": (refused("401 Unauthorized", f"wrong key {KEY}"), r"401: wrong key \*\*\*"),
    "an endless error": (
        lambda texts: endless(http(b"x", "400 Bad", length=10**12), b"x" * 2**20), "400: x+"),
    "an error that is a gzip bomb": (bomb(status="400 Bad"), "400"),
    "an error nested deeply": (lambda texts: http('{"error":' * 10_000, "400 Bad"), "400"),
    "an error that is a number": (lambda texts: http("3", "400 Bad"), "400: 3"),
    "an error that is not text": (lambda texts: http(b"\xff\x00\xfe", "400 Bad"), "400"),
    "escapes in an error": (refused("400 Bad", f"no {ESCAPES} {KEY}"), "400: no red"),
    "escapes in JSON": (lambda texts: http({ESCAPES: 1}), "another form"),
    "escapes in an address": (
        lambda texts: http(b"", "302 Found", "location: /\x1b[2J\x1b]0;x\x07there\r\n"),
        "redirects|lost"),
    "every text is too long": (
        refused("400 Bad", "maximum context length is 0 tokens"), "calls .* too long|too long"),
}  # fmt: skip


def clean(message):
    """Assert that a message is one short line of printable text without the key."""
    assert message.isprintable() and "\n" not in message, message
    assert "\x1b" not in message and "\u202e" not in message and KEY not in message
    assert len(message) < 1500


@pytest.mark.parametrize("way", WRONG)
def test_a_wrong_answer_is_one_message_and_no_vector(way):
    answer, words = WRONG[way]
    with misbehaving(answer) as server:
        made = encoder_of(server)
        tracemalloc.start()
        with use_account(make_account()) as account:
            with pytest.raises((ContractError, Postponed), match=words) as error:
                made.encode(TEXTS)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert account.vectors(made.family()).width is None, "something was stored"
        clean(str(error.value))
        assert server.url in str(error.value)
        assert peak < LARGE and server.sent < 4 * LARGE
        posts = [texts for texts in server.requests if texts != ["GET"]]
        assert len(posts) <= 12 * endpoint_delivery.ATTEMPTS
        server.answer = well
        with use_account(make_account()):
            expected = [text_vector(text, WIDTH) for text in TEXTS]
            np.testing.assert_allclose(encoder_of(server).encode(TEXTS), expected, atol=1e-6)


# -- connections that are lost ---------------------------------------------------------------

#: what is sent before the connection is closed; the request is repeated, then postponed
LOST = {
    "at once": lambda texts: [CLOSE],
    "in the headers": lambda texts: [well(texts)[0][:30], CLOSE],
    "after the headers": lambda texts: [well(texts)[0], CLOSE],
    "in the answer": lambda texts: [well(texts)[0], well(texts)[1][:-5], CLOSE],
    "in a chunk": lambda texts: [*chunked(b"100\r\n[1"), CLOSE],
    "before the last chunk": lambda texts: [*chunked(b"2\r\n[1\r\n"), CLOSE],
    "no size of a chunk": lambda texts: [*chunked(b"??\r\n[1\r\n"), CLOSE],
    "no HTTP": lambda texts: [b"\x16\x03\x01 hello\r\n\r\n", CLOSE],
    "a header without a name": lambda texts: [b"HTTP/1.1 200 OK\r\n: x\r\n\r\n[]", CLOSE],
    "two lengths": lambda texts: [
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n[]", CLOSE],
    "a length that is text": lambda texts: [b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n", CLOSE],
    "endless headers": lambda texts: endless([b"HTTP/1.1 200 OK\r\n"], b"x-y: " + b"z" * 8000),
    "a damaged gzip": lambda texts: http(
        compressed(well(texts)[1])[1][:-20] + b"?" * 20, headers="content-encoding: gzip\r\n"),
    "no gzip": lambda texts: http(well(texts)[1], headers="content-encoding: gzip\r\n"),
    "status 500": lambda texts: http("<html>", "500 Broken"),
    "status 503, escapes": lambda texts: http(ESCAPES, "503 Broken"),
    "status 429": lambda texts: http({}, "429 Slow", "retry-after: 0\r\n"),
    "status 429, a wrong pause": lambda texts: http({}, "429 Slow", "retry-after: soon\r\n"),
    "status 429, for a year": lambda texts: http({}, "429 Slow", "retry-after: 31536000\r\n"),
    "status 408": lambda texts: http({}, "408 Slow"),
}  # fmt: skip


@pytest.mark.parametrize("way", LOST)
@pytest.mark.parametrize("resets", [False, True], ids=["closed", "reset"])
def test_a_lost_answer_is_requested_again_a_few_times_then_postponed(way, resets):
    with misbehaving(LOST[way]) as server:
        server.resets = resets
        with use_account(make_account()) as account:
            with pytest.raises(Postponed, match="--resume") as error:
                encoder_of(server).encode(TEXTS)
            assert account.vectors(encoder_of(server).family()).width is None
        clean(str(error.value))
        assert 1 <= len(server.requests) <= endpoint_delivery.ATTEMPTS
        server.answer, server.resets = well, False
        with use_account(make_account()):
            expected = [text_vector(text, WIDTH) for text in TEXTS]
            np.testing.assert_allclose(encoder_of(server).encode(TEXTS), expected, atol=1e-6)


def slowly(server_of, parts):
    """Send the parts of an answer a tenth of a second apart."""
    for part in parts:
        yield part
        server_of[0].ended.wait(0.1)


@pytest.mark.parametrize("how", ["a byte at a time", "headers", "nothing", "continue"])
def test_an_answer_must_be_complete_in_time(how):
    """A byte now and then keeps a connection alive; the answer would be right after a minute."""
    servers = []

    def answer(texts):
        head, body = well(texts)
        if how == "nothing":
            servers[0].ended.wait(60)
            return [head, body]
        if how == "headers":
            lines = [b"HTTP/1.1 200 OK\r\n", *[b"x-%d: y\r\n" % i for i in range(600)]]
            return slowly(servers, [*lines, head.partition(b"\r\n")[2], body])
        if how == "continue":
            return slowly(servers, [b"HTTP/1.1 102 Processing\r\n\r\n"] * 600 + [head, body])
        padded = head.replace(b"content-length: ", b"content-length: 600") + b""
        size = len(body) + 600
        padded = head.replace(b"content-length: %d" % len(body), b"content-length: %d" % size)
        return slowly(servers, [padded, *[b" "] * 600, body])

    with misbehaving(answer) as server, use_account(make_account()):
        servers.append(server)
        with pytest.raises(Postponed, match="no complete answer within 0.3 seconds") as error:
            encoder_of(server, timeout=0.3).encode(TEXTS)
        clean(str(error.value))
        assert len(server.requests) == endpoint_delivery.ATTEMPTS


# -- refusals of too long texts --------------------------------------------------------------


def too_long(texts):
    return http({"error": {"message": "This model's maximum context length is 5 tokens"}}, "400 No")


def test_a_server_that_calls_every_text_too_long_gets_few_requests():
    texts = [f"text number {i} of many" for i in range(500)]
    with misbehaving(too_long) as server, use_account(make_account()):
        with pytest.raises(ContractError, match="too large|too long") as error:
            encoder_of(server, batch_texts=256).encode(texts)
        clean(str(error.value))
        first = len(server.requests)
        with pytest.raises(ContractError, match="too large|too long"):
            encoder_of(server, batch_texts=256).encode(texts[::-1])
    assert first <= endpoint_delivery.REFUSALS + 16
    assert len(server.requests) == first


def test_one_text_that_no_shortening_helps_is_named():
    texts = [f"{i} is the number of this text" for i in range(6)]

    def answer(sent):
        return too_long(sent) if any(text.startswith("4") for text in sent) else well(sent)

    with misbehaving(answer) as server, use_account(make_account()) as account:
        with pytest.raises(ContractError, match="'4 is the .*too long") as error:
            encoder_of(server, concurrency=1, batch_texts=2).encode(texts)
        clean(str(error.value))
        assert len(server.requests) <= endpoint_delivery.SHORTENINGS + 12
        assert account.vectors(encoder_of(server).family()).width == WIDTH


# -- right vectors, wrong facts --------------------------------------------------------------

#: what a server may count as tokens; none of it is a number of tokens
COUNTS = ['"12"', '"many"', "NaN", "1e999", "-Infinity", "-5", "true", "[7]", '{"a": 1}', "9" * 400]


@pytest.mark.parametrize("count", [*COUNTS, "1e12"])
def test_a_wrong_number_of_tokens_is_estimated_and_said(count):
    def answer(texts):
        body = json.dumps(right(vectors_of(texts), "HERE")).replace('"HERE"', count)
        return http(body)

    with misbehaving(answer) as server, use_account(make_account(budget=1.0)) as account:
        made = encoder_of(server, price_per_million_tokens=1.0)
        with account.services.counting() as used:
            assert made.encode(TEXTS).shape == (6, WIDTH)
        facts = used.facts()
        size = sum(map(len, TEXTS))
        assert facts["tokens_estimated"] and facts["tokens"] == round(size / 4)
        assert facts["price"] == pytest.approx(size / 4 * 1e-6, rel=0.2)
        assert any("which cannot be" in remark for remark in facts["remarks"])
        for remark in facts["remarks"]:
            clean(remark)
        # for the budget, each request counts with the most that it may have cost
        spent = account.database.read(lambda c: c.execute("SELECT spent FROM runs").fetchall(), [])
        assert spent == [(pytest.approx((size + 8 * len(TEXTS)) * 1e-6),)]
        account.database.close()


@pytest.mark.parametrize("usage", ["null", "[]", '"none"', "3", "true", '{"total_tokens": null}'])
def test_usage_of_another_form_never_loses_a_paid_vector(usage):
    def answer(texts):
        body = json.dumps({**right(vectors_of(texts)), "usage": "HERE"})
        return http(body.replace('"HERE"', usage))

    with misbehaving(answer) as server, use_account(make_account()) as account:
        with account.services.counting() as used:
            assert encoder_of(server).encode(TEXTS).shape == (6, WIDTH)
        assert used.facts()["tokens_estimated"]
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("vectors", "remark"),
    [
        (lambda texts: [[0.0] * WIDTH for _ in texts], "6 of 6 vectors of the endpoint are zero"),
        (
            lambda texts: [[0.0] * WIDTH, *vectors_of(texts[1:])],
            "2 of 6 vectors of the endpoint are zero",
        ),
        (
            lambda texts: [[float(len(text))] * WIDTH for text in texts],
            "6 of 6 vectors of the endpoint are constant",
        ),
        (lambda texts: vectors_of(["same"] * len(texts)), "all 6 texts got the same vector"),
    ],
)
def test_conspicuous_vectors_are_used_and_said(vectors, remark):
    with misbehaving(lambda texts: http(right(vectors(texts)))) as server:
        with current_services().counting() as used:
            assert encoder_of(server).encode(TEXTS).shape == (6, WIDTH)
        assert any(remark in found for found in used.facts()["remarks"])
        with current_services().counting() as used:  # also when they come from the cache
            encoder_of(server).encode(TEXTS)
        assert any(remark in found for found in used.facts()["remarks"])


def test_vectors_of_another_length_are_refused_and_the_first_ones_stay():
    lengths = itertools.chain([WIDTH], itertools.repeat(WIDTH + 1))

    def answer(texts):
        return http(right(vectors_of(texts, next(lengths))))

    with misbehaving(answer) as server, use_account(make_account()) as account:
        with pytest.raises(ContractError, match="9 dimensions, and of 8 earlier"):
            encoder_of(server, concurrency=1).encode(TEXTS)
        table = account.vectors(encoder_of(server).family())
        assert table.width == WIDTH and len(table._places) == 3


def test_a_list_of_models_with_escapes_is_printed_without_them():
    def answer(texts):
        if texts == ["GET"]:
            return http({"data": [{"id": f"m{ESCAPES}"}, {"id": "x" * 10_000}]})
        return refused("404 No", "unknown model")(texts)

    with misbehaving(answer) as server, use_account(make_account()):
        with pytest.raises(ContractError, match="It has: mred") as error:
            encoder_of(server).encode(TEXTS)
        clean(str(error.value))


def test_an_endless_list_of_models_is_not_read_to_its_end():
    def answer(texts):
        if texts == ["GET"]:
            return endless(http(b"{", length=10**12), b" " * 2**20)
        return refused("404 No", "unknown model")(texts)

    with misbehaving(answer) as server, use_account(make_account()):
        with pytest.raises(ContractError, match="404: unknown model"):
            encoder_of(server, timeout=5.0).encode(TEXTS)
        assert server.sent < 4 * LARGE
