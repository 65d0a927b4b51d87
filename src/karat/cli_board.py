"""``karat leaderboard`` and ``robustness``: what runs are worth together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS, machine


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--by", type=click.Choice(["task", "kind", "dataset"]), help="Rank within each.")
@click.option(
    "--missing",
    default="worst",
    show_default=True,
    metavar="RULE",
    help="What a missing score counts as: worst (of its fold, for failures), exclude (only what "
    "all models have), baseline:MODEL (that model's score).",
)
@click.option(
    "--normalise",
    metavar="SCALE",
    help="Add scores from 0 to 1: range (0 is the worst model of a task), baseline:MODEL (0 is "
    "that model).",
)
@click.option("--sort", metavar="COLUMN", help="The better first: score, seconds, a task, …")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="TASK=METRIC",
    help="Another metric of a task. Repeatable.",
)
@machine
def leaderboard(runs: tuple[Path, ...], shape: str | None, **given: Any) -> None:
    """Rank the models of run folders; a folder of run folders stands for all of them.

    \b
    Examples:
      karat leaderboard results
      karat leaderboard results --by task --sort seconds
      karat leaderboard results --normalise range --missing baseline:dummy
      karat leaderboard results/onehot.* results/skrub.* --format latex > board.tex
    """
    from karat.report.runs import metric_by_task, show_board

    show_board(list(runs), shape, **{**given, "metrics": metric_by_task(given["metrics"])})


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "--baseline",
    multiple=True,
    metavar="MODEL",
    help="Whose errors are 1 in mCE and relative mCE. Repeatable: the first that a task has.",
)
@click.option("--metric", metavar="NAME", help="Another metric than the first of each task.")
@click.option("--compositions", is_flag=True, help="Of composed corruptions, not of plain ones.")
@click.option("--by-corruption", is_flag=True, help="A line per corruption and model.")
@machine
def robustness(runs: tuple[Path, ...], shape: str | None, **given: Any) -> None:
    """Tell what corruption costs: retention, area under the severity curve, worst case, mCE.

    \b
    Examples:
      karat robustness results
      karat robustness results --baseline logreg --baseline linreg --format markdown
    """
    from karat.report.runs import show_robustness

    show_robustness(list(runs), shape, **given)
