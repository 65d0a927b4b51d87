"""Export as the AutoML Benchmark's ``results.csv``, with its documented or current columns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from karat.corruptions.view import CLEAN, View
from karat.errors import DataError
from karat.metrics.base import get_metric
from karat.results.gather import named_runs
from karat.results.layouts import RESULTS, by_fold
from karat.results.run import Run

#: the columns of current files
NEW = (
    *("id", "task", "framework", "constraint", "fold", "type", "result", "metric", "mode"),
    *("version", "params", "app_version", "utc", "duration", "training_duration"),
    *("predict_duration", "models_count", "seed", "info"),
)
WHOLE = ("fold", "seed", "models", "models_count")


def amlb_tables(runs: Any) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield ``results.csv`` with the documented columns."""
    yield "results.csv", _table(runs, RESULTS, _documented)


def new_amlb_tables(runs: Any) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield ``results.csv`` with the current columns; lower-is-better results are negated."""
    yield "results.csv", _table(runs, NEW, _present)


def _table(runs: Any, columns: tuple[str, ...], make: Any) -> pd.DataFrame:
    rows: list[dict[str, Any]] = []
    found = named_runs(runs)
    pairs = [(run.model, run.about["constraint"]) for run, _, _ in found]
    for (run, name, label), pair in zip(found, pairs, strict=True):
        # the name must be unique for each constraint
        model = run.model if pairs.count(pair) == 1 else name
        tasks = {task["name"]: task for task in run.about["tasks"]}
        for record in by_fold(run.about, run.records()):
            task = tasks.get(record["task"], {})
            named = {"framework": model, "task": label[record["task"]]}
            rows.append({**make(run, record, task), **named})
    if not rows:
        raise DataError("the runs have no finished job to export.")
    metrics = sorted({name for row in rows for name in row} - set(columns))
    table = pd.DataFrame(rows, columns=[*columns, *metrics])
    return table.astype({name: "Int64" for name in WHOLE if name in columns})


def _documented(run: Run, record: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    scores = _scores(record)
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
    scores = _scores(record)
    metric, value = record["metric"], scores.get(record["metric"])
    higher = _higher(metric, task)
    return {
        **_shared(run, record, task),
        **scores,
        "type": task.get("type") or _type(run, record, task),
        "result": value if higher or value is None else -value,
        "metric": metric if higher else f"neg_{metric}",
        "app_version": run.about.get("tag") or f"karat-{run.about['karat']}",
        "duration": record.get("seconds"),
        "training_duration": record.get("fit_seconds"),
        "predict_duration": record.get("predict_seconds"),
        "models_count": record.get("models"),
    }


def _shared(run: Run, record: Mapping[str, Any], task: Mapping[str, Any]) -> dict[str, Any]:
    params = record.get("params") or run.about["params"]
    view = _clean(record)
    kind = "Declined: " if record["status"] == "declined" else ""
    messages = [f"{kind}{record['info']}", *view.get("reasons", {}).values()]
    if view.get("status") == "ok":
        messages = messages[1:]  # the failure of a corrupted view
    return {
        "id": task.get("dataset", ""),
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


def _scores(record: Mapping[str, Any]) -> dict[str, float]:
    scores = _clean(record).get("scores", {})
    return {name: value for name, value in scores.items() if value is not None}


def _higher(metric: str, task: Mapping[str, Any]) -> bool:
    higher = task.get("higher_is_better", {}).get(metric)
    return get_metric(metric).higher_is_better if higher is None else bool(higher)


def _type(run: Run, record: Mapping[str, Any], task: Mapping[str, Any]) -> str:
    """Return binary, multiclass or regression, from the job's metadata."""
    path = run._view_folder(record["task"], record["fold"], CLEAN.name) / "metadata.json"
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["type_"])
    except (OSError, ValueError, KeyError, TypeError):
        return "regression" if task.get("kind") == "regression" else ""
