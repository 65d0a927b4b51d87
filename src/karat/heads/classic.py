"""Classic heads that need no training to speak of: nearest neighbours."""

from __future__ import annotations

from typing import Any

from karat.registry import head


@head("knn")
def knn(kind: str, n_neighbors: int = 5, weights: str = "uniform") -> Any:
    """Return the answer of the nearest train items: their vote, or their mean."""
    from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor

    chosen = KNeighborsClassifier if kind == "classes" else KNeighborsRegressor
    return chosen(n_neighbors=n_neighbors, weights=weights)
