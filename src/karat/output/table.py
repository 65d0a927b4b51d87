"""Tables of texts, from which every form of output is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from karat.core.formatting import count, plain

#: the column of letters
TIE = "tie"
#: with fewer letters of ties than this, each letter has its own column
MAX_LETTERS = 8


@dataclass(frozen=True)
class Cell:
    """A text; ``best`` marks the best of its column, ``faint`` a missing value.

    ``link`` is the address of a page about it, in HTML.
    """

    text: str
    best: bool = False
    faint: bool = False
    link: str = ""


@dataclass(frozen=True)
class Column:
    """A heading with a second line, one cell per row, and the alignment.

    ``part`` is "rank", "task" or "cost": columns of one part stay together on a narrow screen.
    ``flexible`` texts are cut to the width that the other columns leave.
    """

    name: str
    cells: Sequence[Cell]
    label: str = ""
    right: bool = True
    part: str = "rank"
    flexible: bool = False


@dataclass(frozen=True)
class Table:
    """The group, model and other columns; ``starts`` are the first rows of the groups.

    ``title`` is the name of the models and tasks if there are several leaderboards.
    """

    groups: list[Column]
    model: Column
    columns: list[Column]
    starts: list[int]
    caption: str
    notes: list[str]
    title: str = ""

    def __len__(self) -> int:
        return len(self.model.cells)

    @property
    def all_columns(self) -> list[Column]:
        """The columns from left to right."""
        return [*self.groups, self.model, *self.columns]


def text_column(
    name: str,
    values: Iterable[object],
    right: bool = True,
    part: str = "rank",
    flexible: bool = False,
) -> Column:
    """Return a column of texts."""
    # spaces align the letters of ties
    cells = [Cell(str(v) if name.startswith(TIE) else plain(v)) for v in values]
    return Column(name, cells, right=right, part=part, flexible=flexible)


def best_of(values: pd.Series, starts: Sequence[int]) -> np.ndarray:
    """Return which values are the highest of their group; groups begin at these rows."""
    numbers = values.to_numpy(dtype=float)
    if not len(numbers):
        return np.zeros(0, dtype=bool)
    sizes = np.diff([*starts, len(numbers)])
    return numbers == np.repeat(np.fmax.reduceat(numbers, starts), sizes)


def first_rows(table: Table, most: int) -> Table:
    """Return a table with its first rows, and a note on how many are left out."""
    hidden = len(table) - most
    if hidden <= 0:
        return table

    def cut(column: Column) -> Column:
        return replace(column, cells=column.cells[:most])

    return replace(
        table,
        groups=list(map(cut, table.groups)),
        model=cut(table.model),
        columns=list(map(cut, table.columns)),
        starts=[start for start in table.starts if start < most],
        notes=[f"Not shown: {count(hidden, 'more row')}.", *table.notes],
    )


def shown_cells(table: Table) -> list[Sequence[Cell]]:
    """Return the cells of every column; only the first row of a group has its name."""
    first = set(table.starts)
    groups = [
        [cell if row in first else Cell("") for row, cell in enumerate(column.cells)]
        for column in table.groups
    ]
    return [*groups, *(column.cells for column in (table.model, *table.columns))]


def marked(cell: Cell, escape: Callable[[str], str], best: str) -> str:
    """Return the text of a cell, escaped; ``best`` is the form of the best of a column."""
    text = escape(cell.text.strip())
    return best.format(text) if cell.best else text
