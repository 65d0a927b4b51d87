"""Smaller suites: the tasks and folds that keep the order of models, tested on other models."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.analysis.score_matrix import RULES, RankedScores, apply_missing_rule, connected_groups
from karat.core.task import Suite
from karat.core.writing import write_output
from karat.errors import DataError, DefinitionError
from karat.ext.decide import shrink_wording
from karat.output.result import Result
from karat.output.table import Table
from karat.results.load import Gathered, gather_scores, make_cells
from karat.results.run import Run
from karat.stats.paired_tests import average_ranks
from karat.stats.pairwise_ranks import mean_ranks
from karat.stats.ranking import rank_each

#: fewest models and tasks: with fewer, the order of models left out cannot be measured
FEWEST_MODELS, FEWEST_TASKS = 6, 6
#: groups of models that are left out in turn
GROUPS = 10
#: random subsets that a selection is compared with, and the seed of these and of the groups
RANDOM, SEED = 200, 0
#: numbers of folds that are tried
FOLDS = (*range(1, 11), 15, 20, 30, 50, 100)


@dataclass(frozen=True, eq=False, repr=False)
class Shrunk(Result):
    """A subset of the jobs of a suite that keeps the order of its models.

    Attributes
    ----------
    suite
        Name of the suite.
    tasks
        The selected tasks, in the order of the selection, with the number of folds of each.
    kept
        Share of pairs of models that are in the same order as with all jobs. Only pairs with a
        model that was left out of the selection count, each model being left out once.
    random
        The same share for random subsets of as many tasks and folds, on average.
    repeatability
        The share of pairs in the same order with the even and with the odd folds of all tasks;
        NaN with one fold.
    jobs, all_jobs
        Number of jobs per model, selected and in all.
    seconds
        Share of the time of all jobs; NaN if it is not recorded.
    models
        The models whose order is kept.
    curve
        ``kept`` by number of ``folds`` and ``tasks``, with the ``jobs``.
    keep_order, all_folds
        The share of pairs that was asked for, and the number of folds of every task.
    notes
        What was left out and why.
    """

    suite: str
    tasks: dict[str, int]
    kept: float
    random: float
    repeatability: float
    jobs: int
    all_jobs: int
    seconds: float
    models: list[str]
    curve: pd.DataFrame
    keep_order: float
    all_folds: dict[str, int]
    notes: list[str] = field(default_factory=list)

    csv_prefix: ClassVar[str] = "shrink"
    hidden: ClassVar[tuple[str, ...]] = ("curve", "all_folds")

    @property
    def sentence(self) -> str:
        """The result in one paragraph."""
        return shrink_wording.shrunk_sentence(self)

    def tables(self) -> list[Table]:
        """Return the selected tasks with their folds."""
        return [shrink_wording.shrunk_table(self)]

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return the selected tasks, and the share of pairs by number of folds and tasks."""
        tasks = pd.DataFrame({"task": list(self.tasks), "folds": list(self.tasks.values())})
        return {"tasks": tasks, "curve": self.curve}

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the curve as plain values; unknown numbers are None."""
        return {**super().to_dict(), "verdict": self.sentence}

    def definition(self, name: str, define: Sequence[str | Path] = ()) -> str:
        """Return a YAML file that defines the selected tasks and folds as a suite."""
        from karat.config.catalog import Catalog

        definitions = Catalog(define).definitions
        missing = [task for task in self.tasks if task not in definitions.names("tasks")]
        if missing:
            raise DefinitionError(
                f'"{self.suite}" cannot be written as a suite: the task "{missing[0]}" is not '
                f"defined. Name a suite that karat run can run, and its files with --define."
            )
        if name in definitions.names("suites"):
            raise DefinitionError(f'the suite "{name}" exists already; choose another name.')
        fewer = {t: k for t, k in self.tasks.items() if k < self.all_folds[t]}
        called = {t: f"{t} ({name})" if t in fewer else t for t in self.tasks}
        lines = [f"# {line}" for line in (*textwrap.wrap(self.sentence, 96), *self.notes)]
        lines += ["suites:", f"  {_quoted(name)}:", f"    description: {_quoted(self._about())}"]
        if self.suite in definitions.names("suites"):
            models = definitions.get("suites", self.suite).get("models") or ()
            lines += [f"    models: [{', '.join(map(_quoted, models))}]"] if models else []
        lines += ["    tasks:", *(f"      - {_quoted(called[task])}" for task in self.tasks)]
        if fewer:
            lines.append("tasks:")
        for task, folds in fewer.items():
            lines.append(f"  {_quoted(called[task])}:")
            lines.append(f"    extends: {_quoted(task)}")
            lines += [f"    called: {_quoted(task)}", f"    max_folds: {folds}"]
        return "\n".join(lines) + "\n"

    def _about(self) -> str:
        return (
            f"{self.jobs} of {self.all_jobs} jobs of {self.suite}, keep_order {self.keep_order:g}, "
            f"measured {self.kept:.4f} on models left out of the selection, random subsets "
            f"{self.random:.4f}, {len(self.models)} models."
        )

    def write(
        self, file: str | Path, name: str | None = None, define: Sequence[str | Path] = ()
    ) -> str:
        """Write the definition of the suite; return its name, by default SUITE-small."""
        named = name or f"{self.suite}-small"
        write_output(Path(file), self.definition(named, define))
        return named


def shrink(
    suite: str | Suite | None,
    runs: pd.DataFrame | Mapping[str, Any] | Run | str | Path | Iterable[Run | str | Path],
    *,
    keep_order: float = 0.95,
    define: Sequence[str | Path] = (),
    pool: str = "variant",
) -> Shrunk:
    """Select few tasks and folds of a suite that keep the order of its models.

    Models are ordered by their mean rank over tasks, as on the leaderboard. Tasks are added one by
    one, each time the one after which the mean ranks have the highest correlation with those of
    all jobs, for every number of folds per task. For each size, the share of pairs of models that
    keep their order is measured on models left out of the selection, in ten groups. Of the sizes
    whose share, and that of all larger ones, is high enough by more than a standard error, the one
    with the fewest jobs is used. Because this choice favors lucky sizes, ``kept`` is measured once
    more on models left out of both the selection and the choice of the size.

    Parameters
    ----------
    suite
        Name of a suite, a suite, or None for all tasks of the runs.
    runs
        Scores of at least six models on at least six tasks, as for ``leaderboard``.
    keep_order
        Share of pairs of models to keep in order, above 0.5 and below 1.
    define
        Files with definitions, as for ``evaluate``.
    pool
        Which runs are one model, as in ``leaderboard``.

    Raises
    ------
    DataError
        If there are too few models or tasks, or no smaller suite keeps the order.
    DefinitionError
        If the suite is unknown or ``keep_order`` is invalid.

    Examples
    --------
    >>> small = karat.shrink("tables", "results", keep_order=0.95)  # doctest: +SKIP
    >>> small.write("small.yaml")  # doctest: +SKIP
    'tables-small'
    """
    if not 0.5 < keep_order < 1:
        raise DefinitionError(f"keep_order must be above 0.5 and below 1, got {keep_order:g}.")
    gathered = gather_scores(runs, pool)
    name, scores, notes = _scores_of(gathered, suite, define)
    matrix, every = _Matrix(scores), np.arange(len(scores.models))
    most, places, curve = _selection(matrix, every, keep_order)
    counts = dict(zip(scores.tasks, matrix.counts.tolist(), strict=True))
    tasks = {scores.tasks[t]: min(most, counts[scores.tasks[t]]) for t in places}
    if len(tasks) < FEWEST_TASKS:
        notes.append(f"Fewer than {FEWEST_TASKS} tasks: models cannot be tested over them.")
    return Shrunk(
        suite=name,
        tasks=tasks,
        kept=_measured(matrix, every, keep_order),
        random=_random(matrix, most, len(places)),
        repeatability=_repeatability(scores),
        jobs=sum(tasks.values()),
        all_jobs=sum(counts.values()),
        seconds=_share_of_time(gathered, scores, tasks),
        models=scores.models,
        curve=curve.drop(columns="lowest"),
        keep_order=keep_order,
        all_folds=counts,
        notes=notes,
    )


def _scores_of(
    gathered: Gathered, suite: str | Suite | None, define: Sequence[str | Path]
) -> tuple[str, RankedScores, list[str]]:
    """Return the name of the suite, the scores to rank, and what is left out."""
    name, tasks = _suite_tasks(gathered, suite, define)
    notes = []
    there = [task for task in tasks if task in gathered.metrics]
    if skipped := len(tasks) - len(there):
        notes.append(f"{skipped} of {len(tasks)} tasks of {name} have no score and are left out.")
    gathered = gathered.only(dict.fromkeys(there, "")) if there else gathered
    _check_enough(len(there), "task", FEWEST_TASKS, name)
    compared = apply_missing_rule(make_cells(gathered, gathered.metrics), RULES[0])
    groups = connected_groups(compared.takes)
    group = groups[0] if groups else None
    models = sorted(group.models if group else [], key=compared.models.__getitem__)
    if others := len(compared.models) - len(models):
        notes.append(f"{others} models share too few tasks with the others and are left out.")
    _check_enough(len(models), "model", FEWEST_MODELS, name)
    places = [t for t in (group.tasks if group else []) if compared.takes[models, t].sum() > 1]
    _check_enough(len(places), "task", FEWEST_TASKS, name)
    return name, compared.only(places, models).by_name(), notes


def _suite_tasks(
    gathered: Gathered, suite: str | Suite | None, define: Sequence[str | Path]
) -> tuple[str, list[str]]:
    """Return the name and tasks of a suite; imported runs may be of a suite that is not defined."""
    from karat.config.catalog import Catalog

    if suite is None:
        return "runs", list(gathered.metrics)
    if isinstance(suite, Suite):
        return suite.name, [task.name for task in suite]
    imported = [run for run, _, _ in gathered.sources if run.about.get("imported")]
    if any(run.about.get("suite") == suite for run in imported):
        return suite, list(gathered.metrics)
    return suite, [task.name for task in Catalog(define).suite(suite)]


def _check_enough(count: int, what: str, fewest: int, name: str) -> None:
    if count < fewest:
        plural = "s" * (count != 1)
        raise DataError(
            f"cannot shrink {name}: the runs have {count} {what}{plural} that can be ranked, and "
            f"at least {fewest} are needed to test a selection on models left out of it. Run more "
            f"{what}s, or name more run folders."
        )


class _Matrix:
    """The ranks of models among some of them, by the first folds of each task."""

    def __init__(self, scores: RankedScores) -> None:
        self.scores = scores
        self.counts = np.array([table.shape[1] for table in scores.values])
        incomplete = any(np.isnan(table).any() for table in scores.values)
        self._complete = not incomplete and bool(scores.takes.all())
        self._means: dict[int, np.ndarray] = {}

    def ranks(self, folds: int, models: np.ndarray) -> np.ndarray:
        """Return models × tasks; NaN where a model does not take a task.

        With fewer takers, the last rank of a task is the number of all models.
        """
        values, takes = self.scores.values, self.scores.takes
        if not self._complete:
            ranks = rank_each([table[models, :folds] for table in values], takes[models])
            takers = (~np.isnan(ranks)).sum(axis=0)
            wider = (len(ranks) - 1) / np.maximum(takers - 1, 1)
            return np.asarray(np.where(takers == len(ranks), ranks, 1 + (ranks - 1) * wider))
        if folds not in self._means:
            means = [table[:, :folds].mean(axis=1) for table in values]
            self._means[folds] = np.array(means).T
        return average_ranks(-self._means[folds][models])

    @property
    def most(self) -> int:
        """The largest number of folds of a task."""
        return int(self.counts.max())


def _mean(ranks: np.ndarray) -> np.ndarray:
    """Return the rank of each model by pairs; the middle rank for a model without one."""
    mean = mean_ranks(ranks)
    return np.where(np.isnan(mean), (len(ranks) + 1) / 2, mean)


def select(ranks: np.ndarray, reference: np.ndarray) -> list[int]:
    """Return all tasks in the order in which they are added.

    Each is the one after which the mean ranks have the highest correlation with the reference.
    ``ranks`` is models × tasks, NaN where a model does not take a task.

    >>> ranks = np.array([[1.0, 3, 1], [2, 2, 3], [3, 1, 2]])
    >>> select(ranks, np.array([1.0, 2, 3]))[0]
    0
    """
    there = ~np.isnan(ranks)
    filled = np.where(there, ranks, 0.0)
    total, count = np.zeros(len(ranks)), np.zeros(len(ranks))
    remaining, order = list(range(ranks.shape[1])), []
    while remaining:
        sums, counts = total[:, None] + filled[:, remaining], count[:, None] + there[:, remaining]
        means = np.where(counts > 0, sums / np.maximum(counts, 1), (len(ranks) + 1) / 2)
        # rounded, so that the order of summation does not decide between equal tasks
        task = remaining.pop(int(np.argmax(_correlation(means, reference).round(12))))
        order.append(task)
        total, count = total + filled[:, task], count + there[:, task]
    return order


def _correlation(means: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return the correlation of each column with the reference; 0 if either is constant."""
    centered, other = means - means.mean(axis=0), reference - reference.mean()
    size = np.sqrt((centered**2).sum(axis=0) * (other**2).sum())
    return np.asarray(np.where(size > 1e-12, other @ centered / np.maximum(size, 1e-12), 0.0))


def order_kept(
    reference: np.ndarray, means: np.ndarray, models: np.ndarray | None = None
) -> tuple[np.ndarray, int]:
    """Return how many pairs of models are in the order of the reference, and the pairs.

    ``means`` are the mean ranks of each model, or of each subset and model. A pair that is tied
    counts half; pairs that are tied in the reference do not count. With ``models`` (true or false
    for each), only pairs with one of these.

    >>> kept, pairs = order_kept(np.array([1.0, 2, 3]), np.array([1.0, 3, 2]))
    >>> float(kept), pairs
    (2.0, 3)
    """
    one, other = np.triu_indices(len(reference), 1)
    true = np.sign((reference[one] - reference[other]).round(9))
    counted = true != 0 if models is None else (true != 0) & (models[one] | models[other])
    one, other, true = one[counted], other[counted], true[counted]
    agreement = true * np.sign((means[..., one] - means[..., other]).round(9))
    return (1 + agreement).sum(axis=-1) / 2, len(true)


def _means(ranks: np.ndarray, order: Sequence[int]) -> np.ndarray:
    """Return tasks × models: the mean ranks over the first tasks of an order."""
    there = ~np.isnan(ranks[:, order])
    count = there.cumsum(axis=1)
    total = np.where(there, ranks[:, order], 0.0).cumsum(axis=1)
    return np.where(count > 0, total / np.maximum(count, 1), (len(ranks) + 1) / 2).T


def _groups(models: np.ndarray) -> list[np.ndarray]:
    """Return random groups of models, each model in one of them."""
    shuffled = np.random.default_rng(SEED).permutation(models)
    count = min(len(models), GROUPS)
    return [np.sort(shuffled[group::count]) for group in range(count)]


def _curve(matrix: _Matrix, folds: int, models: np.ndarray) -> pd.DataFrame:
    """Return the share of pairs kept by number of tasks, on models left out of the selection.

    ``lowest`` is the least share, minus its standard error over the groups of models left out, of
    this and all larger numbers of tasks.
    """
    tasks, groups = len(matrix.counts), _groups(models)
    reference, subset_ranks = _mean(matrix.ranks(matrix.most, models)), matrix.ranks(folds, models)
    agreement, pairs = np.zeros((len(groups), tasks)), np.zeros(len(groups))
    jobs = np.zeros(tasks)
    for number, group in enumerate(groups):
        rest = np.setdiff1d(models, group)
        order = _order(matrix, folds, rest)
        jobs += np.cumsum(np.minimum(matrix.counts[order], folds))
        out = np.isin(models, group)
        agreement[number], pairs[number] = order_kept(reference, _means(subset_ranks, order), out)
    if not pairs.any():
        raise DataError("cannot shrink: all models have the same mean rank.")
    share = agreement.sum(axis=0) / pairs.sum()
    shares = agreement[pairs > 0] / pairs[pairs > 0, None]
    error = shares.std(axis=0, ddof=min(1, len(shares) - 1)) / np.sqrt(len(shares))
    sizes = {"folds": folds, "tasks": np.arange(1, tasks + 1), "jobs": jobs / len(groups)}
    lowest = np.minimum.accumulate((share - error)[::-1])[::-1]
    return pd.DataFrame({**sizes, "kept": share, "lowest": lowest})


def _order(matrix: _Matrix, folds: int, models: np.ndarray) -> list[int]:
    reference = _mean(matrix.ranks(matrix.most, models))
    return select(matrix.ranks(folds, models), reference)


def _selection(
    matrix: _Matrix, models: np.ndarray, keep_order: float
) -> tuple[int, list[int], pd.DataFrame]:
    """Return the folds and tasks with the fewest jobs that keep the order, and all sizes."""
    tried = [k for k in FOLDS if k < matrix.most] + [matrix.most]
    curve = pd.concat([_curve(matrix, k, models) for k in tried], ignore_index=True)
    chosen = _chosen(curve, keep_order, int(matrix.counts.sum()))
    folds = int(chosen["folds"])
    return folds, _order(matrix, folds, models)[: int(chosen["tasks"])], curve


def _measured(matrix: _Matrix, models: np.ndarray, keep_order: float) -> float:
    """Return the share of pairs kept by selections without some models, on those models.

    The number of tasks and folds is chosen without them too.
    """
    reference, agreement, pairs = _mean(matrix.ranks(matrix.most, models)), 0.0, 0
    for group in _groups(models):
        try:
            folds, places, _ = _selection(matrix, np.setdiff1d(models, group), keep_order)
        except DataError:  # without these models, only all jobs keep the order
            folds, places = matrix.most, list(range(len(matrix.counts)))
        means = _mean(matrix.ranks(folds, models)[:, places])
        same, counted = order_kept(reference, means, np.isin(models, group))
        agreement, pairs = agreement + float(same), pairs + counted
    return agreement / pairs


def _chosen(curve: pd.DataFrame, keep_order: float, jobs: int) -> pd.Series:
    """Return the row with the fewest jobs that keeps the order."""
    fewer = curve[curve["jobs"] < jobs]
    enough = fewer[fewer["lowest"] >= keep_order]
    if not len(enough):
        best = fewer.loc[fewer["lowest"].idxmax()]
        raise DataError(
            f"no smaller suite keeps {keep_order:g} of the order of models left out of the "
            f"selection; {best['tasks']:.0f} tasks with up to {best['folds']:.0f} folds, "
            f"{best['jobs']:.0f} of {jobs} jobs, keep {best['kept']:.3f}. Lower --keep-order, or "
            "add runs of more models."
        )
    return enough.sort_values(["jobs", "kept"], ascending=[True, False], kind="stable").iloc[0]


def _random(matrix: _Matrix, folds: int, tasks: int) -> float:
    """Return the share of pairs that random subsets keep, on average."""
    every = np.arange(len(matrix.scores.models))
    reference, subset_ranks = _mean(matrix.ranks(matrix.most, every)), matrix.ranks(folds, every)
    rng = np.random.default_rng(SEED)
    drawn = [
        _mean(subset_ranks[:, rng.permutation(subset_ranks.shape[1])[:tasks]])
        for _ in range(RANDOM)
    ]
    agreement, pairs = order_kept(reference, np.array(drawn))
    return float(agreement.mean() / pairs)


def _repeatability(scores: RankedScores) -> float:
    """Return the share of pairs in the same order with even and with odd folds."""
    several = [t for t, table in enumerate(scores.values) if table.shape[1] > 1]
    if len(several) < FEWEST_TASKS:
        return float("nan")
    halves = [
        _mean(rank_each([scores.values[t][:, half::2] for t in several], scores.takes[:, several]))
        for half in (0, 1)
    ]
    same, pairs = order_kept(*halves)
    return float(same) / pairs if pairs else float("nan")


def _share_of_time(gathered: Gathered, scores: RankedScores, tasks: Mapping[str, int]) -> float:
    """Return the share of the time of all jobs; NaN if it is not recorded."""
    jobs = gathered.jobs[gathered.jobs["task"].isin(scores.tasks)].dropna(subset=["seconds"])
    if not len(jobs) or not jobs["seconds"].sum():
        return float("nan")
    mean = jobs.groupby("task", observed=True)["seconds"].mean()
    counts = {task: table.shape[1] for task, table in zip(scores.tasks, scores.values, strict=True)}
    selected, every = (
        sum(float(mean.get(task, 0.0)) * count for task, count in chosen.items())
        for chosen in (tasks, counts)
    )
    return selected / every if every else float("nan")


def _quoted(text: str) -> str:
    """Return text as a YAML string: JSON's are."""
    return json.dumps(text, ensure_ascii=False)
