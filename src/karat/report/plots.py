"""Pictures of corruption: a curve per model over severities, and bars of clean scores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import DefinitionError, MissingExtra
from karat.report.tables import metric_label, rounded
from karat.results.files import safe_name
from karat.results.robustness import curves

#: told apart by people who see few colours, and in print
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
DASHES = ("-", "--", "-.", ":")
SHAPES = ("png", "svg")


def plot_runs(
    runs: Any, folder: str | Path, *, shape: str = "png", metric: str | None = None
) -> list[Path]:
    """Write ``<task>_<corruption>_<metric>_curve`` and ``<task>_clean_<metric>_bar`` pictures.

    A curve begins at severity 0, which is clean; bands are the standard deviation over folds and
    draws, where there are several. A composition at one severity has no curve.
    """
    if shape not in SHAPES:
        raise DefinitionError(f'a picture is "png" or "svg", not "{shape}".')
    try:
        from matplotlib import rc_context
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots") from error
    found = curves(runs, metric=metric)
    Path(folder).mkdir(parents=True, exist_ok=True)
    # no date inside and no random names, so that the same scores make the same bytes
    hidden: Any = {"Date": None} if shape == "svg" else {"Software": None}
    written = []
    for (task, name), part in found.groupby(["task", "metric"], sort=False):
        label = metric_label(str(name), bool(part["higher_is_better"].iloc[0]))
        for what, figure in _pictures(part, safe_name(str(name))):
            figure.axes[0].set_title(f"{_said(task)}   {_said(label)}", fontsize=11)
            path = Path(folder) / f"{safe_name(str(task))}_{what}.{shape}"
            with rc_context({"svg.hashsalt": "karat", "svg.fonttype": "none"}):
                figure.savefig(path, dpi=150, bbox_inches="tight", metadata=hidden)
            written.append(path)
    return written


def _pictures(part: pd.DataFrame, metric: str) -> Iterator[tuple[str, Any]]:
    """Yield the pictures of a task, each under what it shows."""
    yield f"clean_{metric}_bar", _bars(part)
    # a model has one colour in all pictures
    colours = {model: i for i, model in enumerate(part["model"].unique())}
    for corruption, rows in part.groupby("corruption", sort=False):
        name = str(corruption)
        if "+" not in name or rows["severity"].nunique() > 2:
            what = safe_name(name.replace("+", "_plus_"))
            yield f"{what}_{metric}_curve", _lines(rows, colours)


def _lines(rows: pd.DataFrame, colours: dict[str, int]) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4))
    axes = figure.add_subplot()
    for model, line in rows.groupby("model", sort=False):
        i = colours[str(model)]
        colour, dash = COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]
        axes.plot(
            line["severity"], line["mean"], dash, marker="o", color=colour, label=_said(model)
        )
        spread = line["std"].fillna(0.0)
        band = (line["mean"] - spread, line["mean"] + spread)
        axes.fill_between(line["severity"], *band, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel(f"severity of {_said(rows['corruption'].iloc[0])}")
    axes.legend(frameon=False, fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return _plain(figure, axes)


def _bars(part: pd.DataFrame) -> Any:
    from matplotlib.figure import Figure

    clean = part[part["severity"] == 0].drop_duplicates("model")
    figure = Figure(figsize=(7, 1.2 + 0.35 * len(clean)))
    axes = figure.add_subplot()
    bars = axes.barh(range(len(clean)), clean["mean"], color=COLOURS[0])
    axes.set_yticks(range(len(clean)), [_said(model) for model in clean["model"]])
    axes.bar_label(bars, list(map(rounded, clean["mean"])), padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("clean")
    return _plain(figure, axes)


def _plain(figure: Any, axes: Any) -> Any:
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _said(name: object) -> str:
    # a dollar begins a formula, and a name with a leading underscore is left out of the legend
    return " " * str(name).startswith("_") + str(name).replace("$", r"\$")
