"""The tables of a run, built from its records.

``results.csv`` has the columns of the AutoML Benchmark, then the metrics in alphabetical order,
then Karat's columns. ``scores.csv`` is the tidy table with one row per score.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

AMLB_COLUMNS = (
    *("id", "task", "framework", "constraint", "fold", "result", "metric", "mode", "version"),
    *("params", "tag", "utc", "duration", "models", "seed", "info"),
)
KARAT_COLUMNS = (
    *("status", "repeat", "corruption", "severity", "draw", "affected", "coverage", "dimensions"),
    *("train_questions", "questions", "embed_seconds", "load_seconds", "fit_seconds"),
    *("predict_seconds", "score_seconds", "seconds", "cpu_seconds", "peak_memory_mb", "notes"),
)
SCORE_COLUMNS = (
    *("task", "model", "repeat", "fold", "corruption", "severity", "draw", "epoch", "metric"),
    "value",
)
#: epoch of a final score; scores during training have the epochs 1, 2, ...
FINAL_EPOCH = -1


def scores_table(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the tidy table: one row per score, NaN if a metric has no value."""
    rows: list[tuple[Any, ...]] = []
    for record in records:
        job = (record["task"], record["model"], record["repeat"], record["fold"])
        for step in record["history"]:
            rows.append((*job, "", 0.0, 0, step["epoch"], step["metric"], step["value"]))
        for view in record["views"]:
            seen = (view["corruption"], view["severity"], view.get("draw", 0), FINAL_EPOCH)
            rows += [(*job, *seen, name, value) for name, value in view["scores"].items()]
    table = pd.DataFrame(rows, columns=list(SCORE_COLUMNS))
    return table.astype({"value": float, "severity": float})


def results_table(about: Mapping[str, Any], records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per job and view, including failed and declined jobs."""
    datasets = {task["name"]: task.get("id") or task["dataset"] for task in about["tasks"]}
    rows = []
    for record in expand_folds(about, records):
        fixed = _fixed(about, record, datasets.get(record["task"], ""))
        views = record["views"] or [{"corruption": "", "severity": 0.0, "scores": {}}]
        rows += [{**fixed, **_of_view(record, view)} for view in views]
    batches = sorted({int(size) for r in records for size in r.get("inference", {})})
    planned = {name for task in about["tasks"] for name in task["metrics"] if name != "?"}
    metrics = sorted(planned | {name for r in records for v in r["views"] for name in v["scores"]})
    timings = [f"inference_{size}_seconds" for size in batches]
    table = pd.DataFrame(rows, columns=[*AMLB_COLUMNS, *metrics, *KARAT_COLUMNS, *timings])
    whole = ["fold", "seed", "repeat", "dimensions", "train_questions", "questions"]
    return table.astype({name: "Int64" for name in whole})


def expand_folds(
    about: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the records; the record of a task that never ran is repeated for each planned fold."""
    folds = {task["name"]: task.get("folds") or [None] for task in about["tasks"]}
    for record in records:
        if record["fold"] is not None:
            yield record
        else:
            yield from ({**record, "fold": fold} for fold in folds.get(record["task"], [None]))


def _fixed(about: Mapping[str, Any], record: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    own = {name: record.get(name) for name in KARAT_COLUMNS}
    return {
        **own,
        "id": dataset,
        "task": record["task"],
        "framework": record["model"],
        "constraint": about["constraint"],
        "fold": record["fold"],
        "metric": record["metric"],
        "mode": about["mode"],
        "version": about["version"],
        "params": json.dumps(about["params"]) if about["params"] else "",
        "tag": about.get("tag") or f"karat-{about['karat']}",
        "utc": record["utc"],
        "duration": record.get("fit_seconds"),
        "seed": record["seed"],
        "notes": "; ".join(record["notes"]),
        "models": record.get("models"),
        **{f"inference_{n}_seconds": v for n, v in record.get("inference", {}).items()},
    }


def _of_view(record: Mapping[str, Any], view: Mapping[str, Any]) -> dict[str, Any]:
    # if a view failed, each view has its own status
    source = view if any(each.get("info") for each in record["views"]) else record
    reasons = view.get("reasons", {}).values()
    return {
        **view["scores"],
        "result": view["scores"].get(record["metric"]),
        "corruption": view["corruption"],
        "severity": view["severity"],
        "draw": view.get("draw", 0),
        "affected": view.get("affected"),
        "coverage": view.get("coverage"),
        "status": source["status"],
        "info": "; ".join(message for message in (source["info"], *reasons) if message),
    }
