"""How much power can a test of two learners have? The limit of all tests on five folds.

A test sees the difference of the means, in standard errors of the items, and the variance over
folds, as a part of the variance that items explain. Some learners vary more than their items do:

- seeds: the training of each fold adds noise of its own, which the variance over folds shows;
- shared rows: the rows that the folds share add noise that no difference between folds shows.
  Trees on exchangeable columns have ``SHARED`` times the variance of items (as many are separated
  by items alone, see benchmarks/retraining.py).

A linear program finds the test with the most power for stable learners, whose only noise is that of
items, among all tests that separate such learners in at most a given share of boards: for each kind
of noise by itself, for both, and with the noise of training pooled over the pairs of eight models.

The last table has repeats of five folds: learners whose training adds a multiple of the variance of
items to each repeat, of which all fits have a fifth in common (Nadeau and Bengio 2003), or nothing.

    python benchmarks/learner_limit.py
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from scipy.optimize import linprog

from karat.stats.learner_tests import (
    SHARED_ROWS_REPEATED,
    FitNoise,
    noise_of_folds,
    with_shared_rows,
)

FOLDS, MODELS = 5, 8
LEVEL, ALLOWED = 0.05, 0.07
#: variance of the difference, in units of that of items, if training of each fold adds to it
SEEDS = (1, 1.25, 1.5, 2, 3, 4, 5, 7, 10, 30, 100)
#: the same of trees on exchangeable columns, of which items alone separate 13 % (macro-F1)
SHARED = float((scipy.special.ndtri(LEVEL / 2) / scipy.special.ndtri(0.13 / 2)) ** 2)
#: power of the test on items alone
POWERS = (0.3, 0.5, 0.8)
DRAWS = 200_000
#: repeats of the folds, variance of training in that of a repeat's mean, and its common part
REPEATS = (2, 3, 10)
TRAINING = (0, 0.25, 0.5, 1, 2, 4, 8, 16)
COMMON = 0.2
#: cells of the variance over folds, and of the size of the difference
RATIOS = np.array([0, *np.geomspace(0.05, 400, 70), np.inf])
SIZES = np.array([*np.linspace(0, 12, 121), *np.geomspace(13, 120, 20), np.inf])
#: equal learners, as true ratio of the folds and variance of the difference
SEEDS_ONLY = [(ratio, ratio) for ratio in SEEDS]
SHARED_ONLY = [(1, 1), (1, SHARED)]
BOTH = [*SHARED_ONLY, *SEEDS_ONLY]


def chances(
    ratio: float, variance: float, shift: float = 0.0, freedom: int = FOLDS - 1
) -> np.ndarray:
    """Return the probability of each cell: folds of a true ratio, a difference around a shift."""
    spread = np.sqrt(variance)
    of_ratio = np.diff(scipy.special.chdtr(freedom, freedom * RATIOS / ratio))
    below = [scipy.special.ndtr((sign * SIZES - shift) / spread) for sign in (1, -1)]
    return np.outer(of_ratio, np.diff(below[0] - below[1])).ravel()


def shift_of(power: float) -> float:
    """Return the true difference, in standard errors, of which items alone show this share."""
    return float(scipy.special.ndtri(power) - scipy.special.ndtri(LEVEL / 2))


def largest_power(
    shift: float, equal: Sequence[tuple[float, float]] = BOTH, freedom: int = FOLDS - 1
) -> float:
    """Return the power of the best of all tests that separate equal learners rarely enough.

    ``freedom`` are the degrees of freedom of the variance over folds.
    """
    nulls = [chances(*variances, freedom=freedom) for variances in equal]
    gain = chances(1, 1, shift, freedom)
    solved = linprog(-gain, A_ub=np.array(nulls), b_ub=[ALLOWED] * len(nulls), bounds=(0, 1))
    return float(-solved.fun)


def separated(rng: np.random.Generator, ratio: float, variance: float, shift: float) -> float:
    """Return how often Karat's test separates two learners."""
    freedom = FOLDS - 1
    difference = shift + np.sqrt(variance) * rng.normal(size=DRAWS)
    of_folds = ratio * rng.chisquare(freedom, DRAWS) / freedom
    of_fits = FitNoise(of_folds, np.full(DRAWS, freedom)).p_values(difference, np.ones(DRAWS))
    of_items = with_shared_rows(2 * scipy.special.ndtr(-np.abs(difference)))
    return float((np.maximum(of_fits, of_items) < LEVEL).mean())


def separated_repeats(
    rng: np.random.Generator, repeats: int, training: float, common: float, shift: float = 0.0
) -> tuple[float, float]:
    """Return how often Karat's test separates learners on repeats of five folds, and items alone.

    Items have variance 1. Training adds ``training`` to the variance of each repeat's mean, of
    which the part ``common`` is the same in all fits. Items alone see the first repeat.
    """
    boards, fits = DRAWS // 10, repeats * FOLDS
    once = rng.normal(shift, np.sqrt(1 + training * common), boards)
    of_fits = rng.normal(0, np.sqrt(FOLDS * training * (1 - common)), (boards, fits))
    # the folds of a repeat divide the items: their differences sum to 0
    items = rng.normal(0, np.sqrt(FOLDS), (boards, repeats, FOLDS))
    items -= items.mean(axis=2, keepdims=True)
    scores = once[:, None] + of_fits + items.reshape(boards, fits)
    numbers = np.repeat(np.arange(repeats), FOLDS).tolist()
    ones, means = np.ones(boards), scores.mean(axis=1)
    noise = noise_of_folds(scores, numbers, 1 / (FOLDS - 1), ones)
    z = means / np.sqrt(1 + SHARED_ROWS_REPEATED)
    p = np.maximum(2 * scipy.special.ndtr(-np.abs(z)), noise.p_values(means, ones))
    first = np.abs(scores[:, :FOLDS].mean(axis=1))
    alone = 2 * scipy.special.ndtr(-first)
    return float((p < LEVEL).mean()), float((alone < LEVEL).mean())


def main() -> None:
    rng = np.random.default_rng(0)
    print("| power of items alone | Karat | share | any test | share |\n|---|---|---|---|---|")
    for power in POWERS:
        ours, best = separated(rng, 1, 1, shift_of(power)), largest_power(shift_of(power))
        shares = f"{ours:.2f} | {ours / power:.2f} | {best:.2f} | {best / power:.2f}"
        print(f"| {power:.2f} | {shares} |")
    print(f"\nshared rows: {separated(rng, 1, SHARED, 0):.3f} of equal learners are separated")
    for ratio in SEEDS:
        print(f"seeds, variance {ratio:g}: {separated(rng, ratio, ratio, 0):.3f}")
    print_limits()
    print_repeats(rng)


def print_limits() -> None:
    """Print the share of the power that any test may have, by what it is protected from."""
    print(f"\n| equal learners | one pair | {MODELS} models |\n|---|---|---|")
    pooled = (MODELS - 1) * (FOLDS - 1)
    for name, equal in (("seeds", SEEDS_ONLY), ("shared rows", SHARED_ONLY), ("both", BOTH)):
        cells = [
            " / ".join(f"{largest_power(shift_of(p), equal, df) / p:.2f}" for p in POWERS)
            for df in (FOLDS - 1, pooled)
        ]
        print(f"| {name} | {' | '.join(cells)} |")


def print_repeats(rng: np.random.Generator) -> None:
    """Print how often repeats separate equal learners, and stable ones that differ."""
    print("\n| training / items | none in common | a fifth in common |\n|---|---|---|")
    for training in TRAINING:
        cells = []
        for common in (0.0, COMMON):
            for repeats in REPEATS:
                cells.append(f"{separated_repeats(rng, repeats, training, common)[0]:.3f}")
        half = len(REPEATS)
        print(f"| {training:g} | {' / '.join(cells[:half])} | {' / '.join(cells[half:])} |")
    for power in POWERS:
        rates = [
            separated_repeats(rng, repeats_each, 0, 0, shift_of(power)) for repeats_each in REPEATS
        ]
        shares = [f"{ours / alone:.2f}" for ours, alone in rates]
        print(f"share of a power of {power:.2f}: {' / '.join(shares)}")


if __name__ == "__main__":
    main()
