"""Summary of Ulysses SentEval tasks: per task, per group of tasks, and over all tasks."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from karat.metrics.base import get_metric
from karat.replay import MASTER
from karat.results.files import safe_name
from karat.results.gather import named_runs, named_scores
from karat.results.intervals import (
    Bounds,
    Resampling,
    corrected,
    describe,
    pooled_bootstrap,
    pooled_corrected,
    spread,
)
from karat.results.layouts import FINAL
from karat.results.run import Run
from karat.results.senteval import (
    ASKED,
    FOLD,
    TESTS,
    Aggregates,
    aggregate,
    clean,
    frame,
    metric_seeds,
    numbered,
    short_names,
)

#: the metrics of a task
REPORTED = (ASKED, "mcc", "f1_macro", "acc", "logloss")
#: the group of all tasks
ALL = "all"


def summary(runs: Any, *, confidence: float = 0.99, resamples: int = 10_000) -> pd.DataFrame:
    """Return a row per model, task and metric, and rows for the means of groups and of all tasks.

    ``ci`` is the interval of Ulysses SentEval, ``nb`` the one of Nadeau and Bengio, which accounts
    for folds that share rows; both are clipped to the metric's range. Groups are the kinds of
    tasks without ``ulysses-``, or the first letters of task names in a plain table. Rows of groups
    have the mean of ``above_chance``, its standard deviation over the tasks, and intervals for the
    variation over folds.
    """
    how = Resampling(confidence, resamples)
    rows = [
        {"model": model.name, **row}
        for model in _models(runs)
        for row in (*_of_tasks(model, how), *_of_groups(model, how))
    ]
    return pd.DataFrame(rows)


def senteval_tables(runs: Any) -> Iterator[tuple[str, pd.DataFrame | str]]:
    """Yield the files of Ulysses SentEval (one folder per model if several) and a summary."""
    models = list(_models(runs))
    for model in models:
        folder = f"{safe_name(model.name)}/" if len(models) > 1 else ""
        table = frame(model.scores)
        yield f"{folder}results_nonagg.csv", table
        yield f"{folder}results_agg.json", _json(aggregate(table))
    yield "summary.csv", summary(runs)


def _json(aggregates: Aggregates) -> str:
    def plain(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return [plain(each) for each in value.tolist()]
        return value if math.isfinite(value) else None

    named = {task: {k: plain(v) for k, v in own.items()} for task, own in aggregates.items()}
    return json.dumps(named, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True)
class _Model:
    """The scores of a model, and by task its group and the mode of its head."""

    name: str
    scores: pd.DataFrame
    kinds: dict[str, str] = field(default_factory=dict)
    modes: dict[str, str] = field(default_factory=dict)

    def tables(self) -> Iterator[tuple[dict[str, str], pd.DataFrame]]:
        """Yield name, group and mode of each task, and its scores, a row per fold."""
        scores = clean(self.scores)
        names = short_names(scores)
        final = numbered(scores[(scores["epoch"] == FINAL) & scores["metric"].isin(REPORTED)])
        for task, name in names.items():
            part = final[final["task"] == task]
            table = part.pivot(index=FOLD, columns="metric", values="value").sort_index()
            group = self.kinds.get(task, "").removeprefix("ulysses-") or name[:1]
            labels = {"task": name, "group": group, "mode": self.modes.get(task, "")}
            yield labels, table[[metric for metric in REPORTED if metric in table]]


def _models(runs: Any) -> Iterator[_Model]:
    """Yield the models of runs, or of a tidy table, with a task scored above chance."""
    models = list(_of_table(runs) if isinstance(runs, pd.DataFrame) else _of_runs(runs))
    scored = [model for model in models if (model.scores["metric"] == ASKED).any()]
    if not scored:
        short_names(models[0].scores)  # raises
    yield from scored


def _of_table(scores: pd.DataFrame) -> Iterator[_Model]:
    for name, part in named_scores(scores)[0].groupby("model", sort=False):
        yield _Model(str(name), part)


def _of_runs(runs: Any) -> Iterator[_Model]:
    for run, name, label in named_runs(runs):
        scores = run.scores()
        scores = scores.assign(model=name, task=scores["task"].map(label))
        kinds = {label[task["name"]]: task["kind"] for task in run.about["tasks"]}
        modes = {label[task]: mode for task, mode in _modes(run)}
        yield _Model(name, scores, kinds, modes)


def _modes(run: Run) -> Iterator[tuple[str, str]]:
    for record in run.records():
        matches = [re.match(r"mode (\w+)", note) for note in record["notes"]]
        yield from ((record["task"], match[1]) for match in matches if match)


def _of_tasks(model: _Model, how: Resampling) -> Iterator[dict[str, Any]]:
    for labels, table in model.tables():
        repetitions, partitions = (table.index.get_level_values(name).max() for name in FOLD)
        seeds = metric_seeds(repetitions)
        for metric in table.columns:
            values = table[[metric]].dropna().to_numpy()
            if not len(values):
                continue
            # metrics that the original lacks use the seed of its metric
            seed, limits = seeds[TESTS.get(metric, TESTS[ASKED])], get_metric(metric).range
            made = describe(values, seed, how, limits)
            pair = corrected(values, partitions, how.confidence)
            yield _row({**labels, "metric": metric}, made, how.named("nb", _clipped(pair, limits)))


def _of_groups(model: _Model, how: Resampling) -> Iterator[dict[str, Any]]:
    """Yield the unweighted means over the tasks of each group and over all tasks."""
    members: dict[str, list[tuple[str, np.ndarray, int, str]]] = {}
    for labels, table in model.tables():
        values = table[[ASKED]].dropna().to_numpy()
        parts = int(table.index.get_level_values(FOLD[1]).max())
        for group in (labels["group"], ALL) if len(values) else ():
            members.setdefault(group, []).append((labels["task"], values, parts, labels["mode"]))
    for group in sorted(members, key=lambda name: (name == ALL, name)):
        tasks, tables, parts_of, modes = zip(*members[group], strict=True)
        named = dict(zip(tasks, tables, strict=True))
        pair = pooled_corrected(tables, parts_of, how.confidence)
        means = np.array([values.mean(axis=0) for values in tables])
        drawn = pooled_bootstrap(named, MASTER, how.confidence, how.times)
        made = {"avg": means.mean(axis=0), "std": spread(means), **how.named("ci", drawn)}
        count = f"{len(tasks)} task{'s' if len(tasks) > 1 else ''}"
        labels = {"task": count, "group": group, "metric": ASKED}
        labels["mode"] = modes[0] if len(set(modes)) == 1 else ""
        yield _row(labels, made, how.named("nb", _clipped(pair, get_metric(ASKED).range)))


def _row(
    labels: dict[str, str], made: dict[str, np.ndarray], corrected: dict[str, np.ndarray]
) -> dict[str, Any]:
    values = {"mean": made["avg"], "std": made["std"]}
    values |= {name: value for name, value in made.items() if name not in ("avg", "std")}
    numbers = {name: float(value[0]) for name, value in (values | corrected).items()}
    first = {name: labels[name] for name in ("task", "group", "metric")}
    return {**first, **numbers, "mode": labels["mode"]}


def _clipped(pair: Bounds, limits: tuple[float, float]) -> Bounds:
    return np.clip(pair[0], *limits), np.clip(pair[1], *limits)
