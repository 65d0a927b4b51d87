"""``karat plot``: figures of runs for papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS, run_folders


@click.command(context_settings=SETTINGS)
@click.argument("kind")
@run_folders
@click.option(
    "-o", "--output", metavar="FILE", help="A .svg, .pdf or .png file.  [default: KIND.svg]"
)
@click.option(
    "-t",
    "--task",
    "tasks",
    multiple=True,
    metavar="TASK[=METRIC]",
    help="Plot only this task, optionally with another metric. Repeatable.",
)
@click.option("--top", type=int, metavar="N", help="Plot the N best models.")
@click.option(
    "--value",
    metavar="NAME",
    help="Quantity to plot. board: rank, elo, borda, wins, score, median; curves: severity, epoch; "
    "pareto: seconds, memory_mb, dimensions.",
)
@click.option(
    "--missing",
    default="worst",
    show_default=True,
    metavar="RULE",
    help="How to count missing scores, see karat leaderboard.",
)
def plot(kind: str, runs: tuple[Path, ...], output: str | None, **given: Any) -> None:
    """Plot runs as an SVG, PDF or PNG file.

    KIND is board, heatmap, cd (critical differences), curves, strip, bars, pareto or parallel.

    \b
    Examples:
      karat plot board results -o board.pdf
      karat plot cd results --top 12 -o differences.svg
      karat plot strip results -t adult=acc -t penguins -o folds.png
      karat plot pareto results --value memory_mb
    """
    from karat.report.pictures.kinds import save_plot

    click.echo(save_plot(list(runs), kind, output, **given))
