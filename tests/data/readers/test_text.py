"""Readers of texts: columns, folders, pieces, tagged texts and translations."""

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
from karat.data.load_dataset import DataSpec, load_dataset
from karat.data.readers import text as text_readers
from karat.data.readers.text import (
    read_columns,
    read_duplicates,
    read_folders,
    read_linkage,
    read_pieces,
    read_tagged,
    read_translations,
    related,
)
from karat.errors import DataError, DefinitionError

FILES = {
    "one.csv": "id,text,score,joy,grief\na,first,0.5,1,0\nb,second,4.5,0,1\nc,third,3,1,1\n",
    "two.csv": "id,text,score,joy,grief\nd,fourth,5,0,0\ne,fifth,1,0,1\n",
    "marks.csv": "id,mark\nc,x\na,y\nb,\nz,x\n",
    "twice.csv": "id,mark\na,x\na,y\nb,x\nc,x\n",
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


ROWS = [
    {"title": "One", "tag": ["http://x.example/tag/deep_learning", "http://x.example/tag/all"]},
    {"title": "Two", "tag": ["http://x.example/tag/graphs", "http://x.example/tag/deep_learning"]},
    {"title": "Three", "tag": ["http://x.example/tag/all"]},
    {"title": "Four", "tag": ["http://x.example/tag/trees"]},
]
ALL = {"without": ["http://x.example/tag/all"]}


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


MESSAGES = r"""
# translators of the project
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"

#: file.py:12
msgid "Good morning to all"
msgstr "Guten Morgen allerseits"

msgctxt "verb"
msgid "Close"
msgstr "Schließen"

msgid ""
"A long message "
"in two lines"
msgstr ""
"Eine lange Meldung "
"in zwei \"Zeilen\"\n"

#, python-format
msgid "%(count)d page is there"
msgid_plural "%(count)d pages are there"
msgstr[0] "%(count)d Seite ist da"
msgstr[1] "%(count)d Seiten sind da"

#, fuzzy
msgid "This is doubtful indeed"
msgstr "Das ist so"

msgid "Not translated at all"
msgstr ""

msgid "Server"
msgstr "Server"

msgid "Read <b>this</b> first"
msgstr "Zuerst <b>das</b> lesen"

#~ msgid "obsolete thing of old"
#~ msgstr "altes Ding"
"""


@pytest.fixture
def po_file(tmp_path: Path) -> Path:
    path = tmp_path / "messages.po"
    path.write_text(MESSAGES, encoding="utf-8")
    return path


def translations(path: Path, **options) -> dict[str, str]:
    data = read_translations(path, DataSpec(name="mine", options=options))
    assert data.kind == "items" and data.fields == ["translation"]
    asked = data.items[data.questions["translation"]]
    return dict(zip(asked, data.items[data.target], strict=True))


def test_translations_are_queries_for_originals(po_file):
    assert translations(po_file) == {
        "Guten Morgen allerseits": "Good morning to all",
        "Schließen": "Close",
        'Eine lange Meldung in zwei "Zeilen"': "A long message in two lines",
        "%(count)d Seite ist da": "%(count)d page is there",
        "Zuerst <b>das</b> lesen": "Read <b>this</b> first",
    }


def test_options_of_translations(po_file):
    plain = ["Good morning to all", "A long message in two lines"]
    assert list(translations(po_file, words=3, plain=True).values()) == plain
    with pytest.raises(DefinitionError, match="words"):
        translations(po_file, words=0)
    with pytest.raises(DefinitionError, match='no option "word"'):
        translations(po_file, word=3)


def catalog(*pairs: tuple[str, str]) -> str:
    return "\n\n".join(f'msgid "{one}"\nmsgstr "{other}"' for one, other in pairs)


def test_messages_of_all_files_of_a_folder(tmp_path):
    for place, pairs in {
        "b/django.po": [("Save this page", "Seite speichern"), ("Log out", "Abmelden")],
        "a/django.po": [("Log out", "Abmelden"), ("Page not found", "Seite fehlt")],
        "a/notes.txt": [("Not a catalog", "Kein Katalog")],
    }.items():
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(catalog(*pairs), encoding="utf-8")
    found = {"Abmelden": "Log out", "Seite fehlt": "Page not found"}
    assert translations(tmp_path) == {**found, "Seite speichern": "Save this page"}
    with pytest.raises(DataError, match=r"\.po"):
        (tmp_path / "none").mkdir()
        translations(tmp_path / "none")


def test_each_translation_has_one_right_answer(tmp_path):
    pairs = [
        *[("Log out", "Abmelden"), ("Log out", "Ausloggen"), ("log  OUT.", "Raus hier")],
        *[("Delete it", "Weg damit"), ("Remove it", "weg damit!")],
        *[("Server Error", "server error"), ("Go on", "Weiter")],
    ]
    (tmp_path / "de.po").write_text(catalog(*pairs), encoding="utf-8")
    found = {"Abmelden": "Log out", "Weiter": "Go on"}
    assert translations(tmp_path / "de.po", unique=True) == found
    assert len(translations(tmp_path / "de.po")) == 7


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (b"text,label\na,b\n", "is not a gettext file"),
        (b'"text alone"\n', "is not a gettext file"),
        (b'msgid "a\\x"\nmsgstr "b"\n', "invalid string"),
        (b'msgid ""' + b"-" * 100_000 + b'""\n', "is not a gettext file"),
        (b"", "translated"),
        (b'msgid "a"\nmsgstr "b"\n', "translated"),
        (b"\xff\xfe\x00", "not a UTF-8"),
    ],
)
def test_invalid_messages(tmp_path, content, word):
    path = tmp_path / "messages.po"
    path.write_bytes(content)
    with pytest.raises(DataError, match=word):
        translations(path)


PEOPLE = """rec_id, name, house, zip
rec-1-org, ann, 5, 0123
rec-2-org, bob, 7,
rec-1-dup-0, anne, 5, 0123
rec-3-org, carl, , 0999
rec-1-dup-1, an, 6, 0123
"""
PATTERN = r"rec-(\d+)-"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


def spec(**changes: object) -> DataSpec:
    options = {"strip": True, "entity": PATTERN, "texts": ["zip"], **changes.pop("options", {})}
    return DataSpec("people", **{"target": "rec_id", "options": options, **changes})


def test_rows_of_one_entity_have_the_same_target(people):
    data = read_duplicates(people, spec())
    assert data.target.tolist() == ["1", "2", "1", "3", "1"]
    assert (data.kind, data.modality, data.fields) == ("classification", "table", ["row"])
    assert data.classes == ("1", "2", "3")
    assert data.group.tolist() == data.target.tolist()  # so that a sample keeps duplicates together
    assert list(data.items.columns) == ["name", "house", "zip"]  # the id is no feature
    assert data.items["zip"].tolist()[::2] == ["0123", "0123", "0123"]
    assert pd.isna(data.items["zip"][1])


def test_target_column_may_hold_the_entity(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("thing,x\n07,1\n7,2\n07,3\nNA,4\n")
    data = load_dataset("t", {"path": path, "reader": "duplicates", "target": "thing"})
    assert data.target.tolist() == ["07", "7", "07", "NA"]


def test_fields_and_drop_choose_the_features(people):
    assert list(read_duplicates(people, spec(fields=("name",))).items.columns) == ["name"]
    assert list(read_duplicates(people, spec(drop=("name", "zip"))).items.columns) == ["house"]
    data = read_duplicates(people, spec()).sample(4, np.random.default_rng(0))
    assert data.target.tolist().count("1") in (0, 3)  # duplicates stay together


@pytest.mark.parametrize(
    ("text", "changes", "word"),
    [
        ("id,x\na,1\nb,2\n", {"target": "id", "entity": None}, '"id"'),
        ("id,x\na,1\n,2\n", {"target": "id", "entity": None}, '"id"'),
        ("id,x\na,1\na,2\n", {"target": "ix", "entity": None}, '"ix"'),
        ("id,x\nrec-1-a,1\nrec-x-a,2\n", {"target": "id"}, '"rec-x-a"'),
    ],
)
def test_invalid_table_of_duplicates(tmp_path, text, changes, word):
    path = tmp_path / "t.csv"
    path.write_text(text)
    options = {"entity": changes.get("entity", PATTERN)}
    with pytest.raises(DataError, match=word):
        read_duplicates(path, DataSpec("t", target=changes["target"], options=options))


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"target": None}, '"target: NAME"'),
        ({"options": {"entity": "("}}, '"entity"'),
        ({"options": {"entity": "rec"}}, '"rec"'),
        ({"options": {"entty": "x"}}, '"entty"'),
    ],
)
def test_invalid_definition_of_duplicates(people, changes, word):
    with pytest.raises(DefinitionError, match=word):
        read_duplicates(people, spec(**changes))
    with pytest.raises(DefinitionError, match="people"):
        read_duplicates({"train": people, "test": people}, spec())


LEFT = "id,name,city,stars\n01,arnie,rome,3\n02,bel air,oslo,4\n03,cafe,bonn,5\n"
RIGHT = (
    "id,city,name,phone\n01,rome,arnies,1\n02,oslo,hotel bel-air,2\n9,bonn,dairy,3\nx,bonn,e,4\n"
)
OPTIONS = {
    "left": "a.csv",
    "right": "b.csv",
    "id": "id",
    "matches": "m.csv",
    "keys": ["a_id", "b_id"],
    "negatives": 2,
}


@pytest.fixture
def shops(tmp_path: Path) -> Path:
    files = {"a": LEFT, "b": RIGHT, "m": "a_id,b_id\n01,01\n02,02\n"}
    files["labeled"] = "n,a_id,b_id,gold\n0,01,01,1\n1,02,x,0\n2,01,9,0\n"
    for name, text in files.items():
        (tmp_path / f"{name}.csv").write_text(text)
    return tmp_path


def link(shops: Path, target: str | None = None, **options: object):
    given = {k: v for k, v in {**OPTIONS, **options}.items() if v is not None}
    return read_linkage(shops, DataSpec("shops", target=target, options=given))


def answers(data) -> list[tuple[str, str, str]]:
    return list(zip(data.questions["left"], data.questions["right"], data.target, strict=True))


def matches(data) -> list[list[object]]:
    return [pair for *pair, truth in answers(data) if truth == "match"]


def test_items_are_the_common_columns_of_both_tables(shops):
    data = link(shops)
    assert list(data.items.columns) == ["name", "city"]
    assert data.items.index.tolist() == [
        *("left:01", "left:02", "left:03"),
        *("right:01", "right:02", "right:9", "right:x"),
    ]
    assert data.items.loc["right:02"].tolist() == ["hotel bel-air", "oslo"]
    assert (data.kind, data.modality, data.fields) == ("classification", "table", ["left", "right"])
    assert data.classes == ("no match", "match")  # the last one is what is looked for


def test_pairs_are_all_matches_and_drawn_negatives(shops):
    data = link(shops)
    asked = answers(data)
    assert len(asked) == len(set(asked)) == 6
    assert matches(data) == [["left:01", "right:01"], ["left:02", "right:02"]]
    assert data.group.tolist() == ["01"] * 3 + ["02"] * 3
    for left, right, truth in asked:
        assert (truth == "match") == (left.partition(":")[2] == right.partition(":")[2])


def test_negatives_depend_on_the_seed_and_are_limited_by_the_number_of_rows(shops):
    draws = {seed: answers(link(shops, negatives=1, seed=seed)) for seed in range(8)}
    assert all(answers(link(shops, negatives=1, seed=s)) == draw for s, draw in draws.items())
    assert len({str(draw) for draw in draws.values()}) > 1
    seen = {right for draw in draws.values() for _, right, truth in draw if truth != "match"}
    assert seen == {"right:01", "right:02", "right:9", "right:x"}
    data = link(shops, negatives=10)
    assert data.target.tolist().count("no match") == 2 * 3
    assert len(set(answers(data))) == 8


def test_labeled_pairs_need_no_negatives(shops):
    data = link(shops, target="gold", matches="labeled.csv")
    assert answers(data) == [
        ("left:01", "right:01", "match"),
        ("left:02", "right:x", "no match"),
        ("left:01", "right:9", "no match"),
    ]
    assert link(shops, target="gold", matches="labeled.csv", match="0").target[0] == "no match"


def test_rows_of_one_entity_match_without_a_file_of_matches(shops):
    options = {"matches": None, "keys": None, "entity": r"0?(\w+)", "negatives": 1}
    data = link(shops, **options)
    assert matches(data) == [["left:01", "right:01"], ["left:02", "right:02"]]
    assert len(data) == 4


def test_left_row_with_two_matches(shops):
    (shops / "m.csv").write_text("a_id,b_id\n01,01\n01,9\n")
    data = link(shops, negatives=1)
    assert answers(data)[:2] == [("left:01", "right:01", "match"), ("left:01", "right:9", "match")]
    others = {right for _, right, truth in answers(data) if truth != "match"}
    assert others == {"right:02", "right:x"}


@pytest.mark.parametrize(
    ("file", "text", "word"),
    [
        ("m", "a_id,b_id\n01,01\n07,02\n", '"07"'),
        ("m", "a_id,b_id\n01,zz\n", '"zz"'),
        ("m", "a_id,c_id\n01,01\n", '"c_id"'),
        ("m", "a_id,b_id\n01,\n", '"b_id"'),
        ("m", "", "m.csv is empty."),
        ("a", "id,name\n01,x\n01,y\n", '"01"'),
        ("a", "id,name\n01,x\n,y\n", '"id"'),
        ("b", "id,phone\n01,1\n02,1\n", '"id"'),
    ],
)
def test_broken_folder(shops, file, text, word):
    (shops / f"{file}.csv").write_text(text)
    with pytest.raises(DataError, match=word):
        link(shops)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"left": None}, '"left"'),
        ({"id": None}, '"id"'),
        ({"matches": None}, '"entity"'),
        ({"keys": ["a_id"]}, '"keys"'),
        ({"keys": None}, '"keys"'),
        ({"negatives": 0}, "negatives"),
        ({"negatives": True}, "negatives"),
        ({"seed": -1}, "seed"),
        ({"ask": "serch"}, '"serch"'),
        ({"ask": ["search"]}, '"ask"'),
        ({"ask": "search"}, '"negatives"'),
        ({"ask": "duplicates", "negatives": None, "seed": 3}, '"seed"'),
        ({"unanswered": "drop"}, '"unanswered"'),
    ],
)
def test_invalid_definition_of_linkage(shops, options, word):
    with pytest.raises(DefinitionError, match=word):
        link(shops, **options)


def test_linkage_without_matches_or_negatives(shops):
    with pytest.raises(DataError, match=r'"b\.csv"'):
        link(shops, right="bb.csv")
    with pytest.raises(DataError, match=r"a\.csv"):
        link(shops, target="gold", matches="labeled.csv", match="yes")
    (shops / "b.csv").write_text("id,name\n01,x\n")
    (shops / "m.csv").write_text("a_id,b_id\n01,01\n02,01\n")
    with pytest.raises(DataError, match="matches"):
        link(shops)


def test_pairs_of_one_table(people):
    data = read_linkage(people, spec(options={"negatives": 1}))
    assert matches(data) == [[0, 2], [0, 4], [2, 4]]
    others = [pair for *pair, truth in answers(data) if truth != "match"]
    assert len(others) == 3
    assert all(left in (0, 2) and right in (1, 3) for left, right in others)
    assert set(data.group.tolist()) == {"1"}
    assert list(data.items.columns) == ["name", "house", "zip"]


def test_table_without_pairs(tmp_path, people, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text("id,x\na,1\nb,2\n")
    with pytest.raises(DataError, match='"id"'):
        read_linkage(path, DataSpec("t", target="id"))
    with pytest.raises(DefinitionError, match='"right"'):
        read_linkage(people, spec(options={"right": "b.csv"}))
    monkeypatch.setattr(text_readers, "MAX_PAIRS", 10)
    with pytest.raises(DataError, match='"rec_id"'):
        read_linkage(people, spec())


def asked(data) -> list[tuple[object, object]]:
    return list(zip(data.questions["query"], data.target, strict=True))


def test_search_queries_are_left_rows_with_a_match(shops):
    data = link(shops, ask="search", negatives=None)
    assert asked(data) == [("left:01", "right:01"), ("left:02", "right:02")]
    # the left row without a match neither asks nor is found; all right rows can be
    assert data.items.index.tolist() == [
        *("left:01", "left:02"),
        *("right:01", "right:02", "right:9", "right:x"),
    ]
    assert (data.kind, data.modality, data.fields) == ("items", "table", ["query"])
    assert data.group.tolist() == ["01", "02"]
    assert list(data.items.columns) == ["name", "city"]


def test_search_has_each_match_once(shops):
    (shops / "m.csv").write_text("a_id,b_id\n01,01\n01,9\n01,01\n02,9\n")
    data = link(shops, ask="search", negatives=None)
    assert asked(data) == [("left:01", "right:01"), ("left:01", "right:9"), ("left:02", "right:9")]
    data = link(shops, "gold", ask="search", matches="labeled.csv", negatives=None)
    assert asked(data) == [("left:01", "right:01")]
    assert len(data.items) == 5


def test_search_in_one_table(people):
    data = read_linkage(people, spec(kind="items", options={"ask": "search"}))
    # rows 0, 2 and 4 are one person; a row is never its own answer
    assert asked(data) == [(0, 2), (0, 4), (2, 0), (2, 4), (4, 0), (4, 2)]
    assert len(data.items) == 5 and set(data.group) == {"1"}


def test_matching_rows_of_two_tables_are_one_entity(shops):
    data = link(shops, ask="duplicates", negatives=None)
    things = dict(zip(data.questions["row"], data.target, strict=True))
    assert things["left:01"] == things["right:01"] != things["left:02"] == things["right:02"]
    assert len(data) == len(data.items) == 7 and len(set(things.values())) == 5
    assert data.group.tolist() == data.target.tolist() and data.kind == "classification"
    (shops / "m.csv").write_text("a_id,b_id\n01,01\n01,9\n02,9\n")  # indirect matches
    data = link(shops, ask="duplicates", negatives=None)
    things = dict(zip(data.questions["row"], data.target, strict=True))
    joined = {things[row] for row in ("left:01", "right:01", "right:9", "left:02")}
    assert len(joined) == 1 and len(set(things.values())) == 4


def test_both_readers_find_the_same_duplicates(people):
    linked = read_linkage(people, spec(options={"ask": "duplicates"}))
    plain = read_duplicates(people, spec())
    pairs = [[a == b for a in data.target for b in data.target] for data in (linked, plain)]
    assert pairs[0] == pairs[1]
    assert linked.items.equals(plain.items)
