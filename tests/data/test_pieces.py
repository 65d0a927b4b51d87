from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from karat.data.load import DataSpec
from karat.data.pieces import read_pieces
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError

FILES = {
    "one.csv": "id,text,score,joy,grief\na,first,0.5,1,0\nb,second,4.5,0,1\nc,third,3,1,1\n",
    "two.csv": "id,text,score,joy,grief\nd,fourth,5,0,0\ne,fifth,1,0,1\n",
    "marks.csv": "id,mark\nc,x\na,y\nb,\nz,x\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def read(path: Path, **settings) -> Dataset:
    options = settings.pop("options", {})
    return read_pieces(path, DataSpec(name="mine", fields=("text",), options=options, **settings))


def texts(data: Dataset) -> list[str]:
    return data.items[data.questions["text"]].tolist()


# -- files ----------------------------------------------------------------------------------


def test_plain_file(folder):
    data = read(folder / "one.csv", target="score", kind="numbers")
    assert texts(data) == ["first", "second", "third"] and data.truth.tolist() == [0.5, 4.5, 3.0]


def test_files_of_two_parts(folder):
    options = {"train": "one.csv", "test": "two.csv"}
    data = read(folder, target="score", kind="numbers", options=options)
    assert data.part.tolist() == ["train"] * 3 + ["test"] * 2 and texts(data)[3] == "fourth"


def test_several_files_are_one_part(folder):
    options = {"train": ["one.csv", "two.csv"], "test": "two.csv"}
    data = read(folder, target="score", kind="numbers", options=options)
    assert Counter(data.part) == {"train": 5, "test": 2}


def test_targets_in_another_file(folder):
    options = {"file": "one.csv", "answers": "marks.csv", "key": "id", "unanswered": "drop"}
    data = read(folder, target="mark", kind="classes", options=options)
    assert dict(zip(texts(data), data.truth, strict=True)) == {"first": "y", "third": "x"}


def test_duplicate_key(folder):
    (folder / "marks.csv").write_text("id,mark\na,x\na,y\nb,x\nc,x\n")
    options = {"file": "one.csv", "answers": "marks.csv", "key": "id"}
    with pytest.raises(DataError, match='marks.csv.*"a"'):
        read(folder, target="mark", options=options)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, '"file"'),
        ({"train": "one.csv"}, '"test"'),
        ({"file": "on.csv"}, '"one.csv"'),
        ({"file": "one.csv", "answers": "marks.csv"}, '"key"'),
        ({"file": "one.csv", "answers": "marks.csv", "key": "ID"}, '"ID"'),
        ({"file": "two.csv", "answers": "marks.csv", "key": "id"}, 'marks.csv.*"d"'),
        ({"files": "one.csv"}, '"files"'),
    ],
)
def test_invalid_folder_options(folder, options, word):
    with pytest.raises((DataError, DefinitionError), match=word):
        read(folder, target="score", options=options)


def test_folder_options_need_a_folder_and_fields_are_required(folder):
    with pytest.raises(DefinitionError, match='"train"'):
        read(folder / "one.csv", target="score", options={"train": "one.csv"})
    with pytest.raises(DefinitionError, match="fields"):
        read_pieces(folder / "one.csv", DataSpec(name="mine", target="score"))


# -- targets --------------------------------------------------------------------------------


def test_numbers_are_binned_into_classes(folder):
    options = {"classes": {"low": [0, 1], "high": [4.5, 5]}, "train": "one.csv", "test": "two.csv"}
    data = read(folder, target="score", options=options)
    assert texts(data) == ["first", "second", "fourth", "fifth"]
    assert data.truth.tolist() == ["low", "high", "high", "low"]
    assert data.classes == ("low", "high") and data.part[-1] == "test"


def test_limits_must_not_overlap(folder):
    with pytest.raises(DefinitionError, match='"high"'):
        read(
            folder / "one.csv",
            target="score",
            options={"classes": {"low": [0, 4.5], "high": [4.5, 5]}},
        )
    for limits in ([1], [2, 1], 3):
        with pytest.raises(DefinitionError, match='"low"'):
            read(folder / "one.csv", target="score", options={"classes": {"low": limits}})


def test_class_is_the_only_column_with_one(folder):
    data = read(folder / "one.csv", options={"one_of": ["joy", "grief"]})
    assert texts(data) == ["first", "second"] and data.truth.tolist() == ["joy", "grief"]
    assert data.classes == ("joy", "grief")
    data = read(folder / "one.csv", options={"one_of": {"grief": "sad", "joy": "glad"}})
    assert data.classes == ("sad", "glad") and data.truth.tolist() == ["glad", "sad"]


def test_kept_labels_define_the_order_of_classes(folder):
    data = read(folder / "one.csv", target="score", options={"keep": ["4.5", "0.5"]})
    assert data.truth.tolist() == ["0.5", "4.5"] and data.classes == ("4.5", "0.5")
    data = read(folder / "one.csv", target="score", options={"keep": {"0.5": "bad", "3": "fair"}})
    assert data.truth.tolist() == ["bad", "fair"] and data.classes == ("bad", "fair")


def test_no_row_with_a_kept_label(folder):
    with pytest.raises(DataError, match="requested targets"):
        read(folder / "one.csv", target="score", options={"keep": ["seven"]})


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"keep": "0.5"}, '"keep"'),
        ({"classes": ["low"]}, '"classes"'),
        ({"keep": ["1"], "one_of": ["joy"]}, "one_of"),
    ],
)
def test_invalid_target_options(folder, options, word):
    with pytest.raises(DefinitionError, match=word):
        read(folder / "one.csv", target="score", options=options)


def test_questions_that_share_a_text_stay_together(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b,y\nx,y,1\nu,v,2\ny,z,3\n")
    spec = DataSpec(
        name="mine", fields=("a", "b"), target="y", kind="numbers", options={"together": True}
    )
    assert read_pieces(tmp_path / "pairs.csv", spec).group.tolist() == [0, 1, 0]
