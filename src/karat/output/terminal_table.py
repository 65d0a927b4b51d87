"""A table as text on a terminal."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Table as RichTable
from rich.text import Text

from karat.output.table import Cell, Column, Table

#: maximum width of a task column
TASK_WIDTH = 16
#: minimum width of the model column
NAME_WIDTH = 8
#: minimum width of a text that is cut to the screen
FEWEST_LETTERS = 20
#: styles of cells
BOLD, DIM = Style(bold=True), Style(dim=True)


def table_parts(table: Table, width: int) -> list[RenderableType]:
    """Return a table for this width; many tasks continue in further tables."""
    columns = [
        replace(column, name=shorten_cells(column.name), label=shorten_cells(column.label))
        if column.part == "task"
        else column
        for column in table.columns
    ]
    columns = _fit(table.model, columns, width)
    fixed = [column for column in columns if column.part != "task"]
    room = width - sum(map(_width, fixed)) - 2
    longest = max(NAME_WIDTH, room if room >= NAME_WIDTH else width // 3)
    names = [Cell(shorten_cells(cell.text, longest)) for cell in table.model.cells]
    model = replace(table.model, cells=names)
    parts: list[RenderableType] = []
    for group in _arranged(columns, width - _width(model)):
        parts += [*_grids(table, [model, *group]), Text()]
    below = [line for note in table.notes for line in wrap(note, width)]
    return [*parts, *(Text(line, style="dim") for line in below)]


def _fit(model: Column, columns: list[Column], width: int) -> list[Column]:
    """Return the columns, with flexible ones cut to the width that the others leave."""
    others = [model, *(column for column in columns if not column.flexible)]
    room = max(width - sum(map(_width, others)) - 3, FEWEST_LETTERS)

    def cut(column: Column) -> Column:
        cells = [replace(cell, text=shorten_cells(cell.text, room)) for cell in column.cells]
        return replace(column, cells=cells)

    return [cut(column) if column.flexible else column for column in columns]


def wrap(text: str, width: int, first: str = " ", rest: str = " ") -> list[str]:
    """Return the lines of a text; names with hyphens and long words are never split.

    >>> wrap("no better than tf-idf", 18)
    [' no better than', ' tf-idf']
    """
    wrapper = textwrap.TextWrapper(width, initial_indent=first, subsequent_indent=rest)
    wrapper.break_long_words = wrapper.break_on_hyphens = False
    return wrapper.wrap(text)


def _arranged(columns: list[Column], width: int) -> list[list[Column]]:
    """Return the columns in groups that fit: all, or ranks first, if possible with the costs."""
    if sum(map(_width, columns)) <= width:
        return [columns]
    ranks, tasks, costs = ([c for c in columns if c.part == p] for p in ("rank", "task", "cost"))
    if sum(map(_width, (*ranks, *costs))) <= width:
        return [[*ranks, *costs], *_fitting(tasks, width)]
    return [*_fitting(ranks, width), *_fitting(tasks, width), *_fitting(costs, width)]


def _fitting(columns: Sequence[Column], width: int) -> list[list[Column]]:
    groups: list[list[Column]] = []
    remaining = 0
    for column in columns:
        if not groups or _width(column) > remaining:
            groups.append([])
            remaining = width
        groups[-1].append(column)
        remaining -= _width(column)
    return groups


def _width(column: Column) -> int:
    return _text_width(column) + 2


def _text_width(column: Column) -> int:
    texts = [column.name, column.label, *(cell.text for cell in column.cells)]
    return max(map(_cells, texts))


def _cells(text: str) -> int:
    """Return the width of a text on a terminal."""
    return len(text) if text.isascii() else cell_len(text)


def shorten_cells(name: str, width: int = TASK_WIDTH) -> str:
    """Return a text that is at most this wide on a terminal."""
    text = Text(name)
    text.truncate(width, overflow="ellipsis")
    return text.plain


def _grids(table: Table, columns: list[Column]) -> Iterator[RenderableType]:
    """Yield the rows below their heading, each group below a line with its name."""
    widths = [_text_width(column) for column in columns]
    if not table.groups:
        yield Grid(columns, widths)
        return
    yield Grid([replace(column, cells=[]) for column in columns], widths, fixed=True)
    for start, end in itertools.pairwise([*table.starts, len(table)]):
        title = "   ".join(column.cells[start].text for column in table.groups)
        yield Text(f"\n {title}", style="bold", overflow="ellipsis", no_wrap=True)
        rows = [replace(column, cells=column.cells[start:end]) for column in columns]
        yield Grid(rows, widths, heading=False, fixed=True)


@dataclass(frozen=True)
class Grid:
    """Columns of one-line cells below their heading, as rich's ``Table`` shows them.

    rich lays out each cell as a text of its own, which takes seconds for 20,000 cells. It is used
    only if the columns do not fit into the console and must be shortened; those with a ``fixed``
    width are cut.
    """

    columns: Sequence[Column]
    widths: Sequence[int]
    heading: bool = True
    fixed: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if sum(self.widths) + 2 * len(self.widths) > options.max_width:
            yield self._shortened()
            return
        for line in self._heading() if self.heading else ():
            yield from (*line, Segment("\n"))
        for row in zip(*(column.cells for column in self.columns), strict=True):
            plain = ""
            for cell, column, width in zip(row, self.columns, self.widths, strict=True):
                text = _aligned(cell.text, width, column.right)
                if cell.faint or cell.best:
                    yield Segment(f"{plain} ")
                    yield Segment(text, DIM if cell.faint else BOLD)
                    plain = " "
                else:
                    plain += f" {text} "
            yield Segment(f"{plain}\n")

    def _heading(self) -> Iterator[list[Segment]]:
        """Yield the two lines of the heading, or one; texts of one line are in the last."""
        titles = [[column.name, column.label] for column in self.columns]
        titles = [title if title[1] else ["", title[0]] for title in titles]
        first = 0 if any(column.label for column in self.columns) else 1
        for at in range(first, 2):
            line = []
            for column, width, title in zip(self.columns, self.widths, titles, strict=True):
                if at == 0 and not column.label:
                    line.append(Segment(" " * (width + 2), BOLD))
                else:
                    text = _aligned(title[at], width, column.right)
                    line += [Segment(text_part, BOLD) for text_part in (" ", text, " ")]
            yield line

    def _shortened(self) -> RichTable:
        grid = RichTable(box=None, header_style="bold", padding=(0, 1), show_header=self.heading)
        for column, width in zip(self.columns, self.widths, strict=True):
            side: Any = "right" if column.right else "left"
            title = f"{column.name}\n{column.label}" if column.label else column.name
            least = width if self.fixed else None
            grid.add_column(Text(title, style="bold"), justify=side, no_wrap=True, min_width=least)
        for row in zip(*(column.cells for column in self.columns), strict=True):
            styles = ("dim" if cell.faint else "bold" if cell.best else "" for cell in row)
            grid.add_row(*(Text(cell.text, style) for cell, style in zip(row, styles, strict=True)))
        return grid


def _aligned(text: str, width: int, right: bool) -> str:
    if right:
        text = text.rstrip()
        return " " * (width - _cells(text)) + text
    return text + " " * (width - _cells(text))
