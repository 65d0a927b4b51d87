from __future__ import annotations

import hashlib
import io
import json
import os
import socket
import subprocess
import sys
import zipfile
from datetime import UTC, datetime
from pathlib import Path

import pytest

from karat.data import download as module
from karat.data.download import fetch, fetch_first, offline
from karat.errors import DataError, Unavailable
from karat.folders import cache_folder

CONTENT = b"a,b\n1,2\n"
ABOUT = {"licence": "CC0-1.0", "citation": "Me (2020)", "homepage": "https://h.example"}
WHEEL = "toy_data-1.0-py3-none-any.whl"


def wheel() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr("toy_data/toy.csv", CONTENT)
        opened.writestr("toy_data/texts/yes/1.txt", "one")
    return packed.getvalue()


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def index(stub, monkeypatch) -> dict[str, str]:
    """Serve a package index with one wheel; return the source of a file in it."""
    content = wheel()
    monkeypatch.setenv("PIP_INDEX_URL", stub.index("toy-data", WHEEL))
    monkeypatch.setenv("PIP_CERT", "")
    stub.put(f"/files/{WHEEL}", stub.body(content))
    return {
        "index": "toy_data",
        "file": WHEEL,
        "sha256": sha(content),
        "member": "toy_data/toy.csv",
    }


@pytest.fixture
def no_socket(monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "create_connection", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def files_in(folder: Path) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file())


# -- where the cache is ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "setting", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/x"}, "/x/karat"),
        ("linux", {}, "~/.cache/karat"),
        ("darwin", {}, "~/Library/Caches/karat"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/karat"),
        ("win32", {}, "~/AppData/Local/karat"),
        ("linux", {"KARAT_CACHE": "~/mine"}, "~/mine"),
    ],
)
def test_the_cache_folder_of_each_platform(monkeypatch, platform, setting, expected):
    for name in ("KARAT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cache_folder() == Path(expected).expanduser()


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("yes", True), ("", False), ("0", False), ("No", False)]
)
def test_the_offline_switch(monkeypatch, value, expected):
    monkeypatch.setenv("KARAT_OFFLINE", value)
    assert offline() is expected


# -- one source -----------------------------------------------------------------------------


def test_a_plain_file_from_an_address(stub):
    source = {"url": stub.put("/d/toy.csv", stub.body(CONTENT)), "sha256": sha(CONTENT)}
    path = fetch(source, {"name": "toy", **ABOUT})
    assert path == cache_folder() / "data" / sha(CONTENT)[:16] / "toy.csv"
    assert path.read_bytes() == CONTENT
    assert fetch(source) == path
    assert stub.asked == ["/d/toy.csv"]


def test_the_sidecar_says_whose_it_is(stub):
    address = stub.put("/toy.csv", stub.body(CONTENT))
    path = fetch({"url": address, "sha256": sha(CONTENT)}, {"name": "toy", **ABOUT})
    about = json.loads((path.parent / "about.json").read_text())
    fetched = datetime.fromisoformat(about.pop("fetched"))
    assert abs((datetime.now(UTC) - fetched).total_seconds()) < 60
    assert about == {"name": "toy", **ABOUT, "source": address, "sha256": sha(CONTENT)}


def test_a_member_from_the_index(stub, index):
    path = fetch(index, {"name": "toy", **ABOUT})
    assert path.name == "toy.csv" and path.read_bytes() == CONTENT
    assert json.loads((path.parent / "about.json").read_text())["name"] == "toy"
    assert stub.asked == ["/simple/toy-data/", f"/files/{WHEEL}"]


def test_another_member_needs_no_second_download(stub, index):
    first = fetch(index)
    folder = fetch({**index, "member": "toy_data/texts/"})
    assert files_in(folder) == [str(Path("yes/1.txt"))]
    assert first.parent != folder.parent
    assert len(stub.asked) == 2


def test_a_damaged_archive_in_the_cache_is_fetched_again(stub, index):
    archive = fetch(index).parent.parent / WHEEL
    archive.write_bytes(b"damaged")
    assert fetch({**index, "member": "toy_data/texts/"}).is_dir()
    assert len(stub.asked) == 4


def test_our_checksum_counts_not_that_of_the_index(stub, index, monkeypatch):
    stub.put(f"/files/{WHEEL}", stub.body(b"other"))
    stub.index("toy-data", WHEEL, digest=f"#sha256={sha(b'other')}")
    with pytest.raises(DataError, match="was not kept"):
        fetch(index)
    assert files_in(cache_folder()) == []


def test_a_member_called_about_json_is_not_overwritten(stub):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr("about.json", "[]")
    content = packed.getvalue()
    address = stub.put("/x.zip", stub.body(content))
    path = fetch({"url": address, "sha256": sha(content), "member": "about.json"})
    assert path.read_text() == "[]"


def test_a_member_that_is_not_there_leaves_nothing_behind(index):
    with pytest.raises(DataError, match='no member "toy_data/none.csv"'):
        fetch({**index, "member": "toy_data/none.csv"})
    assert [Path(file).name for file in files_in(cache_folder())] == [WHEEL]


def test_a_local_source_that_is_absent_is_told():
    with pytest.raises(DataError, match="KARAT_DATA is not set"):
        fetch({"folder": "x.csv"})


def test_a_cache_that_cannot_be_written_says_what_to_set(stub, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "file"))
    address = stub.put("/toy.csv", stub.body(CONTENT))
    with pytest.raises(DataError, match="set KARAT_CACHE to another one"):
        fetch({"url": address, "sha256": sha(CONTENT)})


def test_a_file_that_did_not_come_leaves_nothing_behind(stub):
    with pytest.raises(DataError, match="404"):
        fetch({"url": stub.put("/toy.csv", stub.status(404)), "sha256": sha(CONTENT)})
    assert files_in(cache_folder()) == []


# -- several sources ------------------------------------------------------------------------


def test_the_first_source_that_works_wins(stub, index, tmp_path, monkeypatch):
    gone = {"url": stub.put("/gone.csv", stub.status(404)), "sha256": "b" * 64}
    path, source = fetch_first("toy", [{"folder": "toy.csv"}, gone, index])
    assert path.read_bytes() == CONTENT
    assert source.kind == "index"


def test_what_is_on_this_machine_goes_first(stub, index, tmp_path, monkeypatch):
    (tmp_path / "toy.csv").write_bytes(CONTENT)
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    path, source = fetch_first("toy", [index, {"folder": "toy.csv"}])
    assert path == tmp_path / "toy.csv" and source.kind == "folder"
    assert stub.asked == []


def test_nothing_works_and_each_reason_is_told(stub, index):
    stub.put(f"/files/{WHEEL}", stub.status(404))
    gone = {"url": stub.put("/gone.csv", stub.status(404)), "sha256": "b" * 64}
    package = {"package": "karat_test_no_such", "member": "toy.csv"}
    with pytest.raises(Unavailable) as error:
        fetch_first("toy", [{"folder": "toy/toy.csv"}, package, index, gone])
    first, *lines = str(error.value).splitlines()
    what = "put it at $KARAT_DATA/toy/toy.csv, or connect and run again. Tried:"
    assert first == f'the file of "toy" could not be had; {what}'
    assert lines[0] == "  folder toy/toy.csv: KARAT_DATA is not set"
    assert lines[1] == "  package karat_test_no_such, toy.csv: not installed"
    assert lines[2].startswith(f"  package index, {WHEEL}, toy_data/toy.csv: {stub.address}/files")
    assert lines[3].endswith("the server answered 404 Not Found: there is no such file")


def test_only_a_package_can_be_installed():
    with pytest.raises(Unavailable, match="; install the package karat_test_no_such"):
        fetch_first("toy", [{"package": "karat_test_no_such", "member": "x"}])


# -- two addresses of one archive -----------------------------------------------------------


def two(stub, first, second) -> list[dict[str, str]]:
    """Return two sources of the same archive, whose only CSV file is wanted."""
    places = (("/one/toy.zip", first), ("/uc", second))
    return [
        {"url": stub.put(path, *answers), "sha256": sha(ZIP), "member": "*.csv"}
        for path, answers in places
    ]


def zipped(content: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        opened.writestr("any/name.csv", content)
    return packed.getvalue()


NUMBERS = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(20_000))
ZIP = zipped(NUMBERS)


def test_the_first_address_is_enough(stub):
    path, source = fetch_first("toy", two(stub, [stub.ranged(ZIP)], [stub.status(500)]))
    assert path.read_bytes() == NUMBERS and path.name == "data.csv"
    assert stub.asked == ["/one/toy.zip"] and str(source) == f"{stub.address}/one/toy.zip, *.csv"


@pytest.mark.parametrize("trouble", ["wrong", "gone", "broken", "short", "no zip"])
def test_the_second_address_is_tried(stub, trouble):
    answers = {
        "wrong": stub.body(ZIP[:-1] + b"?"),
        "gone": stub.status(404),
        "broken": stub.status(503),
        "short": stub.ranged(ZIP, 50_000),
        "no zip": stub.body(b"<html>the file is too large to be checked for viruses</html>"),
    }
    path, source = fetch_first("toy", two(stub, [answers[trouble]], [stub.ranged(ZIP)]))
    assert path.read_bytes() == NUMBERS and source.place.endswith("/uc")
    assert [Path(file).name for file in files_in(cache_folder())].count("data.csv") == 1
    assert not list(cache_folder().rglob("*.part"))
    begun = stub.ranges[-1]
    assert bool(begun) is (trouble == "short"), "it goes on where the first address ended"


def test_what_came_of_a_short_file_is_no_file(stub):
    cut = [stub.ranged(ZIP, 50_000)]
    sources = two(stub, cut, [stub.status(404)])
    with pytest.raises(Unavailable, match="ended before the whole file had come"):
        fetch_first("toy", sources)
    assert [Path(file).suffix for file in files_in(cache_folder())] == [".part"]
    stub.put("/one/toy.zip", stub.ranged(ZIP))
    assert fetch_first("toy", sources)[0].read_bytes() == NUMBERS
    assert stub.ranges[-1].startswith("bytes=")


def test_wrong_bytes_from_both_addresses_leave_nothing(stub):
    with pytest.raises(Unavailable) as error:
        fetch_first("toy", two(stub, [stub.body(b"x")], [stub.body(b"y")]))
    assert str(error.value).count("was not kept") == 2
    assert files_in(cache_folder()) == []


# -- offline --------------------------------------------------------------------------------


def test_offline_opens_no_socket(index, no_socket, monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    with pytest.raises(Unavailable) as error:
        fetch_first("toy", [{"folder": "toy.csv"}, index])
    assert "not in the cache, and KARAT_OFFLINE is set" in str(error.value)
    assert "or unset KARAT_OFFLINE and run again." in str(error.value).splitlines()[0]


def test_offline_what_was_fetched_before_is_there(index, request, monkeypatch):
    path = fetch(index)
    request.getfixturevalue("no_socket")
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    assert fetch(index) == path


# -- two at once ----------------------------------------------------------------------------

SCRIPT = """
import json, sys
from karat.data.download import fetch
path = fetch(json.loads(sys.argv[1]))
print(path.read_bytes() == b"a,b\\n1,2\\n", path)
"""


def test_two_processes_fetch_the_same_file(stub, index):
    stub.put(f"/files/{WHEEL}", stub.slow(0.3, stub.body(wheel())))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, json.dumps(index)]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = {process.communicate(timeout=60)[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert said == {f"True {fetch(index)}\n"}
    names = sorted(Path(file).name for file in files_in(cache_folder()))
    assert names == ["about.json", "toy.csv", WHEEL]


def test_the_slower_one_takes_what_the_faster_one_made(index, monkeypatch):
    path = fetch(index)
    source = module.parse_source(index)
    module._unpack(source, path.parent.parent / WHEEL, {})
    assert path.read_bytes() == CONTENT
    assert not list(path.parent.parent.glob(".*"))
