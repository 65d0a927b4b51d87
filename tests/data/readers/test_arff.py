"""ARFF files."""

from __future__ import annotations

import gzip
import time

import numpy as np
import pytest

from karat.data.readers.arff import parse_arff
from karat.data.readers.table_files import read_frame
from karat.errors import DataError

from .test_table_files import SPEC, rows, spec, write

TEXT = r"""% a comment
@RELATION 'some thing'

@attribute 'sepal length' NUMERIC
@attribute "it's" integer
@attribute size {small, 'very large', "it's"}
@attribute note string
@ATTRIBUTE day DATE "yyyy-MM-dd"
@attribute plain{a,b}
@data
5.1, 3 ,small,'say \'hi\', please',2020-01-01,a
% another
?,?,?,?,?,?
-1e3,0,'very large','?',"2020-02-02",b
1,2,"it's",don't,,a
"""
KEEL = """@relation abalone19
@attribute Sex{M, F, I}
@attribute Length real[0.075, 0.815]
@attribute Rings integer [1, 29]
@attribute Class {positive, negative}
@inputs Sex, Length, Rings
@outputs Class
@data
M, 0.455, 15,negative
<null>, <null>, 7, positive
"""
HEAD = "@relation r\n@attribute a real\n@attribute b {x, y}\n"


def test_dialects_of_arff():
    frame = parse_arff(TEXT, "t.arff")
    assert list(frame.columns) == ["sepal length", "it's", "size", "note", "day", "plain"]
    np.testing.assert_equal(frame["sepal length"].to_numpy(), [5.1, np.nan, -1000.0, 1.0])
    np.testing.assert_equal(frame["it's"].to_numpy(), [3.0, np.nan, 0.0, 2.0])
    assert frame["size"].tolist() == ["small", None, "very large", "it's"]
    assert frame["note"].tolist() == ["say 'hi', please", None, "?", "don't"]
    assert frame["day"].tolist() == ["2020-01-01", None, "2020-02-02", None]
    assert frame["plain"].tolist() == ["a", None, "b", "a"]


def test_dialect_of_keel_and_windows_line_ends():
    frame = parse_arff(KEEL, "abalone19.dat")
    assert list(frame.columns) == ["Sex", "Length", "Rings", "Class"]
    assert frame["Sex"].tolist() == ["M", None]
    np.testing.assert_equal(frame["Length"].to_numpy(), [0.455, np.nan])
    assert frame["Rings"].tolist() == [15.0, 7.0]
    assert frame["Class"].tolist() == ["negative", "positive"]
    frame = parse_arff("@relation r\r\n@attribute a {x,y}\r\n@data\r\nx\r\ny\r\n", "t.arff")
    assert frame["a"].tolist() == ["x", "y"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (HEAD + "@data\n1,x\n1\n", "line 6"),
        (HEAD + "@data\n{0 1, 1 x}\n", "line 5"),
        (HEAD + "@data\none,x\n", 'line 5.*"one"'),
        (HEAD + "@data\n1,z\n", 'line 5.*"z"'),
        (HEAD + "@data\n", "no rows after @data"),
        (HEAD, "has no @data"),
        (HEAD + "1,x\n", 'line 4.*"1,x"'),
        (HEAD + "@attribute a real\n@data\n", 'line 4.*"a"'),
        (HEAD + "@attribute c relational\n", '"relational"'),
        (HEAD + "@attribute c\n", "line 4"),
        (HEAD + "@attribute c {x, y\n", "lack the closing brace"),
        (HEAD + "@intputs a\n@data\n", 'line 4.*"@intputs a"'),
        (HEAD + "@data\n<null>,<null>\n1,<nil>\n", 'line 6.*"<nil>"'),
        ("@relation r\n@data\n1\n", "line 2"),
    ],
)
def test_broken_file_names_the_line(text, word):
    with pytest.raises(DataError, match=word):
        parse_arff(text, "t.arff")


@pytest.mark.parametrize(
    ("line", "cells"),
    [
        ("'a' , \"b,c\" ,d", ["a", "b,c", "d"]),
        ("'it\\'s',x", ["it's", "x"]),
        ("'a' b,'c'", ["'a' b", "c"]),
        ("'a,b", ["'a", "b"]),
        ("'a',", ["a", None]),
        ("' a ', b ", [" a ", "b"]),
        ("'a'" + " " * 100_000 + "b,c", ["'a'" + " " * 100_000 + "b", "c"]),
        ("'a" + "\\'" * 100_000 + ",c", ["'a" + "\\'" * 100_000, "c"]),
    ],
)
def test_quotes_of_arff_take_linear_time(line, cells):
    attributes = "".join(f"@attribute x{i} string\n" for i in range(len(cells)))
    begin = time.process_time()
    frame = parse_arff(f"@relation r\n{attributes}@data\n{line}\n", "t.arff")
    assert rows(frame) == [cells]
    assert time.process_time() - begin < 5


@pytest.mark.parametrize("cell", ["1_0", "inf", "-Infinity", "nan", "1e999", "true", "'1_0'"])
def test_numbers_of_arff_are_finite(cell):
    text = f"@relation r\n@attribute a real\n@data\n1\n{cell}\n"
    with pytest.raises(DataError, match='line 5: .*"a"'):
        parse_arff(text, "t.arff")


def test_arff_files_of_openml_and_keel(tmp_path):
    content = gzip.compress(b"@relation r\n@attribute a real\n@attribute b {x}\n@data\n1,x\n2,?\n")
    path = write(tmp_path, "t.arff.gz", content)
    assert rows(read_frame(path, SPEC)) == [[1.0, "x"], [2.0, None]]
    text = "@relation r\n@attribute a real [0, 1]\n@inputs a\n@data\n0.5\n"
    assert rows(read_frame(write(tmp_path, "t.dat", text), SPEC)) == [[0.5]]
    plain = write(tmp_path, "plain.dat", "0.5, x\n")  # without a header it is separated text
    with pytest.raises(DataError, match=r'line 1.*"0\.5, x"'):
        read_frame(plain, SPEC)
    frame = read_frame(plain, spec(separator=",", strip=True, names=["a", "b"]))
    assert rows(frame) == [[0.5, "x"]]
