"""Plots of ``karat export``: curves over severities and bars of clean scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import DefinitionError
from karat.report.pictures.curves import draw_lines
from karat.report.pictures.picture import COLORS, WIDTH, Plot, cut_name, make_figure, settings
from karat.report.tables import metric_label, rounded
from karat.results.files import safe_name
from karat.results.robustness import curves

SHAPES = ("png", "svg")


def plot_runs(
    runs: Any, folder: str | Path, *, shape: str = "png", metric: str | None = None
) -> list[Path]:
    """Write ``<task>_<corruption>_<metric>_curve`` and ``<task>_clean_<metric>_bar`` plots.

    A curve starts at severity 0 (clean); bands are standard deviations over folds and draws. A
    composition with a single severity has no curve.
    """
    if shape not in SHAPES:
        raise DefinitionError(f'invalid plot format "{shape}": expected "png" or "svg".')
    written = []
    with settings():
        found = curves(runs, metric=metric)
        Path(folder).mkdir(parents=True, exist_ok=True)
        for (task, name), part in found.groupby(["task", "metric"], sort=False):
            label = metric_label(str(name), bool(part["higher_is_better"].iloc[0]))
            for what, figure in _figures(part, safe_name(str(name))):
                figure.axes[0].set_title(f"{cut_name(task)}   {label}", fontsize=11)
                path = Path(folder) / f"{safe_name(str(task))}_{what}.{shape}"
                Plot(figure).save(path)
                written.append(path)
    return written


def _figures(part: pd.DataFrame, metric: str) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a task with the last part of their file names."""
    yield f"clean_{metric}_bar", _bars(part)
    models = [str(model) for model in part["model"].unique()]  # the same color in all plots
    for corruption, rows in part.groupby("corruption", sort=False):
        name = str(corruption)
        if "+" not in name or rows["severity"].nunique() > 2:
            figure, ((axes,),) = make_figure(size=(WIDTH, 4))
            draw_lines(axes, rows, models, "severity")
            axes.set_xlabel(f"severity of {cut_name(name)}")
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
            yield f"{safe_name(name.replace('+', '_plus_'))}_{metric}_curve", figure


def _bars(part: pd.DataFrame) -> Any:
    clean = part[part["severity"] == 0].drop_duplicates("model")
    figure, ((axes,),) = make_figure(size=(WIDTH, 1.2 + 0.35 * len(clean)))
    bars = axes.barh(range(len(clean)), clean["mean"], color=COLORS[0])
    axes.set_yticks(range(len(clean)), [cut_name(model) for model in clean["model"]])
    axes.bar_label(bars, list(map(rounded, clean["mean"])), padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("clean")
    return figure
