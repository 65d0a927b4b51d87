"""Pareto plot: mean rank against cost, with the Pareto front."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError
from karat.report.pictures.material import PlotData, PlotOptions, cut
from karat.report.pictures.picture import COLORS, FAINT, WIDTH, Plot, cut_name, make_figure, note
from karat.results.pareto import pareto as front_of

#: with more models than this, only those of the front are labeled
MAX_NAMED = 15
SIZE = (WIDTH, 4.2)
COSTS = {"seconds": "time, seconds", "memory_mb": "highest memory, MB"}


def pareto(data: PlotData, options: PlotOptions) -> Plot:
    """Plot mean rank over a cost; the front is the column ``pareto`` of the leaderboard."""
    cost = options.value or "seconds"
    board = data.board(["costs", *([] if cost in COSTS else [cost]), f"pareto:{cost}"])
    complete = board[board[cost].notna() & board["rank"].notna()]
    if not len(complete):
        raise DataError(f"nothing to plot: no model has both a rank and {cost}.")
    rows = complete.iloc[: options.models(len(complete))]
    rows = rows.assign(pareto=front_of(rows, cost)) if len(rows) < len(complete) else rows
    figure, ((axes,),) = make_figure(size=SIZE)
    front = rows[rows["pareto"]].sort_values(cost)
    others = rows[~rows["pareto"]]
    axes.plot(others[cost], others["rank"], "o", color=FAINT, ms=4, gid="others")
    axes.step(front[cost], front["rank"], where="post", color=COLORS[1], lw=1)
    axes.plot(front[cost], front["rank"], "D", color=COLORS[1], ms=5, gid="front")
    if (rows[cost] > 0).all() and rows[cost].max() > 20 * rows[cost].min():
        _logarithmic(axes)
    _names(axes, rows if len(rows) <= MAX_NAMED else front, cost)
    axes.margins(x=0.12, y=0.1)
    axes.invert_yaxis()
    axes.set_xlabel(COSTS.get(cost, cut_name(cost)))
    axes.set_ylabel("mean rank, 1 is best")
    uneven = "Costs are those of the tasks of each model; models have different tasks."
    note(
        figure,
        "Models on the line: no other model is at least as good at the same or a lower cost.",
        uneven if board.attrs["uneven"] else "",
        cut(len(rows), len(complete), "models"),
    )
    return Plot(figure, f"mean rank against {COSTS.get(cost, cost)}")


def _logarithmic(axes: Any) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    # matplotlib would write powers of ten as formulas
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))


def _names(axes: Any, rows: pd.DataFrame, cost: str) -> None:
    """Label points, each on a side where its label overlaps no other (in inches)."""
    scale = np.log10 if axes.get_xscale() == "log" else np.asarray
    x, y = _inches(scale(rows[cost]), SIZE[0]), _inches(-rows["rank"].to_numpy(), SIZE[1])
    taken: list[tuple[float, float, float, float]] = []
    for place, name in enumerate(rows.index):
        width = 0.062 * len(cut_name(name))
        sides = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
        boxes = [_box(x[place], y[place], width, side) for side in sides]
        free = [not any(_overlap(box, other) for other in taken) for box in boxes]
        chosen = free.index(True) if any(free) else 0
        taken.append(boxes[chosen])
        right, up = sides[chosen]
        axes.annotate(
            cut_name(name),
            (rows[cost].iloc[place], rows["rank"].iloc[place]),
            (4 * right, 3 * up),
            **{"textcoords": "offset points", "fontsize": 7, "color": "#333333"},
            ha="left" if right > 0 else "right",
            va="bottom" if up > 0 else "top",
        )


def _inches(values: Any, length: float) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    spread = np.ptp(numbers)
    return (numbers - numbers.min()) / (spread if spread > 0 else 1) * length * 0.75


def _box(
    x: float, y: float, width: float, side: tuple[int, int]
) -> tuple[float, float, float, float]:
    left, low = (x if side[0] > 0 else x - width), (y if side[1] > 0 else y - 0.13)
    return left, low, left + width, low + 0.13


def _overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
    return not apart
