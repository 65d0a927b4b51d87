"""Power: how many tasks, folds or items a difference takes; and equivalence within a margin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy

from karat.analysis.comparison import NO_SPREAD, ONE_FOLD
from karat.analysis.item_tests import (
    CORRECTED,
    LEARNERS,
    ItemTest,
    compare_predictions,
    paired_item_values,
)
from karat.analysis.item_values import UNITS
from karat.analysis.pairing import Paired, Pairing, cluster_pairing, pair
from karat.analysis.score_matrix import RULES, apply_missing_rule
from karat.analysis.stored_items import fold_repeats
from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, KaratError
from karat.ext.decide import power_wording
from karat.metrics.metric import is_ratio, metric_range
from karat.output.result import Result
from karat.output.table import Table
from karat.results.load import Gathered, gather_scores, make_cells
from karat.results.run import Run
from karat.stats.paired_tests import (
    ALPHA,
    MeanDifference,
    corrected_t,
    detectable_difference,
    holm,
    needed_folds,
    needed_pairs,
    needed_signs,
    subtract,
)
from karat.stats.pairwise_ranks import mean_ranks
from karat.stats.ranking import FEWEST_TASKS, rank_each

#: fewest tasks from which the variance between tasks is estimated
FEWEST_DIFFERENCES = 3
CONFIDENCE = 0.95
#: columns of the table of tasks
COLUMNS = (
    "task",
    "metric",
    "difference",
    "fold_spread",
    "folds",
    "folds_needed",
    "item_spread",
    "items",
    "items_needed",
)
OVER_TASKS, ON_ITEM = "t over tasks", "t over items"
#: quantiles of the normal distribution: one-sided 5 %, and a power of 90 %
Z_LEVEL, Z_POWER = 1.645, 1.282


@dataclass(frozen=True, eq=False, repr=False)
class Power(Result):
    """How many tasks, folds and items are needed to detect a difference of two models.

    Attributes
    ----------
    models
        The two models whose differences were measured.
    difference
        The difference to detect with a power of 80 %, in two-sided tests at 5 %; a share of the
        score where the metric has no upper bound.
    tasks
        A row per task: the difference of the models, its standard deviation over folds and over
        items, the numbers of both there are, and how many are needed to detect the difference on
        that task alone. Infinite: no number is enough. NaN: not known.
    between, within
        Standard deviation of the difference between tasks (without the part of the folds), and
        between the folds of a task.
    folds
        Mean number of folds of a task.
    needed
        Tasks needed with the folds at hand, to detect the mean difference over tasks with a t-test.
    needed_low, needed_high
        95 % interval of that number, as the variance was estimated from few tasks.
    needed_wins
        Tasks needed by the test of wins and losses, the default of ``karat compare``.
    needed_any_folds
        Tasks needed with any number of folds per task.
    detectable
        The difference that the tasks at hand detect.
    notes
        What was left out and why.
    """

    models: tuple[str, str]
    difference: float
    tasks: pd.DataFrame
    between: float = float("nan")
    within: float = float("nan")
    folds: float = float("nan")
    needed: float = float("nan")
    needed_low: float = float("nan")
    needed_high: float = float("nan")
    needed_wins: float = float("nan")
    needed_any_folds: float = float("nan")
    detectable: float = float("nan")
    notes: list[str] = field(default_factory=list)

    csv_prefix: ClassVar[str] = "power"
    frames: ClassVar[tuple[str, ...]] = ("tasks",)

    @property
    def sentence(self) -> str:
        """The answer in one paragraph."""
        return power_wording.power_sentence(self, FEWEST_DIFFERENCES)

    def tables(self) -> list[Table]:
        """Return one row per task: its spread, folds and items, and how many are needed."""
        return [power_wording.power_table(self)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values; None is not known or no number is enough."""
        return {**super().to_dict(), "verdict": self.sentence}


def power(
    runs: pd.DataFrame | Mapping[str, Any] | Run | str | Path | Iterable[Run | str | Path],
    difference: float,
    *,
    tasks: Sequence[str] | None = None,
    models: Sequence[str] = (),
    pool: str = "variant",
    cluster: str | None = None,
) -> Power:
    """Return how many tasks, folds or items detect a difference of two models in 80 % of cases.

    The mean difference over tasks has the variance ``(between² + within² / folds) / tasks``.
    ``between`` contains the common part of correlated folds of a task. On one task, the variance
    over folds is corrected for their overlapping training sets (Nadeau and Bengio 2003), as in
    ``compare``; items are those of stored predictions.

    Parameters
    ----------
    runs
        Earlier runs of at least two models, as for ``leaderboard``.
    difference
        The difference to detect: of scores, or a share of them where the metric has no upper bound.
    tasks
        Names of tasks to use. Default: all tasks of the runs.
    models
        Models to choose from. Default: all. The two with the best mean ranks are compared.
    pool
        Which runs are one model, as in ``leaderboard``.
    cluster
        A column kept with the items: the items needed are then clusters with the same value.
        Default: the declared groups.

    Raises
    ------
    DataError
        If fewer than two models have scores on a task.
    DefinitionError
        If the difference is not above 0.

    Examples
    --------
    >>> karat.power("results", 0.01).needed  # doctest: +SKIP
    """
    if not difference > 0:
        raise DefinitionError(f"the difference must be above 0, got {difference:g}.")
    gathered = gather_scores(runs, pool)
    wanted = [task for task in gathered.metrics if tasks is None or task in tasks]
    two = _two_best(gathered, wanted, models)
    pairing = cluster_pairing(pair(runs, *two, None, "folds", pool), cluster)
    used = [p for p in pairing.tasks if p.task in wanted and p.compared]
    if not used:
        raise DataError(f"{two[0]} and {two[1]} share no fold of a task.")
    rows = [_of_task(paired, difference) for paired in used]
    table = pd.DataFrame(rows, columns=list(COLUMNS))
    over = _over_tasks([_gains(paired) for paired in used], difference)
    return Power(two, difference, table, **over, notes=pairing.notes)


def _two_best(gathered: Gathered, tasks: Sequence[str], models: Sequence[str]) -> tuple[str, str]:
    """Return the two models with the best mean rank on these tasks."""
    rows = gathered.scores[gathered.scores["task"].isin(list(tasks))]
    there = set(rows["model"])
    candidates = [
        name for name in gathered.models if name in there and (not models or name in models)
    ]
    names = (
        candidates if len(candidates) > 1 else [name for name in gathered.models if name in there]
    )
    if len(names) < 2:
        raise DataError(
            f"earlier runs of two models on the same tasks are needed; there are {len(names)}."
        )
    some = gathered.only(dict.fromkeys(tasks, "")).of_models(names)
    compared = apply_missing_rule(make_cells(some, some.metrics), RULES[0])
    ranks = rank_each(compared.values, compared.takes)
    counts = (~np.isnan(ranks)).sum(axis=1)
    mean = mean_ranks(ranks)
    # models with fewer tasks come last
    order = np.lexsort((np.where(np.isnan(mean), np.inf, mean), -counts))
    return compared.models[order[0]], compared.models[order[1]]


def _unit(paired: Paired) -> float:
    """Return the unit of a gain: 1, or the mean score where the metric has no upper bound."""
    if not is_ratio(paired.metric, paired.own):
        return 1.0
    return float(np.abs([paired.first.mean(), paired.second.mean()]).mean()) or 1.0


def _gains(paired: Paired) -> np.ndarray:
    """Return by how much the first model is better, by fold."""
    sign = 1 if paired.higher else -1
    return np.asarray(sign * subtract(paired.first, paired.second) / _unit(paired))


def _of_task(paired: Paired, difference: float) -> tuple[Any, ...]:
    """Return the row of a task."""
    apart = _gains(paired)
    folds = len(apart)
    spread = float(apart.std(ddof=1)) if folds > 1 else float("nan")
    wanted = float("nan")
    if folds > 1:
        wanted = needed_folds(spread, difference, paired.ratio, pilot=folds - 1)
    item_spread, items = _item_spread(paired, _unit(paired))
    # the spread over items is that of at most UNITS blocks of them
    pilot = min(items, UNITS) - 1
    needed = needed_pairs(item_spread, difference, pilot) if items else float("nan")
    facts = (paired.task, paired.metric, float(apart.mean()), spread, folds, wanted)
    return (*facts, item_spread, items, needed)


def _item_spread(paired: Paired, unit: float) -> tuple[float, int]:
    """Return the standard deviation of a difference over items, and the items; 0 if unknown."""
    try:
        stored = paired_item_values(paired)
    except (KaratError, ValueError, KeyError, TypeError):
        return float("nan"), 0
    items, apart = stored.independent, stored.values[0] - stored.values[1]
    # the mean of a block of items varies less than an item
    spread = float(apart.std(ddof=1) * np.sqrt(items / len(apart)))
    if paired.metric == "rmse":  # a difference of squares is the difference times the sum
        spread /= max(float(paired.first.mean() + paired.second.mean()), np.finfo(float).tiny)
    return spread / unit, items


def variance_parts(gains: Sequence[np.ndarray]) -> tuple[float, float, float]:
    """Return the variances between tasks and between folds of a task, and the mean of folds.

    ``gains`` are the differences of two models by fold, for each task. The variance of the means of
    tasks minus the part of the folds is that between tasks; it contains the covariance of folds.
    The mean is the harmonic one.

    >>> variance_parts([np.array([1.0, 1.0]), np.array([3.0, 3.0])])
    (2.0, 0.0, 2.0)
    """
    means = np.array([gain.mean() for gain in gains])
    inverse = float(np.mean([1 / len(gain) for gain in gains]))
    freedom = sum(len(gain) - 1 for gain in gains)
    squares = sum(float(((gain - gain.mean()) ** 2).sum()) for gain in gains)
    within = squares / freedom if freedom else 0.0
    between = float(means.var(ddof=1)) - within * inverse
    return max(between, 0.0), within, 1 / inverse


def _over_tasks(gains: Sequence[np.ndarray], difference: float) -> dict[str, float]:
    """Return the numbers of tasks needed to detect a mean difference."""
    if len(gains) < FEWEST_DIFFERENCES:
        return {}
    between, within, folds = variance_parts(gains)
    total = float(np.var([gain.mean() for gain in gains], ddof=1))
    spread, freedom = np.sqrt(total), len(gains) - 1
    ends = scipy.special.chdtri(freedom, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    low, high = (spread * np.sqrt(freedom / end) for end in ends)
    return {
        "between": float(np.sqrt(between)),
        "within": float(np.sqrt(within)),
        "folds": folds,
        "needed": needed_pairs(spread, difference, freedom),
        "needed_low": needed_pairs(low, difference),
        "needed_high": needed_pairs(high, difference),
        "needed_wins": needed_signs(spread, difference, freedom),
        "needed_any_folds": needed_pairs(float(np.sqrt(between)), difference, freedom),
        "detectable": detectable_difference(spread, len(gains), freedom),
    }


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
    if len(tasks) < FEWEST_TASKS:
        return pooled
    error = float(np.std([task.mean for task in tasks], ddof=1)) / math.sqrt(len(tasks))
    return replace(pooled, error=error, freedom=len(tasks) - 1)


def item_test(paired: Paired, retrained: bool = False) -> ItemTest | None:
    """Return the test of a task's stored predictions; None if they cannot be tested.

    ``retrained`` is that of ``compare_predictions``.
    """
    try:
        return compare_predictions(paired, retrained=retrained)
    except (KaratError, ValueError, KeyError, TypeError):
        return None


def task_difference(paired: Paired, by_items: bool = True) -> tuple[MeanDifference, str]:
    """Return the difference on a task, positive if the first is better, and its test.

    As in a comparison of two models: from items and fits if predictions are stored, else over
    folds. With ``by_items`` False, predictions are read only of a task with a single fold.
    """
    test = item_test(paired) if by_items or len(paired.first) == 1 else None
    if test is not None:
        return named_difference(test)
    return fold_difference(paired)


def named_difference(test: ItemTest) -> tuple[MeanDifference, str]:
    """Return the difference of a test on items, and its name."""
    return test.difference, test.test if test.claim == LEARNERS else ON_ITEM


def fold_difference(paired: Paired) -> tuple[MeanDifference, str]:
    """Return the difference on a task over its folds, and its test or why there is none."""
    unit, width = 1.0, 1.0
    if is_ratio(paired.metric, paired.own):
        unit = float(np.mean([np.abs(paired.first).mean(), np.abs(paired.second).mean()])) or 1.0
    else:
        width = metric_range(paired.metric)
    sign = 1 if paired.higher else -1
    tested = corrected_t(subtract(paired.first, paired.second) / unit * sign, paired.ratio)
    mean, folds = float(tested.mean), int(tested.folds)
    items = count_items(paired)
    same = folds > 1 and float(tested.p) == 1.0 and math.isnan(float(tested.error))
    error = 0.0 if same else float(tested.error)
    reason = CORRECTED if not math.isnan(error) else ONE_FOLD if folds == 1 else NO_SPREAD
    return MeanDifference(mean, error, max(folds - 1, 1), width / items if items else 0.0), reason


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


def equivalence(pairing: Pairing, margin: float) -> Equivalence:
    """Return the differences of two paired models on their common tasks.

    They are tested on stored predictions where there are any, otherwise over folds.
    """
    tasks = [paired for paired in pairing.tasks if paired.compared]
    if not tasks:
        raise DataError(f"{pairing.first} and {pairing.second} have no task in common.")
    differences = [task_difference(paired) for paired in tasks]
    # of the second model, compared with the first
    signed = [replace(difference, mean=-difference.mean) for difference, _ in differences]
    rows = [
        _task_row(paired, difference, test, margin)
        for paired, difference, (_, test) in zip(tasks, signed, differences, strict=True)
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


def _task_row(
    paired: Paired, difference: MeanDifference, test: str, margin: float
) -> dict[str, Any]:
    low, high = difference.interval()
    return {
        **{"task": paired.task, "metric": paired.metric, "difference": difference.mean},
        **{"first": float(np.mean(paired.first)), "second": float(np.mean(paired.second))},
        **{"difference_low": low, "difference_high": high, "test": test},
        "p_within": _p_within(difference, margin),
        "p_beyond": min(1.0, 2 * min(_p_beyond(difference, margin))),
    }


def _p_within(difference: MeanDifference, margin: float) -> float:
    """Return p of the two one-sided tests that the difference is the margin or more."""
    return max(difference.p_above(-margin), difference.p_below(margin))


def _p_beyond(difference: MeanDifference, margin: float) -> tuple[float, float]:
    """Return p of the tests that the difference is at least -margin, and at most margin."""
    return difference.p_below(-margin), difference.p_above(margin)
