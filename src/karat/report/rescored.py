"""Scores computed again on a terminal: what differs, what was added, what could not be read."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from karat.results.rescore import Rescored

#: so many differing scores are listed
LISTED = 20


def show_rescored(done: Rescored, written: Path | None = None) -> int:
    """Print what computing a run's scores again has shown; return the exit code.

    The code is 1 if a file could not be used or a score differs.
    """
    for line in told(done):
        click.echo(line)
    for message in done.problems:
        click.echo(click.style("error: ", fg="red", bold=True) + message, err=True)
    for note in done.notes:
        click.echo(f"note: {note}", err=True)
    if written is not None:
        click.echo(f"   written: {written}")
    return 1 if done.problems or len(done.differences) else 0


def told(done: Rescored) -> Iterator[str]:
    """Yield the lines of a run: how many scores, which differ, and the means of added ones."""
    own = done.scores[~done.scores["added"]]
    rows = done.differences
    same = f"{len(rows)} differ" if len(rows) else "all as they were"
    yield f"{done.run.folder.resolve().name}: {len(own)} scores computed again, {same}"
    for row in rows.head(LISTED).to_dict("records"):
        where = f"{row['task']}, fold {row['fold']}, {row['view']}, {row['metric']}"
        yield f"   {where}: {_number(row['before'])} → {_number(row['value'])}"
    if len(rows) > LISTED:
        yield f"   … and {len(rows) - LISTED} more"
    new = done.scores[done.scores["added"] & done.scores["value"].notna()]
    for (task, view, metric), part in new.groupby(["task", "view", "metric"], sort=False):
        through = "" if view == "clean" else f", {view}"
        yield f"   {task}{through}: {metric} {part['value'].mean():.6g} over {_folds(len(part))}"


def _number(value: Any) -> str:
    return "none" if math.isnan(value) else repr(float(value))


def _folds(count: int) -> str:
    return "1 fold" if count == 1 else f"{count} folds"
