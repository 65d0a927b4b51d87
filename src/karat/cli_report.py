"""``karat report`` and ``karat export``."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli_options import SETTINGS, run_folders


@click.command(context_settings=SETTINGS)
@run_folders
@click.option(
    "-o", "--output", default="report.html", show_default=True, metavar="FILE", help="Output file."
)
@click.option(
    "--title", metavar="TEXT", help="Title of the page.  [default: the names of the suites]"
)
@click.option("--umap", is_flag=True, help="Also project vectors with UMAP (slow).")
def report(runs: tuple[Path, ...], output: str, title: str | None, umap: bool) -> None:
    """Write an interactive report as one HTML file.

    The file contains the leaderboard, curves, maps of vectors, predictions, failures, datasets and
    provenance. It works offline and needs no other file.

    \b
    Examples:
      karat report results
      karat report results/*.taco.* -o taco.html --title "TACO, November"
    """
    from karat.report.page import report as write

    click.echo(write(list(runs), output, title=title, umap=umap))


@click.command(context_settings=SETTINGS)
@run_folders
@click.option(
    "--as",
    "system",
    required=True,
    metavar="NAME",
    help="Target format: amlb (results.csv as documented), amlb-new (results.csv as current AMLB "
    "writes it), geval, taco, or ulysses (data frame, aggregates and summary).",
)
@click.option(
    "-o", "--output", default="export", show_default=True, metavar="DIR", help="Output folder."
)
@click.option("--plots", type=click.Choice(["png", "svg"]), help="Also plot curves and bars.")
def export(runs: tuple[Path, ...], system: str, output: str, plots: str | None) -> None:
    """Write scores in the file format of another benchmark.

    \b
    Examples:
      karat export results --as taco -o taco --plots png
      karat export results --as ulysses -o ulysses
    """
    from karat.report.plots import plot_runs
    from karat.results.exports import export as write

    for path in write(list(runs), system, output):
        click.echo(path)
    for path in plot_runs(list(runs), output, shape=plots) if plots else ():
        click.echo(path)
