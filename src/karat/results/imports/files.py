"""CSV, JSON and Parquet files of other systems; errors name the line."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from karat.errors import DataError, MissingExtra
from karat.results.imports.found import number

SUFFIXES = (".csv", ".json", ".parquet")


@dataclass(frozen=True)
class Sample:
    """A file and its columns, or the keys of its JSON object."""

    path: Path
    shape: str
    names: tuple[str, ...]
    content: Any = None

    def has(self, *names: str) -> bool:
        """Return whether the file has all these columns or keys."""
        return set(names) <= set(self.names)

    @property
    def shown(self) -> str:
        """The columns or keys, for messages."""
        what = "keys" if self.shape == "json" else "columns"
        listed = ", ".join(name[:30] for name in self.names[:10]) or "none"
        return f"{what} {listed}" + (" ..." if len(self.names) > 10 else "")


def sample_file(path: Path) -> Sample:
    """Return the columns or keys of a file."""
    if not path.is_file():
        raise DataError(f"file not found: {path}.")
    suffix = path.suffix.lower()
    if suffix == ".json":
        content = read_json(path)
        names = tuple(map(str, content)) if isinstance(content, dict) else ()
        return Sample(path, "json", names, content)
    if suffix == ".parquet":
        return Sample(path, "parquet", tuple(map(str, read_parquet(path).columns)))
    if suffix != ".csv":
        raise DataError(f"{path}: unsupported suffix; expected one of {', '.join(SUFFIXES)}.")
    _, header = next(_lines(path, ","), (1, []))
    if len(header) == 1 and " " in header[0]:
        return Sample(path, "blanks", tuple(header[0].split(" ")))
    return Sample(path, "csv", tuple(header))


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from error


def read_parquet(path: Path) -> Any:
    """Return the table of a Parquet file."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("pyarrow", "tables") from None
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {str(error).splitlines()[0]}") from error


@dataclass(frozen=True)
class Row:
    """A row of a CSV file with its line number."""

    path: Path
    line: int
    cells: dict[str, str]

    def text(self, name: str) -> str:
        """Return a cell, or an empty string if the column is missing."""
        return self.cells.get(name, "").strip()

    def number(self, name: str) -> float | None:
        """Return a number, or None if the cell is empty."""
        try:
            return number(self.cells.get(name))
        except ValueError:
            raise self.wrong(name, "a number") from None

    def whole(self, name: str, lowest: int = 0) -> int:
        """Return a required integer."""
        value = self.number(name)
        if value is None or value != int(value) or value < lowest:
            raise self.wrong(name, f"an integer >= {lowest}")
        return int(value)

    def wrong(self, name: str, expected: str) -> DataError:
        """Return the error about a cell."""
        cell = self.cells.get(name, "")[:40]
        return DataError(f'{self.path}, line {self.line}: {name} must be {expected}, got "{cell}".')


def rows(sample: Sample) -> Iterator[Row]:
    """Yield the rows of a CSV file."""
    lines = _lines(sample.path, " " if sample.shape == "blanks" else ",")
    _, header = next(lines)
    for line, cells in lines:
        if not cells:
            continue
        if len(cells) != len(header):
            raise DataError(
                f"{sample.path}, line {line}: expected {len(header)} cells as in the header, got "
                f"{len(cells)}."
            )
        yield Row(sample.path, line, dict(zip(header, cells, strict=True)))


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            for cells in reader:
                yield line, cells
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, near line {line}: not UTF-8 ({error.reason}).") from error
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: {error}.") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def folder_name(paths: Sequence[Path]) -> str:
    """Return the name of the folder of the first file."""
    return paths[0].resolve().parent.name or "imported"
