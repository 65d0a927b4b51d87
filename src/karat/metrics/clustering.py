"""Metrics of clusters against target classes; cluster numbers have no meaning.

Only the pairs (class, cluster) that occur are stored, which allows thousands of clusters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from karat.core.predictions import Predictions
from karat.metrics.metric import Undefined, metric


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
        left = -self.sizes @ np.log(self.sizes / self.cluster_sizes[self.clusters])
        whole = -class_sizes @ np.log(class_sizes / len(self.target))
        return float(min(max(1.0 - left / whole, 0.0), 1.0))


def _overlaps(predictions: Predictions) -> _Overlaps:
    truth = np.unique(predictions.target, return_inverse=True)[1]
    clusters, answers = np.unique(predictions.predictions, return_inverse=True)
    pairs, sizes = np.unique(truth * len(clusters) + answers, return_counts=True)
    return _Overlaps(truth, answers, *np.divmod(pairs, len(clusters)), sizes)


def _pairs(sizes: np.ndarray) -> int:
    return int((sizes * (sizes - 1) // 2).sum())
