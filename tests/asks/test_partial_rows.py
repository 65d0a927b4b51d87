"""Partial rows: the targets are exactly the rows with the same values."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.asks.base import ask
from karat.dataset import Dataset
from karat.errors import DataError

steady = settings(deadline=None, derandomize=True, max_examples=60)


def data(table: pd.DataFrame) -> Dataset:
    truth = np.arange(len(table)) + 0.5
    questions = pd.DataFrame({"row": table.index})
    return Dataset("toy", table, questions, truth, "numbers", "table")


def asked(table: pd.DataFrame, seed: int = 0, **how: object) -> Dataset:
    return ask(data(table), {"use": "partial-rows", **how}, seed)


def answers(made: Dataset) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for query, answer in zip(made.questions["query"], made.truth, strict=True):
        found.setdefault(query, []).append(answer)
    return found


def is_missing(cell: object) -> bool:
    return not isinstance(cell, list) and bool(pd.isna(cell))


def cells_of(made: Dataset) -> dict[str, list[object]]:
    return dict(zip(made.items.index, made.items.astype(object).to_numpy().tolist(), strict=True))


def agreeing(cells: dict[str, list[object]], query: str, candidates: list[str]) -> list[str]:
    """Compare cell by cell, in plain Python."""
    part = cells[query]
    rows = []
    for name in candidates:
        row = cells[name]
        pairs = [(a, b) for a, b in zip(part, row, strict=True) if not is_missing(a)]
        if all(not is_missing(b) and a == b for a, b in pairs):
            rows.append(name)
    return rows


def check(made: Dataset, table: pd.DataFrame, keep: float) -> None:
    candidates = [f"row {name}" for name in table.index]
    assert made.items.index.tolist()[: len(table)] == candidates
    found, cells = answers(made), cells_of(made)
    assert made.items.index.tolist()[len(table) :] == list(found)
    for query, rows in found.items():
        own = query.removeprefix("part of ")
        assert own in rows and rows == agreeing(cells, query, candidates)
        whole = [cell for cell in cells[own] if not is_missing(cell)]
        left = [cell for cell in cells[query] if not is_missing(cell)]
        assert len(left) == max(1, round(keep * len(whole)))


# -- by hand --------------------------------------------------------------------------------


def test_query_of_all_cells_finds_equal_rows():
    table = pd.DataFrame({"a": [1, 1, 2, 1], "b": list("xxxy")})
    made = asked(table, keep=1.0)
    assert answers(made) == {
        "part of row 0": ["row 0", "row 1"],
        "part of row 1": ["row 0", "row 1"],
        "part of row 2": ["row 2"],
        "part of row 3": ["row 3"],
    }
    assert made.items.loc["part of row 2"].tolist() == [2, "x"]


def test_query_of_one_cell_finds_all_rows_with_it():
    table = pd.DataFrame({"a": [1, 1, 2, 1], "b": list("xxxy")})
    made = asked(table, keep=0.1)
    for query, rows in answers(made).items():
        part = made.items.loc[query].dropna()
        assert len(part) == 1
        (name,) = part.index
        expected = {"a": {1: [0, 1, 3], 2: [2]}, "b": {"x": [0, 1, 2], "y": [3]}}[name]
        assert rows == [f"row {i}" for i in expected[part[name]]]


def test_missing_cells_are_not_queried_and_match_nothing():
    table = pd.DataFrame({"a": [1.0, np.nan, 1.0], "b": ["x", "x", None]})
    made = asked(table, keep=1.0)
    assert answers(made) == {
        "part of row 0": ["row 0"],
        "part of row 1": ["row 0", "row 1"],
        "part of row 2": ["row 0", "row 2"],
    }


def test_empty_row_makes_no_query():
    table = pd.DataFrame({"a": [1.0, np.nan], "b": ["x", None]})
    assert set(answers(asked(table))) == {"part of row 0"}
    with pytest.raises(DataError, match="query"):
        asked(pd.DataFrame({"a": [np.nan, np.nan], "b": [None, None]}))


def test_one_row_finds_itself():
    assert answers(asked(pd.DataFrame({"a": [1], "b": ["x"]}))) == {"part of row 0": ["row 0"]}


def test_equal_rows_are_all_answers():
    table = pd.DataFrame({"a": [7] * 3000, "b": ["x"] * 3000})
    made = asked(table, queries=5)
    assert len(made) == 5 * 3000 and len(set(made.truth)) == 3000


def test_number_of_queries():
    table = pd.DataFrame({"a": np.arange(50), "b": list("vwxyz") * 10})
    assert len(answers(asked(table, queries=20))) == 20
    assert len(answers(asked(table, queries=500))) == 50


def test_queries_keep_only_filled_cells():
    table = pd.DataFrame({f"c{i}": np.arange(40) * i for i in range(1, 11)})
    made = asked(table, keep=0.3)
    parts = made.items.iloc[40:]
    assert (parts.notna().sum(axis=1) == 3).all()
    assert (parts.notna().any(axis=0)).all()  # not always the same columns


# -- types of columns -----------------------------------------------------------------------

COLUMNS = {
    "n": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.integers(0, 3, n) / 2),
    "i": lambda rng, n: rng.integers(0, 3, n),
    "big": lambda rng, n: 2**60 + rng.integers(0, 3, n),
    "flag": lambda rng, n: rng.random(n) < 0.5,
    "Int": lambda rng, n: pd.array(rng.choice([1, 2, None], n), dtype="Int64"),
    "boolean": lambda rng, n: pd.array(rng.choice([True, False, None], n), dtype="boolean"),
    "word": lambda rng, n: rng.choice(["a", "b", None], n),
    "category": lambda rng, n: pd.Categorical(rng.choice(["u", "v", None], n)),
    "date": lambda rng, n: pd.to_datetime(rng.choice(["2024-01-01", "2024-05-06", None], n)),
    "{x} 'q' \"r\"": lambda rng, n: rng.choice(["{y}", "%s", "{0}"], n),
    3: lambda rng, n: rng.choice([1, "1", 2.5], n).astype(object),
    ("t", 1): lambda rng, n: rng.integers(0, 2, n),
    "list": lambda rng, n: pd.Series([[1], [2], None], dtype=object)[rng.integers(0, 3, n)].array,
}


def typed(names: list[object], rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = [pd.Series(COLUMNS[name](rng, rows)) for name in names]
    table = pd.concat(columns, axis=1, ignore_index=True)
    table.columns = pd.Index(names, tupleize_cols=False, dtype=object)
    return table


@steady
@given(
    st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5, unique=True),
    st.integers(1, 25),
    st.integers(0, 99),
    st.sampled_from([0.1, 0.5, 0.75, 1.0]),
)
def test_matching_rows_are_the_targets_for_any_types(names, rows, seed, keep):
    table = typed(names, rows, seed)
    if table.isna().all(axis=None):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = asked(table, seed, keep=keep, queries=10)
    check(made, table, keep)
    assert made.fingerprint == asked(table, seed, keep=keep, queries=10).fingerprint


@pytest.mark.parametrize("name", ["n", "i", "Int", "boolean", "word", "category", "date"])
def test_candidates_keep_their_cells(name):
    table = typed([name, "{x} 'q' \"r\""], 30, 1)
    made = asked(table, keep=0.5)
    rows = made.items.iloc[:30]
    assert [is_missing(c) for c in rows[name]] == [is_missing(c) for c in table[name]]
    known = table[name].notna().to_numpy()
    assert rows[name][known].tolist() == table[name][known].tolist()
    expected = "float64" if name == "i" else table[name].dtype
    assert made.items[name].dtype == expected


def test_integers_too_large_for_floats_stay_distinct():
    table = pd.DataFrame({"id": [2**60, 2**60 + 1], "x": [1, 1]})
    made = asked(table, keep=0.5)
    assert made.items["id"].tolist()[:2] == [2**60, 2**60 + 1]
    for query, rows in answers(made).items():
        asks_by_id = not is_missing(made.items.loc[query, "id"])
        assert len(rows) == (1 if asks_by_id else 2)
