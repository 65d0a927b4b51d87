"""Ulysses SentEval: heads on given vectors, 10 repetitions of 5 folds, 12 grid points in each.

The original side is its own training function, ``kfold_train``, on one process and the CPU.
Loading texts, encoding and confidence intervals are left out on both sides. ``exact`` replays the
original's folds and random numbers, so that the scores are equal; ``fast`` has its own.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from recipe import Case, Recipe

DRIVERS = Path(__file__).resolve().parent.parent / "drivers"
REPEATS = "10"
#: rows, dimensions, classes, hidden units, mode, goal
CASES = [
    (1000, 384, 2, 0, "exact", 25),
    (1000, 384, 2, 0, "fast", 50),
    (1000, 384, 8, 0, "exact", 15),
    (1000, 384, 8, 0, "fast", 35),
    (1000, 384, 2, 256, "exact", 5),
    (1000, 1920, 4, 256, "exact", 5),
]


def prepare(folder: Path) -> list[Case]:
    """Write the vectors of each size; return the cases."""
    return [_case(folder, given[:4], *given[4:]) for given in CASES]


def _case(folder: Path, size: tuple[int, int, int, int], mode: str, goal: float) -> Case:
    rows, width, classes, hidden = size
    path = folder / f"{rows}-{width}-{classes}.npz"
    if not path.exists():
        X, y = problem(rows, width, classes)
        np.savez(path, X=X, y=y)
    task = "T1A" if classes == 2 else "F2"
    given = [REPEATS, str(hidden)]
    units = f", {hidden} hidden units" if hidden else ""
    original = ["{python}", str(DRIVERS / "ulysses_original.py"), "{source}", str(path), task]
    return Case(
        f"heads, {rows} × {width} × {classes}{units}, {mode}",
        [*original, *given],
        ["{python}", str(DRIVERS / "ulysses_karat.py"), str(path), *given, mode],
        goal=goal,
        tolerance=1e-5 if mode == "exact" else 0.05,
    )


def problem(rows: int, width: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors with noise, so that heads neither fail nor are perfect."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % classes
    centers = rng.standard_normal((classes, width)) * (2.2 / math.sqrt(width))
    return (rng.standard_normal((rows, width)) + centers[y]).astype(np.float32), y


RECIPE = Recipe(
    title="Ulysses SentEval",
    requirements=(
        "torch==2.13.0",
        "torchmetrics==1.9.0",
        "numpy==2.3.5",
        "pandas==2.3.3",
        "scikit-learn==1.9.1",
        "scipy==1.17.1",
        "tqdm==4.70.1",
    ),
    prepare=prepare,
    source="github.com/ulysses-camara/ulysses-senteval at commit 1b0ecbe",
    extras=("fast",),
)
