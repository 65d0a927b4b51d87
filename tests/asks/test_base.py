"""Behavior that all query generators share."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import karat
from karat.asks.base import ask, check_count, check_share, rows_of, searched
from karat.dataset import Dataset
from karat.errors import ContractError, DataError, DefinitionError

TABLE = pd.DataFrame({"n": np.arange(60.0), "w": list("abcdef") * 10, "y": ["p", "q"] * 30})
DATA = Dataset.from_table(TABLE, "y", name="sixty", about={"licence": "CC0"})
TEXTS = Dataset.from_columns(pd.DataFrame({"t": ["a", "b"], "y": [0.5, 1.5]}), ["t"], "y")


@pytest.mark.parametrize("name", ["partial-rows", "text-queries"])
def test_seed_determines_the_questions(name):
    made = [ask(DATA, {"use": name, "queries": 9}, seed) for seed in (7, 7, 8)]
    assert made[0].fingerprint == made[1].fingerprint != made[2].fingerprint
    assert set(made[0].group) != set(made[2].group)
    assert made[0].name == f"sixty {name}" and made[0].about == {"licence": "CC0"}
    assert (made[0].kind, made[0].fields) == ("items", ["query"])


def test_name_of_the_dataset_changes_the_questions():
    other = Dataset.from_table(TABLE, "y", name="another")
    one, two = (ask(data, {"use": "partial-rows", "queries": 9}, 7) for data in (DATA, other))
    assert set(one.group) != set(two.group)


@pytest.mark.parametrize("name", ["partial-rows", "text-queries"])
def test_dataset_is_not_changed_and_target_is_not_used(name):
    mark = DATA.fingerprint
    made = ask(DATA, {"use": name}, 0)
    vars(DATA).pop("fingerprint")
    assert DATA.fingerprint == mark
    if isinstance(made.items, pd.DataFrame):
        assert list(made.items.columns) == ["n", "w"]
    else:
        assert not made.items.str.contains(r"\by\b").any()


@pytest.mark.parametrize("name", ["partial-rows", "text-queries"])
def test_tables_are_required(name):
    with pytest.raises(DefinitionError, match=f"{name}.* text"):
        ask(TEXTS, {"use": name}, 0)


def test_rows_are_distinct():
    twice = Dataset(
        "twice",
        pd.DataFrame({"n": [1, 2, 3]}, index=["a", "b", "c"]),
        pd.DataFrame({"row": ["c", "a", "c"]}),
        np.array([1.0, 2.0, 3.0]),
        "numbers",
        "table",
    )
    assert rows_of(twice, "x").index.tolist() == ["a", "c"]


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3", None])
def test_invalid_count(value):
    with pytest.raises(DefinitionError, match="queries"):
        check_count("x", "queries", value)


@pytest.mark.parametrize("value", [0, 1.01, -0.5, True, "1", None, float("nan")])
def test_invalid_share(value):
    with pytest.raises(DefinitionError, match="above"):
        check_share("x", "keep", value)


def test_each_target_is_a_question_of_its_query():
    items = pd.Series(["one", "two", "three", "?", "!"], index=list("abcqr"))
    made = searched(DATA, items, ["q", "r"], [np.array([0, 2]), np.array([1])])
    assert made.questions["query"].tolist() == ["q", "q", "r"]
    assert made.truth.tolist() == ["a", "c", "b"]
    assert made.group.tolist() == ["q", "q", "r"]
    with pytest.raises(DataError, match="sixty"):
        searched(DATA, items, [], [])


def test_own_query_generator(clean_registry):
    @karat.asker("first-rows")
    def first_rows(data, rng, count=2):
        """Ask about the first rows only."""
        return data.take(np.arange(count))

    assert len(ask(DATA, {"use": "first-rows", "count": 5}, 0)) == 5
    with pytest.raises(DefinitionError, match='"cout"'):
        ask(DATA, {"use": "first-rows", "cout": 5}, 0)

    @karat.asker("nothing")
    def nothing(data):
        """Ask nothing."""

    with pytest.raises(ContractError, match='"nothing"'):
        ask(DATA, {"use": "nothing"}, 0)


def test_unknown_query_generator_suggests_the_nearest():
    with pytest.raises(DefinitionError, match='"partial-row"'):
        ask(DATA, {"use": "partial-row"}, 0)
