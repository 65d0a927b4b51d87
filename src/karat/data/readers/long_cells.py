"""Cells that are too long to be one, as those of a quotation mark that is closed far away."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd

from karat.errors import DataError

#: bytes or characters from which a cell is refused
LONGEST_CELL = 2**26
_QUOTED = re.compile(rb'"[^"]*"')


def refuse_long_cells(content: bytes, separator: bytes, path: Path) -> None:
    """Raise a DataError if a line of a file has a cell that is too long, before it is parsed."""
    begin = 0
    while len(content) - begin >= LONGEST_CELL:
        end = content.rfind(b"\n", begin, begin + LONGEST_CELL)
        if end < 0:  # a long line, perhaps of many cells
            end = content.find(b"\n", begin)
            end = len(content) if end < 0 else end
            if _has_long_cell(content, separator, (begin, end)):
                line = content.count(b"\n", 0, begin) + 1
                raise _too_long(f"{path}, line {line}", "a cell")
        begin = end + 1


def _has_long_cell(content: bytes, separator: bytes, line: tuple[int, int]) -> bool:
    """Return whether a line has a cell that is too long, quoted or not."""
    last = quoted = 0
    for match in _QUOTED.finditer(content, *line):
        if match.start() != last:  # otherwise a quotation mark in the cell, written twice
            quoted = match.start()
        last = match.end()
        if last - quoted >= LONGEST_CELL:
            return True
    begin, end = line
    while end - begin >= LONGEST_CELL:
        last = content.rfind(separator, begin, begin + LONGEST_CELL)
        if last < 0:
            return True
        begin = last + len(separator)
    return False


def refuse_long_texts(frame: pd.DataFrame, path: Path) -> None:
    """Raise a DataError if a cell of a table is too long."""
    for name in frame.select_dtypes(exclude=["number", "datetime", "bool"]).columns:
        for row, cell in enumerate(frame[name].tolist(), start=1):
            if isinstance(cell, str) and len(cell) >= LONGEST_CELL:
                raise _too_long(f"{path}, row {row}", f'the cell of "{name}"')


def _too_long(where: str, cell: str) -> DataError:
    return DataError(
        f"{where}: {cell} has more than {LONGEST_CELL // 2**20} MB; close the quotation mark "
        f"that may begin it, or shorten its text."
    )
