"""Races: which models can stop after each task, by e-processes of paired signs.

A task gives one value per pair of models: the mean, over the folds of its block, of the sign of
the difference of their scores. Tasks are drawn in random order from a population. The null
hypothesis of model i and opponent j is that j wins at most as often as it loses against i: the
expected value is at most 0, given the tasks before. The wealth of a gambler who bets on j is then
a supermartingale that starts at 1, an e-process, and may be read after every task. So may an
e-process of bounded paired differences, after every item.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

#: shares of the wealth that are bet on a win; an e-process is the mean over them
BETS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
#: the logarithm of the largest wealth, so that no number overflows
MOST = 600.0
#: number of better or equal models that are named
MOST_OTHERS = 3
ELIMINATED, EQUIVALENT, DECIDED = "eliminated", "equivalent", "decided"
#: what a model is that did not leave
REMAINS, BEST = "remains", "best"
#: shares of the wealth that are bet on a loss; the e-process is the mean over them
LOSS_BETS = np.geomspace(0.005, 0.9, 20)


@dataclass(frozen=True)
class Rules:
    """What a race is to find, and how sure it must be.

    ``keep`` is the number of models to find, 0 to order all models. ``level`` is the largest
    probability of a wrong answer. With a ``margin``, half of it is for wrong equivalences.
    """

    keep: int = 1
    level: float = 0.05
    margin: float | None = None

    @classmethod
    def read(cls, goal: str, confidence: float, margin: float | None = None) -> Rules:
        """Return the rules of a goal: "best", "top-K" or "order".

        >>> Rules.read("top-3", 0.9).keep
        3
        """
        matched = re.fullmatch(r"best|order|top-([1-9][0-9]{0,5})", goal)
        if matched is None:
            raise ValueError(goal)
        keep = {"best": 1, "order": 0}.get(goal) if matched[1] is None else int(matched[1])
        assert keep is not None
        return cls(keep, round(1 - confidence, 12), margin)

    def levels(self, batch: int) -> tuple[float, float]:
        """Return the levels of differences and of equivalences of the n-th batch of models.

        Each batch that joins later has half of the level of the one before, in addition.
        """
        level = self.level / 2**batch
        return (level, 0.0) if self.margin is None else (level / 2, level / 2)

    def error(self, batches: int) -> float:
        """Return the largest probability of a wrong answer after some batches have joined.

        >>> [round(Rules(level=0.05).error(batches), 4) for batches in (1, 2, 3)]
        [0.05, 0.075, 0.0875]
        """
        return self.level * (2 - 2.0 ** (1 - batches))


def fewest_tasks(rules: Rules, models: int) -> int:
    """Return the fewest tasks after which a model can be eliminated or two can be ordered.

    >>> fewest_tasks(Rules(), 2), fewest_tasks(Rules(), 25), fewest_tasks(Rules(keep=0), 25)
    (8, 12, 17)
    """
    needed = (models if rules.keep else models * (models - 1)) / rules.levels(0)[0]
    tasks = 1
    while np.mean((1 + BETS) ** tasks) < needed:
        tasks += 1
    return tasks


def paired_signs(scores: np.ndarray) -> np.ndarray:
    """Return models × models: how often j (column) wins against i (row), minus how often it loses.

    ``scores`` are models × folds, higher is better. NaN is a failed job: it loses against every
    score; two failures are a tie.

    >>> paired_signs(np.array([[0.7, 0.8], [0.9, np.nan]])).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    >>> paired_signs(np.array([[0.7], [0.9]])).tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """
    return np.asarray(np.sign(_differences(scores)).mean(axis=2))


def _differences(scores: np.ndarray) -> np.ndarray:
    filled = np.where(np.isnan(scores), -np.inf, scores)
    with np.errstate(invalid="ignore"):
        differences = filled[None] - filled[:, None]
    return np.where(np.isnan(differences), 0.0, differences)


def signs_within(scores: np.ndarray, margin: float, relative: bool = False) -> np.ndarray:
    """Return models × models: how often j is better than i by at most a margin, minus the rest.

    The margin is a share of the mean size of both scores if ``relative``.

    >>> signs_within(np.array([[0.700], [0.705], [0.9]]), 0.01).tolist()
    [[1.0, 1.0, -1.0], [1.0, 1.0, -1.0], [1.0, 1.0, 1.0]]
    """
    size = np.nan_to_num(np.abs(scores))
    unit = (size[None] + size[:, None]) / 2 if relative else 1.0
    signs = np.sign(margin * unit - _differences(scores))
    failed = np.isnan(scores)
    return np.asarray(np.where(failed[None] & failed[:, None], 0.0, signs).mean(axis=2))


@dataclass(frozen=True)
class Exit:
    """A model that needs no more jobs: why, after how many tasks, with what evidence.

    ``reason`` is "eliminated", "equivalent" or "decided". ``e_value`` is the evidence at that
    moment and ``needed`` the evidence needed; ``others`` are up to three models that are better,
    those with most evidence, or equal.
    """

    model: int
    reason: str
    after: int
    e_value: float
    needed: float
    others: tuple[int, ...]


class RaceState:
    """The wealth of all bets after the tasks so far, and the models that remain.

    ``batches`` is the batch with which each model joined, 0 at the start; ``since`` the number of
    tasks that had been used when each batch joined. A model that joins later runs the tasks from
    the start of the order; before ``since`` it can leave, but eliminates no other.
    """

    def __init__(self, rules: Rules, batches: Sequence[int], since: Sequence[int] = (0,)) -> None:
        self.rules, self.since = rules, tuple(since)
        self.batch = np.array(batches)
        count = len(self.batch)
        self.remaining = np.ones(count, dtype=bool)  # not eliminated
        self.running = np.ones(count, dtype=bool)  # needs more jobs
        self.worse = np.zeros((count, count), dtype=bool)  # row is worse than column
        self.equal = np.zeros((count, count), dtype=bool)
        self.tasks = 0
        self.compared = np.zeros(count, dtype=int)
        self.exits: list[Exit] = []
        self.evidence = np.ones(count)
        self._wins = np.zeros((len(BETS), count, count))
        self._near = np.zeros((len(BETS), count, count))
        batch = np.maximum.outer(self.batch, self.batch)  # a pair belongs to the later of both
        np.fill_diagonal(batch, -1)
        self._pairs = {int(b): batch == b for b in np.unique(self.batch)}

    @property
    def over(self) -> bool:
        """Whether the goal is reached, or all that is left is decided."""
        return not self.running.any()

    def update(self, scores: np.ndarray, takes: np.ndarray, relative: bool = False) -> list[Exit]:
        """Use the scores of the next task, models × folds, and return the models that can stop.

        ``takes`` is which models take the task. ``relative`` is whether the margin is a share.
        """
        there = np.flatnonzero(self.running & takes)
        if len(there) > 1:
            pairs = np.ix_(np.arange(len(BETS)), there, there)
            self._wins[pairs] += _log_wealth(paired_signs(scores[there]))
            if self.rules.margin is not None:
                near = signs_within(scores[there], self.rules.margin, relative)
                self._near[pairs] += _log_wealth(near)
            self.compared[there] += 1
        self.tasks += 1
        before = len(self.exits)
        if self.rules.margin is not None:
            self._find_equal()
        if self.rules.keep:
            self._eliminate()
        else:
            self._order()
        self._stop()
        return self.exits[before:]

    # -- differences ------------------------------------------------------------------------

    def e_values(self) -> np.ndarray:
        """Return models × models: the evidence that j (column) is better than i (row)."""
        return _wealth(self._wins)

    def _eliminate(self) -> None:
        """Remove models, the one with most evidence first; fewer remain, less is needed.

        Models that joined later do not change what is needed among the earlier ones.
        """
        e_values = self.e_values()
        evidence, batches = self._evidence(e_values)
        self.evidence = np.where(self.running, evidence.max(axis=0), self.evidence)
        levels = np.array([self.rules.levels(int(batch))[0] for batch in batches])
        while True:
            remaining = np.array([(self.remaining & (self.batch <= b)).sum() for b in batches])
            needed = np.where(remaining > self.rules.keep, remaining / levels, np.inf)[:, None]
            strength = np.where(self.remaining & self.running, evidence / needed, 0.0)
            row, model = np.unravel_index(int(strength.argmax()), strength.shape)
            if strength[row, model] < 1:
                break
            self.remaining[model] = False
            e_value = float(evidence[row, model]), float(needed[row, 0])
            against = np.where(self._pairs[int(batches[row])][model], e_values[model], 0.0)
            self._leave(int(model), ELIMINATED, *e_value, against)

    def _evidence(self, e_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return batches × models: the evidence that a model is not among the best ``keep``.

        Of the n opponents of a batch, at least n - keep + 1 are not better than a model among the
        best: the mean of the n - keep + 1 smallest e-values is at most the mean of theirs.
        """
        evidence = np.zeros((len(self._pairs), len(self.batch)))
        for row, (batch, pairs) in enumerate(self._pairs.items()):
            true = pairs.sum(axis=1) - self.rules.keep + 1
            ordered = np.sort(np.where(pairs, e_values, np.inf), axis=1)
            used = np.arange(ordered.shape[1]) < true[:, None]
            mean = np.where(used, ordered, 0.0).sum(axis=1) / np.maximum(true, 1)
            early = self.tasks <= self.since[batch]
            evidence[row] = np.where((self.batch == batch) | (not early), mean, 0.0)
        return evidence, np.array(list(self._pairs))

    def _order(self) -> None:
        """Decide pairs, those with most evidence first; fewer are open, less is needed."""
        e_values = self.e_values()
        np.fill_diagonal(e_values, 0.0)
        self.evidence = np.where(self.running, e_values.max(axis=1), self.evidence)
        for batch, pairs in self._pairs.items():
            level = self.rules.levels(batch)[0]
            undecided = pairs & ~self.worse
            for number in np.argsort(np.where(undecided, -e_values, 0.0), axis=None, kind="stable"):
                i, j = divmod(int(number), len(self.batch))
                if not undecided[i, j] or e_values[i, j] * level < (pairs & ~self.worse).sum():
                    break
                self.worse[i, j] = True

    # -- equivalence ------------------------------------------------------------------------

    def _find_equal(self) -> None:
        e_values = _wealth(self._near)
        both = np.minimum(e_values, e_values.T)
        for batch, pairs in self._pairs.items():
            self.equal |= pairs & (both * self.rules.levels(batch)[1] >= pairs.sum() / 2)

    # -- models that stop ---------------------------------------------------------------------

    def _stop(self) -> None:
        """Stop the models without an undecided pair."""
        open_ = ~self.equal & ~np.eye(len(self.batch), dtype=bool)
        if self.rules.keep:
            open_ &= self.remaining[None] & self.remaining[:, None]
            finished = int(self.remaining.sum()) <= self.rules.keep
        else:
            open_ &= ~(self.worse | self.worse.T)
            finished = False
        stopped = self.running & ~open_.any(axis=1)
        for model in np.flatnonzero(stopped & (self.equal.any(axis=1) | (self.rules.keep == 0))):
            if not finished:
                reason = EQUIVALENT if self.equal[model].any() else DECIDED
                self._leave(int(model), reason, np.nan, np.nan, self.equal[model] * 2.0)
        self.running &= ~stopped & (not finished)

    def _leave(
        self, model: int, reason: str, e_value: float, needed: float, against: np.ndarray
    ) -> None:
        """Stop a model; ``own`` is the evidence of each other model, above 1 if it counts."""
        others = [int(j) for j in np.argsort(-against, kind="stable") if against[j] > 1][
            :MOST_OTHERS
        ]
        self.running[model] = False
        after = int(self.compared[model])
        self.exits.append(Exit(model, reason, after, e_value, needed, tuple(others)))


def _log_wealth(values: np.ndarray) -> np.ndarray:
    return np.log1p(BETS[:, None, None] * values)


def _wealth(logs: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(np.minimum(logs, MOST)).mean(axis=0))


def loss_e_process(differences: Any, margin: float) -> np.ndarray:
    """Return the evidence after each item that the mean difference is below ``-margin``.

    Differences lie in [-1, 1]. As long as each has a conditional mean of ``-margin`` or more, given
    the items before it, the result is a supermartingale that starts at 1: the probability that it
    ever reaches 1 / level is at most the level (Ville's inequality), whenever one stops. It is the
    wealth of a gambler who bets a share of it on a loss at every item (Waudby-Smith and Ramdas
    2024), averaged over several shares.

    >>> loss_e_process([0.0, 0.0], margin=0.01).round(4).tolist()
    [0.9981, 0.9963]
    >>> bool(loss_e_process([-1.0] * 20, margin=0.01)[-1] > 100)
    True
    """
    values = np.asarray(differences, dtype=float)
    if values.size and np.abs(values).max() > 1:
        raise ValueError("differences must lie in [-1, 1].")
    # at most 0.9 × (1 + margin) can be lost, so that the wealth stays positive
    bets = LOSS_BETS / (1 + margin)
    logs = np.log1p(-bets * (values[:, None] + margin)).cumsum(axis=0)
    return np.asarray(np.exp(logs).mean(axis=1))
