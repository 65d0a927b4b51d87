"""Encoders of columns and whole tables."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import karat
from karat.core.columns import caption_item, column_items, frame_items, pack
from karat.errors import ContractError
from karat.execution.plan import make_plan
from karat.models.adapters import adapt
from karat.models.column_encoders import (
    MOST_CELLS,
    ColumnStatistics,
    Headers,
    PooledRows,
    TableSentences,
    ValueSets,
    column_statistics,
)
from karat.models.model import StatelessEncoder
from karat.models.model_identity import model_identity
from karat.testing import check_model

TABLES = {
    "cities": pd.DataFrame({"name": ["Rome", "Oslo"], "people": [2.8, 0.7]}),
    "rivers": pd.DataFrame({"name": ["Po", "Tiber"], "length": [652, None]}),
}
COLUMNS, FRAMES = column_items(TABLES), frame_items(TABLES)
BASELINES = [Headers(), ColumnStatistics(), ValueSets()]


class Counts(StatelessEncoder):
    """A sentence encoder: the numbers of characters and of words."""

    takes = ("text",)

    def transform(self, texts):
        return np.array([[len(text), len(text.split())] for text in texts], dtype=float)


class FirstCell(StatelessEncoder):
    """A row encoder: the first cell as a number."""

    takes = ("table",)

    def transform(self, rows):
        return rows.iloc[:, [0]].to_numpy(dtype=float)


class Filled(StatelessEncoder):
    """A row encoder: the number of cells that are not missing."""

    takes = ("table",)

    def transform(self, rows):
        return rows.notna().sum(axis=1).to_numpy(dtype=float)[:, None]


@pytest.mark.parametrize("encoder", BASELINES, ids=lambda e: type(e).__name__)
def test_a_baseline_has_a_row_per_item(encoder):
    for items in (COLUMNS, FRAMES):
        vectors = encoder.transform(items)
        assert vectors.shape == (len(items), vectors.shape[1]) and np.isfinite(vectors).all()
        np.testing.assert_array_equal(encoder.transform(list(items)), vectors)
        np.testing.assert_array_equal(encoder.transform(items.iloc[1:]), vectors[1:])
    assert encoder.transform(COLUMNS.iloc[:0]).shape[0] == 0


@pytest.mark.parametrize("encoder", [Headers(), ColumnStatistics()], ids=lambda e: type(e).__name__)
def test_a_table_is_the_mean_of_its_columns(encoder):
    columns, tables = encoder.transform(COLUMNS), encoder.transform(FRAMES)
    np.testing.assert_allclose(tables[0], columns[:2].mean(axis=0), atol=1e-6)


def test_headers_read_the_header_and_nothing_else():
    one, other, none = (
        pd.Series(["a"], name="City"),
        pd.Series([5, 6], name="city"),
        pd.Series(["a"], name=None),
    )
    vectors = Headers().transform(pack([one, other, none], "abc"))
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1) and not vectors[2].any()


def test_a_caption_without_a_table_is_the_letters_of_the_caption():
    titled = pd.DataFrame({"river": ["Po"]})
    vectors = Headers().transform([caption_item("river"), titled])
    np.testing.assert_allclose(vectors[0], vectors[1])


@pytest.mark.parametrize("encoder", [ColumnStatistics(), ValueSets()])
def test_a_table_without_cells_has_no_vector(encoder):
    vectors = encoder.transform([caption_item("river"), FRAMES.iloc[0]])
    assert np.isnan(vectors[0]).all() and np.isfinite(vectors[1]).all()


def test_statistics_of_a_column():
    texts = ["A1", "b,2", "b,2"]
    found = column_statistics(pd.Series([*texts, None]), texts)
    assert len(found) == 20
    missing, distinct, numbers, *shares = found[1:9]
    assert (missing, distinct, numbers) == (0.25, pytest.approx(2 / 3), 0.0)
    # of 8 characters 3 are letters, 1 in upper case, 3 digits, none blank, 2 marks
    assert shares == [3 / 8, 1 / 8, 3 / 8, 0.0, 2 / 8]
    assert found[0] == pytest.approx(np.log(5) / np.log(1e5 + 1))


def test_statistics_read_no_header_and_order_of_rows():
    column = pd.Series(["Rome", "Oslo", "Bern"], name="city")
    other = column.iloc[::-1].rename("x")
    one, two = ColumnStatistics().transform([column, other])
    np.testing.assert_allclose(one[:20], two[:20], atol=1e-6)


def test_the_cosine_of_value_sets_estimates_the_jaccard_index():
    one = pd.Series([f"v{i}" for i in range(60)])
    other = pd.Series([f"V{i}" for i in range(20, 80)])  # 40 of 80 in common
    vectors = ValueSets(4096).transform([one, other, one.iloc[::-1], pd.Series(["x"])])
    assert set(np.unique(vectors)) == {-1.0, 1.0}
    cosine = vectors @ vectors.T / 4096
    # the standard deviation is below 1 / 64
    assert cosine[0, 1] == pytest.approx(0.5, abs=0.06)
    assert cosine[0, 3] == pytest.approx(0.0, abs=0.06)
    assert cosine[0, 2] == 1.0


def test_long_columns_are_sampled_evenly():
    long = pd.Series(np.arange(10 * MOST_CELLS))
    assert np.isfinite(ValueSets(8).transform([long])).all()
    assert np.isfinite(ColumnStatistics().transform([long])).all()


def test_the_statistics_of_very_large_numbers_are_finite():
    codes = pd.Series(["1e200", "-1e250", "1" * 400])
    with np.errstate(all="raise"):
        assert np.isfinite(ColumnStatistics().transform([codes])).all()


def test_columns_are_written_as_text_for_a_sentence_encoder():
    encoder = TableSentences(Counts, cells=1)
    assert encoder.sentences(COLUMNS).tolist() == [
        "name: Rome",
        "people: 2.8",
        "name: Po",
        "length: 652",
    ]
    np.testing.assert_array_equal(encoder.transform(COLUMNS), [[10, 2], [11, 2], [8, 2], [11, 2]])
    assert encoder.sentences(FRAMES)["rivers"] == "name, length. Po, 652. Tiber"


def test_the_context_of_a_column_is_its_caption_and_the_other_headers():
    captioned = TABLES["cities"].copy()
    captioned.attrs["caption"] = "Capitals"
    column = column_items({"t": captioned}).iloc[[0]]
    found = TableSentences(Counts, context=True).sentences(column)
    assert found.iloc[0] == "name: Rome, Oslo. Capitals. people"


def test_the_text_is_part_of_the_identity():
    identities = {
        model_identity(adapt(TableSentences(Counts, cells=cells, context=context)))
        for cells in (1, 2)
        for context in (True, False)
    }
    assert len(identities) == 4 and None not in identities


def test_a_fitted_sentence_encoder_is_fitted():
    encoder = TableSentences("karat.models.text_encoders:TfIdf")
    assert not adapt(encoder).stateless
    assert encoder.fit(COLUMNS).transform(COLUMNS).shape[0] == 4


def test_rows_are_pooled():
    tables = [
        pd.DataFrame({"a": [1, 2, 6]}),
        pd.DataFrame({"a": [4], "b": ["x"]}),
        caption_item(""),
    ]
    vectors = PooledRows(FirstCell).transform(tables)
    assert vectors[:2].tolist() == [[3.0], [4.0]] and np.isnan(vectors[2]).all()
    assert PooledRows(FirstCell, rows=2).transform(tables)[0].tolist() == [1.5]
    assert PooledRows(FirstCell).transform([pd.Series([1, 3])]).tolist() == [[2.0]]


def test_a_fitted_row_encoder_cannot_be_pooled():
    with pytest.raises(ContractError, match="OneHotTable"):
        PooledRows("karat.models.tabular_encoders:OneHotTable").transform(FRAMES)


# -- runs -----------------------------------------------------------------------------------


def corpus():
    """Return ten tables of two columns, whose types and classes are known."""
    tables = {
        f"table {n}": pd.DataFrame(
            {"id": [f"x{n}{i}" for i in range(4)], "size": [n + i for i in range(4)]}
        )
        for n in range(10)
    }
    types = {(name, p): ("id", "number")[p] for name in tables for p in (0, 1)}
    classes = {name: "even" if n % 2 == 0 else "odd" for n, name in enumerate(tables)}
    return tables, types, classes


class Watched:
    """An encoder that is fitted; it writes down the tables of each call."""

    takes = ("column",)
    calls: ClassVar[list] = []

    def fit(self, items, y):
        self.fitted_ = {column.attrs["table"] for column in items}
        assert len(y) == len(items)
        return self

    def transform(self, items):
        self.calls.append((self.fitted_, {column.attrs["table"] for column in items}))
        return [[float(pd.api.types.is_numeric_dtype(column))] for column in items]


def test_a_fitted_encoder_never_sees_the_table_of_a_test_column():
    tables, types, _ = corpus()
    data = karat.Dataset.from_tables(tables, types, name="leaks")
    Watched.calls.clear()
    (run,) = karat.evaluate(Watched(), karat.Task("leaks", data, metrics=["acc"]))
    assert run.results()["acc"].tolist() == [1.0] * 5
    apart = [(fitted, seen) for fitted, seen in Watched.calls if fitted != seen]
    assert len(apart) == 5
    for fitted, seen in apart:
        assert not fitted & seen and len(fitted | seen) == 10


def test_vectors_of_columns_are_cached_by_content(monkeypatch, tmp_path):
    monkeypatch.setenv("KARAT_CACHE", str(tmp_path / "cache"))
    tables, types, _ = corpus()
    counter = tmp_path / "calls.txt"

    def sizes(columns, counter=str(counter)):
        with open(counter, "a") as file:
            file.write(f"{len(columns)}\n")
        return [[float(len(column)), float(hash(str(column.iloc[0])) % 7)] for column in columns]

    sizes.cache = True  # as it reads nothing else; without it, nothing is kept between runs

    def runs(tables):
        data = karat.Dataset.from_tables(tables, types, name="cached")
        task = karat.Task("cached", data, metrics=["acc"])
        karat.evaluate({"sizes": sizes}, task, output=karat.Output(cache=True))
        return counter.read_text().split()

    assert runs(tables) == ["20"]
    assert runs(tables) == ["20"]
    changed = {**tables, "table 3": tables["table 3"].assign(size=[0, 0, 0, 1])}
    assert runs(changed) == ["20", "20"]


class Encode:
    """An object with encode that takes columns and tables as a list."""

    takes = ("column", "frame")

    def encode(self, items):
        assert isinstance(items, list)
        return [[float(np.asarray(item).size), 1.0] for item in items]


@pytest.mark.parametrize("thing", [Encode(), lambda items: [[float(i.size), 1.0] for i in items]])
def test_objects_and_functions_take_columns_and_tables(thing):
    tables, types, classes = corpus()
    columns = karat.Dataset.from_tables(tables, types, name="columns")
    frames = karat.Dataset.from_tables(tables, classes, name="frames")
    tasks = [
        karat.Task("types", columns, metrics=["acc"]),
        karat.Task("union", columns, probe="same-class", split="all", metrics=["map"]),
        karat.Task("search", frames, probe="same-class", split="all", metrics=["map"]),
    ]
    (run,) = karat.evaluate({"mine": thing}, tasks)
    # all vectors are equal and ties count against the answers: 9 of each type are behind 9 others,
    # and 4 of each class behind 5
    scores = run.scores().groupby("task")["value"].mean()
    expected = np.mean([i / (9 + i) for i in range(1, 10)])
    assert scores["union"] == pytest.approx(expected)
    assert scores["search"] == pytest.approx(np.mean([i / (5 + i) for i in range(1, 5)]))
    assert karat.leaderboard([run]).index.tolist() == ["mine"]


def test_a_wrong_number_of_vectors_is_one_message():
    tables, types, _ = corpus()
    data = karat.Dataset.from_tables(tables, types, name="columns")
    task = karat.Task("types", data, metrics=["acc"])
    (run,) = karat.evaluate({"short": lambda items: np.ones((len(items) - 1, 2))}, task)
    messages = set(run.results()["info"])
    assert len(messages) == 1 and "19 rows for 20 items" in messages.pop()


def test_a_sentence_encoder_is_declined_with_a_hint():
    tables, types, _ = corpus()
    data = karat.Dataset.from_tables(tables, types, name="columns")
    task = karat.Task("types", data, metrics=["acc"])
    planned = make_plan([adapt(Counts(), "counts")], [task])
    assert [d.model for d in planned.declined] == ["counts"]
    assert "TableSentences" in planned.declined[0].reason


@pytest.mark.parametrize("encoder", [Headers(), ValueSets(), Encode(), PooledRows(Filled)])
def test_encoders_keep_their_contract(encoder):
    checks = check_model(encoder)
    assert {check.requirement.partition(":")[0] for check in checks} == {
        "on columns",
        "on whole tables",
    }
    assert [check.reason for check in checks if not check.passed] == []
