"""Inference time of a fitted model by batch size."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from karat.dataset import Dataset

#: number of timings per batch size; the median is reported
REPEATS = 5


def inference(
    answer: Callable[[Dataset], Any], test: Dataset, sizes: Sequence[int], seed: int
) -> dict[str, float]:
    """Return the seconds per batch by batch size; sizes above the test fold are omitted.

    >>> from karat.dataset import Dataset
    >>> import pandas as pd
    >>> data = Dataset.from_table(pd.DataFrame({"a": range(9), "y": range(9)}), "y", kind="numbers")
    >>> sorted(inference(lambda part: None, data, [1, 5, 100], seed=0))
    ['1', '5']
    """
    found = {}
    for size in sizes:
        if size > len(test):
            continue
        rng = np.random.default_rng([seed, size])
        taken = []
        for _ in range(REPEATS):
            part = test.take(rng.choice(len(test), size, replace=False))
            begun = time.perf_counter()
            answer(part)
            taken.append(time.perf_counter() - begun)
        found[str(size)] = float(np.median(taken))
    return found
