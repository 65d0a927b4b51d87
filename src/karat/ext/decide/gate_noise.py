"""What a gate would measure on a task, of two models without a true difference or with a loss.

Differences are drawn on new items or folds, and tested as a gate tests them: with the noise of as
many repeats, folds and seeds as the baseline has (see ``karat.stats.learner_tests``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from karat.stats.learner_tests import FitNoise, SeedNoise, noise_of_folds, noise_of_seeds, wider
from karat.stats.paired_tests import MeanDifference, corrected_t

#: items from which the mean of a simulated sample is normal, unless answers are right or wrong
MANY_ITEMS = 5000


@dataclass(frozen=True)
class FitDesign:
    """The fits of a gate: repeats of folds, and the seeds of the baseline and of the new model.

    ``ratio`` is n_test / n_train. Error rates are those of a new model with one seed.
    """

    repeats: int = 1
    folds: int = 1
    seeds: int = 1
    ratio: float = 0.0
    new_seeds: int = 1

    @property
    def fits(self) -> int:
        """The number of fits of the new model."""
        return self.repeats * self.folds

    @property
    def is_hold_outs(self) -> bool:
        """Whether each repeat is one hold-out, so that repeats test other items."""
        return self.repeats > 1 and self.folds == 1

    @property
    def part_of_baseline(self) -> float:
        """The variance of a difference, as a part of that of two single fits."""
        return (1 + 1 / self.seeds) / 2

    @property
    def name(self) -> str:
        """The design in words.

        >>> FitDesign(10, 5).name, FitDesign(seeds=3).name
        ('10 × 5 folds', '1 fold, 3 seeds of the baseline')
        """
        folds = f"{self.folds} fold{'s' * (self.folds > 1)}"
        text = f"{self.repeats} × {folds}" if self.repeats > 1 else folds
        sides = {"the baseline": self.seeds, "the new model": self.new_seeds}
        return ", ".join([text, *(f"{n} seeds of {side}" for side, n in sides.items() if n > 1)])


ONE_FIT = FitDesign()


@dataclass(frozen=True)
class ItemNoise:
    """Differences on the items of a task, of two models without a true difference.

    ``differences`` are those of items in one repeat, in the units of the score. If answers are
    right or wrong (``binary``), a loss makes answers wrong; otherwise it lowers all scores.
    ``retraining`` is the standard deviation of the mean difference that items do not explain,
    ``agreement`` the correlation of an item's differences in two repeats.
    """

    differences: np.ndarray
    items: int
    step: float
    binary: bool
    retraining: float = 0.0
    agreement: float = 1.0
    design: FitDesign = ONE_FIT

    def draw(self, rng: np.random.Generator, loss: float, number: int) -> list[MeanDifference]:
        """Return the differences of several gates on new items, if the true one is a loss."""
        means, variances = (self._binary if self.binary else self._scores)(rng, loss, number)
        of_items = np.maximum(variances, 0.0) / self.items
        fits = self._fits(rng, means + loss, np.sqrt(of_items), self._common_part(loss)) - loss
        fits[(means == 0) & (of_items == 0)] = 0.0  # equal on all items
        error, freedom = wider(of_items, self.items, self._fit_noise(rng, fits, of_items))
        estimates = zip(fits.mean(axis=1), error, freedom, strict=True)
        return [MeanDifference(float(m), float(e), float(f), self.step) for m, e, f in estimates]

    def _binary(
        self, rng: np.random.Generator, loss: float, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance over items of the first repeat, with answers that are lost."""
        lost_share = min(abs(loss), 1.0)
        sizes, counts = np.unique(np.abs(self.differences), return_counts=True)
        values = np.concatenate([sizes, -sizes, [-math.copysign(1.0, loss)]])
        shares = np.tile(counts / counts.sum() / 2, 2) * (1 - lost_share)
        drawn = rng.multinomial(self.items, np.append(shares, lost_share), size=number)
        means, squares = drawn @ values / self.items, drawn @ values**2 / self.items
        return means, (squares - means**2) * self.items / max(self.items - 1, 1)

    def _scores(
        self, rng: np.random.Generator, loss: float, number: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance over items of the first repeat, with lower scores."""
        if self.items > MANY_ITEMS:
            variance = float(np.mean(self.differences**2))
            means = rng.normal(-loss, math.sqrt(variance / self.items), number)
            return means, np.full(number, variance)
        samples = (
            rng.choice(self.differences, self.items) * rng.choice([-1, 1], self.items)
            for _ in range(number)
        )
        moments = np.array([(sample.mean(), sample.var(ddof=1)) for sample in samples])
        return moments[:, 0] - loss, moments[:, 1]

    def _common_part(self, loss: float) -> float:
        """Return the correlation of the means of two repeats; answers are lost in all of them."""
        if not self.binary or self.design.is_hold_outs:
            return self.agreement
        share = min(abs(loss), 1.0)
        of_fits = (1 - share) * float(np.mean(self.differences**2))
        of_loss = share * (1 - share)
        whole = of_fits + of_loss
        return (self.agreement * of_fits + of_loss) / whole if whole else 1.0

    def _fits(
        self, rng: np.random.Generator, first: np.ndarray, error: np.ndarray, part: float
    ) -> np.ndarray:
        """Return gates × fits without the loss, of which ``part`` is common to all repeats.

        ``first`` are the means of the first repeat, ``error`` their standard errors.
        """
        design, number = self.design, len(first)
        shape = (number, design.repeats, design.folds)
        spread = error[:, None]
        with np.errstate(invalid="ignore", divide="ignore"):
            z = np.where(spread > 0, first[:, None] / spread, 0.0)
        common = math.sqrt(part) * z + math.sqrt(1 - part) * rng.standard_normal((number, 1))
        unshared = rng.standard_normal((number, design.repeats))
        means = math.sqrt(part) * common + math.sqrt(1 - part) * unshared
        means = np.where(spread > 0, means * spread, first[:, None])
        means[:, 0] = first
        apart = rng.standard_normal(shape)
        apart = (apart - apart.mean(axis=2, keepdims=True)) * math.sqrt(design.folds)
        of_items = means[:, :, None] + apart * spread[:, :, None]
        return (of_items + self._of_training(rng, shape)).reshape(number, -1)

    def _of_training(
        self, rng: np.random.Generator, shape: tuple[int, int, int]
    ) -> np.ndarray | float:
        """Return what trainings add to fits, of which ``retraining`` is in their mean."""
        if not self.retraining:
            return 0.0
        noise = rng.standard_normal(shape)
        if not self.design.is_hold_outs:
            return self.retraining * math.sqrt(self.design.fits) * noise
        # known of one hold-out; all share training rows
        common = math.sqrt(self.agreement) * rng.standard_normal((shape[0], 1, 1))
        return self.retraining * (common + math.sqrt(1 - self.agreement) * noise)

    def _fit_noise(
        self, rng: np.random.Generator, fits: np.ndarray, of_items: np.ndarray
    ) -> FitNoise:
        """Return the noise that the fits of each gate show, or the seeds of its baseline."""
        design, number = self.design, len(fits)
        if design.fits > 1:
            repeats = np.repeat(np.arange(design.repeats), design.folds).tolist()
            return noise_of_folds(fits, repeats, design.ratio, of_items)
        if design.seeds == 1:
            return FitNoise(np.full(number, math.nan), np.zeros(number))
        freedom, whole = design.seeds - 1, 2 * design.part_of_baseline
        # of one fit: what items explain, and all
        explained = float(np.mean(self.differences**2)) / whole / self.items
        every = explained + self.retraining**2 / whole
        variances = every * rng.chisquare(freedom, number) / freedom
        once = [SeedNoise(float(variance), explained, freedom) for variance in variances]
        noises = [
            SeedNoise(n.variance / design.seeds, n.of_items / design.seeds, freedom) for n in once
        ]
        pairs = np.arange(number), np.arange(number, 2 * number)
        return noise_of_seeds([*once, *noises], pairs, of_items)


@dataclass(frozen=True)
class FoldNoise:
    """The standard deviation of the differences of folds; ``ratio`` is n_test / n_train."""

    spread: float
    folds: int
    ratio: float
    step: float = 0.0

    def draw(self, rng: np.random.Generator, loss: float, number: int) -> list[MeanDifference]:
        """Return the differences of several gates over new folds, which share training rows."""
        shared = self.ratio / (1 + self.ratio) if self.folds > 1 else 0.0
        noise = math.sqrt(1 - shared) * rng.standard_normal((number, self.folds))
        noise += math.sqrt(shared) * rng.standard_normal((number, 1))
        result = corrected_t(self.spread * noise - loss, self.ratio)
        freedom = max(self.folds - 1, 1)
        estimates = zip(result.mean, result.error, strict=True)
        return [MeanDifference(float(m), float(e), freedom, self.step) for m, e in estimates]


Noise = ItemNoise | FoldNoise


# -- from the runs of a baseline ------------------------------------------------------------


def item_noises(
    gains: Sequence[np.ndarray],
    units: Sequence[tuple[float, float, bool]],
    designs: Sequence[FitDesign] = (),
) -> list[ItemNoise]:
    """Return the noise of tasks, from what each item adds to the score in several runs.

    ``gains`` are runs × items of each task, or runs × repeats × items; ``units`` their number of
    score units per gain, the largest step of one item, and whether answers are right or wrong;
    ``designs`` the fits of a gate. With one run, the noise is that of two models with unrelated
    errors. With several, it is how much these differ. Where their means vary by more than the items
    explain, the excess is the noise of retraining.
    """
    scaled = [
        np.asarray(runs).reshape(len(runs), -1, np.shape(runs)[-1]) * unit
        for runs, (unit, _, _) in zip(gains, units, strict=True)
    ]
    wholes = [runs.mean(axis=1) for runs in scaled]
    # variance of the mean of one run, from the differences of two
    expected = [
        float(np.mean(run_differences(runs) ** 2)) / runs.shape[1] / 2 if len(runs) > 1 else 0.0
        for runs in wholes
    ]
    more = _excess(wholes, expected)
    noises = []
    for runs, (_, step, binary), variance, design in zip(
        scaled, units, expected, designs or [ONE_FIT] * len(scaled), strict=True
    ):
        part = design.part_of_baseline if len(runs) > 1 else 1.0
        pool = run_differences(runs[:, 0]) * math.sqrt(part)
        agreement = _agreement(runs, design)
        retraining = math.sqrt(2 * part * more * variance)
        noises.append(ItemNoise(pool, runs.shape[2], step, binary, retraining, agreement, design))
    return noises


def _excess(gains: Sequence[np.ndarray], expected: Sequence[float]) -> float:
    """Return by which part the means of runs vary more than their items explain."""
    informative = [(runs, e) for runs, e in zip(gains, expected, strict=True) if e > 0]
    freedom = sum(len(runs) - 1 for runs, _ in informative)
    statistic = sum(
        (len(runs) - 1) * float(runs.mean(axis=1).var(ddof=1)) / e for runs, e in informative
    )
    return max(statistic / freedom - 1, 0.0) if freedom else 0.0


def _agreement(gains: np.ndarray, design: FitDesign) -> float:
    """Return the correlation of an item's differences in two repeats; 1 if it is not known.

    The means of repeated hold-outs are correlated because these share rows (Nadeau and Bengio).
    """
    repeats = gains.shape[1]
    if design.is_hold_outs:
        return design.ratio / (1 + design.ratio)
    if repeats < 2 or not (single := float(np.mean(run_differences(gains) ** 2))):
        return 1.0
    part = float(np.mean(run_differences(gains.mean(axis=1)) ** 2)) / single
    return min(max((part - 1 / repeats) / (1 - 1 / repeats), 0.0), 1.0)


def run_differences(gains: np.ndarray) -> np.ndarray:
    """Return the differences between all pairs of runs; of one run, between shuffled items."""
    if len(gains) > 1:
        return np.concatenate([a - b for a, b in combinations(gains, 2)])
    order = np.random.default_rng(0).permutation(gains.shape[-1])
    return np.asarray(gains[0] - gains[0][..., order])


def fold_noise(scores: np.ndarray, ratio: float, design: FitDesign = ONE_FIT) -> FoldNoise:
    """Return the noise of the scores of folds, runs × folds.

    Between runs; if there is one, that of two models whose folds are unrelated.
    """
    folds = scores.shape[1]
    apart = np.array([a - b for a, b in combinations(scores, 2)])
    part = design.part_of_baseline if len(apart) else 1.0
    if folds == 1:
        return FoldNoise(math.sqrt(part * float(np.mean(apart**2))), 1, ratio)
    variance = part * float((apart if len(apart) else scores).var(axis=1, ddof=1).mean())
    # folds that share training rows differ less from each other than from new ones
    variance *= (1 + ratio) * (1 if len(apart) else 2)
    return FoldNoise(math.sqrt(variance), folds, ratio)
