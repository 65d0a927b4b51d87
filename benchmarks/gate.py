"""Do gates keep the error rates that ``karat gate --calibrate`` states? Simulated.

The truth is known. Each baseline is trained five times (with three seeds of one hold-out: three
times), and the error rates are calibrated from these runs. Then gates compare the baseline with a
new training of the same model, and with models that are worse on every task by 1, 2 and 3 margins,
by the test of the verdict. Items: right and wrong answers; two trainings disagree on 4 % of them.
Trainings: the same, but some trainings are better than others by more than the items explain
(standard deviation 0.004 for the mean of all folds of a repeat). Folds: scores without stored
predictions, whose noise is correlated because folds share training rows.

    python benchmarks/gate.py [--gates N] [--baselines N] [--only items|trainings|folds]

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

from karat.analysis.item_tests import Fits, as_retrained, separate_pairs
from karat.analysis.stored_items import ItemValues
from karat.ext.decide.gate import ANYTIME, decide, simulate_gates
from karat.ext.decide.gate_noise import (
    FitDesign,
    FoldNoise,
    ItemNoise,
    fold_noise,
    item_noises,
)
from karat.ext.decide.racing import loss_e_process
from karat.stats.learner_tests import SeedNoise
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
ONE_FOLD, FIVE, TEN = FitDesign(), FitDesign(1, 5, ratio=1 / 4), FitDesign(1, 10, ratio=1 / 9)
REPEATED, SEEDS = FitDesign(10, 5, ratio=1 / 4), FitDesign(seeds=3)
#: settings: evidence, numbers of tasks, fits
SETTINGS = (
    ("items", (1, 3, 10), (ONE_FOLD, FIVE, TEN)),
    ("items", (1, 3), (REPEATED, SEEDS)),
    ("trainings", (1, 3), (FIVE, REPEATED, SEEDS)),
    ("folds", (1, 3, 10), (ONE_FOLD, FIVE, TEN)),
)
ROWS = sum(len(tasks) * len(designs) for _, tasks, designs in SETTINGS)


class Items:
    """A task of right and wrong answers, some of which depend on the training."""

    #: standard deviation, between trainings, of the share of unstable items answered correctly
    luck = 0.0

    def __init__(self, design: FitDesign, rng: np.random.Generator) -> None:
        self.design = design
        self.stable = rng.random(ITEMS) > WRONG
        # two trainings answer such an item in two ways with probability 1/2
        self.unstable = rng.random(ITEMS) < 2 * UNSTABLE
        self.fold = np.arange(ITEMS) % design.folds

    def gains(self, rng: np.random.Generator, runs: int) -> np.ndarray:
        """Return the right answers of trainings, runs × repeats × items; each fold has its own."""
        shape = (runs, self.design.repeats, self.design.folds)
        luck = self.luck * np.sqrt(self.design.folds) * rng.standard_normal(shape)
        right = rng.random((*shape[:2], ITEMS)) < 0.5 + luck[:, :, self.fold]
        return np.where(self.unstable, right, self.stable).astype(float)

    def noise(self, rng: np.random.Generator) -> np.ndarray:
        """Return the right answers of the runs of a baseline."""
        return self.gains(rng, self.design.seeds if self.design.seeds > 1 else RUNS)

    def difference(self, rng: np.random.Generator, loss: float) -> MeanDifference:
        """Return the difference of a new model, as a gate computes it from stored answers."""
        design = self.design
        new, *baseline = self.gains(rng, 1 + design.seeds)
        # the new model is wrong where the baseline is right, on a share of the items
        lost = rng.random(ITEMS) < loss
        means = np.array([np.where(lost, np.mean(baseline, axis=0) - 1, new), np.mean(baseline, 0)])
        of_seeds = SeedNoise.of(np.array(baseline)[:, 0])
        items = ItemValues(
            ["new", "baseline"],
            means[:, 0],
            items=ITEMS,
            independent=ITEMS,
            is_right=True,  # only p depends on it, which gates do not use
            seeds=as_retrained([SeedNoise(), of_seeds]),
        )
        scores = np.stack(
            [means[:, :, self.fold == fold].mean(axis=2) for fold in range(design.folds)], axis=2
        )
        repeats = np.repeat(np.arange(design.repeats), design.folds).tolist()
        fits = Fits(scores.reshape(2, -1), repeats, design.ratio)
        return separate_pairs(items, fits, "acc").mean_difference(0, 1)


class Trainings(Items):
    """Items of which some trainings answer more correctly than others."""

    luck = TRAINING


class Folds:
    """A task with the scores of folds only."""

    def __init__(self, design: FitDesign, rng: np.random.Generator) -> None:
        self.folds = folds = design.folds
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
        found = corrected_t(self._scores(rng) - self._scores(rng) - loss, self.ratio)
        return MeanDifference(float(found.mean), float(found.error), max(self.folds - 1, 1))


Task = Items | Folds
KINDS: dict[str, type[Task]] = {"items": Items, "trainings": Trainings, "folds": Folds}


def gates(tasks: Sequence[Task], loss: float, number: int, rng: np.random.Generator) -> float:
    """Return the share of gates that fail."""
    found = 0
    for _ in range(number):
        each = [task.difference(rng, loss) for task in tasks]
        found += decide(each, MARGIN).outcome == "failed"
    return found / number


def measure(
    name: str, tasks: int, design: FitDesign, *, number: int, baselines: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the stated and the observed rates of gates, baselines × losses."""
    seeds = (tasks, design.repeats, design.folds, design.seeds, list(KINDS).index(name))
    rng = np.random.default_rng(seeds)
    stated, observed = [], []
    for seed in range(baselines):
        made = [KINDS[name](design, rng) for _ in range(tasks)]
        rates = simulate_gates(_noises(made, rng), MARGIN, simulations=SIMULATIONS, seed=seed)
        stated.append(rates["failed"].to_numpy())
        each = (gates(made, factor * MARGIN, number // baselines, rng) for factor in range(4))
        observed.append(list(each))
    return np.array(stated), np.array(observed)


def row(
    name: str, tasks: int, design: FitDesign, *, number: int, baselines: int
) -> tuple[list[str], str]:
    """Return the stated and the observed rates of gates in words, and if they agree."""
    stated, observed = measure(name, tasks, design, number=number, baselines=baselines)
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
    items = [task for task in tasks if isinstance(task, Items)]
    units = [(1.0, 1 / ITEMS, True)] * len(items)
    return item_noises([t.noise(rng) for t in items], units, [t.design for t in items])


def stopped_after(loss: float, number: int, tasks: int = 10) -> np.ndarray:
    """Return after how many tasks runs end, because the gate fails whatever follows."""
    rng, found = np.random.default_rng(0), np.full(number, tasks)
    for place in range(number):
        wealth, each = np.zeros(0), []
        for done in range(1, tasks):
            base, new = Items(ONE_FOLD, rng).gains(rng, 2)[:, 0]
            apart = np.where(rng.random(ITEMS) < loss, -1.0, new - base)
            error = float(apart.std(ddof=1)) / np.sqrt(ITEMS)
            each.append(MeanDifference(float(apart.mean()), error, ITEMS - 1, 1 / ITEMS))
            wealth = np.append(wealth, apart)
            worst = min(one.p_below(-MARGIN) for one in each)
            if tasks * worst < ALPHA or loss_e_process(wealth, MARGIN)[-1] >= 1 / ANYTIME:
                found[place] = done
                break
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gates", type=int, default=1000)
    parser.add_argument("--baselines", type=int, default=100)
    parser.add_argument("--only", choices=list(KINDS))
    arguments = parser.parse_args()
    print("| evidence | tasks | folds | false alarms | loss 0.01 | loss 0.02 | loss 0.03 | ok |")
    print("|---|---|---|---|---|---|---|---|")
    for name, numbers, designs in SETTINGS:
        for tasks, design in product(numbers, designs) if arguments.only in (None, name) else ():
            shares, fine = row(
                name, tasks, design, number=arguments.gates, baselines=arguments.baselines
            )
            cells = " | ".join([str(tasks), design.name, *shares, fine])
            print(f"| {name} | {cells} |", flush=True)
    if arguments.only:
        return
    print("\n| true loss | ended early | median number of tasks, of 10 |\n|---|---|---|")
    for loss in (0.0, 0.01, 0.02, 0.03, 0.05):
        tasks = stopped_after(loss, arguments.gates // 5)
        print(
            f"| {loss:g} | {100 * np.mean(tasks < 10):.1f} % | {np.median(tasks):g} |", flush=True
        )


if __name__ == "__main__":
    main()
