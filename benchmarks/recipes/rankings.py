"""Ranking metrics of scored lists: pytrec_eval, ir_measures and ranx.

Both sides get 2,000 lists of 1,000 scored documents in memory, each in the form that it takes:
dictionaries for the originals, arrays for Karat. Loading them and imports are not counted; ranx has
compiled its loops before. Each side is called three times, and the fastest counts.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from recipe import Case, Recipe

DRIVERS = Path(__file__).resolve().parent.parent / "drivers"
LISTS, DOCUMENTS = 2_000, 1_000
#: libraries, and how many times faster Karat should be
GOALS = {"pytrec_eval": 3.0, "ir_measures": 3.0, "ranx": 10.0}


def prepare(folder: Path) -> list[Case]:
    """Write the scores and relevances; return the cases."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(LISTS, DOCUMENTS))
    relevant = rng.random(scores.shape) < 0.015
    relevant[np.arange(LISTS), rng.integers(DOCUMENTS, size=LISTS)] = True
    path = folder / "lists.npz"
    np.savez(path, scores=scores + 0.8 * relevant, relevant=relevant)
    what = f"nDCG@10, MAP, MRR, R@100, P@10 of {LISTS:,} × {DOCUMENTS:,} scored lists"
    driver = [str(DRIVERS / "rankings.py"), str(path)]
    return [
        Case(
            f"{name}, {what}",
            ["{python}", *driver, name],
            [sys.executable, *driver, "karat"],
            goal,
            tolerance=1e-6,  # ranx and pytrec_eval add 32-bit numbers in places
            quick=True,
        )
        for name, goal in GOALS.items()
    ]


RECIPE = Recipe(
    title="Rankings",
    requirements=("pytrec-eval-terrier==0.5.11", "ir-measures==0.4.3", "ranx==0.3.21"),
    prepare=prepare,
    quick=True,
)
