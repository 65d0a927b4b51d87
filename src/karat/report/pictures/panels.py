"""Strip and bars: the scores of a task, fold by fold or their mean, a panel per task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from karat.report.pictures.material import Look, Material, cut
from karat.report.pictures.picture import COLOURS, WIDTH, Picture, figure_of, name_rows, said, tell
from karat.report.tables import rounded

MOST_MODELS, MOST_TASKS = 20, 9
Draw = Callable[[Any, Material, str, list[str]], None]


def strip(material: Material, look: Look) -> Picture:
    """Draw a dot per fold, and the mean over folds as a line."""
    note = "A dot is a fold, a line the mean over folds."
    return Picture(_panels(material, look, _dots, note), "scores of every fold")


def bars(material: Material, look: Look) -> Picture:
    """Draw the mean over folds, with the interval of the board by task."""
    note = "Bars are means over folds; lines are their 95 % t intervals."
    return Picture(_panels(material, look, _means, note), "mean scores")


def _panels(material: Material, look: Look, draw: Draw, note: str) -> Any:
    names = list(material.board([]).index)
    models = names[: look.models(MOST_MODELS)]
    tasks = material.tasks[:MOST_TASKS]
    across = min(3, len(tasks))
    down = -(-len(tasks) // across)
    size = (WIDTH, 0.4 + down * (0.7 + 0.16 * len(models)))
    figure, grid = figure_of(down, across, size=size)
    for axes, task in zip(grid.flat, tasks, strict=False):
        draw(axes, material, task, models)
        axes.set_title(f"{said(task, 22)}  {material.label(task)}", fontsize=8, loc="left")
        name_rows(axes, models)
        axes.tick_params(axis="x", labelsize=7)
        if axes not in grid[:, 0]:
            axes.set_yticklabels([])
        axes.grid(axis="x", color="#DDDDDD", lw=0.6)
        axes.set_axisbelow(True)
    for axes in list(grid.flat)[len(tasks) :]:
        axes.set_visible(False)
    tell(
        figure,
        note,
        cut(len(models), len(names), "models"),
        cut(len(tasks), len(material.tasks), "tasks", "first"),
    )
    return figure


def _dots(axes: Any, material: Material, task: str, models: list[str]) -> None:
    cells = material.cells
    t = cells.tasks.index(task)
    folds = cells.folds[t] if cells.higher[t] else -cells.folds[t]
    for row, model in enumerate(models):
        values = folds[cells.models.index(model)]
        known = values[~np.isnan(values)]
        axes.plot(known, np.full(len(known), row), "o", color=COLOURS[0], ms=3, alpha=0.5, mew=0)
        if len(known):
            mean = known.mean()
            axes.plot([mean, mean], [row - 0.35, row + 0.35], color=COLOURS[1], lw=1.5)


def _means(axes: Any, material: Material, task: str, models: list[str]) -> None:
    table = {
        name: material.table(name, models, [task])[:, 0].astype(float)
        for name in ("score", "score_low", "score_high")
    }
    places = np.arange(len(models))
    bars = axes.barh(places, table["score"], color=COLOURS[5], height=0.7)
    axes.hlines(places, table["score_low"], table["score_high"], color="black", lw=0.8)
    texts = ["" if np.isnan(score) else rounded(score) for score in table["score"]]
    ends = np.nan_to_num(np.fmax(table["score"], table["score_high"]))
    for bar, text, end in zip(bars, texts, ends, strict=True):
        y = bar.get_y() + bar.get_height() / 2
        axes.annotate(text, (end, y), (3, 0), textcoords="offset points", fontsize=6.5, va="center")
    axes.margins(x=0.18)
