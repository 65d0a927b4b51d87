"""Whether the tasks that a model skipped are those on which the other models score low."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from karat.stats.paired_tests import holm
from karat.stats.rank_sum import lower_rank_sum

#: fewest tasks that a model skips, and that it takes
FEWEST_SKIPPED = 3
#: fewest models that judge how hard the tasks are
FEWEST_JUDGES = 2


@dataclass(frozen=True)
class TaskLevels:
    """How good models are on tasks, and which tasks they take; both are models × tasks.

    ``levels`` are 1 for the best possible score and 0 for the worst, NaN without a score.
    ``metrics`` are those of the tasks, ``judges`` the models that may judge how hard tasks are.
    """

    levels: np.ndarray
    takes: np.ndarray
    metrics: Sequence[str]
    judges: np.ndarray

    def skipped_low(self) -> np.ndarray:
        """Return p for each model: its skipped tasks have lower scores of others than those taken.

        Only models with a score on every task judge. Corrected after Holm; NaN if not tested.

        >>> levels = np.array([[0.5, 0.6, 0.5, 0.9, 0.8, 0.9, 0.8]] * 3)
        >>> takes = np.ones((3, 7), dtype=bool)
        >>> takes[2, :3] = False
        >>> TaskLevels(levels, takes, ["acc"] * 7, np.ones(3, dtype=bool)).skipped_low().round(3)
        array([  nan,   nan, 0.023])
        """
        p_values = np.array([self._skipped_low(m) for m in range(len(self.takes))])
        p_values[~np.isnan(p_values)] = holm(p_values[~np.isnan(p_values)])
        return p_values

    def _skipped_low(self, model: int) -> float:
        skipped = ~self.takes[model]
        judges = self.judges & ~np.isnan(self.levels).any(axis=1) & self.takes.all(axis=1)
        judges[model] = False
        enough = min(int(skipped.sum()), int((~skipped).sum())) >= FEWEST_SKIPPED
        if not enough or judges.sum() < FEWEST_JUDGES:
            return float("nan")
        return lower_rank_sum(self.levels[judges].mean(axis=0), skipped, list(self.metrics))
