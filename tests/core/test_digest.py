"""Hashes name caches and stand in run folders: their values are fixed."""

import re
from pathlib import Path

import pytest

import karat
from karat.core.digest import blake2_of, sha256_of, sha256_of_file

#: from ``printf karat | sha256sum`` and ``printf karat | b2sum -l 96``
SHA256 = "8d8203f0ad53bdb179cca2610a880407f2d09ae31fccda8f194a22287775dc22"
BLAKE2 = "4a1b256ae46fcbbf4c8134b9"


@pytest.mark.parametrize("contents", [("karat",), (b"karat",), ("ka", b"ra", memoryview(b"t"))])
def test_contents_are_hashed_one_after_the_other(contents):
    assert sha256_of(*contents) == SHA256
    assert sha256_of(*contents, length=12) == SHA256[:12]


def test_a_blake2_hash_has_its_own_size():
    assert blake2_of("ka", b"rat", size=12) == BLAKE2


def test_half_of_a_surrogate_pair_is_hashed():
    assert sha256_of("\ud800") == sha256_of(b"\xed\xa0\x80") != sha256_of("?")


def test_a_file_has_the_hash_of_its_content(tmp_path):
    (tmp_path / "file").write_text("karat")
    assert sha256_of_file(tmp_path / "file") == SHA256


def test_only_the_helper_hashes_in_one_expression():
    """Others use ``hashlib`` for contents that come in parts."""
    source = Path(karat.__file__).parent
    others = [path for path in source.rglob("*.py") if path != source / "core" / "digest.py"]
    at_once = re.compile(r"\b(hashlib|blake2b|sha256)\b.*\.hexdigest\(\)")
    assert [path.name for path in others if at_once.search(path.read_text("utf-8"))] == []
