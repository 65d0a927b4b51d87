"""The leaderboard on a terminal."""

from __future__ import annotations

import itertools
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table as Grid
from rich.text import Text

from karat.report.tables import Cell, Column, Table, make_table

#: maximum width of a task column
TASK_WIDTH = 16
#: minimum width of the model column
NAME_WIDTH = 8


def board_text(board: pd.DataFrame | Table, width: int) -> Group:
    """Return the leaderboard for this width; many tasks continue in further tables."""
    table = make_table(board)
    columns = [_narrow(column) for column in table.columns]
    fixed = [column for column in columns if column.part != "task"]
    room = width - sum(map(_width, fixed)) - 2
    longest = max(NAME_WIDTH, room if room >= NAME_WIDTH else width // 3)
    model = replace(table.model, cells=[Cell(_cut(c.text, longest)) for c in table.model.cells])
    parts: list[RenderableType] = []
    for group in _arranged(columns, width - _width(model)):
        parts += [*_grids(table, [model, *group]), Text()]
    below = [Text(line, style="dim") for note in table.notes for line in _wrapped(note, width)]
    return Group(*parts, *below)


def print_board(board: pd.DataFrame | Table, console: Console | None = None) -> None:
    """Print the leaderboard to standard output."""
    console = console or Console(highlight=False)
    console.print(board_text(board, console.width))


def plain_console() -> Console:
    """Return a console for lists; lines are not wrapped in a pipe, for grep."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 1000)


def _wrapped(note: str, width: int) -> list[str]:
    return textwrap.wrap(note, width, initial_indent=" ", subsequent_indent=" ")


def _arranged(columns: list[Column], width: int) -> list[list[Column]]:
    """Return the columns in groups that fit: all, or ranks and costs first, then tasks."""
    if sum(map(_width, columns)) <= width:
        return [columns]
    ranks, tasks, costs = ([c for c in columns if c.part == p] for p in ("rank", "task", "cost"))
    if sum(map(_width, (*ranks, *costs))) <= width:
        return [[*ranks, *costs], *_fitting(tasks, width)]
    return [*_fitting([*ranks, *costs], width), *_fitting(tasks, width)]


def _fitting(columns: Sequence[Column], width: int) -> list[list[Column]]:
    groups: list[list[Column]] = []
    left = 0
    for column in columns:
        if not groups or _width(column) > left:
            groups.append([])
            left = width
        groups[-1].append(column)
        left -= _width(column)
    return groups


def _width(column: Column) -> int:
    """Return the width of a column with its gap."""
    texts = [column.name, column.label, *(cell.text for cell in column.cells)]
    return max(map(cell_len, texts)) + 2


def _narrow(column: Column) -> Column:
    if column.part != "task":
        return column
    return replace(column, name=_cut(column.name), label=_cut(column.label))


def _cut(name: str, width: int = TASK_WIDTH) -> str:
    text = Text(name)
    text.truncate(width, overflow="ellipsis")
    return text.plain


def _grids(table: Table, columns: list[Column]) -> Iterator[RenderableType]:
    """Yield the rows below their heading, each group below a line with its name."""
    rows = [[_text(column.cells[row]) for column in columns] for row in range(len(table))]
    if not table.groups:
        yield _grid(columns, rows)
        return
    widths = [_width(column) - 2 for column in columns]
    yield _grid(columns, [], widths)
    for start, end in itertools.pairwise([*table.starts, len(table)]):
        title = "   ".join(column.cells[start].text for column in table.groups)
        yield Text(f"\n {title}", style="bold", overflow="ellipsis", no_wrap=True)
        yield _grid(columns, rows[start:end], widths, heading=False)


def _grid(
    columns: Sequence[Column],
    rows: list[list[Text]],
    widths: Sequence[int | None] = (),
    heading: bool = True,
) -> Grid:
    grid = Grid(box=None, header_style="bold", padding=(0, 1), show_header=heading)
    for column, width in itertools.zip_longest(columns, widths):
        side: Any = "right" if column.right else "left"
        title = f"{column.name}\n{column.label}" if column.label else column.name
        grid.add_column(Text(title, style="bold"), justify=side, no_wrap=True, min_width=width)
    for row in rows:
        grid.add_row(*row)
    return grid


def _text(cell: Cell) -> Text:
    return Text(cell.text, style="dim" if cell.faint else "bold" if cell.best else "")
