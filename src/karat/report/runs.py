"""Finished runs and plans on a terminal: the board, where the folders are, what to do next."""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.plan import Plan
from karat.report.terminal import plain_console, print_board
from karat.results.leaderboard import leaderboard
from karat.results.run import Run


def show_runs(runs: Sequence[Run], shape: str | None, *, quiet: bool = False) -> int:
    """Print the board of finished runs and where they are; return the exit code."""
    board = leaderboard(list(runs))
    show_frame(board, shape)
    if shape is None and not quiet:
        console = Console(highlight=False, stderr=True)
        console.print(f"\n runs    {_place(runs)}", markup=False, soft_wrap=True)
        console.print(f" next    {_next(runs)}", markup=False, soft_wrap=True)
    return 1 if int(board["failed"].fillna(0).sum()) else 0


def show_board(paths: Sequence[str | Path], shape: str | None) -> None:
    """Print the board of run folders."""
    show_frame(leaderboard(list(paths)), shape)


def show_frame(board: pd.DataFrame, shape: str | None) -> None:
    """Print a board for people, or as CSV or JSON for machines."""
    if shape == "csv":
        sys.stdout.write(board.to_csv())
    elif shape == "json":
        rows = board.reset_index().to_dict(orient="records")
        plain = [{str(k): _empty(v) for k, v in row.items()} for row in rows]
        sys.stdout.write(json.dumps(plain, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        print_board(board)


def show_plan(plan: Plan) -> None:
    """Print the jobs by model and task, then every decline with its reason."""
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
    for reason, pairs in _by_reason(plan).items():
        console.print(f"\n   {' '.join(reason.split())}", markup=False, soft_wrap=True)
        for model, tasks in pairs.items():
            console.print(f"     {model} · {', '.join(tasks)}", markup=False, soft_wrap=True)


def _by_reason(plan: Plan) -> dict[str, dict[str, list[str]]]:
    """Return the declined tasks by reason and model: one reason is told once."""
    reasons: dict[str, dict[str, list[str]]] = {}
    for decline in plan.declined:
        reasons.setdefault(decline.reason, {}).setdefault(decline.model, []).append(decline.task)
    return reasons


def _empty(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def _place(runs: Sequence[Run]) -> str:
    if len(runs) == 1:
        return _relative(runs[0].folder)
    stamps = {run.about["stamp"] for run in runs}
    folder = _relative(runs[0].folder.parent)
    if len(stamps) == 1:
        return f"{folder}/*.{stamps.pop()}   {len(runs)} folders"
    return f"{folder}   {len(runs)} folders"


def _next(runs: Sequence[Run]) -> str:
    folder = shlex.quote(_relative(runs[0].folder.parent))
    return f"karat leaderboard {folder}   all runs of this folder"


def _relative(path: Path) -> str:
    near = os.path.relpath(path)
    return str(path) if near.startswith("..") else near
