"""The reader of word pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.data.load import DataSpec
from karat.data.words import read_word_pairs
from karat.errors import DataError, DefinitionError


def write(folder: Path, text: str) -> Path:
    path = folder / "words.tsv"
    path.write_bytes(text.encode())
    return path


def test_two_words_and_a_number(tmp_path):
    text = "# word1\tword2\tscore\nFBI\tPolice\t8.5\nchord\t\tsmile\t\t0.02\n"
    data = read_word_pairs(write(tmp_path, text), DataSpec("pairs"))
    assert data.fields == ["word1", "word2"]
    assert data.questions.to_numpy().tolist() == [["FBI", "Police"], ["chord", "smile"]]
    assert data.truth.tolist() == [8.5, 0.02]
    assert (data.kind, data.modality) == ("numbers", "entity")
    assert data.items.to_dict() == {w: w for w in ("FBI", "chord", "Police", "smile")}


def test_lower_case_merges_words(tmp_path):
    path = write(tmp_path, "FBI fbi 10\nfbi Police 5\n")
    assert len(read_word_pairs(path, DataSpec("pairs")).items) == 3
    data = read_word_pairs(path, DataSpec("pairs", options={"lower": True}))
    assert data.questions.to_numpy().tolist() == [["fbi", "fbi"], ["fbi", "police"]]
    assert len(data.items) == 2


@pytest.mark.parametrize(
    "text",
    [
        "\ufeffNA\tnull\t1\nnan\tNone\t2\n",
        "NA\tnull\t1\r\nnan\tNone\t2\r\n",
        "NA null 1\n\n  nan   None 2",
    ],
    ids=["byte order mark", "ends of Windows", "blanks"],
)
def test_words_that_look_like_missing_values(tmp_path, text):
    data = read_word_pairs(write(tmp_path, text), DataSpec("pairs"))
    assert data.questions.to_numpy().tolist() == [["NA", "null"], ["nan", "None"]]
    assert data.truth.tolist() == [1.0, 2.0]


def test_terms_may_contain_blanks(tmp_path):
    path = write(tmp_path, "new york\tbig apple\t9\nyork\tapple\t1\n")
    data = read_word_pairs(path, DataSpec("pairs"))
    assert data.questions.iloc[0].tolist() == ["new york", "big apple"]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a b 1\na b\n", "line 2"),
        ("a\tb\tc\t1\n", "line 1"),
        ("a\tb\tmuch\n", 'line 1.*"much"'),
        ("# nothing\n", "comments"),
        ("", "is empty"),
        ("a b nan\na c 1\n", "missing in 1 of 2 rows"),
    ],
)
def test_broken_lines(tmp_path, text, word):
    with pytest.raises(DataError, match=word):
        read_word_pairs(write(tmp_path, text), DataSpec("pairs"))


def test_unknown_option(tmp_path):
    with pytest.raises(DefinitionError, match='"lower"'):
        read_word_pairs(write(tmp_path, "a b 1\n"), DataSpec("pairs", options={"lowr": True}))
