"""Deduplication over all pairs of 10,000 rows, against scikit-learn's full matrix; and of 50,000.

Called as a script, it compares all pairs of the many rows and prints the process's peak memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import cosine_similarity
from threadpoolctl import threadpool_limits

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.metrics.metric import score
from karat.probes.retrieval import Duplicates

ROWS, DIMENSIONS = 10_000, 64
MANY_ROWS, MANY_DIMENSIONS = 50_000, 128


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    data, vectors = _rows(ROWS, DIMENSIONS)
    matrix, entity = vectors.matrix, np.asarray(data.target)

    def ours() -> float:
        return _auc(data, vectors)

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
    printed = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True)
    what = f"deduplication of {MANY_ROWS:,} rows, peak memory"
    yield what, float(printed.stdout), 1000, "MB", f"{MANY_ROWS**2 * 4 / 1e9:.0f} GB of all cosines"


def _rows(rows: int, dimensions: int) -> tuple[Dataset, Vectors]:
    """Return rows of which every two are one thing, and their vectors."""
    rng = np.random.default_rng(0)
    entity = np.arange(rows) // 2
    means = rng.normal(size=(rows // 2, dimensions))
    matrix = (means[entity] + rng.normal(size=(rows, dimensions))).astype(np.float32)
    table = pd.DataFrame({"x": np.arange(rows), "entity": entity})
    data = Dataset.from_table(table, target="entity", name="rows", kind="classification")
    return data, Vectors(matrix, np.arange(rows))


def _auc(data: Dataset, vectors: Vectors) -> float:
    return float(score("auc", Duplicates().answer(data, vectors))[0] or 0)


def _cost(function: Callable[[], float]) -> tuple[float, float, float]:
    begun = time.process_time()
    value = function()
    seconds = time.process_time() - begun
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return value, seconds, float(peak)


if __name__ == "__main__":
    with threadpool_limits(1):
        _auc(*_rows(MANY_ROWS, MANY_DIMENSIONS))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6)  # KiB on Linux
