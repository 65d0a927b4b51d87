"""Columns: bags of items, targets as plain arrays, and the kind of a target."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest

from karat.core.columns import (
    Bags,
    column_items,
    find_classes,
    find_items,
    frame_items,
    holds_bags,
    infer_kind,
    item_text,
    pack,
    require_columns,
    target_values,
)
from karat.core.dataset import Dataset
from karat.core.files import fingerprint
from karat.errors import DataError

ITEMS = pd.Index(["a", "b", "c"])


def cells(*values):
    return pd.Series(list(values), dtype=object)


def test_plain_cells_are_bags_of_one():
    bags = find_items(cells("c", "a", "c"), ITEMS, "field")
    assert bags.rows.tolist() == [2, 0, 2]
    assert bags.offsets.tolist() == [0, 1, 2, 3]
    assert bags.weights.tolist() == [1, 1, 1]


def test_bags_are_flattened_also_next_to_plain_cells():
    bags = find_items(cells({"c": 0.5, "a": 2}, "b", {"b": 3}), ITEMS, "field")
    assert bags.rows.tolist() == [2, 0, 1, 1]
    assert bags.offsets.tolist() == [0, 2, 3, 4]
    assert bags.weights.tolist() == [0.5, 2, 1, 3]


def test_take_follows_the_questions_asked_for():
    bags = find_items(cells({"c": 0.5, "a": 2}, "b", {"a": 1, "b": 3}), ITEMS, "field")
    for wanted in (np.array([2, 0]), np.array([True, False, True])[[2, 1, 0]].nonzero()[0][::-1]):
        part = bags.take(wanted)
        assert part.rows.tolist() == [0, 1, 2, 0]
        assert part.offsets.tolist() == [0, 2, 4]
        assert part.weights.tolist() == [1, 3, 0.5, 2]
    none = bags.take(np.array([], dtype=int))
    assert none.offsets.tolist() == [0]
    assert bags.take(np.array([1, 1])).rows.tolist() == [1, 1]
    assert isinstance(none, Bags)


def test_only_mappings_are_bags():
    assert holds_bags(cells("a", {"a": 1}))
    for plain in (cells("a", ("a", "b")), pd.Series([1, 2]), pd.Series(["a"], dtype="str")):
        assert not holds_bags(plain)


def test_ids_may_be_tuples_and_numbers():
    pairs = [("a", 1), ("b", 2)]
    items = pd.Index(pairs, tupleize_cols=False)
    assert find_items(cells(*pairs[::-1]), items, "field").rows.tolist() == [1, 0]
    assert find_items(pd.Series([30, 10]), pd.Index([10, 20, 30]), "f").rows.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        (["a", "z"], 'question 1 .*"z"'),
        (["a", {"b": 1, "z": 1}], 'question 1 .*"z"'),
        (["a", {}], "question 1 has an empty bag"),
        (["a", None], "is missing in 1 rows \\(first: row 1\\)"),
        ([{"a": 1, np.nan: 1}, "b"], "is missing in 1 rows \\(first: row 0\\)"),
        ([{"a": -1}], "-1.0"),
        ([{"a": 0}], "got 0.0"),
        ([{"a": np.inf}], "inf"),
        ([{"a": None}], "nan"),
        ([{"a": "much"}], "weights of a bag must be numbers"),
    ],
)
def test_errors_name_the_field_and_the_question(wrong, word):
    with pytest.raises(DataError, match=word) as caught:
        find_items(cells(*wrong), ITEMS, 'toy: the field "q"')
    assert str(caught.value).startswith('toy: the field "q"')


@pytest.mark.parametrize(
    ("stored", "kind", "dtype", "values"),
    [
        (pd.Series([1, 2], dtype="Int64"), None, "int64", [1, 2]),
        (pd.Series([1.5, 2], dtype="Float64"), None, "float64", [1.5, 2]),
        (pd.Series([True, False], dtype="boolean"), None, "bool", [True, False]),
        (pd.Series([True, False], dtype=object), None, "bool", [True, False]),
        (pd.Series([1, 2], dtype=object), None, "int64", [1, 2]),
        (pd.Series(["a", "b"], dtype="string"), None, "object", ["a", "b"]),
        (pd.Series(["a", "b"], dtype="category"), None, "object", ["a", "b"]),
        (pd.Series([3, 1], dtype="category"), None, "int64", [3, 1]),
        (pd.Series(["NA", "None", " x", "a,b"]), None, "object", ["NA", "None", " x", "a,b"]),
        (pd.Series([1, "a"], dtype=object), "classification", "object", ["1", "a"]),
        (pd.Series([True, "a"], dtype=object), "classification", "object", ["True", "a"]),
        (pd.Series([True, 1], dtype=object), "classification", "object", ["True", "1"]),
        (pd.Series([pd.Timestamp("2020-01-31")]), None, "object", ["2020-01-31"]),
        (pd.Series(["1.5", "2"]), "regression", "float64", [1.5, 2]),
        (pd.Series([True, False]), "regression", "bool", [True, False]),
        (pd.Series([("a", 1), ("b", 2)]), "items", "object", [("a", 1), ("b", 2)]),
    ],
)
def test_answers_become_plain_arrays(stored, kind, dtype, values):
    found = target_values(stored, kind, "target")
    assert found.dtype == dtype
    assert found.tolist() == values


@pytest.mark.parametrize(
    ("stored", "kind", "word"),
    [
        (pd.Series([1.0, np.nan, np.nan]), None, "is missing in 2 of 3 rows (first: row 1)"),
        (pd.Series(["a", None]), "classification", "is missing in 1 of 2 rows"),
        (pd.Series([1, pd.NA], dtype="Int64"), None, "is missing in 1 of 2 rows"),
        (pd.Series([1.0, np.inf]), "regression", "infinite"),
        (pd.Series(["1", "two"]), "regression", '"two"'),
        (pd.Series(["1", "inf"]), "regression", '"inf"'),
        (pd.Series(pd.to_datetime(["2020-01-31"])), "regression", "numbers"),
        (pd.Series([1, "1"], dtype=object), "classification", "['1']"),
        (pd.Series([[1], [2]]), "classification", "multi-label"),
    ],
)
def test_invalid_targets(stored, kind, word):
    with pytest.raises(DataError) as caught:
        target_values(stored, kind, 'toy: the target "y"', "y")
    assert word in str(caught.value)
    assert str(caught.value).startswith('toy: the target "y" ')
    assert caught.value.value == "y"


@pytest.mark.parametrize(
    ("truth", "kind", "warned"),
    [
        (["a", "b"], "classification", False),
        ([True, False], "classification", False),
        ([0.5, 1.0], "regression", False),
        ([0, 1] * 10, "classification", True),
        ([0.0, 1.0] * 10, "classification", True),
        (list(range(30)), "regression", True),
        ([1, 2, 3], "regression", True),  # three values in three rows
        (list(range(20)) * 10, "classification", True),
        (list(range(21)) * 10, "regression", True),
    ],
)
def test_the_kind_is_inferred_with_a_warning_for_a_guess(truth, kind, warned):
    values = np.array(truth, dtype=object if isinstance(truth[0], str) else None)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert infer_kind(values, "toy") == kind
    assert [f'taken as "{kind}"' in str(w.message) for w in caught] == [True] * warned


def test_classes_are_sorted_as_text():
    assert find_classes("toy", np.array([10, 9, 1, 10])) == (1, 10, 9)
    assert find_classes("toy", np.array([True, False])) == (False, True)
    with pytest.raises(DataError, match='"x"'):
        find_classes("toy", np.array(["x", "x"], dtype=object))


def test_an_absent_column_names_the_nearest_and_what_there_is():
    table = pd.DataFrame({f"column{i}": [1] for i in range(25)})
    with pytest.raises(DataError) as caught:
        require_columns(table, ["column3", "colum4"], "toy")
    assert 'Did you mean "column4"?' in str(caught.value)
    assert str(caught.value).endswith("column19 …")
    assert caught.value.value == "colum4"


# -- Columns and whole tables as items ------------------------------------------------------------


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
