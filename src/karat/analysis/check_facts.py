"""Rules, the facts they read and the findings they return."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DefinitionError
from karat.metrics.base import COVERED, MTEB, get_metric
from karat.results.cells import OK, Cells, make_cells
from karat.results.gather import Gathered, gather, named_runs
from karat.results.layouts import by_fold
from karat.results.still import read_once
from karat.results.within import fold_ratios

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
    """A place where a rule applies, and its message."""

    message: str
    model: str | None = None
    task: str | None = None


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
    """A job's record, under the leaderboard's names of its model and task."""

    model: str
    task: str
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """All that the rules read.

    ``tasks`` holds the entries of run.json about each task, ``abouts`` the whole run.json by the
    model's name on the leaderboard.
    """

    given: Gathered
    jobs: list[Job] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    abouts: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Any) -> Facts:
        """Return the facts of runs, run folders, or a table of scores."""
        if isinstance(runs, pd.DataFrame):
            return cls(gather(runs))
        runs = read_once(runs)
        facts = cls(gather(runs))
        for run, name, label in named_runs(runs):
            facts.abouts[name] = run.about
            facts.jobs.extend(
                Job(name, label[record["task"]], record)
                for record in by_fold(run.about, run.records())
            )
            for task in run.about["tasks"]:
                _merge(facts.tasks.setdefault(label[task["name"]], {}), task)
        return facts

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
        if recorded:
            return int(recorded)
        folds = {
            job.record["fold"]: int(job.record.get("questions") or 0)
            for job in self.jobs
            if job.task == task and not job.record["repeat"]
        }
        return sum(folds.values())

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
        if not contenders:
            return ok
        return np.array([m for m in ok if self.called(int(m)).lower() not in UNINFORMED], dtype=int)

    def rivals(self, task: str) -> np.ndarray:
        """Return the contenders, the best first; of several runs of a model only the best."""
        models = self.scored(task, contenders=True)
        turned = np.nanmean(self.cells.folds[self.place[task]][models], axis=1)
        first: dict[str, int] = {}
        for m in models[np.argsort(-turned, kind="stable")]:
            first.setdefault(self.called(m), int(m))
        return np.array(list(first.values()), dtype=int)

    def called(self, model: int) -> str:
        """Return a model's own name, without the time stamp of its run."""
        name = self.cells.models[model]
        return str(self.abouts.get(name, {}).get("model", name))

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


def several(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> several(1, "fold"), several(1200, "fold")
    ('1 fold', '1,200 folds')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
