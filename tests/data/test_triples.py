"""The reader of triples, on small knowledge graphs."""

from __future__ import annotations

from pathlib import Path

import pytest

from karat.data.load import DataSpec
from karat.data.triples import read_triples
from karat.errors import DataError, DefinitionError
from karat.splits import split

SPEC = DataSpec("graph")


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return folder


def small(folder: Path) -> Path:
    return write(
        folder,
        train="oslo\tcapital_of\tnorway\nNA\tin\tnull\n",
        valid="rome\tcapital_of\titaly\n",
        test="new_york\tin\tusa\n",
    )


def rows(data) -> list[tuple[str, ...]]:
    part = data.part.tolist() if data.part is not None else [""] * len(data)
    return list(zip(data.questions["head"], data.group, data.truth, part, strict=True))


def test_triples_are_asked_from_both_ends(tmp_path):
    data = read_triples(small(tmp_path), SPEC)
    assert rows(data) == [
        ("oslo", "capital_of", "norway", "train"),
        ("NA", "in", "null", "train"),
        ("rome", "capital_of", "italy", "train"),
        ("new_york", "in", "usa", "test"),
        ("norway", "capital_of⁻¹", "oslo", "train"),
        ("null", "in⁻¹", "NA", "train"),
        ("italy", "capital_of⁻¹", "rome", "train"),
        ("usa", "in⁻¹", "new_york", "test"),
    ]
    assert (data.kind, data.modality, data.fields) == ("items", "entity", ["head"])
    assert len(data.items) == 8 and data.items["new_york"] == "new york"
    (fold,) = split(data, {"use": "fixed"}, 0)
    assert fold.test.tolist() == [3, 7] and len(fold.train) == 6


def test_from_the_head_only(tmp_path):
    data = read_triples(small(tmp_path), DataSpec("graph", options={"inverse": False}))
    assert len(data) == 4 and len(data.items) == 8


def test_other_names_of_files_and_columns(tmp_path):
    write(tmp_path, a="oslo\tnorway\tin\n", b="rome\titaly\tin\n", c="usa\tearth\tin\n")
    options = {
        "train": ["a.txt", "b.txt"],
        "test": "c.txt",
        "order": ["head", "tail", "relation"],
        "inverse": False,
    }
    data = read_triples(tmp_path, DataSpec("graph", options=options))
    assert rows(data) == [
        ("oslo", "in", "norway", "train"),
        ("rome", "in", "italy", "train"),
        ("usa", "in", "earth", "test"),
    ]
    with pytest.raises(DefinitionError, match='"order"'):
        read_triples(tmp_path, DataSpec("graph", options={"order": ["head", "tail"]}))


def test_two_files_or_one(tmp_path):
    small(tmp_path)
    both = {"train": tmp_path / "train.txt", "test": tmp_path / "test.txt"}
    assert read_triples(both, SPEC).part.tolist() == ["train", "train", "test"] * 2
    one = read_triples(tmp_path / "train.txt", SPEC)
    assert one.part is None and len(one) == 4
    with pytest.raises(DefinitionError, match='"test"'):
        read_triples(both, DataSpec("graph", options={"test": "test.txt"}))


@pytest.mark.parametrize(
    "text",
    ["\ufeffNA\tin\tnull\n", "NA\tin\tnull\r\n\r\n", " NA \tin\t null"],
    ids=["byte order mark", "ends of Windows", "blanks around"],
)
def test_names_that_look_like_missing_values(tmp_path, text):
    write(tmp_path, one=text)
    data = read_triples(tmp_path / "one.txt", SPEC)
    assert rows(data) == [("NA", "in", "null", ""), ("null", "in⁻¹", "NA", "")]


def test_triple_counts_once(tmp_path):
    small(tmp_path)
    write(tmp_path, valid="oslo\tcapital_of\tnorway\nrome\tcapital_of\titaly\n")
    data = read_triples(tmp_path, SPEC)
    assert len(data) == 8
    assert data.about["note"].startswith("1 ")
    assert "note" not in read_triples(small(tmp_path), SPEC).about


def test_triple_in_train_and_test_is_refused(tmp_path):
    small(tmp_path)
    write(tmp_path, test="new_york\tin\tusa\noslo\tcapital_of\tnorway\n")
    with pytest.raises(DataError, match="oslo capital_of norway"):
        read_triples(tmp_path, SPEC)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a\tr\tb\na\tr\n", "line 2"),
        ("a\tr\tb\tc\n", "line 1"),
        ("a\t\tb\n", "line 1"),
        ("a r b\n", "line 1"),
        ("\n", "is empty"),
    ],
)
def test_broken_lines(tmp_path, text, word):
    small(tmp_path)
    with pytest.raises(DataError, match=word):
        read_triples(write(tmp_path, train=text), SPEC)


def test_file_that_is_not_there(tmp_path):
    small(tmp_path)
    options = {"test": "tset.txt"}
    with pytest.raises(DataError, match=r'"test\.txt"'):
        read_triples(tmp_path, DataSpec("graph", options=options))
    with pytest.raises(DefinitionError, match='"inverse"'):
        read_triples(tmp_path, DataSpec("graph", options={"invers": True}))
