"""TACO's plots: scores over severity, and confusion matrices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from karat.analysis.robustness import curves
from karat.core.files import safe_name
from karat.core.formatting import rounded
from karat.corruptions.view import CLEAN
from karat.errors import DefinitionError
from karat.ext.compat.taco.result_files import (
    MAIN,
    METRICS,
    OURS,
    PLOT_FORMATS,
    VIEW,
    parse_view,
    view_in_file,
)
from karat.ext.plots.figures import (
    COLORS,
    WIDTH,
    Plot,
    cut_name,
    draw_lines,
    line_style,
    make_figure,
    settings,
)
from karat.metrics.metric import metric_label
from karat.results.importing import direction

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from karat.results.run import Runs


def plot_runs(
    runs: Runs, folder: str | Path, *, shape: str = "png", metric: str | None = None
) -> list[Path]:
    """Write ``<task>_<corruption>_<metric>_curve`` and ``<task>_clean_<metric>_bar`` plots.

    In file names, "+" is ``_plus_`` and the metric has TACO's name, such as ``AUC``. A curve starts
    at severity 0 (clean). The plot of a composition has a point for each of its severities, such as
    0.2+0.1. Bands and bars are standard deviations over folds and draws.
    """
    if shape not in PLOT_FORMATS:
        raise DefinitionError(f'invalid plot format "{shape}": expected "png" or "svg".')
    return _save_plots(curves(runs, metric=metric), folder, shape)


def plot_table(table: pd.DataFrame, folder: str | Path, *, bars: bool = False) -> list[Path]:
    """Write the curves of a metrics table, or the bars of its clean scores.

    A table with several metrics is drawn in its first one.
    """
    metric = str(table["metric"].iloc[0])
    rows = table[table["metric"] == metric].reset_index(drop=True)
    views = [
        parse_view(*pair)
        for pair in zip(rows["corruption"], rows["severity"].map(str), strict=True)
    ]
    declared = direction(OURS.get(metric, metric))
    up = metric not in MAIN["regression"] if declared is None else declared
    part = pd.DataFrame(
        {
            "task": rows["dataset"].map(str),
            "model": rows["model"].map(str),
            "metric": OURS.get(metric, metric),
            "higher_is_better": up,
            "corruption": ["" if view is CLEAN else view.corruption for view in views],
            "severity": [view.severity for view in views],
            "mean": rows["value"].astype(float),
            "std": np.nan,
        }
    )
    if bars:
        return _save_plots(part[part["corruption"] == ""], folder, "png", kinds=("bar",))
    clean = part[part["corruption"] == ""].drop(columns=VIEW)
    pairs = part.loc[part["corruption"] != "", ["task", "corruption"]].drop_duplicates()
    both = pd.concat([clean.merge(pairs.assign(severity=0.0), on="task"), part], ignore_index=True)
    return _save_plots(both[both["corruption"] != ""], folder, "png", kinds=("curve",))


def _save_plots(
    part: pd.DataFrame, folder: str | Path, shape: str, kinds: Sequence[str] = ("bar", "curve")
) -> list[Path]:
    written = []
    with settings():
        Path(folder).mkdir(parents=True, exist_ok=True)
        for (task, name), rows in part.groupby(["task", "metric"], sort=False):
            theirs = METRICS.get(str(name), str(name))
            label = metric_label(theirs, bool(rows["higher_is_better"].iloc[0]))
            for what, figure in _figures(rows, safe_name(theirs), kinds):
                # without y, matplotlib would look for ticks above the axes
                figure.axes[0].set_title(f"{cut_name(task)}   {label}", fontsize=11, y=1.0)
                path = Path(folder) / f"{safe_name(str(task))}_{what}.{shape}"
                Plot(figure).save(path)
                written.append(path)
    return written


def _figures(part: pd.DataFrame, metric: str, kinds: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a task with the last part of their file names."""
    if "bar" in kinds:
        yield f"clean_{metric}_bar", _bars(part)
    if "curve" not in kinds:
        return
    models = [str(model) for model in part["model"].unique()]  # the same color in all plots
    composed = part["corruption"].str.contains("+", regex=False)
    for table in (part[~composed].assign(label=""), _compositions(part[composed])):
        # one figure for all curves: it is laid out once, and their axes have the same place
        figure, ((axes,),) = make_figure(size=(WIDTH, 4))
        legend: Any = None
        for corruption, group in table.groupby("corruption", sort=False):
            name = str(corruption)
            _remove_artists(axes)
            if "+" in name:
                _draw_points(axes, group, models)
            else:
                draw_lines(axes, group, models, "severity")
            axes.set_xlabel(f"severity of {cut_name(name)}")
            wanted = (axes.get_legend_handles_labels()[1], set(group["label"]))
            if wanted != legend:  # a legend takes as long as all lines
                axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
                legend = wanted
            yield f"{safe_name(name.replace('+', '_plus_'))}_{metric}_curve", figure


def _remove_artists(axes: Axes) -> None:
    """Remove what was plotted and keep the ticks, which ``axes.clear()`` would make again."""
    for artist in [*axes.lines, *axes.collections]:
        artist.remove()
    axes.containers.clear()
    axes.relim()


def _compositions(part: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of compositions as ``a+b`` with a label: 0.2+0.1, or clean."""
    pairs = zip(part["corruption"], part["severity"], strict=True)
    views = [view_in_file(*pair) for pair in pairs]
    labels = pd.Series([str(label) for _, label in views], index=part.index, dtype=object)
    labels = labels.mask(part["severity"] == 0, "clean")
    named = part.assign(corruption=[name for name, _ in views], label=labels)
    return named.drop_duplicates(["model", "corruption", "label"])


def _draw_points(axes: Axes, group: pd.DataFrame, models: list[str]) -> None:
    """Plot a point per model and label; with a single label, a line from clean to it."""
    doses = {text: list(map(float, text.split("+"))) for text in set(group["label"]) - {"clean"}}
    labels = ["clean", *sorted(doses, key=doses.__getitem__)]
    line = "o-" if len(doses) == 1 else "o"
    for number, model in enumerate(models):
        points = group[group["model"] == model]
        if len(points):
            axes.errorbar(
                points["label"].map(labels.index),
                points["mean"],
                points["std"].fillna(0.0),
                fmt=line,
                ms=4,
                color=line_style(number)[0],
                label=cut_name(model),
            )
    if labels != [text.get_text() for text in axes.get_xticklabels()]:  # kept for the next pair
        axes.set_xticks(range(len(labels)), labels, rotation=45 if len(labels) > 6 else 0)


def plot_confusions(tables: Mapping[str, pd.DataFrame | str], folder: str | Path) -> list[Path]:
    """Write ``<dataset>_<model>_clean_confusion.png`` for each confusion matrix on clean data."""
    written = []
    with settings():
        for table in tables.values():
            if isinstance(table, str) or "count" not in table:
                continue
            clean = table[table["corruption"] == "clean"]
            for (dataset, model), part in clean.groupby(["dataset", "model"], sort=False):
                stem = f"{safe_name(str(dataset))}_{safe_name(str(model))}"
                path = Path(folder) / f"{stem}_clean_confusion.png"
                Plot(_matrix(part, f"{cut_name(dataset)}   {cut_name(model)}")).save(path)
                written.append(path)
    return written


def _matrix(part: pd.DataFrame, title: str) -> Any:
    labels = sorted({*part["truth"], *part["prediction"]})
    counts = part.pivot(index="truth", columns="prediction", values="count")
    counts = counts.reindex(index=labels, columns=labels).fillna(0).astype(int)
    size = max(3.0, 1.5 + 0.4 * len(labels))
    figure, ((axes,),) = make_figure(size=(size, size))
    axes.imshow(counts, cmap="Blues")
    axes.set_xticks(range(len(labels)), [cut_name(label) for label in labels])
    axes.set_yticks(range(len(labels)), [cut_name(label) for label in labels])
    for (row, column), count in np.ndenumerate(counts.to_numpy()):
        dark = count > counts.to_numpy().max() / 2
        axes.text(column, row, count, ha="center", va="center", color="white" if dark else "black")
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(title, fontsize=11, y=1.0)
    return figure


def _bars(part: pd.DataFrame) -> Any:
    clean = part[part["severity"] == 0].drop_duplicates("model")
    figure, ((axes,),) = make_figure(size=(WIDTH, 1.2 + 0.35 * len(clean)))
    bars = axes.barh(range(len(clean)), clean["mean"], color=COLORS[0])
    axes.set_yticks(range(len(clean)), [cut_name(model) for model in clean["model"]])
    axes.bar_label(bars, list(map(rounded, clean["mean"])), padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("clean")
    return figure
