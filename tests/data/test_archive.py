from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest

from karat.data import archive
from karat.data.archive import extract
from karat.errors import DataError

FILES = {"pkg/data/a.csv": b"a\n1\n", "pkg/data/deep/b.csv": b"b\n2\n", "pkg/code.py": b"boom"}


def make_zip(path: Path, files: dict[str, bytes], links: tuple[str, ...] = ()) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in files.items():
            opened.writestr(name, content)
        for name in links:
            info = zipfile.ZipInfo(name)
            info.create_system = 3
            info.external_attr = (stat.S_IFLNK | 0o777) << 16
            opened.writestr(info, "/etc/passwd")
    return path


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
    "x.whl": make_zip,
    "x.zip": make_zip,
    "x.tar.gz": make_tar,
    "x.tar.bz2": make_tar,
    "x.tar": make_tar,
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
    monkeypatch.setattr(archive, "LIMIT", 1000)
    packed = make_zip(tmp_path / "x.zip", {"d/big": bytes(1001)})
    with pytest.raises(DataError, match="1000"):
        extract(packed, member, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_member_larger_than_declared_is_stopped(tmp_path):
    with pytest.raises(DataError):
        archive._copy(io.BytesIO(bytes(11)), tmp_path / "x", limit=10)


def test_missing_member_suggests_the_nearest(tmp_path):
    packed = make_zip(tmp_path / "x.zip", FILES)
    with pytest.raises(DataError, match='"pkg/data/a.csv"'):
        extract(packed, "pkg/data/aa.csv", tmp_path / "out")


def test_file_that_is_not_an_archive(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"hello")
    with pytest.raises(DataError, match="x.zip"):
        extract(tmp_path / "x.zip", "a", tmp_path / "out")


def test_broken_archive_is_a_data_error(tmp_path):
    packed = make_zip(tmp_path / "x.zip", {"a": b"hello" * 1000})
    content = bytearray(packed.read_bytes())
    content[40:60] = bytes(20)
    packed.write_bytes(content)
    with pytest.raises(DataError, match="x.zip"):
        extract(packed, "a", tmp_path / "out")


def test_last_of_two_entries_with_the_same_path_counts(tmp_path):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as opened:
        for content in (b"old", b"new"):
            info = tarfile.TarInfo("./a")
            info.size = 3
            opened.addfile(info, io.BytesIO(content))
    extract(path, "a", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"new"


# -- patterns and nested archives -------------------------------------------------------------


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


def test_member_of_a_nested_archive(tmp_path):
    inner = make_tar(tmp_path / "inner.tar.gz", {"d/a.txt": b"found"})
    packed = make_zip(tmp_path / "x.zip", {"extra/inner.tar.gz": inner.read_bytes()})
    out = tmp_path / "out" / "a.txt"
    extract(packed, "extra/inner.tar.gz!/d/a.txt", out)
    assert out.read_bytes() == b"found" and list(out.parent.iterdir()) == [out]
    with pytest.raises(DataError, match=r'"d/b\.txt"'):
        extract(packed, "extra/inner.tar.gz!/d/b.txt", tmp_path / "other" / "b.txt")
    assert list((tmp_path / "other").iterdir()) == []
