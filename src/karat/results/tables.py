"""The tables of a run, built from its records.

``results.csv`` has one row per job with the columns of the AutoML Benchmark, then the metrics in
alphabetical order. ``jobs.csv`` has one row per job and view, with Karat's columns after these.
``scores.csv`` is the tidy table with one row per score.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.core.embeddings import vector_bytes

AMLB_COLUMNS = (
    "id",
    "task",
    "framework",
    "constraint",
    "fold",
    "result",
    "metric",
    "mode",
    "version",
    "params",
    "tag",
    "utc",
    "duration",
    "models",
    "seed",
    "info",
)
#: "precision" is a metric, so that of vectors has a longer name
KARAT_COLUMNS = (
    "status",
    "repeat",
    "corruption",
    "severity",
    "draw",
    "affected",
    "coverage",
    "dimensions",
    "vector_precision",
    "vector_bytes",
    "train_questions",
    "questions",
    "embed_seconds",
    "load_seconds",
    "fit_seconds",
    "predict_seconds",
    "score_seconds",
    "seconds",
    "cpu_seconds",
    "peak_memory_mb",
    "notes",
)
#: columns of jobs whose vectors come from an endpoint
USAGE_COLUMNS = (
    "tokens",
    "price",
    "embed_tokens",
    "tokens_estimated",
    "truncated",
    "texts",
    "requests",
    "request_seconds_median",
    "request_seconds_p95",
    "texts_per_second",
)
#: columns of jobs of a limited encoder in the same process, and of rerankers
COUNT_COLUMNS = ("truncated", "texts", "pairs")
SCORE_COLUMNS = (
    "task",
    "model",
    "repeat",
    "fold",
    "corruption",
    "severity",
    "draw",
    "epoch",
    "metric",
    "value",
)
#: columns of integers, of which some may be empty
WHOLE_COLUMNS = (
    "fold",
    "seed",
    "repeat",
    "dimensions",
    "vector_bytes",
    "train_questions",
    "questions",
)
#: prefix of the message of a job that was declined, in ``results.csv``
DECLINED = "Declined: "
#: status of jobs that were not run because the model was eliminated in a race
ELIMINATED = "eliminated"
#: epoch of a final score; scores during training have the epochs 1, 2, ...
FINAL_EPOCH = -1


def scores_table(records: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the tidy table: one row per score, NaN if a metric has no value."""
    rows: list[tuple[Any, ...]] = []
    for record in records:
        job = (record["task"], record["model"], record["repeat"], record["fold"])
        rows += [(*job, *row) for row in score_rows(record["history"], record["views"])]
    columns = zip(*rows, strict=True) if rows else [()] * len(SCORE_COLUMNS)
    table: dict[str, Any] = dict(zip(SCORE_COLUMNS, map(list, columns), strict=True))
    for name in ("value", "severity"):
        table[name] = np.array(table[name], dtype=float)
    return pd.DataFrame(table)


def score_rows(
    history: Sequence[Mapping[str, Any]], views: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[Any, ...]]:
    """Yield corruption, severity, draw, epoch, metric and value of each score of a job."""
    for step in history:
        yield "", 0.0, 0, step["epoch"], step["metric"], step["value"]
    for view in views:
        seen = (view["corruption"], view["severity"], view.get("draw", 0), FINAL_EPOCH)
        for name, value in view["scores"].items():
            yield *seen, name, value


def results_table(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> pd.DataFrame:
    """Return one row per job and view, including failed and declined jobs."""
    table = pd.DataFrame(results_columns(run_facts, records))
    return table.astype({name: "Int64" for name in WHOLE_COLUMNS})


def results_columns(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> dict[str, list[Any]]:
    """Return the columns of ``results_table``; empty cells are None."""
    none: list[Mapping[str, Any]] = [{"corruption": "", "severity": 0.0, "scores": {}}]
    pairs: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = [
        (record, view)
        for record in expand_folds(run_facts, records)
        for view in record["views"] or none
    ]
    batches = sorted({int(size) for r in records for size in r.get("inference", {})})
    planned = {name for task in run_facts["tasks"] for name in task["metrics"] if name != "?"}
    scores = [view["scores"] for _, view in pairs]
    metrics = sorted(planned.union(*set(map(tuple, scores))))
    usage = USAGE_COLUMNS if any("tokens" in record for record in records) else ()
    counts = [n for n in COUNT_COLUMNS if n not in usage and any(n in r for r in records)]
    usage = (*usage, *counts)
    cells = {
        **_of_jobs(run_facts, [record for record, _ in pairs], usage),
        **_of_views(pairs),
        **{name: [view_scores.get(name) for view_scores in scores] for name in metrics},
        **{f"inference_{n}_seconds": _inference(pairs, str(n)) for n in batches},
    }
    timings = [f"inference_{size}_seconds" for size in batches]
    columns = (*AMLB_COLUMNS, *metrics, *KARAT_COLUMNS, *usage, *timings)
    return {name: cells[name] for name in columns}


def amlb_columns(
    run_facts: Mapping[str, Any], every: Mapping[str, list[Any]]
) -> dict[str, list[Any]]:
    """Return the columns of the AutoML Benchmark for one row per job, of ``results_columns``.

    The row of a job is that of the clean data; the parameters are those of its files, a Python
    literal, and a job that was declined says so.
    """
    jobs: dict[tuple[Any, ...], int] = {}
    views = zip(every["task"], every["fold"], every["corruption"], every["status"], strict=True)
    for row, (task, fold, corruption, _) in enumerate(views):
        if not corruption:
            jobs.setdefault((task, fold), row)
    own_columns = {*KARAT_COLUMNS, *USAGE_COLUMNS, *COUNT_COLUMNS}
    names = [
        column
        for column in every
        if column not in own_columns and not column.startswith("inference_")
    ]
    params = repr(run_facts["params"]) if run_facts["params"] else ""
    columns = {name: [every[name][row] for row in jobs.values()] for name in names}
    states = [every["status"][row] for row in jobs.values()]
    columns["params"] = [params] * len(jobs)
    # the metrics of a task whose data could not be read are unknown
    columns["metric"] = ["" if name == "?" else name for name in columns["metric"]]
    columns["info"] = [
        f"{DECLINED}{info}" if state == "declined" else info
        for info, state in zip(columns["info"], states, strict=True)
    ]
    return columns


def _inference(pairs: Sequence[tuple[Mapping[str, Any], Any]], size: str) -> list[Any]:
    return [record.get("inference", {}).get(size) for record, _ in pairs]


def expand_folds(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Yield the records; the record of a task that never ran is repeated for each planned fold."""
    folds = {task["name"]: task.get("folds") or [None] for task in run_facts["tasks"]}
    for record in records:
        if record["fold"] is not None:
            yield record
        else:
            yield from ({**record, "fold": fold} for fold in folds.get(record["task"], [None]))


def eliminated_by(run_facts: Mapping[str, Any]) -> str:
    """Return when and why the model of a run was eliminated in a race, or an empty string."""
    race = run_facts.get("race")
    exit_facts = race.get("exit") if isinstance(race, Mapping) else None
    is_eliminated = isinstance(exit_facts, Mapping) and exit_facts.get("reason") == ELIMINATED
    return str(exit_facts.get("text") or ELIMINATED) if is_eliminated else ""  # type: ignore[union-attr]


def eliminated_records(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Yield a record for each planned job that was not run because the model was eliminated.

    These records have no file: they follow from run.json.
    """
    if not (info := eliminated_by(run_facts)):
        return
    recorded = {(record["task"], record["fold"]) for record in records}
    for task in run_facts["tasks"]:
        for fold in task["folds"] if (task["name"], None) not in recorded else ():
            if (task["name"], fold) not in recorded:
                yield {
                    **{"spec": "", "model": run_facts["model"], "task": task["name"], "fold": fold},
                    **{"kind": task.get("kind", ""), "metric": task["metrics"][0], "seed": None},
                    **{"status": ELIMINATED, "info": info, "repeat": None, "utc": ""},
                    **{"views": [], "notes": [], "history": []},
                }


def _of_jobs(
    run_facts: Mapping[str, Any], records: Sequence[Mapping[str, Any]], usage: Sequence[str]
) -> dict[str, Any]:
    """Return the columns of the run and of its jobs."""
    datasets = {task["name"]: task.get("id") or task["dataset"] for task in run_facts["tasks"]}
    constant = {name: run_facts[name] for name in ("constraint", "mode", "version")}
    constant["params"] = json.dumps(run_facts["params"]) if run_facts["params"] else ""
    constant["tag"] = run_facts.get("tag") or f"karat-{run_facts['karat']}"
    keys = {name: name for name in (*KARAT_COLUMNS, *usage, "task", "fold", "metric")}
    keys |= {"framework": "model", "utc": "utc", "seed": "seed", "models": "models"}
    keys["duration"] = "fit_seconds"
    sizes = [vector_size(record) for record in records]
    return {
        **{name: [value] * len(records) for name, value in constant.items()},
        **{name: [record.get(key) for record in records] for name, key in keys.items()},
        "id": [datasets.get(record["task"], "") for record in records],
        "notes": ["; ".join(record["notes"]) for record in records],
        "vector_precision": [precision for precision, _ in sizes],
        "vector_bytes": [size for _, size in sizes],
    }


def vector_size(record: Mapping[str, Any]) -> tuple[str | None, int | None]:
    """Return the precision and the bytes of a job's vectors; those of old records are 32 bits."""
    width, precision = record.get("dimensions"), record.get("precision") or "float32"
    return (precision, vector_bytes(width, precision)) if width else (None, None)


def _of_views(pairs: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> dict[str, Any]:
    """Return the columns of views: the primary score, the corruption and the status."""
    views = [view for _, view in pairs]
    sources: list[Mapping[str, Any]] = [record for record, _ in pairs]
    if any(view.get("info") for view in views):  # then each view has its own status
        failed = [any(job_view.get("info") for job_view in record["views"]) for record in sources]
        sources = [v if has_own else r for has_own, (r, v) in zip(failed, pairs, strict=True)]
    info = [source["info"] for source in sources]
    if any(view.get("reasons") for view in views):
        reasons = [list(view.get("reasons", {}).values()) for view in views]
        several = ([text, *more] for text, more in zip(info, reasons, strict=True))
        info = ["; ".join(filter(None, messages)) for messages in several]
    return {
        "result": [view["scores"].get(record["metric"]) for record, view in pairs],
        "corruption": [view["corruption"] for view in views],
        "severity": [view["severity"] for view in views],
        "draw": [view.get("draw", 0) for view in views],
        "affected": [view.get("affected") for view in views],
        "coverage": [view.get("coverage") for view in views],
        "status": [source["status"] for source in sources],
        "info": info,
    }
