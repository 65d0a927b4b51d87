from __future__ import annotations

import numpy as np
import pytest

from karat.data.arff import parse_arff
from karat.errors import DataError

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


def test_dialects_of_arff():
    frame = parse_arff(TEXT, "t.arff")
    assert list(frame.columns) == ["sepal length", "it's", "size", "note", "day", "plain"]
    np.testing.assert_equal(frame["sepal length"].to_numpy(), [5.1, np.nan, -1000.0, 1.0])
    np.testing.assert_equal(frame["it's"].to_numpy(), [3.0, np.nan, 0.0, 2.0])
    assert frame["size"].tolist() == ["small", None, "very large", "it's"]
    assert frame["note"].tolist() == ["say 'hi', please", None, "?", "don't"]
    assert frame["day"].tolist() == ["2020-01-01", None, "2020-02-02", None]
    assert frame["plain"].tolist() == ["a", None, "b", "a"]


def test_windows_line_ends():
    frame = parse_arff("@relation r\r\n@attribute a {x,y}\r\n@data\r\nx\r\ny\r\n", "t.arff")
    assert frame["a"].tolist() == ["x", "y"]


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


def test_dialect_of_keel():
    frame = parse_arff(KEEL, "abalone19.dat")
    assert list(frame.columns) == ["Sex", "Length", "Rings", "Class"]
    assert frame["Sex"].tolist() == ["M", None]
    np.testing.assert_equal(frame["Length"].to_numpy(), [0.455, np.nan])
    assert frame["Rings"].tolist() == [15.0, 7.0]
    assert frame["Class"].tolist() == ["negative", "positive"]


HEAD = "@relation r\n@attribute a real\n@attribute b {x, y}\n"


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
