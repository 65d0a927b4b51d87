"""Intervals of means over folds: the bootstrap of Ulysses SentEval, and corrected t intervals.

Values have a row per fold and a column per measured quantity.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
import scipy

from karat.core.torch_random import resamples
from karat.errors import DefinitionError
from karat.stats.paired_tests import corrected_variance, fold_ratio

#: tolerance, relative to the range of the values, below which a resampled mean is the mean
TIE = 1e-9

Bounds = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Resampling:
    """Confidence, number of resamples, and whether intervals are exactly those of the original."""

    confidence: float = 0.99
    times: int = 10_000
    faithful: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.confidence < 1:
            raise DefinitionError(f"confidence must be between 0 and 1, got {self.confidence!r}.")
        if self.times < 1:
            raise DefinitionError(f"resamples must be >= 1, got {self.times!r}.")

    @property
    def percent(self) -> str:
        """The confidence in percent, as in column names: "99" for 0.99."""
        return f"{100 * self.confidence:g}"

    def named(self, kind: str, pair: Bounds) -> dict[str, np.ndarray]:
        """Return both bounds by name, such as ``ci99_low`` and ``ci99_high``."""
        return {f"{kind}{self.percent}_{end}": bound for end, bound in zip(ENDS, pair, strict=True)}


ENDS = ("low", "high")


def describe(
    table: np.ndarray, seed: int, how: Resampling, limits: tuple[float, float]
) -> dict[str, np.ndarray]:
    """Return mean, standard deviation and interval of each column, ignoring NaN.

    Intervals are clipped to the limits, and equal the mean where all values are equal, unless
    ``how.faithful``.
    """
    there = ~np.isnan(table)
    counts = there.sum(axis=0)
    made = np.full((4, table.shape[1]), np.nan)
    for count in np.unique(counts[counts > 0]):
        columns = np.flatnonzero(counts == count)
        values = np.stack([table[there[:, i], i] for i in columns], axis=1)
        mean = values.mean(axis=0)
        pair = np.stack(bootstrap(values, seed, how.confidence, how.times, how.faithful))
        if not how.faithful:
            pair = np.clip(np.where(np.isnan(pair), mean, pair), *limits)
        made[:, columns] = mean, spread(values), *pair
    return {"avg": made[0], "std": made[1], **how.named("ci", (made[2], made[3]))}


def spread(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column; 0 for a single value."""
    return values.std(axis=0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1])


def bootstrap(
    values: np.ndarray,
    seed: int,
    confidence: float = 0.99,
    times: int = 10_000,
    faithful: bool = False,
) -> Bounds:
    """Return the interval of each column's mean as in Ulysses SentEval; NaN if all are equal.

    It resamples mean minus resampled mean, corrects for bias and acceleration (BCa), and adds the
    bounds to the mean. That reflects the usual interval, so that a bound may lie outside the range
    of the values. For a single fold both bounds are its value. A resample with every value once
    counts as equal to the mean; ``faithful`` lets rounding decide that, as in the original.
    """
    mean = np.ascontiguousarray(values.T).mean(axis=1)
    if len(values) == 1:
        return mean, mean.copy()
    means = _means_as_summed if faithful else resampled_means
    above = mean - means(values, resamples(len(values), times, seed))
    varies = np.ptp(values, axis=0) > 0
    with np.errstate(invalid="ignore", divide="ignore"):
        alpha = (1 - confidence) / 2
        near = (0.0 if faithful else TIE) * np.ptp(values, axis=0)
        below = ((above < -near).mean(axis=0) + (above <= near).mean(axis=0)) / 2
        bias = scipy.special.ndtri(below)
        apart = values.mean(axis=0) - values
        acceleration = (apart**3).sum(axis=0) / (6 * (apart**2).sum(axis=0) ** 1.5)
        ends = [bias + scipy.special.ndtri(end) for end in (alpha, 1 - alpha)]
        shares = [scipy.special.ndtr(bias + end / (1 - acceleration * end)) for end in ends]
    ordered = np.sort(above.T, axis=1)
    low, high = (np.where(varies, mean + _quantile(ordered, share), np.nan) for share in shares)
    return low, high


def resampled_means(values: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return the mean of each column in each resample, as one sparse product."""
    from scipy.sparse import csr_array

    times, size = drawn.shape
    starts = np.arange(0, times * size + 1, size, dtype=drawn.dtype)
    counted = csr_array((np.ones(times * size), drawn.ravel(), starts), (times, size))
    return np.asarray(counted @ values) / size


def _means_as_summed(values: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Return the same, summed in the order of each resample, to the last bit as SciPy does."""
    columns = np.ascontiguousarray(values.T)
    return np.stack([column[drawn].mean(axis=1) for column in columns], axis=1)


def _quantile(ordered: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return a quantile of each sorted row, by linear interpolation."""
    last = ordered.shape[1] - 1
    place = np.nan_to_num(shares) * last
    left = np.minimum(place.astype(int), max(last - 1, 0))
    rows = np.arange(len(ordered))
    low, high = ordered[rows, left], ordered[rows, np.minimum(left + 1, last)]
    return np.where(np.isnan(shares), np.nan, low + (place - left) * (high - low))


# Tasks are fixed; the folds of each vary independently.


def corrected(values: np.ndarray, parts: int, confidence: float = 0.99) -> Bounds:
    """Return the t interval of each column's mean with the Nadeau-Bengio correction.

    ``parts`` is the k of k-fold cross-validation: n_test / n_train = 1 / (k - 1). NaN for one fold.

    >>> low, high = corrected(np.array([[0.5], [0.7]]), parts=2, confidence=0.5)
    >>> float(round(high[0] - 0.6, 4))  # 1 × sqrt(0.02 × (1/2 + 1/1))
    0.1732
    """
    return pooled_corrected([values], [parts], confidence)


def pooled_corrected(
    tasks: Sequence[np.ndarray], parts: Sequence[int], confidence: float = 0.99
) -> Bounds:
    """Return the corrected interval of the mean over tasks of their columns' means.

    Degrees of freedom after Welch and Satterthwaite.
    """
    mean = np.mean([values.mean(axis=0) for values in tasks], axis=0)
    if min(map(len, tasks)) < 2 or min(parts) < 2:
        return np.full_like(mean, np.nan), np.full_like(mean, np.nan)
    variances = np.array(
        [
            corrected_variance(values.var(axis=0, ddof=1), len(values), fold_ratio([], [], folds))
            for values, folds in zip(tasks, parts, strict=True)
        ]
    )
    freedom = np.array([[len(values) - 1] for values in tasks])
    whole, each = variances.sum(axis=0), (variances**2 / freedom).sum(axis=0)
    degrees = np.where(each > 0, whole**2 / np.where(each > 0, each, 1), 1)
    half = scipy.special.stdtrit(degrees, (1 + confidence) / 2) * np.sqrt(whole) / len(tasks)
    return mean - half, mean + half


def pooled_bootstrap(
    tasks: Mapping[str, np.ndarray], seed: int, confidence: float = 0.99, times: int = 10_000
) -> Bounds:
    """Return the percentile interval of the mean over tasks of their columns' means.

    The resamples of a task depend on the seed and its name.
    """
    total: Any = 0.0
    for name, values in tasks.items():
        rng = np.random.default_rng([seed, crc32(name.encode())])
        drawn = rng.integers(0, len(values), size=(times, len(values)), dtype=np.int32)
        total = total + resampled_means(values, drawn)
    alpha = (1 - confidence) / 2
    low, high = np.quantile(total / len(tasks), [alpha, 1 - alpha], axis=0)
    return low, high
