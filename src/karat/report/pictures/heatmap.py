"""Heat map: models × tasks, colored by rank within each task."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.report.notes import SIGNS
from karat.report.pictures.material import PlotData, PlotOptions, cut
from karat.report.pictures.picture import WIDTH, Plot, cut_name, make_figure, name_rows, note
from karat.report.tables import rounded

MAX_MODELS, MAX_TASKS = 40, 40
#: with at most this many columns, scores are written into the cells
MAX_WRITTEN = 12


def heatmap(data: PlotData, options: PlotOptions) -> Plot:
    """Plot one cell per model and task; darker is a better rank."""
    names = list(data.board([]).index)
    models = names[: options.models(MAX_MODELS)]
    tasks = data.tasks[:MAX_TASKS]
    ranks = data.table("rank", models, tasks)
    rivals = np.nanmax(data.table("rank", names, tasks), axis=0, initial=1.0)
    # 1 is the best rank of a task, 0 the worst; undefined for a single model
    share = (rivals - ranks) / np.where(rivals > 1, rivals - 1, np.nan)
    high = (1.4 if len(tasks) <= MAX_WRITTEN else 2.4) + 0.2 * len(models)
    figure, ((axes,),) = make_figure(size=(WIDTH, high))
    from matplotlib import colormaps

    colors = colormaps["cividis_r"].with_extremes(bad="#F2F2F2")
    axes.imshow(np.ma.masked_invalid(share), cmap=colors, vmin=0, vmax=1, aspect="auto")
    name_rows(axes, models)
    _name_columns(axes, data, tasks)
    if len(tasks) <= MAX_WRITTEN and len(models) <= MAX_MODELS:
        _write(axes, data, models, tasks, share)
    axes.spines[:].set_visible(False)
    note(
        figure,
        "Darker cells have a better rank within the task. Models are ordered by mean rank.",
        cut(len(models), len(names), "models"),
        cut(len(tasks), len(data.tasks), "tasks", "first"),
    )
    return Plot(figure, "heat map of ranks within tasks")


def _name_columns(axes: Any, data: PlotData, tasks: list[str]) -> None:
    labels = [f"{cut_name(task, 24)}  {data.label(task)}" for task in tasks]
    turned = 0 if len(tasks) <= 3 else 90 if len(tasks) > MAX_WRITTEN else 40
    side = {"ha": "right", "rotation_mode": "anchor"} if turned else {}
    size = 8 if len(tasks) <= MAX_WRITTEN else 6
    axes.set_xticks(range(len(tasks)), labels, rotation=turned, fontsize=size, **side)
    axes.tick_params(axis="x", length=0)


def _write(
    axes: Any, data: PlotData, models: list[str], tasks: list[str], share: np.ndarray
) -> None:
    """Write the scores into the cells, or a sign for a missing one."""
    scores = data.table("score", models, tasks)
    states = data.table("status", models, tasks)
    for (row, column), score in np.ndenumerate(scores):
        text = SIGNS.get(str(states[row, column]), "–") if np.isnan(score) else rounded(score)
        color = "white" if share[row, column] > 0.5 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=color)
