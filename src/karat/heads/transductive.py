"""Heads that answer for the very items they are fitted on, without seeing the truth: clusterers."""

from __future__ import annotations

from typing import Any

from karat.errors import DefinitionError
from karat.registry import head


@head("kmeans")
def kmeans(
    n_clusters: int, batch_size: int = 32, n_init: int = 10, random_state: int | None = None
) -> Any:
    """Mini-batch k-means with as many clusters as there are classes."""
    if n_clusters < 1:
        raise DefinitionError("head: kmeans needs n_clusters where the data have no classes.")
    from sklearn.cluster import MiniBatchKMeans

    return MiniBatchKMeans(
        n_clusters=n_clusters, batch_size=batch_size, n_init=n_init, random_state=random_state
    )
