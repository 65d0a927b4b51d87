"""Bayesian tests: the probability that a model is better, worse, or practically equal to another.

Two are practically equal if they differ by no more than the region of practical equivalence (ROPE).
Differences are first minus second, higher is better; NaN means missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from karat.errors import DefinitionError
from karat.results.significance import as_rows, corrected_t

#: draws from a posterior, and their seed
DRAWS = 50_000
SEED = 0
#: weight of the prior, in tasks; it assumes that both are equal
PRIOR = 0.5
#: numbers per block
BLOCK = 2_000_000


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


def correlated_t(differences: Any, ratio: Any, rope: float) -> Chances:
    """Return the correlated Bayesian t-test (Corani, Benavoli 2015) of each row of folds.

    The mean difference has a Student posterior with the Nadeau-Bengio variance; ``ratio`` is
    n_test / n_train. NaN for one fold or a constant difference; equal if all differences are 0.

    >>> found = correlated_t([0.0, 0.2], ratio=1.0, rope=0.1)  # t of 1 degree around 0.1
    >>> float(found.better.round(4))
    0.5
    """
    check_rope(rope)
    found = corrected_t(differences, ratio)
    freedom = found.folds - 1
    with np.errstate(invalid="ignore", divide="ignore"):
        better = stdtr(freedom, (found.mean - rope) / found.error)
        worse = stdtr(freedom, (-rope - found.mean) / found.error)
    same = np.isnan(better) & (found.p == 1)
    better, worse = np.where(same, 0.0, better), np.where(same, 0.0, worse)
    return Chances(better, 1 - better - worse, worse)


def signed_rank(differences: Any, rope: float, *, draws: int = DRAWS, seed: int = SEED) -> Chances:
    """Return the Bayesian signed-rank test (Benavoli et al. 2014) of each row of tasks.

    Tasks get random weights from a Dirichlet process whose prior is a task without difference,
    with weight 0.5. In each draw, the mean of two tasks picked by weight is most often above the
    ROPE, within it (bounds included) or below; the result is the share of draws of each.

    >>> found = signed_rank([0.1, 0.2, 0.1, 0.3], rope=0.01)
    >>> bool(found.better > 0.9), float(found.better + found.equal + found.worse)
    (True, 1.0)
    """
    check_rope(rope)
    given = np.asarray(differences, dtype=float)
    rows = as_rows(given)
    made = np.full((3, len(rows)), np.nan)
    weights: dict[int, np.ndarray] = {}
    for i, row in enumerate(rows):
        known = row[~np.isnan(row)]
        if len(known):
            if len(known) not in weights:
                weights[len(known)] = _weights(len(known), draws, seed)
            made[:, i] = _shares(known, rope, weights[len(known)])
    return Chances(*made.reshape(3, *given.shape[:-1]))


def _weights(tasks: int, draws: int, seed: int) -> np.ndarray:
    """Return unnormalized weights, (1 + tasks) × draws, that of the prior first."""
    rng = np.random.default_rng([seed, tasks])
    prior = rng.standard_gamma(PRIOR, size=(1, draws))
    return np.vstack([prior, rng.standard_exponential((tasks, draws))])


def _shares(row: np.ndarray, rope: float, weights: np.ndarray) -> tuple[float, float, float]:
    # sorted by size, so that the order of tasks and of models does not matter
    row = np.concatenate([[0.0], row[np.argsort(np.abs(row), kind="stable")]])
    order = np.argsort(row, kind="stable")
    ranked = row[order]
    after = np.searchsorted(ranked, 2 * rope - ranked, side="right")
    before = np.searchsorted(ranked, -2 * rope - ranked, side="left")
    wins = losses = 0
    step = max(1, BLOCK // len(row))
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
