"""Run folders and tables of scores written by hand, so that every number in them is known."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.results.run import Run

STAMP = "20260101T000000"
HIGHER = {"acc": True, "rmse": False, "logloss": False, "own": True, "distance": False}


def score_table(scores: Mapping[str, Any], metric: str = "acc", **columns: Any) -> pd.DataFrame:
    """Return a table of ``{task: {model: score}}``; several scores are those of folds, None is NaN.

    A task may have its own metric, ``{task: (metric, {model: score})}``. A column that is a mapping
    has a value by task.
    """
    rows = []
    for task, given in scores.items():
        name, models = given if isinstance(given, tuple) else (metric, given)
        for model, values in models.items():
            folds = enumerate(np.atleast_1d(np.array(values, dtype=float)))
            rows += [(task, model, fold, name, value) for fold, value in folds]
    table = pd.DataFrame(rows, columns=["task", "model", "fold", "metric", "value"])
    table = table.assign(repeat=0, corruption="", severity=0.0, draw=0, epoch=-1)
    mapped = {n: table["task"].map(v) if isinstance(v, dict) else v for n, v in columns.items()}
    return table.assign(**mapped)


def make_view(corruption: str = "", severity: float = 0.0, draw: int = 0, **scores: Any) -> dict:
    """Return the scores of a job on clean or corrupted data."""
    facts = {"coverage": scores.pop("coverage", 1.0), "status": "ok", "info": ""}
    view = {"corruption": corruption, "severity": severity, "draw": draw}
    return {**view, **facts, "scores": scores}


def write_run(
    output: Path,
    model: str,
    scores: Mapping[str, Any],
    *,
    task: Mapping[str, Any] | None = None,
    tasks: Mapping[str, Mapping[str, Any]] | None = None,
    record: Mapping[str, Any] | None = None,
    files: Mapping[tuple[str, int], Mapping[str, str]] | None = None,
    **about: Any,
) -> Run:
    """Write a run of ``{task: [score of each fold]}`` or ``{task: {fold: score}}``.

    A score is a number in the task's first metric, numbers by metric, a list of views, or None for
    a failure. A text is the status "declined", or the reason of a failure; instead of folds, it is
    that of the whole task. Tasks called rmse… are measured in rmse, others in acc. ``task`` are
    facts of all tasks, ``tasks`` of single ones, ``record`` of all jobs; ``files`` are those of a
    job, by task and fold.
    """
    facts = {}
    for name in [*scores, *(tasks or {})]:
        folds = [] if isinstance(scores.get(name, ""), str) else list(range(len(scores[name])))
        facts[name] = {"name": name, "kind": "classification", "dataset": f"{name}-data"}
        facts[name] |= {"metrics": ["rmse" if name.startswith("rmse") else "acc"], "folds": folds}
        facts[name] |= {"higher_is_better": HIGHER, "fingerprint": "abcdef12", **(task or {})}
        facts[name] |= (tasks or {}).get(name, {})
    run = {"model": model, "suite": "s", "constraint": "c", "mode": "m", "stamp": STAMP}
    run |= {"seed": 42, "karat": "0.1.0", "version": "1.0", "params": {}}
    made = Run.create(output, {**run, "tasks": list(facts.values()), **about})
    for name, given in scores.items():
        folds = {None: given} if isinstance(given, str) else given
        for fold, value in folds.items() if isinstance(folds, Mapping) else enumerate(folds):
            job = make_record(model, facts[name], fold, value)
            job["spec"] = f"{model}-{about.get('seed')}-{about.get('params')}-{name}-{fold}"
            made.write({**job, **(record or {})}, (files or {}).get((name, fold), {}))
    made.finish()
    return made


def make_record(model: str, task: Mapping[str, Any], fold: int | None, score: Any) -> dict:
    """Return the record of a job; scores as in ``write_run``."""
    metric = task["metrics"][0]
    record = {"model": model, "task": task["name"], "fold": fold, "repeat": 0, "seed": 1}
    record |= {"spec": "", "metric": metric, "status": "ok", "info": "", "views": [], "notes": []}
    record |= {"history": [], "utc": f"2026-01-02T03:04:0{fold or 0}"}
    record |= {"train_questions": 80, "questions": 20}
    if score == "declined":
        return {**record, "status": "declined", "repeat": None if fold is None else 0}
    if score is None or isinstance(score, str):
        return {**record, "status": "failed", "info": score or ""}
    if not isinstance(score, list):
        score = [make_view(**(score if isinstance(score, Mapping) else {metric: score}))]
    return {**record, "views": score}
