"""The plot of the cheapest model: differences to the reference over a cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DefinitionError
from karat.ext.decide.cheapest import MARGIN, ModelDifferences
from karat.ext.plots.figures import (
    COSTS,
    FAINT,
    MAX_NAMED,
    SIZE,
    Plot,
    PlotData,
    PlotOptions,
    cut,
    cut_name,
    label_points,
    line_style,
    logarithmic,
    make_figure,
    note,
)


def cheapest(data: PlotData, options: PlotOptions) -> Plot:
    """Plot differences to the reference over a cost, with intervals and the margin as a band."""
    if data.wanted is not None:
        raise DefinitionError("cheapest plots all tasks of the models; leave out the tasks.")
    compared = ModelDifferences(data.runs, None, data.pool, data.given.models)
    answer = compared.cheapest(options.value or "bytes", MARGIN)
    drawable = answer.models[(answer.models["cost"] > 0) & (answer.models["tasks"] > 0)]
    every = drawable.assign(gain=drawable["difference"].fillna(0.0)).set_index("model")
    best = every.sort_values("gain", ascending=False, kind="stable")
    rows = best.head(options.models(len(best)))
    figure, ((axes,),) = make_figure(size=SIZE)
    axes.axhspan(-answer.margin, answer.margin, color=FAINT, alpha=0.3, lw=0, gid="margin")
    leading = _draw_variants(axes, rows)
    logarithmic(axes)
    named = rows if len(rows) <= MAX_NAMED else rows.loc[leading]
    short = named.rename(lambda name: _own_name(name, rows.at[name, "base"]))
    label_points(axes, short, "cost", "gain")
    axes.margins(x=0.12, y=0.1)
    axes.set_xlabel(COSTS.get(answer.cost, answer.cost))
    axes.set_ylabel("difference to the reference")
    band = f"The band is {answer.margin:g} around {cut_name(answer.reference)}, the reference."
    note(
        figure,
        f"Bars are 95 % intervals; lines join variants that beat all cheaper ones. {band}",
        cut(len(rows), len(every), "models"),
    )
    return Plot(figure, f"difference to {cut_name(answer.reference)} against {answer.cost}")


def _draw_variants(axes: Any, rows: pd.DataFrame) -> list[str]:
    """Draw points with intervals and a line per base; return the models on the lines."""
    leading: list[str] = []
    for number, (_, variants) in enumerate(rows.sort_values("cost").groupby("base", sort=False)):
        color, dash = line_style(number)
        low, high = (
            variants["gain"] - variants["difference_low"],
            variants["difference_high"] - variants["gain"],
        )
        bars = np.nan_to_num(np.array([low, high], dtype=float))
        axes.errorbar(variants["cost"], variants["gain"], bars, fmt="o", ms=4, lw=0.8, color=color)
        front = variants[variants["gain"] >= variants["gain"].cummax()]
        axes.plot(front["cost"], front["gain"], dash, color=color, lw=1)
        leading += list(front.index)
    return leading


def _own_name(model: str, base: str) -> str:
    """Return the name of a variant without its base.

    >>> _own_name("minilm@64d", "minilm"), _own_name("minilm", "minilm")
    ('@64d', 'minilm')
    """
    return model.removeprefix(base) if model.startswith(f"{base}@") else model
