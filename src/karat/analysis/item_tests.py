"""Which models of one task differ: tests of their fits and of the items of stored predictions.

With one fit of each model, a test on items holds for the models as they were fitted. With two or
more fits (folds, repeats, seeds) the test is about the learners: see ``karat.stats.learner_tests``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy

from karat.analysis.stored_items import (
    ItemValues,
    common_items,
    find_sides,
    fold_repeats,
    read_item_values,
)
from karat.corruptions.view import CLEAN
from karat.errors import DataError, KaratError
from karat.metrics.metric import get_metric, is_ratio, metric_range
from karat.results.load import Gathered, gather_scores
from karat.results.selection import ModelRuns
from karat.stats.learner_tests import (
    FitNoise,
    SeedNoise,
    moderated,
    noise_of_folds,
    noise_of_seeds,
    wider,
    with_shared_rows,
)
from karat.stats.paired_items import FEWEST_ITEMS, PairSums, max_t, pair_p
from karat.stats.paired_tests import (
    CONFIDENCE,
    MeanDifference,
    agreeing,
    corrected_t,
    fold_ratio,
    holm,
    mean_of,
    needed_pairs,
    subtract,
)

if TYPE_CHECKING:
    from karat.analysis.pairing import Paired

#: difference of scores for which the needed number of queries is computed
DETECTED = 0.05
MCNEMAR, BOOTSTRAP, MAX_T = "McNemar", "paired bootstrap", "max-T over items"
CORRECTED = "corrected t"
#: what a test is about
LEARNERS, AS_FITTED = "learners", "as fitted"
#: what a test of models that were fitted once does not include
TRAIN_AGAIN = "As fitted: another training may change it; karat run … --seeds 3 includes its noise."
#: the pairs of models, as two arrays of places
Pairs = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Fits:
    """The scores of models on the folds of a task: models × folds, higher is better.

    ``repeats`` is the number of each fold's repeat, ``ratio`` is n_test / n_train.
    """

    scores: np.ndarray
    repeats: Sequence[int]
    ratio: float

    @classmethod
    def of(cls, sides: Sequence[tuple[ModelRuns, str]], metric: str) -> Fits:
        """Return the scores of each side on the folds that all of them have."""
        sign = 1 if get_metric(metric).higher_is_better else -1
        tables = [
            {unit[0]: answer for unit, answer in side.answered[task][CLEAN].items()}
            for side, task in sides
        ]
        folds = sorted(set.intersection(*(set(table) for table in tables)))
        repeats = fold_repeats(*sides[0])
        scores = [[table[fold].scores.get(metric, np.nan) for fold in folds] for table in tables]
        sizes = np.array([tables[0][fold].sizes for fold in folds]).reshape(-1, 2)
        per_repeat = len(folds) // max(len({repeats[fold] for fold in folds}), 1)
        ratio = fold_ratio(sizes[:, 0], sizes[:, 1], per_repeat)
        return cls(sign * np.array(scores, dtype=float), [repeats[f] for f in folds], ratio)


@dataclass(frozen=True, eq=False)
class Separation:
    """Which models of one task differ; all tables are models × models.

    Attributes
    ----------
    p
        p of each pair, adjusted for all pairs; 1 on the diagonal, NaN where it is not tested.
    test
        Name of the test; empty if nothing was tested.
    why
        Why nothing was tested, such as "one fold".
    items, clusters
        Number of items tested on, 0 for a test over folds; of clusters of items that belong
        together, 0 if items are independent.
    queries
        Number of queries, and about how many would be needed to detect a difference of
        ``DETECTED`` between the two best models in 80 % of cases; if the items are ranked lists.
    spread
        Standard deviation of the differences of the two best models over queries.
    claim
        ``"learners"`` if the test includes the noise of training, ``"as fitted"`` if it holds for
        the models as they were fitted.
    raw
        p of each pair by itself.
    difference, error, freedom
        By how much the row is better than the column (relative to the mean of both for metrics
        without an upper bound), its standard error, and degrees of freedom.
    step
        By how much one item can change a difference; see ``MeanDifference``.
    """

    p: np.ndarray
    test: str = ""
    why: str = ""
    items: int = 0
    queries: tuple[int, int] | None = None
    spread: float = 0.0
    clusters: int = 0
    claim: str = ""
    raw: np.ndarray | None = None
    difference: np.ndarray | None = None
    error: np.ndarray | None = None
    freedom: np.ndarray | None = None
    step: float = 0.0

    def placed(self, places: Sequence[int] | np.ndarray, models: int) -> Separation:
        """Return the same test in tables of more models, at these places."""
        if np.array_equal(places, np.arange(models)):
            return self
        at = np.ix_(np.asarray(places), np.asarray(places))
        tables: dict[str, Any] = {}
        for name in ("p", "raw", "difference", "error", "freedom"):
            table = getattr(self, name)
            if table is not None:
                diagonal = np.eye(models, dtype=bool)
                tables[name] = np.where(diagonal, 1.0 if name in ("p", "raw") else 0.0, np.nan)
                tables[name][at] = table
        return replace(self, **tables)

    def mean_difference(self, one: int, other: int) -> MeanDifference:
        """Return the difference of two models, with its error."""
        if self.difference is None or self.error is None or self.freedom is None:
            raise DataError("the models were not tested.")
        difference, error = self.difference[one, other], self.error[one, other]
        freedom = self.freedom[one, other]
        return MeanDifference(float(difference), float(error), float(freedom), self.step)

    def interval(self, one: int, other: int) -> tuple[float, float]:
        """Return the 95 % interval of a difference, with Bonferroni's correction for all pairs.

        It contains 0 if and only if the p of the pair is at least 0.05.
        """
        gain = replace(self.mean_difference(one, other), step=0.0)
        pairs = np.triu_indices(len(self.p), 1)
        tested = max(int(np.isfinite(self.p[pairs]).sum()), 1)
        low, high = gain.interval(1 - (1 - CONFIDENCE) / tested)
        half = float(agreeing(gain.mean, (high - low) / 2, self.p[one, other]))
        return gain.mean - half, gain.mean + half


# -- all pairs of a task --------------------------------------------------------------------


def separate_pairs(
    items: ItemValues, fits: Fits, metric: str, corrected: bool = True
) -> Separation:
    """Return the test of every pair of models, from their items and their fits.

    A difference counts if neither the noise of items nor that of training explains it: the larger
    p of both. More than two models are corrected for all pairs by step-down max-T over items, in
    which the statistic of a pair is at most what the fits of all models, and the training rows that
    they share, allow; p is never below that of the two models by themselves.
    """
    models, units = items.values.shape
    pairs = np.triu_indices(models, 1)
    sums, scores = PairSums.of(items.values, *pairs), mean_of(fits.scores)
    scale = _item_scale(metric, scores, pairs)
    of_items = sums.variance(units) * scale**2
    apart = np.where(sums.equal[:, None], 0.0, np.subtract(*fits.scores[list(pairs)]))
    noise, difference = _fit_noise(items, fits, apart, scale), mean_of(apart)
    raw = pair_p(items.values, items.is_right)
    statistics = _item_statistics(sums, noise, difference / scale * units)
    by_items = _by_items(statistics, units) if noise.repeated else with_shared_rows(raw[pairs])
    alone = np.where(noise.seen, by_items, raw[pairs])
    raw[pairs] = raw[pairs[::-1]] = np.fmax(alone, _by_fits(noise, difference, of_items))
    p = raw
    if several := corrected and models > 2:
        common = moderated(noise, of_items, models).with_shared_rows(of_items)
        of_fits = _by_fits(common, difference, of_items)
        p = np.fmax(raw, _corrected(items, noise, statistics=statistics, of_fits=of_fits))
    claim = LEARNERS if noise.seen.any() else AS_FITTED
    unit = _gain_unit(metric, scores, pairs)
    error, freedom = wider(of_items, units, noise)
    return Separation(
        p,
        _test_name(items, fits, claim, several),
        items=items.items,
        clusters=items.clusters,
        claim=claim,
        raw=raw,
        **_tables(pairs, difference / unit, error / unit, freedom),
        step=_largest_step(metric, items.independent),
    )


def _corrected(
    items: ItemValues, noise: FitNoise, *, statistics: np.ndarray, of_fits: np.ndarray
) -> np.ndarray:
    """Return p corrected for all pairs, from their statistics of items and their p of fits."""
    allowed = -scipy.special.ndtri(of_fits / 2)
    least = np.where(noise.seen, np.fmin(allowed, statistics), np.nan)
    return max_t(items.values, centered=not items.is_right, statistics=least)


def _item_statistics(sums: PairSums, noise: FitNoise, of_mean: np.ndarray) -> np.ndarray:
    """Return the sizes of differences in standard errors of items and the rows that fits share.

    Values are those of the first repeat; ``of_mean`` are the sums of the mean over all repeats.
    """
    apart = np.where(sums.equal, 0.0, of_mean) if noise.repeated else sums.sums
    return np.asarray(sums.studentize(apart) / np.sqrt(1 + noise.shared_rows))


def _by_items(statistics: np.ndarray, units: int) -> np.ndarray:
    """Return two-sided p of these sizes of differences between means of so many units."""
    if units < FEWEST_ITEMS:
        return np.full(len(statistics), np.nan)
    return np.asarray(2 * scipy.special.stdtr(units - 1, -statistics))


def _by_fits(noise: FitNoise, difference: np.ndarray, of_items: np.ndarray) -> np.ndarray:
    """Return p of the fits; NaN where they say nothing, as about equal models."""
    return np.where(difference == 0, np.nan, noise.p_values(difference, of_items))


def _fit_noise(items: ItemValues, fits: Fits, apart: np.ndarray, scale: np.ndarray) -> FitNoise:
    """Return what the folds, or the seeds on a single fold, show of each pair's variance."""
    models, units = items.values.shape
    one, other = pairs = np.triu_indices(models, 1)
    of_items = PairSums.of(items.values, one, other).variance(units)
    if apart.shape[1] > 1:
        return noise_of_folds(apart, fits.repeats, fits.ratio, of_items * scale**2)
    noise = noise_of_seeds(items.seeds, pairs, of_items)
    return FitNoise(noise.variance * scale**2, noise.freedom)


def _item_scale(metric: str, scores: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Return what turns a difference of item values into one of scores, for each pair."""
    one, other = pairs
    if metric != "rmse":
        return np.ones(len(one))
    # a difference of squares is the difference times the sum
    return 1 / np.maximum(np.abs(scores[one]) + np.abs(scores[other]), np.finfo(float).tiny)


def _gain_unit(metric: str, scores: np.ndarray, pairs: Pairs) -> np.ndarray:
    """Return the unit of each pair's gain: the mean of both scores where gains are relative."""
    one, other = pairs
    unit = (np.abs(scores[one]) + np.abs(scores[other])) / 2
    return np.where(is_ratio(metric, scores) & (unit > 0), unit, 1.0)


def _largest_step(metric: str, independent: int) -> float:
    """Return by how much one independent item can change a gain; 0 without items."""
    width = 1.0 if is_ratio(metric, []) else metric_range(metric)
    return width / independent if independent else 0.0


def _tables(
    pairs: Pairs, difference: np.ndarray, error: np.ndarray, freedom: np.ndarray
) -> dict[str, Any]:
    """Return values of pairs as tables of models × models; differences have the sign of the row."""
    models = int(pairs[1].max(initial=0)) + 1
    tables = {}
    for name, values in {"difference": difference, "error": error, "freedom": freedom}.items():
        table = np.zeros((models, models))
        table[pairs] = values
        tables[name] = table - table.T if name == "difference" else table + table.T
    return tables


def _p_table(pairs: Pairs, models: int, values: np.ndarray) -> np.ndarray:
    """Return p of pairs as a table of models × models with 1 on the diagonal."""
    table = np.zeros((models, models))
    table[pairs] = values
    return np.asarray(table + table.T + np.eye(models))


def _test_name(items: ItemValues, fits: Fits, claim: str, several: bool) -> str:
    if claim == AS_FITTED:
        return MAX_T if several else MCNEMAR if items.is_right else BOOTSTRAP
    what = "folds" if fits.scores.shape[1] > 1 else "seeds"
    return f"{'max-T' if several else 't'} over {what} and items"


# -- two models -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ItemTest:
    """The test of two models on a task: its name, the interval of the difference, and p.

    ``items`` and ``clusters`` are numbers, ``claim`` is what the test is about, and ``difference``
    the gain of the first with its error.
    """

    test: str
    low: float
    high: float
    p: float
    items: int
    clusters: int
    claim: str
    difference: MeanDifference


def compare_predictions(paired: Paired, common: bool = False, retrained: bool = False) -> ItemTest:
    """Return the test of a task's stored predictions of two models.

    All items that both were scored on are used; with ``common`` only those that both can answer.
    Only the first repeat of a cross-validation is used, so that no item counts twice. With
    ``retrained``, a model that was fitted once varies as much as a fit of the other one. Raises a
    ``KaratError`` if predictions cannot be read or are not about one question each.
    """
    sign = 1 if paired.higher else -1
    repeats = fold_repeats(paired.sides[0], paired.task) if paired.sides else {}
    fits = Fits(
        sign * np.array([paired.first, paired.second]),
        [repeats.get(fold, 0) for fold, _ in paired.units],
        paired.ratio,
    )
    items = paired_item_values(paired, common)
    if retrained:
        items = replace(items, seeds=as_retrained(items.seeds))
    tested = separate_pairs(items, fits, paired.metric)
    mean = tested.mean_difference(0, 1)
    unit = _gain_unit(paired.metric, mean_of(fits.scores), (np.array([0]), np.array([1])))[0]
    half = float(scipy.special.stdtrit(mean.freedom, (1 + CONFIDENCE) / 2) * mean.error * unit)
    middle = float(np.mean(paired.first)) - float(np.mean(paired.second))
    half = float(agreeing(middle, half, tested.p[0, 1]))
    facts = (tested.items, tested.clusters, tested.claim, mean)
    return ItemTest(tested.test, middle - half, middle + half, float(tested.p[0, 1]), *facts)


def as_retrained(seeds: Sequence[SeedNoise]) -> list[SeedNoise]:
    """Return the noise of two models, of which one that was fitted once is like a fit of the other.

    >>> as_retrained([SeedNoise(), SeedNoise(2.0, 0.5, 2)])[0]
    SeedNoise(variance=6.0, of_items=1.5, freedom=2)
    """
    one, other = seeds
    return [one if one.freedom else other.of_one, other if other.freedom else one.of_one]


def paired_item_values(paired: Paired, common: bool = False) -> ItemValues:
    """Return what each item of a task adds to the scores of two paired models."""
    if paired.sides is None or not paired.units:
        raise DataError("there are no stored predictions.")
    if common:
        return common_items(paired.sides, paired.task, paired.units, paired.metric, paired.cluster)
    first, second = paired.sides
    sides = {"first": (first, paired.task), "second": (second, paired.task)}
    return read_item_values(sides, paired.metric, paired.cluster)


# -- all models of a task -------------------------------------------------------------------


def _query_spread(apart: np.ndarray, queries: int) -> float:
    """Return the standard deviation of a query's difference, from those of blocks of queries."""
    # the mean of a block of queries varies less than a query
    return float(np.std(apart, ddof=1) * np.sqrt(queries / len(apart)))


def earlier_spread(folder: Path, task: str) -> float | None:
    """Return how much the two best models of earlier runs differ from query to query of a task.

    None if the folder has no two models with predictions of the task, or they are equal.
    """
    try:
        gathered = gather_scores([folder])
    except (KaratError, OSError):
        return None
    if task not in gathered.metrics:
        return None
    models = list(dict.fromkeys(gathered.scores.loc[gathered.scores["task"] == task, "model"]))
    return item_separation(gathered, task, gathered.metrics[task], models).spread or None


def item_separation(
    runs: Any, task: str, metric: str, models: Sequence[str], corrected: bool = True
) -> Separation:
    """Test every pair of models on the items of a task, from stored predictions.

    The items are those that all models were scored on, in the first repeat. A model whose
    predictions are not stored, or that would leave fewer than half of the others' items, is not
    tested.

    Parameters
    ----------
    runs
        Runs, run folders, folders of runs, or what was gathered from them. A table of scores has no
        predictions.
    task, metric, models
        Names as on the leaderboard of these runs.
    corrected
        Whether p is corrected for all pairs; if not, each pair has the test of two models.

    Returns
    -------
    Separation
        p of every pair, in the order of ``models``.
    """
    nothing = np.where(np.eye(len(models), dtype=bool), 1.0, np.nan)
    if isinstance(runs, pd.DataFrame) or (isinstance(runs, Gathered) and not runs.sources):
        return Separation(nothing, why="no stored predictions")
    cluster = runs.cluster if isinstance(runs, Gathered) else ""
    try:
        sides = find_sides(runs, task, models)
        items = read_item_values(sides, metric, cluster)
        fits = Fits.of([sides[name] for name in items.models], metric)
        tested = separate_pairs(items, fits, metric, corrected)
    except KaratError as error:
        return Separation(nothing, why=str(error).rstrip("."))
    places = [list(models).index(name) for name in items.models]
    tested = tested.placed(places, len(models))
    best = np.argsort(-items.values.mean(axis=1), kind="stable")[:2]
    if not items.lists or len(best) < 2:
        return tested
    apart = items.values[best[0]] - items.values[best[1]]
    spread = _query_spread(apart, items.lists)
    needed = needed_pairs(spread, DETECTED, pilot=len(apart) - 1)
    return replace(tested, queries=(items.lists, needed), spread=spread)


def fold_separation(values: np.ndarray, ratio: float, metric: str = "") -> Separation:
    """Test every pair of models over the folds of a task: corrected resampled t-test, Holm.

    ``values`` are models × folds, higher is better; a failed fold counts as the worst of that fold.
    ``ratio`` is n_test / n_train, ``metric`` decides whether differences are relative.

    >>> fold_separation(np.array([[0.9, 0.8, 0.9], [0.1, 0.1, 0.2]]), ratio=0.5).test
    'corrected t'
    >>> fold_separation(np.array([[0.9], [0.1]]), ratio=0.25).why
    'one fold'
    """
    one, other = pairs = np.triu_indices(len(values), 1)
    if values.shape[1] < 2:
        nothing = np.where(np.eye(len(values), dtype=bool), 1.0, np.nan)
        return Separation(nothing, why="one fold")
    missing = np.isnan(values)
    worst = np.where(missing, np.inf, values).min(axis=0)
    filled = np.where(missing, np.where(np.isfinite(worst), worst, 0.0), values)
    with np.errstate(invalid="ignore"):
        tested = corrected_t(subtract(filled[one], filled[other]), ratio)
    raw, p = (_p_table(pairs, len(values), p_values) for p_values in (tested.p, holm(tested.p)))
    if len(one) and np.isnan(tested.p).all():
        return Separation(p, why="no spread over folds")
    unit = _gain_unit(metric, filled.mean(axis=1), pairs)
    # equal models have no error
    error = np.where(tested.p == 1.0, np.nan_to_num(tested.error), tested.error)
    tables = _tables(pairs, tested.mean / unit, error / unit, tested.folds - 1.0)
    return Separation(p, CORRECTED, claim=LEARNERS, raw=raw, **tables)


def deciding(items: Separation, folds: Separation) -> Separation:
    """Return the test that decides: on items if all pairs were tested there, else over folds."""
    if items.test and (not np.isnan(items.p).any() or not folds.test):
        return items
    return folds


def separate_task(
    runs: Any, task_metric: tuple[str, str], models: Sequence[str], values: np.ndarray, ratio: float
) -> Separation:
    """Return which models of a task differ, and the test that decided.

    On the items of stored predictions if there are any of all models, else over folds, else not
    tested. ``about`` are the names of the task and its metric, ``values`` the scores, models ×
    folds, higher is better, and ``ratio`` is n_test / n_train.
    """
    folds = fold_separation(values, ratio, task_metric[1])
    return deciding(item_separation(runs, *task_metric, models), folds)
