"""Plot of a leaderboard: a rating of each model with its interval and ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.errors import DefinitionError, did_you_mean
from karat.report.pictures.material import PlotData, PlotOptions, cut
from karat.report.pictures.picture import COLORS, FAINT, WIDTH, Plot, make_figure, name_rows, note

#: ratings and their axis labels
RATINGS = {
    "rank": "mean rank, 1 is best",
    "elo": "Elo",
    "borda": "Borda points",
    "wins": "win rate",
    "score": "normalized score, mean",
    "median": "normalized score, median",
}
MAX_MODELS = 40


def board(data: PlotData, options: PlotOptions) -> Plot:
    """Plot one row per model: its rating, the 95 % interval and the letters of ties."""
    value = options.value or "rank"
    if value not in RATINGS:
        names, hint = ", ".join(RATINGS), did_you_mean(value, RATINGS)
        raise DefinitionError(f'invalid value "{value}": expected one of {names}.{hint}')
    whole = data.board([] if value == "rank" else [value])
    shown = whole[whole[value].notna()]
    ordered = shown if value == "rank" else shown.sort_values(value, ascending=False, kind="stable")
    rows = ordered.iloc[: options.models(MAX_MODELS)]
    figure, ((axes,),) = make_figure(size=(WIDTH, 0.9 + 0.2 * len(rows)))
    places = np.arange(len(rows))
    # models with too few tasks to compare are gray
    colors = [COLORS[0] if tie else FAINT for tie in rows["tie"]]
    if f"{value}_low" in rows:
        axes.hlines(places, rows[f"{value}_low"], rows[f"{value}_high"], color=colors, lw=1.5)
    axes.scatter(rows[value], places, c=colors, s=16, zorder=3)
    name_rows(axes, list(rows.index))
    _letters(axes, list(rows["tie"]))
    axes.set_xlabel(RATINGS[value])
    axes.grid(axis="x", color="#DDDDDD", lw=0.6)
    axes.set_axisbelow(True)
    tasks = whole.attrs["missing"]["tasks"]
    band = "Lines are 95 % intervals over tasks and folds. " if f"{value}_low" in rows else ""
    note(
        figure,
        f"{tasks} task{'' if tasks == 1 else 's'}. {band}Models that share a letter "
        f"do not differ significantly.",
        "Gray: too few tasks to compare." if FAINT in colors else "",
        cut(len(rows), len(shown), "models"),
    )
    return Plot(figure, f"leaderboard: {RATINGS[value]}")


def _letters(axes: Any, ties: list[str]) -> None:
    side = axes.secondary_yaxis("right")
    side.set_yticks(range(len(ties)), ties, fontsize=8)
    side.tick_params(length=0)
    side.spines["right"].set_visible(False)
