"""Pairing: the scores of two models, task by task, on the folds that both have.

Of several runs of a model the newest that fits counts, task by task: the same seed, data, way of
asking and folds as the other model's. What cannot be paired stays, with the reason why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.view import CLEAN
from karat.errors import DefinitionError, did_you_mean
from karat.metrics.base import get_metric
from karat.results.beside import Answered, Side, Unit
from karat.results.cells import NOT_RUN, OK, make_cells
from karat.results.contest import NO_FOLD, NOT_MEASURED, Contest
from karat.results.gather import gather
from karat.results.lookup import find_two, unknown_model
from karat.results.missing import significant
from karat.results.within import fold_ratios

OTHER_SEED = "another seed"
#: what is compared: all questions of a fold, those that both know, or each question by itself
ON = ("folds", "common", "rows")


@dataclass(frozen=True)
class Paired:
    """Two models on a task: ``first`` and ``second`` are their scores, as measured, by fold.

    ``ratio`` is the number of test rows to that of train rows, NaN where it is not known. Both
    ``states`` are "ok" where they could be paired. ``own`` are the means over all folds that each
    ``held`` a score of. ``sides`` and ``units`` tell where predictions stand, if they do.
    """

    task: str
    metric: str
    higher: bool
    first: np.ndarray
    second: np.ndarray
    ratio: float
    states: tuple[str, str]
    held: tuple[int, int]
    own: tuple[float, float]
    sides: tuple[Side, Side] | None = None
    units: list[Unit] = field(default_factory=list)

    @property
    def compared(self) -> bool:
        """Whether there is a fold that both have a score of."""
        return len(self.first) > 0


@dataclass(frozen=True)
class Pairing:
    """Two models under their names, their tasks, and what a reader must know of them."""

    first: str
    second: str
    tasks: list[Paired]
    notes: list[str]


def pair(runs: Any, first: Any, second: Any, metric: str | None, on: str) -> Pairing:
    """Return two models beside each other: names in a table or some runs, or run folders."""
    if on not in ON:
        hint = did_you_mean(str(on), ON)
        raise DefinitionError(f"on is one of {', '.join(ON)}, not {on!r}.{hint}")
    if isinstance(runs, pd.DataFrame):
        if on != "folds":
            raise DefinitionError(f'a table holds no predictions: on="{on}" needs run folders.')
        return _of_table(runs, str(first), str(second), metric)
    return _of_runs(runs, first, second, metric, on)


# -- from a table of scores -----------------------------------------------------------------


def _of_table(table: pd.DataFrame, first: str, second: str, metric: str | None) -> Pairing:
    given = gather(table)
    for name in (first, second):
        if name not in given.models:
            raise DefinitionError(unknown_model(name, given.models, "the table has"))
    _check_two(first, second)
    there = given.scores["model"].isin([first, second])
    has = dict.fromkeys(given.scores.loc[there, "task"])
    if metric is None:
        chosen = {task: given.metrics[task] for task in has}
    else:
        measured = given.scores.loc[there & (given.scores["metric"] == metric), "task"]
        chosen = dict.fromkeys(dict.fromkeys(measured), metric)
        _check_metric(metric, chosen, set(given.scores["metric"]))
    notes = _without(metric, [task for task in has if task not in chosen])
    cells = make_cells(given, chosen)
    places = [given.models.index(name) for name in (first, second)]
    ratios = fold_ratios(given, cells.tasks)
    found = []
    for t, task in enumerate(cells.tasks):
        both = cells.folds[t][places] * (1 if cells.higher[t] else -1)
        states = (str(cells.states[places[0], t]), str(cells.states[places[1], t]))
        found.append(_paired(task, chosen[task], cells.higher[t], both, ratios[t], states))
    return Pairing(first, second, found, notes)


def _paired(
    task: str,
    metric: str,
    higher: bool,
    both: np.ndarray,
    ratio: float,
    states: tuple[str, str],
) -> Paired:
    known = ~np.isnan(both)
    shared = known.all(axis=0) & (states == (OK, OK))
    held = (int(known[0].sum()), int(known[1].sum()))
    own = [
        float(row[kept].mean()) if kept.any() else np.nan
        for row, kept in zip(both, known, strict=True)
    ]
    if states == (OK, OK) and not shared.any():
        states = (OK, NO_FOLD)
    first, second = _snapped(both[:, shared])
    return Paired(task, metric, higher, first, second, ratio, states, held, (own[0], own[1]))


def _snapped(both: np.ndarray) -> np.ndarray:
    """Return two rows of scores, made equal where they differ by no digit that counts."""
    same = np.equal(*significant(both))
    return np.where(same, both.mean(axis=0), both)


# -- from runs ------------------------------------------------------------------------------


def _of_runs(runs: Any, first: Any, second: Any, metric: str | None, on: str) -> Pairing:
    notes: list[str] = []
    groups = find_two(runs, first, second, notes)
    return _Work(groups[0], groups[1], metric, on, notes).done()


class _Work:
    """Two models' runs, paired task by task."""

    def __init__(
        self, firsts: list[Side], seconds: list[Side], metric: str | None, on: str, notes: list[str]
    ) -> None:
        self.firsts, self.seconds = firsts, seconds
        self.metric, self.on, self.notes = metric, on, notes

    def done(self) -> Pairing:
        """Return the tasks of both, those of the first model first."""
        tasks = dict.fromkeys(t for side in (*self.firsts, *self.seconds) for t in side.tasks)
        metrics = {task: self._metrics(task) for task in tasks}
        chosen = {task: self._chosen(names) for task, names in metrics.items()}
        if self.metric is not None:
            known = {name for names in metrics.values() for name in names}
            _check_metric(self.metric, [t for t, name in chosen.items() if name], known)
        self.notes += _without(self.metric, [t for t, name in chosen.items() if not name])
        found = [self._task(task, name) for task, name in chosen.items() if name]
        first, second = self.firsts[0].model, self.seconds[0].model
        return Pairing(first, second, found, list(dict.fromkeys(self.notes)))

    def _metrics(self, task: str) -> list[str]:
        told = [s.tasks[task]["metrics"] for s in (*self.firsts, *self.seconds) if task in s.tasks]
        return list(dict.fromkeys(str(n) for names in told for n in names if n != "?"))

    def _chosen(self, names: list[str]) -> str:
        if self.metric is None:
            return names[0] if names else ""
        return self.metric if self.metric in names else ""

    def _task(self, task: str, metric: str) -> Paired:
        sides, contest = self._fitting(task)
        units: list[dict[Unit, Answered]] = [{}, {}]
        states = [side.state(task) if side else NOT_RUN for side in sides]
        if contest is not None:
            if self.on != "folds":
                contest.cut([metric])
            self._told(contest)
            units, states = contest.units, contest.states
        # what could not be paired still has a value of its own
        tables = [
            _scores(given or _answered(side, task), metric)
            for given, side in zip(units, sides, strict=True)
        ]
        told = [
            NOT_MEASURED if state == OK and not table else state
            for state, table in zip(states, tables, strict=True)
        ]
        every = sorted({unit for table in tables for unit in table})
        both = [[table.get(unit, np.nan) for unit in every] for table in tables]
        higher = _higher([*self.firsts, *self.seconds], task, metric)
        values = np.array(both, dtype=float).reshape(2, len(every))
        made = _paired(task, metric, higher, values, np.nan, (told[0], told[1]))
        if contest is None or not made.compared:
            return made
        shared = [unit for unit in every if all(unit in table for table in tables)]
        pair = (contest.sides[0], contest.sides[1])
        return replace(made, ratio=contest.ratio(shared), sides=pair, units=shared)

    def _fitting(self, task: str) -> tuple[tuple[Side | None, Side | None], Contest | None]:
        """Return the newest two runs that can be paired; if none can, the newest and why not."""
        one = [side for side in self.firsts if task in side.tasks]
        other = [side for side in self.seconds if task in side.tasks]
        tried: Contest | None = None
        for mine in one:
            for theirs in other:
                contest = Contest([mine, theirs], task, CLEAN)
                if mine.seed != theirs.seed and contest.states == [OK, OK]:
                    contest.states[1], contest.units[1] = OTHER_SEED, {}
                if contest.states == [OK, OK]:
                    return (mine, theirs), contest
                tried = tried or contest
        return (one[0] if one else None, other[0] if other else None), tried

    def _told(self, contest: Contest) -> None:
        self.notes += [f"{about}: {said}" for about, said in contest.notes]
        if self.on == "folds" and contest.coverage_differs:
            self.notes.append(
                f"{contest.task}: the two know different shares of the questions; --common "
                f'(on="common") compares on those that both know.'
            )


def _answered(side: Side | None, task: str) -> dict[Unit, Answered]:
    return {} if side is None else side.answered.get(task, {}).get(CLEAN, {})


def _scores(units: dict[Unit, Answered], metric: str) -> dict[Unit, float]:
    found = {unit: told.scores.get(metric) for unit, told in units.items()}
    return {unit: v for unit, v in found.items() if v is not None and np.isfinite(v)}


def _higher(sides: Sequence[Side], task: str, metric: str) -> bool:
    for side in sides:
        told = side.tasks.get(task, {}).get("higher_is_better", {}).get(metric)
        if told is not None:
            return bool(told)
    return get_metric(metric).higher_is_better


def _check_two(first: str, second: str) -> None:
    if first == second:
        raise DefinitionError(f'"{first}" is named twice; name two models to compare.')


def _check_metric(metric: str, tasks: Any, known: set[str]) -> None:
    if not tasks:
        hint = did_you_mean(metric, known) or f" There are: {', '.join(sorted(known))}."
        raise DefinitionError(f'no task has the metric "{metric}".{hint}')


def _without(metric: str | None, tasks: Sequence[str]) -> list[str]:
    return [f"Without {metric or 'a metric'}: {', '.join(tasks)}."] if tasks else []
