from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import pytest

from karat.data.sources import (
    Source,
    find_in_folders,
    find_in_package,
    is_safe,
    parse_source,
    without_password,
)
from karat.errors import DataError, DefinitionError

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
    ("given", "said"),
    [
        ({}, "exactly one of the keys folder, package, index, url"),
        ({"folder": "a", "url": "b"}, "exactly one"),
        ({"url": "https://h.example/a"}, 'needs the key "sha256"'),
        ({"index": "a", "file": "a.whl", "sha256": SHA, "membre": "x"}, 'Did you mean "member"'),
        ({"url": "https://h.example/a", "sha256": "12"}, "64 hexadecimal digits"),
        ({"index": "a", "file": "../a.whl", "sha256": SHA}, "not a plain file name"),
        ({"package": "a", "member": "../secret"}, 'without ".."'),
        ({"folder": "/etc/hosts"}, "path inside"),
    ],
)
def test_a_wrong_source_is_refused(given, said):
    with pytest.raises(DefinitionError, match=said):
        parse_source(given)


@pytest.mark.parametrize("path", ["", "/", "..", "a/../b", "a\\..\\b", "C:/x", "a\0b"])
def test_paths_that_lead_outside_are_not_safe(path):
    assert not is_safe(path)


@pytest.mark.parametrize("address", ["https://h.example", "https://h.example/", "x://h/.."])
def test_an_address_without_a_name_still_has_a_file(address):
    assert parse_source({"url": address, "sha256": SHA}).file == "data"


def test_an_address_is_shown_without_its_password():
    assert without_password("https://u:p@h.example:8/s") == "https://h.example:8/s"


def test_the_first_folder_that_has_it_wins(tmp_path: Path, monkeypatch):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.csv").write_text(name)
    folders = [str(tmp_path / name) for name in ("none", "two", "one")]
    monkeypatch.setenv("KARAT_DATA", os.pathsep.join(folders))
    assert find_in_folders(Source("folder", "x.csv")).read_text() == "two"
    with pytest.raises(DataError, match="not in "):
        find_in_folders(Source("folder", "y.csv"))


def test_without_folders_it_says_so():
    with pytest.raises(DataError, match="KARAT_DATA is not set"):
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
    ("name", "member"),
    [("karat_test_penguins", "data/p.csv"), ("karat_test_penguins.data", "p.csv")],
)
def test_an_installed_package_is_found_and_not_imported(package, name, member):
    assert find_in_package(Source("package", name, member=member)) == package / "data" / "p.csv"
    assert not any(module.startswith("karat_test_penguins") for module in sys.modules)


def test_what_a_package_lacks_is_told_apart(package):
    with pytest.raises(DataError, match="^not installed$"):
        find_in_package(Source("package", "karat_test_no_such", member="x"))
    with pytest.raises(DataError, match="this version has no such file"):
        find_in_package(Source("package", "karat_test_penguins", member="x"))


def test_another_version_of_a_package_is_not_used(package):
    right = hashlib.sha256(b"a,b\n1,2\n").hexdigest()
    source = Source("package", "karat_test_penguins", member="data/p.csv", sha256=right)
    assert find_in_package(source).name == "p.csv"
    with pytest.raises(DataError, match="is another version"):
        find_in_package(
            Source("package", "karat_test_penguins", member="data/p.csv", sha256="b" * 64)
        )
