"""``karat leaderboard`` and ``robustness``: what runs are worth together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS, ignore, machine
from karat.errors import DefinitionError


@click.command(context_settings=SETTINGS)
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--by", type=click.Choice(["task", "kind", "dataset"]), help="Rank within each.")
@click.option(
    "--missing",
    metavar="RULE",
    help="What a missing score counts as: worst (of its fold, for failures; the rest is left out), "
    "penalise (the worst, whyever it is missing), exclude (only what all models have is compared), "
    "baseline:MODEL (that model's score).  [default: worst]",
)
@click.option("--common", is_flag=True, help="Only what all models have: --missing exclude.")
@click.option(
    "--columns",
    metavar="NAME,...",
    help="What to show beside ranks: tasks, costs, any column, and elo (or elo:MODEL, which is at "
    "1500), borda, wins, score, median, pareto (or pareto:memory_mb).  [default: tasks,costs]",
)
@click.option(
    "--normalise",
    metavar="SCALE",
    help="Add scores from 0 to 1: range (0 is the worst model of a task), baseline:MODEL (0 is "
    "that model).",
)
@click.option("--sort", metavar="COLUMN", help="The better first: elo, score, seconds, a task, …")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="TASK=METRIC",
    help="Another metric of a task. Repeatable.",
)
@ignore
@machine
def leaderboard(runs: tuple[Path, ...], shape: str | None, **given: Any) -> None:
    """Rank the models of run folders; a folder of run folders stands for all of them.

    \b
    Examples:
      karat leaderboard results
      karat leaderboard results --by task --sort seconds
      karat leaderboard results --normalise range --missing baseline:dummy
      karat leaderboard results --columns elo,borda,wins,pareto,costs --sort elo
      karat leaderboard results --common
      karat leaderboard results/onehot.* results/skrub.* --format latex > board.tex
    """
    from karat.report.runs import columns_of, metric_by_task, show_board

    rule, common = given.pop("missing"), given.pop("common")
    if common and rule not in (None, "exclude", "common"):
        raise DefinitionError(f"--common is --missing exclude; say it, or --missing {rule}.")
    given["missing"] = "exclude" if common else rule or "worst"
    given["metrics"] = metric_by_task(given["metrics"])
    given["columns"] = columns_of(given["columns"])
    show_board(list(runs), shape, **given)


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
