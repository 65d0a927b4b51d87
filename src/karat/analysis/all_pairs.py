"""Every pair of many models tested over their common tasks, and groups that do not differ.

The same tests decide the letters of a leaderboard, the diagrams and the report.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.analysis import all_pairs_wording
from karat.analysis.item_tests import Separation
from karat.analysis.leaderboard import TaskTests, connected, enough_tasks, find_these_tasks
from karat.analysis.score_matrix import RULES, RankedScores, apply_missing_rule, normalize
from karat.core.metric_names import recorded_metric
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.output.result import Result, plain_value
from karat.output.table import Table
from karat.results.clusters import cluster_scores, unit_notes
from karat.results.load import Cells, Gathered, choose_metric, gather_scores, make_cells
from karat.results.pooling import DOT
from karat.results.run import Run
from karat.results.selection import unknown_model
from karat.stats.paired_tests import (
    ALPHA,
    CONFIDENCE,
    FRIEDMAN,
    WILCOXON,
    benjamini_hochberg,
    corrected_t,
    holm,
    mean_of,
    omnibus_name,
    paired_blocks,
    rank_tasks,
    skillings_mack,
    superiority,
    wilcoxon,
)
from karat.stats.pairwise_ranks import mean_ranks
from karat.stats.ranking import FEWEST_TASKS, letters_of, rank_each, ranked_on_few, step_down

#: tests over tasks mean nothing for fewer of them
FEWEST_BLOCKS = 2
#: why a test over tasks was not made
TOO_FEW = "too few tasks"
NEEDS_MORE = {
    "max-t": TOO_FEW,
    "wilcoxon": f"{TOO_FEW} for Wilcoxon's test, which needs {FEWEST_TASKS}; without --test "
    "wilcoxon, two to five tasks are tested on their items and folds",
}
#: tests of all pairs, and their names
TESTS = {"max-t": "max-T over tasks", "wilcoxon": WILCOXON}
COLUMNS = (
    "first",
    "second",
    "tasks",
    "difference",
    "difference_low",
    "difference_high",
    "p",
    "test",
    "p_wilcoxon",
    "p_holm",
    "p_bh",
    "wins",
    "ties",
    "losses",
    "rank_biserial",
    "superiority",
)


@dataclass(frozen=True)
class ManyModels:
    """Many models on many tasks: a test of all models, a test of all pairs, cliques.

    Attributes
    ----------
    statistic, p, tasks
        Chi-square of Skillings and Mack, its p, and the number of tasks used: those with values of
        two or more models. Without missing values it is Friedman's; NaN for fewer than two tasks.
    ranks, order
        Mean rank of each model by pairs (1 is best), and the models, best first.
    pairs
        p of each pair, corrected for all pairs; 1 on the diagonal, NaN where it is not tested.
    difference
        Mean of row minus column over the shared tasks; positive where the row is better.
    cliques
        Maximal groups of two or more models of which no pair differs significantly at ``alpha``;
        best first.
    omnibus, test
        Names of the test of all models, and of that of the pairs, empty if none was tested.
    letters
        The letters of each model's cliques, empty if it was not tested.
    claim
        What the test of the pairs of few tasks is about: ``"learners"``, or the models ``"as
        fitted"``; empty for a test over many tasks.
    """

    statistic: float
    p: float
    tasks: int
    ranks: np.ndarray
    order: np.ndarray
    pairs: np.ndarray
    difference: np.ndarray
    cliques: list[list[int]]
    alpha: float = ALPHA
    omnibus: str = FRIEDMAN
    test: str = WILCOXON
    letters: tuple[str, ...] = ()
    claim: str = ""


@dataclass(frozen=True, eq=False, repr=False)
class AllPairs(Result):
    """Many models, each pair of them compared.

    Attributes
    ----------
    models
        Their names, in the order of the arrays in ``many``.
    values
        Models × tasks, higher is better, NaN is missing.
    many
        The test of all models, ranks, corrected p of all pairs, cliques.
    pairs
        One row per pair, the better ranked first: the number of common ``tasks``, those with scores
        of both, and of those that one ``failed``, which count as lost; mean ``difference`` over
        these tasks with a 95 % t interval, ``p`` corrected for all pairs and the ``test`` that made
        it (NaN and empty if the pair was not tested), p of Wilcoxon's test, raw and corrected after
        Holm and after Benjamini and Hochberg (NaN for fewer than two tasks), wins, ties,
        losses and effect sizes.
    notes
        What was left out and why.
    why
        Why no pair was tested, such as "too few tasks"; empty if one was.
    """

    models: list[str]
    values: pd.DataFrame
    many: ManyModels
    pairs: pd.DataFrame
    notes: list[str] = field(default_factory=list)
    why: str = ""

    csv_prefix: ClassVar[str] = "all"
    hidden: ClassVar[tuple[str, ...]] = ("values", "many", "why")

    @property
    def cliques(self) -> list[list[str]]:
        """Groups of models, best first, of which no pair differs significantly."""
        return [[self.models[m] for m in group] for group in self.many.cliques]

    @property
    def sentence(self) -> str:
        """The result in one sentence."""
        return all_pairs_wording.all_pairs_sentence(self)

    def tables(self) -> list[Table]:
        """Return the models, best first, with the letters of their groups."""
        return [all_pairs_wording.all_pairs_table(self)]

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return the pairs, and the models with their ranks and cliques."""
        ranks = pd.DataFrame({"model": self.models, "rank": self.many.ranks})
        ranks["cliques"] = [
            "".join(f"[{i + 1}]" for i, group in enumerate(self.many.cliques) if m in group)
            for m in range(len(self.models))
        ]
        return {"pairs": self.pairs, "models": ranks.iloc[self.many.order]}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        many = self.many
        friedman = {"test": many.omnibus, "statistic": many.statistic, "p": many.p}
        return {
            **super().to_dict(),
            "ranks": plain_value(many.ranks),
            "friedman": None if np.isnan(many.p) else {**friedman, "tasks": many.tasks},
            "verdict": self.sentence,
            "procedure": many.test,
            "claim": many.claim,
            "not_tested": self.why,
            "cliques": self.cliques,
        }


def compare_pairs(values: pd.DataFrame | np.ndarray, test: str = "max-t") -> AllPairs:
    """Return every pair of models tested on the tasks that both have.

    Values are models × tasks on one scale, higher is better; NaN is missing. Pairs with fewer than
    six shared tasks are not tested.

    >>> frame = pd.DataFrame([[0.9, 0.8, 0.7] * 2, [0.5, 0.6, 0.6] * 2], index=["one", "other"])
    >>> found = compare_pairs(frame)
    >>> found.pairs[["first", "second", "wins", "p"]].values.tolist(), found.cliques
    ([['one', 'other', 6, 0.03125]], [])
    """
    frame = pd.DataFrame(values).astype(float)
    mean = mean_ranks(rank_tasks(frame.to_numpy()))
    return _all_pairs(frame, mean, separate(frame.to_numpy(), test=test))


def _all_pairs(frame: pd.DataFrame, mean: np.ndarray, separation: Separation) -> AllPairs:
    if len(frame) < 2:
        raise DataError(f"a comparison needs at least 2 models, got {len(frame)}.")
    models = [str(name) for name in frame.index]
    many = compare_models(frame.to_numpy(), mean, separation)
    pairs = _pairs(frame.to_numpy(), many)
    named = {name: np.array(models, dtype=object)[pairs[name]] for name in ("first", "second")}
    return AllPairs(models, frame, many, pairs.assign(**named), why=separation.why)


def compare_models(
    values: Any, mean: np.ndarray | None = None, separation: Separation | None = None
) -> ManyModels:
    """Return the tests of all models and of all pairs, with letters and cliques.

    ``values`` are models × tasks on one scale, higher is better, NaN is missing; ``mean`` is the
    mean rank of each model, default: of the values. ``separation`` is the test of the pairs;
    default: step-down max-T.

    >>> found = compare_models([[0.9, 0.8, 0.7] * 3, [0.5, 0.6, 0.6] * 3, [0.1, 0.2, 0.3] * 3])
    >>> found.statistic, found.order.tolist(), found.letters
    (18.0, [0, 1, 2], ('a', 'b', 'c'))
    """
    table = np.asarray(values, dtype=float)
    mean = mean_ranks(rank_tasks(table)) if mean is None else mean
    separation = separate(table) if separation is None else separation
    # models of equal rank are ordered by their values, not by their position
    order = np.lexsort((-mean_of(table), np.where(np.isnan(mean), np.inf, mean)))
    letters = letters_of(mean, separation.p)
    statistic, p, tasks = skillings_mack(table)
    if tasks < FEWEST_BLOCKS:
        statistic = p = np.nan
    return ManyModels(
        statistic=statistic,
        p=p,
        tasks=tasks,
        ranks=mean,
        order=order,
        pairs=separation.p,
        difference=_differences(table),
        cliques=letter_groups(letters, order),
        omnibus=omnibus_name(table),
        test=separation.test,
        letters=tuple(letters),
        claim=separation.claim,
    )


def separate(
    values: np.ndarray, ranks: np.ndarray | None = None, test: str = "max-t"
) -> Separation:
    """Return which models differ over tasks.

    ``values`` are models × tasks on one scale, higher is better, ``ranks`` their ranks by task. A
    pair that shares fewer than six tasks is not tested.

    >>> separate(np.array([[0.9] * 5, [0.5] * 5])).why
    'too few tasks'
    """
    if test not in TESTS:
        hint = did_you_mean(str(test), TESTS)
        raise DefinitionError(f"test must be one of {', '.join(TESTS)}, got {test!r}.{hint}")
    if test == "wilcoxon":
        p = _wilcoxon_holm(values)
    else:
        p = step_down(rank_tasks(values) if ranks is None else ranks)
    tested = (~np.isnan(p) & ~np.eye(len(p), dtype=bool)).any()
    return Separation(p, TESTS[test]) if tested else Separation(p, why=NEEDS_MORE[test])


def _wilcoxon_holm(table: np.ndarray) -> np.ndarray:
    """Return Wilcoxon's p after Holm; NaN where a pair shares too few tasks."""
    corrected = np.eye(len(table))
    for one, other, apart in paired_blocks(table):
        tested = wilcoxon(apart)
        p = np.where(tested.tasks < FEWEST_TASKS, np.nan, tested.p)
        corrected[one, other] = corrected[other, one] = p
    upper = np.triu_indices(len(table), 1)
    corrected[upper] = corrected[upper[::-1]] = holm(corrected[upper])
    return corrected


def _differences(table: np.ndarray) -> np.ndarray:
    """Return the mean difference of each pair over its shared tasks."""
    difference = np.zeros((len(table), len(table)))
    for one, other, apart in paired_blocks(table):
        mean = mean_of(apart)
        difference[one, other], difference[other, one] = mean, -mean
    return difference


def letter_groups(letters: Sequence[str], order: Sequence[int] | np.ndarray) -> list[list[int]]:
    """Return the models of each letter that two or more share, in this order.

    >>> letter_groups(["a", "ab", "b", "c"], [0, 1, 2, 3])
    [[0, 1], [1, 2]]
    """
    groups: dict[str, list[int]] = {}
    for m in order:
        for letter in re.findall(r"[a-z]|\[\d+\]", letters[m]):
            groups.setdefault(letter, []).append(int(m))
    return [group for group in groups.values() if len(group) > 1]


# -- of runs --------------------------------------------------------------------------------


def compare_all(
    runs: pd.DataFrame | Mapping[str, Any] | Run | str | Path | Iterable[Run | str | Path],
    *,
    models: Sequence[str] = (),
    metric: str | None = None,
    test: str = "max-t",
    pool: str = "variant",
    cluster: str | None = None,
) -> AllPairs:
    """Test which of many models differ, over all tasks.

    A test of all models (Friedman, or Skillings-Mack where scores are missing), then one of each
    pair, which needs six shared tasks. A single task is tested on the items of its stored
    predictions, or over its folds. For differences, scores are scaled task by task: 1 is the best
    model, 0 the worst. A failed fold counts as the worst of its fold. Models with fewer than three
    tasks are left out where others have more.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders, folders of runs, or a mapping from names of models to
        what scikit-learn's ``cross_validate`` returned (or by model and task), or ``cv_results_``.
    models
        Names of the models to compare, with all variants or runs of a name. Default: all.
    metric
        Compare on this metric only. Default: each task's primary metric.
    test
        ``"max-t"``: step-down max-T on paired rank differences, as the letters of the leaderboard.
        ``"wilcoxon"``: Wilcoxon's signed-rank test of the scaled scores, corrected after Holm.
    pool
        Which runs are one model, as in ``leaderboard``.
    cluster
        A column kept with the items, such as an author: items with the same value belong together,
        and tests on items treat these clusters as the unit. Default: the declared groups.

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
    gathered = cluster_scores(gather_scores(runs, pool), cluster)
    chosen = gathered.metrics
    if metric is not None:
        rows = gathered.scores
        name = recorded_metric(metric, rows["metric"])
        chosen = choose_metric(name, rows["task"][rows["metric"] == name], rows["metric"])
    cells = make_cells(gathered, chosen)
    notes: list[str] = []
    if models:
        cells = _named(cells, models)
    cells = _largest_group(gathered, cells, notes)
    compared = apply_missing_rule(cells, RULES[0]).by_name()
    few = _takes_few(compared.takes, cells.models)
    if few.any():
        names = ", ".join(np.array(cells.models, dtype=object)[few])
        notes.append(f"Left out for too few tasks: {names}.")
    values = pd.DataFrame(scale_scores(compared), index=cells.models, columns=compared.tasks)[~few]
    tests = TaskTests(gathered, chosen)
    tested = separate_models(compared, tests, test)
    separation = replace(tested, p=tested.p[np.ix_(~few, ~few)])
    mean = mean_ranks(rank_each(compared.values, compared.takes))[~few]
    all_pairs = _all_pairs(values.dropna(axis=1, how="all"), mean, separation)
    notes.append("Differences are on a scale on which each task's best model is 1, its worst 0.")
    notes += [*_missing_notes(all_pairs), *_unit_notes(tests)]
    pairs = _count_failed(all_pairs, compared, ~few)
    return replace(all_pairs, pairs=pairs, notes=notes)


def _missing_notes(all_pairs: AllPairs) -> list[str]:
    missing = int(all_pairs.values.isna().to_numpy().sum())
    if not missing:
        return []
    return [
        f"{missing} of {all_pairs.values.size} scores are missing: a pair is tested on the tasks "
        f"that both have; {all_pairs.many.omnibus} tests all models with those that each task has."
    ]


def _unit_notes(tests: TaskTests) -> list[str]:
    """Return what the unit of the tests on items was, if any were made."""
    on_items = {
        task: (test.clusters, test.items) for task, test in tests.made.items() if test.items
    }
    return unit_notes(on_items, tests.given.cluster)


def _largest_group(gathered: Gathered, cells: Cells, notes: list[str]) -> Cells:
    """Return the models that can be compared with each other, and note the other groups."""
    first, *others = connected(gathered, cells).values()
    for group in others:
        names = [cells.models[m] for m in group.models]
        how = f", such as -a {names[0]} -b {names[1]}" if len(names) > 1 else ""
        notes.append(f"On other tasks, compared by name only{how}: {', '.join(names)}.")
    return cells.only(first.tasks, first.models) if others else cells


def _takes_few(takes: np.ndarray, models: Sequence[str]) -> np.ndarray:
    """Return which models take too few tasks to be compared; raise if no two share a task.

    If only one model takes enough, as one with the runs of two suites, the shared tasks count.
    """
    shared = takes[:, takes.sum(axis=0) > 1]
    if not shared.size:
        names = ", ".join(models)
        what = f"{names} share no task" if len(models) > 1 else f"got {names or 'none'}"
        raise DataError(
            f"a comparison needs at least 2 models with a common task, {what}. Run them on the "
            f"same suite into one folder."
        )
    few = ranked_on_few(takes) | ~takes.any(axis=1)
    if (~few).sum() > 1:
        return few
    return ranked_on_few(shared) | ~shared.any(axis=1)


def separate_models(compared: RankedScores, tests: TaskTests, test: str = "max-t") -> Separation:
    """Return which models differ: over tasks, on a few tasks, or on a single one.

    On two to five tasks the means over these tasks are tested, as for a leaderboard's letters.
    ``compared`` has its tasks sorted by name; ``tests`` are those of each task.
    """
    contested = np.flatnonzero(compared.takes.sum(axis=0) > 1)
    if len(contested) == 1:
        return tests.of(compared, int(contested[0]))
    if test == "max-t" and len(contested) and not enough_tasks(compared.takes[:, contested]):
        these = find_these_tasks(compared, tests)
        if these is not None:
            return Separation(these.p, these.test, these.why)
    return separate(scale_scores(compared), rank_each(compared.values, compared.takes), test)


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


def _named(cells: Cells, models: Sequence[str]) -> Cells:
    """Return the cells of these models, with all variants or runs of a name."""
    places: dict[int, None] = {}
    for name in models:
        starts = (f"{name}{DOT}", f"{name} (")
        numbers = [
            m for m, model in enumerate(cells.models) if model == name or model.startswith(starts)
        ]
        if not numbers:
            raise DefinitionError(unknown_model(name, cells.models, "the runs have"))
        places |= dict.fromkeys([cells.models.index(name)] if name in cells.models else numbers)
    return cells.only(range(len(cells.tasks)), list(places))


# -- all pairs ------------------------------------------------------------------------------


def _pairs(values: np.ndarray, many: ManyModels) -> pd.DataFrame:
    """Return a row per pair, as indices of the models, the better ranked first."""
    parts = []
    for one, other, apart in paired_blocks(values[many.order]):
        first, second = many.order[one], many.order[other]
        tested = wilcoxon(apart)
        low, high = _bounds(apart)
        signs = [(apart > 0).sum(axis=1), (apart == 0).sum(axis=1), (apart < 0).sum(axis=1)]
        p = many.pairs[first, second]
        raw = np.where(tested.tasks < FEWEST_BLOCKS, np.nan, tested.p)
        columns = (
            first,
            second,
            tested.tasks,
            many.difference[first, second],
            low,
            high,
            p,
            np.where(np.isnan(p), "", many.test),
            raw,
            raw,
            raw,
            *signs,
            tested.effect,
            superiority(apart),
        )
        parts.append(pd.DataFrame(dict(zip(COLUMNS, columns, strict=True))))
    table = pd.concat(parts, ignore_index=True)
    table.insert(table.columns.get_loc("tasks") + 1, "failed", 0)
    raw = table["p_wilcoxon"]
    return table.assign(p_holm=holm(raw), p_bh=benjamini_hochberg(raw))


def _count_failed(all_pairs: AllPairs, compared: RankedScores, tested: np.ndarray) -> pd.DataFrame:
    """Return the pairs with the tasks that one of the two failed apart from the common ones."""
    failed = [np.isnan(table).all(axis=1) for table in compared.values]
    failures = (np.array(failed).T & compared.takes)[tested]
    takes = compared.takes[tested]
    number_of = {name: m for m, name in enumerate(all_pairs.models)}
    pairs = zip(all_pairs.pairs["first"], all_pairs.pairs["second"], strict=True)
    counts = []
    for one, other in ((number_of[first], number_of[second]) for first, second in pairs):
        counts.append(int(((failures[one] | failures[other]) & takes[one] & takes[other]).sum()))
    tasks = all_pairs.pairs["tasks"] - np.array(counts, dtype=int)
    return all_pairs.pairs.assign(tasks=tasks, failed=counts)


def _bounds(apart: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the t interval of each pair's mean difference; NaN for fewer than two tasks."""
    means = corrected_t(apart, 0.0, CONFIDENCE)
    same = (means.folds > 1) & np.isnan(means.error)
    half = np.where(same, 0.0, means.high - means.mean)
    return means.mean - half, means.mean + half
