"""Are two models equivalent? Differences of scores on tasks, tested against a margin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from karat.analysis.comparison import FEWEST, NO_SPREAD, ONE_FOLD, is_ratio
from karat.analysis.item_tests import CORRECTED, fold_repeats, item_error
from karat.analysis.pairing import Paired, Pairing
from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, KaratError
from karat.metrics.metric import get_metric
from karat.stats.paired_tests import ALPHA, MeanDifference, corrected_t, holm, subtract

OVER_TASKS, ON_ITEM = "t over tasks", "t over items"
#: quantiles of the normal distribution: one-sided 5 %, and a power of 90 %
Z_LEVEL, Z_POWER = 1.645, 1.282


def check_margin(margin: float) -> None:
    """Raise ``DefinitionError`` unless a margin is a positive number."""
    if not (math.isfinite(margin) and margin > 0):
        raise DefinitionError(f"margin must be a number above 0, such as 0.01, got {margin!r}.")


def pool_tasks(tasks: Sequence[MeanDifference]) -> MeanDifference:
    """Return the mean difference over tasks.

    With six tasks or more, these are a sample of tasks, and the error is that of their mean. Fewer
    are fixed, and the errors within tasks count.
    """
    pooled = MeanDifference.over_tasks(tasks)
    if len(tasks) < FEWEST:
        return pooled
    error = float(np.std([task.mean for task in tasks], ddof=1)) / math.sqrt(len(tasks))
    return replace(pooled, error=error, freedom=len(tasks) - 1)


def task_difference(paired: Paired, alone: bool) -> tuple[MeanDifference, str]:
    """Return the difference on a task, positive if the first is better, and its test.

    As in a comparison of two models: on the items of a single task or of a single fold, if
    predictions are stored, else over folds.
    """
    unit, width = 1.0, 1.0
    if is_ratio(paired.metric, paired.own):
        unit = float(np.mean([np.abs(paired.first).mean(), np.abs(paired.second).mean()])) or 1.0
    else:
        width = metric_range(paired.metric)
    sign = 1 if paired.higher else -1
    tested = corrected_t(subtract(paired.first, paired.second) / unit * sign, paired.ratio)
    mean, folds = float(tested.mean), int(tested.folds)
    if alone or folds == 1:
        try:
            error, freedom, items = item_error(paired)
        except (KaratError, ValueError, KeyError, TypeError):
            pass
        else:
            return MeanDifference(mean, error / unit, freedom, width / items), ON_ITEM
    items = count_items(paired)
    same = folds > 1 and float(tested.p) == 1.0 and math.isnan(float(tested.error))
    error = 0.0 if same else float(tested.error)
    reason = CORRECTED if not math.isnan(error) else ONE_FOLD if folds == 1 else NO_SPREAD
    return MeanDifference(mean, error, max(folds - 1, 1), width / items if items else 0.0), reason


def metric_range(metric: str) -> float:
    """Return the width of the range of a metric; 1 if it has none."""
    try:
        low, high = get_metric(metric).range
    except KaratError:
        return 1.0
    return high - low if math.isfinite(high - low) else 1.0


def count_items(paired: Paired) -> int:
    """Return the number of test items of the shared folds, of one repeat; 0 if unknown."""
    if paired.sides is None:
        return 0
    side = paired.sides[0]
    repeats, sizes = fold_repeats(side, paired.task), side.answered[paired.task][CLEAN]
    first = min(repeats[fold] for fold, _ in paired.units)
    return sum(sizes[unit].questions for unit in paired.units if repeats[unit[0]] == first)


# -- two models -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Equivalence:
    """Two models on tasks: the differences, and whether they are within a margin.

    ``tasks`` has one row per task; differences are positive if the second model is better.
    ``mean`` is the mean over tasks. Two one-sided tests at 5 % decide about the mean; that a task
    differs by more than the margin is corrected for the number of tasks (Holm).
    """

    tasks: pd.DataFrame
    mean: MeanDifference
    margin: float
    items: int

    @property
    def verdict(self) -> str:
        """``"equivalent"``, ``"different"`` or ``"undecided"``."""
        beyond = min(_p_beyond(self.mean, self.margin))
        if beyond < ALPHA / 2 or (self.tasks["verdict"] == "different").any():
            return "different"
        if _p_within(self.mean, self.margin) < ALPHA:
            return "equivalent"
        return "undecided"

    @property
    def needed_items(self) -> int:
        """How many more items would show equivalence with power 90 %; 0 if it cannot be known."""
        room = self.margin - abs(self.mean.mean)
        if not self.items or room <= 0 or not self.mean.error > 0:
            return 0
        total = self.items * ((Z_LEVEL + Z_POWER) * self.mean.error / room) ** 2
        return max(math.ceil(total) - self.items, 1)


def equivalence(found: Pairing, margin: float, *, on_items: bool = True) -> Equivalence:
    """Return the differences of two paired models on their common tasks.

    ``on_items``: test on stored predictions where there are any, for the models as they were
    fitted; otherwise over folds.
    """
    tasks = [paired for paired in found.tasks if paired.compared]
    if not tasks:
        raise DataError(f"{found.first} and {found.second} have no task in common.")
    each = [task_difference(paired, alone=on_items or len(tasks) == 1) for paired in tasks]
    # of the second model, compared with the first
    signed = [replace(difference, mean=-difference.mean) for difference, _ in each]
    rows = [
        _task_row(paired, difference, test, margin)
        for paired, difference, (_, test) in zip(tasks, signed, each, strict=True)
    ]
    table = pd.DataFrame(rows)
    table["p_beyond"] = holm(table["p_beyond"].fillna(1.0))
    table["verdict"] = np.select(
        [table["p_beyond"] < ALPHA, table["p_within"] < ALPHA],
        ["different", "equivalent"],
        "undecided",
    )
    items = sum(count_items(paired) for paired in tasks)
    return Equivalence(table, pool_tasks(signed), margin, items)


def _task_row(paired: Paired, found: MeanDifference, test: str, margin: float) -> dict[str, Any]:
    low, high = found.interval()
    return {
        **{"task": paired.task, "metric": paired.metric, "difference": found.mean},
        **{"first": float(np.mean(paired.first)), "second": float(np.mean(paired.second))},
        **{"difference_low": low, "difference_high": high, "test": test},
        "p_within": _p_within(found, margin),
        "p_beyond": min(1.0, 2 * min(_p_beyond(found, margin))),
    }


def _p_within(found: MeanDifference, margin: float) -> float:
    """Return p of the two one-sided tests that the difference is the margin or more."""
    return max(found.p_above(-margin), found.p_below(margin))


def _p_beyond(found: MeanDifference, margin: float) -> tuple[float, float]:
    """Return p of the tests that the difference is at least -margin, and at most margin."""
    return found.p_below(-margin), found.p_above(margin)
