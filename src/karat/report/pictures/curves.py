"""Curves of scores over the severity of a corruption or over training epochs."""

from __future__ import annotations

from typing import Any

import pandas as pd

from karat.errors import DataError, DefinitionError, did_you_mean
from karat.report.pictures.material import PlotData, PlotOptions, cut
from karat.report.pictures.picture import WIDTH, Plot, cut_name, line_style, make_figure, note
from karat.report.tables import metric_label
from karat.results.epochs import learning_curves
from karat.results.robustness import curves as severity_curves

MAX_MODELS, MAX_PANELS = 8, 9
OVER = ("severity", "epoch")


def curves(data: PlotData, options: PlotOptions) -> Plot:
    """Plot one line per model, one panel per task and corruption (or per task and metric).

    Bands are one standard deviation over folds and draws.
    """
    over = options.value or _default_axis(data)
    if over not in OVER:
        hint = did_you_mean(over, OVER)
        raise DefinitionError(f'invalid value "{over}": expected "severity" or "epoch".{hint}')
    table = _by_severity(data) if over == "severity" else _by_epoch(data)
    names = [name for name in data.board([]).index if name in set(table["model"])]
    models = names[: options.models(MAX_MODELS)]
    keys = ["task", "what", "metric"]
    panels = list(table[table["model"].isin(models)].groupby(keys, sort=False))
    across = min(3, len(panels))
    down = -(-min(len(panels), MAX_PANELS) // across)
    figure, grid = make_figure(down, across, size=(WIDTH, 0.9 + 1.8 * down))
    for axes, (_, rows) in zip(grid.flat, panels, strict=False):
        draw_lines(axes, rows, models, over)
        axes.set_title(_title(rows), fontsize=8, loc="left")
        axes.set_xlabel(over, fontsize=8)
        axes.tick_params(labelsize=7)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_visible(False)
    handles = _handles(models)
    figure.legend(handles, [cut_name(m) for m in models], loc="outside upper left", ncols=4)
    note(
        figure,
        "Bands are one standard deviation over folds and draws.",
        cut(len(models), len(names), "models"),
        cut(min(len(panels), MAX_PANELS), len(panels), "panels", "first"),
    )
    return Plot(figure, f"curves over {over}")


def _title(rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    label = str(first["metric"])
    if "higher_is_better" in rows:
        label = metric_label(label, bool(first["higher_is_better"]))
    what = f": {cut_name(first['what'], 20)}" if first["what"] else ""
    return f"{cut_name(first['task'], 18)}{what}  {cut_name(label)}"


def draw_lines(axes: Any, rows: pd.DataFrame, models: list[str], over: str) -> None:
    """Plot the line and the band of every model."""
    for place, model in enumerate(models):
        line = rows[rows["model"] == model]
        if not len(line):
            continue
        color, dash = line_style(place)
        spread = line["std"].fillna(0.0)
        axes.plot(
            line[over], line["mean"], dash, marker="o", ms=3, color=color, label=cut_name(model)
        )
        band = (line["mean"] - spread, line["mean"] + spread)
        axes.fill_between(line[over], *band, color=color, alpha=0.15, linewidth=0)


def _handles(models: list[str]) -> list[Any]:
    from matplotlib.lines import Line2D

    styles: Any = [line_style(place) for place in range(len(models))]
    return [Line2D([], [], color=c, linestyle=d, marker="o", ms=3) for c, d in styles]


def _by_severity(data: PlotData) -> pd.DataFrame:
    if data.wanted is None:
        table = severity_curves(data.runs)
    else:
        metrics = data.given.metrics
        found = {name: severity_curves(data.runs, metric=name) for name in metrics.values()}
        table = pd.concat([found[m][found[m]["task"] == task] for task, m in metrics.items()])
    table = _of_tasks(table, data)
    # a composition with a single severity has no curve
    seen = table.groupby(["task", "corruption"])["severity"].transform("nunique")
    table = table[(seen > 2) | ~table["corruption"].str.contains("+", regex=False)]
    return table.assign(what=table["corruption"])


def _by_epoch(data: PlotData) -> pd.DataFrame:
    table = learning_curves(data.runs)
    if not len(table):
        raise DataError("nothing to plot: the runs have no corrupted views and no training epochs.")
    return _of_tasks(table, data).assign(what="")


def _of_tasks(table: pd.DataFrame, data: PlotData) -> pd.DataFrame:
    table = table[table["task"].isin(data.tasks)]
    if not len(table):
        raise DataError("the selected tasks have no curves.")
    return table


def _default_axis(data: PlotData) -> str:
    """Return "severity" if the runs have corrupted views, else "epoch"."""
    try:
        severity_curves(data.runs)
    except DataError:
        return "epoch"
    return "severity"
