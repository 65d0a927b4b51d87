"""Tables on a terminal; tests/reporting/test_terminal.py has leaderboards."""

import io
from dataclasses import replace

from rich.console import Console, Group

from karat.output.table import text_column
from karat.output.terminal_table import table_parts


def printed(table, width):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(Group(*table_parts(table, width)))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_table_on_a_terminal(small_table):
    assert printed(small_table, 80) == [
        " model      score",
        " a_b & <c>    0.5",
        " plain          –",
        "",
        " 50 % of *all*.",
    ]


def test_columns_of_tasks_that_do_not_fit_are_in_a_further_table(small_table):
    tasks = [text_column(f"task {i}", ["0.1", "0.2"], part="task") for i in range(4)]
    lines = printed(replace(small_table, columns=[*small_table.columns, *tasks]), 40)
    assert max(map(len, lines)) <= 40
    assert sum(line.startswith(" model") for line in lines) == 3
