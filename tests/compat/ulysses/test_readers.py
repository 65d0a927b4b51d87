"""The reader of CSV files in the format of Ulysses SentEval."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import karat
from karat.compat.ulysses.readers import read_senteval
from karat.core.dataset import Dataset
from karat.data.load_dataset import DataSpec
from karat.errors import DataError, DefinitionError

pytestmark = pytest.mark.usefixtures("download_settings")


SINGLE = ",text,label\n0,good,1\n1,bad,0\n2,fine,1\n"
PAIRS = ",a,b,label\n0,one,eins,1\n1,two,drei,0\n2,one,zwei,0\n"
EXAM = (
    ',question,options,label\n0,"1 + 1?","two [SEP] three [SEP] ten",0\n'
    '7,"2 + 1?","two [SEP] three [SEP] ten",1\n9,"5 + 5?","two [SEP] three [SEP] ten",2\n'
)


@pytest.fixture
def read(tmp_path):
    def reading(text: str, name: str = "file.csv", **settings) -> Dataset:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return read_senteval(path, DataSpec(name="mine", **settings))

    return reading


def texts(data: Dataset, field: str) -> list[str]:
    return data.items[data.questions[field]].tolist()


def test_one_text(read):
    data = read(SINGLE)
    assert (data.modality, data.kind, data.fields) == ("text", "classification", ["text"])
    assert texts(data, "text") == ["good", "bad", "fine"]
    assert data.target.tolist() == [1, 0, 1] and data.classes == (0, 1)


def test_two_texts(read):
    data = read(PAIRS)
    assert data.fields == ["a", "b"] and len(data.items) == 5
    assert texts(data, "a") == ["one", "two", "one"] and texts(data, "b")[1] == "drei"


def test_columns_after_the_second_text_are_ignored(read):
    data = read("id,a,b,source,label\n5,x,y,web,1\n6,u,v,web,0\n")
    assert data.fields == ["a", "b"] and len(data.items) == 4


def test_other_columns_can_be_named(read):
    data = read("place,a,b,label\nweb,x,y,1\nbook,u,v,0\n", fields=("b",), target="place")
    assert texts(data, "b") == ["y", "v"] and data.classes == ("book", "web")


def test_text_index_must_be_declared(read):
    content = "name,text,label\nfirst,good,1\nsecond,bad,0\n"
    with pytest.raises(DataError, match='"name"'):
        read(content)
    assert texts(read(content, options={"index": True}), "text") == ["good", "bad"]
    assert read(content, options={"index": False}).fields == ["name", "text"]


def test_texts_are_not_converted(read):
    data = read(',text,label\n0,NA,1\n1,007,0\n2," a, b ",1\n3,null,0\n')
    assert texts(data, "text") == ["NA", "007", " a, b ", "null"]


def test_train_and_test_files(tmp_path):
    for name, text in (("a.csv", SINGLE), ("b.csv", ",text,label\n0,new,1\n")):
        (tmp_path / name).write_text(text)
    files = {"train": tmp_path / "a.csv", "test": tmp_path / "b.csv"}
    data = read_senteval(files, DataSpec(name="mine"))
    assert Counter(data.part) == {"train": 3, "test": 1} and data.target.tolist() == [1, 0, 1, 1]


def test_group_column(read):
    data = read(",who,text,label\n0,x,a,1\n1,y,b,0\n", group="who")
    assert data.group.tolist() == ["x", "y"] and data.fields == ["text"]


@pytest.mark.parametrize(
    ("written", "classes"),
    [
        (["2", "10", "1"], (1, 2, 10)),
        (["1.0", "0.0", "1.0"], (0.0, 1.0)),
        (["-1", "1", "0"], (-1, 0, 1)),
        (["5", "7", "5"], (5, 7)),
        (["02", "10", "1"], ("1", "02", "10")),
        (["yes", "no", "yes"], ("no", "yes")),
        (["NA", "None", "x"], ("NA", "None", "x")),
        (["10", "9", "ten"], ("10", "9", "ten")),
        (["True", "False", "True"], ("False", "True")),
    ],
)
def test_labels_of_any_kind(read, written, classes):
    rows = "".join(f"{i},text {i},{label}\n" for i, label in enumerate(written))
    data = read(f",text,label\n{rows}")
    assert data.classes == classes
    assert [str(label) for label in data.target] == written


def test_labels_can_be_renamed(read):
    data = read(SINGLE, options={"labels": {"1": "good", "0": "bad"}})
    assert data.classes == ("good", "bad") and data.target.tolist() == ["good", "bad", "good"]


def test_options_become_fields(read):
    data = read(EXAM, options={"options": " [SEP] "})
    assert data.fields == ["question", "option_1", "option_2", "option_3"]
    assert texts(data, "question") == ["1 + 1?", "2 + 1?", "5 + 5?"]
    assert texts(data, "option_3") == ["ten"] * 3
    assert len(data.items) == 6 and data.classes == (0, 1, 2)


CHOICES = '"two [SEP] three [SEP] ten",'


@pytest.mark.parametrize(
    ("content", "separator", "word"),
    [
        (
            EXAM.replace(f"{CHOICES}2", '"two [SEP] three",2'),
            " [SEP] ",
            'row 2: "options".* 2 .* 3',
        ),
        (EXAM.replace(f"{CHOICES}1", '"two [SEP]  [SEP] ten",1'), " [SEP] ", 'row 1:.*"options"'),
        (EXAM, " / ", '" / "'),
        (SINGLE, " [SEP] ", "second text"),
        (EXAM, "", "second text"),
    ],
)
def test_invalid_choices(read, content, separator, word):
    with pytest.raises(DataError, match=word):
        read(content, options={"options": separator})


@pytest.mark.parametrize(
    ("content", "word"),
    [
        ("", r"file.csv is empty\."),
        (",text,label\n", r"file\.csv"),
        ("text,label\ngood,1\n", "columns"),
        ("label\n1\n0\n", "columns"),
        (",text,label\n0,a,1\n1,b,1\n", '"1"'),
        (",text,label\n0,a,1\n1,,0\n", 'row 1.*"text"'),
        (",text,label\n0,a,1\n1,  ,0\n", 'row 1: "text" is empty'),
        (",a,b,label\n0,x,,1\n1,,y,0\n", 'row 0.*"b"'),
        (",text,label\n0,a,1\n1,b,\n", 'row 1.*"label"'),
        (",text,text,label\n0,a,b,1\n", '"text"'),
        (",text,label\n0,a,1\n1,b,0,5\n", "line 3"),
    ],
)
def test_invalid_files(read, content, word):
    with pytest.raises(DataError, match=word) as error:
        read(content)
    assert "file.csv" in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"fields": ("txt",)}, '"text"'),
        ({"target": "labels"}, '"label"'),
        ({"group": "who"}, '"who"'),
    ],
)
def test_unknown_column_suggests_the_nearest(read, settings, word):
    with pytest.raises(DataError, match=word):
        read(SINGLE, **settings)


def test_missing_cells_of_other_formats(tmp_path):
    rows = [{"i": 0, "text": None, "label": "x"}, {"i": 1, "text": "a", "label": "y"}]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    with pytest.raises(DataError, match='row 0: "text" is empty'):
        read_senteval(path, DataSpec(name="mine"))
    rows[0]["text"], rows[1]["label"] = "b", None
    path.write_text(json.dumps([*rows, {"i": 2, "text": "c", "label": "y"}]))
    with pytest.raises(DataError, match='row 1.*"label"'):
        read_senteval(path, DataSpec(name="mine"))


def test_incomplete_rows_can_be_dropped(read):
    content = ",text,label\n0,a,1\n1,,0\n2,b,\n3,c,0\n"
    data = read(content, options={"empty": "drop", "unanswered": "drop"})
    assert texts(data, "text") == ["a", "c"] and data.target.tolist() == [1, 0]
    with pytest.raises(DataError, match="texts"):
        read(",text,label\n0,,1\n1,,0\n", options={"empty": "drop"})


@pytest.mark.parametrize("option", ["empty", "unanswered", "index"])
def test_invalid_value_of_an_option(read, option):
    with pytest.raises(DefinitionError, match=f'"{option}"'):
        read(SINGLE, options={option: "maybe"})


def test_questions_that_share_a_text_stay_together(read):
    data = read(PAIRS, options={"together": True})
    assert data.group.tolist() == [0, 1, 0]
    with pytest.raises(DefinitionError, match='"group"'):
        read(PAIRS, options={"together": True}, group="a")


YAML = """\
tasks:
  my-task:
    extends: senteval
    dataset: {path: mine.csv, reader: senteval}
suites:
  my-suite: {tasks: [my-task]}
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Write a YAML file of six lines and 800 texts whose label is their first word."""
    kinds = ["good", "poor"] * 400
    rows = [f"{i},{kind} day {i % 7} and {i},{kind}" for i, kind in enumerate(kinds)]
    (tmp_path / "mine.csv").write_text("\n".join([",text,label", *rows, ""]))
    (tmp_path / "mine.yaml").write_text(YAML)
    return tmp_path / "mine.yaml"


def test_own_task_in_six_lines(own, tmp_path):
    assert len(YAML.splitlines()) == 6
    suite = karat.suite("my-suite", define=own)
    (run,) = karat.evaluate("tfidf", suite, folds=[0, 1], output=tmp_path / "results")
    results = run.results()
    assert results["metric"].unique().tolist() == ["above_chance"]
    assert results["result"].tolist() == [1.0, 1.0], "the label is a word of the text"
