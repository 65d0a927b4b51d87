"""Leaderboards: models by mean rank, with intervals, ties, failures and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.results.asked import COSTS, RANKS, RATINGS, Asked
from karat.results.cells import OK, Cells, make_cells
from karat.results.gather import Gathered, gather
from karat.results.missing import RULES, Compared, check_rule, compare, count_missing
from karat.results.order import sort_leaderboard
from karat.results.pareto import pareto
from karat.results.ranks import ranked_on_few
from karat.results.run import Run
from karat.results.views import Made, by_group, by_task, check_by, groups_of, overall

#: columns besides the tasks; a task of such a name gets a suffix
COLUMNS = {"model", *RANKS, *RATINGS, *COSTS, "tasks", "costs"}


def leaderboard(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    *,
    metrics: Mapping[str, str] | None = None,
    by: str | None = None,
    missing: str = "worst",
    normalise: str | None = None,
    sort: str | None = None,
    columns: Iterable[str] | str | None = None,
) -> pd.DataFrame:
    """Rank the models of some runs.

    A score is the mean over folds of a task's metric on clean data. Ranks respect each metric's
    direction; scores on different scales are never averaged. Models are ranked on the folds that
    they all have; those with fewer than three tasks come last and get no tie letter.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of runs.
    metrics
        Metrics by task, instead of the tasks' primary metrics.
    by
        ``"task"``, ``"kind"`` or ``"dataset"``: one row per model within each of them.
    missing
        Rule for missing scores. ``"worst"``: a failed fold ranks below all others of that fold; a
        task that was declined or not run does not count. ``"exclude"`` or ``"common"``: only folds
        in which all models have a score. ``"penalise"``: the worst score of the fold, whatever the
        reason. ``"baseline:MODEL"``: that model's score, whatever the reason.
    normalise
        ``"range"`` adds ``score``, ``median`` and ``wins``, with each task's scores from 0 (the
        worst model) to 1 (the best); ``"baseline:MODEL"`` puts that model at 0.
    sort
        Column to sort by, best first. Default: rank.
    columns
        Columns to show besides ranks and failures. Default: a column per task, and costs. On
        request: ``"borda"``, ``"wins"``, ``"elo"``, ``"pareto"``; ``"elo:MODEL"`` puts that model
        at 1500, ``"pareto:memory_mb"`` uses another cost than time; ``"tasks"`` and ``"costs"``
        stand for all of them.

    Returns
    -------
    pandas.DataFrame
        One row per model, best first: rank, its 95 % interval, tie letters, a score per task.
        ``attrs`` holds ``tasks`` (their columns), ``metrics``, ``higher_is_better``, ``missing``
        (rule and counts), ``cells`` (why a score is missing), ``coverage`` and ``seeds``.

    Raises
    ------
    DataError
        If there are no scores to compare, or a task or metric is unknown.
    DefinitionError
        If an option or a model or column named in one is unknown.

    Examples
    --------
    >>> karat.leaderboard("results", columns=["elo", "costs"])  # doctest: +SKIP
    """
    check_by(by)
    rule = check_rule("missing", missing, RULES)
    asked = Asked.read(columns, normalise, by, sort)
    given = gather(runs)
    chosen = given.chosen(dict(metrics or {}))
    groups = groups_of(given, list(chosen), by)
    cells = make_cells(given, chosen)
    compared = compare(cells, rule)
    if rule == "exclude":
        given = _costs_of(given, compared)
    headings = dict(zip(chosen, chosen if by else map(_heading, chosen), strict=True))
    made = Made.of(asked, cells.models)
    if by is None:
        frame = overall(given, cells, compared, headings, made)
    elif by == "task":
        frame = by_task(given, cells, compared, chosen, made)
    else:
        frame = by_group(given, compared, groups, made)
    frame.index.names = ["model"] if by is None else [by, "model"]
    facts = _facts(given, cells, compared, headings)
    facts |= {"by": by, "normalise": asked.normalise, "groups": groups, "anchor": asked.anchor}
    facts["metrics"] = {headings[task]: metric for task, metric in chosen.items()}
    facts["missing"] = count_missing(cells, compared, rule)
    facts["uneven"] &= rule != "exclude"
    return _finished(frame, asked, facts)


def _finished(frame: pd.DataFrame, asked: Asked, facts: dict[str, Any]) -> pd.DataFrame:
    """Return a leaderboard with its Pareto front, sorted, with the requested columns and attrs."""
    if asked.wants("pareto"):
        place = sum(name in COLUMNS and name not in COSTS for name in frame.columns)
        frame.insert(place, "pareto", pareto(frame, asked.cost))
        facts["pareto"] = asked.cost
    if asked.sort is not None:
        frame = sort_leaderboard(frame, asked.sort, facts["higher_is_better"])
    frame = asked.pick(frame, facts["by"])
    if facts["by"] is None:
        facts["tasks"] = [task for task in facts["tasks"] if task in frame]
    shared = {name: Shared(v) if isinstance(v, dict) else v for name, v in facts.items()}
    frame.attrs.update(shared)
    return frame


def _costs_of(given: Gathered, compared: Compared) -> Gathered:
    """Return the scores without the costs of tasks on which no model is compared."""
    counted = {
        task for task, taking in zip(compared.tasks, compared.takes.T, strict=True) if taking.any()
    }
    named = ["seconds", "memory", "dimensions"]
    jobs = given.jobs.copy()
    jobs.loc[~jobs["task"].isin(counted), named] = np.nan
    return replace(given, jobs=jobs)


class Shared(dict[Any, Any]):
    """A dictionary that is not copied when pandas deep-copies the attrs of a frame."""

    def __deepcopy__(self, _: Any) -> Shared:
        return self


def _heading(task: str) -> str:
    return f"{task} (task)" if task in COLUMNS else task


def _facts(
    given: Gathered, cells: Cells, compared: Compared, columns: Mapping[str, str]
) -> dict[str, Any]:
    """Return the attrs of a leaderboard as plain values."""
    names = list(columns.values())
    few = ranked_on_few(compared.takes) & compared.takes.any(axis=1)
    lost: dict[str, dict[str, str]] = {}
    for m, t in np.argwhere(cells.states != OK):
        lost.setdefault(cells.models[m], {})[names[t]] = cells.states[m, t]
    ran = cells.takes[cells.takes.any(axis=1)]
    return {
        "tasks": names,
        "uneven": bool((ran != ran[:1]).any()),
        "higher_is_better": dict(zip(names, cells.higher, strict=True)),
        "coverage": _coverage(given.jobs, columns),
        "cells": lost,
        "few": [cells.models[m] for m in np.flatnonzero(few)],
        "seeds": given.seeds,
        "twins": {columns[task]: twins for task, twins in given.twins.items() if task in columns},
    }


def _coverage(jobs: pd.DataFrame, columns: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Return the coverage of each model and task, where it is below 1."""
    covered = jobs.dropna(subset=["coverage"])
    means = covered.astype({"coverage": float}).groupby(["model", "task"], sort=False)["coverage"]
    return {(m, columns.get(t, t)): float(c) for (m, t), c in means.mean().items() if c < 1}
