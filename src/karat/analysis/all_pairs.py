"""Every pair of many models tested over their common tasks, and groups that do not differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from karat.analysis.formatting import records, write_tables
from karat.analysis.score_matrix import RULES, RankedScores, apply_missing_rule, normalize
from karat.errors import DataError, DefinitionError
from karat.results.load import OK, Cells, choose_metric, gather_scores, make_cells
from karat.results.run import Run
from karat.results.selection import unknown_model
from karat.stats.paired_tests import (
    ALPHA,
    CONFIDENCE,
    ManyModels,
    benjamini_hochberg,
    compare_models,
    paired_blocks,
    superiority,
    wilcoxon,
)
from karat.stats.ranking import ranked_on_few

#: resamples of tasks, and their seed
RESAMPLES = 1000
SEED = 0
COLUMNS = (
    *("first", "second", "tasks", "difference", "difference_low", "difference_high"),
    *("p", "p_holm", "p_bh", "wins", "ties", "losses", "rank_biserial", "superiority"),
)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Many models, each pair of them compared.

    Attributes
    ----------
    models
        Their names, in the order of the arrays in ``many``.
    values
        Models × tasks, higher is better, NaN is missing.
    many
        Friedman's test, ranks, corrected p of all pairs, cliques.
    pairs
        One row per pair, the better ranked first: mean ``difference`` over the shared tasks with a
        95 % interval by resampling tasks, p of Wilcoxon's test, raw and corrected after Holm and
        after Benjamini and Hochberg, wins, ties, losses and effect sizes.
    notes
        What was left out and why.
    """

    models: list[str]
    values: pd.DataFrame
    many: ManyModels
    pairs: pd.DataFrame
    notes: list[str] = field(default_factory=list)

    @property
    def cliques(self) -> list[list[str]]:
        """Groups of models, best first, of which no pair differs significantly."""
        return [[self.models[m] for m in group] for group in self.many.cliques]

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        count = int((self.pairs["p_holm"] < ALPHA).sum())
        differ = f"{count} of {len(self.pairs)} pairs differ significantly"
        tested = self.pairs["tasks"][self.pairs["tasks"] > 0]
        most = int(tested.max()) if len(tested) else 0
        if 2.0 ** (1 - most) * len(tested) >= ALPHA:
            # even a model that wins every task could not differ
            differ += f"; {len(tested)} pairs need more than {most} common tasks for significance"
        if np.isnan(self.many.p):
            return f"{differ} (no task has a score of two models)."
        differs = "differ" if self.many.p < ALPHA else "do not differ"
        return (
            f"The models {differs} significantly over {self.many.tasks} tasks ("
            f"{self.many.omnibus} p {self.many.p:.3g}); {differ}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        ranks = [None if np.isnan(rank) else float(rank) for rank in self.many.ranks]
        test = [None if np.isnan(each) else each for each in (self.many.statistic, self.many.p)]
        return {
            "models": self.models,
            "ranks": ranks,
            "friedman": {
                **{"test": self.many.omnibus, "statistic": test[0], "p": test[1]},
                "tasks": self.many.tasks,
            },
            "verdict": self.sentence,
            "cliques": self.cliques,
            "pairs": records(self.pairs),
            "notes": self.notes,
        }

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write ``all_pairs.csv`` and ``all_models.csv``, and return the files."""
        ranks = pd.DataFrame({"model": self.models, "rank": self.many.ranks})
        ranks["cliques"] = [
            "".join(f"[{i + 1}]" for i, group in enumerate(self.many.cliques) if m in group)
            for m in range(len(self.models))
        ]
        tables = {"pairs": self.pairs, "models": ranks.iloc[self.many.order]}
        return write_tables(folder, "all", tables)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>{self.pairs.to_html(index=False)}"


def compare_pairs(values: pd.DataFrame | np.ndarray) -> AllPairs:
    """Return every pair of models tested on the tasks that both have.

    Values are models × tasks on one scale, higher is better; NaN is missing.

    >>> found = compare_pairs(pd.DataFrame([[0.9, 0.8], [0.5, 0.6]], index=["one", "other"]))
    >>> found.pairs[["first", "second", "wins"]].values.tolist(), found.cliques
    ([['one', 'other', 2]], [['one', 'other']])
    """
    frame = pd.DataFrame(values).astype(float)
    if len(frame) < 2:
        raise DataError(f"a comparison needs at least 2 models, got {len(frame)}.")
    models = [str(name) for name in frame.index]
    found = compare_models(frame.to_numpy())
    pairs = _pairs(frame.to_numpy(), found)
    named = {name: np.array(models, dtype=object)[pairs[name]] for name in ("first", "second")}
    return AllPairs(models, frame, found, pairs.assign(**named))


# -- of runs --------------------------------------------------------------------------------


def compare_all(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    *,
    models: Sequence[str] = (),
    metric: str | None = None,
) -> AllPairs:
    """Test which of many models differ, over all tasks.

    Friedman's test of all models, then Wilcoxon's signed-rank test of each pair, corrected after
    Holm. Scores are scaled task by task: 1 is the best model, 0 the worst. A failed fold counts as
    the worst of its fold. Models with fewer than three tasks are left out where others have more.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of runs.
    models
        Names of the models to compare; of several runs of one, the newest with a score is used for
        each task. Default: all, each run by itself.
    metric
        Compare on this metric only. Default: each task's primary metric.

    Returns
    -------
    AllPairs
        Tests of all pairs, ranks, groups of models that do not differ, and notes.

    Raises
    ------
    DataError
        If there are fewer than two models to compare.
    DefinitionError
        If a model or the metric is unknown.

    Examples
    --------
    >>> found = karat.compare_all("results")  # doctest: +SKIP
    >>> found.cliques  # doctest: +SKIP
    """
    given = gather_scores(runs)
    chosen = given.metrics
    if metric is not None:
        rows = given.scores
        measured = dict.fromkeys(rows.loc[rows["metric"] == metric, "task"])
        chosen = choose_metric(metric, measured, rows["metric"])
    cells = make_cells(given, chosen)
    notes: list[str] = []
    if models:
        cells = _named(cells, list(dict.fromkeys(models)), notes)
    compared = apply_missing_rule(cells, RULES[0])
    few = ranked_on_few(compared.takes) | ~compared.takes.any(axis=1)
    if few.any():
        names = ", ".join(np.array(cells.models, dtype=object)[few])
        notes.append(f"Left out for too few tasks: {names}.")
    values = pd.DataFrame(scale_scores(compared), index=cells.models, columns=cells.tasks)[~few]
    found = compare_pairs(values.dropna(axis=1, how="all"))
    notes.append("Differences are on a scale on which each task's best model is 1, its worst 0.")
    missing = int(found.values.isna().to_numpy().sum())
    if missing:
        notes.append(
            f"{missing} of {found.values.size} scores are missing: a pair is tested on the tasks "
            f"that both have; {found.many.omnibus} tests all models with those that each task has."
        )
    return replace(found, notes=notes)


def scale_scores(compared: RankedScores) -> np.ndarray:
    """Return models × tasks on one scale, with the same mean ranks as the leaderboard.

    1 is the best model of a task and 0 the worst. A task on which all are equal has zeros, and a
    model without any score on a task that it takes is ranked below the worst.
    """
    values = normalize(compared)
    for t, table in enumerate(compared.values):
        taking = compared.takes[:, t]
        if taking.sum() > 1:
            values[taking & np.isnan(values[:, t]), t] = 0.0
            values[taking & np.isnan(table).all(axis=1), t] = -1e-6
    return values


def _named(cells: Cells, models: Sequence[str], notes: list[str]) -> Cells:
    """Return the cells of these models; of several runs of one, the newest with a score."""
    place = np.empty((len(models), len(cells.tasks)), dtype=np.intp)
    for m, name in enumerate(models):
        runs = [each for each in cells.models if each == name or each.startswith(f"{name} (")]
        if not runs:
            raise DefinitionError(unknown_model(name, cells.models, "the runs have"))
        if len(runs) > 1:
            notes.append(f"{name} has {len(runs)} runs: the newest with a score is used per task.")
        # time stamps are part of the names of runs, so that the last is the newest
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


# -- all pairs ------------------------------------------------------------------------------


def _pairs(values: np.ndarray, found: ManyModels) -> pd.DataFrame:
    """Return a row per pair, as indices of the models, the better ranked first."""
    ranked = values[found.order]
    rng = np.random.default_rng(SEED)
    tasks = values.shape[1]
    weights = rng.multinomial(tasks, np.full(tasks, 1 / tasks), size=RESAMPLES).astype(float)
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
    """Return each pair's interval of the mean difference over resampled tasks; NaN for one task."""
    known = ~np.isnan(apart)
    whole, few = bool(known.all()), known.sum(axis=1) < 2
    with threadpool_limits(1), np.errstate(invalid="ignore", divide="ignore"):
        total = weights @ np.where(known, apart, 0.0).T
        means = total / (weights.shape[1] if whole else weights @ known.T.astype(float))
    means[:, few] = 0.0
    cut = np.quantile if whole else np.nanquantile
    bounds = cut(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=0)
    return np.where(few, np.nan, bounds)
