"""Finished runs and plans on a terminal: the board, where the folders are, what to do next."""

from __future__ import annotations

import itertools
import os
import shlex
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.errors import DefinitionError
from karat.plan import Decline, Plan
from karat.report.findings import show_below
from karat.report.formats import render, to_html, to_latex, to_markdown
from karat.report.robust import robustness_table
from karat.report.terminal import plain_console, print_board
from karat.results.estimate import estimate
from karat.results.leaderboard import leaderboard
from karat.results.robustness import robustness
from karat.results.run import Run
from karat.results.still import read_once


def show_runs(
    runs: Sequence[Run], shape: str | None, *, quiet: bool = False, ignore: Sequence[str] = ()
) -> int:
    """Print the board of finished runs and where they are; return the exit code."""
    runs = read_once(runs)
    board = leaderboard(runs)
    show_frame(board, shape)
    show_below(runs, _place(runs).partition("   ")[0], shape, ignore)
    if shape in (None, "table") and not quiet:
        console = Console(highlight=False, stderr=True)
        console.print(f"\n runs    {_place(runs)}", markup=False, soft_wrap=True)
        commands = _next(board, _relative(runs[0].folder.parent))
        width = max(map(len, commands)) + 3
        for i, (command, what) in enumerate(commands.items()):
            start = "" if i else " next"
            console.print(f"{start:<9}{command:<{width}}{what}", markup=False, soft_wrap=True)
    return 1 if int(board["failed"].fillna(0).sum()) else 0


def _next(board: pd.DataFrame, folder: str) -> dict[str, str]:
    """Return what to do after a run, and what that is for."""
    place = shlex.quote(folder)
    commands = {
        f"karat report {place}": "one HTML file to show",
        f"karat leaderboard {place}": "all runs of this folder",
    }
    scored = board[board.attrs["tasks"]].notna()
    for first, second in itertools.combinations(board.index[board["tie"] != ""], 2):
        if (scored.loc[first] & scored.loc[second]).any():
            where = "" if folder == "results" else f" --in {place}"
            pair = shlex.join([str(first), str(second)])
            commands[f"karat compare {pair}{where}"] = "is the difference real?"
            break
    return commands


def show_board(
    paths: Sequence[str | Path], shape: str | None, ignore: Sequence[str] = (), **options: Any
) -> None:
    """Print the board of run folders and what checks find; the options are ``leaderboard``'s."""
    runs = read_once(paths)
    show_frame(leaderboard(runs, **options), shape)
    several = len(paths) > 3
    show_below(runs, "RUN…" if several else shlex.join(map(str, paths)), shape, ignore)


def show_frame(board: pd.DataFrame, shape: str | None) -> None:
    """Print a board for people, or in a format for machines and documents."""
    if shape in (None, "table"):
        print_board(board)
    else:
        sys.stdout.write(render(board, str(shape)))


def show_robustness(paths: Sequence[str | Path], shape: str | None, **options: Any) -> None:
    """Print what corruption costs; the options are those of ``robustness``."""
    found = robustness(list(paths), **options)
    if shape in ("csv", "json"):
        sys.stdout.write(render(found.set_index("task"), str(shape)))
        return
    table = robustness_table(found, options.get("baseline"))
    pages = {"markdown": to_markdown, "latex": to_latex, "html": to_html}
    if shape in pages:
        sys.stdout.write(pages[shape](table))
    else:
        print_board(table)


def metric_by_task(given: Sequence[str]) -> dict[str, str]:
    """Return the metrics of ``TASK=METRIC``.

    >>> metric_by_task(["adult=auc"])
    {'adult': 'auc'}
    """
    pairs = [text.rpartition("=") for text in given]
    wrong = [
        text for text, (task, _, metric) in zip(given, pairs, strict=True) if not (task and metric)
    ]
    if wrong:
        raise DefinitionError(*(f'--metric is TASK=METRIC, not "{text}".' for text in wrong))
    return {task: metric for task, _, metric in pairs}


def columns_of(given: str | None) -> list[str] | None:
    """Return the names of ``NAME,NAME``.

    >>> columns_of("elo, pareto:memory_mb")
    ['elo', 'pareto:memory_mb']
    """
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def show_plan(plan: Plan, output: str | Path = "results") -> None:
    """Print the jobs by model and task, how long they may take, and every decline with its reason.

    Earlier runs below ``output`` tell how long jobs like these took.
    """
    console = plain_console()
    folds = Counter((model.name, planned.task.name) for model, planned, _ in plan.jobs)
    table = Table(box=None, header_style="bold")
    for name in ("model", "task", "folds"):
        table.add_column(name, no_wrap=True)
    for (model, task), count in folds.items():
        table.add_row(Text(model), Text(task), str(count))
    if folds:
        console.print(table)
    jobs = "1 job" if len(plan.jobs) == 1 else f"{len(plan.jobs)} jobs"
    console.print(f"\n {jobs}, {len(plan.declined)} declined", markup=False)
    for line in _time(plan, Path(output)):
        console.print(f" {line}", markup=False, soft_wrap=True)
    _show_reasons(console, plan.declined)
    if plan.lost:
        count = len({each.task for each in plan.lost})
        what = "1 task fails: its" if count == 1 else f"{count} tasks fail: their"
        console.print(f"\n {what} data cannot be used", markup=False)
        _show_reasons(console, plan.lost)
    if plan.unseen:
        what = "corruption" if len(plan.unseen) == 1 else "corruptions"
        console.print(f"\n {len(plan.unseen)} {what} left out", markup=False)
        _show_reasons(console, plan.unseen)
    _show_twins(console, plan)


def _show_twins(console: Console, plan: Plan) -> None:
    for planned in plan.tasks:
        twins, tested = planned.twins
        if twins:
            what = f"{twins} of {tested} test rows also stand in their train part"
            console.print(f"\n {planned.task.name}: {what}", markup=False, soft_wrap=True)


def _time(plan: Plan, output: Path) -> Iterator[str]:
    found = estimate(((model.name, planned.task.name) for model, planned, _ in plan.jobs), output)
    if found.known:
        some = "" if found.known == found.jobs else f" for {found.known:,} of {found.jobs:,} jobs"
        yield f"earlier runs in {output} took {_span(found.seconds)}{some}, one after the other"
    limits = [plan.limits_of(planned.task) for _, planned, _ in plan.jobs]
    if limits and all(limit and limit.deadline for limit in limits):
        most = sum(limit.deadline or 0.0 for limit in limits if limit)
        yield f"limits end all of them after {_span(most)} of work"
    elif limits and not found.known:
        yield f"no earlier run in {output} tells how long they take, and no limit ends them"


def _span(seconds: float) -> str:
    """Return a span of time as people say it.

    >>> _span(12.34), _span(600), _span(7260)
    ('12.3 s', '10.0 min', '2.0 h')
    """
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.1f} min" if seconds < 7200 else f"{seconds / 3600:,.1f} h"


def _show_reasons(console: Console, declines: Sequence[Decline]) -> None:
    reasons = _by_reason(declines)
    for reason, pairs in reasons.items():
        first, *rest = reason.splitlines() or [""]
        told = [first, *rest] if len(reasons) == 1 else [first.removesuffix(" Tried:")]
        for line in told:
            start = "\n" if line is first else ""
            console.print(f"{start}   {line}", markup=False, soft_wrap=True)
        for model, tasks in pairs.items():
            names = ", ".join(dict.fromkeys(tasks))  # a task may lack a corruption several times
            console.print(f"     {model} · {names}", markup=False, soft_wrap=True)


def _by_reason(declines: Sequence[Decline]) -> dict[str, dict[str, list[str]]]:
    """Return the declined tasks by reason and model: one reason is told once."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for decline in declines:
        reasons.setdefault(decline.reason, {}).setdefault(decline.model, []).append(decline.task)
    return reasons


def _place(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return _relative(runs[0].folder)
    stamps = {run.about["stamp"] for run in runs}
    folder = _relative(runs[0].folder.parent)
    if len(stamps) == 1:
        return f"{folder}/*.{stamps.pop()}   {len(runs)} folders"
    return f"{folder}   {len(runs)} folders"


def _relative(path: Path) -> str:
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near
