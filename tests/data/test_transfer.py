from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest
import requests

from karat.data import transfer
from karat.data.transfer import download
from karat.errors import DataError

CONTENT = b"a,b\n1,2\n" * 1000
SHA = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "file.csv"


def left_over(target: Path) -> list[str]:
    return [path.name for path in target.parent.iterdir()]


def test_a_file_is_written_whole(stub, target):
    download(stub.put("/f", stub.body(CONTENT)), target, SHA)
    assert target.read_bytes() == CONTENT
    assert left_over(target) == ["file.csv"]


def test_404_is_said_once_and_not_tried_again(stub, target):
    with pytest.raises(DataError, match="/f: the server answered 404 .*there is no such file"):
        download(stub.put("/f", stub.status(404)), target, SHA)
    assert stub.asked == ["/f"]
    assert left_over(target) == []


def test_a_short_body_is_tried_again_then_told(stub, target):
    address = stub.put("/f", stub.body(CONTENT[:100], announced=len(CONTENT)))
    with pytest.raises(DataError, match="ended before the whole file had come"):
        download(address, target, SHA)
    assert len(stub.asked) == 3
    assert left_over(target) == []


def test_a_short_body_then_a_whole_one(stub, target):
    cut = stub.body(CONTENT[:100], announced=len(CONTENT))
    download(stub.put("/f", cut, stub.body(CONTENT)), target, SHA)
    assert target.read_bytes() == CONTENT


def test_a_wrong_file_is_not_kept(stub, target):
    with pytest.raises(DataError, match=f"expected {SHA[:16]}…; .* was not kept"):
        download(stub.put("/f", stub.body(b"other")), target, SHA)
    assert stub.asked == ["/f"]
    assert left_over(target) == []


def test_a_busy_server_is_asked_again(stub, target):
    download(stub.put("/f", stub.status(503), stub.status(500), stub.body(CONTENT)), target, SHA)
    assert target.read_bytes() == CONTENT
    assert len(stub.asked) == 3


def test_a_broken_server_is_given_up(stub, target):
    with pytest.raises(DataError, match="answered 502"):
        download(stub.put("/f", stub.status(502)), target, SHA)
    assert len(stub.asked) == 3


def test_a_silent_server_times_out(stub, target, monkeypatch):
    monkeypatch.setattr(transfer, "PATIENCE", replace(transfer.PATIENCE, read=0.1, tries=2))
    with pytest.raises(DataError, match=r"no answer in time \(2 tries\)"):
        download(stub.put("/f", stub.slow(0.5, stub.body(CONTENT))), target, SHA)
    assert len(stub.asked) == 2


def test_a_server_that_stops_in_the_middle_times_out(stub, target, monkeypatch):
    monkeypatch.setattr(transfer, "PATIENCE", replace(transfer.PATIENCE, read=0.1, tries=1))

    def stuck(request) -> None:
        stub.body(CONTENT[:100], announced=len(CONTENT))(request)
        request.wfile.flush()
        stub.slow(0.5, lambda request: None)(request)

    with pytest.raises(DataError, match="no answer in time"):
        download(stub.put("/f", stuck), target, SHA)


def test_nobody_there(stub, target):
    stub.server.server_close()
    with pytest.raises(DataError, match="/f: cannot connect"):
        download(stub.address + "/f", target, SHA)


def test_too_large_is_refused(stub, target, monkeypatch):
    monkeypatch.setattr(transfer, "PATIENCE", replace(transfer.PATIENCE, bytes=100))
    with pytest.raises(DataError, match="more than 100 bytes"):
        download(stub.put("/f", stub.body(CONTENT)), target, SHA)
    assert left_over(target) == []


def test_a_strange_address_is_one_message(target):
    with pytest.raises(DataError, match="ftp://h.example/f: InvalidSchema"):
        download("ftp://me:secret@h.example/f", target, SHA)


def test_an_untrusted_certificate_says_what_to_set(target):
    def refuse() -> None:
        raise requests.exceptions.SSLError("certificate verify failed")

    with pytest.raises(DataError, match="set REQUESTS_CA_BUNDLE"):
        transfer.patiently(refuse, "https://h.example")


def test_the_certificate_of_pip_is_used():
    with transfer.session("bundle.pem") as http:
        assert http.verify == "bundle.pem"
    with transfer.session(None) as http:
        assert http.verify is True


def test_a_certificate_that_is_not_there_is_told(target, monkeypatch):
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(DataError, match="certificate bundle, invalid path: no.pem"):
        download("https://127.0.0.1:1/f", target, SHA, certificate="no.pem")
