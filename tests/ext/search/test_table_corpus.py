"""Corpora of tables in both layouts, and the questions asked about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from karat.core.columns import item_text
from karat.core.dataset import Dataset
from karat.data.load_dataset import load_dataset
from karat.errors import DataError, DefinitionError
from karat.execution.splits import split


def read(folder: Path, **options: Any) -> Dataset:
    return load_dataset("mine", {"path": str(folder), "reader": "tables", "options": options})


# -- the layout "plain" ---------------------------------------------------------------------


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    (tmp_path / "europe.csv").write_text("country,capital\nItaly,Rome\nNorway,Oslo\nSpain,Madrid\n")
    (tmp_path / "football.csv").write_text("team,goals\nItaly,3\nSpain,2\nNorway,1\nPeru,0\n")
    (tmp_path / "rivers.csv").write_text("river,city\nTiber,Rome\nTagus,Lisbon\n")
    (tmp_path / "columns.csv").write_text(
        "table,column,type\neurope,country,Country\neurope,capital,City\n"
        "football,team,Country\nfootball,goals,number\nrivers,city,City\n"
    )
    (tmp_path / "tables.csv").write_text(
        "table,class,caption\neurope,Country,Capitals of Europe\nfootball,Country,Goals\n"
        "rivers,River,Rivers and cities\n"
    )
    cells = {"europe,country": "Q38 Q20 Q29", "football,team": "Q38 Q20 Q29 Q419"}
    cells |= {"europe,capital": "Q220 Q585", "rivers,city": "Q220 Q597"}
    lines = [f"{place},{entity}" for place, found in cells.items() for entity in found.split()]
    (tmp_path / "cells.csv").write_text("\n".join(["table,column,entity", *lines]) + "\n")
    return tmp_path


def test_types_of_columns(plain):
    data = read(plain)
    assert data.modality == "column" and data.classes == ("City", "Country", "number")
    assert dict(zip(data.items.index, data.target, strict=True)) == {
        "europe/0 country": "Country",
        "europe/1 capital": "City",
        "football/0 team": "Country",
        "football/1 goals": "number",
        "rivers/1 city": "City",
    }
    assert data.items["football/1 goals"].tolist() == [3, 2, 1, 0]
    assert data.items["rivers/1 city"].attrs["caption"] == "Rivers and cities"


def test_types_of_few_tables_are_left_out(plain):
    assert read(plain, least=2).classes == ("City", "Country")
    with pytest.raises(DataError, match="3 tables"):
        read(plain, least=3)


def test_columns_of_a_table_are_never_in_train_and_test(plain):
    data = read(plain)
    for fold in split(data, {"use": "kfold", "folds": 2, "stratified": False}, seed=0):
        train, test = (set(data.tables[rows]) for rows in (fold.train, fold.test))
        assert train and test and not train & test


def test_tables_with_an_equal_column_are_one_group(plain):
    (plain / "copy.csv").write_text("country,area\nItaly,1\nNorway,2\nSpain,3\n")
    with (plain / "columns.csv").open("a") as file:
        file.write("copy,country,Country\ncopy,area,number\n")
    groups = dict(zip(read(plain).items.index, read(plain).group, strict=True))
    assert groups["copy/1 area"] == groups["europe/1 capital"] != groups["football/0 team"]


def test_classes_of_tables(plain):
    data = read(plain, ask="table-classes")
    assert data.modality == "frame" and data.target.tolist() == ["Country", "Country", "River"]
    assert data.items["rivers"].shape == (2, 2)


def test_joins_are_columns_of_other_tables_with_shared_entities(plain):
    data = read(plain, ask="column-joins")
    # country and team share 3 entities, all that country has
    assert data.questions["query"].tolist() == ["europe/0 country", "football/0 team"]
    assert data.target.tolist() == ["football/0 team", "europe/0 country"]
    assert data.group.tolist() == ["europe", "football"]
    # capital and city share 1 of 2 entities
    data = read(plain, ask="column-joins", shared=1)
    assert set(data.questions["query"]) == set(data.items.index) and len(data) == 4
    assert len(read(plain, ask="column-joins", shared=1, contained=0.6)) == 2


@pytest.mark.parametrize("contained", ["most", None, -0.1, 1.5, float("nan"), True])
def test_the_contained_fraction_is_checked(plain, contained):
    with pytest.raises(DefinitionError, match="contained"):
        read(plain, ask="column-joins", contained=contained)


def test_the_name_of_a_table_may_have_a_dot(plain):
    for name in ("sales.2020", "sales.2021"):
        (plain / f"{name}.csv").write_text("city,sum\nRome,1\n")
    with (plain / "columns.csv").open("a") as file:
        file.write("sales.2020,city,City\nsales.2021,city,City\n")
    assert {"sales.2020/0 city", "sales.2021/0 city"} < set(read(plain).items.index)


def test_captions_ask_for_tables_that_have_none(plain):
    data = read(plain, ask="captions")
    assert data.kind == "items" and data.questions["query"].tolist() == [
        f"caption {i}" for i in range(3)
    ]
    assert data.target.tolist() == ["table 0", "table 1", "table 2"]
    assert item_text(data.items["caption 0"]) == "Capitals of Europe"
    assert all("caption" not in data.items[f"table {i}"].attrs for i in range(3))
    assert not any("europe" in str(name) for name in data.items.index)


def test_what_is_wrong_with_a_folder_is_named(plain, tmp_path_factory):
    with pytest.raises(DefinitionError, match="column-types"):
        read(plain, ask="column-typ")
    with pytest.raises(DefinitionError, match="layout"):
        read(plain, layuot="sm")
    with pytest.raises(DataError, match="needs a folder"):
        read(plain / "europe.csv")
    with pytest.raises(DataError, match="no tables"):
        read(tmp_path_factory.mktemp("empty"))
    (plain / "cells.csv").unlink()
    with pytest.raises(DataError, match=r"cells\.csv"):
        read(plain, ask="column-joins")
    (plain / "columns.csv").write_text("table,column,type\neurope,capitol,City\n")
    with pytest.raises(DataError, match=r'columns\.csv.*"capitol".*capital'):
        read(plain)
    (plain / "columns.csv").write_text("table,column,type\neurop,capital,City\n")
    with pytest.raises(DataError, match=r'columns\.csv.*"europ".*europe'):
        read(plain)


def test_how_the_files_are_written(plain):
    (plain / "europe.csv").write_bytes("country;capital\nPerú;Lima\n".encode("latin-1"))
    (plain / "football.csv").write_bytes(b"team;goals\nx;1\n")
    (plain / "rivers.csv").write_bytes(b"river;city\nPo;Torino\n")
    data = read(plain, separator=";", encoding="latin-1")
    assert data.items["europe/0 country"].tolist() == ["Perú"]


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"1,2\n3,4\n", "no header"),
        (b"country,capital\n", "no rows"),
        (b"\xff\xfe\x00", r"broken\.csv"),
        (b"", r"broken\.csv"),
    ],
)
def test_a_broken_table_is_named(plain, content, named):
    (plain / "broken.csv").write_bytes(content)
    with pytest.raises(DataError, match=named) as caught:
        read(plain)
    assert "broken.csv" in str(caught.value)


# -- the layout "sm" ------------------------------------------------------------------------

LABEL = "http://www.w3.org/2000/01/rdf-schema#label"


def node(number: int, name: str, label: str | None = None) -> dict[str, Any]:
    return {"id": number, "abs_uri": f"http://kg.org/{name}", "readable_label": label}


def model(nodes: list[dict[str, Any]], edges: list[tuple[int, int, str]]) -> str:
    links = [{"source": a, "target": b, "abs_uri": uri} for a, b, uri in edges]
    return json.dumps([{"nodes": nodes, "edges": links}])


@pytest.fixture
def sm(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    link = {"start": 0, "end": 1, "entity_id": "Q1"}
    table = {
        "table": {
            "columns": [
                {"name": "Who", "values": ["Ann", ""]},
                {"name": None, "values": ["3", "4"]},
            ]
        },
        "context": {"page_title": "People"},
        "links": [[[link], []], [[{"entities": ["Q2", "Q3"]}], []]],
    }
    (tmp_path / "tables" / "people.json").write_text(json.dumps(table))
    more = json.dumps({"context": {"page_title": None}, "links": []})
    text = f'Title,Author\n"A, B",Ann\n\n{"-" * 80}\n{more}'
    (tmp_path / "tables" / "books.txt").write_text(text)
    for name, version, content in (
        ("people", 1, model([node(0, "Dog"), {"id": 1, "col_index": 0}], [(0, 1, LABEL)])),
        (
            "people",
            2,
            model(
                [node(0, "Q5", "human (Q5)"), {"id": 1, "col_index": 0}, {"id": 2, "col_index": 1}],
                [(0, 1, LABEL), (0, 2, "http://kg.org/age")],
            ),
        ),
        ("books", 1, model([node(0, "Book"), {"id": 1, "col_index": 0}], [(0, 1, LABEL)])),
    ):
        folder = tmp_path / "descriptions" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"version.0{version}.json").write_text(content)
    return tmp_path


def test_tables_and_semantic_models_of_sm_datasets(sm):
    data = read(sm, layout="sm")
    assert dict(zip(data.items.index, data.target, strict=True)) == {
        "books/0 Title": "Book",
        "people/0 Who": "human (Q5)",
        "people/1": "age",
    }
    assert data.items["books/0 Title"].tolist() == ["A, B"]
    assert data.items["people/0 Who"].tolist()[0] == "Ann"
    assert data.items["people/0 Who"].isna().tolist() == [False, True]
    classes = read(sm, layout="sm", ask="table-classes")
    assert classes.target.tolist() == ["Book", "human (Q5)"]
    assert classes.items["people"].attrs["caption"] == "People"


@pytest.mark.parametrize("content", ['{"table": {}}', '{"table": ', "[]", "no table at all"])
def test_a_broken_file_of_sm_datasets_is_named(sm, content):
    (sm / "tables" / "people.json").write_text(content)
    with pytest.raises(DataError, match=r"people\.json"):
        read(sm, layout="sm")


def test_cells_that_are_null_or_contain_unusual_separators(sm):
    path = sm / "tables" / "people.json"
    about = json.loads(path.read_text())
    about["table"]["columns"][0]["values"] = [None, "Ann"]
    path.write_text(json.dumps(about))
    more = json.dumps({"context": {}, "links": []})
    text = f"Title,Author\nA\u2028B\x85C,Ann\n{'-' * 80}\n{more}"
    (sm / "tables" / "books.txt").write_text(text, encoding="utf-8")
    data = read(sm, layout="sm")
    assert data.items["people/0 Who"].isna().tolist() == [True, False]
    assert data.items["books/0 Title"].tolist() == ["A\u2028B\x85C"]


@pytest.mark.parametrize(
    "content",
    [
        model([node(0, "Dog"), {"id": 1, "col_index": 0}], [(0, 7, LABEL)]),
        model([node(0, "Dog"), {"id": 1, "col_index": "x"}], [(0, 1, LABEL)]),
        '[{"nodes": [{}], "edges": [{}]}]',
        '[{"nodes": [1], "edges": [2]}]',
    ],
)
def test_a_broken_semantic_model_is_named(sm, content):
    (sm / "descriptions" / "people" / "version.03.json").write_text(content)
    with pytest.raises(DataError, match=r"version\.03\.json"):
        read(sm, layout="sm")
