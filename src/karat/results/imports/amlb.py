"""The AutoML Benchmark: ``results.csv`` in its documented and in its present columns."""

from __future__ import annotations

import ast
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karat.corruptions.view import View
from karat.errors import KaratError
from karat.results.imports.files import Row, Sample, rows
from karat.results.imports.found import UNKNOWN, UNTOLD, Found, Told, direction, kind_of
from karat.results.layouts import OWN, RESULTS

LOOKS = "a CSV file with the columns task, framework, fold and result"
#: columns of today's files that the documented ones do not have
#: how a declined job says so in their columns
DECLINED = "Declined: "
NEW = ("type", "app_version", "training_duration", "predict_duration", "models_count")
#: what a result is, where no column says it: the first of these that equals it most often
FIRST = ("auc", "logloss", "rmse", "acc")
NEGATED = "neg_"
KINDS = {"binary": "classification", "multiclass": "classification", "regression": "regression"}
#: two texts of one number may differ by what was rounded
NEAR = 1e-4


def recognises(seen: Sample) -> bool:
    """Return whether a file is one of these."""
    return seen.shape == "csv" and seen.has("task", "framework", "fold", "result")


def read(samples: Sequence[Sample], told: Told) -> Iterator[Found]:
    """Yield a run per file, framework and constraint."""
    files = []
    firsts: dict[str, str] = {}
    for seen in samples:
        try:
            file = _File(seen, told)
            # what one file tells of a task's metric holds in the others
            firsts |= {task: name for task, name in file.firsts().items() if name != UNKNOWN}
            files.append(file)
        except KaratError as error:
            told.problems.append(str(error))
    for file in files:
        try:
            yield from file.runs(firsts)
        except KaratError as error:
            told.problems.append(str(error))


class _File:
    """One file: its rows, its columns of metrics, and what its tasks are scored by."""

    def __init__(self, seen: Sample, told: Told) -> None:
        self.seen = seen
        self.told = told
        base = {*RESULTS, *OWN, *NEW}
        others = [name for name in seen.names if name not in base]
        self.metrics = [name for name in others if direction(name) is not None]
        self.rows = self._last()
        self.first: dict[str, str] = {}
        asked = {_plain(row.text("metric")) for row in self.rows} - {""}
        numbers = [name for name in others if name not in self.metrics and name not in asked]
        told.skipped(seen.path, [n for n in numbers if not n.startswith("infer_batch_size")])

    def _last(self) -> list[Row]:
        """Return the rows, of those about one job and view the last."""
        found: dict[tuple[Any, ...], Row] = {}
        count = declined = 0
        for row in rows(self.seen):
            if row.text("status") == "declined" or row.text("info").startswith(DECLINED):
                declined += 1
                continue
            names = ("framework", "constraint", "task", "corruption", "severity", "draw")
            key = (row.whole("fold"), *map(row.text, names))
            found.pop(key, None)
            found[key] = row
            count += 1
        if count > len(found):
            repeated = f"{count - len(found)} of {count} rows are repeated"
            self.told.note(f"{self.seen.path.name}: {repeated}; the last of each counts.")
        if declined:
            self.told.note(f"{self.seen.path.name}: {declined} declined jobs are left out.")
        return list(found.values())

    def firsts(self) -> dict[str, str]:
        """Return the metric each task is scored by: as told, else what its results equal."""
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
        for task, seen in counts.items():
            rank = {name: -FIRST.index(name) for name in FIRST if name in seen}
            best = max(seen, key=lambda n: (seen[n], rank.get(n, -len(FIRST))), default=UNKNOWN)
            firsts.setdefault(task, best)
        return firsts

    def runs(self, firsts: Mapping[str, str]) -> Iterator[Found]:
        """Yield the runs; ``firsts`` holds what tasks are scored by."""
        own = {task: metric for task, metric in self.firsts().items() if metric != UNKNOWN}
        self.first = {**firsts, **own}
        self.ways = {metric: direction(metric) for metric in self.first.values()}
        parts: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            parts.setdefault((row.text("framework"), row.text("constraint")), []).append(row)
        for (framework, constraint), part in parts.items():
            model = self.told.model or framework
            found = Found("amlb", model, _suite(self.seen), [self.seen.path])
            found.about = {"constraint": constraint or UNTOLD, **self._common(part)}
            for row in part:
                self._add(found, row)
            yield found

    def _common(self, part: Sequence[Row]) -> dict[str, Any]:
        """Return what all rows of a run share, and the time of the last one."""
        modes, versions = (_each(part, name) for name in ("mode", "version"))
        params = _each(part, "params")
        tags = _each(part, "tag") or _each(part, "app_version")
        stamp = re.sub("[^0-9T]", "", max((row.text("utc") for row in part), default=""))
        whole = re.fullmatch("[0-9]{8}T[0-9]{6}", stamp)
        return {
            "mode": "+".join(modes) or "imported",
            "version": ", ".join(versions),
            # parameters of single attempts stand in their records
            "params": _params(params[0]) if len(params) == 1 else {},
            "tag": ", ".join(tags),
            "stamp": stamp if whole else None,
        }

    def _add(self, found: Found, row: Row) -> None:
        task, fold = row.text("task"), row.whole("fold")
        first = self.first.get(task, UNKNOWN)
        if task not in found.tasks:
            kind = KINDS.get(row.text("type"), row.text("type")) or kind_of(first)
            told = {"dataset": row.text("id") or task, "metric": first, "kind": kind}
            found.tasks[task] = {**told, **_some(type=row.text("type"))}
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

    def _scores(self, found: Found, row: Row) -> dict[str, float]:
        named, result = row.text("metric"), row.number("result")
        first = self.first.get(row.text("task"), UNKNOWN)
        negated = named.startswith(NEGATED)
        scores: dict[str, float] = {}
        if result is not None and first != UNKNOWN:
            scores[first] = -result if negated else result
            # today's files turn every result so that higher is better, and tell when they did
            if self.ways[first] is None and (negated or "app_version" in self.seen.names):
                found.higher[first] = not negated
            elif self.ways[first] is None:
                del scores[first]
                self.told.skipped(self.seen.path, [first])
        for name in self.metrics:
            value = row.number(name)
            if value is None or result is None:
                continue
            if name in scores and not math.isclose(value, scores[name], rel_tol=NEAR):
                self.told.note(
                    f"{row.path.name}, line {row.line}: result is {result}, {name} is {value}; "
                    f"the latter counts."
                )
            scores[name] = value
        return scores


def _suite(seen: Sample) -> str:
    """Return what was run, as far as the names of file and folder tell."""
    path = seen.path.resolve()
    parts = path.parent.parent.name.split(".")
    if path.parent.name == "scores" and len(parts) >= 5:
        return parts[1]
    return path.stem.removeprefix("results_") if path.stem != "results" else "amlb"


def _plain(metric: str) -> str:
    return metric.removeprefix(NEGATED)


def _each(part: Sequence[Row], name: str) -> list[str]:
    return list(dict.fromkeys(row.text(name) for row in part if row.text(name)))


def _params(text: str) -> dict[str, Any]:
    """Return parameters written as JSON or as Python.

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
    own = {name: row.number(name) for name in OWN if name.endswith("_seconds") and row.text(name)}
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
