"""Contests: many models on many tasks, every pair of them tested, and who cannot be told apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from karat.errors import DataError, DefinitionError, did_you_mean
from karat.results.cells import OK, Cells, make_cells
from karat.results.effects import superiority
from karat.results.files import write_atomic
from karat.results.gather import Gathered, gather
from karat.results.lookup import unknown_model
from karat.results.missing import RULES, Compared, compare
from karat.results.normalise import normalise
from karat.results.ranks import ranked_on_few
from karat.results.significance import (
    ALPHA,
    CONFIDENCE,
    Many,
    benjamini_hochberg,
    many,
    paired_blocks,
    wilcoxon,
)

#: resamples of tasks, and the seed that makes them repeatable
RESAMPLES = 1000
SEED = 0
COLUMNS = (
    *("first", "second", "tasks", "difference", "difference_low", "difference_high"),
    *("p", "p_holm", "p_bh", "wins", "ties", "losses", "rank_biserial", "superiority"),
)


@dataclass(frozen=True, eq=False)
class Contests:
    """Many models beside each other.

    Attributes
    ----------
    models
        Their names; places in ``many`` are places here.
    values
        Models × tasks, higher is better, NaN is missing.
    many
        Friedman's test, ranks, corrected p of all pairs, cliques.
    pairs
        One row per pair, the better ranked first: mean ``difference`` over the tasks both have with
        a 95 % interval by resampling tasks, p of Wilcoxon's test, raw and corrected after Holm and
        after Benjamini and Hochberg, wins, ties, losses and effect sizes.
    notes
        What a reader must know.
    """

    models: list[str]
    values: pd.DataFrame
    many: Many
    pairs: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    @property
    def cliques(self) -> list[list[str]]:
        """Groups of models, best first, none of whose pairs can be told apart."""
        return [[self.models[m] for m in group] for group in self.many.cliques]

    @property
    def sentence(self) -> str:
        """What the tests say, in plain words."""
        told = int((self.pairs["p_holm"] < ALPHA).sum())
        of = f"{told} of {len(self.pairs)} pairs can be told apart{self._reach()}"
        if np.isnan(self.many.p):
            return f"{of} (no task has a score of all models, so all at once were not tested)."
        chance = "beyond chance" if self.many.p < ALPHA else "no more than by chance"
        return (
            f"The models differ {chance} over {self.many.tasks} tasks (Friedman p "
            f"{self.many.p:.3g}); {of}."
        )

    def _reach(self) -> str:
        """Say so where even a model that wins everywhere could not be told apart."""
        tested = self.pairs["tasks"][self.pairs["tasks"] > 0]
        most = int(tested.max()) if len(tested) else 0
        if 2.0 ** (1 - most) * len(tested) < ALPHA:
            return ""
        return f", nor could any be: {most} common tasks are too few for {len(tested)} pairs"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it in plain values."""
        rows = self.pairs.astype(object).where(self.pairs.notna(), None).to_dict(orient="records")
        ranks = [None if np.isnan(rank) else float(rank) for rank in self.many.ranks]
        test = [None if np.isnan(each) else each for each in (self.many.statistic, self.many.p)]
        return {
            "models": self.models,
            "ranks": ranks,
            "friedman": {"statistic": test[0], "p": test[1], "tasks": self.many.tasks},
            "verdict": self.sentence,
            "cliques": self.cliques,
            "pairs": rows,
            "notes": self.notes,
        }

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write ``contests_pairs.csv`` and ``contests_models.csv``, and return the files."""
        ranks = pd.DataFrame({"model": self.models, "rank": self.many.ranks})
        ranks["cliques"] = ["".join(self._letters(m)) for m in range(len(self.models))]
        tables = {"pairs": self.pairs, "models": ranks.iloc[self.many.order]}
        paths = {name: Path(folder) / f"contests_{name}.csv" for name in tables}
        for name, table in tables.items():
            write_atomic(paths[name], table.to_csv(index=False, lineterminator="\n"))
        return list(paths.values())

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>{self.pairs.to_html(index=False)}"

    def _letters(self, model: int) -> list[str]:
        return [f"[{i + 1}]" for i, group in enumerate(self.many.cliques) if model in group]


def contests(values: pd.DataFrame | np.ndarray, *, resamples: int = RESAMPLES) -> Contests:
    """Return every pair of models tested on the tasks both have.

    Values are models × tasks, higher is better, of scales that can be compared; NaN is missing.

    >>> found = contests(pd.DataFrame([[0.9, 0.8], [0.5, 0.6]], index=["one", "other"]))
    >>> found.pairs[["first", "second", "wins"]].values.tolist(), found.cliques
    ([['one', 'other', 2]], [['one', 'other']])
    """
    frame = pd.DataFrame(values).astype(float)
    if len(frame) < 2:
        raise DataError(f"it takes two models to compare; here is {len(frame)}.")
    models = [str(name) for name in frame.index]
    found = many(frame.to_numpy())
    pairs = _pairs(frame.to_numpy(), found, resamples)
    named = {name: np.array(models, dtype=object)[pairs[name]] for name in ("first", "second")}
    return Contests(models, frame, found, pairs.assign(**named))


# -- of runs --------------------------------------------------------------------------------


def contest_runs(runs: Any, models: Sequence[str] = (), *, metric: str | None = None) -> Contests:
    """Return the contests of the models of some runs, all or those named, as a board has them.

    Scores are put on one scale task by task, on which 1 is the best model and 0 the worst. A failed
    fold is the worst of its fold. Who takes fewer than three tasks is left out where others take
    more.
    """
    given = gather(runs)
    cells = make_cells(given, _metrics(given, metric))
    notes: list[str] = []
    if models:
        cells = _named(cells, list(dict.fromkeys(models)), notes)
    compared = compare(cells, RULES[0])
    few = ranked_on_few(compared.takes) | ~compared.takes.any(axis=1)
    if few.any():
        names = ", ".join(np.array(cells.models, dtype=object)[few])
        notes.append(f"Left out for too few tasks: {names}.")
    values = pd.DataFrame(comparable(compared), index=cells.models, columns=cells.tasks)[~few]
    found = contests(values.dropna(axis=1, how="all"))
    notes.append("Differences are shares of a task's spread: 1 is its best model, 0 its worst.")
    return replace(found, notes=[*notes, *_absent(found.values)])


def comparable(compared: Compared) -> np.ndarray:
    """Return models × tasks on one scale, on which mean ranks are those of the board.

    1 is the best model of a task and 0 the worst. A task on which all are equal stays, with zeros,
    and a model without any score on a task that it takes stands below the worst.
    """
    values = normalise(compared)
    for t, table in enumerate(compared.values):
        who = compared.takes[:, t]
        if who.sum() > 1:
            values[who & np.isnan(values[:, t]), t] = 0.0
            values[who & np.isnan(table).all(axis=1), t] = -1e-6
    return values


def _metrics(given: Gathered, metric: str | None) -> dict[str, str]:
    """Return the metric of each task: its own, or this one where it was measured."""
    if metric is None:
        return given.metrics
    measured = given.scores.loc[given.scores["metric"] == metric, "task"]
    if not len(measured):
        known = sorted(set(given.scores["metric"]))
        hint = did_you_mean(metric, known) or f" There are: {', '.join(known)}."
        raise DefinitionError(f'no task has the metric "{metric}".{hint}')
    return dict.fromkeys(dict.fromkeys(measured), metric)


def _named(cells: Cells, models: Sequence[str], notes: list[str]) -> Cells:
    """Return the cells of these models; of several runs of one, of the newest that has a score."""
    place = np.empty((len(models), len(cells.tasks)), dtype=np.intp)
    for m, name in enumerate(models):
        runs = [each for each in cells.models if each == name or each.startswith(f"{name} (")]
        if not runs:
            raise DefinitionError(unknown_model(name, cells.models, "the runs have"))
        if len(runs) > 1:
            said = "of each task the newest that has a score counts"
            notes.append(f"{name} has {len(runs)} runs: {said}.")
        # the stamps of runs stand in their names, so that the last is the newest
        rows = np.array([cells.models.index(each) for each in sorted(runs, reverse=True)])
        scored, takes = cells.states[rows] == OK, cells.takes[rows]
        place[m] = rows[np.where(scored.any(axis=0), scored.argmax(axis=0), takes.argmax(axis=0))]
    tasks = np.arange(len(cells.tasks))
    return replace(
        cells,
        models=list(models),
        means=cells.means[place, tasks],
        folds=[table[place[:, t]] for t, table in enumerate(cells.folds)],
        tried=[table[place[:, t]] for t, table in enumerate(cells.tried)],
        takes=cells.takes[place, tasks],
        states=cells.states[place, tasks],
    )


def _absent(table: pd.DataFrame) -> list[str]:
    missing = int(table.isna().to_numpy().sum())
    if not missing:
        return []
    return [
        f"{missing} of {table.size} cells are empty: a pair is tested on the tasks that both have, "
        f"all models at once on those that all have."
    ]


# -- all pairs ------------------------------------------------------------------------------


def _pairs(values: np.ndarray, found: Many, resamples: int) -> pd.DataFrame:
    """Return a row per pair, as places of the models, the better ranked first."""
    ranked = values[found.order]
    rng = np.random.default_rng(SEED)
    tasks = values.shape[1]
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=resamples).astype(float)
    parts = []
    for one, other, apart in paired_blocks(ranked):
        first, second = found.order[one], found.order[other]
        tested = wilcoxon(apart)
        low, high = _bounds(apart, weights)
        signs = [(apart > 0).sum(axis=1), (apart == 0).sum(axis=1), (apart < 0).sum(axis=1)]
        columns = (
            *(first, second, tested.tasks, found.difference[first, second], low, high),
            *(found.raw[first, second], found.pairs[first, second], found.raw[first, second]),
            *(*signs, tested.effect, superiority(apart)),
        )
        parts.append(pd.DataFrame(dict(zip(COLUMNS, columns, strict=True))))
    table = pd.concat(parts, ignore_index=True)
    return table.assign(p_bh=benjamini_hochberg(table["p"]))


def _bounds(apart: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the interval of each pair's mean difference over resampled tasks; NaN of one task."""
    known = ~np.isnan(apart)
    whole, few = bool(known.all()), known.sum(axis=1) < 2
    with threadpool_limits(1), np.errstate(invalid="ignore", divide="ignore"):
        total = weights @ np.where(known, apart, 0.0).T
        means = total / (weights.shape[1] if whole else weights @ known.T.astype(float))
    means[:, few] = 0.0
    cut = np.quantile if whole else np.nanquantile
    bounds = cut(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return np.where(few, np.nan, bounds)
