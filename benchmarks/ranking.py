"""Rankings of 10,000 rows by 2,000 of them, against a full matrix of scores, sorted in NumPy."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors
from karat.metrics.metric import score
from karat.probes.retrieval import SameClass

QUERIES, ROWS, DIMENSIONS, CLASSES, SEED = 2_000, 10_000, 128, 10, 0


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    rng = np.random.default_rng(0)
    labels = rng.integers(CLASSES, size=ROWS)
    means = rng.normal(size=(CLASSES, DIMENSIONS))
    matrix = 0.3 * means[labels] + rng.normal(size=(ROWS, DIMENSIONS))
    table = pd.DataFrame({"x": np.arange(ROWS), "label": labels})
    data = Dataset.from_table(table, target="label", name="rows", kind="classification")
    vectors = Vectors(matrix, np.arange(ROWS))

    def ours() -> float:
        probe = SameClass(queries=QUERIES, random_state=SEED)
        probe.fit(data.blind(), vectors)
        return float(score("map", probe.answer(data, vectors))[0] or 0)

    def theirs() -> float:
        asked = np.sort(np.random.default_rng(SEED).choice(ROWS, QUERIES, replace=False))
        return _plain(matrix, labels, asked)

    with threadpool_limits(1):
        # in turns, so that whatever else this machine does slows both
        seconds = np.array([[_seconds(ours), _seconds(theirs)] for _ in range(5)]).min(axis=0)
        (value, memory), (other, their_memory) = _memory(ours), _memory(theirs)
    assert abs(value - other) < 1e-9, (value, other)
    against = "the whole matrix of scores and argsort, in NumPy"
    what = f"MAP of {QUERIES:,} queries among {ROWS:,} rows, CPU"
    yield what, seconds[0] / seconds[1], 1, "×", against
    yield "the same, peak memory", memory / their_memory, 0.5, "×", against


def _plain(matrix: np.ndarray, labels: np.ndarray, asked: np.ndarray) -> float:
    """Return the mean average precision as people write it down: score, sort, count."""
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    scores = unit[asked] @ unit.T
    relevant = labels[asked][:, None] == labels
    each = np.arange(len(asked))
    scores[each, asked], relevant[each, asked] = -np.inf, False
    hit = np.take_along_axis(relevant, np.argsort(-scores, axis=1), axis=1)
    precision = np.cumsum(hit, axis=1) / np.arange(1, len(labels) + 1)
    return float(np.mean((precision * hit).sum(axis=1) / hit.sum(axis=1)))


def _seconds(function: Callable[[], float]) -> float:
    begun = time.process_time()
    function()
    return time.process_time() - begun


def _memory(function: Callable[[], float]) -> tuple[float, float]:
    """Return the value and the peak of memory."""
    tracemalloc.start()
    value = function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return value, float(peak)
