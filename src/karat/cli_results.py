"""``karat status``, ``rescore`` and ``import``: run folders looked at, scored again and filled."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli_options import SETTINGS, define, machine
from karat.errors import KaratError


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="A metric to compute besides those of the run. Repeatable.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Write new run folders with the new scores there; without it nothing is written.",
)
@define
def rescore(
    runs: tuple[Path, ...], metrics: tuple[str, ...], output: Path | None, define: tuple[Path, ...]
) -> int:
    """Compute all scores of run folders again from their predictions; tell what differs.

    \b
    Examples:
      karat rescore results
      karat rescore results/RUN --metric balacc --metric brier -o rescored

    Exit code: 0 all is as it was, 1 a score differs or a file cannot be used, 2 a mistake in what
    was asked.
    """
    from karat.catalogue import Catalogue
    from karat.report.rescored import show_rescored
    from karat.results.rescore import check_metrics
    from karat.results.rescore import rescore as again
    from karat.results.run import open_runs

    if define:
        Catalogue(define).definitions  # noqa: B018  reading them registers the parts they hold
    chosen, code = check_metrics(metrics), 0
    for run in open_runs(runs):
        try:
            done = again(run, chosen)
            written = done.write(output).folder if output is not None else None
        except KaratError as error:
            click.echo(click.style("error: ", fg="red", bold=True) + str(error), err=True)
            code = 1
        else:
            code = max(code, show_rescored(done, written))
    return code


@click.command("import", context_settings=SETTINGS)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)
@click.option(
    "-o", "--output", default="results", show_default=True, metavar="DIR", help="For run folders."
)
@click.option(
    "--as",
    "system",
    metavar="NAME",
    help="Whose results they are: amlb, geval, mteb, tabeb, taco, ulysses.  [as they look]",
)
@click.option("--model", metavar="NAME", help="The model's name, where the files do not tell it.")
def import_(files: tuple[Path, ...], output: str, system: str | None, model: str | None) -> int:
    """Read result files of other systems, or folders of them, and write run folders.

    \b
    Examples:
      karat import results.csv -o imported
      karat import mteb-results/no-revision --model my-encoder -o imported
      karat import taco/metrics_*.csv --as taco -o imported

    Exit code: 0 all was read, 1 some files were not, 2 nothing could be.
    """
    from karat.results.imports import import_results

    done = import_results(list(files), output, system=system, model=model)
    for run in done.runs:
        click.echo(run.folder)
    for note in done.notes:
        click.echo(f"note: {note}", err=True)
    for problem in done.problems:
        click.echo(click.style("error: ", fg="red", bold=True) + problem, err=True)
    return 1 if done.problems else 0


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@machine
def status(runs: tuple[Path, ...], shape: str | None) -> int:
    """Tell how far runs have come: done, failed, running and left, while they run or after.

    \b
    Example:
      karat status results

    Exit code: 0 all is finished, 1 jobs are left, 2 a mistake in what was asked.
    """
    from karat.report.progressed import show_status

    return show_status(list(runs), shape)
