"""Bayes: how probable it is that one model is better, worse, or practically equal to another.

Two are practically equal where they differ by no more than the region of practical equivalence
(ROPE). Differences are the first less the second, higher is better; NaN stands for what is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtr

from karat.errors import DefinitionError
from karat.results.significance import as_rows, corrected_t

#: draws from a posterior, and the seed that makes them repeatable
DRAWS = 50_000
SEED = 0
#: how much the prior counts, in tasks; it says that both are equal
PRIOR = 0.5
#: numbers that are worked on at a time
BLOCK = 2_000_000


@dataclass(frozen=True)
class Chances:
    """How probable it is that the first is better by more than the ROPE, equal within it, worse.

    The three of a row add up to 1; they are NaN where nothing can be said.
    """

    better: np.ndarray
    equal: np.ndarray
    worse: np.ndarray


def check_rope(rope: float) -> float:
    """Return the region of practical equivalence, or say what it must be."""
    if not (np.isfinite(rope) and rope >= 0):
        raise DefinitionError(f"rope is 0 or more, such as 0.01, not {rope!r}.")
    return float(rope)


def correlated_t(differences: Any, ratio: Any, rope: float) -> Chances:
    """Return the chances of each row of folds by the correlated t-test (Corani, Benavoli 2015).

    The mean difference has a Student posterior with the variance of Nadeau and Bengio; ``ratio`` is
    the number of test rows to that of train rows. One fold, or folds without spread, say nothing;
    folds without any difference say that both are equal.

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
    """Return the chances of each row of tasks by the signed-rank test (Benavoli and others 2014).

    Tasks get random weights (a Dirichlet process whose prior is a task without difference, counted
    half). In each draw the mean of two tasks picked by weight is most often above the ROPE, within
    it (its ends too) or below: chances are the shares of draws.

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
    """Return weights: the prior's first, then one per task; a column per draw, of any sum."""
    rng = np.random.default_rng([seed, tasks])
    prior = rng.standard_gamma(PRIOR, size=(1, draws))
    return np.vstack([prior, rng.standard_exponential((tasks, draws))])


def _shares(row: np.ndarray, rope: float, weights: np.ndarray) -> tuple[float, float, float]:
    # weights go by size of difference, so that neither the order of tasks nor of models matters
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
