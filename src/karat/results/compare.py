"""Compare: a run beside earlier ones, task by task: values, ranks, coverage, and what differs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.metrics.base import get_metric
from karat.results.beside import ALL, Side, find_others, find_run, make_sides
from karat.results.cells import DECLINED, FAILED, NOT_RUN, OK
from karat.results.contest import (
    NO_FOLD,
    NOT_MEASURED,
    OTHER_DATA,
    OTHER_FOLDS,
    OTHER_PROBE,
    Contest,
    Round,
)
from karat.results.files import write_atomic
from karat.results.run import Run

VALUES = (
    *("run", "model", "task", "dataset", "kind", "view", "metric", "value", "rank", "folds"),
    *("coverage", "status"),
)
RANKS = (
    *("task", "dataset", "kind", "view", "metric", "higher_is_better", "value", "rank", "compared"),
    *("best_run", "best_model", "best_value", "difference", "difference_low", "difference_high"),
    *("folds", "coverage", "best_coverage", "failed", "absent", "questions", "asked"),
)
#: why a run is not compared on a task, as it is said
_SAID = {
    FAILED: "{who} has no score on {tasks}: failed.",
    DECLINED: "{who} declines {tasks}.",
    NOT_RUN: "{who} has not run {tasks}.",
    NOT_MEASURED: "{who} has not measured {tasks}.",
    OTHER_DATA: "{who} has other data on {tasks}: not compared there.",
    OTHER_PROBE: "{who} was asked {tasks} another way (probe, missing): not compared there.",
    OTHER_FOLDS: "{who} has other folds on {tasks}: not compared there.",
    NO_FOLD: "{who} has no fold of {tasks} that the others have: not compared there.",
}


@dataclass(frozen=True, eq=False)
class Comparison:
    """A run beside others.

    Attributes
    ----------
    run, others
        The run, and those that have a task in common with it.
    values
        One row per run, task, view and metric: ``run`` (its folder), ``model``, ``task``,
        ``dataset``, ``kind``, ``view``, ``metric``, ``value`` (mean over ``folds``, those that all
        have), ``rank``, ``coverage``, ``status``.
    ranks
        One row per task, view and metric: the run's ``value``, its ``rank`` of so many
        ``compared`` (1 is best, equal values share the better rank), the best other run, the
        ``difference`` to it with a 95 % interval over folds, how many ``failed`` or are ``absent``,
        and on how many ``questions`` of those ``asked``, where only common ones were compared.
    notes
        What a reader must know: who is left out and why, which folds and questions count.
    common
        Whether the comparison is on the questions that all runs know.
    """

    run: Run
    others: list[Run]
    values: pd.DataFrame
    ranks: pd.DataFrame
    notes: list[str]
    common: bool = False

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"{self.ranks.to_html(index=False)}<ul>{notes}</ul>"

    def to_csv(self, folder: str | Path) -> list[Path]:
        """Write ``comparison_values.csv`` and ``comparison_ranks.csv``, and return the files."""
        tables = {"values": self.values, "ranks": self.ranks}
        paths = {name: Path(folder) / f"comparison_{name}.csv" for name in tables}
        for name, table in tables.items():
            write_atomic(paths[name], table.to_csv(index=False, lineterminator="\n"))
        return list(paths.values())


def compare(
    run: Run | str | Path,
    others: Run | str | Path | Iterable[Run | str | Path] = ALL,
    *,
    metric: str | None = None,
    common: bool = False,
    views: bool = False,
) -> Comparison:
    """Return how a run stands beside others on the tasks they share.

    Only what can be compared is: runs of the same seed on the same data, on the folds that all
    have. Who is left out, and why, stands in ``notes``.

    Parameters
    ----------
    run
        A run folder.
    others
        ``"all"`` runs in the same output folder, or run folders, or the names of folders there.
    metric
        One metric instead of all that the tasks have.
    common
        Compare on the questions that all runs know, computed again from the predictions.
    views
        Compare on corrupted test folds too, not on clean ones alone.
    """
    first = find_run(run)
    found, notes = find_others(first, others)
    mine, *rest = make_sides([first, *found])
    mine.check()
    asked = _asked(mine, metric, notes)
    sides = [mine, *_comparable(mine, rest, notes)]
    contests = []
    values: list[tuple[Any, ...]] = []
    ranks: list[tuple[Any, ...]] = []
    for task, metrics in asked.items():
        for view in mine.answered.get(task, {CLEAN: {}}) if views else (CLEAN,):
            contest = Contest(sides, task, view)
            if common:
                contest.cut(metrics)
            for name in metrics:
                scored = contest.score(name, _higher(mine, task, name))
                values += _values(contest, scored)
                ranks.append(_rank(contest, scored))
            contests.append(contest)
    frame = _typed(values, VALUES)
    notes += _told(contests, common)
    notes += _left_out(sides, frame)
    kept = [side.run for side in sides[1:]]
    notes = list(dict.fromkeys(notes))
    return Comparison(first, kept, frame, _typed(ranks, RANKS), notes, common)


# -- what is compared -----------------------------------------------------------------------


def _asked(mine: Side, metric: str | None, notes: list[str]) -> dict[str, list[str]]:
    """Return the metrics of each task that the run has tried; the others are noted."""
    tried: dict[str, list[str]] = {}
    apart: dict[str, list[str]] = {}
    for task, about in mine.tasks.items():
        state = mine.state(task)
        if state in (OK, FAILED):
            tried[task] = [str(name) for name in about["metrics"]]
        else:
            apart.setdefault(state, []).append(task)
    notes += [_SAID[s].format(who="This run", tasks=", ".join(t)) for s, t in apart.items()]
    if not tried:
        raise DataError(f"{mine.run.folder} has no finished job: there is nothing to compare.")
    if metric is None:
        return tried
    known = {name for names in tried.values() for name in names}
    if metric not in known:
        hint = did_you_mean(metric, known) or f" It has: {', '.join(sorted(known))}."
        raise DefinitionError(f'the run has no metric "{metric}".{hint}')
    without = [task for task, names in tried.items() if metric not in names]
    notes += [f"Without {metric}: {', '.join(without)}."] if without else []
    return {task: [metric] for task, names in tried.items() if metric in names}


def _comparable(mine: Side, rest: Sequence[Side], notes: list[str]) -> list[Side]:
    """Return the runs that share a task and the seed with this one; the others are noted."""
    apart = [side for side in rest if not side.tasks.keys() & mine.tasks.keys()]
    seeds = [side for side in rest if side not in apart and side.seed != mine.seed]
    if not rest:
        notes.append(f"There is no other run in {mine.run.folder.resolve().parent.name}.")
    if apart:
        notes.append(f"No task in common: {', '.join(side.name for side in apart)}.")
    if seeds:
        named = ", ".join(f"{side.name} ({side.seed})" for side in seeds)
        notes.append(
            f"Another seed than this run's {mine.seed}, so other folds, not compared: {named}."
        )
    kept = []
    for side in rest:
        if side not in apart and side not in seeds:
            try:
                side.check()
                kept.append(side)
            except DataError as error:
                notes.append(f"{side.name} is left out: {error}")
    return kept


def _higher(mine: Side, task: str, metric: str) -> bool:
    told = mine.tasks[task].get("higher_is_better", {}).get(metric)
    return get_metric(metric).higher_is_better if told is None else bool(told)


# -- the rows -------------------------------------------------------------------------------


def _head(contest: Contest, scored: Round) -> tuple[Any, ...]:
    about = contest.sides[0].tasks[contest.task]
    dataset, kind = str(about.get("dataset", "")), str(about.get("kind") or "")
    return contest.task, dataset, kind, contest.view.name, scored.metric


def _values(contest: Contest, scored: Round) -> Iterator[tuple[Any, ...]]:
    """Yield a row per run."""
    head = _head(contest, scored)
    for i, side in enumerate(contest.sides):
        value, rank = scored.values[i], scored.ranks[i]
        folds = 0 if np.isnan(value) else scored.folds
        last = folds, scored.coverage[i], scored.states[i]
        yield side.name, side.model, *head, value, rank, *last


def _rank(contest: Contest, scored: Round) -> tuple[Any, ...]:
    """Return the row of the run itself."""
    best = scored.best
    other: tuple[Any, ...] = ("", "", np.nan)
    if best is not None:
        other = contest.sides[best].name, contest.sides[best].model, scored.values[best]
    failed = scored.states.count(FAILED)
    compared = int((~np.isnan(scored.values)).sum())
    return (
        *_head(contest, scored),
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
        len(contest.sides) - compared - failed,
        *(contest.questions or (None, None)),
    )


def _typed(rows: list[tuple[Any, ...]], columns: Sequence[str]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=list(columns))
    whole = [name for name in ("rank", "questions", "asked") if name in table]
    return table.astype({name: "Int64" for name in whole})


# -- what is said ---------------------------------------------------------------------------


def _told(contests: Sequence[Contest], common: bool) -> Iterator[str]:
    """Yield the notes of the tasks, and where coverage makes a comparison doubtful."""
    said: dict[str, dict[str, None]] = {}
    for about, what in (note for contest in contests for note in contest.notes):
        said.setdefault(what, {})[about] = None
    yield from (f"{', '.join(about)}: {what}" for what, about in said.items())
    differ = [c.task for c in contests if c.questions is None and c.coverage_differs]
    if differ and not common:
        yield (
            f"{', '.join(dict.fromkeys(differ))}: the runs know different shares of the questions; "
            f"--common (common=True) compares on those that all know."
        )


def _left_out(sides: Sequence[Side], values: pd.DataFrame) -> Iterator[str]:
    """Yield who has no value on which tasks, and why."""
    lost = values[values["status"] != OK]
    many = values.groupby(["run", "task", "view"]).size()
    for i, side in enumerate(sides):
        mine = lost[lost["run"] == side.name]
        for state, part in mine.groupby("status", sort=False):
            where = []
            for (task, view), rows in part.groupby(["task", "view"], sort=False):
                seen = task if view == CLEAN.name else f"{task}, {view}"
                few = len(rows) < many[side.name, task, view]
                where.append(f"{seen} ({', '.join(rows['metric'])})" if few else seen)
            who = side.model if i else "This run"
            said = _SAID.get(state, "{who} on {tasks}: {state}; not compared there.")
            yield said.format(who=who, tasks=", ".join(where), state=state)
