"""Vector files of all formats; invalid files raise with the line."""

import gzip
import pickle

import numpy as np
import pandas as pd
import pytest

from karat.errors import DataError
from karat.models.vector_file import KnownVectors, VectorFile, read_vectors


def read(path, text, **how):
    path.write_text(text, encoding="utf-8", **how)
    ids, vectors = read_vectors(path)
    assert vectors.dtype == np.float32
    return ids, vectors.tolist()


@pytest.mark.parametrize(
    "text",
    [
        "a 1 2\nb 3 4\n",
        "a\t1\t2\nb\t3\t4\n",
        "a\t1 2\nb\t3 4\n",
        "2 2\na 1 2\nb 3 4\n",
        "2\t2\na\t1\t2\nb\t3\t4\n",
        "<a> 1 2\n<b> 3 4\n",
        "  a  1  2 \n\n b 3 4\n\n",
        "a 1 2\r\nb 3 4\r\n",
        "\ufeffa 1 2\nb 3 4",
        "a 1e0 2.0\nb +3 4\n",
    ],
    ids=[
        "blanks",
        "tabs",
        "a tab, then blanks",
        "word2vec",
        "word2vec with tabs",
        "brackets",
        "spare blanks and lines",
        "carriage returns",
        "byte order mark, no last newline",
        "exponents and signs",
    ],
)
def test_one_entity_and_its_numbers_per_line(tmp_path, text):
    assert read(tmp_path / "v.txt", text) == (["a", "b"], [[1, 2], [3, 4]])


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


def test_gzip_is_unpacked(tmp_path):
    with gzip.open(tmp_path / "v.vec.gz", "wt") as file:
        file.write("a 1 2\nb 3 4\n")
    ids, vectors = read_vectors(tmp_path / "v.vec.gz")
    assert (ids, vectors.tolist()) == (["a", "b"], [[1, 2], [3, 4]])


def test_arrays(tmp_path):
    np.savez(tmp_path / "v.npz", ids=np.array(["a", "b"]), vectors=np.eye(2))
    ids, vectors = read_vectors(tmp_path / "v.npz")
    assert (ids, vectors.tolist()) == (["a", "b"], [[1, 0], [0, 1]])


@pytest.mark.parametrize(
    "arrays, match",
    [
        ({"ids": np.array(["a"])}, "vectors"),
        ({"ids": np.array(["a"]), "vectors": np.array([["x"]])}, "not an .npz"),
        ({"ids": np.array(["a"]), "vectors": np.eye(2)}, r"1 ids .*\(2, 2"),
        ({"ids": np.array(["a", "a"]), "vectors": np.eye(2)}, 'duplicate.*"a"'),
        ({"ids": np.array([]), "vectors": np.zeros((0, 2))}, "0 ids"),
    ],
)
def test_broken_arrays(tmp_path, arrays, match):
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(DataError, match=match):
        read_vectors(tmp_path / "v.npz")


def test_text_named_npz_raises(tmp_path):
    (tmp_path / "v.npz").write_text("a 1 2")
    with pytest.raises(DataError, match="not an .npz"):
        read_vectors(tmp_path / "v.npz")


def test_encoder_reads_the_file_once_and_pickles_only_its_path(tmp_path):
    file = tmp_path / "v.txt"
    file.write_text("a 1 2\nb 3 4\n")
    encoder = VectorFile(str(file))
    first = encoder.transform(pd.Series(["A", "?"], index=["b", "c"]))
    np.testing.assert_array_equal(first, [[3, 4], [np.nan, np.nan]])
    file.write_text("a 9 9\n")
    assert encoder.transform(pd.Series(["x"], index=["a"])).tolist() == [[1, 2]]
    ids, vectors = encoder.vocabulary()
    assert (list(ids), vectors.tolist()) == (["a", "b"], [[1, 2], [3, 4]])
    again = pickle.loads(pickle.dumps(encoder))
    assert again.transform(pd.Series(["x"], index=["a"])).tolist() == [[9, 9]]


def test_missing_file_raises():
    with pytest.raises(DataError, match="nowhere.txt"):
        VectorFile("nowhere.txt").transform(pd.Series(["a"]))


def test_suffix_is_part_of_the_fingerprint(tmp_path):
    for name in ("v.txt", "v.csv"):
        (tmp_path / name).write_text("a,b 1\n")
    assert (
        VectorFile(str(tmp_path / "v.txt")).fingerprint()
        != VectorFile(str(tmp_path / "v.csv")).fingerprint()
    )


def test_lookup_does_not_change_the_vectors():
    vectors = np.array([[1.0], [2.0]])
    known = KnownVectors(["a", "b"], vectors)
    assert np.isnan(known.transform(pd.Series(0, index=["b", "zzz"]))[1]).all()
    assert known.transform(["a"]).tolist() == [[1.0]]
    assert vectors.tolist() == [[1.0], [2.0]]


@pytest.mark.parametrize(
    "ids, vectors, match",
    [
        (["a", "a"], np.eye(2), 'duplicate.*"a"'),
        (["a"], np.eye(2), "1 ids"),
        (["a"], np.array([1.0]), "1 ids"),
        ([], np.zeros((0, 2)), "0 ids"),
        (["a"], np.array([["x"]]), "must be numbers"),
    ],
)
def test_given_vectors_are_checked(ids, vectors, match):
    with pytest.raises(DataError, match=match):
        KnownVectors(ids, vectors).vocabulary()


def test_integer_vectors_become_floats():
    found = KnownVectors([1, 2], np.array([[1], [2]])).transform(pd.Series(0, index=[2, 3]))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[2], [np.nan]])


def test_angle_brackets_are_ignored_in_file_and_data(tmp_path):
    path = tmp_path / "tags.tsv"
    path.write_text("<script>\t1\t2\n<http://a.b/c d>\t3\t4\n")
    ids = ["<script>", "http://a.b/c d", "<http://a.b/c d>", "other"]
    got = VectorFile(str(path)).transform(pd.Series(ids, index=ids))
    assert got[:3].tolist() == [[1, 2], [3, 4], [3, 4]] and np.isnan(got[3]).all()
