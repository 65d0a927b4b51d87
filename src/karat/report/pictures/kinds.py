"""Kinds: which pictures there are, and the function that draws one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from karat.errors import DefinitionError, did_you_mean
from karat.report.pictures.board import board
from karat.report.pictures.cd import cd
from karat.report.pictures.curves import curves
from karat.report.pictures.heatmap import heatmap
from karat.report.pictures.material import Look, Material
from karat.report.pictures.panels import bars, strip
from karat.report.pictures.parallel import parallel
from karat.report.pictures.pareto import pareto
from karat.report.pictures.picture import Picture, check_format, settings
from karat.results.gather import gather

KINDS: dict[str, Callable[[Material, Look], Picture]] = {
    "board": board,
    "heatmap": heatmap,
    "cd": cd,
    "curves": curves,
    "strip": strip,
    "bars": bars,
    "pareto": pareto,
    "parallel": parallel,
}
#: kinds of which something can be chosen with ``value``
VALUED = {"board", "curves", "pareto"}


def plot(
    runs: Any,
    kind: str,
    *,
    tasks: Iterable[str] | Mapping[str, str] | None = None,
    top: int | None = None,
    value: str | None = None,
    missing: str = "worst",
) -> Picture:
    """Return a picture of runs, which a notebook shows and ``save`` writes as SVG, PDF or PNG.

    Its numbers are those of ``karat.leaderboard``; the best models come first.

    Parameters
    ----------
    kind
        ``"board"``, ``"heatmap"``, ``"cd"`` (critical differences), ``"curves"``, ``"strip"``,
        ``"bars"``, ``"pareto"`` or ``"parallel"``.
    tasks
        Only these, in this order; a mapping gives each task another metric.
    top
        How many models to draw; without it as many as there is room for, which the picture says.
    value
        What a board shows (``"rank"``, ``"elo"``, …), what curves go over (``"severity"`` or
        ``"epoch"``), what a Pareto picture takes as cost (``"seconds"``, ``"memory_mb"``, …).
    missing
        What a missing score counts as: the rules of ``leaderboard``.
    """
    check_kind(kind)
    if value is not None and kind not in VALUED:
        raise DefinitionError(f"value is for {', '.join(sorted(VALUED))}; {kind} has none.")
    with settings():
        return KINDS[kind](Material(runs, tasks, missing), Look(top, value))


def check_kind(kind: str) -> None:
    """Tell which pictures there are, if this is none."""
    if kind not in KINDS:
        hint = did_you_mean(str(kind), KINDS) or f" There are: {', '.join(KINDS)}."
        raise DefinitionError(f'there is no picture "{kind}".{hint}')


def save_plot(runs: list[Path], kind: str, output: str | None, **options: Any) -> Path:
    """Draw run folders into a file; its name and the kind are checked before anything is read."""
    check_kind(kind)
    file = Path(output or f"{kind}.svg")
    check_format(file.suffix.lower().removeprefix("."))
    tasks = _tasks(options.pop("tasks", ()), gather(runs).metrics)
    return plot(runs, kind, tasks=tasks, **options).save(file)


def _tasks(given: Iterable[str], known: Iterable[str]) -> dict[str, str] | None:
    """Return the tasks of ``TASK`` and ``TASK=METRIC``.

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
