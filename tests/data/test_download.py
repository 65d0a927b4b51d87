"""Sources, archives, downloads, the package index and the cache."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import os
import socket
import stat
import subprocess
import sys
import tarfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pypi_simple
import pytest
import requests

from karat.core import files as core_files
from karat.core.files import cache_folder
from karat.data import download as transfer
from karat.data.download import (
    Settings,
    Source,
    download,
    extract,
    fetch_first,
    find_address,
    find_in_folders,
    find_in_package,
    is_safe,
    offline,
    parse_source,
    pip_settings,
)
from karat.errors import DataError, DefinitionError, Unavailable

FILES = {"pkg/data/a.csv": b"a\n1\n", "pkg/data/deep/b.csv": b"b\n2\n", "pkg/code.py": b"boom"}


def make_zip(path: Any, files: dict[str, bytes], links: tuple[str, ...] = ()) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
        for name in links:
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            opened.writestr(info, "/etc/passwd")
    return path


def zipped(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    make_zip(packed, files)
    return packed.getvalue()


def make_tar(path: Path, files: dict[str, bytes], links: tuple[str, ...] = ()) -> Path:
    mode = {".gz": "w:gz", ".bz2": "w:bz2", ".tar": "w"}[path.suffix]
    with tarfile.open(path, mode) as opened:
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            opened.addfile(info, io.BytesIO(content))
        for name in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
            opened.addfile(info)
    return path


MAKERS = {
    **dict.fromkeys(("x.whl", "x.zip"), make_zip),
    **dict.fromkeys(("x.tar.gz", "x.tar.bz2", "x.tar"), make_tar),
}
both_formats = pytest.mark.parametrize("name", ["x.zip", "x.tar.gz"])


@pytest.mark.parametrize("name", MAKERS)
def test_file_and_folder_are_extracted(tmp_path, name):
    packed = MAKERS[name](tmp_path / name, FILES)
    extract(packed, "pkg/data/a.csv", tmp_path / "one" / "a.csv")
    assert (tmp_path / "one" / "a.csv").read_bytes() == b"a\n1\n"
    assert len(list((tmp_path / "one").iterdir())) == 1
    out = tmp_path / "out"
    extract(packed, "pkg/data/", out)
    found = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert found == {"a.csv": b"a\n1\n", str(Path("deep/b.csv")): b"b\n2\n"}


@both_formats
@pytest.mark.parametrize(
    ("evil", "member"),
    [
        ("d/../../evil", "d/"),
        ("d//etc/evil", "d/"),
        ("d/a\\..\\evil", "d/"),
        ("d/C:evil", "d/"),
        ("../evil", "../evil"),
        ("/etc/evil", "/etc/evil"),
    ],
)
def test_unsafe_path_writes_nothing(tmp_path, name, evil, member):
    packed = MAKERS[name](tmp_path / name, {"d/good": b"1", evil: b"2"})
    with pytest.raises(DataError, match="unsafe"):
        extract(packed, member, tmp_path / "out" / "d")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.rglob("*evil*"))


@both_formats
@pytest.mark.parametrize("member", ["d/link", "d/"])
def test_link_is_refused(tmp_path, name, member):
    packed = MAKERS[name](tmp_path / name, {"d/good": b"1"}, links=("d/link",))
    with pytest.raises(DataError, match="d/link"):
        extract(packed, member, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@both_formats
def test_unsafe_files_next_to_the_member_are_ignored(tmp_path, name):
    packed = MAKERS[name](tmp_path / name, {"../evil": b"2", "d/good": b"1"}, links=("link",))
    extract(packed, "d/good", tmp_path / "out" / "good")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("member", ["d/big", "d/"])
def test_too_large_member_is_refused_before_writing(tmp_path, monkeypatch, member):
    monkeypatch.setattr(transfer, "LIMIT", 1000)
    packed = make_zip(tmp_path / "x.zip", {"d/big": bytes(1001)})
    with pytest.raises(DataError, match="1000"):
        extract(packed, member, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_member_larger_than_declared_is_stopped(tmp_path):
    with pytest.raises(DataError):
        entry = transfer.ArchiveEntry("x", 1, True, lambda: io.BytesIO(bytes(11)))
        transfer._write_all([(entry, tmp_path / "x")], limit=10)


@both_formats
def test_too_many_entries_are_refused(tmp_path, name, monkeypatch):
    monkeypatch.setattr(transfer, "MAX_ENTRIES", 5)
    path = MAKERS[name](tmp_path / name, {f"d/{i}": b"x" for i in range(5)})
    extract(path, "d/", tmp_path / "few")
    MAKERS[name](path, {f"d/{i}": b"x" for i in range(6)})
    with pytest.raises(DataError, match="5 entries"):
        extract(path, "d/", tmp_path / "many")


def test_reading_a_tar_stops_at_the_limits(tmp_path, monkeypatch):
    path = make_tar(tmp_path / "x.tar", {f"d/{i}": b"x" for i in range(100)})
    monkeypatch.setattr(transfer, "MAX_ENTRIES", 5)
    read, next_member = [], tarfile.TarFile.next
    monkeypatch.setattr(tarfile.TarFile, "next", lambda tar: read.append(1) or next_member(tar))
    with pytest.raises(DataError):
        extract(path, "d/", tmp_path / "many")
    assert len(read) <= 20
    monkeypatch.setattr(core_files, "FREE_BYTES", 0)
    monkeypatch.setattr(core_files, "MAX_RATIO", 1)
    path = make_tar(tmp_path / "y.tar.gz", {"d/a": b"\0" * 100_000})
    with pytest.raises(DataError):
        extract(path, "d/", tmp_path / "large")


def test_long_header_of_a_tar_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "MAX_TAR_HEADER", 1000)
    with tarfile.open(tmp_path / "x.tar", "w", format=tarfile.GNU_FORMAT) as tar:
        tar.addfile(tarfile.TarInfo("d/" + "a" * 2000))
    with pytest.raises(DataError):
        extract(tmp_path / "x.tar", "d/", tmp_path / "out")


def damaged(content: bytes) -> bytes:
    return content[:40] + bytes(20) + content[60:]


@pytest.mark.parametrize(
    ("content", "member", "word"),
    [
        (zipped(FILES), "pkg/data/aa.csv", '"pkg/data/a.csv"'),
        (b"hello", "a", "x.zip"),
        (damaged(zipped({"a": b"hello" * 1000})), "a", "x.zip"),
        (zipped({"name": b""}).replace(b"name", b"\0ame"), "a", "x.zip"),
    ],
)
def test_missing_members_and_broken_archives(tmp_path, content, member, word):
    (tmp_path / "x.zip").write_bytes(content)
    with pytest.raises(DataError, match=word):
        extract(tmp_path / "x.zip", member, tmp_path / "out")


def test_last_of_two_entries_with_the_same_path_counts(tmp_path):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as opened:
        for content in (b"old", b"new"):
            info = tarfile.TarInfo("./a")
            info.size = 3
            opened.addfile(info, io.BytesIO(content))
    extract(path, "a", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"new"


@both_formats
@pytest.mark.parametrize("inner", ["faqs.csv", "deep/er/anything.csv", "./faqs.csv"])
def test_only_file_that_matches_a_pattern_is_extracted(tmp_path, name, inner):
    others = {"read.me": b"no", "__MACOSX/._faqs.csv": b"no", "deep/.hidden.csv": b"no"}
    packed = MAKERS[name](tmp_path / name, {**others, inner: b"yes"})
    extract(packed, "*.csv", tmp_path / "out" / "data.csv")
    assert (tmp_path / "out" / "data.csv").read_bytes() == b"yes"


@pytest.mark.parametrize(
    ("files", "links", "word"),
    [
        (FILES, (), "pkg/data/a.csv, pkg/data/deep"),
        ({"a.txt": b"1"}, (), r'"\*.csv"'),
        ({"a.txt": b"1"}, ("d/link.csv",), '"d/link.csv" is a link'),
    ],
)
def test_pattern_must_match_exactly_one_file(tmp_path, files, links, word):
    packed = make_zip(tmp_path / "x.zip", files, links)
    with pytest.raises(DataError, match=word):
        extract(packed, "*.csv", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@both_formats
@pytest.mark.parametrize("base", ["", "pkg/"])
def test_all_files_that_match_a_pattern_are_extracted(tmp_path, name, base):
    files = {"pkg/a/de.po": b"1", "pkg/b/c/de.po": b"2", "pkg/a/fr.po": b"3", "pkg/.x/de.po": b"4"}
    packed = MAKERS[name](tmp_path / name, files)
    extract(packed, f"{base}**/de.po", out := tmp_path / "out")
    found = {p.relative_to(out).as_posix(): p.read_bytes() for p in out.rglob("*.po")}
    top = "" if base else "pkg/"
    assert found == {f"{top}a/de.po": b"1", f"{top}b/c/de.po": b"2"}
    with pytest.raises(DataError, match=r"\*\*/it\.po"):
        extract(packed, "**/it.po", tmp_path / "none")
    link = make_zip(tmp_path / "link.zip", {"x/de.po": b"1"}, ("y/de.po",))
    with pytest.raises(DataError, match="is a link"):
        extract(link, "**/de.po", tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_member_of_a_nested_archive(tmp_path):
    inner = make_tar(tmp_path / "inner.tar.gz", {"d/a.txt": b"found"})
    packed = make_zip(tmp_path / "x.zip", {"extra/inner.tar.gz": inner.read_bytes()})
    out = tmp_path / "out" / "a.txt"
    extract(packed, "extra/inner.tar.gz!/d/a.txt", out)
    assert out.read_bytes() == b"found" and list(out.parent.iterdir()) == [out]
    with pytest.raises(DataError, match=r'"d/b\.txt"'):
        extract(packed, "extra/inner.tar.gz!/d/b.txt", tmp_path / "other" / "b.txt")
    assert list((tmp_path / "other").iterdir()) == []


CONTENT = b"a,b\n1,2\n"
ABOUT = {"license": "CC0-1.0", "citation": "Me (2020)", "homepage": "https://h.example"}
WHEEL = "toy_data-1.0-py3-none-any.whl"
NO_PACKAGE = {"package": "karat_test_no_such", "member": "toy.csv"}


def sha(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
    monkeypatch.setattr(transfer, "sha256_of", lambda path: hashed.append(path) or sha(CONTENT))
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


NUMBERS = b"a,b\n" + b"".join(b"%d,%d\n" % (i, i * i) for i in range(20_000))
ZIP = zipped({"any/name.csv": NUMBERS})


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


SCRIPT = """
import json, sys
from karat.data.download import fetch_first
path, _ = fetch_first("toy", [json.loads(sys.argv[1])])
print(path.read_bytes() == b"a,b\\n1,2\\n", path)
"""


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


SHA = "a" * 64


def test_each_kind_is_parsed_and_shown():
    given = [
        {"folder": "p/p.csv"},
        {"package": "pkg", "member": "data/p.csv"},
        {"index": "pkg", "file": "pkg-1.whl", "sha256": SHA.upper(), "member": "pkg/p.csv"},
        {"url": "https://me:pw@host.example/x/p.csv?v=1", "sha256": SHA, "member": None},
    ]
    sources = [parse_source(source) for source in given]
    assert [str(source) for source in sources] == [
        "folder p/p.csv",
        "package pkg, data/p.csv",
        "package index, pkg-1.whl, pkg/p.csv",
        "https://host.example/x/p.csv?v=1",
    ]
    assert sources[2].sha256 == SHA
    assert sources[3].file == "p.csv" and sources[3].member == ""
    assert [source.remote for source in sources] == [False, False, True, True]


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({}, "folder, package, index, url"),
        ({"folder": "a", "url": "b"}, "exactly one"),
        ({"url": "https://h.example/a"}, '"sha256"'),
        ({"index": "a", "file": "a.whl", "sha256": SHA, "membre": "x"}, '"member"'),
        ({"url": "https://h.example/a", "sha256": "12"}, "64"),
        ({"index": "a", "file": "../a.whl", "sha256": SHA}, "../a.whl"),
        ({"package": "a", "member": "../secret"}, "../secret"),
        ({"folder": "/etc/hosts"}, "/etc/hosts"),
    ],
)
def test_invalid_source_is_refused(given, word):
    with pytest.raises(DefinitionError, match=word):
        parse_source(given)


@pytest.mark.parametrize("path", ["", "/", "..", "a/../b", "a\\..\\b", "C:/x", "a\0b"])
def test_unsafe_paths(path):
    assert not is_safe(path)


@pytest.mark.parametrize("address", ["https://h.example", "https://h.example/", "x://h/.."])
def test_url_without_a_file_name_gets_one(address):
    assert parse_source({"url": address, "sha256": SHA}).file == "data"


def test_first_folder_with_the_file_is_used(tmp_path: Path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text(name)
    folders = [str(tmp_path / name) for name in ("none", "two", "one")]
    monkeypatch.setenv("KARAT_DATA", os.pathsep.join(folders))
    assert find_in_folders(Source("folder", "x.csv")).read_text() == "two"
    with pytest.raises(DataError, match="none"):
        find_in_folders(Source("folder", "y.csv"))
    monkeypatch.delenv("KARAT_DATA")
    with pytest.raises(DataError, match="KARAT_DATA"):
        find_in_folders(Source("folder", "x.csv"))


@pytest.fixture
def package(tmp_path: Path, monkeypatch) -> Path:
    folder = tmp_path / "site" / "karat_test_penguins"
    (folder / "data").mkdir(parents=True)
    (folder / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "data" / "__init__.py").write_text("raise RuntimeError('imported')")
    (folder / "data" / "p.csv").write_text("a,b\n1,2\n")
    monkeypatch.syspath_prepend(folder.parent)
    return folder


@pytest.mark.parametrize(
    ("name", "member", "sha256"),
    [
        ("karat_test_penguins", "data/p.csv", ""),
        ("karat_test_penguins.data", "p.csv", ""),
        ("karat_test_penguins.data", "p.csv", sha(b"a,b\n1,2\n")),
    ],
)
def test_file_of_an_installed_package_is_found_without_importing_it(package, name, member, sha256):
    source = Source("package", name, member=member, sha256=sha256)
    assert find_in_package(source) == package / "data" / "p.csv"
    assert not any(module.startswith("karat_test_penguins") for module in sys.modules)


@pytest.mark.parametrize(
    ("name", "member", "sha256", "word"),
    [
        ("karat_test_no_such", "x", "", "not installed"),
        ("karat_test_penguins", "x", "", "installed version"),
        ("karat_test_penguins", "data/p.csv", "b" * 64, "another version"),
    ],
)
def test_missing_package_file(package, name, member, sha256, word):
    with pytest.raises(DataError, match=word):
        find_in_package(Source("package", name, member=member, sha256=sha256))


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
    monkeypatch.setattr(transfer, "MAX_BYTES", len(TABLE))
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
    assert first == "" and CUT - transfer.TRANSFER_CHUNK < begin <= CUT


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
    monkeypatch.setattr(transfer, "TIMEOUT", (60.0, 0.1))

    def stall(request) -> None:
        if sent:
            stub.body(TABLE[:sent], announced=len(TABLE))(request)
            request.wfile.flush()
        stub.slow(0.5, stub.body(TABLE))(request)

    with pytest.raises(DataError, match="timed out"):
        download(stub.put("/f", stall), target, TABLE_SHA)


def test_unreachable_host_is_not_contacted_again_at_once(stub, target, monkeypatch):
    stub.server.server_close()
    with pytest.raises(DataError, match=f"/f: {transfer.UNREACHABLE}"):
        download(stub.address + "/f", target, TABLE_SHA)
    monkeypatch.setattr(transfer, "session", lambda _: pytest.fail("contacted again"))
    with pytest.raises(DataError, match=transfer.UNREACHABLE):
        download(stub.address + "/f", target, TABLE_SHA)


def test_unsupported_urls_and_certificates(target, monkeypatch):
    with pytest.raises(DataError, match=r"//h\.example/f"):  # without the password
        download("ftp://me:secret@h.example/f", target, TABLE_SHA)
    with pytest.raises(DataError, match="REQUESTS_CA_BUNDLE"):
        with transfer.readable_errors("https://h.example"):
            raise requests.exceptions.SSLError("certificate verify failed")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    assert transfer.session("bundle.pem").verify == "bundle.pem"
    assert transfer.session().verify is True
    with pytest.raises(DataError, match="no.pem"):
        download("https://127.0.0.1:1/f", target, TABLE_SHA, certificate="no.pem")


SOURCE = Source("index", "toy-data", file="toy_data-1.0-py3-none-any.whl", sha256="a" * 64)


@pytest.fixture
def no_pip_settings(monkeypatch):
    for name in ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_CERT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transfer, "_pip_configuration", transfer._pip_configuration.__wrapped__)


def test_environment_of_pip_takes_precedence(monkeypatch, no_pip_settings):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/no/such/python")  # pip cannot be run
        assert pip_settings() == Settings((pypi_simple.PYPI_SIMPLE_ENDPOINT,), None)
    monkeypatch.setattr(transfer, "_pip_configuration", lambda: pytest.fail("not needed"))
    monkeypatch.setenv("PIP_INDEX_URL", "https://a.example/simple")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "https://b.example/s file:///c https://d.example/s")
    monkeypatch.setenv("PIP_CERT", "bundle.pem")
    indexes = ("https://a.example/simple", "https://b.example/s", "https://d.example/s")
    assert pip_settings() == Settings(indexes, "bundle.pem")


@pytest.mark.skipif(importlib.util.find_spec("pip") is None, reason="pip is not installed")
def test_configuration_file_of_pip_is_read(monkeypatch, no_pip_settings, tmp_path: Path):
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://a.example/it's/simple\ncert = my.pem\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(file))
    settings = pip_settings()
    assert settings.indexes[0] == "https://a.example/it's/simple"
    assert settings.certificate == "my.pem"


def test_file_is_found_by_its_exact_name_also_after_a_server_error(stub):
    address = stub.index("toy-data", "toy_data-1.0.tar.gz", SOURCE.file, "toy_data-2.0.tar.gz")
    stub.answers["/simple/toy-data/"].insert(0, stub.status(503))
    found = find_address(SOURCE, Settings((address,), None))
    assert found.partition("#")[0] == f"{stub.address}/files/{SOURCE.file}"
    assert len(stub.asked) == 2


def test_next_index_is_searched_if_the_first_lacks_the_file(stub):
    indexes = (f"{stub.address}/empty/", stub.index("toy-data", SOURCE.file))
    assert find_address(SOURCE, Settings(indexes, None)).endswith(SOURCE.file)


def test_error_lists_the_reason_of_each_index(stub):
    stub.put("/no/toy-data/", stub.body(b"{}", kind="image/png"))
    other = stub.index("toy-data", "toy_data-0.9.tar.gz")
    indexes = (f"{stub.address}/empty", other, f"{stub.address}/no/")
    with pytest.raises(DataError) as error:
        find_address(SOURCE, Settings(indexes, None))
    project, file, kind = str(error.value).split("; ")
    assert indexes[0] in project and "toy-data" in project
    assert other in file and SOURCE.file in file
    assert indexes[2] in kind and "image/png" in kind
