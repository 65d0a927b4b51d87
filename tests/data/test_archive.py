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


@pytest.mark.parametrize("name", MAKERS)
def test_one_file_is_taken_out(tmp_path, name):
    packed = MAKERS[name](tmp_path / name, FILES)
    extract(packed, "pkg/data/a.csv", tmp_path / "out" / "a.csv")
    assert (tmp_path / "out" / "a.csv").read_bytes() == b"a\n1\n"
    assert len(list((tmp_path / "out").iterdir())) == 1


@pytest.mark.parametrize("name", MAKERS)
def test_a_folder_is_taken_out(tmp_path, name):
    packed = MAKERS[name](tmp_path / name, FILES)
    out = tmp_path / "out"
    extract(packed, "pkg/data/", out)
    found = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert found == {"a.csv": b"a\n1\n", str(Path("deep/b.csv")): b"b\n2\n"}


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz"])
@pytest.mark.parametrize("evil", ["d/../../evil", "d//etc/evil", "d/a\\..\\evil", "d/C:evil"])
def test_a_path_that_leads_outside_writes_nothing(tmp_path, name, evil):
    packed = MAKERS[name](tmp_path / name, {"d/good": b"1", evil: b"2"})
    with pytest.raises(DataError, match="leads outside"):
        extract(packed, "d/", tmp_path / "out" / "d")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.rglob("*evil*"))


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz"])
@pytest.mark.parametrize("evil", ["../evil", "/etc/evil"])
def test_an_unsafe_member_is_refused_by_name(tmp_path, name, evil):
    packed = MAKERS[name](tmp_path / name, {evil: b"2"})
    with pytest.raises(DataError, match="leads outside"):
        extract(packed, evil, tmp_path / "out" / "x")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz"])
@pytest.mark.parametrize("member", ["d/link", "d/"])
def test_a_link_is_not_followed(tmp_path, name, member):
    packed = MAKERS[name](tmp_path / name, {"d/good": b"1"}, links=("d/link",))
    with pytest.raises(DataError, match='"d/link" is a link'):
        extract(packed, member, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz"])
def test_what_is_beside_the_member_does_no_harm(tmp_path, name):
    packed = MAKERS[name](tmp_path / name, {"../evil": b"2", "d/good": b"1"}, links=("link",))
    extract(packed, "d/good", tmp_path / "out" / "good")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("member", ["d/big", "d/"])
def test_too_large_is_refused_before_writing(tmp_path, monkeypatch, member):
    monkeypatch.setattr(archive, "LIMIT", 1000)
    packed = make_zip(tmp_path / "x.zip", {"d/big": bytes(1001)})
    with pytest.raises(DataError, match="larger than 1000 bytes"):
        extract(packed, member, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_more_than_announced_is_stopped(tmp_path):
    with pytest.raises(DataError, match="larger than announced"):
        archive._copy(io.BytesIO(bytes(11)), tmp_path / "x", limit=10)


def test_a_member_that_is_not_there_names_the_nearest(tmp_path):
    packed = make_zip(tmp_path / "x.zip", FILES)
    with pytest.raises(DataError, match='Did you mean "pkg/data/a.csv"'):
        extract(packed, "pkg/data/aa.csv", tmp_path / "out")


def test_a_file_that_is_no_archive(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"hello")
    with pytest.raises(DataError, match="x.zip is neither"):
        extract(tmp_path / "x.zip", "a", tmp_path / "out")


def test_a_broken_archive_is_one_message(tmp_path):
    packed = make_zip(tmp_path / "x.zip", {"a": b"hello" * 1000})
    content = bytearray(packed.read_bytes())
    content[40:60] = bytes(20)
    packed.write_bytes(content)
    with pytest.raises(DataError, match="x.zip cannot be unpacked"):
        extract(packed, "a", tmp_path / "out")


def test_a_path_that_stands_twice_counts_last(tmp_path):
    path = tmp_path / "x.tar"
    with tarfile.open(path, "w") as opened:
        for content in (b"old", b"new"):
            info = tarfile.TarInfo("./a")
            info.size = 3
            opened.addfile(info, io.BytesIO(content))
    extract(path, "a", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"new"


# -- members by pattern, and in an archive of the archive ------------------------------------


@pytest.mark.parametrize("name", ["x.zip", "x.tar.gz"])
@pytest.mark.parametrize("inner", ["faqs.csv", "deep/er/anything.csv", "./faqs.csv"])
def test_the_only_file_of_a_kind_is_found(tmp_path, name, inner):
    beside = {"read.me": b"no", "__MACOSX/._faqs.csv": b"no", "deep/.hidden.csv": b"no"}
    packed = MAKERS[name](tmp_path / name, {**beside, inner: b"yes"})
    extract(packed, "*.csv", tmp_path / "out" / "data.csv")
    assert (tmp_path / "out" / "data.csv").read_bytes() == b"yes"


def test_several_files_of_a_kind_are_named(tmp_path):
    packed = make_zip(tmp_path / "x.zip", FILES)
    with pytest.raises(DataError, match=r'several members "\*.csv": pkg/data/a.csv, pkg/data/deep'):
        extract(packed, "*.csv", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_no_file_of_a_kind(tmp_path):
    packed = make_zip(tmp_path / "x.zip", {"a.txt": b"1"})
    with pytest.raises(DataError, match=r'has no member "\*.csv"'):
        extract(packed, "*.csv", tmp_path / "out")


def test_a_pattern_finds_no_link(tmp_path):
    packed = make_zip(tmp_path / "x.zip", {"a.txt": b"1"}, links=("d/link.csv",))
    with pytest.raises(DataError, match='"d/link.csv" is a link'):
        extract(packed, "*.csv", tmp_path / "out")


def test_a_member_of_an_archive_inside(tmp_path):
    inner = make_tar(tmp_path / "inner.tar.gz", {"d/a.txt": b"found"})
    packed = make_zip(tmp_path / "x.zip", {"extra/inner.tar.gz": inner.read_bytes()})
    out = tmp_path / "out" / "a.txt"
    extract(packed, "extra/inner.tar.gz!/d/a.txt", out)
    assert out.read_bytes() == b"found" and list(out.parent.iterdir()) == [out]
    with pytest.raises(DataError, match='inner.tar.gz has no member "d/b.txt". Did you mean'):
        extract(packed, "extra/inner.tar.gz!/d/b.txt", tmp_path / "other" / "b.txt")
    assert list((tmp_path / "other").iterdir()) == []
