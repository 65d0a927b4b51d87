"""How much power can a test of two learners on five folds have? The limit of all tests.

A test sees the difference of the means, in standard errors of the items, and the variance over
folds, as a part of the variance that items explain. Some learners vary more than their items do:

- seeds: the training of each fold adds noise of its own, which the variance over folds shows;
- shared rows: the rows that the folds share add noise that no difference between folds shows.
  Trees on exchangeable columns have ``SHARED`` times the variance of items (as many are separated
  by items alone, see benchmarks/retraining.py).

A linear program finds the test with the most power for stable learners, whose only noise is that of
items, among all tests that separate such learners in at most a given share of boards.

    python benchmarks/learner_limit.py
"""

from __future__ import annotations

import numpy as np
import scipy
from scipy.optimize import linprog

from karat.stats.learner_tests import FitNoise, with_shared_rows

FOLDS = 5
LEVEL, ALLOWED = 0.05, 0.07
#: variance of the difference, in units of that of items, if training of each fold adds to it
SEEDS = (1, 1.25, 1.5, 2, 3, 4, 5, 7, 10, 30, 100)
#: the same of trees on exchangeable columns, of which items alone separate 13 % (macro-F1)
SHARED = float((scipy.special.ndtri(LEVEL / 2) / scipy.special.ndtri(0.13 / 2)) ** 2)
#: power of the test on items alone
POWERS = (0.3, 0.5, 0.8)
DRAWS = 200_000
#: cells of the variance over folds, and of the size of the difference
RATIOS = np.array([0, *np.geomspace(0.05, 400, 70), np.inf])
SIZES = np.array([*np.linspace(0, 12, 121), *np.geomspace(13, 120, 20), np.inf])


def chances(ratio: float, variance: float, shift: float = 0.0) -> np.ndarray:
    """Return the probability of each cell: folds of a true ratio, a difference around a shift."""
    freedom, spread = FOLDS - 1, np.sqrt(variance)
    of_ratio = np.diff(scipy.special.chdtr(freedom, freedom * RATIOS / ratio))
    below = [scipy.special.ndtr((sign * SIZES - shift) / spread) for sign in (1, -1)]
    return np.outer(of_ratio, np.diff(below[0] - below[1])).ravel()


def shift_of(power: float) -> float:
    """Return the true difference, in standard errors, of which items alone show this share."""
    return float(scipy.special.ndtri(power) - scipy.special.ndtri(LEVEL / 2))


def largest_power(shift: float) -> float:
    """Return the power of the best of all tests that separate equal learners rarely enough."""
    nulls = [chances(1, SHARED), *(chances(ratio, ratio) for ratio in SEEDS)]
    gain = chances(1, 1, shift)
    found = linprog(-gain, A_ub=np.array(nulls), b_ub=[ALLOWED] * len(nulls), bounds=(0, 1))
    return float(-found.fun)


def separated(rng: np.random.Generator, ratio: float, variance: float, shift: float) -> float:
    """Return how often Karat's test separates two learners."""
    freedom = FOLDS - 1
    difference = shift + np.sqrt(variance) * rng.normal(size=DRAWS)
    of_folds = ratio * rng.chisquare(freedom, DRAWS) / freedom
    of_fits = FitNoise(of_folds, np.full(DRAWS, freedom)).p_values(difference, np.ones(DRAWS))
    of_items = with_shared_rows(2 * scipy.special.ndtr(-np.abs(difference)))
    return float((np.maximum(of_fits, of_items) < LEVEL).mean())


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


if __name__ == "__main__":
    main()
