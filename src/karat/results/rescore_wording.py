"""Recomputed scores in words, and the scores that differ as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from karat.core.formatting import count
from karat.corruptions.view import CLEAN
from karat.output.table import Table, first_rows, text_column

if TYPE_CHECKING:
    from karat.results.rescore import Rescored

#: maximum number of changed scores in the table
MAX_ROWS = 20


def rescored_sentence(rescored: Rescored) -> str:
    """Return how many scores were computed, and how many differ."""
    differ = f"{len(rescored.differences):,} differ from before"
    added = f", {', '.join(rescored.added)} added" if rescored.added else ""
    unread = len(rescored.problems)
    problems = f", {count(unread, 'file')} could not be used" if unread else ""
    name = rescored.run.folder.resolve().name
    return f"{name}: {count(len(rescored.scores), 'score')}, {differ}{added}{problems}."


def added_lines(rescored: Rescored) -> Iterator[str]:
    """Yield the mean of each metric that the run did not have."""
    scores = rescored.scores
    added = scores[scores["added"] & scores["value"].notna()]
    for (task, view, metric), part in added.groupby(["task", "view", "metric"], sort=False):
        where = task if view == CLEAN.name else f"{task}, {view}"
        yield f"{where}: {metric} {part['value'].mean():.6g} over {count(len(part), 'fold')}"


def differences_table(rescored: Rescored) -> Table:
    """Return the scores that differ, before and now, at full precision."""
    rows = rescored.differences
    columns = [
        text_column("fold", rows["fold"]),
        text_column("view", rows["view"], right=False),
        text_column("metric", rows["metric"], right=False),
        text_column("before", map(_number, rows["before"])),
        text_column("now", map(_number, rows["value"])),
        text_column("why", rows["why"], right=False),
    ]
    model = text_column("task", rows["task"], right=False)
    return first_rows(Table([], model, columns, [0], "Scores that differ", []), MAX_ROWS)


def _number(value: float) -> str:
    return "none" if math.isnan(value) else repr(float(value))
