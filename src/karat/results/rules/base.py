"""What a rule is, what it reads and what it finds."""

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

#: from the one that matters most
LEVELS = ("error", "warning", "note")
#: models that know nothing: what a score is worth is seen beside theirs
CLUELESS = {"random", "dummy", "constantpredictor", "constantpredictor_enc"}
#: metrics that are the share of questions answered right
SHARES = {"acc", "f1_micro"}


@dataclass(frozen=True)
class Finding:
    """What a check has found: about a model, a task, both, or all of the runs."""

    code: str
    level: str
    model: str | None
    task: str | None
    message: str
    advice: str


class Findings(list[Finding]):
    """Findings, those that matter most first; ``silenced`` counts those not to be told, by code."""

    def __init__(self, found: Iterable[Finding] = (), silenced: Mapping[str, int] | None = None):
        super().__init__(found)
        self.silenced: Counter[str] = Counter(silenced or {})


@dataclass(frozen=True)
class Hit:
    """Where a rule applies, and what it has to say there."""

    message: str
    model: str | None = None
    task: str | None = None


@dataclass(frozen=True)
class Rule:
    """A numbered check. ``title`` stands before the places where it is found."""

    code: str
    title: str
    level: str
    advice: str
    look: Callable[[Facts], Iterable[Hit]]


@dataclass(frozen=True)
class Job:
    """A job's record, under the names that its model and its task have on the board."""

    model: str
    task: str
    record: Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """All that the rules read.

    ``tasks`` holds what the runs tell of each task, ``abouts`` what they tell of themselves, by the
    model's name on the board.
    """

    given: Gathered
    jobs: list[Job] = field(default_factory=list)
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    abouts: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Any) -> Facts:
        """Return the facts of runs, run folders, or a tidy table of scores."""
        if isinstance(runs, pd.DataFrame):
            return cls(gather(runs))
        kept = read_once(runs)
        facts = cls(gather(kept))
        for run, name, label in named_runs(kept):
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
        """Yield task, count and total of a fact ``[count, total, …]``, and what stands behind."""
        for task, told in self.tasks.items():
            found: list[Any] = list(told.get(name) or (0, 0))
            if found[1]:
                yield task, int(found[0]), int(found[1]), found[-1]

    def probe(self, task: str) -> str:
        """Return the name of the probe that a task is asked with; nothing where nobody tells."""
        told = self.tasks.get(task, {}).get("probe") or ""
        return str(told.get("use", "")) if isinstance(told, Mapping) else str(told)

    def tested(self, task: str) -> int:
        """Return how many different questions of a task are tested; 0 where nobody tells."""
        told = self.tasks.get(task, {}).get("tested")
        if told:
            return int(told)
        asked = self.asked.get(task, {}).values()
        return sum(int(record["questions"]) for record in asked if not record["repeat"])

    @cached_property
    def ratios(self) -> dict[str, float]:
        """n_test / n_train of each task's folds; see ``significance.fold_ratio``."""
        tasks = list(self.given.metrics)
        return dict(zip(tasks, fold_ratios(self.given, tasks), strict=True))

    @cached_property
    def asked(self) -> dict[str, dict[int, Mapping[str, Any]]]:
        """A record of each fold of each task that tells how many questions were asked."""
        found: dict[str, dict[int, Mapping[str, Any]]] = {}
        for job in self.jobs:
            if job.record.get("questions") and "train_questions" in job.record:
                found.setdefault(job.task, {}).setdefault(job.record["fold"], job.record)
        return found

    # -- scores -----------------------------------------------------------------------------

    @cached_property
    def cells(self) -> Cells:
        """The scores of models × tasks, each task by its first metric."""
        return make_cells(self.given, self.given.metrics)

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each task stands among the cells."""
        return {task: t for t, task in enumerate(self.cells.tasks)}

    def scored(self, task: str, contenders: bool = False) -> np.ndarray:
        """Return the places of the models with a score; contenders know something."""
        ok = np.flatnonzero(self.cells.states[:, self.place[task]] == OK)
        if not contenders:
            return ok
        return np.array([m for m in ok if self.called(int(m)).lower() not in CLUELESS], dtype=int)

    def rivals(self, task: str) -> np.ndarray:
        """Return the contenders, the best first; of several runs of a model the best."""
        models = self.scored(task, contenders=True)
        turned = np.nanmean(self.cells.folds[self.place[task]][models], axis=1)
        first: dict[str, int] = {}
        for m in models[np.argsort(-turned, kind="stable")]:
            first.setdefault(self.called(m), int(m))
        return np.array(list(first.values()), dtype=int)

    def called(self, model: int) -> str:
        """Return a model's own name, without what tells its runs apart."""
        name = self.cells.models[model]
        return str(self.abouts.get(name, {}).get("model", name))

    def score(self, model: int, task: str) -> str:
        """Return a mean score as people read it."""
        return f"{self.cells.means[model, self.place[task]]:.4g}"


def _merge(known: dict[str, Any], task: Mapping[str, Any]) -> None:
    """Add what another run tells of a task; of counts, those of the most questions stay."""
    for name, value in task.items():
        if name in ("twins", "entities") and value:
            value = max(known.get(name) or value, value, key=lambda counts: counts[1])
        elif name == "tested":
            value = max(known.get(name, 0), value)
        elif name in known:
            continue
        known[name] = value


def plain_metric(name: str) -> str:
    """Return the name Karat has for a metric.

    >>> plain_metric("accuracy"), plain_metric("hits@1_covered")
    ('acc', 'hits@1')
    """
    name = name.removesuffix(COVERED)
    return MTEB.get(name, name)


def is_share(metric: str) -> bool:
    """Return whether a metric is the share of questions that are answered right."""
    name = plain_metric(metric)
    return name in SHARES or name.startswith("hits@")


def best_value(metric: str) -> tuple[float, float] | None:
    """Return the best value of a metric and how far the worst is; nothing without such bounds."""
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
