from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path

import pytest
import requests

from karat.data import transfer
from karat.data.transfer import download
from karat.errors import DataError

CONTENT = b"a,b\n1,2\n" * 1000
SHA = hashlib.sha256(CONTENT).hexdigest()
LONG = bytes(range(256)) * 400  # 102,400 bytes
LONG_SHA = hashlib.sha256(LONG).hexdigest()
CUT = 70_000
PARTIAL = f".{LONG_SHA[:16]}.part"


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "file.csv"


@pytest.fixture
def one_attempt(monkeypatch):
    monkeypatch.setattr(transfer, "ATTEMPTS", 1)


@pytest.fixture
def partial(target) -> Path:
    """Return the partial file of an earlier download."""
    target.parent.mkdir()
    path = target.parent / PARTIAL
    path.write_bytes(LONG[:CUT])
    return path


def files(target: Path) -> list[str]:
    return [path.name for path in target.parent.iterdir()]


@pytest.mark.parametrize("sha256", [SHA, None])
def test_download_writes_the_file_and_nothing_else(stub, target, sha256):
    download(stub.put("/f", stub.body(CONTENT)), target, sha256)
    assert target.read_bytes() == CONTENT and files(target) == ["file.csv"]
    if os.name == "posix":
        other = target.with_name("other")
        other.touch()
        assert stat.S_IMODE(target.stat().st_mode) == stat.S_IMODE(other.stat().st_mode)


@pytest.mark.parametrize(
    ("answers", "requests_made", "word"),
    [
        (lambda stub: [stub.status(404)], 1, "/f: .*404"),
        (lambda stub: [stub.status(502)], 3, "502"),
        (lambda stub: [stub.body(CONTENT[:100], announced=len(CONTENT))], 3, "complete"),
        (lambda stub: [stub.body(b"other")], 1, SHA),
    ],
)
def test_failed_downloads_leave_no_files(stub, target, answers, requests_made, word):
    with pytest.raises(DataError, match=word):
        download(stub.put("/f", *answers(stub)), target, SHA)
    assert len(stub.asked) == requests_made and files(target) == []


@pytest.mark.parametrize(
    "first",
    [
        lambda stub: [stub.body(CONTENT[:100], announced=len(CONTENT))],
        lambda stub: [stub.status(503), stub.status(500)],
    ],
)
def test_temporary_failures_are_retried(stub, target, first):
    download(stub.put("/f", *first(stub), stub.body(CONTENT)), target, SHA)
    assert target.read_bytes() == CONTENT


# -- resuming -----------------------------------------------------------------------------------


def test_broken_connection_is_resumed(stub, target):
    download(stub.put("/f", stub.ranged(LONG, CUT), stub.ranged(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and files(target) == ["file.csv"]
    first, second = stub.ranges
    begin = int(second.removeprefix("bytes=").removesuffix("-"))
    assert first == "" and CUT - transfer.CHUNK < begin <= CUT


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


def test_server_without_ranges_sends_the_whole_file(stub, target, partial):
    download(stub.put("/f", stub.body(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and stub.ranges == [f"bytes={CUT}-"]


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


def test_answer_with_another_range_is_not_appended(stub, target, partial):
    def from_the_start(request) -> None:
        request.headers.replace_header("Range", "bytes=0-")
        stub.ranged(LONG)(request)

    download(stub.put("/f", from_the_start), target, LONG_SHA)
    assert target.read_bytes() == LONG and len(stub.asked) == 1


# -- errors in one line -------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [0, 100])
def test_silent_server_times_out(stub, target, monkeypatch, one_attempt, sent):
    monkeypatch.setattr(transfer, "TIMEOUT", (60.0, 0.1))

    def stall(request) -> None:
        if sent:
            stub.body(CONTENT[:sent], announced=len(CONTENT))(request)
            request.wfile.flush()
        stub.slow(0.5, stub.body(CONTENT))(request)

    with pytest.raises(DataError, match="timed out"):
        download(stub.put("/f", stall), target, SHA)


def test_unreachable_host_is_not_contacted_again_at_once(stub, target, monkeypatch):
    stub.server.server_close()
    with pytest.raises(DataError, match=f"/f: {transfer.UNREACHABLE}"):
        download(stub.address + "/f", target, SHA)
    monkeypatch.setattr(transfer, "session", lambda _: pytest.fail("contacted again"))
    with pytest.raises(DataError, match=transfer.UNREACHABLE):
        download(stub.address + "/f", target, SHA)


def test_file_above_the_size_limit_is_refused(stub, target, monkeypatch):
    monkeypatch.setattr(transfer, "MAX_BYTES", 100)
    with pytest.raises(DataError, match="100 bytes"):
        download(stub.put("/f", stub.body(CONTENT)), target, SHA)
    assert files(target) == []


def test_unsupported_url_is_shown_without_its_password(target):
    with pytest.raises(DataError, match=r"//h\.example/f"):
        download("ftp://me:secret@h.example/f", target, SHA)


def test_untrusted_certificate_names_the_setting():
    with pytest.raises(DataError, match="REQUESTS_CA_BUNDLE"):
        with transfer.readable_errors("https://h.example"):
            raise requests.exceptions.SSLError("certificate verify failed")


def test_certificate_file_is_used(target, monkeypatch):
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    assert transfer.session("bundle.pem").verify == "bundle.pem"
    assert transfer.session().verify is True
    with pytest.raises(DataError, match="no.pem"):
        download("https://127.0.0.1:1/f", target, SHA, certificate="no.pem")
