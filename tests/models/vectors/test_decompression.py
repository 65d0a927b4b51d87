"""Compressed vector files."""

import gzip

import pytest

from karat.core import files

from .vector_data import assert_invalid


def test_compressed_text_that_expands_too_much(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FREE_BYTES", 10_000)
    monkeypatch.setattr(files, "MAX_RATIO", 10)
    path = tmp_path / "v.txt.gz"
    path.write_bytes(gzip.compress(b"a 1\n" + b"\n" * 100_000))
    assert_invalid(path, "bytes")
    zstandard = pytest.importorskip("zstandard")
    path = tmp_path / "v.txt.zst"
    path.write_bytes(zstandard.compress(b"a 1\n" + b"\n" * 100_000))
    assert_invalid(path, "bytes")
