"""Query generators: the targets of partial rows and of text queries, checked independently."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import karat
from karat.core.columns import rows_as_sentences
from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.data.queries import generate_queries
from karat.errors import ContractError, DataError, DefinitionError
from karat.ext.search.query_generators import check_share, searched, table_rows
from karat.metrics.metric import score
from karat.probes.retrieval import Nearest

TABLE = pd.DataFrame({"n": np.arange(60.0), "w": list("abcdef") * 10, "y": ["p", "q"] * 30})
DATA = Dataset.from_table(TABLE, "y", name="sixty", about={"license": "CC0"})


@pytest.mark.parametrize("name", ["partial-rows", "text-queries"])
def test_queries_are_drawn_anew_and_the_target_is_not_used(name):
    made, other = (generate_queries(DATA, {"use": name, "queries": 9}, seed) for seed in (7, 8))
    assert set(made.group) != set(other.group)
    assert made.name == f"sixty {name}" and made.about == {"license": "CC0"}
    assert (made.kind, made.fields) == ("items", ["query"])
    if isinstance(made.items, pd.DataFrame):
        assert list(made.items.columns) == ["n", "w"]
    else:
        assert not made.items.str.contains(r"\by\b").any()


def test_rows_are_distinct():
    items = pd.DataFrame({"n": [1, 2, 3]}, index=["a", "b", "c"])
    questions = pd.DataFrame({"row": ["c", "a", "c"]})
    twice = Dataset("twice", items, questions, np.array([1.0, 2.0, 3.0]), "regression", "table")
    assert table_rows(twice, "x").index.tolist() == ["a", "c"]


@pytest.mark.parametrize("name", ["partial-rows", "text-queries"])
@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3", None])
def test_invalid_count(name, value):
    with pytest.raises(DefinitionError, match=f"{name}: queries"):
        generate_queries(DATA, {"use": name, "queries": value}, 0)


@pytest.mark.parametrize("value", [0, 1.01, -0.5, True, "1", None, float("nan")])
def test_invalid_share(value):
    with pytest.raises(DefinitionError, match="above"):
        check_share("x", "keep", value)


def test_each_target_is_a_question_of_its_query():
    items = pd.Series(["one", "two", "three", "?", "!"], index=list("abcqr"))
    made = searched(DATA, items, ["q", "r"], [np.array([0, 2]), np.array([1])])
    assert made.questions["query"].tolist() == ["q", "q", "r"]
    assert made.target.tolist() == ["a", "c", "b"]
    assert made.group.tolist() == ["q", "q", "r"]
    with pytest.raises(DataError, match="sixty"):
        searched(DATA, items, [], [])


def test_own_query_generator(clean_registry):
    @karat.query_generator("first-rows")
    def first_rows(data, rng, count=2):
        """Ask about the first rows only."""
        return data.take(np.arange(count))

    assert len(generate_queries(DATA, {"use": "first-rows", "count": 5}, 0)) == 5
    with pytest.raises(DefinitionError, match='"cout"'):
        generate_queries(DATA, {"use": "first-rows", "cout": 5}, 0)

    @karat.query_generator("nothing")
    def nothing(data):
        """Ask nothing."""

    with pytest.raises(ContractError, match='"nothing"'):
        generate_queries(DATA, {"use": "nothing"}, 0)
    with pytest.raises(DefinitionError, match='"partial-row"'):
        generate_queries(DATA, {"use": "partial-row"}, 0)


steady = settings(deadline=None, derandomize=True, max_examples=60)


def data(table: pd.DataFrame) -> Dataset:
    truth = np.arange(len(table)) + 0.5
    questions = pd.DataFrame({"row": table.index})
    return Dataset("toy", table, questions, truth, "regression", "table")


def asked(table: pd.DataFrame, seed: int = 0, **how: object) -> Dataset:
    return generate_queries(data(table), {"use": "partial-rows", **how}, seed)


def answers(made: Dataset) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for query, answer in zip(made.questions["query"], made.target, strict=True):
        found.setdefault(query, []).append(answer)
    return found


def is_missing(cell: object) -> bool:
    return not isinstance(cell, list) and bool(pd.isna(cell))


def cells_of(made: Dataset) -> dict[str, list[object]]:
    return dict(zip(made.items.index, made.items.astype(object).to_numpy().tolist(), strict=True))


def agreeing(cells: dict[str, list[object]], query: str, candidates: list[str]) -> list[str]:
    """Compare cell by cell, in plain Python."""
    asked = [(place, cell) for place, cell in enumerate(cells[query]) if not is_missing(cell)]

    def agrees(row: list[object]) -> bool:
        return all(not is_missing(row[place]) and row[place] == cell for place, cell in asked)

    return [name for name in candidates if agrees(cells[name])]


def check_parts(made: Dataset, table: pd.DataFrame, keep: float) -> None:
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
    assert answers(asked(table)) == {"part of row 0": ["row 0"]}
    with pytest.raises(DataError, match="query"):
        asked(pd.DataFrame({"a": [np.nan, np.nan], "b": [None, None]}))


def test_number_of_queries_and_answers():
    made = asked(pd.DataFrame({"a": [7] * 3000, "b": ["x"] * 3000}), queries=5)
    assert len(made) == 5 * 3000 and len(set(made.target)) == 3000
    table = pd.DataFrame({"a": np.arange(50), "b": list("vwxyz") * 10})
    assert len(answers(asked(table, queries=20))) == 20
    assert len(answers(asked(table, queries=500))) == 50


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


def typed(names: list[object], rows: int, seed: int, makers: dict | None = None) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    columns = [pd.Series((makers or COLUMNS)[name](rng, rows)) for name in names]
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
    check_parts(made, table, keep)
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


def texts(table: pd.DataFrame, seed: int = 0, **how: object) -> Dataset:
    return generate_queries(data(table), {"use": "text-queries", **how}, seed)


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


def check_texts(made: Dataset, table: pd.DataFrame, sort: str, most: float) -> None:
    names = [f"row {name}" for name in table.index]
    for query, rows in answers(made).items():
        readings = [{names[i] for i in met} for met in read(table, query, sort)]
        assert readings, query
        assert set(rows) in readings, query
        assert len(rows) == len(set(rows)) and 1 <= len(rows) <= max(1, most * len(table))


def test_words_by_hand():
    table = pd.DataFrame({"colour": ["red", "blue", "red", None], "same": ["x"] * 4})
    made = texts(table, conditions="categorical", most=0.5)
    expected = {"red": ["row 0", "row 2"], "blue": ["row 1"]}
    found = answers(made)
    assert len(found) == 18  # three openings, three verbs, two colours; "same" is constant
    for query, rows in found.items():
        assert rows == expected[query.split()[-1]] and "colour" in query
    # a query that was drawn before is drawn again
    assert len(answers(texts(table, conditions="categorical", most=0.5, queries=12))) == 12


def test_rows_are_the_sentences_of_the_table():
    table = pd.DataFrame({"n": np.arange(20.0), "w": list("ab") * 10}, index=range(5, 25))
    made = texts(table, queries=6)
    assert made.modality == "text"
    assert made.items.iloc[:20].tolist() == rows_as_sentences(table)
    assert made.items.index.tolist()[:2] == ["row 5", "row 6"]
    queries = made.items.iloc[20:]
    assert queries.tolist() == queries.index.tolist() == list(answers(made))


def test_sorts_alternate():
    table = pd.DataFrame({"n": np.arange(200.0), "w": [f"w{i % 40}" for i in range(200)]})
    made = list(answers(texts(table, queries=9)))
    sorts = [("n" in q.split()[2:5], "w" in q.split()[2:5]) for q in made]
    joined = [any(joint in q for joint in JOINTS) and " n " in q and " w " in q for q in made]
    assert joined == [False, False, True] * 3
    assert [n for n, _ in sorts[0::3]] == [True] * 3
    assert [w for _, w in sorts[1::3]] == [True] * 3


@pytest.mark.parametrize("offset, scale", [(0, 1), (1990, 0.2), (1e6, 1), (0, 1e-9), (-5e9, 1e6)])
def test_limits_are_round_and_selective(offset, scale):
    table = pd.DataFrame({"n": offset + scale * np.arange(200)})
    made = texts(table, conditions=["numeric"], queries=40)
    found = answers(made)
    assert len(found) > 20
    check_texts(made, table, "numeric", 0.05)
    limits = {limit for query in found for limit in re.findall(NUMBER, query)}
    assert max(len(re.sub(r"e.*|\D", "", limit).strip("0")) for limit in limits) <= 7


def test_condition_with_too_many_matches_is_dropped():
    table = pd.DataFrame({"w": ["common"] * 99 + ["rare"]})
    found = answers(texts(table, conditions=["categorical"], queries=50))
    assert 0 < len(found) <= 9 and all(rows == ["row 99"] for rows in found.values())
    with pytest.raises(DataError, match="query"):
        texts(pd.DataFrame({"w": ["one"] * 50 + ["two"] * 50}), conditions=["categorical"])


def test_ties_and_long_texts():
    table = pd.DataFrame({"n": [0.0] * 5000 + list(range(1, 41)) * 5})
    check_texts(texts(table, conditions=["numeric"], queries=30), table, "numeric", 0.05)
    table = pd.DataFrame({"w": ["short", "x" * 61, "y" * 60] * 2})
    found = answers(texts(table, conditions=["categorical"], most=1.0))
    assert {query.split()[-1] for query in found} == {"short", "y" * 60}


def test_few_numbers_are_classes_and_dates_are_ignored():
    days, waves = pd.date_range("2024-01-01", periods=40), np.exp(1j * np.arange(40))
    table = pd.DataFrame({"grade": [1.0, 2.0, 3.0, np.nan] * 10, "day": days, "wave": waves})
    found = answers(texts(table[["grade", "day"]], conditions=["categorical"], most=0.5))
    assert {query.split()[-1] for query in found} == {"1", "2", "3"}
    with pytest.raises(DataError, match="columns"):
        texts(table, conditions=["numeric"])


def test_infinite_number_is_above_all():
    table = pd.DataFrame({"n": [*np.arange(100.0), np.inf, -np.inf, np.nan]})
    found = answers(texts(table, conditions=["numeric"], most=1.0))
    for query, rows in found.items():
        up = re.search("above|more than|exceeds", query) is not None
        down = re.search("below|less than|under", query) is not None
        assert ("row 100" in rows, "row 101" in rows) == (up, down)
        assert "row 102" not in rows


TEXT_COLUMNS = {
    "n": lambda rng, n: np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n).round(3) * 100),
    "i": lambda rng, n: rng.integers(0, 1000, n),
    "year": lambda rng, n: pd.array(rng.choice([None, *range(1990, 2025)], n), dtype="Int64"),
    "tiny": lambda rng, n: rng.random(n).astype(np.float32) * 1e-5,
    **{name: COLUMNS[name] for name in ("flag", "boolean", "category", "list")},
    "word": lambda rng, n: rng.choice(["a", "b b", " c", None, ""], n),
    "grade": lambda rng, n: rng.integers(1, 5, n) * 1.0,
    "{x} 'q' \"r\"": lambda rng, n: rng.choice(["{y}", "%s", "{column}", "{0}"], n),
    "{low}": lambda rng, n: rng.integers(0, 1000, n),
    3: lambda rng, n: rng.choice([1, "one", 2.5], n).astype(object),
    ("t", 1): lambda rng, n: rng.integers(0, 500, n),
}
MEASURED = {"n", "i", "year", "tiny", "{low}", ("t", 1)}


@steady
@given(
    st.lists(st.sampled_from(list(TEXT_COLUMNS)), min_size=1, max_size=5, unique=True),
    st.integers(1, 80),
    st.integers(0, 99),
    st.sampled_from(["numeric", "categorical", "mixed"]),
    st.sampled_from([0.05, 0.5, 1.0]),
)
def test_targets_match_the_text_of_the_query(names, rows, seed, sort, most):
    table = typed(names, rows, seed, TEXT_COLUMNS)
    how = {"conditions": [sort], "most": most, "queries": 12}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            made = texts(table, seed, **how)
        except DataError as error:
            lacking = {"numeric": MEASURED.isdisjoint(names), "categorical": set(names) <= MEASURED}
            assert "no query could" in str(error) or lacking.get(sort, True) or rows < 12
            return
    check_texts(made, table, sort, most)
    assert made.fingerprint == texts(table, seed, **how).fingerprint


def test_table_without_numbers_or_without_words():
    words = pd.DataFrame({"w": [f"w{i % 30}" for i in range(60)]})
    numbers = pd.DataFrame({"n": np.arange(60.0)})
    # the sorts that it can be asked in take all turns
    check_texts(texts(words), words, "categorical", 0.05)
    check_texts(texts(numbers), numbers, "numeric", 0.05)
    for table, sort, counts in (
        (words, "numeric", "0 .* 1 "),
        (words, "mixed", "0 .* 1 "),
        (numbers, "categorical", "1 .* 0 "),
        (numbers.iloc[:1], "numeric", "0 .* 0 "),
    ):
        with pytest.raises(DataError, match=f"{sort}.*{counts}"):
            texts(table, conditions=[sort])


@pytest.mark.parametrize("wrong", [["numerical"], [], [1], [["numeric"]], None, 5, {"numeric": 1}])
def test_invalid_conditions(wrong):
    table = pd.DataFrame({"n": np.arange(60.0)})
    with pytest.raises(DefinitionError, match="categorical"):
        texts(table, conditions=wrong)


def test_perfect_encoder_finds_every_answer():
    table = pd.DataFrame({"n": np.arange(100.0), "w": [f"w{i % 30}" for i in range(100)]})
    made = texts(table, queries=10)
    queries = list(answers(made))
    # a row is near a query exactly if it answers it
    matrix = np.zeros((len(made.items), len(queries)))
    for place, (_, rows) in enumerate(answers(made).items()):
        matrix[made.items.index.get_indexer(rows), place] = 1.0
        matrix[100 + place, place] = 1.0
    got = Nearest(queries="apart").answer(made, Vectors(matrix, np.arange(len(matrix))))
    assert set(got.candidates) == {100}
    assert score("map", got)[0] == score("ndcg@10", got)[0] == 1.0
