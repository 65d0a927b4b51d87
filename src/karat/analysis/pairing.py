"""Two models paired by task and fold.

All runs of a model are pooled as on the leaderboard, and tasks are paired if they ask the same
question with the same seeds. Tasks that cannot be paired stay in the result, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.leaderboard import fold_ratios
from karat.analysis.score_matrix import significant
from karat.core.metric_names import recorded_metric
from karat.corruptions.view import CLEAN
from karat.errors import DefinitionError, did_you_mean
from karat.results.clusters import check_cluster_column
from karat.results.load import NOT_RUN, OK, choose_metric, frozen_runs, gather_scores, make_cells
from karat.results.pooling import question_difference
from karat.results.selection import (
    DIFFERENCES,
    NO_FOLD,
    NOT_MEASURED,
    FoldScores,
    ModelRuns,
    PairedComparison,
    Unit,
    find_two,
    higher_is_better,
    pooled_sides,
    unknown_model,
)
from karat.stats.paired_tests import (
    mean_of,
)

OTHER_SEED = "another seed"
#: what is compared: all questions of a fold, those both can answer, or each question by itself
ON = ("folds", "common", "rows")


@dataclass(frozen=True)
class Paired:
    """Two models on a task: ``first`` and ``second`` are their scores by fold, as measured.

    ``ratio`` is n_test / n_train, NaN if unknown. Both ``states`` are "ok" if they could be paired.
    ``own`` are each model's means over all folds it has a score of, ``held`` their numbers.
    ``sides`` and ``units`` locate the stored predictions, if there are any. ``cluster`` is the
    column of items that belong together, empty for the declared groups.
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
    sides: tuple[ModelRuns, ModelRuns] | None = None
    units: list[Unit] = field(default_factory=list)
    cluster: str = ""

    @property
    def compared(self) -> bool:
        """Whether both have a score of some fold."""
        return len(self.first) > 0


@dataclass(frozen=True)
class Pairing:
    """The names of two models, their tasks, and notes on what was left out.

    ``models`` is the number of models among which the two were found by their names.
    """

    first: str
    second: str
    tasks: list[Paired]
    notes: list[str]
    models: int = 2

    @property
    def compared(self) -> list[int]:
        """The places of the tasks on which both have a score."""
        return [position for position, paired in enumerate(self.tasks) if paired.compared]


def pair(
    runs: Any, first: Any, second: Any, metric: str | None, on: str, pool: str = "variant"
) -> Pairing:
    """Return two models, named in a table or in some runs or as run folders, task by task."""
    if on not in ON:
        hint = did_you_mean(str(on), ON)
        raise DefinitionError(f"on must be one of {', '.join(ON)}, got {on!r}.{hint}")
    if isinstance(runs, pd.DataFrame | Mapping):
        if on != "folds":
            raise DefinitionError(f'on="{on}" needs run folders: a table has no predictions.')
        return _of_table(runs, str(first), str(second), metric)
    notes: list[str] = []
    sides, models = find_two(runs, first, second, notes, pool)
    return replace(_RunPairing(sides, metric, on, notes).done(), models=models)


def pair_with(
    runs: Any,
    reference: str,
    others: Iterable[str],
    metric: str | None,
    pool: str = "variant",
    cluster: str | None = None,
) -> dict[str, Pairing]:
    """Return each of several models paired with a reference, all named as on the leaderboard."""
    if isinstance(runs, pd.DataFrame | Mapping):
        return {
            name: cluster_pairing(_of_table(runs, name, reference, metric), cluster)
            for name in others
        }
    sides = {side.model: side for side in pooled_sides(frozen_runs(runs), pool)}
    pairings = {
        name: _RunPairing((sides[name], sides[reference]), metric, "folds", []).done()
        for name in others
    }
    return {name: cluster_pairing(pairing, cluster) for name, pairing in pairings.items()}


def cluster_pairing(pairing: Pairing, column: str | None) -> Pairing:
    """Return a pairing whose items are tested by clusters; None and "" change nothing.

    Raises ``DefinitionError`` if no task has the column, or too few values of it.
    """
    if not column:
        return pairing
    stored = [
        (paired.task, side.run, paired.task)
        for paired in pairing.tasks
        for side in paired.sides or ()
    ]
    if not stored:
        raise DefinitionError(f'cluster "{column}" needs stored predictions of both models.')
    notes = check_cluster_column(column, stored)
    return replace(by_cluster(pairing, column), notes=[*pairing.notes, *notes])


def by_cluster(pairing: Pairing, column: str | None) -> Pairing:
    """Return a pairing whose items are tested by a column that was checked."""
    tasks = [replace(paired, cluster=column or "") for paired in pairing.tasks]
    return replace(pairing, tasks=tasks)


# -- from a table of scores -----------------------------------------------------------------


def _of_table(table: Any, first: str, second: str, metric: str | None) -> Pairing:
    gathered = gather_scores(table)
    for name in (first, second):
        if name not in gathered.models:
            raise DefinitionError(unknown_model(name, gathered.models, "the table has"))
    if first == second:
        raise DefinitionError(f'a and b are both "{first}"; name two models to compare.')
    rows = gathered.scores[gathered.scores["model"].isin([first, second])]
    tasks = dict.fromkeys(rows["task"])
    chosen = {task: gathered.metrics[task] for task in tasks}
    if metric is not None:
        metric = recorded_metric(metric, rows["metric"])
        measured = dict.fromkeys(rows.loc[rows["metric"] == metric, "task"])
        chosen = choose_metric(metric, measured, gathered.scores["metric"])
    notes = _without(metric, [task for task in tasks if task not in chosen])
    cells = make_cells(gathered, chosen)
    places = [gathered.models.index(name) for name in (first, second)]
    ratios = fold_ratios(gathered, cells.tasks)
    paired_tasks = []
    for t, task in enumerate(cells.tasks):
        both = cells.folds[t][places] * (1 if cells.higher[t] else -1)
        states = (str(cells.states[places[0], t]), str(cells.states[places[1], t]))
        paired_tasks.append(_paired(task, chosen[task], cells.higher[t], both, ratios[t], states))
    return Pairing(first, second, paired_tasks, notes, len(gathered.models))


def _paired(
    task: str, metric: str, higher: bool, both: np.ndarray, ratio: float, states: tuple[str, str]
) -> Paired:
    has_score = ~np.isnan(both)
    shared = has_score.all(axis=0) & (states == (OK, OK))
    held = (int(has_score[0].sum()), int(has_score[1].sum()))
    means = mean_of(both)
    if states == (OK, OK) and not shared.any():
        states = (OK, NO_FOLD)
    # scores that agree in all significant digits are equal
    both = both[:, shared]
    first, second = np.where(np.equal(*significant(both)), both.mean(axis=0), both)
    return Paired(
        task, metric, higher, first, second, ratio, states, held, (float(means[0]), float(means[1]))
    )


# -- from runs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Match:
    """A task of both, or of one: its name in each, and why the two cannot be paired."""

    task: str
    names: tuple[str | None, str | None]
    why: str = ""


class _RunPairing:
    """Two models' runs, paired task by task."""

    def __init__(self, sides: Sequence[ModelRuns], metric: str | None, on: str, notes: list[str]):
        self.first, self.second = sides
        self.metric, self.on, self.notes = metric, on, notes

    def done(self) -> Pairing:
        """Return the tasks of both, those of the first model first."""
        matches = {match.task: match for match in self._matches()}
        names = {task: self._metrics(match) for task, match in matches.items()}
        chosen = {task: next(iter(metrics)) for task, metrics in names.items() if metrics}
        if self.metric is not None:
            recorded = [name for several in names.values() for name in several]
            self.metric = recorded_metric(self.metric, recorded)
            measured = [task for task, metrics in names.items() if self.metric in metrics]
            chosen = choose_metric(self.metric, measured, recorded)
        self.notes += _without(self.metric, [task for task in names if task not in chosen])
        paired_tasks = [self._task(matches[task], name) for task, name in chosen.items()]
        notes = list(dict.fromkeys(self.notes))
        return Pairing(self.first.model, self.second.model, paired_tasks, notes)

    def _matches(self) -> Iterator[_Match]:
        """Yield the tasks that both have, and those of one, with what they differ in."""
        unmatched = {task: self.second.tasks[task]["task"] for task in self.second.tasks}
        for task, facts in self.first.tasks.items():
            if unmatched.pop(task, None) is not None:
                yield _Match(task, (task, task))
                continue
            free = [
                t for t in unmatched if t not in self.first.tasks and unmatched[t] == facts["task"]
            ]
            if free:
                del unmatched[free[0]]
                why = _difference(self.first, self.second, (task, free[0]))
                yield _Match(str(facts["task"]), (task, free[0]), why)
            else:
                yield _Match(task, (task, None))
        yield from (_Match(task, (None, task)) for task in unmatched)

    def _metrics(self, match: _Match) -> dict[str, None]:
        metrics: dict[str, None] = {}
        for side, task in zip((self.first, self.second), match.names, strict=True):
            task_metrics = side.tasks[task]["metrics"] if task is not None else ()
            metrics |= dict.fromkeys(str(name) for name in task_metrics if name != "?")
        return metrics

    def _task(self, match: _Match, metric: str) -> Paired:
        sides = (self.first, self.second)
        comparison = (
            None if match.why or None in match.names else PairedComparison(sides, match.task, CLEAN)
        )
        states = [
            NOT_RUN if task is None else side.state(task)
            for side, task in zip(sides, match.names, strict=True)
        ]
        units: list[dict[Unit, FoldScores]] = [{}, {}]
        if comparison is not None:
            if self.on != "folds":
                comparison.cut([metric])
            self._note(comparison)
            units, states = comparison.units, comparison.states
        elif match.why and states == [OK, OK]:
            states[1] = match.why
        # a model that could not be paired still has a value of its own
        tables = [
            _scores(unit_answers or _answered(side, task), metric)
            for unit_answers, side, task in zip(units, sides, match.names, strict=True)
        ]
        return self._paired(match, metric, (tables, states), comparison)

    def _paired(
        self,
        match: _Match,
        metric: str,
        scores_and_states: tuple[list[dict[Unit, float]], list[str]],
        comparison: PairedComparison | None,
    ) -> Paired:
        tables, states = scores_and_states
        one, other = (
            NOT_MEASURED if state == OK and not table else state
            for state, table in zip(states, tables, strict=True)
        )
        every = sorted({unit for table in tables for unit in table})
        both = [[table.get(unit, np.nan) for unit in every] for table in tables]
        named = match.names[0] or match.names[1] or match.task
        higher = higher_is_better([self.first, self.second], named, metric)
        values = np.array(both, dtype=float).reshape(2, len(every))
        paired = _paired(match.task, metric, higher, values, np.nan, (one, other))
        if comparison is None or not paired.compared:
            return paired
        shared = [unit for unit in every if all(unit in table for table in tables)]
        pair = (comparison.sides[0], comparison.sides[1])
        return replace(paired, ratio=comparison.ratio(shared), sides=pair, units=shared)

    def _note(self, comparison: PairedComparison) -> None:
        self.notes += [f"{subject}: {text}" for subject, text in comparison.notes]
        if self.on == "folds" and comparison.coverage_differs:
            self.notes.append(
                f"{comparison.task}: coverage of the questions differs between the models; "
                f'on="common" (--on common) compares on those that both can answer.'
            )


def _difference(first: ModelRuns, second: ModelRuns, tasks: tuple[str, str]) -> str:
    """Return why two tasks of one name cannot be paired."""
    return DIFFERENCES.get(question_difference(first.run, second.run, tasks), OTHER_SEED)


def _answered(side: ModelRuns, task: str | None) -> dict[Unit, FoldScores]:
    return {} if task is None else side.answered.get(task, {}).get(CLEAN, {})


def _scores(units: dict[Unit, FoldScores], metric: str) -> dict[Unit, float]:
    values = {unit: answer.scores.get(metric) for unit, answer in units.items()}
    return {unit: v for unit, v in values.items() if v is not None and np.isfinite(v)}


def _without(metric: str | None, tasks: Sequence[str]) -> list[str]:
    return [f"Not compared, no {metric or 'metric'}: {', '.join(tasks)}."] if tasks else []
