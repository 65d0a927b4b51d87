"""Heat map: models × tasks, coloured by rank within a task, with the scores where there is room."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.report.notes import SIGNS
from karat.report.pictures.material import Look, Material, cut
from karat.report.pictures.picture import WIDTH, Picture, figure_of, name_rows, said, tell
from karat.report.tables import rounded

MOST_MODELS, MOST_TASKS = 40, 40
#: so many columns leave room for the scores themselves
MOST_WRITTEN = 12


def heatmap(material: Material, look: Look) -> Picture:
    """Draw a cell per model and task: the better its rank there, the darker."""
    names = list(material.board([]).index)
    models = names[: look.models(MOST_MODELS)]
    tasks = material.tasks[:MOST_TASKS]
    ranks = material.table("rank", models, tasks)
    rivals = np.nanmax(material.table("rank", names, tasks), axis=0, initial=1.0)
    # 1 is the best of a task, 0 the last; one model alone on a task is neither
    share = (rivals - ranks) / np.where(rivals > 1, rivals - 1, np.nan)
    high = (1.4 if len(tasks) <= MOST_WRITTEN else 2.4) + 0.2 * len(models)
    figure, ((axes,),) = figure_of(size=(WIDTH, high))
    from matplotlib import colormaps

    colours = colormaps["cividis_r"].with_extremes(bad="#F2F2F2")
    axes.imshow(np.ma.masked_invalid(share), cmap=colours, vmin=0, vmax=1, aspect="auto")
    name_rows(axes, models)
    _name_columns(axes, material, tasks)
    if len(tasks) <= MOST_WRITTEN and len(models) <= MOST_MODELS:
        _write(axes, material, models, tasks, share)
    axes.spines[:].set_visible(False)
    tell(
        figure,
        "Darker is a better rank within the task; models in the order of their mean rank.",
        cut(len(models), len(names), "models"),
        cut(len(tasks), len(material.tasks), "tasks", "first"),
    )
    return Picture(figure, "heat map of ranks within tasks")


def _name_columns(axes: Any, material: Material, tasks: list[str]) -> None:
    labels = [f"{said(task, 24)}  {material.label(task)}" for task in tasks]
    turned = 0 if len(tasks) <= 3 else 90 if len(tasks) > MOST_WRITTEN else 40
    side = {"ha": "right", "rotation_mode": "anchor"} if turned else {}
    size = 8 if len(tasks) <= MOST_WRITTEN else 6
    axes.set_xticks(range(len(tasks)), labels, rotation=turned, fontsize=size, **side)
    axes.tick_params(axis="x", length=0)


def _write(
    axes: Any, material: Material, models: list[str], tasks: list[str], share: np.ndarray
) -> None:
    """Write the scores into the cells, and why one is missing."""
    scores = material.table("score", models, tasks)
    states = material.table("status", models, tasks)
    for (row, column), score in np.ndenumerate(scores):
        text = SIGNS.get(str(states[row, column]), "–") if np.isnan(score) else rounded(score)
        colour = "white" if share[row, column] > 0.5 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
