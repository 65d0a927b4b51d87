"""A race as a session: rounds of jobs, each of the models that remain on the next task.

Decisions are a function of the plan and the records: they are made task by task, in the order of
the plan, as soon as all running models have finished the task. So a race that was stopped, or whose
jobs finished in another order, comes to the same decisions.
"""

from __future__ import annotations

import dataclasses
import math
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from karat.core.task import Suite
from karat.errors import FAILURES, DataError, DefinitionError
from karat.execution.job import Job
from karat.execution.job_failure import POSTPONED
from karat.execution.plan import Plan
from karat.execution.progress import Progress
from karat.execution.session import Options, Session
from karat.ext.decide.race_wording import e_value_text
from karat.ext.decide.racing import EQUIVALENT, Exit, RaceState, Rules, fewest_tasks
from karat.metrics.metric import get_metric, is_ratio
from karat.models.model import Model
from karat.results.load import earlier_seconds
from karat.results.run import Run, newest_first, open_runs
from karat.results.run_folders import find_run_folders
from karat.results.tables import ELIMINATED
from karat.stats.ranking import significant

#: seconds of the units of a budget
UNITS = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
RANDOM, CHEAP = ORDERS = ("random", "cheap")
#: the score of a failed job, and what a model that does not take a task has instead of scores
FAILED, DECLINED = math.nan, None


@dataclasses.dataclass(frozen=True)
class RaceOptions:
    """The options of ``race``, which documents them."""

    goal: str = "best"
    confidence: float = 0.95
    margin: float | None = None
    folds_per_task: int = 1
    order: str = "random"
    budget: int | str | None = None

    def check(self) -> None:
        """Raise one DefinitionError that lists every wrong option."""
        messages = []
        if not _is_number(self.confidence) or not 0 < self.confidence < 1:
            messages.append(
                f"confidence must be a number between 0 and 1, such as 0.95, got "
                f"{self.confidence!r}."
            )
        if self.margin is not None and not (_is_number(self.margin) and 0 < self.margin < 1e9):
            messages.append(f"margin must be a number > 0, such as 0.01, got {self.margin!r}.")
        folds = self.folds_per_task
        if isinstance(folds, bool) or not isinstance(folds, int) or folds < 1:
            messages.append(f"folds_per_task must be an integer >= 1, got {folds!r}.")
        if self.order not in ORDERS:
            messages.append(f'order must be "random" or "cheap", got {self.order!r}.')
        for check in (lambda: parse_goal(self.goal, 10**9), self.limits):
            try:
                check()
            except DefinitionError as error:
                messages += error.messages
        if messages:
            raise DefinitionError(*messages)

    def limits(self) -> tuple[float | None, int | None]:
        """Return the budget as seconds or as a number of jobs.

        >>> RaceOptions(budget="4h").limits(), RaceOptions(budget=300).limits()
        ((14400.0, None), (None, 300))
        """
        if self.budget is None:
            return None, None
        matched = re.fullmatch(r"(\d+(?:\.\d+)?) *(s|m|min|h|d)?", str(self.budget).strip())
        if matched is None or float(matched[1]) <= 0 or not (matched[2] or matched[1].isdecimal()):
            raise DefinitionError(
                f'budget must be a time such as "4h", "30m" or "90s", or a number of jobs, got '
                f"{self.budget!r}."
            )
        return (
            (float(matched[1]) * UNITS[matched[2]], None) if matched[2] else (None, int(matched[1]))
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def plan_race(plan: Plan, chosen: RaceOptions) -> Plan:
    """Return the plan of a race: the tasks of two or more models, with the folds of a block."""
    chosen.check()
    counts: dict[str, set[str]] = {}
    for model, planned, _ in plan.jobs:
        counts.setdefault(planned.task.name, set()).add(model.name)
    raced = {task for task, models in counts.items() if len(models) > 1}
    cut = {
        part.task.name: dataclasses.replace(part, folds=part.folds[: chosen.folds_per_task])
        for part in plan.tasks
        if part.task.name in raced
    }
    jobs = tuple(
        (model, cut[planned.task.name], fold)
        for model, planned, fold in plan.jobs
        if planned.task.name in cut and fold in cut[planned.task.name].folds
    )
    racing = {model.name for model, _, _ in jobs}
    models = tuple(model for model in plan.models if model.name in racing)
    _check_size(chosen, models, plan.models, raced)
    return dataclasses.replace(plan, models=models, tasks=tuple(cut.values()), jobs=jobs)


def _check_size(
    chosen: RaceOptions, models: Sequence[Model], all_models: Sequence[Model], tasks: set[str]
) -> None:
    """Raise DefinitionError if no race with these models and tasks can decide anything."""
    if len(models) < 2:
        names = ", ".join(model.name for model in all_models)
        alone = "have no task in common" if len(all_models) > 1 else "is alone"
        raise DefinitionError(
            f"a race needs at least two models that share tasks; {names} {alone}. Add models with "
            f"-m, or use karat run."
        )
    parse_goal(chosen.goal, len(models))
    rules = Rules.read(chosen.goal, chosen.confidence, chosen.margin)
    needed = fewest_tasks(rules, len(models))
    if len(tasks) < needed:
        raise DefinitionError(
            f"with {len(models)} models and confidence {chosen.confidence:g}, nothing can be "
            f"decided before {needed} tasks, even if one model wins all of them; the suite has "
            f"{len(tasks)} task{'' if len(tasks) == 1 else 's'} of two or more models. Use a "
            f"larger suite, fewer models, a lower --confidence, or karat run."
        )


def make_race(full: Plan, plan: Plan, options: Options, chosen: RaceOptions) -> RacePlan:
    """Return a new race on a plan; ``full`` is the plan of all folds."""
    names = [planned.task.name for planned in plan.tasks]
    order = random_order(names, options.seed)
    if chosen.order == CHEAP:
        order = _cheap_first(order, [model.name for model in plan.models], options.output)
    available = {part.task.name: len(part.folds) for part in full.tasks}
    return RacePlan(
        id=datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f"),
        goal=chosen.goal,
        confidence=chosen.confidence,
        margin=chosen.margin,
        by=chosen.order,
        order=order,
        folds={part.task.name: list(part.folds) for part in plan.tasks},
        available={name: available[name] for name in names},
        models=tuple(model.name for model in plan.models),
        batches=(0,) * len(plan.models),
    )


def _cheap_first(order: Sequence[str], models: Sequence[str], output: Path) -> tuple[str, ...]:
    """Return tasks by their mean time in earlier runs; those without one come last."""
    spent: dict[str, list[float]] = {}
    for (_, task), (seconds, _) in earlier_seconds(set(models), output).items():
        spent.setdefault(task, []).append(seconds)
    if not set(spent) & set(order):
        raise DefinitionError(
            f"order cheap needs the times of earlier runs of these models in {output}, found "
            f"none; use the random order."
        )
    mean = {task: sum(times) / len(times) for task, times in spent.items()}
    return tuple(sorted(order, key=lambda task: mean.get(task, float("inf"))))


def find_race(plan: Plan, suite: Suite, options: Options, chosen: RaceOptions) -> RacePlan | None:
    """Return the race in the output folder that these options continue, or None."""
    if not options.output.is_dir() or not any(find_run_folders(options.output)):
        return None
    names = {model.name for model in plan.models}
    same = {"suite": suite.name, "constraint": options.constraint, "seed": options.seed}
    for run in newest_first(open_runs([options.output])):
        race = RacePlan.read(run.about)
        if race and run.model in names and all(run.about.get(k) == v for k, v in same.items()):
            _check_same(race, plan, options, chosen)
            return race
    return None


def _check_same(race: RacePlan, plan: Plan, options: Options, chosen: RaceOptions) -> None:
    """Raise DefinitionError if a race cannot be continued with these options."""
    settings = {
        "goal": (race.goal, chosen.goal),
        "confidence": (race.confidence, chosen.confidence),
        "margin": (race.margin, chosen.margin),
        "order": (race.by, chosen.order),
    }
    messages = [
        f"the race in {options.output} has {name} {stored}, got {value}; its guarantee holds only "
        f"with the settings it started with. Resume with {stored}, or start a new race without "
        f"--resume."
        for name, (stored, value) in settings.items()
        if stored != value
    ]
    folds = {planned.task.name: list(planned.folds) for planned in plan.tasks}
    if folds != race.folds:
        messages.append(
            f"the race in {options.output} has other tasks or folds per task; resume with the same "
            f"suite and folds, or start a new race without --resume."
        )
    absent = [name for name in race.models if name not in {model.name for model in plan.models}]
    if absent:
        messages.append(
            f"the race in {options.output} has more models: add -m {' -m '.join(absent)}, or start "
            f"a new race without --resume."
        )
    if messages:
        raise DefinitionError(*messages)


class RaceSession(Session):
    """One call of ``race``; ``race`` is a new race, or the one to resume."""

    most = "at most "

    def __init__(
        self,
        plan: Plan,
        suite: Suite,
        options: Options,
        progress: Progress,
        race: RacePlan,
        limits: tuple[float | None, int | None] = (None, None),
    ) -> None:
        super().__init__(plan, suite, options, progress)
        self.race, self.limits = race, limits
        self.scores = RaceScores()

    def run(self) -> list[Run]:
        """Run the race and return the runs, or raise Stopped with the unfinished ones."""
        with self.engine.kept(self.workers):  # for all rounds
            return super().run()

    def _title(self, remaining: int) -> str:
        fewest = fewest_tasks(self.race.rules, len(self.plan.models))
        return f"{super()._title(remaining)} · no decision before {fewest} tasks"

    def _about(self, model: Model) -> dict[str, Any]:
        return {**super()._about(model), "race": {"plan": self.race.to_dict()}}

    def _fits(self, run: Run) -> bool:
        race = RacePlan.read(run.about)
        return race is not None and race.id == self.race.id

    def _rounds(self, jobs: list[Job]) -> Iterator[list[Job]]:
        """Yield the jobs of the running models on the next task, until the goal is reached."""
        for name, opened in self.runs.items():
            for record in opened.records():
                self.scores.add(name, record)
        self._join()
        race, begun, ran = FollowedRace(self.race), time.monotonic(), 0
        job_of = {self._key(job): job for job in jobs}
        while needed := race.advance(self.scores):
            self._store(race)
            together = [job_of[key] for key in needed]
            ran += len(together)
            seconds, most = self.limits
            if (most and ran > most) or (seconds and time.monotonic() - begun > seconds):
                break
            yield together
            if self._postponed:
                break
        self._store(race)

    def _join(self) -> None:
        """Add the models that are new to a resumed race, after the tasks that were used."""
        names = [model.name for model in self.plan.models]
        if any(name not in self.race.models for name in names):
            earlier = FollowedRace(self.race)
            earlier.advance(self.scores)
            self.race = self.race.joined(names, earlier.state.tasks)

    def _key(self, job: Job) -> tuple[str, str, int]:
        return self.store.get(job.model).name, self.store.get(job.task).name, job.fold

    def _record(self, job: Job, answer: Any) -> dict[str, Any]:
        record = super()._record(job, answer)
        if record["status"] != POSTPONED:
            self.scores.add(str(record["model"]), record)
        return record

    def _store(self, race: FollowedRace) -> None:
        """Write the state of the race into the runs, and report models that left."""
        over = race.over or race.exhausted
        for name, opened in self.runs.items():
            earlier: Mapping[str, Any] = opened.about.get("race") or {}
            facts = exit_facts(race, name)
            opened.set_race({"plan": race.plan.to_dict(), "exit": facts, "over": over})
            if facts and not earlier.get("exit"):
                self.progress.left(name, str(facts["text"]))


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
    def read(cls, facts: Mapping[str, Any]) -> RacePlan | None:
        """Return the plan of the race of a run.json, or None if it is not of a race."""
        stored = facts.get("race")
        if stored is None:
            return None
        try:
            plan = {name: stored["plan"][name] for name in cls.__dataclass_fields__}
            tuples = ("order", "models", "batches", "since")
            race = cls(**{**plan, **{name: tuple(plan[name]) for name in tuples}})
            race.rules  # noqa: B018
            return race
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
    return tuple(names[position] for position in rng.permutation(len(names)))


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
            score = clean[0].get(metric) if clean else None
            value = FAILED if score is None else float(score)
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

    def advance(self, scores: RaceScores) -> list[tuple[str, str, int]]:
        """Make all decisions that the scores allow; return the jobs that the next one needs."""
        while not self.over and not self.exhausted:
            task = self.plan.order[self.state.tasks]
            models = self.running(task, scores)
            missing = self._missing(task, models, scores) if len(models) > 1 else []
            if missing:
                return missing
            self._use(task, models, scores)
        return []

    def running(self, task: str, scores: RaceScores) -> list[int]:
        """Return the models that still run and take a task."""
        names = self.plan.models
        there = np.flatnonzero(self.state.running)
        return [int(m) for m in there if (names[m], task) not in scores.declined]

    def _missing(
        self, task: str, models: list[int], scores: RaceScores
    ) -> list[tuple[str, str, int]]:
        names, folds = self.plan.models, self.plan.folds[task]
        return [
            (names[m], task, fold)
            for fold in folds
            for m in models
            if fold not in scores.scores.get((names[m], task), {})
        ]

    def _use(self, task: str, models: list[int], race_scores: RaceScores) -> None:
        names, folds = self.plan.models, self.plan.folds[task]
        takes = np.zeros(len(names), dtype=bool)
        scores = np.full((len(names), len(folds)), math.nan)
        if len(models) > 1:
            takes[models] = True
            rows = [[race_scores.scores[names[m], task][fold] for fold in folds] for m in models]
            scores[models] = significant(np.array(rows))
        rules = self.state.rules
        needed = int(self.state.remaining.sum()) / rules.levels(0)[0] if rules.keep else math.nan
        for exit_ in self.state.update(scores, takes, race_scores.relative.get(task, False)):
            self.when[exit_.model] = len(self.trace)
        self.trace.append((task, takes, self.state.evidence.copy(), needed))

    def exit_of(self, model: str) -> Exit | None:
        """Return how a model left the race; None if it did not."""
        number = self.plan.models.index(model)
        return next((leaving for leaving in self.state.exits if leaving.model == number), None)


def exit_facts(race: FollowedRace, model: str) -> dict[str, Any] | None:
    """Return how a model left a race, as stored in its run.json."""
    leaving = race.exit_of(model)
    if leaving is None:
        return None
    names = [race.plan.models[other] for other in leaving.others]
    facts = {"reason": leaving.reason, "after": leaving.after, "others": names}
    if not math.isnan(leaving.e_value):
        facts |= {"e_value": leaving.e_value, "needed": leaving.needed}
    state, number = race.state, leaving.model
    if leaving.reason != ELIMINATED and not race.plan.rules.keep:
        better, worse = int(state.worse[number].sum()), int(state.worse[:, number].sum())
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
