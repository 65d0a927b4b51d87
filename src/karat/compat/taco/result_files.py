"""TACO's files of metrics and confusion matrices, written and imported, and its plots."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.robustness import curves
from karat.core.files import safe_name
from karat.core.formatting import rounded
from karat.core.numbers import NUMBER
from karat.core.writing import write_output
from karat.corruptions.view import CLEAN, View
from karat.errors import DefinitionError, KaratError
from karat.reporting.formats import metric_label
from karat.reporting.plots import (
    COLORS,
    WIDTH,
    Plot,
    cut_name,
    draw_lines,
    line_style,
    make_figure,
    settings,
)
from karat.results.importing import ImportLog, ModelResults, Row, Sample, direction, rows
from karat.results.load import exported_runs, exported_scores
from karat.results.rescore import view_of
from karat.results.run import Run
from karat.results.tables import FINAL_EPOCH

#: the columns of TACO's metrics files
TACO_COLUMNS = ("dataset", "task", "corruption", "severity", "model", "metric", "value")
CONFUSION_COLUMNS = (*TACO_COLUMNS[:5], "truth", "prediction", "count")
#: TACO's names of metrics, where they differ
METRICS = {"auc": "AUC", "acc": "accuracy", "rmse": "RMSE"}
OURS = {theirs: ours for ours, theirs in METRICS.items()}
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


def taco_tables(runs: Any) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield TACO's files; the file name has the task if a dataset has several tasks."""
    found = exported_runs(runs)
    tasks = _tasks(found)
    times = Counter(tasks.values())
    scores = exported_scores([run for run, _, _ in found])
    scores = scores[scores["epoch"] == FINAL_EPOCH]
    for task, (dataset, kind) in tasks.items():
        part = scores[scores["task"] == task]
        if not len(part):
            continue
        parts = [dataset, *([task] if times[dataset, kind] > 1 else []), kind]
        stem = "_".join(map(safe_name, parts))
        part = part.assign(dataset=dataset, task=kind, metric=part["metric"].replace(METRICS))
        means = part.groupby(list(TACO_COLUMNS[:-1]), sort=False, as_index=False)["value"].mean()
        yield f"metrics_{stem}.csv", _named(means, kind)[list(TACO_COLUMNS)]
        counts = list(_counts(found, task)) if kind == "classification" else []
        if counts:
            table = pd.DataFrame(counts, columns=[*VIEW, *CONFUSION_COLUMNS[4:]])
            keys = list(CONFUSION_COLUMNS[:-1])
            grouped = table.assign(dataset=dataset, task=kind).groupby(keys, sort=False)
            sums = grouped["count"].sum().reset_index()
            yield f"confusion_{stem}.csv", _named(sums, kind)[list(CONFUSION_COLUMNS)]


def write_files(tables: Iterable[tuple[str, pd.DataFrame | str]], folder: str | Path) -> list[Path]:
    """Write tables as CSV files and texts unchanged into a folder, and return the files."""
    written = []
    for name, table in tables:
        path = Path(folder) / name
        text = table if isinstance(table, str) else table.to_csv(index=False, lineterminator="\n")
        write_output(path, text)
        written.append(path)
    return written


def _tasks(found: Iterable[tuple[Run, str, dict[str, str]]]) -> dict[str, tuple[str, str]]:
    """Return the dataset and the kind of each classification or regression task."""
    tasks = {}
    for run, _, label in found:
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
    views = {pair: _view(*pair) for pair in set(zip(*(table[name] for name in VIEW), strict=True))}
    pairs = [views[pair] for pair in zip(*(table[name] for name in VIEW), strict=True)]
    severity = pd.Series([pair[1] for pair in pairs], index=table.index, dtype=object)
    theirs = {ours: theirs for theirs, ours in MODEL_NAMES[kind].items()}
    models = table["model"].replace(theirs)
    return table.assign(corruption=[pair[0] for pair in pairs], severity=severity, model=models)


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
    names, parts = corruption.split("+"), severity.split("+")
    clean = corruption in ("", "clean")
    if clean and not severity:
        return CLEAN
    if not all(map(NUMBER.fullmatch, parts)):
        raise row.wrong("severity", "a number")
    doses = [float(part) for part in parts]
    if clean and any(doses):
        raise row.wrong("severity", "0 without corruption")
    if not all(0 <= dose < math.inf for dose in doses):
        raise row.wrong("severity", "a finite number >= 0")
    if clean:
        return CLEAN
    if len(doses) == 1 or len(set(doses)) == 1:
        return View(corruption, doses[0])
    if len(doses) != len(names):
        raise row.wrong("severity", f"one number for each of {corruption}")
    return View("+".join(f"{n}@{d:g}" for n, d in zip(names, doses, strict=True)), 1.0)


def plot_runs(
    runs: Any, folder: str | Path, *, shape: str = "png", metric: str | None = None
) -> list[Path]:
    """Write ``<task>_<corruption>_<metric>_curve`` and ``<task>_clean_<metric>_bar`` plots.

    In file names, "+" is ``_plus_`` and the metric has TACO's name, such as ``AUC``. A curve starts
    at severity 0 (clean). The plot of a composition has a point for each of its severities, such as
    0.2+0.1. Bands and bars are standard deviations over folds and draws.
    """
    if shape not in PLOT_FORMATS:
        raise DefinitionError(f'invalid plot format "{shape}": expected "png" or "svg".')
    written = []
    with settings():
        found = curves(runs, metric=metric)
        Path(folder).mkdir(parents=True, exist_ok=True)
        for (task, name), part in found.groupby(["task", "metric"], sort=False):
            theirs = METRICS.get(str(name), str(name))
            label = metric_label(theirs, bool(part["higher_is_better"].iloc[0]))
            for what, figure in _figures(part, safe_name(theirs)):
                # without y, matplotlib would look for ticks above the axes
                figure.axes[0].set_title(f"{cut_name(task)}   {label}", fontsize=11, y=1.0)
                path = Path(folder) / f"{safe_name(str(task))}_{what}.{shape}"
                Plot(figure).save(path)
                written.append(path)
    return written


def _figures(part: pd.DataFrame, metric: str) -> Iterator[tuple[str, Any]]:
    """Yield the figures of a task with the last part of their file names."""
    yield f"clean_{metric}_bar", _bars(part)
    models = [str(model) for model in part["model"].unique()]  # the same color in all plots
    composed = part["corruption"].str.contains("+", regex=False)
    for table in (part[~composed].assign(label=""), _compositions(part[composed])):
        # one figure for all curves: it is laid out once, and their axes have the same place
        figure, ((axes,),) = make_figure(size=(WIDTH, 4))
        shown: Any = None
        for corruption, group in table.groupby("corruption", sort=False):
            name = str(corruption)
            _remove_artists(axes)
            if "+" in name:
                _draw_points(axes, group, models)
            else:
                draw_lines(axes, group, models, "severity")
            axes.set_xlabel(f"severity of {cut_name(name)}")
            wanted = (axes.get_legend_handles_labels()[1], set(group["label"]))
            if wanted != shown:  # a legend takes as long as all lines
                axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
                shown = wanted
            yield f"{safe_name(name.replace('+', '_plus_'))}_{metric}_curve", figure


def _remove_artists(axes: Any) -> None:
    """Remove what was plotted and keep the ticks, which ``axes.clear()`` would make again."""
    for artist in [*axes.lines, *axes.collections]:
        artist.remove()
    axes.containers.clear()
    axes.relim()


def _compositions(part: pd.DataFrame) -> pd.DataFrame:
    """Return the scores of compositions as ``a+b`` with a label: 0.2+0.1, or clean."""
    views = [_view(*pair) for pair in zip(part["corruption"], part["severity"], strict=True)]
    labels = pd.Series([str(label) for _, label in views], index=part.index, dtype=object)
    labels = labels.mask(part["severity"] == 0, "clean")
    named = part.assign(corruption=[name for name, _ in views], label=labels)
    return named.drop_duplicates(["model", "corruption", "label"])


def _draw_points(axes: Any, group: pd.DataFrame, models: list[str]) -> None:
    """Plot a point per model and label; with a single label, a line from clean to it."""
    doses = {text: list(map(float, text.split("+"))) for text in set(group["label"]) - {"clean"}}
    labels = ["clean", *sorted(doses, key=doses.__getitem__)]
    line = "o-" if len(doses) == 1 else "o"
    for place, model in enumerate(models):
        points = group[group["model"] == model]
        if len(points):
            axes.errorbar(
                points["label"].map(labels.index),
                points["mean"],
                points["std"].fillna(0.0),
                fmt=line,
                ms=4,
                color=line_style(place)[0],
                label=cut_name(model),
            )
    if labels != [text.get_text() for text in axes.get_xticklabels()]:  # kept for the next pair
        axes.set_xticks(range(len(labels)), labels, rotation=45 if len(labels) > 6 else 0)


def plot_confusions(tables: Mapping[str, pd.DataFrame | str], folder: str | Path) -> list[Path]:
    """Write ``<dataset>_<model>_clean_confusion.png`` for each confusion matrix on clean data."""
    written = []
    with settings():
        for table in tables.values():
            if isinstance(table, str) or "count" not in table:
                continue
            clean = table[table["corruption"] == "clean"]
            for (dataset, model), part in clean.groupby(["dataset", "model"], sort=False):
                stem = f"{safe_name(str(dataset))}_{safe_name(str(model))}"
                path = Path(folder) / f"{stem}_clean_confusion.png"
                Plot(_matrix(part, f"{cut_name(dataset)}   {cut_name(model)}")).save(path)
                written.append(path)
    return written


def _matrix(part: pd.DataFrame, title: str) -> Any:
    labels = sorted({*part["truth"], *part["prediction"]})
    counts = part.pivot(index="truth", columns="prediction", values="count")
    counts = counts.reindex(index=labels, columns=labels).fillna(0).astype(int)
    size = max(3.0, 1.5 + 0.4 * len(labels))
    figure, ((axes,),) = make_figure(size=(size, size))
    axes.imshow(counts, cmap="Blues")
    axes.set_xticks(range(len(labels)), [cut_name(label) for label in labels])
    axes.set_yticks(range(len(labels)), [cut_name(label) for label in labels])
    for (row, column), count in np.ndenumerate(counts.to_numpy()):
        dark = count > counts.to_numpy().max() / 2
        axes.text(column, row, count, ha="center", va="center", color="white" if dark else "black")
    axes.set_xlabel("predicted")
    axes.set_ylabel("true")
    axes.set_title(title, fontsize=11, y=1.0)
    return figure


def _bars(part: pd.DataFrame) -> Any:
    clean = part[part["severity"] == 0].drop_duplicates("model")
    figure, ((axes,),) = make_figure(size=(WIDTH, 1.2 + 0.35 * len(clean)))
    bars = axes.barh(range(len(clean)), clean["mean"], color=COLORS[0])
    axes.set_yticks(range(len(clean)), [cut_name(model) for model in clean["model"]])
    axes.bar_label(bars, list(map(rounded, clean["mean"])), padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("clean")
    return figure
