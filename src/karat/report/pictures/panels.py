"""Strip and bar plots: scores per fold or their mean, one panel per task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from karat.report.pictures.material import PlotData, PlotOptions, cut
from karat.report.pictures.picture import (
    COLORS,
    WIDTH,
    Plot,
    cut_name,
    make_figure,
    name_rows,
    note,
)
from karat.report.tables import rounded

MAX_MODELS, MAX_TASKS = 20, 9
Draw = Callable[[Any, PlotData, str, list[str]], None]


def strip(data: PlotData, options: PlotOptions) -> Plot:
    """Plot one dot per fold, and the mean over folds as a line."""
    text = "Dots are folds, lines are means over folds."
    return Plot(_panels(data, options, _dots, text), "scores of every fold")


def bars(data: PlotData, options: PlotOptions) -> Plot:
    """Plot the mean over folds with its confidence interval."""
    text = "Bars are means over folds; lines are 95 % t intervals."
    return Plot(_panels(data, options, _means, text), "mean scores")


def _panels(data: PlotData, options: PlotOptions, draw: Draw, text: str) -> Any:
    names = list(data.board([]).index)
    models = names[: options.models(MAX_MODELS)]
    tasks = data.tasks[:MAX_TASKS]
    across = min(3, len(tasks))
    down = -(-len(tasks) // across)
    size = (WIDTH, 0.4 + down * (0.7 + 0.16 * len(models)))
    figure, grid = make_figure(down, across, size=size)
    for axes, task in zip(grid.flat, tasks, strict=False):
        draw(axes, data, task, models)
        axes.set_title(f"{cut_name(task, 22)}  {data.label(task)}", fontsize=8, loc="left")
        name_rows(axes, models)
        axes.tick_params(axis="x", labelsize=7)
        if axes not in grid[:, 0]:
            axes.set_yticklabels([])
        axes.grid(axis="x", color="#DDDDDD", lw=0.6)
        axes.set_axisbelow(True)
    for axes in list(grid.flat)[len(tasks) :]:
        axes.set_visible(False)
    note(
        figure,
        text,
        cut(len(models), len(names), "models"),
        cut(len(tasks), len(data.tasks), "tasks", "first"),
    )
    return figure


def _dots(axes: Any, data: PlotData, task: str, models: list[str]) -> None:
    cells = data.cells
    t = cells.tasks.index(task)
    folds = cells.folds[t] if cells.higher[t] else -cells.folds[t]
    for row, model in enumerate(models):
        values = folds[cells.models.index(model)]
        scores = values[~np.isnan(values)]
        axes.plot(scores, np.full(len(scores), row), "o", color=COLORS[0], ms=3, alpha=0.5, mew=0)
        if len(scores):
            mean = scores.mean()
            axes.plot([mean, mean], [row - 0.35, row + 0.35], color=COLORS[1], lw=1.5)


def _means(axes: Any, data: PlotData, task: str, models: list[str]) -> None:
    table = {
        name: data.table(name, models, [task])[:, 0].astype(float)
        for name in ("score", "score_low", "score_high")
    }
    places = np.arange(len(models))
    bars = axes.barh(places, table["score"], color=COLORS[5], height=0.7)
    axes.hlines(places, table["score_low"], table["score_high"], color="black", lw=0.8)
    texts = ["" if np.isnan(score) else rounded(score) for score in table["score"]]
    ends = np.nan_to_num(np.fmax(table["score"], table["score_high"]))
    for bar, text, end in zip(bars, texts, ends, strict=True):
        y = bar.get_y() + bar.get_height() / 2
        axes.annotate(text, (end, y), (3, 0), textcoords="offset points", fontsize=6.5, va="center")
    axes.margins(x=0.18)
