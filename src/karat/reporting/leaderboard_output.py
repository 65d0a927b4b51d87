"""The leaderboard as a result, and findings of checks on a terminal."""

from __future__ import annotations

import functools
import io
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec

import click
import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.text import Text

from karat.analysis.checks import (
    LEVELS,
    Finding,
    Findings,
    all_rules,
    check_codes,
    check_runs,
    render_page,
    rule_of,
)
from karat.analysis.leaderboard import GROUP
from karat.analysis.leaderboard import leaderboard as _leaderboard
from karat.core.formatting import count, plain, short
from karat.output.frame_result import FrameResult
from karat.output.result import show
from karat.output.table import Table
from karat.output.terminal_table import table_parts, wrap
from karat.reporting.formats import lines_below, make_table, make_tables, render, to_html
from karat.results.run import Run

Given = ParamSpec("Given")
#: maximum number of lines below a leaderboard, and of names in one line
MAX_LINES, MAX_NAMES = 6, 3
#: the time stamp that distinguishes several runs of one model
STAMP = re.compile(r" \([0-9]{8}T[0-9]{6}[^ )]*\)$")
COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


def leaderboard_text(board: pd.DataFrame | Table, width: int) -> Group:
    """Return the leaderboard for this width; many tasks continue in further tables.

    Groups of models that cannot be compared have a table each.
    """
    parts: list[RenderableType] = []
    for table in make_tables(board):
        if table.title:
            parts.append(Text(f" {table.title.capitalize()}", style="bold"))
        parts += table_parts(table, width)
    return Group(*parts)


class Leaderboard(FrameResult):
    """A data frame that prints as a leaderboard with notes, also in a notebook.

    It is used like any data frame; results of pandas operations are plain data frames. ``attrs``
    are those of ``leaderboard``. The text has the width of the terminal, or 80 columns;
    ``pandas.options.display`` limits the rows and tasks.
    """

    @property
    def sentence(self) -> str:
        """What is ranked, and the rule for missing scores."""
        return " ".join(table.caption for table in make_tables(self))

    @property
    def notes(self) -> list[str]:
        """No notes besides those of the tables."""
        return []

    def tables(self) -> list[Table]:
        """Return a table for each group of models that can be compared."""
        return make_tables(self)

    def render(self, form: str = "text") -> str:
        """Return the leaderboard as "text", "markdown", "latex", "html", "json" or "csv"."""
        return repr(self) if form == "text" else render(self, form)

    def print_on_terminal(self, console: Console | None = None) -> None:
        """Print the leaderboard; many tasks continue in further tables."""
        console = console or Console(highlight=False)
        console.print(leaderboard_text(self, console.width))

    def __repr__(self) -> str:
        width = shutil.get_terminal_size().columns
        # in a notebook, rich would display the text as another output
        console = Console(file=io.StringIO(), width=width, color_system=None, force_jupyter=False)
        with console.capture() as captured:
            try:
                console.print(Group(*(leaderboard_text(t, width) for t in self._shown_tables())))
            except KeyError:  # a column was removed in place
                return repr(self.frame)
        return "\n".join(line.rstrip() for line in captured.get().splitlines())

    def _repr_html_(self) -> str:
        try:
            return "\n".join(map(to_html, self._shown_tables()))
        except KeyError:
            return str(self.frame._repr_html_())

    def _shown_tables(self) -> list[Table]:
        rows = pd.get_option("display.max_rows") or len(self)
        columns = pd.get_option("display.max_columns") or len(self.columns)
        if self.attrs.get("by") == GROUP:
            return [_cut(table, len(table), columns) for table in make_tables(self)]
        return [_cut(make_table(self.iloc[:rows]), len(self), columns)]


def _cut(table: Table, rows: int, max_tasks: int) -> Table:
    """Return the table with its first tasks, and a note on what is left out."""
    tasks = [column for column in table.columns if column.part == "task"]
    hidden = tasks[max_tasks:]
    omitted_parts = [f"{rows - len(table):,} more rows"] if len(table) < rows else []
    omitted_parts += [f"{len(hidden):,} more tasks"] if hidden else []
    omitted = [f"Not shown: {' and '.join(omitted_parts)}."] if omitted_parts else []
    columns = [
        column
        for column in table.columns
        if not any(column is hidden_task for hidden_task in hidden)
    ]
    return replace(table, columns=columns, notes=[*omitted, *table.notes])


def _shown(make: Callable[Given, pd.DataFrame]) -> Callable[Given, Leaderboard]:
    @functools.wraps(make)
    def made(*arguments: Given.args, **options: Given.kwargs) -> Leaderboard:
        frame = make(*arguments, **options)
        board = Leaderboard(frame)
        board.attrs.update(frame.attrs)
        return board

    return made


leaderboard = _shown(_leaderboard)


def finding_lines(findings: Findings, where: str) -> list[str]:
    """Return the lines below a leaderboard: one per check, and the command that lists them all."""
    lines = [f"{code} {summarize_findings(group)}" for code, group in _by_code(findings).items()]
    ignored = sum(findings.silenced.values())
    if not lines:
        return [f"{count(ignored, 'finding')} ignored."] if ignored else []
    more = len(lines) - MAX_LINES
    last = f"{count(len(findings), 'finding')}" + (f" ({ignored:,} ignored)" if ignored else "")
    prefix = f"{count(more, 'more check')}; " if more > 0 else ""
    every = "all " if len(findings) > 1 else ""
    return [*lines[:MAX_LINES], f"{prefix}karat check {where} shows {every}{last}."]


def print_finding_lines(
    runs: Sequence[Run],
    where: str,
    shape: str | None,
    ignore: Iterable[str] = (),
    **options: Any,
) -> None:
    """Print the findings of some runs below their leaderboard; nothing for CSV and JSON.

    ``options`` are those of ``check_runs`` that the leaderboard was made with.
    """
    if shape in ("csv", "json"):
        check_codes(ignore)
        return
    lines = finding_lines(check_runs(runs, ignore, **options), where)
    if shape not in (None, "table"):
        sys.stdout.write(lines_below(lines, shape))
        return
    console = Console(highlight=False)
    wrapped = [row for line in lines for row in wrap(line, console.width, rest=" " * 8)]
    for row in ["", *wrapped] if wrapped else ():
        text = Text(row)
        text.highlight_regex("^ KRT[0-9]+", "bold")
        console.print(text, soft_wrap=True)


def summarize_findings(group: Sequence[Finding]) -> str:
    """Return the findings of one check in one line.

    >>> def made(model, task):
    ...     return Finding("KRT102", "note", model, task, f"{model} is no better on {task}.", "")
    >>> summarize_findings([made("a", "t")])
    'a is no better on t.'
    >>> print(summarize_findings([made("a", "t"), made("a", "u"), made("b", "t")])[-20:])
    : a on t, u; b on t.
    """
    if len(group) == 1:
        return plain(group[0].message)
    tasks_of: dict[str, list[str]] = {}
    for finding in group:
        model = short(STAMP.sub("", finding.model)) if finding.model else ""
        tasks = tasks_of.setdefault(model, [])
        if finding.task and short(finding.task) not in tasks:
            tasks.append(short(finding.task))
    places = [
        f"{model} on {_join(tasks)}" if model and tasks else model or _join(tasks)
        for model, tasks in tasks_of.items()
    ]
    return f"{rule_of(group[0].code).title}: {_join(places, '; ')}."


def _join(names: Sequence[str], separator: str = ", ") -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return separator.join(names[:MAX_NAMES]) + more


def _by_code(findings: Findings) -> dict[str, list[Finding]]:
    codes = dict.fromkeys(finding.code for finding in findings)
    return {
        code: [one_finding for one_finding in findings if one_finding.code == code]
        for code in codes
    }


def print_findings(
    runs: Iterable[str | Path | Run],
    ignore: Iterable[str] = (),
    fail_on: str | None = None,
    *,
    shape: str | None = None,
    pool: str = "variant",
) -> int:
    """Print all findings; return 1 if one has the level ``fail_on`` or a more severe one."""
    findings = check_runs(list(runs), ignore, pool)
    if shape in (None, "table"):
        _show_groups(findings)
    else:
        show(findings, shape)
    levels = LEVELS[: LEVELS.index(fail_on) + 1] if fail_on else ()
    return int(any(finding.level in levels for finding in findings))


def _show_groups(findings: Findings) -> None:
    for code, group in _by_code(findings).items():
        level = click.style(f"{group[0].level:<7}", fg=COLORS[group[0].level])
        click.echo(f"{click.style(code, bold=True)} {level}  {rule_of(code).title}")
        for message, runs in Counter(plain(finding.message) for finding in group).items():
            _echo(message + (f" (in {runs} runs)" if runs > 1 else ""), "   ", "     ")
        _echo(group[0].advice, "   → ", "     ")
        click.echo()
    click.echo(findings.sentence)


def _echo(text: str, first: str, rest: str) -> None:
    """Print a text, wrapped to a terminal but not in a pipe, for grep."""
    console = Console()
    lines = wrap(text, console.width, first, rest) if console.is_terminal else [first + text]
    click.echo("\n".join(lines))


def print_checks() -> int:
    """Print all checks."""
    for rule in all_rules():
        click.echo(f"{rule.code}  {rule.level:<7}  {rule.title}")
    return 0


def print_check_documentation(code: str) -> int:
    """Print the documentation of a check."""
    click.echo(render_page(rule_of(code)).rstrip())
    return 0
