"""Items that are columns or whole tables."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from karat.core.columns import column_items, frame_items
from karat.core.registry import corruptions
from karat.errors import DefinitionError


def columns_and_tables():
    tables = {
        f"t{n}": pd.DataFrame({f"a{n}": range(10), f"b{n}": [f"{n} {i}" for i in range(10)]})
        for n in range(5)
    }
    return column_items(tables), frame_items(tables)


def headers_of(items):
    return [
        header for i in items for header in ([i.name] if isinstance(i, pd.Series) else i.columns)
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_headers_are_dropped_and_replaced(which):
    items = columns_and_tables()[which]
    before = headers_of(items)
    for name, severity, changed in (
        ("header_dropped", 0.4, 4),
        ("header_dropped", 1, 10),
        ("header_replaced", 0.4, 4),
        ("header_replaced", 1, 10),
    ):
        found, _ = corruptions.get(name)(items, None, severity, np.random.default_rng(1))
        after = headers_of(found)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == changed
        new = {b for a, b in zip(before, after, strict=True) if a != b}
        assert new == {""} if name == "header_dropped" else new <= set(before)
        assert headers_of(items) == before
        for one, other in zip(items, found, strict=True):
            assert np.array_equal(one.to_numpy(), other.to_numpy())


def test_the_list_of_headers_of_a_column_changes_with_its_header():
    items = columns_and_tables()[0]
    found, _ = corruptions.get("header_dropped")(items, None, 1, np.random.default_rng(1))
    assert found.iloc[0].attrs["headers"] == ["", ""]
    assert found.iloc[0].attrs["frame"].columns.tolist() == ["", ""]
    assert items.iloc[0].attrs["headers"] == ["a0", "b0"]
    found, _ = corruptions.get("header_dropped")(items.iloc[:1], None, 1, np.random.default_rng(1))
    assert found.iloc[0].attrs["headers"] == ["", "b0"]


@pytest.mark.parametrize("name", ["header_replaced", "rows_shuffled", "rows_dropped"])
def test_a_corrupted_column_is_a_column_of_its_table(name):
    items = columns_and_tables()[0]
    found, _ = corruptions.get(name)(items, None, 0.5, np.random.default_rng(1))
    for column in found:
        own = column.attrs["frame"].iloc[:, column.attrs["position"]]
        assert own.tolist() == column.tolist() and own.name == column.name


@pytest.mark.parametrize("which", [0, 1])
def test_rows_are_shuffled_and_dropped(which):
    items = columns_and_tables()[which]
    found, _ = corruptions.get("rows_shuffled")(items, None, 1, np.random.default_rng(1))
    for one, other in zip(items, found, strict=True):
        rows = [sorted(map(str, np.asarray(each).tolist())) for each in (one, other)]
        assert rows[0] == rows[1] and one.attrs["caption"] == other.attrs["caption"]
        assert other.index.tolist() == list(range(10))
    assert not any(a.equals(b) for a, b in zip(items, found, strict=True))
    found, _ = corruptions.get("rows_dropped")(items, None, 0.3, np.random.default_rng(1))
    assert [len(item) for item in found] == [7] * len(items)
    found, _ = corruptions.get("rows_dropped")(items, None, 1, np.random.default_rng(1))
    assert [len(item) for item in found] == [1] * len(items)


def test_columns_of_a_table_keep_their_cells_in_another_order():
    wide = frame_items({n: pd.DataFrame([range(8)], columns=list("abcdefgh")) for n in range(6)})
    found, _ = corruptions.get("columns_shuffled")(wide, None, 0.5, np.random.default_rng(0))
    moved = [list(item.columns) != list("abcdefgh") for item in found]
    assert sum(moved) == 3
    for item in found:
        assert item.to_dict("records") == [dict(zip("abcdefgh", range(8), strict=True))]


def test_texts_are_no_columns():
    with pytest.raises(DefinitionError, match="columns and whole tables, not texts"):
        corruptions.get("header_dropped")(pd.Series(["a"]), None, 0.5, None)
    with pytest.raises(DefinitionError, match="not columns"):
        corruptions.get("columns_shuffled")(columns_and_tables()[0], None, 0.5, None)
