"""The scores and jobs of some runs, or of a table, under unique names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from karat.errors import DataError, DefinitionError, did_you_mean, plainly
from karat.metrics.base import get_metric
from karat.results.layouts import FINAL, SCORES, by_fold
from karat.results.run import Run, open_runs

JOBS = (
    *("model", "task", "repeat", "fold", "status", "seconds", "memory", "coverage", "dimensions"),
    *("train", "test"),
)


@dataclass(frozen=True)
class Gathered:
    """Final scores on clean data, jobs, and facts about the tasks.

    ``metrics`` holds each task's primary metric, ``kinds`` and ``datasets`` its groups,
    ``higher_is_better`` the directions of metrics as recorded by runs, ``twins`` the number of test
    rows that also occur in training, and of all test rows.
    """

    models: list[str]
    scores: pd.DataFrame
    jobs: pd.DataFrame
    metrics: dict[str, str] = field(default_factory=dict)
    higher_is_better: dict[str, bool] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    datasets: dict[str, str] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    twins: dict[str, tuple[int, int]] = field(default_factory=dict)

    def chosen(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return each task's metric, with the wanted ones in place of the primary ones."""
        for task, metric in wanted.items():
            if task not in self.metrics:
                hint = did_you_mean(task, self.metrics)
                raise DataError(f'no run has a task "{task}".{hint}')
            there = set(self.scores.loc[self.scores["task"] == task, "metric"])
            if metric not in there:
                hint = did_you_mean(metric, there) or f" It has: {', '.join(sorted(there))}."
                raise DataError(f'no run has the metric "{metric}" on {task}.{hint}')
        return {**self.metrics, **wanted}

    def only(self, wanted: Mapping[str, str]) -> Gathered:
        """Return only these tasks, each with its metric; an empty one means the primary metric."""
        changed = {t: metric for t, metric in wanted.items() if metric or t not in self.metrics}
        chosen = self.chosen(changed)
        tables = {name: getattr(self, name) for name in ("scores", "jobs")}
        tables = {name: table[table["task"].isin(list(wanted))] for name, table in tables.items()}
        return replace(self, metrics={task: chosen[task] for task in wanted}, **tables)

    def higher(self, metric: str) -> bool:
        """Return whether higher is better, as recorded by a run, else as registered."""
        recorded = self.higher_is_better.get(metric)
        return get_metric(metric).higher_is_better if recorded is None else recorded


def gather(runs: Any) -> Gathered:
    """Return the scores of a table, runs, run folders or folders of runs.

    A ``Gathered`` is returned as it is.
    """
    if isinstance(runs, Gathered):
        return runs
    return _of_table(runs) if isinstance(runs, pd.DataFrame) else _of_runs(opened(runs))


def named_scores(runs: Any) -> tuple[pd.DataFrame, dict[str, str], dict[str, bool]]:
    """Return all scores with corrupted views, each task's primary metric, and known directions.

    A table without a column ``draw`` has one draw of each corruption.
    """
    if isinstance(runs, pd.DataFrame):
        given = _of_table(runs)
        table = runs.assign(draw=runs["draw"] if "draw" in runs else 0)
        corruption = table["corruption"].astype(object)
        return table.assign(corruption=corruption.where(corruption.notna(), "")), given.metrics, {}
    found = named_runs(runs)
    tables, given = [], _of_runs([run for run, _, _ in found])
    for run, name, label in found:
        table = run.scores()
        tables.append(table.assign(model=name, task=table["task"].map(label)))
    # columns of an empty table have no types and would change those of the others
    tables = [table for table in tables if len(table)] or tables
    return pd.concat(tables, ignore_index=True), given.metrics, given.higher_is_better


def named_runs(runs: Any) -> list[tuple[Run, str, dict[str, str]]]:
    """Return runs, each with the unique names of its model and its tasks."""
    found = opened(runs)
    return list(zip(found, _model_names(found), _task_labels(found), strict=True))


def choose_metric(metric: str, tasks: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return this metric for the tasks that have it; ``known`` are all metrics there are."""
    chosen = dict.fromkeys(tasks, metric)
    if not chosen:
        names = sorted(set(known))
        hint = did_you_mean(metric, names) or f" There are: {', '.join(names)}."
        raise DefinitionError(f'no task has the metric "{metric}".{hint}')
    return chosen


def _of_table(table: pd.DataFrame) -> Gathered:
    missing = [name for name in SCORES if name not in (*table.columns, "draw")]
    if missing:
        raise DataError(f"missing columns in the table of scores: {', '.join(missing)}.")
    final = _final(table)
    for name in ("task", "model", "metric"):
        if final[name].isna().any():
            raise DataError(
                f"the table of scores has a row without a {name}; if that is named NA, read the "
                f"file with pandas.read_csv(…, keep_default_na=False)."
            )
    firsts = final.drop_duplicates("task").set_index("task")
    if not len(firsts):
        raise DataError("the table has no final score on clean data (epoch -1, no corruption).")
    # a table may have columns for kinds and datasets
    groups = {name: firsts[name].to_dict() for name in ("kind", "dataset") if name in firsts}
    return Gathered(
        list(pd.unique(final["model"])),
        final,
        pd.DataFrame(columns=list(JOBS)),
        metrics=firsts["metric"].to_dict(),
        kinds=groups.get("kind", {}),
        datasets=groups.get("dataset", {}),
    )


def opened(runs: Any) -> list[Run]:
    """Return runs, run folders and folders of runs as runs, without duplicates."""
    several = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    found = [r for run in several for r in ([run] if isinstance(run, Run) else open_runs([run]))]
    if not found:
        raise DataError("there is no run; at least one is needed.")
    return list({run.folder.resolve(): run for run in found}.values())


def _of_runs(runs: list[Run]) -> Gathered:
    names = _model_names(runs)
    labels = _task_labels(runs)
    scores, jobs = [], []
    facts: dict[str, dict[str, Any]] = {"metrics": {}, "higher_is_better": {}}
    facts |= {"kinds": {}, "datasets": {}, "twins": {}}
    for run, name, label in zip(runs, names, labels, strict=True):
        table = run.scores()
        scores.append(_final(table.assign(model=name, task=table["task"].map(label))))
        jobs += list(_jobs(run, name, label))
        for task in run.about["tasks"]:
            called = label[task["name"]]
            facts["higher_is_better"].update(task.get("higher_is_better", {}))
            facts["kinds"].setdefault(called, task.get("kind", ""))
            facts["datasets"].setdefault(called, task.get("dataset", ""))
            twins, tested = task.get("twins", (0, 0))
            if twins:
                facts["twins"].setdefault(called, (twins, tested))
            if task["metrics"][0] != "?":
                facts["metrics"].setdefault(called, task["metrics"][0])
    seeds = sorted({run.about["seed"] for run in runs if "seed" in run.about})
    table = pd.concat(scores, ignore_index=True)
    return Gathered(names, table, pd.DataFrame(jobs, columns=list(JOBS)), seeds=seeds, **facts)


def _jobs(run: Run, name: str, label: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    data = {task["name"]: task.get("fingerprint") for task in run.about["tasks"]}
    embedded = set()
    for record in by_fold(run.about, run.records()):
        status = plainly(record["status"])
        job = (name, label[record["task"]], record["repeat"], record["fold"], status)
        seconds = record.get("seconds")
        if record.get("embed_seconds") and data.get(record["task"]) not in embedded:
            # vectors are computed once per dataset and shared by its jobs
            embedded.add(data.get(record["task"]))
            seconds = (seconds or 0.0) + record["embed_seconds"]
        views = record["views"]
        coverage = views[0].get("coverage") if views else record.get("coverage")
        rows = record.get("train_questions"), record.get("questions")
        costs = (seconds, record.get("peak_memory_mb"), coverage, record.get("dimensions"))
        yield *job, *costs, *(rows if all(rows) else (None, None))


def _final(scores: pd.DataFrame) -> pd.DataFrame:
    clean = scores["corruption"].isin(["", None]) | scores["corruption"].isna()
    return scores[clean & (scores["epoch"] == FINAL)]


def _task_labels(runs: list[Run]) -> list[dict[str, str]]:
    """Return the unique names of each run's tasks; data of one name may differ."""
    seen: dict[str, dict[str, str]] = {}
    labels = []
    for run in runs:
        own = {record["task"]: record["task"] for record in run.records()}
        for task in run.about["tasks"]:
            name, data = task["name"], task.get("fingerprint", "")
            known = seen.setdefault(name, {})
            new = name if not known else f"{name} [{data[:6]}]"
            own[name] = known.setdefault(data, new) if data else name
        labels.append(own)
    return labels


def _model_names(runs: list[Run]) -> list[str]:
    # several runs of one model are named after their time stamps
    models = [run.model for run in runs]
    return [
        f"{model} ({run.folder.name.rpartition('.')[2]})" if models.count(model) > 1 else model
        for run, model in zip(runs, models, strict=True)
    ]
