"""Leaderboards as tables of text, used by every output format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.metrics.base import get_metric
from karat.report.notes import SIGNS, caption, notes, plain, scored_tasks

#: with fewer letters of ties than this, each letter has its own column
MAX_LETTERS = 8


@dataclass(frozen=True)
class Cell:
    """A text; ``best`` marks the best of its column, ``faint`` a missing value."""

    text: str
    best: bool = False
    faint: bool = False


@dataclass(frozen=True)
class Column:
    """A heading with a second line, one cell per row, and the alignment.

    ``part`` is "rank", "task" or "cost": columns of one part stay together on a narrow screen.
    """

    name: str
    cells: Sequence[Cell]
    label: str = ""
    right: bool = True
    part: str = "rank"


@dataclass(frozen=True)
class Table:
    """The group, model and other columns; ``starts`` are the first rows of the groups."""

    groups: list[Column]
    model: Column
    columns: list[Column]
    starts: list[int]
    caption: str
    notes: list[str]

    def __len__(self) -> int:
        return len(self.model.cells)

    @property
    def all_columns(self) -> list[Column]:
        """The columns from left to right."""
        return [*self.groups, self.model, *self.columns]


def make_table(board: pd.DataFrame | Table) -> Table:
    """Return the table of a leaderboard of any view; a table is returned unchanged."""
    if isinstance(board, Table):
        return board
    by = board.attrs.get("by")
    rows = board
    if by is not None:
        # groups without a score are listed below the table
        known = board["score" if by == "task" else "rank"].groupby(level=0, sort=False)
        rows = board[known.transform("count") > 0]
    group = pd.factorize(rows.index.get_level_values(0))[0] if by else np.zeros(len(rows))
    starts = np.flatnonzero(np.diff(group, prepend=-1)).tolist()
    model = text_column("model", rows.index.get_level_values("model"), right=False)
    make = {None: _overall, "task": _by_task}.get(by, _by_group)
    columns = make(rows, starts)
    return Table(_groups(rows), model, columns, starts, caption(board), list(notes(board)))


def frame_table(frame: pd.DataFrame) -> Table:
    """Return any data frame as a table without caption and notes."""
    numeric = pd.api.types.is_numeric_dtype
    first, *others = (text_column(str(n), frame[n], right=numeric(frame[n])) for n in frame)
    return Table([], first, others, [], "", [])


def metric_label(name: str, higher_is_better: bool | None = None) -> str:
    """Return a metric name with an arrow that shows its direction.

    >>> metric_label("rmse")
    'rmse ↓'
    """
    up = get_metric(name).higher_is_better if higher_is_better is None else higher_is_better
    return f"{name} {'↑' if up else '↓'}"


def _groups(rows: pd.DataFrame) -> list[Column]:
    by = rows.attrs.get("by")
    if by is None:
        return []
    names = rows.index.get_level_values(0)
    columns = [text_column(by, names, right=False)]
    if by == "task":
        up = rows.attrs["higher_is_better"]
        pairs = zip(rows["metric"], names, strict=True)
        labels = [metric_label(metric, up[task]) for metric, task in pairs]
        columns.append(text_column("metric", labels, right=False))
    return columns


def _overall(rows: pd.DataFrame, starts: Sequence[int]) -> list[Column]:
    tasks = [_task(rows, task) for task in scored_tasks(rows)]
    return [*_ranks(rows, starts), *tasks, *_costs(rows)]


def _by_group(rows: pd.DataFrame, starts: Sequence[int]) -> list[Column]:
    tasks = text_column("tasks", map(_count, rows["tasks"]))
    return [*_ranks(rows, starts), tasks, *_costs(rows)]


def _by_task(rows: pd.DataFrame, starts: Sequence[int]) -> list[Column]:
    up = np.array([rows.attrs["higher_is_better"][task] for task in rows.index.get_level_values(0)])
    best = best_of(rows["score"] * np.where(up, 1, -1), starts)
    scores = [
        _score(value, is_best, SIGNS.get(state, "–"))
        for value, is_best, state in zip(rows["score"], best, rows["status"], strict=True)
    ]
    columns = [
        *_places(rows, starts),
        Column("score", scores),
        _interval(rows["score_low"], rows["score_high"], rounded),
    ]
    if "normalised" in rows:
        mark = best_of(rows["normalised"], starts)
        columns.append(_numbers("normalised", rows["normalised"], mark, rounded))
    folds = [text_column("folds", map(_count, rows["folds"]))] if "folds" in rows else []
    costs = [each for each in _costs(rows) if each.name in ("failed", "time")]
    return [*columns, *_front(rows), *folds, *costs]


def _places(rows: pd.DataFrame, starts: Sequence[int]) -> list[Column]:
    """Return the columns of rank, interval and ties."""
    letters = sorted({letter for ties in rows["tie"] for letter in ties})
    ties = [str(ties) for ties in rows["tie"]]
    if len(letters) < MAX_LETTERS:
        ties = [" ".join(x if x in ties else " " for x in letters) for ties in ties]
    best = best_of(-_compared(rows, "rank", starts), starts)
    return [
        _numbers("rank", rows["rank"], best, _fixed),
        _interval(rows["rank_low"], rows["rank_high"], _fixed),
        text_column("tie", ties, right=False),
    ]


def _compared(rows: pd.DataFrame, name: str, starts: Sequence[int]) -> pd.Series:
    """Return a column without models ranked last for too few tasks: they cannot be the best."""
    ranked = (rows["tie"] != "").to_numpy()
    if ranked.all():
        return rows[name]
    sizes = np.diff([*starts, len(rows)])
    others = np.repeat(np.logical_or.reduceat(ranked, starts), sizes)
    return rows[name].where(ranked | ~others)


def _ranks(rows: pd.DataFrame, starts: Sequence[int]) -> list[Column]:
    found = _places(rows, starts)
    for name in ("score", "median", "wins", "borda", "elo"):
        if name in rows:
            best = best_of(_compared(rows, name, starts), starts)
            found.append(_numbers(name, rows[name], best, _POINTS.get(name, rounded)))
    if "elo" in rows:
        found.append(_interval(rows["elo_low"], rows["elo_high"], _POINTS["elo"]))
    return found + _front(rows)


def _front(rows: pd.DataFrame) -> list[Column]:
    if "pareto" not in rows:
        return []
    return [text_column("pareto", ("yes" if on else "" for on in rows["pareto"]), right=False)]


def _task(rows: pd.DataFrame, task: str) -> Column:
    up = rows.attrs["higher_is_better"][task]
    lost = rows.attrs.get("cells", {})
    signs = [SIGNS.get(lost.get(model, {}).get(task, ""), "–") for model in rows.index]
    best = best_of(rows[task] if up else -rows[task], [0])
    cells = [_score(*each) for each in zip(rows[task], best, signs, strict=True)]
    label = metric_label(rows.attrs["metrics"][task], up)
    return Column(plain(task), cells, plain(label), part="task")


def _costs(rows: pd.DataFrame) -> list[Column]:
    shown: dict[str, tuple[str, Callable[[float], str]]] = {
        "failed": ("failed", _count),
        "declined": ("n/a", _count),
        "seconds": ("time", duration),
        "memory_mb": ("memory", _memory),
        "dimensions": ("dims", _dimensions),
    }
    there = [name for name in shown if name in rows]
    if "dimensions" in there and rows["dimensions"].isna().all():
        there.remove("dimensions")  # predictors have none
    return [text_column(shown[n][0], map(shown[n][1], rows[n]), part="cost") for n in there]


def text_column(
    name: str, values: Iterable[object], right: bool = True, part: str = "rank"
) -> Column:
    """Return a column of texts."""
    # spaces align the letters of ties
    cells = [Cell(str(v) if name == "tie" else plain(v)) for v in values]
    return Column(name, cells, right=right, part=part)


def _numbers(
    name: str, values: pd.Series, best: np.ndarray, write: Callable[[float], str]
) -> Column:
    pairs = zip(values, best, strict=True)
    return Column(name, [Cell(write(value), bool(is_best)) for value, is_best in pairs])


def _interval(low: pd.Series, high: pd.Series, write: Callable[[float], str]) -> Column:
    pairs = zip(low, high, strict=True)
    texts = ["–" if math.isnan(a) else f"{write(a)} – {write(b)}" for a, b in pairs]
    return Column("95 %", [Cell(text) for text in texts])


def best_of(values: pd.Series, starts: Sequence[int]) -> np.ndarray:
    """Return which values are the highest of their group; groups begin at these rows."""
    numbers = values.to_numpy(dtype=float)
    if not len(numbers):
        return np.zeros(0, dtype=bool)
    sizes = np.diff([*starts, len(numbers)])
    return numbers == np.repeat(np.fmax.reduceat(numbers, starts), sizes)


def _score(value: float, best: bool, sign: str) -> Cell:
    return Cell(sign, faint=True) if math.isnan(value) else Cell(rounded(value), bool(best))


def rounded(value: float) -> str:
    """Return a score with three decimals, or four significant digits."""
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:#.4g}".rstrip(".")


def _fixed(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.1f}"


def _count(value: float) -> str:
    return "0" if pd.isna(value) else f"{value:.0f}"


def duration(value: float) -> str:
    """Format a number of seconds.

    >>> duration(12.34), duration(600), duration(7260)
    ('12.3 s', '10.0 min', '2.0 h')
    """
    if pd.isna(value):
        return "–"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.1f} min" if value < 7200 else f"{value / 3600:,.1f} h"


def _memory(value: float) -> str:
    return "–" if pd.isna(value) else f"{value / 1024:.1f} GB"


def _dimensions(value: float) -> str:
    return "–" if pd.isna(value) else f"{value:,.0f}"


#: formats of points
_POINTS: dict[str, Callable[[float], str]] = {
    "borda": lambda value: "–" if math.isnan(value) else f"{value:,.1f}".removesuffix(".0"),
    "elo": lambda value: "–" if math.isnan(value) else f"{value:,.0f}",
}
