"""Do gates keep the error rates that ``karat gate --calibrate`` states? Simulated.

The truth is known. Each baseline is trained five times, and the error rates are calibrated from
these runs. Then gates compare the baseline with a new training of the same model, and with models
that are worse on every task by 1, 2 and 3 margins. Items: right and wrong answers; two trainings
disagree on 4 % of them. Trainings: the same, but some trainings are better than others by more than
the items explain (standard deviation 0.004). Folds: scores without stored predictions, whose noise
is correlated because folds share training rows.

    python benchmarks/gate.py [--gates N] [--baselines N]

Each cell is the stated rate (mean over baselines, ± its standard deviation between baselines) and
the observed one. "ok": the false alarms are not above the 95 % binomial interval of the stated
rate, and the power for each loss is within 5 points of the stated one. "yes (all)": the false
alarms are above this interval, but not above the one that is corrected for the number of rows.
The second table: after how many of ten tasks with items the run of a new model ends.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import product

import numpy as np
from scipy.stats import binom

from karat.ext.decide.gate import (
    ANYTIME,
    FoldNoise,
    ItemNoise,
    decide,
    fold_noise,
    item_noises,
    simulate_gates,
)
from karat.ext.decide.racing import loss_e_process
from karat.stats.paired_tests import ALPHA, MeanDifference, corrected_t

MARGIN = 0.01
RUNS = 5
#: simulated gates per baseline and loss, from which the rates are stated
SIMULATIONS = 50
ITEMS = 1000
#: share of wrong answers, and of items on which an answer depends on the training
WRONG, UNSTABLE = 0.1, 0.04
#: standard deviation, between trainings, of the share of these items that are answered correctly
TRAINING = 0.05
FOLD_NOISE = 0.01
#: settings: evidence, numbers of tasks, numbers of folds
SETTINGS = (
    ("items", (1, 3, 10), (1, 5, 10)),
    ("trainings", (1, 3, 10), (5,)),
    ("folds", (1, 3, 10), (1, 5, 10)),
)
ROWS = sum(len(tasks) * len(folds) for _, tasks, folds in SETTINGS)


class Items:
    """A task of right and wrong answers, some of which depend on the training."""

    def __init__(self, folds: int, rng: np.random.Generator) -> None:
        self.folds = folds
        self.stable = rng.random(ITEMS) > WRONG
        # two trainings answer such an item in two ways with probability 1/2
        self.unstable = rng.random(ITEMS) < 2 * UNSTABLE

    def gains(self, rng: np.random.Generator, runs: int) -> np.ndarray:
        """Return the right answers of trainings, runs × items."""
        return np.where(self.unstable, rng.random((runs, ITEMS)) < 0.5, self.stable).astype(float)

    def difference(self, rng: np.random.Generator, loss: float) -> MeanDifference:
        """Return the difference of a new model, as a gate computes it from stored answers."""
        base, new = self.gains(rng, 2)
        # the new model is wrong where the baseline is right, on a share of the items
        apart = np.where(rng.random(ITEMS) < loss, -1.0, new - base)
        mean = np.mean([part.mean() for part in np.array_split(apart, self.folds)])
        error = float(apart.std(ddof=1)) / np.sqrt(ITEMS)
        return MeanDifference(float(mean), error, ITEMS - 1, 1 / ITEMS)


class Trainings(Items):
    """Items of which some trainings answer more correctly than others."""

    def gains(self, rng: np.random.Generator, runs: int) -> np.ndarray:
        """Return the right answers of trainings, runs × items."""
        chance = 0.5 + TRAINING * rng.standard_normal((runs, 1))
        return np.where(self.unstable, rng.random((runs, ITEMS)) < chance, self.stable) * 1.0


class Folds:
    """A task with the scores of folds only."""

    def __init__(self, folds: int, rng: np.random.Generator) -> None:
        self.folds = folds
        self.ratio = 1 / (folds - 1) if folds > 1 else 0.25

    def _scores(self, rng: np.random.Generator) -> np.ndarray:
        shared = 1 / self.folds if self.folds > 1 else 0.0
        noise = np.sqrt(shared) * rng.normal() + np.sqrt(1 - shared) * rng.normal(size=self.folds)
        return FOLD_NOISE / np.sqrt(2) * noise

    def noise(self, rng: np.random.Generator) -> FoldNoise:
        """Return the noise that is estimated from several runs."""
        return fold_noise(np.array([self._scores(rng) for _ in range(RUNS)]), self.ratio)

    def difference(self, rng: np.random.Generator, loss: float) -> MeanDifference:
        """Return the difference of a new model, as a gate computes it from scores."""
        tested = corrected_t(self._scores(rng) - self._scores(rng) - loss, self.ratio)
        return MeanDifference(float(tested.mean), float(tested.error), max(self.folds - 1, 1))


Task = Items | Folds
KINDS: dict[str, type[Task]] = {"items": Items, "trainings": Trainings, "folds": Folds}


def gates(tasks: Sequence[Task], loss: float, number: int, rng: np.random.Generator) -> float:
    """Return the share of gates that fail."""
    failed = 0
    for _ in range(number):
        differences = [task.difference(rng, loss) for task in tasks]
        failed += decide(differences, MARGIN).outcome == "failed"
    return failed / number


def row(name: str, shape: tuple[int, int], number: int, baselines: int) -> tuple[list[str], str]:
    """Return the stated and the observed rates of gates on tasks × folds, and if they agree."""
    rng = np.random.default_rng([*shape, list(KINDS).index(name)])
    stated, observed = [], []
    for seed in range(baselines):
        tasks = [KINDS[name](shape[1], rng) for _ in range(shape[0])]
        rates = simulate_gates(_noises(tasks, rng), MARGIN, simulations=SIMULATIONS, seed=seed)
        stated.append(rates["failed"].to_numpy())
        rates_of_losses = (
            gates(tasks, factor * MARGIN, number // baselines, rng) for factor in range(4)
        )
        observed.append(list(rates_of_losses))
    mean, seen = np.mean(stated, axis=0), np.mean(observed, axis=0)
    # without the error of the simulation
    spread = np.sqrt(np.maximum(np.var(stated, axis=0) - mean * (1 - mean) / SIMULATIONS, 0))
    one, all_rows = (binom.ppf(1 - 0.025 / n, number, mean[0]) / number for n in (1, ROWS))
    fine = "yes" if seen[0] <= one else "yes (all)" if seen[0] <= all_rows else "no"
    return [
        f"{100 * a:.1f} ± {100 * s:.1f}, {100 * b:.1f} %"
        for a, s, b in zip(mean, spread, seen, strict=True)
    ], fine if np.abs(seen - mean)[1:].max() <= 0.05 else "no"


def _noises(tasks: Sequence[Task], rng: np.random.Generator) -> list[ItemNoise] | list[FoldNoise]:
    """Return the noise that is estimated from several runs of each task."""
    if isinstance(tasks[0], Folds):
        return [task.noise(rng) for task in tasks if isinstance(task, Folds)]
    gains = [task.gains(rng, RUNS) for task in tasks if isinstance(task, Items)]
    return item_noises(gains, [(1.0, 1 / ITEMS, True)] * len(gains))


def stopped_after(loss: float, number: int, tasks: int = 10) -> np.ndarray:
    """Return after how many tasks runs end, because the gate fails whatever follows."""
    rng, ended_after = np.random.default_rng(0), np.full(number, tasks)
    for run in range(number):
        wealth, differences = np.zeros(0), []
        for done in range(1, tasks):
            base, new = Items(1, rng).gains(rng, 2)
            apart = np.where(rng.random(ITEMS) < loss, -1.0, new - base)
            error = float(apart.std(ddof=1)) / np.sqrt(ITEMS)
            differences.append(MeanDifference(float(apart.mean()), error, ITEMS - 1, 1 / ITEMS))
            wealth = np.append(wealth, apart)
            worst = min(one.p_below(-MARGIN) for one in differences)
            if tasks * worst < ALPHA or loss_e_process(wealth, MARGIN)[-1] >= 1 / ANYTIME:
                ended_after[run] = done
                break
    return ended_after


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gates", type=int, default=1000)
    parser.add_argument("--baselines", type=int, default=100)
    arguments = parser.parse_args()
    print("| evidence | tasks | folds | false alarms | loss 0.01 | loss 0.02 | loss 0.03 | ok |")
    print("|---|---|---|---|---|---|---|---|")
    for name, *sizes in SETTINGS:
        for shape in product(*sizes):
            shares, fine = row(name, (shape[0], shape[1]), arguments.gates, arguments.baselines)
            cells = " | ".join([*map(str, shape), *shares, fine])
            print(f"| {name} | {cells} |", flush=True)
    print("\n| true loss | ended early | median number of tasks, of 10 |\n|---|---|---|")
    for loss in (0.0, 0.01, 0.02, 0.03, 0.05):
        tasks = stopped_after(loss, arguments.gates // 5)
        print(
            f"| {loss:g} | {100 * np.mean(tasks < 10):.1f} % | {np.median(tasks):g} |", flush=True
        )


if __name__ == "__main__":
    main()
