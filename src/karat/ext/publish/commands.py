"""The commands that publish: verify and site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli.options import (
    PATH,
    SETTINGS,
    define_option,
    format_option,
    option,
    pool_option,
    repeatable,
    run_folders,
)
from karat.errors import DefinitionError


@click.command(context_settings=SETTINGS)
@run_folders
@repeatable(
    "--against RUN",
    "Run folder, or folder of runs, whose predictions must not be equal. Repeatable.",
    type=PATH,
)
@option("--jobs N", "Number of jobs to run again.", type=click.IntRange(0), default=3)
@option("--seed N", "Seed of the sample of these jobs.  [default: random]", type=click.IntRange(0))
@option(
    "-m, --model MODEL",
    "The model to run again, as for karat run.  [default: the built-in or defined one with the "
    "name in the run]",
)
@option("--suite NAME", "The suite of the run.  [default: the defined one with this name]")
@option(
    "--data FILE",
    "The table file of a run on a table.  [default: the file that the run names]",
    type=PATH,
)
@define_option
@format_option
def verify(runs: tuple[Path, ...], shape: str | None, **options: Any) -> int:
    """Check that the results of runs can be trusted.

    Checks the records and the data, computes every score again from the predictions, runs a sample
    of jobs again if the model is at hand, and finds copied predictions and impossible times. RUN is
    a run folder or a folder that contains run folders.

    \b
    Examples:
      karat verify results/NEW
      karat verify results/NEW --against results --jobs 10
      karat verify results/NEW -m my_module:MyEncoder --format markdown
      karat verify out --data moved/churn.csv

    Exit code: 0 not refused, 1 refused, 2 invalid input. A run is verified only if all checks were
    made.
    """
    from karat.ext.publish.verification import verify as verify_run
    from karat.output.result import show_all
    from karat.results.load import require_results
    from karat.results.run import open_runs

    several = open_runs(runs, damaged=True)
    if options["model"] is not None and len(several) > 1:
        raise DefinitionError(f"--model needs one run, got {len(several)}.")
    if show_all([verify_run(run, **options) for run in several], shape):
        return 1
    require_results(several, "verify")
    return 0


@click.command(context_settings=SETTINGS)
@run_folders
@option("-o, --output DIR", "Folder of the site.", default="site")
@option("--title TEXT", "Title of the site.  [default: the names of the suites]")
@pool_option
def site(runs: tuple[Path, ...], output: str, **options: Any) -> None:
    """Write a static site with a page per model and task.

    It has the leaderboard, the report, and JSON of every page. RUN is a run folder or a folder that
    contains run folders.

    \b
    Examples:
      karat site results
      karat site results -o public --title "Table encoders"
    """
    from karat.ext.publish.site import site as write

    files = write(list(runs), output, **options)
    click.echo(f"{files[1]}   ({len(files):,} files)")
