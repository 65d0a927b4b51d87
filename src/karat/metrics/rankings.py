"""Metrics of rankings: scores against relevance, ranks of target items, correlations.

A numeric prediction is a score, higher is better. The target is a relevance (relevant above 0) or
one of two classes (the second is relevant). Every group is one list and the value is the mean over
lists; without groups all rows are one list. Lists without relevant items are ignored. Among equal
scores the least relevant item comes first, so that constant scores gain nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from karat.core.predictions import Predictions
from karat.metrics.metric import Undefined, metric, shared

#: lists up to this length are compared by all pairs at once
SHORT = 300
#: the p-value of up to this many values is exact
EXACT_TAU = 33
NOTHING_RELEVANT = "there are no relevant items in the target."


@metric("map")
def mean_average_precision(predictions: Predictions) -> float:
    """Mean over lists of the mean precision at each relevant item."""
    return mean_average_precision_at(predictions, np.inf)


@metric("map@k")
def mean_average_precision_at(predictions: Predictions, k: float) -> float:
    """Mean average precision of the first k items, divided by all relevant items of a list."""
    answers = _answers(predictions)
    precisions = np.where(answers.rank <= k, answers.number / answers.rank, 0.0)
    return _mean_over(answers.group, precisions)


@metric("ndcg@k")
def ndcg(predictions: Predictions, k: int) -> float:
    """Discounted gain of the first k items divided by the best possible, mean over lists.

    The gain is the relevance itself and equal scores share their places evenly, as in
    scikit-learn; but a list without gain is ignored instead of counted as 0. Ranked targets have
    the gain 1 unless their relevance is graded.
    """
    if predictions.rank is not None:
        return _ndcg_of_ranks(*_relevant(predictions), k)
    if not (_gain(predictions) >= 0).all():
        raise Undefined("some relevances in the target are negative or NaN.")
    items = _placed(predictions)
    ideal = items.gain[np.lexsort((-items.gain, items.group))]
    counted = items.number <= k
    best = np.bincount(items.group, np.where(counted, ideal * _discount(items.number), 0.0))
    gained = _shared_gain(items, k) / np.where(best > 0, best, 1)
    return min(float(np.mean(gained)), 1.0)


def _shared_gain(items: _Placed, k: int) -> np.ndarray:
    """Return the discounted gain of each list; items of equal scores share their places evenly."""
    starts = np.flatnonzero(_changes(items.group) | _changes(items.level_start))
    sizes, first = items.level_size[starts], items.level_start[starts]
    level = np.repeat(np.arange(len(starts)), np.diff([*starts, len(items.group)]))
    mean = np.bincount(level, items.gain) / sizes
    # a level without relevant items gains nothing; the others are spread over their places
    spread = np.clip(k - first + 1, 0, sizes)
    places = np.repeat(first - np.cumsum(spread) + spread, spread) + np.arange(spread.sum())
    gains = np.repeat(mean, spread) * _discount(places)
    groups = np.repeat(items.group[starts], spread)
    return np.bincount(groups, gains, minlength=items.group[-1] + 1)


def _discount(places: np.ndarray) -> np.ndarray:
    return np.asarray(1 / np.log2(places + 1))


def _ndcg_of_ranks(group: np.ndarray, ranks: np.ndarray, gain: np.ndarray, k: int) -> float:
    gained = np.bincount(group, np.where(ranks <= k, gain / np.log2(ranks + 1), 0.0))
    order = np.lexsort((-gain, group))
    number = _numbers(group[order])
    ideal = np.where(number <= k, gain[order] / np.log2(number + 1), 0.0)
    return float(np.mean(gained / np.bincount(group[order], ideal)))


@metric("recall@k")
def recall_at(predictions: Predictions, k: int) -> float:
    """Share of a list's relevant items among its first k, mean over lists."""
    answers = _answers(predictions)
    return _mean_over(answers.group, (answers.rank <= k).astype(float))


@metric("precision@k")
def precision_at(predictions: Predictions, k: int) -> float:
    """Share of relevant items among k, mean over lists; a list of fewer than k items loses."""
    answers = _answers(predictions)
    return float(np.mean(np.bincount(answers.group, answers.rank <= k) / k))


@metric("hits@k", needs=("rank",))
def hits(predictions: Predictions, k: int) -> float:
    """Share of questions whose target ranks among the first k; an infinite rank is a miss."""
    return float(np.mean(_ranks(predictions) <= k))


@metric("hit_rate@k")
def hit_rate(predictions: Predictions, k: int) -> float:
    """Share of lists with a relevant item among the first k."""
    answers = _answers(predictions)
    return float(np.mean(answers.rank[answers.number == 1] <= k))


@metric("mrr")
def mrr(predictions: Predictions) -> float:
    """Mean over lists of 1 / rank of the first relevant item.

    Without groups every ranked target is a separate list.
    """
    return mrr_at(predictions, np.inf)


@metric("mrr@k")
def mrr_at(predictions: Predictions, k: float) -> float:
    """Mean over lists of 1 / rank of the first relevant item, 0 if it is not among the first k."""
    answers = _answers(predictions)
    first = answers.rank[answers.number == 1]
    return float(np.mean(np.where(first <= k, 1 / first, 0.0)))


@shared
def _relevant(predictions: Predictions) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return list, rank and gain of each relevant target; lists without any are left out."""
    ranks = _ranks(predictions)
    gain = np.ones(len(ranks)) if predictions.gain is None else predictions.gain
    group = np.arange(len(ranks)) if predictions.group is None else _group_codes(predictions)
    if (relevant := gain > 0).all():
        return group, ranks, gain
    if not relevant.any():
        raise Undefined(NOTHING_RELEVANT)
    return np.unique(group[relevant], return_inverse=True)[1], ranks[relevant], gain[relevant]


class _Answers(NamedTuple):
    """List, rank, and number within the list of each relevant item, list by list, best first."""

    group: np.ndarray
    rank: np.ndarray
    number: np.ndarray


@shared
def _answers(predictions: Predictions) -> _Answers:
    if predictions.rank is None:
        items = _placed(predictions)
        return _Answers(items.group, items.place, items.number)
    group, ranks, _ = _relevant(predictions)
    later, alike = group[1:] > group[:-1], group[1:] == group[:-1]
    if not (later | alike & (ranks[1:] >= ranks[:-1])).all():
        order = np.lexsort((ranks, group))
        group, ranks = group[order], ranks[order]
    return _Answers(group, ranks, _numbers(group))


def _numbers(group: np.ndarray) -> np.ndarray:
    """Return 1, 2, … within each list; equal groups must be adjacent."""
    starts = np.flatnonzero(_changes(group))
    return np.asarray(np.arange(len(group)) - np.repeat(starts, np.diff([*starts, len(group)])) + 1)


def _mean_over(group: np.ndarray, values: np.ndarray) -> float:
    return float(np.mean(np.bincount(group, values) / np.bincount(group)))


def _ranks(predictions: Predictions) -> np.ndarray:
    ranks = np.asarray(predictions.rank, dtype=float)
    if not (ranks >= 1).all():
        raise Undefined("some ranks are below 1 or NaN; the best rank is 1.")
    return ranks


@metric("kendall", range=(-1.0, 1.0), needs=("numbers",), by_group=True)
def kendall(predictions: Predictions) -> float:
    """Kendall's tau-b of predictions and target, mean over groups.

    A group with a constant target is ignored, one with constant predictions counts as 0; if all
    are constant, the value is undefined. The same holds for Spearman's and Pearson's correlation.
    """
    return _correlation(predictions, kendall_tau)


@metric("spearman", range=(-1.0, 1.0), needs=("numbers",), by_group=True)
def spearman(predictions: Predictions) -> float:
    """Spearman's rank correlation of predictions and target, mean over groups."""
    return _correlation(predictions, lambda a, b: _pearson(_mean_ranks(a), _mean_ranks(b)))


@metric("pearson", range=(-1.0, 1.0), needs=("numbers",), by_group=True)
def pearson(predictions: Predictions) -> float:
    """Pearson's linear correlation of predictions and target, mean over groups."""
    return _correlation(predictions, _pearson)


@metric("harmonic", needs=("numbers",), by_group=True)
def harmonic(predictions: Predictions) -> float:
    """Harmonic mean of Pearson's and Spearman's correlation; undefined unless both are > 0."""
    both = pearson(predictions), spearman(predictions)
    if min(both) <= 0:
        raise Undefined("Pearson's or Spearman's correlation is not > 0.")
    return 2 * both[0] * both[1] / sum(both)


def _correlation(
    predictions: Predictions, measure: Callable[[np.ndarray, np.ndarray], float]
) -> float:
    values: list[float | None] = []
    codes = _group_codes(predictions)
    for rows in np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1]):
        answers, truth = predictions.predictions[rows], predictions.target[rows]
        if truth.min() < truth.max():
            values.append(measure(answers, truth) if answers.min() < answers.max() else None)
    if not values:
        raise Undefined("the target is constant.")
    if not any(value is not None for value in values):
        raise Undefined("the predictions are constant.")
    return float(np.mean([value or 0.0 for value in values]))


def kendall_tau(a: np.ndarray, b: np.ndarray) -> float:
    """Return Kendall's tau-b of two lists; NaN if one is constant."""
    if len(a) > SHORT:
        from scipy.stats import kendalltau

        return float(kendalltau(a, b).statistic)
    # for many short lists this is faster than SciPy, which also tests for significance
    one, other = _signs(a), _signs(b)
    ties = np.count_nonzero(one) * np.count_nonzero(other)
    return float(np.vdot(one, other) / np.sqrt(ties)) if ties else np.nan


def kendall_p_value(a: np.ndarray, b: np.ndarray) -> float:
    """Return the two-sided p-value of Kendall's tau-b, as ``scipy.stats.kendalltau`` does.

    It is exact for up to 33 values without ties, else a normal approximation; NaN for a constant.

    >>> kendall_p_value(np.arange(4.0), np.arange(4.0))  # 2 of the 24 orders are as extreme
    0.08333333333333333
    """
    size = len(a)
    difference = float(np.vdot(_signs(a), _signs(b))) / 2
    tied = [np.unique(values, return_counts=True)[1].astype(float) for values in (a, b)]
    if size < 2 or any(counts.max() == size for counts in tied):
        return np.nan
    pairs = size * (size - 1) // 2
    fewest = int(min(pairs - difference, pairs + difference)) // 2
    if all(len(counts) == size for counts in tied) and (size <= EXACT_TAU or fewest <= 1):
        if 2 * fewest == pairs:
            return 1.0
        ways = np.ones(1)
        for length in range(2, size + 1):
            ways = np.convolve(ways, np.ones(length) / length)[: fewest + 1]
        return min(2 * float(ways.sum()), 1.0)
    (x, x0, x1), (y, y0, y1) = (
        (np.sum(c * (c - 1)) / 2, np.sum(c * (c - 1) * (c - 2)), np.sum(c * (c - 1) * (2 * c + 5)))
        for c in tied
    )
    both = 2.0 * pairs
    variance = (both * (2 * size + 5) - x1 - y1) / 18 + 2 * x * y / both
    if size > 2:
        variance += x0 * y0 / (9 * both * (size - 2))
    return math.erfc(abs(difference) / math.sqrt(2 * variance))


def _signs(values: np.ndarray) -> np.ndarray:
    """Return the sign of the difference of all pairs; infinite values may be equal."""
    above = (values[:, None] > values).astype(np.float32)
    return np.asarray(above - above.T)


def _pearson(a: np.ndarray, b: np.ndarray) -> float:
    # scaled first, so that no square overflows or underflows
    a, b = a - a.mean(), b - b.mean()
    a, b = a / np.abs(a).max(), b / np.abs(b).max()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1.0, 1.0))


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    _, level, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[level]


class _Placed(NamedTuple):
    """The relevant items of scored lists, list by list, best first.

    ``level_start`` is the first place of the items of the same list with the same score, and
    ``level_size`` their number, relevant or not.
    """

    group: np.ndarray
    place: np.ndarray
    number: np.ndarray
    gain: np.ndarray
    level_start: np.ndarray
    level_size: np.ndarray


@shared
def _placed(predictions: Predictions) -> _Placed:
    if predictions.answers != "numbers" or np.isnan(predictions.predictions).any():
        raise Undefined("it needs a numeric score for each row, or the rank of the target.")
    order, starts = _best_first(_group_codes(predictions), predictions.predictions)
    gain, scores = _gain(predictions)[order], predictions.predictions[order]
    is_first = _changes(scores)
    is_first[starts] = True
    level_starts = np.append(np.flatnonzero(is_first), len(order))
    # NaN is not relevant, but comes last among equal scores
    (rows,) = np.nonzero(~(gain <= 0))
    level = np.searchsorted(level_starts, rows, side="right") - 1
    if (level[1:] == level[:-1]).any():
        rows = rows[np.lexsort((gain[rows], level))]
    from_end = _numbers(level[::-1])[::-1]
    is_relevant = gain[rows] > 0
    if not is_relevant.any():
        raise Undefined(NOTHING_RELEVANT)
    rows, level, from_end = rows[is_relevant], level[is_relevant], from_end[is_relevant]
    lists = np.searchsorted(starts, rows, side="right") - 1
    group = np.cumsum(_changes(lists)) - 1
    before, begin, end = starts[lists], level_starts[level], level_starts[level + 1]
    return _Placed(
        group=group,
        place=end - from_end - before + 1,
        number=_numbers(group),
        gain=gain[rows],
        level_start=begin - before + 1,
        level_size=end - begin,
    )


def _best_first(codes: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows list by list, best score first, and where each list starts among them.

    Lists of equal length are sorted together, as the rows of a matrix.
    """
    lengths = np.bincount(codes)
    starts = np.cumsum(lengths) - lengths
    order = np.arange(len(codes))
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
    for length in np.unique(lengths):
        cells = starts[lengths == length, None] + np.arange(length)
        rows = order[cells]
        order[cells] = np.take_along_axis(rows, np.argsort(-scores[rows], axis=1), axis=1)
    return order, starts


@shared
def _gain(predictions: Predictions) -> np.ndarray:
    if predictions.truths == "numbers":
        return predictions.target
    names = predictions.labels
    if len(names) != 2:
        raise Undefined("relevance must be a number, or the second of exactly two classes.")
    return (predictions.target == names[1]).astype(float)


def _changes(values: np.ndarray) -> np.ndarray:
    """Return where a value differs from the one before; the first does."""
    return np.concatenate([[True], values[1:] != values[:-1]])


@shared
def _group_codes(predictions: Predictions) -> np.ndarray:
    if predictions.group is None:
        return np.zeros(len(predictions), dtype=np.intp)
    from pandas import factorize

    # rows of a list are mostly adjacent, so that few names have to be looked up
    starts = np.flatnonzero(_changes(predictions.group))
    codes = factorize(predictions.group[starts])[0]
    return np.repeat(codes, np.diff([*starts, len(predictions)]))
