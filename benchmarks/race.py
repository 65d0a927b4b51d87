"""What do races save, and how often are they wrong? Replays of published results, and simulations.

    python benchmarks/race.py multabench [FOLDER]   25 models × 80 tasks × 6 folds; FOLDER is
                                                    multabench/leaderboard/models of the package
    python benchmarks/race.py amlb FOLDER           7 models, 35 and 39 tasks × 10 folds; FOLDER has
                                                    reports/old/input of the AutoML Benchmark
    python benchmarks/race.py null                  25 equal models: any elimination is wrong
    python benchmarks/race.py cpu                   time of a decision with 100 models

The matrices are used for measuring only: bets, correction and defaults were chosen on simulated
scores. ``amlb`` chooses the folds per task on the files of one hour and measures on those of four
hours. Naive alternatives: one fold of everything; successive halving with as many jobs as the
races; dropping a model as soon as the 95 % interval of its difference to the leader excludes 0.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from scipy.stats import binomtest, rankdata, t

import karat
from karat.ext.compat.convert import read_scores
from karat.ext.decide.race import Replayed, replay_race
from karat.ext.decide.racing import RaceState, Rules
from karat.stats.ranking import rank_models

#: files of each half: with one hour, and with four hours
HALVES = {
    "1 hour": ("small-8c1h", "medium-8c1h"),
    "4 hours": ("small-8c4h", "medium-8c4h", "large-8c4h"),
}
#: fewest tasks before the naive rule looks at an interval
FIRST_LOOK = 6


# -- naive alternatives ---------------------------------------------------------------------


def mean_ranks(table: np.ndarray) -> np.ndarray:
    """Return the rank of each model on each task, models × tasks; 1 is best."""
    return rankdata(-table, axis=0)


def one_fold(data: Replayed, rng: np.random.Generator) -> tuple[float, np.ndarray]:
    """Return the share of jobs and the top group of one random fold of every task."""
    tables = [scores[:, [rng.integers(scores.shape[1])]] for scores in data.tables]
    jobs = data.takes.sum() / data.full_jobs
    return float(jobs), rank_models(tables, data.takes).top


def halving(scores: np.ndarray, jobs: int) -> np.ndarray:
    """Return the model that successive halving keeps; ``scores`` are models × tasks."""
    remaining = np.arange(len(scores))
    rounds = math.ceil(math.log2(len(remaining)))
    used = 0
    for _ in range(rounds):
        used = min(used + max(jobs // rounds // len(remaining), 1), scores.shape[1])
        order = np.argsort(mean_ranks(scores[remaining, :used]).mean(axis=1), kind="stable")
        remaining = remaining[order[: math.ceil(len(remaining) / 2)]]
    return np.isin(np.arange(len(scores)), remaining)


def peeking(scores: np.ndarray) -> tuple[int, np.ndarray]:
    """Return the jobs and the models that remain if intervals are read after every task."""
    remaining, jobs = np.ones(len(scores), dtype=bool), 0
    for used in range(1, scores.shape[1] + 1):
        jobs += int(remaining.sum())
        if used < FIRST_LOOK or remaining.sum() == 1:
            continue
        ranks = mean_ranks(scores[remaining, :used])
        apart = ranks - ranks[ranks.mean(axis=1).argmin()]
        half = t.ppf(0.975, used - 1) * apart.std(axis=1, ddof=1) / math.sqrt(used)
        remaining[np.flatnonzero(remaining)[apart.mean(axis=1) - half > 0]] = False
    return jobs, remaining


# -- MulTaBench -----------------------------------------------------------------------------


def multabench(folder: Path | None, orders: int) -> None:
    """Print what races would have saved on MulTaBench, and what naive rules do."""
    package = find_spec("multabench") if folder is None else None
    if package is not None:
        folder = Path(str(package.submodule_search_locations[0])) / "leaderboard" / "models"
    if folder is None or not list(folder.glob("*.csv")):
        print("skipped: no MulTaBench results; pip install multabench, or name the folder.")
        return
    table = read_scores(folder, system="multabench")
    print(
        f"{'goal':<8} {'confidence':>10} {'folds':>5} {'decided':>7} {'jobs':>7} {'fewer':>6} "
        f"{'remain':>6} "
        f"{'best kept':>9} {'top kept':>8} {'same top':>8}"
    )
    settings = [("best", 0.95, 1), ("best", 0.95, 2), ("best", 0.95, 6), ("best", 0.8, 1)]
    replays = [
        replay_race(table, goal=goal, confidence=confidence, folds_per_task=folds, orders=orders)
        for goal, confidence, folds in (*settings, ("top-3", 0.95, 1), ("order", 0.95, 1))
    ]
    for replayed in replays:
        show(replayed)
    naive(Replayed(table), orders, float(replays[0].orders["jobs"].mean()))


def show(replayed: karat.RaceReplay) -> None:
    """Print a row of a replay."""
    o = replayed.orders
    print(
        f"{replayed.goal:<8} {replayed.confidence:>10} {replayed.folds_per_task:>5} "
        f"{replayed.decided:>7.1%} {o['jobs'].mean():>7.1%} {1 / o['jobs'].mean():>6.1f} "
        f"{o['remain'].mean():>6.2f} "
        f"{o['best_kept'].mean():>9.1%} {o['top_kept'].mean():>8.1%} "
        f"{o['same_top'].mean():>8.1%}"
    )


def naive(data: Replayed, orders: int, share: float) -> None:
    """Print the jobs and the answers of the naive alternatives on results without gaps."""
    top, best = data.ranks.top, data.best
    rows: dict[str, list[tuple[float, bool, bool]]] = {}
    for number in range(orders):
        rng = np.random.default_rng([1, number])
        jobs, found = one_fold(data, rng)
        answer = (jobs, bool(found[best]), bool((found == top).all()))
        rows.setdefault("one fold of everything", []).append(answer)
        order = rng.permutation(len(data.tables))
        scores = np.stack([data.tables[t][:, rng.integers(data.tables[t].shape[1])] for t in order])
        spent = int(share * data.full_jobs)
        kept = halving(scores.T, spent)
        answer = (spent / data.full_jobs, bool(kept[best]), bool((kept == top).all()))
        rows.setdefault("successive halving", []).append(answer)
        count, kept = peeking(scores.T)
        answer = (count / data.full_jobs, bool(kept[best]), bool((kept == top).all()))
        rows.setdefault("interval looks narrow", []).append(answer)
    print(f"\n{'naive alternative':<24} {'jobs':>7} {'best kept':>9} {'same top':>8}")
    for name, found in rows.items():
        jobs, kept, same = np.mean(found, axis=0)
        print(f"{name:<24} {jobs:>7.1%} {kept:>9.1%} {same:>8.1%}")


# -- AutoML Benchmark -----------------------------------------------------------------------


def amlb(folder: Path | None, orders: int) -> None:
    """Print races on the AutoML Benchmark: folds chosen on one half of the files."""
    if folder is None or not (folder / "results_small-8c1h.csv").is_file():
        print("skipped: no results of the AutoML Benchmark; name the folder with its files.")
        return
    with tempfile.TemporaryDirectory() as imported:
        halves = {
            name: read_amlb(folder, names, Path(imported, name)) for name, names in HALVES.items()
        }
        first, second = halves.values()
        grid = [replay(first, 0.95, folds, orders) for folds in (1, 2, 3, 5, 10)]
        fit = [replayed for replayed in grid if 1 / replayed.orders["jobs"].mean() >= 2]
        chosen = max(fit, key=lambda replayed: replayed.orders["same_top"].mean()).folds_per_task
        print("half      confidence folds decided    jobs  fewer remain best top same top")
        for name, runs in halves.items():
            for confidence, folds in (
                (0.95, chosen),
                (0.95, 1),
                (0.95, 10),
                (0.8, chosen),
                (0.5, chosen),
                (0.5, 1),
            ):
                print(f"{name:<8}", end=" ")
                show(replay(runs, confidence, folds, orders))
        print(f"\nfolds per task chosen on {HALVES['1 hour']}: {chosen}")
        for name, runs in halves.items():
            same_best, same_top = halves_agree(Replayed(runs, "model"), orders)
            print(
                f"{name}: two random halves of the folds of the full results agree on the best "
                f"model in {same_best:.0%}, on the top group in {same_top:.0%}"
            )


def replay(runs: list[karat.Run], confidence: float, folds: int, orders: int) -> karat.RaceReplay:
    """Return races to the best model."""
    return replay_race(
        runs, confidence=confidence, folds_per_task=folds, orders=orders, pool="model"
    )


def read_amlb(folder: Path, names: tuple[str, ...], output: Path) -> list[karat.Run]:
    """Return the imported runs of files, without the constant predictor."""
    files = [folder / f"results_{name}{end}.csv" for name in names for end in ("", "_ref")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        runs = karat.import_results(files, output, system="amlb").runs
    return [run for run in runs if not run.model.startswith("constant")]


def halves_agree(data: Replayed, orders: int) -> tuple[float, float]:
    """Return how often two halves of the folds of all tasks agree on the best and the top group."""
    several = [index for index, each in enumerate(data.tables) if each.shape[1] > 1]
    tables, takes = (
        [data.tables[index] for index in several],
        data.takes[:, several],
    )
    found = []
    for number in range(orders):
        rng = np.random.default_rng([2, number])
        cuts = [rng.permutation(each.shape[1]) for each in tables]
        halves = [
            [each[:, cut[part::2]] for each, cut in zip(tables, cuts, strict=True)]
            for part in (0, 1)
        ]
        first, second = (rank_models(half, takes) for half in halves)
        best = np.nanargmin(first.mean) == np.nanargmin(second.mean)
        found.append((best, (first.top == second.top).all()))
    same_best, same_top = np.mean(found, axis=0)
    return float(same_best), float(same_top)


# -- simulations ----------------------------------------------------------------------------


def null(simulations: int, models: int = 25, tasks: int = 80, folds: int = 6) -> None:
    """Print how often a race of equal models eliminates any; folds of a task are correlated."""
    print(
        f"{models} equal models, {tasks} tasks, {folds} folds, {simulations:,} simulations; "
        "differences are heavy-tailed (t with 2 degrees of freedom), folds correlated"
    )
    wrong: dict[str, int] = {}
    for number in range(simulations):
        rng = np.random.default_rng([3, number])
        scores = rng.standard_t(2, (models, tasks, 1)) + 0.5 * rng.standard_t(
            2, (models, tasks, folds)
        )
        for keep, used, goal in (
            (1, 1, "best"),
            (1, folds, "best"),
            (3, 1, "top-3"),
            (0, 1, "order"),
        ):
            state = RaceState(Rules(keep=keep), [0] * models)
            for place in range(tasks):
                if state.over or state.exits or state.worse.any():
                    break
                state.update(scores[:, place, :used], np.ones(models, dtype=bool))
            name = f"race to {goal}, {used} fold{'s' * (used > 1)} per task"
            wrong[name] = wrong.get(name, 0) + (not state.remaining.all() or state.worse.any())
        if number < 200:  # it is wrong nearly always
            name = "interval looks narrow (200 simulations)"
            wrong[name] = wrong.get(name, 0) + (not peeking(scores[:, :, 0])[1].all())
    for name, count in wrong.items():
        number = 200 if "200" in name else simulations
        low, high = binomtest(count, number).proportion_ci()
        print(
            f"{name:<42} any elimination {count / number:>7.2%}   95 % interval "
            f"{low:.2%} to {high:.2%}"
        )


def cpu(models: int = 100, tasks: int = 200) -> None:
    """Print the CPU time of a decision while all models run: no model leaves at this level."""
    rng = np.random.default_rng(0)
    scores = rng.standard_normal((models, tasks, 6)) + 0.02 * np.arange(models)[:, None, None]
    everyone = np.ones(models, dtype=bool)
    for keep, goal in ((1, "best"), (5, "top-5"), (0, "order")):
        for margin in (None, 0.01):
            state = RaceState(Rules(keep=keep, level=1e-99, margin=margin), [0] * models)
            begun = time.process_time()
            for place in range(tasks):
                state.update(scores[:, place], everyone)
            each = 1000 * (time.process_time() - begun) / tasks
            print(
                f"{models} models, 6 folds, goal {goal}, margin {margin}: {each:.2f} ms of CPU "
                f"per decision (mean of {tasks})"
            )


def main() -> None:
    """Run one part."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("part", choices=["multabench", "amlb", "null", "cpu"])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--orders", type=int, default=300)
    parser.add_argument("--simulations", type=int, default=2000)
    arguments = parser.parse_args()
    if arguments.part == "null":
        null(arguments.simulations)
    elif arguments.part == "cpu":
        cpu()
    else:
        {"multabench": multabench, "amlb": amlb}[arguments.part](arguments.folder, arguments.orders)


if __name__ == "__main__":
    main()
