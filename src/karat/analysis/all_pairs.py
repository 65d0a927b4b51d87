"""The conclusion of a comparison as a sentence, and how it is printed and written to files.

Many models on many tasks: every pair of them tested, and groups that do not differ.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from karat.analysis.score_matrix import RULES, RankedScores, apply_missing_rule, normalize
from karat.core.files import write_atomic
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

#: a Bayesian probability from here on counts as a conclusion
PROBABLE = 1 - ALPHA
#: with fewer tasks Wilcoxon's p stays above 0.05 even for a win on all: 2 / 2⁵ = 0.0625
FEWEST = 6
UNTOLD = "no significant difference"


@dataclass(frozen=True)
class Sentences:
    """Sentences about two models."""

    first: str
    second: str
    rope: float

    def verdict(self, tasks: pd.DataFrame, overall: Any) -> str:
        """Return the conclusion in one or two sentences."""
        if not overall.tasks:
            return f"{self.first} and {self.second} could not be compared on any task."
        if overall.tasks == 1:
            return self._one(tasks[tasks["folds"] > 0].iloc[0])
        if overall.tasks < FEWEST:
            return f"{self._counts(overall)}. A test over tasks needs at least {FEWEST} tasks."
        return self._many(overall)

    def _one(self, row: pd.Series) -> str:
        if not row["better"]:
            why = "" if not math.isnan(row["p"]) else " (its folds allow no test)"
            return f"{self._none()} on {row['task']}{why}."
        worse = self.second if row["better"] == self.first else self.first
        return (
            f"{row['better']} is better than {worse} on {row['task']} "
            f"({row['metric']} {signed(row['difference'])}, p {format_p(row['p_holm'])})."
        )

    def _many(self, overall: Any) -> str:
        over = f"over {overall.tasks} tasks"
        ahead = overall.rank_biserial > 0
        first, second = (self.first, self.second) if ahead else (self.second, self.first)
        p_ahead = overall.p_better if ahead else overall.p_worse
        beyond = f"by more than {self.rope:g} with probability {chance(p_ahead)}"
        p, significant = format_p(overall.p), bool(overall.p < ALPHA)
        if overall.p_equal >= PROBABLE:
            but = f", though {first} is significantly ahead (p {p})" if significant else ""
            return (
                f"{self.first} and {self.second} are practically equal {over}: within "
                f"{self.rope:g} with probability {chance(overall.p_equal)}{but}."
            )
        if significant:
            return f"{first} is better than {second} {over} (p {p}), {beyond}."
        if p_ahead >= PROBABLE:
            return (
                f"{first} is probably better than {second} {over}, {beyond}, but the difference "
                f"is not significant (p {p})."
            )
        tasks = f"; {self._counts(overall)}" if overall.better + overall.worse else ""
        return f"{self._none()} {over} (p {p}){tasks}."

    def _none(self) -> str:
        return f"{self.first} and {self.second} do not differ significantly"

    def _counts(self, overall: Any) -> str:
        """Return on how many tasks which model is better; the one that leads is named first."""
        if not overall.better + overall.worse + overall.untested:
            return f"{self._none()} on any of {overall.tasks} tasks"
        first, second, wins, losses = self.first, self.second, overall.better, overall.worse
        if losses > wins:
            first, second, wins, losses = second, first, losses, wins
        return f"{first} is significantly better than {second} on " + _listed(
            f"{wins} of {overall.tasks} tasks",
            (losses, f"worse on {losses}"),
            (overall.untold, f"{UNTOLD} on {overall.untold}"),
            (overall.untested, f"{overall.untested} not tested"),
        )


def _listed(first: str, *counted: tuple[int, str]) -> str:
    return ", ".join([first, *(text for count, text in counted if count)])


# -- numbers --------------------------------------------------------------------------------


def signed(value: float) -> str:
    """Return a difference with its sign.

    >>> signed(0.0123), signed(-123.456), signed(0.0)
    ('+0.012', '-123.5', '0.000')
    """
    if math.isnan(value):
        return "–"
    text = format_value(abs(value))
    return text if not float(text) else f"{'-' if value < 0 else '+'}{text}"


def format_value(value: float) -> str:
    """Return a value with three decimals, or four significant digits from 10 on."""
    if math.isnan(value):
        return "–"
    return f"{value:.3f}" if abs(value) < 10 else f"{value:#.4g}".rstrip(".")


def format_p(p: float) -> str:
    """Return p with three decimals.

    >>> p_value(0.0301), p_value(0.00002), p_value(1.0)
    ('0.030', '< 0.001', '1.000')
    """
    return "–" if math.isnan(p) else "< 0.001" if p < 0.0005 else f"{p:.3f}"


def chance(p: float) -> str:
    """Return a probability estimated by sampling, which is never shown as 0 or 1.

    >>> chance(0.97), chance(1.0), chance(0.0)
    ('0.970', '> 0.999', '< 0.001')
    """
    return "> 0.999" if p > 0.9995 else format_p(p)


def interval(value: float, low: float, high: float) -> str:
    """Return a difference with its interval, if it has one."""
    return signed(value) if math.isnan(low) else f"{signed(value)} [{signed(low)}, {signed(high)}]"


# -- tables and files -----------------------------------------------------------------------


def records(table: pd.DataFrame) -> list[dict[Any, Any]]:
    """Return the rows of a table as dictionaries, None for what is missing."""
    return table.astype(object).where(table.notna(), None).to_dict(orient="records")


def write_tables(folder: str | Path, prefix: str, tables: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write tables as ``prefix_name.csv`` into a folder, and return the files."""
    paths = [Path(folder) / f"{prefix}_{name}.csv" for name in tables]
    for path, table in zip(paths, tables.values(), strict=True):
        write_atomic(path, table.to_csv(index=False, lineterminator="\n"))
    return paths


# -- in a shell, in a notebook --------------------------------------------------------------


def task_table(found: Any) -> pd.DataFrame:
    """Return the tasks of a comparison as text; those without any score are left to the notes."""
    rows = found.tasks[found.tasks[["first", "second"]].notna().any(axis=1)]
    tested = zip(rows["better"], rows["folds"], rows["p"].notna(), strict=True)
    arrow = rows["higher_is_better"].map({True: " ↑", False: " ↓"})
    bounds = (rows["difference"], rows["difference_low"], rows["difference_high"])
    return pd.DataFrame(
        {
            "task": rows["task"],
            "metric": rows["metric"] + arrow,
            "first": rows["first"].map(format_value),
            "second": rows["second"].map(format_value),
            "difference": [interval(*each) for each in zip(*bounds, strict=True)],
            "p": rows["p_holm"].map(format_p),
            "better": [name or _undecided(folds, known) for name, folds, known in tested],
        }
    )


def _undecided(folds: int, tested: bool) -> str:
    return "not compared" if not folds else UNTOLD if tested else "not tested"


def overall_lines(found: Any) -> list[str]:
    """Return the results over all tasks, line by line."""
    o = found.overall
    if not o.tasks:
        return []
    counts = _listed(
        f"significantly better on {o.better}, worse on {o.worse}, {UNTOLD} on {o.untold}",
        (o.untested, f"{o.untested} not tested"),
    )
    lines = [f"{o.tasks} of {o.of} tasks: {o.wins} won, {o.ties} tied, {o.losses} lost; {counts}"]
    if o.tasks > 1:
        lines += [
            f"mean gain {interval(o.gain, o.gain_low, o.gain_high)}; Wilcoxon p {format_p(o.p)}",
            f"P(better) {chance(o.p_better)}, P(equal within {found.rope:g}) {chance(o.p_equal)}, "
            f"P(worse) {chance(o.p_worse)}",
            f"effect: rank-biserial {signed(o.rank_biserial)}, probability of superiority "
            f"{o.superiority:.3f}, Cohen's d {signed(o.cohens_d)}",
        ]
    return lines


def repr_text(found: Any) -> str:
    """Return a comparison as text: conclusion, tasks, all tasks together, notes."""
    table = task_table(found).rename(columns={"first": found.first, "second": found.second})
    table = table.map(_printable).rename(columns=_printable)
    parts = [table.to_string(index=False), "\n".join(overall_lines(found))]
    notes = "\n".join(_printable(note) for note in found.notes)
    return "\n\n".join(part for part in (_printable(found.sentence), *parts, notes) if part)


def _printable(text: str) -> str:
    """Return a text without control characters."""
    return "".join(char if char.isprintable() else "\ufffd" for char in text)


def repr_html(found: Any) -> str:
    """Return a comparison as HTML, with all names escaped."""
    heads = ["task", "metric", found.first, found.second, "difference", "p", "better"]
    rows = task_table(found).to_numpy().tolist()
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows
    )
    below = "".join(f"<br>{escape(line)}" for line in [*overall_lines(found), *found.notes])
    return (
        f"<p><strong>{escape(found.sentence)}</strong></p><table><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table><p><small>{below.removeprefix('<br>')}</small></p>"
    )


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
        differ = f"{count} of {len(self.pairs)} pairs differ significantly{self._reach()}"
        if np.isnan(self.many.p):
            return f"{differ} (no Friedman test: no task has a score of every model)."
        differs = "differ" if self.many.p < ALPHA else "do not differ"
        return (
            f"The models {differs} significantly over {self.many.tasks} tasks (Friedman p "
            f"{self.many.p:.3g}); {differ}."
        )

    def _reach(self) -> str:
        """Return a remark where even a model that wins every task could not differ."""
        tested = self.pairs["tasks"][self.pairs["tasks"] > 0]
        most = int(tested.max()) if len(tested) else 0
        if 2.0 ** (1 - most) * len(tested) < ALPHA:
            return ""
        return f"; {len(tested)} pairs need more than {most} common tasks to reach significance"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        ranks = [None if np.isnan(rank) else float(rank) for rank in self.many.ranks]
        test = [None if np.isnan(each) else each for each in (self.many.statistic, self.many.p)]
        return {
            "models": self.models,
            "ranks": ranks,
            "friedman": {"statistic": test[0], "p": test[1], "tasks": self.many.tasks},
            "verdict": self.sentence,
            "cliques": self.cliques,
            "pairs": records(self.pairs),
            "notes": self.notes,
        }

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write ``all_pairs.csv`` and ``all_models.csv``, and return the files."""
        ranks = pd.DataFrame({"model": self.models, "rank": self.many.ranks})
        ranks["cliques"] = ["".join(self._letters(m)) for m in range(len(self.models))]
        tables = {"pairs": self.pairs, "models": ranks.iloc[self.many.order]}
        return write_tables(folder, "all", tables)

    def _repr_html_(self) -> str:
        return f"<p>{escape(self.sentence)}</p>{self.pairs.to_html(index=False)}"

    def _letters(self, model: int) -> list[str]:
        return [f"[{i + 1}]" for i, group in enumerate(self.many.cliques) if model in group]


def compare_pairs(values: pd.DataFrame | np.ndarray, *, resamples: int = RESAMPLES) -> AllPairs:
    """Return every pair of models tested on the tasks that both have.

    Values are models × tasks on one scale, higher is better; NaN is missing.

    >>> found = contests(pd.DataFrame([[0.9, 0.8], [0.5, 0.6]], index=["one", "other"]))
    >>> found.pairs[["first", "second", "wins"]].values.tolist(), found.cliques
    ([['one', 'other', 2]], [['one', 'other']])
    """
    frame = pd.DataFrame(values).astype(float)
    if len(frame) < 2:
        raise DataError(f"a comparison needs at least 2 models, got {len(frame)}.")
    models = [str(name) for name in frame.index]
    found = compare_models(frame.to_numpy())
    pairs = _pairs(frame.to_numpy(), found, resamples)
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
    return replace(found, notes=[*notes, *_missing_note(found.values)])


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


def _missing_note(table: pd.DataFrame) -> list[str]:
    missing = int(table.isna().to_numpy().sum())
    if not missing:
        return []
    return [
        f"{missing} of {table.size} scores are missing: a pair is tested on the tasks that both "
        f"have, Friedman's test uses those that all have."
    ]


# -- all pairs ------------------------------------------------------------------------------


def _pairs(values: np.ndarray, found: ManyModels, resamples: int) -> pd.DataFrame:
    """Return a row per pair, as indices of the models, the better ranked first."""
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


# the name that the report imports
