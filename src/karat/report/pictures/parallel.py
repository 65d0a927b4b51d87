"""Parallel coordinates: one line per model over all tasks, each on its own scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.errors import DataError
from karat.report.pictures.material import PlotData, PlotOptions, cut
from karat.report.pictures.picture import (
    FAINT,
    WIDTH,
    Plot,
    cut_name,
    line_style,
    make_figure,
    note,
)
from karat.report.tables import rounded

MAX_MODELS, MAX_TASKS = 8, 40
#: with at most this many tasks, scores are written at the ends of the scales
MAX_WRITTEN = 10


def parallel(data: PlotData, options: PlotOptions) -> Plot:
    """Plot normalized scores (1 is the best of a task, 0 the worst); the best models in color."""
    names = list(data.board([]).index)
    values = data.table("normalised", names, data.tasks)
    scored = ~np.isnan(values).all(axis=0)
    tasks = [task for task, any_ in zip(data.tasks, scored, strict=True) if any_][:MAX_TASKS]
    if len(tasks) < 2:
        raise DataError("parallel coordinates need at least two tasks on which models differ.")
    values = values[:, scored][:, :MAX_TASKS]
    figure, ((axes,),) = make_figure(size=(WIDTH, 4.0 if len(tasks) <= MAX_WRITTEN else 5.0))
    top = options.models(MAX_MODELS)
    for row, name in reversed(list(enumerate(names))):
        color, dash = line_style(row) if row < top else (FAINT, "-")
        style = {"color": color, "label": cut_name(name), "lw": 0.5, "alpha": 0.5, "zorder": 1}
        if row < top:
            style |= {"marker": "o", "ms": 3, "lw": 1.5, "alpha": 1.0, "zorder": 3}
        axes.plot(range(len(tasks)), values[row], dash, **style)
    handles = axes.get_lines()[::-1][:top]
    labels = [cut_name(name) for name in names[:top]]
    figure.legend(handles, labels, loc="outside upper left", ncols=4)
    _columns(axes, data, tasks)
    note(
        figure,
        "1 is the best model of a task, 0 the worst.",
        f"Gray: {len(names) - top} more models." if len(names) > top else "",
        cut(len(tasks), int(scored.sum()), "tasks", "first"),
    )
    return Plot(figure, "normalized scores over tasks")


def _columns(axes: Any, data: PlotData, tasks: list[str]) -> None:
    """Label the tasks, with the scores at both ends if there is room."""
    axes.vlines(range(len(tasks)), 0, 1, color="#CCCCCC", lw=0.6, zorder=0)
    scores = data.table("score", data.cells.models, tasks).astype(float)
    labels = []
    for t, task in enumerate(tasks):
        up = data.cells.higher[data.cells.tasks.index(task)]
        ends = np.nanmin(scores[:, t]), np.nanmax(scores[:, t])
        worst, best = ends if up else ends[::-1]
        if len(tasks) <= MAX_WRITTEN:
            for y, score, side in ((0, worst, "top"), (1, best, "bottom")):
                axes.annotate(
                    rounded(score),
                    (t, y),
                    (0, -4 if side == "top" else 4),
                    **{"textcoords": "offset points", "ha": "center", "va": side, "fontsize": 6.5},
                )
        labels.append(f"{cut_name(task, 24)}  {data.label(task)}")
    turned = 30 if len(tasks) <= MAX_WRITTEN else 90
    axes.set_xticks(
        range(len(tasks)), labels, rotation=turned, ha="right", rotation_mode="anchor", fontsize=7
    )
    axes.set_ylabel("normalized score")
    axes.margins(x=0.04, y=0.12)
