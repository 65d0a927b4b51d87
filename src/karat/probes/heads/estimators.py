"""Clusterers: heads that group the items they are fitted on, without seeing the target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.registry import head, load_object

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
        if isinstance(metric, str) and ":" in metric:
            metric = load_object(metric)
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
                yield np.array([self._distance(one, other) for other in X[place + 1 :]])
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

    def _distance(self, one: np.ndarray, other: np.ndarray) -> float:
        similarity = self.metric(one, other)  # type: ignore[operator]
        if np.ndim(similarity) or not np.isfinite(similarity):
            name = getattr(self.metric, "__name__", "the metric")
            raise ContractError(
                f"{name} must return one finite similarity for two vectors, got {similarity!r}."
            )
        return max(0.0, 1.0 - float(similarity))


class _Clusterer:
    """The tags by which scikit-learn recognizes a clusterer."""

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type="clusterer", target_tags=TargetTags(required=False))


class _Hierarchy(_Clusterer):
    def __init__(self, n_clusters: int, distance: Distance, linkage: str) -> None:
        self.n_clusters = n_clusters
        self.distance = distance
        self.linkage = linkage

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        """Return the number of each row's cluster."""
        from scipy.cluster.hierarchy import linkage

        if len(X) <= self.n_clusters:
            return np.arange(len(X))
        merges = linkage(self.distance.condensed(X), method=self.linkage)
        return _cut(merges[: len(X) - self.n_clusters, :2].astype(np.intp), len(X))


class _Dense(_Clusterer):
    def __init__(self, eps: float, min_samples: int, distance: Distance) -> None:
        self.eps = eps
        self.min_samples = min_samples
        self.distance = distance

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        """Return the number of each row's group; -1 for rows outside of all groups."""
        from sklearn.cluster import DBSCAN

        scan = DBSCAN(eps=self.eps, min_samples=self.min_samples, metric=self.distance.metric)
        if not callable(self.distance.metric):
            return np.asarray(scan.fit_predict(X))
        return np.asarray(scan.set_params(metric="precomputed").fit_predict(self._neighbors(X)))

    def _neighbors(self, X: np.ndarray) -> Any:
        """Return the distances between neighbors as a sparse matrix."""
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
