"""What each item of a task adds to the score of a model, from its predictions.

An item is a question, or a group of questions where the metric is a mean over groups. Where items
belong together (a cluster: a patient, a document), the cluster is the unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from karat.core.predictions import Predictions
from karat.errors import DataError
from karat.metrics.metric import MTEB, get_metric, score

#: units that a metric is measured on where it is not a mean over items
UNITS = 100
#: seed of the random blocks of items
SEED = 0


def _right(answers: Predictions) -> np.ndarray:
    if answers.answers != "classes" or answers.truths != "classes":
        raise DataError("the answers are no class labels.")
    return (answers.predictions == answers.target).astype(float)


def _numbers(answers: Predictions) -> tuple[np.ndarray, np.ndarray]:
    if answers.answers != "numbers" or answers.truths != "numbers":
        raise DataError("the answers are no numbers.")
    return answers.predictions, answers.target


def _squared(answers: Predictions) -> np.ndarray:
    predicted, target = _numbers(answers)
    return -((predicted - target) ** 2)


def _absolute(answers: Predictions) -> np.ndarray:
    predicted, target = _numbers(answers)
    return -np.abs(predicted - target)


def _log_chance(answers: Predictions) -> np.ndarray:
    chances = answers.probabilities
    if chances is None or (answers.true_codes >= chances.shape[1]).any():
        raise DataError("there are no probabilities of all classes.")
    of_target = chances[np.arange(len(answers)), answers.true_codes]
    epsilon = np.finfo(answers.precision).eps.astype(float)
    return np.asarray(np.log(np.clip(of_target.astype(float), epsilon, 1 - epsilon)))


def _brier(answers: Predictions) -> np.ndarray:
    chances = answers.probabilities
    if chances is None:
        raise DataError("there are no probabilities.")
    truth = answers.true_codes[:, None] == np.arange(chances.shape[1])
    errors = (chances.astype(float) - truth) ** 2
    return -errors[:, 1] if chances.shape[1] == 2 else np.asarray(-errors.sum(axis=1))


#: gain of each item, for metrics that are a mean over items or increase with one
GAINS: dict[str, Callable[[Predictions], np.ndarray]] = {
    "acc": _right,
    "f1_micro": _right,
    "mae": _absolute,
    "logloss": _log_chance,
    "mse": _squared,
    "rmse": _squared,
    "brier": _brier,
}


def is_accuracy(metric: str) -> bool:
    """Return whether a metric is the share of right answers.

    >>> is_accuracy("accuracy"), is_accuracy("balacc")
    (True, False)
    """
    return MTEB.get(metric, metric) in ("acc", "f1_micro")


def contributions(
    metric: str, folds: Sequence[Predictions], clusters: Sequence[np.ndarray] | None = None
) -> np.ndarray:
    """Return what each item, or cluster of items, adds to a model's score; higher is better.

    Metrics that are means over items have a gain per item, and means over groups a score per block
    of groups. Other metrics have the pseudo-values of a jackknife over blocks of items, whose mean
    is the score. ``clusters`` are labels of the rows of each fold: then there is one value per
    cluster, or block of clusters; their mean is the mean over items, and their spread holds what
    the items of a cluster have in common. Raises a ``KaratError`` if a score cannot be computed.

    >>> answers = Predictions(np.array([1.0, 2.0, 5.0]), np.array([1.0, 1.0, 3.0]))
    >>> contributions("mae", [answers]).tolist()
    [-0.0, -1.0, -2.0]
    >>> contributions("mae", [answers], [np.array(["a", "a", "b"])]).round(3).tolist()
    [-0.333, -1.667]
    """
    gain = GAINS.get(MTEB.get(metric, metric))
    if gain is not None:
        values = np.concatenate([gain(fold) for fold in folds])
        return values if clusters is None else _by_cluster(values, np.concatenate(clusters))
    kind = get_metric(metric)
    sign = 1 if kind.higher_is_better else -1
    if clusters is not None and _cross_folds(clusters):
        return sign * _shared_blocks(metric, folds, clusters)
    labels = [_lists(fold, kind.by_group) for fold in folds] if clusters is None else clusters
    blocks = max(2, -(-UNITS // len(folds)))
    rows = zip(folds, labels, strict=True)
    return sign * np.concatenate([_block_values(metric, *both, blocks) for both in rows])


def _lists(fold: Predictions, by_group: bool) -> np.ndarray | None:
    """Return the group of each row where rows of a group are one item, as a ranked list."""
    if fold.group is None or by_group:
        return fold.group
    questions = fold.question
    several = questions is None or len(np.unique(questions)) < len(questions)
    return fold.group if fold.rank is not None and several else None


def _by_cluster(values: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return a value per cluster: the mean, plus what its items deviate from it in sum."""
    codes = np.unique(labels, return_inverse=True)[1].ravel()
    sums = np.bincount(codes, weights=values - values.mean())
    return np.asarray(values.mean() + sums * len(sums) / len(values))


def _cross_folds(clusters: Sequence[np.ndarray]) -> bool:
    """Return whether a cluster has items in several folds."""
    distinct = [np.unique(labels) for labels in clusters]
    return len(np.unique(np.concatenate(distinct))) < sum(map(len, distinct))


def _shared_blocks(
    metric: str, folds: Sequence[Predictions], clusters: Sequence[np.ndarray]
) -> np.ndarray:
    """Return a value per block of clusters, the mean over the folds that have items of it."""
    every, codes = np.unique(np.concatenate(clusters), return_inverse=True)
    count = min(len(every), UNITS)
    block_of = np.random.default_rng(SEED).permutation(len(every)) % count
    ends = np.cumsum([len(labels) for labels in clusters])[:-1]
    parts = np.split(block_of[codes.ravel()], ends)
    blocks = np.array(
        [_of_blocks(metric, fold, block, count) for fold, block in zip(folds, parts, strict=True)]
    )
    return np.asarray(blocks.mean(axis=0))


def _block_values(
    metric: str, fold: Predictions, labels: np.ndarray | None, blocks: int
) -> np.ndarray:
    """Return a value per random block of the items of a fold, or of its clusters."""
    codes = np.arange(len(fold))
    if labels is not None:
        codes = np.unique(labels.astype(str), return_inverse=True)[1].ravel()
    items = int(codes.max()) + 1
    count = min(items, blocks)
    block_of = np.random.default_rng(SEED).permutation(items) % count
    return _of_blocks(metric, fold, block_of[codes], count)


def _of_blocks(metric: str, fold: Predictions, block: np.ndarray, count: int) -> np.ndarray:
    """Return the score of each block of groups, or the pseudo-value of each block of items."""
    whole = _score(metric, fold)
    if get_metric(metric).by_group and fold.group is not None:
        sizes = np.array([len(set(fold.group[block == b].tolist())) for b in range(count)])
        values = [_value(metric, fold, block == b) if sizes[b] else whole for b in range(count)]
        return np.asarray(whole + (np.array(values) - whole) * sizes * count / sizes.sum())
    there = np.bincount(block, minlength=count) > 0
    without = [_value(metric, fold, block != b) if there[b] else whole for b in range(count)]
    return count * whole - (count - 1) * np.array(without)


def _value(metric: str, fold: Predictions, rows: np.ndarray) -> float:
    return _score(metric, fold.take(np.flatnonzero(rows)))


def _score(metric: str, answers: Predictions) -> float:
    value, reason = score(metric, answers)
    if value is None:
        raise DataError(reason)
    return value
