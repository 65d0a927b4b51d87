"""The command that plots."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli.options import SETTINGS, option, pool_option, repeatable, run_folders


@click.command(context_settings=SETTINGS)
@click.argument("kind")
@run_folders
@option("-o, --output FILE", "A .svg, .pdf or .png file.  [default: KIND.svg]")
@repeatable(
    "-t, --task TASK[=METRIC]",
    "Plot only this task, optionally with another metric. Repeatable.",
    dest="tasks",
)
@option("--top N", "Plot the N best models.", type=int)
@option(
    "--value NAME",
    "Quantity to plot. board: rank, elo, borda, wins, score, median; curves: severity, epoch; "
    "pareto: seconds, memory_mb, dimensions; cheapest: bytes, dimensions, price, seconds.",
)
@option("--missing RULE", "How to count missing scores, see karat leaderboard.", default="worst")
@option("--group NAME", "Plot this group of models that share tasks.  [default: a file for each]")
@pool_option
def plot(kind: str, runs: tuple[Path, ...], output: str | None, **options: Any) -> None:
    """Plot runs as an SVG, PDF or PNG file.

    KIND is board, heatmap, cd (critical differences), curves, strip, bars, pareto,
    cheapest or parallel.

    \b
    Examples:
      karat plot board results -o board.pdf
      karat plot cd results --top 12 -o differences.svg
      karat plot strip results -t adult=acc -t penguins -o folds.png
      karat plot pareto results --value memory_mb
    """
    from karat.ext.plots.figures import save_plot

    for path in save_plot(list(runs), kind, output, **options):
        click.echo(path)
