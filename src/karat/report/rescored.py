"""Recomputed scores on a terminal: changed, added and unreadable ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import click

from karat.report.shown import count
from karat.results.rescore import Rescored

#: maximum number of changed scores to list
MAX_LISTED = 20


def show_rescored(done: Rescored, written: Path | None = None) -> int:
    """Print the result of a rescore; return 1 if a file could not be used or a score changed."""
    for line in _lines(done):
        click.echo(line)
    for message in done.problems:
        click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)
    for note in done.notes:
        click.echo(f"note: {note}", err=True)
    if written is not None:
        click.echo(f"   written: {written}")
    return 1 if done.problems or len(done.differences) else 0


def _lines(done: Rescored) -> Iterator[str]:
    own = done.scores[~done.scores["added"]]
    rows = done.differences
    changed = f"{len(rows)} changed" if len(rows) else "none changed"
    yield f"{done.run.folder.resolve().name}: {len(own)} scores recomputed, {changed}"
    for row in rows.head(MAX_LISTED).to_dict("records"):
        where = f"{row['task']}, fold {row['fold']}, {row['view']}, {row['metric']}"
        yield f"   {where}: {_number(row['before'])} → {_number(row['value'])}"
    if len(rows) > MAX_LISTED:
        yield f"   and {len(rows) - MAX_LISTED} more"
    new = done.scores[done.scores["added"] & done.scores["value"].notna()]
    for (task, view, metric), part in new.groupby(["task", "view", "metric"], sort=False):
        suffix = "" if view == "clean" else f", {view}"
        folds = count(len(part), "fold")
        yield f"   {task}{suffix}: {metric} {part['value'].mean():.6g} over {folds}"


def _number(value: float) -> str:
    return "none" if math.isnan(value) else repr(float(value))
