"""Ulysses SentEval: heads on given vectors, 10 repetitions of 5 folds, 12 grid points each.

The original side is its training function ``kfold_train`` with its aggregates, on one process and
the CPU; loading of texts and encoding are left out, because Ulysses SentEval trains on vectors.
The Karat side is its ``UlyssesSentEval`` with the texts in a CSV file. It also writes a run folder.
``exact`` replays the original's folds and random numbers, so that the scores are equal.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
from recipe import Case, Patch, Recipe

DRIVERS = Path(__file__).resolve().parent.parent / "drivers"
#: rows, dimensions, classes, hidden units, mode, least ratio
CASES = [
    (1000, 384, 2, 0, "exact", 25),
    (1000, 384, 8, 0, "exact", 15),
    (1000, 384, 2, 0, "fast", 50),
    (1000, 384, 8, 0, "fast", 35),
    (1000, 384, 2, 256, "exact", 5),
    (1000, 1920, 4, 256, "exact", 5),
]
FILES = {"T1A": "hatebr_offensive_lang", "F2": "code_estatutes_cf88"}
REPEATS = os.environ.get("ULYSSES_REPEATS", "10")


def prepare(folder: Path) -> list[Case]:
    """Write vectors and texts of each size; return the cases."""
    return [_case(folder, *given) for given in CASES]


def _case(
    folder: Path, rows: int, width: int, classes: int, hidden: int, mode: str, goal: float
) -> Case:
    place = folder / f"{rows}-{width}-{classes}"
    task = "T1A" if classes == 2 else "F2"
    if not place.exists():
        place.mkdir()
        X, y = problem(rows, width, classes)
        np.savez(place / "rows.npz", X=X, y=y)
        table = pd.DataFrame({"text": [f"r{i}" for i in range(rows)], "label": y})
        table.to_csv(place / f"{FILES[task]}.csv")
    units = f", {hidden} hidden units" if hidden else ""
    given = [task, REPEATS, str(hidden)]
    original = ["{python}", str(DRIVERS / "ulysses_original.py"), "{source}"]
    return Case(
        f"heads, {rows} × {width} × {classes}{units}, {mode}",
        [*original, str(place / "rows.npz"), *given],
        ["{python}", str(DRIVERS / "ulysses_karat.py"), str(place), *given, mode],
        goal=goal,
        tolerance=1e-6 if mode == "exact" else 0.05,
    )


def problem(rows: int, width: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Return vectors with a realistic signal: scores around 0.6."""
    rng = np.random.default_rng(0)
    y = np.arange(rows) % classes
    centers = rng.standard_normal((classes, width)) * (2.2 / np.sqrt(width))
    return (rng.standard_normal((rows, width)) + centers[y]).astype(np.float32), y


RECIPE = Recipe(
    title="Ulysses SentEval",
    requirements=(
        "torch==2.13.0",
        "torchmetrics==1.9.0",
        "numpy==2.3.5",  # NumPy 2.4 and pandas 3 break the original's aggregates
        "pandas==2.3.3",
        "scikit-learn==1.9.1",
        "scipy==1.17.1",
        "tqdm==4.70.1",
    ),
    prepare=prepare,
    source="github.com/ulysses-camara/ulysses-senteval at commit 1b0ecbe",
    patches=(
        Patch(
            "ulysses_senteval/train.py",
            'fork_rng(devices=["cpu"])',
            "fork_rng(devices=[])",
            "PyTorch without CUDA refuses the device",
        ),
        Patch(
            "ulysses_senteval/assets.py",
            "import buscador\n",
            "",
            "downloads data, is not on PyPI",
        ),
    ),
    extras=("fast",),
)
