"""All records of a run in one file, which is read instead of a file per job.

``scores/jobs.json`` holds the records by column. Lists and objects, such as the scores of views,
are stored as one pattern for all records of the same form, and the numbers of each record. The
file is used if the number, the newest time and the total size of the records are those that it was
made from; otherwise it is made again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.files import write_atomic
from karat.results.tables import SCORE_COLUMNS, score_rows

FILE = "jobs.json"
VERSION = 1
#: runs of fewer jobs are read from their records
FEWEST_JOBS = 100
#: the key of an object that holds the place of a number in a pattern
_NUMBER = "\x00"
#: columns whose scores are in the table of scores
_SCORED = ("history", "views")


class Nested:
    """A column of lists or objects: patterns, the pattern of each row, and the row's numbers."""

    def __init__(self, patterns: list[Any], codes: list[int], numbers: list[list[float]]) -> None:
        self.patterns, self.codes, self.numbers = patterns, codes, numbers

    @classmethod
    def of(cls, values: Sequence[Any]) -> Nested:
        """Return the values as a column."""
        places: dict[str, int] = {}
        codes, numbers = [], []
        for value in values:
            own: list[float] = []
            text = json.dumps(_pattern(value, own))
            codes.append(places.setdefault(text, len(places)))
            numbers.append(own)
        return cls([json.loads(text) for text in places], codes, numbers)

    def __getitem__(self, row: int) -> Any:
        return _filled(self.patterns[self.codes[row]], iter(self.numbers[row]))

    @cached_property
    def _coverages(self) -> list[Any]:
        """The coverage of the first view of each pattern, or its place among the numbers."""
        made = (_filled(pattern, map(_Place, itertools.count())) for pattern in self.patterns)
        return [views[0].get("coverage") if views else None for views in made]

    def coverage(self, row: int) -> Any:
        """Return the coverage of the first view of a row, None without views."""
        found = self._coverages[self.codes[row]]
        return self.numbers[row][found.index] if isinstance(found, _Place) else found


def _pattern(value: Any, numbers: list[float]) -> Any:
    """Return a value with its fractional numbers replaced, which are added to ``numbers``."""
    if isinstance(value, float):
        numbers.append(value)
        return {_NUMBER: 0}
    if isinstance(value, dict):
        return {key: _pattern(each, numbers) for key, each in value.items()}
    if isinstance(value, list):
        return [_pattern(each, numbers) for each in value]
    return value


@dataclass(frozen=True)
class _Place:
    """The place of a number in the numbers of a record."""

    index: int


def _filled(pattern: Any, numbers: Iterator[Any]) -> Any:
    """Return the value of a pattern and its numbers."""
    if isinstance(pattern, dict):
        if _NUMBER in pattern:
            return next(numbers)
        return {key: _filled(each, numbers) for key, each in pattern.items()}
    if isinstance(pattern, list):
        return [_filled(each, numbers) for each in pattern]
    return pattern


Column = list[Any] | Nested


class StoredRecord(Mapping[str, Any]):
    """A record as a row of columns; lists and objects are made when they are read."""

    __slots__ = ("_columns", "_row")

    def __init__(self, columns: Mapping[str, Column], row: int) -> None:
        self._columns, self._row = columns, row

    def __getitem__(self, key: str) -> Any:
        return self._columns[key][self._row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass(frozen=True)
class Compact:
    """The records of a run by column: one group of columns per set of keys.

    ``places[g][i]`` is the place of row i of group g among all records.
    """

    groups: list[dict[str, Column]]
    places: list[list[int]]

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]]) -> Compact:
        """Return records by column."""
        rows: dict[tuple[str, ...], list[int]] = {}
        for place, record in enumerate(records):
            rows.setdefault(tuple(record), []).append(place)
        groups = [
            {key: _column([records[place][key] for place in places]) for key in keys}
            for keys, places in rows.items()
        ]
        return cls(groups, list(rows.values()))

    @cached_property
    def records(self) -> list[Mapping[str, Any]]:
        """The records in their order."""
        made: list[Any] = [None] * sum(map(len, self.places))
        for columns, places in zip(self.groups, self.places, strict=True):
            for row, place in enumerate(places):
                made[place] = StoredRecord(columns, row)
        return made

    def column(self, key: str) -> list[Any]:
        """Return a value of every record, None where it has none."""
        found: list[Any] = [None] * sum(map(len, self.places))
        for columns, places in zip(self.groups, self.places, strict=True):
            if key in columns:
                for row, place in enumerate(places):
                    found[place] = columns[key][row]
        return found

    def coverage(self) -> list[Any]:
        """Return the coverage of the first view of every record, else that of the job."""
        found = self.column("coverage")
        for columns, places in zip(self.groups, self.places, strict=True):
            views = columns["views"]
            if isinstance(views, Nested):
                for row, place in enumerate(places):
                    value = views.coverage(row)
                    found[place] = found[place] if value is None else value
        return found

    def scores(self) -> pd.DataFrame:
        """Return the tidy table of all scores, one row per score."""
        parts: dict[str, list[np.ndarray]] = {name: [] for name in (*SCORE_COLUMNS, "place")}
        for columns, places in zip(self.groups, self.places, strict=True):
            for part in _scores_of_group(columns, np.array(places)):
                for name, values in part.items():
                    parts[name].append(values)
        if not parts["place"]:
            table = pd.DataFrame(columns=list(SCORE_COLUMNS))
        else:
            joined = {name: np.concatenate(values) for name, values in parts.items()}
            order = np.argsort(joined.pop("place"), kind="stable")
            table = pd.DataFrame({name: values[order] for name, values in joined.items()})
            whole = {name: np.int64 for name in ("repeat", "draw", "epoch")}
            table = table.astype(whole).infer_objects()
        return table.astype({"value": float, "severity": float})


def _column(values: list[Any]) -> Column:
    if any(isinstance(value, dict | list) for value in values):
        return Nested.of(values)
    return values


def _scores_of_group(
    columns: Mapping[str, Column], places: np.ndarray
) -> Iterator[dict[str, np.ndarray]]:
    """Yield columns of the table of scores, one part per pattern of views and history."""
    nested = [columns[name] for name in _SCORED]
    codes = np.array([column.codes for column in nested if isinstance(column, Nested)]).T
    if codes.shape != (len(places), len(_SCORED)):
        return
    kinds, which = np.unique(codes, axis=0, return_inverse=True)
    for kind, pair in enumerate(kinds):
        rows = np.flatnonzero(which.ravel() == kind)
        found = _table_of_pattern(nested, pair.tolist(), rows)
        if found is not None:
            jobs = {name: _taken(columns[name], rows) for name in SCORE_COLUMNS[:4]}
            each = len(found["value"]) // len(rows)
            jobs["place"] = places[rows]
            yield {name: np.repeat(values, each) for name, values in jobs.items()} | found


def _taken(column: Any, rows: np.ndarray) -> np.ndarray:
    taken = np.empty(len(rows), dtype=object)
    taken[:] = [column[row] for row in rows]
    return taken


def _table_of_pattern(
    nested: Sequence[Any], codes: list[int], rows: np.ndarray
) -> dict[str, np.ndarray] | None:
    """Return the columns of scores of all rows with the same patterns, row by row."""
    history, views = nested
    start = len(history.numbers[rows[0]])
    steps = _filled(history.patterns[codes[0]], map(_Place, range(start)))
    count = len(views.numbers[rows[0]])
    seen = _filled(views.patterns[codes[1]], map(_Place, range(start, start + count)))
    lines = list(score_rows(steps, seen))
    if not lines:
        return None
    numbers = np.array([history.numbers[row] + views.numbers[row] for row in rows], dtype=float)
    found = {}
    for name, cells in zip(SCORE_COLUMNS[4:], zip(*lines, strict=True), strict=True):
        floats = name in ("severity", "value")
        column = np.empty((len(rows), len(cells)), dtype=float if floats else object)
        for at, cell in enumerate(cells):
            column[:, at] = numbers[:, cell.index] if isinstance(cell, _Place) else cell
        found[name] = column.ravel()
    return found


# -- the file -----------------------------------------------------------------------------------


def stamp_records(folder: Path) -> list[int]:
    """Return the number, the newest time and the total size of the records of a run."""
    count = newest = size = 0
    with contextlib.suppress(OSError), os.scandir(folder / "jobs") as entries:
        for entry in entries:
            if entry.name.endswith(".json"):
                stat = entry.stat()
                count, size = count + 1, size + stat.st_size
                newest = max(newest, stat.st_mtime_ns)
    return [count, newest, size]


def write_compact(folder: Path, stamp: list[int], records: Sequence[Mapping[str, Any]]) -> None:
    """Write the file of a run; ``stamp`` is that of the records when they were read."""
    if len(records) < FEWEST_JOBS or stamp[0] != len(records):
        return
    made = Compact.of(records)
    groups = [
        {"places": places, "columns": {key: _stored(column) for key, column in columns.items()}}
        for columns, places in zip(made.groups, made.places, strict=True)
    ]
    content = {"version": VERSION, "stamp": stamp, "groups": groups}
    with contextlib.suppress(OSError):  # a folder that cannot be written to is read as it is
        write_atomic(folder / "scores" / FILE, json.dumps(content))


def read_compact(folder: Path) -> Compact | None:
    """Return the records of a run from its file; None if there is none, or a stale one."""
    path = folder / "scores" / FILE
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_bytes())
        if content["version"] != VERSION or content["stamp"] != stamp_records(folder):
            return None
        groups = [
            {key: _restored(column) for key, column in group["columns"].items()}
            for group in content["groups"]
        ]
        found = Compact(groups, [group["places"] for group in content["groups"]])
        whole = all(record is not None for record in found.records)
        return found if found.records and whole else None
    except (OSError, ValueError, TypeError, KeyError, IndexError, RecursionError):
        return None  # damaged


def _stored(column: Column) -> Any:
    """Return a column as JSON: its distinct values and the place of each, if these are few."""
    if isinstance(column, Nested):
        return {"patterns": column.patterns, "codes": column.codes, "numbers": column.numbers}
    kinds: dict[tuple[type, Any], int] = {}
    codes = [kinds.setdefault((type(value), value), len(kinds)) for value in column]
    if len(kinds) * 2 > len(column):
        return column
    return {"values": [value for _, value in kinds], "codes": codes}


def _restored(column: Any) -> Column:
    if isinstance(column, list):
        return column
    if "patterns" in column:
        return Nested(column["patterns"], column["codes"], column["numbers"])
    values = column["values"]
    return [values[code] for code in column["codes"]]
