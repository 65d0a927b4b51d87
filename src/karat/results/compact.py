"""All records of a run in one file, which is read instead of a file per job.

``scores/jobs.columns`` holds the records by column. Each column has the distinct patterns of its
values, in which fractional numbers are left out, the pattern of each record, and the numbers. The
file is a line of JSON with the patterns, followed by the arrays, little-endian; nothing in it is
executed. It is used if the number, times and total size of their files are those that it was made
from, and if its checksum is right; otherwise it is made again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.files import read_regular
from karat.core.writing import write_atomic
from karat.errors import KaratError
from karat.results.stored_facts import check_record
from karat.results.tables import SCORE_COLUMNS, score_rows

FILE = "jobs.columns"
#: the records of an imported run, in its folder ``jobs``, one per line
IMPORTED = "imported.jsonl"
VERSION = 2
#: runs of fewer jobs are read from their records
FEWEST_JOBS = 100
#: values are arranged by form if each form has this many of them on average
FEWEST_ROWS = 16
#: the key of an object that holds the place of a number in a pattern
_NUMBER = "\x00"
#: arrays start at a multiple of this number of bytes
_ALIGNED = 8


class CompactColumn:
    """The values of a key: distinct patterns, the pattern of each row, and the numbers in order."""

    def __init__(self, patterns: list[Any], codes: np.ndarray, numbers: np.ndarray) -> None:
        self.patterns, self.codes, self.numbers = patterns, codes, numbers

    @classmethod
    def of(cls, values: Sequence[Any]) -> CompactColumn:
        """Return the values as a column."""
        kinds = set(map(type, values))
        if kinds == {float}:
            return cls([{_NUMBER: 0}], np.zeros(len(values), np.uint32), np.array(values))
        if len(kinds) == 1 and kinds <= {str, int, bool, type(None)}:
            code_of = {value: code for code, value in enumerate(dict.fromkeys(values))}
            codes = np.array([code_of[value] for value in values], dtype=np.uint32)
            return cls(list(code_of), codes, np.zeros(0))
        forms: dict[Any, list[int]] = {}
        for row, value in enumerate(values):
            forms.setdefault(_form(value), []).append(row)
        if len(forms) * FEWEST_ROWS > len(values):
            return cls._of_mixed(values)
        if len(forms) == 1:
            return cls._of_one_form(values)
        parts = [cls.of([values[row] for row in rows]) for rows in forms.values()]
        return cls._stacked(parts, [np.array(rows) for rows in forms.values()], len(values))

    @classmethod
    def _of_one_form(cls, values: Sequence[Any]) -> CompactColumn:
        """Return the column of lists of one length, or of objects with the same keys."""
        first = values[0]
        if not first:
            return cls([first], np.zeros(len(values), np.uint32), np.zeros(0))
        keys: Sequence[Any] = list(first) if isinstance(first, dict) else range(len(first))
        inside = [cls.of([value[key] for value in values]) for key in keys]
        codes = np.zeros(len(values), dtype=np.int64)
        for column in inside:
            if len(column.patterns) > 1:
                codes = codes * len(column.patterns) + column.codes
                codes = np.unique(codes, return_inverse=True)[1]
        _, rows = np.unique(codes, return_index=True)
        patterns: list[Any] = [
            [column.patterns[column.codes[row]] for column in inside] for row in rows
        ]
        if isinstance(first, dict):
            names = [_marked(key) for key in keys]
            patterns = [dict(zip(names, cells, strict=True)) for cells in patterns]
        return cls(patterns, codes.astype(np.uint32), _interleaved(inside, len(values)))

    @classmethod
    def _stacked(
        cls, parts: list[CompactColumn], places: list[np.ndarray], count: int
    ) -> CompactColumn:
        """Return one column of several, each with the places of its rows."""
        patterns: list[Any] = []
        codes = np.empty(count, dtype=np.uint32)
        for part, rows in zip(parts, places, strict=True):
            codes[rows] = part.codes + len(patterns)
            patterns += part.patterns
        return cls(patterns, codes, _interleaved(parts, count, places))

    @classmethod
    def _of_mixed(cls, values: Sequence[Any]) -> CompactColumn:
        key: Any
        places: dict[Any, int] = {}
        patterns: list[Any] = []
        codes: list[int] = []
        numbers: list[float] = []
        for value in values:
            if isinstance(value, dict | list) and not value:
                pattern, key = value, str(value)
            elif isinstance(value, dict | list | float):
                pattern = _pattern(value, numbers)
                key = json.dumps(pattern)
            else:
                pattern, key = value, (type(value), value)
            code = places.setdefault(key, len(places))
            if code == len(patterns):
                patterns.append(pattern)
            codes.append(code)
        return cls(patterns, np.array(codes, dtype=np.uint32), np.array(numbers, dtype=float))

    @classmethod
    def joined(cls, columns: Sequence[CompactColumn]) -> CompactColumn:
        """Return columns as one, the rows of the first one first."""
        places: dict[Any, int] = {}
        patterns: list[Any] = []
        codes: list[np.ndarray] = []
        for column in columns:
            new_codes = np.empty(len(column.patterns), dtype=np.uint32)
            for code, pattern in enumerate(column.patterns):
                nested = isinstance(pattern, dict | list)
                key = json.dumps(pattern) if nested else (type(pattern), pattern)
                new_codes[code] = places.setdefault(key, len(places))
                if len(places) > len(patterns):
                    patterns.append(pattern)
            codes.append(new_codes[column.codes])
        numbers = np.concatenate([column.numbers for column in columns])
        return cls(patterns, np.concatenate(codes), numbers)

    @cached_property
    def _starts(self) -> np.ndarray:
        """The place of the first number of each row, and the number of all."""
        if not {dict, list} & set(map(type, self.patterns)):
            return np.zeros(len(self.codes) + 1, dtype=np.int64)
        nested = {
            code: pattern
            for code, pattern in enumerate(self.patterns)
            if isinstance(pattern, dict | list)
        }
        widths = np.zeros(len(self.patterns), dtype=np.int64)
        widths[list(nested)] = [_count_numbers(pattern) for pattern in nested.values()]
        return np.concatenate([[0], np.cumsum(widths[self.codes])])

    @cached_property
    def scalars(self) -> list[Any] | None:
        """The value of each row; None if some are lists or objects, which are made when read."""
        nested = [
            isinstance(pattern, dict | list) and not _is_number(pattern)
            for pattern in self.patterns
        ]
        if any(nested):
            return None
        values = np.empty(len(self.patterns), dtype=object)
        values[:] = self.patterns
        row_values = values[self.codes]
        if len(self.numbers):
            row_values[np.diff(self._starts) == 1] = self.numbers.tolist()
        return row_values.tolist()

    def __getitem__(self, row: int) -> Any:
        if self.scalars is not None:
            return self.scalars[row]
        return _filled(self.patterns[self.codes[row]], iter(self.numbers_of(row)))

    @property
    def values(self) -> list[Any]:
        """The values of all rows."""
        return self.scalars or [self[row] for row in range(len(self.codes))]

    def numbers_of(self, row: int) -> list[float]:
        """Return the numbers of a row."""
        return self.numbers[self._starts[row] : self._starts[row + 1]].tolist()

    def numbers_by_row(self, rows: np.ndarray) -> np.ndarray:
        """Return the numbers of rows of one pattern, rows × numbers."""
        first = self._starts[rows]
        width = int(self._starts[rows[0] + 1] - first[0])
        return self.numbers[first[:, None] + np.arange(width)]

    def count_numbers(self) -> int:
        """Return how many numbers the patterns of all rows have."""
        return int(self._starts[-1])

    def are_true(self) -> np.ndarray:
        """Return which values are true: neither None, 0, nor empty."""
        true = np.array([bool(pattern) for pattern in self.patterns], dtype=bool)[self.codes]
        number = np.array([_is_number(pattern) for pattern in self.patterns], dtype=bool)[
            self.codes
        ]
        true[number] = self.numbers[self._starts[:-1][number]] != 0
        return true

    def coverages(self) -> list[Any]:
        """Return the coverage of the first view of each row, None without views."""
        view_patterns = (
            _filled(pattern, map(_Place, itertools.count())) for pattern in self.patterns
        )
        first = [views[0].get("coverage") if views else None for views in view_patterns]
        coverages = np.empty(len(first), dtype=object)
        coverages[:] = first
        values = coverages[self.codes]
        for code, coverage in enumerate(first):
            if isinstance(coverage, _Place):
                rows = np.flatnonzero(self.codes == code)
                values[rows] = self.numbers[self._starts[rows] + coverage.index].tolist()
        return values.tolist()


def _pattern(value: object, numbers: list[float]) -> Any:
    """Return a value with its fractional numbers replaced, which are added to ``numbers``."""
    if isinstance(value, float):
        numbers.append(value)
        return {_NUMBER: 0}
    if isinstance(value, dict):
        return {_marked(key): _pattern(inner, numbers) for key, inner in value.items()}
    if isinstance(value, list):
        return [_pattern(inner, numbers) for inner in value]
    return value


def _marked(key: str) -> str:
    """Return a key of an object; one that starts like that of a number gets a mark."""
    return f"{_NUMBER}{key}" if key[:1] == _NUMBER else key


def _form(value: Any) -> Any:
    """Return the keys of an object, the length of a list, or the type of another value."""
    kind = type(value)
    return tuple(value) if kind is dict else len(value) if kind is list else kind


def _interleaved(
    columns: list[CompactColumn], count: int, places: list[np.ndarray] | None = None
) -> np.ndarray:
    """Return the numbers of columns by row; ``places`` are those of their rows, if not all."""
    widths = [np.diff(column._starts) for column in columns]
    rows = [np.arange(count)] * len(columns) if places is None else places
    starts = np.zeros(count + 1, dtype=np.int64)
    for width, column_rows in zip(widths, rows, strict=True):
        starts[1:][column_rows] += width
    starts = np.cumsum(starts)
    numbers = np.empty(starts[-1])
    for column, width, column_rows in zip(columns, widths, rows, strict=True):
        if len(column.numbers):
            shift = np.repeat(starts[:-1][column_rows] - column._starts[:-1], width)
            numbers[shift + np.arange(len(column.numbers))] = column.numbers
            starts[:-1][column_rows] += width
    return numbers


def _is_number(pattern: object) -> bool:
    return isinstance(pattern, dict) and _NUMBER in pattern


def _count_numbers(pattern: object) -> int:
    if _is_number(pattern):
        return 1
    if isinstance(pattern, dict | list):
        inside = pattern.values() if isinstance(pattern, dict) else pattern
        return sum(map(_count_numbers, inside))
    return 0


@dataclass(frozen=True)
class _Place:
    """The place of a number in the numbers of a record."""

    index: int


def _filled(pattern: object, numbers: Iterator[Any]) -> Any:
    """Return the value of a pattern and its numbers."""
    if isinstance(pattern, dict):
        if _NUMBER in pattern:
            return next(numbers)
        return {key.removeprefix(_NUMBER): _filled(v, numbers) for key, v in pattern.items()}
    if isinstance(pattern, list):
        return [_filled(inner, numbers) for inner in pattern]
    return pattern


class _Rows(dict[str, Any]):
    """The columns that were read, as lists where the values are no lists or objects."""

    def __init__(self, columns: Mapping[str, CompactColumn]) -> None:
        super().__init__()
        self.columns = columns

    def __missing__(self, key: str) -> Any:
        column = self.columns[key]
        self[key] = column if column.scalars is None else column.scalars
        return self[key]


class StoredRecord(Mapping[str, Any]):
    """A record as a row of columns; lists and objects are made when they are read."""

    __slots__ = ("_row", "_rows")

    def __init__(self, rows: _Rows, row: int) -> None:
        self._rows, self._row = rows, row

    def __getitem__(self, key: str) -> Any:
        return self._rows[key][self._row]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows.columns)

    def __len__(self) -> int:
        return len(self._rows.columns)

    def __repr__(self) -> str:
        return repr(dict(self))


@dataclass(frozen=True)
class Listed:
    """The records of a run as they were read, with values by key."""

    records: Sequence[Mapping[str, Any]]

    def column(self, key: str) -> list[Any]:
        """Return a value of every record, None where it has none."""
        return [record.get(key) for record in self.records]

    def rows_with(self, key: str) -> list[int]:
        """Return the records in which a key has a value that is neither None, 0, nor empty."""
        return [row for row, value in enumerate(self.column(key)) if value]

    def coverage(self) -> list[Any]:
        """Return the coverage of the first view of every record, else that of the job."""
        of_views = (r["views"][0].get("coverage") if r["views"] else None for r in self.records)
        jobs = self.column("coverage")
        return [
            job if coverage is None else coverage
            for coverage, job in zip(of_views, jobs, strict=True)
        ]


@dataclass(frozen=True)
class Compact:
    """The records of a run by column: one group of columns per set of keys.

    ``places[g][i]`` is the place of row i of group g among all records.
    """

    groups: list[dict[str, CompactColumn]]
    places: list[np.ndarray]

    @classmethod
    def of(cls, records: Sequence[Mapping[str, Any]]) -> Compact:
        """Return records by column."""
        rows: dict[tuple[str, ...], list[int]] = {}
        for position, record in enumerate(records):
            rows.setdefault(tuple(record), []).append(position)
        groups = [
            {key: CompactColumn.of([records[position][key] for position in places]) for key in keys}
            for keys, places in rows.items()
        ]
        return cls(groups, [np.array(places, dtype=np.uint32) for places in rows.values()])

    @classmethod
    def joined(cls, parts: Sequence[Compact], keys: Sequence[str]) -> Compact:
        """Return these keys of several runs as one, the records of the first one first."""
        starts = np.cumsum([0, *map(len, parts)])
        alike: dict[tuple[str, ...], list[tuple[dict[str, CompactColumn], np.ndarray]]] = {}
        for start, part in zip(starts.tolist(), parts, strict=False):
            for columns, places in zip(part.groups, part.places, strict=True):
                there = tuple(key for key in keys if key in columns)
                alike.setdefault(there, []).append((columns, places.astype(np.int64) + start))
        return cls(
            [
                {key: CompactColumn.joined([columns[key] for columns, _ in same]) for key in there}
                for there, same in alike.items()
            ],
            [np.concatenate([places for _, places in same]) for same in alike.values()],
        )

    def renamed(self, key: str, rename: Callable[[Any], Any]) -> Compact:
        """Return the records with other values of a key, which are no fractional numbers."""
        groups = []
        for columns in self.groups:
            column = columns[key]
            renamed = CompactColumn(
                list(map(rename, column.patterns)), column.codes, column.numbers
            )
            groups.append({**columns, key: renamed})
        return Compact(groups, self.places)

    def count_numbers(self, *keys: str) -> int:
        """Return how many fractional numbers the values of some keys have."""
        return sum(len(columns[key].numbers) for columns in self.groups for key in keys)

    def __len__(self) -> int:
        return sum(map(len, self.places))

    @cached_property
    def records(self) -> list[Mapping[str, Any]]:
        """The records in their order."""
        records: list[Any] = [None] * len(self)
        for columns, places in zip(self.groups, self.places, strict=True):
            rows = _Rows(columns)
            for row, position in enumerate(places.tolist()):
                records[position] = StoredRecord(rows, row)
        return records

    def column(self, key: str) -> list[Any]:
        """Return a value of every record, None where it has none."""
        if not any(key in columns for columns in self.groups):
            return [None] * len(self)
        values = np.full(len(self), None, dtype=object)
        for columns, places in zip(self.groups, self.places, strict=True):
            if key in columns:
                _fill(values, places, columns[key].values)
        return values.tolist()

    def rows_with(self, key: str) -> list[int]:
        """Return the records in which a key has a value that is neither None, 0, nor empty."""
        is_true = np.zeros(len(self), dtype=bool)
        for columns, places in zip(self.groups, self.places, strict=True):
            if key in columns:
                is_true[places] = columns[key].are_true()
        return np.flatnonzero(is_true).tolist()

    def coverage(self) -> list[Any]:
        """Return the coverage of the first view of every record, else that of the job."""
        coverages = np.full(len(self), None, dtype=object)
        for columns, places in zip(self.groups, self.places, strict=True):
            _fill(coverages, places, columns["views"].coverages())
        if not any("coverage" in columns for columns in self.groups):
            return coverages.tolist()
        jobs = self.column("coverage")
        return [
            job if coverage is None else coverage
            for coverage, job in zip(coverages.tolist(), jobs, strict=True)
        ]

    def scores(self) -> pd.DataFrame:
        """Return the tidy table of all scores, one row per score."""
        return self.placed_scores()[0]

    def placed_scores(self) -> tuple[pd.DataFrame, np.ndarray]:
        """Return the table of all scores, and the place of each row's record."""
        parts = [
            part
            for columns, places in zip(self.groups, self.places, strict=True)
            for part in _scores_of_group(columns, places)
        ]
        if not parts:
            table = pd.DataFrame(columns=list(SCORE_COLUMNS))
            return table.astype({"value": float, "severity": float}), np.zeros(0, np.int64)
        positions = np.concatenate([part.pop("place") for part in parts])
        table = pd.DataFrame({name: _joined([p[name] for p in parts]) for name in SCORE_COLUMNS})
        if (np.diff(positions) < 0).any():
            order = np.argsort(positions, kind="stable")
            table, positions = table.iloc[order].reset_index(drop=True), positions[order]
        return table, positions

    def is_valid(self) -> bool:
        """Return whether ``check_record`` finds nothing; each distinct value is checked once.

        False too if records have several views, whose severities must differ.
        """
        for columns in self.groups:
            base = {key: column[0] for key, column in columns.items()}
            for key, column in columns.items():
                values = [_filled(pattern, itertools.repeat(0.5)) for pattern in column.patterns]
                if key == "views" and any(len(value) > 1 for value in values):
                    return False
                if any(check_record({**base, key: value}) for value in values):
                    return False
                if not np.isfinite(column.numbers).all():
                    return False
        return True

    def to_bytes(self, stamp: list[int]) -> bytes:
        """Return the content of the file; ``stamp`` is that of the records."""
        body = _Body()
        groups = [
            {
                "places": body.add(places),
                "columns": {
                    key: [column.patterns, body.add(column.codes), body.add(column.numbers)]
                    for key, column in columns.items()
                },
            }
            for columns, places in zip(self.groups, self.places, strict=True)
        ]
        facts = {
            "version": VERSION,
            "stamp": stamp,
            "count": len(self),
            "sum": zlib.crc32(body.content),
        }
        head = json.dumps({**facts, "groups": groups}, separators=(",", ":")).encode()
        head += b" " * (-(len(head) + 1) % _ALIGNED) + b"\n"
        return head + bytes(body.content)


def _fill(target: np.ndarray, places: np.ndarray, values: list[Any]) -> None:
    """Put values into an array of objects; lists are single values."""
    held = np.empty(len(values), dtype=object)
    held[:] = values
    target[places] = held


def _joined(parts: list[pd.Series]) -> pd.Series:
    return parts[0] if len(parts) == 1 else pd.concat(parts, ignore_index=True)


def _scores_of_group(
    columns: Mapping[str, CompactColumn], places: np.ndarray
) -> Iterator[dict[str, Any]]:
    """Yield columns of the table of scores, one part per pattern of views and history."""
    history, views = nested = columns["history"], columns["views"]
    pairs = history.codes.astype(np.int64) * len(views.patterns) + views.codes
    order = np.argsort(pairs, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(pairs[order])) + 1):
        codes = (int(history.codes[rows[0]]), int(views.codes[rows[0]]))
        lines, numbers = _lines_of_pattern(nested, codes, rows)
        if lines:
            repeated_rows = np.repeat(rows, len(lines))
            jobs = {name: _taken(columns[name], repeated_rows) for name in SCORE_COLUMNS[:4]}
            values = {
                name: _repeated(list(cells), numbers, floats=name in ("severity", "value"))
                for name, cells in zip(SCORE_COLUMNS[4:], zip(*lines, strict=True), strict=True)
            }
            yield {**jobs, **values, "place": places[repeated_rows].astype(np.int64)}


def _lines_of_pattern(
    nested: tuple[CompactColumn, CompactColumn], codes: tuple[int, int], rows: np.ndarray
) -> tuple[list[tuple[Any, ...]], np.ndarray]:
    """Return the scores of one job, with places for numbers, and the numbers of each row."""
    history, views = nested
    count = itertools.count()
    steps = _filled(history.patterns[codes[0]], map(_Place, count))
    start = _count_numbers(history.patterns[codes[0]])
    seen = _filled(views.patterns[codes[1]], map(_Place, itertools.count(start)))
    numbers = [column.numbers_by_row(rows) for column in nested]
    return list(score_rows(steps, seen)), np.concatenate(numbers, axis=1)


def _taken(column: CompactColumn, rows: np.ndarray) -> pd.Series:
    """Return the values of rows, of which few are distinct."""
    codes = column.codes[rows]
    used = np.bincount(codes, minlength=len(column.patterns)) > 0
    values = [column.patterns[code] for code in np.flatnonzero(used)]
    return _take(values, (np.cumsum(used) - 1)[codes])


def _take(values: list[Any], codes: np.ndarray) -> pd.Series:
    return pd.Series(pd.Series(values).array.take(codes))


def _repeated(cells: list[Any], numbers: np.ndarray, *, floats: bool) -> pd.Series:
    """Return the cells of one job, repeated for each row of numbers, with these in their places."""
    if not floats:
        return _take(cells, np.tile(np.arange(len(cells)), len(numbers)))
    matrix = np.empty((len(numbers), len(cells)))
    for at, cell in enumerate(cells):
        if isinstance(cell, _Place):
            matrix[:, at] = numbers[:, cell.index]
        else:
            matrix[:, at] = np.nan if cell is None else cell
    return pd.Series(matrix.ravel())


# -- the file -----------------------------------------------------------------------------------


def stamp_records(folder: Path) -> list[int]:
    """Return the number, the sum of the times and the total size of the files of records."""
    count = times = size = 0
    with contextlib.suppress(OSError), os.scandir(folder / "jobs") as entries:
        for entry in entries:
            if entry.name == IMPORTED or entry.name.endswith(".json"):
                stat = entry.stat()
                count += 1
                times += stat.st_mtime_ns
                size += stat.st_size
    return [count, times, size]


def _count_records(folder: Path, files: int) -> int:
    """Return the number of records in this number of files; imported ones are lines of a file."""
    try:
        with open(folder / "jobs" / IMPORTED, "rb", buffering=0) as file:
            blocks = iter(lambda: file.read(2**16), b"")
            return files - 1 + sum(block.count(b"\n") for block in blocks)
    except OSError:
        return files


class _Body:
    """The arrays of a file, one after the other."""

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)

    def add(self, array: np.ndarray) -> list[Any]:
        """Append an array; return its place, type and length."""
        if array.dtype.kind == "u":
            most = int(array.max(initial=0))
            array = array.astype(np.min_scalar_type(most).newbyteorder("<"))
        else:
            array = array.astype("<f8")
        start = len(self.content)
        self.content += array.tobytes()
        self.content += bytes(-len(self.content) % _ALIGNED)
        return [start, array.dtype.str, len(array)]

    def read(self, where: list[Any]) -> np.ndarray:
        """Return an array; it must be one of numbers."""
        start, kind, length = where
        if kind not in ("|u1", "<u2", "<u4", "<f8"):
            raise ValueError("wrong type")
        array = np.frombuffer(self.content, dtype=kind, count=length, offset=start)
        return array if kind == "<f8" else array.astype(np.uint32, copy=False)


def make_compact(records: Sequence[Mapping[str, Any]]) -> Compact | None:
    """Return records by column; None if there are few, or deeply nested ones."""
    if len(records) >= FEWEST_JOBS:
        with contextlib.suppress(KaratError, RecursionError):
            return Compact.of(records)
    return None


def write_compact(folder: Path, stamp: list[int], compact: Compact | None) -> None:
    """Write the file of a run; ``stamp`` is that of the records when they were read."""
    if compact is not None and _count_records(folder, stamp[0]) == len(compact):
        # with a read-only folder or a full disk, the records are read again
        with contextlib.suppress(OSError, RecursionError):
            write_atomic(folder / "scores" / FILE, compact.to_bytes(stamp))


def read_compact(folder: Path, stamp: list[int] | None = None) -> Compact | None:
    """Return the records of a run from its file; None if there is none, or a stale one.

    ``stamp`` is that of the records, if known.
    """
    try:
        head, _, rest = read_regular(folder / "scores" / FILE).partition(b"\n")
        content, now = json.loads(head), stamp or stamp_records(folder)
        if content["version"] != VERSION or content["stamp"] != now:
            return None
        if content["sum"] != zlib.crc32(rest):
            return None
        body = _Body(rest)
        groups = [_read_group(group["columns"], body) for group in content["groups"]]
        compact = Compact(groups, [body.read(group["places"]) for group in content["groups"]])
        return compact if _is_whole(compact, content.get("count", now[0])) else None
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError):
        return None  # damaged


def _read_group(columns: Mapping[str, Any], body: _Body) -> dict[str, CompactColumn]:
    return {
        key: CompactColumn(list(patterns), body.read(codes), body.read(numbers))
        for key, (patterns, codes, numbers) in columns.items()
    }


def _is_whole(compact: Compact, count: int) -> bool:
    """Return whether every record has a row, and every row its patterns and numbers."""
    places = np.concatenate(compact.places)
    fits = all(
        len(column.codes) == len(rows)
        and int(column.codes.max(initial=0)) < len(column.patterns)
        and column.count_numbers() == len(column.numbers)
        for columns, rows in zip(compact.groups, compact.places, strict=True)
        for column in columns.values()
    )
    return fits and np.array_equal(np.sort(places), np.arange(count))
