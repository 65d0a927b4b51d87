"""Deduplication over all pairs of 10,000 rows, against scikit-learn's full matrix."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity
from threadpoolctl import threadpool_limits

from karat.dataset import Dataset
from karat.metrics.base import score
from karat.probes.duplicates import Duplicates
from karat.vectors import Vectors

ROWS, DIMENSIONS = 10_000, 64


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    rng = np.random.default_rng(0)
    entity = np.arange(ROWS) // 2
    means = rng.normal(size=(ROWS // 2, DIMENSIONS))
    matrix = (means[entity] + rng.normal(size=(ROWS, DIMENSIONS))).astype(np.float32)
    table = pd.DataFrame({"x": np.arange(ROWS), "entity": entity})
    data = Dataset.from_table(table, target="entity", name="rows", kind="classes")
    vectors = Vectors(matrix, np.arange(ROWS))

    def ours() -> float:
        return float(score("auc", Duplicates().answer(data, vectors))[0] or 0)

    def theirs() -> float:
        similarities = cosine_similarity(matrix)
        a, b = np.triu_indices(ROWS, 1)
        return float(roc_auc_score(entity[a] == entity[b], similarities[a, b]))

    with threadpool_limits(1):
        (value, seconds, memory), (other, their_seconds, their_memory) = map(_cost, (ours, theirs))
    assert abs(value - other) < 1e-5, (value, other)
    against = "scikit-learn's full matrix and roc_auc_score"
    yield f"deduplication of {ROWS:,} rows, CPU", seconds / their_seconds, 1, "×", against
    yield "the same, peak memory", memory / their_memory, 0.2, "×", against


def _cost(function: Callable[[], float]) -> tuple[float, float, float]:
    begun = time.process_time()
    value = function()
    seconds = time.process_time() - begun
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return value, seconds, float(peak)
