"""Metrics of class labels, class probabilities, numbers, and clusters against target classes.

Labels are compared as text. With two classes the *second* in label order is the positive one; its
probability is the second column. Averages ignore classes that are absent from the test fold; a
value that is then meaningless is ``Undefined``. The number of a cluster has no meaning. Only the
pairs (class, cluster) that occur are stored, which allows thousands of clusters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from karat.core.predictions import Predictions
from karat.metrics.metric import Undefined, metric, of_each_row, shared

#: names of groups that are similarity measures
MEASURES = ("cosine", "dot", "euclidean", "manhattan")
_UNBOUNDED = (0.0, np.inf)


@metric("acc", needs=("classes",), weighted=True)
def acc(predictions: Predictions) -> float:
    """Accuracy: share of rows with the correct label."""
    return _mean(predictions.predictions == predictions.target, predictions)


@metric("balacc", needs=("classes",), weighted=True)
def balacc(predictions: Predictions) -> float:
    """Balanced accuracy: mean recall of the classes in the target."""
    return float(np.nanmean(_count(predictions).recall()))


@metric("mean_pce", higher_is_better=False, needs=("classes",), weighted=True)
def mean_pce(predictions: Predictions) -> float:
    """Mean per-class error: mean, over the classes in the target, of the share of wrong labels."""
    return 1.0 - balacc(predictions)


@metric("max_pce", higher_is_better=False, needs=("classes",), weighted=True)
def max_pce(predictions: Predictions) -> float:
    """Maximum per-class error: share of wrong labels in the worst class of the target."""
    return float(1.0 - np.nanmin(_count(predictions).recall()))


@metric("precision", needs=("classes",), weighted=True, positive_class=True)
def precision(predictions: Predictions) -> float:
    """Share of correct rows among those predicted as a class; macro average beyond two classes.

    A class of the target that is never predicted counts as 0.
    """
    counts = _count(predictions)
    return counts.summary(counts.precision())


@metric("recall", needs=("classes",), weighted=True, positive_class=True)
def recall(predictions: Predictions) -> float:
    """Share of correctly predicted rows of a class; macro average beyond two classes."""
    counts = _count(predictions)
    return counts.summary(counts.recall())


@metric("f1", needs=("classes",), weighted=True, positive_class=True)
def f1(predictions: Predictions) -> float:
    """Harmonic mean of precision and recall; macro average beyond two classes."""
    return _f_score(predictions, beta=1.0)


@metric("f05", needs=("classes",), weighted=True, positive_class=True)
def f05(predictions: Predictions) -> float:
    """F score that weighs precision twice as much as recall; macro average beyond two classes."""
    return _f_score(predictions, beta=0.5)


@metric("f2", needs=("classes",), weighted=True, positive_class=True)
def f2(predictions: Predictions) -> float:
    """F score that weighs recall twice as much as precision; macro average beyond two classes."""
    return _f_score(predictions, beta=2.0)


@metric("f1_macro", needs=("classes",), weighted=True)
def f1_macro(predictions: Predictions) -> float:
    """Mean F1 of all classes that occur in the target or the predictions."""
    return float(np.nanmean(_count(predictions).f_score(1.0)))


@metric("f1_weighted", needs=("classes",), weighted=True)
def f1_weighted(predictions: Predictions) -> float:
    """Mean F1 of all classes, weighted by their number of rows in the target."""
    counts = _count(predictions)
    return float(np.nansum(counts.f_score(1.0) * counts.actual) / counts.actual.sum())


@metric("precision_weighted", needs=("classes",), weighted=True)
def precision_weighted(predictions: Predictions) -> float:
    """Mean precision of all classes, weighted by their number of rows in the target."""
    counts = _count(predictions)
    return float(np.nansum(counts.precision() * counts.actual) / counts.actual.sum())


@metric("recall_weighted", needs=("classes",), weighted=True)
def recall_weighted(predictions: Predictions) -> float:
    """Mean recall of all classes, weighted by their rows in the target: the accuracy."""
    counts = _count(predictions)
    return float(counts.hits.sum() / counts.actual.sum())


@metric("f1_micro", needs=("classes",), weighted=True)
def f1_micro(predictions: Predictions) -> float:
    """F1 of the pooled decisions of all classes; with one label per row this is the accuracy."""
    return acc(predictions)


@metric("mcc", range=(-1.0, 1.0), needs=("classes",), weighted=True)
def mcc(predictions: Predictions) -> float:
    """Matthews correlation of predictions and target, for any number of classes.

    Constant predictions give 0; it is undefined for a target of one class.
    """
    counts = _count(predictions)
    _check_two_classes(counts.actual)
    rows = counts.actual.sum().item()
    spreads = [float(rows**2 - side @ side) for side in (counts.actual, counts.answered)]
    if spreads[1] <= 1e-12 * rows**2:  # sums of weights differ in their last bits
        return 0.0
    together = float(rows * counts.hits.sum() - counts.actual @ counts.answered)
    return _clipped(together / np.sqrt(spreads[0] * spreads[1]), -1.0)


@metric("above_chance", needs=("classes",), weighted=True)
def above_chance(predictions: Predictions) -> float:
    """Chance-adjusted score from 0 to 1: MCC for two classes, macro-F1 for more.

    With C classes it is (F1 - 1/C) / (1 - 1/C), since guessing among equally frequent classes
    scores 1/C. Values below chance count as 0, also in the mean over folds; see ``mcc`` and
    ``f1_macro`` for them.
    """
    classes = len(predictions.labels)
    if classes == 2:
        return max(0.0, mcc(predictions))
    if classes < 2:
        raise Undefined("there is only one class.")
    return max(0.0, (f1_macro(predictions) - 1 / classes) / (1 - 1 / classes))


@dataclass(frozen=True)
class _Counts:
    """Per class: number (or weight) of correct predictions, of predictions, and of targets."""

    names: tuple[str, ...]
    hits: np.ndarray
    answered: np.ndarray
    actual: np.ndarray

    def precision(self) -> np.ndarray:
        """Return one value per class, NaN for a class that does not occur."""
        present = self.answered + self.actual > 0
        return np.where(present, _ratio(self.hits, self.answered), np.nan)

    def recall(self) -> np.ndarray:
        """Return one value per class, NaN for a class that is not in the target."""
        return np.where(self.actual > 0, _ratio(self.hits, self.actual), np.nan)

    def f_score(self, beta: float) -> np.ndarray:
        """Return one value per class, NaN for a class that does not occur."""
        bottom = beta**2 * self.actual + self.answered
        top = (1 + beta**2) * self.hits
        return np.where(bottom > 0, _ratio(top, bottom), np.nan)

    def summary(self, values: np.ndarray) -> float:
        """Return the value of the second of two classes, or the mean of more."""
        if len(self.names) == 1:
            raise Undefined(f'there is only one class, "{self.names[0]}".')
        if len(self.names) > 2:
            return float(np.nanmean(values))
        if np.isnan(values[1]):
            raise Undefined(f'the positive class "{self.names[1]}" is not in the target.')
        return float(values[1])


def _ratio(top: np.ndarray, bottom: np.ndarray) -> np.ndarray:
    """Return the ratio, and the numerator where the denominator is 0."""
    return np.asarray(top / np.where(bottom > 0, bottom, 1))


def _mean(values: np.ndarray, predictions: Predictions) -> float:
    """Return the mean over rows, weighted if they have weights."""
    if predictions.weight is None:
        return float(np.mean(values))
    return float(np.average(values, weights=predictions.weight))


@shared
def _count(predictions: Predictions) -> _Counts:
    names, weight = predictions.labels, predictions.weight
    truth, answers = predictions.true_codes, predictions.answered_codes
    size, right = len(names), truth == answers
    return _Counts(
        names,
        hits=np.bincount(truth[right], None if weight is None else weight[right], size),
        answered=np.bincount(answers, weight, size),
        actual=np.bincount(truth, weight, size),
    )


def _f_score(predictions: Predictions, beta: float) -> float:
    counts = _count(predictions)
    return counts.summary(counts.f_score(beta))


@metric("auc", needs=("binary", "probabilities"), weighted=True)
def auc(predictions: Predictions) -> float:
    """Area under the ROC curve of the second class's probability, or of numeric scores."""
    truth = _true_codes(predictions)
    return _area_of_levels(truth == 1, _second_levels(predictions), predictions.weight)


@of_each_row
def _second_levels(predictions: Predictions) -> np.ndarray:
    """Return the score of the second class as a whole number that grows with it."""
    return _level_codes(_scores(predictions)[:, 1])


@metric("auc_ovr", needs=("probabilities",), weighted=True)
def auc_ovr(predictions: Predictions) -> float:
    """Mean ROC AUC of each class against the rest, weighted by the rows of the class."""
    truth, scores = _true_codes(predictions), _scores(predictions)
    there, weight = np.unique(truth), predictions.weight
    rows = np.bincount(truth, weight)[there]
    areas = [_area(truth == label, scores[:, label], weight) for label in there]
    return _clipped(float(np.average(areas, weights=rows)))


@metric("auc_ovo", needs=("probabilities",), weighted=True)
def auc_ovo(predictions: Predictions) -> float:
    """Mean ROC AUC of all pairs of classes, weighted by the rows of the pair.

    The AUC of a pair is the mean of both directions. Pairs without rows of both are ignored.
    """
    truth, scores = _true_codes(predictions), _scores(predictions)
    weight = np.ones(len(truth)) if predictions.weight is None else predictions.weight
    rows = np.bincount(truth, weight, scores.shape[1])
    _check_two_classes(rows)
    areas, weights = [], []
    for a, b in combinations(np.flatnonzero(rows), 2):
        pair = (truth == a) | (truth == b)
        sides = [_area(truth[pair] == label, scores[pair, label], weight[pair]) for label in (a, b)]
        areas.append(sum(sides) / 2)
        weights.append(rows[a] + rows[b])
    return _clipped(float(np.average(areas, weights=weights)))


@metric("auc_micro", needs=("probabilities",), weighted=True)
def auc_micro(predictions: Predictions) -> float:
    """ROC AUC of all pooled (row, class) decisions; with two classes the same as auc.

    Two classes are one decision per row, as when scikit-learn binarizes labels: pooling both
    columns would also measure calibration. Beyond two, absent classes are pooled as well, because
    predicting them is wrong.
    """
    truth, scores = _true_codes(predictions), _scores(predictions)
    if scores.shape[1] == 2:
        return auc(predictions)
    weight = predictions.weight
    weights = None if weight is None else np.repeat(weight, scores.shape[1])
    return _area((truth[:, None] == np.arange(scores.shape[1])).ravel(), scores.ravel(), weights)


@metric("pr_auc", needs=("binary", "probabilities"), weighted=True, positive_class=True)
def pr_auc(predictions: Predictions) -> float:
    """Average precision of the second class: mean precision at each of its rows.

    Rows with equal scores are retrieved together.
    """
    gained, taken = _levels(predictions)
    at = np.cumsum(gained) / np.cumsum(taken)
    return _clipped(float(gained @ at / gained.sum()))


@metric("f1_best", needs=("binary", "probabilities"), weighted=True, positive_class=True)
def f1_best(predictions: Predictions) -> float:
    """F1 of the second class at its best threshold: an upper bound."""
    gained, taken = _at_best_f1(predictions)
    return float(2 * gained / (taken + _levels(predictions)[0].sum()))


@metric("f1_best_precision", needs=("binary", "probabilities"), weighted=True, positive_class=True)
def f1_best_precision(predictions: Predictions) -> float:
    """Precision of the second class at the threshold of its best F1."""
    gained, taken = _at_best_f1(predictions)
    return float(gained / taken)


@metric("f1_best_recall", needs=("binary", "probabilities"), weighted=True, positive_class=True)
def f1_best_recall(predictions: Predictions) -> float:
    """Recall of the second class at the threshold of its best F1."""
    gained, _ = _at_best_f1(predictions)
    return float(gained / _levels(predictions)[0].sum())


@metric("acc_best", needs=("binary", "probabilities"), weighted=True)
def acc_best(predictions: Predictions) -> float:
    """Accuracy at its best threshold: an upper bound."""
    gained, taken = _levels(predictions)
    # above a threshold, positive rows are correct, and negative rows below it
    net_gains = np.concatenate([[0.0], np.cumsum(2 * gained - taken)])
    return float((net_gains.max() + (taken - gained).sum()) / taken.sum())


@metric("max_ap", needs=("binary", "probabilities"), weighted=True, positive_class=True)
def max_ap(predictions: Predictions) -> float:
    """Highest average precision of several similarity measures, each of which is a group."""
    return _max_of_measures(predictions, pr_auc)


@metric("max_f1", needs=("binary", "probabilities"), weighted=True, positive_class=True)
def max_f1(predictions: Predictions) -> float:
    """Highest best F1 of several similarity measures, each of which is a group."""
    return _max_of_measures(predictions, f1_best)


@metric("max_accuracy", needs=("binary", "probabilities"), weighted=True)
def max_accuracy(predictions: Predictions) -> float:
    """Highest best accuracy of several similarity measures, each of which is a group."""
    return _max_of_measures(predictions, acc_best)


@metric("max_precision", needs=("binary", "probabilities"), weighted=True, positive_class=True)
def max_precision(predictions: Predictions) -> float:
    """Highest precision at the best F1 of several similarity measures, each of which is a group."""
    return _max_of_measures(predictions, f1_best_precision)


@metric("max_recall", needs=("binary", "probabilities"), weighted=True, positive_class=True)
def max_recall(predictions: Predictions) -> float:
    """Highest recall at the best F1 of several similarity measures, each of which is a group."""
    return _max_of_measures(predictions, f1_best_recall)


def _max_of_measures(predictions: Predictions, compute: Callable[[Predictions], float]) -> float:
    """Return the highest value of the measures; other predictions are those of one measure."""
    group = predictions.group
    if group is None or not set(group.tolist()) <= set(MEASURES):
        return compute(predictions)
    return max(
        compute(predictions.take(np.flatnonzero(group == measure))) for measure in set(group)
    )


@metric(
    "logloss", higher_is_better=False, range=(0.0, np.inf), needs=("probabilities",), weighted=True
)
def logloss(predictions: Predictions) -> float:
    """Mean negative logarithm of the predicted probability of the target class.

    Probabilities are clipped by the machine epsilon of their type, as in scikit-learn: the loss of
    a row is at most 36.0 in float64, 15.9 in float32 and 6.9 in float16.
    """
    chances = _chances(predictions)
    of_target = chances[np.arange(len(predictions)), _true_codes(predictions)]
    epsilon = np.finfo(predictions.precision).eps.astype(float)
    return -_mean(np.log(np.clip(of_target, epsilon, 1 - epsilon)), predictions)


@metric("brier", higher_is_better=False, range=(0.0, 2.0), needs=("probabilities",), weighted=True)
def brier(predictions: Predictions) -> float:
    """Mean squared error of the probabilities.

    With two classes, of the probability of the second (at most 1); beyond, the mean over rows of
    the sum over all classes (at most 2).
    """
    chances, truth = _chances(predictions), _true_codes(predictions)
    errors = (chances - (truth[:, None] == np.arange(chances.shape[1]))) ** 2
    return _mean(errors[:, 1] if chances.shape[1] == 2 else errors.sum(axis=1), predictions)


def _true_codes(predictions: Predictions) -> np.ndarray:
    """Return the column of each row's target class."""
    names = predictions.labels
    if not names:
        raise Undefined("the target is neither class labels nor the numbers 0 and 1.")
    codes = predictions.true_codes
    has_probabilities = predictions.truths == "classes" and predictions.probabilities is not None
    if (codes >= (len(predictions.classes) if has_probabilities else len(names))).any():
        raise Undefined(f'the target class "{names[codes.max()]}" has no probabilities.')
    return codes


def _scores(predictions: Predictions) -> np.ndarray:
    """Return one column per class; a numeric prediction is the score of the second of two."""
    if predictions.probabilities is not None:
        return np.asarray(predictions.probabilities, dtype=float)
    return np.column_stack([-predictions.predictions, predictions.predictions])


def _chances(predictions: Predictions) -> np.ndarray:
    if predictions.probabilities is None:
        raise Undefined("the model returned scores instead of class probabilities.")
    chances = np.asarray(predictions.probabilities, dtype=float)
    if (chances < 0).any() or (chances > 1).any():
        raise Undefined("some probabilities are below 0 or above 1.")
    if wrong := int((np.abs(chances.sum(axis=1) - 1) > predictions.tolerance).sum()):
        raise Undefined(f"the probabilities of {wrong} of {len(chances)} rows do not sum to 1.")
    return chances


@shared
def _levels(predictions: Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of positive rows and of all rows per score, from the highest score."""
    positive, scores = _true_codes(predictions) == 1, _scores(predictions)[:, 1]
    _check_two_classes(np.bincount(positive, minlength=2))
    weight = np.ones(len(scores)) if predictions.weight is None else predictions.weight
    _, level = np.unique(-scores, return_inverse=True)
    return np.bincount(level, weights=positive * weight), np.bincount(level, weights=weight)


@shared
def _at_best_f1(predictions: Predictions) -> tuple[float, float]:
    """Return the number of positive rows and of all rows above the highest threshold of best F1."""
    gained, taken = map(np.cumsum, _levels(predictions))
    best = np.argmax(gained / (taken + gained[-1]))
    return gained[best], taken[best]


def _area(positive: np.ndarray, scores: np.ndarray, weight: np.ndarray | None = None) -> float:
    """Return the probability that a positive row scores above a negative one; ties count half."""
    return _area_of_levels(positive, _level_codes(scores), weight)


def _level_codes(scores: np.ndarray) -> np.ndarray:
    return np.unique(scores, return_inverse=True)[1]


def _area_of_levels(
    positive: np.ndarray, level: np.ndarray, weight: np.ndarray | None = None
) -> float:
    _check_two_classes(np.bincount(positive, minlength=2))
    levels = int(level.max()) + 1
    ups, downs = (
        np.bincount(level[rows], None if weight is None else weight[rows], minlength=levels)
        for rows in (positive, ~positive)
    )
    # twice the pairs won: counts stay whole numbers, whose product starts no threads
    below = 2 * np.cumsum(downs) - downs
    return float(ups @ below / (2 * ups.sum() * downs.sum()))


def _check_two_classes(rows: np.ndarray) -> None:
    if np.count_nonzero(rows) < 2:
        raise Undefined("there is only one class in the target.")


def _clipped(value: float, lowest: float = 0.0) -> float:
    # rounding may exceed the bound by the last bit
    return float(min(max(value, lowest), 1.0))


@metric("mse", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",), weighted=True)
def mse(predictions: Predictions) -> float:
    """Mean squared error."""
    return _mean((predictions.predictions - predictions.target) ** 2, predictions)


@metric("rmse", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",), weighted=True)
def rmse(predictions: Predictions) -> float:
    """Root of the mean squared error, in the unit of the target."""
    return float(np.sqrt(mse(predictions)))


@metric("mae", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",), weighted=True)
def mae(predictions: Predictions) -> float:
    """Mean absolute error, in the unit of the target."""
    return _mean(np.abs(predictions.predictions - predictions.target), predictions)


@metric("msle", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",), weighted=True)
def msle(predictions: Predictions) -> float:
    """Mean squared difference of log(1 + value); undefined for negative values."""
    for what, values in (("predictions", predictions.predictions), ("targets", predictions.target)):
        if negative := int((values < 0).sum()):
            raise Undefined(f"{negative} of {len(values)} {what} are negative.")
    errors = np.log1p(predictions.predictions) - np.log1p(predictions.target)
    return _mean(errors**2, predictions)


@metric("rmsle", higher_is_better=False, range=_UNBOUNDED, needs=("numbers",), weighted=True)
def rmsle(predictions: Predictions) -> float:
    """Root of the mean squared difference of log(1 + value); undefined for negative values."""
    return float(np.sqrt(msle(predictions)))


@metric("r2", range=(-np.inf, 1.0), needs=("numbers",), weighted=True)
def r2(predictions: Predictions) -> float:
    """Share of the variance of the target explained; undefined for a constant target."""
    truth = predictions.target
    if truth.min() == truth.max():
        raise Undefined("the target is constant.")
    weight = np.ones(len(truth)) if predictions.weight is None else predictions.weight
    spread = np.sum(weight * (truth - _mean(truth, predictions)) ** 2)
    return float(1.0 - np.sum(weight * (predictions.predictions - truth) ** 2) / spread)


# -- clusters against target classes ----------------------------------------------------------


@metric("homogeneity", needs=("clusters",))
def homogeneity(predictions: Predictions) -> float:
    """Homogeneity: 1 if each cluster contains a single class, or if there is only one class."""
    return _overlaps(predictions).homogeneity()


@metric("completeness", needs=("clusters",))
def completeness(predictions: Predictions) -> float:
    """Completeness: 1 if each class is in a single cluster, or if there is only one cluster."""
    return _overlaps(predictions).turned().homogeneity()


@metric("v_measure", needs=("clusters",))
def v_measure(predictions: Predictions) -> float:
    """Harmonic mean of homogeneity and completeness; 0 if both are 0."""
    overlaps = _overlaps(predictions)
    pure, whole = overlaps.homogeneity(), overlaps.turned().homogeneity()
    return 2 * pure * whole / (pure + whole) if pure + whole else 0.0


@metric("nmi", needs=("clusters",))
def nmi(predictions: Predictions) -> float:
    """Mutual information divided by the mean of the entropies; equal to the V-measure."""
    return v_measure(predictions)


@metric("ari", range=(-0.5, 1.0), needs=("clusters",))
def ari(predictions: Predictions) -> float:
    """Rand index adjusted for chance: 0 for random clusters, 1 for the classes themselves."""
    overlaps = _overlaps(predictions)
    if overlaps.same():
        return 1.0
    both, classes, clusters = overlaps.pairs()
    rows = len(predictions)
    expected = classes * clusters / (rows * (rows - 1) // 2)
    return (both - expected) / ((classes + clusters) / 2 - expected)


@metric("ami", range=(-np.inf, 1.0), needs=("clusters",))
def ami(predictions: Predictions) -> float:
    """Mutual information adjusted for chance and divided by the mean of the entropies."""
    from sklearn.metrics import adjusted_mutual_info_score

    overlaps = _overlaps(predictions)
    if overlaps.same():
        return 1.0
    return float(min(adjusted_mutual_info_score(overlaps.target, overlaps.answers), 1.0))


@metric("fowlkes_mallows", needs=("clusters",))
def fowlkes_mallows(predictions: Predictions) -> float:
    """Geometric mean of precision and recall over pairs of rows in the same cluster.

    0 if no two rows share a cluster; undefined if no two share a class.
    """
    both, classes, clusters = _overlaps(predictions).pairs()
    if not classes:
        raise Undefined("no two rows share a class.")
    return both / float(np.sqrt(float(classes) * float(clusters))) if clusters else 0.0


@metric("clustering_accuracy", needs=("clusters",))
def clustering_accuracy(predictions: Predictions) -> float:
    """Share of correct rows under the best one-to-one matching of clusters to classes.

    Unmatched classes and clusters count as wrong.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    overlaps = _overlaps(predictions)
    classes, clusters = len(overlaps.class_sizes), len(overlaps.cluster_sizes)
    # each class may also stay unmatched, with no rows, so that a full matching always exists;
    # 1 is added to all weights, because a weight of 0 means that there is no edge
    alone = np.arange(classes)
    weights = np.concatenate([overlaps.sizes + 1, np.ones(classes)])
    # older scipy (1.14 too) takes 32-bit indices only
    rows = np.concatenate([overlaps.classes, alone]).astype(np.int32)
    columns = np.concatenate([overlaps.clusters, clusters + alone]).astype(np.int32)
    graph = coo_array((weights, (rows, columns)), shape=(classes, clusters + classes)).tocsr()
    best = graph[min_weight_full_bipartite_matching(graph, maximize=True)]
    return float((best.sum() - classes) / len(predictions))


@dataclass(frozen=True)
class _Overlaps:
    """The pairs (class, cluster) that share rows, their number of rows, and the codes of rows."""

    target: np.ndarray
    answers: np.ndarray
    classes: np.ndarray
    clusters: np.ndarray
    sizes: np.ndarray

    @property
    def class_sizes(self) -> np.ndarray:
        return np.bincount(self.target)

    @property
    def cluster_sizes(self) -> np.ndarray:
        return np.bincount(self.answers)

    def turned(self) -> _Overlaps:
        """Return them with classes and clusters exchanged."""
        return _Overlaps(self.answers, self.target, self.clusters, self.classes, self.sizes)

    def same(self) -> bool:
        """Return whether the clusters are the classes."""
        return len(self.sizes) == len(self.class_sizes) == len(self.cluster_sizes)

    def pairs(self) -> tuple[int, int, int]:
        """Return how many pairs of rows share class and cluster, the class, the cluster."""
        return _pairs(self.sizes), _pairs(self.class_sizes), _pairs(self.cluster_sizes)

    def homogeneity(self) -> float:
        """Return 1 - H(class | cluster) / H(class): exactly 1 for pure clusters."""
        class_sizes = self.class_sizes
        if len(class_sizes) == 1:
            return 1.0
        remaining = -self.sizes @ np.log(self.sizes / self.cluster_sizes[self.clusters])
        whole = -class_sizes @ np.log(class_sizes / len(self.target))
        return float(min(max(1.0 - remaining / whole, 0.0), 1.0))


@shared
def _overlaps(predictions: Predictions) -> _Overlaps:
    truth = np.unique(predictions.target, return_inverse=True)[1]
    clusters, answers = np.unique(predictions.predictions, return_inverse=True)
    pairs, sizes = np.unique(truth * len(clusters) + answers, return_counts=True)
    return _Overlaps(truth, answers, *np.divmod(pairs, len(clusters)), sizes)


def _pairs(sizes: np.ndarray) -> int:
    return int((sizes * (sizes - 1) // 2).sum())
