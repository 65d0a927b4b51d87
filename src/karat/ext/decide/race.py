"""Races: run only the jobs that can still change the answer, and replay finished runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.analysis.score_matrix import apply_missing_rule
from karat.config.catalog import Catalog
from karat.core.formatting import count, precise_percent
from karat.errors import FAILURES, DataError, DefinitionError
from karat.execution.arguments import Machines, Only, Output, explain_respelled, run_settings
from karat.execution.evaluation import Files, Tasks, find_models_and_suite, make_options, plan_suite
from karat.execution.progress import Progress, shown_progress
from karat.execution.resources import restored_folder
from karat.execution.session import Options, Stopped
from karat.ext.decide import race_wording
from karat.ext.decide.race_session import (
    FollowedRace,
    RaceOptions,
    RacePlan,
    RaceScores,
    RaceSession,
    exit_facts,
    find_race,
    make_race,
    parse_goal,
    plan_race,
)
from karat.ext.decide.racing import BEST, ELIMINATED, REMAINS, RaceState, Rules, fewest_tasks
from karat.metrics.metric import is_ratio
from karat.output.result import Result
from karat.output.table import Table
from karat.results.load import as_runs, gather_scores, make_cells
from karat.results.run import Run, newest_first
from karat.stats.ranking import rank_models

#: settings of runs that a race refuses, and what they are called
NOT_OF_RACES = {
    "shard": "shards",
    "budget": "budget of money",
    "inference": "timed inference",
    "only_folds": "choice of folds",
}
COLUMNS = (
    "model",
    "status",
    "place_low",
    "place_high",
    "tasks",
    "jobs",
    "failed",
    "e_value",
    "needed",
    "better",
    "why",
)


@dataclass(frozen=True, eq=False, repr=False)
class Race(Result):
    """A race: the models that remain, those that left, and what it cost.

    Attributes
    ----------
    goal, margin
        What was to be found, and the margin of equivalence.
    confidence
        The probability that the answer is right is at least this; lower than requested if models
        joined later.
    outcome
        ``"decided"`` (the goal is reached), ``"undecided"`` (all tasks were used) or ``"stopped"``
        (by a budget or an interruption; resume continues).
    remaining
        The models that remain, in the order in which they were given.
    models
        One row per model: ``status`` (``"best"``, ``"remains"``, ``"eliminated"``,
        ``"equivalent"`` or ``"decided"``), its possible places, the numbers of ``tasks`` on which
        it was compared, of its ``jobs`` and of those that ``failed``, the ``e_value`` against it
        and the one ``needed``, up to three models that are ``better`` or equivalent, and ``why`` it
        left.
    trace
        One row per task that was used, in order: the ``jobs`` so far, the number of ``models`` that
        ran it, the evidence ``needed``, and the evidence against each model until it left.
    tasks, tasks_used
        The number of tasks, and of those that were run.
    jobs, full_jobs
        The number of jobs, and that of all models on all folds of all tasks.
    notes
        What the guarantee means here.
    """

    goal: str
    confidence: float
    margin: float | None
    outcome: str
    models: pd.DataFrame
    trace: pd.DataFrame
    tasks: int
    tasks_used: int
    jobs: int
    full_jobs: int
    notes: list[str] = field(default_factory=list)

    csv_prefix: ClassVar[str] = "race"
    frames: ClassVar[tuple[str, ...]] = ("models", "trace")
    computed: ClassVar[tuple[str, ...]] = ("remaining", "saved")

    @property
    def remaining(self) -> list[str]:
        """The models that were not eliminated."""
        return list(self.models.loc[self.models["status"] != ELIMINATED, "model"])

    @property
    def saved(self) -> float:
        """The share of all jobs that were not run."""
        return 1 - self.jobs / self.full_jobs if self.full_jobs else 0.0

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        return race_wording.race_sentence(self)

    def tables(self) -> list[Table]:
        """Return the models, those that remain first."""
        return [race_wording.race_table(self)]


@explain_respelled
def race(
    models: Any,
    tasks: Tasks,
    *,
    goal: str = "best",
    confidence: float = 0.95,
    margin: float | None = None,
    budget: int | str | None = None,
    folds_per_task: int = 1,
    order: str = "random",
    only: str | Sequence[str] | Only = (),
    seed: int = 42,
    workers: int | Machines = 0,
    output: str | Path | Output = "results",
    resume: bool = False,
    define: Files = (),
    progress: Progress | bool | None = None,
) -> Race:
    """Find the best models with as few jobs as possible.

    The tasks are run one after the other in a random order, by all models that remain. After each
    task, models are eliminated against which the evidence is sufficient. The evidence may be read
    after every task, so a race can be stopped and resumed at any time.

    Parameters
    ----------
    models, tasks
        As in ``evaluate``.
    goal : str, default="best"
        ``"best"``, ``"top-3"`` (or another number), or ``"order"`` to separate all pairs.
    confidence : float, default=0.95
        The probability that no best model is eliminated is at least this; with ``"order"``, that
        no pair is ordered wrongly.
    margin : float, optional
        Two models are equivalent, and stop, if it is shown that on most tasks neither is better by
        more than this, on the scale of the metric; of rmse and other metrics without an upper
        bound, as a share. Half of the error probability is reserved for it.
    budget : int or str, optional
        A number of jobs, or a time such as ``"4h"``: no task is started that exceeds it.
    folds_per_task : int, default=1
        Number of folds of each task that are run, all before the task counts.
    order : {"random", "cheap"}, default="random"
        ``"cheap"`` starts with the tasks that took least time in earlier runs in ``output``. The
        guarantee then covers only models that are best at every cost of tasks.
    resume : bool, default=False
        Continue the latest race of the same suite in ``output``. New models join it; this costs
        confidence.
    only, seed, workers, output, define, progress
        As in ``evaluate``, but without single folds, shards, a budget of money, or inference.

    Returns
    -------
    Race
        The models that remain, those that left with the evidence, and the number of jobs.

    Raises
    ------
    DefinitionError
        If an option is wrong, or so few models or tasks are given that nothing can be decided.
        Nothing has run then.
    Stopped
        If the race was interrupted. ``resume=True`` continues it.

    Examples
    --------
    >>> found = karat.race(["onehot", "tfidf", "dummy"], "quickstart")  # doctest: +SKIP
    >>> found.remaining, found.saved  # doctest: +SKIP
    """
    settings = run_settings(workers, output, only, resume)
    if without := [what for name, what in NOT_OF_RACES.items() if settings[name] not in (None, ())]:
        raise DefinitionError(f"a race has no {' and no '.join(without)}; remove it.")
    options = make_options(settings | {"seed": seed})
    chosen = RaceOptions(goal, confidence, margin, folds_per_task, order, budget)
    chosen.check()
    with restored_folder():
        catalog = Catalog(define)
    adapted, suite = find_models_and_suite(
        catalog, models, tasks, only=options.only, constraint=options.constraint
    )
    plan = plan_suite(adapted, suite, catalog, options)
    return run_race(plan, suite, options, chosen, shown_progress(progress))


def run_race(
    full: Any, suite: Any, options: Options, chosen: RaceOptions, progress: Progress | None = None
) -> Race:
    """Run a race on a plan of all folds and return it, or raise Stopped."""
    plan = plan_race(full, chosen)
    race = find_race(plan, suite, options, chosen) if options.resume else None
    race = race or make_race(full, plan, options, chosen)
    session = RaceSession(plan, suite, options, progress or Progress(), race, chosen.limits())
    try:
        runs = session.run()
    except Stopped as stopped:
        if stopped.interrupted:
            raise
        runs = stopped.runs
    return follow_races(runs)[0]


# -- from run folders -----------------------------------------------------------------------


def follow_races(runs: Any) -> list[Race]:
    """Return the races of runs, the newest first; decisions follow from the records."""
    runs_of: dict[str, list[Run]] = {}
    for run in newest_first(as_runs(runs)):
        plan = RacePlan.read(run.about)
        if plan is not None:
            runs_of.setdefault(plan.id, []).append(run)
    return [_follow(several) for several in runs_of.values()]


def _follow(runs: Sequence[Run]) -> Race:
    plans = [plan for run in runs if (plan := RacePlan.read(run.about)) is not None]
    plan = max(plans, key=lambda read_plan: len(read_plan.models))  # that of the latest models
    run_of: dict[str, Run] = {}
    for run in runs:  # the newest first
        run_of.setdefault(run.model, run)
    scores, counts = RaceScores(), {}
    for name in (name for name in plan.models if name in run_of):
        higher: dict[str, bool] = {}
        for task in run_of[name].about["tasks"]:
            higher |= task.get("higher_is_better", {})
        jobs = run_of[name].records()
        for record in jobs:
            scores.add(name, record, higher.get(record["metric"]))
        ran = [r for r in jobs if r["fold"] is not None and r["status"] in ("ok", *FAILURES)]
        counts[name] = (len(ran), sum(record["status"] in FAILURES for record in ran))
    followed = FollowedRace(plan)
    missing = followed.advance(scores)
    absent = [name for name in plan.models if name not in run_of]
    return _race(followed, scores, counts, missing, absent)


def _race(
    followed: FollowedRace,
    scores: RaceScores,
    counts: dict[str, Any],
    missing: Any,
    absent: list[str],
) -> Race:
    plan = followed.plan
    full = sum(
        folds
        for task, folds in plan.available.items()
        for name in plan.models
        if (name, task) not in scores.declined
    )
    outcome = "decided" if followed.over else "stopped" if missing else "undecided"
    return Race(
        goal=plan.goal,
        confidence=plan.guarantee,
        margin=plan.margin,
        outcome=outcome,
        models=_model_table(followed, counts),
        trace=_trace_table(followed),
        tasks=len(plan.order),
        tasks_used=followed.state.tasks,
        jobs=sum(jobs for jobs, _ in counts.values()),
        full_jobs=full,
        notes=list(_notes(followed, counts, absent)),
    )


def _model_table(followed: FollowedRace, counts: dict[str, Any]) -> pd.DataFrame:
    state, plan, rows = followed.state, followed.plan, []
    total, remaining = len(plan.models), int(state.remaining.sum())
    needed = [
        (state.remaining & (state.batch <= b)).sum() / state.rules.levels(b)[0]
        for b in plan.batches
    ]
    for m, name in enumerate(plan.models):
        facts = exit_facts(followed, name) or {}
        low, high = 1 + int(state.worse[m].sum()), total - int(state.worse[:, m].sum())
        if state.rules.keep:
            low, high = (1, remaining) if state.remaining[m] else (state.rules.keep + 1, total)
        alone = state.rules.keep and followed.over and not facts
        row = {
            "model": name,
            "status": facts.get("reason", BEST if alone else REMAINS),
            **{"place_low": low, "place_high": high},
            "tasks": int(state.compared[m]),
            **dict(zip(("jobs", "failed"), counts.get(name, (0, 0)), strict=True)),
            "e_value": facts.get("e_value", float(state.evidence[m])),
            "needed": facts.get("needed", needed[m] if state.rules.keep else math.nan),
            "better": ", ".join(facts.get("others", ())),
            "why": facts.get("text", ""),
        }
        rows.append(row)
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    gone = np.array([followed.when.get(m, len(plan.order)) for m in range(total)])
    if state.rules.keep:
        return table.iloc[np.lexsort((table["e_value"], -gone, ~state.remaining))]
    return table.iloc[np.lexsort((table["place_high"], table["place_low"]))]


def _trace_table(followed: FollowedRace) -> pd.DataFrame:
    """Return a row per task used: jobs so far, running models, and evidence by model."""
    jobs = np.cumsum(
        [int(takes.sum()) * len(followed.plan.folds[task]) for task, takes, *_ in followed.trace]
    )
    rows = [
        {"task": task, "jobs": int(total), "models": int(takes.sum()), "needed": needed}
        | {f"e_value {name}": value for name, value in zip(followed.plan.models, e, strict=True)}
        for (task, takes, e, needed), total in zip(followed.trace, jobs, strict=True)
    ]
    names = [f"e_value {name}" for name in followed.plan.models]
    table = pd.DataFrame(rows, columns=["task", "jobs", "models", "needed", *names])
    for model, last in followed.when.items():
        table.loc[last + 1 :, names[model]] = math.nan
    return table


def _notes(followed: FollowedRace, counts: dict[str, Any], absent: list[str]) -> Iterator[str]:
    plan, rules = followed.plan, followed.state.rules
    share = precise_percent(plan.guarantee)
    if rules.keep:
        yield (
            f"With probability {share} or more, no model that wins at least half of its tasks "
            f"against every other{f' but {rules.keep - 1}' * (rules.keep > 1)} is eliminated, "
            f"whenever the race is stopped. The tasks are a sample in random order."
        )
    else:
        yield f"With probability {share} or more, no pair is ordered wrongly."
    if len(plan.since) > 1:
        names = [n for n, batch in zip(plan.models, plan.batches, strict=True) if batch]
        yield (
            f"{', '.join(names)} joined later, which lowers the confidence from "
            f"{precise_percent(plan.confidence)} to {share}. It holds if they were chosen without "
            f"knowledge of the scores of this race."
        )
    if plan.by != "random":
        yield "Cheap tasks first: the guarantee covers models that are best at every cost of tasks."
    if plan.margin is not None:
        yield (
            f"Equivalent: on most tasks neither model is better by more than {plan.margin:g}; half "
            f"of the error probability is for wrong equivalences."
        )
    if failed := sum(number for _, number in counts.values()):
        yield f"{count(failed, 'job')} failed and lost against every score of the same fold."
    if absent:
        yield f"The runs of {', '.join(absent)} are not among these; their results are unknown."


# -- replays --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class RaceReplay(Result):
    """Races on finished runs in random orders: what they would have saved and answered.

    Attributes
    ----------
    goal, confidence, margin, folds_per_task
        The options of the races.
    orders
        One row per order: the share of ``jobs``, the number of ``tasks`` used, whether the race was
        ``decided``, so that its goal was reached before the tasks ended, the models that
        ``remain``, whether the ``best_kept``, whether all of the top group remain (``top_kept``),
        and whether the leaderboard of the models that remain has the ``same_top`` group.
    models
        One row per model: its rank on all results, whether it is in the ``top`` group, the share of
        orders in which it was eliminated, and after how many tasks on average.
    tasks, full_jobs
        The number of tasks, and of jobs without a race.
    notes
        What was left out and why.
    """

    goal: str
    confidence: float
    margin: float | None
    folds_per_task: int
    orders: pd.DataFrame
    models: pd.DataFrame
    tasks: int
    full_jobs: int
    notes: list[str] = field(default_factory=list)

    csv_prefix: ClassVar[str] = "replay"
    frames: ClassVar[tuple[str, ...]] = ("models", "orders")
    computed: ClassVar[tuple[str, ...]] = ("decided", "times_fewer")

    @property
    def decided(self) -> float:
        """The share of races that reached their goal."""
        return float(self.orders["decided"].mean())

    @property
    def times_fewer(self) -> float:
        """How many times fewer jobs a race that was decided needed on average; NaN if none was."""
        jobs = self.orders.loc[self.orders["decided"], "jobs"]
        return float(1 / jobs.mean()) if len(jobs) else math.nan

    @property
    def sentence(self) -> str:
        """The result in two sentences."""
        return race_wording.replay_sentence(self)

    def tables(self) -> list[Table]:
        """Return how often and when each model was eliminated."""
        return [race_wording.replay_table(self)]


def replay_race(
    runs: Any,
    *,
    goal: str = "best",
    confidence: float = 0.95,
    margin: float | None = None,
    folds_per_task: int = 1,
    orders: int = 100,
    seed: int = 42,
    pool: str = "variant",
) -> RaceReplay:
    """Replay races on finished runs, to see what they would have saved.

    Parameters
    ----------
    runs
        A table of scores, runs, run folders or folders of runs, of two or more models.
    goal, confidence, margin, folds_per_task
        As in ``race``.
    orders : int, default=100
        Number of random orders of tasks and of their folds.
    seed : int, default=42
        Seed of the orders.
    pool
        Which runs are one model, as in ``leaderboard``.

    Returns
    -------
    RaceReplay
        The share of jobs and the answers, by order and by model.

    Raises
    ------
    DataError
        If there are fewer than two models, or too few tasks to decide anything.
    DefinitionError
        If an option is wrong.
    """
    RaceOptions(goal, confidence, margin, folds_per_task).check()
    if isinstance(orders, bool) or not isinstance(orders, int) or not 1 <= orders <= 100_000:
        raise DefinitionError(f"orders must be an integer from 1 to 100000, got {orders!r}.")
    replayed = Replayed(runs, pool)
    rules = Rules.read(goal, confidence, margin)
    parse_goal(goal, len(replayed.models))
    if len(replayed.tables) < (needed := fewest_tasks(rules, len(replayed.models))):
        raise DataError(
            f"nothing can be decided before {needed} tasks of two or more models, found "
            f"{len(replayed.tables)}."
        )
    replays = [
        replayed.race(rules, folds_per_task, np.random.default_rng([seed, number]))
        for number in range(orders)
    ]
    return RaceReplay(
        goal=goal,
        confidence=confidence,
        margin=margin,
        folds_per_task=folds_per_task,
        orders=pd.DataFrame([row for row, _ in replays]),
        models=replayed.model_table([state for _, state in replays]),
        tasks=len(replayed.tables),
        full_jobs=replayed.full_jobs,
        notes=[
            "Top group: the models that may be the best on all results, by the leaderboard. Same: "
            "on the tasks and folds of the race, the leaderboard of the models that remain."
        ],
    )


class Replayed:
    """Finished results as arrays: ``tables[t]`` are models × folds, higher is better."""

    def __init__(self, runs: Any, pool: str = "variant") -> None:
        gathered = gather_scores(runs, pool)
        chosen = gathered.chosen({})
        cells = make_cells(gathered, chosen)
        ranked = apply_missing_rule(cells, "worst")
        several = np.flatnonzero((ranked.takes.sum(axis=0) > 1) & cells.scored)
        self.models = cells.models
        self.takes = ranked.takes[:, several]
        self.tables = [ranked.values[t] for t in several]
        names = list(chosen.values())
        self.relative = [is_ratio(names[t], cells.means[:, t]) for t in several]
        self.full_jobs = int(
            sum(t.shape[1] * k for t, k in zip(self.tables, self.takes.sum(axis=0), strict=True))
        )
        self.ranks = rank_models(self.tables, self.takes)

    @property
    def best(self) -> int:
        """The first model of the leaderboard of all results."""
        if np.isnan(self.ranks.mean).all():
            raise DataError(
                "no model shares a task with every other, so there is no best one to compare with; "
                "replay the runs of each group of models by itself."
            )
        return int(np.nanargmin(self.ranks.mean))

    def race(
        self, rules: Rules, folds: int, rng: np.random.Generator
    ) -> tuple[dict[str, Any], RaceState]:
        """Return the result of a race in a random order, and its state."""
        state = RaceState(rules, [0] * len(self.models))
        used: list[tuple[int, np.ndarray]] = []
        jobs = 0
        for t in rng.permutation(len(self.tables)):
            table = self.tables[t]
            block = table[:, rng.permutation(table.shape[1])[:folds]]
            if state.over:
                break
            there = state.running & self.takes[:, t]
            if there.sum() > 1:
                jobs += int(there.sum()) * block.shape[1]
            state.update(block, self.takes[:, t], self.relative[t])
            used.append((int(t), block))
        top, remaining = self.ranks.top, state.remaining
        return {
            "jobs": jobs / self.full_jobs,
            "tasks": state.tasks,
            "decided": bool(state.over),
            "remain": int(remaining.sum()),
            "best_kept": bool(remaining[self.best]),
            "top_kept": bool(remaining[top].all()),
            "same_top": bool((self._top(remaining, used) == top).all()),
        }, state

    def _top(self, remaining: np.ndarray, used: list[tuple[int, np.ndarray]]) -> np.ndarray:
        """Return the top group of the models that remain, on the tasks and folds of a race."""
        top = remaining.copy()
        if remaining.sum() > 1:
            models = np.flatnonzero(remaining)
            takes = self.takes[np.ix_(models, np.array([t for t, _ in used]))]
            top[models] = rank_models([block[models] for _, block in used], takes).top
        return top

    def model_table(self, states: Iterable[RaceState]) -> pd.DataFrame:
        """Return how often and when each model left, the best model first."""
        after: list[list[int]] = [[] for _ in self.models]
        number = 0
        for state in states:
            number += 1
            for leaving in state.exits:
                if leaving.reason == ELIMINATED:
                    after[leaving.model].append(leaving.after)
        table = pd.DataFrame(
            {
                "model": self.models,
                "rank": self.ranks.mean,
                "top": self.ranks.top,
                "eliminated": [len(numbers) / number for numbers in after],
                "after_tasks": [
                    float(np.mean(numbers)) if numbers else math.nan for numbers in after
                ],
            }
        )
        return table.sort_values("rank", kind="stable").reset_index(drop=True)
