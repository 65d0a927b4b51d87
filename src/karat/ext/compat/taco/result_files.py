"""TACO's files of metrics and confusion matrices, written and imported, and its plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from karat.core.files import safe_name
from karat.core.numbers import NUMBER
from karat.core.writing import write_output
from karat.corruptions.view import CLEAN, View
from karat.errors import KaratError
from karat.results.importing import ImportLog, ModelResults, Row, Sample, direction, rows
from karat.results.load import exported_runs, exported_scores
from karat.results.rescore import view_of
from karat.results.run import Run
from karat.results.tables import FINAL_EPOCH

if TYPE_CHECKING:
    from karat.results.run import Runs

#: the columns of TACO's metrics files
TACO_COLUMNS = ("dataset", "task", "corruption", "severity", "model", "metric", "value")
CONFUSION_COLUMNS = (*TACO_COLUMNS[:5], "truth", "prediction", "count")
#: TACO's names of metrics, where they differ
METRICS = {"auc": "AUC", "acc": "accuracy", "rmse": "RMSE"}
OURS = {theirs: ours for ours, theirs in METRICS.items()}
#: the metric of a metrics file; scripts for TACO's files expect one row per view and model
MAIN = {"classification": ("AUC", "auc_ovr"), "regression": ("RMSE",)}
LOOKS = f"a CSV file with the columns {', '.join(TACO_COLUMNS)}"
PLOT_FORMATS = ("png", "svg")
KINDS = {"classes": "classification", "numbers": "regression"}
#: Karat's models by TACO's names, for each kind of task
MODEL_NAMES = {
    "classification": {
        "logreg": "logistic-regression",
        "svm": "svm",
        "rf": "random-forest",
        "xgb": "xgboost",
        "ffn": "mlp",
    },
    "regression": {
        "linreg": "linear-regression",
        "svr": "svm",
        "rf_reg": "random-forest",
        "xgb_reg": "xgboost",
        "ffn_reg": "mlp",
    },
}
VIEW = ["corruption", "severity"]


def taco_tables(runs: Runs) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield TACO's files; the file name has the task if a dataset has several tasks."""
    exported = exported_runs(runs)
    tasks = _tasks(exported)
    times = Counter(tasks.values())
    scores = exported_scores([run for run, _, _ in exported])
    scores = scores[scores["epoch"] == FINAL_EPOCH]
    for task, (dataset, kind) in tasks.items():
        part = scores[scores["task"] == task]
        if not len(part):
            continue
        parts = [dataset, *([task] if times[dataset, kind] > 1 else []), kind]
        stem = "_".join(map(safe_name, parts))
        part = part.assign(dataset=dataset, task=kind, metric=part["metric"].replace(METRICS))
        means = part.groupby(list(TACO_COLUMNS[:-1]), sort=False, as_index=False)["value"].mean()
        is_main = means["metric"] == _main_metric(means["metric"], kind)
        named = _named(means, kind)[list(TACO_COLUMNS)]
        yield f"metrics_{stem}.csv", named[is_main].reset_index(drop=True)
        if not is_main.all():
            yield f"other_metrics_{stem}.csv", named[~is_main].reset_index(drop=True)
        counts = list(_counts(exported, task)) if kind == "classification" else []
        if counts:
            table = pd.DataFrame(counts, columns=[*VIEW, *CONFUSION_COLUMNS[4:]])
            keys = list(CONFUSION_COLUMNS[:-1])
            grouped = table.assign(dataset=dataset, task=kind).groupby(keys, sort=False)
            sums = grouped["count"].sum().reset_index()
            yield f"confusion_{stem}.csv", _named(sums, kind)[list(CONFUSION_COLUMNS)]


def _main_metric(metrics: pd.Series, kind: str) -> str:
    """Return TACO's metric of a kind of task, or the first one if it has another."""
    present = metrics.unique().tolist()
    return next((name for name in MAIN[kind] if name in present), str(present[0]))


def write_files(tables: Iterable[tuple[str, pd.DataFrame | str]], folder: str | Path) -> list[Path]:
    """Write tables as CSV files and texts unchanged into a folder, and return the files."""
    written = []
    for name, table in tables:
        path = Path(folder) / name
        text = table if isinstance(table, str) else table.to_csv(index=False, lineterminator="\n")
        write_output(path, text)
        written.append(path)
    return written


def _tasks(exported: Iterable[tuple[Run, str, dict[str, str]]]) -> dict[str, tuple[str, str]]:
    """Return the dataset and the kind of each classification or regression task."""
    tasks = {}
    for run, _, label in exported:
        for task in run.about["tasks"]:
            kind = task["kind"]
            for record in run.records() if not kind and "imported" not in run.about else ():
                if record["task"] == task["name"] and record["status"] == "ok":
                    kind = KINDS.get(run.predictions(task["name"], record["fold"]).answers, "")
                    break
            if kind in KINDS.values():
                tasks[label[task["name"]]] = (str(task["dataset"]), kind)
    return tasks


def _named(table: pd.DataFrame, kind: str) -> pd.DataFrame:
    """Return the table with TACO's models and views: ``clean`` at 0.0, ``a+b`` at 0.2+0.1."""
    distinct = set(zip(*(table[name] for name in VIEW), strict=True))
    views = {pair: view_in_file(*pair) for pair in distinct}
    pairs = [views[pair] for pair in zip(*(table[name] for name in VIEW), strict=True)]
    severity = pd.Series([pair[1] for pair in pairs], index=table.index, dtype=object)
    theirs = {ours: theirs for theirs, ours in MODEL_NAMES[kind].items()}
    models = table["model"].replace(theirs)
    return table.assign(corruption=[pair[0] for pair in pairs], severity=severity, model=models)


def view_in_file(corruption: str, severity: float) -> tuple[str, float | str]:
    """Return the name and the severity of a view as they are in TACO's files."""
    parts = View(corruption, severity).parts() or [("clean", 0.0)]
    # remove floating-point noise
    doses = [round(dose, 12) for _, dose in parts]
    return "+".join(name for name, _ in parts), "+".join(map(str, doses)) if doses[1:] else doses[0]


def _counts(
    exported: Iterable[tuple[Run, str, dict[str, str]]], task: str
) -> Iterator[tuple[Any, ...]]:
    """Yield corruption, severity, model, true class, predicted class and count."""
    for run, model, label in exported:
        # imported runs have no predictions
        for record in run.records() if "imported" not in run.about else ():
            if label[record["task"]] != task:
                continue
            for view in record["views"]:
                if view["status"] == "ok":
                    for truth, answer, count in _view_counts(run, record, view):
                        yield view["corruption"], view["severity"], model, truth, answer, count


def _view_counts(
    run: Run, record: Mapping[str, Any], view: Mapping[str, Any]
) -> Iterator[tuple[str, str, int]]:
    """Yield true class, predicted class and count, from the record or from the predictions."""
    if "confusion" in view:
        yield from map(tuple, view["confusion"])
        return
    answers = run.labels(record["task"], record["fold"], view_of(view).name)
    both = (answers[name].tolist() for name in ("truth", "predictions"))
    for (truth, answer), count in sorted(Counter(zip(*both, strict=True)).items()):
        yield truth, answer, count


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these, or a confusion matrix."""
    return sample.shape == "csv" and (sample.has(*TACO_COLUMNS) or sample.has(*CONFUSION_COLUMNS))


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per model with all its datasets."""
    by_model: dict[str, ModelResults] = {}
    files: dict[str, list[Path]] = {}
    for sample in samples:
        if not sample.has(*TACO_COLUMNS):
            log.note(f"{sample.path.name}: skipped, it has counts and no scores.")
            continue
        try:
            lines = [(row, row.number("value"), _taco_view(row)) for row in rows(sample)]
        except KaratError as error:
            log.problems.append(str(error))
            continue
        for line in lines:
            model = log.model or line[0].text("model")
            _add(by_model.setdefault(model, ModelResults("taco", model, "taco", [])), line, log)
            files.setdefault(model, []).append(sample.path)
    for model, run in by_model.items():
        run.files = list(dict.fromkeys(files[model]))
        yield run


def _add(results: ModelResults, line: tuple[Row, float | None, View], log: ImportLog) -> None:
    row, value, view = line
    metric = OURS.get(row.text("metric"), row.text("metric"))
    if direction(metric) is None:
        log.skipped(row.path, [metric])
        return
    task = row.text("dataset")
    facts = {"dataset": task, "metric": metric, "kind": row.text("task")}
    if results.tasks.setdefault(task, facts)["kind"] != facts["kind"]:
        task = f"{task} ({facts['kind']})"  # one dataset with two tasks
        results.tasks.setdefault(task, facts)
    if row.text("metric") in MAIN.get(facts["kind"], ()):
        results.tasks[task]["metric"] = metric  # whatever the order of the files
    # the values are means over folds and draws, imported as one fold and one draw
    results.put(results.job(task), metric, value, view)


def _taco_view(row: Row) -> View:
    """Return the view of ``clean`` at 0.0, ``a`` at 0.2, or ``a+b`` at ``0.2+0.1``."""
    try:
        return parse_view(row.text("corruption"), row.text("severity"))
    except ValueError as error:
        raise row.wrong("severity", str(error)) from None


def parse_view(corruption: str, severity: str) -> View:
    """Return the view of TACO's two columns, or raise a ValueError that says what is expected."""
    names, parts = corruption.split("+"), severity.split("+")
    clean = corruption in ("", "clean")
    if clean and not severity:
        return CLEAN
    if not all(map(NUMBER.fullmatch, parts)):
        raise ValueError("a number")
    doses = [float(part) for part in parts]
    if clean and any(doses):
        raise ValueError("0 without corruption")
    if not all(0 <= dose < math.inf for dose in doses):
        raise ValueError("a finite number >= 0")
    if clean:
        return CLEAN
    if len(doses) == 1 or len(set(doses)) == 1:
        return View(corruption, doses[0])
    if len(doses) != len(names):
        raise ValueError(f"one number for each of {corruption}")
    return View("+".join(f"{n}@{d:g}" for n, d in zip(names, doses, strict=True)), 1.0)
