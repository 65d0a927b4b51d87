"""``karat leaderboard`` and ``karat robustness``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from karat.cli_options import SETTINGS, ignore, machine, run_folders
from karat.errors import DefinitionError


@click.command(context_settings=SETTINGS)
@run_folders
@click.option(
    "--by", type=click.Choice(["task", "kind", "dataset"]), help="Rank within each of these."
)
@click.option(
    "--missing",
    metavar="RULE",
    help="How to count missing scores: worst (failures get the worst score of their fold, "
    "everything else is left out), penalise (every missing score is the worst), exclude (compare "
    "only tasks and folds that all models have), baseline:MODEL (use that model's score).  "
    "[default: worst]",
)
@click.option("--common", is_flag=True, help="Short for --missing exclude.")
@click.option(
    "--columns",
    metavar="NAME,...",
    help="Columns to show with the ranks: tasks, costs, any column name, elo (or elo:MODEL to set "
    "that model to 1500), borda, wins, score, median, pareto (or pareto:memory_mb).  "
    "[default: tasks,costs]",
)
@click.option(
    "--normalize",
    "normalise",
    metavar="SCALE",
    help="Add scores scaled to 0-1: range (0 is the worst model of each task) or baseline:MODEL "
    "(0 is that model).",
)
@click.option("--sort", metavar="COLUMN", help="Sort by this column, best first.")
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="TASK=METRIC",
    help="Use this metric for a task. Repeatable.",
)
@ignore
@machine
def leaderboard(runs: tuple[Path, ...], shape: str | None, **given: Any) -> None:
    """Rank the models of run folders.

    RUN is a run folder or a folder that contains run folders.

    \b
    Examples:
      karat leaderboard results
      karat leaderboard results --by task --sort seconds
      karat leaderboard results --normalize range --missing baseline:dummy
      karat leaderboard results --columns elo,borda,wins,pareto,costs --sort elo
      karat leaderboard results --common
      karat leaderboard results/onehot.* results/skrub.* --format latex > table.tex
    """
    from karat.report.runs import columns_of, metric_by_task, show_board

    rule, common = given.pop("missing"), given.pop("common")
    if common and rule not in (None, "exclude", "common"):
        raise DefinitionError(f"--common conflicts with --missing {rule}; use one of them.")
    given["missing"] = "exclude" if common else rule or "worst"
    given["metrics"] = metric_by_task(given["metrics"])
    given["columns"] = columns_of(given["columns"])
    show_board(list(runs), shape, **given)


@click.command(context_settings=SETTINGS)
@run_folders
@click.option(
    "--baseline",
    multiple=True,
    metavar="MODEL",
    help="Reference model of mCE and relative mCE. Repeatable: each task uses the first one it "
    "has.",
)
@click.option(
    "--metric", metavar="NAME", help="Use this metric.  [default: each task's primary metric]"
)
@click.option("--compositions", is_flag=True, help="Evaluate composed corruptions only.")
@click.option("--by-corruption", is_flag=True, help="One line per corruption and model.")
@machine
def robustness(runs: tuple[Path, ...], shape: str | None, **given: Any) -> None:
    """Report how much corrupted data lowers the scores.

    Columns: retention, area under the severity curve, worst case, mCE and relative mCE.

    \b
    Examples:
      karat robustness results
      karat robustness results --baseline logreg --baseline linreg --format markdown
    """
    from karat.report.runs import show_robustness

    show_robustness(list(runs), shape, **given)
