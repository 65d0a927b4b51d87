"""Scores and jobs of runs, read from run folders or from a table of scores.

``gather_scores`` gives runs and tasks unique names, ``make_cells`` arranges scores by model, task
and fold, ``learning_curves`` has the scores per epoch, ``status`` and ``estimate`` count jobs.
"""

from __future__ import annotations

import contextlib
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from karat.core.metric_names import recorded_metric
from karat.core.registry import result_folders
from karat.core.replicates import replicate_name, replicate_of
from karat.errors import (
    FAILURES,
    DataError,
    DefinitionError,
    KaratError,
    did_you_mean,
    simplified_status,
)
from karat.metrics.metric import get_metric
from karat.results.compact import (
    Compact,
    Listed,
    make_compact,
    read_compact,
    stamp_records,
    write_compact,
)
from karat.results.pooling import PooledRun, check_pool, count_jobs, name_runs, pool_runs
from karat.results.run import Run, about_stamp, newest_first, open_runs
from karat.results.run_folders import find_run_folders
from karat.results.tables import (
    ELIMINATED,
    FINAL_EPOCH,
    SCORE_COLUMNS,
    expand_folds,
    scores_table,
    vector_size,
)

#: runs, run folders, or folders of runs
Runs = Run | str | Path | Iterable[Run | str | Path]
JOBS = (
    "model",
    "task",
    "repeat",
    "fold",
    "status",
    "seconds",
    "memory",
    "coverage",
    "dimensions",
    "precision",
    "vector_bytes",
    "train",
    "test",
    "tokens",
    "price",
)
#: a table of more rows is filtered before it is joined to those of other runs, to save memory
MANY_ROWS = 50_000
#: number of names in a message
MOST_NAMED = 6
#: runs whose records have this many numbers in all are read at once
MANY_NUMBERS = 1_000_000
_SCORE_KEYS = (*SCORE_COLUMNS[:4], "history", "views")
#: facts about tasks and models that are collected from all runs
_FACTS = (
    "metrics",
    "higher_is_better",
    "positive",
    "kinds",
    "datasets",
    "languages",
    "modalities",
    "duplicate_rows",
    "lacking",
    "prompts",
)
#: columns of jobs, and the keys of records that they hold
_JOB_KEYS = {
    **{name: name for name in ("task", "repeat", "fold", "status", "seconds", "dimensions")},
    **{"memory": "peak_memory_mb", "train": "train_questions", "test": "questions"},
    **{name: name for name in ("precision", "vector_bytes", "tokens", "price")},
}
#: states of a model on a task; only the first has a score
OK, FAILED, DECLINED, NOT_RUN, _ = STATES = ("ok", "failed", "declined", "not run", ELIMINATED)
#: signs of cells without a score
SIGNS = {DECLINED: "–", FAILED: "failed", NOT_RUN: "…", ELIMINATED: "out"}
KEYS = ["task", "model", "metric", "epoch"]
COLUMNS = (
    "run",
    "model",
    "planned",
    "ok",
    *FAILURES,
    "declined",
    "eliminated",
    "running",
    "left",
    "state",
    "seconds_per_job",
    "last",
)
#: how the reason begins that a model has vectors for none of the items of a task
NO_VECTOR = ("no vector for any", "no question of")


@dataclass(frozen=True)
class Gathered:
    """Final scores on clean data, jobs, and facts about the tasks.

    ``metrics`` holds each task's primary metric, ``kinds``, ``datasets`` and ``languages`` its
    groups, ``higher_is_better`` the directions of metrics as recorded by runs, ``duplicate_rows``
    the number of test rows that also occur in training, and of all test rows, ``positive`` the
    positive classes, ``modalities`` what the items are ("table", "text" or "entity"),
    ``prompts`` the prompts of models by role.
    ``lacking`` holds, by what lacks ("library" or "data") and the message, the models and tasks
    that could not run. ``planned`` is the number of folds planned by model and task. ``repeated``
    are jobs of which a newer one counts: ``run`` is the place of their run. ``by_seed`` holds the
    mean score of models with several seeds, by model, task, metric and seed. ``sources`` are the
    runs with the names of their models and tasks, as ``named_runs`` returns them, ``pool`` is how
    they were pooled, ``cluster`` the column of items that belong together, ``apart`` the tasks in
    which not all models have the same seeds, ``exits`` how models left a race, of which all their
    runs are part.
    """

    models: list[str]
    scores: pd.DataFrame
    jobs: pd.DataFrame
    metrics: dict[str, str] = field(default_factory=dict)
    higher_is_better: dict[str, bool] = field(default_factory=dict)
    kinds: dict[str, str] = field(default_factory=dict)
    datasets: dict[str, str] = field(default_factory=dict)
    languages: dict[str, str] = field(default_factory=dict)
    seeds: list[int] = field(default_factory=list)
    duplicate_rows: dict[str, tuple[int, int]] = field(default_factory=dict)
    lacking: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)
    positive: dict[str, str] = field(default_factory=dict)
    modalities: dict[str, str] = field(default_factory=dict)
    prompts: dict[str, dict[str, str]] = field(default_factory=dict)
    planned: dict[tuple[str, str], int] = field(default_factory=dict)
    repeated: pd.DataFrame = field(default_factory=pd.DataFrame)
    by_seed: pd.DataFrame = field(default_factory=pd.DataFrame)
    sources: list[tuple[Run, str, dict[str, str]]] = field(default_factory=list)
    pool: str = "variant"
    cluster: str = ""
    apart: frozenset[str] = frozenset()
    exits: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def superseded(self) -> set[tuple[int, str, int | None]]:
        """The place of the run, task and fold of each job of which a newer one counts."""
        old = self.repeated
        return set(zip(old["run"], old["task"], old["fold"], strict=True)) if len(old) else set()

    def chosen(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """Return each task's metric, with the wanted ones in place of the primary ones."""
        chosen = dict(self.metrics)
        for task, name in wanted.items():
            if task not in self.metrics:
                hint = did_you_mean(task, self.metrics)
                raise DataError(f'no run has a task "{task}".{hint}')
            there = set(self.scores.loc[self.scores["task"] == task, "metric"])
            metric = chosen[task] = recorded_metric(name, there)
            if metric not in there:
                hint = _how_to_add(metric) or did_you_mean(metric, there)
                hint = hint or f" It has: {', '.join(sorted(there))}."
                raise DataError(f'no run has the metric "{metric}" on {task}.{hint}')
        return chosen

    def only(self, wanted: Mapping[str, str]) -> Gathered:
        """Return only these tasks, each with its metric; an empty one means the primary metric."""
        changed = {t: metric for t, metric in wanted.items() if metric or t not in self.metrics}
        chosen = self.chosen(changed)
        tables = {name: getattr(self, name) for name in ("scores", "jobs")}
        tables = {name: table[table["task"].isin(list(wanted))] for name, table in tables.items()}
        return replace(self, metrics={task: chosen[task] for task in wanted}, **tables)

    def of_tasks(self, tasks: Iterable[str]) -> Gathered:
        """Return the scores, jobs and missing libraries of these tasks."""
        names = set(tasks)
        lacking = {
            why: [pair for pair in pairs if pair[1] in names] for why, pairs in self.lacking.items()
        }
        return replace(
            self,
            scores=self.scores[self.scores["task"].isin(names)],
            jobs=self.jobs[self.jobs["task"].isin(names)],
            lacking={why: pairs for why, pairs in lacking.items() if pairs},
        )

    def of_models(self, models: Iterable[str]) -> Gathered:
        """Return the scores and jobs of these models."""
        names = list(models)
        return replace(
            self,
            models=[name for name in self.models if name in names],
            scores=self.scores[self.scores["model"].isin(names)],
            jobs=self.jobs[self.jobs["model"].isin(names)],
        )

    def higher(self, metric: str) -> bool:
        """Return whether higher is better, as recorded by a run, else as registered."""
        recorded = self.higher_is_better.get(metric)
        return get_metric(metric).higher_is_better if recorded is None else recorded


def gather_scores(runs: Runs | pd.DataFrame, pool: str = "variant") -> Gathered:
    """Return the scores of a table, runs, run folders, folders of runs, or scikit-learn.

    ``pool`` is one of POOLS: which runs are one model. A ``Gathered`` is returned as it is. A
    mapping has dictionaries of ``cross_validate`` or ``cv_results_``; see ``score_tables``.
    """
    check_pool(pool)
    if isinstance(runs, Gathered):
        return runs
    if isinstance(runs, pd.DataFrame):
        return _of_table(runs)
    if isinstance(runs, Mapping):
        from karat.results.importing import score_tables

        table, jobs = score_tables(runs)
        return replace(_of_table(table), jobs=jobs.reindex(columns=list(JOBS)))
    return _gathered(as_runs(runs), pool)[0]


def _gathered(runs: list[Run], pool: str, final: bool = True) -> tuple[Gathered, pd.DataFrame]:
    """Return what ``_of_runs`` does; runs that do not change are gathered once."""
    opened = [FrozenRun.of(run) if type(run) is Run else run for run in runs]
    if not all(isinstance(run, FrozenRun) for run in opened):
        return _of_runs(opened, pool, final)
    # all parts of a report use the same scores
    cached = opened[0].__dict__.setdefault("_gathered", {})
    key = (pool, final, *opened)
    if key not in cached:
        cached[key] = _of_runs(opened, pool, final)
    return cast(tuple[Gathered, pd.DataFrame], cached[key])


def named_scores(
    runs: Runs | pd.DataFrame, pool: str = "variant"
) -> tuple[pd.DataFrame, dict[str, str], dict[str, bool]]:
    """Return all scores with corrupted views, each task's primary metric, and known directions.

    A table without a column ``draw`` has one draw of each corruption.
    """
    if isinstance(runs, pd.DataFrame):
        gathered = _of_table(runs)
        table = runs.assign(draw=runs["draw"] if "draw" in runs else 0)
        corruption = table["corruption"].astype(object)
        return (
            table.assign(corruption=corruption.where(corruption.notna(), "")),
            gathered.metrics,
            {},
        )
    gathered, table = _gathered(as_runs(runs), check_pool(pool), final=False)
    return table, gathered.metrics, gathered.higher_is_better


def exported_scores(runs: Runs | pd.DataFrame) -> pd.DataFrame:
    """Return all scores of a table, or of runs under the names of ``exported_runs``."""
    if isinstance(runs, pd.DataFrame):
        return named_scores(runs)[0]
    tables = [
        table.assign(model=model, task=table["task"].map(labels))
        for run, model, labels in exported_runs(runs)
        for table in (run.scores(),)
    ]
    return pd.concat([table for table in tables if len(table)] or tables[:1], ignore_index=True)


def exported_runs(runs: Runs) -> list[tuple[Run, str, dict[str, str]]]:
    """Return runs, each with a name of its own, and the columns of its tasks."""
    return [(pooled.run, pooled.model, pooled.labels) for pooled in name_runs(as_runs(runs))]


def named_runs(runs: Runs, pool: str = "variant") -> list[tuple[Run, str, dict[str, str]]]:
    """Return runs, each with the names of its row and its columns on the leaderboard."""
    return [(pooled.run, pooled.model, pooled.labels) for pooled in pool_runs(as_runs(runs), pool)]


def choose_metric(metric: str, tasks: Iterable[str], existing: Iterable[str]) -> dict[str, str]:
    """Return this metric for the tasks that have it; ``existing`` are all metrics there are."""
    chosen = dict.fromkeys(tasks, metric)
    if not chosen:
        names = sorted(set(existing))
        hint = _how_to_add(metric) or did_you_mean(metric, names)
        hint = hint or f" There are: {', '.join(names)}."
        raise DefinitionError(f'no task has the metric "{metric}".{hint}')
    return chosen


def _how_to_add(metric: str) -> str:
    """Return how to add a metric to finished runs, or an empty string if there is none."""
    try:
        get_metric(metric)
    except KaratError:
        return ""
    return f" Add it to finished runs: karat rescore RUN... --metric {metric} -o rescored"


def _of_table(table: pd.DataFrame) -> Gathered:
    missing = [name for name in SCORE_COLUMNS if name not in (*table.columns, "draw")]
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
    # a table may have columns for kinds, datasets and languages
    names = [name for name in ("kind", "dataset", "language") if name in firsts]
    groups = {name: firsts[name].to_dict() for name in names}
    # and one for the direction of metrics that are not registered
    ways: dict[Any, bool] = {}
    if "higher_is_better" in final:
        directions = final.drop_duplicates("metric").set_index("metric")["higher_is_better"]
        ways = directions.dropna().astype(bool).to_dict()
    return Gathered(
        list(pd.unique(final["model"])),
        final,
        pd.DataFrame(columns=list(JOBS)),
        metrics=firsts["metric"].to_dict(),
        higher_is_better=ways,
        kinds=groups.get("kind", {}),
        datasets=groups.get("dataset", {}),
        languages=groups.get("language", {}),
    )


def as_runs(runs: Runs) -> list[Run]:
    """Return runs, run folders and folders of runs as runs, without duplicates."""
    several = [runs] if isinstance(runs, Run | str | Path) else list(runs)
    opened = [r for run in several for r in ([run] if isinstance(run, Run) else _opened(run))]
    if not opened:
        raise DataError("there is no run; at least one is needed.")
    return list({run.folder.resolve(): run for run in opened}.values())


def _opened(folder: str | Path) -> list[Run]:
    """Return the runs of a folder, or those of another system's result files in it."""
    try:
        return open_runs([folder])
    except DataError:
        for name in result_folders if Path(folder).is_dir() else ():
            if imported := result_folders.get(name)(folder):
                return list(imported)
        raise


def _of_runs(runs: list[Run], pool: str, final: bool = True) -> tuple[Gathered, pd.DataFrame]:
    """Return the gathered runs, whose records are read once, and their table of scores.

    Unless ``final``, the table has scores on corrupted data and of earlier epochs too.
    """
    pooled = pool_runs(runs, pool)
    facts: dict[str, dict[Any, Any]] = {name: {} for name in _FACTS}
    added: dict[str, int] = {}
    for named in pooled:
        _read_facts(named, facts, added)
    joined = _joined(list(_score_tables(pooled, final)))
    joined = _final(joined).reset_index(drop=True) if final else joined
    joined = _without_unknown_metrics(joined, facts)
    seeds = sorted({run.about["seed"] for run in runs if run.about.get("seed") is not None})
    counted = count_jobs(pooled, joined, _job_table(pooled))
    gathered = Gathered(
        list(dict.fromkeys(named.model for named in pooled)),
        _final(counted.scores),
        counted.jobs,
        seeds=seeds,
        planned=_planned(pooled),
        repeated=counted.repeated,
        by_seed=counted.by_seed,
        sources=[(named.run, named.model, named.labels) for named in pooled],
        pool=pool,
        cluster="",
        apart=frozenset().union(*(named.apart for named in pooled)),
        exits=_exits(pooled),
        **facts,
    )
    return gathered, counted.scores


def _exits(pooled: Sequence[PooledRun]) -> dict[str, dict[str, Any]]:
    """Return how models left their newest race; a model with a run outside of races did not."""
    runs: dict[str, list[Run]] = {}
    for named in pooled:
        runs.setdefault(named.model, []).append(named.run)
    newest = {
        model: newest_first(model_runs)[0].about["race"].get("exit")
        for model, model_runs in runs.items()
        if all(run.about.get("race") for run in model_runs)
    }
    return {model: exit_facts for model, exit_facts in newest.items() if exit_facts}


def _read_facts(named: PooledRun, facts: dict[str, dict[Any, Any]], added: dict[str, int]) -> None:
    """Add the facts of a run under its names; ``added`` are the tasks."""
    run, label = named.run, named.labels
    columns = columns_of(run)
    for row in columns.rows_with("lacks"):
        record = columns.records[row]
        why = (str(record["lacks"]), str(record["info"]))
        task = label.get(record["task"], record["task"])
        facts["lacking"].setdefault(why, []).append((named.model, task))
    if run.about.get("prompts"):
        facts["prompts"].setdefault(named.model, run.about["prompts"])
    for task in run.about["tasks"]:
        called = label[task["name"]]
        if id(task) != added.get(called):  # runs of one plan share their tasks
            _add_facts(facts, called, task)
            added[called] = id(task)


def _score_tables(pooled: Sequence[PooledRun], final: bool) -> Iterator[pd.DataFrame]:
    """Yield the scores under their names, of several runs at once, with the place of the run."""
    for places in _batches(pooled):
        parts = [
            part for position in places if (part := _named_columns(pooled[position])) is not None
        ]
        if parts:
            table, record = Compact.joined(parts, _SCORE_KEYS).placed_scores()
            ends = np.cumsum([len(part) for part in parts])
            table = table.assign(run=places[0] + np.searchsorted(ends, record, side="right"))
        else:
            table = _named_table(pooled[places[0]]).assign(run=places[0])
        yield _final(table) if final and len(table) > MANY_ROWS else table


def _batches(pooled: Sequence[PooledRun]) -> Iterator[list[int]]:
    """Yield the places of runs that are read together; a run without stored columns is alone."""
    batch: list[int] = []
    size = 0
    for position, named in enumerate(pooled):
        columns = columns_of(named.run)
        alone = isinstance(columns, Listed)
        count = 0 if isinstance(columns, Listed) else columns.count_numbers("history", "views")
        if batch and (alone or size + count > MANY_NUMBERS):
            yield batch
            batch, size = [], 0
        batch.append(position)
        size += count
        if alone:
            yield batch
            batch = []
    if batch:
        yield batch


def _named_columns(named: PooledRun) -> Compact | None:
    """Return the stored columns of a run under its names; None if it has none."""
    columns, labels = columns_of(named.run), named.labels
    if isinstance(columns, Listed):
        return None
    if named.model != named.run.model:
        columns = columns.renamed("model", lambda _: named.model)
    if any(task != called for task, called in labels.items()):
        columns = columns.renamed("task", lambda task: labels.get(task, task))
    return columns


def _named_table(named: PooledRun) -> pd.DataFrame:
    """Return the scores of a run under its names."""
    table, label = named.run.scores(), named.labels
    if named.model != named.run.model:
        table = table.assign(model=named.model)
    if any(task != called for task, called in label.items()):
        codes, tasks = pd.factorize(table["task"])
        labels = pd.Series([label.get(task, task) for task in tasks], dtype=table["task"].dtype)
        table = table.assign(task=labels.take(codes).array)
    return table


def _joined(tables: list[pd.DataFrame]) -> pd.DataFrame:
    """Return the tables of all runs as one."""
    # columns of an empty table have no types and would change those of the others
    filled = [table for table in tables if len(table)] or tables[:1]
    return pd.concat(filled, ignore_index=True)


def _planned(pooled: Sequence[PooledRun]) -> dict[tuple[str, str], int]:
    """Return the number of folds planned by model and task, over all its runs."""
    folds: dict[tuple[str, str], frozenset[tuple[int, int]]] = {}
    plans: dict[tuple[int, int], frozenset[tuple[int, int]]] = {}  # runs share their tasks
    for named in pooled:
        for task in named.run.about["tasks"]:
            label = named.labels[task["name"]]
            if label not in named.dropped:
                shift = named.shifts.get(label, 0)
                planned_folds = plans.get((id(task), shift))
                if planned_folds is None:
                    planned_folds = frozenset((shift, fold) for fold in task["folds"])
                    plans[id(task), shift] = planned_folds
                before = folds.get((named.model, label))
                folds[named.model, label] = (
                    planned_folds if before is None else before | planned_folds
                )
    return {key: len(planned_folds) for key, planned_folds in folds.items()}


def _add_facts(facts: dict[str, dict[Any, Any]], called: str, task: Mapping[str, Any]) -> None:
    facts["higher_is_better"].update(task.get("higher_is_better", {}))
    facts["kinds"].setdefault(called, task.get("kind", ""))
    facts["datasets"].setdefault(called, task.get("dataset", ""))
    facts["languages"].setdefault(called, str((task.get("about") or {}).get("language") or ""))
    facts["modalities"].setdefault(called, task.get("modality", ""))
    repeated, tested = task.get("duplicate_rows", (0, 0))
    if repeated:
        facts["duplicate_rows"].setdefault(called, (repeated, tested))
    if task.get("positive") is not None:
        facts["positive"].setdefault(called, str(task["positive"]))
    metrics = [metric for metric in task["metrics"] if metric != "?"]
    metrics = [metric for metric in metrics if _has_direction(metric, task)] or metrics[:1]
    if metrics:
        first = facts["metrics"].setdefault(called, metrics[0])
        if not _has_direction(first, facts):
            facts["metrics"][called] = metrics[0]


def _has_direction(metric: str, facts: Mapping[str, Any]) -> bool:
    """Return whether it is known if higher is better; names in files never import code."""
    if metric in facts.get("higher_is_better", {}):
        return True
    if ":" not in metric:
        with contextlib.suppress(KaratError):
            get_metric(metric)
            return True
    return False


def _without_unknown_metrics(table: pd.DataFrame, facts: Mapping[str, Any]) -> pd.DataFrame:
    """Return scores whose direction is known, and tell of the others, unless all are unknown.

    Values by epoch, such as losses, are not scores and need no direction.
    """
    final = table["metric"][table["epoch"] == FINAL_EPOCH]
    names = [str(name) for name in pd.unique(final)]
    unknown = [name for name in names if not _has_direction(name, facts)]
    if not unknown or len(unknown) == len(names):
        return table
    listed = ", ".join(f'"{name}"' for name in unknown[:MOST_NAMED])
    models = ", ".join(map(str, pd.unique(table["model"][table["metric"].isin(unknown)])))
    warnings.warn(
        f"scores of {models} in {listed} are left out: no such metric is defined here, and the run "
        f"does not record whether higher is better.",
        stacklevel=2,
    )
    for task in [task for task, name in facts["metrics"].items() if name in unknown]:
        del facts["metrics"][task]
    return table[~table["metric"].isin(unknown)].reset_index(drop=True)


def _job_table(pooled: Sequence[PooledRun]) -> pd.DataFrame:
    """Return the jobs of all runs, with the place of each job's run."""
    columns: dict[str, list[Any]] = {name: [] for name in JOBS}
    sizes = []
    for named in pooled:
        job_columns = _jobs(named)
        sizes.append(len(job_columns["task"]))
        for name, values in job_columns.items():
            columns[name] += values
    return pd.DataFrame(columns).assign(run=np.repeat(np.arange(len(pooled)), sizes))


def _jobs(named: PooledRun) -> dict[str, list[Any]]:
    """Return the columns of the jobs of a run under its names."""
    columns = columns_of(named.run)
    jobs = {name: columns.column(key) for name, key in _JOB_KEYS.items()}
    jobs["coverage"] = columns.coverage()
    _add_embedding(named.run, columns, jobs)
    jobs["vector_bytes"] = [None] * len(jobs["task"])
    if not any(set(jobs["dimensions"])):
        jobs["precision"] = jobs["vector_bytes"]
    else:
        pairs = list(zip(jobs["dimensions"], jobs["precision"], strict=True))
        sizes_by_pair = {
            (width, precision): vector_size({"dimensions": width, "precision": precision})
            for width, precision in set(pairs)
        }
        sizes = zip(*(sizes_by_pair[pair] for pair in pairs), strict=True)
        jobs["precision"], jobs["vector_bytes"] = map(list, sizes)
    ended = {status: simplified_status(status) for status in set(jobs["status"])}
    jobs["status"] = list(map(ended.__getitem__, jobs["status"]))
    if not all(map(all, set(zip(jobs["train"], jobs["test"], strict=True)))):
        for row, (train, test) in enumerate(zip(jobs["train"], jobs["test"], strict=True)):
            if not (train and test):
                jobs["train"][row] = jobs["test"][row] = None
    if (rows := expanded_rows(named.run, columns)) is not None:
        places, folds = rows
        jobs = {name: [values[row] for row in places] for name, values in jobs.items()}
        jobs["fold"] = folds
    if any(task != label for task, label in named.labels.items()):
        jobs["task"] = [named.labels.get(task, task) for task in jobs["task"]]
    return {"model": [named.model] * len(jobs["task"]), **jobs}


def _add_embedding(run: Run, columns: Compact | Listed, job_columns: dict[str, list[Any]]) -> None:
    """Count vectors, which are computed once per dataset, for its first job only.

    Their time is added to that of the job; their tokens and price are those of all its jobs.
    """
    if not (rows := columns.rows_with("embed_seconds")):
        return
    data = {task["name"]: task.get("fingerprint") for task in run.about["tasks"]}
    embedded, seconds = set(), columns.column("embed_seconds")
    shared = columns.column("embed_tokens")
    for row in rows:
        tokens, price = job_columns["tokens"][row], job_columns["price"][row]
        if data.get(job_columns["task"][row]) not in embedded:
            embedded.add(data.get(job_columns["task"][row]))
            job_columns["seconds"][row] = (job_columns["seconds"][row] or 0.0) + seconds[row]
        elif tokens:
            own_tokens = tokens - (shared[row] or 0)
            job_columns["tokens"][row] = own_tokens
            job_columns["price"][row] = None if price is None else price * own_tokens / tokens


def columns_of(run: Run) -> Compact | Listed:
    """Return the values of all records of a run by key."""
    return run.columns if isinstance(run, FrozenRun) else Listed(run.records())


def expanded_rows(run: Run, columns: Compact | Listed) -> tuple[list[int], list[Any]] | None:
    """Return the record and the fold of each job; None if each record is one job.

    A task that never ran has one record for all its folds, as in ``expand_folds``.
    """
    folds = columns.column("fold")
    if None not in folds:
        return None
    planned = {task["name"]: task.get("folds") or [None] for task in run.about["tasks"]}
    pairs = [
        (row, job_fold)
        for row, (task, fold) in enumerate(zip(columns.column("task"), folds, strict=True))
        for job_fold in ([fold] if fold is not None else planned.get(task, [None]))
    ]
    return [row for row, _ in pairs], [fold for _, fold in pairs]


def _final(scores: pd.DataFrame) -> pd.DataFrame:
    columns = [scores[name].to_numpy() for name in ("corruption", "epoch")]
    if all(bool(np.all(c == v)) for c, v in zip(columns, ("", FINAL_EPOCH), strict=True)):
        return scores  # as of most runs of other systems
    clean = scores["corruption"].isin(["", None]) | scores["corruption"].isna()
    return scores[clean & (scores["epoch"] == FINAL_EPOCH)]


@dataclass(frozen=True)
class Cells:
    """Models × tasks. ``folds[t]`` holds models × folds, negated if lower is better.

    ``means`` are the scores as measured; ``tried[t]`` is which folds were run, ``takes`` whether
    any was, ``states`` one of STATES per cell. ``planned`` is the number of folds planned, and
    ``seed_spread`` the standard deviation of a score over seeds.
    """

    models: list[str]
    tasks: list[str]
    higher: list[bool]
    means: np.ndarray
    folds: list[np.ndarray]
    tried: list[np.ndarray]
    takes: np.ndarray
    states: np.ndarray
    planned: np.ndarray
    seed_spread: np.ndarray

    @property
    def partial(self) -> dict[str, dict[str, tuple[int, int]]]:
        """Scores over fewer folds than planned: (folds with a score, planned) by model and task."""
        partial: dict[str, dict[str, tuple[int, int]]] = {}
        for t, table in enumerate(self.folds):
            have = (~np.isnan(table)).sum(axis=1)
            for m in np.flatnonzero((have > 0) & (have < self.planned[:, t])):
                counts = (int(have[m]), int(self.planned[m, t]))
                partial.setdefault(self.models[m], {})[self.tasks[t]] = counts
        return partial

    @property
    def scored(self) -> np.ndarray:
        """Which tasks have a score of some model."""
        return (self.states == OK).any(axis=0)

    def only(self, tasks: Sequence[int], models: Sequence[int]) -> Cells:
        """Return only these tasks and models."""
        rows, cut = list(models), np.ix_(list(models), list(tasks))
        return Cells(
            models=[self.models[m] for m in rows],
            tasks=[self.tasks[t] for t in tasks],
            higher=[self.higher[t] for t in tasks],
            means=self.means[cut],
            folds=[self.folds[t][rows] for t in tasks],
            tried=[self.tried[t][rows] for t in tasks],
            takes=self.takes[cut],
            states=self.states[cut],
            planned=self.planned[cut],
            seed_spread=self.seed_spread[cut],
        )


def make_cells(gathered: Gathered, chosen: dict[str, str]) -> Cells:
    """Return the cells of the chosen metrics."""
    models, tasks = gathered.models, list(chosen)
    higher = [gathered.higher(metric) for metric in chosen.values()]
    rows = _rows(gathered, chosen)
    starts = np.searchsorted(rows["task"], np.arange(len(tasks) + 1))
    means = np.full((len(models), len(tasks)), np.nan)
    takes = np.zeros((len(models), len(tasks)), dtype=bool)
    every, tried = [], []
    for t in range(len(tasks)):
        part = {name: column[starts[t] : starts[t + 1]] for name, column in rows.items()}
        fold, folds = pd.factorize(part["fold"], sort=True)
        table = np.full((len(models), max(len(folds), 1)), np.nan)
        run = np.zeros(table.shape, dtype=bool)
        # failures come first, so that a score of the same fold replaces them
        run[part["model"], fold] = True
        table[part["model"], fold] = part["value"]
        takes[:, t] = run.any(axis=1)
        scored = (~np.isnan(table)).any(axis=1)
        means[scored, t] = np.nanmean(table[scored], axis=1)
        every.append(table if higher[t] else -table)
        tried.append(run)
    states = _states(gathered, tasks, means, takes)
    planned = _count_planned(gathered, tasks, tried)
    further = (takes, states, planned, _seed_spread(gathered, chosen))
    return Cells(models, tasks, higher, means, every, tried, *further)


def _count_planned(gathered: Gathered, tasks: list[str], tried: list[np.ndarray]) -> np.ndarray:
    """Return models × tasks: the folds planned, at least those that were run."""
    counts = np.zeros((len(gathered.models), len(tasks)), dtype=int)
    for t, task in enumerate(tasks):
        planned = [gathered.planned.get((model, task), 0) for model in gathered.models]
        counts[:, t] = np.maximum(planned, tried[t].sum(axis=1))
    return counts


def _seed_spread(gathered: Gathered, chosen: Mapping[str, str]) -> np.ndarray:
    """Return models × tasks: the standard deviation of the score over seeds, NaN for one seed."""
    spread = np.full((len(gathered.models), len(chosen)), np.nan)
    if len(gathered.by_seed):
        used = gathered.by_seed[gathered.by_seed["metric"] == gathered.by_seed["task"].map(chosen)]
        spreads = used.groupby(["model", "task"], sort=False)["mean"].std().reset_index()
        places = _codes(spreads["model"], gathered.models), _codes(spreads["task"], chosen)
        spread[places] = spreads["mean"]
    return spread


def _states(
    gathered: Gathered, tasks: list[str], means: np.ndarray, takes: np.ndarray
) -> np.ndarray:
    states = np.where(takes, FAILED, NOT_RUN).astype(object)
    for state in (DECLINED, ELIMINATED):
        jobs = gathered.jobs[gathered.jobs["status"] == state]
        model, task = _codes(jobs["model"], gathered.models), _codes(jobs["task"], tasks)
        in_state = np.zeros(takes.shape, dtype=bool)
        in_state[model[task >= 0], task[task >= 0]] = True
        states[in_state & ~takes] = state
    states[~np.isnan(means)] = OK
    return states


def _rows(gathered: Gathered, chosen: dict[str, str]) -> dict[str, np.ndarray]:
    """Return task, model and fold (as codes) and value of every score and every failed job."""
    names = ["task", "model", "repeat", "fold", "metric", "value"]
    failed = gathered.jobs[gathered.jobs["status"] == FAILED]
    failures = pd.DataFrame(
        {name: failed[name] if name in JOBS else np.nan for name in names}, columns=names
    ).assign(metric=failed["task"].map(chosen))
    frames = [frame[names].astype({"value": float}) for frame in (failures, gathered.scores)]
    both = pd.concat([frame for frame in frames if len(frame)] or frames[:1], ignore_index=True)
    task, model = _codes(both["task"], chosen), _codes(both["model"], gathered.models)
    metric, metrics = pd.factorize(both["metric"])
    wanted = pd.Index(metrics).get_indexer(list(chosen.values()))
    # sorted, so that the order of the runs changes nothing
    repeat, _ = pd.factorize(both["repeat"], use_na_sentinel=False, sort=True)
    fold, folds = pd.factorize(both["fold"], use_na_sentinel=False, sort=True)
    used = np.flatnonzero((task >= 0) & (metric >= 0) & (metric == np.append(wanted, -1)[task]))
    used = used[np.argsort(task[used], kind="stable")]
    fold = repeat * max(len(folds), 1) + fold
    _check_once(both, used[used >= len(failures)], (task, model, fold))
    columns = {"task": task, "model": model, "fold": fold, "value": both["value"].to_numpy()}
    return {name: column[used] for name, column in columns.items()}


def _codes(column: pd.Series, axis: Iterable[str]) -> np.ndarray:
    codes, names = pd.factorize(column)
    places = pd.Index(list(axis), dtype=object).get_indexer(pd.Index(names, dtype=object))
    return np.append(places, -1)[codes]


def _check_once(
    rows: pd.DataFrame, used: np.ndarray, codes: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> None:
    task, model, fold = (code[used].astype(np.int64) for code in codes)
    key = (task * (model.max(initial=0) + 1) + model) * (fold.max(initial=0) + 1) + fold
    order = np.argsort(key, kind="stable")
    twice = np.flatnonzero(np.diff(key[order]) == 0)
    if len(twice):
        first = rows.loc[used[order[twice[0]]], ["model", "task", "fold"]]
        raise DataError(
            f"{first['model']} has two scores on {first['task']}, fold {first['fold']}; "
            f"rename one of the models or drop one score."
        )


class FrozenRun(Run):
    """A run that caches its records and scores on first access.

    They come from the file of all records; if that is missing or stale, it is made again.
    """

    @classmethod
    def of(cls, run: Run) -> FrozenRun:
        """Return a run as it is now; a plan that has not changed is not read again."""
        if isinstance(run, cls):
            return run
        frozen = cls(run.folder)
        stamp = vars(run).get("_about_stamp")
        if "about" in vars(run) and stamp is not None and stamp == about_stamp(run.folder):
            vars(frozen)["about"] = run.about
        return frozen

    @classmethod
    def in_memory(
        cls,
        folder: Path,
        facts: dict[str, Any],
        records: list[dict[str, Any]],
        scores: pd.DataFrame,
    ) -> FrozenRun:
        """Return a run that has no run folder, such as that of another system's files."""
        frozen = cls(folder)
        vars(frozen).update(about=facts, _listed=records, stored=None, stamp=[], _scores=scores)
        return frozen

    @cached_property
    def stamp(self) -> list[int]:
        """The number, times and sizes of the records."""
        return stamp_records(self.folder)

    @cached_property
    def stored(self) -> Compact | None:
        """The records by column, from their file or made again; None if there are few."""
        compact = read_compact(self.folder, self.stamp)
        if compact is None:
            stamp = stamp_records(self.folder)
            compact = make_compact(self._listed)
            write_compact(self.folder, stamp, compact)
            if compact is not None:
                del self._listed  # the columns need less memory
        return compact

    @cached_property
    def _listed(self) -> list[dict[str, Any]]:
        return super().records()

    @cached_property
    def _records(self) -> list[dict[str, Any]]:
        if self.stored is None:
            return self._listed
        return cast(list[dict[str, Any]], self.stored.records)  # mappings, never changed

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return scores_table(self._records) if self.stored is None else self.stored.scores()

    def records(self) -> list[dict[str, Any]]:
        """Return the cached records, in the order of the plan."""
        return self._records

    def scores(self) -> pd.DataFrame:
        """Return the cached table of scores."""
        return self._scores

    @property
    def columns(self) -> Compact | Listed:
        """The values of all records by key."""
        return self.stored or Listed(self.records())


def frozen_runs(runs: Runs) -> list[Run]:
    """Return runs with cached records."""
    return [FrozenRun.of(run) for run in as_runs(runs)]


def learning_curves(runs: Runs | pd.DataFrame, pool: str = "variant") -> pd.DataFrame:
    """Return mean, std and count over folds by task, model, metric and epoch.

    Folds whose training stopped early have no later epochs.
    """
    table, _, _ = named_scores(runs, pool)
    table = table[(table["epoch"] != FINAL_EPOCH) & (table["corruption"] == "")]
    curves = table.groupby(KEYS, sort=False)["value"].agg(["mean", "std", "count"])
    return curves.reset_index().sort_values(KEYS, kind="stable", ignore_index=True)


def status(paths: Sequence[str | Path] | str | Path) -> pd.DataFrame:
    """Return a row per run with the numbers of finished, failed, running and remaining jobs.

    ``state`` is "finished", "running", or "stopped" (jobs remain and no process works on them);
    ``last`` is the end of the most recent job.
    """
    several = [paths] if isinstance(paths, str | Path) else list(paths)
    rows = [status_row(run) for run in open_runs(several)]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def status_row(run: Run) -> dict[str, Any]:
    """Return the row of one run."""
    records = run.records()
    # a task whose data cannot be loaded has failed in every fold; a declined task has no fold
    failed = [r for r in records if r["fold"] is None and r["status"] in FAILURES]
    jobs = [record for record in records if record["fold"] is not None]
    jobs += expand_folds(run.about, failed)  # type: ignore[arg-type]
    never_ran = {record["task"] for record in records if record["fold"] is None}
    tasks = [task for task in run.about["tasks"] if task["name"] not in never_ran]
    planned = {(task["name"], fold) for task in tasks for fold in task["folds"]}
    counts = Counter(record["status"] for record in jobs)
    done = {(record["task"], record["fold"]) for record in jobs}
    # a race that is over needs no more jobs
    remaining = 0 if (run.about.get("race") or {}).get("over") else len(planned - done)
    running = len(run.running_jobs())
    seconds = [record["seconds"] for record in jobs if record.get("seconds")]
    return {
        "run": run.folder.name,
        "model": replicate_name(run.model, replicate_of(run.about)),
        "planned": len(done) - counts[ELIMINATED] + remaining,
        **{name: counts[name] for name in ("ok", *FAILURES)},
        "declined": sum(record["status"] == "declined" for record in records),
        "eliminated": counts[ELIMINATED],
        "running": min(running, remaining),
        "left": remaining,
        "state": "finished" if not remaining else "running" if running else "stopped",
        "seconds_per_job": sum(seconds) / len(seconds) if seconds else None,
        "last": max((str(record["utc"]) for record in jobs), default=""),
    }


def reason_nothing_ran(run: Run) -> str | None:
    """Return why a run has no job that ran, or None if it has one."""
    records = run.records()
    if any(record["status"] != DECLINED for record in records):
        return None
    reasons = [str(record["info"]) for record in records] or ["there was nothing to run"]
    # that no item has a vector says more than what the model does not take
    reason = next((why for why in reasons if why.startswith(NO_VECTOR)), reasons[0])
    return reason.partition(" Tried:")[0]


def require_results(runs: Sequence[Run], purpose: str) -> None:
    """Raise a DataError if no job of these runs ran, so that there is nothing to check."""
    reasons = [reason_nothing_ran(run) for run in runs]
    if reasons and None not in reasons:
        raise DataError(f"nothing to {purpose}: no job of these runs ran ({reasons[0]}).")


def ago(utc: str, now: datetime | None = None) -> str:
    """Return the time since a moment as text.

    >>> ago("2026-01-01T00:00:00", datetime(2026, 1, 1, 0, 2, 5, tzinfo=UTC))
    '2 min ago'
    """
    if not utc:
        return ""
    try:
        then = datetime.fromisoformat(utc).replace(tzinfo=UTC)
    except ValueError:  # the text of an imported file
        return utc
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{int(seconds // size)} {unit} ago"
    return f"{max(int(seconds), 0)} s ago"


@dataclass(frozen=True)
class Estimate:
    """Seconds that earlier runs needed for ``timed`` of these ``jobs`` jobs."""

    seconds: float
    timed: int
    jobs: int


def estimate(jobs: Iterable[tuple[str, str]], folder: Path) -> Estimate:
    """Return the mean duration of jobs (model, task) in the runs of a folder.

    Jobs that were never run are left out.
    """
    wanted = list(jobs)
    spent = earlier_seconds({model for model, _ in wanted}, folder)
    seconds = [spent[job][0] for job in wanted if job in spent]
    return Estimate(sum(seconds), len(seconds), len(wanted))


def earlier_seconds(
    models: Collection[str], folder: Path
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return the mean seconds of a job, and those of its vectors, by model and task.

    They are those of the runs of these models in a folder.
    """
    spent: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for run in map(Run, find_run_folders(folder)):
        with contextlib.suppress(DataError):  # a folder of something else
            columns = columns_of(FrozenRun.of(run)) if run.model in models else Listed(())
            keys = ("task", "seconds", "embed_seconds")
            for task, seconds, vectors in zip(*map(columns.column, keys), strict=True):
                if seconds:
                    spent.setdefault((run.model, str(task)), []).append((seconds, vectors or 0.0))
    return {
        job: (sum(one for one, _ in pairs) / len(pairs), max(vectors for _, vectors in pairs))
        for job, pairs in spent.items()
    }
