"""The AutoML Benchmark's ``results.csv``, written and imported, with either set of columns."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from karat.core.files import file_locks
from karat.core.writing import write_atomic
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, KaratError, KaratWarning
from karat.ext.compat.amlb.report_tables import report_tables
from karat.metrics.metric import get_metric
from karat.results.importing import (
    UNKNOWN,
    ImportLog,
    ModelResults,
    ResultTable,
    Sample,
    direction,
    metric_kind,
)
from karat.results.load import Runs, exported_runs
from karat.results.pooling import UNKNOWN_CONSTRAINT
from karat.results.run import Run
from karat.results.tables import AMLB_COLUMNS, DECLINED, ELIMINATED, KARAT_COLUMNS, expand_folds

#: the columns of current files
NEW = (
    "id",
    "task",
    "framework",
    "constraint",
    "fold",
    "type",
    "result",
    "metric",
    "mode",
    "version",
    "params",
    "app_version",
    "utc",
    "duration",
    "training_duration",
    "predict_duration",
    "models_count",
    "seed",
    "info",
)
#: prefix of the columns of inference times
TIMED = "infer_batch_size_df_"
#: whether the higher result is better, dropped before the table is written
HIGHER = "higher_is_better"
WHOLE = ("fold", "seed", "models", "models_count")
LOOKS = "a CSV file with the columns task, framework, fold and result"
#: the metric of a result without a column metric: the one that equals it most often, in this order
FIRST = ("auc", "logloss", "rmse", "acc")
NEGATED = "neg_"
KINDS = {"binary": "classification", "multiclass": "classification", "regression": "regression"}
#: relative tolerance for rounded values
NEAR = 1e-4
#: makes a row from a run, the record of a job and the definition of its task
MakeRow = Callable[[Run, Mapping[str, Any], Mapping[str, Any]], dict[str, Any]]


def amlb_tables(runs: Runs) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield ``results.csv`` with the documented columns, the metrics, and ``type``.

    ``type`` is not documented, but the AutoML Benchmark's report code reads it.
    """
    table = _table(runs, AMLB_COLUMNS, _documented)
    lower = sorted(set(table["metric"][~table.pop(HIGHER).astype(bool)]))
    if lower:
        names = " and ".join(lower) if len(lower) < 3 else ", ".join(lower)
        warnings.warn(
            f"results of {names} are lower-is-better, as documented; the current amlb_report "
            "expects higher-is-better results: use amlb-new for it.",
            KaratWarning,
            stacklevel=2,
        )
    yield "results.csv", table[[*table.columns.drop("type"), "type"]]


def new_amlb_tables(runs: Runs) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield ``results.csv`` with the current columns; lower-is-better results are negated."""
    yield "results.csv", _table(runs, NEW, _present).drop(columns=HIGHER)


def amlb_report_tables(runs: Runs) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield the tables of its reports: summaries, normalized scores and leaderboards."""
    jobs = _table(runs, NEW, _present)
    yield from report_tables(jobs.rename(columns={"result": "score"}))


def _table(runs: Runs, columns: tuple[str, ...], make: MakeRow) -> pd.DataFrame:
    """Return the rows of runs; a run with a job of another run of its model has its own name."""
    parts = [(name, list(_rows(run, label, make))) for run, name, label in exported_runs(runs)]
    times = Counter(_job(row) for _, part in parts for row in part)
    for name, part in parts:
        if any(times[_job(row)] > 1 for row in part):
            part[:] = [{**row, "framework": name} for row in part]
    rows = [row for _, part in parts for row in part]
    if not rows:
        raise DataError("the runs have no finished job to export.")
    others = {name for row in rows for name in row} - {*columns, "type", HIGHER}
    timed = sorted(name for name in others if name.startswith(TIMED))
    metrics = [*sorted(others - set(timed)), *timed]
    extra = [name for name in ("type", HIGHER) if name not in columns]
    table = pd.DataFrame(rows, columns=[*columns, *metrics, *extra])
    return table.astype({name: "Int64" for name in WHOLE if name in columns})


def _rows(run: Run, label: Mapping[str, str], make: MakeRow) -> Iterator[dict[str, Any]]:
    tasks = {task["name"]: task for task in run.about["tasks"]}
    # another program would take a job that was not run for a failure
    ran = [record for record in run.records() if record["status"] != ELIMINATED]
    for record in expand_folds(run.about, ran):
        row = make(run, record, tasks.get(record["task"], {}))
        yield {**row, "framework": run.model, "task": label[record["task"]]}


def _job(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("framework", "constraint", "task", "fold"))


def _documented(run: Run, record: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    scores = {k: v for k, v in _clean(record).get("scores", {}).items() if v is not None}
    return {
        **_shared(run, record, task),
        **scores,
        "result": scores.get(record["metric"]),
        "metric": record["metric"],
        "tag": run.about.get("tag") or f"karat-{run.about['karat']}",
        "duration": record.get("fit_seconds"),
        "models": record.get("models"),
    }


def _present(run: Run, record: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    scores = {k: v for k, v in _clean(record).get("scores", {}).items() if v is not None}
    metric, value = record["metric"], scores.get(record["metric"])
    shared = _shared(run, record, task)
    higher = shared[HIGHER]
    return {
        **shared,
        **scores,
        "result": value if higher or value is None else -value,
        "metric": metric if higher else f"neg_{metric}",
        "app_version": run.about.get("tag") or f"karat-{run.about['karat']}",
        "duration": record.get("seconds"),
        "training_duration": record.get("fit_seconds"),
        "predict_duration": record.get("predict_seconds"),
        "models_count": record.get("models"),
        **{f"{TIMED}{n}": v for n, v in record.get("inference", {}).items()},
    }


def _shared(run: Run, record: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    params = record.get("params") or run.about["params"]
    view = _clean(record)
    kind = DECLINED if record["status"] == "declined" else ""
    messages = [f"{kind}{record['info']}", *view.get("reasons", {}).values()]
    if view.get("status") == "ok":
        messages = messages[1:]  # the failure of a corrupted view
    higher = task.get("higher_is_better", {}).get(record["metric"])
    return {
        "id": task.get("id") or task.get("dataset", ""),
        "type": _type(task, record["metric"]),
        HIGHER: get_metric(record["metric"]).higher_is_better if higher is None else higher,
        "constraint": run.about["constraint"],
        "fold": record["fold"],
        "mode": run.about["mode"],
        "version": record.get("version") or run.about["version"],
        "params": params if isinstance(params, str) else repr(params) if params else "",
        "utc": record["utc"],
        "seed": record["seed"],
        "info": "; ".join(filter(None, messages)),
    }


def _clean(record: Mapping[str, Any]) -> Mapping[str, Any]:
    views = [v for v in record["views"] if View(v["corruption"], v["severity"]) == CLEAN]
    return views[0] if views else {}


def _type(task: Mapping[str, Any], metric: str) -> str:
    """Return binary, multiclass or regression, else the kind of the task.

    >>> _type({"classes": {"no": 30, "yes": 10}}, "auc"), _type({}, "rmse")
    ('binary', 'regression')
    """
    if task.get("classes"):
        return "binary" if len(task["classes"]) == 2 else "multiclass"
    return str(task.get("type") or task.get("kind") or metric_kind(metric))


def keep_scores(runs: Sequence[Run], file: Path) -> None:
    """Add the rows of runs to a ``results.csv`` of many runs; equal rows are kept once.

    A file with other columns is left as it is, with a warning.
    """
    tables = [run.folder / "scores" / "results.csv" for run in runs]
    with _lock(file.with_name(f".{file.name}.lock")):
        kept_files = [file] if file.is_file() else []
        rows = [
            pd.read_csv(table_path, dtype=str, keep_default_na=False)
            for table_path in [*kept_files, *tables]
        ]
        if kept_files and not set(AMLB_COLUMNS) <= set(rows[0].columns):
            lacks = next(name for name in AMLB_COLUMNS if name not in rows[0].columns)
            text = f"{file} has no column {lacks}: the rows are not added; rename the file."
            warnings.warn(text, KaratWarning, stacklevel=2)
            return
        both = pd.concat(rows, ignore_index=True).fillna("").drop_duplicates()
        others = set(both.columns) - {*AMLB_COLUMNS, *KARAT_COLUMNS}
        timed = {name for name in others if name.startswith("inference_")}
        # a file of an earlier version has Karat's columns too
        karat_columns = [name for name in KARAT_COLUMNS if name in both.columns]
        order = [*AMLB_COLUMNS, *sorted(others - timed), *karat_columns, *sorted(timed)]
        both = both.reindex(columns=order, fill_value="")
        write_atomic(file, both.to_csv(index=False))


@contextmanager
def _lock(file: Path) -> Iterator[None]:
    """Wait for the lock of a file, where the system has locks."""
    locks = file_locks()
    with file.open("w") as handle:
        if locks is not None:
            with suppress(OSError):  # a file system without locks
                locks.flock(handle, locks.LOCK_EX)
        yield


def recognizes(sample: Sample) -> bool:
    """Return whether a file is one of these."""
    return sample.shape == "csv" and sample.has("task", "framework", "fold", "result")


def read(samples: Sequence[Sample], log: ImportLog) -> Iterator[ModelResults]:
    """Yield a run per file, framework and constraint."""
    files = []
    firsts: dict[str, str] = {}
    for sample in samples:
        try:
            file = _File(sample, log)
            # the metric of a task in one file also applies to the others
            firsts |= {task: name for task, name in file.own.items() if name != UNKNOWN}
            files.append(file)
        except KaratError as error:
            log.problems.append(str(error))
    for file in files:
        try:
            yield from file.runs(firsts)
        except KaratError as error:
            log.problems.append(str(error))


class _File:
    """The rows of a file, its metric columns, and the primary metrics of its tasks."""

    def __init__(self, sample: Sample, log: ImportLog) -> None:
        self.sample = sample
        self.log = log
        base = {*AMLB_COLUMNS, *KARAT_COLUMNS, *NEW}
        others = [name for name in sample.names if name not in base]
        self.metrics = [name for name in others if direction(name) is not None]
        self.rows = self._last(ResultTable.read(sample))
        self.types = self._types()
        self.own = self._firsts()
        self.first: dict[str, str] = {}
        named_metrics = set(map(_plain, set(self.rows.texts("metric")))) - {""}
        numbers = [
            name for name in others if name not in self.metrics and name not in named_metrics
        ]
        log.skipped(sample.path, [n for n in numbers if not n.startswith("infer_batch_size")])

    def _last(self, table: ResultTable) -> ResultTable:
        """Return the last row of each job and view."""
        stated = zip(table.texts("status"), table.texts("info"), strict=True)
        ran = [s != "declined" and not info.startswith(DECLINED) for s, info in stated]
        if declined := ran.count(False):
            table = table.take([row_number for row_number, has_run in enumerate(ran) if has_run])
        names = ("framework", "constraint", "task", "corruption", "severity", "draw")
        last_rows: dict[tuple[Any, ...], int] = {}
        folds = table.integers("fold", required=True)
        for row_number, key in enumerate(zip(folds, *map(table.texts, names), strict=True)):
            last_rows.pop(key, None)
            last_rows[key] = row_number
        if len(table) > len(last_rows):
            repeated = f"{len(table) - len(last_rows)} of {len(table)} rows are duplicates"
            self.log.note(f"{self.sample.path.name}: {repeated}; the last one is used.")
            table = table.take(list(last_rows.values()))
        if declined:
            self.log.note(f"{self.sample.path.name}: skipped {declined} declined jobs.")
        return table

    def _types(self) -> dict[str, str]:
        """Return binary or multiclass of each task: its auc is only computed for two classes."""
        if "auc" not in self.metrics:
            return {}
        columns = (self.rows.texts("task"), self.rows.numbers("acc"), self.rows.numbers("auc"))
        counts: dict[str, list[int]] = {}
        for task, acc, auc in zip(*columns, strict=True):
            if acc is not None or auc is not None:
                counts.setdefault(task, [0, 0])[auc is not None] += 1
        return {t: "binary" if two > more else "multiclass" for t, (more, two) in counts.items()}

    def _firsts(self) -> dict[str, str]:
        """Return the primary metric of each task: as given, else the one equal to its results."""
        firsts: dict[str, str] = {}
        counts: dict[str, Counter[str]] = {}
        plain = {text: _plain(text) for text in set(self.rows.texts("metric"))}
        scores = {name: self.rows.numbers(name) for name in self.metrics} if "" in plain else {}
        columns = (self.rows.texts("task"), self.rows.texts("metric"), self.rows.numbers("result"))
        for row_number, (task, named, result) in enumerate(zip(*columns, strict=True)):
            if plain[named]:
                firsts.setdefault(task, plain[named])
            elif result is not None:
                equal = [name for name, column in scores.items() if column[row_number] == result]
                counts.setdefault(task, Counter()).update(equal)
        rank = {name: -index for index, name in enumerate(FIRST)}
        for task, times in counts.items():
            best = max(times, key=lambda n: (times[n], rank.get(n, -len(FIRST))), default=UNKNOWN)
            firsts.setdefault(task, best)
        return firsts

    def runs(self, firsts: Mapping[str, str]) -> Iterator[ModelResults]:
        """Yield the runs; ``firsts`` holds the primary metrics of other files."""
        known_metrics = {task: metric for task, metric in self.own.items() if metric != UNKNOWN}
        self.first = {**firsts, **known_metrics}
        self.ways = {metric: direction(metric) for metric in self.first.values()}
        parts: dict[tuple[str, str], list[int]] = {}
        names = (self.rows.texts("framework"), self.rows.texts("constraint"))
        for row_number, key in enumerate(zip(*names, strict=True)):
            parts.setdefault(key, []).append(row_number)
        for (framework, constraint), places in parts.items():
            part = self.rows.take(places)
            model = self.log.model or framework
            results = ModelResults("amlb", model, _suite(self.sample), [self.sample.path])
            constraint = constraint or _constraint(self.sample)
            results.about = {"constraint": constraint, **self._common(part)}
            self._add(results, part)
            yield results

    def _common(self, part: ResultTable) -> dict[str, Any]:
        """Return the common fields of the rows of a run, and the time of the last row."""
        names = ("mode", "version", "params", "tag", "app_version")
        modes, versions, params, tags, new_tags = (
            [text for text in dict.fromkeys(part.texts(name)) if text] for name in names
        )
        stamp = re.sub("[^0-9T]", "", max(part.texts("utc"), default=""))
        whole = re.fullmatch("[0-9]{8}T[0-9]{6}", stamp)
        return {
            "mode": "+".join(modes) or "imported",
            "version": ", ".join(versions),
            # if the rows differ, the records have the parameters
            "params": _params(params[0]) if len(params) == 1 else {},
            "tag": ", ".join(tags or new_tags),
            "stamp": stamp if whole else None,
        }

    def _add(self, results: ModelResults, part: ResultTable) -> None:
        """Add the jobs of a run."""
        self._add_tasks(results, part)
        folds, repeats = part.integers("fold"), part.integers("repeat")
        jobs = [
            results.job(task, fold or 0, repeat or 0)
            for task, fold, repeat in zip(part.texts("task"), folds, repeats, strict=True)
        ]
        scores, views = self._scores(results, part), _views(part)
        outcomes = zip(jobs, scores, part.texts("status"), part.texts("info"), strict=True)
        for job, row, status, info in outcomes:
            if status == "failed" or not row:
                job.info = job.info or info or "no result"
            elif info:
                job.notes.append(info)
        for job, view, row, facts in zip(jobs, views, scores, _facts(part), strict=True):
            if row:
                job.scores.setdefault(view, {}).update(row)
            job.facts |= facts

    def _add_tasks(self, results: ModelResults, part: ResultTable) -> None:
        columns = (part.texts("task"), part.texts("type"), part.texts("id"))
        for task, stated, dataset in zip(*columns, strict=True):
            if task not in results.tasks:
                first = self.first.get(task, UNKNOWN)
                kind = KINDS.get(stated, stated) or metric_kind(first)
                facts = {"dataset": dataset or task, "metric": first, "kind": kind}
                type_ = stated or (self.types.get(task) if kind == "classification" else None)
                results.tasks[task] = {**facts, **_some(type=type_)}

    def _scores(self, results: ModelResults, part: ResultTable) -> list[dict[str, float]]:
        """Return the scores of each row: its result, and the columns of metrics."""
        columns = (part.texts("task"), part.texts("metric"), part.numbers("result"))
        scores: list[dict[str, float]] = []
        for task, named, result in zip(*columns, strict=True):
            first = self.first.get(task, UNKNOWN)
            if result is None or first == UNKNOWN:
                scores.append({})
                continue
            negated = named.startswith(NEGATED)
            # current files negate lower-is-better results and name the metric neg_...
            is_known = self.ways[first] is not None
            if not is_known and (negated or "app_version" in self.sample.names):
                results.higher[first] = not negated
            elif not is_known:
                self.log.skipped(self.sample.path, [first])
                scores.append({})
                continue
            scores.append({first: -result if negated else result})
        for name in self.metrics:
            self._add_metric(scores, part, name)
        return scores

    def _add_metric(self, scores: list[dict[str, float]], part: ResultTable, name: str) -> None:
        """Add the scores of a column."""
        results = part.numbers("result")
        for row_number, (value, result) in enumerate(zip(part.numbers(name), results, strict=True)):
            if value is None or result is None:
                continue
            row = scores[row_number]
            if name in row and not math.isclose(value, row[name], rel_tol=NEAR):
                self.log.note(
                    f"{part.path.name}, line {part.lines[row_number]}: result is {result} but "
                    f"{name} is {value}; using {name}."
                )
            row[name] = value


def _views(part: ResultTable) -> list[View]:
    """Return the view of each row; equal ones are one object."""
    columns = (part.texts("corruption"), part.numbers("severity"), part.integers("draw"))
    keys = list(zip(*columns, strict=True))
    views = {key: View(key[0], key[1] or 0.0, key[2] or 0) for key in set(keys)}
    return [views[key] for key in keys]


def _suite(sample: Sample) -> str:
    """Return the suite according to the names of the file and its folders."""
    path = sample.path.resolve()
    parts = path.parent.parent.name.split(".")
    if path.parent.name == "scores" and len(parts) >= 5:
        return parts[1]
    return path.stem.removeprefix("results_") if path.stem != "results" else "amlb"


def _constraint(sample: Sample) -> str:
    """Return the constraint according to a file's name: 4h8c for results_small-8c4h_ref.csv."""
    named = re.search("-([0-9]+c)([0-9]+h)(_ref)?$", sample.path.stem)
    return f"{named[2]}{named[1]}" if named else UNKNOWN_CONSTRAINT


def _plain(metric: str) -> str:
    return metric.removeprefix(NEGATED)


def _params(text: str) -> dict[str, Any]:
    """Return parameters written as JSON or as a Python literal.

    >>> _params("{'n_estimators': 2000}"), _params("?")
    ({'n_estimators': 2000}, {'text': '?'})
    """
    for parse in (json.loads, ast.literal_eval):
        try:
            params = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        if isinstance(params, Mapping):
            return {str(k): v if _is_plain(v) else repr(v) for k, v in params.items()}
    return {"text": text}


def _is_plain(value: object) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _facts(part: ResultTable) -> list[dict[str, Any]]:
    """Return what each row has besides its scores."""
    duration = part.numbers("duration")
    columns: dict[str, Sequence[Any]] = {
        "utc": part.texts("utc"),
        "seed": _whole(part.numbers("seed")),
        "seconds": _first_given(part.numbers("seconds"), duration),
        "fit_seconds": _first_given(part.numbers("training_duration"), duration),
        "predict_seconds": part.numbers("predict_duration"),
        "models": _first_given(
            _whole(part.numbers("models")), _whole(part.numbers("models_count"))
        ),
        "coverage": part.numbers("coverage"),
        "params": part.texts("params"),
        "version": part.texts("version"),
    }
    timed = [name for name in KARAT_COLUMNS if name.endswith("_seconds") and name in part.columns]
    for name in timed:
        columns[name] = _first_given(part.numbers(name), columns.get(name, [None] * len(part)))
    return [
        {name: value for name, value in zip(columns, row, strict=True) if value not in (None, "")}
        for row in zip(*columns.values(), strict=True)
    ]


def _whole(values: Sequence[float | None]) -> list[int | None]:
    return [None if value is None else int(value) for value in values]


def _first_given(values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    return [b if a is None else a for a, b in zip(values, others, strict=True)]


def _some(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "")}
