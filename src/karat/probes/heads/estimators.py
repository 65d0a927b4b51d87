"""Heads on scikit-learn estimators, and their outputs as checked Predictions.

Supervised heads are linear models, nearest neighbors, naive Bayes, decision trees and support
vector machines. Outlier detectors and clusterers do not see the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.naive_bayes import GaussianNB

from karat.core.dataset import Dataset
from karat.core.embeddings import align_rows
from karat.core.predictions import Predictions, as_text
from karat.core.registry import head, measures
from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.models.predictors import RbfLabels, RbfMachine, RbfRegressor

#: largest allowed deviation from 1 of the sum of a row of probabilities
TOLERANCE = 1e-3


def predict_checked(estimator: Any, X: Any, test: Dataset, name: str) -> Predictions:
    """Return the predictions of a fitted estimator for the test questions, checked and aligned.

    Class probabilities are in the order of all classes of the dataset. Without ``predict_proba``,
    the predicted label has probability 1. ``predict_both`` returns labels and probabilities in one
    call.
    """
    answers, chances = _raw_predictions(estimator, X, test.kind, name)
    if answers.ndim == 2 and answers.shape[1] == 1:
        answers = answers[:, 0]
    if answers.shape != (len(test),):
        raise ContractError(
            f"{name}.predict returned the shape {answers.shape} for {len(test)} questions."
        )
    if test.kind != "classification":
        return _numbers(_finite(answers, f"{name}.predict"), test)
    labels = _labels(answers, test, f"{name}.predict returned")
    return _classes(labels, _probabilities(estimator, chances, labels, test), test)


def flag_outliers(scores: np.ndarray, test: Dataset, shares: Mapping[Any, float]) -> Predictions:
    """Turn outlier scores into predictions of two classes: outliers belong to the rarer one.

    The number of outliers follows from the share of the rarer class. The probability of an item
    is its rank divided by n + 1; equal scores share their mean rank.
    """
    if test.kind != "classification" or len(test.classes) != 2:
        raise DefinitionError(
            f"an outlier head needs a target with two classes; {test.name} has "
            f"{len(test.classes) or test.kind}."
        )
    scores = _finite(np.asarray(scores), "outlier_scores")
    classes = tuple(str(label) for label in test.classes)
    rare = min(range(2), key=lambda code: (shares[test.classes[code]], -code))
    count = round(shares[test.classes[rare]] * len(scores))
    flagged = np.zeros(len(scores), dtype=bool)
    flagged[np.argsort(-scores, kind="stable")[:count]] = True
    order = pd.Series(scores).rank(method="average").to_numpy() / (len(scores) + 1)
    chances = np.empty((len(scores), 2))
    chances[:, rare], chances[:, 1 - rare] = order, 1 - order
    labels = np.where(flagged, classes[rare], classes[1 - rare]).astype(object)
    return _classes(labels, chances, test)


def baseline(target: np.ndarray, test: Dataset) -> Predictions:
    """Return the predictions of a dummy model: the class frequencies or the mean of train rows."""
    if test.kind != "classification":
        return _numbers(np.full(len(test), float(np.mean(target))), test)
    seen = as_text(target)
    return predict_frequencies(
        test, {label: float(np.mean(seen == str(label))) for label in test.classes}
    )


def predict_frequencies(test: Dataset, known: Mapping[Any, float]) -> Predictions:
    """Return the shares of the classes as the probabilities of every question."""
    shares = np.array([known[label] for label in test.classes])
    labels = np.full(len(test), as_text(test.classes)[int(np.argmax(shares))], dtype=object)
    return _classes(labels, np.tile(shares, (len(test), 1)), test)


def _numbers(values: np.ndarray, test: Dataset) -> Predictions:
    truth = np.asarray(test.target)
    return Predictions(predictions=values, target=truth, group=test.group, weight=test.weight)


def _classes(labels: np.ndarray, probabilities: np.ndarray, test: Dataset) -> Predictions:
    return Predictions(
        predictions=labels,
        target=np.asarray(test.target),
        answers="classes",
        truths="classes",
        classes=tuple(as_text(test.classes)),
        probabilities=probabilities,
        group=test.group,
        weight=test.weight,
    )


def _labels(values: np.ndarray, test: Dataset, what: str) -> np.ndarray:
    """Return labels as the dataset writes them; ``1.0`` also means the class ``1``."""
    texts = as_text(test.classes)
    written = {**dict(zip(test.classes, texts, strict=True)), **{text: text for text in texts}}
    names: dict[Any, str] = {}
    for value in dict.fromkeys(values.tolist()):
        name = written.get(str(value), written.get(value))
        if name is None:
            known = ", ".join(texts[:10])
            raise ContractError(f'{what} the unknown class "{value}". Classes: {known}.')
        names[value] = name
    return np.array([names[value] for value in values.tolist()], dtype=object)


def _raw_predictions(
    estimator: Any, X: Any, kind: str, name: str
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the predictions, and the class probabilities if the estimator has them."""

    def called(method: str) -> np.ndarray:
        return np.asarray(align_rows(getattr(estimator, method)(X), X, f"{name}.{method}"))

    if kind != "classification":
        return called("predict"), None
    if hasattr(estimator, "predict_both"):
        answers, chances = estimator.predict_both(X)
        return np.asarray(answers), np.asarray(chances)
    answers = called("predict")
    return answers, called("predict_proba") if hasattr(estimator, "predict_proba") else None


def _probabilities(
    estimator: Any, chances: np.ndarray | None, answers: np.ndarray, test: Dataset
) -> np.ndarray:
    full = np.zeros((len(test), len(test.classes)))
    column = {label: i for i, label in enumerate(as_text(test.classes))}
    if chances is None:
        full[np.arange(len(test)), [column[label] for label in answers]] = 1.0
        return full
    given = _finite(chances, "predict_proba")
    classes = np.asarray(getattr(estimator, "classes_", as_text(test.classes)))
    if given.shape != (len(test), len(classes)):
        raise ContractError(
            f"predict_proba returned the shape {given.shape} for {len(test)} questions "
            f"and {len(classes)} classes."
        )
    sums = given.sum(axis=1)
    if given.min() < -TOLERANCE or np.abs(sums - 1).max() > TOLERANCE:
        row = int(np.argmax(np.maximum(np.abs(sums - 1), -given.min(axis=1))))
        raise ContractError(
            f"predict_proba returned {given[row].tolist()} (row {row}); probabilities must be >= 0 "
            f"and sum to 1."
        )
    full[:, [column[label] for label in _labels(classes, test, "classes_ holds")]] = given
    return full


def _finite(values: np.ndarray, what: str) -> np.ndarray:
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{what} must return numbers: {error}.") from error
    if broken := int((~np.isfinite(numbers)).sum()):
        raise ContractError(f"{what} returned {broken} values that are NaN or infinite.")
    return numbers


@head("logistic-regression")
def logistic(
    C: float = 1.0,
    max_iter: int = 100,
    random_state: int | None = None,
    kind: str = "classification",
) -> Any:
    """Logistic regression with at most ``max_iter`` iterations."""
    need_kind("logistic-regression", kind, "classification", "ridge or linear-regression")
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=C, max_iter=max_iter, random_state=random_state)


@head("linear-regression")
def linear(kind: str = "regression") -> Any:
    """Ordinary least squares."""
    need_kind("linear-regression", kind, "regression", "logistic-regression")
    from sklearn.linear_model import LinearRegression

    return LinearRegression()


@head("ridge")
def ridge(alpha: float = 1.0, kind: str = "regression") -> Any:
    """Ridge regression."""
    need_kind("ridge", kind, "regression", "logistic-regression")
    from sklearn.linear_model import Ridge

    return Ridge(alpha=alpha)


def need_kind(head: str, kind: str, needed: str, instead: str) -> None:
    """Refuse a target of another kind."""
    if kind != needed:
        raise DefinitionError(f"head {head} is for {needed}, not {kind}; use {instead}.")


#: split criteria of a tree, by kind of target; the first is the default
CRITERIA = {
    "classification": ("entropy", "gini"),
    "regression": ("squared_error", "absolute_error"),
}


@head("knn")
def knn(kind: str, n_neighbors: int = 5, weights: str = "uniform") -> Any:
    """Predict the majority class or the mean of the nearest train items."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    chosen = KNeighborsClassifier if kind == "classification" else KNeighborsRegressor
    return chosen(n_neighbors=n_neighbors, weights=weights)


@head("naive-bayes")
def naive_bayes(kind: str = "classification", var_smoothing: float = 1e-9) -> Any:
    """Gaussian naive Bayes: one mean and variance per class and dimension."""
    need_kind("naive-bayes", kind, "classification", "ridge or linear-regression")
    if not 0 < var_smoothing < np.inf:
        raise DefinitionError(
            f"head naive-bayes: var_smoothing must be > 0, got {var_smoothing!r}."
        )
    return NaiveBayes(var_smoothing=var_smoothing)


class NaiveBayes(GaussianNB):
    """scikit-learn's Gaussian naive Bayes that returns labels and probabilities in one pass."""

    def fit(self, X: np.ndarray, y: Any) -> NaiveBayes:
        """Fit; if all vectors are equal, predictions are the class frequencies."""
        super().fit(X, y)
        if not self.epsilon_:
            self.var_ = np.ones_like(self.theta_)
        return self

    def predict_both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the most probable classes and the probabilities of all."""
        chances = self.predict_log_proba(X)
        return self.classes_[chances.argmax(axis=1)], np.exp(chances)


@head("decision-tree")
def tree(
    kind: str,
    criterion: str | None = None,
    max_depth: int | None = None,
    min_samples_leaf: int = 1,
    random_state: int | None = None,
) -> Any:
    """scikit-learn's decision tree (CART: binary splits), grown without pruning.

    Classes are split by information gain (``entropy``) or ``gini``, numbers by variance
    (``squared_error``) or ``absolute_error``. ``random_state`` decides between equally good splits.
    This is not C4.5, which also has gain ratios and pruning.
    """
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    allowed = CRITERIA["classification" if kind == "classification" else "regression"]
    criterion = criterion or allowed[0]
    if criterion not in allowed:
        raise DefinitionError(
            f'head decision-tree: unknown criterion "{criterion}" for {kind}.'
            f"{did_you_mean(criterion, allowed)} Available: {', '.join(allowed)}."
        )
    chosen = DecisionTreeClassifier if kind == "classification" else DecisionTreeRegressor
    return chosen(
        criterion=criterion,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        random_state=random_state or 0,  # without a seed it would draw from the global generator
    )


@head("svm")
def svm(
    kind: str, C: float = 1.0, gamma: float | str = "scale", epsilon: float = 0.1
) -> RbfMachine:
    """Support vectors with the RBF kernel: classes one against one, or numbers.

    ``gamma: scale`` is 1 / (dimensions × variance of all values). The head predicts labels without
    probabilities. A numeric target is standardized, as ``C`` and ``epsilon`` assume unit variance.
    """
    for name, value in (("C", C), ("epsilon", epsilon)):
        if not _is_positive(value):
            raise DefinitionError(f"head svm: {name} must be a number > 0, got {value!r}.")
    if gamma != "scale" and not _is_positive(gamma):
        raise DefinitionError(f'head svm: gamma must be "scale" or a number > 0, got {gamma!r}.')
    return RbfLabels(C, gamma) if kind == "classification" else RbfRegressor(C, gamma, epsilon)


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < np.inf


@head("knn-distance")
@dataclass
class KnnDistance:
    """Outlier score: mean distance to the nearest neighbors."""

    n_neighbors: int = 10

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one score per item; outliers have high scores."""
        from sklearn.neighbors import NearestNeighbors

        count = max(1, min(self.n_neighbors, len(X) - 1))
        distances, _ = NearestNeighbors(n_neighbors=count).fit(X).kneighbors()
        return np.asarray(distances.mean(axis=1))


@head("isolation-forest")
@dataclass
class IsolationForestScore:
    """Isolation forest outlier score."""

    n_estimators: int = 100
    random_state: int | None = None

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one score per item; outliers have high scores."""
        from sklearn.ensemble import IsolationForest

        forest = IsolationForest(n_estimators=self.n_estimators, random_state=self.random_state)
        return -np.asarray(forest.fit(X).score_samples(X))


#: how the distance between two clusters follows from the distances between their members
LINKAGES = ("average", "complete", "single")
#: working memory for distances, in MB
MEMORY = 64


@head("kmeans")
def kmeans(
    n_clusters: int, batch_size: int | None = 32, n_init: int = 10, random_state: int | None = None
) -> Any:
    """Mini-batch k-means with one cluster per class; ``batch_size: null`` is plain k-means."""
    _need_clusters("kmeans", n_clusters)
    from sklearn.cluster import KMeans, MiniBatchKMeans

    if batch_size is None:
        return KMeans(n_clusters=n_clusters, n_init=n_init, random_state=random_state)
    return MiniBatchKMeans(
        n_clusters=n_clusters, batch_size=batch_size, n_init=n_init, random_state=random_state
    )


@head("agglomerative")
def agglomerative(
    n_clusters: int, metric: str | Callable[..., float] = "cosine", linkage: str = "average"
) -> Any:
    """Merge the two nearest clusters until there are as many as classes.

    ``metric`` is a distance of scikit-learn, or a function that returns the similarity of two
    vectors; the distance is then max(0, 1 - similarity). All distances are kept in memory: 1 GB for
    11,000 rows. With fewer rows than clusters, each row is its own cluster.
    """
    _need_clusters("agglomerative", n_clusters)
    if linkage not in LINKAGES:
        raise DefinitionError(
            f'head agglomerative: unknown linkage "{linkage}".{did_you_mean(linkage, LINKAGES)} '
            f"Available: {', '.join(LINKAGES)}; for Ward linkage use the head ward."
        )
    return _Hierarchy(n_clusters, Distance(metric), linkage)


@head("ward")
def ward(n_clusters: int) -> Any:
    """Merge the two clusters whose union increases the within-cluster variance least."""
    _need_clusters("ward", n_clusters)
    return _Hierarchy(n_clusters, Distance("euclidean"), "ward")


@head("dbscan")
def dbscan(
    eps: float = 0.5, min_samples: int = 5, metric: str | Callable[..., float] = "cosine"
) -> Any:
    """Find dense groups: items with ``min_samples`` items within ``eps``, including itself.

    Items outside of all groups get the cluster -1. ``metric`` is as in the head agglomerative.
    """
    return _Dense(eps, min_samples, Distance(metric))


class Distance:
    """The distance between vectors, named as in scikit-learn or given by a similarity function."""

    def __init__(self, metric: str | Callable[..., float]) -> None:
        if isinstance(metric, str) and metric not in distance_names():
            metric = measures.get(metric) if ":" in metric or metric in measures else metric
        if not callable(metric) and metric not in distance_names():
            raise DefinitionError(
                f'head: unknown metric "{metric}".{did_you_mean(str(metric), distance_names())} '
                f'Available: {", ".join(distance_names())}; or write "package.module:function".'
            )
        self.metric = metric

    def rows(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield, for each vector, the distances to the vectors after it."""
        X = np.asarray(X, dtype=np.float64)
        if callable(self.metric):
            for place, one in enumerate(X):
                found = [checked_similarity(self.metric, one, other) for other in X[place + 1 :]]
                yield np.maximum(0.0, 1.0 - np.array(found))
            return
        from sklearn.metrics import pairwise_distances_chunked

        place = 0
        for block in pairwise_distances_chunked(X, metric=self.metric, working_memory=MEMORY):
            for distances in block:
                place += 1
                # a zero vector has the distance of an unrelated one
                yield np.nan_to_num(distances[place:], nan=1.0)

    def condensed(self, X: np.ndarray) -> np.ndarray:
        """Return the distances of all pairs of rows in SciPy's condensed form."""
        distances = np.empty(len(X) * (len(X) - 1) // 2)
        start = 0
        for rest in self.rows(X):
            distances[start : start + len(rest)] = rest
            start += len(rest)
        return distances


def checked_similarity(function: Callable[..., Any], one: np.ndarray, other: np.ndarray) -> float:
    """Return the similarity of two vectors by a custom function; it must be a finite number."""
    value = function(one, other)
    try:
        valid = np.ndim(value) == 0 and bool(np.isfinite(float(value)))
    except (TypeError, ValueError):
        valid = False
    if not valid:
        name = getattr(function, "__name__", "the function")
        raise ContractError(
            f"{name} must return one finite similarity for two vectors, got {value!r}."
        )
    return float(value)


@dataclass(eq=False, repr=False)
class _Hierarchy(ClusterMixin, BaseEstimator):
    n_clusters: int
    distance: Distance
    linkage: str

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        from scipy.cluster.hierarchy import linkage

        if len(X) <= self.n_clusters:
            return np.arange(len(X))
        merges = linkage(self.distance.condensed(X), method=self.linkage)
        return _cut(merges[: len(X) - self.n_clusters, :2].astype(np.intp), len(X))


@dataclass(eq=False, repr=False)
class _Dense(ClusterMixin, BaseEstimator):
    eps: float
    min_samples: int
    distance: Distance

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        from sklearn.cluster import DBSCAN

        scan = DBSCAN(eps=self.eps, min_samples=self.min_samples, metric=self.distance.metric)
        if not callable(self.distance.metric):
            return np.asarray(scan.fit_predict(X))
        return np.asarray(scan.set_params(metric="precomputed").fit_predict(self._neighbors(X)))

    def _neighbors(self, X: np.ndarray) -> Any:
        from scipy.sparse import coo_matrix

        own = np.arange(len(X))
        found = [(own, own, np.zeros(len(X)))]
        for place, rest in enumerate(self.distance.rows(X)):
            near = np.flatnonzero(rest <= self.eps)
            one, others = np.full(len(near), place), place + 1 + near
            found += [(one, others, rest[near]), (others, one, rest[near])]
        rows, columns, values = (np.concatenate(part) for part in zip(*found, strict=True))
        return coo_matrix((values, (rows, columns)), shape=(len(X), len(X))).tocsr()


def _cut(merges: np.ndarray, rows: int) -> np.ndarray:
    """Return the clusters after some merges; each merge makes a cluster with the next number."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    merged = rows + np.arange(len(merges))
    size = rows + len(merges)
    pairs = (merges.ravel(), np.repeat(merged, 2))
    graph = coo_matrix((np.ones(2 * len(merges), dtype=bool), pairs), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][:rows], dtype=np.intp)


def distance_names() -> list[str]:
    """Return the distances of scikit-learn that need no further arguments."""
    from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS
    from sklearn.neighbors import VALID_METRICS

    # these need a covariance, a power, coordinates on a globe, or a matrix of distances
    other = {"precomputed", "mahalanobis", "haversine", "wminkowski", "seuclidean"}
    return sorted({*PAIRWISE_DISTANCE_FUNCTIONS, *VALID_METRICS["brute"]} - other)


def _need_clusters(head: str, count: int) -> None:
    if count < 1:
        raise DefinitionError(f"head {head} needs n_clusters, as the dataset has no classes.")
