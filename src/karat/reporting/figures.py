"""A figure that is saved reproducibly as SVG, PDF or PNG, and the scores behind it."""

from __future__ import annotations

import base64
import contextlib
import html
import io
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from karat.analysis.formatting import plain, short
from karat.analysis.leaderboard import connected, leaderboard
from karat.analysis.score_matrix import (
    RULES,
    ModelGroup,
    RankedScores,
    apply_missing_rule,
    check_rule,
)
from karat.core.files import write_atomic
from karat.errors import DataError, DefinitionError, MissingExtra, did_you_mean
from karat.reporting.formats import metric_label
from karat.results.load import Cells, Gathered, gather_scores, make_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: file formats, and the metadata to remove so that files are reproducible
FORMATS: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "png": {"Software": None},
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


class Plot:
    """A plot; ``save`` writes it, ``figure`` is the matplotlib figure."""

    def __init__(self, figure: Figure, title: str = "") -> None:
        self.figure = figure
        self.title = title

    def __repr__(self) -> str:
        return f"<Plot {self.title}>"

    def save(self, path: str | Path) -> Path:
        """Write the plot in the format of the file name's ending, and return the path."""
        file = Path(path)
        shape = file.suffix.lower().removeprefix(".")
        write_atomic(file, self.to_bytes(shape))
        return file

    def to_bytes(self, shape: str) -> bytes:
        """Return the plot as "svg", "pdf" or "png"; the same scores give the same bytes."""
        check_format(shape)
        hidden: Any = FORMATS[shape]
        file = io.BytesIO()
        with settings():
            box = self._box()
            self.figure.savefig(file, format=shape, dpi=DPI, bbox_inches=box, metadata=hidden)
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


def check_format(shape: str) -> None:
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


def line_style(place: int) -> tuple[str, str]:
    """Return the color and the dash of the line with this index."""
    return COLORS[place % len(COLORS)], DASHES[place // len(COLORS) % len(DASHES)]


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
    return [cells.tasks[place] for place in group.tasks]


class PlotData:
    """The scores of runs as leaderboards and arrays; ``runs`` as in ``leaderboard``."""

    def __init__(
        self,
        runs: Any,
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
        given = gather_scores(self.runs, self.pool)
        if self.wanted is not None:
            given = given.only(self.wanted)
        cells = make_cells(given, given.chosen({}))
        groups = connected(given, cells)
        if self.wanted is not None and self.group is None and len(groups) > 1:
            parts = (", ".join(map(short, _tasks_of(cells, each))) for each in groups.values())
            raise DefinitionError(
                f"the models of these tasks cannot be compared: plot {' or '.join(parts)}, or "
                f"choose a group: {', '.join(groups)}."
            )
        name = next(iter(groups)) if self.group is None else self.group
        if name not in groups:
            hint = did_you_mean(name, groups) or f" There are: {', '.join(groups)}."
            raise DefinitionError(f'there is no group "{name}" of models.{hint}')
        if len(groups) == 1:
            return given
        self.title = name.capitalize()
        part = cells.only(groups[name].tasks, groups[name].models)
        return given.of_models(part.models).only(dict.fromkeys(part.tasks, ""))

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


def cut(shown: int, of: int, what: str, which: str = "best") -> str:
    """Return a note about what a plot leaves out, or an empty text.

    >>> cut(40, 100, "models"), cut(3, 3, "models")
    ('Shown: the 40 best of 100 models.', '')
    """
    return f"Shown: the {shown} {which} of {of} {what}." if shown < of else ""
