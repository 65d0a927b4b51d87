"""The plan of a race in run.json, and how far its records take it.

Decisions are a function of the plan and the records: they are made task by task, in the order of
the plan, as soon as all running models have finished the task. So a race that was stopped, or whose
jobs finished in another order, comes to the same decisions.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from karat.errors import FAILURES, DataError, DefinitionError
from karat.metrics.metric import get_metric, is_ratio
from karat.results.tables import ELIMINATED
from karat.stats.racing import EQUIVALENT, Exit, RaceState, Rules
from karat.stats.ranking import significant

RANDOM, CHEAP = ORDERS = ("random", "cheap")


@dataclass(frozen=True)
class RacePlan:
    """What a race is to find, the order of its tasks, and when its models joined.

    ``folds`` are the folds of each task that are one block, ``available`` the number of folds of
    the task. ``batches`` is the batch with which each model joined, ``since`` the number of tasks
    that had been used when each batch joined. ``id`` is the same in all runs of a race.
    """

    id: str
    goal: str
    confidence: float
    margin: float | None
    by: str
    order: tuple[str, ...]
    folds: dict[str, list[int]]
    available: dict[str, int]
    models: tuple[str, ...]
    batches: tuple[int, ...]
    since: tuple[int, ...] = (0,)

    @property
    def rules(self) -> Rules:
        """The rules of the race."""
        return Rules.read(self.goal, self.confidence, self.margin)

    @property
    def guarantee(self) -> float:
        """The confidence after all models have joined."""
        return 1 - self.rules.error(len(self.since))

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def read(cls, about: Mapping[str, Any]) -> RacePlan | None:
        """Return the plan of the race of a run.json, or None if it is not of a race."""
        given = about.get("race")
        if given is None:
            return None
        try:
            plan = {name: given["plan"][name] for name in cls.__dataclass_fields__}
            tuples = ("order", "models", "batches", "since")
            found = cls(**{**plan, **{name: tuple(plan[name]) for name in tuples}})
            found.rules  # noqa: B018
            return found
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(f"run.json has a damaged race: {error!r}.") from error

    def joined(self, models: Sequence[str], since: int) -> RacePlan:
        """Return the plan after more models have joined."""
        new = [name for name in models if name not in self.models]
        if not new:
            return self
        batches = (*self.batches, *[len(self.since)] * len(new))
        return replace(
            self, models=(*self.models, *new), batches=batches, since=(*self.since, since)
        )


def random_order(tasks: Iterable[str], seed: int) -> tuple[str, ...]:
    """Return tasks in a random order that depends on their names and the seed only.

    >>> random_order("abc", 42) == random_order("cba", 42)
    True
    """
    names = sorted(tasks)
    rng = np.random.default_rng([seed, zlib.crc32(b"order of a race")])
    return tuple(names[place] for place in rng.permutation(len(names)))


def parse_goal(goal: str, models: int) -> None:
    """Raise DefinitionError if a goal is unknown, or cannot be reached with this many models."""
    try:
        keep = Rules.read(goal, 0.95).keep
    except (ValueError, TypeError):
        raise DefinitionError(
            f'goal must be "best", "order" or "top-K" such as "top-3", got {goal!r}.'
        ) from None
    if keep >= models:
        raise DefinitionError(
            f"a race to the goal {goal} needs more than {keep} model{'s' * (keep > 1)}, "
            f"got {models}; add models with -m."
        )


#: the score of a failed job, and what a model that does not take a task has instead of scores
FAILED, DECLINED = math.nan, None


@dataclass
class RaceScores:
    """The scores of finished jobs, higher is better: by model and task, then by fold."""

    scores: dict[tuple[str, str], dict[int, float]] = field(default_factory=dict)
    declined: set[tuple[str, str]] = field(default_factory=set)
    relative: dict[str, bool] = field(default_factory=dict)

    def add(self, model: str, record: Mapping[str, Any], higher: bool | None = None) -> None:
        """Add the record of a job; ``higher`` is whether a higher score is better."""
        task, metric = str(record["task"]), str(record["metric"])
        if record["status"] == ELIMINATED:
            return
        if record["status"] == "declined" or record["fold"] is None:
            self.declined.add((model, task))
            return
        value = FAILED
        if record["status"] not in FAILURES:
            clean = [view["scores"] for view in record["views"] if not view["corruption"]]
            found = clean[0].get(metric) if clean else None
            value = FAILED if found is None else float(found)
        if higher is None:
            higher = get_metric(metric).higher_is_better
        self.scores.setdefault((model, task), {})[record["fold"]] = value if higher else -value
        self.relative.setdefault(task, is_ratio(metric, [] if math.isnan(value) else [value]))


class FollowedRace:
    """A race as far as its scores take it.

    ``trace`` has a row per task used: the task, the models that ran it, the evidence against each
    model, and how much was needed to eliminate one of the first models.
    """

    def __init__(self, plan: RacePlan) -> None:
        self.plan = plan
        self.state = RaceState(plan.rules, plan.batches, plan.since)
        self.trace: list[tuple[str, np.ndarray, np.ndarray, float]] = []
        self.when: dict[int, int] = {}

    @property
    def over(self) -> bool:
        """Whether the goal is reached."""
        return self.state.over

    @property
    def exhausted(self) -> bool:
        """Whether all tasks were used."""
        return self.state.tasks >= len(self.plan.order)

    def advance(self, given: RaceScores) -> list[tuple[str, str, int]]:
        """Make all decisions that the scores allow; return the jobs that the next one needs."""
        while not self.over and not self.exhausted:
            task = self.plan.order[self.state.tasks]
            models = self.running(task, given)
            missing = self._missing(task, models, given) if len(models) > 1 else []
            if missing:
                return missing
            self._use(task, models, given)
        return []

    def running(self, task: str, given: RaceScores) -> list[int]:
        """Return the models that still run and take a task."""
        names = self.plan.models
        there = np.flatnonzero(self.state.running)
        return [int(m) for m in there if (names[m], task) not in given.declined]

    def _missing(
        self, task: str, models: list[int], given: RaceScores
    ) -> list[tuple[str, str, int]]:
        names, folds = self.plan.models, self.plan.folds[task]
        return [
            (names[m], task, fold)
            for fold in folds
            for m in models
            if fold not in given.scores.get((names[m], task), {})
        ]

    def _use(self, task: str, models: list[int], given: RaceScores) -> None:
        names, folds = self.plan.models, self.plan.folds[task]
        takes = np.zeros(len(names), dtype=bool)
        scores = np.full((len(names), len(folds)), math.nan)
        if len(models) > 1:
            takes[models] = True
            rows = [[given.scores[names[m], task][fold] for fold in folds] for m in models]
            scores[models] = significant(np.array(rows))
        rules = self.state.rules
        needed = int(self.state.remaining.sum()) / rules.levels(0)[0] if rules.keep else math.nan
        for exit_ in self.state.update(scores, takes, given.relative.get(task, False)):
            self.when[exit_.model] = len(self.trace)
        self.trace.append((task, takes, self.state.evidence.copy(), needed))

    def exit_of(self, model: str) -> Exit | None:
        """Return how a model left the race; None if it did not."""
        place = self.plan.models.index(model)
        return next((each for each in self.state.exits if each.model == place), None)


def exit_facts(race: FollowedRace, model: str) -> dict[str, Any] | None:
    """Return how a model left a race, as stored in its run.json."""
    found = race.exit_of(model)
    if found is None:
        return None
    names = [race.plan.models[other] for other in found.others]
    facts = {"reason": found.reason, "after": found.after, "others": names}
    if not math.isnan(found.e_value):
        facts |= {"e_value": found.e_value, "needed": found.needed}
    state, place = race.state, found.model
    if found.reason != ELIMINATED and not race.plan.rules.keep:
        better, worse = int(state.worse[place].sum()), int(state.worse[:, place].sum())
        facts["place"] = [1 + better, len(state.batch) - worse]
    return {**facts, "text": exit_text(facts, race.plan.margin)}


def exit_text(facts: Mapping[str, Any], margin: float | None) -> str:
    """Return when and why a model left a race.

    >>> exit_text({"reason": "eliminated", "after": 14, "e_value": 31234.5}, None)
    'eliminated after 14 tasks, e-value 3.1e4'
    """
    after = f"after {facts['after']} task{'' if facts['after'] == 1 else 's'}"
    if facts["reason"] == ELIMINATED:
        return f"eliminated {after}, e-value {e_value_text(facts['e_value'])}"
    parts = []
    if "place" in facts:
        low, high = facts["place"]
        parts.append(f"place {low}" if low == high else f"place {low} to {high}")
    if facts["reason"] == EQUIVALENT and facts["others"]:
        parts.append(f"equivalent to {', '.join(facts['others'])} within {margin:g}")
    return f"{', '.join(parts)}, decided {after}"


def e_value_text(value: float) -> str:
    """Return an e-value with two digits.

    >>> e_value_text(31234.5), e_value_text(512.3), e_value_text(0.0312)
    ('3.1e4', '512', '0.031')
    """
    if value < 1000:
        return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
    return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
