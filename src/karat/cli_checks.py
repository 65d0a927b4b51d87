"""``karat checks``: what the numbered checks find in run folders, and what they mean."""

from __future__ import annotations

from pathlib import Path

import click

from karat.cli_options import SETTINGS, ignore
from karat.errors import DefinitionError


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, type=click.Path(path_type=Path), metavar="[RUN...]")
@ignore
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "note"]),
    help="Exit code 1 if there is a finding of this level, or of one that matters more.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON.")
@click.option("--explain", metavar="CODE", help="What a check means, and what to do.")
@click.option("--list", "listed", is_flag=True, help="All checks there are.")
def checks(
    runs: tuple[Path, ...],
    ignore: tuple[str, ...],
    fail_on: str | None,
    as_json: bool,
    explain: str | None,
    listed: bool,
) -> int:
    """Check runs for what makes scores mislead: leaks, constant vectors, noise read as order.

    \b
    Examples:
      karat checks results
      karat checks results --ignore KRT102 --fail-on warning
      karat checks --explain KRT302

    Exit code: 0, or 1 if there is a finding of the level of --fail-on.
    """
    from karat.report.findings import show_checks, show_page, show_rules

    if explain is not None:
        return show_page(explain)
    if listed:
        return show_rules()
    if not runs:
        raise DefinitionError("name run folders to check; --list and --explain CODE need none.")
    return show_checks(runs, ignore, fail_on, as_json=as_json)
