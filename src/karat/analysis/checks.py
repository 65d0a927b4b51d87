"""The checks of runs, numbered KRT001 to KRT408: what they read, and the findings of all of them.

A check is a function that yields the places where it applies; ``check_pages`` explains each.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from importlib import resources
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy

from karat.analysis.cluster_check import task_cluster
from karat.analysis.leaderboard import (
    MAX_JOBS,
    TaskTests,
    connected,
    fold_ratios,
    without_eliminated,
)
from karat.analysis.score_matrix import RULES as MISSING_RULES
from karat.analysis.score_matrix import ModelGroup, RankedScores, apply_missing_rule, check_rule
from karat.analysis.skipped_tasks import TaskLevels
from karat.core import registry
from karat.core.formatting import count, format_p, percent
from karat.core.replicates import fit_seed
from karat.errors import FAILURES, DataError, DefinitionError, did_you_mean
from karat.metrics.metric import COVERED, MTEB, get_metric
from karat.output.result import Result
from karat.output.table import Table, text_column
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
from karat.results.pooling import table_target
from karat.results.run import Run
from karat.results.selection import pooled_sides
from karat.stats.paired_tests import ALPHA, corrected_t

#: codes of checks: KRT for built-in ones
CODE = re.compile(r"[A-Z]{2,}\d{3}")
#: the most severe first
LEVELS = ("error", "warning", "note")
#: models without any information about the items, against which scores are judged
UNINFORMED = {"random", "dummy", "constantpredictor", "constantpredictor_enc"}
#: metrics that are the share of correct answers
SHARES = {"acc", "f1_micro"}
#: scores of answers that do not depend on the item
CHANCE = dict.fromkeys(("mcc", "kappa", "r2", "pearson", "spearman", "kendall", "ari", "ami"), 0.0)
#: confidence of intervals, and power with which a true difference is detected
CONFIDENCE, POWER = 0.95, 0.8
#: share of test rows that also occur in training, from which it is reported
LEAKED = 0.01
#: score of a single column from which it predicts the target
GIVEN_AWAY = 0.95
#: share of the largest class from which a constant prediction looks good
LOPSIDED = 0.8
#: metrics that weight all rows equally, whatever their class
HIDING = {"acc", "f1_micro", "f1_weighted"}
#: probes that do not train on the training rows
UNTRAINED = {"similarity", "analogy", "nearest", "same-class", "duplicates"}
#: the encoder of raw features, by modality, which others should beat
RAW = {
    "table": "onehot",
    "text": "tfidf",
    "column": "column-statistics",
    "frame": "column-statistics",
}
#: share of items with the vector of another item, from which it is reported
COLLAPSED = 0.05
#: coverage below which a score is not about the task as a whole
LOW_COVERAGE = 0.9
#: number of tasks in a message
MOST_TASKS = 3
#: ratio of the largest to the smallest norm from which it is reported
UNLIKE = 1_000
#: distance to the best possible value, relative to the metric's range, that counts as there
CEILING = 0.02
#: number and share of models there from which a task is saturated
FEWEST_THERE, PART_THERE = 3, 0.5
#: relative tolerance below which scores are equal
SAME = 1e-6


@dataclass(frozen=True)
class Finding:
    """A finding about a model, a task, both, or all runs.

    Attributes
    ----------
    code, level
        The code of the check, such as ``"KRT001"``, and ``"error"``, ``"warning"`` or ``"note"``.
    model, task
        What it is about; None: all.
    message, advice
        What was found, and what to do.
    """

    code: str
    level: str
    model: str | None
    task: str | None
    message: str
    advice: str

    def __repr__(self) -> str:
        return f"{self.code} {self.level}: {self.message}"


class Findings(list[Finding], Result):
    """Findings, the most severe first.

    Parameters
    ----------
    findings, silenced
        The findings, and the number of silenced ones by code.
    """

    def __init__(
        self, findings: Iterable[Finding] = (), silenced: Mapping[str, int] | None = None
    ) -> None:
        super().__init__(findings)
        self.silenced: Counter[str] = Counter(silenced or {})

    @property
    def sentence(self) -> str:
        """The number of findings of each level, and of those that are ignored."""
        levels = [finding.level for finding in self]
        counts = [count(levels.count(level), level) for level in LEVELS if level in levels]
        ignored = sum(self.silenced.values())
        suffix = f"; {ignored:,} ignored" if ignored else ""
        return f"{', '.join(counts) or 'no findings'}{suffix}."

    def tables(self) -> list[Table]:
        """Return one row per finding."""
        rows = self.csv_tables()["findings"]
        first, *others = (text_column(name, rows[name], right=False) for name in rows)
        return [Table([], first, others, [0], "Findings", [])] if len(rows) else []

    def csv_tables(self) -> dict[str, pd.DataFrame]:
        """Return one row per finding."""
        names = [field.name for field in fields(Finding)]
        rows = pd.DataFrame([asdict(finding) for finding in self], columns=names)
        return {"findings": rows.fillna("")}

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        findings = [asdict(finding) for finding in self]
        return {"sentence": self.sentence, "findings": findings, "silenced": dict(self.silenced)}

    def render(self, form: str = "text") -> str:
        """Return the findings as "text", one per line, or as in other results."""
        if form == "text":
            return "\n".join([*map(repr, self), self.sentence])
        return super().render(form)

    def __repr__(self) -> str:
        return self.render()


@dataclass(frozen=True)
class Hit:
    """A place where a rule applies, and its message; ``level`` if it is not the rule's."""

    message: str
    model: str | None = None
    task: str | None = None
    level: str | None = None


@dataclass(frozen=True)
class Rule:
    """A check under a code; ``look`` yields the places where it applies.

    ``page`` explains it in Markdown; the built-in checks have a file instead.
    """

    code: str
    title: str
    level: str
    advice: str
    look: Callable[[Facts], Iterable[Hit]]
    page: str = ""


@dataclass(frozen=True)
class CheckedJob:
    """A job's record, under the leaderboard's names of its model and task, and its run.json."""

    model: str
    task: str
    record: Mapping[str, Any]
    about: Mapping[str, Any]


@dataclass(frozen=True)
class Jobs:
    """The jobs of all runs by column; a record is read when it is needed.

    ``run`` is the place of each job's run in ``sources``, ``row`` that of its record in the run.
    ``late`` are jobs of which a newer one counts, ``expanded`` runs with a record of several jobs.
    """

    sources: list[tuple[Run, str, dict[str, str]]] = field(default_factory=list)
    run: list[int] = field(default_factory=list)
    row: list[int] = field(default_factory=list)
    model: list[str] = field(default_factory=list)
    task: list[str] = field(default_factory=list)
    fold: list[int | None] = field(default_factory=list)
    late: set[int] = field(default_factory=set)
    expanded: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, gathered: Gathered) -> Jobs:
        """Return the jobs of gathered runs; a task that never ran has a job for each fold."""
        jobs = cls(gathered.sources)
        for number, (run, model, labels) in enumerate(gathered.sources):
            columns = columns_of(run)
            tasks, folds = columns.column("task"), columns.column("fold")
            rows: Sequence[int] = range(len(tasks))
            if (expanded := expanded_rows(run, columns)) is not None:
                rows, folds = expanded
                tasks = [tasks[row] for row in rows]
                jobs.expanded.add(number)
            jobs.run.extend([number] * len(rows))
            jobs.row.extend(rows)
            jobs.model.extend([model] * len(rows))
            jobs.task.extend([labels.get(task, task) for task in tasks])
            jobs.fold.extend(folds)
        if late := gathered.superseded:
            keys = zip(jobs.run, jobs.task, jobs.fold, strict=True)
            jobs.late.update(at for at, key in enumerate(keys) if key in late)
        return jobs

    def column(self, key: str) -> list[Any]:
        """Return a value of every job's record, None where it has none."""
        columns = [columns_of(run).column(key) for run, _, _ in self.sources]
        if not self.expanded:
            return list(chain.from_iterable(columns))
        return [columns[run][row] for run, row in zip(self.run, self.row, strict=True)]

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

    def __getitem__(self, at: int) -> CheckedJob:
        run, _, _ = self.sources[self.run[at]]
        record = columns_of(run).records[self.row[at]]
        if record["fold"] is None:
            record = {**record, "fold": self.fold[at]}
        return CheckedJob(self.model[at], self.task[at], record, run.about)


@dataclass(frozen=True)
class Facts:
    """All that the rules read.

    ``tasks`` holds the entries of run.json about each task, ``abouts`` the whole run.json of all
    runs by the model's name on the leaderboard, ``missing`` its rule for missing scores.
    """

    given: Gathered
    jobs: Jobs = field(default_factory=Jobs)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    abouts: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    missing: str = MISSING_RULES[0]

    @classmethod
    def of(
        cls,
        runs: Any,
        pool: str = "variant",
        metrics: Mapping[str, str] | None = None,
        missing: str = MISSING_RULES[0],
    ) -> Facts:
        """Return the facts of runs, run folders, or a table of scores.

        ``metrics`` and ``missing`` are those of the leaderboard that is shown with the findings.
        """
        table = isinstance(runs, pd.DataFrame)
        gathered = gather_scores(runs if table else frozen_runs(runs), pool)
        gathered = replace(gathered, metrics=gathered.chosen(metrics or {}))
        rule = check_rule("missing", missing, MISSING_RULES)
        if table:
            return cls(gathered, missing=rule)
        facts = cls(gathered, Jobs.of(gathered), missing=rule)
        merged: set[tuple[str, int]] = set()  # runs of one plan share their tasks
        for run, model, labels in gathered.sources:
            facts.abouts.setdefault(model, []).append(run.about)
            for task in run.about["tasks"]:
                key = (labels[task["name"]], id(task))
                if key not in merged:
                    _merge(facts.tasks.setdefault(key[0], {}), task)
                    merged.add(key)
        return facts

    def about(self, name: str) -> Mapping[str, Any]:
        """Return the run.json of a model's first run; empty for a table."""
        return next(iter(self.abouts.get(name, ())), {})

    # -- tasks ------------------------------------------------------------------------------

    def counted(self, name: str) -> Iterator[tuple[str, int, int, Any]]:
        """Yield task, count, total and last item of each fact ``[count, total, …]``."""
        for task, task_facts in self.tasks.items():
            counts: list[Any] = list(task_facts.get(name) or (0, 0))
            if counts[1]:
                yield task, int(counts[0]), int(counts[1]), counts[-1]

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
        fold_questions: dict[str, dict[Any, int]] = {}
        jobs = self.jobs
        repeats, numbers = jobs.column("repeat"), jobs.column("questions")
        for at in jobs.counting():
            if not repeats[at]:
                fold_questions.setdefault(jobs.task[at], {})[jobs.fold[at]] = int(numbers[at] or 0)
        return fold_questions

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
        return ok[self.contenders[ok]] if contenders else ok

    @cached_property
    def contenders(self) -> np.ndarray:
        """Which models are not uninformed."""
        return np.array([name.lower() not in UNINFORMED for name in self._own_names], dtype=bool)

    def rivals(self, task: str) -> np.ndarray:
        """Return the contenders, the best first; of several runs of a model only the best."""
        models = self.scored(task, contenders=True)
        turned = np.nanmean(self.cells.folds[self.place[task]][models], axis=1)
        first: dict[str, int] = {}
        for m in models[np.argsort(-turned, kind="stable")]:
            first.setdefault(self.called(m), int(m))
        return np.array(list(first.values()), dtype=int)

    @cached_property
    def ranked(self) -> RankedScores:
        """The scores that the leaderboard ranks, without models that a race eliminated."""
        gathered = self._tests.given
        return apply_missing_rule(make_cells(gathered, gathered.metrics), self.missing)

    @cached_property
    def _tests(self) -> TaskTests:
        """The tests of the leaderboard by task."""
        gathered = self.given
        with suppress(DataError):  # all models were eliminated
            gathered, _ = without_eliminated(gathered)
        return TaskTests(gathered, gathered.metrics)

    def separated(self, task: str, first: int, second: int) -> tuple[float, str] | None:
        """Return p of two models on a task, and the test: those of the letters of ``by="task"``.

        None if the letters do not test the two.
        """
        names = [self.cells.models[model] for model in (first, second)]
        if task not in self.ranked.tasks or not {*names} <= {*self.ranked.models}:
            return None
        one, other = map(self.ranked.models.index, names)
        separation = self._tests.of(self.ranked, self.ranked.tasks.index(task))
        p = float(separation.p[one, other])
        return None if np.isnan(p) else (p, separation.test)

    def called(self, model: int) -> str:
        """Return a model's own name, without the label of its variant or run."""
        return self._own_names[model]

    @cached_property
    def _own_names(self) -> list[str]:
        return [str(self.about(name).get("model", name)) for name in self.cells.models]

    def score(self, model: int, task: str) -> str:
        """Return a mean score with four digits."""
        return f"{self.cells.means[model, self.place[task]]:.4g}"


def _merge(merged: dict[str, Any], task: Mapping[str, Any]) -> None:
    """Add the facts of another run about a task; of counts, those of the most questions."""
    for name, value in task.items():
        if name in ("duplicate_rows", "entities") and value:
            value = max(merged.get(name) or value, value, key=lambda counts: counts[1])
        elif name == "tested":
            value = max(merged.get(name, 0), value)
        elif name in merged:
            continue
        merged[name] = value


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
        described = get_metric(metric)
    except DefinitionError:
        return None
    low, high = described.range
    if not np.isfinite([low, high]).all():
        return None
    return (high if described.higher_is_better else low), high - low


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
    number = facts.place[task]
    sign = 1 if facts.cells.higher[number] else -1
    mean, error, counts = _errors(facts, task, facts.cells.folds[number] - sign * value)
    t = scipy.special.stdtrit(np.maximum(counts - 1, 1), (1 + CONFIDENCE) / 2)
    rows = facts.tested(task)
    by_rows = np.full(len(mean), np.nan)
    if rows and is_share(facts.given.metrics[task]):
        by_rows = scipy.special.ndtri((1 + CONFIDENCE) / 2) * np.full(
            len(mean), np.sqrt(value * (1 - value) / rows)
        )
    return np.asarray(mean + np.where(counts > 1, t * error, by_rows) < 0)


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

    It is that of shares of correct answers on a single fold, and comes with the number of rows.
    None for other metrics and several folds, over which the leaderboard tests.
    """
    error = float(_errors_of_shares(facts, task, other)[model])
    folds = facts.cells.folds[facts.place[task]][[model, other]]
    if np.isnan(error) or (~np.isnan(folds)).all(axis=0).sum() > 1:
        return None
    quantiles = scipy.special.ndtri((1 + CONFIDENCE) / 2) + scipy.special.ndtri(POWER)
    return float(quantiles * error), count(facts.tested(task), "test row")


def _errors(
    facts: Facts, task: str, differences: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the mean of each row, its standard error (NaN for one fold), and the fold counts."""
    means = corrected_t(differences, facts.ratios[task])
    constant = (means.folds > 1) & np.isnan(means.error)
    return means.mean, np.where(constant, 0.0 * facts.ratios[task], means.error), means.folds


def _errors_of_shares(facts: Facts, task: str, other: int) -> np.ndarray:
    """Return the standard errors of differences of proportions; NaN for other metrics."""
    shares = np.clip(facts.cells.means[:, facts.place[task]], 0, 1)
    rows = facts.tested(task)
    if not rows or not is_share(facts.given.metrics[task]):
        return np.full(len(shares), np.nan)
    spread = shares * (1 - shares)
    return np.asarray(np.sqrt((spread + spread[other]) / rows))


# -- rules ------------------------------------------------------------------------------------


RULES: list[Rule] = []
Look = Callable[[Facts], Iterable[Hit]]


def _rule(head: str, advice: str) -> Callable[[Look], Look]:
    """Register a check; ``head`` is its code, level and title."""
    code, level, title = head.split(" ", 2)

    def register(look: Look) -> Look:
        RULES.append(Rule(code, title, level, advice, look))
        return look

    return register


# -- KRT0: data of a task -----------------------------------------------------------------


@_rule(
    "KRT001 warning Test rows duplicated in the training rows",
    "Drop duplicates, or give the dataset a group so that equal rows stay together.",
)
def _duplicates(facts: Facts) -> Iterator[Hit]:
    for task, leaked, tested, _ in facts.counted("duplicate_rows"):
        if leaked >= LEAKED * tested:
            yield Hit(
                f"{percent(leaked / tested, 0)} of the test rows of {task} also occur in the "
                f"training rows ({leaked:,} of {tested:,}).",
                task=task,
            )


@_rule(
    "KRT002 warning The same entity in train and test",
    "Set the dataset's group to the entity's column, so that it stays in one fold.",
)
def _entities(facts: Facts) -> Iterator[Hit]:
    for task, shared, tested, what in facts.counted("entities"):
        if shared >= LEAKED * tested and facts.probe(task) not in UNTRAINED:
            yield Hit(
                f"{percent(shared / tested, 0)} of the test rows of {task} share their {what} with "
                f"a training row ({shared:,} of {tested:,}).",
                task=task,
            )


@_rule(
    "KRT003 warning One column predicts the target",
    "Find out how the column was made; drop it if it was derived from the target.",
)
def _give_away(facts: Facts) -> Iterator[Hit]:
    for task, task_facts in facts.tasks.items():
        column, score = task_facts.get("give_away") or ("", 0.0)
        if score >= GIVEN_AWAY:
            yield Hit(
                f'Column "{column}" alone predicts the target of {task} ({percent(score, 0)}).',
                task=task,
            )


@_rule(
    "KRT004 warning One class is most of the rows",
    "Compare by balacc, auc or pr_auc: --metric TASK=balacc.",
)
def _imbalance(facts: Facts) -> Iterator[Hit]:
    for task, task_facts in facts.tasks.items():
        classes = task_facts.get("classes") or {}
        metric = facts.given.metrics.get(task, "")
        total = sum(classes.values())
        largest = max(classes, key=lambda label: classes[label], default="")
        if total and plain_metric(metric) in HIDING and classes[largest] >= LOPSIDED * total:
            share = classes[largest] / total
            # a constant prediction has the class's share as precision and a recall of 1
            gained = 2 * share**2 / (1 + share) if "weighted" in metric else share
            yield Hit(
                f'{percent(share, 0)} of {task} is the class "{largest}": always predicting it has '
                f"{metric} {gained:.2f}.",
                task=task,
            )


# -- KRT1: models and their vectors -------------------------------------------------------


@_rule(
    "KRT101 warning Worse than chance",
    "Look for a bug: rows in another order, a lost column, items without a vector.",
)
def _worse_than_random(facts: Facts) -> Iterator[Hit]:
    for task in facts.given.metrics:
        models = facts.scored(task, contenders=True)
        if not len(models):  # the bounds import scipy.special
            continue
        done = set()
        for other in facts.scored(task):
            name = facts.called(other).lower()
            if name not in UNINFORMED:
                continue
            for m in models[bounds(facts, task, other)[2][models] < 0]:
                role = _about(facts, m, "role")
                fair = not role or (role == "predictor") == (name != "random")
                if fair and m not in done:
                    done.add(m)
                    yield _against(facts, task, m, other, "worse than")
        chance = chance_value(facts, task)
        if chance is not None and len(models) == len(facts.scored(task)):
            for m in models[below(facts, task, chance)[models]]:
                yield Hit(
                    f"{facts.called(m)} is worse than chance on {task} "
                    f"({facts.score(m, task)} against {chance:.4g}).",
                    facts.cells.models[m],
                    task,
                )


@_rule(
    "KRT102 note No better than raw features",
    "Report it with the model; more folds may detect a small difference.",
)
def _no_better_than_raw(facts: Facts) -> Iterator[Hit]:
    for task, task_facts in facts.tasks.items():
        raw = RAW.get(str(task_facts.get("modality")))
        if task not in facts.given.metrics or raw is None:
            continue
        others = [m for m in facts.scored(task) if facts.called(m) == raw]
        if not others:
            continue
        mean, low, _ = bounds(facts, task, others[0])
        gain = np.where(np.isnan(low), mean, low)
        for m in facts.scored(task, contenders=True):
            encoder = _about(facts, m, "role") == "encoder"
            if encoder and m not in others and gain[m] <= 0:
                how = "not significantly better than" if mean[m] > 0 else "no better than"
                yield _against(facts, task, m, others[0], how)


@_rule(
    "KRT103 note Constant dimensions",
    "Drop them; many of them suggest dead units or a column that is not read.",
)
def _constant_dimensions(facts: Facts) -> Iterator[Hit]:
    for job, seen in _observed(facts):
        constant, nearly = int(seen.get("constant", 0)), int(seen.get("nearly_dead", 0))
        if constant + nearly:
            width = int(seen.get("dimensions", 0))
            yield Hit(
                f"{job.record['model']} on {job.task}: {constant:,} of {width:,} "
                f"dimensions are constant, {nearly:,} nearly constant.",
                job.model,
                job.task,
            )


@_rule(
    "KRT104 warning Different items with the same vector",
    "Inspect the items: out of vocabulary, truncated to the same prefix, or not read at all?",
)
def _same_vectors(facts: Facts) -> Iterator[Hit]:
    for job, seen in _observed(facts):
        same, compared = int(seen.get("same", 0)), int(seen.get("compared", 0))
        if same and same >= COLLAPSED * compared:
            yield Hit(
                f"{job.record['model']} gives {same:,} of {compared:,} test items of {job.task} "
                f"the vector of another item.",
                job.model,
                job.task,
            )


@_rule(
    "KRT105 warning Low coverage",
    "Compare on the common questions (--on common), or set missing: penalize in the task.",
)
def _low_coverage(facts: Facts) -> Iterator[Hit]:
    jobs = facts.given.jobs.dropna(subset=["coverage"])
    jobs = jobs[jobs["status"] == "ok"].astype({"coverage": float})
    means = jobs.groupby(["model", "task"], sort=False)["coverage"].mean()
    for (model, task), share in means[means < LOW_COVERAGE].items():
        name = facts.about(model).get("model", model)
        yield Hit(f"{name} covers {percent(share, 0)} of the questions of {task}.", model, task)


@_rule(
    "KRT106 note Vectors of very different norms",
    "Scale the vectors to norm 1, or inspect the items with the largest norms.",
)
def _unlike_lengths(facts: Facts) -> Iterator[Hit]:
    for job, seen in _observed(facts):
        short, _, long = seen.get("lengths") or (0.0, 0.0, 0.0)
        if facts.probe(job.task) == "trained" and 0 < short * UNLIKE <= long:
            yield Hit(
                f"{job.record['model']} on {job.task}: the largest norms are "
                f"{long / short:,.0f} times the smallest.",
                job.model,
                job.task,
            )


@_rule(
    "KRT107 warning No item has a vector",
    "Write the names of the vectors and of the task in the same way.",
)
def _unmatched_names(facts: Facts) -> Iterator[Hit]:
    records_of: dict[str, dict[str, Mapping[str, Any]]] = {}
    jobs, unmatched = facts.jobs, facts.jobs.having("unmatched")
    if not unmatched:
        return
    others = set(jobs.counting()).difference(unmatched)
    answered = {(jobs.model[at], jobs.task[at]) for at in others}
    for job in map(jobs.__getitem__, unmatched):
        if (job.model, job.task) not in answered:
            records_of.setdefault(job.model, {}).setdefault(job.task, job.record)
    for model, records in records_of.items():
        tasks = list(records)
        first = records[tasks[0]]
        yield Hit(
            f"{first['model']} has a vector for no item of {_some(tasks)}."
            f"{_name_examples(first['unmatched'])}",
            model,
            tasks[0],
        )


def _name_examples(examples: Mapping[str, Any]) -> str:
    """Return the names of both sides, and the likely cause, as sentences."""
    asked_names, known_names = (
        ", ".join(f'"{name}"' for name in examples[side]) for side in ("asked", "known")
    )
    cause = f" Likely cause: another {examples['cause']}." if examples["cause"] else ""
    return f" The task has {asked_names}; the vectors have {known_names}.{cause}"


@_rule(
    "KRT108 warning Prompts for queries and documents not used",
    "Set prompt: {query: TEXT, document: TEXT} in the model, or accept prompt_name in encode.",
)
def _unused_prompts(facts: Facts) -> Iterator[Hit]:
    alike: dict[str, list[str]] = {}
    jobs, labels = facts.jobs, {model: label for _, model, label in reversed(facts.jobs.sources)}
    status = zip(jobs.model, jobs.task, jobs.column("status"), strict=True)
    scored = {(model, task) for model, task, job_status in status if job_status == "ok"}
    for model in facts.abouts:
        run_facts = facts.about(model)
        names = [str(task["name"]) for task in run_facts["tasks"] if task.get("roles")]
        tasks = [name for name in names if (model, labels[model].get(name, name)) in scored]
        declared = run_facts.get("declared_prompts") or []
        used = any((run_facts.get("prompts") or {}).values())
        if not tasks or used or run_facts.get("role") != "encoder" or model.lower() in UNINFORMED:
            continue
        if declared:
            yield Hit(
                f"{run_facts['model']} has the prompts {', '.join(declared)}, but used none for "
                f"the queries and documents of {_some(tasks)}.",
                model,
                tasks[0],
            )
        else:
            alike.setdefault(_some(tasks), []).append(str(run_facts["model"]))
    for where, models in alike.items():
        yield Hit(
            f"Queries and documents were embedded in the same way, without prompts, on {where}: "
            f"{_some(models)}.",
            level="note",
        )


def _some(names: Sequence[str]) -> str:
    """Return the first names, and the number of the others."""
    more = f" and {len(names) - MOST_TASKS} more" if len(names) > MOST_TASKS else ""
    return ", ".join(names[:MOST_TASKS]) + more


def _against(facts: Facts, task: str, model: int, other: int, how: str) -> Hit:
    return Hit(
        f"{facts.called(model)} is {how} {facts.called(other)} on {task} "
        f"({facts.score(model, task)} against {facts.score(other, task)}).",
        facts.cells.models[model],
        task,
    )


def _about(facts: Facts, model: int, name: str) -> str:
    return str(facts.about(facts.cells.models[model]).get(name, ""))


def _observed(facts: Facts) -> Iterator[tuple[CheckedJob, dict[str, Any]]]:
    """Yield one job of each model and task with statistics of its vectors, and these."""
    first: dict[tuple[str, str], int] = {}
    for at in facts.jobs.having("observed"):
        first.setdefault((facts.jobs.model[at], facts.jobs.task[at]), at)
    for job in map(facts.jobs.__getitem__, first.values()):
        yield job, job.record["observed"]


# -- KRT2: training -----------------------------------------------------------------------


@_rule(
    "KRT201 warning Did not converge",
    "Allow more iterations (max_iter of the head), or scale the vectors.",
)
def _unconverged(facts: Facts) -> Iterator[Hit]:
    text = "{model} on {task}: did not converge in {folds}."
    yield from _count_jobs(facts, text, ("ok",), facts.jobs.having("unconverged"))


@_rule(
    "KRT202 warning Unstable with the seed",
    "Report the mean over several seeds, or make the training more stable.",
)
def _unstable(facts: Facts) -> Iterator[Hit]:
    seeds = facts.given.by_seed
    if not len(seeds):
        return
    primary = seeds["metric"] == seeds["task"].map(facts.given.metrics)
    for (model, task), part in seeds[primary].groupby(["model", "task"], sort=False):
        means = part["mean"].to_numpy()
        if part["count"].min() < 2:
            continue
        between = float(means.std(ddof=1))
        inside = float(np.sqrt(np.mean(part["std"] ** 2)))
        if between > inside and between > 1e-9 * np.abs(means).max():
            yield Hit(
                f"{facts.about(model).get('model', model)} on {task}: {min(means):.4g} to "
                f"{max(means):.4g} with {len(part)} seeds, a standard deviation of {between:.2g}; "
                f"over folds it is {inside:.2g}.",
                model,
                task,
            )


def _count_jobs(
    facts: Facts, text: str, statuses: Sequence[str], wrong: Iterable[int]
) -> Iterator[Hit]:
    """Yield a message per model and task with the number of its jobs that are wrong."""
    jobs, status = facts.jobs, facts.jobs.column("status")
    counts = Counter((jobs.model[at], jobs.task[at]) for at in wrong if status[at] in statuses)
    if not counts:
        return
    places: dict[tuple[str, str], list[int]] = {}
    for at in jobs.counting():
        key = jobs.model[at], jobs.task[at]
        if key in counts and status[at] in statuses:
            places.setdefault(key, []).append(at)
    for (model, task), job_numbers in places.items():
        folds = f"{counts[model, task]} of {count(len(job_numbers), 'fold')}"
        name = jobs[job_numbers[0]].record["model"]
        yield Hit(text.format(model=name, task=task, folds=folds), model, task)


# -- KRT3: what scores cannot distinguish -------------------------------------------------


@_rule("KRT301 note Saturated task", "Do not choose between models by this task; use a harder one.")
def _saturated(facts: Facts) -> Iterator[Hit]:
    for task, metric in facts.given.metrics.items():
        best = best_value(metric)
        models = facts.rivals(task)
        if best is None or not len(models):
            continue
        means = facts.cells.means[models, facts.place[task]]
        there = int((np.abs(best[0] - means) <= (CEILING + SAME) * best[1]).sum())
        if there >= FEWEST_THERE and there >= PART_THERE * len(models):
            yield Hit(
                f"{there} of {count(len(models), 'model')} are within "
                f"{CEILING * best[1]:g} of the best possible {metric} on {task}.",
                task=task,
            )


@_rule(
    "KRT302 note First and second too close to call",
    "Call it a tie, or test on more rows or folds.",
)
def _too_close(facts: Facts) -> Iterator[Hit]:
    for task in facts.given.metrics:
        models = facts.rivals(task)
        if len(models) < 2:
            continue
        first, second = models[:2]
        means = facts.cells.means[[first, second], facts.place[task]]
        gap = abs(float(means[0] - means[1]))
        metric = facts.given.metrics[task]
        best = best_value(metric)
        names = (facts.called(first), facts.called(second))
        if not gap and best is not None and means[0] == best[0]:
            continue  # KRT301 says that all are perfect
        if gap <= SAME * float(np.abs(means).max()):
            if not gap:
                text = f"On {task}, {names[0]} and {names[1]} have the same {metric}."
                yield Hit(text, task=task)
        elif why := _why_too_close(facts, task, (first, second), gap):
            text = f"On {task}, {names[0]} leads {names[1]} by {gap:.2g} ({metric}); {why}."
            yield Hit(text, task=task)


def _why_too_close(facts: Facts, task: str, models: tuple[int, int], gap: float) -> str:
    """Return why a lead does not count: the test of the letters, else what rows can detect.

    Empty if the letters separate the two models, or, without a test, the gap can be detected.
    """
    tested = facts.separated(task, *models)
    if tested is not None:
        p, test = tested
        alone = f"this task alone does not separate them ({test}, p {format_p(p)})"
        return "" if p < ALPHA else alone
    least, basis = detectable(facts, task, *models) or (0.0, "")
    return f"{basis} can detect differences from {least:.2g}" if gap < least else ""


@_rule(
    "KRT305 note The skipped tasks are the hard ones",
    "Run the model on them, or compare on common tasks (--missing exclude).",
)
def _skipped_hard(facts: Facts) -> Iterator[Hit]:
    for group in connected(facts.given, facts.cells).values():
        measured = _levels(facts, group)
        if measured is None:
            continue
        for number, p in enumerate(measured.skipped_low()):
            if p < 1 - CONFIDENCE and measured.judges[number]:
                name, taken = facts.cells.models[group.models[number]], measured.takes[number]
                yield Hit(
                    f"{name} skipped {int((~taken).sum())} of {count(len(taken), 'task')}; the "
                    f"others score lower on them than on those it took (rank sum, "
                    f"p {format_p(p)}).",
                    name,
                )


def _levels(facts: Facts, group: ModelGroup) -> TaskLevels | None:
    """Return how good the models of a group are on its tasks of bounded metrics."""
    metrics = facts.given.metrics
    ends = {t: best_value(metrics[facts.cells.tasks[t]]) for t in group.tasks}
    tasks = [t for t, end in ends.items() if end is not None and facts.cells.scored[t]]
    if not tasks:
        return None
    best, width = np.array([ends[t] for t in tasks], dtype=float).T
    cells = np.ix_(group.models, tasks)
    levels = 1 - np.abs(best - facts.cells.means[cells]) / width
    names = [metrics[facts.cells.tasks[t]] for t in tasks]
    return TaskLevels(levels, facts.cells.takes[cells], names, facts.contenders[group.models])


@_rule(
    "KRT306 note Items that belong together",
    "If new items will have other values of this column, use --cluster COLUMN in compare, "
    "leaderboard and gate, or declare it as the group of the data.",
)
def _clustered_items(facts: Facts) -> Iterator[Hit]:
    if not facts.given.sources or len(facts.given.jobs) > MAX_JOBS:
        return
    sides = {
        s.model: s for s in pooled_sides([r for r, _, _ in facts.given.sources], facts.given.pool)
    }
    for task, metric in facts.given.metrics.items():
        two = [sides[facts.cells.models[m]] for m in facts.rivals(task)[:2]]
        cluster = task_cluster(two, task, metric) if len(two) > 1 else None
        if cluster is not None:
            yield Hit(
                f"On {task}, items with the same {cluster.column} are answered alike (correlation "
                f"{cluster.correlation:.2g}): {cluster.items:,} items in {cluster.clusters:,} "
                f"clusters count as about {cluster.effective:,} (design effect "
                f"{cluster.design_effect:.2g}).",
                task=task,
            )


# -- KRT4: runs that are compared ---------------------------------------------------------


@_rule(
    "KRT401 error Scores changed for an identical job",
    "Find what is not seeded, or depends on the machine or its libraries.",
)
def _changed(facts: Facts) -> Iterator[Hit]:
    repeats: dict[tuple[str, str, bool], list[tuple[CheckedJob, CheckedJob]]] = {}
    for before, job in _repeated_jobs(facts):
        same = job.record["spec"] == before.record["spec"] != ""
        repeats.setdefault((job.model, job.task, same), []).append((before, job))
    for (model, task, same), pairs in repeats.items():
        changes = [
            (changed, before, job)
            for before, job in pairs
            if (changed := _most_changed(before, job)) is not None
        ]
        if not changes:
            continue
        (name, old, new), before, job = max(
            changes, key=lambda change: abs(change[0][2] - change[0][1])
        )
        what = "an identical job" if same else "a repeated job; the newest run counts"
        yield Hit(
            f"{job.record['model']} on {task}, {count(len(pairs), 'repeated job')}, "
            f"{len(changes)} with another score; the largest difference is in fold "
            f"{job.record['fold']}: {name} was {old:.8g} and is {new:.8g} for {what}"
            f"{_environment(before, job)}.",
            model,
            task,
            None if same else "note",
        )


def _repeated_jobs(facts: Facts) -> Iterator[tuple[CheckedJob, CheckedJob]]:
    """Yield each repeated job that succeeded, after the earlier one: the same row, or identical."""
    last: dict[Any, CheckedJob] = {}
    jobs = map(facts.jobs.__getitem__, _jobs_with_equals(facts))
    for job in sorted(jobs, key=lambda job: str(job.record["utc"])):
        spec, seed = job.record["spec"], fit_seed(job.about)
        row = (job.model, job.task, job.record["repeat"], job.record["fold"], seed)
        before = last.get(spec) if spec and spec in last else last.get(row)
        last[row] = job
        if spec:
            last.setdefault(spec, job)
        if before is not None:
            yield before, job


def _jobs_with_equals(facts: Facts) -> list[int]:
    """Return the jobs that succeeded and share a row or a spec with another; late ones first."""
    jobs, status = facts.jobs, facts.jobs.column("status")
    ok = [at for at in (*sorted(jobs.late), *jobs.counting()) if status[at] == "ok"]
    seeds = [str(fit_seed(run.about)) for run, _, _ in jobs.sources]
    table = pd.DataFrame(
        {
            "model": jobs.model,
            "task": jobs.task,
            "repeat": jobs.column("repeat"),
            "fold": jobs.fold,
            "seed": [seeds[run] for run in jobs.run],
        }
    ).iloc[ok]
    spec = pd.Series(jobs.column("spec"), dtype=object).iloc[ok]
    shared = table.duplicated(keep=False) | (spec.duplicated(keep=False) & (spec != ""))
    return [at for at, equal in zip(ok, shared, strict=True) if equal]


def _most_changed(before: CheckedJob, after: CheckedJob) -> tuple[str, float, float] | None:
    """Return the score that differs most: the primary metric's, else the first; None if equal."""
    differences = list(_differing(before.record, after.record))
    primary = [
        difference for difference in differences if difference[0] == after.record["metric"]
    ] or differences[:1]
    return max(primary, key=lambda difference: abs(difference[2] - difference[1]), default=None)


def _differing(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, float, float]]:
    """Yield the scores of a job that differ: name, old and new value."""
    views = [
        {(v["corruption"], v["severity"], v.get("draw", 0)): v["scores"] for v in record["views"]}
        for record in (before, after)
    ]
    for view, scores in views[0].items():
        for name, old in scores.items():
            new = views[1].get(view, {}).get(name)
            if old is None or new is None:
                continue
            if not math.isclose(old, new, rel_tol=SAME, abs_tol=SAME * SAME):
                yield name, old, new


def _environment(before: CheckedJob, after: CheckedJob) -> str:
    """Return which libraries or platforms differ, which are not part of a job's identity."""
    old, new = (
        {
            **(run_facts.get("versions") or {}),
            **{k: run_facts.get(k) for k in ("python", "platform")},
        }
        for run_facts in (before.about, after.about)
    )
    other = [f"{k} {old.get(k)} → {v}" for k, v in new.items() if old.get(k) != v]
    return f" ({', '.join(other)})" if other else ""


@_rule(
    "KRT402 warning Failed jobs",
    "The leaderboard fills them by its missing rule; karat run … --resume --retry-failed.",
)
def _failed(facts: Facts) -> Iterator[Hit]:
    text = "{model} failed in {folds} of {task}."
    status = facts.jobs.column("status")
    failed = [at for at in facts.jobs.counting() if status[at] in FAILURES]
    yield from _count_jobs(facts, text, ("ok", *FAILURES), failed)


@_rule("KRT403 warning Several versions of Karat", "Run all models again with one version.")
def _versions(facts: Facts) -> Iterator[Hit]:
    runs_by, text = _by(facts, "karat")
    if len(runs_by) > 1:
        yield Hit(f"Runs of {len(runs_by)} versions of Karat are compared: {text}.")


@_rule(
    "KRT404 warning Several seeds",
    "Run all models with the same seeds; different seeds make different folds.",
)
def _seeds(facts: Facts) -> Iterator[Hit]:
    runs_by, text = _by(facts, "seed")
    task_seeds: dict[str, set[str]] = {}
    for seed, models in runs_by.items():
        for model in models:
            task_seeds.setdefault(model, set()).add(seed)
    if facts.given.apart and len({frozenset(seeds) for seeds in task_seeds.values()}) > 1:
        yield Hit(f"Models were run with different seeds, so on different folds: {text}.")


def _by(facts: Facts, name: str) -> tuple[dict[str, list[str]], str]:
    """Return the models by a field of their run.json, where it is recorded, and as a text."""
    runs_by: dict[str, list[str]] = {}
    for label, abouts in facts.abouts.items():
        for run_facts in abouts:
            if run_facts.get(name) is not None:
                runs_by.setdefault(str(run_facts[name]), []).append(
                    str(run_facts.get("model", label))
                )
    parts = []
    for value, models in sorted(runs_by.items()):
        names = list(dict.fromkeys(models))
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        parts.append(f"{value} ({', '.join(names[:3])}{more})")
    return runs_by, ", ".join(parts)


@_rule(
    "KRT405 note Several versions of a task's data",
    "Run all models again on one version of the data.",
)
def _other_data(facts: Facts) -> Iterator[Hit]:
    fingerprints: dict[tuple[str, str], dict[str, str]] = {}
    for label, task in facts.tasks.items():
        if task.get("fingerprint"):
            key = (str(task.get("name")), table_target(task))
            fingerprints.setdefault(key, {}).setdefault(str(task["fingerprint"]), label)
    for (name, _), labels in fingerprints.items():
        if len(labels) > 1:
            yield Hit(
                f"{name} was run on {len(labels)} versions of its data, compared separately: "
                f"{', '.join(labels.values())}.",
                task=next(iter(labels.values())),
            )


@_rule(
    "KRT406 error Library functions replaced",
    "Remove the replacement from the model, or run the model alone and in a worker process.",
)
def _replaced(facts: Facts) -> Iterator[Hit]:
    functions: dict[tuple[str, str], set[str]] = {}
    for job in map(facts.jobs.__getitem__, facts.jobs.having("replaced")):
        functions.setdefault((job.model, job.task), set()).update(job.record["replaced"])
    for (model, task), names in functions.items():
        some_names = ", ".join(sorted(names)[:3])
        text = f"{model} on {task}: functions that compute scores were replaced: {some_names}."
        yield Hit(text, model, task)


@_rule(
    "KRT407 warning A task asked in several ways",
    "Run all models with one split, probe and metric, or give the tasks different names.",
)
def _other_questions(facts: Facts) -> Iterator[Hit]:
    questions: dict[tuple[str, str], dict[str, None]] = {}
    for label, task in facts.tasks.items():
        if label not in facts.given.apart:
            questions.setdefault((str(task.get("name")), str(task.get("fingerprint"))), {})[
                label
            ] = None
    for (name, _), labels in questions.items():
        if len(labels) > 1:
            yield Hit(
                f"{name} has {len(labels)} different splits, probes, missing rules or metrics, "
                f"compared separately: {', '.join(labels)}.",
                task=next(iter(labels)),
            )


@_rule(
    "KRT408 warning A score over fewer folds than planned",
    "Use fewer folds or a metric that needs no rare class; karat run … --resume for missing jobs.",
)
def _partial(facts: Facts) -> Iterator[Hit]:
    failed = facts.given.jobs[facts.given.jobs["status"] == "failed"]
    counts = failed.groupby(["model", "task"]).size().to_dict()
    for model, tasks in facts.cells.partial.items():
        for task, (have, planned) in tasks.items():
            if have + counts.get((model, task), 0) < planned:
                name = facts.about(model).get("model", model)
                metric = facts.given.metrics[task]
                text = f"{name} on {task}: {metric} has a value in {have} of {planned} folds."
                yield Hit(text, model, task)


# -- findings -----------------------------------------------------------------------------


def check_runs(
    runs: pd.DataFrame | Run | str | Path | Iterable[Run | str | Path],
    ignore: str | Iterable[str] = (),
    pool: str = "variant",
    *,
    metrics: Mapping[str, str] | None = None,
    missing: str = MISSING_RULES[0],
) -> Findings:
    """Check runs for problems with their data, models, training and statistics.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of runs.
    ignore
        Codes of checks to silence, or prefixes of them: ``"KRT1"`` silences all checks of models.
        A task can silence checks with ``ignore`` in its definition.
    pool
        Which runs are one model, as in ``leaderboard``.
    metrics, missing
        Metrics by task and the rule for missing scores, as in ``leaderboard``: a finding about
        scores is one about those that the leaderboard shows, and never contradicts its letters.

    Returns
    -------
    Findings
        A list of findings, the most severe first, under the leaderboard's names of models and
        tasks; ``silenced`` counts the silenced ones by code.

    Raises
    ------
    DataError
        If no run has a task or metric of ``metrics``.
    DefinitionError
        If a code in ``ignore``, or the rule, is unknown.

    Examples
    --------
    >>> for finding in karat.check_runs("results"):  # doctest: +SKIP
    ...     print(finding.code, finding.message)
    """
    quiet = check_codes(ignore)
    facts = Facts.of(runs, pool, metrics, missing)
    findings, silenced = [], Counter[str]()
    for rule in all_rules():
        for hit in _hits(rule, facts):
            ignored = facts.tasks.get(hit.task or "", {}).get("ignore") or ()
            if rule.code.startswith((*quiet, *ignored)):
                silenced[rule.code] += 1
            else:
                where = (hit.model, hit.task)
                level = hit.level or rule.level
                findings.append(Finding(rule.code, level, *where, hit.message, rule.advice))
    findings.sort(key=lambda finding: (LEVELS.index(finding.level), finding.code))
    return Findings(findings, silenced)


def _hits(rule: Rule, facts: Facts) -> Iterable[Hit]:
    """Return where a rule applies; one of an extension may raise anything, which is a finding."""
    if rule in RULES:
        return rule.look(facts)
    try:
        return list(rule.look(facts))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        return [Hit(f"the check {rule.code} of an extension failed: {reason}.", level="warning")]


def all_rules() -> list[Rule]:
    """Return all checks: the built-in ones, then those of extensions by their codes."""
    added = [registry.checks.get(code) for code in registry.checks]
    for code, rule in zip(registry.checks, added, strict=True):
        if not isinstance(rule, Rule) or rule.code != code or not CODE.fullmatch(code):
            raise DefinitionError(
                f'the check "{code}" of an extension must be a Rule with this code, of capital '
                f"letters and three digits, got {rule!r:.200}."
            )
    return [*RULES, *added]


def check_codes(codes: str | Iterable[str]) -> tuple[str, ...]:
    """Return codes, or prefixes of codes, in upper case; raise if no check has one.

    >>> check_codes(["krt004", "KRT3"])
    ('KRT004', 'KRT3')
    """
    upper = [code.upper() for code in ([codes] if isinstance(codes, str) else codes)]
    for code in upper:
        if len(code) <= 3 or not any(rule.code.startswith(code) for rule in all_rules()):
            raise _unknown(code)
    return tuple(upper)


def rule_of(code: str) -> Rule:
    """Return the rule with this code."""
    rules = [rule for rule in all_rules() if rule.code == code.upper()]
    if not rules:
        raise _unknown(code)
    return rules[0]


def _unknown(code: str) -> DefinitionError:
    hint = did_you_mean(code, [rule.code for rule in all_rules()])
    return DefinitionError(f'there is no check "{code}".{hint}   (karat check --list)')


def render_page(rule: Rule) -> str:
    """Return the page of a check as Markdown: what it means, how it is computed, what to do."""
    file = resources.files("karat.analysis") / "check_pages" / f"{rule.code}.md"
    body = file.read_text(encoding="utf-8") if file.is_file() else f"{rule.page}\n"
    return (
        f"# {rule.code}: {rule.title}\n\nLevel: {rule.level}.\n\n{body}\n"
        f"To silence it, use `--ignore {rule.code}`, or `ignore: [{rule.code}]` in the task.\n"
    )
