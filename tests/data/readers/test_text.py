"""Readers of texts: columns, folders, pieces, and tagged texts."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.core.dataset import Dataset
from karat.data.load_dataset import DataSpec
from karat.data.readers.text import read_columns, read_folders, read_pieces, read_tagged, related
from karat.errors import DataError, DefinitionError

FILES = {
    "one.csv": "id,text,score,joy,grief\na,first,0.5,1,0\nb,second,4.5,0,1\nc,third,3,1,1\n",
    "two.csv": "id,text,score,joy,grief\nd,fourth,5,0,0\ne,fifth,1,0,1\n",
    "marks.csv": "id,mark\nc,x\na,y\nb,\nz,x\n",
    "twice.csv": "id,mark\na,x\na,y\nb,x\nc,x\n",
}
ROWS = [
    {"title": "One", "tag": ["http://x.example/tag/deep_learning", "http://x.example/tag/all"]},
    {"title": "Two", "tag": ["http://x.example/tag/graphs", "http://x.example/tag/deep_learning"]},
    {"title": "Three", "tag": ["http://x.example/tag/all"]},
    {"title": "Four", "tag": ["http://x.example/tag/trees"]},
]
ALL = {"without": ["http://x.example/tag/all"]}
STS = (
    "news\t5.0\tNone\tNA\n"
    'news\t2.5\tHe word "hi\tNA\textra\n'
    "news\t0.0\tnull\tNone\n"
)  # fmt: skip
STS_OPTIONS = {
    "separator": "\t",
    "quoting": "none",
    "names": ["genre", "score", "s1", "s2", "license"],
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


def test_one_file_or_the_files_of_two_parts(folder):
    data = read(folder / "one.csv", target="score", kind="regression")
    assert texts(data) == ["first", "second", "third"] and data.target.tolist() == [0.5, 4.5, 3.0]
    options = {"train": "one.csv", "test": "two.csv"}
    data = read(folder, target="score", kind="regression", options=options)
    assert data.part.tolist() == ["train"] * 3 + ["test"] * 2 and texts(data)[3] == "fourth"
    options = {"train": ["one.csv", "two.csv"], "test": "two.csv"}
    data = read(folder, target="score", kind="regression", options=options)
    assert Counter(data.part) == {"train": 5, "test": 2}


def test_targets_in_another_file(folder):
    options = {"file": "one.csv", "answers": "marks.csv", "key": "id", "unanswered": "drop"}
    data = read(folder, target="mark", kind="classification", options=options)
    assert dict(zip(texts(data), data.target, strict=True)) == {"first": "y", "third": "x"}


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({}, '"file"'),
        ({"train": "one.csv"}, '"test"'),
        ({"file": "on.csv"}, '"one.csv"'),
        ({"file": "one.csv", "answers": "marks.csv"}, '"key"'),
        ({"file": "one.csv", "answers": "marks.csv", "key": "ID"}, '"ID"'),
        ({"file": "two.csv", "answers": "marks.csv", "key": "id"}, 'marks.csv.*"d"'),
        ({"file": "one.csv", "answers": "twice.csv", "key": "id"}, 'twice.csv.*"a"'),
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


def test_numbers_are_binned_into_classes(folder):
    options = {"classes": {"low": [0, 1], "high": [4.5, 5]}, "train": "one.csv", "test": "two.csv"}
    data = read(folder, target="score", options=options)
    assert texts(data) == ["first", "second", "fourth", "fifth"]
    assert data.target.tolist() == ["low", "high", "high", "low"]
    assert data.classes == ("low", "high") and data.part[-1] == "test"


def test_class_is_the_only_column_with_one(folder):
    data = read(folder / "one.csv", options={"one_of": ["joy", "grief"]})
    assert texts(data) == ["first", "second"] and data.target.tolist() == ["joy", "grief"]
    assert data.classes == ("joy", "grief")
    data = read(folder / "one.csv", options={"one_of": {"grief": "sad", "joy": "glad"}})
    assert data.classes == ("sad", "glad") and data.target.tolist() == ["glad", "sad"]


def test_kept_labels_define_the_order_of_classes(folder):
    data = read(folder / "one.csv", target="score", options={"keep": ["4.5", "0.5"]})
    assert data.target.tolist() == ["0.5", "4.5"] and data.classes == ("4.5", "0.5")
    data = read(folder / "one.csv", target="score", options={"keep": {"0.5": "bad", "3": "fair"}})
    assert data.target.tolist() == ["bad", "fair"] and data.classes == ("bad", "fair")
    with pytest.raises(DataError, match="requested targets"):
        read(folder / "one.csv", target="score", options={"keep": ["seven"]})


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"keep": "0.5"}, '"keep"'),
        ({"classes": ["low"]}, '"classes"'),
        ({"classes": {"low": [0, 4.5], "high": [4.5, 5]}}, '"high"'),
        ({"classes": {"low": [1]}}, '"low"'),
        ({"classes": {"low": [2, 1]}}, '"low"'),
        ({"classes": {"low": 3}}, '"low"'),
        ({"keep": ["1"], "one_of": ["joy"]}, "one_of"),
    ],
)
def test_invalid_target_options(folder, options, word):
    with pytest.raises(DefinitionError, match=word):
        read(folder / "one.csv", target="score", options=options)


def test_questions_that_share_a_text_stay_together(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b,y\nx,y,1\nu,v,2\ny,z,3\n")
    spec = DataSpec(
        name="mine", fields=("a", "b"), target="y", kind="regression", options={"together": True}
    )
    assert read_pieces(tmp_path / "pairs.csv", spec).group.tolist() == [0, 1, 0]


def test_groups_by_hand():
    assert related(pd.DataFrame({"a": list("xyz")})).tolist() == [0, 1, 2]
    assert related(pd.DataFrame({"a": list("xyx")})).tolist() == [0, 1, 0]
    frame = pd.DataFrame({"a": list("acx"), "b": list("bdy"), "c": list("cez")})
    assert related(frame).tolist() == [0, 0, 1]


@settings(deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=15))
def test_groups_equal_a_graph_search(pairs):
    found = related(pd.DataFrame(pairs).astype(str))
    groups = [{i} for i in range(len(pairs))]
    for i, one in enumerate(pairs):
        for j, other in enumerate(pairs):
            if set(one) & set(other):
                joined = groups[i] | groups[j]
                for k in joined:
                    groups[k] = joined
    alike = np.array([[j in groups[i] for j in range(len(pairs))] for i in range(len(pairs))])
    assert ((found[:, None] == found) == alike).all()


@pytest.fixture
def tag_file(tmp_path: Path) -> Path:
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(ROWS))
    return path


def tagged(path: Path, **options) -> Dataset:
    return read_tagged(
        path, DataSpec(name="mine", fields=("title",), target="tag", options={**ALL, **options})
    )


def pairs(data: Dataset) -> list[tuple[str, str]]:
    asked = data.items[data.questions["query"]]
    return list(zip(asked, data.items[data.target], strict=True))


def test_title_asks_for_its_tags(tag_file):
    data = tagged(tag_file)
    assert data.kind == "items" and data.modality == "text"
    assert pairs(data) == [
        ("One", "deep learning"),
        ("Two", "graphs"),
        ("Two", "deep learning"),
        ("Four", "trees"),
    ]


def test_tag_in_a_cell(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("title,tag\nOne,red\nTwo,blue\nOne,blue\nOne,red\nThree,\n")
    assert pairs(tagged(path)) == [("One", "red"), ("Two", "blue"), ("One", "blue")]


def test_lists_hold_all_own_tags_and_some_others(tag_file):
    data = tagged(tag_file, ask="lists", others=2)
    assert data.classes == ("other", "own") and data.fields == ["query", "tag"]
    assert Counter(data.group) == {"One": 3, "Two": 3, "Four": 3}
    assert Counter(data.target)["own"] == 4 and not data.questions.duplicated().any()
    data = tagged(tag_file, ask="lists", others=50)
    for query in ("One", "Two", "Four"):
        tags = data.items[data.questions["tag"][data.group == query]].tolist()
        assert sorted(tags) == ["deep learning", "graphs", "trees"], "each tag once"


def test_seed_determines_the_drawn_tags(tmp_path):
    rows = [{"title": f"t{i}", "tag": [f"tag {i}"]} for i in range(40)]
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(rows))
    one, again, other = (tagged(path, ask="lists", others=5, seed=seed) for seed in (0, 0, 1))
    assert one.fingerprint == again.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"ask": "list"}, '"lists"'),
        ({"ask": "lists", "others": 0}, "others"),
        ({"ask": "lists", "seed": -1}, "seed"),
        ({"negatives": 3}, 'no option "negatives"'),
    ],
)
def test_invalid_options_of_tagged(tag_file, options, word):
    with pytest.raises(DefinitionError, match=word):
        tagged(tag_file, **options)


def test_invalid_rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("title,tag\nOne,http://x.example/tag/all\n")
    with pytest.raises(DataError, match='"tag"'):
        tagged(path)
    path.write_text("title,tag\nOne,red\n,blue\n")
    with pytest.raises(DataError, match='row 1.*"title"'):
        tagged(path)
    path.write_text("title,tag\nOne,red\nOne,blue\n")
    with pytest.raises(DataError, match='"One" has every tag'):
        tagged(path, ask="lists")
    with pytest.raises(DefinitionError, match='"fields"'):
        read_tagged(path, DataSpec(name="mine", target="tag"))


def test_pairs_of_sentences(tmp_path: Path):
    path = tmp_path / "sts.csv"
    path.write_text(STS)
    spec = DataSpec(
        "sts", target="score", kind="regression", fields=("s1", "s2"), options=STS_OPTIONS
    )
    data = read_columns(path, spec)
    assert data.items.tolist() == ["None", 'He word "hi', "null", "NA"]
    assert data.questions.to_dict("list") == {"s1": [0, 1, 2], "s2": [3, 3, 0]}
    assert data.target.tolist() == [5.0, 2.5, 0.0]
    assert (data.kind, data.modality) == ("regression", "text")


def test_default_modality_of_a_definition_means_text(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,y\n007,a\n1.50,b\n")
    data = read_columns(path, DataSpec("t", target="y", fields=("text",), modality="table"))
    assert data.modality == "text"
    assert data.items.tolist() == ["007", "1.50"]
    with pytest.raises(DefinitionError, match=r'"fields: \[NAME\]"'):
        read_columns(path, DataSpec("t", target="y"))
    with pytest.raises(DefinitionError, match='"target: NAME"'):
        read_columns(path, DataSpec("t", fields=("text",)))
    with pytest.raises(DataError, match='"text"'):
        read_columns(path, DataSpec("t", target="y", fields=("txt",)))
    path.write_text("text,y\nhi,a\n,b\n")
    with pytest.raises(DataError, match='"text".*row 1'):
        read_columns(path, DataSpec("t", target="y", fields=("text",)))


def test_entities_have_readable_labels(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"e": "http://x.example/New_York", "y": 1.5}\n{"e": 7, "y": 2.5}\n')
    data = read_columns(path, DataSpec("t", target="y", fields=("e",), modality="entity"))
    assert data.items.to_dict() == {"http://x.example/New_York": "New York", "7": "7"}


@pytest.fixture
def news(tmp_path: Path) -> Path:
    texts = {
        "tech/002.txt": "caf\u00e9".encode("latin-1"),
        "tech/001.txt": "\ufeffchips".encode(),
        "sport/001.txt": "match \u20ac 5".encode(),
        "sport/readme.md": b"not this",
        "sport/.hidden.txt": b"nor this",
        "top.txt": b"nor this",
    }
    for name, content in texts.items():
        path = tmp_path / "news" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return tmp_path / "news"


def test_folder_of_a_text_is_its_class(news):
    data = read_folders(news, DataSpec("news", options={"glob": "*.txt"}))
    assert data.items.tolist() == ["match \u20ac 5", "chips", "caf\u00e9"]
    assert data.target.tolist() == ["sport", "tech", "tech"]
    assert (data.kind, data.modality, data.fields) == ("classification", "text", ["text"])


def test_columns_can_be_named_and_the_parts_given(news):
    assert len(read_folders(news, DataSpec("news"))) == 4  # all files without a pattern
    spec = DataSpec("news", target="topic", fields=("article",), options={"glob": "*.txt"})
    data = read_folders({"train": news, "test": news}, spec)
    assert data.fields == ["article"]
    assert data.part.tolist() == ["train"] * 3 + ["test"] * 3


def test_folders_that_cannot_be_read(news, tmp_path):
    with pytest.raises(DataError, match="folders"):
        read_folders(news / "top.txt", DataSpec("news"))
    with pytest.raises(DataError, match=r"\.html"):
        read_folders(news, DataSpec("news", options={"glob": "*.html"}))
    (news / "tech" / "003.txt").write_text(" \n")
    with pytest.raises(DataError, match="003.txt is empty"):
        read_folders(news, DataSpec("news"))


def test_folders_can_keep_the_first_line_only(tmp_path):
    for topic, text in {"sport": "\n Cup final \nlong text", "tech": "New chip\n\nmore"}.items():
        (tmp_path / topic).mkdir()
        (tmp_path / topic / "1.txt").write_text(text)
    data = read_folders(tmp_path, DataSpec("heads", options={"first_line": True}))
    assert data.items.tolist() == ["Cup final", "New chip"]
    assert data.target.tolist() == ["sport", "tech"]
