"""Frameworks of the AutoML Benchmark: those it compares with, which keep within their budget."""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from karat.models.predictors import ConstantPredictor
from karat.models.tables import TypedColumns
from karat.registry import build

#: trees compute in 32 bits
_LARGEST = 1e30
#: what the next step takes is taken to be the worst of so many before it
_REMEMBERED = 5
#: so many trees decide about a candidate where nobody limits the time
_TUNING_TREES = 100


class PriorPredictor(ConstantPredictor):
    """Answer with the train shares of the classes, or the train median, without looking."""

    package = "scikit-learn"
    models_count_ = 1

    def fit(self, X: Any, y: np.ndarray) -> PriorPredictor:
        """Learn the shares or the median."""
        from sklearn.dummy import DummyRegressor

        super().fit(X, y)
        if self.kind == "numbers":
            self.constant_ = DummyRegressor(strategy="median").fit(np.zeros((len(y), 1)), y)
        return self


class Budget:
    """Time and memory for something that grows step by step.

    What is left is told by the worst of the last steps: seconds and bytes for each tree.
    """

    def __init__(self, seconds: float | None, megabytes: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self.bytes = math.inf if megabytes is None else megabytes * 2**20
        self.begun = time.monotonic()
        self._steps: deque[tuple[float, float]] = deque(maxlen=_REMEMBERED)
        self.start()

    @property
    def limited(self) -> bool:
        """Whether anything is limited."""
        return math.isfinite(self.seconds) or math.isfinite(self.bytes)

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.seconds - (time.monotonic() - self.begun)

    def start(self) -> None:
        """Forget earlier steps; ``first`` will be the seconds of the next one."""
        self._steps.clear()
        self._mark = (time.monotonic(), _memory() if self.limited else 0.0)
        self.first = 0.0

    def grown(self, trees: int) -> None:
        """Note that so many trees have been grown since the last note."""
        now = (time.monotonic(), _memory())
        self.first = self.first or now[0] - self._mark[0]
        taken = [(b - a) / trees for a, b in zip(self._mark, now, strict=True)]
        self._steps.append((taken[0], max(taken[1], 0.0)))
        self._mark = now

    def room(self, trees: int) -> int:
        """Return how many of the trees one wants are likely to fit."""
        if not self.limited or not self._steps:
            return trees
        seconds, memory = (max(step[i] for step in self._steps) for i in (0, 1))
        fits = [self.left / seconds if seconds else math.inf]
        fits.append((self.bytes - _memory()) / memory if memory else math.inf)
        return int(max(0, min(trees, *fits)))


def _memory() -> float:
    import psutil

    return float(psutil.Process().memory_info().rss)


class PreparedTrees(BaseEstimator):
    """A base for trees: words are numbered, missing numbers become the mean.

    Words are numbered in alphabetical order, −1 for one not seen. ``trees_`` is what is fitted.
    """

    takes = ("table",)
    package = "scikit-learn"
    kind: str | None

    def _prepared(self, X: pd.DataFrame, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows as numbers and the truth as numbers or codes."""
        self.columns_ = TypedColumns(*_encoders())
        rows, truth = _within(self.columns_.fit_transform(X)), np.asarray(y)
        if self.kind != "numbers":
            self.classes_, truth = np.unique(truth, return_inverse=True)
        return rows, truth

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return the likeliest class, or a number, per row."""
        if self.kind == "numbers":
            return np.asarray(self.trees_.predict(self._rows(X)))
        return self.predict_both(X)[0]

    @available_if(lambda self: self.kind != "numbers")
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities."""
        return np.asarray(self.trees_.predict_proba(self._rows(X)))

    @available_if(lambda self: self.kind != "numbers")
    def predict_both(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest class and the probabilities, from one pass."""
        chances = self.predict_proba(X)
        return self.classes_[np.argmax(chances, axis=1)], chances

    def _rows(self, X: pd.DataFrame) -> np.ndarray:
        return _within(self.columns_.transform(X))


@dataclass(eq=False, repr=False)
class OneTree(PreparedTrees):
    """One decision tree; ``options`` are more parameters of scikit-learn's."""

    models_count_ = 1

    max_depth: int | None = None
    min_samples_leaf: float | int = 1
    options: dict[str, Any] | None = None
    kind: str | None = None
    random_state: int | None = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> OneTree:
        """Grow the tree on the train rows."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        made = DecisionTreeRegressor if self.kind == "numbers" else DecisionTreeClassifier
        options = {"max_depth": self.max_depth, "min_samples_leaf": self.min_samples_leaf}
        given = {**options, **(self.options or {}), "random_state": self.random_state or 0}
        self.trees_ = build("the tree", made, given, {}).fit(*self._prepared(X, y))
        return self


@dataclass(eq=False, repr=False)
class BudgetForest(PreparedTrees):
    """A random forest that grows as long as its time and memory last.

    It begins with a tree per core and grows by ``step_size`` trees until there are
    ``n_estimators``, or the next ones would go beyond the share ``memory_margin`` of the memory or
    ``time_margin`` of the time, judged by the worst of the last five steps. ``options`` are more
    parameters of scikit-learn's forest. How many trees there are depends on the machine where the
    time ends before; ``notes_`` says so.
    """

    n_estimators: int = 2000
    step_size: int = 10
    time_margin: float = 0.9
    memory_margin: float = 0.9
    max_features: float | int | str | None = None
    max_depth: int | None = None
    min_samples_leaf: float | int = 1
    options: dict[str, Any] | None = None
    kind: str | None = None
    random_state: int | None = None
    max_runtime_seconds: float | None = None
    max_mem_size_mb: float | None = None
    cores: int | None = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> BudgetForest:
        """Grow the forest on the train rows."""
        budget = self._budget()
        self.notes_: list[str] = []
        rows, truth = self._prepared(X, y)
        features = self._features(rows, truth, budget)
        self.trees_ = self._forest(features)
        grown = self._grow(self.trees_, rows, truth, budget)
        if grown < self.n_estimators:
            self.notes_.append(f"{grown:,} of {self.n_estimators:,} trees in {self._said()}")
        self.models_count_ = grown
        return self

    def _budget(self) -> Budget:
        seconds, megabytes = self.max_runtime_seconds, self.max_mem_size_mb
        return Budget(
            None if seconds is None else seconds * self.time_margin,
            None if megabytes is None else megabytes * self.memory_margin,
        )

    def _said(self) -> str:
        limits = ((self.max_runtime_seconds, "s"), (self.max_mem_size_mb, "MB"))
        return " and ".join(f"{limit:g} {unit}" for limit, unit in limits if limit is not None)

    def _features(self, rows: np.ndarray, truth: np.ndarray, budget: Budget) -> Any:
        return self.max_features

    def _forest(self, features: Any) -> Any:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        made = RandomForestRegressor if self.kind == "numbers" else RandomForestClassifier
        options = {
            "max_depth": self.max_depth,
            "min_samples_leaf": self.min_samples_leaf,
            **({} if features is None else {"max_features": features}),
            **(self.options or {}),
        }
        own = {"n_jobs": self.cores or 1, "warm_start": True}
        return build(
            "the forest", made, {**options, **own, "random_state": self.random_state or 0}, {}
        )

    def _grow(
        self, forest: Any, rows: np.ndarray, truth: np.ndarray, budget: Budget, most: int = 0
    ) -> int:
        """Grow a forest as far as the budget goes, and return how many trees it has."""
        most = most or self.n_estimators
        grown = 0
        budget.start()
        step = min(most, self.cores or 1) if budget.limited else most
        while step:
            forest.set_params(n_estimators=grown + step).fit(rows, truth)
            budget.grown(step)
            grown += step
            step = budget.room(min(self.step_size, most - grown))
        return grown

    def artifacts(self, names: Iterable[str]) -> dict[str, Any]:
        """Return ``info``: how large the forest is."""
        facts: dict[str, Any] = {"trees": self.models_count_, "notes": self.notes_}
        facts["max_features"] = self.trees_.max_features
        facts["leaves"] = int(sum(tree.get_n_leaves() for tree in self.trees_.estimators_))
        return {"info/forest.json": json.dumps(facts, indent=1)} if "info" in names else {}


class TunedForest(BudgetForest):
    """A random forest whose ``max_features`` is tuned within its budget.

    Tried are the root of the number of columns, up to five values below it and up to five above,
    in this order. Each gets an equal share of the time that is left, the final forest one too:
    ``k_folds`` forests grow on parts of the train rows and are scored on the rest, by ``optimise``
    or, where that is not one of acc, balacc, auc, logloss, rmse, mae and r2, by logloss or rmse.
    Once a first fit would not fit into its share, no more values are tried.
    """

    def __init__(
        self,
        n_estimators: int = 2000,
        step_size: int = 10,
        time_margin: float = 0.9,
        memory_margin: float = 0.9,
        k_folds: int = 5,
        optimise: str | None = None,
        max_depth: int | None = None,
        min_samples_leaf: float | int = 1,
        options: dict[str, Any] | None = None,
        kind: str | None = None,
        random_state: int | None = None,
        max_runtime_seconds: float | None = None,
        max_mem_size_mb: float | None = None,
        cores: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.step_size = step_size
        self.time_margin = time_margin
        self.memory_margin = memory_margin
        self.k_folds = k_folds
        self.optimise = optimise
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.options = options
        self.kind = kind
        self.random_state = random_state
        self.max_runtime_seconds = max_runtime_seconds
        self.max_mem_size_mb = max_mem_size_mb
        self.cores = cores

    def _features(self, rows: np.ndarray, truth: np.ndarray, budget: Budget) -> int:
        values = candidates(rows.shape[1])
        self.scores_: dict[int, float] = {}
        longest = 0.0
        while values and len(truth) >= 2 * self.k_folds:
            share = budget.left / (len(values) + 1)
            if share < longest:
                break
            value = values.pop(0)
            self.scores_[value], longest = self._tried(rows, truth, value, share)
        best = max(self.scores_, key=self.scores_.__getitem__, default=candidates(rows.shape[1])[0])
        self.notes_.append(f"max_features {best} of {rows.shape[1]}, {len(self.scores_)} tried")
        return best

    def _tried(
        self, rows: np.ndarray, truth: np.ndarray, value: int, share: float
    ) -> tuple[float, float]:
        """Return the mean score of a value, and the seconds of the first trees of all folds."""
        scores, first = [], 0.0
        left = None if math.isinf(share) else share / self.k_folds
        for train, test in self._folds(truth):
            forest, budget = self._forest(value), Budget(left, self.max_mem_size_mb)
            most = self.n_estimators if left is not None else min(self.n_estimators, _TUNING_TREES)
            self._grow(forest, rows[train], truth[train], budget, most)
            first += budget.first
            scores.append(self._score(forest, rows[test], truth[test], len(np.unique(truth))))
        return float(np.mean(scores)), first

    def _folds(self, truth: np.ndarray) -> Any:
        from sklearn.model_selection import KFold, StratifiedKFold

        seed = self.random_state or 0
        classes = self.kind != "numbers"
        if classes and np.bincount(truth).min() >= self.k_folds:
            cutter = StratifiedKFold(self.k_folds, shuffle=True, random_state=seed)
        else:
            cutter = KFold(self.k_folds, shuffle=True, random_state=seed)
        return cutter.split(truth, truth)

    def _score(self, forest: Any, rows: np.ndarray, truth: np.ndarray, classes: int) -> float:
        from sklearn import metrics

        if self.kind == "numbers":
            found = forest.predict(rows)
            if self.optimise == "r2":
                return float(metrics.r2_score(truth, found))
            lost = metrics.mean_absolute_error if self.optimise == "mae" else _rmse
            return -float(lost(truth, found))
        chances = np.zeros((len(rows), classes))
        chances[:, forest.classes_] = forest.predict_proba(rows)
        likely = np.argmax(chances, axis=1)
        if self.optimise == "acc":
            return float(np.mean(likely == truth))
        if self.optimise == "balacc":
            return float(np.mean([np.mean(likely[truth == c] == c) for c in np.unique(truth)]))
        if self.optimise == "auc" and classes == 2 and len(np.unique(truth)) == 2:
            return float(metrics.roc_auc_score(truth, chances[:, 1]))
        return -float(metrics.log_loss(truth, chances, labels=range(classes)))


def candidates(columns: int) -> list[int]:
    """Return the values of max_features to try, the usual one first.

    >>> candidates(16), candidates(2)
    ([4, 1, 2, 3, 6, 8, 11, 13, 16], [1, 2])
    """
    usual = max(1, math.isqrt(columns))
    below = sorted({1 + (usual - 1) * i // 5 for i in range(5)} - {usual})
    above = sorted({usual + (columns - usual) * i // 5 for i in range(1, 6)} - {usual})
    return [usual, *below, *above]


def _rmse(truth: np.ndarray, found: np.ndarray) -> float:
    return float(np.sqrt(np.mean((truth - found) ** 2)))


def _encoders() -> tuple[Any, Any]:
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OrdinalEncoder

    words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return words, SimpleImputer(strategy="mean", keep_empty_features=True)


def _within(rows: np.ndarray) -> np.ndarray:
    return np.clip(rows, -_LARGEST, _LARGEST).astype(np.float32)
