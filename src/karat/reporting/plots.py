"""Critical-difference diagram: mean ranks, with bars over models that do not differ."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.errors import DataError
from karat.report.pictures.material import PlotData, PlotOptions, cut
from karat.report.pictures.picture import COLORS, WIDTH, Plot, cut_name, make_figure, note
from karat.results.contests import comparable
from karat.results.missing import Compared
from karat.results.ranks import rank_each, ranked_on_few
from karat.results.significance import Many, cliques, many

MAX_MODELS = 24


@dataclass(frozen=True)
class Tested:
    """Models (best first), their mean ranks, the groups that do not differ, and the tests.

    ``few`` counts the models left out because they have too few tasks.
    """

    models: list[str]
    ranks: np.ndarray
    cliques: list[list[int]]
    tests: Many
    few: int


def cd(data: PlotData, options: PlotOptions) -> Plot:
    """Plot the mean ranks and the cliques of the Wilcoxon tests with Holm correction."""
    found = tested(data.compared)
    if len(found.models) < 2:
        raise DataError(
            "a critical-difference diagram needs at least two models with a common task."
        )
    shown = min(len(found.models), options.models(MAX_MODELS))
    half = -(-shown // 2)
    bars = _bars(found, shown)
    depth = 0.9 + 0.35 * len({row for row, _, _ in bars}) + half
    figure, ((axes,),) = make_figure(size=(WIDTH, 0.5 + 0.2 * depth))
    ranks = found.ranks[:shown]
    low, high = np.floor(ranks[0]), max(np.ceil(ranks[-1]), np.floor(ranks[0]) + 1)
    _axis(axes, low, high, depth)
    for row, *ends in bars:
        y = 0.7 + 0.35 * row
        axes.plot(ends, [y, y], color="black", lw=3, solid_capstyle="projecting", gid="clique")
    edges = low - 0.05 * (high - low), high + 0.05 * (high - low)
    for place, name in enumerate(found.models[:shown]):
        on_left = place < half
        y = depth - half + 0.4 + (place if on_left else shown - 1 - place)
        _name(axes, name, ranks[place], y, edges[not on_left])
    left_out = f"{found.few} models with too few tasks are left out." if found.few else ""
    note(figure, *_sentences(found.tests), left_out, cut(shown, len(found.models), "models"))
    return Plot(figure, "critical differences of mean ranks")


def tested(compared: Compared) -> Tested:
    """Test all pairs of models, ordered by the mean ranks of the leaderboard."""
    each = rank_each(compared.values, compared.takes)
    ranked = ~np.isnan(each).all(axis=1)
    few = ranked_on_few(compared.takes) & ranked
    chosen = np.flatnonzero(ranked & ~few)
    ranks = np.nanmean(each[chosen], axis=1)
    order = np.argsort(ranks, kind="stable")
    tests = many(comparable(compared)[chosen[order]])
    groups = cliques(np.arange(len(order)), ~(tests.pairs < tests.alpha))
    models = [compared.models[m] for m in chosen[order]]
    return Tested(models, ranks[order], groups, tests, int(few.sum()))


def _bars(found: Tested, shown: int) -> list[tuple[int, float, float]]:
    """Return row, start and end of the bar of every clique; bars of one row do not overlap."""
    ends: list[float] = []
    bars = []
    for clique in found.cliques:
        inside = [found.ranks[model] for model in clique if model < shown]
        if len(inside) < 2:
            continue
        left, right = float(min(inside)), float(max(inside))
        row = next((i for i, end in enumerate(ends) if end < left - 0.02), len(ends))
        ends[row : row + 1] = [right]
        bars.append((row, left, right))
    return bars


def _axis(axes: Any, low: float, high: float, depth: float) -> None:
    axes.set_xlim(low - 0.06 * (high - low), high + 0.06 * (high - low))
    axes.set_ylim(depth + 0.2, -0.1)
    axes.spines[["left", "bottom"]].set_visible(False)
    axes.set_yticks([])
    axes.xaxis.tick_top()
    axes.spines["top"].set_visible(True)
    axes.spines["top"].set_bounds(low, high)
    axes.xaxis.set_label_position("top")
    step = max(1, round((high - low) / 10))
    axes.set_xticks(np.arange(low, high + 0.5, step))
    axes.set_xlabel("mean rank, 1 is best")


def _name(axes: Any, name: str, rank: float, row: float, edge: float) -> None:
    """Draw the line from a rank on the axis to the name of the model at the edge."""
    axes.plot([rank, rank, edge], [0, row, row], color=COLORS[0], lw=0.8)
    left = edge < rank
    text = f"{cut_name(name)}  {rank:.2f}" if left else f"{rank:.2f}  {cut_name(name)}"
    axes.annotate(
        text,
        (edge, row),
        (-3 if left else 3, 0),
        textcoords="offset points",
        fontsize=8,
        ha="right" if left else "left",
        va="center",
        annotation_clip=False,
    )


def _sentences(found: Many) -> list[str]:
    if np.isnan(found.p):
        first = "Friedman test not applicable: no task has scores of all models."
    else:
        p = f"p {found.p:.2g}" if found.p >= 1e-4 else "p below 0.0001"
        first = f"Friedman: chi-square {found.statistic:.1f}, {p}, {found.tasks} tasks."
    return [
        first,
        f"Bars join models that do not differ significantly (Wilcoxon test, Holm correction, "
        f"level {found.alpha:g}).",
    ]
