"""The commands that read and write result files of other systems."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli.options import PATH, SETTINGS, option, print_error, run_folders


@click.command("import", context_settings=SETTINGS)
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
@option("-o, --output DIR", "Where to write run folders.", default="results")
@option(
    "--as NAME",
    "System that wrote the files: amlb, geval, mteb, multabench, tabarena, tabeb, taco, ulysses.  "
    "[default: detect]",
    dest="system",
)
@option("--model NAME", "Model name, if the files do not contain it.")
def import_(files: tuple[Path, ...], output: str, system: str | None, model: str | None) -> int:
    """Import result files of other systems as run folders.

    \b
    Examples:
      karat import results.csv -o imported
      karat import mteb-results/no-revision --model my-encoder -o imported
      karat import taco/metrics_*.csv --as taco -o imported
      karat import multabench/leaderboard/models --as multabench -o imported

    Exit code: 0 all files were imported, 1 some were not, 2 none could be.
    """
    from karat.ext.compat.convert import import_results

    imported = import_results(list(files), output, system=system, model=model)
    for run in imported.runs:
        click.echo(run.folder)
    for note in imported.notes:
        click.echo(f"note: {note}", err=True)
    for problem in imported.problems:
        print_error(problem)
    return 1 if imported.problems else 0


@click.command(context_settings=SETTINGS)
@run_folders
@option(
    "--as NAME",
    "Target format: amlb (results.csv as documented), amlb-new (results.csv as current AMLB "
    "writes it), every-eval-ever, geval, model-card (of the Hugging Face hub), mteb (a JSON file "
    "per task), taco, or ulysses (data frame, aggregates and summary).",
    dest="system",
    required=True,
)
@option("-o, --output DIR", "Output folder.", default="export")
@option("--plots", "Also plot curves and bars.", type=click.Choice(["png", "svg"]))
def export(runs: tuple[Path, ...], system: str, output: str, plots: str | None) -> None:
    """Write scores in the file format of another benchmark.

    \b
    Examples:
      karat export results --as taco -o taco --plots png
      karat export results --as ulysses -o ulysses
      karat export results --as mteb -o for-mteb
      karat export results --as model-card -o cards
    """
    from karat.ext.compat.convert import export_results

    for path in export_results(list(runs), system, output):
        click.echo(path)
    if plots:
        from karat.ext.compat.taco.taco_plots import plot_runs

        for path in plot_runs(list(runs), output, shape=plots):
            click.echo(path)
