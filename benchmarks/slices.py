"""How often a planted weakness is found first, and how often a slice is claimed without one.

python benchmarks/slices.py [SIMULATIONS]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd

from karat.analysis.items import TaskItems
from karat.analysis.slices import (
    AUTO,
    estimate_slices,
    held_out,
    make_slices,
    propose,
)
from karat.stats.paired_tests import ALPHA, benjamini_hochberg

SIMULATIONS = 100
FOLDS = 5
#: error rate of both models
ERROR = 0.15
PLANTED = ("plan = plus", "age > ", "class = b", "note is missing", "length > ")
#: name, items, error rate of the first model in the planted slice (None: no weakness), kind
SETTINGS = [
    ("planted, two models, 15 % to 40 % errors", 2000, 0.40, "equal"),
    ("planted, two models, 15 % to 40 % errors", 1000, 0.40, "equal"),
    ("planted, two models, 15 % to 30 % errors", 2000, 0.30, "equal"),
    ("planted, one model, 15 % to 40 % errors", 1000, 0.40, "one"),
    ("planted, one model, one fold, 15 % to 40 % errors", 1000, 0.40, "holdout"),
    ("null, two equal models", 1000, None, "equal"),
    ("null, two equal models with 2 % errors", 1000, None, "rare"),
    ("null, two models, one worse by 0.1 everywhere", 1000, None, "worse"),
    ("null, two models, numeric losses", 1000, None, "numbers"),
    ("null, two models, noise differs between slices", 1000, None, "noise"),
    ("null, two equal models, by the column city", 1000, None, "column"),
    ("null, one model", 1000, None, "one"),
    ("null, one model, one fold", 300, None, "holdout"),
]


def items(rng: np.random.Generator, count: int, folds: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return keys, folds and classes of items, and their cells as texts."""
    age = rng.normal(40, 12, count)
    note = np.where(rng.random(count) < 0.2, "", rng.choice(["short", "mid"], count))
    cells = {
        "plan": rng.choice(["basic", "plus", "pro", "max"], count, p=[0.4, 0.2, 0.2, 0.2]),
        "city": rng.choice(list("ABCDEFGHIJ"), count),
        "age": [f"{value:.1f}" for value in age],
        "income": [f"{value:.0f}" for value in age * 1000 + rng.normal(0, 9000, count)],
        "note": note,
        **{f"x{i}": [f"{value:.3f}" for value in rng.normal(size=count)] for i in range(8)},
        "characters": rng.integers(10, 400, count).astype(str),
    }
    keys = np.arange(count).astype(str).astype(object)
    table = pd.DataFrame(
        {
            "key": keys,
            "fold": np.arange(count) % folds,
            "target": rng.choice(list("abc"), count, p=[0.5, 0.25, 0.25]),
        }
    )
    return table, pd.DataFrame(cells, index=keys)


def losses(rng: np.random.Generator, count: int, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the losses of two models without a weakness; their errors are correlated."""
    hard = rng.random(count)
    if kind == "numbers":
        shared = rng.gamma(1.0, 1.0, count)
        return shared + rng.gamma(0.5, 1.0, count), shared + rng.gamma(0.5, 1.0, count)
    rate = 0.02 if kind == "rare" else ERROR
    rates = (rate + (0.1 if kind == "worse" else 0.0), rate)
    one, other = (
        (np.where(rng.random(count) < 0.5, hard, rng.random(count)) < each) for each in rates
    )
    return one.astype(float), other.astype(float)


def simulate(seed: int, count: int, weak: float | None, kind: str) -> tuple[bool, bool]:
    """Return whether any slice is claimed, and whether the planted one is the first."""
    rng = np.random.default_rng(seed)
    paired = kind not in ("one", "holdout")
    table, texts = items(rng, count, 1 if kind == "holdout" else FOLDS)
    one, other = losses(rng, count, kind)
    found = TaskItems("t", "error", table, texts)
    slices = make_slices(found, "city" if kind == "column" else AUTO)
    if kind == "noise":
        noisy = next(each.inside for each in slices if each.name == "plan = plus")
        one = np.where(noisy, 4.0, 0.5) * rng.normal(size=count)
        other = np.zeros(count)
    name = PLANTED[seed % len(PLANTED)]
    if weak is not None:
        inside = next(each.inside for each in slices if each.name.startswith(name))
        one = np.where(inside, rng.random(count) < weak, one).astype(float)
    values = one - other if paired else one
    if kind == "column":  # all slices of one feature are tested on all items
        test = np.ones(count, dtype=bool)
        proposed = [(each, 1 if values[each.inside].mean() > 0 else -1) for each in slices]
    else:
        test = held_out(table["fold"].to_numpy())
        proposed = propose(values, slices, ~test, paired)
    tested = estimate_slices(values, proposed, test, paired)
    if not tested:
        return False, False
    p = np.array([each.p for each in tested])
    best = tested[int(np.argmin(p))]
    claimed = bool((benjamini_hochberg(p) < ALPHA).any())
    return claimed, claimed and best.sign > 0 and best.slice.name.startswith(name)


def rates(simulations: int) -> Iterator[tuple[str, int, float, float]]:
    for name, count, weak, kind in SETTINGS:
        found = [simulate(seed, count, weak, kind) for seed in range(simulations)]
        claimed, first = np.mean(found, axis=0)
        yield name, count, float(claimed), float(first) if weak else float("nan")


def main() -> None:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else SIMULATIONS
    begun = time.process_time()
    print("| setting | items | a slice is claimed | the planted one is first |")
    print("|---|---|---|---|")
    for name, count, claimed, first in rates(simulations):
        right = "–" if np.isnan(first) else f"{100 * first:.1f} %"
        print(f"| {name} | {count:,} | {100 * claimed:.1f} % | {right} |")
    spent = time.process_time() - begun
    print(f"\n{simulations} simulations each, {spent:.0f} s of CPU time")


if __name__ == "__main__":
    main()
