"""``karat status``, ``karat rescore`` and ``karat import``."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli_options import PATH, SETTINGS, define, machine, print_error, run_folders
from karat.errors import KaratError


@click.command(context_settings=SETTINGS)
@run_folders
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="Additional metric to compute. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="DIR",
    help="Write new run folders with the new scores here. Default: write nothing.",
)
@define
def rescore(
    runs: tuple[Path, ...], metrics: tuple[str, ...], output: Path | None, define: tuple[Path, ...]
) -> int:
    """Recompute scores from stored predictions.

    \b
    Examples:
      karat rescore results
      karat rescore results/RUN --metric balacc --metric brier -o rescored

    Exit code: 0 no score changed, 1 a score changed or a file cannot be used, 2 invalid input.
    """
    from karat.catalogue import Catalogue
    from karat.report.rescored import show_rescored
    from karat.results.rescore import check_metrics
    from karat.results.rescore import rescore as rescore_run
    from karat.results.run import open_runs

    if define:
        Catalogue(define).definitions  # noqa: B018  reading the files registers their components
    checked, code = check_metrics(metrics), 0
    for run in open_runs(runs):
        try:
            rescored = rescore_run(run, checked)
            written = rescored.write(output).folder if output is not None else None
        except KaratError as error:
            print_error(str(error))
            code = 1
        else:
            code = max(code, show_rescored(rescored, written))
    return code


@click.command("import", context_settings=SETTINGS)
@click.argument("files", nargs=-1, required=True, type=PATH, metavar="FILE...")
@click.option(
    "-o",
    "--output",
    default="results",
    show_default=True,
    metavar="DIR",
    help="Where to write run folders.",
)
@click.option(
    "--as",
    "system",
    metavar="NAME",
    help="System that wrote the files: amlb, geval, mteb, tabeb, taco, ulysses.  [default: detect]",
)
@click.option("--model", metavar="NAME", help="Model name, if the files do not contain it.")
def import_(files: tuple[Path, ...], output: str, system: str | None, model: str | None) -> int:
    """Import result files of other systems as run folders.

    \b
    Examples:
      karat import results.csv -o imported
      karat import mteb-results/no-revision --model my-encoder -o imported
      karat import taco/metrics_*.csv --as taco -o imported

    Exit code: 0 all files were imported, 1 some were not, 2 none could be.
    """
    from karat.results.imports import import_results

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
@machine
def status(runs: tuple[Path, ...], shape: str | None) -> int:
    """Show the progress of running or finished runs.

    Counts jobs that are done, failed, declined, running and left.

    \b
    Example:
      karat status results

    Exit code: 0 all runs are finished, 1 jobs are left, 2 invalid input.
    """
    from karat.report.progressed import show_status

    return show_status(list(runs), shape)
