"""Findings of the checks on a terminal: a summary below a leaderboard, or the full list."""

from __future__ import annotations

import dataclasses
import json
import re
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
import pandas as pd
from rich.console import Console
from rich.text import Text

from karat.report.formats import lines_below, render_frame
from karat.report.notes import plain, short
from karat.results.rules.base import LEVELS, Finding, Findings, several
from karat.results.rules.check import RULES, check_codes, check_runs, explain, rule_of
from karat.results.run import Run

#: maximum number of lines below a leaderboard, and of names in one line
MAX_LINES, MAX_NAMES = 6, 3
#: the time stamp that distinguishes several runs of one model
STAMP = re.compile(r" \([0-9]{8}T[0-9]{6}[^ )]*\)$")
COLORS = {"error": "red", "warning": "yellow", "note": "cyan"}


def below_board(found: Findings, where: str) -> list[str]:
    """Return the lines below a leaderboard: one per check, and the command that lists them all."""
    lines = [f"{code} {summary(group)}" for code, group in _by_code(found).items()]
    ignored = sum(found.silenced.values())
    if not lines:
        return [f"{several(ignored, 'finding')} ignored."] if ignored else []
    more = len(lines) - MAX_LINES
    last = f"{several(len(found), 'finding')}" + (f" ({ignored:,} ignored)" if ignored else "")
    prefix = f"{several(more, 'more check')}; " if more > 0 else ""
    return [*lines[:MAX_LINES], f"{prefix}karat lint {where} shows all {last}."]


def show_below(
    runs: Sequence[Run], where: str, shape: str | None, ignore: Iterable[str] = ()
) -> None:
    """Print the findings of some runs below their leaderboard; nothing for CSV and JSON."""
    if shape in ("csv", "json"):
        check_codes(ignore)
        return
    lines = below_board(check_runs(runs, ignore), where)
    if shape not in (None, "table"):
        click.echo(lines_below(lines, shape), nl=False)
        return
    console = Console(highlight=False)
    wrapper = textwrap.TextWrapper(console.width, initial_indent=" ", subsequent_indent=" " * 8)
    wrapped = [row for line in lines for row in wrapper.wrap(line)]
    for row in ["", *wrapped] if wrapped else ():
        text = Text(row)
        text.highlight_regex("^ KRT[0-9]+", "bold")
        console.print(text)


def summary(group: Sequence[Finding]) -> str:
    """Return the findings of one check in one line.

    >>> def made(model, task):
    ...     return Finding("KRT102", "note", model, task, f"{model} is no better on {task}.", "")
    >>> summary([made("a", "t")])
    'a is no better on t.'
    >>> summary([made("a", "t"), made("a", "u"), made("b", "t")]).endswith(": a on t, u; b on t.")
    True
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


def _by_code(found: Iterable[Finding]) -> dict[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for finding in found:
        groups.setdefault(finding.code, []).append(finding)
    return groups


def show_checks(
    runs: Iterable[str | Path | Run],
    ignore: Iterable[str] = (),
    fail_on: str | None = None,
    *,
    shape: str | None = None,
) -> int:
    """Print all findings; return 1 if one has the level ``fail_on`` or a more severe one."""
    found = check_runs(list(runs), ignore)
    rows = [dataclasses.asdict(finding) for finding in found]
    if shape == "json":
        whole = {"findings": rows, "silenced": dict(found.silenced)}
        click.echo(json.dumps(whole, indent=1, ensure_ascii=False))
    elif shape in (None, "table"):
        _show_groups(found)
    else:
        columns = [field.name for field in dataclasses.fields(Finding)]
        frame = pd.DataFrame(rows, columns=columns).fillna("")
        sys.stdout.write(render_frame(frame, str(shape)))
    levels = LEVELS[: LEVELS.index(fail_on) + 1] if fail_on else ()
    return int(any(finding.level in levels for finding in found))


def _show_groups(found: Findings) -> None:
    for code, group in _by_code(found).items():
        level = click.style(f"{group[0].level:<7}", fg=COLORS[group[0].level])
        click.echo(f"{click.style(code, bold=True)} {level}  {rule_of(code).title}")
        for message, count in Counter(plain(each.message) for each in group).items():
            click.echo(f"   {message}" + (f" (in {count} runs)" if count > 1 else ""))
        click.echo(f"   → {group[0].advice}\n")
    levels = [finding.level for finding in found]
    counts = [several(levels.count(level), level) for level in LEVELS if level in levels]
    ignored = sum(found.silenced.values())
    suffix = f"; {ignored:,} ignored" if ignored else ""
    click.echo(f"{', '.join(counts) or 'no findings'}{suffix}.")


def show_rules() -> int:
    """Print all checks."""
    for rule in RULES:
        click.echo(f"{rule.code}  {rule.level:<7}  {rule.title}")
    return 0


def show_page(code: str) -> int:
    """Print the documentation of a check."""
    click.echo(explain(code).rstrip())
    return 0
