"""The command ``karat geval``: evaluate with progress, print the scores and the result folder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import pandas as pd

from karat.compat.geval.manager import Report, run_parameters
from karat.compat.geval.parameters import TASKS, Parameters, truth
from karat.progress import choose
from karat.results.geval_names import LOWER
from karat.session import Stopped

#: metrics shown for each gold standard
MAIN = {
    "Classification": ("accuracy",),
    "Regression": ("root_mean_squared_error",),
    "Clustering": ("v_measure_score",),
    "DocumentSimilarity": ("harmonic_mean",),
    "EntityRelatedness": ("kendalltau_correlation", "kendalltau_correlation_penalised"),
    "SemanticAnalogies": ("accuracy", "accuracy_over_all"),
}
#: selected on inner folds only, so it is shown instead of the best score on the test folds
HONEST = "NestedChoice"


def run(parameters: Parameters) -> int:
    """Evaluate, print the best score of each gold standard, and return the exit code."""
    verbose = truth("debugging_mode", parameters.debugging_mode)
    try:
        report = run_parameters(parameters.checked(), choose(verbose=verbose))
    except Stopped as stop:
        click.echo(f"stopped: {stop.kept}.", err=True)
        return 130
    show(report)
    return 1 if report.failed or report.values is None else 0


def show(report: Report) -> None:
    """Print one line per gold standard and main metric, then the problems and the folder."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("task", "gold standard", "coverage", "model", "metric", "score"):
        justify: Any = "right" if column in ("coverage", "score") else "left"
        table.add_column(column, justify=justify, no_wrap=column not in ("gold standard", "model"))
    for cells in _best_scores(report):
        table.add_row(*map(Text, cells))
    console = Console()
    console.print(table)
    for problem in report.problems:
        console.print(Text(problem), style="yellow")
    console.print(Text(f"\n{report.folder}"))


def _best_scores(report: Report) -> Iterator[tuple[str, ...]]:
    if report.values is None:
        return
    own = report.values[report.values["test_name"] == report.run_id]
    keys = ["task_name", "gold_standard_file", "metric"]
    for (task, gold, metric), rows in own.groupby(keys, sort=False):
        honest = rows["model"] == HONEST
        rows = rows[honest] if honest.any() else rows
        scores = pd.to_numeric(rows["score_value"])
        if metric not in MAIN[str(task)] or scores.isna().all():
            continue
        best: Any = rows.loc[scores.idxmin() if metric in LOWER else scores.idxmax()]
        model = best["model"] or best["model_configuration"]
        others = f" (best of {len(rows)})" if len(rows) > 1 else ""
        coverage, score = f"{best['coverage']:.1%}", f"{best['score_value']:.4f}"
        yield TASKS[str(task)], str(gold), coverage, model + others, str(metric), score
