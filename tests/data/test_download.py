"""The cache of downloaded files, and the first source that works."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from karat.core.files import cache_folder
from karat.data import download as transfer
from karat.data.download import fetch_first, offline
from karat.data.file_sources import parse_source
from karat.errors import DataError, Unavailable

from .archive_data import sha, zipped
from .test_file_sources import SHA

CONTENT = b"a,b\n1,2\n"
ABOUT = {"license": "CC0-1.0", "citation": "Me (2020)", "homepage": "https://h.example"}
WHEEL = "toy_data-1.0-py3-none-any.whl"
NO_PACKAGE = {"package": "karat_test_no_such", "member": "toy.csv"}
NUMBERS = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(20_000))
ZIP = zipped({"any/name.csv": NUMBERS})
SCRIPT = """
import json, sys
from karat.data.download import fetch_first
path, _ = fetch_first("toy", [json.loads(sys.argv[1])])
print(path.read_bytes() == b"a,b\\n1,2\\n", path)
"""


def fetch(source: dict[str, str], about: dict[str, str] | None = None) -> Path:
    return fetch_first("toy", [source], about)[0]


def read_about(path: Path) -> dict[str, Any]:
    return json.loads((path.parent / "about.json").read_text())


def cached_files(suffix: str = "") -> list[str]:
    files = cache_folder().rglob(f"*{suffix}")
    return sorted(path.name for path in files if path.is_file())


@pytest.fixture
def index(stub, monkeypatch) -> dict[str, str]:
    """Serve a package index with one wheel; return the source of a file in it."""
    content = zipped({"toy_data/toy.csv": CONTENT, "toy_data/texts/yes/1.txt": b"one"})
    monkeypatch.setenv("PIP_INDEX_URL", stub.index("toy-data", WHEEL))
    monkeypatch.setenv("PIP_CERT", "")
    stub.put(f"/files/{WHEEL}", stub.body(content))
    source = {"index": "toy_data", "file": WHEEL, "sha256": sha(content)}
    return {**source, "member": "toy_data/toy.csv"}


@pytest.fixture
def toy(stub) -> dict[str, str]:
    """Serve a plain file; return its source."""
    return {"url": stub.put("/d/toy.csv", stub.body(CONTENT)), "sha256": sha(CONTENT)}


@pytest.fixture
def gone(stub) -> dict[str, str]:
    """Return the source of a file that the server does not have."""
    return {"url": stub.put("/gone.csv", stub.status(404)), "sha256": "b" * 64}


@pytest.fixture
def no_socket(monkeypatch):
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a socket was opened")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.parametrize(
    ("value", "expected"), [("1", True), ("yes", True), ("", False), ("0", False), ("No", False)]
)
def test_offline_switch(monkeypatch, value, expected):
    monkeypatch.setenv("KARAT_OFFLINE", value)
    assert offline() is expected


def test_plain_file_is_downloaded_once_with_its_description(stub, toy):
    path = fetch(toy, ABOUT)
    assert path == cache_folder() / "data" / sha(CONTENT)[:16] / "toy.csv"
    assert path.read_bytes() == CONTENT
    assert fetch(toy) == path and stub.asked == ["/d/toy.csv"]
    about = read_about(path)
    fetched = datetime.fromisoformat(about.pop("fetched"))
    assert abs((datetime.now(UTC) - fetched).total_seconds()) < 3600
    assert about == {"name": "toy", **ABOUT, "source": toy["url"], "sha256": sha(CONTENT)}


def test_members_share_one_download(stub, index):
    path = fetch(index, ABOUT)
    assert path.name == "toy.csv" and path.read_bytes() == CONTENT
    assert read_about(path)["name"] == "toy"
    folder = fetch({**index, "member": "toy_data/texts/"})
    assert [p.relative_to(folder) for p in folder.rglob("*.txt")] == [Path("yes/1.txt")]
    assert path.parent != folder.parent
    assert stub.asked == ["/simple/toy-data/", f"/files/{WHEEL}"]


def test_damaged_archive_in_the_cache_is_downloaded_again(stub, index):
    archive = fetch(index).parent.parent / WHEEL
    archive.write_bytes(b"damaged")
    assert fetch({**index, "member": "toy_data/texts/"}).is_dir()
    assert len(stub.asked) == 4


@pytest.fixture
def new_process(monkeypatch):
    """Forget what was verified, as a new process does."""
    monkeypatch.setattr(transfer, "_verified", set())


def test_damaged_file_in_the_cache_is_downloaded_again(stub, toy, new_process, monkeypatch):
    path = fetch(toy)
    path.write_bytes(CONTENT.replace(b"1", b"9"))
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    with pytest.raises(Unavailable):
        fetch(toy)
    monkeypatch.delenv("KARAT_OFFLINE")
    assert fetch(toy).read_bytes() == CONTENT
    assert stub.asked == ["/d/toy.csv"] * 2


@pytest.mark.parametrize("member", ["toy_data/toy.csv", "toy_data/texts/"])
@pytest.mark.parametrize("damage", ["content", "record", "all but the record"])
def test_damaged_member_is_unpacked_again(stub, index, new_process, monkeypatch, member, damage):
    path = fetch({**index, "member": member})
    file = path if path.is_file() else path / "yes/1.txt"
    content = file.read_bytes()
    if damage == "content":
        file.write_bytes(content.swapcase() + b"9")
    elif damage == "record":
        (path.parent / "about.json").write_text("{}")
    else:
        file.unlink()
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    assert fetch({**index, "member": member}) == path
    assert file.read_bytes() == content and read_about(path)["name"] == "toy"
    assert len(stub.asked) == 2 and not list(path.parent.parent.glob(".*"))


def test_file_of_the_cache_is_hashed_once_per_process(index, new_process, monkeypatch):
    path, hashed = fetch(index), []
    monkeypatch.setattr(
        transfer, "sha256_of_file", lambda path: hashed.append(path) or sha(CONTENT)
    )
    assert [fetch(index) for _ in range(3)] == [path] * 3
    assert hashed == [path]


def test_sha256_of_the_definition_counts_not_that_of_the_index(stub, index):
    stub.put(f"/files/{WHEEL}", stub.body(b"other"))
    stub.index("toy-data", WHEEL, digest=f"#sha256={sha(b'other')}")
    with pytest.raises(DataError, match=index["sha256"]):
        fetch(index)
    assert cached_files() == []


def test_member_called_about_json_is_not_overwritten(stub):
    content = zipped({"about.json": b"[]"})
    url = stub.put("/x.zip", stub.body(content))
    path = fetch({"url": url, "sha256": sha(content), "member": "about.json"})
    assert path.read_text() == "[]"


def test_missing_member_leaves_only_the_archive(index):
    with pytest.raises(DataError, match='"toy_data/none.csv"'):
        fetch({**index, "member": "toy_data/none.csv"})
    assert cached_files() == [WHEEL]


def test_unwritable_cache_names_the_setting(toy, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "file"))
    with pytest.raises(DataError, match="set KARAT_CACHE"):
        fetch(toy)


def test_first_source_that_works_is_used(index, gone):
    path, source = fetch_first("toy", [{"folder": "toy.csv"}, gone, index])
    assert path.read_bytes() == CONTENT and source.kind == "index"


def test_local_files_take_precedence(stub, index, tmp_path, monkeypatch):
    (tmp_path / "toy.csv").write_bytes(CONTENT)
    monkeypatch.setenv("KARAT_DATA", str(tmp_path))
    path, source = fetch_first("toy", [index, {"folder": "toy.csv"}])
    assert path == tmp_path / "toy.csv" and source.kind == "folder"
    assert stub.asked == []


def test_error_lists_what_to_do_and_the_reason_of_each_source(stub, index, gone):
    stub.put(f"/files/{WHEEL}", stub.status(404))
    with pytest.raises(Unavailable) as error:
        fetch_first("toy", [{"folder": "toy/toy.csv"}, NO_PACKAGE, index, gone])
    first, folder, package, wheel, url = str(error.value).splitlines()
    assert '"toy"' in first and "$KARAT_DATA/toy/toy.csv" in first and "network" in first
    assert "toy/toy.csv" in folder and "KARAT_DATA" in folder
    assert "karat_test_no_such" in package
    assert f"{WHEEL}, toy_data/toy.csv: {stub.address}/files" in wheel
    assert "404" in url
    with pytest.raises(Unavailable, match="install the package karat_test_no_such"):
        fetch(NO_PACKAGE)


def two_urls(stub, first, second) -> list[dict[str, str]]:
    """Return two sources of the same archive with a single CSV file."""
    return [
        {"url": stub.put(path, answer), "sha256": sha(ZIP), "member": "*.csv"}
        for path, answer in (("/one/toy.zip", first), ("/uc", second))
    ]


def test_second_url_is_not_used_if_the_first_works(stub):
    path, source = fetch_first("toy", two_urls(stub, stub.ranged(ZIP), stub.status(500)))
    assert path.read_bytes() == NUMBERS and path.name == "data.csv"
    assert stub.asked == ["/one/toy.zip"] and str(source) == f"{stub.address}/one/toy.zip, *.csv"


@pytest.mark.parametrize("problem", ["wrong", "gone", "broken", "short", "no zip"])
def test_second_url_is_used_if_the_first_fails(stub, problem):
    answer = {
        "wrong": stub.body(ZIP[:-1] + b"?"),
        "gone": stub.status(404),
        "broken": stub.status(503),
        "short": stub.ranged(ZIP, 50_000),
        "no zip": stub.body(b"<html>the file is too large to be checked for viruses</html>"),
    }[problem]
    path, source = fetch_first("toy", two_urls(stub, answer, stub.ranged(ZIP)))
    assert path.read_bytes() == NUMBERS and source.place.endswith("/uc")
    assert cached_files("data.csv") == ["data.csv"] and cached_files(".part") == []
    assert bool(stub.ranges[-1]) is (problem == "short"), "the second URL resumes the first"


def test_offline_uses_the_cache_and_opens_no_socket(index, request, monkeypatch):
    path = fetch(index)
    request.getfixturevalue("no_socket")
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    assert fetch(index) == path
    with pytest.raises(Unavailable) as error:
        fetch_first("toy", [{"folder": "toy.csv"}, {**index, "sha256": SHA}])
    first, _, reason = str(error.value).splitlines()
    assert "unset KARAT_OFFLINE" in first and "KARAT_OFFLINE is set" in reason
    assert f"package {index['index']}" in first


def test_the_error_names_the_address_to_download(gone, monkeypatch):
    monkeypatch.setenv("KARAT_OFFLINE", "1")
    with pytest.raises(Unavailable) as error:
        fetch_first("toy", [gone])
    assert gone["url"] in str(error.value).splitlines()[0]


def test_two_processes_fetch_the_same_file(stub, index):
    answer = stub.answers[f"/files/{WHEEL}"][0]
    stub.put(f"/files/{WHEEL}", stub.slow(0.3, answer))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, json.dumps(index)]
    running = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = {process.communicate()[0] for process in running}
    assert [process.returncode for process in running] == [0, 0]
    assert outputs == {f"True {fetch(index)}\n"}
    assert cached_files() == ["about.json", "toy.csv", WHEEL]


def test_slower_process_uses_the_files_of_the_faster_one(index):
    path = fetch(index)
    transfer._unpack(parse_source(index), path.parent.parent / WHEEL, {})
    assert path.read_bytes() == CONTENT
    assert not list(path.parent.parent.glob(".*"))
