"""The reader that a file's suffix selects, and what holds for files of all formats."""

import gzip

import numpy as np
import pytest

from karat.errors import DataError
from karat.models.vectors.vector_formats import read_vectors

from .vector_data import assert_invalid, little_memory

TEXTS = {
    "blanks": "a 1 2\nb 3 4\n",
    "tabs": "a\t1\t2\nb\t3\t4\n",
    "a tab, then blanks": "a\t1 2\nb\t3 4\n",
    "word2vec": "2 2\na 1 2\nb 3 4\n",
    "word2vec with tabs": "2\t2\na\t1\t2\nb\t3\t4\n",
    "brackets": "<a> 1 2\n<b> 3 4\n",
    "spare blanks and lines": "  a  1  2 \n\n b 3 4\n\n",
    "carriage returns": "a 1 2\r\nb 3 4\r\n",
    "byte order mark, no last newline": "\ufeffa 1 2\nb 3 4",
    "exponents and signs": "a 1e0 2.0\nb +3 4\n",
}


def read(path, text, **how):
    path.write_text(text, encoding="utf-8", **how)
    ids, vectors = read_vectors(path)
    assert vectors.dtype == np.float32
    return ids, vectors.tolist()


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_one_entity_and_its_numbers_per_line(tmp_path, text):
    assert read(tmp_path / "v.txt", text) == (["a", "b"], [[1, 2], [3, 4]])
    (tmp_path / "v.vec.gz").write_bytes(gzip.compress(text.encode()))
    assert read_vectors(tmp_path / "v.vec.gz")[0] == ["a", "b"]


@pytest.mark.parametrize(
    "name, text, ids",
    [
        ("v.txt", "a\u00a0b 1 2\n\u2028 3 4\n", ["a\u00a0b", "\u2028"]),
        ("v.txt", "http://x/y?<1> 1 2\nz> 3 4\n", ["http://x/y?<1>", "z>"]),
        ("v.txt", "1 1 2\n2 3 4\n", ["1", "2"]),
        ("v.csv", 'a,1,2\n"b, c",3,4\n', ["a", "b, c"]),
        ("v.csv", "id,d0,d1\na,1,2\nb,3,4\n", ["a", "b"]),
        ("v.tsv", "a\t1\t2\nb\t3\t4\n", ["a", "b"]),
    ],
)
def test_ids_are_not_changed(tmp_path, name, text, ids):
    assert read(tmp_path / name, text) == (ids, [[1, 2], [3, 4]])


def test_vectors_of_one_dimension_have_no_header(tmp_path):
    assert read(tmp_path / "v.txt", "1 5\n2 6\n") == (["1", "2"], [[5], [6]])


def test_binary_content_raises(tmp_path):
    (tmp_path / "v.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(DataError, match="UTF-8"):
        read_vectors(tmp_path / "v.txt")
    (tmp_path / "v.txt.gz").write_bytes(b"no gzip")
    with pytest.raises(DataError, match="cannot read"):
        read_vectors(tmp_path / "v.txt.gz")


def test_a_vector_that_is_not_finite_is_named(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(["a", "b"]), vectors=np.array([[1], [np.inf]]))
    assert_invalid(tmp_path / "v.npz", '"b".*NaN')


@pytest.mark.parametrize(
    "text",
    [
        "1 30000000\na 1 2\n",
        "1000000 300\na 1 2\n",
        "a " + "1 " * 20_000 + "\n" + "b 1\n" * 20_000,
        "1" * 5_000 + " 2\na 1 2\n",
    ],
    ids=["wide", "long", "short lines", "many digits"],
)
def test_text_that_declares_too_much(tmp_path, text):
    (tmp_path / "v.txt").write_text(text)
    with little_memory(), pytest.raises(DataError):
        read_vectors(tmp_path / "v.txt")
