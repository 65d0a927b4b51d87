"""What ``karat geval`` does: evaluate with progress, then tell the results and where they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pandas as pd

from karat.compat.geval.manager import FrameworkManager
from karat.compat.geval.parameters import TASKS, Parameters, truth
from karat.compat.geval.tables import LOWER
from karat.errors import FAILURES
from karat.progress import choose
from karat.session import Stopped

#: what a task is told by, in one line for each gold standard
MAIN = {
    "Classification": ("accuracy",),
    "Regression": ("root_mean_squared_error",),
    "Clustering": ("v_measure_score",),
    "DocumentSimilarity": ("harmonic_mean",),
    "EntityRelatedness": ("kendalltau_correlation", "kendalltau_correlation_penalised"),
    "SemanticAnalogies": ("accuracy", "accuracy_over_all"),
}
#: chosen without a look at the test folds, so that it is told before the best of several
HONEST = "NestedChoice"


def run(parameters: Parameters) -> int:
    """Evaluate, print the best of each gold standard, and return the exit code."""
    verbose = truth("debugging_mode", parameters.debugging_mode)
    try:
        folder = FrameworkManager(choose(verbose=verbose)).evaluate_parameters(parameters)
    except Stopped as stop:
        click.echo(f"stopped: {stop.kept}.", err=True)
        return 130
    show(folder)
    bad = any(f": {status}" in line for line in _problems(folder) for status in FAILURES)
    return 1 if bad or not (folder / "comparison_values.csv").is_file() else 0


def show(folder: Path) -> None:
    """Print one line per gold standard and main metric, then the problems and the folder."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("task", "gold standard", "coverage", "model", "metric", "score"):
        right = column in ("coverage", "score")
        whole = column in ("task", "coverage", "metric", "score")
        table.add_column(column, justify="right" if right else "left", no_wrap=whole)
    for line in _lines(folder):
        table.add_row(*(Text(cell) for cell in line))
    console = Console()
    console.print(table)
    problems = _problems(folder)
    for problem in problems:
        console.print(Text(problem), style="yellow")
    console.print(Text(f"\n{folder}"))


def _lines(folder: Path) -> Iterator[tuple[str, ...]]:
    path = folder / "comparison_values.csv"
    if not path.is_file():
        return
    table = pd.read_csv(path, keep_default_na=False, dtype=str)
    ours = table[table["test_name"] == _run_id(folder)]
    keys = ["task_name", "gold_standard_file", "metric"]
    for (task, gold, metric), part in ours.groupby(keys, sort=False):
        part = part[part["model"] == HONEST] if (part["model"] == HONEST).any() else part
        scores = pd.to_numeric(part["score_value"], errors="coerce")
        if metric not in MAIN[str(task)] or scores.isna().all():
            continue
        best: Any = part.loc[scores.idxmin() if metric in LOWER else scores.idxmax()]
        model = best["model"] or best["model_configuration"]
        others = f" (best of {len(part)})" if len(part) > 1 else ""
        share, score = f"{float(best['coverage']):.1%}", f"{float(best['score_value']):.4f}"
        yield TASKS[str(task)], gold, share, model + others, metric, score


def _log(folder: Path) -> list[str]:
    return (folder / "log.txt").read_text(encoding="utf-8").splitlines()


def _run_id(folder: Path) -> str:
    found = [line for line in _log(folder) if line.startswith("run id: ")]
    return found[0].removeprefix("run id: ") if found else ""


def _problems(folder: Path) -> list[str]:
    lines = _log(folder)
    begin = lines.index("PROBLEMS") + 1
    found = lines[begin : lines.index("", begin)]
    return [] if found == ["none"] else found
