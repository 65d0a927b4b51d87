"""The progress of runs on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table
from rich.text import Text

from karat.errors import FAILURES
from karat.report.formats import render_frame
from karat.results.run import Run
from karat.results.status import ago, status

_COLUMNS = ("model", "done", "failed", "declined", "running", "left", "state", "last")


def show_status(paths: Sequence[Path], shape: str | None = None) -> int:
    """Print one line per run and the next step; return 0 if all runs are finished, else 1."""
    found = status(list(paths))
    if shape not in (None, "table"):
        sys.stdout.write(render_frame(found, str(shape)))
    else:
        _print(found)
    return 0 if (found["state"] == "finished").all() else 1


def _print(found: pd.DataFrame) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in _COLUMNS:
        text = name in ("model", "state", "last")
        table.add_column(name, justify="left" if text else "right", no_wrap=name != "model")
    for row in found.to_dict("records"):
        table.add_row(*(Text(cell) for cell in _cells(row)))
    console = Console(highlight=False)
    console.print(table)
    left = int(found["left"].sum())
    if left:
        rest = found["seconds_per_job"].fillna(0) * found["left"]
        time = f", about {rest.sum():,.0f} s of work" if rest.sum() else ""
        console.print(Text(f"{left:,} jobs left{time}. Continue stopped runs with --resume."))


def _cells(row: dict[str, object]) -> list[str]:
    kinds = [f"{row[name]} {name}" for name in FAILURES[1:] if row[name]]
    failed = sum(int(str(row[name])) for name in FAILURES)
    failures = f"{failed}" + (f" ({', '.join(kinds)})" if kinds else "")
    done = f"{row['ok']} of {row['planned']}"
    counts = [str(row[name]) for name in ("declined", "running", "left")]
    return [str(row["model"]), done, failures, *counts, str(row["state"]), ago(str(row["last"]))]


def show_left(runs: Sequence[Run], resume: str) -> None:
    """Print on standard error how many jobs were not run, if any, and how to continue."""
    left = int(status([run.folder for run in runs])["left"].sum())
    if left:
        what = "1 job was" if left == 1 else f"{left:,} jobs were"
        print(
            f"\n Stopped at the first failure: {what} not run. To continue: {resume}",
            file=sys.stderr,
        )
