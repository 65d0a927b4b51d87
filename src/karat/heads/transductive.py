"""Heads that answer for the very items they are fitted on, without seeing the truth: clusterers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.registry import head, load_object

#: how the distance of two clusters may follow from those of their members
LINKAGES = ("average", "complete", "single")
#: so many MB of distances are worked on at once
MEMORY = 64


@head("kmeans")
def kmeans(
    n_clusters: int, batch_size: int | None = 32, n_init: int = 10, random_state: int | None = None
) -> Any:
    """K-means with as many clusters as there are classes, in mini-batches.

    With ``batch_size: null`` every step looks at all rows.
    """
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
    """Join the nearest two clusters until as many are left as there are classes.

    ``metric`` is a distance of scikit-learn's, or a function of two vectors that returns their
    similarity; 1 less it is then the distance, at least 0. All distances are held at once: 1 GB for
    11,000 rows. Of fewer rows than clusters, each is one.
    """
    _need_clusters("agglomerative", n_clusters)
    if linkage not in LINKAGES:
        raise DefinitionError(
            f'head: agglomerative has no linkage "{linkage}".{did_you_mean(linkage, LINKAGES)} '
            f"There are: {', '.join(LINKAGES)}; and the head ward."
        )
    return Joined(n_clusters, Distance(metric), linkage)


@head("ward")
def ward(n_clusters: int) -> Any:
    """Join the two clusters whose union adds least to the squared Euclidean distances within."""
    _need_clusters("ward", n_clusters)
    return Joined(n_clusters, Distance("euclidean"), "ward")


@head("dbscan")
def dbscan(
    eps: float = 0.5, min_samples: int = 5, metric: str | Callable[..., float] = "cosine"
) -> Any:
    """Find dense groups: items with ``min_samples`` others within ``eps``, itself counted.

    What lies in no group is in no cluster (-1). ``metric`` is as in the head agglomerative.
    """
    return Dense(eps, min_samples, Distance(metric))


class Distance:
    """How far two vectors lie apart, by a name of scikit-learn's or a similarity of one's own."""

    def __init__(self, metric: str | Callable[..., float]) -> None:
        if isinstance(metric, str) and ":" in metric:
            metric = load_object(metric)
        if not callable(metric) and metric not in _names():
            raise DefinitionError(
                f'head: there is no metric "{metric}".{did_you_mean(str(metric), _names())} '
                f'There are: {", ".join(_names())}; or write "package.module:function".'
            )
        self.metric = metric

    def rows(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """Yield, row by row, the distances of a vector to those after it."""
        X = np.asarray(X, dtype=np.float64)
        if callable(self.metric):
            for place, one in enumerate(X):
                yield np.array([self._apart(one, other) for other in X[place + 1 :]])
            return
        from sklearn.metrics import pairwise_distances_chunked

        place = 0
        for block in pairwise_distances_chunked(X, metric=self.metric, working_memory=MEMORY):
            for distances in block:
                place += 1
                # a vector without a direction is as far as an unrelated one
                yield np.nan_to_num(distances[place:], nan=1.0)

    def condensed(self, X: np.ndarray) -> np.ndarray:
        """Return the distances of all pairs of rows, as SciPy wants them."""
        distances = np.empty(len(X) * (len(X) - 1) // 2)
        start = 0
        for rest in self.rows(X):
            distances[start : start + len(rest)] = rest
            start += len(rest)
        return distances

    def _apart(self, one: np.ndarray, other: np.ndarray) -> float:
        near = self.metric(one, other)  # type: ignore[operator]
        if np.ndim(near) or not np.isfinite(near):
            name = getattr(self.metric, "__name__", "the metric")
            raise ContractError(
                f"{name} must return one finite number for two vectors, the higher the nearer; "
                f"it returned {near!r}."
            )
        return max(0.0, 1.0 - float(near))


class _Clusterer:
    """What scikit-learn must know to tell that it learns no answers."""

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type="clusterer", target_tags=TargetTags(required=False))


class Joined(_Clusterer):
    """Clusters joined two by two, nearest first."""

    def __init__(self, n_clusters: int, distance: Distance, linkage: str) -> None:
        self.n_clusters = n_clusters
        self.distance = distance
        self.linkage = linkage

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        """Return the number of each row's cluster."""
        from scipy.cluster.hierarchy import linkage

        if len(X) <= self.n_clusters:
            return np.arange(len(X))
        joins = linkage(self.distance.condensed(X), method=self.linkage)
        return _cut(joins[: len(X) - self.n_clusters, :2].astype(np.intp), len(X))


class Dense(_Clusterer):
    """Groups of items with many others near by."""

    def __init__(self, eps: float, min_samples: int, distance: Distance) -> None:
        self.eps = eps
        self.min_samples = min_samples
        self.distance = distance

    def fit_predict(self, X: np.ndarray) -> np.ndarray:
        """Return the number of each row's group; -1 for one that is in none."""
        from sklearn.cluster import DBSCAN

        scan = DBSCAN(eps=self.eps, min_samples=self.min_samples, metric=self.distance.metric)
        if not callable(self.distance.metric):
            return np.asarray(scan.fit_predict(X))
        return np.asarray(scan.set_params(metric="precomputed").fit_predict(self._near(X)))

    def _near(self, X: np.ndarray) -> Any:
        """Return the distances of neighbours, and no others."""
        from scipy.sparse import coo_matrix

        own = np.arange(len(X))
        found = [(own, own, np.zeros(len(X)))]
        for place, rest in enumerate(self.distance.rows(X)):
            near = np.flatnonzero(rest <= self.eps)
            one, others = np.full(len(near), place), place + 1 + near
            found += [(one, others, rest[near]), (others, one, rest[near])]
        rows, columns, values = (np.concatenate(part) for part in zip(*found, strict=True))
        return coo_matrix((values, (rows, columns)), shape=(len(X), len(X))).tocsr()


def _cut(joins: np.ndarray, rows: int) -> np.ndarray:
    """Return the clusters after some joins; each join makes a cluster with the next number."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    made = rows + np.arange(len(joins))
    size = rows + len(joins)
    pairs = (joins.ravel(), np.repeat(made, 2))
    graph = coo_matrix((np.ones(2 * len(joins), dtype=bool), pairs), shape=(size, size))
    return np.asarray(connected_components(graph, directed=False)[1][:rows], dtype=np.intp)


def _names() -> list[str]:
    from sklearn.metrics.pairwise import PAIRWISE_DISTANCE_FUNCTIONS
    from sklearn.neighbors import VALID_METRICS

    # "precomputed" is none, and these want a covariance, a power or places on a globe of the user
    other = {"precomputed", "mahalanobis", "haversine", "wminkowski", "seuclidean"}
    return sorted({*PAIRWISE_DISTANCE_FUNCTIONS, *VALID_METRICS["brute"]} - other)


def _need_clusters(head: str, count: int) -> None:
    if count < 1:
        raise DefinitionError(f"head: {head} needs n_clusters where the data have no classes.")
