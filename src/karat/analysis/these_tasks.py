"""What the items and folds of these tasks show about each pair of models, not about other tasks.

The tasks are fixed: the error of a mean over them comes from the items and the training within
each task. From six tasks on, ``stats.ranking`` makes statements about other tasks like these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from karat.analysis.item_tests import AS_FITTED, LEARNERS, Separation
from karat.stats.paired_items import RESAMPLES
from karat.stats.paired_tests import ALPHA, CONFIDENCE, agreeing
from karat.stats.ranking import FEWEST_TASKS, letters_of

#: the test of a mean over these tasks
TEST = "t over these tasks, Bonferroni"
#: what two to five tasks cannot show
OTHER_TASKS = f"Whether this holds on other tasks like these needs at least {FEWEST_TASKS} tasks."
#: difference within which two models count as the same
MARGIN = 0.01
#: gains below this are differences of rounding: the scores are equal
EQUAL_SCORES = 1e-6
#: the least p of a bootstrap; it is no bound for a correction over many tasks
LEAST_P = 1 / (1 + RESAMPLES)
#: what is shown about a model against another one
BETTER, WORSE, SAME, OPEN, EQUAL, UNTESTED = (
    "better",
    "worse",
    "same",
    "open",
    "equal",
    "not tested",
)


@dataclass(frozen=True)
class PairDifferences:
    """Gains of row over column, with standard errors; the last two axes are models × models.

    ``freedom`` are the degrees of freedom, and ``step`` is by how much one item can change the
    gain; see ``MeanDifference``. Everything is NaN where a pair is not tested.
    """

    gain: np.ndarray
    error: np.ndarray
    freedom: np.ndarray
    step: np.ndarray

    def p_above(self, bound: float) -> np.ndarray:
        """Return p of the one-sided test that a gain is at most ``bound``.

        This is ``MeanDifference.p_above`` of each pair.

        >>> pair = PairDifferences(*(np.array([[v]]) for v in (0.0, 0.01, 9.0, 0.0)))
        >>> float(pair.p_above(-0.02).round(4)[0, 0])
        0.0383
        """
        away, spread = self.gain - bound, np.hypot(self.error, self.step)
        with np.errstate(invalid="ignore", divide="ignore"):
            rest = away - 2 / 3 * self.step
            root = np.sqrt(spread**2 + 4 / 3 * self.step * np.maximum(rest, 0)) - spread
            z = np.where((self.step > 0) & (rest > 0), 1.5 * root / self.step, rest / spread)
            p = scipy.special.stdtr(self.freedom, -z)
        certain = np.where(away == 0, 0.5, np.where(away > 0, 0.0, 1.0))
        p = np.where(spread == 0, certain, p)
        return np.where(np.isnan(away) | np.isnan(spread), np.nan, p)

    def p_two_sided(self) -> np.ndarray:
        """Return p of the two-sided test of each pair, not corrected."""
        above = self.p_above(0.0)
        return np.minimum(1.0, 2 * np.minimum(above, above.swapaxes(-1, -2)))

    def bounds(self, statements: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return the ends of the 95 % intervals, which hold together for so many statements.

        Bonferroni's correction of ``MeanDifference.interval``: an interval contains 0 if and only
        if its p, times the number of statements, is at least 0.05.
        """
        level = 1 - (1 - CONFIDENCE) / 2 / max(statements, 1)
        z = scipy.special.stdtrit(self.freedom, level)
        half = self.step * (1 + (z**2 - 1) / 3) + z * np.hypot(self.error, self.step)
        return self.gain - half, self.gain + half

    def over_tasks(self) -> PairDifferences:
        """Return the mean over the first axis, whose tasks are fixed and independent.

        A pair has the tasks on which it was tested; see ``MeanDifference.over_tasks``.
        """
        tested = ~np.isnan(self.error)
        count = tested.sum(axis=0).astype(float)
        count[count == 0] = np.nan
        squares = np.where(tested, self.error**2, 0.0) / count**2
        whole = squares.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = np.where(tested, squares**2 / self.freedom, 0.0).sum(axis=0)
            all_freedom = np.where(tested, self.freedom, 0.0).sum(axis=0)
            freedom = np.where(shares > 0, whole**2 / shares, all_freedom)
        gain = np.where(tested, self.gain, 0.0).sum(axis=0) / count
        step = np.where(tested, self.step, 0.0).max(axis=0) / count
        return PairDifferences(gain, np.sqrt(whole), freedom, step)


@dataclass(frozen=True, eq=False)
class TheseTasks:
    """What these tasks show about every pair of models.

    Attributes
    ----------
    models, tasks
        Their names; the tasks are those of more than one model.
    each, p_each
        Gains on each task, tasks × models × models, and their p, corrected for all pairs and tasks.
    mean, p
        Mean gains over the common tasks of each pair, and their p, corrected for all pairs.
    bounds_each, bounds
        Ends of the intervals of both, corrected likewise.
    p_same
        p of the test that a mean gain is beyond ``MARGIN``, corrected for all pairs.
    takes
        Models × tasks, whether a model takes a task.
    test, claim, why
        Name of the test of means, what it holds for, and why nothing was tested.
    """

    models: list[str]
    tasks: list[str]
    each: PairDifferences
    p_each: np.ndarray
    mean: PairDifferences
    p: np.ndarray
    p_same: np.ndarray
    bounds_each: tuple[np.ndarray, np.ndarray]
    bounds: tuple[np.ndarray, np.ndarray]
    takes: np.ndarray
    test: str
    claim: str
    why: str

    @cached_property
    def common(self) -> np.ndarray:
        """Number of common tasks of each pair."""
        return self.takes.astype(int) @ self.takes.astype(int).T

    @cached_property
    def tested(self) -> np.ndarray:
        """Number of common tasks of each pair with a test."""
        return (~np.isnan(self.each.error)).sum(axis=0)

    def letters(self, ranks: np.ndarray) -> list[str]:
        """Return letters: models that share one do not differ significantly on these tasks."""
        return letters_of(ranks, self.p)

    def may_be_best(self, ranks: np.ndarray) -> np.ndarray:
        """Return the models with a rank that no other model beats on these tasks."""
        beaten = (self.p < ALPHA) & (self.mean.gain < 0)
        return ~np.isnan(ranks) & ~beaten.any(axis=1)

    def verdict(self, one: int, other: int) -> str:
        """Return what the mean over these tasks shows about a model against another one."""
        if np.isnan(self.p[one, other]):
            return UNTESTED
        gains = self.each.gain[:, one, other]
        if (np.abs(gains[~np.isnan(gains)]) < EQUAL_SCORES).all():
            return EQUAL
        if self.p[one, other] < ALPHA:
            return BETTER if self.mean.gain[one, other] > 0 else WORSE
        # half of the level on either side: the interval is then within the margin
        return SAME if self.p_same[one, other] < ALPHA / 2 else OPEN

    def verdict_on(self, task: int, one: int, other: int) -> str:
        """Return what one task shows about a model against another one; empty if not common."""
        gain, p = self.each.gain[task, one, other], self.p_each[task, one, other]
        if not self.takes[[one, other], task].all():
            return ""
        if abs(gain) < EQUAL_SCORES:
            return EQUAL
        if np.isnan(p) or np.isnan(gain):
            return UNTESTED
        return OPEN if not p < ALPHA else BETTER if gain > 0 else WORSE

    def against(self, reference: int) -> list[dict[str, Any]]:
        """Return a row per model: its difference to a reference over these tasks, and on each.

        Positive if the model is better than the reference; the numbers of the reference are zero,
        without an interval.
        """
        low, high = self.bounds
        rows = []
        for m, name in enumerate(self.models):
            at = (m, reference)
            row = {"model": name, "difference": 0.0, "low": np.nan, "high": np.nan, "p": np.nan}
            row |= {"verdict": "reference", "tasks": 0, "tested": 0, "by_task": []}
            if m != reference:
                numbers = (self.mean.gain, low, high, self.p)
                keys = ("difference", "low", "high", "p")
                row |= {key: float(table[at]) for key, table in zip(keys, numbers, strict=True)}
                row |= {"verdict": self.verdict(*at), "tasks": int(self.common[at])}
                row |= {"tested": int(self.tested[at]), "by_task": self._by_task(*at)}
            rows.append(row)
        return rows

    def _by_task(self, one: int, other: int) -> list[dict[str, Any]]:
        """Return the difference of two models on each common task."""
        low, high = self.bounds_each
        rows = []
        for t, task in enumerate(self.tasks):
            if verdict := self.verdict_on(t, one, other):
                tables = (self.each.gain, low, high, self.p_each)
                gain, *ends, p = (float(table[t, one, other]) for table in tables)
                row = {"task": task, "difference": gain, "low": ends[0], "high": ends[1], "p": p}
                rows.append({**row, "verdict": verdict})
        return rows


def these_tasks(
    models: Sequence[str], tasks: Sequence[str], takes: np.ndarray, tests: Sequence[Separation]
) -> TheseTasks:
    """Return what some tasks show about every pair of models.

    p and intervals of single tasks are corrected for all pairs and tasks, those of the mean over
    the common tasks of a pair for all pairs (Bonferroni). A difference on a task also needs the
    test of the task, which is corrected for all pairs; with a single task this test decides.

    Parameters
    ----------
    models, tasks
        Names; each task is taken by two models or more.
    takes
        Models × tasks, whether a model takes a task.
    tests
        The test of each task, with the differences of all pairs.
    """
    by_task = PairDifferences(*np.stack([_differences(test) for test in tests], axis=1))
    mean = by_task.over_tasks()
    pairs, statements = (_tested_pairs(differences.error) for differences in (mean, by_task))
    p_each = _corrected(by_task.p_two_sided(), statements)
    of_tests = np.stack([np.where(test.p > LEAST_P, test.p, 0.0) for test in tests])
    p_each = np.maximum(p_each, np.minimum(1.0, of_tests * len(tests)))
    p_same = np.fmax(mean.p_above(-MARGIN), mean.p_above(-MARGIN).T)
    names = list(dict.fromkeys(test.test for test in tests if test.test))
    name = names[0] if len(tests) == 1 and names else TEST if names else ""
    claims = {test.claim for test in tests if test.test}
    reasons = list(dict.fromkeys(test.why for test in tests if test.why))
    return TheseTasks(
        models=list(models),
        tasks=list(tasks),
        each=by_task,
        p_each=p_each,
        mean=mean,
        p=_corrected(mean.p_two_sided(), pairs) if len(tests) > 1 else tests[0].p,
        p_same=_corrected(p_same, pairs),
        bounds_each=_agreeing_bounds(by_task, statements, p_each),
        bounds=mean.bounds(pairs) if len(tests) > 1 else _agreeing_bounds(mean, pairs, tests[0].p),
        takes=takes,
        test=name,
        claim=LEARNERS if claims == {LEARNERS} else AS_FITTED,
        why="" if names else ", ".join(reasons),
    )


def _agreeing_bounds(
    pairs: PairDifferences, statements: int, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return ends of intervals that contain 0 if and only if p is at least 0.05."""
    low, high = pairs.bounds(statements)
    half = agreeing(pairs.gain, (high - low) / 2, p)
    return pairs.gain - half, pairs.gain + half


def _differences(test: Separation) -> np.ndarray:
    """Return gains, errors, degrees of freedom and steps of a task's pairs."""
    if test.difference is None or test.error is None or test.freedom is None:
        return np.full((4, *test.p.shape), np.nan)
    step = np.where(np.isnan(test.error), np.nan, test.step)
    return np.stack([test.difference, test.error, test.freedom, step])


def _tested_pairs(errors: np.ndarray) -> int:
    """Return the number of pairs with an error; the last two axes are models × models."""
    one, other = np.triu_indices(errors.shape[-1], 1)
    return int((~np.isnan(errors[..., one, other])).sum())


def _corrected(p: np.ndarray, statements: int) -> np.ndarray:
    """Return p of pairs corrected for so many statements (Bonferroni); 1 on the diagonal."""
    corrected = np.minimum(1.0, p * max(statements, 1))
    corrected[..., np.eye(p.shape[-1], dtype=bool)] = 1.0
    return corrected
