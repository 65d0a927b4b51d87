"""Simulations with known truth of ``karat cheapest``: the rate of false verdicts, and the power.

Items: right and wrong answers of two models, which disagree on a share of the items; one task, or
fixed tasks. Folds: scores whose noise is correlated, because folds share training rows. Over ten
tasks, the true difference varies between tasks. Cheaper models are worse by exactly the margin
(every accepted one is an error), or equal to the reference (every accepted one is right).

    python benchmarks/cheapest.py [--runs N]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import numpy as np

from karat.ext.decide.cheapest import ACCEPTED, WORSE, judge, pool_tasks
from karat.stats.paired_tests import MeanDifference, corrected_t

MARGIN = 0.01
#: standard deviation of true differences between tasks
BETWEEN = 0.005
#: standard deviation of a difference of one fold
FOLD_NOISE = 0.01

Draw = Callable[[np.random.Generator, float], MeanDifference]


def on_items(rng: np.random.Generator, true: float, items: int, differing: float) -> MeanDifference:
    """Return the difference on items; ``differing`` is the share of items that one gets right."""
    share = max(differing, MARGIN, abs(true))
    win, loss = (share + true) / 2, (share - true) / 2
    wins, losses, _ = rng.multinomial(items, [win, loss, 1 - win - loss])
    mean = (wins - losses) / items
    variance = ((wins + losses) / items - mean**2) * items / (items - 1)
    return MeanDifference(mean, float(np.sqrt(variance / items)), items - 1, 1 / items)


def on_folds(rng: np.random.Generator, true: float, folds: int) -> MeanDifference:
    """Return the difference over folds, whose noise is correlated by 1 / folds."""
    shared = 1 / folds
    noise = np.sqrt(shared) * rng.normal() + np.sqrt(1 - shared) * rng.normal(size=folds)
    tested = corrected_t(true + FOLD_NOISE * noise, 1 / (folds - 1))
    return MeanDifference(float(tested.mean), float(tested.error), folds - 1)


def settings() -> Iterator[tuple[str, int, Draw]]:
    """Yield the name of the evidence, the number of tasks, and the difference on one task."""
    for tasks in (1, 3, 10):
        for items, differing in ((300, 0.0), (450, 0.0), (1000, 0.02), (3000, 0.05), (10_000, 0.1)):
            name = f"{items:,} items, {100 * max(differing, MARGIN):.0f} % differ"
            yield name, tasks, lambda rng, true, n=items, d=differing: on_items(rng, true, n, d)  # type: ignore[misc]
        for folds in (5, 10):
            yield f"{folds} folds", tasks, lambda rng, true, k=folds: on_folds(rng, true, k)  # type: ignore[misc]


def drawn(rng: np.random.Generator, true: float, tasks: int, draw: Draw) -> MeanDifference:
    """Return the mean difference of one cheaper model over all tasks."""
    between = rng.normal(0, BETWEEN, tasks) if tasks >= 6 else np.zeros(tasks)
    return pool_tasks([draw(rng, true + extra) for extra in between])


def rates(tasks: int, draw: Draw, runs: int) -> list[float]:
    """Return shares of answers: one or any of four models at the margin accepted; power; worse."""
    rng = np.random.default_rng([tasks, runs])
    false_one = false_four = power = worse = 0
    for _ in range(runs):
        four = [drawn(rng, -MARGIN, tasks, draw) for _ in range(4)]
        false_four += judge(four, MARGIN)["verdict"].isin(ACCEPTED).any()
        false_one += judge(four[:1], MARGIN)["verdict"].isin(ACCEPTED).any()
        equal = judge([drawn(rng, 0.0, tasks, draw)], MARGIN)["verdict"]
        power, worse = power + equal.isin(ACCEPTED).any(), worse + (equal == WORSE).any()
    return [count / runs for count in (false_one, false_four, power, worse)]


def best_of(models: int, items: int, gaps: np.ndarray, runs: int) -> tuple[float, float]:
    """Return how often equal models are called worse, or worse ones accepted, after a choice.

    The reference is the model with the best observed accuracy. ``gaps`` are the true differences to
    the best model; a model whose gap to the reference is the margin or more must not be accepted.
    """
    rng = np.random.default_rng([models, items])
    wrong_worse = wrong_accepted = 0
    for _ in range(runs):
        right = rng.random((models, items)) < (0.8 + gaps)[:, None]
        best = int(np.argmax(right.mean(axis=1)))
        others = [m for m in range(models) if m != best]
        differences = []
        for m in others:
            apart = right[m].astype(float) - right[best]
            error = float(apart.std(ddof=1)) / np.sqrt(items)
            differences.append(MeanDifference(float(apart.mean()), error, items - 1, 1 / items))
        verdicts = judge(differences, MARGIN, models)["verdict"].to_numpy()
        behind = np.array([gaps[best] - gaps[m] for m in others])
        wrong_worse += ((verdicts == WORSE) & (behind <= 0)).any()
        wrong_accepted += (np.isin(verdicts, ACCEPTED) & (behind >= MARGIN - 1e-9)).any()
    return wrong_worse / runs, wrong_accepted / runs


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=4000)
    runs = parser.parse_args().runs
    print("| tasks | evidence | false, 1 model | false, 4 models | power, equal | equal is worse |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, tasks, draw in settings():
        rates_of_setting = rates(tasks, draw, runs if tasks < 6 else runs // 2)
        shares = " | ".join(f"{100 * share:.1f} %" for share in rates_of_setting)
        print(f"| {tasks} | {name} | {shares} |", flush=True)
    heads = ("models", "items", "gap of the others", "an equal one is worse")
    print(f"\n| {' | '.join(heads)} | one at the margin is accepted |")
    print("| --- | --- | --- | --- | --- |")
    for models in (2, 5, 13):
        for items in (1000, 20_000):
            for gap in (0.0, MARGIN):
                gaps = np.append(0.0, np.full(models - 1, -gap))
                shares = best_of(models, items, gaps, runs // (10 if items > 5000 else 4))
                row = " | ".join(f"{100 * share:.1f} %" for share in shares)
                print(f"| {models} | {items:,} | {gap:g} | {row} |", flush=True)


if __name__ == "__main__":
    main()
