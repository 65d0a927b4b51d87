"""Text vector files are read bit-identically with and without numba, block by block."""

import gzip

import numpy as np
import pytest

from karat.errors import DataError
from karat.models.vectors import decompression, vector_text
from karat.models.vectors.decompression import BLOCK
from karat.models.vectors.vector_formats import read_vectors
from karat.models.vectors.vector_text import read_text_rows


@pytest.fixture(params=["compiled", "plain"])
def loops(request, monkeypatch):
    if request.param == "compiled":
        pytest.importorskip("numba")
        monkeypatch.setattr(vector_text, "COMPILED_BYTES", 0)
    else:
        monkeypatch.setattr(vector_text, "text_kernels", lambda: None)


def read(path, text):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    ids, vectors = read_vectors(path)
    return ids, vectors


@pytest.mark.parametrize(
    "number", ["1_", "1-2", "--1", "1e", "e5", ".", "1.2.3", "0x10", "1,5", "-", "1e+", "1e5.0"]
)
def test_invalid_numbers_raise_with_their_line(tmp_path, loops, number):
    with pytest.raises(DataError, match=r"v.txt, line 3"):
        read(tmp_path / "v.txt", f"a 1 2\nb 1 2\nc 1 {number}\n")


INVALID = pytest.mark.parametrize(
    "text, match",
    [
        ("a 1 2\n\nb 3\n", "line 3: .*2 .*1"),
        ("a 1 2\nb 3 4 5\n", "line 2: .*2 .*3"),
        ("2 3\na 1 2\nb 3 4\n", "line 2: .*3 .*header.*2"),
        ("3 2\na 1 2\nb 3 4\n", "header .*3 .*2"),
        ("a 1 2\nb 1 -inf\n", "line 2: NaN"),
        ("a 1 2\nb 1 1e39\n", "line 2: NaN"),
        ("a 1 2\nb 1 NaN\n", "line 2: NaN"),
        ("a 1 2\nb 3 4\n\n<a> 5 6\n", 'line 4: .*"a".* line 1'),
        (b"a 1 2\n\xff 3 4\n", "line 2: not UTF-8"),
        ("2 2\na 1 2\nb 3 4 5\n", "line 3: .*3"),
        ("a 1 2\nb\n", "line 2: no numbers"),
        ("New York 1 2\n", "line 1: .*York"),
        ("", "no vectors"),
        ("\n\n", "no vectors"),
        ("2 3\n", "no vectors"),
        ("# a comment\na 1 2\n", "line 1: .*'a'"),
    ],
)


@INVALID
def test_invalid_lines_raise_with_their_number(tmp_path, loops, text, match):
    with pytest.raises(DataError, match=match):
        read(tmp_path / "v.txt", text)


@INVALID
def test_invalid_lines_raise_with_their_number_if_some_rows_are_read(tmp_path, text, match):
    path = tmp_path / "v.txt"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(DataError, match=match):
        read_text_rows(path, ["a", "b", "New", "#"])


@pytest.mark.parametrize("text", ["a 1 2\nb 1 x\n", "a 1 2\nb 1 NaN\n"])
def test_numbers_of_rows_that_are_not_read_are_not_parsed(tmp_path, text):
    (tmp_path / "v.txt").write_text(text)
    names, vectors = read_text_rows(tmp_path / "v.txt", ["a", "c"])
    assert names == ["a"] and vectors.tolist() == [[1, 2]]


@pytest.mark.parametrize("block", [8, BLOCK])
@pytest.mark.parametrize(
    "text",
    [
        "a 1 2\nb 3 4\nc 5 6\n",
        "3 2\na 1 2\nb 3 4\nc 5 6",
        "\ufeffa\t1\t2\r\n\r\n<b>\t3 4\r\nc 5 6 \r\n",
        " a  1 2\nb 3.0  4\n<c> 5 6e0\n",
    ],
)
def test_some_rows_are_those_of_the_whole_file(tmp_path, monkeypatch, text, block):
    monkeypatch.setattr(decompression, "BLOCK", block)
    ids, vectors = read(tmp_path / "v.txt", text)
    assert ids == ["a", "b", "c"]
    for wanted in ("abc", "ca", "b", "bx", ""):
        names, some = read_text_rows(tmp_path / "v.txt", wanted)
        assert names == [name for name in ids if name in wanted]
        assert some.dtype == np.float32 and some.shape == (len(names), 2)
        assert np.array_equal(some, vectors[[ids.index(name) for name in names]])


@pytest.mark.parametrize(
    "text, ids",
    [
        ("NA 1 2\nnull 3 4\n", ["NA", "null"]),
        ("nan 1 2\n3 3 4\n", ["nan", "3"]),
        ("http://x/#a?b=<c>&d=(e),'f'\"g 1 2\n# 3 4\n", ["http://x/#a?b=<c>&d=(e),'f'\"g", "#"]),
        ("New York\t1\t2\nRio  de\t3 4\n", ["New York", "Rio  de"]),
        ("7 8\t1\t2\nb 3 4\n", ["7 8", "b"]),
        ("b 1 2\t\nRio 2016\t3\t4\n", ["b", "Rio 2016"]),
        ("<http://x/ü> 1 2\r\n<> 3 4\r\n", ["http://x/ü", ""]),
        ("  a\t 1  2 \t\n \t\n\r\n\tb 3 4", ["a", "b"]),
    ],
)
def test_names_are_any_characters(tmp_path, loops, text, ids):
    found, vectors = read(tmp_path / "v.txt", text)
    assert (found, vectors.tolist()) == (ids, [[1, 2], [3, 4]])


def test_blocks_end_anywhere(tmp_path, loops, monkeypatch):
    lines = [f"entity/{'x' * (i % 23)}{i} {i} {-i / 8} 1e-{i % 9}" for i in range(300)]
    text = "300 3\n" + "\n".join(lines)
    whole, vectors = read(tmp_path / "v.txt", text)
    assert vectors[7].tolist() == [7, -7 / 8, np.float32(1e-7)]
    assert len(text) < BLOCK
    for size in (5, 64, 1000):
        monkeypatch.setattr(decompression, "BLOCK", size)
        ids, parts = read(tmp_path / "v.txt", text)
        assert ids == whole and parts.tobytes() == vectors.tobytes()
        with pytest.raises(DataError, match='line 302: .*"entity/0".* line 2'):
            read(tmp_path / "v.txt", f"{text}\nentity/0 1 2 3")


def test_text_is_not_held_as_a_whole(tmp_path, loops, monkeypatch):
    held = []
    blocks = vector_text._blocks

    def watched(path):
        for block in blocks(path):
            held.append(len(block))
            yield block

    monkeypatch.setattr(vector_text, "_blocks", watched)
    monkeypatch.setattr(decompression, "BLOCK", 1000)
    ids, _ = read(tmp_path / "v.txt", "".join(f"{i} 1 2\n" for i in range(2000)))
    assert len(ids) == 2000 and max(held) < 1100


@pytest.mark.parametrize("cut", [15, 30, -4])
def test_a_packed_text_that_is_cut_short(tmp_path, cut):
    text = "".join(f"entity{i} {i} {i * i}\n" for i in range(500)).encode()
    path = tmp_path / "v.txt.gz"
    path.write_bytes(gzip.compress(text)[:cut])
    with pytest.raises(DataError, match="v.txt.gz"):
        read_vectors(path)


def test_zst_is_unpacked_frame_by_frame(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    text = "".join(f"entity{i} {i} {i * i}\n" for i in range(500)).encode()
    frames = [zstandard.ZstdCompressor().compress(part) for part in (text[:3000], text[3000:])]
    path = tmp_path / "v.txt.zst"
    path.write_bytes(b"".join(frames))
    ids, vectors = read_vectors(path)
    assert ids[499] == "entity499" and vectors[499].tolist() == [499, 499 * 499]
    path.write_bytes(b"".join(frames)[:-9])
    with pytest.raises(DataError, match="v.txt.zst.* truncated"):
        read_vectors(path)
    path.write_bytes(b"no frame")
    with pytest.raises(DataError, match="v.txt.zst"):
        read_vectors(path)


def test_a_table_counts_lines_not_records(tmp_path):
    (tmp_path / "v.csv").write_text('id,x\n"a\nb",1\nc,2\nc,3\n')
    with pytest.raises(DataError, match='line 5: .*"c".* line 4'):
        read_vectors(tmp_path / "v.csv")


def test_small_files_are_read_without_compiled_loops(tmp_path, monkeypatch):
    monkeypatch.setattr(vector_text, "text_kernels", None)
    ids, vectors = read(tmp_path / "v.txt", "a 1 2\nb 3 4\n")
    assert ids == ["a", "b"] and vectors.tolist() == [[1, 2], [3, 4]]
