"""Outlier detectors: heads that score each item without seeing the target."""

from __future__ import annotations

from typing import Any

import numpy as np

from karat.registry import head


class _NeighborDistance:
    def __init__(self, n_neighbors: int = 10) -> None:
        self.n_neighbors = n_neighbors

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one score per item; outliers have high scores."""
        from sklearn.neighbors import NearestNeighbors

        count = max(1, min(self.n_neighbors, len(X) - 1))
        distances, _ = NearestNeighbors(n_neighbors=count).fit(X).kneighbors()
        return np.asarray(distances.mean(axis=1))


class _Isolation:
    def __init__(self, n_estimators: int = 100, random_state: int | None = None) -> None:
        self.n_estimators = n_estimators
        self.random_state = random_state

    def outlier_scores(self, X: np.ndarray) -> np.ndarray:
        """Return one score per item; outliers have high scores."""
        from sklearn.ensemble import IsolationForest

        forest = IsolationForest(n_estimators=self.n_estimators, random_state=self.random_state)
        return -np.asarray(forest.fit(X).score_samples(X))


@head("knn-distance")
def knn_distance(n_neighbors: int = 10) -> Any:
    """Outlier score: mean distance to the nearest neighbors."""
    return _NeighborDistance(n_neighbors)


@head("isolation-forest")
def isolation_forest(n_estimators: int = 100, random_state: int | None = None) -> Any:
    """Isolation forest outlier score."""
    return _Isolation(n_estimators, random_state)
