"""CPU time of a leaderboard over a million scores."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

import karat

ALL = ["elo", "borda", "wins", "score", "median", "tasks", "costs"]


def scores(models: int, tasks: int, folds: int, metrics: tuple[str, ...]) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    index = pd.MultiIndex.from_product(
        [
            [f"task{i}" for i in range(tasks)],
            [f"model{i}" for i in range(models)],
            range(folds),
            metrics,
        ],
        names=["task", "model", "fold", "metric"],
    )
    table = index.to_frame(index=False)
    return table.assign(
        repeat=0, corruption="", severity=0.0, epoch=-1, value=rng.random(len(table))
    )


def measure() -> Iterator[tuple[str, float, float, str, str]]:
    table = scores(50, 200, 50, ("acc", "rmse"))
    karat.leaderboard(table.head(1000), columns=ALL)  # not to measure the imports
    begun = time.process_time()
    karat.leaderboard(table)
    seconds = time.process_time() - begun
    yield f"leaderboard of {len(table):,} scores, CPU", seconds, 3, "s", "nothing"
    square = scores(100, 100, 10, ("acc",))
    for what, part in {"": square, ", a third missing": _with_holes(square)}.items():
        begun = time.process_time()
        karat.leaderboard(part, columns=ALL)
        seconds = time.process_time() - begun
        yield f"100 × 100 with every rating{what}, CPU", seconds, 2, "s", "nothing"


def _with_holes(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table without a third of its cells, all their folds."""
    rng = np.random.default_rng(1)
    cells = table.groupby(["task", "model"], sort=False).ngroup()
    return table[rng.random(cells.max() + 1)[cells] > 1 / 3]
