"""Export of scores in the file formats of other benchmarks.

Import of TACO's ``metrics_<dataset>_<task>.csv``: a row per model, view and metric.
Plots of ``karat export``: curves over severities and bars of clean scores.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from karat.analysis.formatting import rounded
from karat.analysis.robustness import curves
from karat.compat.amlb.result_files import amlb_tables, new_amlb_tables
from karat.compat.geval.result_files import geval_tables
from karat.compat.ulysses.result_files import senteval_tables
from karat.core.files import safe_name, write_atomic
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.reporting.figures import COLORS, WIDTH, Plot, cut_name, make_figure, settings
from karat.reporting.formats import metric_label
from karat.reporting.plots import draw_lines
from karat.results.importing import ImportLog, ModelResults, Row, Sample, direction, rows
from karat.results.load import named_runs, named_scores
from karat.results.rescore import view_of
from karat.results.run import Run
from karat.results.tables import FINAL_EPOCH

#: the columns of TACO's metrics files
TACO_COLUMNS = ("dataset", "task", "corruption", "severity", "model", "metric", "value")
CONFUSION_COLUMNS = (
    "dataset",
    "task",
    "corruption",
    "severity",
    "model",
    "truth",
    "prediction",
    "count",
)
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
    if shape not in EXPORT_FORMATS:
        raise DefinitionError(
            f'unknown export format "{shape}".{did_you_mean(shape, EXPORT_FORMATS)} '
            f"Available: {', '.join(EXPORT_FORMATS)}."
        )
    return write_tables(EXPORT_FORMATS[shape](runs), folder)


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
    scores = scores[scores["epoch"] == FINAL_EPOCH]
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
    keys = [name for name in TACO_COLUMNS if name != "value"]
    means = table.groupby(keys, sort=False, as_index=False)["value"].mean()
    return _named(means)[list(TACO_COLUMNS)]


def _confusion(counts: pd.DataFrame) -> pd.DataFrame:
    keys = [name for name in CONFUSION_COLUMNS if name != "count"]
    sums = counts.groupby(keys, sort=False, as_index=False)["count"].sum()
    return _named(sums)[list(CONFUSION_COLUMNS)]


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


EXPORT_FORMATS: dict[str, Callable[[Any], Tables]] = {
    "amlb": amlb_tables,
    "amlb-new": new_amlb_tables,
    "geval": geval_tables,
    "taco": taco_tables,
    "ulysses": senteval_tables,
}


LOOKS = f"a CSV file with the columns {', '.join(TACO_COLUMNS)}"
OURS = {theirs: ours for ours, theirs in METRICS.items()}


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these, or a confusion matrix."""
    return sample.shape == "csv" and (sample.has(*TACO_COLUMNS) or sample.has(*CONFUSION_COLUMNS))


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per model with all its datasets."""
    found: dict[str, ModelResults] = {}
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
            _add(found.setdefault(model, ModelResults("taco", model, "taco", [])), line, log)
            files.setdefault(model, []).append(sample.path)
    for model, run in found.items():
        run.files = list(dict.fromkeys(files[model]))
        yield run


def _add(found: ModelResults, line: tuple[Row, float | None, View], log: ImportLog) -> None:
    row, value, view = line
    metric = OURS.get(row.text("metric"), row.text("metric"))
    if direction(metric) is None:
        log.skipped(row.path, [metric])
        return
    task = row.text("dataset")
    about = {"dataset": task, "metric": metric, "kind": row.text("task")}
    if found.tasks.setdefault(task, about)["kind"] != about["kind"]:
        task = f"{task} ({about['kind']})"  # one dataset with two tasks
        found.tasks.setdefault(task, about)
    # the values are means over folds and draws, imported as one fold and one draw
    found.put(found.job(task), metric, value, view)


def _taco_view(row: Row) -> View:
    """Return the view of ``clean`` at 0.0, ``a`` at 0.2, or ``a+b`` at ``0.2+0.1``."""
    corruption, severity = row.text("corruption"), row.text("severity")
    if corruption in ("", "clean"):
        return CLEAN
    names, parts = corruption.split("+"), severity.split("+")
    try:
        doses = [float(part) for part in parts]
    except ValueError:
        raise row.wrong("severity", "a number") from None
    if len(doses) == 1 or len(set(doses)) == 1:
        return View(corruption, doses[0])
    if len(doses) != len(names):
        raise row.wrong("severity", f"one number for each of {corruption}")
    return View("+".join(f"{n}@{d:g}" for n, d in zip(names, doses, strict=True)), 1.0)


SHAPES = ("png", "svg")


def plot_runs(
    runs: Any, folder: str | Path, *, shape: str = "png", metric: str | None = None
) -> list[Path]:
    """Write ``<task>_<corruption>_<metric>_curve`` and ``<task>_clean_<metric>_bar`` plots.

    A curve starts at severity 0 (clean); bands are standard deviations over folds and draws. A
    composition with a single severity has no curve.
    """
    if shape not in SHAPES:
        raise DefinitionError(f'invalid plot format "{shape}": expected "png" or "svg".')
    written = []
    with settings():
        found = curves(runs, metric=metric)
        Path(folder).mkdir(parents=True, exist_ok=True)
        for (task, name), part in found.groupby(["task", "metric"], sort=False):
            label = metric_label(str(name), bool(part["higher_is_better"].iloc[0]))
            for what, figure in _figures(part, safe_name(str(name))):
                figure.axes[0].set_title(f"{cut_name(task)}   {label}", fontsize=11)
                path = Path(folder) / f"{safe_name(str(task))}_{what}.{shape}"
                Plot(figure).save(path)
                written.append(path)
    return written


def _figures(part: pd.DataFrame, metric: str) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a task with the last part of their file names."""
    yield f"clean_{metric}_bar", _bars(part)
    models = [str(model) for model in part["model"].unique()]  # the same color in all plots
    for corruption, group in part.groupby("corruption", sort=False):
        name = str(corruption)
        if "+" not in name or group["severity"].nunique() > 2:
            figure, ((axes,),) = make_figure(size=(WIDTH, 4))
            draw_lines(axes, group, models, "severity")
            axes.set_xlabel(f"severity of {cut_name(name)}")
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
            yield f"{safe_name(name.replace('+', '_plus_'))}_{metric}_curve", figure


def _bars(part: pd.DataFrame) -> Any:
    clean = part[part["severity"] == 0].drop_duplicates("model")
    figure, ((axes,),) = make_figure(size=(WIDTH, 1.2 + 0.35 * len(clean)))
    bars = axes.barh(range(len(clean)), clean["mean"], color=COLORS[0])
    axes.set_yticks(range(len(clean)), [cut_name(model) for model in clean["model"]])
    axes.bar_label(bars, list(map(rounded, clean["mean"])), padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("clean")
    return figure
