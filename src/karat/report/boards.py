"""``karat.leaderboard``: a data frame that notebooks show as a formatted table."""

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
    """A data frame whose HTML representation is a leaderboard with notes.

    Results of pandas operations are plain data frames; ``attrs`` are those of ``leaderboard``.
    ``pandas.options.display`` limits the rows and tasks shown in a notebook.
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
            # a column was removed in place: show a plain data frame
            return str(pd.DataFrame(self)._repr_html_())


def _cut(table: Table, rows: int, max_tasks: int) -> Table:
    """Return the table with its first tasks, and a note on what is left out."""
    tasks = [column for column in table.columns if column.part == "task"]
    hidden = tasks[max_tasks:]
    left = [f"{rows - len(table):,} more rows"] if len(table) < rows else []
    left += [f"{len(hidden):,} more tasks"] if hidden else []
    omitted = [f"Not shown: {' and '.join(left)}."] if left else []
    columns = [column for column in table.columns if not any(column is each for each in hidden)]
    return replace(table, columns=columns, notes=[*omitted, *table.notes])


def _shown(make: Callable[Given, pd.DataFrame]) -> Callable[Given, Board]:
    @functools.wraps(make)
    def made(*given: Given.args, **options: Given.kwargs) -> Board:
        frame = make(*given, **options)
        board = Board(frame)
        board.attrs.update(frame.attrs)
        return board

    return made


leaderboard = _shown(_leaderboard)
