"""The scores of a page by task, metric and model, with the spread over folds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import KaratError
from karat.report.notes import short
from karat.report.shown import some
from karat.results.cells import DECLINED, FAILED, NOT_RUN, OK, Cells
from karat.results.gather import Gathered

#: one character per state of a cell
SIGNS = {OK: ".", FAILED: "f", DECLINED: "d", NOT_RUN: "n"}
#: maximum number of scores of secondary metrics
MAX_NUMBERS = 200_000


@dataclass(frozen=True)
class Metrics:
    """The metrics of each task (primary metric first) and their directions."""

    names: list[list[str]]
    higher: list[list[bool]]
    cut: list[str]


def metrics_of(given: Gathered, chosen: dict[str, str]) -> Metrics:
    """Return the metrics of each task, as many as there is room for."""
    pairs = given.scores[["task", "metric"]].drop_duplicates()
    seen: dict[str, list[str]] = {}
    for task, metric in zip(pairs["task"], pairs["metric"], strict=True):
        seen.setdefault(task, []).append(metric)
    names, higher, unknown = [], [], []
    room = MAX_NUMBERS // max(len(given.models) * len(chosen), 1)
    for task, first in chosen.items():
        rest = [metric for metric in seen.get(task, []) if metric != first]
        directions = {first: given.higher(first)}
        for metric in rest[: max(room, 0)]:
            try:
                directions[metric] = given.higher(metric)
            except KaratError:
                unknown.append(f"{short(metric)} of {short(task)}: unknown direction.")
        names.append(list(directions))
        higher.append(list(directions.values()))
    cut = some(unknown, lambda n: f"{n} more metrics with unknown direction.")
    if any(len(seen.get(task, [])) > room + 1 for task in chosen):
        cut.append(f"Only the first {room + 1} metrics of each task are shown (too many scores).")
    return Metrics(names, higher, cut)


def means_of(
    given: Gathered, cells: Cells, metrics: Metrics, order: np.ndarray
) -> list[list[np.ndarray]]:
    """Return the mean over folds by task, metric and model, in this order of models."""
    table = given.scores[given.scores["value"].notna()]
    means = table.groupby(["task", "metric", "model"], sort=False)["value"].mean()
    by_pair = {key: part.droplevel([0, 1]) for key, part in means.groupby(level=[0, 1], sort=False)}
    names = pd.Index([cells.models[m] for m in order])
    found = []
    for t, (task, own) in enumerate(zip(cells.tasks, metrics.names, strict=True)):
        first = cells.means[order, t]
        rest = [by_pair.get((task, metric), pd.Series(dtype=float)) for metric in own[1:]]
        found.append([first, *(part.reindex(names).to_numpy(dtype=float) for part in rest)])
    return found


def spread_of(cells: Cells, order: np.ndarray) -> list[np.ndarray]:
    """Return the standard deviation over folds by task and model; NaN for one fold."""
    found = []
    for table in cells.folds:
        values = table[order]
        count = (~np.isnan(values)).sum(axis=1)
        spread = np.full(len(values), np.nan)
        several = count > 1
        if several.any():
            spread[several] = np.nanstd(values[several], axis=1, ddof=1)
        found.append(spread)
    return found


def folds_of(
    cells: Cells, order: np.ndarray, max_numbers: int
) -> tuple[list[list[Any]] | None, list[str]]:
    """Return the scores of folds by task and model, unless there are too many."""
    numbers = sum(table.size for table in cells.folds)
    if numbers > max_numbers:
        return None, [f"Scores of single folds are left out (too many: {numbers:,})."]
    found = []
    for table, up in zip(cells.folds, cells.higher, strict=True):
        values = (table if up else -table)[order]
        found.append([None if np.isnan(row).all() else row for row in values])
    return found, []


def states_of(cells: Cells, order: np.ndarray) -> list[str]:
    """Return one text per task with one character per model."""
    return ["".join(SIGNS[state] for state in column) for column in cells.states[order].T]
