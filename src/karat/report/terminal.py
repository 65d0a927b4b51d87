"""The board on a terminal: ranks with intervals, a column per task, costs; 80 columns do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pandas as pd
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from karat.metrics.base import get_metric

#: a column of a task is at most this wide; longer names are cut
TASK_WIDTH = 16
#: what the columns beside the tasks take on a screen
FIXED_WIDTH = 64


def board_text(board: pd.DataFrame, width: int) -> Group:
    """Return the board for a screen of this width; many tasks go on into further tables."""
    tasks = board.attrs["tasks"]
    room = max(1, (width - FIXED_WIDTH - _name_width(board)) // 12)
    if len(tasks) <= room:
        parts: list[RenderableType] = [_table(board, tasks, ranks=True)]
    else:
        parts = [_table(board, [], ranks=True)]
        per_table = max(1, (width - _name_width(board) - 2) // 12)
        for start in range(0, len(tasks), per_table):
            parts += [Text(), _table(board, tasks[start : start + per_table], ranks=False)]
    parts += [Text(), *(Text(line, style="dim") for line in notes(board))]
    return Group(*parts)


def notes(board: pd.DataFrame) -> Iterator[str]:
    """Yield what a reader must know to read the board."""
    if len(board) > 1:
        yield " Models that share a letter cannot be told apart on these tasks."
    if board[board.attrs["tasks"]].isna().to_numpy().any():
        yield " – not applicable to this model, or no score."
    failed = int(board["failed"].fillna(0).sum())
    if failed:
        jobs = "job" if failed == 1 else "jobs"
        yield f" {failed} {jobs} failed: each counts as the worst score of its fold."


def _table(board: pd.DataFrame, tasks: list[str], *, ranks: bool) -> Table:
    table = Table(box=None, pad_edge=True, header_style="bold", collapse_padding=True)
    table.add_column("model", no_wrap=True, overflow="ellipsis", min_width=6)
    if ranks:
        table.add_column("rank", justify="right")
        table.add_column("95 %", justify="right", no_wrap=True)
        table.add_column("tie", no_wrap=True)
    for task in tasks:
        table.add_column(
            Text(f"{_cut(task)}\n{metric_label(board.attrs['metrics'][task])}", style="bold"),
            justify="right",
        )
    if ranks:
        for name in ("failed", "n/a", "time", "memory"):
            table.add_column(name, justify="right", no_wrap=True)
    best = {task: _best(board, task) for task in tasks}
    for model, row in board.iterrows():
        cells: list[Any] = [Text(str(model))]
        if ranks:
            cells += [_number(row["rank"], "{:.1f}"), _interval(row), str(row["tie"])]
        cells += [_score(row[task], best[task]) for task in tasks]
        if ranks:
            cells += [_count(row["failed"]), _count(row["declined"])]
            cells += [_seconds(row["seconds"]), _memory(row["memory_mb"])]
        table.add_row(*cells)
    return table


def metric_label(name: str) -> str:
    """Return a metric with the arrow of its direction.

    >>> metric_label("rmse")
    'rmse ↓'
    """
    return f"{name} {'↑' if get_metric(name).higher_is_better else '↓'}"


def print_board(board: pd.DataFrame, console: Console | None = None) -> None:
    """Print the board to standard output."""
    console = console or Console(highlight=False)
    console.print(board_text(board, console.width))


def _name_width(board: pd.DataFrame) -> int:
    return max([6, *(len(str(name)) for name in board.index)])


def _cut(name: str) -> str:
    return name if len(name) <= TASK_WIDTH else name[: TASK_WIDTH - 1] + "…"


def _best(board: pd.DataFrame, task: str) -> float:
    higher = get_metric(board.attrs["metrics"][task]).higher_is_better
    return float(board[task].max() if higher else board[task].min())


def _score(value: float, best: float) -> Text:
    if math.isnan(value):
        return Text("–", style="dim")
    shown = f"{value:.3f}" if abs(value) < 10 else f"{value:.4g}"
    return Text(shown, style="bold" if value == best else "")


def _number(value: float, pattern: str) -> str:
    return "–" if math.isnan(value) else pattern.format(value)


def _interval(row: Any) -> str:
    if math.isnan(row["rank_low"]):
        return "–"
    return f"{row['rank_low']:.1f} – {row['rank_high']:.1f}"


def _count(value: float) -> str:
    return "0" if math.isnan(value) else f"{value:.0f}"


def _seconds(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def _memory(value: float) -> str:
    return "–" if math.isnan(value) else f"{value / 1024:.1f} GB"
