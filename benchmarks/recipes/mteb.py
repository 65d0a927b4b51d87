"""MTEB's evaluators: few-shot classification, pair classification and retrieval on given vectors.

Both sides get the same vectors, labels and draws, so that nothing is encoded. Both run their
public function, ``mteb.evaluate`` and ``karat.evaluate``, after its imports and after a first call
on a small problem. The CPU time of that call is compared: with everything it does ("whole"), and
without the way of the texts to the encoder and of the vectors back ("scoring"): the data loaders
and ``encode`` of mteb; the hashes and the cache of Karat. Karat writes its run folder in both; mteb
writes no files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
from recipe import Case, Recipe

DRIVERS = Path(__file__).resolve().parent.parent / "drivers"
DIMENSIONS = 384


def classification(rng: np.random.Generator, scale: float) -> dict[str, np.ndarray]:
    """Return texts of ten classes, 2,000 to draw from and 4,000 to test."""
    pool = int(2_000 * scale)
    labels = rng.integers(10, size=3 * pool)
    means = rng.normal(size=(10, DIMENSIONS))
    vectors = 0.2 * means[labels] + rng.normal(size=(len(labels), DIMENSIONS))
    return {"vectors": vectors.astype(np.float32), "labels": labels, "pool": np.array(pool)}


def pairs(rng: np.random.Generator, scale: float) -> dict[str, np.ndarray]:
    """Return 10,000 pairs of texts, similar or not."""
    labels = rng.integers(2, size=int(10_000 * scale))
    first = rng.normal(size=(len(labels), DIMENSIONS))
    second = np.where(labels == 1, 0.12, 0.0)[:, None] * first + rng.normal(size=first.shape)
    return {"vectors": np.concatenate([first, second]).astype(np.float32), "labels": labels}


def retrieval(rng: np.random.Generator, scale: float) -> dict[str, np.ndarray]:
    """Return 1,000 queries with one to five answers each among 20,000 documents."""
    queries, documents = int(1_000 * scale), int(20_000 * scale)
    asked = np.repeat(np.arange(queries), rng.integers(1, 6, size=queries))
    wanted = np.concatenate([rng.choice(documents, n, replace=False) for n in np.bincount(asked)])
    vectors = rng.normal(size=(documents + queries, DIMENSIONS))
    np.add.at(vectors, documents + asked, 0.2 * vectors[wanted])
    numbers = {"documents": np.array(documents), "asked": asked, "wanted": wanted}
    return {"vectors": vectors.astype(np.float32), **numbers}


PROBLEMS: dict[str, tuple[str, Callable[..., dict[str, np.ndarray]], float]] = {
    "classification": ("few-shot classification, 10 draws, 4,000 test texts", classification, 50.0),
    "pairs": ("pair classification, 10,000 pairs, four measures", pairs, 8.0),
    "retrieval": ("retrieval, 1,000 queries, 20,000 documents", retrieval, 8.0),
}


def prepare(folder: Path) -> list[Case]:
    """Write the problems, and a small one of each for the first call."""
    cases = []
    for number, (name, (title, make, goal)) in enumerate(PROBLEMS.items()):
        for suffix, scale in (("", 1.0), ("-small", 0.1)):
            np.savez(folder / f"{name}{suffix}.npz", **make(np.random.default_rng(number), scale))
        for count in ("whole", "scoring"):
            sides = (
                ["{python}", str(DRIVERS / f"mteb_{side}.py"), name, str(folder), count]
                for side in ("original", "karat")
            )
            cases.append(Case(f"{title}, {count}", *sides, goal=goal, tolerance=1e-6))
    return cases


RECIPE = Recipe(
    title="mteb 2.26.24",
    requirements=("torch==2.13.0", "mteb==2.26.24", "datasets==5.2.0"),
    prepare=prepare,
)
