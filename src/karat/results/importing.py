"""Write the results of other systems as run folders, from CSV, JSON or Parquet files.

Errors name the file and the line.

``score_tables`` reads the dictionaries of scikit-learn's ``cross_validate`` and ``cv_results_``.
"""

from __future__ import annotations

import csv
import gc
import itertools
import json
import math
import re
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat import __version__
from karat.core.digest import sha256_of
from karat.core.files import file_hash
from karat.core.metric_names import NEGATED_SCORERS, SCORERS
from karat.core.numbers import NUMBER
from karat.core.writing import draft_folder
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, KaratError, MissingExtra
from karat.metrics.metric import get_metric
from karat.results.load import FrozenRun
from karat.results.pooling import UNKNOWN_CONSTRAINT
from karat.results.run import DEFAULTS, Run, earlier_runs
from karat.results.run_folders import RUN_FILE, find_run_folders
from karat.results.tables import FINAL_EPOCH, scores_table

#: rows that are read at once, and distinct cells of a column that are kept once
CHUNK, MOST_KNOWN = 4096, 20_000
#: an unknown metric
UNKNOWN = "?"
SUFFIXES = (".csv", ".json", ".parquet")
#: texts that mean no score, in lower case
NO_SCORE = ("", "na", "nan", "none", "null", "inf", "infinity")
#: name of the task if the scores are not given by task, and of a model without a name
TASK, MODEL = "cross_validate", "model"
SPLIT = re.compile(r"split(\d+)_test_(.+)", re.DOTALL)
Folds = Sequence[tuple[dict[str, float], dict[str, float]]]


@dataclass
class ImportedJob:
    """A fold of a task: scores by view, or the reason of the failure in ``info``."""

    task: str
    fold: int = 0
    repeat: int = 0
    scores: dict[View, dict[str, float]] = field(default_factory=dict)
    info: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class ModelResults:
    """The results of one model in some files.

    ``tasks`` holds ``dataset``, ``kind``, ``metric`` (the primary one) and more for each task,
    ``higher`` the direction of metrics that are not registered, and ``about`` fields of the run.
    """

    system: str
    model: str
    suite: str
    files: Sequence[Path]
    jobs: dict[tuple[str, int], ImportedJob] = field(default_factory=dict)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    higher: dict[str, bool] = field(default_factory=dict)
    about: dict[str, Any] = field(default_factory=dict)

    def job(self, task: str, fold: int = 0, repeat: int = 0) -> ImportedJob:
        """Return the job of a task and fold, which is created if needed."""
        return self.jobs.setdefault((task, fold), ImportedJob(task, fold, repeat))

    def first(self, task: str) -> str | None:
        """Return the primary metric of a task: the given one, or the first with a direction."""
        return self._first(task, [job for job in self.jobs.values() if job.task == task])

    def _first(self, task: str, jobs: Sequence[ImportedJob]) -> str | None:
        primary: str = self.tasks[task]["metric"]
        scored = dict.fromkeys(m for job in jobs for view in job.scores.values() for m in view)
        return next((n for n in (primary, *scored) if self.way(n) is not None), None)

    def way(self, metric: str) -> bool | None:
        """Return whether higher is better, or None if unknown."""
        return self.higher[metric] if metric in self.higher else direction(metric)

    def settle(self) -> list[str]:
        """Set each task's primary metric; remove and return the tasks without one."""
        jobs: dict[str, list[ImportedJob]] = {task: [] for task in self.tasks}
        for job in self.jobs.values():
            jobs.setdefault(job.task, []).append(job)
        primary = {task: self._first(task, jobs[task]) for task in self.tasks}
        removed = [task for task, metric in primary.items() if metric is None]
        self.tasks = {
            task: {**facts, "metric": primary[task]}
            for task, facts in self.tasks.items()
            if task not in removed
        }
        self.jobs = {key: job for key, job in self.jobs.items() if job.task in self.tasks}
        return removed

    def put(self, job: ImportedJob, metric: str, value: float | None, view: View = CLEAN) -> None:
        """Add a score."""
        if value is not None:
            job.scores.setdefault(view, {})[metric] = value


@dataclass
class ImportLog:
    """Notes and problems of an import, the runs in the output folder, and a given model name."""

    model: str | None = None
    notes: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    earlier: list[Run] | None = None
    again: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        """Add a note unless it exists."""
        if text not in self.notes:
            self.notes.append(text)

    def skipped(self, path: Path, names: Iterable[str]) -> None:
        """Add a note about metrics that Karat does not have."""
        listed = sorted(set(names))
        if listed:
            text = ", ".join(listed[:12]) + (f", ... ({len(listed)})" if len(listed) > 12 else "")
            self.note(f"{path.name}: skipped metrics that Karat does not have: {text}.")


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Collect no cycles of objects: the jobs of a file have none, and are searched repeatedly."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def direction(name: str) -> bool | None:
    """Return whether higher is better, or None if Karat does not have the metric.

    Names in files never import code.

    >>> direction("rmse"), direction("acc"), direction("os:system")
    (False, True, None)
    """
    if ":" in name:
        return None
    try:
        return get_metric(name).higher_is_better
    except KaratError:
        return None


def metric_kind(metric: str) -> str:
    """Return the kind of task of a Karat metric, or an empty string.

    >>> metric_kind("auc"), metric_kind("rmse"), metric_kind("v_measure")
    ('classification', 'regression', 'clustering')
    """
    if direction(metric) is None:
        return ""
    needs = set(get_metric(metric).needs)
    kinds = {"clusters": "clustering", "numbers": "regression"}
    kinds |= {"classes": "classification", "probabilities": "classification"}
    return next((kind for need, kind in kinds.items() if need in needs), "")


def write_run(results: ModelResults, output: Path, log: ImportLog) -> Run | None:
    """Write results as a run folder, or return the existing one of an earlier import."""
    removed = results.settle()
    if removed:
        listed = ", ".join(removed[:6]) + (" ..." if len(removed) > 6 else "")
        log.note(f"{results.model}: skipped tasks without a known metric: {listed}.")
    if not results.jobs:
        return None
    imported = _imported(results)
    facts = _about(results)
    if log.earlier is None:
        log.earlier = list(earlier_runs(output, {}, ()))
    earlier = log.earlier
    for run in earlier:
        same = all(run.about.get(k) == facts[k] for k in ("model", "suite", "constraint", "mode"))
        same = same and run.about.get("imported") == imported
        if same and (run.folder / "scores" / "scores.csv").is_file():
            log.again.append(run.folder.name)
            return run
    facts["stamp"] = _unused_stamp(results.model, str(facts["stamp"]), earlier)
    run = _written(results, output, {**facts, "imported": imported})
    earlier.append(run)
    return run


def runs_in_memory(several: Mapping[Path, ModelResults]) -> list[Run]:
    """Return results as runs that are not written, by the folder of their files."""
    parts = []
    for folder, results in several.items():
        results.settle()
        imported = {"system": results.system, "file": folder.name, "sha256": ""}
        facts = {**DEFAULTS, **_about(results), "imported": imported}
        parts.append((folder, facts, [_record(results, job) for job in results.jobs.values()]))
    # one table for all is made much faster than one for each
    table = scores_table([record for _, _, records in parts for record in records])
    runs: list[Run] = []
    end = 0
    for folder, facts, records in parts:
        begin, end = end, end + sum(len(v["scores"]) for r in records for v in r["views"])
        runs.append(FrozenRun.in_memory(folder, facts, records, table[begin:end]))
    return runs


def _written(results: ModelResults, output: Path, facts: Mapping[str, Any]) -> Run:
    """Write a run into a hidden folder, then move it, so that a killed import leaves no run."""
    with draft_folder(output) as draft:
        run = Run.create(draft, facts)
        run.write_records(make_records(results))
        return run.move(output)


def _imported(results: ModelResults) -> dict[str, Any]:
    digests = {path: file_hash(path) for path in results.files}
    if len(digests) == 1:
        ((path, digest),) = digests.items()
        return {"system": results.system, "file": path.name, "sha256": digest}
    folder = results.files[0].parent
    names = {
        path.relative_to(folder).as_posix() if path.is_relative_to(folder) else path.name: digest
        for path, digest in digests.items()
    }
    files = dict(sorted(names.items()))
    lines = "".join(f"{name} {digest}\n" for name, digest in files.items())
    whole = sha256_of(lines)
    named = {"system": results.system, "file": folder.resolve().name}
    return {**named, "sha256": whole, "files": files}


def _about(results: ModelResults) -> dict[str, Any]:
    facts = {"constraint": UNKNOWN_CONSTRAINT, "mode": "imported", "params": {}, "version": ""}
    facts |= results.about
    stamp = facts.pop("stamp", None) or datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    named = {"model": results.model, "suite": results.suite}
    by_task: dict[str, list[ImportedJob]] = {}
    for job in results.jobs.values():
        by_task.setdefault(job.task, []).append(job)
    tasks = [_task(results, name, by_task.get(name, [])) for name in results.tasks]
    return {**named, **facts, "stamp": stamp, "role": "", "karat": __version__, "tasks": tasks}


def _task(results: ModelResults, name: str, jobs: Sequence[ImportedJob]) -> dict[str, Any]:
    facts = dict(results.tasks[name])
    primary = facts.pop("metric")
    scored = [metric for job in jobs for view in job.scores.values() for metric in view]
    metrics = [m for m in dict.fromkeys([primary, *scored]) if results.way(m) is not None]
    return {
        "name": name,
        "dataset": facts.pop("dataset", name),
        "kind": facts.pop("kind", "") or metric_kind(primary),
        "metrics": metrics,
        "higher_is_better": {metric: results.way(metric) for metric in metrics},
        "folds": sorted({job.fold for job in jobs}),
        "fingerprint": "",
        **facts,
    }


def make_records(results: ModelResults) -> list[dict[str, Any]]:
    """Return the record of each job."""
    return [_record(results, job) for job in results.jobs.values()]


def _record(results: ModelResults, job: ImportedJob) -> dict[str, Any]:
    facts = dict(job.facts)
    coverage = facts.pop("coverage", None)
    task = results.tasks[job.task]
    ended = {"affected": None, "coverage": coverage, "reasons": {}, "status": "ok", "info": ""}
    views = [
        {**vars(view), **ended, "scores": dict(job.scores[view])}
        for view in sorted(job.scores, key=lambda view: view != CLEAN)
    ]
    failed = bool(job.info) or not views
    return {
        "spec": "",
        "model": results.model,
        "task": job.task,
        "kind": task.get("kind") or metric_kind(task["metric"]),
        "fold": job.fold,
        "repeat": job.repeat,
        "seed": None,
        "metric": task["metric"],
        "status": "failed" if failed else "ok",
        "info": " ".join((job.info or "no score in the file").split()) if failed else "",
        "views": views,
        "notes": job.notes,
        "history": job.history,
        "utc": "",
        **facts,
    }


def _unused_stamp(model: str, stamp: str, earlier: Sequence[Run]) -> str:
    """Return a time stamp that no other run of the model has."""
    taken = {str(run.about.get("stamp")) for run in earlier if run.about.get("model") == model}
    stamps = (f"{stamp}-{number}" if number > 1 else stamp for number in itertools.count(1))
    return next(new for new in stamps if new not in taken)


def number(cell: Any) -> float | None:
    """Return a finite number, or None for an empty cell; raise ``ValueError`` for other text.

    >>> number("0.5"), number(""), number("nan"), number(None)
    (0.5, None, None, None)
    """
    if cell is None or cell == "":
        return None
    if isinstance(cell, str) and not NUMBER.fullmatch(cell := cell.strip()):
        if cell.lower().lstrip("+-") in NO_SCORE:
            return None
        raise ValueError(cell)
    value = float(cell)
    return value if math.isfinite(value) else None


def has_result_files(path: Path) -> bool:
    """Return whether a path may be result files of another system: it has no run folder."""
    if not path.is_dir():
        return path.suffix.lower() in SUFFIXES and path.is_file()
    if any(find_run_folders(path, levels=(0, 1))) or any(path.rglob(RUN_FILE)):
        return False
    return any(file.suffix.lower() in SUFFIXES for file in path.rglob("*"))


@dataclass(frozen=True)
class Sample:
    """A file and its columns, or the keys of its JSON object."""

    path: Path
    shape: str
    names: tuple[str, ...]
    content: Any = None

    def has(self, *names: str) -> bool:
        """Return whether the file has all these columns or keys."""
        return set(names) <= set(self.names)

    @property
    def shown(self) -> str:
        """The columns or keys, for messages."""
        what = "keys" if self.shape == "json" else "columns"
        listed = ", ".join(name[:30] for name in self.names[:10]) or "none"
        return f"{what} {listed}" + (" ..." if len(self.names) > 10 else "")


def sample_file(path: Path) -> Sample:
    """Return the columns or keys of a file."""
    if not path.is_file():
        raise DataError(f"file not found: {path}.")
    suffix = path.suffix.lower()
    if suffix == ".json":
        content = read_json(path)
        names = tuple(map(str, content)) if isinstance(content, dict) else ()
        return Sample(path, "json", names, content)
    if suffix == ".parquet":
        return Sample(path, "parquet", tuple(map(str, read_parquet(path).columns)))
    if suffix != ".csv":
        raise DataError(f"{path}: unsupported suffix; expected one of {', '.join(SUFFIXES)}.")
    _, header = next(_lines(path, ","), (1, []))
    if len(header) == 1 and " " in header[0]:
        return Sample(path, "blanks", tuple(header[0].split(" ")))
    return Sample(path, "csv", tuple(header))


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from error


def read_parquet(path: Path) -> Any:
    """Return the table of a Parquet file."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise MissingExtra("pyarrow", "tables") from None
    import pandas as pd

    try:
        return pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {str(error).splitlines()[0]}") from error


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a CSV file with its line number; ``places`` are those of its columns."""

    path: Path
    line: int
    cells: list[str]
    places: Mapping[str, int]

    def text(self, name: str) -> str:
        """Return a cell, or an empty string if the column is missing."""
        position = self.places.get(name)
        return "" if position is None else self.cells[position].strip()

    def number(self, name: str) -> float | None:
        """Return a number, or None if the cell is empty."""
        try:
            position = self.places.get(name)
            return None if position is None else number(self.cells[position])
        except ValueError:
            raise self.wrong(name, "a number") from None

    def whole(self, name: str, lowest: int = 0) -> int:
        """Return a required integer."""
        value = self.number(name)
        if value is None or value != int(value) or value < lowest:
            raise self.wrong(name, f"an integer >= {lowest}")
        return int(value)

    def wrong(self, name: str, expected: str) -> DataError:
        """Return the error about a cell."""
        cell = self.cells[self.places[name]][:40] if name in self.places else ""
        return DataError(f'{self.path}, line {self.line}: {name} must be {expected}, got "{cell}".')


def rows(sample: Sample) -> Iterator[Row]:
    """Yield the rows of a CSV file."""
    lines = _lines(sample.path, " " if sample.shape == "blanks" else ",")
    _, header = next(lines)
    places = {name: position for position, name in enumerate(header)}
    for line, cells in lines:
        if not cells:
            continue
        if len(cells) != len(header):
            raise DataError(
                f"{sample.path}, line {line}: expected {len(header)} cells as in the header, got "
                f"{len(cells)}."
            )
        yield Row(sample.path, line, cells, places)


class ResultTable:
    """The rows of a CSV file by column, for files of many rows; or some of these rows."""

    def __init__(
        self, path: Path, lines: Sequence[int], columns: Mapping[str, Sequence[str]]
    ) -> None:
        self.path, self.lines, self.columns = path, lines, columns

    @classmethod
    def read(cls, sample: Sample) -> ResultTable:
        """Read a CSV file; cells that occur often are kept once."""
        lines = array("Q")
        columns: dict[str, list[str]] = {name: [] for name in sample.names}
        first_cells: dict[str, dict[str, str]] = {name: {} for name in columns}
        for part in _chunks(rows(sample)):
            lines.extend(row.line for row in part)
            cells = zip(*(row.cells for row in part), strict=True)
            by_place = dict(enumerate(cells))
            for name, position in part[0].places.items():
                if len(first_cells[name]) < MOST_KNOWN:
                    once = first_cells[name].setdefault
                    columns[name] += [
                        once(cell, cell) for cell in map(str.strip, by_place[position])
                    ]
                else:
                    columns[name] += map(str.strip, by_place[position])
        return cls(sample.path, lines, columns)

    def __len__(self) -> int:
        return len(self.lines)

    def take(self, places: Sequence[int]) -> ResultTable:
        """Return some of the rows."""
        cells_by_name = {name: [cells[i] for i in places] for name, cells in self.columns.items()}
        return ResultTable(self.path, [self.lines[i] for i in places], cells_by_name)

    def texts(self, name: str) -> Sequence[str]:
        """Return a column; its cells are empty if the file does not have it."""
        return self.columns.get(name) or [""] * len(self)

    def numbers(self, name: str) -> list[float | None]:
        """Return a column of numbers, None for empty cells."""
        if name not in self.columns:
            return [None] * len(self)
        cells = self.columns[name]
        try:
            if len(distinct := set(cells)) < len(cells) / 2:
                values = {cell: number(cell) for cell in distinct}
                return [values[cell] for cell in cells]
            return list(map(number, cells))
        except ValueError:
            for row in range(len(self)):  # raises for the first wrong cell
                self._row(row).number(name)
            raise

    def integers(self, name: str, *, required: bool = False) -> list[int | None]:
        """Return a column of integers of 0 or more, None for empty cells unless required."""
        values = self.numbers(name)
        for row, value in enumerate(values):
            wrong = required if value is None else value < 0 or value != int(value)
            if wrong:
                self._row(row).whole(name)  # raises
        return [None if value is None else int(value) for value in values]

    def _row(self, position: int) -> Row:
        cells = [cells[position] for cells in self.columns.values()]
        places = {name: index for index, name in enumerate(self.columns)}
        return Row(self.path, self.lines[position], cells, places)


def _chunks(table_rows: Iterator[Row]) -> Iterator[list[Row]]:
    while part := list(itertools.islice(table_rows, CHUNK)):
        yield part


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    line = 1
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, strict=True)
            for cells in reader:
                yield line, cells
                line = reader.line_num + 1
    except UnicodeDecodeError as error:
        raise DataError(f"{path}, near line {line}: not UTF-8 ({error.reason}).") from error
    except csv.Error as error:
        raise DataError(f"{path}, line {line}: {error}.") from error
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}.") from error


def folder_name(paths: Sequence[Path]) -> str:
    """Return the name of the folder of the first file."""
    return paths[0].resolve().parent.name or "imported"


def score_tables(results: Mapping[Any, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table of scores, and a table with the seconds and sizes of each fold.

    Parameters
    ----------
    results
        What ``cross_validate`` returned, or ``cv_results_``; or a mapping from names of models to
        those, or to mappings from names of tasks to those. Each candidate of ``cv_results_`` is a
        model. As in scikit-learn, higher is better; a metric that Karat has, such as
        ``neg_log_loss``, gets Karat's name and sign.

    >>> scores, *_ = score_tables({"tree": {"test_score": [0.5, 0.75]}})
    >>> scores[["model", "fold", "value"]].values.tolist()
    [['tree', 0, 0.5], ['tree', 1, 0.75]]
    """
    scores: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []
    for model, task, folds in _by_model(results):
        for fold in range(len(folds)):
            job = {"task": task, "model": model, "repeat": 0, "fold": fold}
            row, facts = folds[fold]
            final = {"corruption": "", "severity": 0.0, "draw": 0, "epoch": FINAL_EPOCH}
            for name, value in row.items():
                metric = {"metric": {**SCORERS, **NEGATED_SCORERS}.get(name, name)}
                value = -value if name in NEGATED_SCORERS else value
                better = {"value": float(value), "higher_is_better": name not in NEGATED_SCORERS}
                scores.append({**job, **final, **metric, **better})
            has_no_score = all(np.isnan(value) for value in row.values())
            jobs.append({**job, "status": "failed" if has_no_score else "ok", **facts})
    return pd.DataFrame(scores), pd.DataFrame(jobs)


def _by_model(results: Mapping[Any, Any]) -> Iterator[tuple[str, str, Folds]]:
    """Yield model, task and folds of each model."""
    if _is_result(results):
        yield from ((model, TASK, folds) for model, folds in _models(results, ""))
        return
    if not results:
        raise DataError("there are no scores: the mapping is empty.")
    for name, inner in results.items():
        if _is_result(inner):
            yield from ((model, TASK, folds) for model, folds in _models(inner, str(name)))
            continue
        tasks = inner.items() if isinstance(inner, Mapping) else ()
        if not tasks or not all(_is_result(result) for _, result in tasks):
            raise DataError(
                f'the scores of "{name}" are not a dictionary of cross_validate or cv_results_: '
                f"expected a key test_score, test_METRIC or split0_test_METRIC, got {_keys(inner)}."
            )
        for task, result in tasks:
            yield from ((model, str(task), folds) for model, folds in _models(result, str(name)))


def _keys(inner: object) -> str:
    if not isinstance(inner, Mapping):
        return type(inner).__name__
    return "the keys " + (", ".join(map(str, list(inner)[:6])) or "of an empty mapping")


def _is_result(candidate: object) -> bool:
    if not isinstance(candidate, Mapping):
        return False
    names = [name for name in candidate if isinstance(name, str)]
    return any(
        SPLIT.match(name) or (name.startswith("test_") and not isinstance(candidate[name], Mapping))
        for name in names
    )


def _models(results: Mapping[str, Any], name: str) -> Iterator[tuple[str, Folds]]:
    """Yield the model of ``cross_validate``, or each candidate of ``cv_results_``."""
    if "params" not in results:
        yield name or MODEL, _folds(results, name)
        return
    columns: dict[tuple[int, str], np.ndarray] = {}
    for key, values in results.items():
        if split := SPLIT.match(key):
            columns[int(split[1]), split[2]] = _array(values, key)
    count = 1 + max(fold for fold, _ in columns)
    metrics = list(dict.fromkeys(metric for _, metric in columns))
    for candidate, params in enumerate(results["params"]):
        setting = ", ".join(f"{key}={value}" for key, value in params.items())
        facts = _seconds(results, "mean_fit_time", "mean_score_time", candidate)
        rows = [{name: columns[fold, name][candidate] for name in metrics} for fold in range(count)]
        yield " ".join(filter(None, [name, setting])) or MODEL, [(row, facts) for row in rows]


def _folds(results: Mapping[str, Any], name: str) -> Folds:
    """Return the scores of each fold, with its seconds and numbers of rows."""
    scores = {
        k.removeprefix("test_"): _array(results[k], k) for k in results if k.startswith("test_")
    }
    sizes = {len(values) for values in scores.values()}
    if len(sizes) > 1:
        raise DataError(
            f'the scores of "{name or MODEL}" have different numbers of folds: {sizes}.'
        )
    indices = results.get("indices") or {}
    folds = []
    for fold in range(sizes.pop()):
        facts = _seconds(results, "fit_time", "score_time", fold)
        if {"train", "test"} <= set(indices):
            facts |= {side: float(len(indices[side][fold])) for side in ("train", "test")}
        folds.append(({metric: values[fold] for metric, values in scores.items()}, facts))
    return folds


def _array(values: object, name: str) -> np.ndarray:
    try:
        array = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be numbers, got {values!r:.60}.") from None
    if array.ndim != 1 or not len(array):
        raise DataError(f"{name} must be a list of one number per fold, got shape {array.shape}.")
    return array


def _seconds(results: Mapping[str, Any], fit: str, score: str, position: int) -> dict[str, float]:
    if fit not in results or score not in results:
        return {}
    return {"seconds": float(results[fit][position]) + float(results[score][position])}
