"""What is sent under which condition: tags, gzip, ranges, HEAD."""

import gzip
import json

import pytest

from karat.serve.replies import CSV, Refused, Reply, json_reply, plain, settle

BODY = bytes(range(100)) * 30


def sent(method="GET", reply=None, **asked):
    headers = {name.replace("_", "-"): value for name, value in asked.items()}
    return settle(reply or Reply(BODY, CSV), method, headers)


def test_all_of_it_comes_with_its_size_and_a_tag():
    found = sent()
    assert (found.status, found.body) == (200, BODY)
    assert found.headers["content-length"] == "3000"
    assert found.headers["etag"] == sent().headers["etag"]
    assert found.headers["etag"] != sent(reply=Reply(BODY + b"x")).headers["etag"]
    assert found.headers["vary"] == "Accept, Accept-Encoding"
    assert found.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("shape", ["{}", "W/{}", '"other", {}', "*"])
def test_who_has_it_gets_nothing(shape):
    tag = sent().headers["etag"]
    found = sent(if_none_match=shape.format(tag))
    assert (found.status, found.body) == (304, b"")
    assert found.headers["etag"] == tag
    assert "content-length" not in found.headers


def test_who_has_the_packed_one_gets_nothing_either():
    packed = sent(accept_encoding="gzip").headers["etag"]
    assert packed != sent().headers["etag"]
    assert sent(accept_encoding="gzip", if_none_match=packed).status == 304


def test_another_tag_does_not_count():
    assert sent(if_none_match='"other"').status == 200


def test_gzip_only_for_who_takes_it_and_what_is_worth_it():
    found = sent(accept_encoding="br, gzip;q=0.5")
    assert found.headers["content-encoding"] == "gzip"
    assert gzip.decompress(found.body) == BODY
    assert int(found.headers["content-length"]) == len(found.body) < len(BODY)
    assert "content-encoding" not in sent(accept_encoding="gzip;q=0").headers
    assert "content-encoding" not in sent(reply=Reply(b"short"), accept_encoding="gzip").headers


def test_head_has_the_same_headers_and_no_body():
    for asked in ({}, {"accept_encoding": "gzip"}, {"range": "bytes=0-9"}):
        whole, head = sent(**asked), sent("HEAD", **asked)
        assert head.body == b""
        assert (head.status, head.headers) == (whole.status, whole.headers)


@pytest.mark.parametrize(
    ("asked", "told", "part"),
    [
        ("bytes=0-9", "bytes 0-9/3000", BODY[:10]),
        ("bytes=2990-", "bytes 2990-2999/3000", BODY[2990:]),
        ("bytes=-5", "bytes 2995-2999/3000", BODY[-5:]),
        ("bytes=2990-9999", "bytes 2990-2999/3000", BODY[2990:]),
        ("bytes=-9999", "bytes 0-2999/3000", BODY),
    ],
)
def test_a_range(asked, told, part):
    found = sent(range=asked, accept_encoding="gzip")
    assert (found.status, found.body) == (206, part)
    assert found.headers["content-range"] == told
    assert found.headers["content-length"] == str(len(part))
    assert "content-encoding" not in found.headers


@pytest.mark.parametrize("asked", ["bytes=3000-", "bytes=5000-6000", "bytes=-0"])
def test_a_range_that_is_not_there(asked):
    found = sent(range=asked)
    assert (found.status, found.body) == (416, b"")
    assert found.headers["content-range"] == "bytes */3000"


@pytest.mark.parametrize(
    "asked", ["bytes=9-1", "bytes=-", "lines=0-1", "bytes=0-1,5-6", "bytes=a-b"]
)
def test_what_is_no_range_is_passed_over(asked):
    assert (sent(range=asked).status, sent(range=asked).body) == (200, BODY)


def test_a_range_of_what_has_changed_is_all_of_it():
    assert sent(range="bytes=0-9", if_range='"old"').status == 200
    assert sent(range="bytes=0-9", if_range=sent().headers["etag"]).status == 206


def test_a_file_is_sent_in_parts(tmp_path):
    path = tmp_path / "p.csv"
    path.write_bytes(BODY)
    found = sent(reply=Reply(path, CSV), range="bytes=10-19")
    assert (found.status, found.body, found.start, found.length) == (206, path, 10, 10)
    tag = sent(reply=Reply(path, CSV)).headers["etag"]
    path.write_bytes(BODY + b"x")
    assert sent(reply=Reply(path, CSV)).headers["etag"] != tag


def test_json_has_no_nan_and_nothing_but_ascii():
    told = {"a": float("inf"), "b": float("nan"), "c": ["\ud800", "é", "\u2028"], ("x", 1): None}
    body = json_reply(told).body
    assert body.isascii()
    assert json.loads(body) == {"a": None, "b": None, "c": ["\ud800", "é", "\u2028"], "x · 1": None}


def test_plain_values_of_numpy_and_pandas():
    import numpy as np
    import pandas as pd

    told = {"n": np.int64(3), "x": np.float64("nan"), "v": np.array([1, 2]), "na": pd.NA}
    assert plain(told) == {"n": 3, "x": None, "v": [1, 2], "na": None}


def test_a_refusal_is_json_that_nobody_keeps():
    found = settle(Refused(418, "no", "do", {"x-a": "b"}).reply(), "GET", {"if-none-match": "*"})
    assert found.status == 418
    assert json.loads(found.body) == {"error": "no", "hint": "do"}
    assert found.headers["cache-control"] == "no-store"
    assert found.headers["x-a"] == "b"
