"""Import of result tables with a row per model, dataset and fold: MulTaBench and TabArena."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

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


class _Row(NamedTuple):
    """A row of a table; ``error`` is None if the job failed, with the reason in ``info``."""

    model: str
    task: str
    fold: int
    repeat: int
    metric: str
    error: float | None
    info: str
    type: str
    facts: dict[str, Any]


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
        parts: list[tuple[Table, list[_Row]]] = []
        for sample in samples:
            try:
                table = _table(sample)
                parts.append((table, self._rows(table, log)))
            except KaratError as error:
                log.problems.append(str(error))
        # a failed job has no metric; it is that of the task in other rows
        known = {row.task: row.metric for _, rows in parts for row in rows if row.metric}
        for table, rows in parts:
            if imputed := len(table) - len(rows):
                log.note(
                    f"{table.path.name}: skipped {imputed} imputed rows: they are scores of "
                    "another model."
                )
            self._add(runs, table, rows, known, log)
        yield from runs.values()

    def _rows(self, table: Table, log: ImportLog) -> list[_Row]:
        """Return the rows of a file, without imputed ones."""
        folds = self._folds(table)
        three = "repeat" not in table.columns and table.columns.keys() >= {"dataset", "fold"}
        repeats = [fold // FOLDS for fold in folds] if three else table.integers("repeat")
        stated, errors = table.texts("metric"), table.numbers(self.error)
        status, info, filled = map(table.texts, ("status", "error", "imputed"))
        names, facts, types = self.named(table), self.facts(table), table.texts("problem_type")
        rows = []
        for at, (model, task) in enumerate(names):
            model = log.model or model
            if not model or not task:
                where = f"{table.path}, line {table.lines[at]}"
                raise DataError(f"{where}: the row has no {'task' if model else 'model'}.")
            if filled[at].lower() in ("true", "1", "1.0"):  # the score of another model
                continue
            error = errors[at] if status[at] in ("", "ok") else None
            about = (repeats[at] or 0, stated[at], error, info[at], types[at], facts[at])
            rows.append(_Row(model, task, folds[at], *about))
        return rows

    def _add(
        self,
        runs: dict[str, ModelResults],
        table: Table,
        rows: Sequence[_Row],
        known: Mapping[str, str],
        log: ImportLog,
    ) -> None:
        """Add the rows of a file to the runs of their models."""
        replaced = 0
        for row in rows:
            found = runs.setdefault(row.model, ModelResults(self.name, row.model, self.name, []))
            if table.path not in found.files:
                found.files = [*found.files, table.path]
            metric, higher = _metric(row.metric or known.get(row.task, ""), self.error)
            _set_task(found, row.task, metric, higher, row.type)
            replaced += found.jobs.pop((row.task, row.fold), None) is not None
            job = found.job(row.task, row.fold, row.repeat)
            job.facts |= row.facts
            if row.error is None:
                job.info = row.info or f"no {self.error}"
            else:
                found.put(job, metric, 1 - row.error if higher else row.error)
        if replaced:
            times = f"{replaced} of {len(table)} rows are duplicates"
            log.note(f"{table.path.name}: {times}; the last one is used.")

    def _folds(self, table: Table) -> list[int]:
        name = next((each for each in self.fold if each in table.columns), "")
        return [fold or 0 for fold in table.integers(name, required=bool(name))]


def _metric(stated: str, error: str) -> tuple[str, bool]:
    """Return Karat's name of a metric and whether higher is better; if unknown, of its error.

    >>> _metric("roc_auc", "metric_error"), _metric("gini", "metric_error")
    (('auc', True), ('gini_error', False))
    """
    metric = OURS.get(stated, stated)
    higher = direction(metric) if metric else None
    if higher is None or (higher and metric not in FROM_ONE):
        return (f"{stated}_error" if stated else error), False
    return metric, higher


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
    fit = _per_thousand(table.numbers("train_time_per_1k_s"), train)
    return _facts(train, test, fit, _per_thousand(table.numbers("inference_time_per_1k_s"), test))


def _per_thousand(seconds: Sequence[float | None], rows: Sequence[int | None]) -> list[Any]:
    pairs = zip(seconds, rows, strict=True)
    return [None if time is None or n is None else time * n / 1000 for time, n in pairs]


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
