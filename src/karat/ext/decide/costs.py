"""What models cost on tasks: the price, the time, the size of a vector, or a cost as stated."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from karat.core.embeddings import vector_bytes
from karat.errors import DefinitionError, did_you_mean
from karat.results.load import OK, Gathered, columns_of
from karat.results.selection import unknown_model


@dataclass(frozen=True)
class Cost:
    """A kind of cost: what it is, what a lower one is called, how jobs and tasks are combined.

    ``of_job`` returns the cost of a job from the ``keys`` of its record.
    """

    about: str
    less: str
    add: Callable[[list[float]], float]
    of_job: Callable[[Mapping[str, Any]], float | None] = lambda job: None
    keys: tuple[str, ...] = ()


#: costs that the user states
STATED = Cost("as given", "cheaper", max)


def _job_seconds(job: Mapping[str, Any]) -> float | None:
    """Return the time to encode and predict one item; vectors are computed once per dataset."""
    if not job["questions"] or job["predict_seconds"] is None:
        return None
    predicting = job["predict_seconds"] / job["questions"] / max(len(job["views"] or ()), 1)
    embedded = job["questions"] + (job["train_questions"] or 0)
    return float(predicting + (job["embed_seconds"] or 0.0) / embedded)


def _job_bytes(job: Mapping[str, Any]) -> int | None:
    """Return the size of a stored vector, from its dimensions and precision if not recorded.

    >>> _job_bytes({"dimensions": 100, "precision": "binary"})
    13
    """
    if job.get("vector_bytes") is not None or not job.get("dimensions"):
        return job.get("vector_bytes")
    return vector_bytes(job["dimensions"], job.get("precision") or "float32")


COSTS = {
    "price": Cost("what the endpoint charged for the compared tasks", "cheaper", math.fsum),
    "seconds": Cost(
        "time to encode and predict one item, mean over tasks",
        "faster",
        np.mean,
        _job_seconds,
        ("predict_seconds", "embed_seconds", "questions", "train_questions", "views"),
    ),
    "bytes": Cost(
        "size of a vector, the largest over tasks",
        "smaller",
        max,
        _job_bytes,
        ("vector_bytes", "dimensions", "precision"),
    ),
    "dimensions": Cost(
        "dimensions of a vector, the largest over tasks",
        "smaller",
        max,
        lambda job: job["dimensions"],
        ("dimensions",),
    ),
}


class ModelCosts:
    """The costs of models on tasks; ``kind`` is one of COSTS, or STATED."""

    def __init__(self, scores: Gathered, cost: str | Mapping[str, float]) -> None:
        self.fixed: dict[str, float] | None = None
        if isinstance(cost, str):
            self.name, self.kind = cost, _checked_cost(cost)
            self.by_task = _price_by_task(scores) if cost == "price" else _by_task(scores, cost)
        else:
            self.name, self.kind, self.by_task = "cost", STATED, {}
            self.fixed = _stated_costs(cost, scores.models)

    def of(self, model: str, tasks: Iterable[str] | None = None) -> float:
        """Return the cost of a model on some of its tasks, NaN if it is not recorded."""
        if self.fixed is not None:
            return self.fixed.get(model, math.nan)
        by_task = self.by_task.get(model, {})
        chosen = by_task if tasks is None else tasks
        values = [by_task[task] for task in chosen if task in by_task]
        return float(self.kind.add(values)) if values else math.nan


def _checked_cost(cost: str) -> Cost:
    if cost not in COSTS:
        hint = did_you_mean(cost, COSTS)
        raise DefinitionError(f'cost must be one of {", ".join(COSTS)}, got "{cost}".{hint}')
    return COSTS[cost]


def _stated_costs(costs: Mapping[str, float], models: Sequence[str]) -> dict[str, float]:
    for name, value in costs.items():
        if name not in models:
            raise DefinitionError(f"cost: {unknown_model(name, models, 'the runs have')}")
        if not (math.isfinite(value) and value >= 0):
            raise DefinitionError(f'the cost of "{name}" must be a number >= 0, got {value!r}.')
    return {name: float(value) for name, value in costs.items()}


def _price_by_task(scores: Gathered) -> dict[str, dict[str, float]]:
    """Return what the jobs of models were charged; vectors count once per dataset."""
    jobs = scores.jobs[scores.jobs["price"].notna()].astype({"price": float})
    sums = jobs.groupby(["model", "task"], sort=False)["price"].sum()
    prices: dict[str, dict[str, float]] = {}
    for (model, task), value in sums.items():
        prices.setdefault(str(model), {})[str(task)] = float(value)
    return prices


def _by_task(scores: Gathered, cost: str) -> dict[str, dict[str, float]]:
    """Return the cost of each model on each task, from its finished jobs.

    That of a fold with several replicates is their mean.
    """
    kind = COSTS[cost]
    values: dict[str, dict[str, dict[Any, list[float]]]] = {}
    for number, (run, model, labels) in enumerate(scores.sources):
        table = columns_of(run)
        columns = {key: table.column(key) for key in ("task", "fold", "status", *kind.keys)}
        rows = zip(*columns.values(), strict=True)
        for job in (dict(zip(columns, row, strict=True)) for row in rows):
            task = labels.get(job["task"], job["task"])
            if job["status"] != OK or (number, task, job["fold"]) in scores.superseded:
                continue
            value = kind.of_job(job)
            if value is not None:
                fits = values.setdefault(model, {}).setdefault(task, {})
                fits.setdefault((run.about.get("seed"), job["fold"]), []).append(float(value))
    return {
        model: {
            task: float(kind.add([sum(fits) / len(fits) for fits in folds.values()]))
            for task, folds in by_task.items()
        }
        for model, by_task in values.items()
    }
