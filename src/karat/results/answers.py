"""Two models on the single questions of a task, by their stored predictions.

McNemar's test for accuracy, a paired bootstrap for all other metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import binomtest, chi2

from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError
from karat.metrics.base import score
from karat.predictions import Predictions
from karat.results.known import common_rows
from karat.results.pairing import Paired
from karat.results.significance import CONFIDENCE

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
    right = [_right(one) - _right(other) for one, other in folds] if _is_share(paired) else None
    if right is not None:
        found = paired_bootstrap(lambda drawn: _mean_of(right, drawn), [len(r) for r in right])
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


def _is_share(paired: Paired) -> bool:
    """Whether the metric is accuracy."""
    return paired.metric in ("acc", "accuracy")


def _right(answers: Predictions) -> np.ndarray:
    return (answers.predictions == answers.truth).astype(float)


def _mean_of(folds: Sequence[np.ndarray], drawn: Sequence[np.ndarray]) -> float:
    return float(np.mean([fold[rows].mean() for fold, rows in zip(folds, drawn, strict=True)]))


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
