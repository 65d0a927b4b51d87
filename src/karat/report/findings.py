"""Findings of the checks on a terminal: a few lines below a board, or all of them with advice."""

from __future__ import annotations

import dataclasses
import json
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from karat.report.formats import lines_below
from karat.report.notes import plain, short
from karat.results.rules.base import LEVELS, Finding, Findings, several
from karat.results.rules.check import RULES, check_codes, check_runs, explain, rule_of
from karat.results.run import Run

#: so many lines below a board are enough, and so many names in one
MOST_LINES, MOST_NAMES = 6, 3
#: what tells the runs of a model apart on a board
STAMP = re.compile(r" \([0-9]{8}T[0-9]{6}[^ )]*\)$")
COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def below_board(found: Findings, where: str) -> list[str]:
    """Return the lines below a board: one per check, and where to see all of them."""
    groups = _by_code(found)
    lines = [f"{code} {summary(group)}" for code, group in groups.items()]
    quiet = sum(found.silenced.values())
    if not lines:
        return [f"{several(quiet, 'finding')} of the checks silenced."] if quiet else []
    rest = len(lines) - MOST_LINES
    shown = lines if rest <= 0 else lines[:MOST_LINES]
    more = f"{several(rest, 'check')} more; " if rest > 0 else ""
    silent = f" ({quiet:,} silenced)" if quiet else ""
    return [
        *shown,
        f"{more}karat checks {where} shows all {several(len(found), 'finding')}{silent}.",
    ]


def show_below(
    runs: Sequence[Run], where: str, shape: str | None, ignore: Iterable[str] = ()
) -> None:
    """Print what the checks find below the board of some runs, where it is for people."""
    if shape in ("csv", "json"):
        check_codes(ignore)
        return
    lines = below_board(check_runs(runs, ignore), where)
    if shape not in (None, "table"):
        click.echo(lines_below(lines, shape), nl=False)
        return
    console = Console(highlight=False)
    for i, line in enumerate(lines):
        if not i:
            console.print()
        for part in textwrap.wrap(
            line, console.width, initial_indent=" ", subsequent_indent=" " * 8
        ):
            text = Text(part)
            text.highlight_regex("^ KRT[0-9]+", "bold")
            console.print(text)


def summary(group: Sequence[Finding]) -> str:
    """Return what a check has found, in one line.

    >>> def made(model, task):
    ...     return Finding("KRT102", "note", model, task, f"{model} is no better on {task}.", "")
    >>> summary([made("a", "t")])
    'a is no better on t.'
    >>> summary([made("a", "t"), made("a", "u"), made("b", "t")])
    'No better than raw features: a on t, u; b on t.'
    """
    if len(group) == 1:
        return plain(group[0].message)
    places: dict[str, list[str]] = {}
    for each in group:
        # several runs of a model are told apart by their time, which says little here
        model = short(STAMP.sub("", each.model)) if each.model else ""
        own = places.setdefault(model, [])
        own += [short(each.task)] if each.task and short(each.task) not in own else []
    parts = [
        f"{model} on {_listed(tasks)}" if model and tasks else model or _listed(tasks)
        for model, tasks in places.items()
    ]
    return f"{rule_of(group[0].code).title}: {_listed(parts, '; ')}."


def _listed(names: Sequence[str], between: str = ", ") -> str:
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return between.join(names[:MOST_NAMES]) + more


def _by_code(found: Iterable[Finding]) -> dict[str, list[Finding]]:
    groups: dict[str, list[Finding]] = {}
    for each in found:
        groups.setdefault(each.code, []).append(each)
    return groups


# -- the verb -------------------------------------------------------------------------------


def show_checks(
    runs: Iterable[str | Path | Run],
    ignore: Iterable[str] = (),
    fail_on: str | None = None,
    *,
    as_json: bool = False,
) -> int:
    """Print all findings; return 1 if one has the level ``fail_on`` or matters more."""
    found = check_runs(list(runs), ignore)
    if as_json:
        told = [dataclasses.asdict(each) for each in found]
        whole = {"findings": told, "silenced": dict(found.silenced)}
        click.echo(json.dumps(whole, indent=1, ensure_ascii=False))
    else:
        _show_groups(found)
    worst = LEVELS[: LEVELS.index(fail_on) + 1] if fail_on else ()
    return int(any(each.level in worst for each in found))


def _show_groups(found: Findings) -> None:
    for code, group in _by_code(found).items():
        level = click.style(f"{group[0].level:<7}", fg=COLOURS[group[0].level])
        click.echo(f"{click.style(code, bold=True)} {level}  {rule_of(code).title}")
        for message, count in Counter(plain(each.message) for each in group).items():
            click.echo(f"   {message}" + (f" (in {count} runs)" if count > 1 else ""))
        click.echo(f"   → {group[0].advice}\n")
    levels = [each.level for each in found]
    counts = [several(levels.count(level), level) for level in LEVELS if level in levels]
    quiet = sum(found.silenced.values())
    ending = f"; {quiet:,} silenced" if quiet else ""
    click.echo(f"{', '.join(counts) or 'nothing found'}{ending}.")


def show_rules() -> int:
    """Print the checks there are."""
    for rule in RULES:
        click.echo(f"{rule.code}  {rule.level:<7}  {rule.title}")
    return 0


def show_page(code: str) -> int:
    """Print the page of a check."""
    click.echo(explain(code).rstrip())
    return 0
