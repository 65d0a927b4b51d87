"""``karat plot``: pictures of runs for papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS


@click.command(context_settings=SETTINGS)
@click.argument("kind")
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Ends in .svg, .pdf or .png.  [default: KIND.svg]",
)
@click.option(
    "-t",
    "--task",
    "tasks",
    multiple=True,
    metavar="TASK[=METRIC]",
    help="Only this task, by another metric if one is named. Repeatable.",
)
@click.option("--top", type=int, metavar="N", help="Draw the best N models.")
@click.option(
    "--value",
    metavar="NAME",
    help="What a board shows (rank, elo, borda, wins, score, median), what curves go over "
    "(severity, epoch), the cost of a Pareto picture (seconds, memory_mb, dimensions).",
)
@click.option(
    "--missing",
    default="worst",
    show_default=True,
    metavar="RULE",
    help="What a missing score counts as, as in karat leaderboard.",
)
def plot(kind: str, runs: tuple[Path, ...], output: str | None, **given: Any) -> None:
    """Draw runs: board, heatmap, cd (critical differences), curves, strip, bars, pareto, parallel.

    \b
    Examples:
      karat plot board results -o board.pdf
      karat plot cd results --top 12 -o differences.svg
      karat plot strip results -t adult=acc -t penguins -o folds.png
      karat plot pareto results --value memory_mb
    """
    from karat.report.pictures.kinds import save_plot

    click.echo(save_plot(list(runs), kind, output, **given))
