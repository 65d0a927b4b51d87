"""Tests of paired differences over items: McNemar, a paired bootstrap, and max-T over all pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from karat.errors import DefinitionError
from karat.stats.threads import single_thread

#: McNemar's p is exact if the two disagree on fewer questions than this
EXACT = 25
#: random signs of the bootstrap, and their seed
RESAMPLES = 1999
SEED = 0
#: with fewer items nothing is tested
FEWEST_ITEMS = 6
#: two models are equal if their values differ by no more than this part of their size
SAME = 1e-5
#: resamples, and pairs, per block
_BLOCK = 128


@dataclass(frozen=True)
class McNemar:
    """Numbers of questions that only the first, or only the second, answers correctly, and p."""

    first_only: int
    second_only: int
    statistic: float
    p: float
    exact: bool


def mcnemar(first: ArrayLike, second: ArrayLike, exact: bool | None = None) -> McNemar:
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
        p = min(2 * float(scipy.special.bdtr(min(left, right), count, 0.5)), 1.0) if count else 1.0
        return McNemar(
            first_only=left, second_only=right, statistic=float(min(left, right)), p=p, exact=True
        )
    statistic = max(abs(left - right) - 1, 0) ** 2 / count
    return McNemar(
        first_only=left,
        second_only=right,
        statistic=statistic,
        p=float(scipy.special.chdtrc(1, statistic)),
        exact=False,
    )


@dataclass(frozen=True)
class PairSums:
    """Sum and sum of squares of each pair's differences; 0 for pairs that are equal.

    Two models are equal if the root mean square of their differences is below ``SAME`` of that of
    their values: what is left is the rounding of scores, whose ratio to its own spread is noise.
    """

    sums: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray, one: np.ndarray, other: np.ndarray) -> PairSums:
        """Return those of models × items, for the pairs of models ``one`` and ``other``."""
        size = (values**2).sum(axis=1)
        sums, squares = np.empty(len(one)), np.empty(len(one))
        for start in range(0, len(one), _BLOCK):
            part = slice(start, start + _BLOCK)
            apart = values[one[part]] - values[other[part]]
            sums[part], squares[part] = apart.sum(axis=1), (apart**2).sum(axis=1)
        equal = squares <= SAME**2 * np.maximum(size[one], size[other])
        return cls(np.where(equal, 0.0, sums), np.where(equal, 0.0, squares))

    @property
    def equal(self) -> np.ndarray:
        """Which pairs are equal."""
        return np.asarray(self.squares == 0)

    @property
    def studentized(self) -> np.ndarray:
        """The size of each pair's mean difference in standard errors, as ``max_t`` compares it."""
        return self.studentize(self.sums)

    def studentize(self, sums: np.ndarray) -> np.ndarray:
        """Return the size of other sums of each pair's differences in these standard errors."""
        return _per_spread(np.abs(sums), np.sqrt(self.squares))

    def variance(self, items: int) -> np.ndarray:
        """Return the variance of each pair's mean difference over this number of items."""
        centered = np.maximum(self.squares - self.sums**2 / items, 0.0)
        return np.asarray(centered / (max(items - 1, 1) * items))


def max_t(
    values: ArrayLike,
    centered: bool = True,
    *,
    resamples: int = RESAMPLES,
    statistics: np.ndarray | None = None,
) -> np.ndarray:
    """Return p of every pair of models × items, adjusted for all pairs by step-down max-T.

    The bootstrap multiplies each item's differences by a random sign, the same for all pairs, and
    compares studentized means (Westfall and Young 1993, algorithm 4.1). Centered differences need
    no symmetry; without centering it is a randomization test, of right and wrong answers McNemar's
    test. ``statistics`` are those of pairs, in standard errors and in the order of
    ``np.triu_indices``, where they are not the means of ``values``; NaN where they are. NaN with
    fewer than six items.

    >>> p = max_t([[0.9, 0.8, 0.7, 0.9, 0.8, 0.9, 0.7, 0.8]] * 2 + [[0.1, 0.3, 0.2, 0.1] * 2])
    >>> float(p[0, 1]), bool(p[0, 2] < 0.05)
    (1.0, True)
    """
    table = np.asarray(values, dtype=float)
    models, items = table.shape
    p = np.full((models, models), np.nan)
    np.fill_diagonal(p, 1.0)
    if items < FEWEST_ITEMS or models < 2:
        return p
    one, other = np.triu_indices(models, 1)
    base = table - table.mean(axis=1, keepdims=True) if centered else table
    pairs = PairSums.of(table, one, other)
    observed = _per_spread(np.abs(pairs.sums), np.sqrt(items * pairs.squares))
    if statistics is not None:
        observed = np.where(np.isnan(statistics), observed, statistics / np.sqrt(items))
    order = np.argsort(-observed, kind="stable")
    one, other, observed = one[order], other[order], observed[order]
    spread = np.where(pairs.equal[order], 0.0, _spread(base, one, other))
    beyond = np.zeros(len(one))
    for sums in _flipped(base, resamples):
        drawn = _per_spread(np.abs(sums[:, one] - sums[:, other]), spread)
        # of each pair, the largest among those that are not more different
        largest = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
        beyond += (largest >= observed - 1e-9).sum(axis=0)
    p[one, other] = p[other, one] = np.maximum.accumulate((1 + beyond) / (1 + resamples))
    p[one[spread == 0], other[spread == 0]] = p[other[spread == 0], one[spread == 0]] = 1.0
    return p


def _spread(values: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the root of the items times the summed squares of each pair's differences."""
    return np.sqrt(values.shape[1] * PairSums.of(values, one, other).squares)


def _per_spread(sums: np.ndarray, spread: np.ndarray) -> np.ndarray:
    # |sum| / sqrt(n × sum of squares) increases with |t|, and is finite for equal differences
    return np.asarray(sums / np.where(spread > 0, spread, 1.0) * (spread > 0))


def _flipped(values: np.ndarray, resamples: int) -> Iterator[np.ndarray]:
    """Yield blocks of resamples × models: sums over items with random signs."""
    rng = np.random.default_rng(SEED)
    with single_thread():
        for start in range(0, resamples, _BLOCK):
            shape = (min(_BLOCK, resamples - start), values.shape[1])
            signs = rng.integers(0, 2, size=shape, dtype=np.int8) * 2.0 - 1.0
            yield signs @ values.T


def pair_p(values: np.ndarray, accuracy: bool) -> np.ndarray:
    """Return p of every pair of models × items, without a correction for several pairs.

    McNemar's test of right and wrong answers, else a paired bootstrap.
    """
    models, items = values.shape
    p = np.full((models, models), np.nan)
    np.fill_diagonal(p, 1.0)
    one, other = np.triu_indices(models, 1)
    if items < FEWEST_ITEMS:
        return p
    if accuracy:
        pairs = zip(values[one] > 0, values[other] > 0, strict=True)
        p[one, other] = [mcnemar(*both).p for both in pairs]
    else:
        base = values - values.mean(axis=1, keepdims=True)
        differences = PairSums.of(values, one, other)
        observed = _per_spread(np.abs(differences.sums), np.sqrt(items * differences.squares))
        spread = np.where(differences.equal, 0.0, _spread(base, one, other))
        beyond = np.zeros(len(one))
        for drawn in _flipped(base, RESAMPLES):
            resampled = _per_spread(np.abs(drawn[:, one] - drawn[:, other]), spread)
            beyond += (resampled >= observed - 1e-9).sum(axis=0)
        p[one, other] = (1 + beyond) / (1 + RESAMPLES)
    p[other, one] = p[one, other]
    return p
