"""Finished runs and plans on a terminal."""

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
from karat.report.formats import DOCUMENTS, render
from karat.report.robust import robustness_table
from karat.report.shown import count
from karat.report.tables import duration
from karat.report.terminal import plain_console, print_board
from karat.results.estimate import estimate
from karat.results.leaderboard import leaderboard
from karat.results.robustness import robustness
from karat.results.run import Run
from karat.results.still import read_once


def show_runs(
    runs: Sequence[Run], shape: str | None, *, quiet: bool = False, ignore: Sequence[str] = ()
) -> int:
    """Print the leaderboard of finished runs and their folders; return the exit code."""
    runs = read_once(runs)
    board = leaderboard(runs)
    show_frame(board, shape)
    show_below(runs, _place(runs).partition("   ")[0], shape, ignore)
    if shape in (None, "table") and not quiet:
        console = Console(highlight=False, stderr=True)
        console.print(f"\n runs    {_place(runs)}", markup=False, soft_wrap=True)
        commands = _next(board, _relative(runs[0].folder.parent))
        width = max(map(len, commands)) + 3
        for i, (command, purpose) in enumerate(commands.items()):
            start = "" if i else " next"
            console.print(f"{start:<9}{command:<{width}}{purpose}", markup=False, soft_wrap=True)
    return 1 if int(board["failed"].fillna(0).sum()) else 0


def _next(board: pd.DataFrame, folder: str) -> dict[str, str]:
    """Return the next commands and their purposes."""
    place = shlex.quote(folder)
    commands = {
        f"karat report {place}": "write an HTML report",
        f"karat leaderboard {place}": "rank all runs of this folder",
    }
    scored = board[board.attrs["tasks"]].notna()
    for first, second in itertools.combinations(board.index[board["tie"] != ""], 2):
        if (scored.loc[first] & scored.loc[second]).any():
            where = "" if folder == "results" else f" --in {place}"
            pair = shlex.join([str(first), str(second)])
            commands[f"karat compare {pair}{where}"] = "test whether two models differ"
            break
    return commands


def show_board(
    paths: Sequence[str | Path], shape: str | None, ignore: Sequence[str] = (), **options: Any
) -> None:
    """Print the leaderboard and findings of run folders; options as in ``leaderboard``."""
    runs = read_once(paths)
    show_frame(leaderboard(runs, **options), shape)
    where = "RUN..." if len(paths) > 3 else shlex.join(map(str, paths))
    show_below(runs, where, shape, ignore)


def show_frame(board: pd.DataFrame, shape: str | None) -> None:
    """Print a leaderboard in a format."""
    if shape in (None, "table"):
        print_board(board)
    else:
        sys.stdout.write(render(board, str(shape)))


def show_robustness(paths: Sequence[str | Path], shape: str | None, **options: Any) -> None:
    """Print robustness to corruption; the options are those of ``robustness``."""
    found = robustness(list(paths), **options)
    if shape in ("csv", "json"):
        sys.stdout.write(render(found.set_index("task"), str(shape)))
        return
    table = robustness_table(found, options.get("baseline"))
    if shape in DOCUMENTS:
        sys.stdout.write(DOCUMENTS[shape](table))
    else:
        print_board(table)


def metric_by_task(given: Sequence[str]) -> dict[str, str]:
    """Parse options of the form ``TASK=METRIC``.

    >>> metric_by_task(["adult=auc"])
    {'adult': 'auc'}
    """
    pairs = [text.rpartition("=") for text in given]
    wrong = [
        text for text, (task, _, metric) in zip(given, pairs, strict=True) if not (task and metric)
    ]
    if wrong:
        raise DefinitionError(*(f'--metric must be TASK=METRIC, got "{text}".' for text in wrong))
    return {task: metric for task, _, metric in pairs}


def columns_of(given: str | None) -> list[str] | None:
    """Parse an option of the form ``NAME,NAME``.

    >>> columns_of("elo, pareto:memory_mb")
    ['elo', 'pareto:memory_mb']
    """
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def show_plan(plan: Plan, output: str | Path = "results") -> None:
    """Print the jobs by model and task, the estimated time, and every decline with its reason.

    The estimate uses earlier runs below ``output``.
    """
    console = plain_console()
    folds = Counter((model.name, planned.task.name) for model, planned, _ in plan.jobs)
    table = Table(box=None, header_style="bold")
    for name in ("model", "task", "folds"):
        table.add_column(name, no_wrap=True)
    for (model, task), number in folds.items():
        table.add_row(Text(model), Text(task), str(number))
    if folds:
        console.print(table)
    summary = f"\n {count(len(plan.jobs), 'job')}, {len(plan.declined)} declined"
    _print_lines(console, summary, *(f" {line}" for line in _time(plan, Path(output))))
    _show_reasons(console, plan.declined)
    if plan.lost:
        tasks = count(len({decline.task for decline in plan.lost}), "task")
        _print_lines(console, f"\n {tasks} with unusable data")
        _show_reasons(console, plan.lost)
    if plan.unseen:
        _print_lines(console, f"\n {count(len(plan.unseen), 'corruption')} left out")
        _show_reasons(console, plan.unseen)
    for planned in plan.tasks:
        duplicates, tested = planned.twins
        if duplicates:
            text = f"{duplicates} of {tested} test rows also occur in the training data"
            _print_lines(console, f"\n {planned.task.name}: {text}")


def _print_lines(console: Console, *lines: str) -> None:
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)


def _time(plan: Plan, output: Path) -> Iterator[str]:
    found = estimate(((model.name, planned.task.name) for model, planned, _ in plan.jobs), output)
    if found.known:
        some = "" if found.known == found.jobs else f" for {found.known:,} of {found.jobs:,} jobs"
        yield f"earlier runs in {output} took {duration(found.seconds)}{some} on one worker"
    limits = [plan.limits_of(planned.task) for _, planned, _ in plan.jobs]
    if limits and all(limit and limit.deadline for limit in limits):
        most = sum(limit.deadline or 0.0 for limit in limits if limit)
        yield f"the limits allow at most {duration(most)} of work"
    elif limits and not found.known:
        yield f"unknown run time: no earlier runs in {output} and no time limits"


def _show_reasons(console: Console, declines: Sequence[Decline]) -> None:
    """Print each reason once, with the models and tasks it applies to."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for decline in declines:
        reasons.setdefault(decline.reason, {}).setdefault(decline.model, []).append(decline.task)
    for reason, pairs in reasons.items():
        first, *rest = reason.splitlines() or [""]
        if len(reasons) > 1:
            first, rest = first.removesuffix(" Tried:"), []
        _print_lines(console, f"\n   {first}", *(f"   {line}" for line in rest))
        for model, tasks in pairs.items():
            # the same task can be listed once per corruption
            _print_lines(console, f"     {model} · {', '.join(dict.fromkeys(tasks))}")


def _place(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return _relative(runs[0].folder)
    stamps = {run.about["stamp"] for run in runs}
    pattern = f"/*.{stamps.pop()}" if len(stamps) == 1 else ""
    return f"{_relative(runs[0].folder.parent)}{pattern}   {len(runs)} folders"


def _relative(path: Path) -> str:
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near
