"""Tests of models on the items of one task, from stored predictions.

An item is a question, or a group of them where the metric is a mean over groups. The tests hold for
the models as they were fitted, on new items; tests over folds hold for the learning procedure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import scipy
from threadpoolctl import threadpool_limits

from karat.core.predictions import Predictions
from karat.corruptions.view import CLEAN
from karat.errors import DataError, DefinitionError, KaratError
from karat.metrics.metric import MTEB, get_metric, score
from karat.results.load import Gathered, as_runs, gather_scores
from karat.results.selection import CannotCompare, Side, common_rows, pooled_sides
from karat.stats.paired_tests import CONFIDENCE, corrected_t, holm, needed_pairs, subtract

if TYPE_CHECKING:
    from karat.analysis.comparison import Paired

#: McNemar's p is exact if the two disagree on fewer questions than this
EXACT = 25
#: random signs of the bootstrap, and their seed
RESAMPLES = 1999
SEED = 0
#: units that a metric is measured on where it is not a mean over items
UNITS = 100
#: with fewer items nothing is tested
FEWEST_ITEMS = 6
#: difference of scores for which the needed number of queries is computed
DETECTED = 0.05
#: resamples, and pairs, per block
_BLOCK = 128
MCNEMAR, BOOTSTRAP, MAX_T = "McNemar", "paired bootstrap", "max-T over items"
CORRECTED = "corrected t"


@dataclass(frozen=True)
class McNemar:
    """Numbers of questions that only the first, or only the second, answers correctly, and p."""

    first_only: int
    second_only: int
    statistic: float
    p: float
    exact: bool


def mcnemar(first: Any, second: Any, exact: bool | None = None) -> McNemar:
    """Return McNemar's test of two models' correct answers to the same questions.

    ``exact`` chooses the binomial test or the chi-square with Edwards' correction; by default it
    is exact if they disagree on fewer than 25 questions.

    >>> mcnemar([1, 1, 1, 1, 0], [0, 0, 0, 0, 0]).p  # 2 × 0.5⁴
    0.125
    """
    one, other = np.asarray(first, dtype=bool), np.asarray(second, dtype=bool)
    if one.shape != other.shape:
        raise DefinitionError(f"cannot pair {one.size} answers with {other.size}.")
    left, right = int((one & ~other).sum()), int((other & ~one).sum())
    count = left + right
    if not count or (count < EXACT if exact is None else exact):
        p = min(2 * float(scipy.special.bdtr(min(left, right), count, 0.5)), 1.0) if count else 1.0
        return McNemar(left, right, float(min(left, right)), p, True)
    statistic = max(abs(left - right) - 1, 0) ** 2 / count
    return McNemar(left, right, statistic, float(scipy.special.chdtrc(1, statistic)), False)


def max_t(values: Any, centered: bool = True, *, resamples: int = RESAMPLES) -> np.ndarray:
    """Return p of every pair of models × items, adjusted for all pairs by step-down max-T.

    The bootstrap multiplies each item's differences by a random sign, the same for all pairs, and
    compares studentized means (Westfall and Young 1993, algorithm 4.1). Centered differences need
    no symmetry; without centering it is a randomization test, of right and wrong answers McNemar's
    test. NaN with fewer than six items.

    >>> p = max_t([[0.9, 0.8, 0.7, 0.9, 0.8, 0.9, 0.7, 0.8]] * 2 + [[0.1, 0.3, 0.2, 0.1] * 2])
    >>> float(p[0, 1]), bool(p[0, 2] < 0.05)
    (1.0, True)
    """
    given = np.asarray(values, dtype=float)
    models, items = given.shape
    p = np.full((models, models), np.nan)
    np.fill_diagonal(p, 1.0)
    if items < FEWEST_ITEMS or models < 2:
        return p
    one, other = np.triu_indices(models, 1)
    base = given - given.mean(axis=1, keepdims=True) if centered else given
    observed = np.abs(given.sum(axis=1)[one] - given.sum(axis=1)[other])
    observed = _per_spread(observed, _spread(given, one, other))
    order = np.argsort(-observed, kind="stable")
    one, other, observed = one[order], other[order], observed[order]
    beyond = np.zeros(len(one))
    for sums in _flipped(base, resamples):
        drawn = _per_spread(np.abs(sums[:, one] - sums[:, other]), _spread(base, one, other))
        # of each pair, the largest among those that are not more different
        largest = np.maximum.accumulate(drawn[:, ::-1], axis=1)[:, ::-1]
        beyond += (largest >= observed - 1e-9).sum(axis=0)
    p[one, other] = p[other, one] = np.maximum.accumulate((1 + beyond) / (1 + resamples))
    return p


def _spread(values: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return the root of the items times the summed squares of each pair's differences."""
    squares = np.empty(len(one))
    for start in range(0, len(one), _BLOCK):
        part = slice(start, start + _BLOCK)
        squares[part] = (subtract(values[one[part]], values[other[part]]) ** 2).sum(axis=1)
    return np.sqrt(values.shape[1] * squares)


def _per_spread(sums: np.ndarray, spread: np.ndarray) -> np.ndarray:
    # |sum| / sqrt(n × sum of squares) increases with |t|, and is finite for equal differences
    return np.asarray(sums / np.where(spread > 0, spread, 1.0) * (spread > 0))


def _flipped(values: np.ndarray, resamples: int) -> Iterator[np.ndarray]:
    """Yield blocks of resamples × models: sums over items with random signs."""
    rng = np.random.default_rng(SEED)
    for start in range(0, resamples, _BLOCK):
        shape = (min(_BLOCK, resamples - start), values.shape[1])
        signs = rng.integers(0, 2, size=shape, dtype=np.int8) * 2.0 - 1.0
        with threadpool_limits(1):
            yield signs @ values.T


def pair_p(values: np.ndarray, accuracy: bool) -> np.ndarray:
    """Return p of every pair of models × items, without a correction for several pairs.

    McNemar's test of right and wrong answers, else a paired bootstrap.
    """
    models, items = values.shape
    p = np.full((models, models), np.nan)
    np.fill_diagonal(p, 1.0)
    one, other = np.triu_indices(models, 1)
    if items < FEWEST_ITEMS:
        return p
    if accuracy:
        pairs = zip(values[one] > 0, values[other] > 0, strict=True)
        p[one, other] = [mcnemar(*both).p for both in pairs]
    else:
        base = values - values.mean(axis=1, keepdims=True)
        sums = values.sum(axis=1)
        observed = _per_spread(np.abs(sums[one] - sums[other]), _spread(values, one, other))
        spread, beyond = _spread(base, one, other), np.zeros(len(one))
        for drawn in _flipped(base, RESAMPLES):
            found = _per_spread(np.abs(drawn[:, one] - drawn[:, other]), spread)
            beyond += (found >= observed - 1e-9).sum(axis=0)
        p[one, other] = (1 + beyond) / (1 + RESAMPLES)
    p[other, one] = p[one, other]
    return p


# -- what each item contributes to a score --------------------------------------------------


def _right(answers: Predictions) -> np.ndarray:
    if answers.answers != "classes" or answers.truths != "classes":
        raise DataError("the answers are no class labels.")
    return (answers.predictions == answers.target).astype(float)


def _numbers(answers: Predictions) -> tuple[np.ndarray, np.ndarray]:
    if answers.answers != "numbers" or answers.truths != "numbers":
        raise DataError("the answers are no numbers.")
    return answers.predictions, answers.target


def _squared(answers: Predictions) -> np.ndarray:
    given, target = _numbers(answers)
    return -((given - target) ** 2)


def _absolute(answers: Predictions) -> np.ndarray:
    given, target = _numbers(answers)
    return -np.abs(given - target)


def _log_chance(answers: Predictions) -> np.ndarray:
    chances = answers.probabilities
    if chances is None or (answers.true_codes >= chances.shape[1]).any():
        raise DataError("there are no probabilities of all classes.")
    given = chances[np.arange(len(answers)), answers.true_codes]
    epsilon = np.finfo(answers.precision).eps.astype(float)
    return np.asarray(np.log(np.clip(given.astype(float), epsilon, 1 - epsilon)))


def _brier(answers: Predictions) -> np.ndarray:
    chances = answers.probabilities
    if chances is None:
        raise DataError("there are no probabilities.")
    truth = answers.true_codes[:, None] == np.arange(chances.shape[1])
    errors = (chances.astype(float) - truth) ** 2
    return -errors[:, 1] if chances.shape[1] == 2 else np.asarray(-errors.sum(axis=1))


#: gain of each item, for metrics that are a mean over items or increase with one
GAINS: dict[str, Callable[[Predictions], np.ndarray]] = {
    **{"acc": _right, "f1_micro": _right, "mae": _absolute, "logloss": _log_chance},
    **{"mse": _squared, "rmse": _squared, "brier": _brier},
}


def is_accuracy(metric: str) -> bool:
    """Return whether a metric is the share of right answers.

    >>> is_accuracy("accuracy"), is_accuracy("balacc")
    (True, False)
    """
    return MTEB.get(metric, metric) in ("acc", "f1_micro")


def contributions(metric: str, folds: Sequence[Predictions]) -> np.ndarray:
    """Return what each item adds to a model's score, higher is better.

    Metrics that are means over items have a gain per item, and means over groups a score per block
    of groups. Other metrics have the pseudo-values of a jackknife over blocks of items, whose mean
    is the score. Raises a ``KaratError`` if a score cannot be computed.
    """
    gain = GAINS.get(MTEB.get(metric, metric))
    if gain is not None:
        return np.concatenate([gain(fold) for fold in folds])
    about = get_metric(metric)
    units = [_pseudo_values(metric, fold, len(folds), about.by_group) for fold in folds]
    return np.concatenate(units) * (1 if about.higher_is_better else -1)


def _pseudo_values(metric: str, fold: Predictions, folds: int, by_group: bool) -> np.ndarray:
    rows = np.arange(len(fold))
    if fold.group is not None:
        rows = np.unique(fold.group.astype(str), return_inverse=True)[1].ravel()
    items = int(rows.max()) + 1
    count = min(items, max(2, -(-UNITS // folds)))
    block_of = np.random.default_rng(SEED).permutation(items) % count
    block = block_of[rows]
    if by_group and fold.group is not None:
        return np.array([_value(metric, fold, block == b) for b in range(count)])
    whole = _value(metric, fold, block >= 0)
    without = np.array([_value(metric, fold, block != b) for b in range(count)])
    return count * whole - (count - 1) * without


def _value(metric: str, fold: Predictions, rows: np.ndarray) -> float:
    value, reason = score(metric, fold.take(np.flatnonzero(rows)))
    if value is None:
        raise DataError(reason)
    return value


# -- two models -----------------------------------------------------------------------------


@dataclass(frozen=True)
class ItemTest:
    """A test on the items of a task: its name, the interval of the difference, p, item count."""

    test: str
    low: float
    high: float
    p: float
    items: int


def compare_predictions(paired: Paired, common: bool = False) -> ItemTest:
    """Return the test of a task's stored predictions of two models.

    All items that both were scored on are used; with ``common`` only those that both can answer.
    Only the first repeat of a cross-validation is used, so that no item counts twice. Raises a
    ``KaratError`` if predictions cannot be read or are not about one question each.
    """
    both, values = paired_values(paired, common)
    accuracy = is_accuracy(paired.metric)
    p, test = float(pair_p(values, accuracy)[0, 1]), MCNEMAR if accuracy else BOOTSTRAP
    middle = float(np.mean(paired.first)) - float(np.mean(paired.second))
    half = float(
        scipy.special.stdtrit(values.shape[1] - 1, (1 + CONFIDENCE) / 2) * _error(paired, values)
    )
    items = sum(len(fold) for fold in both[0])
    return ItemTest(test, middle - half, middle + half, p, items)


def item_error(paired: Paired) -> tuple[float, int, int]:
    """Return the standard error of a difference over items, its degrees of freedom, and the items.

    A group of rows is one item. Raises as ``compare_predictions``.
    """
    both, values = paired_values(paired, common=False)
    groups = [fold.group for fold in both[0] if fold.group is not None]
    items = sum(len(set(group.tolist())) for group in groups) or sum(map(len, both[0]))
    return _error(paired, values), values.shape[1] - 1, items


def paired_values(
    paired: Paired, common: bool = False
) -> tuple[list[list[Predictions]], np.ndarray]:
    """Return the predictions of both by fold, and what each item adds to their scores."""
    if common:
        both = _common_answers(paired)
    elif paired.sides is None or not paired.units:
        raise DataError("there are no stored predictions.")
    else:
        sides = [(side, paired.task) for side in paired.sides]
        both, left_out = _aligned(sides, get_metric(paired.metric).by_group)
        if left_out:
            raise DataError(next(iter(left_out.values())))
    values = np.array([contributions(paired.metric, folds) for folds in both])
    if values.shape[1] < FEWEST_ITEMS:
        raise DataError(f"there are fewer than {FEWEST_ITEMS} items.")
    return both, values


def _error(paired: Paired, values: np.ndarray) -> float:
    """Return the standard error of the mean difference of two models over items."""
    error = (values[0] - values[1]).std(ddof=1) / np.sqrt(values.shape[1])
    if paired.metric == "rmse":  # a difference of squares is the difference times the sum
        both = float(np.mean(paired.first)) + float(np.mean(paired.second))
        error /= max(both, np.finfo(float).tiny)
    return float(error)


def _common_answers(paired: Paired) -> list[list[Predictions]]:
    """Return the predictions of both, fold by fold, on the questions that both can answer."""
    if paired.sides is None or not paired.units:
        raise DataError("there are no stored predictions.")
    sides = paired.sides
    repeats = fold_repeats(sides[0], paired.task)
    first = repeats[paired.units[0][0]]
    found: list[list[Predictions]] = [[], []]
    for unit in paired.units:
        if repeats[unit[0]] != first:
            continue
        folds = [side.answered[paired.task][CLEAN][unit] for side in sides]
        answers = [side.run.predictions(paired.task, unit[0]) for side in sides]
        rows = common_rows(answers, folds)
        for own, each, shared in zip(found, answers, rows, strict=True):
            own += [each.take(shared)] if len(shared) else []
    if not found[0]:
        raise DataError("there is no question that both can answer.")
    return found


# -- all models of a task -------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Separation:
    """Which models of one task differ.

    Attributes
    ----------
    p
        p of each pair, adjusted for all pairs; 1 on the diagonal, NaN where it is not tested.
    test
        Name of the test; empty if nothing was tested.
    why
        Why nothing was tested, such as "one fold".
    items
        Number of items tested on; 0 for a test over folds.
    queries
        Number of queries, and about how many would be needed to detect a difference of
        ``DETECTED`` between the two best models in 80 % of cases; if the items are ranked lists.
    spread
        Standard deviation of the differences of the two best models over queries.
    """

    p: np.ndarray
    test: str = ""
    why: str = ""
    items: int = 0
    queries: tuple[int, int] | None = None
    spread: float = 0.0


def _query_spread(apart: np.ndarray, queries: int) -> float:
    """Return the standard deviation of a query's difference, from those of blocks of queries."""
    # the mean of a block of queries varies less than a query
    return float(np.std(apart, ddof=1) * np.sqrt(queries / len(apart)))


def earlier_spread(folder: Path, task: str) -> float | None:
    """Return how much the two best models of earlier runs differ from query to query of a task.

    None if the folder has no two models with predictions of the task, or they are equal.
    """
    try:
        given = gather_scores([folder])
    except (KaratError, OSError):
        return None
    if task not in given.metrics:
        return None
    models = list(dict.fromkeys(given.scores.loc[given.scores["task"] == task, "model"]))
    return item_separation(given, task, given.metrics[task], models).spread or None


def item_separation(
    runs: Any, task: str, metric: str, models: Sequence[str], corrected: bool = True
) -> Separation:
    """Test every pair of models on the items of a task, from stored predictions.

    Step-down max-T over the items that all models were scored on, in the first repeat; two models
    have McNemar's test, or a paired bootstrap in other metrics than accuracy. A model whose
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
    try:
        names, values, items, lists = _read_values(_sides(runs, task, models), metric)
    except KaratError as error:
        return Separation(nothing, why=str(error).rstrip("."))
    accuracy, p = is_accuracy(metric), nothing.copy()
    if corrected and len(names) > 2:
        found, test = max_t(values, centered=not accuracy), MAX_T
    else:
        found, test = pair_p(values, accuracy), MCNEMAR if accuracy else BOOTSTRAP
    places = [list(models).index(name) for name in names]
    p[np.ix_(places, places)] = found
    best = np.argsort(-values.mean(axis=1), kind="stable")[:2]
    separated = Separation(p, test, items=items)
    if not lists or len(best) < 2:
        return separated
    apart = values[best[0]] - values[best[1]]
    spread = _query_spread(apart, lists)
    needed = needed_pairs(spread, DETECTED, pilot=len(apart) - 1)
    return replace(separated, queries=(lists, needed), spread=spread)


def _read_values(
    sides: dict[str, tuple[Side, str]], metric: str
) -> tuple[list[str], np.ndarray, int, int]:
    """Return the models with predictions, models × items of what each item adds, and the items.

    The last number is that of ranked lists, 0 if the items are none. Raises a ``KaratError`` if
    fewer than two models or too few items can be compared.
    """
    folds, left_out = _aligned(list(sides.values()), get_metric(metric).by_group)
    kept = [name for place, name in enumerate(sides) if place not in left_out]
    reasons, names, values = list(left_out.values()), [], []
    for name, own in zip(kept, folds, strict=True):
        try:
            values.append(contributions(metric, own))
            names.append(name)
        except KaratError as error:
            reasons.append(str(error))
    if len(values) < 2 or len(values[0]) < FEWEST_ITEMS:
        raise DataError(next(iter(reasons), f"fewer than {FEWEST_ITEMS} items."))
    ranked = [f.group for f in folds[0] if f.rank is not None and f.group is not None]
    lists = sum(len(set(group.tolist())) for group in ranked)
    return names, np.array(values), sum(len(fold) for fold in folds[0]), lists


def fold_separation(values: np.ndarray, ratio: float) -> Separation:
    """Test every pair of models over the folds of a task: corrected resampled t-test, Holm.

    ``values`` are models × folds, higher is better; a failed fold counts as the worst of that fold.
    ``ratio`` is n_test / n_train.

    >>> fold_separation(np.array([[0.9, 0.8, 0.9], [0.1, 0.1, 0.2]]), ratio=0.5).test
    'corrected t'
    >>> fold_separation(np.array([[0.9], [0.1]]), ratio=0.25).why
    'one fold'
    """
    p = np.eye(len(values))
    one, other = np.triu_indices(len(values), 1)
    if values.shape[1] < 2:
        p[one, other] = p[other, one] = np.nan
        return Separation(p, why="one fold")
    lost = np.isnan(values)
    worst = np.where(lost, np.inf, values).min(axis=0)
    filled = np.where(lost, np.where(np.isfinite(worst), worst, 0.0), values)
    with np.errstate(invalid="ignore"):
        p[one, other] = holm(corrected_t(subtract(filled[one], filled[other]), ratio).p)
    p[other, one] = p[one, other]
    if len(one) and np.isnan(p[one, other]).all():
        return Separation(p, why="no spread over folds")
    return Separation(p, CORRECTED)


def deciding(items: Separation, folds: Separation) -> Separation:
    """Return the test that decides: on items if all pairs were tested there, else over folds."""
    if items.test and (not np.isnan(items.p).any() or not folds.test):
        return items
    return folds


def separate_task(
    runs: Any, about: tuple[str, str], models: Sequence[str], values: np.ndarray, ratio: float
) -> Separation:
    """Return which models of a task differ, and the test that decided.

    On the items of stored predictions if there are any of all models, else over folds, else not
    tested. ``about`` are the names of the task and its metric, ``values`` the scores, models ×
    folds, higher is better, and ``ratio`` is n_test / n_train.
    """
    folds = fold_separation(values, ratio)
    return deciding(item_separation(runs, *about, models), folds)


def _sides(runs: Any, task: str, models: Sequence[str]) -> dict[str, tuple[Side, str]]:
    """Return the runs of each model that has answers to the task, as one side, and the task."""
    if isinstance(runs, Gathered):
        pooled = pooled_sides([run for run, _, _ in runs.sources], runs.pool)
    else:
        pooled = pooled_sides(as_runs(runs), "variant")
    sides = {side.model: side for side in pooled}
    own = {name: sides[name] for name in models if name in sides}
    return {n: (s, task) for n, s in own.items() if s.answered.get(task, {}).get(CLEAN)}


def fold_repeats(side: Side, task: str) -> dict[int, int]:
    """Return the repeat of each fold of a task."""
    return {r["fold"]: r["repeat"] for r in side.run.records() if r["task"] == task}


def _aligned(
    sides: Sequence[tuple[Side, str]], by_group: bool
) -> tuple[list[list[Predictions]], dict[int, str]]:
    """Return the predictions of each model by fold on the items of all, and who is left out.

    Models are by place, with the reason. Items are those of the first repeat.
    """
    left_out: dict[int, str] = {}
    read: dict[int, dict[int, Predictions]] = {}
    for place, (side, task) in enumerate(sides):
        try:
            read[place] = first_repeat(side, task)
        except (KaratError, ValueError, KeyError, TypeError):
            left_out[place] = f"predictions of {side.model} are not stored"
    keys = {p: {f: _keys(each, by_group) for f, each in folds.items()} for p, folds in read.items()}
    shared: dict[int, np.ndarray] = {}
    for place in sorted(keys, key=lambda p: -sum(map(len, keys[p].values()))):
        own = keys[place]
        both = {f: np.intersect1d(shared[f], own[f]) for f in shared if f in own} if shared else own
        if 2 * sum(map(len, both.values())) < sum(map(len, shared.values())):
            left_out[place] = f"{sides[place][0].model} has predictions of other items"
            continue
        shared = {f: np.unique(items) for f, items in both.items() if len(items)}
    kept = [place for place in read if place not in left_out]
    found = {p: [_take(read[p][f], keys[p][f], shared[f], by_group) for f in shared] for p in kept}
    for place in kept[1:]:
        targets = zip(found[place], found[kept[0]], strict=True)
        if not by_group and not all(np.array_equal(a.target, b.target) for a, b in targets):
            left_out[place] = f"{sides[place][0].model} has predictions of other items"
    return [found[place] for place in kept if place not in left_out], left_out


def first_repeat(side: Side, task: str) -> dict[int, Predictions]:
    """Return the predictions of a task by fold, of the first repeat, so that no item is twice."""
    repeats = fold_repeats(side, task)
    folds = sorted(fold for fold, _ in side.answered[task][CLEAN])
    first = min(repeats[fold] for fold in folds)
    kept = [fold for fold in folds if repeats[fold] == first]
    found = {fold: side.run.predictions(task, fold) for fold in kept}
    if any(each.weight is not None for each in found.values()):
        raise CannotCompare(0, "a row of its predictions counts for several items")
    return found


def _keys(answers: Predictions, by_group: bool) -> np.ndarray:
    """Return the item of each row: its group, or its question."""
    if by_group and answers.group is not None:
        return answers.group.astype(str)
    if answers.question is not None:
        return np.asarray(answers.question)
    return np.arange(len(answers))


def _take(answers: Predictions, keys: np.ndarray, shared: np.ndarray, group: bool) -> Predictions:
    if group and answers.group is not None:
        return answers.take(np.flatnonzero(np.isin(keys, shared)))
    order = np.argsort(keys, kind="stable")
    return answers.take(order[np.searchsorted(keys[order], shared)])
