"""Leaderboard: models in the order of their mean rank, with intervals, ties, failures and costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.results.cells import OK, Cells, make_cells
from karat.results.gather import Gathered, gather
from karat.results.missing import RULES, Compared, check_rule, compare, count_missing
from karat.results.normalise import REFERENCES
from karat.results.order import sort_board
from karat.results.ranks import ranked_on_few
from karat.results.run import Run
from karat.results.views import Scale, by_group, by_task, check_by, groups_of, overall

#: the columns of a board besides the tasks; a task of such a name gets a longer one
COLUMNS = ("model", "rank", "rank_low", "rank_high", "tie")
NORMALISED = ("score", "median", "wins")
COSTS = ("failed", "declined", "seconds", "memory_mb")


def leaderboard(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    *,
    metrics: Mapping[str, str] | None = None,
    by: str | None = None,
    missing: str = "worst",
    normalise: str | None = None,
    sort: str | None = None,
) -> pd.DataFrame:
    """Return one row per model, best first: rank, its 95 % interval, tie letters, a score per task.

    A score is the mean over folds of the task's first metric on clean data. Ranks know each
    metric's direction; unlike scales are never averaged. Models are ranked on the folds they all
    have; those that take fewer than three tasks stand last and without a letter.

    Parameters
    ----------
    metrics
        Another metric by the name of its task.
    by
        ``"task"``, ``"kind"`` or ``"dataset"``: one row per model within each of them.
    missing
        What a missing score counts as. ``"worst"``: a failed fold is the worst score of that fold,
        a task that was declined or not run does not count. ``"exclude"``: only folds in which all
        models have a score. ``"baseline:MODEL"``: that model's score, whatever the reason.
    normalise
        ``"range"`` adds ``score``, ``median`` and ``wins``: each task's scores from 0, the worst
        model, to 1, the best; ``"baseline:MODEL"`` puts that model at 0.
    sort
        A column to sort by, the better first.

    Notes
    -----
    ``frame.attrs`` holds ``tasks`` (their columns), ``metrics``, ``higher_is_better``, ``missing``
    (rule and counts), ``cells`` (why a score is missing), ``coverage`` and ``seeds``.
    """
    check_by(by)
    rule = check_rule("missing", missing, RULES)
    given = gather(runs)
    chosen = given.chosen(dict(metrics or {}))
    groups = groups_of(given, list(chosen), by)
    cells = make_cells(given, chosen)
    compared = compare(cells, rule)
    normalise = _asked_scale(normalise, by, sort)
    scale = Scale.named(normalise, cells.models)
    columns = dict(zip(chosen, chosen if by else map(_column, chosen), strict=True))
    if by is None:
        board = overall(given, cells, compared, columns, scale)
    elif by == "task":
        board = by_task(given, cells, compared, chosen, scale)
    else:
        board = by_group(given, compared, groups, scale)
    board.index.names = ["model"] if by is None else [by, "model"]
    facts = _facts(given, cells, compared, columns)
    board = board if sort is None else sort_board(board, sort, facts["higher_is_better"])
    facts |= {"by": by, "normalise": normalise, "groups": groups}
    facts["metrics"] = {columns[task]: metric for task, metric in chosen.items()}
    facts["missing"] = count_missing(cells, compared, rule)
    shared = {name: Shared(v) if isinstance(v, dict) else v for name, v in facts.items()}
    board.attrs.update(shared)
    return board


class Shared(dict[Any, Any]):
    """Facts about many cells: pandas copies the attrs of a frame at every step, but not these."""

    def __deepcopy__(self, _: Any) -> Shared:
        return self


def _asked_scale(normalise: str | None, by: str | None, sort: str | None) -> str | None:
    """Return what normalised scores refer to; who sorts by one of them has asked for them."""
    if normalise is not None:
        return check_rule("normalise", normalise, REFERENCES)
    asked = ("normalised",) if by == "task" else NORMALISED
    return "range" if sort in asked else None


def _column(task: str) -> str:
    return f"{task} (task)" if task in (*COLUMNS, *NORMALISED, *COSTS) else task


def _facts(
    given: Gathered, cells: Cells, compared: Compared, columns: Mapping[str, str]
) -> dict[str, Any]:
    """Return what a reader of the board must know besides its numbers, in plain values."""
    names = list(columns.values())
    few = ranked_on_few(compared.takes) & compared.takes.any(axis=1)
    lost: dict[str, dict[str, str]] = {}
    for m, t in np.argwhere(cells.states != OK):
        lost.setdefault(cells.models[m], {})[names[t]] = cells.states[m, t]
    return {
        "tasks": names,
        "higher_is_better": dict(zip(names, cells.higher, strict=True)),
        "coverage": _coverage(given.jobs, columns),
        "cells": lost,
        "few": [cells.models[m] for m in np.flatnonzero(few)],
        "seeds": given.seeds,
        "twins": {columns[task]: twins for task, twins in given.twins.items() if task in columns},
    }


def _coverage(jobs: pd.DataFrame, columns: Mapping[str, str]) -> dict[tuple[str, str], float]:
    """Return the share of questions a model could answer, where it was not all of them."""
    told = jobs.dropna(subset=["coverage"])
    means = told.astype({"coverage": float}).groupby(["model", "task"], sort=False)["coverage"]
    return {(m, columns.get(t, t)): float(c) for (m, t), c in means.mean().items() if c < 1}
