"""Some runs on one task and view: scores on the folds and questions that they share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from karat.core.predictions import Predictions
from karat.corruptions.view import View
from karat.errors import KaratError
from karat.metrics.metric import get_metric, score
from karat.results.load import FAILED, OK
from karat.results.pooling import question_difference
from karat.results.selection import Answered, Side, Unit
from karat.stats.paired_tests import corrected_t, fold_ratio


class CannotRestrict(KaratError):
    """The predictions of a task cannot be restricted to some of its questions."""


class CannotCompare(KaratError):
    """A run (``place``) has no predictions for these questions."""

    def __init__(self, place: int, reason: str) -> None:
        self.place = place
        super().__init__(reason)


@dataclass
class Cut:
    """Scores of each run by fold on ``questions`` of those ``asked``.

    ``reasons`` tell by metric why a score is missing, ``candidates`` is each run's largest number
    of candidate answers, where recorded.
    """

    scores: list[dict[Unit, dict[str, float | None]]]
    questions: int = 0
    asked: int = 0
    reasons: dict[str, str] = field(default_factory=dict)
    candidates: list[int] = field(default_factory=list)


def cut_to_common(
    sides: Sequence[Side], task: str, view: View, units: Sequence[Unit], metrics: Sequence[str]
) -> Cut:
    """Return the scores on the questions of each fold that all runs can answer.

    Raises ``CannotRestrict`` where a prediction is not about one question, and ``CannotCompare``
    where a run's predictions cannot be read or belong to other questions than the first run's.
    """
    cut = Cut([{} for _ in sides], candidates=[0] * len(sides))
    for unit in units:
        folds = [side.answered[task][view][unit] for side in sides]
        answers = [_read(sides, i, task, view, unit) for i in range(len(sides))]
        rows_of = common_rows(answers, folds)
        cut.questions += len(rows_of[0])
        cut.asked += folds[0].questions
        for i, (each, rows) in enumerate(zip(answers, rows_of, strict=True)):
            part = each.take(rows)
            if part.candidates is not None and len(part):
                cut.candidates[i] = max(cut.candidates[i], int(part.candidates.max()))
            graded = {name: score(name, part) for name in metrics}
            cut.scores[i][unit] = {name: value for name, (value, _) in graded.items()}
            cut.reasons |= {name: why for name, (_, why) in graded.items() if why}
    return cut


def common_rows(answers: Sequence[Predictions], folds: Sequence[Answered]) -> list[np.ndarray]:
    """Return each run's rows of the questions that all can answer, in the order of the questions.

    >>> one = Predictions([1.0, 2.0], [1.0, 3.0], question=[0, 2])
    >>> other = Predictions([5.0, 6.0, 7.0], [1.0, 2.0, 3.0], known=[0, 1, 1])
    >>> folds = [Answered({}, 2 / 3, 3, 0)] * 2
    >>> [rows.tolist() for rows in common_rows([one, other], folds)]
    [[1], [2]]
    """
    places = [_places(each, fold) for each, fold in zip(answers, folds, strict=True)]
    shared = places[0]
    for each in places[1:]:
        shared = shared[np.isin(shared, each)]
    shared = np.sort(shared[shared >= 0])
    rows = []
    for i, each in enumerate(places):
        order = np.argsort(each, kind="stable")
        rows.append(order[np.searchsorted(each[order], shared)])
        if not np.array_equal(answers[i].target[rows[i]], answers[0].target[rows[0]]):
            raise CannotCompare(i, "its folds have other questions")
    return rows


def _places(answers: Predictions, fold: Answered) -> np.ndarray:
    """Return the question of each row, -1 where the model cannot answer it."""
    if answers.weight is not None:
        raise CannotRestrict("a row of its predictions counts for several pairs")
    if answers.rank is not None and answers.group is not None:
        if len(set(answers.group.tolist())) < len(answers):
            raise CannotRestrict("the predictions of a query are one ranked list")
    if answers.question is not None:
        places = np.asarray(answers.question)
    elif len(answers) == fold.questions and (answers.known is not None or fold.coverage == 1):
        places = np.arange(len(answers))
    else:
        raise CannotRestrict("there is not one prediction per question")
    return places if answers.known is None else np.where(answers.known == 1, places, -1)


def _read(sides: Sequence[Side], place: int, task: str, view: View, unit: Unit) -> Predictions:
    fold, draw = unit
    try:
        return sides[place].run.predictions(task, fold, replace(view, draw=draw).name)
    except (KaratError, ValueError, KeyError, TypeError) as error:
        raise CannotCompare(place, f"its predictions of fold {fold} cannot be read") from error


#: why a run that has scores is not compared on a task
OTHER_DATA, OTHER_FOLDS, NO_FOLD = "other data", "other folds", "no common fold"
OTHER_PROBE, OTHER_SPLIT = "other probe", "other split"
#: the same by the fact in which two questions differ
DIFFERENCES = {
    **{"data": OTHER_DATA, "probe": OTHER_PROBE, "missing": OTHER_PROBE, "metric": "other metric"},
    **dict.fromkeys(("split", "count", "rows"), OTHER_SPLIT),
    "positive": "other positive class",
}
NOT_MEASURED = "not measured"
#: relative tolerance below which values are equal: means differ in their last bits
TIE = 1e-12


@dataclass(frozen=True)
class Round:
    """Values, ranks, states and coverage of all runs in one metric.

    ``best`` is the index of the best other run, if any, and ``difference`` that of the first run
    minus it, with its interval over folds.
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
    """Runs on a task; the first is compared with the others."""

    def __init__(self, sides: Sequence[Side], task: str, view: View) -> None:
        self.sides = sides
        self.task = task
        self.view = view
        #: pairs of task (and view) and text
        self.notes: list[tuple[str, str]] = []
        self.questions: tuple[int, int] | None = None
        self.states = [comparable_state(sides[0], side, task, view) for side in sides]
        self.units: list[dict[Unit, Answered]] = [
            side.answered.get(task, {}).get(view, {}) if state == OK else {}
            for side, state in zip(sides, self.states, strict=True)
        ]

    @property
    def about(self) -> str:
        """The task, and the view unless it is the clean one."""
        return self.task if not self.view.corruption else f"{self.task}, {self.view.name}"

    @property
    def coverage_differs(self) -> bool:
        """Whether the runs cover different shares of the questions."""
        shares = [_coverage(units, units) for units in self.units if units]
        return len(shares) > 1 and max(shares) - min(shares) > TIE

    # -- questions that all runs can answer -------------------------------------------------

    def cut(self, metrics: Sequence[str]) -> None:
        """Replace the scores by those on the questions that all runs can answer.

        Where that is impossible the scores stay and a note gives the reason.
        """
        while len(there := [i for i, each in enumerate(self.units) if each]) > 1 and not there[0]:
            units, lost = shared_units([set(self.units[i]) for i in there])
            try:
                if lost:
                    raise CannotCompare(lost[0], NO_FOLD)
                self._cut(there, units, metrics)
                return
            except CannotCompare as error:
                if error.place:
                    self.states[there[error.place]] = str(error)
                    self.units[there[error.place]] = {}
                    continue
                reason = f"this run: {error}"
            except CannotRestrict as error:
                reason = str(error)
            self._note(f"compared on all questions of each run: {reason}.")
            return

    def _cut(self, there: list[int], units: list[Unit], metrics: Sequence[str]) -> None:
        made = cut_to_common([self.sides[i] for i in there], self.task, self.view, units, metrics)
        self._note_folds(
            self.about, [_folds(answers) for answers in self.units], len(_folds(units))
        )
        for place, scores in zip(there, made.scores, strict=True):
            old = self.units[place]
            self.units[place] = {u: replace(old[u], scores=scores[u]) for u in units}
        self.questions = (made.questions, made.asked)
        few, most = min(made.candidates), max(made.candidates)
        self._note(
            f"compared on the {made.questions:,} of {made.asked:,} questions that all "
            f"{len(there)} runs can answer."
        )
        for reason in made.reasons.values():
            self._note(reason)
        if few < most:
            self._note(f"the runs choose answers from {few:,} to {most:,} candidate items.")

    def _note(self, text: str) -> None:
        self.notes.append((self.about, text))

    # -- scores and ranks -------------------------------------------------------------------

    def score(self, metric: str, higher: bool) -> Round:
        """Return the values of a metric on the folds that all runs have, and their ranks."""
        tables = [_scored(units, metric) for units in self.units]
        shared, lost = shared_units([set(table) for table in tables])
        whole = [set(table) for table in tables] == [set(units) for units in self.units]
        states = list(self.states)
        for i, units in enumerate(self.units):
            if states[i] == OK and not tables[i]:
                measured = any(metric in fold.scores for fold in units.values())
                states[i] = FAILED if measured else NOT_MEASURED
        for i in lost:
            states[i], tables[i] = NO_FOLD, {}
        count = len(_folds(shared))
        about = self.about if whole else f"{self.about}, {metric}"
        self._note_folds(about, [_folds(table) for table in tables], count)
        folds = [_by_fold(table, shared) for table in tables]
        values = [_mean([table[unit] for unit in shared]) if table else np.nan for table in tables]
        others = [i for i, table in enumerate(tables) if i and table]
        best = max(others, key=lambda i: values[i] if higher else -values[i], default=None)
        difference = (np.nan, np.nan, np.nan)
        if best is not None and tables[0]:
            low, high = self._interval(folds[0] - folds[best], shared)
            difference = (values[0] - values[best], low, high)
        ranks = ranked(values, higher)
        coverage = [
            _coverage(units, shared if table else units)
            for units, table in zip(self.units, tables, strict=True)
        ]
        return Round(metric, higher, values, ranks, states, coverage, count, best, difference)

    def _note_folds(self, about: str, held: Sequence[set[int]], shared: int) -> None:
        union = set().union(*held)
        lacking = [
            f"{side.model} lacks {', '.join(map(str, sorted(union - folds)))}"
            for side, folds in zip(self.sides, held, strict=True)
            if folds and folds != union
        ]
        if lacking:
            shared_by_all = f"compared on the {shared} of {len(union)} folds that all have"
            self.notes.append((about, f"{shared_by_all}; {'; '.join(lacking)}."))

    def _interval(self, differences: np.ndarray, shared: list[Unit]) -> tuple[float, float]:
        """Return the interval of the mean difference; NaN if it is equal in all folds."""
        if len(differences) < 2 or np.ptp(differences) <= TIE:
            return np.nan, np.nan
        found = corrected_t(differences, self.ratio(shared))
        return float(found.low), float(found.high)

    def ratio(self, shared: Iterable[Unit]) -> float:
        """Return n_test / n_train of some folds; see ``fold_ratio``."""
        train, test = zip(*(self.units[0][unit].sizes for unit in shared), strict=True)
        records = [r for r in self.sides[0].run.records() if r["task"] == self.task]
        repeats = Counter(repeat for repeat, _ in {(r["repeat"], r["fold"]) for r in records})
        return fold_ratio(train, test, max(repeats.values(), default=0))


def comparable_state(first: Side, side: Side, task: str, view: View) -> str:
    """Return "ok" if a run can be compared with the first on a task, or why not."""
    state = side.state(task, view)
    if side is first or task not in side.tasks:
        return state
    if side.data(task)[1] and side.data(task) != first.data(task):
        return OTHER_DATA
    if side.probe(task) is not None and side.probe(task) != first.probe(task):
        return OTHER_PROBE
    differs = question_difference(first.run, side.run, (task, task))
    if differs in ("split", "rows", "positive"):
        return DIFFERENCES[differs]
    one, other = _sizes(first, task), _sizes(side, task)
    if any(one[fold] != other[fold] for fold in one.keys() & other.keys()):
        return OTHER_FOLDS
    return state


def shared_units(held: Sequence[set[Unit]]) -> tuple[list[Unit], list[int]]:
    """Return the folds shared by all runs that have any, and the indices of runs left out.

    Runs are intersected by the number of folds they share with the first, most first; a run that
    would leave no common fold is left out.

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
    """Return the rank of each value, 1 is best; equal values share the better rank.

    None for a missing value, and where there are fewer than two values.

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


def higher_is_better(sides: Sequence[Side], task: str, metric: str) -> bool:
    """Return the direction of a metric as the runs recorded it, else as it is registered."""
    for side in sides:
        recorded = side.tasks.get(task, {}).get("higher_is_better", {}).get(metric)
        if recorded is not None:
            return bool(recorded)
    return get_metric(metric).higher_is_better


def _sizes(side: Side, task: str) -> dict[int, tuple[int, int]]:
    """Return the numbers of train and test questions of each fold."""
    views = side.answered.get(task, {}).values()
    return {fold: answer.sizes for units in views for (fold, _), answer in units.items()}


def _folds(units: Iterable[Unit]) -> set[int]:
    return {fold for fold, _ in units}


def _scored(units: dict[Unit, Answered], metric: str) -> dict[Unit, float]:
    found = {unit: answer.scores.get(metric) for unit, answer in units.items()}
    return {unit: float(value) for unit, value in found.items() if value is not None}


def _by_fold(table: dict[Unit, float], shared: Sequence[Unit]) -> np.ndarray:
    """Return each fold's mean over draws; no folds if there is no score."""
    folds: dict[int, list[float]] = {}
    for unit in shared if table else ():
        folds.setdefault(unit[0], []).append(table[unit])
    return np.array([_mean(values) for values in folds.values()])


def _coverage(units: dict[Unit, Answered], chosen: Iterable[Unit]) -> float:
    return _mean([units[unit].coverage for unit in chosen])


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if len(values) else float("nan")
