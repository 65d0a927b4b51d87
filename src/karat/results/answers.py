"""Answers: two models on the very questions of a task, by their stored predictions.

McNemar's test where an answer is right or wrong, a paired bootstrap of any metric elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binom, chi2

from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError
from karat.metrics.base import score
from karat.predictions import Predictions
from karat.results.known import common_rows
from karat.results.pairing import Paired
from karat.results.significance import CONFIDENCE

#: answers to fewer questions on which two disagree are counted exactly
EXACT = 25
#: resamples of the bootstrap, and the seed that makes it repeatable
RESAMPLES = 1000
SEED = 0
MCNEMAR, BOOTSTRAP = "McNemar", "bootstrap"


@dataclass(frozen=True)
class McNemar:
    """How often only the first was right, only the second, and p of no difference."""

    first_only: int
    second_only: int
    statistic: float
    p: float
    exact: bool


def mcnemar(first: Any, second: Any, exact: bool | None = None) -> McNemar:
    """Return McNemar's test of two models' right answers to the same questions.

    Exact (binomial) where they disagree on fewer than 25 questions, else chi-square with Edwards'
    correction, unless it is said which.

    >>> mcnemar([1, 1, 1, 1, 0], [0, 0, 0, 0, 0]).p  # 2 × 0.5⁴
    0.125
    """
    one, other = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if one.shape != other.shape:
        raise DefinitionError(f"{one.size} answers cannot be paired with {other.size}.")
    left, right = int((one & ~other).sum()), int((other & ~one).sum())
    many = left + right
    counted = many < EXACT if exact is None else exact
    if counted or not many:
        p = min(1.0, 2 * float(binom.cdf(min(left, right), many, 0.5))) if many else 1.0
        return McNemar(left, right, float(min(left, right)), p, True)
    statistic = max(abs(left - right) - 1, 0) ** 2 / many
    return McNemar(left, right, statistic, float(chi2.sf(statistic, 1)), False)


@dataclass(frozen=True)
class Resampled:
    """A difference, its interval and p of none, from so many resamples that had a value."""

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
    """Return a difference under resampling of the questions, those of each fold by themselves.

    ``difference`` takes the rows drawn from each fold, the same for both models. The interval is
    that of the percentiles; p is twice the smaller share of resamples at or beyond no difference,
    one added to both counts. Resamples without a value are left out.

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


# -- on the predictions of runs -------------------------------------------------------------


@dataclass(frozen=True)
class Asked:
    """What the answers to single questions say: which test, the interval, p, of how many."""

    test: str
    low: float
    high: float
    p: float
    questions: int


def ask_answers(paired: Paired) -> Asked:
    """Return the test of a task's stored answers, on the questions that both models know.

    Of a repeated cross-validation the first repeat counts, so that no question counts twice.
    Raises a ``KaratError`` where answers cannot be read or are not about one question each.
    """
    folds = _answers(paired)
    right = [_right(one) - _right(other) for one, other in folds] if _is_share(paired) else None
    if right is not None:
        found = paired_bootstrap(lambda drawn: _mean_of(right, drawn), [len(r) for r in right])
        told = np.concatenate(right)
        p = mcnemar(told > 0, told < 0).p
        return Asked(MCNEMAR, found.low, found.high, p, len(told))
    units = [_Units(*both) for both in folds]
    found = paired_bootstrap(
        lambda drawn: _difference(units, drawn, paired.metric), [len(unit) for unit in units]
    )
    questions = sum(len(one) for one, _ in folds)
    return Asked(BOOTSTRAP, found.low, found.high, found.p, questions)


def _answers(paired: Paired) -> list[tuple[Predictions, Predictions]]:
    """Return the predictions of both, fold by fold, cut to the questions that both know."""
    if paired.sides is None or not paired.units:
        raise DataError("there are no predictions.")
    sides = paired.sides
    repeats = {r["fold"]: r["repeat"] for r in sides[0].run.records() if r["task"] == paired.task}
    first = repeats[paired.units[0][0]]
    found = []
    for unit in paired.units:
        if repeats[unit[0]] != first:
            continue
        told = [side.answered[paired.task][CLEAN][unit] for side in sides]
        answers = [side.run.predictions(paired.task, unit[0]) for side in sides]
        rows = common_rows(answers, told)
        both = [each.take(kept) for each, kept in zip(answers, rows, strict=True)]
        if len(both[0]):
            found.append((both[0], both[1]))
    if not found:
        raise DataError("there is no question that both know.")
    return found


def _is_share(paired: Paired) -> bool:
    """Whether the metric is the share of right answers."""
    return paired.metric in ("acc", "accuracy")


def _right(answers: Predictions) -> np.ndarray:
    return (answers.predictions == answers.truth).astype(float)


def _mean_of(folds: Sequence[np.ndarray], drawn: Sequence[np.ndarray]) -> float:
    return float(np.mean([fold[rows].mean() for fold, rows in zip(folds, drawn, strict=True)]))


class _Units:
    """What is drawn of a fold: single questions, or groups of them where they belong together."""

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
        # a group that is drawn twice counts twice
        names = np.repeat(np.arange(len(parts)), [len(part) for part in parts]).astype(str)
        return [replace(each.take(rows), group=names) for each in self.both]


def _difference(units: Sequence[_Units], drawn: Sequence[np.ndarray], metric: str) -> float:
    """Return the mean over folds of the first's score less the second's; NaN where one has none."""
    apart = []
    for unit, rows in zip(units, drawn, strict=True):
        one, other = (score(metric, part)[0] for part in unit.draw(rows))
        apart.append(np.nan if one is None or other is None else one - other)
    return float(np.mean(apart))
