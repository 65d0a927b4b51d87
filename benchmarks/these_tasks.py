"""Simulations with known truth of what two to five tasks show: letters, intervals, single tasks.

Answers are right or wrong, or have an error; items differ in difficulty, models differ on items,
and every fit of a model is a little better or worse than the model is on average. The truth is the
expected score of a model over new items and new fits.

    python benchmarks/these_tasks.py [--boards N]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from karat.analysis.item_tests import Fits, Separation, fold_separation, separate_pairs
from karat.analysis.stored_items import ItemValues
from karat.analysis.these_tasks import MARGIN, these_tasks
from karat.stats.learner_tests import SeedNoise

ALPHA = 0.05
#: standard deviations, in logits: of items, of models on items, of fits
DIFFICULTY, TASTE, TRAINING = 1.0, 1.0, 0.15
#: mean logit of a model
LEVEL = 1.0
#: difference of neighbors on a ladder, in logits, and how much tasks change it
STEP, TASK_EFFECT = 0.25, 0.15
SEED = 0
Task = Callable[[np.random.Generator, np.ndarray, int, int, float], tuple[Separation, np.ndarray]]


@dataclass(frozen=True)
class Board:
    """The tests of some tasks, and the true scores, models × tasks."""

    tests: list[Separation]
    truth: np.ndarray


def expected(logits: np.ndarray, spread: float) -> np.ndarray:
    """Return the mean of a logistic function of normal numbers, by quadrature."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    values = 1 / (1 + np.exp(-(logits[..., None] + spread * nodes)))
    return np.asarray((values * weights).sum(axis=-1) / weights.sum())


def answers(
    rng: np.random.Generator, effects: np.ndarray, items: int, folds: int, training: float
) -> tuple[Separation, np.ndarray]:
    """Return the test of one task with right and wrong answers, and the true accuracies."""
    models = len(effects)
    fits = rng.normal(0, training, (models, folds))
    fold = np.arange(items) % folds
    logits = LEVEL + effects[:, None] + fits[:, fold] + rng.normal(0, DIFFICULTY, items)
    logits = logits + rng.normal(0, TASTE, (models, items))
    right = (rng.random((models, items)) < 1 / (1 + np.exp(-logits))).astype(float)
    scores = np.stack([right[:, fold == f].mean(axis=1) for f in range(folds)], axis=1)
    names = [f"m{m}" for m in range(models)]
    once = [SeedNoise()] * models
    found = ItemValues(names, right, items, independent=items, is_right=True, seeds=once)
    test = separate_pairs(found, Fits(scores, [0] * folds, 1 / max(folds - 1, 1)), "acc")
    return test, expected(LEVEL + effects, float(np.hypot(np.hypot(DIFFICULTY, TASTE), training)))


def errors(
    rng: np.random.Generator, effects: np.ndarray, items: int, folds: int, training: float
) -> tuple[Separation, np.ndarray]:
    """Return the test of one task with squared errors (rmse); only equal models have a truth."""
    models = len(effects)
    fold = np.arange(items) % folds
    sizes = np.exp(rng.normal(0, training / 2, (models, folds)))[:, fold]
    both = rng.normal(0, 1, items) + rng.normal(0, 0.5, (models, items))
    squares = -((sizes * both) ** 2)
    scores = [-np.sqrt(-squares[:, fold == f].mean(axis=1)) for f in range(folds)]
    found = ItemValues([f"m{m}" for m in range(models)], squares, items, independent=items)
    fits = Fits(np.stack(scores, axis=1), [0] * folds, 1 / max(folds - 1, 1))
    return separate_pairs(found, fits, "rmse"), np.zeros(models)


def fold_scores(
    rng: np.random.Generator, effects: np.ndarray, items: int, folds: int, training: float
) -> tuple[Separation, np.ndarray]:
    """Return the test of one task of which only the scores of folds are known."""
    del items, training
    ratio = 1 / (folds - 1)
    shared = ratio / (1 + ratio)  # of the variance, by training rows that folds share
    noise = np.sqrt(shared) * rng.normal(size=(len(effects), 1))
    noise = noise + np.sqrt(1 - shared) * rng.normal(size=(len(effects), folds))
    truth = 0.7 + effects / 10
    return fold_separation(truth[:, None] + 0.02 * noise, ratio, "acc"), truth


#: name, task, items, folds, training noise
CASES: dict[str, tuple[Task, int, int, float]] = {
    "300 answers, one fit": (answers, 300, 1, 0.0),
    "1,000 answers, 5 folds": (answers, 1000, 5, TRAINING),
    "100 answers, 5 folds": (answers, 100, 5, TRAINING),
    "300 errors (rmse), 5 folds": (errors, 300, 5, TRAINING),
    "5 folds, no items": (fold_scores, 0, 5, 0.0),
    "10 folds, no items": (fold_scores, 0, 10, 0.0),
}


def make_board(rng: np.random.Generator, case: str, models: int, tasks: int, ladder: bool) -> Board:
    """Return a board of equal models, or of models whose skills are a ladder."""
    task, items, folds, training = CASES[case]
    tests, truth = [], []
    for _ in range(tasks):
        effects = np.zeros(models)
        if ladder:
            effects = STEP * np.arange(models) + rng.normal(0, TASK_EFFECT, models)
        test, scores = task(rng, effects, items, folds, training)
        tests.append(test)
        truth.append(scores)
    return Board(tests, np.array(truth).T)


def judge(board: Board) -> dict[str, float]:
    """Return what is false and what is found on a board."""
    models, tasks = board.truth.shape
    names, takes = [f"m{m}" for m in range(models)], np.ones((models, tasks), dtype=bool)
    found = these_tasks(names, [f"t{t}" for t in range(tasks)], takes, board.tests)
    one, other = np.triu_indices(models, 1)
    each = (board.truth[one] - board.truth[other]).T
    mean = each.mean(axis=0)
    shown = _false(found.mean.gain[one, other], found.p[one, other], mean)
    on_tasks = _false(found.each.gain[:, one, other], found.p_each[:, one, other], each)
    same = (found.p_same[one, other] < ALPHA / 2) & (np.abs(mean) > MARGIN)
    apart = np.abs(mean) > 1e-9
    return {
        "false letter": float(shown.any()),
        "false on a task": float(on_tasks.any()),
        "false same": float(same.any()),
        "all means covered": float(_covered(found.bounds, mean, one, other)),
        "all tasks covered": float(_covered(found.bounds_each, each, one, other)),
        "power": float((found.p[one, other] < ALPHA)[apart].mean()) if apart.any() else np.nan,
    }


def _false(gain: np.ndarray, p: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Return which pairs are called different though they are equal or the other one is better."""
    return (p < ALPHA) & ((np.abs(truth) < 1e-9) | (np.sign(gain) != np.sign(truth)))


def _covered(
    bounds: tuple[np.ndarray, np.ndarray], truth: np.ndarray, one: np.ndarray, other: np.ndarray
) -> bool:
    low, high = (end[..., one, other] for end in bounds)
    return bool(((low <= truth) & (truth <= high)).all())


def simulate(
    case: str, models: int, tasks: int, *, ladder: bool = False, boards: int = 300
) -> dict[str, float]:
    """Return the shares of boards with a false statement, and of intervals that hold the truth."""
    rng = np.random.default_rng([SEED, models, tasks, ladder])
    rows = [judge(make_board(rng, case, models, tasks, ladder)) for _ in range(boards)]
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}


def main() -> None:
    """Print the table of docs/statistics.md."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=300)
    boards = parser.parse_args().boards
    sizes = [(5, 5, False), (2, 2, False), (5, 5, True)]
    header = None
    for case in CASES:
        for models, tasks, ladder in sizes:
            if ladder and case.startswith("300 errors"):
                continue
            row = simulate(case, models, tasks, ladder=ladder, boards=boards)
            if header is None:
                header = ["case", "models", "tasks", "skills", *row]
                print(f"| {' | '.join(header)} |\n|{' --- |' * len(header)}")
            values = ["–" if np.isnan(value) else f"{value:.2f}" for value in row.values()]
            skills = "ladder" if ladder else "equal"
            print(f"| {case} | {models} | {tasks} | {skills} | {' | '.join(values)} |", flush=True)


if __name__ == "__main__":
    main()
