"""Heads on scikit-learn estimators.

Supervised heads are linear models, nearest neighbors, naive Bayes, decision trees and support
vector machines. Outlier detectors and clusterers do not see the target.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from karat.core.registry import head, measures
from karat.errors import DefinitionError, did_you_mean
from karat.models.model import Parameterized
from karat.probes.similarity import checked_similarity, distance_names, metric_arguments

if TYPE_CHECKING:
    from karat.models.predictors import RbfMachine


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
    from sklearn.neighbors import KNeighborsRegressor

    from karat.models.predictors import NearestLabels

    chosen = NearestLabels if kind == "classification" else KNeighborsRegressor
    return chosen(n_neighbors=n_neighbors, weights=weights)


@head("naive-bayes")
def naive_bayes(kind: str = "classification", var_smoothing: float = 1e-9) -> Any:
    """Gaussian naive Bayes: one mean and variance per class and dimension."""
    need_kind("naive-bayes", kind, "classification", "ridge or linear-regression")
    if not 0 < var_smoothing < np.inf:
        raise DefinitionError(
            f"head naive-bayes: var_smoothing must be > 0, got {var_smoothing!r}."
        )
    from karat.models.predictors import NaiveBayes

    return NaiveBayes(var_smoothing=var_smoothing)


@head("decision-tree")
def tree(
    kind: str,
    criterion: str | None = None,
    max_depth: int | None = None,
    min_samples_leaf: int = 1,
    random_state: int | None = None,
) -> Any:
    """scikit-learn's decision tree (CART: binary splits), without pruning.

    Classes are split by information gain (``entropy``) or ``gini``, numbers by variance
    (``squared_error``) or ``absolute_error``. ``random_state`` decides between equally good splits.
    This is not C4.5, which also has gain ratios and pruning.
    """
    from karat.probes.heads.decision_tree import ClassTree, NumberTree

    allowed = CRITERIA["classification" if kind == "classification" else "regression"]
    criterion = criterion or allowed[0]
    if criterion not in allowed:
        raise DefinitionError(
            f'head decision-tree: unknown criterion "{criterion}" for {kind}.'
            f"{did_you_mean(criterion, allowed)} Available: {', '.join(allowed)}."
        )
    return (ClassTree if kind == "classification" else NumberTree)(
        criterion=criterion,
        max_depth=max_depth,
        min_samples_leaf=min_samples_leaf,
        random_state=random_state or 0,  # without a seed it would draw from the global generator
    )


@head("svm")
def svm(
    kind: str,
    C: float = 1.0,
    gamma: float | str = "scale",
    epsilon: float = 0.1,
    share: Callable[[str, Callable[[], Any]], Any] | None = None,
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
    from karat.models.predictors import RbfLabels, RbfRegressor

    machine: RbfMachine = RbfLabels(C, gamma)
    if kind != "classification":
        machine = RbfRegressor(C, gamma, epsilon)
    machine.share = share
    return machine


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
        from sklearn.metrics import pairwise_distances

        options = {"metric": self.metric, **metric_arguments(str(self.metric), X)}
        height = max(1, MEMORY * 2**17 // len(X))
        for start in range(0, len(X), height):
            block = pairwise_distances(X[start : start + height], X[start:], **options)
            if not np.isfinite(block).all():
                # a zero vector has the distance of an unrelated one
                block = np.nan_to_num(block, nan=1.0)
            for place, distances in enumerate(block, 1):
                yield distances[place:]

    def condensed(self, X: np.ndarray) -> np.ndarray:
        """Return the distances of all pairs of rows in SciPy's condensed form."""
        distances = np.empty(len(X) * (len(X) - 1) // 2)
        start = 0
        for rest in self.rows(X):
            distances[start : start + len(rest)] = rest
            start += len(rest)
        return distances


class _Clusterer(Parameterized):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "clusterer"
        return tags


@dataclass(eq=False, repr=False)
class _Hierarchy(_Clusterer):
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
class _Dense(_Clusterer):
    eps: float
    min_samples: int
    distance: Distance

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        from sklearn.cluster import DBSCAN

        metric = self.distance.metric
        scan = DBSCAN(eps=self.eps, min_samples=self.min_samples, metric=metric)
        if not callable(metric):
            options = metric_arguments(metric, np.asarray(X, dtype=np.float64))
            return np.asarray(scan.set_params(metric_params=options or None).fit_predict(X))
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


def _need_clusters(head: str, count: int) -> None:
    if count < 1:
        raise DefinitionError(f"head {head} needs n_clusters, as the dataset has no classes.")
