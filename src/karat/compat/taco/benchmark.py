"""TACO's five models on one split, on clean and on corrupted data."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pandas as pd

from karat.catalogue import Catalogue
from karat.compat.taco.corruptions import FOR_CLASSES, NAMES
from karat.compat.taco.splits import TASKS, given_split
from karat.dataset import Dataset
from karat.errors import DataError, MissingExtra
from karat.evaluate import evaluate
from karat.progress import Progress
from karat.report.plots import plot_runs
from karat.results.exports import taco_tables, write_tables
from karat.results.files import safe_name
from karat.results.run import Run
from karat.task import Task

SEVERITIES = (0.1, 0.2, 0.4)
SEED = 42
MODELS = {
    "classification": ("logreg", "svm", "rf", "xgb", "ffn"),
    "regression": ("linreg", "svm", "rf", "xgb", "ffn"),
}


def run_benchmark(
    dataset_name: str,
    X_train: Any,
    X_test: Any,
    y_train: Any,
    y_test: Any,
    results_dir: str | Path = "results",
    task: str | None = None,
    severities: Sequence[float] = SEVERITIES,
) -> dict[str, Any]:
    """Fit on the training rows, test on clean and corrupted data, and write TACO's files.

    ``results_dir`` gets ``metrics_<name>_<task>.csv``, ``confusion_<name>_classification.csv``,
    the plots in ``<name>_plots`` and, in ``runs``, the run folders with all predictions. The
    default ``task`` is inferred from ``y``. Models that cannot be evaluated give a warning.
    """
    data = given_split(dataset_name, (X_train, X_test), (y_train, y_test), task)
    _warned(benchmark(data, Setting(Path(results_dir), tuple(severities))))
    return {
        "dataset_name": dataset_name,
        "task": TASKS[data.kind],
        "results_dir": results_dir,
        "severities": severities,
    }


def run_classification_suite(
    name: str,
    X_train: Any,
    X_test: Any,
    y_train: Any,
    y_test: Any,
    results_dir: str | Path = "results",
    severities: Sequence[float] = SEVERITIES,
    random_state: int = SEED,
) -> pd.DataFrame:
    """Run a classification benchmark and return the table of ``metrics_<name>_classification``."""
    data = given_split(name, (X_train, X_test), (y_train, y_test), "classification")
    return _warned(benchmark(data, Setting(Path(results_dir), tuple(severities), random_state)))


def run_regression_suite(
    name: str,
    X_train: Any,
    X_test: Any,
    y_train: Any,
    y_test: Any,
    results_dir: str | Path = "results",
    severities: Sequence[float] = SEVERITIES,
    random_state: int = SEED,
) -> pd.DataFrame:
    """Run a regression benchmark and return the table of ``metrics_<name>_regression``."""
    data = given_split(name, (X_train, X_test), (y_train, y_test), "regression")
    return _warned(benchmark(data, Setting(Path(results_dir), tuple(severities), random_state)))


@dataclass(frozen=True)
class Setting:
    """Options of the benchmark; the default of ``draws`` is that of the suite ``taco``."""

    results_dir: Path
    severities: tuple[float, ...] = SEVERITIES
    seed: int = SEED
    draws: int | None = None
    workers: int = 1


@dataclass(frozen=True)
class Results:
    """The table of metrics, the files written, and notes for the user."""

    metrics: pd.DataFrame
    files: list[Path]
    notes: list[str]


def benchmark(data: Dataset, setting: Setting, progress: Progress | None = None) -> Results:
    """Evaluate the models on a dataset with train and test rows, and write TACO's files."""
    task = _task(data, setting)
    runs = evaluate(
        list(MODELS[task.kind]),
        task,
        seed=setting.seed,
        workers=setting.workers,
        output=setting.results_dir / "runs",
        cache=False,
        progress=progress,
    )
    notes = list(_notes(runs))
    tables = list(taco_tables(runs))
    if not tables:
        raise DataError(f"{data.name}: no model could be evaluated. {' '.join(notes)}")
    files = write_tables(tables, setting.results_dir)
    try:
        folder = setting.results_dir / f"{safe_name(data.name)}_plots"
        files += plot_runs(runs, folder) if task.corruptions else []
    except MissingExtra as error:
        notes.append(f"no plots: {error}.")
    return Results(tables[0][1], files, notes)


def _task(data: Dataset, setting: Setting) -> Task:
    """Return a task of the suite ``taco`` with this dataset and these severities."""
    task = TASKS[data.kind]
    pattern = "multiclass" if len(data.classes) > 2 else task
    definition = Catalogue().definitions.get("tasks", f"taco-{pattern}")
    return Task(
        data.name,
        data,
        probe=definition["probe"],
        split="fixed",
        metrics=definition["metrics"],
        corruptions=_corruptions(task, setting.severities),
        draws=definition["draws"] if setting.draws is None else setting.draws,
        kind=task,
    )


def _corruptions(task: str, severities: Sequence[float]) -> dict[str, Sequence[float]]:
    """Return all corruptions at all severities, and all pairs at the middle severity."""
    if not severities:
        return {}
    names = [name for name in NAMES if task == "classification" or name not in FOR_CLASSES]
    middle = severities[len(severities) // 2]
    singles = {name: severities for name in names}
    return {**singles, **{f"{a}+{b}": [middle] for a, b in combinations(names, 2)}}


def _notes(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the failures and notes of models, and corruptions that do not apply to the data."""
    declined: dict[str, None] = {}
    for run in runs:
        for record in run.records():
            failure = [record["info"]] if record["status"] != "ok" else []
            for text in (*failure, *record["notes"]):
                yield f"{run.model}: {text.rstrip('.')}."
            views = [view for view in record["views"] if view["status"] == "declined"]
            declined |= dict.fromkeys(view["info"].rstrip(".") for view in views)
    yield from (f"left out: {reason}." for reason in declined)


def _warned(results: Results) -> pd.DataFrame:
    if results.notes:
        # show the line that called the public function
        warnings.warn(" ".join(results.notes), stacklevel=3)
    return results.metrics
