"""Tests of learners from several fits: the noise of items and the noise of training together.

A test on items holds for the models as they were fitted. With two or more fits, on folds, repeats
or seeds, the scores of the fits show what training adds. A difference counts if neither the items
nor the fits can explain it: the larger p of both decides. Fits share training rows, and what these
add is seen in no difference between them; so the variance of items counts as a quarter more, and
as a tenth more where repeats of all folds average out most of the training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import ArrayLike

from karat.stats.paired_tests import CONFIDENCE, corrected_variance

#: what the training rows that fits share add to the variance of items, as a part of it;
#: benchmarks/retraining.py has the error rates
SHARED_ROWS = 0.25
#: the same where a cross-validation is repeated, whose mean has less of the noise of training
SHARED_ROWS_REPEATED = 0.1
#: degrees of freedom that items add to those of the fits, times their part of the variance
ITEM_FREEDOM = 3.0
#: degrees of freedom from which a t distribution is a normal one
MANY = 1e6


@dataclass(frozen=True)
class FitNoise:
    """The variance of mean differences that several fits show, and its degrees of freedom.

    One number per pair of models; NaN where a pair has fewer than two fits. ``repeated`` tells
    that the fits are repeats of several folds, so that the means have more fits than the items.
    """

    variance: np.ndarray
    freedom: np.ndarray
    repeated: bool = False

    @property
    def shared_rows(self) -> float:
        """What the training rows that fits share add, as a part of the variance of items."""
        return SHARED_ROWS_REPEATED if self.repeated else SHARED_ROWS

    @property
    def seen(self) -> np.ndarray:
        """Which pairs have several fits."""
        return np.isfinite(self.variance)

    def all_freedom(self, of_items: np.ndarray) -> np.ndarray:
        """Return the degrees of freedom with those that the items add.

        ``of_items`` is the part of the variance that items explain: it is known from many items.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            added = np.where(self.variance > 0, ITEM_FREEDOM * of_items / self.variance, MANY)
        return np.asarray(self.freedom + np.minimum(added, MANY))

    def with_shared_rows(self, of_items: np.ndarray) -> FitNoise:
        """Return the noise with the part of the training rows that fits share."""
        return replace(self, variance=self.variance + self.shared_rows * of_items)

    def p_values(self, means: ArrayLike, of_items: ArrayLike) -> np.ndarray:
        """Return two-sided p of mean differences; NaN where the fits show no variance.

        >>> noise = FitNoise(np.array([4.0]), np.array([4.0]))
        >>> noise.p_values([4.9], np.array([8 / 3])).round(3).tolist()  # 4 + 3 · 2/3 degrees
        [0.05]
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            t = np.abs(means) / np.sqrt(self.variance)
        t = np.where(self.variance > 0, t, np.nan)
        return np.asarray(2 * scipy.special.stdtr(self.all_freedom(np.asarray(of_items)), -t))


def noise_of_folds(
    differences: ArrayLike, repeats: Sequence[int], ratio: float, of_items: np.ndarray
) -> FitNoise:
    """Return the noise of pairs × fits on the folds of a cross-validation.

    The folds of one repeat test different items: their variance, divided by their number, holds
    both the noise of items and that of training. ``repeats`` is the number of each fit's repeat,
    ``ratio`` is n_test / n_train, ``of_items`` the variance of each pair's mean difference over
    the items of one repeat. NaN is a missing fit.

    >>> noise_of_folds([[0.1, 0.2, 0.3]], [0, 0, 0], 0.5, np.array([0.002])).variance.round(6)
    array([0.003333])
    >>> noise_of_folds([[0.1, 0.2, 0.3]], [0, 1, 2], 0.5, np.array([0.002])).variance.round(6)
    array([0.008333])
    """
    rows, number = np.asarray(differences, dtype=float), np.asarray(repeats)
    if len(set(repeats)) > 1 and len(set(repeats)) < len(number):
        return _noise_of_repeats(rows, number, ratio, of_items)
    fits, squares = _fits_and_squares(rows)
    with np.errstate(invalid="ignore", divide="ignore"):
        spread = np.where(fits > 1, squares / (fits - 1), np.nan)
    shared = 0.0 if len(set(repeats)) < 2 else ratio
    return FitNoise(corrected_variance(spread, np.maximum(fits, 1), shared), fits - 1.0)


def _fits_and_squares(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of fits of each pair, and the sum of squares around their mean."""
    there = ~np.isnan(rows)
    fits = there.sum(axis=1)
    means = np.where(there, rows, 0.0).sum(axis=1) / np.maximum(fits, 1)
    return fits, (np.where(there, rows - means[:, None], 0.0) ** 2).sum(axis=1)


def _noise_of_repeats(
    rows: np.ndarray, repeats: np.ndarray, ratio: float, of_items: np.ndarray
) -> FitNoise:
    """Return the noise of the mean over repeats of several folds.

    What the variance within repeats has more than the items explain is the noise of training in the
    mean of one repeat. The mean over repeats has a part of it; what fits have in common because
    they share training rows adds n_test / n_train of it (Nadeau and Bengio 2003). The degrees of
    freedom are those of this part of the variance, after Satterthwaite.
    """
    parts = [_fits_and_squares(rows[:, repeats == number]) for number in np.unique(repeats)]
    counts, squares = (np.array(values) for values in zip(*parts, strict=True))
    used, fits = (counts > 0).sum(axis=0), counts.sum(axis=0)
    freedom = (fits - used).astype(float)
    with np.errstate(invalid="ignore", divide="ignore"):
        seen = np.where(freedom > 0, squares.sum(axis=0) / freedom * used / fits, np.nan)
        part = 1 / used + ratio
        variance = of_items + part * np.maximum(seen - of_items, 0.0)
        more = np.where(seen > 0, freedom * (variance / (part * seen)) ** 2, MANY)
    return FitNoise(variance, np.where(freedom > 0, np.minimum(more, MANY), freedom), True)


@dataclass(frozen=True)
class SeedNoise:
    """The variance of a model's mean score over fits with several seeds on the same items.

    ``variance`` is that of the mean of the seeds' scores, ``of_items`` the part of it that comes
    from items which answer differently from seed to seed, and ``freedom`` the number of seeds less
    one; all 0 for a model that was fitted once.
    """

    variance: float = 0.0
    of_items: float = 0.0
    freedom: int = 0

    @property
    def of_one(self) -> SeedNoise:
        """The noise of a single one of these fits."""
        fits = self.freedom + 1
        return SeedNoise(self.variance * fits, self.of_items * fits, self.freedom)

    @classmethod
    def of(cls, values: np.ndarray) -> SeedNoise:
        """Return the noise of seeds × items: what each item adds to the score of each seed.

        >>> found = SeedNoise.of(np.array([[1.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0]]))
        >>> found.variance, round(found.of_items, 4)  # 0.25² / 2 / 2; 0.375 / 3 / 8
        (0.015625, 0.0156)
        """
        seeds, items = values.shape
        if seeds < 2:
            return cls()
        scores = values.mean(axis=1, keepdims=True)
        rest = values - scores - values.mean(axis=0) + values.mean()
        interaction = float((rest**2).sum() / ((seeds - 1) * max(items - 1, 1)))
        variance = float(scores.var(ddof=1) / seeds)
        return cls(variance, interaction / (items * seeds), seeds - 1)


def noise_of_seeds(
    noises: Sequence[SeedNoise], pairs: tuple[np.ndarray, np.ndarray], of_items: np.ndarray
) -> FitNoise:
    """Return the noise of pairs of models that were fitted with several seeds on the same items.

    ``of_items`` is the variance of each pair's mean difference over items. What the seeds add to
    it is the variance of both models' means over seeds, less the part that the items show already:
    nothing if all seeds have the same score.

    >>> noises, pairs = [SeedNoise(0.0, 0.1, 2), SeedNoise()], (np.array([0]), np.array([1]))
    >>> noise_of_seeds(noises, pairs, np.array([0.5])).variance.tolist()
    [0.5]
    """
    variance = np.array([noise.variance for noise in noises])
    expected = np.array([noise.of_items for noise in noises])
    fitted_again = np.array([noise.freedom > 0 for noise in noises])
    freedom = np.array([max(noise.freedom, 1) for noise in noises], dtype=float)
    one, other = pairs
    seeds = variance[one] + variance[other]
    added = np.maximum(seeds - expected[one] - expected[other], 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = variance[one] ** 2 / freedom[one] + variance[other] ** 2 / freedom[other]
        whole = of_items + added
        bounded = np.where(squares > 0, whole**2 / squares, MANY)
    seen = fitted_again[one] | fitted_again[other]
    return FitNoise(np.where(seen, whole, np.nan), np.minimum(bounded, MANY))


def moderated(noise: FitNoise, of_items: np.ndarray, models: int) -> FitNoise:
    """Return the noise of pairs, shrunk to what all pairs of more than two models have in common.

    The variance of a pair, in units of its items' noise, is averaged with the mean of all pairs,
    which counts as much as the fits of the other models (as in Smyth 2004). ``of_items`` is the
    variance of each pair's mean difference over items.

    >>> noise = FitNoise(np.array([1.0, 3.0, 2.0]), np.array([4.0, 4.0, 4.0]))
    >>> found = moderated(noise, np.ones(3), models=3)
    >>> found.variance.tolist(), found.freedom.tolist()
    ([1.5, 2.5, 2.0], [8.0, 8.0, 8.0])
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = noise.variance / of_items
    used = np.isfinite(ratio)
    if models < 3 or not used.any():
        return noise
    common = max(float(ratio[used].mean()), 1.0)
    added = (models - 2) * noise.freedom
    with np.errstate(invalid="ignore", divide="ignore"):
        shrunk = (noise.freedom * ratio + added * common) / (noise.freedom + added) * of_items
    variance = np.where(used, shrunk, noise.variance)
    return replace(noise, variance=variance, freedom=np.minimum(noise.freedom + added, MANY))


def with_shared_rows(p: ArrayLike) -> np.ndarray:
    """Return two-sided p of a test on items for learners: the variance has ``SHARED_ROWS`` more.

    >>> with_shared_rows(np.array([0.05, 1.0])).round(3).tolist()
    [0.08, 1.0]
    """
    z = scipy.special.ndtri(np.asarray(p) / 2) / np.sqrt(1 + SHARED_ROWS)
    return np.asarray(2 * scipy.special.ndtr(z))


def wider(
    of_items: np.ndarray, items: int | np.ndarray, noise: FitNoise
) -> tuple[np.ndarray, np.ndarray]:
    """Return standard error and degrees of freedom of the wider of two 95 % intervals.

    One has the variance over ``items`` - 1 degrees of freedom, and more for shared training rows
    where there are several fits; the other has the variance of the fits.

    >>> noise = FitNoise(np.array([4.0]), np.array([4.0]))
    >>> [each.tolist() for each in wider(np.array([1.0]), 1000, noise)]
    [[2.0], [4.75]]
    """
    level = (1 + CONFIDENCE) / 2
    freedom = np.broadcast_to(np.asarray(items, dtype=float) - 1, of_items.shape)
    variance = of_items * np.where(noise.seen, 1 + noise.shared_rows, 1.0)
    more = noise.all_freedom(of_items)
    of_fits = scipy.special.stdtrit(more, level) * np.sqrt(noise.variance)
    fits = of_fits > scipy.special.stdtrit(freedom, level) * np.sqrt(variance)
    error = np.where(fits, np.sqrt(np.where(fits, noise.variance, 0.0)), np.sqrt(variance))
    return error, np.where(fits, more, freedom)
