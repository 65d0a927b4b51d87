"""The scores of two models on the folds, or the questions, that both have.

Of several runs of a model the newest that fits counts, task by task: the same seed, data, probe and
folds as the other model's. Tasks that cannot be paired stay in the result, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest, chi2

from karat.analysis.leaderboard import fold_ratios
from karat.analysis.score_matrix import significant
from karat.analysis.shared_items import (
    NO_FOLD,
    NOT_MEASURED,
    Contest,
    common_rows,
    higher_is_better,
)
from karat.core.predictions import Predictions
from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, did_you_mean
from karat.metrics.metric import score
from karat.results.load import NOT_RUN, OK, choose_metric, gather_scores, make_cells
from karat.results.selection import Answered, Side, Unit, find_two, unknown_model
from karat.stats.paired_tests import CONFIDENCE, mean_of

OTHER_SEED = "another seed"
#: what is compared: all questions of a fold, those both can answer, or each question by itself
ON = ("folds", "common", "rows")


@dataclass(frozen=True)
class Paired:
    """Two models on a task: ``first`` and ``second`` are their scores by fold, as measured.

    ``ratio`` is n_test / n_train, NaN if unknown. Both ``states`` are "ok" if they could be paired.
    ``own`` are each model's means over all folds it has a score of, ``held`` their numbers.
    ``sides`` and ``units`` locate the stored predictions, if there are any.
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
        """Whether both have a score of some fold."""
        return len(self.first) > 0


@dataclass(frozen=True)
class Pairing:
    """The names of two models, their tasks, and notes on what was left out."""

    first: str
    second: str
    tasks: list[Paired]
    notes: list[str]


def pair(runs: Any, first: Any, second: Any, metric: str | None, on: str) -> Pairing:
    """Return two models, named in a table or in some runs or as run folders, task by task."""
    if on not in ON:
        hint = did_you_mean(str(on), ON)
        raise DefinitionError(f"on must be one of {', '.join(ON)}, got {on!r}.{hint}")
    if isinstance(runs, pd.DataFrame):
        if on != "folds":
            raise DefinitionError(f'on="{on}" needs run folders: a table has no predictions.')
        return _of_table(runs, str(first), str(second), metric)
    notes: list[str] = []
    groups = find_two(runs, first, second, notes)
    return _RunPairing(groups[0], groups[1], metric, on, notes).done()


# -- from a table of scores -----------------------------------------------------------------


def _of_table(table: pd.DataFrame, first: str, second: str, metric: str | None) -> Pairing:
    given = gather_scores(table)
    for name in (first, second):
        if name not in given.models:
            raise DefinitionError(unknown_model(name, given.models, "the table has"))
    if first == second:
        raise DefinitionError(f'a and b are both "{first}"; name two models to compare.')
    rows = given.scores[given.scores["model"].isin([first, second])]
    tasks = dict.fromkeys(rows["task"])
    chosen = {task: given.metrics[task] for task in tasks}
    if metric is not None:
        measured = dict.fromkeys(rows.loc[rows["metric"] == metric, "task"])
        chosen = choose_metric(metric, measured, given.scores["metric"])
    notes = _without(metric, [task for task in tasks if task not in chosen])
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
    task: str, metric: str, higher: bool, both: np.ndarray, ratio: float, states: tuple[str, str]
) -> Paired:
    known = ~np.isnan(both)
    shared = known.all(axis=0) & (states == (OK, OK))
    held = (int(known[0].sum()), int(known[1].sum()))
    own = mean_of(both)
    if states == (OK, OK) and not shared.any():
        states = (OK, NO_FOLD)
    # scores that agree in all significant digits are equal
    both = both[:, shared]
    first, second = np.where(np.equal(*significant(both)), both.mean(axis=0), both)
    return Paired(
        task, metric, higher, first, second, ratio, states, held, (float(own[0]), float(own[1]))
    )


# -- from runs ------------------------------------------------------------------------------


class _RunPairing:
    """Two models' runs, paired task by task."""

    def __init__(
        self, firsts: list[Side], seconds: list[Side], metric: str | None, on: str, notes: list[str]
    ) -> None:
        self.firsts, self.seconds = firsts, seconds
        self.metric, self.on, self.notes = metric, on, notes

    def done(self) -> Pairing:
        """Return the tasks of both, those of the first model first."""
        sides = [*self.firsts, *self.seconds]
        names: dict[str, dict[str, None]] = {}
        for side in sides:
            for task, about in side.tasks.items():
                known = names.setdefault(task, {})
                known |= dict.fromkeys(str(name) for name in about["metrics"] if name != "?")
        chosen = {task: next(iter(known)) for task, known in names.items() if known}
        if self.metric is not None:
            measured = [task for task, known in names.items() if self.metric in known]
            chosen = choose_metric(
                self.metric, measured, [n for each in names.values() for n in each]
            )
        self.notes += _without(self.metric, [task for task in names if task not in chosen])
        found = [self._task(task, name) for task, name in chosen.items()]
        first, second = self.firsts[0].model, self.seconds[0].model
        return Pairing(first, second, found, list(dict.fromkeys(self.notes)))

    def _task(self, task: str, metric: str) -> Paired:
        sides, contest = self._fitting(task)
        units: list[dict[Unit, Answered]] = [{}, {}]
        states = [side.state(task) if side else NOT_RUN for side in sides]
        if contest is not None:
            if self.on != "folds":
                contest.cut([metric])
            self._note(contest)
            units, states = contest.units, contest.states
        # a model that could not be paired still has a value of its own
        tables = [
            _scores(given or _answered(side, task), metric)
            for given, side in zip(units, sides, strict=True)
        ]
        one, other = (
            NOT_MEASURED if state == OK and not table else state
            for state, table in zip(states, tables, strict=True)
        )
        every = sorted({unit for table in tables for unit in table})
        both = [[table.get(unit, np.nan) for unit in every] for table in tables]
        higher = higher_is_better([*self.firsts, *self.seconds], task, metric)
        values = np.array(both, dtype=float).reshape(2, len(every))
        made = _paired(task, metric, higher, values, np.nan, (one, other))
        if contest is None or not made.compared:
            return made
        shared = [unit for unit in every if all(unit in table for table in tables)]
        pair = (contest.sides[0], contest.sides[1])
        return replace(made, ratio=contest.ratio(shared), sides=pair, units=shared)

    def _fitting(self, task: str) -> tuple[tuple[Side | None, Side | None], Contest | None]:
        """Return the newest two runs that can be paired; if none can, the newest and why not."""
        firsts = [side for side in self.firsts if task in side.tasks]
        seconds = [side for side in self.seconds if task in side.tasks]
        tried: Contest | None = None
        for first, second in product(firsts, seconds):
            contest = Contest([first, second], task, CLEAN)
            if first.seed != second.seed and contest.states == [OK, OK]:
                contest.states[1], contest.units[1] = OTHER_SEED, {}
            if contest.states == [OK, OK]:
                return (first, second), contest
            tried = tried or contest
        return (next(iter(firsts), None), next(iter(seconds), None)), tried

    def _note(self, contest: Contest) -> None:
        self.notes += [f"{about}: {text}" for about, text in contest.notes]
        if self.on == "folds" and contest.coverage_differs:
            self.notes.append(
                f"{contest.task}: coverage of the questions differs between the models; "
                f'on="common" (--on common) compares on those that both can answer.'
            )


def _answered(side: Side | None, task: str) -> dict[Unit, Answered]:
    return {} if side is None else side.answered.get(task, {}).get(CLEAN, {})


def _scores(units: dict[Unit, Answered], metric: str) -> dict[Unit, float]:
    found = {unit: answer.scores.get(metric) for unit, answer in units.items()}
    return {unit: v for unit, v in found.items() if v is not None and np.isfinite(v)}


def _without(metric: str | None, tasks: Sequence[str]) -> list[str]:
    return [f"Not compared, no {metric or 'metric'}: {', '.join(tasks)}."] if tasks else []


#: McNemar's p is exact if the two disagree on fewer questions than this
EXACT = 25
#: resamples of the bootstrap, and their seed
RESAMPLES = 1000
SEED = 0
MCNEMAR, BOOTSTRAP = "McNemar", "bootstrap"


@dataclass(frozen=True)
class McNemar:
    """Numbers of questions that only the first, or only the second, answers correctly, and p."""

    first_only: int
    second_only: int
    statistic: float
    p: float
    exact: bool


def mcnemar(first: Any, second: Any, exact: bool | None = None) -> McNemar:
    """Return McNemar's test of two models' correct answers to the same questions.

    ``exact`` chooses the binomial test or the chi-square with Edwards' correction; by default it
    is exact if they disagree on fewer than 25 questions.

    >>> mcnemar([1, 1, 1, 1, 0], [0, 0, 0, 0, 0]).p  # 2 × 0.5⁴
    0.125
    """
    one, other = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if one.shape != other.shape:
        raise DefinitionError(f"cannot pair {one.size} answers with {other.size}.")
    left, right = int((one & ~other).sum()), int((other & ~one).sum())
    count = left + right
    if not count or (count < EXACT if exact is None else exact):
        p = float(binomtest(left, count).pvalue) if count else 1.0
        return McNemar(left, right, float(min(left, right)), p, True)
    statistic = max(abs(left - right) - 1, 0) ** 2 / count
    return McNemar(left, right, statistic, float(chi2.sf(statistic, 1)), False)


@dataclass(frozen=True)
class Resampled:
    """A difference, its interval and p, and the number of resamples that had a value."""

    difference: float
    low: float
    high: float
    p: float
    resamples: int


def paired_bootstrap(
    difference: Callable[[list[np.ndarray]], float],
    sizes: Sequence[int],
    *,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    confidence: float = CONFIDENCE,
) -> Resampled:
    """Return a difference with its interval by resampling the questions within each fold.

    ``difference`` takes the rows drawn from each fold, the same for both models. It is a percentile
    interval; p is twice the smaller share of resamples at or beyond 0, with one added to both
    counts. Resamples without a value are left out.

    >>> rows = np.array([0.0, 1.0, 1.0, 1.0])
    >>> found = paired_bootstrap(lambda drawn: float(rows[drawn[0]].mean()), [4], seed=1)
    >>> found.difference, found.high
    (0.75, 1.0)
    """
    rng = np.random.default_rng(seed)
    whole = difference([np.arange(size) for size in sizes])
    drawn = np.array(
        [difference([rng.integers(size, size=size) for size in sizes]) for _ in range(resamples)]
    )
    drawn = drawn[~np.isnan(drawn)]
    if not len(drawn):
        return Resampled(whole, np.nan, np.nan, np.nan, 0)
    tails = (1 - confidence) / 2, (1 + confidence) / 2
    low, high = np.quantile(drawn, tails)
    beyond = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    p = min(1.0, 2 * (beyond + 1) / (len(drawn) + 1))
    return Resampled(whole, float(low), float(high), p, len(drawn))


# -- stored predictions of runs -------------------------------------------------------------


@dataclass(frozen=True)
class RowTest:
    """A test on single questions: its name, interval, p, and the number of questions."""

    test: str
    low: float
    high: float
    p: float
    questions: int


def compare_predictions(paired: Paired) -> RowTest:
    """Return the test of a task's stored predictions on the questions that both can answer.

    Only the first repeat of a cross-validation is used, so that no question counts twice. Raises a
    ``KaratError`` if predictions cannot be read or are not about one question each.
    """
    folds = _answers(paired)
    if paired.metric in ("acc", "accuracy"):
        right = [_right(one) - _right(other) for one, other in folds]

        def difference(drawn: Sequence[np.ndarray]) -> float:
            return float(np.mean([r[rows].mean() for r, rows in zip(right, drawn, strict=True)]))

        found = paired_bootstrap(difference, [len(each) for each in right])
        rows = np.concatenate(right)
        p = mcnemar(rows > 0, rows < 0).p
        return RowTest(MCNEMAR, found.low, found.high, p, len(rows))
    units = [_Units(*both) for both in folds]
    found = paired_bootstrap(
        lambda drawn: _difference(units, drawn, paired.metric), [len(unit) for unit in units]
    )
    questions = sum(len(one) for one, _ in folds)
    return RowTest(BOOTSTRAP, found.low, found.high, found.p, questions)


def _answers(paired: Paired) -> list[tuple[Predictions, Predictions]]:
    """Return the predictions of both, fold by fold, on the questions that both can answer."""
    if paired.sides is None or not paired.units:
        raise DataError("there are no stored predictions.")
    sides = paired.sides
    repeats = {r["fold"]: r["repeat"] for r in sides[0].run.records() if r["task"] == paired.task}
    first = repeats[paired.units[0][0]]
    found = []
    for unit in paired.units:
        if repeats[unit[0]] != first:
            continue
        folds = [side.answered[paired.task][CLEAN][unit] for side in sides]
        answers = [side.run.predictions(paired.task, unit[0]) for side in sides]
        rows = common_rows(answers, folds)
        both = [each.take(common) for each, common in zip(answers, rows, strict=True)]
        if len(both[0]):
            found.append((both[0], both[1]))
    if not found:
        raise DataError("there is no question that both can answer.")
    return found


def _right(answers: Predictions) -> np.ndarray:
    return (answers.predictions == answers.target).astype(float)


class _Units:
    """The units resampled in a fold: single questions, or groups of them."""

    def __init__(self, one: Predictions, other: Predictions) -> None:
        self.both = one, other
        self.groups: list[np.ndarray] | None = None
        if one.group is not None:
            _, which = np.unique(one.group.astype(str), return_inverse=True)
            self.groups = [np.flatnonzero(which == g) for g in range(which.max() + 1)]

    def __len__(self) -> int:
        return len(self.both[0]) if self.groups is None else len(self.groups)

    def draw(self, drawn: np.ndarray) -> list[Predictions]:
        if self.groups is None:
            return [each.take(drawn) for each in self.both]
        parts = [self.groups[g] for g in drawn]
        rows = np.concatenate(parts)
        # a group drawn twice counts as two groups
        names = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(str)
        return [replace(each.take(rows), group=names) for each in self.both]


def _difference(units: Sequence[_Units], drawn: Sequence[np.ndarray], metric: str) -> float:
    """Return the mean over folds of the difference in score; NaN if a score is missing."""
    apart = []
    for unit, rows in zip(units, drawn, strict=True):
        one, other = (score(metric, part)[0] for part in unit.draw(rows))
        apart.append(np.nan if one is None or other is None else one - other)
    return float(np.mean(apart))
