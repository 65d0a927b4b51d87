"""Parsed definition files are kept, and parsed again if they are outdated or damaged."""

import json
import sys

import pytest

from karat.config import parsed_files
from karat.config.parsed_files import read_supplied
from karat.config.yaml_files import SourceFile, read_yaml
from karat.core.files import cache_folder

FILE = SourceFile("karat/config/builtin/some.yaml", supplied=True)
TEXT = b"""
datasets:
  one: {target: "1.10", folds: 1.10, none: null, far: .inf, list: [], 3: [a, {b: no}]}
  two: &two {empty: {}}
  three: *two
"""


@pytest.fixture
def parsed(monkeypatch, tmp_path):
    """Keep parsed files in the cache folder; return the calls of the parser."""
    calls = []
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(
        parsed_files, "read_yaml", lambda *given: calls.append(given) or read_yaml(*given)
    )
    return calls


def kept():
    return list((cache_folder() / "definitions").glob("*"))


def test_the_second_time_nothing_is_parsed(parsed):
    known = read_yaml(TEXT, FILE)
    assert read_supplied(TEXT, FILE) == known
    assert read_supplied(TEXT, FILE) == known
    assert len(parsed) == 1 and len(kept()) == 1
    root, _ = read_supplied(TEXT, FILE)
    node = root.value["datasets"].value["one"].value["folds"]
    assert (node.value, node.text, node.line, node.file) == (1.1, "1.10", 3, FILE)


def test_another_text_or_version_is_parsed(parsed, monkeypatch):
    read_supplied(TEXT, FILE)
    assert read_supplied(b"a: 2", FILE)[0].plain() == {"a": 2}
    assert len(parsed) == 2
    monkeypatch.setattr(parsed_files, "__version__", "other")
    read_supplied(b"a: 2", FILE)
    assert len(parsed) == 3 and len(kept()) == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000, "root"])
def test_a_damaged_file_is_parsed_again(parsed, damage):
    read_supplied(TEXT, FILE)
    (file,) = kept()
    if damage == "root":
        damage = json.dumps({**json.loads(file.read_bytes()), "root": [1, 2, 3]}).encode()
    file.write_bytes(damage)
    assert read_supplied(TEXT, FILE) == read_yaml(TEXT, FILE)
    assert len(parsed) == 2


def test_a_place_that_is_not_writable(parsed, tmp_path):
    (tmp_path / "definitions").write_text("")
    assert read_supplied(TEXT, FILE) == read_yaml(TEXT, FILE)


def test_a_file_with_mistakes_is_not_kept(parsed):
    _, mistakes = read_supplied(b"a: 1\na: 2", FILE)
    assert [mistake.line for mistake in mistakes] == [2] and kept() == []


def test_the_preferred_place_is_next_to_the_compiled_modules(parsed, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    read_supplied(TEXT, FILE)
    assert kept() == []
    assert len(list((tmp_path / "compiled").rglob("*.json"))) == 1
    read_supplied(TEXT, FILE)
    assert len(parsed) == 1
