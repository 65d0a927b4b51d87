"""Contest: some runs on one task through one view, on the folds and questions they can share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from karat.corruptions.view import View
from karat.results.beside import Answered, Side, Unit
from karat.results.cells import FAILED, OK
from karat.results.known import Stranger, Uncut, cut_to_common
from karat.results.significance import corrected_t, fold_ratio

#: why a run that has scores is not compared on a task
OTHER_DATA, OTHER_FOLDS, NO_FOLD = "other data", "other folds", "no common fold"
OTHER_PROBE = "other probe"
NOT_MEASURED = "not measured"
#: values this near, by their size, are equal: a mean of folds differs in its last bits
TIE = 1e-12


@dataclass(frozen=True)
class Round:
    """What a metric says: values, ranks, states and coverage of all runs, the first one's first.

    ``best`` is the place of the best other run, if there is one, and ``difference`` what the first
    has above it, with its interval over folds.
    """

    metric: str
    higher: bool
    values: list[float]
    ranks: list[int | None]
    states: list[str]
    coverage: list[float]
    folds: int
    best: int | None
    difference: tuple[float, float, float]


class Contest:
    """Runs on a task; the first is the one that is compared with the others."""

    def __init__(self, sides: Sequence[Side], task: str, view: View) -> None:
        self.sides = sides
        self.task = task
        self.view = view
        #: what they are about, and what is said
        self.notes: list[tuple[str, str]] = []
        self.questions: tuple[int, int] | None = None
        self.states = [standing(sides[0], side, task, view) for side in sides]
        self.units: list[dict[Unit, Answered]] = [
            side.answered.get(task, {}).get(view, {}) if state == OK else {}
            for side, state in zip(sides, self.states, strict=True)
        ]

    @property
    def about(self) -> str:
        """The task, and the view where it is not the clean one."""
        return self.task if not self.view.corruption else f"{self.task}, {self.view.name}"

    @property
    def coverage_differs(self) -> bool:
        """Whether some run knows more of the questions than another."""
        shares = [_coverage(units, units) for units in self.units if units]
        return len(shares) > 1 and max(shares) - min(shares) > TIE

    # -- the questions that all know --------------------------------------------------------

    def cut(self, metrics: Sequence[str]) -> None:
        """Take in place of the scores those of the questions that all runs know.

        Where that cannot be, the scores stay as they are and a note says why.
        """
        while len(there := self._there()) > 1 and there[0] == 0:
            units, lost = shared_units([set(self.units[i]) for i in there])
            try:
                if lost:
                    raise Stranger(lost[0], NO_FOLD)
                self._cut(there, units, metrics)
                return
            except Stranger as error:
                if error.place:
                    self.states[there[error.place]] = str(error)
                    self.units[there[error.place]] = {}
                    continue
                reason = f"of this run, {error}"
            except Uncut as error:
                reason = str(error)
            self._note(f"compared on each run's own questions: {reason}.")
            return

    def _cut(self, there: list[int], units: list[Unit], metrics: Sequence[str]) -> None:
        made = cut_to_common([self.sides[i] for i in there], self.task, self.view, units, metrics)
        self._note_folds(self.about, [_folds(told) for told in self.units], len(_folds(units)))
        for place, scores in zip(there, made.scores, strict=True):
            told = self.units[place]
            self.units[place] = {u: replace(told[u], scores=scores[u]) for u in units}
        self.questions = (made.questions, made.asked)
        few, most = min(made.candidates), max(made.candidates)
        self._note(
            f"compared on {made.questions:,} of {made.asked:,} questions that all {len(there)} "
            f"runs know."
        )
        for reason in made.reasons.values():
            self._note(reason)
        if few < most:
            self._note(f"answers are picked from what each run knows, {few:,} to {most:,} items.")

    def _note(self, said: str) -> None:
        self.notes.append((self.about, said))

    def _there(self) -> list[int]:
        return [i for i, units in enumerate(self.units) if units]

    # -- who is better ----------------------------------------------------------------------

    def score(self, metric: str, higher: bool) -> Round:
        """Return the values of a metric on the folds that all have, and who is better."""
        tables = [_scored(units, metric) for units in self.units]
        shared, lost = shared_units([set(table) for table in tables])
        whole = [set(table) for table in tables] == [set(units) for units in self.units]
        states = list(self.states)
        for i, units in enumerate(self.units):
            if states[i] == OK and not tables[i]:
                told = any(metric in fold.scores for fold in units.values())
                states[i] = FAILED if told else NOT_MEASURED
        for i in lost:
            states[i], tables[i] = NO_FOLD, {}
        many = len(_folds(shared))
        about = self.about if whole else f"{self.about}, {metric}"
        self._note_folds(about, [_folds(table) for table in tables], many)
        folds = [_by_fold(table, shared) if table else np.empty(0) for table in tables]
        values = [_mean([table[unit] for unit in shared]) if table else np.nan for table in tables]
        others = [i for i, table in enumerate(tables) if i and table]
        best = max(others, key=lambda i: values[i] if higher else -values[i], default=None)
        apart = (np.nan, np.nan, np.nan)
        if best is not None and tables[0]:
            low, high = self._interval(folds[0] - folds[best], shared)
            apart = (values[0] - values[best], low, high)
        ranks = ranked(values, higher)
        known = [
            _coverage(units, shared if table else units)
            for units, table in zip(self.units, tables, strict=True)
        ]
        return Round(metric, higher, values, ranks, states, known, many, best, apart)

    def _note_folds(self, about: str, held: Sequence[set[int]], shared: int) -> None:
        """Say who lacks which folds, where not all have the same."""
        union = set().union(*held)
        lacking = [
            f"{side.model} has no {', '.join(map(str, sorted(union - folds)))}"
            for side, folds in zip(self.sides, held, strict=True)
            if folds and folds != union
        ]
        if lacking:
            said = f"compared on the {shared} of {len(union)} folds that all have; "
            self.notes.append((about, f"{said}{'; '.join(lacking)}."))

    def _interval(self, apart: np.ndarray, shared: list[Unit]) -> tuple[float, float]:
        """Return the interval of the mean difference; none where folds do not differ in it."""
        if len(apart) < 2 or np.ptp(apart) <= TIE:
            return np.nan, np.nan
        found = corrected_t(apart, self.ratio(shared))
        return float(found.low), float(found.high)

    def ratio(self, shared: Iterable[Unit]) -> float:
        """Return n_test / n_train of some folds; see ``fold_ratio``."""
        train, test = zip(*(self.units[0][unit].sizes for unit in shared), strict=True)
        records = [r for r in self.sides[0].run.records() if r["task"] == self.task]
        repeats = Counter(repeat for repeat, _ in {(r["repeat"], r["fold"]) for r in records})
        return fold_ratio(train, test, max(repeats.values(), default=0))


def standing(mine: Side, side: Side, task: str, view: View) -> str:
    """Return whether a run can be compared on a task, or why not."""
    state = side.state(task, view)
    if side is mine or task not in side.tasks:
        return state
    if side.data(task)[1] and side.data(task) != mine.data(task):
        return OTHER_DATA
    if side.probe(task) is not None and side.probe(task) != mine.probe(task):
        return OTHER_PROBE
    one, other = _sizes(mine, task), _sizes(side, task)
    if any(one[fold] != other[fold] for fold in one.keys() & other.keys()):
        return OTHER_FOLDS
    return state


def shared_units(held: Sequence[set[Unit]]) -> tuple[list[Unit], list[int]]:
    """Return the folds that all have who have any, and the places of those left out for it.

    Who has most in common with the first is asked first; who has nothing left in common is out.

    >>> shared_units([{(0, 0), (1, 0)}, {(1, 0)}, {(2, 0)}, set()])
    ([(1, 0)], [2])
    """
    there = [i for i, units in enumerate(held) if units]
    if not there:
        return [], []
    shared, lost = held[there[0]], []
    for i in sorted(there[1:], key=lambda i: -len(held[i] & held[there[0]])):
        if shared & held[i]:
            shared = shared & held[i]
        else:
            lost.append(i)
    return sorted(shared), sorted(lost)


def ranked(values: Sequence[float], higher: bool) -> list[int | None]:
    """Return the rank of each value, 1 is best; equal ones share the better rank.

    What is missing has none, and nobody has one alone.

    >>> ranked([0.5, 0.7, float("nan"), 0.7], higher=True)
    [3, 1, None, 1]
    >>> ranked([0.5, float("nan")], higher=True)
    [None, None]
    """
    signed = np.array(values) * (1 if higher else -1)
    known = signed[~np.isnan(signed)]
    if len(known) < 2:
        return [None] * len(signed)
    return [
        None if np.isnan(v) else 1 + int((known - v > TIE * max(1.0, abs(v))).sum()) for v in signed
    ]


def _sizes(side: Side, task: str) -> dict[int, tuple[int, int]]:
    """Return how many questions teach and test in each fold."""
    views = side.answered.get(task, {}).values()
    return {fold: told.sizes for units in views for (fold, _), told in units.items()}


def _folds(units: Iterable[Unit]) -> set[int]:
    return {fold for fold, _ in units}


def _scored(units: dict[Unit, Answered], metric: str) -> dict[Unit, float]:
    found = {unit: told.scores.get(metric) for unit, told in units.items()}
    return {unit: float(value) for unit, value in found.items() if value is not None}


def _by_fold(table: dict[Unit, float], shared: Sequence[Unit]) -> np.ndarray:
    """Return the mean over draws of each fold."""
    folds: dict[int, list[float]] = {}
    for unit in shared:
        folds.setdefault(unit[0], []).append(table[unit])
    return np.array([_mean(values) for values in folds.values()])


def _coverage(units: dict[Unit, Answered], chosen: Iterable[Unit]) -> float:
    """Return the mean over folds of the share of the questions that are known."""
    return _mean([units[unit].coverage for unit in chosen])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
