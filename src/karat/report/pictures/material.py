"""The tables behind plots, each computed on first use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError, DefinitionError
from karat.report.notes import plain
from karat.report.tables import metric_label
from karat.results.cells import Cells, make_cells
from karat.results.gather import Gathered, gather
from karat.results.leaderboard import leaderboard
from karat.results.missing import RULES, Compared, check_rule, compare


@dataclass(frozen=True)
class PlotOptions:
    """The number of models to plot and the quantity to show."""

    top: int | None = None
    value: str | None = None

    def models(self, default: int) -> int:
        """Return the number of models to plot."""
        if self.top is not None and self.top < 1:
            raise DefinitionError(f"top must be >= 1, got {self.top}.")
        return default if self.top is None else self.top


class PlotData:
    """The scores of runs as leaderboards and arrays; ``runs`` as in ``leaderboard``."""

    def __init__(
        self, runs: Any, tasks: Iterable[str] | Mapping[str, str] | None, missing: str
    ) -> None:
        self.runs = runs
        self.missing = check_rule("missing", missing, RULES)
        self.wanted = dict(tasks) if isinstance(tasks, Mapping) else _named(tasks)

    @cached_property
    def given(self) -> Gathered:
        """The gathered runs, restricted to the selected tasks."""
        given = gather(self.runs)
        return given if self.wanted is None else given.only(self.wanted)

    def board(self, columns: list[str] | None = None) -> pd.DataFrame:
        """Return the leaderboard over all tasks, best model first."""
        if not self.tasks:
            raise DataError("nothing to plot: no model has a score.")
        return leaderboard(self.given, missing=self.missing, columns=columns)

    @cached_property
    def long(self) -> pd.DataFrame:
        """The leaderboard by task: score, interval, rank and normalized score."""
        return leaderboard(self.given, missing=self.missing, by="task", normalise="range")

    @cached_property
    def cells(self) -> Cells:
        """Every fold of every model and task."""
        return make_cells(self.given, self.given.chosen({}))

    @cached_property
    def compared(self) -> Compared:
        """The ranked values, under the rule for missing scores."""
        return compare(self.cells, self.missing)

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks with a score of at least one model."""
        return [task for task, has in zip(self.cells.tasks, self.cells.scored, strict=True) if has]

    def label(self, task: str) -> str:
        """Return the metric of a task with its direction."""
        metric = self.given.chosen({})[task]
        return plain(metric_label(metric, self.given.higher(metric)))

    def table(self, column: str, models: Iterable[str], tasks: Iterable[str]) -> np.ndarray:
        """Return a column of the leaderboard by task as models × tasks."""
        wide = self.long[column].unstack(0)
        return np.asarray(wide.reindex(index=list(models), columns=list(tasks)).to_numpy())


def cut(shown: int, of: int, what: str, which: str = "best") -> str:
    """Return a note about what a plot leaves out, or an empty text.

    >>> cut(40, 100, "models"), cut(3, 3, "models")
    ('Shown: the 40 best of 100 models.', '')
    """
    return f"Shown: the {shown} {which} of {of} {what}." if shown < of else ""


def _named(tasks: Iterable[str] | None) -> dict[str, str] | None:
    if tasks is None:
        return None
    return dict.fromkeys([tasks] if isinstance(tasks, str) else tasks, "")
