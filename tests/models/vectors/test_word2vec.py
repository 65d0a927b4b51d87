"""word2vec's binary format."""

import gzip
import struct

import pytest

from .vector_data import NAMES, VECTORS, assert_invalid, assert_read


def word2vec(end=b"", names=NAMES):
    rows = zip(names, VECTORS, strict=True)
    return b"3 2\n" + b"".join(
        n.encode() + b" " + struct.pack("<2f", *v.tolist()) + end for n, v in rows
    )


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_word2vec_binary(tmp_path, end):
    (tmp_path / "v.bin").write_bytes(word2vec(end))
    assert_read(tmp_path / "v.bin")
    (tmp_path / "v.bin.gz").write_bytes(gzip.compress(word2vec(end)))
    assert_read(tmp_path / "v.bin.gz")


def test_word2vec_binary_as_gensim_writes_it(tmp_path):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(2)
    keyed.add_vectors(NAMES, VECTORS)
    keyed.save_word2vec_format(str(tmp_path / "v.bin"), binary=True)
    assert_read(tmp_path / "v.bin")
    keyed.save_word2vec_format(str(tmp_path / "v.txt"), binary=False)
    assert_read(tmp_path / "v.txt")


@pytest.mark.parametrize(
    "content, match",
    [
        (b"", "no vectors"),
        (b"a 1 2\nb 3 4\n", "binary format"),
        (b"\x00" * 500, "binary format"),
        (word2vec()[:-1], "truncated.* 3 .* 2 "),
        (word2vec()[:20], "truncated"),
        (b"999999999 300\n" + b"a 1234", "truncated"),
        (b"0 99999999999999999999\n", "no vectors"),
        (word2vec() + b"more", "more than the 3"),
        (word2vec(names=["a", "b", "a"]), 'duplicate.*"a"'),
        (b"1 1\n\xff \0\0\0\0", "name 1 is not UTF-8"),
        (b"1 1\na \0\0\xc0\x7f", '"a".*NaN'),
    ],
)
def test_broken_word2vec_binary(tmp_path, content, match):
    (tmp_path / "v.bin").write_bytes(content)
    assert_invalid(tmp_path / "v.bin", match)
