from __future__ import annotations

import hashlib
import os
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


# -- broken off and continued -----------------------------------------------------------------

LONG = bytes(range(256)) * 400  # 102,400 bytes
LONG_SHA = hashlib.sha256(LONG).hexdigest()
CUT = 70_000
PART = f".{LONG_SHA[:16]}.part"


def kept(target: Path) -> int:
    """Return how many bytes are kept of a download that broke off."""
    return (target.parent / PART).stat().st_size


def test_a_download_goes_on_where_it_broke_off(stub, target):
    address = stub.put("/f", stub.ranged(LONG, CUT), stub.ranged(LONG))
    download(address, target, LONG_SHA)
    assert target.read_bytes() == LONG and left_over(target) == ["file.csv"]
    first, second = stub.ranges
    begin = int(second.removeprefix("bytes=").removesuffix("-"))
    assert first == "" and CUT - transfer.CHUNK < begin <= CUT


def test_a_later_call_goes_on_too(stub, target, monkeypatch):
    monkeypatch.setattr(transfer, "PATIENCE", replace(transfer.PATIENCE, tries=1))
    address = stub.put("/f", stub.ranged(LONG, CUT), stub.ranged(LONG))
    with pytest.raises(DataError, match="ended before the whole file had come"):
        download(address, target, LONG_SHA)
    assert not target.exists() and left_over(target) == [PART]
    come = kept(target)
    download(address, target, LONG_SHA)
    assert target.read_bytes() == LONG and left_over(target) == ["file.csv"]
    assert stub.ranges == ["", f"bytes={come}-"]


def test_another_address_goes_on_too(stub, target, monkeypatch):
    monkeypatch.setattr(transfer, "PATIENCE", replace(transfer.PATIENCE, tries=1))
    with pytest.raises(DataError):
        download(stub.put("/one", stub.ranged(LONG, CUT)), target, LONG_SHA)
    download(stub.put("/two", stub.ranged(LONG)), target.with_name("other"), LONG_SHA)
    assert target.with_name("other").read_bytes() == LONG
    assert stub.ranges[1].startswith("bytes=")


def test_a_server_that_knows_no_ranges_sends_all_again(stub, target):
    cut = stub.body(LONG[:CUT], announced=len(LONG))
    download(stub.put("/f", cut, stub.body(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and len(stub.asked) == 2


def test_a_wrong_beginning_is_thrown_away(stub, target, monkeypatch):
    monkeypatch.setattr(transfer, "PATIENCE", replace(transfer.PATIENCE, tries=1))
    with pytest.raises(DataError):
        download(stub.put("/bad", stub.ranged(bytes(len(LONG)), CUT)), target, LONG_SHA)
    assert kept(target)
    download(stub.put("/good", stub.ranged(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and left_over(target) == ["file.csv"]
    assert stub.asked == ["/bad", "/good", "/good"] and stub.ranges[2] == ""


def test_a_wrong_file_is_asked_for_twice_only_if_it_was_continued(stub, target, monkeypatch):
    monkeypatch.setattr(transfer, "PATIENCE", replace(transfer.PATIENCE, tries=1))
    wrong = stub.put("/bad", stub.ranged(bytes(len(LONG)), CUT), stub.ranged(bytes(len(LONG))))
    with pytest.raises(DataError, match="ended before"):
        download(wrong, target, LONG_SHA)
    with pytest.raises(DataError, match="was not kept"):
        download(wrong, target, LONG_SHA)
    assert len(stub.asked) == 3 and left_over(target) == []


def test_a_beginning_longer_than_the_file_is_thrown_away(stub, target):
    target.parent.mkdir()
    (target.parent / PART).write_bytes(LONG + b"more")
    download(stub.put("/f", stub.ranged(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and left_over(target) == ["file.csv"]
    assert stub.ranges == [f"bytes={len(LONG) + 4}-", ""]


def test_a_whole_part_is_only_moved(stub, target):
    target.parent.mkdir()
    (target.parent / PART).write_bytes(LONG)
    download(stub.put("/f", stub.ranged(LONG)), target, LONG_SHA)
    assert target.read_bytes() == LONG and stub.asked == []


def test_an_answer_that_begins_elsewhere_is_not_appended(stub, target):
    def elsewhere(request) -> None:
        request.headers.replace_header("Range", "bytes=0-")
        stub.ranged(LONG)(request)

    target.parent.mkdir()
    (target.parent / PART).write_bytes(LONG[:CUT])
    download(stub.put("/f", elsewhere), target, LONG_SHA)
    assert target.read_bytes() == LONG and len(stub.asked) == 1


def test_the_part_of_a_process_that_was_killed_is_continued_later(stub, target):
    target.parent.mkdir()
    other = target.parent / f".{LONG_SHA[:16]}.123-abc.part"
    other.write_bytes(LONG[:CUT])
    with transfer.part_file(target.parent, LONG_SHA) as part:
        assert not part.exists()  # it may still be at work
    os.utime(other, (1, 1))
    download(stub.put("/f", stub.ranged(LONG)), target, LONG_SHA)
    assert left_over(target) == ["file.csv"] and stub.ranges == [f"bytes={CUT}-"]


def test_two_at_once_have_a_part_each(target):
    target.parent.mkdir()
    (target.parent / PART).write_bytes(b"begun")
    with transfer.part_file(target.parent, LONG_SHA) as one:
        with transfer.part_file(target.parent, LONG_SHA) as other:
            assert one != other and one.read_bytes() == b"begun" and not other.exists()


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
