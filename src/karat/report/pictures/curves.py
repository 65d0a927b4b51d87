"""Curves: scores over the severity of a corruption, or over the epochs of training."""

from __future__ import annotations

from typing import Any

import pandas as pd

from karat.errors import DataError, DefinitionError, did_you_mean
from karat.report.pictures.material import Look, Material, cut
from karat.report.pictures.picture import WIDTH, Picture, figure_of, said, style_of, tell
from karat.report.tables import metric_label
from karat.results.epochs import learning_curves
from karat.results.robustness import curves as severity_curves

MOST_MODELS, MOST_PANELS = 8, 9
OVER = ("severity", "epoch")


def curves(material: Material, look: Look) -> Picture:
    """Draw a line per model, a panel per task and corruption, or per task and metric of training.

    Bands are one standard deviation over folds and draws.
    """
    over = look.value or _whichever(material)
    if over not in OVER:
        hint = did_you_mean(over, OVER)
        raise DefinitionError(f'curves go over "severity" or "epoch", not "{over}".{hint}')
    table = _by_severity(material) if over == "severity" else _by_epoch(material)
    names = [name for name in material.board([]).index if name in set(table["model"])]
    models = names[: look.models(MOST_MODELS)]
    keys = ["task", "what", "metric"]
    panels = list(table[table["model"].isin(models)].groupby(keys, sort=False))
    across = min(3, len(panels))
    down = -(-min(len(panels), MOST_PANELS) // across)
    figure, grid = figure_of(down, across, size=(WIDTH, 0.9 + 1.8 * down))
    for axes, (_, rows) in zip(grid.flat, panels, strict=False):
        draw_lines(axes, rows, models, over)
        axes.set_title(_title(rows), fontsize=8, loc="left")
        axes.set_xlabel(over, fontsize=8)
        axes.tick_params(labelsize=7)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    handles = _handles(models)
    figure.legend(handles, [said(m) for m in models], loc="outside upper left", ncols=4)
    tell(
        figure,
        "Bands are one standard deviation over folds and draws.",
        cut(len(models), len(names), "models"),
        cut(min(len(panels), MOST_PANELS), len(panels), "panels", "first"),
    )
    return Picture(figure, f"curves over {over}")


def _title(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    label = str(first["metric"])
    if "higher_is_better" in rows:
        label = metric_label(label, bool(first["higher_is_better"]))
    what = f": {said(first['what'], 20)}" if first["what"] else ""
    return f"{said(first['task'], 18)}{what}  {said(label)}"


def draw_lines(axes: Any, rows: pd.DataFrame, models: list[str], over: str) -> None:
    """Draw the line and the band of every model that has one."""
    for place, model in enumerate(models):
        line = rows[rows["model"] == model]
        if not len(line):
            continue
        colour, dash = style_of(place)
        spread = line["std"].fillna(0.0)
        axes.plot(line[over], line["mean"], dash, marker="o", ms=3, color=colour, label=said(model))
        band = (line["mean"] - spread, line["mean"] + spread)
        axes.fill_between(line[over], *band, color=colour, alpha=0.15, linewidth=0)


def _handles(models: list[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    styles: Any = [style_of(place) for place in range(len(models))]
    return [Line2D([], [], color=c, linestyle=d, marker="o", ms=3) for c, d in styles]


def _by_severity(material: Material) -> pd.DataFrame:
    if material.wanted is None:
        table = severity_curves(material.runs)
    else:
        metrics = material.given.metrics
        found = {name: severity_curves(material.runs, metric=name) for name in metrics.values()}
        table = pd.concat([found[m][found[m]["task"] == task] for task, m in metrics.items()])
    table = _of_tasks(table, material)
    # a composition at one severity has no curve
    seen = table.groupby(["task", "corruption"])["severity"].transform("nunique")
    table = table[(seen > 2) | ~table["corruption"].str.contains("+", regex=False)]
    return table.assign(what=table["corruption"])


def _by_epoch(material: Material) -> pd.DataFrame:
    table = learning_curves(material.runs)
    if not len(table):
        raise DataError("no run has a corrupted view, and none tells of epochs of training.")
    return _of_tasks(table, material).assign(what="")


def _of_tasks(table: pd.DataFrame, material: Material) -> pd.DataFrame:
    table = table[table["task"].isin(material.tasks)]
    if not len(table):
        raise DataError("the tasks that were named have no curves.")
    return table


def _whichever(material: Material) -> str:
    """Return what the runs can be drawn over: severities come first."""
    try:
        severity_curves(material.runs)
    except DataError:
        return "epoch"
    return "severity"
