"""Tests of paired differences and effect sizes, vectorized over the rows of an array.

Differences are first minus second, higher is better; NaN means missing. Bayesian tests return the
probability that a model is better, worse, or practically equal to another: two are practically
equal if they differ by no more than the region of practical equivalence (ROPE).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from karat.errors import DefinitionError

ALPHA = 0.05
CONFIDENCE = 0.95
#: chance to detect a true difference
POWER = 0.8
#: signed ranks of up to this many differences have an exact p, more a normal approximation
EXACT = 25
#: relative tolerance below which values are equal: means differ in their last bits
EQUAL = 1e-12
#: relative tolerance below which the sizes of differences share a rank
TIE = 1e-9
FRIEDMAN, SKILLINGS_MACK = "Friedman", "Skillings-Mack"
WILCOXON = "Wilcoxon, Holm"
#: pairs per block, which bounds memory whatever the number of models
BLOCK = 4096
#: draws from a posterior, and their seed
DRAWS = 50_000
SEED = 0
#: weight of the prior, in tasks; it assumes that both are equal
PRIOR = 0.5
#: numbers per block
BAYES_BLOCK = 2_000_000
#: what 80 % power at 5 % adds up to, in standard errors, and what the t distribution adds in pairs
_REACH, _SMALL = 1.959963985 + 0.841621234, 1.959963985**2 / 2
#: numbers from which the normal approximation is used
_MANY = 2_000
#: quantiles of the variance over which the power is averaged
_QUANTILES = 64


def holm(p: ArrayLike) -> np.ndarray:
    """Return p-values corrected after Holm (1979), which bounds the family-wise error rate.

    NaN (not tested) is ignored and stays NaN.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    result = np.array(p, dtype=float)
    tested = ~np.isnan(result)
    values = result[tested]
    order = np.argsort(values)  # the order of equal values changes nothing
    scaled = values[order] * np.arange(len(values), 0, -1)
    values[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    result[tested] = values
    return result


def benjamini_hochberg(p: ArrayLike) -> np.ndarray:
    """Return p-values corrected after Benjamini and Hochberg (1995): the false discovery rate.

    NaN (not tested) is ignored and stays NaN.

    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    result = np.array(p, dtype=float)
    (tested,) = np.nonzero(~np.isnan(result))
    falling = tested[np.argsort(-result[tested], kind="stable")]
    shares = result[falling] * len(tested) / np.arange(len(tested), 0, -1)
    result[falling] = np.minimum(np.minimum.accumulate(shares), 1.0)
    return result


def fold_ratio(train: ArrayLike, test: ArrayLike, folds: int = 0) -> float:
    """Return n_test / n_train of the folds as they were run, for the Nadeau-Bengio correction.

    ``train`` and ``test`` are the numbers of rows of each fold. Where they are not recorded, as in
    imported runs, k-fold cross-validation is assumed: 1 / (k - 1), with ``folds`` per repeat. NaN
    where there is neither.

    >>> fold_ratio([80, 80], [20, 20]), fold_ratio([], [], folds=5), fold_ratio([], [], folds=1)
    (0.25, 0.25, nan)
    """
    n_train, n_test = float(np.nansum(train)), float(np.nansum(test))
    if n_train and n_test:
        return n_test / n_train
    return 1 / (folds - 1) if folds > 1 else float("nan")


def corrected_variance(variance: ArrayLike, folds: ArrayLike, ratio: ArrayLike) -> np.ndarray:
    """Return the variance of a mean over folds after Nadeau and Bengio (2003).

    ``variance`` is that of the values over ``folds``, ``ratio`` is n_test / n_train.

    >>> float(corrected_variance(0.02, 2, ratio=1.0).round(4))
    0.03
    """
    return np.asarray(variance * (1 / np.asarray(folds) + np.asarray(ratio, dtype=float)))


@dataclass(frozen=True)
class Corrected:
    """Mean difference of each row over its folds, standard error, confidence interval, t and p.

    A row with one fold, or whose values are all equal, has only a mean; if all are 0, p is 1.
    """

    mean: np.ndarray
    error: np.ndarray
    low: np.ndarray
    high: np.ndarray
    t: np.ndarray
    p: np.ndarray
    folds: np.ndarray


def corrected_t(
    differences: ArrayLike, ratio: ArrayLike, confidence: float = CONFIDENCE
) -> Corrected:
    """Return the two-sided resampled t-test of Nadeau and Bengio (2003) of each row of folds.

    ``ratio`` is n_test / n_train, one for all rows or one per row (see ``fold_ratio``).

    >>> corrected_t([0.02, 0.04, 0.03, 0.03], ratio=1 / 3).t.round(4).tolist()  # 0.03 / 0.006236
    4.8107
    """
    observed = np.asarray(differences, dtype=float)
    present = ~np.isnan(observed)
    folds = present.sum(axis=-1)
    filled = observed if present.all() else np.where(present, observed, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = filled.sum(axis=-1) / folds
        apart = observed - mean[..., None]
        apart = apart if filled is observed else np.where(present, apart, 0)
        variance = (apart**2).sum(axis=-1) / (folds - 1)
        error = np.sqrt(corrected_variance(variance, folds, ratio))
        size = np.abs(filled).max(axis=-1, initial=0)
        error = np.where((folds > 1) & (np.sqrt(variance) > EQUAL * size), error, np.nan)
        t = mean / error
        half = scipy.special.stdtrit(folds - 1, (1 + confidence) / 2) * error
        p = 2 * scipy.special.stdtr(folds - 1, -np.abs(t))
    same = (folds > 0) & (size == 0)
    return Corrected(
        mean=mean,
        error=error,
        low=mean - half,
        high=mean + half,
        t=t,
        p=np.where(same, 1.0, p),
        folds=folds,
    )


@dataclass(frozen=True)
class MeanDifference:
    """A mean difference, its standard error, degrees of freedom, and the largest single step.

    ``step`` is by how much one item can change the mean: the range of the metric divided by the
    number of items; 0 if unknown.
    """

    mean: float
    error: float
    freedom: float
    step: float = 0.0

    def p_above(self, bound: float) -> float:
        """Return p of the one-sided test that the true mean difference is at most ``bound``.

        A t-test with a correction for few differing items, in which a normal approximation is too
        sure: one more item on which the two differ as far as they can, and the skewness of counts.
        If no two items differ, it is nearly the exact test. NaN if there is no standard error.

        >>> round(MeanDifference(0.0, 0.01, 9).p_above(-0.02), 4)  # t of 9 degrees beyond 2
        0.0383
        >>> round(MeanDifference(0.0, 0.0, 9999, step=1 / 300).p_above(-0.01), 3)  # exact: 0.99³⁰⁰
        0.062
        """
        away, spread = self.mean - bound, self._spread
        if np.isnan(spread):
            return np.nan
        if not spread:
            return 0.5 if not away else 0.0 if away > 0 else 1.0
        if not self.step:
            return float(scipy.special.stdtr(self.freedom, -away / spread))
        # z solves step × (1 + (z² - 1) / 3) + z × spread = away
        rest = away - 2 / 3 * self.step
        z = rest / spread
        if rest > 0:
            z = 1.5 / self.step * (np.sqrt(spread**2 + 4 / 3 * self.step * rest) - spread)
        return float(scipy.special.stdtr(self.freedom, -z))

    def p_below(self, bound: float) -> float:
        """Return p of the one-sided test that the true mean difference is at least ``bound``."""
        return MeanDifference(-self.mean, *self._rest).p_above(-bound)

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the interval of which both bounds have these tests.

        >>> [round(end, 3) for end in MeanDifference(0.0, 0.01, 9).interval()]
        [-0.023, 0.023]
        """
        z = float(scipy.special.stdtrit(self.freedom, (1 + confidence) / 2))
        half = self.step * (1 + (z**2 - 1) / 3) + z * self._spread
        return self.mean - half, self.mean + half

    @property
    def _rest(self) -> tuple[float, float, float]:
        return self.error, self.freedom, self.step

    @property
    def _spread(self) -> float:
        """The standard error with one more item, on which the two differ as far as they can."""
        return float(np.hypot(self.error, self.step))

    @classmethod
    def over_tasks(cls, tasks: Sequence[MeanDifference]) -> MeanDifference:
        """Return the mean over fixed tasks, whose errors are independent (Welch-Satterthwaite).

        >>> both = [MeanDifference(0.02, 0.03, 4), MeanDifference(0.04, 0.04, 4)]
        >>> found = MeanDifference.over_tasks(both)
        >>> round(found.mean, 3), round(found.error, 4), round(found.freedom, 2)
        (0.03, 0.025, 7.42)
        """
        errors = np.array([task.error for task in tasks]) / len(tasks)
        whole = float((errors**2).sum())
        shares = sum(e**4 / task.freedom for e, task in zip(errors, tasks, strict=True))
        freedom = whole**2 / shares if shares else sum(task.freedom for task in tasks)
        step = max(task.step for task in tasks) / len(tasks)
        mean = float(np.mean([task.mean for task in tasks]))
        return cls(mean, float(np.sqrt(whole)), float(freedom), step)


def agreeing(means: ArrayLike, halves: ArrayLike, p: ArrayLike) -> np.ndarray:
    """Return half widths of 95 % intervals that contain 0 if and only if p is at least 0.05.

    Where the interval of a mean and the p that decides contradict each other, as those of a t and
    of an exact test may, the half width is that of the normal distribution in which p is the p of
    the mean.

    >>> agreeing([1.0, 1.0, 1.0], [0.9, 0.9, 1.1], [0.01, 0.2, 0.01]).round(3).tolist()
    [0.9, 1.529, 0.761]
    """
    size, halves, p = np.abs(means), np.asarray(halves, dtype=float), np.asarray(p, dtype=float)
    z = -scipy.special.ndtri(np.clip(p, 1e-12, 0.5) / 2)
    of_p = size * scipy.special.ndtri((1 + CONFIDENCE) / 2) / z
    wrong = (p < ALPHA) & (halves >= size) | (p >= ALPHA) & (halves < size)
    return np.where(wrong & (size > 0), of_p, halves)


@dataclass(frozen=True)
class SignedRank:
    """Rank sums of positive and negative differences, p, and the number of tasks."""

    positive: np.ndarray
    negative: np.ndarray
    p: np.ndarray
    tasks: np.ndarray

    @property
    def effect(self) -> np.ndarray:
        """The matched rank-biserial correlation, from -1 (all negative) to 1; 0 if all are 0."""
        total = self.positive + self.negative
        balance = (self.positive - self.negative) / np.where(total > 0, total, 1)
        return np.where(self.tasks > 0, balance, np.nan)


def wilcoxon(differences: ArrayLike, zeros: str = "pratt") -> SignedRank:
    """Return the two-sided Wilcoxon signed-rank test of each row.

    Equal sizes share their mean rank. Zeros are ranked and then dropped (``"pratt"``), so that many
    equal tasks count against a difference, or dropped before ranking (``"wilcox"``). Up to 25
    differences p is exact, given the ties; beyond that it is the normal approximation, with the
    variance corrected for ties and no continuity correction.

    >>> float(wilcoxon([0.1, 0.2, 0.3, 0.4, 0.5]).p)  # 2 / 2⁵
    0.0625
    """
    if zeros not in ("pratt", "wilcox"):
        raise DefinitionError(f'zeros must be "pratt" or "wilcox", got {zeros!r}.')
    observed = np.asarray(differences, dtype=float)
    rows = _as_rows(observed)
    if zeros == "wilcox":
        rows = np.where(rows == 0, np.nan, rows)
    ranks, signs, counts = _signed_ranks(rows)
    positive = np.where(signs > 0, ranks, 0).sum(axis=1)
    negative = np.where(signs < 0, ranks, 0).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.sqrt((ranks**2).sum(axis=1) / 4)
        z = (positive - negative) / 2 / spread
    p = np.where(spread > 0, 2 * scipy.special.ndtr(-np.abs(z)), 1.0)
    few = (counts <= EXACT) & (spread > 0)
    p[few] = _exact(ranks[few], np.minimum(positive, negative)[few])
    tasks = (~np.isnan(observed)).sum(axis=-1)
    p[tasks.ravel() == 0] = np.nan
    shape = observed.shape[:-1]
    return SignedRank(
        positive=positive.reshape(shape),
        negative=negative.reshape(shape),
        p=p.reshape(shape),
        tasks=tasks,
    )


def _signed_ranks(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return ranks by size in ascending order (0 for zeros), their signs, and their number."""
    sizes = np.where(np.isnan(rows), np.inf, np.abs(rows))
    order = np.argsort(sizes, axis=1)
    sizes = np.take_along_axis(sizes, order, axis=1)
    signs = np.sign(np.nan_to_num(np.take_along_axis(rows, order, axis=1)))
    places = np.broadcast_to(np.arange(sizes.shape[1]), sizes.shape)
    with np.errstate(invalid="ignore"):
        new = np.diff(sizes, axis=1) > TIE * sizes[:, :-1]
    edge = np.ones((len(sizes), 1), dtype=bool)
    first = np.maximum.accumulate(np.where(np.hstack([edge, new]), places, 0), axis=1)
    last = np.where(np.hstack([new, edge]), places, sizes.shape[1])
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    ranks = np.where(signs == 0, 0.0, (first + last) / 2 + 1)
    return ranks, signs, np.isfinite(sizes).sum(axis=1)


def _exact(ranks: np.ndarray, smaller: np.ndarray) -> np.ndarray:
    """Return the two-sided probability of a rank sum this extreme if all signs are random."""
    if not len(ranks):
        return np.empty(0)
    doubled, which = np.unique(np.rint(2 * ranks).astype(np.intp), axis=0, return_inverse=True)
    which = which.ravel()
    # zeros and missing values change no sum; sums beyond the largest needed are not computed
    doubled = doubled[:, doubled.any(axis=0)]
    doubled_smaller = np.rint(2 * smaller).astype(np.intp)
    size = int(doubled_smaller.max()) + 1
    places, base = np.arange(size), np.arange(len(doubled))[:, None] * size
    chances = np.zeros((len(doubled), size))
    chances[:, 0] = 1.0
    for step in doubled.T:
        before = places - step[:, None]
        moved = np.where(before < 0, 0.0, chances.ravel().take(base + np.maximum(before, 0)))
        chances = (chances + moved) / 2
    below = np.cumsum(chances, axis=1)
    return np.minimum(1.0, 2 * below[which, doubled_smaller])


def omnibus_name(values: np.ndarray) -> str:
    """Return the name of the test of all models: Friedman's if no value is missing."""
    contested = values[:, (~np.isnan(values)).sum(axis=0) > 1]
    return SKILLINGS_MACK if np.isnan(contested).any() else FRIEDMAN


def skillings_mack(values: ArrayLike) -> tuple[float, float, int]:
    """Return the chi-square of Skillings and Mack (1981), its p, and the number of tasks used.

    Friedman's test for tables with missing values: a task counts with the models that it has, if
    there are two or more. Without missing values it is Friedman's test, corrected for ties; of two
    models it is the sign test.

    >>> skillings_mack([[0.9, 0.8, 0.7, 0.9], [0.5, 0.6, 0.6, 0.5], [0.1, np.nan, 0.3, 0.2]])[2]
    4
    """
    observed = np.asarray(values, dtype=float)
    observed = _snapped(observed[:, (~np.isnan(observed)).sum(axis=0) > 1])
    models, tasks = observed.shape
    if not tasks:
        return np.nan, np.nan, 0
    present = ~np.isnan(observed)
    count = present.sum(axis=0)
    apart = average_ranks(observed) - (count + 1) / 2
    apart = np.where(present, apart, 0.0)
    weight = 12 / (count + 1)
    sums = (apart * np.sqrt(weight)).sum(axis=1)
    # of each task, the variance of its ranks, times the centering of its models
    spread = weight * (apart**2).sum(axis=0) / (count - 1)
    together = -(present * spread / count) @ present.T
    together[np.diag_indices(models)] += (present * spread).sum(axis=1)
    freedom = int(np.linalg.matrix_rank(together, hermitian=True))
    if not freedom:
        return 0.0, 1.0, tasks
    statistic = float(sums @ np.linalg.pinv(together, hermitian=True) @ sums)
    return statistic, float(scipy.special.chdtrc(freedom, statistic)), tasks


def average_ranks(values: ArrayLike) -> np.ndarray:
    """Return the rank of each value in its column, 1 is the lowest; ties share their mean rank.

    NaN has no rank. This is ``scipy.stats.rankdata`` without the time to import ``scipy.stats``.

    >>> average_ranks([3.0, 1.0, np.nan, 3.0])
    array([2.5, 1. , nan, 2.5])
    """
    observed = np.asarray(values, dtype=float)
    frame = pd.Series(observed) if observed.ndim == 1 else pd.DataFrame(observed)
    return frame.rank().to_numpy()


def rank_tasks(values: np.ndarray) -> np.ndarray:
    """Return models × tasks: the rank of each value in its task; NaN where it is the only one.

    >>> rank_tasks(np.array([[0.9, 0.5], [0.9, np.nan], [0.1, np.nan]])).tolist()
    [[1.5, nan], [1.5, nan], [3.0, nan]]
    """
    ranks = average_ranks(-_snapped(values))
    return np.where((~np.isnan(values)).sum(axis=0) > 1, ranks, np.nan)


def _snapped(values: np.ndarray) -> np.ndarray:
    """Return values as integers by task, equal where the values differ only in their last bits."""
    order = np.argsort(values, axis=0, kind="stable")
    ranked = np.take_along_axis(values, order, axis=0)
    with np.errstate(invalid="ignore"):
        new = ~(np.diff(ranked, axis=0) <= EQUAL * np.abs(ranked[1:]))
    groups = np.cumsum(np.vstack([np.zeros((1, values.shape[1])), new]), axis=0)
    result = np.empty(values.shape)
    np.put_along_axis(result, order, np.where(np.isnan(ranked), np.nan, groups), axis=0)
    return result


def paired_blocks(values: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Yield first and second models of a block of pairs, and their differences, pairs × tasks."""
    one, other = np.triu_indices(len(values), 1)
    for start in range(0, len(one), BLOCK):
        here = slice(start, start + BLOCK)
        yield one[here], other[here], subtract(values[one[here]], values[other[here]])


def subtract(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return differences; 0 where the two differ only in their last bits."""
    apart = first - second
    apart[np.abs(apart) <= EQUAL * np.maximum(np.abs(first), np.abs(second))] = 0.0
    return apart


def _as_rows(values: np.ndarray) -> np.ndarray:
    """Return a 2-d array of the last axis; an empty axis becomes one NaN.

    >>> _as_rows(np.empty(0))
    array([[nan]])
    """
    shape = (int(np.prod(values.shape[:-1])), values.shape[-1])
    return values.reshape(shape) if shape[1] else np.full((shape[0], 1), np.nan)


def mean_of(rows: np.ndarray) -> np.ndarray:
    """Return the mean of each row ignoring NaN; NaN where all are."""
    present = ~np.isnan(rows)
    count = present.sum(axis=-1)
    total = np.where(present, rows, 0.0).sum(axis=-1)
    return np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)


def cohens_d(differences: ArrayLike) -> np.ndarray:
    """Return Cohen's d of paired differences: mean divided by standard deviation.

    0 if all are 0; NaN if all are equal or there is only one.

    >>> float(cohens_d([1.0, 2.0, 3.0]).round(9))  # 2 / 1
    2.0
    """
    test = corrected_t(differences, 0.0)
    with np.errstate(invalid="ignore"):
        d = test.t / np.sqrt(test.folds)
    return np.where(np.isnan(d) & (test.p == 1), 0.0, d)


def superiority(differences: ArrayLike) -> np.ndarray:
    """Return the share of each row that is positive; zeros count half.

    >>> float(superiority([0.1, 0.2, 0.0, -0.1]))
    0.625
    """
    observed = np.asarray(differences, dtype=float)
    return mean_of(np.where(np.isnan(observed), np.nan, (np.sign(observed) + 1) / 2))


@dataclass(frozen=True)
class Chances:
    """Probabilities that the first is better by more than the ROPE, equal within it, or worse.

    They add up to 1; NaN where they cannot be computed.
    """

    better: np.ndarray
    equal: np.ndarray
    worse: np.ndarray


def check_rope(rope: float) -> float:
    """Return the region of practical equivalence as a float, or raise ``DefinitionError``."""
    if not (np.isfinite(rope) and rope >= 0):
        raise DefinitionError(f"rope must be a number >= 0, such as 0.01, got {rope!r}.")
    return float(rope)


def correlated_t(differences: ArrayLike, ratio: ArrayLike, rope: float) -> Chances:
    """Return the correlated Bayesian t-test (Corani, Benavoli 2015) of each row of folds.

    The mean difference has a Student posterior with the Nadeau-Bengio variance; ``ratio`` is
    n_test / n_train. NaN for one fold or a constant difference; equal if all differences are 0.

    >>> found = correlated_t([0.0, 0.2], ratio=1.0, rope=0.1)  # t of 1 degree around 0.1
    >>> float(found.better.round(4))
    0.5
    """
    check_rope(rope)
    test = corrected_t(differences, ratio)
    freedom = test.folds - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        better = scipy.special.stdtr(freedom, (test.mean - rope) / test.error)
        worse = scipy.special.stdtr(freedom, (-rope - test.mean) / test.error)
    same = np.isnan(better) & (test.p == 1)
    better, worse = np.where(same, 0.0, better), np.where(same, 0.0, worse)
    return Chances(better, 1 - better - worse, worse)


def signed_rank(
    differences: ArrayLike, rope: float, *, draws: int = DRAWS, seed: int = SEED
) -> Chances:
    """Return the Bayesian signed-rank test (Benavoli et al. 2014) of each row of tasks.

    Tasks get random weights from a Dirichlet process whose prior is a task without difference,
    with weight 0.5. In each draw, the mean of two tasks picked by weight is most often above the
    ROPE, within it (bounds included) or below; the result is the share of draws of each.

    >>> found = signed_rank([0.1, 0.2, 0.1, 0.3], rope=0.01)
    >>> bool(found.better > 0.9), float(found.better + found.equal + found.worse)
    (True, 1.0)
    """
    check_rope(rope)
    observed = np.asarray(differences, dtype=float)
    rows = _as_rows(observed)
    shares = np.full((3, len(rows)), np.nan)
    weights: dict[int, np.ndarray] = {}
    for i, row in enumerate(rows):
        present = row[~np.isnan(row)]
        tasks = len(present)
        if tasks and tasks not in weights:
            rng = np.random.default_rng([seed, tasks])
            prior = rng.standard_gamma(PRIOR, size=(1, draws))
            weights[tasks] = np.vstack([prior, rng.standard_exponential((tasks, draws))])
        if tasks:
            shares[:, i] = _shares(present, rope, weights[tasks])
    return Chances(*shares.reshape(3, *observed.shape[:-1]))


def _shares(row: np.ndarray, rope: float, weights: np.ndarray) -> tuple[float, float, float]:
    # sorted by size, so that the order of tasks and of models does not matter
    row = np.concatenate([[0.0], row[np.argsort(np.abs(row), kind="stable")]])
    order = np.argsort(row, kind="stable")
    ranked = row[order]
    after = np.searchsorted(ranked, 2 * rope - ranked, side="right")
    before = np.searchsorted(ranked, -2 * rope - ranked, side="left")
    wins = losses = 0
    step = max(1, BAYES_BLOCK // len(row))
    for start in range(0, weights.shape[1], step):
        part = weights[order, start : start + step]
        below = np.zeros((len(part) + 1, part.shape[1]))
        np.cumsum(part, axis=0, out=below[1:])
        total = below[-1]
        above = total**2 - np.einsum("ij,ij->j", part, below[after])
        under = np.einsum("ij,ij->j", part, below[before])
        rest = total**2 - above - under
        wins += int(((above > under) & (above > rest)).sum())
        losses += int(((under > above) & (under > rest)).sum())
    draws = weights.shape[1]
    return wins / draws, (draws - wins - losses) / draws, losses / draws


def _t_power(freedom: ArrayLike, shift: ArrayLike) -> np.ndarray:
    """Return the power of a two-sided t-test at 5 %; ``shift`` is the mean in standard errors."""
    limit = scipy.special.stdtrit(freedom, (1 + CONFIDENCE) / 2)
    return np.asarray(1 - scipy.special.nctdtr(freedom, shift, limit))


def _precisions(pilot: float) -> np.ndarray:
    """Return what the estimated standard deviation may be, in true ones, equally probable.

    ``pilot`` are its degrees of freedom; infinite if the standard deviation is known.
    """
    if not np.isfinite(pilot):
        return np.ones(1)
    middle = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    return np.asarray(np.sqrt(scipy.special.chdtri(pilot, middle) / pilot))


def _reach(pilot: float) -> float:
    """Return how many standard errors a mean must be from 0 for an average power of 80 %."""
    if not np.isfinite(pilot):
        return _REACH
    shares, low, high = _precisions(pilot), _REACH / 2, 64 * _REACH
    for _ in range(60):
        middle = (low + high) / 2
        enough = scipy.special.ndtr(middle * shares - 1.959963985).mean() >= POWER
        low, high = (low, middle) if enough else (middle, high)
    return high


def _fewest(enough: Callable[[int], bool], least: int) -> float:
    """Return the smallest number from ``least`` on that is enough; infinite above 2³⁰."""
    low, high = least - 1, least
    while not enough(high):
        low, high = high, 2 * high
        if high > 2**30:
            return float("inf")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(high)


def needed_pairs(spread: float, difference: float, pilot: float = np.inf) -> int:
    """Return how many pairs detect a mean difference in 80 % of cases.

    A two-sided paired t-test at 5 %. ``spread`` is the standard deviation of the differences. If it
    was estimated, ``pilot`` are its degrees of freedom, and the power is 80 % on average over what
    the true one may be: the number is larger than for a known one.

    >>> needed_pairs(0.1, 0.05), needed_pairs(0.1, 0.3), needed_pairs(0.1, 0.05, pilot=5)
    (34, 4, 47)
    """
    if spread <= 0:
        return 3
    estimate = max(3, int(np.ceil((_reach(pilot) * spread / difference) ** 2 + _SMALL)))
    if estimate > _MANY:
        return estimate
    shift = difference / spread * _precisions(pilot)
    return int(_fewest(lambda n: _t_power(n - 1, shift * np.sqrt(n)).mean() >= POWER, 3))


def needed_folds(spread: float, difference: float, ratio: float, pilot: float = np.inf) -> float:
    """Return how many folds of a task detect a mean difference in 80 % of cases.

    The resampled t-test of ``corrected_t`` at 5 %: ``spread`` is the standard deviation over
    folds, ``ratio`` is n_test / n_train, ``pilot`` as in ``needed_pairs``. Infinite if no number is
    enough, as the folds overlap.

    >>> needed_folds(0.01, 0.01, 0.1), needed_folds(0.01, 0.01, 0.25)
    (46.0, inf)
    """
    if spread <= 0 or not np.isfinite(ratio):
        return 2.0 if spread <= 0 else float("nan")
    shift = difference / spread * _precisions(pilot)
    if difference / spread / np.sqrt(ratio) <= _reach(pilot):
        return float("inf")
    return _fewest(lambda n: _t_power(n - 1, shift / np.sqrt(1 / n + ratio)).mean() >= POWER, 2)


def needed_signs(spread: float, difference: float, pilot: float = np.inf) -> int:
    """Return how many pairs the exact two-sided sign test at 5 % needs, in 80 % of cases.

    The differences have a normal distribution with this standard deviation and mean; ``pilot`` as
    in ``needed_pairs``. The power of the test is not monotone: with a few more pairs it may be some
    points lower.

    >>> needed_signs(0.1, 0.05)
    51
    """
    shift = difference / spread * _precisions(pilot) if spread > 0 else np.full(1, np.inf)
    chance = scipy.special.ndtr(shift)
    typical = difference / spread * _REACH / _reach(pilot) if spread > 0 else np.inf
    middle = float(scipy.special.ndtr(typical))
    reach = 1.959963985 / 2 + 0.841621234 * np.sqrt(middle * (1 - middle))
    estimate = int(np.ceil((reach / (middle - 0.5)) ** 2)) if middle > 0.5 else 2**31
    if estimate > _MANY:
        return estimate
    tried = np.arange(6, estimate + 60)[:, None]
    # the most losses at which the test is significant
    most = np.floor(scipy.special.bdtrik((1 - CONFIDENCE) / 2, tried, 0.5) + 1e-9)
    chance_to_find = scipy.special.bdtrc(tried - most - 1, tried, chance)
    chance_to_find += scipy.special.bdtr(most, tried, chance)
    enough = np.where(most >= 0, chance_to_find, 0).mean(axis=1) >= POWER
    return int(tried[np.argmax(enough), 0]) if enough.any() else estimate


def detectable_difference(spread: float, pairs: int, pilot: float = np.inf) -> float:
    """Return the mean difference that this number of pairs detects in 80 % of cases; see above.

    >>> round(detectable_difference(0.1, 34), 3)
    0.049
    """
    return _reach(pilot) * spread / float(np.sqrt(max(pairs - _SMALL, 1.0)))
