"""Material: the tables that pictures are drawn from, each made when it is first asked for."""

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
class Look:
    """How much is drawn: the best so many models, and what a picture shows of them."""

    top: int | None = None
    value: str | None = None

    def models(self, most: int) -> int:
        """Return how many models to draw, if nothing else is said at most so many."""
        if self.top is not None and self.top < 1:
            raise DefinitionError(f"top is how many models to draw, at least 1, not {self.top}.")
        return most if self.top is None else self.top


class Material:
    """The scores of some runs as boards and arrays; ``runs`` are those of ``leaderboard``."""

    def __init__(
        self, runs: Any, tasks: Iterable[str] | Mapping[str, str] | None, missing: str
    ) -> None:
        self.runs = runs
        self.missing = check_rule("missing", missing, RULES)
        self.wanted = dict(tasks) if isinstance(tasks, Mapping) else _named(tasks)

    @cached_property
    def given(self) -> Gathered:
        """What was gathered, of the wanted tasks."""
        given = gather(self.runs)
        return given if self.wanted is None else given.only(self.wanted)

    def board(self, columns: list[str] | None = None) -> pd.DataFrame:
        """Return the board over all tasks, best model first."""
        if not self.tasks:
            raise DataError("no model has a score, so there is nothing to draw.")
        return leaderboard(self.given, missing=self.missing, columns=columns)

    @cached_property
    def long(self) -> pd.DataFrame:
        """The board by task: score, interval, rank and normalised score of every model."""
        return leaderboard(self.given, missing=self.missing, by="task", normalise="range")

    @cached_property
    def cells(self) -> Cells:
        """Every fold of every model and task."""
        return make_cells(self.given, self.given.chosen({}))

    @cached_property
    def compared(self) -> Compared:
        """What is ranked, under the rule for missing scores."""
        return compare(self.cells, self.missing)

    @cached_property
    def tasks(self) -> list[str]:
        """The tasks of which a model has a score."""
        return [task for task, has in zip(self.cells.tasks, self.cells.scored, strict=True) if has]

    def label(self, task: str) -> str:
        """Return the metric of a task, with its arrow."""
        metric = self.given.chosen({})[task]
        return plain(metric_label(metric, self.given.higher(metric)))

    def table(self, column: str, models: Iterable[str], tasks: Iterable[str]) -> np.ndarray:
        """Return models × tasks of a column of the board by task."""
        wide = self.long[column].unstack(0)
        return np.asarray(wide.reindex(index=list(models), columns=list(tasks)).to_numpy())


def cut(shown: int, of: int, what: str, which: str = "best") -> str:
    """Return the sentence that tells what a picture leaves out, or nothing.

    >>> cut(40, 100, "models"), cut(3, 3, "models")
    ('The 40 best of 100 models.', '')
    """
    return f"The {shown} {which} of {of} {what}." if shown < of else ""


def _named(tasks: Iterable[str] | None) -> dict[str, str] | None:
    if tasks is None:
        return None
    return dict.fromkeys([tasks] if isinstance(tasks, str) else tasks, "")
