"""A run against earlier ones, task by task: values, ranks, coverage and differences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.analysis import history_wording
from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.output.result import Result
from karat.output.table import Table
from karat.results.load import DECLINED, FAILED, NOT_RUN, OK
from karat.results.run import Run
from karat.results.selection import (
    NO_FOLD,
    NOT_MEASURED,
    OTHER_DATA,
    OTHER_FOLDS,
    OTHER_PROBE,
    OTHER_SPLIT,
    ModelRuns,
    PairedComparison,
    TaskScores,
    find_others,
    find_run,
    higher_is_better,
    make_sides,
)
from karat.results.tables import ELIMINATED

#: what is scored: all questions of a fold, or those for which all runs have a prediction
ON = ("folds", "common")
VALUES = (
    "run",
    "model",
    "task",
    "dataset",
    "kind",
    "view",
    "metric",
    "value",
    "rank",
    "folds",
    "coverage",
    "status",
)
RANKS = (
    "task",
    "dataset",
    "kind",
    "view",
    "metric",
    "higher_is_better",
    "value",
    "rank",
    "compared",
    "best_run",
    "best_model",
    "best_value",
    "difference",
    "difference_low",
    "difference_high",
    "folds",
    "coverage",
    "best_coverage",
    "failed",
    "absent",
    "questions",
    "asked",
)
_REASONS = {
    FAILED: "{run} failed on {tasks}: no score.",
    DECLINED: "{run} declines {tasks}.",
    NOT_RUN: "{run} was not run on {tasks}.",
    ELIMINATED: "{run} was not run on {tasks}: eliminated in a race.",
    NOT_MEASURED: "{run} has no such metric on {tasks}.",
    OTHER_DATA: "{run} has other data on {tasks}: not compared there.",
    OTHER_PROBE: "{run} used another probe or missing rule on {tasks}: not compared there.",
    OTHER_SPLIT: "{run} has another split on {tasks}: not compared there.",
    OTHER_FOLDS: "{run} has other folds on {tasks}: not compared there.",
    NO_FOLD: "{run} shares no fold of {tasks} with the others: not compared there.",
}
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, eq=False, repr=False)
class History(Result):
    """A run against others.

    Attributes
    ----------
    run, others
        The run, and the runs that have a task in common with it.
    values
        One row per run, task, view and metric: ``run`` (its folder), ``model``, ``task``,
        ``dataset``, ``kind``, ``view``, ``metric``, ``value`` (mean over ``folds``, those that all
        runs have), ``rank``, ``coverage``, ``status``.
    ranks
        One row per task, view and metric: the run's ``value``, its ``rank`` among the ``compared``
        runs (1 is best, equal values share the better rank), the best other run, the
        ``difference`` from it with a 95 % interval over folds, the numbers of runs that ``failed``
        or are ``absent``, and with ``on="common"`` the number of ``questions`` compared of those
        ``asked``.
    notes
        What was left out and why, and which folds and questions were compared.
    common
        Whether only the questions that all runs can answer were compared.
    """

    run: Run
    others: list[Run]
    values: pd.DataFrame
    ranks: pd.DataFrame
    notes: list[str]
    common: bool = False

    csv_prefix: ClassVar[str] = "history"
    frames: ClassVar[tuple[str, ...]] = ("ranks", "values")
    hidden: ClassVar[tuple[str, ...]] = ("run", "others")

    @property
    def sentence(self) -> str:
        """What was compared, and how often this run is the best."""
        return history_wording.history_sentence(self)

    def tables(self) -> list[Table]:
        """Return the ranks of the run, with the best other run."""
        return [history_wording.history_table(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; the run is named by its folder."""
        return {**super().to_dict(), "run": self.run.folder.resolve().name}


def compare_to_history(
    run: Run | str | Path,
    *,
    with_: Run | str | Path | Iterable[Run | str | Path] | None = None,
    metric: str | None = None,
    on: str = "folds",
    views: bool = False,
) -> History:
    """Compare a run with earlier ones on the tasks they share.

    Only runs with the same seed on the same data are compared, on the folds that all of them have.
    ``notes`` of the result list what was left out and why.

    Parameters
    ----------
    run
        A run or a run folder.
    with_
        Runs, run folders, folders of runs, or names of run folders next to ``run``. Default: all
        other runs in the same folder.
    metric
        Compare on this metric only. Default: all metrics of each task.
    on
        ``"folds"``: scores as they were measured. ``"common"``: scores computed again from the
        stored predictions, on the questions that all runs can answer.
    views
        Compare on corrupted test folds as well as on clean ones.

    Returns
    -------
    History
        Values, ranks and notes.

    Raises
    ------
    DataError
        If ``run`` cannot be read or has no finished job.
    DefinitionError
        If a run, the metric or ``on`` is unknown.

    Examples
    --------
    >>> history = karat.compare_to_history("results/onehot.s.default.local.1")  # doctest: +SKIP
    >>> history.ranks[["task", "metric", "value", "rank"]]  # doctest: +SKIP
    """
    if on not in ON:
        raise DefinitionError(f"on must be one of {', '.join(ON)}, got {on!r}.")
    current = find_run(run)
    other_runs, notes = find_others(current, with_)
    first, *rest = make_sides([current, *other_runs])
    first.check()
    metrics = _metrics(first, metric, notes)
    sides = [first, *_comparable(first, rest, notes)]
    comparisons, values, ranks = _scored(sides, metrics, on == "common", views)
    frame = _typed(values, VALUES)
    notes += [*_comparison_notes(comparisons, on == "common"), *_missing_notes(sides, frame)]
    others = [side.run for side in sides[1:]]
    table = _typed(ranks, RANKS)
    return History(current, others, frame, table, list(dict.fromkeys(notes)), on == "common")


# -- what is compared -----------------------------------------------------------------------


def _metrics(first: ModelRuns, metric: str | None, notes: list[str]) -> dict[str, list[str]]:
    """Return the metrics of each task that the run has tried; add the others to the notes."""
    tried: dict[str, list[str]] = {}
    skipped: dict[str, list[str]] = {}
    for task, facts in first.tasks.items():
        state = first.state(task)
        if state in (OK, FAILED):
            tried[task] = [str(name) for name in facts["metrics"]]
        else:
            skipped.setdefault(state, []).append(task)
    notes += [_reason(state, "This run", tasks) for state, tasks in skipped.items()]
    if not tried:
        raise DataError(f"{first.run.folder} has no finished job: there is nothing to compare.")
    if metric is None:
        return tried
    metrics = {name for names in tried.values() for name in names}
    if metric not in metrics:
        hint = did_you_mean(metric, metrics) or f" It has: {', '.join(sorted(metrics))}."
        raise DefinitionError(f'the run has no metric "{metric}".{hint}')
    without = [task for task, names in tried.items() if metric not in names]
    notes += [f"Not compared, no {metric}: {', '.join(without)}."] if without else []
    return {task: [metric] for task, names in tried.items() if metric in names}


def _comparable(first: ModelRuns, rest: Sequence[ModelRuns], notes: list[str]) -> list[ModelRuns]:
    """Return the runs that share a task and the seed with the first; note the others."""
    unrelated = [side for side in rest if not side.tasks.keys() & first.tasks.keys()]
    reseeded = [side for side in rest if side not in unrelated and side.seed != first.seed]
    if not rest:
        notes.append(f"There is no other run in {first.run.folder.resolve().parent.name}.")
    if unrelated:
        notes.append(f"No task in common: {', '.join(side.name for side in unrelated)}.")
    if reseeded:
        named = ", ".join(f"{side.name} ({side.seed})" for side in reseeded)
        notes.append(f"Not compared, seed is not {first.seed}, so the folds differ: {named}.")
    comparable = []
    for side in rest:
        if side not in unrelated and side not in reseeded:
            try:
                side.check()
                comparable.append(side)
            except DataError as error:
                notes.append(f"{side.name} is left out: {error}")
    return comparable


# -- the rows -------------------------------------------------------------------------------


def _scored(
    sides: list[ModelRuns], metrics: dict[str, list[str]], common: bool, views: bool
) -> tuple[list[PairedComparison], Rows, Rows]:
    """Return the comparison of each task and view, and the rows of both tables."""
    comparisons: list[PairedComparison] = []
    values: Rows = []
    ranks: Rows = []
    for task, names in metrics.items():
        for view in sides[0].answered.get(task, {CLEAN: {}}) if views else (CLEAN,):
            comparison = PairedComparison(sides, task, view)
            if common:
                comparison.cut(names)
            for name in names:
                scored = comparison.score(name, higher_is_better(sides[:1], task, name))
                values += _values(comparison, scored)
                ranks.append(_rank(comparison, scored))
            comparisons.append(comparison)
    return comparisons, values, ranks


def _head(comparison: PairedComparison, scored: TaskScores) -> tuple[Any, ...]:
    facts = comparison.sides[0].tasks[comparison.task]
    dataset, kind = str(facts.get("dataset", "")), str(facts.get("kind") or "")
    return comparison.task, dataset, kind, comparison.view.name, scored.metric


def _values(comparison: PairedComparison, scored: TaskScores) -> Iterator[tuple[Any, ...]]:
    head = _head(comparison, scored)
    for i, side in enumerate(comparison.sides):
        value, rank = scored.values[i], scored.ranks[i]
        folds = 0 if np.isnan(value) else scored.folds
        last = folds, scored.coverage[i], scored.states[i]
        yield side.name, side.model, *head, value, rank, *last


def _rank(comparison: PairedComparison, scored: TaskScores) -> tuple[Any, ...]:
    best = scored.best
    other: tuple[Any, ...] = ("", "", np.nan)
    if best is not None:
        other = comparison.sides[best].name, comparison.sides[best].model, scored.values[best]
    failed = scored.states.count(FAILED)
    compared = int((~np.isnan(scored.values)).sum())
    return (
        *_head(comparison, scored),
        scored.higher,
        scored.values[0],
        scored.ranks[0],
        compared,
        *other,
        *scored.difference,
        scored.folds,
        scored.coverage[0],
        np.nan if best is None else scored.coverage[best],
        failed,
        len(comparison.sides) - compared - failed,
        *(comparison.questions or (None, None)),
    )


def _typed(rows: list[tuple[Any, ...]], columns: Sequence[str]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(columns))
    return table.astype({n: "Int64" for n in ("rank", "questions", "asked") if n in table})


# -- the notes ------------------------------------------------------------------------------


def _reason(state: str, run: str, tasks: Sequence[str]) -> str:
    template = _REASONS.get(state, f"{{run}} on {{tasks}}: {state}; not compared there.")
    return template.format(run=run, tasks=", ".join(tasks))


def _comparison_notes(comparisons: Sequence[PairedComparison], common: bool) -> Iterator[str]:
    """Yield the notes of the tasks, and where the runs' coverage differs."""
    tasks_of: dict[str, dict[str, None]] = {}
    for tasks, text in (note for comparison in comparisons for note in comparison.notes):
        tasks_of.setdefault(text, {})[tasks] = None
    yield from (f"{', '.join(tasks)}: {text}" for text, tasks in tasks_of.items())
    differ = [c.task for c in comparisons if c.questions is None and c.coverage_differs]
    if differ and not common:
        yield (
            f"{', '.join(dict.fromkeys(differ))}: coverage of the questions differs between runs; "
            f'on="common" (--on common) compares on the questions that all can answer.'
        )


def _missing_notes(sides: Sequence[ModelRuns], values: pd.DataFrame) -> Iterator[str]:
    """Yield which run has no value on which tasks, and why."""
    missing = values[values["status"] != OK]
    rows_of = values.groupby(["run", "task", "view"]).size()
    for i, side in enumerate(sides):
        for state, part in missing[missing["run"] == side.name].groupby("status", sort=False):
            tasks = []
            for (task, view), rows in part.groupby(["task", "view"], sort=False):
                place_name = task if view == CLEAN.name else f"{task}, {view}"
                some = len(rows) < rows_of[side.name, task, view]
                tasks.append(f"{place_name} ({', '.join(rows['metric'])})" if some else place_name)
            yield _reason(str(state), side.model if i else "This run", tasks)
