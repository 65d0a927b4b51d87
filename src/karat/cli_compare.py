"""``karat compare``: a run beside earlier ones, a model beside another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS, what_to_compare


@click.command(context_settings=SETTINGS)
@what_to_compare
def compare(run: Path, others: tuple[str, ...], folder: str | None, **given: Any) -> None:
    """Tell how RUN stands beside earlier runs, task by task: values, ranks, coverage.

    \b
    Examples:
      karat compare results/onehot.quickstart.default.local.20261115T201300
      karat compare results/RUN --with OTHER --with ANOTHER --common --csv comparison
    """
    from karat.report.comparison import show_comparison
    from karat.results.compare import compare as look

    as_json = given.pop("as_json")
    found = look(run, list(others) or "all", **given)
    show_comparison(found, as_json=as_json)
    for path in found.to_csv(folder) if folder else ():
        click.echo(path, err=True)
