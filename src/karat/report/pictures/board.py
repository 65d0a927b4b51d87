"""Board: a rating of each model with its interval, and the letters of its ties."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.errors import DefinitionError, did_you_mean
from karat.report.pictures.material import Look, Material, cut
from karat.report.pictures.picture import COLOURS, FAINT, WIDTH, Picture, figure_of, name_rows, tell

#: what can be drawn, and how the axis is called
RATINGS = {
    "rank": "mean rank, 1 is best",
    "elo": "Elo",
    "borda": "Borda points",
    "wins": "win rate",
    "score": "normalised score, mean",
    "median": "normalised score, median",
}
MOST_MODELS = 40


def board(material: Material, look: Look) -> Picture:
    """Draw a row per model: its rating, the 95 % interval where it has one, the letters of ties."""
    value = look.value or "rank"
    if value not in RATINGS:
        hint = did_you_mean(value, RATINGS) or f" It is one of {', '.join(RATINGS)}."
        raise DefinitionError(f'a picture of a board shows no "{value}".{hint}')
    whole = material.board([] if value == "rank" else [value])
    shown = whole[whole[value].notna()]
    ordered = shown if value == "rank" else shown.sort_values(value, ascending=False, kind="stable")
    rows = ordered.iloc[: look.models(MOST_MODELS)]
    figure, ((axes,),) = figure_of(size=(WIDTH, 0.9 + 0.2 * len(rows)))
    places = np.arange(len(rows))
    # who takes hardly any task is there, but not to be read as the others are
    colours = [COLOURS[0] if tie else FAINT for tie in rows["tie"]]
    if f"{value}_low" in rows:
        axes.hlines(places, rows[f"{value}_low"], rows[f"{value}_high"], color=colours, lw=1.5)
    axes.scatter(rows[value], places, c=colours, s=16, zorder=3)
    name_rows(axes, list(rows.index))
    _letters(axes, list(rows["tie"]))
    axes.set_xlabel(RATINGS[value])
    axes.grid(axis="x", color="#DDDDDD", lw=0.6)
    axes.set_axisbelow(True)
    tasks = whole.attrs["missing"]["tasks"]
    band = "Lines are 95 % intervals over tasks and folds. " if f"{value}_low" in rows else ""
    tell(
        figure,
        f"{tasks} task{'' if tasks == 1 else 's'}. {band}Models that share a letter cannot be told "
        f"apart.",
        "In grey: too few tasks to compare." if FAINT in colours else "",
        cut(len(rows), len(shown), "models"),
    )
    return Picture(figure, f"board: {RATINGS[value]}")


def _letters(axes: Any, ties: list[str]) -> None:
    side = axes.secondary_yaxis("right")
    side.set_yticks(range(len(ties)), ties, fontsize=8)
    side.tick_params(length=0)
    side.spines["right"].set_visible(False)
