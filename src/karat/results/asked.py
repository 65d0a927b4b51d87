"""The columns requested of a leaderboard, and the models that they refer to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pandas as pd

from karat.errors import DefinitionError
from karat.results.missing import check_rule
from karat.results.normalise import REFERENCES
from karat.results.order import other_names

RANKS = ("rank", "rank_low", "rank_high", "tie")
NORMALISED = ("score", "median", "wins")
#: columns computed on request
RATINGS = (*NORMALISED, "borda", "elo", "elo_low", "elo_high", "pareto")
COSTS = ("failed", "declined", "seconds", "memory_mb", "dimensions")
#: columns of every leaderboard: ranks always come with their uncertainty
ALWAYS = {*RANKS, "metric", "status", "failed"}
#: further columns of each view
OF_VIEW = {"task": ("score", "score_low", "score_high"), "kind": ("tasks",), "dataset": ("tasks",)}


@dataclass(frozen=True)
class Asked:
    """The columns requested: ``names`` to show, or None for all.

    ``normalise`` is the reference of normalized scores, ``anchor`` the model whose Elo is 1500,
    ``cost`` the cost column of the Pareto front.
    """

    names: tuple[str, ...] | None = None
    sort: str | None = None
    normalise: str | None = None
    anchor: str | None = None
    cost: str = "seconds"

    @classmethod
    def read(
        cls,
        columns: Iterable[str] | str | None,
        normalise: str | None,
        by: str | None,
        sort: str | None,
    ) -> Asked:
        """Return the request for a view; sorting by a column requests it."""
        given = [columns] if isinstance(columns, str) else list(columns or ())
        parts = [str(each).partition(":") for each in given]
        options = {name: rest for name, _, rest in parts if name in ("elo", "pareto") and rest}
        names = tuple(name if name in options else "".join((name, *rest)) for name, *rest in parts)
        if normalise is not None:
            normalise = check_rule("normalise", normalise, REFERENCES)
        elif by == "task":
            normalise = "range" if "normalised" in (*names, sort) else None
        elif sort in NORMALISED or {"score", "median"} & {*names}:
            normalise = "range"
        shown = None if columns is None else names
        return cls(shown, sort, normalise, options.get("elo"), options.get("pareto", cls.cost))

    def wants(self, name: str) -> bool:
        """Return whether a column must be computed."""
        scaled = self.normalise is not None and name in (*NORMALISED, "normalised")
        return scaled or name == self.sort or name in (self.names or ())

    def pick(self, frame: pd.DataFrame, by: str | None) -> pd.DataFrame:
        """Return the requested columns, in the order of the leaderboard."""
        if self.names is None:
            return frame
        known = [str(name) for name in frame.columns]
        tasks = [name for name in known if name not in {*ALWAYS, *RATINGS, *COSTS}]
        several = {"costs": COSTS} | ({"tasks": tuple(tasks)} if by is None else {})
        chosen = {*ALWAYS, *OF_VIEW.get(by or "", ())} | {n for n in RATINGS if self.wants(n)}
        for name in self.names:
            if name not in (*several, *known):
                hint = other_names(name, [*several, *known], by)
                raise DefinitionError(f'columns: there is no column "{name}".{hint}')
            chosen |= {name, f"{name}_low", f"{name}_high", *several.get(name, ())}
        return frame[[name for name in frame.columns if name in chosen]]
