"""The board on a terminal: ranks with intervals, a column per task, costs; 80 columns do."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from rich.cells import cell_len
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from karat.metrics.base import get_metric
from karat.results.ranks import FEWEST_TASKS

#: a column of a task is at most this wide; longer names are cut
TASK_WIDTH = 16
#: a model's name is never cut below this
NAME_WIDTH = 8
#: so many notes about coverage are enough
MOST_NOTES = 6


@dataclass(frozen=True)
class _Column:
    """A heading of one or two lines, a cell per model, and on which side they stand."""

    heading: str
    cells: Sequence[Text]
    right: bool = True

    @property
    def width(self) -> int:
        """How many columns of the screen it takes, with the gap beside it."""
        texts = [*self.heading.split("\n"), *(cell.plain for cell in self.cells)]
        return max(map(cell_len, texts)) + 2


def board_text(board: pd.DataFrame, width: int) -> Group:
    """Return the board for a screen of this width; many tasks go on into further tables."""
    ranks, costs = _rank_columns(board), _cost_columns(board)
    tasks = [_task_column(board, task) for task in board.attrs["tasks"] if _scored(board, task)]
    room = width - sum(column.width for column in (*ranks, *costs)) - 2
    names = [_cut(str(name), max(NAME_WIDTH, room)) for name in board.index]
    model = _Column("model", [Text(name) for name in names], right=False)
    groups = [[*ranks, *tasks, *costs]]
    if sum(column.width for column in (model, *groups[0])) > width:
        groups = [[*ranks, *costs], *_fitting(tasks, width - model.width)]
    parts: list[RenderableType] = []
    for group in groups:
        parts += [_table([model, *group]), Text()]
    return Group(*parts, *(Text(line, style="dim") for line in notes(board)))


def notes(board: pd.DataFrame) -> Iterator[str]:
    """Yield what a reader must know to read the board."""
    scored = [task for task in board.attrs["tasks"] if _scored(board, task)]
    if len(board) > 1:
        yield " Models that share a letter cannot be told apart on these tasks."
    if board[scored].isna().to_numpy().any():
        yield " – not applicable to this model, or no score."
    empty = [_cut(task, TASK_WIDTH * 2) for task in board.attrs["tasks"] if task not in scored]
    if empty:
        yield f" No model has a score here (karat plan shows why): {', '.join(empty)}."
    for (model, task), share in list(board.attrs.get("coverage", {}).items())[:MOST_NOTES]:
        yield f" {_cut(str(model), TASK_WIDTH * 2)} could answer {share:.0%} of {task}."
    few = _ranked_on_few(board)
    if few:
        yield f" Too few tasks to compare, below {FEWEST_TASKS}: {', '.join(few)}."
    failed = int(board["failed"].fillna(0).sum())
    if failed:
        jobs = "job" if failed == 1 else "jobs"
        yield f" {failed} {jobs} failed: each counts as the worst score of its fold."


def _scored(board: pd.DataFrame, task: str) -> bool:
    return bool(board[task].notna().any())


def _ranked_on_few(board: pd.DataFrame) -> list[str]:
    """Return the models whose rank rests on hardly any task, where others rest on more."""
    counts = board[board.attrs["tasks"]].notna().sum(axis=1)
    if counts.max() < FEWEST_TASKS:
        return []
    few = counts[(counts > 0) & (counts < FEWEST_TASKS)].index
    return [_cut(str(name), TASK_WIDTH * 2) for name in few]


def metric_label(name: str, higher_is_better: bool | None = None) -> str:
    """Return a metric with the arrow of its direction.

    >>> metric_label("rmse")
    'rmse ↓'
    """
    up = get_metric(name).higher_is_better if higher_is_better is None else higher_is_better
    return f"{name} {'↑' if up else '↓'}"


def print_board(board: pd.DataFrame, console: Console | None = None) -> None:
    """Print the board to standard output."""
    console = console or Console(highlight=False)
    console.print(board_text(board, console.width))


def plain_console() -> Console:
    """Return a console for lists; a pipe has no width of its own, lines stay whole for grep."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 1000)


def _table(columns: Sequence[_Column]) -> Table:
    table = Table(box=None, header_style="bold", padding=(0, 1))
    for column in columns:
        side: Any = "right" if column.right else "left"
        table.add_column(Text(column.heading, style="bold"), justify=side, no_wrap=True)
    for cells in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*cells)
    return table


def _fitting(columns: Iterable[_Column], width: int) -> list[list[_Column]]:
    groups: list[list[_Column]] = []
    left = 0
    for column in columns:
        if not groups or column.width > left:
            groups.append([])
            left = width
        groups[-1].append(column)
        left -= column.width
    return groups


def _rank_columns(board: pd.DataFrame) -> list[_Column]:
    low_high = zip(board["rank_low"], board["rank_high"], strict=True)
    intervals = [f"{_fixed(low)} – {_fixed(high)}" for low, high in low_high]
    letters = sorted({letter for ties in board["tie"] for letter in ties})
    ties = [str(ties) for ties in board["tie"]]
    if len(letters) < TASK_WIDTH // 2:  # each letter below itself
        ties = [" ".join(x if x in ties else " " for x in letters) for ties in ties]
    return [
        _Column("rank", _texts(map(_fixed, board["rank"]))),
        _Column("95 %", _texts("–" if "–" == i[0] else i for i in intervals)),
        _Column("tie", _texts(ties), right=False),
    ]


def _task_column(board: pd.DataFrame, task: str) -> _Column:
    up = board.attrs["higher_is_better"][task]
    best = board[task].max() if up else board[task].min()
    label = metric_label(board.attrs["metrics"][task], up)
    cells = [_score(value, float(best)) for value in board[task]]
    return _Column(f"{_cut(task, TASK_WIDTH)}\n{_cut(label, TASK_WIDTH)}", cells)


def _cost_columns(board: pd.DataFrame) -> list[_Column]:
    return [
        _Column("failed", _texts(map(_count, board["failed"]))),
        _Column("n/a", _texts(map(_count, board["declined"]))),
        _Column("time", _texts(map(_seconds, board["seconds"]))),
        _Column("memory", _texts(map(_memory, board["memory_mb"]))),
    ]


def _texts(values: Iterable[str]) -> list[Text]:
    return [Text(value) for value in values]


def _cut(name: str, width: int) -> str:
    text = Text(" ".join(name.split()))
    text.truncate(width, overflow="ellipsis")
    return text.plain


def _score(value: float, best: float) -> Text:
    if math.isnan(value):
        return Text("–", style="dim")
    shown = f"{value:.3f}" if abs(value) < 10 else f"{value:.4g}"
    return Text(shown, style="bold" if value == best else "")


def _fixed(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f}"


def _count(value: float) -> str:
    return "0" if math.isnan(value) else f"{value:.0f}"


def _seconds(value: float) -> str:
    if math.isnan(value):
        return "–"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"


def _memory(value: float) -> str:
    return "–" if math.isnan(value) else f"{value / 1024:.1f} GB"
