"""Text queries: conditions on the columns of a table, in words, that some of its rows meet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.asks.base import check_count, check_share, rows_of, searched
from karat.dataset import Dataset
from karat.errors import DataError, DefinitionError
from karat.registry import asker
from karat.wording import sentences, written

#: the columns a query of each sort asks about: words are classes, numbers are measured
SORTS = {"numeric": ("number",), "categorical": ("word",), "mixed": ("word", "number")}
OPENINGS = ("rows where", "find rows where", "show the ones where")
JOINTS = (" and ", ", and ", "; also ")
IS = ("{column} is {value}", "{column} equals {value}", "{column} is just {value}")
ABOVE = ("{column} is above {low}", "{column} is more than {low}", "{column} exceeds {low}")
BELOW = ("{column} is below {high}", "{column} is less than {high}", "{column} is under {high}")
BETWEEN = ("{column} is between {low} and {high}", "{column} is from {low} to {high}")
#: a column of fewer different numbers than this is a class in digits
MEASURED = 10
#: a longer text is not what people ask for
LONGEST = 60
#: how often a query that too many rows meet is drawn again before it is given up
TRIES = 40


@asker("text-queries")
def text_queries(
    data: Dataset,
    rng: np.random.Generator,
    queries: int = 200,
    conditions: Sequence[str] = tuple(SORTS),
    most: float = 0.05,
) -> Dataset:
    """Return rows as sentences, and conditions in words as queries that some rows meet.

    ``conditions`` are the sorts that take turns: ``numeric``, ``categorical`` and ``mixed``. A
    query begins with a row that meets it; one that more than the share ``most`` of the rows meet
    is drawn again, and given up at last. A missing cell meets no condition. The probe is
    ``nearest`` with ``queries: apart``.
    """
    check_count("text-queries", "queries", queries)
    check_share("text-queries", "most", most)
    sorts = _checked(conditions)
    table = rows_of(data, "text-queries")
    columns = _Columns.of(table)
    able = [sort for sort in sorts if all(columns.names[what] for what in SORTS[sort])]
    if not able:
        numbers, words = len(columns.names["number"]), len(columns.names["word"])
        raise DataError(
            f"{data.name}: ask: text-queries: there is nothing to ask for in {' or '.join(sorts)} "
            f"conditions; it has {numbers} columns of numbers and {words} of words that differ."
        )
    made = dict(_made(columns, able, (queries, most * len(table)), rng))
    rows = pd.Series(sentences(table), [f"row {name}" for name in table.index], dtype=object)
    asked = pd.Series(list(made), list(made), dtype=object)
    return searched(data, pd.concat([rows, asked]), list(made), list(made.values()))


def _checked(conditions: Any) -> list[str]:
    given = [conditions] if isinstance(conditions, str) else conditions
    several = isinstance(given, list | tuple) and len(given) > 0
    if not several or not all(isinstance(sort, str) and sort in SORTS for sort in given):
        raise DefinitionError(
            f"ask: text-queries: conditions are some of {', '.join(SORTS)}, not {conditions!r}."
        )
    return list(given)


def _made(
    columns: _Columns, sorts: list[str], limits: tuple[int, float], rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield different queries and the rows that meet each, the sorts in turn."""
    wanted, most = limits
    seen: set[str] = set()
    for turn in range(wanted):
        for _ in range(TRIES):
            query, rows = _drawn(columns, SORTS[sorts[turn % len(sorts)]], rng)
            if query not in seen and 1 <= len(rows) <= max(1.0, most):
                seen.add(query)
                yield query, rows
                break


def _drawn(
    columns: _Columns, whats: tuple[str, ...], rng: np.random.Generator
) -> tuple[str, np.ndarray]:
    """Return one query in words, and the rows that meet it; none where its row has a gap."""
    row = int(rng.integers(columns.rows))
    meets = np.ones(columns.rows, dtype=bool)
    words = []
    for what in whats:
        name = _one(columns.names[what], rng)
        condition = (columns.word if what == "word" else columns.number)(name, row, rng)
        if condition is None:
            return "", np.empty(0, dtype=np.intp)
        words.append(condition.words)
        meets &= condition.meets
    query = f"{_one(OPENINGS, rng)} {_one(JOINTS, rng).join(words)}"
    return query, np.flatnonzero(meets)


@dataclass(frozen=True)
class _Condition:
    words: str
    meets: np.ndarray


@dataclass(frozen=True)
class _Columns:
    """The columns of a table by what can be asked of them, their cells, and numbers in order."""

    names: dict[str, list[Any]]
    cells: dict[Any, np.ndarray]
    known: dict[Any, np.ndarray]
    rows: int

    @classmethod
    def of(cls, table: pd.DataFrame) -> _Columns:
        """Return the columns that hold classes and those that hold measured numbers."""
        names: dict[str, list[Any]] = {"word": [], "number": []}
        cells: dict[Any, np.ndarray] = {}
        known: dict[Any, np.ndarray] = {}
        for name, column in table.items():
            values = _numbers(column)
            ascending = np.sort(values[np.isfinite(values)])
            if len(np.unique(ascending)) >= MEASURED:
                names["number"].append(name)
                cells[name], known[name] = values, ascending
                continue
            texts = _texts(column)
            if len(set(texts) - {""}) > 1 and not pd.api.types.is_datetime64_any_dtype(column):
                names["word"].append(name)
                cells[name] = np.array(texts, dtype=object)
        return cls(names, cells, known, len(table))

    def word(self, name: Any, row: int, rng: np.random.Generator) -> _Condition | None:
        """Return the condition that a column has the row's value."""
        value = self.cells[name][row]
        if not value or len(value) > LONGEST:
            return None
        words = _one(IS, rng).format(column=name, value=value)
        return _Condition(words, self.cells[name] == value)

    def number(self, name: Any, row: int, rng: np.random.Generator) -> _Condition | None:
        """Return a condition on a column of numbers, with round limits, that the row meets."""
        numbers, known = self.cells[name], self.known[name]
        if not np.isfinite(numbers[row]):
            return None
        place = np.searchsorted(known, numbers[row]) / len(known)
        sides = [place - rng.uniform(0.005, 0.05), place + rng.uniform(0.005, 0.05)]
        ranks = np.rint(np.clip(sides, 0, 1) * (len(known) - 1)).astype(int)
        low, high = _round(*known[ranks].tolist())
        said: tuple[str, ...] = BETWEEN
        if place <= 0.05:
            said, meets = BELOW, numbers < high
        elif place >= 0.95:
            said, meets = ABOVE, numbers > low
        else:
            meets = (numbers >= low) & (numbers <= high)
        if not meets[row]:
            return None
        words = _one(said, rng).format(column=name, low=written(low), high=written(high))
        return _Condition(words, meets)


def _numbers(column: pd.Series) -> np.ndarray:
    """Return a column of numbers as floats; none where it holds something else."""
    kinds = pd.api.types
    if not kinds.is_numeric_dtype(column) or kinds.is_bool_dtype(column):
        return np.empty(0)
    if kinds.is_complex_dtype(column):
        return np.empty(0)
    return column.to_numpy(dtype=float, na_value=np.nan)


def _texts(column: pd.Series) -> list[str]:
    there = column.notna()
    cells = zip(column.astype(object), there, strict=True)
    return [written(cell) if known else "" for cell, known in cells]


def _round(low: float, high: float) -> tuple[float, float]:
    """Return two limits as people say them, no finer than what lies between them needs.

    What is returned is what is written: a number of more than six digits is cut before.

    >>> _round(1987.4, 2013.9), _round(0.123456, 0.123789)
    ((1990.0, 2010.0), (0.1235, 0.1238))
    """
    half = high / 2 - low / 2
    if half > 0:
        digits = -math.floor(math.log10(half))
        low, high = round(low, digits), round(high, digits)
    return float(written(low)), float(written(high))


def _one(choices: Sequence[Any], rng: np.random.Generator) -> Any:
    return choices[int(rng.integers(len(choices)))]
