"""Export of scores in the file formats of other benchmarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from karat.corruptions.view import View
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.results.export_amlb import amlb_tables, new_amlb_tables
from karat.results.export_geval import geval_tables
from karat.results.files import safe_name, write_atomic
from karat.results.gather import named_runs, named_scores
from karat.results.layouts import FINAL
from karat.results.reread import view_of
from karat.results.run import Run
from karat.results.summary import senteval_tables

#: the columns of TACO's metrics files
TACO = ("dataset", "task", "corruption", "severity", "model", "metric", "value")
CONFUSION = ("dataset", "task", "corruption", "severity", "model", "truth", "prediction", "count")
#: TACO's names of metrics, where they differ
METRICS = {"auc": "AUC", "acc": "accuracy", "rmse": "RMSE"}
KINDS = {"classes": "classification", "numbers": "regression"}
VIEW = ["corruption", "severity"]

#: file names with their tables or texts
Tables = Iterable[tuple[str, pd.DataFrame | str]]


def export(runs: Any, shape: str, folder: str | Path) -> list[Path]:
    """Write the scores of runs in the format of another benchmark, and return the files.

    ``"taco"`` writes ``metrics_<dataset>_<task>.csv`` (means over folds and draws) and
    ``confusion_<dataset>_<task>.csv`` (counts over all folds and draws). ``"ulysses"`` writes
    ``results_nonagg.csv``, ``results_agg.json`` and ``summary.csv``, ``"geval"`` GEval's result
    files and its comparison; with several models, each model has its own folder. ``"amlb"``
    writes the AutoML Benchmark's ``results.csv`` as documented, ``"amlb-new"`` with its current
    columns; both for clean data only.
    """
    if shape not in SHAPES:
        raise DefinitionError(
            f'unknown export format "{shape}".{did_you_mean(shape, SHAPES)} '
            f"Available: {', '.join(SHAPES)}."
        )
    return write_tables(SHAPES[shape](runs), folder)


def write_tables(tables: Tables, folder: str | Path) -> list[Path]:
    """Write tables as CSV files and texts unchanged into a folder, and return the files."""
    written = []
    for name, table in tables:
        path = Path(folder) / name
        text = table if isinstance(table, str) else table.to_csv(index=False, lineterminator="\n")
        write_atomic(path, text)
        written.append(path)
    if not written:
        raise DataError("the runs have no classification or regression task to export.")
    return written


def taco_tables(runs: Any) -> Tables:
    """Yield TACO's files; the file name has the task if a dataset has several tasks."""
    found = named_runs(runs)
    tasks = _tasks(found)
    times = Counter(tasks.values())
    scores, _, _ = named_scores([run for run, _, _ in found])
    scores = scores[scores["epoch"] == FINAL]
    for task, (dataset, kind) in tasks.items():
        part = scores[scores["task"] == task]
        if not len(part):
            continue
        parts = [dataset, *([task] if times[dataset, kind] > 1 else []), kind]
        stem = "_".join(map(safe_name, parts))
        yield f"metrics_{stem}.csv", _metrics(part.assign(dataset=dataset, task=kind))
        counts = list(_counts(found, task)) if kind == "classification" else []
        if counts:
            names = [*VIEW, "model", "truth", "prediction", "count"]
            together = pd.DataFrame(counts, columns=names).assign(dataset=dataset, task=kind)
            yield f"confusion_{stem}.csv", _confusion(together)


def _tasks(found: Iterable[tuple[Run, str, dict[str, str]]]) -> dict[str, tuple[str, str]]:
    """Return the dataset and the kind of each classification or regression task."""
    tasks = {}
    for run, _, label in found:
        for task in run.about["tasks"]:
            kind = task["kind"] or _predicted_kind(run, task["name"])
            if kind in KINDS.values():
                tasks[label[task["name"]]] = (str(task["dataset"]), kind)
    return tasks


def _predicted_kind(run: Run, task: str) -> str:
    for record in run.records() if "imported" not in run.about else ():
        if record["task"] == task and record["status"] == "ok":
            return KINDS.get(run.predictions(task, record["fold"]).answers, "")
    return ""


def _metrics(scores: pd.DataFrame) -> pd.DataFrame:
    table = scores.assign(metric=scores["metric"].replace(METRICS))
    keys = [name for name in TACO if name != "value"]
    means = table.groupby(keys, sort=False, as_index=False)["value"].mean()
    return _named(means)[list(TACO)]


def _confusion(counts: pd.DataFrame) -> pd.DataFrame:
    keys = [name for name in CONFUSION if name != "count"]
    sums = counts.groupby(keys, sort=False, as_index=False)["count"].sum()
    return _named(sums)[list(CONFUSION)]


def _named(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with TACO's names of views: ``clean`` at 0.0, ``a+b`` at 0.2+0.1."""
    views = {pair: _view(*pair) for pair in set(zip(*(table[name] for name in VIEW), strict=True))}
    pairs = [views[pair] for pair in zip(*(table[name] for name in VIEW), strict=True)]
    severity = pd.Series([pair[1] for pair in pairs], index=table.index, dtype=object)
    return table.assign(corruption=[pair[0] for pair in pairs], severity=severity)


def _view(corruption: str, severity: float) -> tuple[str, float | str]:
    parts = View(corruption, severity).parts() or [("clean", 0.0)]
    # remove floating-point noise
    doses = [round(dose, 12) for _, dose in parts]
    return "+".join(name for name, _ in parts), "+".join(map(str, doses)) if doses[1:] else doses[0]


def _counts(
    found: Iterable[tuple[Run, str, dict[str, str]]], task: str
) -> Iterator[tuple[Any, ...]]:
    """Yield corruption, severity, model, true class, predicted class and count."""
    for run, model, label in found:
        # imported runs have no predictions
        for record in run.records() if "imported" not in run.about else ():
            if label[record["task"]] != task:
                continue
            for view in record["views"]:
                if view["status"] == "ok":
                    for pair, count in _counted(run, record, view):
                        yield view["corruption"], view["severity"], model, *pair, count


def _counted(
    run: Run, record: dict[str, Any], view: dict[str, Any]
) -> list[tuple[tuple[str, str], int]]:
    answers = run.labels(record["task"], record["fold"], view_of(view).name)
    pairs = zip(answers["truth"].tolist(), answers["predictions"].tolist(), strict=True)
    return sorted(Counter(pairs).items())


SHAPES: dict[str, Callable[[Any], Tables]] = {
    "amlb": amlb_tables,
    "amlb-new": new_amlb_tables,
    "geval": geval_tables,
    "taco": taco_tables,
    "ulysses": senteval_tables,
}
