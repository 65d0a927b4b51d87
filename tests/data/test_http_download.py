"""Downloads: complete files only, resumed and retried."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
import requests

from karat.data import http_download
from karat.data.http_download import download
from karat.errors import DataError

from .archive_data import sha

TABLE = b"a,b\n1,2\n" * 1000
TABLE_SHA = sha(TABLE)
LONG = bytes(range(256)) * 400  # 102,400 bytes
LONG_SHA = sha(LONG)
CUT = 70_000
PARTIAL = f".{LONG_SHA[:16]}.part"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "file.csv"


@pytest.fixture
def one_attempt(monkeypatch):
    monkeypatch.setattr(http_download, "ATTEMPTS", 1)


@pytest.fixture
def partial(target) -> Path:
    """Return the partial file of an earlier download."""
    target.parent.mkdir()
    path = target.parent / PARTIAL
    path.write_bytes(LONG[:CUT])
    return path


def files(target: Path) -> list[str]:
    return [path.name for path in target.parent.iterdir()]


@pytest.mark.parametrize("sha256", [TABLE_SHA, None])
def test_download_writes_the_file_and_nothing_else(stub, target, sha256):
    download(stub.put("/f", stub.body(TABLE)), target, sha256)
    assert target.read_bytes() == TABLE and files(target) == ["file.csv"]
    if os.name == "posix":
        other = target.with_name("other")
        other.touch()
        assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


@pytest.mark.parametrize(
    ("answers", "requests_made", "word"),
    [
        (lambda stub: [stub.status(404)], 1, "/f: .*404"),
        (lambda stub: [stub.status(502)], 3, "502"),
        (lambda stub: [stub.body(TABLE[:100], announced=len(TABLE))], 3, "complete"),
        (lambda stub: [stub.body(b"other")], 1, TABLE_SHA),
        (lambda stub: [stub.body(TABLE + b"too long")], 1, "8000 bytes"),
    ],
)
def test_failed_downloads_leave_no_files(stub, target, monkeypatch, answers, requests_made, word):
    monkeypatch.setattr(http_download, "MAX_BYTES", len(TABLE))
    with pytest.raises(DataError, match=word):
        download(stub.put("/f", *answers(stub)), target, TABLE_SHA)
    assert len(stub.asked) == requests_made and files(target) == []


def test_temporary_failures_are_retried(stub, target):
    answers = stub.body(TABLE[:100], announced=len(TABLE)), stub.status(503), stub.status(500)
    download(stub.put("/f", *answers, stub.body(TABLE)), target, TABLE_SHA)
    assert target.read_bytes() == TABLE


def test_broken_connection_is_resumed(stub, target):
    download(stub.put("/f", stub.ranged(LONG, CUT), stub.ranged(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and files(target) == ["file.csv"]
    first, second = stub.ranges
    begin = int(second.removeprefix("bytes=").removesuffix("-"))
    assert first == "" and CUT - http_download.TRANSFER_CHUNK < begin <= CUT


def test_later_call_resumes_also_from_another_url(stub, target, one_attempt):
    with pytest.raises(DataError):
        download(stub.put("/one", stub.ranged(LONG, CUT)), target, LONG_SHA)
    assert files(target) == [PARTIAL]
    size = (target.parent / PARTIAL).stat().st_size
    download(stub.put("/two", stub.ranged(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and files(target) == ["file.csv"]
    assert stub.ranges == ["", f"bytes={size}-"]


def test_without_a_sha256_nothing_is_kept_for_a_later_call(stub, target, one_attempt):
    with pytest.raises(DataError):
        download(stub.put("/f", stub.ranged(LONG, CUT)), target)
    assert files(target) == []


@pytest.mark.parametrize("ranges", [False, True])
def test_answer_without_the_requested_range_is_not_appended(stub, target, partial, ranges):
    def from_the_start(request) -> None:
        request.headers.replace_header("Range", "bytes=0-")
        stub.ranged(LONG)(request)

    download(stub.put("/f", from_the_start if ranges else stub.body(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and len(stub.asked) == 1
    assert ranges or stub.ranges == [f"bytes={CUT}-"]


@pytest.mark.parametrize(
    ("begun", "attempts"), [(bytes(CUT), 2), (LONG + b"more", 2), (LONG[:CUT], 1)]
)
def test_wrong_partial_file_is_discarded(stub, target, partial, begun, attempts):
    partial.write_bytes(begun)
    download(stub.put("/f", stub.ranged(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and files(target) == ["file.csv"]
    assert stub.ranges == [f"bytes={len(begun)}-", ""][:attempts]


def test_wrong_file_is_downloaded_again_once_if_it_was_resumed(stub, target, partial):
    with pytest.raises(DataError, match=LONG_SHA):
        download(stub.put("/bad", stub.ranged(bytes(len(LONG)))), target, LONG_SHA)
    assert len(stub.asked) == 2 and files(target) == []


@pytest.mark.parametrize("sent", [0, 100])
def test_silent_server_times_out(stub, target, monkeypatch, one_attempt, sent):
    monkeypatch.setattr(http_download, "TIMEOUT", (60.0, 0.1))

    def stall(request) -> None:
        if sent:
            stub.body(TABLE[:sent], announced=len(TABLE))(request)
            request.wfile.flush()
        stub.slow(0.5, stub.body(TABLE))(request)

    with pytest.raises(DataError, match="timed out"):
        download(stub.put("/f", stall), target, TABLE_SHA)


def test_unreachable_host_is_not_contacted_again_at_once(stub, target, monkeypatch):
    stub.server.server_close()
    with pytest.raises(DataError, match=f"/f: {http_download.UNREACHABLE}"):
        download(stub.address + "/f", target, TABLE_SHA)
    monkeypatch.setattr(http_download, "session", lambda _: pytest.fail("contacted again"))
    with pytest.raises(DataError, match=http_download.UNREACHABLE):
        download(stub.address + "/f", target, TABLE_SHA)


def test_unsupported_urls_and_certificates(target, monkeypatch):
    with pytest.raises(DataError, match=r"//h\.example/f"):  # without the password
        download("ftp://me:secret@h.example/f", target, TABLE_SHA)
    with pytest.raises(DataError, match="REQUESTS_CA_BUNDLE"):
        with http_download.readable_errors("https://h.example"):
            raise requests.exceptions.SSLError("certificate verify failed")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    assert http_download.session("bundle.pem").verify == "bundle.pem"
    assert http_download.session().verify is True
    with pytest.raises(DataError, match="no.pem"):
        download("https://127.0.0.1:1/f", target, TABLE_SHA, certificate="no.pem")
