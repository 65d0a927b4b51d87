"""Simulations with known truth of the test of one task: learners that are trained several times.

Two nulls are exact. "seeds": all models are the same learner with other seeds. "blocks": each model
sees one of several exchangeable blocks of columns, so that all are equal over new data. Power is
that of two stable learners of which one lacks a column. Models are tested as on a leaderboard, and
on their items alone, as fitted.

    python benchmarks/retraining.py [--boards N] [--only seeds|blocks|power] [--design NAME]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.tree import DecisionTreeClassifier

from karat.analysis.item_tests import Fits, separate_pairs
from karat.analysis.item_values import contributions, is_accuracy
from karat.analysis.stored_items import ItemValues
from karat.core.predictions import Predictions
from karat.metrics.metric import get_metric, score
from karat.stats.learner_tests import SeedNoise
from karat.stats.paired_items import max_t

LEVEL = 0.05
COLUMNS = 20
#: outputs of a random layer, and of the stable one that has many
FEATURES, MANY_FEATURES = 10, 300
CLASSES = ("a", "b")

Train = tuple[np.ndarray, np.ndarray]
Learner = Callable[[Train, np.ndarray, int], np.ndarray]


def _layer(X: np.ndarray, seed: int, features: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    weights = rng.normal(size=(X.shape[1], features)) / np.sqrt(X.shape[1])
    return np.tanh(X @ weights + rng.normal(size=features))


def tree(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return probabilities of a tree of depth 5 on random features."""
    fitted = DecisionTreeClassifier(max_depth=5, random_state=seed)
    fitted.fit(_layer(train[0], seed, FEATURES), train[1])
    return fitted.predict_proba(_layer(X, seed, FEATURES))[:, 1]


def plain_ridge(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return predictions of a ridge regression, which uses no seed."""
    return Ridge(alpha=1.0).fit(*train).predict(X)


def ridge(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return predictions of a ridge regression on random features."""
    layers = [_layer(rows, seed, FEATURES) for rows in (train[0], X)]
    return plain_ridge((layers[0], train[1]), layers[1], seed)


def stable(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return predictions of a ridge regression on many random features and the columns."""
    layers = [np.hstack([rows, 0.1 * _layer(rows, seed, MANY_FEATURES)]) for rows in (train[0], X)]
    return Ridge(alpha=10.0).fit(layers[0], train[1]).predict(layers[1])


def logistic(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return probabilities of a logistic regression, which uses no seed."""
    return LogisticRegression().fit(*train).predict_proba(X)[:, 1]


def plain_tree(train: Train, X: np.ndarray, seed: int) -> np.ndarray:
    """Return probabilities of a tree of depth 5 on the columns."""
    fitted = DecisionTreeClassifier(max_depth=5, random_state=seed).fit(*train)
    return fitted.predict_proba(X)[:, 1]


@dataclass(frozen=True)
class Design:
    """Repeats of k folds, or one hold-out of a fifth of the rows, with a number of seeds."""

    repeats: int
    folds: int
    seeds: int = 1

    def splits(self, rng: np.random.Generator, rows: int) -> Iterator[tuple[int, np.ndarray]]:
        """Yield the number of the repeat and the test rows of each fold."""
        for repeat in range(self.repeats):
            parts = np.array_split(rng.permutation(rows), max(self.folds, 5))
            yield from ((repeat, part) for part in parts[: self.folds])


DESIGNS = {"5 folds": Design(1, 5), "10 × 5 folds": Design(10, 5), "3 seeds": Design(1, 1, 3)}


@dataclass(frozen=True)
class Setting:
    """Models on a table: a learner, metrics, the number of models and of rows, and the null."""

    learner: Learner
    metrics: tuple[str, ...]
    models: int
    rows: int = 1000
    null: str = "seeds"

    @property
    def is_regression(self) -> bool:
        return "rmse" in self.metrics

    def table(self, rng: np.random.Generator) -> tuple[list[np.ndarray], np.ndarray]:
        """Return the columns that each model sees, and the target."""
        blocks = self.models if self.null == "blocks" else 1
        X = rng.normal(size=(self.rows, blocks, COLUMNS // (2 if blocks > 1 else 1)))
        signal = X[:, :, :4].sum(axis=2) + X[:, :, 0] * X[:, :, 1]
        target = signal.sum(axis=1) / np.sqrt(blocks) + rng.normal(0, 2, self.rows)
        target = target if self.is_regression else (target > 0).astype(float)
        if self.null == "power":  # the second model lacks a column
            shown = np.arange(COLUMNS) != 1
            return [X[:, 0], X[:, 0][:, shown]], target
        return [X[:, m % blocks] for m in range(self.models)], target


def _predictions(setting: Setting, values: np.ndarray, target: np.ndarray) -> Predictions:
    if setting.is_regression:
        return Predictions(values, target)
    p = np.clip(values, 0.0, 1.0)
    labels = np.where(np.stack([p > 0.5, target > 0.5]), *CLASSES[::-1])
    kinds = {"answers": "classes", "truths": "classes", "classes": CLASSES}
    return Predictions(labels[0], labels[1], probabilities=np.column_stack([1 - p, p]), **kinds)


def simulate(rng: np.random.Generator, setting: Setting, design: Design) -> list[list[list]]:
    """Return the predictions of models × seeds × folds, with the repeat of each fold."""
    tables, target = setting.table(rng)
    splits = list(design.splits(rng, setting.rows))
    made: list[list[list]] = []
    for X in tables:
        made.append([])
        for _ in range(design.seeds):
            made[-1].append([])
            for repeat, test in splits:
                train = np.setdiff1d(np.arange(setting.rows), test)
                seed = int(rng.integers(2**31))
                values = setting.learner((X[train], target[train]), X[test], seed)
                predictions = _predictions(setting, values, target[test])
                made[-1][-1].append((repeat, predictions))
    return made


def measure(made: list[list[list]], metric: str) -> tuple[np.ndarray, np.ndarray]:
    """Return p of every pair: by the test of a leaderboard, and on the items as fitted."""
    values, seeds, scores = [], [], []
    sign = 1 if get_metric(metric).higher_is_better else -1
    for model in made:
        first = [[fold for repeat, fold in own if repeat == 0] for own in model]
        of_seeds = np.array([contributions(metric, folds) for folds in first])
        values.append(of_seeds.mean(axis=0))
        seeds.append(SeedNoise.of(of_seeds))
        by_seed = [[score(metric, fold)[0] for _, fold in own] for own in model]
        scores.append(sign * np.mean(by_seed, axis=0))
    repeats = [repeat for repeat, _ in made[0][0]]
    folds = repeats.count(0)
    ratio = 1 / (folds - 1) if folds > 1 else 0.25
    right = is_accuracy(metric) and len(made[0]) == 1
    names, table = [str(m) for m in range(len(made))], np.array(values)
    items = ItemValues(names, table, items=table.shape[1], is_right=right, seeds=seeds)
    tested = separate_pairs(items, Fits(np.array(scores), repeats, ratio), metric)
    alone = np.array([contributions(metric, [f for r, f in m[0] if r == 0]) for m in made])
    return tested.p, max_t(alone, centered=not is_accuracy(metric))


def run(setting: Setting, design: Design, boards: int) -> Iterator[dict[str, object]]:
    """Yield for each metric how often any two models are separated."""
    found: dict[str, list[tuple[bool, bool]]] = {metric: [] for metric in setting.metrics}
    for board in range(boards):
        made = simulate(np.random.default_rng([board, setting.models]), setting, design)
        for metric in setting.metrics:
            both = measure(made, metric)
            found[metric].append(tuple(bool((p < LEVEL).any()) for p in both))
    for metric, rows in found.items():
        decided, as_fitted = np.mean(rows, axis=0)
        yield {"metric": metric, "separated": f"{decided:.3f}", "as fitted": f"{as_fitted:.3f}"}


CLASSIFIED = ("acc", "auc", "f1_macro")


def settings(which: str) -> Iterator[tuple[str, Setting]]:
    if which == "seeds":
        for models in (2, 8):
            yield "tree on random features", Setting(tree, CLASSIFIED, models)
            yield "ridge on random features", Setting(ridge, ("rmse",), models)
            yield "stable ridge", Setting(stable, ("rmse",), models)
            yield "stable ridge, classes", Setting(stable, CLASSIFIED, models)
    elif which == "blocks":
        for rows in (300, 1000):
            yield f"logistic, {rows} rows", Setting(logistic, CLASSIFIED, 2, rows, which)
            yield f"tree, {rows} rows", Setting(plain_tree, CLASSIFIED, 2, rows, which)
    else:
        yield "logistic, a column less", Setting(logistic, CLASSIFIED, 2, 1000, which)
        yield "ridge, a column less", Setting(plain_ridge, ("rmse",), 2, 1000, which)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--boards", type=int, default=300)
    parser.add_argument("--only", choices=["seeds", "blocks", "power"])
    parser.add_argument("--design", choices=list(DESIGNS))
    given = parser.parse_args()
    print("| null | learner | models | design | metric | separated | as fitted |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for which in [given.only] if given.only else ["seeds", "blocks", "power"]:
        for name, setting in settings(which):
            for design in [given.design] if given.design else DESIGNS:
                for row in run(setting, DESIGNS[design], given.boards):
                    cells = [which, name, setting.models, design, *row.values()]
                    print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
