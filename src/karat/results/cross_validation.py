"""Scores of scikit-learn: the dictionaries of ``cross_validate`` and of ``cv_results_``."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError
from karat.results.tables import FINAL_EPOCH

#: name of the task if the scores are not given by task, and of a model without a name
TASK, MODEL = "cross_validate", "model"
#: Karat's names of scorers; scores of the second are negative in scikit-learn
OURS = {"accuracy": "acc", "balanced_accuracy": "balacc", "roc_auc": "auc", "r2": "r2"}
OURS |= {"average_precision": "pr_auc"}
OURS |= {name: name for name in ("f1_macro", "f1_micro", "f1_weighted")}
LOSSES = {
    "neg_log_loss": "logloss",
    "neg_root_mean_squared_error": "rmse",
    "neg_mean_squared_error": "mse",
    "neg_mean_absolute_error": "mae",
}
SPLIT = re.compile(r"split(\d+)_test_(.+)", re.DOTALL)


def score_tables(found: Mapping[Any, Any]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the table of scores, and a table with the seconds and sizes of each fold.

    Parameters
    ----------
    found
        What ``cross_validate`` returned, or ``cv_results_``; or a mapping from names of models to
        those, or to mappings from names of tasks to those. Each candidate of ``cv_results_`` is a
        model. As in scikit-learn, higher is better; a metric that Karat has, such as
        ``neg_log_loss``, gets Karat's name and sign.

    >>> score_tables({"tree": {"test_score": [0.5, 0.75]}})[0][["model", "fold", "value"]].values.tolist()
    [['tree', 0, 0.5], ['tree', 1, 0.75]]
    """
    scores: list[dict[str, Any]] = []
    jobs: list[dict[str, Any]] = []
    for model, task, folds in _by_model(found):
        for fold in range(len(folds)):
            job = {"task": task, "model": model, "repeat": 0, "fold": fold}
            row, about = folds[fold]
            final = {"corruption": "", "severity": 0.0, "draw": 0, "epoch": FINAL_EPOCH}
            for name, value in row.items():
                metric = {"metric": LOSSES.get(name, OURS.get(name, name))}
                value = -value if name in LOSSES else value
                better = {"value": float(value), "higher_is_better": name not in LOSSES}
                scores.append({**job, **final, **metric, **better})
            lost = all(np.isnan(value) for value in row.values())
            jobs.append({**job, "status": "failed" if lost else "ok", **about})
    return pd.DataFrame(scores), pd.DataFrame(jobs)


Folds = Sequence[tuple[dict[str, float], dict[str, float]]]


def _by_model(found: Mapping[Any, Any]) -> Iterator[tuple[str, str, Folds]]:
    """Yield model, task and folds of each model."""
    if _is_result(found):
        yield from ((model, TASK, folds) for model, folds in _models(found, ""))
        return
    if not found:
        raise DataError("there are no scores: the mapping is empty.")
    for name, inner in found.items():
        if _is_result(inner):
            yield from ((model, TASK, folds) for model, folds in _models(inner, str(name)))
            continue
        tasks = inner.items() if isinstance(inner, Mapping) else ()
        if not tasks or not all(_is_result(each) for _, each in tasks):
            raise DataError(
                f'the scores of "{name}" are not a dictionary of cross_validate or cv_results_: '
                f"expected a key test_score, test_METRIC or split0_test_METRIC, got {_keys(inner)}."
            )
        for task, each in tasks:
            yield from ((model, str(task), folds) for model, folds in _models(each, str(name)))


def _keys(inner: Any) -> str:
    if not isinstance(inner, Mapping):
        return type(inner).__name__
    return "the keys " + (", ".join(map(str, list(inner)[:6])) or "of an empty mapping")


def _is_result(found: Any) -> bool:
    names = [name for name in found if isinstance(name, str)] if isinstance(found, Mapping) else []
    return any(
        SPLIT.match(name) or (name.startswith("test_") and not isinstance(found[name], Mapping))
        for name in names
    )


def _models(found: Mapping[str, Any], name: str) -> Iterator[tuple[str, Folds]]:
    """Yield the model of ``cross_validate``, or each candidate of ``cv_results_``."""
    if "params" not in found:
        yield name or MODEL, _folds(found, name)
        return
    columns: dict[tuple[int, str], np.ndarray] = {}
    for key, values in found.items():
        if split := SPLIT.match(key):
            columns[int(split[1]), split[2]] = _array(values, key)
    count = 1 + max(fold for fold, _ in columns)
    names = list(dict.fromkeys(metric for _, metric in columns))
    for place, params in enumerate(found["params"]):
        shown = ", ".join(f"{key}={value}" for key, value in params.items())
        about = _seconds(found, "mean_fit_time", "mean_score_time", place)
        rows = [{each: columns[fold, each][place] for each in names} for fold in range(count)]
        yield " ".join(filter(None, [name, shown])) or MODEL, [(row, about) for row in rows]


def _folds(found: Mapping[str, Any], name: str) -> Folds:
    """Return the scores of each fold, with its seconds and numbers of rows."""
    scores = {k.removeprefix("test_"): _array(found[k], k) for k in found if k.startswith("test_")}
    sizes = {len(values) for values in scores.values()}
    if len(sizes) > 1:
        raise DataError(f'the scores of "{name or MODEL}" have different numbers of folds: {sizes}.')
    indices = found.get("indices") or {}
    folds = []
    for fold in range(sizes.pop()):
        about = _seconds(found, "fit_time", "score_time", fold)
        if {"train", "test"} <= set(indices):
            about |= {side: float(len(indices[side][fold])) for side in ("train", "test")}
        folds.append(({metric: values[fold] for metric, values in scores.items()}, about))
    return folds


def _array(values: Any, name: str) -> np.ndarray:
    try:
        found = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise DataError(f"{name} must be numbers, got {values!r:.60}.") from None
    if found.ndim != 1 or not len(found):
        raise DataError(f"{name} must be a list of one number per fold, got shape {found.shape}.")
    return found


def _seconds(found: Mapping[str, Any], fit: str, score: str, place: int) -> dict[str, float]:
    if fit not in found or score not in found:
        return {}
    return {"seconds": float(found[fit][place]) + float(found[score][place])}
