"""Convert results: files of other systems to run folders, and runs to their files.

Result tables with a row per model, dataset and fold (MulTaBench, TabArena) are read here; other
systems have a folder each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from karat.core.formatting import count
from karat.core.registry import exporters
from karat.errors import DataError, DefinitionError, KaratError, did_you_mean
from karat.ext.compat.amlb import result_files as amlb
from karat.ext.compat.geval import result_files as geval
from karat.ext.compat.mteb import result_files as mteb
from karat.ext.compat.tabeb import interface as tabeb
from karat.ext.compat.taco import result_files as taco
from karat.ext.compat.ulysses import result_files as ulysses
from karat.output.result import Result
from karat.results.importing import (
    SUFFIXES,
    ImportLog,
    ModelResults,
    ResultTable,
    Sample,
    direction,
    make_records,
    metric_kind,
    no_garbage_collection,
    read_parquet,
    sample_file,
    write_run,
)
from karat.results.run import Run
from karat.results.run_folders import RUN_FILE
from karat.results.tables import scores_table

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
#: messages of an import that found nothing
MOST_MESSAGES = 10
#: functions that yield file names with their tables or texts
EXPORT_FORMATS: dict[str, Callable[[Any], Iterator[tuple[str, pd.DataFrame | str]]]] = {
    "amlb": amlb.amlb_tables,
    "amlb-new": amlb.new_amlb_tables,
    "amlb-report": amlb.amlb_report_tables,
    "geval": geval.geval_tables,
    "mteb": mteb.mteb_files,
    "taco": taco.taco_tables,
    "ulysses": ulysses.senteval_tables,
}


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
    named: Callable[[ResultTable], list[tuple[str, str]]]
    facts: Callable[[ResultTable], list[dict[str, Any]]]

    def recognizes(self, sample: Sample) -> bool:
        """Return whether a file is one of these."""
        has_names = all(set(names) & set(sample.names) for names in (self.model, self.task))
        return has_names and sample.shape != "blanks" and sample.has(self.error)

    def read(self, samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
        """Yield a run per model: its rows in all files."""
        runs: dict[str, ModelResults] = {}
        parts: list[tuple[ResultTable, list[_Row]]] = []
        for sample in samples:
            try:
                table = _table(sample)
                parts.append((table, self._rows(table, log)))
            except KaratError as error:
                log.problems.append(str(error))
        # a failed job has no metric; it is that of the task in other rows
        metrics = {row.task: row.metric for _, rows in parts for row in rows if row.metric}
        for table, rows in parts:
            if imputed := len(table) - len(rows):
                log.note(
                    f"{table.path.name}: skipped {imputed} imputed rows: they are scores of "
                    "another model."
                )
            self._add(runs, table=table, rows=rows, metrics=metrics, log=log)
        yield from runs.values()

    def _rows(self, table: ResultTable, log: ImportLog) -> list[_Row]:
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
            details = (repeats[at] or 0, stated[at], error, info[at], types[at], facts[at])
            rows.append(_Row(model, task, folds[at], *details))
        return rows

    def _add(
        self,
        runs: dict[str, ModelResults],
        table: ResultTable,
        rows: Sequence[_Row],
        metrics: Mapping[str, str],
        log: ImportLog,
    ) -> None:
        """Add the rows of a file to the runs of their models."""
        replaced = 0
        for row in rows:
            results = runs.setdefault(row.model, ModelResults(self.name, row.model, self.name, []))
            if table.path not in results.files:
                results.files = [*results.files, table.path]
            metric, higher = _metric(row.metric or metrics.get(row.task, ""), self.error)
            _set_task(results, task=row.task, metric=metric, higher=higher, stated=row.type)
            replaced += results.jobs.pop((row.task, row.fold), None) is not None
            job = results.job(row.task, row.fold, row.repeat)
            job.facts |= row.facts
            if row.error is None:
                job.info = row.info or f"no {self.error}"
            else:
                results.put(job, metric, 1 - row.error if higher else row.error)
        if replaced:
            times = f"{replaced} of {len(table)} rows are duplicates"
            log.note(f"{table.path.name}: {times}; the last one is used.")

    def _folds(self, table: ResultTable) -> list[int]:
        name = next((column for column in self.fold if column in table.columns), "")
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


def _set_task(results: ModelResults, task: str, metric: str, higher: bool, stated: str) -> None:
    if task in results.tasks:
        return
    if direction(metric) is None:
        results.higher[metric] = higher
    type_ = stated or {"auc": "binary", "logloss": "multiclass", "rmse": "regression"}.get(
        metric, ""
    )
    kind = KINDS.get(type_) or metric_kind(metric)
    facts = {"dataset": task, "metric": metric, "kind": kind}
    results.tasks[task] = {**facts, **({"type": type_} if type_ else {})}


def _table(sample: Sample) -> ResultTable:
    """Return the rows of a CSV or Parquet file, or the one of a JSON file."""
    if sample.shape == "csv":
        return ResultTable.read(sample)
    if sample.shape == "json":
        frame = pd.DataFrame([sample.content])
    else:
        frame = read_parquet(sample.path)
    cells = frame.astype(object).where(frame.notna(), "")
    columns = {str(name): list(map(str, cells[name])) for name in frame}
    return ResultTable(sample.path, range(1, len(frame) + 1), columns)


def _first_column(table: ResultTable, names: Sequence[str]) -> Sequence[str]:
    return table.texts(next(name for name in names if name in table.columns))


def _multabench_names(table: ResultTable) -> list[tuple[str, str]]:
    """Return model and task; other encoders than the small ones, and other sizes, are named."""
    columns = ("model", "dataset", "size", "text_encoder", "image_encoder", "encoding")
    pairs = []
    for model, task, size, *encoders in zip(*map(table.texts, columns), strict=True):
        named = "TAR-S" if any(encoder.endswith("tar") for encoder in encoders) else ""
        named = named or "Frozen-L" * any(encoder.endswith("large") for encoder in encoders)
        size = "" if size == "10k" else size
        pairs.append(
            (f"{model} ({named})" if named else model, f"{task} ({size})" if size else task)
        )
    return pairs


def _multabench_facts(table: ResultTable) -> list[dict[str, Any]]:
    """Return numbers of rows and seconds, which the file has per 1,000 rows."""
    train, test = table.integers("n_train"), table.integers("n_test")
    fit = _per_thousand(table.numbers("train_time_per_1k_s"), train)
    return _facts(train, test, fit, _per_thousand(table.numbers("inference_time_per_1k_s"), test))


def _per_thousand(seconds: Sequence[float | None], rows: Sequence[int | None]) -> list[Any]:
    pairs = zip(seconds, rows, strict=True)
    return [None if time is None or n is None else time * n / 1000 for time, n in pairs]


def _tabarena_names(table: ResultTable) -> list[tuple[str, str]]:
    names = _first_column(table, TABARENA.model), _first_column(table, TABARENA.task)
    return list(zip(*names, strict=True))


def _tabarena_facts(table: ResultTable) -> list[dict[str, Any]]:
    empty = [None] * len(table)
    return _facts(empty, empty, table.numbers("time_train_s"), table.numbers("time_infer_s"))


def _facts(*columns: Sequence[float | None]) -> list[dict[str, Any]]:
    """Return the sizes and times of rows, without unknown ones, from the columns of ``names``."""
    names = ("train_questions", "questions", "fit_seconds", "predict_seconds")
    rows: list[dict[str, Any]] = [
        {name: value for name, value in zip(names, row, strict=True) if value is not None}
        for row in zip(*columns, strict=True)
    ]
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


SYSTEMS: dict[str, ModuleType | Layout] = {
    "amlb": amlb,
    "geval": geval,
    "mteb": mteb,
    "multabench": MULTABENCH,
    "tabarena": TABARENA,
    "tabeb": tabeb,
    "taco": taco,
    "ulysses": ulysses,
}


@dataclass(frozen=True, eq=False, repr=False)
class Imported(Result):
    """The result of an import.

    Attributes
    ----------
    runs
        The imported runs.
    notes, problems
        What was skipped, and files that could not be read.
    """

    runs: list[Run]
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """How many runs were imported."""
        models = ", ".join(run.model for run in self.runs[:6]) + (", …" if self.runs[6:] else "")
        return f"{count(len(self.runs), 'imported run')}{': ' + models if models else ''}"

    @property
    def details(self) -> list[str]:
        """The files that could not be read."""
        return self.problems

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; runs are their folders."""
        return {**super().to_dict(), "runs": [str(run.folder) for run in self.runs]}


def import_results(
    files: str | Path | Iterable[str | Path],
    output: str | Path = "results",
    *,
    system: str | None = None,
    model: str | None = None,
) -> Imported:
    """Read result files of other systems and write a run folder for every model.

    Parameters
    ----------
    files
        CSV, JSON or Parquet files, or folders of them.
    output
        Folder for the run folders.
    system
        The system that wrote the files: ``"amlb"``, ``"geval"``, ``"mteb"``, ``"multabench"``,
        ``"tabarena"``, ``"tabeb"``, ``"taco"`` or ``"ulysses"``. Default: inferred from their
        columns and keys.
    model
        Name of the model. Default: the name in the files.
    """
    log = ImportLog(model)
    with no_garbage_collection():
        written = [
            write_run(results, Path(output), log) for results in _results(files, system, log)
        ]
    runs = [run for run in written if run is not None]
    if not runs:
        raise _nothing(log)
    if log.again:
        more = f" and {len(log.again) - 1} more" * (len(log.again) > 1)
        log.note(f"already imported: {log.again[0]}{more}; delete to import again.")
    return Imported(runs, log.notes, log.problems)


def read_scores(
    files: str | Path | Iterable[str | Path], *, system: str | None = None
) -> pd.DataFrame:
    """Return the scores in result files of other systems as one table, and write nothing.

    The table can be passed to ``karat.leaderboard`` and ``karat.compare``. Failed jobs have no row.

    Parameters
    ----------
    files, system
        As in ``karat.import_results``.
    """
    log = ImportLog()
    tables = []
    with no_garbage_collection():
        for results in _results(files, system, log):
            results.settle()
            table = scores_table(make_records(results))
            ways = {metric: results.way(metric) for metric in table["metric"].unique()}
            kinds = {task: facts.get("kind", "") for task, facts in results.tasks.items()}
            firsts = {task: facts["metric"] for task, facts in results.tasks.items()}
            table["kind"] = table["task"].map(kinds)
            table["higher_is_better"] = table["metric"].map(ways)
            # the first metric of a task in a table is its primary one
            other = table["metric"] != table["task"].map(firsts)
            tables.append(table.iloc[np.argsort(other, kind="stable")])
    if not tables or not any(map(len, tables)):
        raise _nothing(log)
    return pd.concat([table for table in tables if len(table)], ignore_index=True)


def _results(
    files: str | Path | Iterable[str | Path], system: str | None, log: ImportLog
) -> Iterator[ModelResults]:
    """Yield the results of each model in some files."""
    if system is not None:
        _check_known("system", system, SYSTEMS)
    listed = [files] if isinstance(files, str | Path) else list(files)
    by_system: dict[str, list[Sample]] = {}
    for path, named in _all_files([Path(name_or_path) for name_or_path in listed], log):
        try:
            sample = sample_file(path)
            by_system.setdefault(_system(sample, system), []).append(sample)
        except KaratError as error:
            (log.problems if named else log.notes).append(str(error))
    for name, samples in by_system.items():
        yield from SYSTEMS[name].read(samples, log)


def _nothing(log: ImportLog) -> DataError:
    messages = [*log.problems, *log.notes] or ["no file given."]
    more = [f"and {len(messages) - MOST_MESSAGES} more messages."]
    first = [*messages[:MOST_MESSAGES], *(more if len(messages) > MOST_MESSAGES else [])]
    return DataError("\n".join(["nothing was imported.", *first]))


def export_results(
    runs: Run | str | Path | Iterable[Run | str | Path], system: str, output: str | Path = "export"
) -> list[Path]:
    """Write the scores of runs in the file format of another system, and return the files.

    Parameters
    ----------
    runs
        Runs, run folders, or folders of run folders.
    system
        ``"taco"`` writes ``metrics_<dataset>_<task>.csv`` (means over folds and draws) and
        ``confusion_<dataset>_<task>.csv`` (counts over all folds and draws). ``"ulysses"`` writes
        ``results_nonagg.csv``, ``results_agg.json`` and ``summary.csv``, ``"geval"`` GEval's
        result files and its comparison; with several models, each model has its own folder.
        ``"amlb"`` writes the AutoML Benchmark's ``results.csv`` as documented, ``"amlb-new"``
        with its current columns; both for clean data only. ``"amlb-report"`` writes the tables of
        its reports: means, normalized scores and leaderboards by task. ``"mteb"`` writes MTEB's
        ``results/MODEL/REVISION/TASK.json``, for all tasks with a score on clean data.
        ``"model-card"`` writes a ``README.md`` per model with the metadata of the Hugging Face hub,
        ``"every-eval-ever"`` the JSON files of that collection.
    output
        Folder for the files.
    """
    _check_known("export format", system, sorted({*EXPORT_FORMATS, *exporters}))
    make_files = EXPORT_FORMATS.get(system) or exporters.get(system)
    written = taco.write_files(make_files(runs), output)
    if not written:
        raise DataError("the runs have no classification or regression task to export.")
    return written


def _check_known(kind: str, name: str, available: Iterable[str]) -> None:
    if name not in available:
        hint = did_you_mean(name, available)
        raise DefinitionError(f'unknown {kind} "{name}".{hint} Available: {", ".join(available)}.')


def _all_files(paths: Sequence[Path], log: ImportLog) -> Iterator[tuple[Path, bool]]:
    """Yield files and whether they were given by name; of folders all with a known suffix."""
    for path in paths:
        if not path.is_dir():
            yield path, True
            continue
        inside = sorted(file for file in path.rglob("*") if file.suffix.lower() in SUFFIXES)
        ours = {file.parent for file in inside if file.name == RUN_FILE}
        others = [file for file in inside if not ours & {file.parent, *file.parents}]
        if ours:
            log.note(f"{path}: skipped {len(ours)} run folders of Karat.")
        if not others and not ours:
            log.problems.append(f"{path} has no file with suffix {', '.join(SUFFIXES)}.")
        yield from ((file, False) for file in others if file.name != mteb.META)


def _system(sample: Sample, wanted: str | None) -> str:
    names = list(SYSTEMS) if wanted is None else [wanted]
    name = next((name for name in names if SYSTEMS[name].recognizes(sample)), None)
    if name is not None:
        return name
    expected = "; ".join(f"{name}: {SYSTEMS[name].LOOKS}" for name in names)
    raise DataError(
        f"unknown file format: {sample.path} has the {sample.shown}. Expected {expected}."
    )
