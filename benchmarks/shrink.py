"""How faithful the subsets of karat shrink are to models that had no part in them.

A fifth of the models is left out at random. ``karat.shrink`` selects tasks and folds with the
others, and the share of pairs with a model left out that keep their order is measured. Random
subsets of the same size, and one fold of every task, are measured on the same pairs.

    python benchmarks/shrink.py multabench/leaderboard/models --keep-order 0.95 --repeats 40
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

import karat
from karat.analysis.score_matrix import apply_missing_rule
from karat.errors import DataError
from karat.ext.compat.convert import read_scores
from karat.ext.decide.shrink import order_kept
from karat.results.load import gather_scores, make_cells
from karat.stats.ranking import rank_each

DRAWS = 100


class Scores:
    """The mean ranks of all models by tasks and folds."""

    def __init__(self, table: pd.DataFrame) -> None:
        given = gather_scores(table)
        self.scores = apply_missing_rule(make_cells(given, given.metrics), "worst")
        self.models, self.tasks = self.scores.models, self.scores.tasks

    def means(self, folds: dict[str, int] | None = None) -> np.ndarray:
        """Return the mean ranks over tasks, each with its number of folds; by default all."""
        chosen = folds or {}
        places = [t for t, task in enumerate(self.tasks) if not folds or task in chosen]
        values = [self.scores.values[t][:, : chosen.get(self.tasks[t])] for t in places]
        return np.nanmean(rank_each(values, self.scores.takes[:, places]), axis=1)


def measure(table: pd.DataFrame, keep_order: float, rng: np.random.Generator) -> dict[str, float]:
    """Return the shares of one random choice of models left out."""
    every = Scores(table)
    out = rng.choice(len(every.models), len(every.models) // 5, replace=False)
    mask = np.isin(np.arange(len(every.models)), out)
    rest = table[~table["model"].isin([every.models[m] for m in out])]
    found = karat.shrink(None, rest, keep_order=keep_order)
    reference, folds = every.means(), max(found.tasks.values())

    def share(chosen: dict[str, int]) -> float:
        kept, pairs = order_kept(reference, every.means(chosen), mask)
        return float(kept) / pairs

    drawn = [rng.permutation(every.tasks)[: len(found.tasks)] for _ in range(DRAWS)]
    return {
        "jobs": found.jobs / found.all_jobs,
        "tasks": len(found.tasks),
        "folds": folds,
        "stated": found.kept,
        "measured": share(found.tasks),
        "random": float(np.mean([share(dict.fromkeys(map(str, d), folds)) for d in drawn])),
        "one fold of all": share(dict.fromkeys(every.tasks, 1)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--keep-order", type=float, action="append")
    parser.add_argument("--repeats", type=int, default=40)
    arguments = parser.parse_args()
    table = read_scores(arguments.files)
    names = (table["model"].nunique(), table["task"].nunique())
    print(f"{names[0]} models, {names[1]} tasks, {arguments.repeats} repeats")
    rows = []
    for share in arguments.keep_order or [0.9, 0.95, 0.98]:
        rng, found, impossible = np.random.default_rng(0), [], 0
        for _ in range(arguments.repeats):
            try:
                found.append(measure(table, share, rng))
            except DataError:
                impossible += 1
        rows.append({"keep_order": share, **pd.DataFrame(found).mean(), "impossible": impossible})
    print(pd.DataFrame(rows).round(4).to_string(index=False))


if __name__ == "__main__":
    main()
