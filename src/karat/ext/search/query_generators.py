"""Query generators: retrieval questions made of a table.

"partial-rows" asks with some cells of a row for the rows with the same values, "text-queries" with
conditions on columns, as text, for the matching rows.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import cell_as_text, cells_as_text, rows_as_sentences
from karat.core.dataset import Dataset
from karat.core.registry import query_generator
from karat.data.load_dataset import check_integer
from karat.errors import DataError, DefinitionError

#: larger integers are not exact as floats, which a column with missing values has
EXACT = 2**53
#: the column types in a query of each sort: "word" is categorical, "number" is numeric
SORTS = {"numeric": ("number",), "categorical": ("word",), "mixed": ("word", "number")}
OPENINGS = ("rows where", "find rows where", "show the ones where")
JOINTS = (" and ", ", and ", "; also ")
IS = ("{column} is {value}", "{column} equals {value}", "{column} is just {value}")
ABOVE = ("{column} is above {low}", "{column} is more than {low}", "{column} exceeds {low}")
BELOW = ("{column} is below {high}", "{column} is less than {high}", "{column} is under {high}")
BETWEEN = ("{column} is between {low} and {high}", "{column} is from {low} to {high}")
#: numeric columns with fewer distinct values are categorical
MEASURED = 10
#: longer texts are not used as values
LONGEST = 60
#: how often a query with too many matching rows is drawn again
TRIES = 40
#: a condition as text, and which rows match it
_Condition = tuple[str, np.ndarray]


def table_rows(data: Dataset, generator: str) -> pd.DataFrame:
    """Return the distinct rows of a table that the questions refer to."""
    if not isinstance(data.items, pd.DataFrame):
        raise DefinitionError(
            f"ask: {generator} needs the rows of a table; {data.name} has {data.modality} items."
        )
    return data.items.iloc[data.mentioned()]


def check_share(generator: str, parameter: str, value: object) -> None:
    """Raise a DefinitionError unless the value is above 0 and at most 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
        raise DefinitionError(
            f"ask: {generator}: {parameter} must be above 0 and at most 1, got {value!r}."
        )


def searched(
    data: Dataset,
    items: pd.DataFrame | pd.Series,
    queries: Sequence[str],
    answers: Sequence[np.ndarray],
) -> Dataset:
    """Return questions whose target is an item: each query once for each of its answers.

    ``items`` has the candidates first, at the positions in ``answers``, then the queries.
    """
    if not len(queries):
        raise DataError(f"{data.name}: no query could be generated from its rows.")
    repeated = np.repeat(np.asarray(queries, dtype=object), [len(rows) for rows in answers])
    questions = pd.DataFrame({"query": repeated})
    truth = items.index.to_numpy()[np.concatenate(answers)]
    modality = "table" if isinstance(items, pd.DataFrame) else "text"
    facts = data.about
    return Dataset(
        name=data.name,
        items=items,
        questions=questions,
        target=truth,
        kind="items",
        modality=modality,
        group=repeated,
        about=facts,
    )


@query_generator("partial-rows")
def partial_rows(
    data: Dataset, rng: np.random.Generator, queries: int = 200, keep: float = 0.5
) -> Dataset:
    """Return partial rows as queries; their targets are the rows with the same values.

    A query keeps the fraction ``keep`` of the non-missing cells of a random row, at least one; the
    others are missing. Every row with the same values in these cells is a target. Use the probe
    ``nearest`` with ``queries: apart``.
    """
    check_integer("ask: partial-rows", "queries", queries, 1)
    check_share("partial-rows", "keep", keep)
    table = table_rows(data, "partial-rows")
    codes = []  # equal for equal cells, -1 if missing
    for _, values in table.items():
        try:
            codes.append(pd.factorize(values)[0])
        except TypeError:  # unhashable cells are compared by their repr
            codes.append(pd.factorize(values.map(repr, na_action="ignore"))[0])
    filled = np.column_stack(codes) >= 0
    usable = np.flatnonzero(filled.any(axis=1))
    drawn = np.sort(rng.choice(usable, min(queries, len(usable)), replace=False))
    # a random fraction of the filled cells of each row
    wanted = np.maximum(1, np.rint(keep * filled[drawn].sum(axis=1)))
    order = np.argsort(np.where(filled[drawn], rng.random(filled[drawn].shape), 2.0), axis=1)
    mask = filled[drawn] & (np.argsort(order, axis=1) < wanted[:, None])
    answers = []
    for row, cells in zip(drawn, mask, strict=True):
        rows = np.arange(len(table))
        for column in np.flatnonzero(cells):
            rows = rows[codes[column][rows] == codes[column][row]]
        answers.append(rows)
    names = [f"part of row {table.index[row]}" for row in drawn]
    ids = pd.Index([*(f"row {name}" for name in table.index), *names], dtype=object)
    return searched(data, _with_parts(table, drawn, mask).set_axis(ids, axis=0), names, answers)


def _with_parts(table: pd.DataFrame, drawn: np.ndarray, mask: np.ndarray) -> pd.DataFrame:
    """Return all rows, followed by the drawn ones with only the kept cells."""
    rows = table.iloc[np.concatenate([np.arange(len(table)), drawn])].copy()
    for i in range(table.shape[1]):
        column = rows.iloc[:, i]
        integers = isinstance(column.dtype, np.dtype) and column.dtype.kind in "iu"
        if integers and not column.between(-EXACT, EXACT).all():
            column = column.astype(object)
        stays = np.concatenate([np.ones(len(table), dtype=bool), mask[:, i]])
        rows.isetitem(i, column.where(stays))
    return rows


@query_generator("text-queries")
def text_queries(
    data: Dataset,
    rng: np.random.Generator,
    queries: int = 200,
    conditions: Sequence[str] = tuple(SORTS),
    most: float = 0.05,
) -> Dataset:
    """Return rows as sentences, and conditions as text queries whose targets are matching rows.

    ``conditions`` are the sorts of queries to alternate: ``numeric``, ``categorical`` and
    ``mixed``. Each query matches at least one row; one that matches more than the fraction
    ``most`` of the rows is drawn again, a limited number of times. A missing cell matches no
    condition. Use the probe ``nearest`` with ``queries: apart``.
    """
    check_integer("ask: text-queries", "queries", queries, 1)
    check_share("text-queries", "most", most)
    sorts = [conditions] if isinstance(conditions, str) else conditions
    several = isinstance(sorts, list | tuple) and len(sorts) > 0
    if not several or not all(isinstance(sort, str) and sort in SORTS for sort in sorts):
        raise DefinitionError(
            f"ask: text-queries: conditions must be some of {', '.join(SORTS)}, got {conditions!r}."
        )
    table = table_rows(data, "text-queries")
    columns = _Columns.of(table)
    usable = [sort for sort in sorts if all(columns.names[what] for what in SORTS[sort])]
    if not usable:
        numbers, words = len(columns.names["number"]), len(columns.names["word"])
        raise DataError(
            f"{data.name}: ask: text-queries: no {' or '.join(sorts)} conditions are "
            f"possible with {numbers} numeric and {words} categorical columns."
        )
    generated = dict(_generate(columns, usable, (queries, most * len(table)), rng))
    rows = pd.Series(
        rows_as_sentences(table), [f"row {name}" for name in table.index], dtype=object
    )
    texts = list(generated)
    items = pd.concat([rows, pd.Series(texts, texts, dtype=object)])
    return searched(data, items, texts, list(generated.values()))


def _generate(
    columns: _Columns, sorts: list[str], limits: tuple[int, float], rng: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    """Yield distinct queries and their matching rows, alternating the sorts."""
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
    """Return a random query and its matching rows; none if the drawn row has missing cells."""
    row = int(rng.integers(columns.rows))
    matches = np.ones(columns.rows, dtype=bool)
    words = []
    for what in whats:
        name = _one(columns.names[what], rng)
        condition = (columns.word if what == "word" else columns.number)(name, row, rng)
        if condition is None:
            return "", np.empty(0, dtype=np.intp)
        words.append(condition[0])
        matches &= condition[1]
    query = f"{_one(OPENINGS, rng)} {_one(JOINTS, rng).join(words)}"
    return query, np.flatnonzero(matches)


@dataclass(frozen=True)
class _Columns:
    """The columns of a table by type, their cells, and the sorted values of numeric ones."""

    names: dict[str, list[Any]]
    cells: dict[Any, np.ndarray]
    ordered: dict[Any, np.ndarray]
    rows: int

    @classmethod
    def of(cls, table: pd.DataFrame) -> _Columns:
        """Return the categorical and the numeric columns."""
        names: dict[str, list[Any]] = {"word": [], "number": []}
        cells: dict[Any, np.ndarray] = {}
        ordered: dict[Any, np.ndarray] = {}
        for name, column in table.items():
            values = _numbers(column)
            ascending = np.sort(values[np.isfinite(values)])
            if len(np.unique(ascending)) >= MEASURED:
                names["number"].append(name)
                cells[name], ordered[name] = values, ascending
                continue
            texts = cells_as_text(column)
            if len(set(texts) - {""}) > 1 and not pd.api.types.is_datetime64_any_dtype(column):
                names["word"].append(name)
                cells[name] = np.array(texts, dtype=object)
        return cls(names, cells, ordered, len(table))

    def word(self, name: Hashable, row: int, rng: np.random.Generator) -> _Condition | None:
        """Return the condition that a column equals the row's value."""
        value = self.cells[name][row]
        if not value or len(value) > LONGEST:
            return None
        words = _one(IS, rng).format(column=name, value=value)
        return words, self.cells[name] == value

    def number(self, name: Hashable, row: int, rng: np.random.Generator) -> _Condition | None:
        """Return a condition on a numeric column, with round limits, that the row matches."""
        numbers, ordered = self.cells[name], self.ordered[name]
        if not np.isfinite(numbers[row]):
            return None
        quantile = np.searchsorted(ordered, numbers[row]) / len(ordered)
        sides = [quantile - rng.uniform(0.005, 0.05), quantile + rng.uniform(0.005, 0.05)]
        ranks = np.rint(np.clip(sides, 0, 1) * (len(ordered) - 1)).astype(int)
        low, high = _round(*ordered[ranks].tolist())
        templates: tuple[str, ...] = BETWEEN
        if quantile <= 0.05:
            templates, matches = BELOW, numbers < high
        elif quantile >= 0.95:
            templates, matches = ABOVE, numbers > low
        else:
            matches = (numbers >= low) & (numbers <= high)
        if not matches[row]:
            return None
        words = _one(templates, rng).format(
            column=name, low=cell_as_text(low), high=cell_as_text(high)
        )
        return words, matches


def _numbers(column: pd.Series) -> np.ndarray:
    """Return a real numeric column as floats; else an empty array."""
    types = pd.api.types
    real = types.is_numeric_dtype(column) and not types.is_complex_dtype(column)
    if not real or types.is_bool_dtype(column):
        return np.empty(0)
    return column.to_numpy(dtype=float, na_value=np.nan)


def _round(low: float, high: float) -> tuple[float, float]:
    """Return two rounded limits, with as many digits as their difference needs.

    They equal the numbers in the text, which have at most six digits.

    >>> _round(1987.4, 2013.9), _round(0.123456, 0.123789)
    ((1990.0, 2010.0), (0.1235, 0.1238))
    """
    half = high / 2 - low / 2
    if half > 0:
        digits = -math.floor(math.log10(half))
        low, high = round(low, digits), round(high, digits)
    return float(cell_as_text(low)), float(cell_as_text(high))


def _one(choices: Sequence[Any], rng: np.random.Generator) -> Any:
    return choices[int(rng.integers(len(choices)))]
