"""How often the interval of ``karat leaderboard --next`` contains the rank on a task held out.

A task is held out at random, and the interval, the chance to be first and the loss of each model
are computed from some of the other tasks. Further columns: the interval of the mean rank, which
answers another question, and the loss of the first model of the leaderboard.

    python benchmarks/next_task.py multabench/leaderboard/models
    python benchmarks/next_task.py results_{small,medium}-8c4h{,_ref}.csv
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass

import numpy as np
import pandas as pd

import karat
from karat.analysis.next_task import alike_tasks, table_sizes, task_classes, task_losses
from karat.analysis.score_matrix import RankedScores, apply_missing_rule
from karat.results.load import gather_scores, make_cells
from karat.stats.conformal_ranks import (
    FEWEST_SEEN,
    alike_rank_bounds,
    mean_loss,
    next_rank_bounds,
    next_ranks,
    ranks_among_all,
)
from karat.stats.ranking import rank_each, rank_models

SEEN = (19, 30, 50, 79)
#: limits of the predicted chances to be first
CHANCES = (0.0, 0.02, 0.1, 0.3, 1.0)


@dataclass(frozen=True)
class Collection:
    """The ranks and losses of models on tasks, and the kinds and sizes of the tasks."""

    scores: RankedScores
    ranks: np.ndarray
    losses: np.ndarray
    kinds: np.ndarray
    sizes: np.ndarray

    @property
    def whole(self) -> np.ndarray:
        """The places of tasks that all models take: their ranks are among all models."""
        return np.flatnonzero(~np.isnan(self.ranks).any(axis=0))


def read(files: list[str]) -> Collection:
    """Return the results of another system."""
    with tempfile.TemporaryDirectory() as folder:
        karat.import_results(files, folder)
        gathered = gather_scores(folder)
    scores = apply_missing_rule(make_cells(gathered, gathered.metrics), "worst")
    kinds, sizes = task_classes(scores.tasks, gathered.kinds, table_sizes(gathered.jobs))
    ranks = rank_each(scores.values, scores.takes)
    return Collection(scores, ranks, task_losses(scores)[0], kinds, sizes)


def draw(collection: Collection, seen: int, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return the places of tasks that are seen, and of the one that is held out."""
    held_out = int(rng.choice(collection.whole))
    others = np.delete(np.arange(collection.ranks.shape[1]), held_out)
    return rng.choice(others, seen, replace=False), held_out


def inside(low: np.ndarray, rank: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return which ranks are in their intervals, NaN where there is none."""
    return np.where(np.isnan(low), np.nan, (low <= rank) & (rank <= high))


def coverage(collection: Collection, draws: int) -> None:
    """Print the coverage of both intervals and the chances to be first, by the tasks seen."""
    rows, chances = [], []
    for seen in (count for count in SEEN if count < collection.ranks.shape[1]):
        rng, of_draws = np.random.default_rng(seen), []
        for _ in range(draws):
            places, new = draw(collection, seen, rng)
            ranks, rank = collection.ranks[:, places], collection.ranks[:, new]
            expected = next_ranks(ranks)
            mean = rank_models(list(-ranks.T[:, :, None]), ~np.isnan(ranks))
            first = int(np.nanargmin(mean.mean))
            won = (rank == rank.min()) / (rank == rank.min()).sum()
            chances.append(np.column_stack([expected.first, won]))
            of_draws.append(
                {
                    "covered": inside(expected.low, rank, expected.high),
                    "mean rank covers": inside(mean.low, rank, mean.high),
                    "width": expected.high - expected.low + 1,
                    "first of board: chance": expected.first[first],
                    "was first": won[first],
                    "loss": mean_loss(collection.losses[[first]][:, places])[0][0],
                    "lost": collection.losses[first, new],
                }
            )
        table = {name: [d[name] for d in of_draws] for name in of_draws[0]}
        lowest = np.nanmin(np.nanmean(table["covered"], axis=0))
        means = {name: np.nanmean(values) for name, values in table.items()}
        rows.append({"tasks seen": seen, "draws": draws, **means, "lowest model": lowest})
    print(pd.DataFrame(rows).round(3).to_string(index=False), end="\n\n")
    show_chances(np.concatenate(chances))


def show_chances(pairs: np.ndarray) -> None:
    """Print how often models were first, by their predicted chance."""
    table = pd.DataFrame(pairs, columns=["chance", "was first"]).dropna()
    table["predicted"] = pd.cut(table["chance"], list(CHANCES))
    by_chance = table.groupby("predicted", observed=True)
    summary = by_chance[["chance", "was first"]].mean()
    summary.insert(0, "cases", by_chance.size())
    print(summary.round(3).to_string(), end="\n\n")


def narrowing(collection: Collection, draws: int) -> None:
    """Print coverage and width of the intervals of alike tasks, from all tasks but one."""
    rows = []
    for kind, size, places, facts in alike_tasks(collection.kinds, collection.sizes):
        rng, of_draws = np.random.default_rng(0), []
        whole_places = np.intersect1d(places, collection.whole)
        for _ in range(draws if len(whole_places) > FEWEST_SEEN else 0):
            new = int(rng.choice(whole_places))
            others = np.delete(np.arange(collection.ranks.shape[1]), new)
            ranks, rank = ranks_among_all(collection.ranks[:, others]), collection.ranks[:, new]
            low, high = alike_rank_bounds(ranks, facts[others], facts[new])
            all_low, all_high = next_rank_bounds(ranks)
            covered = inside(low, rank, high), inside(all_low, rank, all_high)
            widths = high - low + 1, np.where(np.isnan(low), np.nan, all_high - all_low + 1)
            of_draws.append([*np.nanmean([*covered, *widths], axis=1), *_narrowest(*widths)])
        if of_draws:
            names = ("covered", "covered by that of all", "width", "width of all", "narrowest")
            means = dict(zip(names, np.mean(of_draws, axis=0), strict=True))
            narrower = 1 - means["width"] / means["width of all"]
            label = {"kind": kind or "any", "size": size or "any", "tasks": len(whole_places)}
            rows.append({**label, "draws": draws, **means, "narrower": narrower})
    if not rows:
        print(f"no kind and size of tasks has more than {FEWEST_SEEN}, but not all, of the tasks\n")
        return
    print(pd.DataFrame(rows).round(3).to_string(index=False), end="\n\n")


def _narrowest(width: np.ndarray, width_of_all: np.ndarray) -> list[float]:
    """Return by which share the interval of the model is narrower that gains most."""
    return [float(np.nanmax(1 - width / width_of_all))]


def explained(collection: Collection, draws: int) -> None:
    """Print how much of the variance of ranks kind and size explain on a task left out.

    If this is the part r and ranks vary alike everywhere, their spread is smaller by 1 - √(1 - r).
    """
    del draws
    facts = next((facts for *_, facts in alike_tasks(collection.kinds, collection.sizes)), None)
    if facts is None:
        return
    design = np.column_stack([np.ones(len(collection.whole)), facts[collection.whole]])
    penalty = np.diag([1e-9, *[2.0] * facts.shape[1]])
    fit = design @ np.linalg.solve(design.T @ design + penalty, design.T)
    ranks = collection.ranks[:, collection.whole]
    left_out = (ranks - ranks @ fit.T) / (1 - np.diag(fit))
    means = (ranks - ranks.mean(axis=1, keepdims=True)) * ranks.shape[1] / (ranks.shape[1] - 1)
    part = 1 - (left_out**2).sum(axis=1) / (means**2).sum(axis=1)
    numbers = f"mean {part.mean():.3f}, least {part.min():.3f}, most {part.max():.3f}"
    print(f"variance of ranks that kind and size explain, by model: {numbers}\n")


def skipping(collection: Collection, draws: int) -> None:
    """Print the coverage of the rank among all models if models skip tasks at random."""
    rows, complete = [], collection.ranks[:, collection.whole]
    models, tasks = complete.shape
    for name in ("none", "10 % of cells", "30 % of cells", "half the models skip half"):
        rng, of_draws = np.random.default_rng(0), []
        for _ in range(draws):
            order = rng.permutation(tasks)
            taken = rng.random((models, tasks - 1)) >= {"1": 0.1, "3": 0.3}.get(name[0], 0.0)
            if name.startswith("half"):
                skip = rng.random((models, tasks - 1)) < 0.5
                taken = ~(skip & (rng.permutation(models) < models // 2)[:, None])
            ranks = rank_each(list(-complete[:, order[1:]].T[:, :, None]), taken)
            expected, rank = next_ranks(ranks), complete[:, order[0]]
            covered = inside(expected.low, rank, expected.high)
            if not np.isnan(covered).all():
                width = np.nanmean(expected.high - expected.low + 1)
                of_draws.append((np.nanmean(covered), width))
        means = np.mean(of_draws, axis=0) if of_draws else (np.nan, np.nan)
        rows.append(
            {"skipped": name, "draws": len(of_draws), "covered": means[0], "width": means[1]}
        )
    print(pd.DataFrame(rows).round(3).to_string(index=False))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("files", nargs="+")
    parser.add_argument("--draws", type=int, default=300)
    arguments = parser.parse_args()
    collection = read(arguments.files)
    models, tasks = collection.ranks.shape
    print(
        f"{models} models, {tasks} tasks, {len(collection.whole)} of them taken by all", end="\n\n"
    )
    for part in (coverage, narrowing, explained, skipping):
        part(collection, arguments.draws)


if __name__ == "__main__":
    main()
