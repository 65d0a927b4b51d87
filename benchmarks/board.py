"""How long a leaderboard over a million scores takes."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

import karat

MODELS, TASKS, FOLDS, METRICS = 50, 200, 50, ("acc", "rmse")


def scores() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product(
        [
            [f"task{i}" for i in range(TASKS)],
            [f"model{i}" for i in range(MODELS)],
            range(FOLDS),
            METRICS,
        ],
        names=["task", "model", "fold", "metric"],
    )
    table = index.to_frame(index=False)
    return table.assign(
        repeat=0, corruption="", severity=0.0, epoch=-1, value=rng.random(len(table))
    )


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    table = scores()
    karat.leaderboard(table.head(1000))  # the imports are not what is measured
    begun = time.process_time()
    karat.leaderboard(table)
    seconds = time.process_time() - begun
    yield f"leaderboard of {len(table):,} scores, CPU", seconds, 3, "s", "nothing"
