"""``karat.plot``: the kinds of plots and the function that makes one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from karat.errors import DefinitionError, did_you_mean
from karat.report.pictures.board import board
from karat.report.pictures.cd import cd
from karat.report.pictures.curves import curves
from karat.report.pictures.heatmap import heatmap
from karat.report.pictures.material import PlotData, PlotOptions
from karat.report.pictures.panels import bars, strip
from karat.report.pictures.parallel import parallel
from karat.report.pictures.pareto import pareto
from karat.report.pictures.picture import Plot, check_format, settings
from karat.results.gather import gather

KINDS: dict[str, Callable[[PlotData, PlotOptions], Plot]] = {
    "board": board,
    "heatmap": heatmap,
    "cd": cd,
    "curves": curves,
    "strip": strip,
    "bars": bars,
    "pareto": pareto,
    "parallel": parallel,
}
#: kinds that accept ``value``
VALUED = {"board", "curves", "pareto"}


def plot(
    runs: Any,
    kind: str,
    *,
    tasks: Iterable[str] | Mapping[str, str] | None = None,
    top: int | None = None,
    value: str | None = None,
    missing: str = "worst",
) -> Plot:
    """Return a plot of runs; a notebook shows it, ``save`` writes it as SVG, PDF or PNG.

    The numbers are those of ``karat.leaderboard``; the best models come first.

    Parameters
    ----------
    kind
        ``"board"``, ``"heatmap"``, ``"cd"`` (critical differences), ``"curves"``, ``"strip"``,
        ``"bars"``, ``"pareto"`` or ``"parallel"``.
    tasks
        Tasks to plot, in this order; a mapping also gives the metric of each task.
    top
        Number of models to plot. Default: as many as fit; the plot states how many that is.
    value
        The rating of ``"board"`` (``"rank"``, ``"elo"``, etc.), the x axis of ``"curves"``
        (``"severity"`` or ``"epoch"``), the cost of ``"pareto"`` (``"seconds"``, etc.).
    missing
        How to count missing scores, as in ``leaderboard``.
    """
    check_kind(kind)
    if value is not None and kind not in VALUED:
        raise DefinitionError(f"{kind} takes no value; only {', '.join(sorted(VALUED))} do.")
    with settings():
        return KINDS[kind](PlotData(runs, tasks, missing), PlotOptions(top, value))


def check_kind(kind: str) -> None:
    """Raise an error if there is no such kind."""
    if kind not in KINDS:
        names, hint = ", ".join(KINDS), did_you_mean(str(kind), KINDS)
        raise DefinitionError(f'invalid kind of plot "{kind}": expected one of {names}.{hint}')


def save_plot(runs: list[Path], kind: str, output: str | None, **options: Any) -> Path:
    """Plot run folders into a file; file name and kind are checked before reading the runs."""
    check_kind(kind)
    file = Path(output or f"{kind}.svg")
    check_format(file.suffix.lower().removeprefix("."))
    tasks = _tasks(options.pop("tasks", ()), gather(runs).metrics)
    return plot(runs, kind, tasks=tasks, **options).save(file)


def _tasks(given: Iterable[str], known: Iterable[str]) -> dict[str, str] | None:
    """Parse options of the form ``TASK`` and ``TASK=METRIC``.

    >>> _tasks(["adult=acc", "a=b"], ["adult", "a=b"])
    {'adult': 'acc', 'a=b': ''}
    """
    names = set(known)
    parts = {text: text.rpartition("=") for text in given}
    found = {
        text if text in names or not task else task: "" if text in names or not task else metric
        for text, (task, _, metric) in parts.items()
    }
    return found or None
