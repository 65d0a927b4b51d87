"""Simulations with known truth of the test of one task: learners that are trained several times.

Two nulls are exact. "seeds": all models are the same learner with other seeds. "blocks": each model
sees one of several exchangeable blocks of columns, so that all are equal over new data. Power is
that of stable learners of which every second one lacks a column: the share of these pairs that are
separated. Models are tested as on a leaderboard, and on their items alone, as fitted. "gate" is how
often a gate between two equal models fails (false alarms): both have the same folds, or the
baseline has three seeds and the new model one.

    python benchmarks/retraining.py [--boards N] [--only seeds|blocks|power] [--design NAME]
        [--models N] [--keep FOLDER]

Learners and metrics are plain arrays here, so that many boards are cheap; ``item_values`` gives
what Karat computes from the same predictions (see the tests).
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.tree import DecisionTreeClassifier

from karat.analysis.item_tests import Fits, Separation, as_retrained, separate_pairs
from karat.analysis.item_values import SEED, UNITS, is_accuracy
from karat.analysis.stored_items import ItemValues
from karat.ext.decide.gate import FAILED, MARGIN, decide
from karat.stats.learner_tests import SeedNoise

LEVEL = 0.05
COLUMNS = 20
#: outputs of a random layer, and of the stable one that has many
FEATURES, MANY_FEATURES = 10, 100
#: steps of Newton's method, which fits a logistic regression
STEPS = 8

Train = tuple[np.ndarray, np.ndarray]
Learner = Callable[[Train, np.ndarray, int], np.ndarray]
CLASSIFIED = ("acc", "auc", "f1_macro")


# -- learners -------------------------------------------------------------------------------


def _layer(X: np.ndarray, seed: int, features: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(X.shape[1], features)) / np.sqrt(X.shape[1])
    return np.tanh(X @ weights + rng.normal(size=features))


def plain_tree(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return probabilities of a tree of depth 5 on the columns."""
    rows, target = (np.ascontiguousarray(part) for part in train)
    fitted = DecisionTreeClassifier(max_depth=5, random_state=seed % 2**31)
    fitted.fit(rows.astype(np.float32), target, check_input=False)
    return fitted.predict_proba(np.ascontiguousarray(X, dtype=np.float32), check_input=False)[:, 1]


def tree(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return probabilities of a tree of depth 5 on random features."""
    layers = [_layer(rows, seed, FEATURES) for rows in (train[0], X)]
    return plain_tree((layers[0], train[1]), layers[1], seed)


def _plain_ridge(train: Train, X: np.ndarray, alpha: float) -> np.ndarray:
    rows, target = train
    middle, level = rows.mean(axis=0), target.mean()
    centered = rows - middle
    gram = centered.T @ centered + alpha * np.eye(rows.shape[1])
    return level + (X - middle) @ np.linalg.solve(gram, centered.T @ (target - level))


def ridge(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return predictions of a ridge regression on random features."""
    layers = [_layer(rows, seed, FEATURES) for rows in (train[0], X)]
    return _plain_ridge((layers[0], train[1]), layers[1], alpha=1.0)


def stable(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return predictions of a ridge regression on many random features and the columns."""
    layers = [np.hstack([rows, 0.1 * _layer(rows, seed, MANY_FEATURES)]) for rows in (train[0], X)]
    return _plain_ridge((layers[0], train[1]), layers[1], alpha=10.0)


def logistic(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return probabilities of a logistic regression with a penalty, which uses no seed."""
    rows, new = (np.column_stack([np.ones(len(part)), part]) for part in (train[0], X))
    penalty = np.diag([0.0] + [1.0] * (rows.shape[1] - 1))
    weights = np.zeros(rows.shape[1])
    for _ in range(STEPS):
        p = 1 / (1 + np.exp(-rows @ weights))
        slope = rows.T @ (p - train[1]) + penalty @ weights
        weights -= np.linalg.solve((rows * (p * (1 - p))[:, None]).T @ rows + penalty, slope)
    return 1 / (1 + np.exp(-new @ weights))


# -- metrics --------------------------------------------------------------------------------


@cache
def _block_of(items: int, blocks: int) -> np.ndarray:
    return np.random.default_rng(SEED).permutation(items) % min(items, blocks)


def _area(p: np.ndarray, target: np.ndarray, block: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the AUC without the items of each block; ``rest`` tells which blocks are in."""
    up = target > 0.5
    higher = (p[up][:, None] > p[~up]) + 0.5 * (p[up][:, None] == p[~up])
    ups, downs = (rest[:, block[side]].astype(float) for side in (up, ~up))
    return ((ups @ higher) * downs).sum(axis=1) / (ups.sum(axis=1) * downs.sum(axis=1))


def _f1(p: np.ndarray, target: np.ndarray, block: np.ndarray, rest: np.ndarray) -> np.ndarray:
    """Return the macro-F1 without the items of each block."""
    cell = 4 * block + 2 * (target > 0.5) + (p > 0.5)
    counts = np.bincount(cell, minlength=4 * rest.shape[1]).reshape(-1, 4)
    left = rest @ counts
    wrong = left[:, 1] + left[:, 2]
    with np.errstate(invalid="ignore"):
        each = [2 * left[:, at] / (2 * left[:, at] + wrong) for at in (0, 3)]
    return np.asarray(np.nanmean(each, axis=0))


def item_values(metric: str, p: np.ndarray, target: np.ndarray, folds: int) -> np.ndarray:
    """Return what the items of one of so many folds add to the score; higher is better.

    AUC and macro-F1 have the pseudo-values of a jackknife over blocks of items.
    """
    if metric == "acc":
        return ((p > 0.5) == (target > 0.5)).astype(float)
    if metric == "rmse":
        return -((p - target) ** 2)
    return jackknife(metric, p, target, _block_of(len(p), max(2, -(-UNITS // folds))))


def jackknife(metric: str, p: np.ndarray, target: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return the pseudo-value of each block of items."""
    count = int(block.max()) + 1
    rest = np.vstack([~np.eye(count, dtype=bool), np.ones(count, dtype=bool)])
    *without, whole = OF_BLOCKS[metric](p, target, block, rest)
    return np.asarray(count * whole - (count - 1) * np.array(without))


def score(metric: str, p: np.ndarray, target: np.ndarray) -> float:
    """Return the score of a fold; higher is better."""
    if metric in OF_BLOCKS:
        every = np.ones((1, 1), dtype=bool)
        return float(OF_BLOCKS[metric](p, target, np.zeros(len(p), dtype=int), every)[0])
    mean = float(item_values(metric, p, target, 1).mean())
    return -float(np.sqrt(-mean)) if metric == "rmse" else mean


#: metrics that are no mean over items
OF_BLOCKS = {"auc": _area, "f1_macro": _f1}


# -- boards ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Design:
    """Repeats of k folds, or one hold-out of a fifth of the rows, with a number of seeds."""

    repeats: int
    folds: int
    seeds: int = 1

    @property
    def ratio(self) -> float:
        """The ratio n_test / n_train."""
        return 1 / (max(self.folds, 5) - 1)

    def splits(self, rng: np.random.Generator, rows: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the number of the repeat, and which rows are test rows, of each fold."""
        for repeat in range(self.repeats):
            fold_of = rng.permutation(rows) % max(self.folds, 5)
            yield from ((repeat, fold_of == fold) for fold in range(self.folds))


DESIGNS = {
    "5 folds": Design(1, 5),
    "2 x 5 folds": Design(2, 5),
    "10 x 5 folds": Design(10, 5),
    "3 seeds": Design(1, 1, 3),
}


@dataclass(frozen=True)
class Setting:
    """Models on a table: a learner, metrics, the number of models and of rows, and the null.

    ``effect`` is the weight of the column that every second model lacks.
    """

    learner: Learner
    metrics: tuple[str, ...]
    models: int
    rows: int = 1000
    null: str = "seeds"
    effect: float = 0.0

    @property
    def is_regression(self) -> bool:
        return "rmse" in self.metrics

    def table(self, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the columns that each model sees, and the target."""
        blocks = self.models if self.null == "blocks" else 1
        X = rng.normal(size=(self.rows, blocks, COLUMNS // (2 if blocks > 1 else 1)))
        signal = X[:, :, :4].sum(axis=2) + X[:, :, 0] * X[:, :, 1]
        target = signal.sum(axis=1) / np.sqrt(blocks) + rng.normal(0, 2, self.rows)
        if self.effect:
            target += self.effect * X[:, 0, -1]
        target = target if self.is_regression else (target > 0).astype(float)
        fewer = X.shape[2] - 1 if self.effect else X.shape[2]
        views = [X[:, m % blocks] for m in range(self.models)]
        return [view[:, :fewer] if m % 2 else view for m, view in enumerate(views)], target

    @property
    def different(self) -> np.ndarray:
        """Which pairs of models are in question: all of a null, else those that differ."""
        one, other = np.triu_indices(self.models, 1)
        return (one + other) % 2 == 1 if self.effect else one < other


@dataclass(frozen=True)
class Board:
    """What a test needs of a metric: item values, those of the first seed alone, fold scores."""

    values: np.ndarray
    seeds: list[SeedNoise]
    scores: np.ndarray
    alone: np.ndarray


def simulate(rng: np.random.Generator, setting: Setting, design: Design) -> dict[str, Board]:
    """Return a board of models with known truth for each metric."""
    tables, target = setting.table(rng)
    splits = list(design.splits(rng, setting.rows))
    shape = (len(tables), design.seeds)
    made: dict[str, np.ndarray] = {m: np.empty((*shape, len(splits))) for m in setting.metrics}
    items: dict[str, list[np.ndarray]] = {metric: [] for metric in setting.metrics}
    for at, (repeat, test) in enumerate(splits):
        rows: dict[str, list[np.ndarray]] = {metric: [] for metric in setting.metrics}
        for place in np.ndindex(*shape):
            X, seed = tables[place[0]], int(rng.integers(2**31))
            p = setting.learner((X[~test], target[~test]), X[test], seed)
            p = p if setting.is_regression else np.clip(p, 0.0, 1.0)
            for metric in setting.metrics:
                made[metric][(*place, at)] = score(metric, p, target[test])
                if repeat == 0:
                    rows[metric].append(item_values(metric, p, target[test], design.folds))
        if repeat == 0:
            for metric, parts in rows.items():
                items[metric].append(np.reshape(parts, (*shape, -1)))
    return {m: _board(np.concatenate(items[m], axis=-1), made[m]) for m in setting.metrics}


def _board(values: np.ndarray, scores: np.ndarray) -> Board:
    seeds = [SeedNoise.of(each) for each in values]
    return Board(values.mean(axis=1), seeds, scores.mean(axis=1), values[:, 0])


def measure(board: Board, metric: str, design: Design) -> tuple[Separation, Separation]:
    """Return the test of every pair: of a leaderboard, and on the items of the first seed alone."""
    right = is_accuracy(metric)
    repeats = [fold // design.folds for fold in range(board.scores.shape[1])]
    fits = Fits(board.scores, repeats, design.ratio)
    items = _items(board.values, board.seeds, right and design.seeds == 1)
    alone = _items(board.alone, [SeedNoise()] * len(board.alone), right)
    return separate_pairs(items, fits, metric), separate_pairs(alone, _once(board, metric), metric)


def _once(board: Board, metric: str, baseline: int | None = None) -> Fits:
    """Return the scores of the first seed on all items; of a baseline the mean over seeds."""
    values = [board.values[m] if m == baseline else row for m, row in enumerate(board.alone)]
    means = np.mean(values, axis=1, keepdims=True)
    return Fits(-np.sqrt(-means) if metric == "rmse" else means, [0], 0.25)


def gate_tests(board: Board, metric: str, design: Design) -> list[tuple[Separation, Separation]]:
    """Return what gates test if either of two models is the new one, and the same as fitted.

    Both were fitted on the same folds; or the baseline with several seeds, the new one with one.
    """
    tested, as_fitted = measure(board, metric, design)
    if design.seeds == 1:
        return [(tested, as_fitted)] * 2
    found = []
    for new in (0, 1):
        values, seeds = board.values.copy(), list(board.seeds)
        values[new], seeds[new] = board.alone[new], SeedNoise()
        items = _items(values, as_retrained(seeds), False)
        once = _once(board, metric, 1 - new)
        found.append((separate_pairs(items, once, metric), as_fitted))
    return found


def false_alarms(board: Board, metric: str, design: Design) -> list[float]:
    """Return how often a gate between two equal models fails, and how often as fitted."""
    both = gate_tests(board, metric, design)
    failed = [
        [decide([test.mean_difference(new, 1 - new)], MARGIN).outcome == FAILED for test in tests]
        for new, tests in enumerate(both)
    ]
    return np.mean(failed, axis=0).tolist()


def _items(values: np.ndarray, seeds: list[SeedNoise], right: bool) -> ItemValues:
    models, units = values.shape
    names = [str(m) for m in range(models)]
    counts = {"items": units, "independent": units}
    return ItemValues(names, values, **counts, is_right=right, seeds=seeds)


def boards(
    setting: Setting, design: Design, number: int, keep: Path | None = None
) -> list[dict[str, Board]]:
    """Return simulated boards, those of a folder if they were simulated before."""
    facts = (setting.learner.__name__, setting.models, setting.rows, setting.null, setting.effect)
    parts = [*facts, *setting.metrics, *vars(design).values(), number]
    path = keep / ("-".join(map(str, parts)) + ".pickle") if keep else None
    if path and path.is_file():
        return list(pickle.loads(path.read_bytes()))
    seeds = ([board, setting.models] for board in range(number))
    made = [simulate(np.random.default_rng(seed), setting, design) for seed in seeds]
    if path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pickle.dumps(made))
    return made


def shares(
    setting: Setting, design: Design, metric: str, made: list[dict[str, Board]]
) -> dict[str, str]:
    """Return how often models are separated: by the test of a leaderboard, and as fitted.

    Of a null, the share of boards with any pair, and of gates between two models that fail; of
    different models, the share of these pairs.
    """
    one, other = np.triu_indices(setting.models, 1)
    found = []
    for board in made:
        both = measure(board[metric], metric, design)
        apart = [(test.p[one, other] < LEVEL)[setting.different] for test in both]
        row = [each.mean() if setting.effect else each.any() for each in apart]
        gates = setting.models == 2 and not setting.effect
        found.append(row + (false_alarms(board[metric], metric, design) if gates else []))
    names = ["separated", "as fitted", "gate", "gate, as fitted"]
    numbers = {name: f"{n:.3f}" for name, n in zip(names, np.mean(found, axis=0), strict=False)}
    if setting.effect:
        numbers["share"] = f"{float(numbers['separated']) / float(numbers['as fitted']):.2f}"
    return numbers


def settings(which: str, models: int, design: Design) -> Iterator[tuple[str, Setting]]:
    """Yield names and settings of a null, or of the power.

    With many fits, of eight models or ten repeats, tables are smaller.
    """
    many = design.repeats > 1 or models > 2
    rows = 300 if many else 1000
    if which == "seeds":
        yield "tree on random features", Setting(tree, CLASSIFIED, models, rows)
        yield "ridge on random features", Setting(ridge, ("rmse",), models, rows)
        yield "stable ridge", Setting(stable, ("rmse",), models, rows)
        yield "stable ridge, classes", Setting(stable, CLASSIFIED, models, rows)
    elif which == "blocks" and models == 2 and design.folds > 1:
        for rows in (300,) if many else (300, 1000):
            yield "logistic", Setting(logistic, CLASSIFIED, 2, rows, which)
            yield "tree", Setting(plain_tree, CLASSIFIED, 2, rows, which)
    elif which == "power":
        if models == 2 and design.folds > 1:
            for effect in (0.7, 0.85, 1.0):
                yield "logistic", Setting(logistic, CLASSIFIED, 2, 1000, which, effect)
        for effect in (0.3, 0.4) if models == 2 or design.repeats == 1 else ():
            yield "stable ridge", Setting(stable, ("rmse",), models, 1000, which, effect)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--boards", type=int, default=300)
    parser.add_argument("--only", choices=["seeds", "blocks", "power"])
    parser.add_argument("--design", choices=list(DESIGNS))
    parser.add_argument("--models", type=int, choices=[2, 8])
    parser.add_argument("--keep", type=Path, help="folder of simulated boards")
    arguments = parser.parse_args()
    heads = ["separated", "as fitted", "share", "gate", "gate, as fitted"]
    columns = ["what", "learner", "models", "rows", "design", "metric", *heads]
    print(f"| {' | '.join(columns)} |\n|{' --- |' * len(columns)}")
    for which in [arguments.only] if arguments.only else ["seeds", "blocks", "power"]:
        for models in [arguments.models] if arguments.models else (2, 8):
            for design in [arguments.design] if arguments.design else DESIGNS:
                for name, setting in settings(which, models, DESIGNS[design]):
                    made = boards(setting, DESIGNS[design], arguments.boards, arguments.keep)
                    for metric in setting.metrics:
                        row = shares(setting, DESIGNS[design], metric, made)
                        cells = [which, name, models, setting.rows, design, metric]
                        cells += [row.get(head, "") for head in heads]
                        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
