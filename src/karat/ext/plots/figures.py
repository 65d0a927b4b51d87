"""``karat.plot``: leaderboards, ranks, curves and costs as figures, saved as SVG, PDF or PNG."""

from __future__ import annotations

import base64
import contextlib
import html
import io
import itertools
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from karat.analysis.all_pairs import ManyModels, compare_models, scale_scores, separate_models
from karat.analysis.leaderboard import (
    THESE_TASKS,
    TaskTests,
    connected,
    enough_tasks,
    leaderboard,
)
from karat.analysis.leaderboard import pareto as front_of
from karat.analysis.robustness import curves as severity_curves
from karat.analysis.score_matrix import (
    RULES,
    ModelGroup,
    RankedScores,
    apply_missing_rule,
    check_rule,
)
from karat.analysis.these_tasks import OTHER_TASKS
from karat.core import registry
from karat.core.formatting import count, plain, rounded, short
from karat.core.writing import write_output
from karat.errors import DataError, DefinitionError, MissingExtra, did_you_mean
from karat.metrics.metric import metric_label
from karat.results.load import SIGNS, Cells, Gathered, gather_scores, learning_curves, make_cells
from karat.stats.pairwise_ranks import mean_ranks
from karat.stats.ranking import rank_each, ranked_on_few

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from karat.results.run import Runs

#: file formats and their options, which remove metadata so that files are reproducible
FORMATS: dict[str, dict[str, Any]] = {
    "svg": {"metadata": {"Date": None, "Creator": None}},
    "pdf": {"metadata": {"CreationDate": None, "Creator": None, "Producer": None}},
    # 28 % less time than the default level, and 20 % larger files
    "png": {"metadata": {"Software": None}, "pil_kwargs": {"compress_level": 1}},
}
#: color-blind safe palette of Okabe and Ito
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7F7F7F")
DASHES = ("-", "--", "-.", ":")
FAINT = "#9A9A9A"
#: width in inches: the text width of a page
WIDTH = 7.0
#: dots per inch of a PNG
DPI = 200
_SETTINGS: Any = {
    "svg.hashsalt": "karat",
    "svg.fonttype": "none",  # keep text as text
    "pdf.fonttype": 42,  # embed TrueType fonts, as publishers require
    "text.parse_math": False,  # a dollar sign in a name is not a formula
    "axes.unicode_minus": False,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
#: what the leaderboard of two to five tasks shows first, with an interval
DIFFERENCE = "difference"
#: ratings and their axis labels
RATINGS = {
    "rank": "mean rank, 1 is best",
    "elo": "Elo",
    "borda": "Borda points",
    "wins": "win rate",
    "score": "normalized score, mean",
    "median": "normalized score, median",
    DIFFERENCE: "difference to the first model on common tasks",
}
MAX_MODELS = 40
CD_MAX_MODELS = 24
OVER = ("severity", "epoch")
#: with at most this many columns, scores are written into the cells
MAX_WRITTEN = 12
#: with at most this many tasks, scores are written at the ends of the scales
PARALLEL_MAX_WRITTEN = 10
#: with more models than this, only those of the front are labeled
MAX_NAMED = 15
SIZE = (WIDTH, 4.2)
COSTS = {"seconds": "time, seconds", "memory_mb": "highest memory, MB"}
#: kinds that do not accept ``value``
WITHOUT_VALUE = {"heatmap", "cd", "strip", "bars", "parallel"}


class Plot:
    """A plot; ``save`` writes it.

    Attributes
    ----------
    figure, title
        The matplotlib figure, and its title.
    """

    def __init__(self, figure: Figure, title: str = "") -> None:
        self.figure = figure
        self.title = title

    def __repr__(self) -> str:
        return f"<Plot {self.title}>"

    def save(self, path: str | Path) -> Path:
        """Write the plot in the format of the file name's ending, and return the path."""
        file = Path(path)
        shape = file.suffix.lower().removeprefix(".")
        write_output(file, self.to_bytes(shape))
        return file

    def to_bytes(self, shape: str) -> bytes:
        """Return the plot as "svg", "pdf" or "png"; the same scores give the same bytes."""
        _check_format(shape)
        file = io.BytesIO()
        with settings():
            box = self._box()
            self.figure.savefig(file, format=shape, dpi=DPI, bbox_inches=box, **FORMATS[shape])
        return file.getvalue()

    def _box(self) -> Any:
        """Lay the figure out, only once, and return its margins without empty space, in inches."""
        if (engine := self.figure.get_layout_engine()) is not None:
            engine.execute(self.figure)
            self.figure.set_layout_engine(None)
        return self.figure.get_tightbbox().padded(0.1)

    def _repr_svg_(self) -> str:
        return self.to_bytes("svg").decode("utf-8")

    def _repr_html_(self) -> str:
        # an <img> isolates the ids inside the SVG from the page
        data = base64.b64encode(self.to_bytes("svg")).decode("ascii")
        title = html.escape(short(self.title, 200))
        return f'<img alt="{title}" src="data:image/svg+xml;base64,{data}">'


def _check_format(shape: str) -> None:
    """Raise an error if there is no such format."""
    if shape not in FORMATS:
        names, hint = ", ".join(f".{name}" for name in FORMATS), did_you_mean(shape, FORMATS)
        raise DefinitionError(f'invalid file ending ".{shape}": expected one of {names}.{hint}')


@contextlib.contextmanager
def settings() -> Iterator[None]:
    """Use our matplotlib settings, and restore the caller's afterwards."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtra("matplotlib", "plots") from error
    if matplotlib.rcParams["svg.hashsalt"] == _SETTINGS["svg.hashsalt"]:
        yield  # they are in use
        return
    with matplotlib.rc_context(), warnings.catch_warnings():
        # a missing glyph is only a box in PNG and PDF; the text of an SVG has it
        warnings.filterwarnings("ignore", message="Glyph .* missing", category=UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        yield


def make_figure(rows: int = 1, columns: int = 1, *, size: tuple[float, float]) -> tuple[Any, Any]:
    """Return a figure without a window, and its rows × columns of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=DPI, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def make_panels(panels: int, top: float, height: float) -> tuple[Any, Any]:
    """Return a figure with rows of up to three panels; ``top`` and ``height`` are in inches."""
    across = max(min(3, panels), 1)
    down = -(-panels // across)
    figure, grid = make_figure(down, across, size=(WIDTH, top + down * height))
    for axes in list(grid.flat)[panels:]:
        axes.set_visible(False)
    return figure, grid


def cut_name(name: object, width: int = 32) -> str:
    """Return a name for a plot: one line, cut if it is too long."""
    text = short(name, width)
    # matplotlib leaves labels that start with an underscore out of legends
    return f" {text}" if text.startswith("_") else text


def name_rows(axes: Axes, names: list[str], grid: bool = True) -> None:
    """Label the rows from top to bottom, only some if there are many; add vertical grid lines."""
    step = -(-len(names) // 60)
    places = range(0, len(names), step)
    size = 8 if len(names) <= 40 else 6
    axes.set_yticks(list(places), [cut_name(names[i]) for i in places], fontsize=size)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    if grid:
        axes.grid(axis="x", color="#DDDDDD", lw=0.6)
        axes.set_axisbelow(True)


def line_style(index: int) -> tuple[str, str]:
    """Return the color and the dash of the line with this index."""
    return COLORS[index % len(COLORS)], DASHES[index // len(COLORS) % len(DASHES)]


def note(figure: Figure, *sentences: str) -> None:
    """Write notes below a plot."""
    text = " ".join(sentence for sentence in sentences if sentence)
    if text:
        lines = textwrap.fill(text, int(figure.get_figwidth() * 18))
        figure.supxlabel(lines, fontsize=7, color="#555555", ha="left", x=0.01)


@dataclass(frozen=True)
class PlotOptions:
    """The number of models to plot and the quantity to show."""

    top: int | None = None
    value: str | None = None

    def models(self, default: int) -> int:
        """Return the number of models to plot."""
        if self.top is not None and self.top < 1:
            raise DefinitionError(f"top must be >= 1, got {self.top}.")
        return default if self.top is None else self.top


def _tasks_of(cells: Cells, group: ModelGroup) -> list[str]:
    return [cells.tasks[number] for number in group.tasks]


class PlotData:
    """The scores of runs as leaderboards and arrays; ``runs`` as in ``leaderboard``."""

    def __init__(
        self,
        runs: Runs,
        tasks: Iterable[str] | Mapping[str, str] | None,
        missing: str,
        group: str | None = None,
        pool: str = "variant",
    ) -> None:
        self.runs, self.group, self.pool = runs, group, pool
        self.missing = check_rule("missing", missing, RULES)
        self.title = ""  # the name of the group if there are several
        names = [tasks] if isinstance(tasks, str) else tasks
        self.wanted: dict[str, str] | None = None
        if names is not None:
            self.wanted = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names, "")

    @cached_property
    def given(self) -> Gathered:
        """The gathered runs, restricted to the selected tasks and one group of models."""
        gathered = gather_scores(self.runs, self.pool)
        if self.wanted is not None:
            gathered = gathered.only(self.wanted)
        cells = make_cells(gathered, gathered.chosen({}))
        groups = connected(gathered, cells)
        if self.wanted is not None and self.group is None and len(groups) > 1:
            parts = (", ".join(map(short, _tasks_of(cells, group))) for group in groups.values())
            raise DefinitionError(
                f"the models of these tasks cannot be compared: plot {' or '.join(parts)}, or "
                f"choose a group: {', '.join(groups)}."
            )
        name = next(iter(groups)) if self.group is None else self.group
        if name not in groups:
            hint = did_you_mean(name, groups) or f" There are: {', '.join(groups)}."
            raise DefinitionError(f'there is no group "{name}" of models.{hint}')
        if len(groups) == 1:
            return gathered
        self.title = name.capitalize()
        part = cells.only(groups[name].tasks, groups[name].models)
        return gathered.of_models(part.models).only(dict.fromkeys(part.tasks, ""))

    def board(self, columns: list[str] | None = None) -> pd.DataFrame:
        """Return the leaderboard over all tasks, best model first."""
        if not self.tasks:
            raise DataError("nothing to plot: no model has a score.")
        return leaderboard(self.given, missing=self.missing, columns=columns)

    @cached_property
    def long(self) -> pd.DataFrame:
        """The leaderboard by task: score, interval, rank and normalized score."""
        return leaderboard(self.given, missing=self.missing, by="task", normalize="range")

    @cached_property
    def cells(self) -> Cells:
        """Every fold of every model and task."""
        return make_cells(self.given, self.given.chosen({}))

    @cached_property
    def compared(self) -> RankedScores:
        """The ranked values, under the rule for missing scores."""
        return apply_missing_rule(self.cells, self.missing)

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks with a score of at least one model."""
        return [task for task, has in zip(self.cells.tasks, self.cells.scored, strict=True) if has]

    def label(self, task: str) -> str:
        """Return the metric of a task with its direction."""
        metric = self.given.chosen({})[task]
        return plain(metric_label(metric, self.given.higher(metric)))

    def table(self, column: str, models: Iterable[str], tasks: Iterable[str]) -> np.ndarray:
        """Return a column of the leaderboard by task as models × tasks."""
        wide = self.long[column].unstack(0)
        return np.asarray(wide.reindex(index=list(models), columns=list(tasks)).to_numpy())


def cut(kept_count: int, of: int, what: str, which: str = "best") -> str:
    """Return a note about what a plot leaves out, or an empty text.

    >>> cut(40, 100, "models"), cut(3, 3, "models")
    ('Shown: the 40 best of 100 models.', '')
    """
    return f"Shown: the {kept_count} {which} of {of} {what}." if kept_count < of else ""


# -- kinds of plots ---------------------------------------------------------------------------


def board(data: PlotData, options: PlotOptions) -> Plot:
    """Plot one row per model: its rating, the 95 % interval and the letters of ties.

    On two to five tasks the rating is by default the difference to the first model on these tasks.
    """
    whole = data.board([])
    few_tasks = whole.attrs["separation"].get("by") == THESE_TASKS
    value = _rating(options.value or (DIFFERENCE if few_tasks else "rank"))
    whole = whole if value in whole else data.board([value])
    rated = whole[whole[value].notna()]
    by_rank = value in ("rank", DIFFERENCE)
    ordered = rated if by_rank else rated.sort_values(value, ascending=False, kind="stable")
    if not len(rated):
        raise DataError(
            f"no model has a value of {value}: there are too few tasks, or too few wins and "
            "losses. Plot another value, such as rank."
        )
    rows = ordered.iloc[: options.models(MAX_MODELS)]
    figure, ((axes,),) = make_figure(size=(WIDTH, 0.9 + 0.2 * len(rows)))
    places = np.arange(len(rows))
    # models with too few tasks to compare are gray
    colors = [FAINT if model in whole.attrs["few"] else COLORS[0] for model in rows.index]
    if f"{value}_low" in rows:
        axes.hlines(places, rows[f"{value}_low"], rows[f"{value}_high"], color=colors, lw=1.5)
    axes.scatter(rows[value], places, c=colors, s=16, zorder=3)
    name_rows(axes, list(rows.index))
    _write_letters(axes, list(rows["tie"]))
    axes.set_xlabel(RATINGS[value])
    if value == DIFFERENCE:
        reference = whole.attrs["these_tasks"].get("reference", "the first model")
        axes.set_xlabel(RATINGS[value].replace("the first model", cut_name(reference)))
        axes.axvline(0, color=FAINT, lw=0.8, zorder=0)
    note(figure, *_board_sentences(whole, rows, value), cut(len(rows), len(rated), "models"))
    return Plot(figure, f"leaderboard: {RATINGS[value]}")


def _board_sentences(whole: pd.DataFrame, rows: pd.DataFrame, value: str) -> list[str]:
    """Return what the lines, letters and colors of a leaderboard mean."""
    tested = whole.attrs["separation"]
    few_tasks = tested.get("by") == THESE_TASKS
    has_intervals = f"{value}_low" in rows and rows[f"{value}_low"].notna().any()
    lines = "Lines are 95 % intervals over tasks."
    if value == DIFFERENCE:
        lines = "Lines are 95 % intervals on these tasks, for all pairs of models together."
    where = " on average over these tasks" if few_tasks else ""
    letters = f"Models that share a letter do not differ significantly{where} ({tested['test']})."
    why = f"Differences are not tested: {tested['why']}." if tested.get("why") else ""
    gray = any(model in whole.attrs["few"] for model in rows.index)
    return [
        f"{count(whole.attrs['missing']['tasks'], 'task')}.",
        lines if has_intervals else "",
        letters if any(rows["tie"]) else why,
        OTHER_TASKS if few_tasks else "",
        "Gray: ranked on few tasks." if gray else "",
    ]


def _rating(name: str) -> str:
    if name not in RATINGS:
        names, hint = ", ".join(RATINGS), did_you_mean(name, RATINGS)
        raise DefinitionError(f'invalid value "{name}": expected one of {names}.{hint}')
    return name


def _write_letters(axes: Axes, letters: list[str]) -> None:
    """Write the letters of ties to the right of the rows."""
    side = axes.secondary_yaxis("right")
    side.set_yticks(range(len(letters)), letters, fontsize=8)
    side.tick_params(length=0)
    side.spines["right"].set_visible(False)


@dataclass(frozen=True)
class Tested:
    """Models (best first), their mean ranks, the groups that do not differ, and the tests.

    ``few`` counts the models left out because they have too few tasks, ``why`` tells why no pair
    was tested, and ``these_tasks`` whether the tests are about two to five fixed tasks.
    """

    models: list[str]
    ranks: np.ndarray
    cliques: list[list[int]]
    tests: ManyModels
    few: int
    why: str
    these_tasks: bool


def cd(data: PlotData, options: PlotOptions) -> Plot:
    """Plot the mean ranks and the cliques of models that do not differ, as the letters say."""
    tests = tested(data)
    if len(tests.models) < 2:
        raise DataError(
            "a critical-difference diagram needs at least two models with a common task."
        )
    drawn = min(len(tests.models), options.models(CD_MAX_MODELS))
    half = -(-drawn // 2)
    bars = _bars(tests, drawn)
    depth = 0.9 + 0.6 * len({row for row, _ in bars}) + half
    figure, ((axes,),) = make_figure(size=(WIDTH, 0.5 + 0.2 * depth))
    ranks = tests.ranks[:drawn]
    low, high = np.floor(ranks[0]), max(np.ceil(ranks[-1]), np.floor(ranks[0]) + 1)
    _axis(axes, low, high, depth)
    for row, inside in bars:
        level = [0.7 + 0.6 * row] * len(inside)
        axes.plot(inside, level, color="black", lw=3, solid_capstyle="projecting", gid="clique")
        # a bar may pass a model that is not in the clique
        axes.plot(inside, level, "o", color="black", ms=5)
    edges = low - 0.05 * (high - low), high + 0.05 * (high - low)
    for number, name in enumerate(tests.models[:drawn]):
        on_left = number < half
        y = depth - half + 0.4 + (number if on_left else drawn - 1 - number)
        _name(axes, name=name, rank=ranks[number], row=y, edge=edges[not on_left])
    left_out = f"Left out for too few tasks: {count(tests.few, 'model')}." if tests.few else ""
    note(figure, *_sentences(tests), left_out, cut(drawn, len(tests.models), "models"))
    return Plot(figure, "critical differences of mean ranks")


def tested(data: PlotData) -> Tested:
    """Test all pairs of models, ordered by the mean ranks of the leaderboard."""
    compared = data.compared.by_name()
    mean = mean_ranks(rank_each(compared.values, compared.takes))
    ranked = ~np.isnan(mean)
    contested = compared.takes.sum(axis=0) > 1
    few_tasks = bool(contested.sum() > 1 and not enough_tasks(compared.takes[:, contested]))
    few = ranked_on_few(compared.takes) & ranked & (not few_tasks)
    chosen = np.flatnonzero(ranked & ~few)
    order = np.argsort(mean[chosen], kind="stable")
    best, values = chosen[order], scale_scores(compared)
    separation = separate_models(compared, TaskTests(data.given, data.given.chosen({})))
    separation = replace(separation, p=separation.p[np.ix_(best, best)])
    tests = compare_models(values[best], mean[best], separation)
    models = [compared.models[m] for m in best]
    facts = (int(few.sum()), separation.why, few_tasks)
    return Tested(models, mean[best], tests.cliques, tests, *facts)


def _bars(tests: Tested, count: int) -> list[tuple[int, list[float]]]:
    """Return row and ranks of the bar of every clique; bars of one row do not overlap."""
    ends: list[float] = []
    bars = []
    for clique in tests.cliques:
        inside = [float(tests.ranks[model]) for model in clique if model < count]
        if len(inside) < 2:
            continue
        start, end_of_bar = min(inside), max(inside)
        row = next((i for i, end in enumerate(ends) if end < start - 0.02), len(ends))
        ends[row : row + 1] = [end_of_bar]
        bars.append((row, inside))
    return bars


def _axis(axes: Axes, low: float, high: float, depth: float) -> None:
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


def _name(axes: Axes, name: str, rank: float, row: float, edge: float) -> None:
    """Draw the line from a rank on the axis to the name of the model at the edge."""
    axes.plot([rank, rank, edge], [0, row, row], color=COLORS[0], lw=0.8)
    on_left = edge < rank
    text = f"{cut_name(name)}  {rank:.2f}" if on_left else f"{rank:.2f}  {cut_name(name)}"
    ha, away = ("right", -3) if on_left else ("left", 3)
    placement: Any = {"textcoords": "offset points", "ha": ha, "va": "center"}
    axes.annotate(text, (edge, row), (away, 0), fontsize=8, annotation_clip=False, **placement)


def _sentences(tested_models: Tested) -> list[str]:
    """Return the test of all models, and that of pairs."""
    tests, first = tested_models.tests, ""
    if not np.isnan(tests.p) and not tested_models.these_tasks:  # that test is about other tasks
        p = f"p {tests.p:.2g}" if tests.p >= 1e-4 else "p below 0.0001"
        first = f"{tests.omnibus}: chi-square {tests.statistic:.1f}, {p}, {tests.tasks} tasks."
    if not tests.test:
        return [first, f"Pairs are not tested: {tested_models.why}."]
    where = " on average over these tasks" if tested_models.these_tasks else ""
    return [
        first,
        f"Dots on a bar are models that do not differ significantly{where} ({tests.test}, level "
        f"{tests.alpha:g}).",
        OTHER_TASKS if tested_models.these_tasks else "",
    ]


CURVES_MAX_MODELS, MAX_PANELS = 8, 9


def curves(data: PlotData, options: PlotOptions) -> Plot:
    """Plot one line per model, one panel per task and corruption (or per task and metric).

    Bands are one standard deviation over folds and draws.
    """
    over, table = _curves_of(data, options.value)
    names = [name for name in data.board([]).index if name in set(table["model"])]
    models = names[: options.models(CURVES_MAX_MODELS)]
    keys = ["task", "what", "metric"]
    panels = list(table[table["model"].isin(models)].groupby(keys, sort=False))
    figure, grid = make_panels(min(len(panels), MAX_PANELS), 0.9, 1.8)
    for axes, (_, rows) in zip(grid.flat, panels, strict=False):
        draw_lines(axes, rows, models, over)
        axes.set_title(_title(rows), fontsize=8, loc="left")
        axes.set_xlabel(over, fontsize=8)
        axes.tick_params(labelsize=7)
    from matplotlib.lines import Line2D

    styles: Any = [line_style(number) for number in range(len(models))]
    handles = [Line2D([], [], color=c, linestyle=d, marker="o", ms=3) for c, d in styles]
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


def draw_lines(axes: Axes, rows: pd.DataFrame, models: list[str], over: str) -> None:
    """Plot the line and the band of every model."""
    for number, model in enumerate(models):
        line = rows[rows["model"] == model]
        if not len(line):
            continue
        color, dash = line_style(number)
        spread = line["std"].fillna(0.0)
        axes.plot(
            line[over], line["mean"], dash, marker="o", ms=3, color=color, label=cut_name(model)
        )
        band = (line["mean"] - spread, line["mean"] + spread)
        axes.fill_between(line[over], *band, color=color, alpha=0.15, linewidth=0)


def _curves_of(data: PlotData, over: str | None) -> tuple[str, pd.DataFrame]:
    """Return the axis and its table; the default is severity if the runs have corrupted views."""
    if over not in (None, *OVER):
        hint = did_you_mean(str(over), OVER)
        raise DefinitionError(f'invalid value "{over}": expected "severity" or "epoch".{hint}')
    table = pd.DataFrame()
    if over != "epoch":
        try:
            table = severity_curves(data.runs, pool=data.pool)
        except DataError:
            if over == "severity":
                raise
    if len(table) and data.wanted is not None:
        metrics = data.given.metrics
        curves = {
            name: severity_curves(data.runs, metric=name, pool=data.pool)
            for name in metrics.values()
        }
        table = pd.concat([curves[m][curves[m]["task"] == task] for task, m in metrics.items()])
    by_severity = len(table) > 0
    table = table if by_severity else learning_curves(data.runs, data.pool)
    if not len(table):
        raise DataError("nothing to plot: the runs have no corrupted views and no training epochs.")
    table = table[table["task"].isin(data.tasks)]
    if not len(table):
        raise DataError("the selected tasks have no curves.")
    if not by_severity:
        return "epoch", table.assign(what="")
    # a composition with a single severity has no curve
    seen = table.groupby(["task", "corruption"])["severity"].transform("nunique")
    table = table[(seen > 2) | ~table["corruption"].str.contains("+", regex=False)]
    return "severity", table.assign(what=table["corruption"])


HEATMAP_MAX_MODELS, MAX_TASKS = 40, 40


def heatmap(data: PlotData, options: PlotOptions) -> Plot:
    """Plot one cell per model and task; brighter is a better rank, as in the report."""
    names = list(data.board([]).index)
    models = names[: options.models(HEATMAP_MAX_MODELS)]
    tasks = data.tasks[:MAX_TASKS]
    ranks = data.table("rank", models, tasks)
    rivals = np.nanmax(data.table("rank", names, tasks), axis=0, initial=1.0)
    # 1 is the best rank of a task, 0 the worst; undefined for a single model
    share = (rivals - ranks) / np.where(rivals > 1, rivals - 1, np.nan)
    high = (1.4 if len(tasks) <= MAX_WRITTEN else 2.4) + 0.2 * len(models)
    figure, ((axes,),) = make_figure(size=(WIDTH, high))
    from matplotlib import colormaps

    colors = colormaps["cividis"].with_extremes(bad="#F2F2F2")
    axes.imshow(np.ma.masked_invalid(share), cmap=colors, vmin=0, vmax=1, aspect="auto")
    name_rows(axes, models, grid=False)
    few = len(tasks) <= MAX_WRITTEN
    labels = [f"{cut_name(task, 24)}  {data.label(task)}" for task in tasks]
    turned = 0 if len(tasks) <= 3 else 40 if few else 90
    side = {"ha": "right", "rotation_mode": "anchor"} if turned else {}
    axes.set_xticks(range(len(tasks)), labels, rotation=turned, fontsize=8 if few else 6, **side)
    axes.tick_params(axis="x", length=0)
    if few and len(models) <= HEATMAP_MAX_MODELS:
        _write(axes, data=data, models=models, tasks=tasks, share=share)
    axes.spines[:].set_visible(False)
    note(
        figure,
        "Brighter cells have a better rank within the task. Models are ordered by mean rank.",
        cut(len(models), len(names), "models"),
        cut(len(tasks), len(data.tasks), "tasks", "first"),
    )
    return Plot(figure, "heat map of ranks within tasks")


def _write(
    axes: Axes, data: PlotData, models: list[str], tasks: list[str], share: np.ndarray
) -> None:
    """Write the scores into the cells, or a sign for a missing one."""
    scores = data.table("score", models, tasks)
    states = data.table("status", models, tasks)
    for (row, column), score in np.ndenumerate(scores):
        text = SIGNS.get(str(states[row, column]), "–") if np.isnan(score) else rounded(score)
        color = "white" if share[row, column] < 0.5 else "black"
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=color)


PANELS_MAX_MODELS, PANELS_MAX_TASKS = 20, 9
Draw = Callable[[Any, PlotData, str, list[str]], None]


def strip(data: PlotData, options: PlotOptions) -> Plot:
    """Plot one dot per fold, and the mean over folds as a line."""
    text = "Dots are folds, lines are means over folds."
    return Plot(_panels(data, options, _dots, text), "scores of every fold")


def bars(data: PlotData, options: PlotOptions) -> Plot:
    """Plot the mean over folds with its confidence interval."""
    text = "Bars are means over folds; lines are 95 % t intervals."
    return Plot(_panels(data, options, _means, text), "mean scores")


def _panels(data: PlotData, options: PlotOptions, draw: Draw, text: str) -> Any:
    names = list(data.board([]).index)
    models = names[: options.models(PANELS_MAX_MODELS)]
    tasks = data.tasks[:PANELS_MAX_TASKS]
    figure, grid = make_panels(len(tasks), 0.4, 0.7 + 0.16 * len(models))
    for axes, task in zip(grid.flat, tasks, strict=False):
        draw(axes, data, task, models)
        axes.set_title(f"{cut_name(task, 22)}  {data.label(task)}", fontsize=8, loc="left")
        name_rows(axes, models)
        axes.tick_params(axis="x", labelsize=7)
        if axes not in grid[:, 0]:
            axes.set_yticklabels([])
    note(
        figure,
        text,
        cut(len(models), len(names), "models"),
        cut(len(tasks), len(data.tasks), "tasks", "first"),
    )
    return figure


def _dots(axes: Axes, data: PlotData, task: str, models: list[str]) -> None:
    cells = data.cells
    t = cells.tasks.index(task)
    folds = cells.folds[t] if cells.higher[t] else -cells.folds[t]
    for row, model in enumerate(models):
        values = folds[cells.models.index(model)]
        scores = values[~np.isnan(values)]
        axes.plot(scores, np.full(len(scores), row), "o", color=COLORS[0], ms=3, alpha=0.5, mew=0)
        if len(scores):
            mean = scores.mean()
            axes.plot([mean, mean], [row - 0.35, row + 0.35], color=COLORS[1], lw=1.5)


def _means(axes: Axes, data: PlotData, task: str, models: list[str]) -> None:
    table = {
        name: data.table(name, models, [task])[:, 0].astype(float)
        for name in ("score", "score_low", "score_high")
    }
    places = np.arange(len(models))
    bars = axes.barh(places, table["score"], color=COLORS[5], height=0.7)
    axes.hlines(places, table["score_low"], table["score_high"], color="black", lw=0.8)
    texts = ["" if np.isnan(score) else rounded(score) for score in table["score"]]
    ends = np.nan_to_num(np.fmax(table["score"], table["score_high"]))
    for bar, text, end in zip(bars, texts, ends, strict=True):
        y = bar.get_y() + bar.get_height() / 2
        axes.annotate(text, (end, y), (3, 0), textcoords="offset points", fontsize=6.5, va="center")
    axes.margins(x=0.18)


PARALLEL_MAX_MODELS, PARALLEL_MAX_TASKS = 8, 40


def parallel(data: PlotData, options: PlotOptions) -> Plot:
    """Plot normalized scores (1 is the best of a task, 0 the worst); the best models in color."""
    names = list(data.board([]).index)
    values = data.table("normalized", names, data.tasks)
    scored = ~np.isnan(values).all(axis=0)
    tasks = list(itertools.compress(data.tasks, scored))[:PARALLEL_MAX_TASKS]
    if len(tasks) < 2:
        raise DataError("parallel coordinates need at least two tasks on which models differ.")
    values = values[:, scored][:, :PARALLEL_MAX_TASKS]
    high = 4.0 if len(tasks) <= PARALLEL_MAX_WRITTEN else 5.0
    figure, ((axes,),) = make_figure(size=(WIDTH, high))
    top = options.models(PARALLEL_MAX_MODELS)
    for row, name in reversed(list(enumerate(names))):
        color, dash = line_style(row) if row < top else (FAINT, "-")
        style = {"color": color, "label": cut_name(name), "lw": 0.5, "alpha": 0.5, "zorder": 1}
        if row < top:
            style |= {"marker": "o", "ms": 3, "lw": 1.5, "alpha": 1.0, "zorder": 3}
        axes.plot(range(len(tasks)), values[row], dash, **style)
    handles = axes.get_lines()[::-1][:top]
    labels = [cut_name(name) for name in names[:top]]
    figure.legend(handles, labels, loc="outside upper left", ncols=4)
    _columns(axes, data, tasks)
    note(
        figure,
        "1 is the best model of a task, 0 the worst.",
        f"Gray: {len(names) - top} more models." if len(names) > top else "",
        cut(len(tasks), int(scored.sum()), "tasks", "first"),
    )
    return Plot(figure, "normalized scores over tasks")


def _columns(axes: Axes, data: PlotData, tasks: list[str]) -> None:
    """Label the tasks, with the scores at both ends if there is room."""
    axes.vlines(range(len(tasks)), 0, 1, color="#CCCCCC", lw=0.6, zorder=0)
    scores = data.table("score", data.cells.models, tasks).astype(float)
    labels = []
    for t, task in enumerate(tasks):
        up = data.cells.higher[data.cells.tasks.index(task)]
        ends = np.nanmin(scores[:, t]), np.nanmax(scores[:, t])
        worst, best = ends if up else ends[::-1]
        if len(tasks) <= PARALLEL_MAX_WRITTEN:
            for y, score, side, away in ((0, worst, "top", -4), (1, best, "bottom", 4)):
                placement: Any = {"textcoords": "offset points", "ha": "center", "va": side}
                axes.annotate(rounded(score), (t, y), (0, away), fontsize=6.5, **placement)
        labels.append(f"{cut_name(task, 24)}  {data.label(task)}")
    turned = 30 if len(tasks) <= PARALLEL_MAX_WRITTEN else 90
    axes.set_xticks(
        range(len(tasks)), labels, rotation=turned, ha="right", rotation_mode="anchor", fontsize=7
    )
    axes.set_ylabel("normalized score")
    axes.margins(x=0.04, y=0.12)


def pareto(data: PlotData, options: PlotOptions) -> Plot:
    """Plot mean rank over a cost; the front is the column ``pareto`` of the leaderboard."""
    cost = options.value or "seconds"
    board = data.board(["costs", *([] if cost in COSTS else [cost]), f"pareto:{cost}"])
    complete = board[board[cost].notna() & board["rank"].notna()]
    if not len(complete):
        raise DataError(f"nothing to plot: no model has both a rank and {cost}.")
    rows = complete.iloc[: options.models(len(complete))]
    rows = rows.assign(pareto=front_of(rows, cost)) if len(rows) < len(complete) else rows
    figure, ((axes,),) = make_figure(size=SIZE)
    front = rows[rows["pareto"]].sort_values(cost)
    others = rows[~rows["pareto"]]
    axes.plot(others[cost], others["rank"], "o", color=FAINT, ms=4, gid="others")
    axes.step(front[cost], front["rank"], where="post", color=COLORS[1], lw=1)
    axes.plot(front[cost], front["rank"], "D", color=COLORS[1], ms=5, gid="front")
    if (rows[cost] > 0).all() and rows[cost].max() > 20 * rows[cost].min():
        logarithmic(axes)
    label_points(axes, rows if len(rows) <= MAX_NAMED else front, cost)
    axes.margins(x=0.12, y=0.1)
    axes.invert_yaxis()
    axes.set_xlabel(COSTS.get(cost, cut_name(cost)))
    axes.set_ylabel("mean rank, 1 is best")
    uneven = "Costs are those of the tasks of each model; models have different tasks."
    note(
        figure,
        "Models on the line: no other model is at least as good at the same or a lower cost.",
        uneven if board.attrs["uneven"] else "",
        cut(len(rows), len(complete), "models"),
    )
    return Plot(figure, f"mean rank against {COSTS.get(cost, cost)}")


def logarithmic(axes: Axes) -> None:
    """Give the x axis a logarithmic scale, with plain numbers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    # matplotlib would write powers of ten as formulas
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.10g}"))


def label_points(axes: Axes, rows: pd.DataFrame, cost: str, quality: str = "rank") -> None:
    """Label points, each on a side where its label overlaps no other (in inches)."""
    scale = np.log10 if axes.get_xscale() == "log" else np.asarray
    high = rows[quality].to_numpy() * (-1 if quality == "rank" else 1)
    x, y = _inches(scale(rows[cost]), SIZE[0]), _inches(high, SIZE[1])
    taken: list[tuple[float, float, float, float]] = []
    for number, name in enumerate(rows.index):
        width = 0.062 * len(cut_name(name))
        sides = [(1, 1), (1, -1), (-1, 1), (-1, -1)]
        boxes = {}
        for right, up in sides:
            x_low, low = x[number] - width * (right < 0), y[number] - 0.13 * (up < 0)
            boxes[right, up] = (x_low, low, x_low + width, low + 0.13)
        free = (side for side, box in boxes.items() if not any(_overlap(box, o) for o in taken))
        right, up = next(free, sides[0])
        taken.append(boxes[right, up])
        point = rows[cost].iloc[number], rows[quality].iloc[number]
        look: dict[str, Any] = {
            "ha": "left" if right > 0 else "right",
            "va": "bottom" if up > 0 else "top",
        }
        look |= {"textcoords": "offset points", "color": "#333333"}
        axes.annotate(cut_name(name), point, (4 * right, 3 * up), fontsize=7, **look)


def _overlap(a: Sequence[float], b: Sequence[float]) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def _inches(values: np.ndarray, length: float) -> np.ndarray:
    numbers = np.asarray(values, dtype=float)
    spread = np.ptp(numbers)
    return (numbers - numbers.min()) / (spread if spread > 0 else 1) * length * 0.75


DrawPlot = Callable[[PlotData, PlotOptions], Plot]
KINDS: dict[str, DrawPlot] = {
    draw.__name__: draw for draw in (board, heatmap, cd, curves, strip, bars, pareto, parallel)
}


def plot_kinds() -> list[str]:
    """Return the names of all kinds of plots, also of those that other extensions add."""
    return [*KINDS, *registry.plots]


def plot(
    runs: Runs,
    kind: str,
    *,
    tasks: Iterable[str] | Mapping[str, str] | None = None,
    top: int | None = None,
    value: str | None = None,
    missing: str = "worst",
    group: str | None = None,
    pool: str = "variant",
) -> Plot:
    """Return a plot of runs; a notebook shows it, ``save`` writes it as SVG, PDF or PNG.

    The numbers are those of ``karat.leaderboard``; the best models come first.

    Parameters
    ----------
    runs
        As in ``leaderboard``.
    kind
        ``"board"``, ``"heatmap"``, ``"cd"`` (critical differences), ``"curves"``, ``"strip"``,
        ``"bars"``, ``"pareto"``, ``"cheapest"`` or ``"parallel"``.
    tasks
        Tasks to plot, in this order; a mapping also gives the metric of each task.
    top
        Number of models to plot. Default: as many as fit; the plot states how many that is.
    value
        The rating of ``"board"`` (``"rank"``, ``"elo"``, etc.), the x axis of ``"curves"``
        (``"severity"`` or ``"epoch"``), the cost of ``"pareto"`` (``"seconds"``, etc.) and
        of ``"cheapest"`` (``"bytes"``, etc.).
    missing
        How to count missing scores, as in ``leaderboard``.
    group
        If some models share too few tasks to be compared: the group of models to plot, by its name
        in the leaderboard. Default: the largest.
    pool
        Which runs are one model, as in ``leaderboard``.
    """
    _check_kind(kind)
    if value is not None and kind in WITHOUT_VALUE:
        valued = sorted(set(plot_kinds()) - WITHOUT_VALUE)
        raise DefinitionError(f"{kind} takes no value; only {', '.join(valued)} do.")
    with settings():
        data = PlotData(runs=runs, tasks=tasks, missing=missing, group=group, pool=pool)
        draw_plot: DrawPlot = KINDS.get(kind) or registry.plots.get(kind)
        drawn = draw_plot(data, PlotOptions(top, value))
        if data.title:
            drawn.figure.set_figheight(drawn.figure.get_figheight() + 0.3)
            drawn.figure.suptitle(cut_name(data.title), fontsize=9)
        return drawn


def _check_kind(kind: str) -> None:
    kinds = plot_kinds()
    if kind not in kinds:
        names, hint = ", ".join(kinds), did_you_mean(str(kind), kinds)
        raise DefinitionError(f'invalid kind of plot "{kind}": expected one of {names}.{hint}')


def save_plot(
    runs: list[Path], kind: str, output: str | None, group: str | None = None, **options: Any
) -> list[Path]:
    """Plot run folders into a file; its format is checked before reading the runs.

    If there are several groups of models, and none is chosen, each has a file, which is named after
    the group.
    """
    file = Path(output or f"{kind}.svg")
    _check_kind(kind)
    _check_format(file.suffix.lower().removeprefix("."))
    task_options = options.pop("tasks", ())
    gathered = gather_scores(runs, options.get("pool", "variant"))
    options["tasks"] = _tasks(task_options, gathered.metrics) if task_options else None
    chosen = gathered.chosen({})
    groups = list(connected(gathered, make_cells(gathered, chosen)))
    if group is not None or task_options or len(groups) == 1:
        return [plot(runs, kind, group=group, **options).save(file)]
    return [
        plot(runs, kind, group=name, **options).save(
            file.with_stem(f"{file.stem}-{name.replace(' ', '-')}")
        )
        for name in groups
    ]


def _tasks(texts: Iterable[str], tasks: Iterable[str]) -> dict[str, str]:
    """Parse options of the form ``TASK`` and ``TASK=METRIC``.

    >>> _tasks(["adult=acc", "a=b"], ["adult", "a=b"])
    {'adult': 'acc', 'a=b': ''}
    """
    names = set(tasks)
    metrics: dict[str, str] = {}
    for text in texts:
        task, _, metric = text.rpartition("=")
        metrics |= {text: ""} if text in names or not task else {task: metric}
    return metrics
