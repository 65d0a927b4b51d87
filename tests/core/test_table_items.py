"""Columns and whole tables as items."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

from karat.core.dataset import Dataset
from karat.core.files import fingerprint
from karat.core.table_items import column_items, frame_items, item_text, pack
from karat.errors import DataError

CITIES = pd.DataFrame({"name": ["Rome", "Oslo"], "people": [2.8, 0.7]})
RIVERS = pd.DataFrame({"name": ["Po", "Tiber", "Arno"], "length": [652, 405, 241]})
TABLES = {"cities": CITIES, "rivers": RIVERS}


def test_a_column_knows_its_table():
    cities = CITIES.copy()
    cities.attrs["caption"] = "Capitals"
    items = column_items({"cities": cities, "rivers": RIVERS})
    assert items.index.tolist() == [
        "cities/0 name",
        "cities/1 people",
        "rivers/0 name",
        "rivers/1 length",
    ]
    column = items.iloc[1]
    assert column.name == "people" and column.tolist() == [2.8, 0.7]
    whole = column.attrs.pop("frame")
    assert column.attrs == {
        "table": "cities",
        "position": 1,
        "headers": ["name", "people"],
        "caption": "Capitals",
    }
    assert whole.equals(CITIES) and whole.iloc[:, 1].tolist() == column.tolist()


def test_operations_on_a_column_share_its_table():
    one, other = column_items(TABLES).iloc[:2]
    assert one.astype(str).str.upper().attrs["frame"] is other.attrs["frame"]
    assert pd.concat([one, other]).tolist() == ["Rome", "Oslo", 2.8, 0.7]
    again = pickle.loads(pickle.dumps(column_items(TABLES)))
    assert again.iloc[0].attrs["frame"] is again.iloc[1].attrs["frame"]
    assert isinstance(again.iloc[0].attrs["frame"].head(1), pd.DataFrame)


def test_the_fingerprint_of_a_column_changes_with_its_table():
    target = {("cities", "name"): "a", ("rivers", "name"): "b"}
    changed = {**TABLES, "cities": CITIES.assign(people=[0.0, 0.0])}
    one, other = (Dataset.from_tables(tables, target) for tables in (TABLES, changed))
    assert one.items.iloc[0].equals(other.items.iloc[0])
    assert one.fingerprint != other.fingerprint


def test_headers_may_be_missing_or_repeated():
    table = pd.DataFrame([[1, 2, 3]], columns=["a", None, "a"])
    assert column_items({"t": table}).index.tolist() == ["t/0 a", "t/1", "t/2 a"]
    assert frame_items({"t": table})["t"].columns.tolist() == ["a", "", "a"]


def test_items_of_equal_shape_are_not_stacked():
    packed = pack([CITIES, CITIES], ["a", "b"])
    assert packed.dtype == object and packed["b"].equals(CITIES)


@pytest.mark.parametrize(
    "other",
    [
        CITIES.rename(columns={"people": "inhabitants"}),
        CITIES.assign(people=[2.8, 0.8]),
        CITIES[["people", "name"]],
        CITIES.astype({"people": object}),
    ],
)
def test_the_fingerprint_changes_with_the_content(other):
    whole = fingerprint(frame_items({"t": CITIES}))
    assert whole == fingerprint(frame_items({"t": CITIES.copy()}))
    assert whole != fingerprint(frame_items({"t": other}))
    assert fingerprint(column_items({"t": CITIES})) != fingerprint(column_items({"t": other}))


def test_the_fingerprint_changes_with_cells_that_a_repr_leaves_out():
    long = pd.DataFrame({"n": [f"cell {i}" for i in range(500)]})
    other = long.copy()
    other.iloc[250, 0] = "another"
    assert fingerprint(frame_items({"t": long})) != fingerprint(frame_items({"t": other}))
    captioned = long.copy()
    captioned.attrs["caption"] = "x"
    assert fingerprint(column_items({"t": long})) != fingerprint(column_items({"t": captioned}))


def test_from_tables_asks_about_columns():
    target = {("cities", "name"): "place", ("cities", 1): "number", ("rivers", "length"): "number"}
    data = Dataset.from_tables(TABLES, target, name="types")
    assert (data.modality, data.kind, data.classes) == (
        "column",
        "classification",
        ("number", "place"),
    )
    assert data.group.tolist() == ["cities", "cities", "rivers"]
    assert data.tables.tolist() == ["cities", "cities", "rivers"]
    assert data.items.index.tolist() == ["cities/0 name", "cities/1 people", "rivers/1 length"]
    assert pickle.loads(pickle.dumps(data)).fingerprint == data.fingerprint
    part = data.take(np.array([2]))
    assert part.frame().iloc[0].attrs["table"] == "rivers"


def test_from_tables_asks_about_tables():
    data = Dataset.from_tables(TABLES, {"rivers": 1.5, "cities": 2.5}, kind="regression")
    assert data.modality == "frame" and data.group is None and data.tables is None
    assert data.frame().iloc[0].shape == (3, 2) and data.target.tolist() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("target", "named"),
    [
        ({"city": 1, "rivers": 2}, "cities"),
        ({("cities", "nam"): 1, ("rivers", "name"): 2}, "name"),
        ({("cities", 2): 1, ("rivers", 0): 2}, "2"),
        ({"cities": 1, ("rivers", 0): 2}, "mixes"),
        ({("cities", "name", "x"): 1}, "cities"),
        ({}, "target"),
    ],
)
def test_an_unknown_table_or_column_is_named(target, named):
    with pytest.raises(DataError, match=named):
        Dataset.from_tables(TABLES, target)


@pytest.mark.parametrize(
    ("tables", "target"),
    [(list(TABLES.values()), {"rivers": 1}), (TABLES, ["rivers"]), (TABLES, pd.Series(["x"]))],
)
def test_tables_and_target_are_mappings(tables, target):
    with pytest.raises(DataError, match="mapping"):
        Dataset.from_tables(tables, target)


def test_a_repeated_header_needs_a_position():
    twice = {"t": pd.DataFrame([[1, 2]], columns=["a", "a"])}
    with pytest.raises(DataError, match="position"):
        Dataset.from_tables(twice, {("t", "a"): "x"})
    assert len(Dataset.from_tables(twice, {("t", 0): "x", ("t", 1): "y"})) == 2
    places = dict(zip(((np.str_("t"), i) for i in np.arange(2)), "xy", strict=True))
    assert Dataset.from_tables(twice, places).items.index.tolist() == ["t/0 a", "t/1 a"]


@pytest.mark.parametrize(("modality", "wanted"), [("column", "Series"), ("frame", "DataFrame")])
def test_an_item_of_another_type_is_refused(modality, wanted):
    items = pd.Series(["text", "other"], index=["a", "b"], dtype=object)
    questions = pd.DataFrame({"item": ["a", "b"]})
    with pytest.raises(DataError, match=f'"a".*{wanted}.*str'):
        Dataset("mine", items, questions, np.array(["x", "y"]), "classification", modality)


def test_the_text_of_a_table_is_caption_headers_and_three_rows():
    table = pd.DataFrame({"a": [1, 2, 3, 4], "b": ["x", None, "y", "z"]})
    table.attrs["caption"] = "Letters"
    assert item_text(table) == "Letters. a, b. 1, x. 2. 3, y"
