"""Text queries: an independent parser checks that the targets match the text."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karat.asks.base import ask
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.metrics.base import score
from karat.probes.nearest import Nearest
from karat.vectors import Vectors
from karat.wording import sentences

steady = settings(deadline=None, derandomize=True, max_examples=50)

OPENINGS = ("rows where ", "find rows where ", "show the ones where ")
JOINTS = (" and ", ", and ", "; also ")
NUMBER = r"(-?\d+(?:\.\d+)?(?:e[+-]\d+)?)"
#: the wordings of each numeric condition, and its meaning
WORDINGS = {
    rf" (?:is above|is more than|exceeds) {NUMBER}": lambda x, low: x > low,
    rf" (?:is below|is less than|is under) {NUMBER}": lambda x, high: x < high,
    rf" is between {NUMBER} and {NUMBER}": lambda x, low, high: low <= x <= high,
    rf" is from {NUMBER} to {NUMBER}": lambda x, low, high: low <= x <= high,
}


def data(table: pd.DataFrame) -> Dataset:
    truth = np.arange(len(table)) + 0.5
    questions = pd.DataFrame({"row": table.index})
    return Dataset("toy", table, questions, truth, "numbers", "table")


def asked(table: pd.DataFrame, seed: int = 0, **how: object) -> Dataset:
    return ask(data(table), {"use": "text-queries", **how}, seed)


def answers(made: Dataset) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for query, answer in zip(made.questions["query"], made.truth, strict=True):
        found.setdefault(query, []).append(answer)
    return found


# -- parser of queries ----------------------------------------------------------------------


def as_text(cell: object) -> str:
    """Return a cell as it is written in a query; numbers have at most six digits."""
    if pd.isna(cell):
        return ""
    if isinstance(cell, float):
        return str(int(cell)) if cell.is_integer() else f"{cell:.6g}"
    return str(cell).strip()


def numbers_met(table: pd.DataFrame, words: str) -> Iterator[set[int]]:
    """Yield which rows meet a condition on a number, for each way to read it."""
    for name in table.columns:
        for pattern, means in WORDINGS.items():
            match = re.fullmatch(re.escape(str(name)) + pattern, words)
            if match:
                limits = [float(limit) for limit in match.groups()]
                cells = enumerate(table[name].tolist())
                yield {i for i, x in cells if not pd.isna(x) and means(float(x), *limits)}


def words_met(table: pd.DataFrame, words: str) -> Iterator[tuple[set[int], str]]:
    """Yield which rows meet a condition on words at the beginning, and what comes after it."""
    for name in table.columns:
        cells = [as_text(cell) for cell in table[name]]
        for value in set(cells) - {""}:
            for verb in ("is", "equals", "is just"):
                prefix = f"{name} {verb} {value}"
                if words.startswith(prefix):
                    yield {i for i, cell in enumerate(cells) if cell == value}, words[len(prefix) :]


def read(table: pd.DataFrame, query: str, sort: str) -> list[set[int]]:
    """Return the rows that meet a query, for each way to read it."""
    found = []
    for opening in OPENINGS:
        if not query.startswith(opening):
            continue
        words = query[len(opening) :]
        if sort == "numeric":
            found += numbers_met(table, words)
        for rows, rest in words_met(table, words) if sort != "numeric" else ():
            if sort == "categorical" and not rest:
                found.append(rows)
            for joint in JOINTS if sort == "mixed" else ():
                if rest.startswith(joint):
                    found += [rows & met for met in numbers_met(table, rest[len(joint) :])]
    return found


def check(made: Dataset, table: pd.DataFrame, sort: str, most: float) -> None:
    names = [f"row {name}" for name in table.index]
    for query, rows in answers(made).items():
        readings = [{names[i] for i in met} for met in read(table, query, sort)]
        assert readings, query
        assert set(rows) in readings, query
        assert len(rows) == len(set(rows)) and 1 <= len(rows) <= max(1, most * len(table))


# -- by hand --------------------------------------------------------------------------------


def test_words_by_hand():
    table = pd.DataFrame({"colour": ["red", "blue", "red", None], "same": ["x"] * 4})
    made = asked(table, conditions="categorical", most=0.5)
    expected = {"red": ["row 0", "row 2"], "blue": ["row 1"]}
    found = answers(made)
    assert len(found) == 18  # three openings, three verbs, two colours; "same" is constant
    for query, rows in found.items():
        assert rows == expected[query.split()[-1]] and "colour" in query
    # a query that was drawn before is drawn again
    assert len(answers(asked(table, conditions="categorical", most=0.5, queries=12))) == 12


def test_rows_are_the_sentences_of_the_table():
    table = pd.DataFrame({"n": np.arange(20.0), "w": list("ab") * 10}, index=range(5, 25))
    made = asked(table, queries=6)
    assert made.modality == "text"
    assert made.items.iloc[:20].tolist() == sentences(table)
    assert made.items.index.tolist()[:2] == ["row 5", "row 6"]
    queries = made.items.iloc[20:]
    assert queries.tolist() == queries.index.tolist() == list(answers(made))


def test_sorts_alternate():
    table = pd.DataFrame({"n": np.arange(200.0), "w": [f"w{i % 40}" for i in range(200)]})
    made = list(answers(asked(table, queries=9)))
    sorts = [("n" in q.split()[2:5], "w" in q.split()[2:5]) for q in made]
    joined = [any(joint in q for joint in JOINTS) and " n " in q and " w " in q for q in made]
    assert joined == [False, False, True] * 3
    assert [n for n, _ in sorts[0::3]] == [True] * 3
    assert [w for _, w in sorts[1::3]] == [True] * 3


@pytest.mark.parametrize("offset, scale", [(0, 1), (1990, 0.2), (1e6, 1), (0, 1e-9), (-5e9, 1e6)])
def test_limits_are_round_and_selective(offset, scale):
    table = pd.DataFrame({"n": offset + scale * np.arange(200)})
    made = asked(table, conditions=["numeric"], queries=40)
    found = answers(made)
    assert len(found) > 20
    check(made, table, "numeric", 0.05)
    limits = {limit for query in found for limit in re.findall(NUMBER, query)}
    assert max(len(re.sub(r"e.*|\D", "", limit).strip("0")) for limit in limits) <= 7


def test_condition_with_too_many_matches_is_dropped():
    table = pd.DataFrame({"w": ["common"] * 99 + ["rare"]})
    found = answers(asked(table, conditions=["categorical"], queries=50))
    assert 0 < len(found) <= 9 and all(rows == ["row 99"] for rows in found.values())
    with pytest.raises(DataError, match="query"):
        asked(pd.DataFrame({"w": ["one"] * 50 + ["two"] * 50}), conditions=["categorical"])


def test_ties_do_not_stop_it():
    table = pd.DataFrame({"n": [0.0] * 5000 + list(range(1, 41)) * 5})
    made = asked(table, conditions=["numeric"], queries=30)
    check(made, table, "numeric", 0.05)


def test_long_texts_are_not_used():
    table = pd.DataFrame({"w": ["short", "x" * 61, "y" * 60] * 2})
    found = answers(asked(table, conditions=["categorical"], most=1.0))
    assert {query.split()[-1] for query in found} == {"short", "y" * 60}


def test_few_numbers_are_classes_and_dates_are_ignored():
    table = pd.DataFrame(
        {
            "grade": [1.0, 2.0, 3.0, np.nan] * 10,
            "day": pd.date_range("2024-01-01", periods=40),
            "wave": np.exp(1j * np.arange(40)),
        }
    )
    found = answers(asked(table[["grade", "day"]], conditions=["categorical"], most=0.5))
    assert {query.split()[-1] for query in found} == {"1", "2", "3"}
    with pytest.raises(DataError, match="columns"):
        asked(table, conditions=["numeric"])


def test_infinite_number_is_above_all():
    table = pd.DataFrame({"n": [*np.arange(100.0), np.inf, -np.inf, np.nan]})
    found = answers(asked(table, conditions=["numeric"], most=1.0))
    for query, rows in found.items():
        up = re.search("above|more than|exceeds", query) is not None
        down = re.search("below|less than|under", query) is not None
        assert ("row 100" in rows, "row 101" in rows) == (up, down)
        assert "row 102" not in rows


# -- whatever the table holds ---------------------------------------------------------------

COLUMNS = {
    "n": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(3) * 100),
    "i": lambda rng, n: rng.integers(0, 1000, n),
    "year": lambda rng, n: pd.array(rng.choice([None, *range(1990, 2025)], n), dtype="Int64"),
    "tiny": lambda rng, n: rng.random(n).astype(np.float32) * 1e-5,
    "flag": lambda rng, n: rng.random(n) < 0.5,
    "boolean": lambda rng, n: pd.array(rng.choice([True, False, None], n), dtype="boolean"),
    "word": lambda rng, n: rng.choice(["a", "b b", " c", None, ""], n),
    "category": lambda rng, n: pd.Categorical(rng.choice(["u", "v", None], n)),
    "grade": lambda rng, n: rng.integers(1, 5, n) * 1.0,
    "{x} 'q' \"r\"": lambda rng, n: rng.choice(["{y}", "%s", "{column}", "{0}"], n),
    "{low}": lambda rng, n: rng.integers(0, 1000, n),
    3: lambda rng, n: rng.choice([1, "one", 2.5], n).astype(object),
    ("t", 1): lambda rng, n: rng.integers(0, 500, n),
    "list": lambda rng, n: pd.Series([[1], [2], None], dtype=object)[rng.integers(0, 3, n)].array,
}
MEASURED = {"n", "i", "year", "tiny", "{low}", ("t", 1)}


def typed(names: list[object], rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = [pd.Series(COLUMNS[name](rng, rows)) for name in names]
    table = pd.concat(columns, axis=1, ignore_index=True)
    table.columns = pd.Index(names, tupleize_cols=False, dtype=object)
    return table


@steady
@given(
    st.lists(st.sampled_from(list(COLUMNS)), min_size=1, max_size=5, unique=True),
    st.integers(1, 80),
    st.integers(0, 99),
    st.sampled_from(["numeric", "categorical", "mixed"]),
    st.sampled_from([0.05, 0.5, 1.0]),
)
def test_targets_match_the_text_of_the_query(names, rows, seed, sort, most):
    table = typed(names, rows, seed)
    how = {"conditions": [sort], "most": most, "queries": 12}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            made = asked(table, seed, **how)
        except DataError as error:
            lacking = {"numeric": MEASURED.isdisjoint(names), "categorical": set(names) <= MEASURED}
            assert "no query could" in str(error) or lacking.get(sort, True) or rows < 12
            return
    check(made, table, sort, most)
    assert made.fingerprint == asked(table, seed, **how).fingerprint


def test_table_without_numbers_or_without_words():
    words = pd.DataFrame({"w": [f"w{i % 30}" for i in range(60)]})
    numbers = pd.DataFrame({"n": np.arange(60.0)})
    # the sorts that it can be asked in take all turns
    check(asked(words), words, "categorical", 0.05)
    check(asked(numbers), numbers, "numeric", 0.05)
    for table, sort, counts in (
        (words, "numeric", "0 .* 1 "),
        (words, "mixed", "0 .* 1 "),
        (numbers, "categorical", "1 .* 0 "),
        (numbers.iloc[:1], "numeric", "0 .* 0 "),
    ):
        with pytest.raises(DataError, match=f"{sort}.*{counts}"):
            asked(table, conditions=[sort])


@pytest.mark.parametrize("wrong", [["numerical"], [], [1], [["numeric"]], None, 5, {"numeric": 1}])
def test_invalid_conditions(wrong):
    table = pd.DataFrame({"n": np.arange(60.0)})
    with pytest.raises(DefinitionError, match="categorical"):
        asked(table, conditions=wrong)


def test_perfect_encoder_finds_every_answer():
    table = pd.DataFrame({"n": np.arange(100.0), "w": [f"w{i % 30}" for i in range(100)]})
    made = asked(table, queries=10)
    queries = list(answers(made))
    # a row is near a query exactly if it answers it
    matrix = np.zeros((len(made.items), len(queries)))
    for place, (_, rows) in enumerate(answers(made).items()):
        matrix[made.items.index.get_indexer(rows), place] = 1.0
        matrix[100 + place, place] = 1.0
    got = Nearest(queries="apart").answer(made, Vectors(matrix, np.arange(len(matrix))))
    assert set(got.candidates) == {100}
    assert score("map", got)[0] == score("ndcg@10", got)[0] == 1.0
