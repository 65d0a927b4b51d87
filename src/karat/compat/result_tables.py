"""Import of result tables with a row per model, dataset and fold: MulTaBench and TabArena."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from karat.errors import DataError, KaratError
from karat.results.importing import (
    ImportLog,
    ModelResults,
    Sample,
    Table,
    direction,
    kind_of,
    read_parquet,
)

#: Karat's names of metrics
OURS = {
    "roc_auc": "auc",
    "log_loss": "logloss",
    "root_mean_squared_error": "rmse",
    "mean_absolute_error": "mae",
    "mean_squared_error": "mse",
    "accuracy": "acc",
    "balanced_accuracy": "balacc",
}
#: metrics whose error is 1 - score; the error of others is the score or its negative
FROM_ONE = {"auc", "acc", "balacc", "r2", "f1", "f1_macro", "f1_weighted", "precision", "recall"}
KINDS = {"binary": "classification", "multiclass": "classification", "regression": "regression"}
#: folds per repeat of both benchmarks: split k is fold k % 3 of repeat k // 3
FOLDS = 3


@dataclass(frozen=True)
class Layout:
    """A system whose tables have the same rows under other names of columns.

    ``model``, ``task`` and ``fold`` are the names that these columns can have, ``error`` is the
    column of errors, of which lower is better and 0 is perfect.
    """

    name: str
    LOOKS: str
    model: tuple[str, ...]
    task: tuple[str, ...]
    fold: tuple[str, ...]
    error: str
    named: Callable[[Table], list[tuple[str, str]]]
    facts: Callable[[Table], list[dict[str, Any]]]

    def recognizes(self, sample: Sample) -> bool:
        """Return whether a file is one of these."""
        known = all(set(names) & set(sample.names) for names in (self.model, self.task))
        return known and sample.shape != "blanks" and sample.has(self.error)

    def read(self, samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
        """Yield a run per model: its rows in all files."""
        runs: dict[str, ModelResults] = {}
        for sample in samples:
            try:
                self._add(runs, _table(sample), log)
            except KaratError as error:
                log.problems.append(str(error))
        yield from runs.values()

    def _add(self, runs: dict[str, ModelResults], table: Table, log: ImportLog) -> None:
        """Add the rows of a file to the runs of their models."""
        folds = self._folds(table)
        three = "repeat" not in table.columns and table.columns.keys() >= {"dataset", "fold"}
        repeats = table.integers("repeat") if not three else [fold // FOLDS for fold in folds]
        values, metrics = self._scores(table)
        names, imputed, replaced = self.named(table), 0, 0
        for place, (model, task) in enumerate(names):
            if not (model or log.model) or not task:
                where = f"{table.path}, line {table.lines[place]}"
                raise DataError(f"{where}: the row has no {'task' if model else 'model'}.")
        columns = (
            names,
            folds,
            repeats,
            values,
            metrics,
            self.facts(table),
            table.texts("imputed"),
        )
        for place, row in enumerate(zip(*columns, strict=True)):
            (model, task), fold, repeat, value, (metric, higher), facts, filled = row
            if filled.lower() in ("true", "1", "1.0"):  # the score of another model
                imputed += 1
                continue
            model = log.model or model
            found = runs.setdefault(model, ModelResults(self.name, model, self.name, []))
            if table.path not in found.files:
                found.files = [*found.files, table.path]
            _set_task(found, task, metric, higher, table.texts("problem_type")[place])
            replaced += found.jobs.pop((task, fold), None) is not None
            job = found.job(task, fold, repeat or 0)
            job.facts |= facts
            found.put(job, metric, value)
            if value is None:
                job.info = self._reason(table, place)
        _note_rows(log, table, imputed, replaced)

    def _folds(self, table: Table) -> list[int]:
        name = next((each for each in self.fold if each in table.columns), "")
        return [fold or 0 for fold in table.integers(name, required=bool(name))]

    def _scores(self, table: Table) -> tuple[list[float | None], list[tuple[str, bool]]]:
        """Return the score of each row, and its metric with whether higher is better."""
        errors, ok = table.numbers(self.error), table.texts("status")
        metrics: list[tuple[str, bool]] = []
        values: list[float | None] = []
        for stated, error, status in zip(table.texts("metric"), errors, ok, strict=True):
            metric = OURS.get(stated, stated)
            higher = direction(metric) if metric else None
            if higher is None or (higher and metric not in FROM_ONE):
                metric, higher = f"{stated}_error" if stated else self.error, False
            missing = error is None or status not in ("", "ok")
            value = None if missing or error is None else 1 - error if higher else error
            values.append(value)
            metrics.append((metric, higher))
        return values, metrics

    def _reason(self, table: Table, place: int) -> str:
        return table.texts("error")[place] or f"no {self.error}"


def _set_task(found: ModelResults, task: str, metric: str, higher: bool, stated: str) -> None:
    if task in found.tasks:
        return
    if direction(metric) is None:
        found.higher[metric] = higher
    type_ = stated or {"auc": "binary", "logloss": "multiclass", "rmse": "regression"}.get(
        metric, ""
    )
    kind = KINDS.get(type_) or kind_of(metric)
    facts = {"dataset": task, "metric": metric, "kind": kind}
    found.tasks[task] = {**facts, **({"type": type_} if type_ else {})}


def _note_rows(log: ImportLog, table: Table, imputed: int, replaced: int) -> None:
    name = table.path.name
    if imputed:
        log.note(f"{name}: skipped {imputed} imputed rows: they are scores of another model.")
    if replaced:
        log.note(f"{name}: {replaced} of {len(table)} rows are duplicates; the last one is used.")


def _table(sample: Sample) -> Table:
    """Return the rows of a CSV or Parquet file, or the one of a JSON file."""
    if sample.shape == "csv":
        return Table.read(sample)
    if sample.shape == "json":
        frame = pd.DataFrame([sample.content])
    else:
        frame = read_parquet(sample.path)
    cells = frame.astype(object).where(frame.notna(), "")
    columns = {str(name): list(map(str, cells[name])) for name in frame}
    return Table(sample.path, range(1, len(frame) + 1), columns)


def _first_column(table: Table, names: Sequence[str]) -> Sequence[str]:
    return table.texts(next(name for name in names if name in table.columns))


def _multabench_names(table: Table) -> list[tuple[str, str]]:
    """Return model and task; other encoders than the small ones, and other sizes, are named."""
    columns = ("model", "dataset", "size", "text_encoder", "image_encoder", "encoding")
    found = []
    for model, task, size, *encoders in zip(*map(table.texts, columns), strict=True):
        named = "TAR-S" if any(each.endswith("tar") for each in encoders) else ""
        named = named or "Frozen-L" * any(each.endswith("large") for each in encoders)
        size = "" if size == "10k" else size
        found.append(
            (f"{model} ({named})" if named else model, f"{task} ({size})" if size else task)
        )
    return found


def _multabench_facts(table: Table) -> list[dict[str, Any]]:
    """Return numbers of rows and seconds, which the file has per 1,000 rows."""
    train, test = table.integers("n_train"), table.integers("n_test")
    fit = zip(table.numbers("train_time_per_1k_s"), train, strict=True)
    predict = zip(table.numbers("inference_time_per_1k_s"), test, strict=True)
    timed = (
        [None if None in pair else pair[0] * pair[1] / 1000 for pair in pairs]
        for pairs in (fit, predict)
    )
    return _facts(train, test, *timed)


def _tabarena_names(table: Table) -> list[tuple[str, str]]:
    names = _first_column(table, TABARENA.model), _first_column(table, TABARENA.task)
    return list(zip(*names, strict=True))


def _tabarena_facts(table: Table) -> list[dict[str, Any]]:
    empty = [None] * len(table)
    return _facts(empty, empty, table.numbers("time_train_s"), table.numbers("time_infer_s"))


def _facts(train: Any, test: Any, fit: Any, predict: Any) -> list[dict[str, Any]]:
    names = ("train_questions", "questions", "fit_seconds", "predict_seconds")
    rows = [
        dict(zip(names, row, strict=True)) for row in zip(train, test, fit, predict, strict=True)
    ]
    rows = [{name: value for name, value in row.items() if value is not None} for row in rows]
    for row in rows:
        if "fit_seconds" in row and "predict_seconds" in row:
            row["seconds"] = row["fit_seconds"] + row["predict_seconds"]
    return rows


MULTABENCH = Layout(
    name="multabench",
    LOOKS="a table with the columns model, dataset, fold, metric and test_error",
    model=("model",),
    task=("dataset",),
    fold=("fold",),
    error="test_error",
    named=_multabench_names,
    facts=_multabench_facts,
)
TABARENA = Layout(
    name="tabarena",
    LOOKS="a table with the columns method (or framework), dataset (or task) and metric_error",
    model=("method", "framework"),
    task=("dataset", "task"),
    fold=("fold", "seed"),
    error="metric_error",
    named=_tabarena_names,
    facts=_tabarena_facts,
)
