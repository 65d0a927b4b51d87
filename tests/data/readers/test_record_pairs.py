"""Duplicates in one table, and links between two."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from karat.data.load_dataset import DataSpec, load_dataset
from karat.data.readers import record_pairs
from karat.data.readers.record_pairs import read_duplicates, read_linkage
from karat.errors import DataError, DefinitionError

PEOPLE = """rec_id, name, house, zip
rec-1-org, ann, 5, 0123
rec-2-org, bob, 7,
rec-1-dup-0, anne, 5, 0123
rec-3-org, carl, , 0999
rec-1-dup-1, an, 6, 0123
"""
PATTERN = r"rec-(\d+)-"
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
    monkeypatch.setattr(record_pairs, "MAX_PAIRS", 10)
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
