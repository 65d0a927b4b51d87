"""Board: a leaderboard that a notebook shows as a table, and a data frame everywhere else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec

import pandas as pd

from karat.report.formats import to_html
from karat.report.tables import Table, make_table
from karat.results.leaderboard import leaderboard as _leaderboard

Given = ParamSpec("Given")


class Board(pd.DataFrame):
    """A data frame whose rich output is the table of a leaderboard, with its notes.

    What pandas makes of it is a plain data frame; ``attrs`` are those of ``leaderboard``. A
    notebook shows as many rows and tasks as ``pandas.options.display`` says.
    """

    @property
    def _constructor(self) -> type[pd.DataFrame]:
        return pd.DataFrame

    def _repr_html_(self) -> str:
        try:
            rows = pd.get_option("display.max_rows") or len(self)
            columns = pd.get_option("display.max_columns") or len(self.columns)
            return to_html(_cut(make_table(self.iloc[:rows]), len(self), columns))
        except KeyError:
            # somebody took a column away in place: it is a table like any other now
            return str(pd.DataFrame(self)._repr_html_())


def _cut(table: Table, rows: int, most: int) -> Table:
    """Return the table with its first tasks only, and a note of what is left out."""
    tasks = [column for column in table.columns if column.part == "task"]
    hidden = tasks[most:]
    left = [f"{rows - len(table):,} more rows"] if len(table) < rows else []
    left += [f"{len(hidden):,} more tasks"] if hidden else []
    said = [f"Not shown here: {' and '.join(left)}."] if left else []
    columns = [column for column in table.columns if not any(column is each for each in hidden)]
    return replace(table, columns=columns, notes=[*said, *table.notes])


def _shown(make: Callable[Given, pd.DataFrame]) -> Callable[Given, Board]:
    @functools.wraps(make)
    def made(*given: Given.args, **options: Given.kwargs) -> Board:
        frame = make(*given, **options)
        board = Board(frame)
        board.attrs.update(frame.attrs)
        return board

    return made


leaderboard = _shown(_leaderboard)
