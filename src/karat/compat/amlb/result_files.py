"""The AutoML Benchmark's ``results.csv``, written and imported, with either set of columns."""

from __future__ import annotations

import ast
import json
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd

from karat.core.files import file_locks, write_atomic
from karat.corruptions.view import CLEAN, View
from karat.errors import DataError, KaratError, KaratWarning
from karat.metrics.metric import get_metric
from karat.results.importing import (
    UNKNOWN,
    ImportLog,
    ModelResults,
    Row,
    Sample,
    direction,
    kind_of,
    rows,
)
from karat.results.load import exported_runs
from karat.results.pooling import UNKNOWN_CONSTRAINT
from karat.results.run import Run
from karat.results.tables import AMLB_COLUMNS, KARAT_COLUMNS, expand_folds

#: the columns of current files
NEW = (
    *("id", "task", "framework", "constraint", "fold", "type", "result", "metric", "mode"),
    *("version", "params", "app_version", "utc", "duration", "training_duration"),
    *("predict_duration", "models_count", "seed", "info"),
)
#: prefix of the columns of inference times
TIMED = "infer_batch_size_df_"
#: whether the higher result is better, dropped before the table is written
HIGHER = "higher_is_better"
WHOLE = ("fold", "seed", "models", "models_count")
LOOKS = "a CSV file with the columns task, framework, fold and result"
#: prefix of ``info`` of a declined job
DECLINED = "Declined: "
#: the metric of a result without a column metric: the one that equals it most often, in this order
FIRST = ("auc", "logloss", "rmse", "acc")
NEGATED = "neg_"
KINDS = {"binary": "classification", "multiclass": "classification", "regression": "regression"}
#: relative tolerance for rounded values
NEAR = 1e-4


def amlb_tables(runs: Any) -> Iterator[tuple[str, pd.DataFrame | str]]:
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


def new_amlb_tables(runs: Any) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield ``results.csv`` with the current columns; lower-is-better results are negated."""
    yield "results.csv", _table(runs, NEW, _present).drop(columns=HIGHER)


def _table(runs: Any, columns: tuple[str, ...], make: Any) -> pd.DataFrame:
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


def _rows(run: Run, label: Mapping[str, str], make: Any) -> Iterator[dict[str, Any]]:
    tasks = {task["name"]: task for task in run.about["tasks"]}
    for record in expand_folds(run.about, run.records()):
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
    return str(task.get("type") or task.get("kind") or kind_of(metric))


def keep_scores(runs: Sequence[Run], file: Path) -> None:
    """Add the rows of runs to a ``results.csv`` of many runs; equal rows are kept once.

    A file with other columns is left as it is, with a warning.
    """
    tables = [run.folder / "scores" / "results.csv" for run in runs]
    with _lock(file.with_name(f".{file.name}.lock")):
        known = [file] if file.is_file() else []
        rows = [pd.read_csv(each, dtype=str, keep_default_na=False) for each in [*known, *tables]]
        if known and not set(AMLB_COLUMNS) <= set(rows[0].columns):
            lacks = next(name for name in AMLB_COLUMNS if name not in rows[0].columns)
            text = f"{file} has no column {lacks}: the rows are not added; rename the file."
            warnings.warn(text, KaratWarning, stacklevel=2)
            return
        both = pd.concat(rows, ignore_index=True).fillna("").drop_duplicates()
        others = set(both.columns) - {*AMLB_COLUMNS, *KARAT_COLUMNS}
        timed = {name for name in others if name.startswith("inference_")}
        order = [*AMLB_COLUMNS, *sorted(others - timed), *KARAT_COLUMNS, *sorted(timed)]
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
            firsts |= {task: name for task, name in file.firsts().items() if name != UNKNOWN}
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
        self.rows = self._last()
        self.types = self._types()
        self.first: dict[str, str] = {}
        asked = {_plain(row.text("metric")) for row in self.rows} - {""}
        numbers = [name for name in others if name not in self.metrics and name not in asked]
        log.skipped(sample.path, [n for n in numbers if not n.startswith("infer_batch_size")])

    def _last(self) -> list[Row]:
        """Return the last row of each job and view."""
        found: dict[tuple[Any, ...], Row] = {}
        count = declined = 0
        for row in rows(self.sample):
            if row.text("status") == "declined" or row.text("info").startswith(DECLINED):
                declined += 1
                continue
            names = ("framework", "constraint", "task", "corruption", "severity", "draw")
            key = (row.whole("fold"), *map(row.text, names))
            found.pop(key, None)
            found[key] = row
            count += 1
        if count > len(found):
            repeated = f"{count - len(found)} of {count} rows are duplicates"
            self.log.note(f"{self.sample.path.name}: {repeated}; the last one is used.")
        if declined:
            self.log.note(f"{self.sample.path.name}: skipped {declined} declined jobs.")
        return list(found.values())

    def _types(self) -> dict[str, str]:
        """Return binary or multiclass of each task: its auc is only computed for two classes."""
        counts: dict[str, Counter[bool]] = {}
        for row in self.rows if "auc" in self.metrics else ():
            if row.number("acc") is not None or row.number("auc") is not None:
                counts.setdefault(row.text("task"), Counter())[row.number("auc") is not None] += 1
        return {t: "binary" if n[True] > n[False] else "multiclass" for t, n in counts.items()}

    def firsts(self) -> dict[str, str]:
        """Return the primary metric of each task: as given, else the one equal to its results."""
        firsts: dict[str, str] = {}
        counts: dict[str, Counter[str]] = {}
        for row in self.rows:
            task, metric = row.text("task"), _plain(row.text("metric"))
            if metric:
                firsts.setdefault(task, metric)
            elif row.number("result") is not None:
                result = row.number("result")
                equal = [name for name in self.metrics if row.number(name) == result]
                counts.setdefault(task, Counter()).update(equal)
        rank = {name: -index for index, name in enumerate(FIRST)}
        for task, times in counts.items():
            best = max(times, key=lambda n: (times[n], rank.get(n, -len(FIRST))), default=UNKNOWN)
            firsts.setdefault(task, best)
        return firsts

    def runs(self, firsts: Mapping[str, str]) -> Iterator[ModelResults]:
        """Yield the runs; ``firsts`` holds the primary metrics of other files."""
        own = {task: metric for task, metric in self.firsts().items() if metric != UNKNOWN}
        self.first = {**firsts, **own}
        self.ways = {metric: direction(metric) for metric in self.first.values()}
        parts: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            parts.setdefault((row.text("framework"), row.text("constraint")), []).append(row)
        for (framework, constraint), part in parts.items():
            model = self.log.model or framework
            found = ModelResults("amlb", model, _suite(self.sample), [self.sample.path])
            constraint = constraint or _constraint(self.sample)
            found.about = {"constraint": constraint, **self._common(part)}
            for row in part:
                self._add(found, row)
            yield found

    def _common(self, part: Sequence[Row]) -> dict[str, Any]:
        """Return the common fields of the rows of a run, and the time of the last row."""
        names = ("mode", "version", "params", "tag", "app_version")
        modes, versions, params, tags, new_tags = (
            list(dict.fromkeys(text for row in part if (text := row.text(name)))) for name in names
        )
        stamp = re.sub("[^0-9T]", "", max((row.text("utc") for row in part), default=""))
        whole = re.fullmatch("[0-9]{8}T[0-9]{6}", stamp)
        return {
            "mode": "+".join(modes) or "imported",
            "version": ", ".join(versions),
            # if the rows differ, the records have the parameters
            "params": _params(params[0]) if len(params) == 1 else {},
            "tag": ", ".join(tags or new_tags),
            "stamp": stamp if whole else None,
        }

    def _add(self, found: ModelResults, row: Row) -> None:
        task, fold = row.text("task"), row.whole("fold")
        first = self.first.get(task, UNKNOWN)
        if task not in found.tasks:
            kind = KINDS.get(row.text("type"), row.text("type")) or kind_of(first)
            facts = {"dataset": row.text("id") or task, "metric": first, "kind": kind}
            type_ = row.text("type") or (self.types.get(task) if kind == "classification" else None)
            found.tasks[task] = {**facts, **_some(type=type_)}
        repeat = row.whole("repeat") if row.text("repeat") else 0
        job = found.job(task, fold, repeat)
        scores = self._scores(found, row)
        if row.text("status") == "failed" or not scores:
            job.info = job.info or row.text("info") or "no result"
        elif row.text("info"):
            job.notes.append(row.text("info"))
        severity = row.number("severity") or 0.0
        draw = row.whole("draw") if row.text("draw") else 0
        for name, value in scores.items():
            found.put(job, name, value, View(row.text("corruption"), severity, draw))
        job.facts |= _facts(row)

    def _scores(self, found: ModelResults, row: Row) -> dict[str, float]:
        named, result = row.text("metric"), row.number("result")
        first = self.first.get(row.text("task"), UNKNOWN)
        negated = named.startswith(NEGATED)
        scores: dict[str, float] = {}
        if result is not None and first != UNKNOWN:
            scores[first] = -result if negated else result
            # current files negate lower-is-better results and name the metric neg_...
            if self.ways[first] is None and (negated or "app_version" in self.sample.names):
                found.higher[first] = not negated
            elif self.ways[first] is None:
                del scores[first]
                self.log.skipped(self.sample.path, [first])
        for name in self.metrics:
            value = row.number(name)
            if value is None or result is None:
                continue
            if name in scores and not math.isclose(value, scores[name], rel_tol=NEAR):
                self.log.note(
                    f"{row.path.name}, line {row.line}: result is {result} but {name} is {value}; "
                    f"using {name}."
                )
            scores[name] = value
        return scores


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
            found = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            continue
        if isinstance(found, Mapping):
            return {str(k): v if _is_plain(v) else repr(v) for k, v in found.items()}
    return {"text": text}


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def _facts(row: Row) -> dict[str, Any]:
    duration = row.number("duration")
    training = row.number("training_duration")
    own = {
        name: row.number(name)
        for name in KARAT_COLUMNS
        if name.endswith("_seconds") and row.text(name)
    }
    seed = row.number("seed")
    models = row.number("models") if row.text("models") else row.number("models_count")
    return {
        **_some(
            utc=row.text("utc"),
            seed=None if seed is None else int(seed),
            seconds=row.number("seconds") if row.text("seconds") else duration,
            fit_seconds=duration if training is None else training,
            predict_seconds=row.number("predict_duration"),
            models=None if models is None else int(models),
            coverage=row.number("coverage"),
            params=row.text("params"),
            version=row.text("version"),
        ),
        **_some(**own),
    }


def _some(**given: Any) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value not in (None, "")}
