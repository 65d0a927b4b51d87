"""``karat lint``: numbered checks of run folders."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli_options import PATH, SETTINGS, ignore, machine
from karat.errors import DefinitionError


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, type=PATH, metavar="[RUN...]")
@ignore
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    help="Exit with code 1 if there is a finding of this level or a more severe one.",
)
@machine
@click.option("--explain", metavar="CODE", help="Explain a check and how to fix its findings.")
@click.option("--list", "list_checks", is_flag=True, help="List all checks.")
def lint(
    runs: tuple[Path, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    shape: str | None,
    explain: str | None,
    list_checks: bool,
) -> int:
    """Check runs for problems that make scores misleading.

    The checks find leakage, constant vectors, saturated tasks, differences within noise, etc.

    \b
    Examples:
      karat lint results
      karat lint results --ignore KRT102 --fail-on warning
      karat lint --explain KRT302

    Exit code: 0, or 1 if there is a finding of the level of --fail-on.
    """
    from karat.report.findings import show_checks, show_page, show_rules

    if explain is not None:
        return show_page(explain)
    if list_checks:
        return show_rules()
    if not runs:
        raise DefinitionError("karat lint needs run folders, --list or --explain CODE.")
    return show_checks(runs, ignore, fail_on, shape=shape)
