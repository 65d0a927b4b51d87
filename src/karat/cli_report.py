"""``karat report`` and ``export``: what others read of runs."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli_options import SETTINGS


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE")
@click.option("--title", metavar="TEXT", help="The page's heading.  [the names of the suites]")
@click.option("--umap", is_flag=True, help="Maps of vectors by UMAP too; takes a while.")
def report(runs: tuple[Path, ...], output: str, title: str | None, umap: bool) -> None:
    """Write one HTML file to show: the board, curves, maps, answers, failures, data and origin.

    It needs no network and no other file, and opens by double-click.

    \b
    Examples:
      karat report results
      karat report results/*.taco.* -o taco.html --title "TACO, November"
    """
    from karat.report.page import report as write

    click.echo(write(list(runs), output, title=title, umap=umap))


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "--as",
    "shape",
    required=True,
    metavar="NAME",
    help="amlb or amlb-new: results.csv as documented or as it is today; geval, taco: their "
    "result files; ulysses: its frame and aggregates, and a summary.",
)
@click.option("-o", "--output", default="export", show_default=True, metavar="DIR")
@click.option("--plots", type=click.Choice(["png", "svg"]), help="Curves and bars beside them.")
def export(runs: tuple[Path, ...], shape: str, output: str, plots: str | None) -> None:
    """Write the scores of run folders in the files of another benchmark.

    \b
    Examples:
      karat export results --as taco -o taco --plots png
      karat export results --as ulysses -o ulysses
    """
    from karat.report.plots import plot_runs
    from karat.results.exports import export as write

    for path in write(list(runs), shape, output):
        click.echo(path)
    for path in plot_runs(list(runs), output, shape=plots) if plots else ():
        click.echo(path)
