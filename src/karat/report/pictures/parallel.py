"""Parallel coordinates: a line per model over all tasks, each on its own scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.errors import DataError
from karat.report.pictures.material import Look, Material, cut
from karat.report.pictures.picture import FAINT, WIDTH, Picture, figure_of, said, style_of, tell
from karat.report.tables import rounded

MOST_MODELS, MOST_TASKS = 8, 40
#: so many tasks leave room for the scores at the ends of their scales
MOST_WRITTEN = 10


def parallel(material: Material, look: Look) -> Picture:
    """Draw normalised scores, 1 the best of a task and 0 the worst; the best models in colour."""
    names = list(material.board([]).index)
    values = material.table("normalised", names, material.tasks)
    told = ~np.isnan(values).all(axis=0)
    tasks = [task for task, any_ in zip(material.tasks, told, strict=True) if any_][:MOST_TASKS]
    if len(tasks) < 2:
        raise DataError("parallel coordinates need two tasks on which models differ.")
    values = values[:, told][:, :MOST_TASKS]
    figure, ((axes,),) = figure_of(size=(WIDTH, 4.0 if len(tasks) <= MOST_WRITTEN else 5.0))
    top = look.models(MOST_MODELS)
    for row, name in reversed(list(enumerate(names))):
        colour, dash = style_of(row) if row < top else (FAINT, "-")
        axes.plot(
            range(len(tasks)),
            values[row],
            dash,
            **{"color": colour, "label": said(name), "marker": "o" if row < top else "", "ms": 3},
            **({"lw": 1.5, "zorder": 3} if row < top else {"lw": 0.5, "alpha": 0.5, "zorder": 1}),
        )
    handles = axes.get_lines()[::-1][:top]
    labels = [said(name) for name in names[:top]]
    figure.legend(handles, labels, loc="outside upper left", ncols=4)
    _columns(axes, material, tasks)
    tell(
        figure,
        "1 is the best model of a task, 0 the worst, in the direction of its metric.",
        f"In grey: {len(names) - top} more models." if len(names) > top else "",
        cut(len(tasks), int(told.sum()), "tasks", "first"),
    )
    return Picture(figure, "normalised scores over tasks")


def _columns(axes: Any, material: Material, tasks: list[str]) -> None:
    """Name the tasks below their lines; where there is room, with the scores at both ends."""
    axes.vlines(range(len(tasks)), 0, 1, color="#CCCCCC", lw=0.6, zorder=0)
    scores = material.table("score", material.cells.models, tasks).astype(float)
    labels = []
    for t, task in enumerate(tasks):
        up = material.cells.higher[material.cells.tasks.index(task)]
        ends = np.nanmin(scores[:, t]), np.nanmax(scores[:, t])
        worst, best = ends if up else ends[::-1]
        if len(tasks) <= MOST_WRITTEN:
            for y, score, side in ((0, worst, "top"), (1, best, "bottom")):
                axes.annotate(
                    rounded(score),
                    (t, y),
                    (0, -4 if side == "top" else 4),
                    **{"textcoords": "offset points", "ha": "center", "va": side, "fontsize": 6.5},
                )
        labels.append(f"{said(task, 24)}  {material.label(task)}")
    turned = 30 if len(tasks) <= MOST_WRITTEN else 90
    axes.set_xticks(
        range(len(tasks)), labels, rotation=turned, ha="right", rotation_mode="anchor", fontsize=7
    )
    axes.set_ylabel("normalised score")
    axes.margins(x=0.04, y=0.12)
