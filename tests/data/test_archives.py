"""Archives: members, patterns and limits."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from karat.core import files as core_files
from karat.data import archives
from karat.data.archives import extract
from karat.errors import DataError

from .archive_data import make_tar, make_zip, zipped

FILES = {"pkg/data/a.csv": b"a\n1\n", "pkg/data/deep/b.csv": b"b\n2\n", "pkg/code.py": b"boom"}
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
    monkeypatch.setattr(archives, "LIMIT", 1000)
    packed = make_zip(tmp_path / "x.zip", {"d/big": bytes(1001)})
    with pytest.raises(DataError, match="1000"):
        extract(packed, member, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_member_larger_than_declared_is_stopped(tmp_path):
    with pytest.raises(DataError):
        entry = archives.ArchiveEntry("x", 1, True, lambda: io.BytesIO(bytes(11)))
        archives._write_all([(entry, tmp_path / "x")], limit=10)


@both_formats
def test_too_many_entries_are_refused(tmp_path, name, monkeypatch):
    monkeypatch.setattr(archives, "MAX_ENTRIES", 5)
    path = MAKERS[name](tmp_path / name, {f"d/{i}": b"x" for i in range(5)})
    extract(path, "d/", tmp_path / "few")
    MAKERS[name](path, {f"d/{i}": b"x" for i in range(6)})
    with pytest.raises(DataError, match="5 entries"):
        extract(path, "d/", tmp_path / "many")


def test_reading_a_tar_stops_at_the_limits(tmp_path, monkeypatch):
    path = make_tar(tmp_path / "x.tar", {f"d/{i}": b"x" for i in range(100)})
    monkeypatch.setattr(archives, "MAX_ENTRIES", 5)
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
    monkeypatch.setattr(archives, "MAX_TAR_HEADER", 1000)
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
