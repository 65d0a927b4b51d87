"""Sources of files: definitions, folders and installed packages."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from karat.data.file_sources import Source, find_in_folders, find_in_package, is_safe, parse_source
from karat.errors import DataError, DefinitionError

from .archive_data import sha

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
