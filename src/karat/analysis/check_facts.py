"""What the checks read, their findings, and tests of two models on one task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy

from karat.analysis.formatting import count
from karat.analysis.leaderboard import fold_ratios
from karat.errors import DefinitionError
from karat.metrics.metric import COVERED, MTEB, get_metric
from karat.results.load import (
    OK,
    Cells,
    Gathered,
    columns_of,
    expanded_rows,
    frozen_runs,
    gather_scores,
    make_cells,
)
from karat.results.run import Run
from karat.stats.paired_tests import corrected_t

#: the most severe first
LEVELS = ("error", "warning", "note")
#: models without any information about the items, against which scores are judged
UNINFORMED = {"random", "dummy", "constantpredictor", "constantpredictor_enc"}
#: metrics that are the share of correct answers
SHARES = {"acc", "f1_micro"}


@dataclass(frozen=True)
class Finding:
    """A finding about a model, a task, both, or all runs."""

    code: str
    level: str
    model: str | None
    task: str | None
    message: str
    advice: str


class Findings(list[Finding]):
    """Findings, the most severe first; ``silenced`` counts the silenced ones by code."""

    def __init__(self, found: Iterable[Finding] = (), silenced: Mapping[str, int] | None = None):
        super().__init__(found)
        self.silenced: Counter[str] = Counter(silenced or {})


@dataclass(frozen=True)
class Hit:
    """A place where a rule applies, and its message; ``level`` if it is not the rule's."""

    message: str
    model: str | None = None
    task: str | None = None
    level: str | None = None


@dataclass(frozen=True)
class Rule:
    """A numbered check; ``look`` yields the places where it applies."""

    code: str
    title: str
    level: str
    advice: str
    look: Callable[[Facts], Iterable[Hit]]


@dataclass(frozen=True)
class Job:
    """A job's record, under the leaderboard's names of its model and task, and its run.json."""

    model: str
    task: str
    record: Mapping[str, Any]
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Jobs:
    """The jobs of all runs by column; a record is read when it is needed.

    ``run`` is the place of each job's run in ``sources``, ``row`` that of its record in the run.
    ``late`` are jobs of which a newer one counts.
    """

    sources: list[tuple[Run, str, dict[str, str]]] = field(default_factory=list)
    run: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    model: list[str] = field(default_factory=list)
    task: list[str] = field(default_factory=list)
    fold: list[int | None] = field(default_factory=list)
    late: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, given: Gathered) -> Jobs:
        """Return the jobs of gathered runs; a task that never ran has a job for each fold."""
        made = cls(given.sources)
        for place, (run, model, labels) in enumerate(given.sources):
            columns = columns_of(run)
            tasks, folds = columns.column("task"), columns.column("fold")
            rows: Sequence[int] = range(len(tasks))
            if (expanded := expanded_rows(run, columns)) is not None:
                rows, folds = expanded
                tasks = [tasks[row] for row in rows]
            made.run.extend([place] * len(rows))
            made.row.extend(rows)
            made.model.extend([model] * len(rows))
            made.task.extend([labels.get(task, task) for task in tasks])
            made.fold.extend(folds)
        if late := given.superseded:
            keys = zip(made.run, made.task, made.fold, strict=True)
            made.late.update(at for at, key in enumerate(keys) if key in late)
        return made

    def column(self, key: str) -> list[Any]:
        """Return a value of every job's record, None where it has none."""
        found = [columns_of(run).column(key) for run, _, _ in self.sources]
        return [found[run][row] for run, row in zip(self.run, self.row, strict=True)]

    def counting(self) -> Iterable[int]:
        """Return the places of the jobs that count."""
        every = range(len(self.run))
        return [at for at in every if at not in self.late] if self.late else every

    def having(self, key: str) -> list[int]:
        """Return the places of jobs that count whose value is neither None, 0, nor empty."""
        rows = [set(columns_of(run).rows_with(key)) for run, _, _ in self.sources]
        if not any(rows):
            return []
        return [at for at in self.counting() if self.row[at] in rows[self.run[at]]]

    def __getitem__(self, at: int) -> Job:
        run, _, _ = self.sources[self.run[at]]
        record = columns_of(run).records[self.row[at]]
        if record["fold"] is None:
            record = {**record, "fold": self.fold[at]}
        return Job(self.model[at], self.task[at], record, run.about)


@dataclass(frozen=True)
class Facts:
    """All that the rules read.

    ``tasks`` holds the entries of run.json about each task, ``abouts`` the whole run.json of all
    runs by the model's name on the leaderboard.
    """

    given: Gathered
    jobs: Jobs = field(default_factory=Jobs)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    abouts: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Any, pool: str = "variant") -> Facts:
        """Return the facts of runs, run folders, or a table of scores."""
        if isinstance(runs, pd.DataFrame):
            return cls(gather_scores(runs))
        given = gather_scores(frozen_runs(runs), pool)
        facts = cls(given, Jobs.of(given))
        for run, model, labels in given.sources:
            facts.abouts.setdefault(model, []).append(run.about)
            for task in run.about["tasks"]:
                _merge(facts.tasks.setdefault(labels[task["name"]], {}), task)
        return facts

    def about(self, name: str) -> Mapping[str, Any]:
        """Return the run.json of a model's first run; empty for a table."""
        return next(iter(self.abouts.get(name, ())), {})

    # -- tasks ------------------------------------------------------------------------------

    def counted(self, name: str) -> Iterator[tuple[str, int, int, Any]]:
        """Yield task, count, total and last item of each fact ``[count, total, …]``."""
        for task, about in self.tasks.items():
            found: list[Any] = list(about.get(name) or (0, 0))
            if found[1]:
                yield task, int(found[0]), int(found[1]), found[-1]

    def probe(self, task: str) -> str:
        """Return the name of a task's probe, empty if no run records it."""
        probe = self.tasks.get(task, {}).get("probe") or ""
        return str(probe.get("use", "")) if isinstance(probe, Mapping) else str(probe)

    def tested(self, task: str) -> int:
        """Return the number of distinct test questions of a task, 0 if no run records it."""
        recorded = self.tasks.get(task, {}).get("tested")
        return int(recorded) if recorded else sum(self._questions.get(task, {}).values())

    @cached_property
    def _questions(self) -> dict[str, dict[Any, int]]:
        """The number of test questions of each fold of the first repeat, by task."""
        found: dict[str, dict[Any, int]] = {}
        jobs = self.jobs
        repeats, numbers = jobs.column("repeat"), jobs.column("questions")
        for at in jobs.counting():
            if not repeats[at]:
                found.setdefault(jobs.task[at], {})[jobs.fold[at]] = int(numbers[at] or 0)
        return found

    @cached_property
    def ratios(self) -> dict[str, float]:
        """n_test / n_train of each task's folds; see ``significance.fold_ratio``."""
        tasks = list(self.given.metrics)
        return dict(zip(tasks, fold_ratios(self.given, tasks), strict=True))

    # -- scores -----------------------------------------------------------------------------

    @cached_property
    def cells(self) -> Cells:
        """The scores of models × tasks, each task by its first metric."""
        return make_cells(self.given, self.given.metrics)

    @cached_property
    def place(self) -> dict[str, int]:
        """The index of each task in the cells."""
        return {task: t for t, task in enumerate(self.cells.tasks)}

    def scored(self, task: str, contenders: bool = False) -> np.ndarray:
        """Return the indices of models with a score; contenders are not uninformed models."""
        ok = np.flatnonzero(self.cells.states[:, self.place[task]] == OK)
        return ok[self._contenders[ok]] if contenders else ok

    @cached_property
    def _contenders(self) -> np.ndarray:
        """Which models are not uninformed."""
        names = [self.called(m).lower() for m in range(len(self.cells.models))]
        return np.array([name not in UNINFORMED for name in names], dtype=bool)

    def rivals(self, task: str) -> np.ndarray:
        """Return the contenders, the best first; of several runs of a model only the best."""
        models = self.scored(task, contenders=True)
        turned = np.nanmean(self.cells.folds[self.place[task]][models], axis=1)
        first: dict[str, int] = {}
        for m in models[np.argsort(-turned, kind="stable")]:
            first.setdefault(self.called(m), int(m))
        return np.array(list(first.values()), dtype=int)

    def called(self, model: int) -> str:
        """Return a model's own name, without the label of its variant or run."""
        name = self.cells.models[model]
        return str(self.about(name).get("model", name))

    def score(self, model: int, task: str) -> str:
        """Return a mean score with four digits."""
        return f"{self.cells.means[model, self.place[task]]:.4g}"


def _merge(known: dict[str, Any], task: Mapping[str, Any]) -> None:
    """Add the facts of another run about a task; of counts, those of the most questions."""
    for name, value in task.items():
        if name in ("twins", "entities") and value:
            value = max(known.get(name) or value, value, key=lambda counts: counts[1])
        elif name == "tested":
            value = max(known.get(name, 0), value)
        elif name in known:
            continue
        known[name] = value


def plain_metric(name: str) -> str:
    """Return Karat's name of a metric.

    >>> plain_metric("accuracy"), plain_metric("hits@1_covered")
    ('acc', 'hits@1')
    """
    name = name.removesuffix(COVERED)
    return MTEB.get(name, name)


def is_share(metric: str) -> bool:
    """Return whether a metric is the share of correct answers."""
    name = plain_metric(metric)
    return name in SHARES or name.startswith("hits@")


def best_value(metric: str) -> tuple[float, float] | None:
    """Return the best value of a metric and its range; None if it is unbounded."""
    try:
        known = get_metric(metric)
    except DefinitionError:
        return None
    low, high = known.range
    if not np.isfinite([low, high]).all():
        return None
    return (high if known.higher_is_better else low), high - low


#: scores of answers that do not depend on the item
CHANCE = dict.fromkeys(("mcc", "kappa", "r2", "pearson", "spearman", "kendall", "ari", "ami"), 0.0)
CHANCE |= {"auc": 0.5}


def chance_value(facts: Facts, task: str) -> float | None:
    """Return the score of the best constant answer, from the labels of a task; None if unknown."""
    metric = plain_metric(facts.given.metrics[task])
    classes = facts.tasks.get(task, {}).get("classes") or {}
    if metric in SHARES and classes:
        return float(max(classes.values()) / sum(classes.values()))
    if metric == "balacc" and classes:
        return 1 / len(classes)
    return CHANCE.get(metric)


def below(facts: Facts, task: str, value: float) -> np.ndarray:
    """Return which models are significantly below a score: the 95 % interval over folds is.

    With one fold, the interval of a share of correct answers is used; others have none.
    """
    place = facts.place[task]
    sign = 1 if facts.cells.higher[place] else -1
    mean, error, counts = _errors(facts, task, facts.cells.folds[place] - sign * value)
    t = scipy.special.stdtrit(np.maximum(counts - 1, 1), (1 + CONFIDENCE) / 2)
    rows = facts.tested(task)
    by_rows = np.full(len(mean), np.nan)
    if rows and is_share(facts.given.metrics[task]):
        by_rows = scipy.special.ndtri((1 + CONFIDENCE) / 2) * np.full(
            len(mean), np.sqrt(value * (1 - value) / rows)
        )
    return np.asarray(mean + np.where(counts > 1, t * error, by_rows) < 0)


#: confidence of intervals, and power with which a true difference is detected
CONFIDENCE, POWER = 0.95, 0.8


def bounds(facts: Facts, task: str, other: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean difference of each model from another one, and its 95 % interval.

    Differences are taken fold by fold, with the Nadeau-Bengio correction. With one fold, shares of
    correct answers are compared as two independent proportions; other metrics have no interval.
    """
    folds = facts.cells.folds[facts.place[task]]
    mean, error, counts = _errors(facts, task, folds - folds[other])
    # Student's t needs a degree of freedom
    t = scipy.special.stdtrit(np.maximum(counts - 1, 1), (1 + CONFIDENCE) / 2)
    by_rows = scipy.special.ndtri((1 + CONFIDENCE) / 2) * _errors_of_shares(facts, task, other)
    half = np.where(counts > 1, t * error, by_rows)
    return mean, mean - half, mean + half


def detectable(facts: Facts, task: str, model: int, other: int) -> tuple[float, str] | None:
    """Return the smallest difference of two models that a test at 5 % detects with 80 % power.

    By folds and, for shares of correct answers, by rows: the smaller of both, and its basis. None
    if neither can be computed.
    """
    folds = facts.cells.folds[facts.place[task]]
    _, error, counts = _errors(facts, task, folds[[model]] - folds[other])
    freedom = np.maximum(counts - 1, 1)
    t = scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2) + scipy.special.stdtrit(freedom, POWER)
    by_rows = scipy.special.ndtri((1 + CONFIDENCE) / 2) + scipy.special.ndtri(POWER)
    by_rows *= _errors_of_shares(facts, task, other)[model]
    found = [
        (float((t * error)[0]), count(int(counts[0]), "fold")),
        (float(by_rows), count(facts.tested(task), "test row")),
    ]
    return min((each for each in found if not np.isnan(each[0])), default=None)


def _errors(
    facts: Facts, task: str, differences: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean of each row, its standard error (NaN for one fold), and the fold counts."""
    found = corrected_t(differences, facts.ratios[task])
    constant = (found.folds > 1) & np.isnan(found.error)
    return found.mean, np.where(constant, 0.0 * facts.ratios[task], found.error), found.folds


def _errors_of_shares(facts: Facts, task: str, other: int) -> np.ndarray:
    """Return the standard errors of differences of proportions; NaN for other metrics."""
    shares = np.clip(facts.cells.means[:, facts.place[task]], 0, 1)
    rows = facts.tested(task)
    if not rows or not is_share(facts.given.metrics[task]):
        return np.full(len(shares), np.nan)
    spread = shares * (1 - shares)
    return np.asarray(np.sqrt((spread + spread[other]) / rows))
