"""Baseline frameworks of the AutoML Benchmark, FLAML and AutoGluon.

They respect limits of time and memory.
"""

from __future__ import annotations

import json
import math
import tempfile
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from karat.core.registry import build
from karat.models.model import Parameterized, available_if, import_extra
from karat.models.table_predictor import ConstantPredictor, table_for_automl
from karat.models.table_predictor import MatrixPredictor as MatrixPredictor  # its earlier place
from karat.models.table_predictor import PreparedTable as PreparedTable
from karat.models.table_predictor import TablePredictor as TablePredictor
from karat.models.tables.typed_columns import TypedColumns, as_float32

if TYPE_CHECKING:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

#: the next step is expected to cost as much as the worst of this many before it
_STEPS = 5
#: trees per candidate of max_features without a time limit
_TUNING_TREES = 100
#: names of metrics in both systems; for others they optimize the log loss or the RMSE
_METRICS = {
    "acc": "accuracy",
    "auc": "roc_auc",
    "auc_ovo": "roc_auc_ovo",
    "auc_ovr": "roc_auc_ovr",
    "f1": "f1",
    "logloss": "log_loss",
    "r2": "r2",
}
FLAML_METRICS = {
    **_METRICS,
    **{"f1_macro": "macro_f1", "f1_micro": "micro_f1"},
    **{"mae": "mae", "mse": "mse", "rmse": "rmse"},
}
AUTOGLUON_METRICS = {
    **_METRICS,
    **{"balacc": "balanced_accuracy", "f1_macro": "f1_macro", "mcc": "mcc"},
    **{"mae": "mean_absolute_error", "mse": "mean_squared_error"},
    "rmse": "root_mean_squared_error",
}
#: target column of AutoGluon's training table
TARGET = "__target__"


class PriorPredictor(ConstantPredictor):
    """Predict the class shares or the median of the training rows."""

    package = "scikit-learn"
    average = "median"
    models_count_ = 1


class Budget:
    """Time and memory limits of a forest that grows step by step.

    The cost of a tree is estimated as the worst of the last steps.
    """

    def __init__(self, seconds: float | None, megabytes: float | None) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self.bytes = math.inf if megabytes is None else megabytes * 2**20
        self.started = time.monotonic()
        self._steps: deque[tuple[float, float]] = deque(maxlen=_STEPS)
        self.start()

    @property
    def limited(self) -> bool:
        """Whether there is a limit."""
        return math.isfinite(self.seconds) or math.isfinite(self.bytes)

    @property
    def left(self) -> float:
        """The remaining seconds."""
        return self.seconds - (time.monotonic() - self.started)

    def start(self) -> None:
        """Discard earlier steps; ``first`` will be the seconds of the next step."""
        self._steps.clear()
        self._mark = (time.monotonic(), _memory() if self.limited else 0.0)
        self.first = 0.0

    def grown(self, trees: int) -> None:
        """Record that this many trees were added since the last call."""
        now = (time.monotonic(), _memory())
        self.first = self.first or now[0] - self._mark[0]
        costs = [(b - a) / trees for a, b in zip(self._mark, now, strict=True)]
        self._steps.append((costs[0], max(costs[1], 0.0)))
        self._mark = now

    def room(self, trees: int) -> int:
        """Return how many of these trees are expected to fit."""
        if not self.limited or not self._steps:
            return trees
        seconds, memory = (max(step[i] for step in self._steps) for i in (0, 1))
        fits = [self.left / seconds if seconds else math.inf]
        fits.append((self.bytes - _memory()) / memory if memory else math.inf)
        return int(max(0, min(trees, *fits)))


def _memory() -> float:
    import psutil

    return float(psutil.Process().memory_info().rss)


class PreparedTrees(Parameterized):
    """Base of tree models: words are encoded ordinally, missing numbers become the mean.

    Words are numbered in alphabetical order, −1 for an unseen one. ``trees_`` is the fitted model.
    """

    takes = ("table",)
    package = "scikit-learn"
    kind: str | None
    trees_: Any

    def _prepared(self, X: pd.DataFrame, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows as numbers and the target as numbers or codes."""
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OrdinalEncoder

        words = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
        numbers = SimpleImputer(strategy="mean", keep_empty_features=True)
        self.columns_ = TypedColumns(words, numbers)
        rows, target = as_float32(self.columns_.fit_transform(X)), np.asarray(y)
        if self.kind != "regression":
            self.classes_, target = np.unique(target, return_inverse=True)
        return rows, target

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return the most likely class, or a number, per row."""
        if self.kind == "regression":
            return np.asarray(self.trees_.predict(self._rows(X)))
        return self.predict_both(X)[0]

    @available_if(lambda self: self.kind != "regression")
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities."""
        return np.asarray(self.trees_.predict_proba(self._rows(X)))

    @available_if(lambda self: self.kind != "regression")
    def predict_both(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the most likely class and the probabilities."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)], probabilities

    def _rows(self, X: pd.DataFrame) -> np.ndarray:
        return as_float32(self.columns_.transform(X))


@dataclass(eq=False, repr=False)
class OneTree(PreparedTrees):
    """One decision tree; ``options`` are further parameters of scikit-learn's tree."""

    models_count_ = 1

    max_depth: int | None = None
    min_samples_leaf: float | int = 1
    options: dict[str, Any] | None = None
    kind: str | None = None
    random_state: int | None = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> OneTree:
        """Fit the tree."""
        from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

        tree_class = DecisionTreeRegressor if self.kind == "regression" else DecisionTreeClassifier
        options = {"max_depth": self.max_depth, "min_samples_leaf": self.min_samples_leaf}
        params = {**options, **(self.options or {}), "random_state": self.random_state or 0}
        self.trees_ = build("the tree", tree_class, params, {}).fit(*self._prepared(X, y))
        return self


@dataclass(eq=False, repr=False)
class GrowingForest(PreparedTrees):
    """Base of random forests that grow until their time or memory limit."""

    n_estimators: int = 2000
    step_size: int = 10
    time_margin: float = 0.9
    memory_margin: float = 0.9
    max_depth: int | None = None
    min_samples_leaf: float | int = 1
    options: dict[str, Any] | None = None
    kind: str | None = None
    random_state: int | None = None
    max_runtime_seconds: float | None = None
    max_mem_size_mb: float | None = None
    cores: int | None = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> GrowingForest:
        """Fit the forest."""
        seconds, megabytes = self.max_runtime_seconds, self.max_mem_size_mb
        budget = Budget(
            None if seconds is None else seconds * self.time_margin,
            None if megabytes is None else megabytes * self.memory_margin,
        )
        self.notes_: list[str] = []
        rows, target = self._prepared(X, y)
        features = self._features(rows, target, budget)
        self.trees_ = self._forest(features)
        grown = self._grow(self.trees_, rows, target, budget)
        if grown < self.n_estimators:
            limits = [f"{seconds:g} s"] if seconds is not None else []
            limits += [f"{megabytes:g} MB"] if megabytes is not None else []
            note = f"{grown:,} of {self.n_estimators:,} trees in {' and '.join(limits)}"
            self.notes_.append(note)
        self.models_count_ = grown
        return self

    def _features(self, rows: np.ndarray, target: np.ndarray, budget: Budget) -> Any:
        return None

    def _forest(self, features: int | None) -> Any:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        forest_class = (
            RandomForestRegressor if self.kind == "regression" else RandomForestClassifier
        )
        options = {
            "max_depth": self.max_depth,
            "min_samples_leaf": self.min_samples_leaf,
            **({} if features is None else {"max_features": features}),
            **(self.options or {}),
        }
        growing = {"n_jobs": self.cores or 1, "warm_start": True}
        return build(
            "the forest",
            forest_class,
            {**options, **growing, "random_state": self.random_state or 0},
            {},
        )

    def _grow(
        self,
        forest: RandomForestClassifier | RandomForestRegressor,
        rows: np.ndarray,
        target: np.ndarray,
        budget: Budget,
        most: int = 0,
    ) -> int:
        """Grow a forest within the budget, and return its number of trees."""
        most = most or self.n_estimators
        grown = 0
        budget.start()
        step = min(most, self.cores or 1) if budget.limited else most
        while step:
            forest.set_params(n_estimators=grown + step).fit(rows, target)
            budget.grown(step)
            grown += step
            step = budget.room(min(self.step_size, most - grown))
        return grown

    def artifacts(self, names: Iterable[str]) -> dict[str, Any]:
        """Return ``info``: the size of the forest."""
        facts: dict[str, Any] = {"trees": self.models_count_, "notes": self.notes_}
        facts["max_features"] = self.trees_.max_features
        facts["leaves"] = int(sum(tree.get_n_leaves() for tree in self.trees_.estimators_))
        return {"info/forest.json": json.dumps(facts, indent=1)} if "info" in names else {}


@dataclass(eq=False, repr=False)
class BudgetForest(GrowingForest):
    """A random forest that grows until its time or memory limit.

    It starts with a tree per core and adds ``step_size`` trees until there are ``n_estimators``, or
    until the next step is expected to exceed ``memory_margin`` of the memory or ``time_margin`` of
    the time. ``options`` are further parameters of scikit-learn's forest. With a time limit, the
    number of trees depends on the machine; it is recorded in ``notes_``.
    """

    max_features: float | int | str | None = None

    def _features(self, rows: np.ndarray, target: np.ndarray, budget: Budget) -> Any:
        return self.max_features


@dataclass(eq=False, repr=False)
class TunedForest(GrowingForest):
    """A random forest whose ``max_features`` is tuned within its budget.

    Candidates are the square root of the number of columns, then up to five smaller and up to five
    larger values. Each candidate and the final forest get an equal share of the remaining time:
    ``k_folds`` forests are cross-validated by ``optimize`` or, if that is not one of acc, balacc,
    auc, logloss, rmse, mae and r2, by logloss or rmse. The search stops if a first fit is expected
    to exceed its share.
    """

    k_folds: int = 5
    optimize: str | None = None

    def _features(self, rows: np.ndarray, target: np.ndarray, budget: Budget) -> int:
        values = candidates(rows.shape[1])
        self.scores_: dict[int, float] = {}
        longest = 0.0
        while values and len(target) >= 2 * self.k_folds:
            share = budget.left / (len(values) + 1)
            if share < longest:
                break
            value = values.pop(0)
            self.scores_[value], longest = self._try(rows, target, value, share)
        best = max(self.scores_, key=self.scores_.__getitem__, default=candidates(rows.shape[1])[0])
        self.notes_.append(f"max_features {best} of {rows.shape[1]}, {len(self.scores_)} tried")
        return best

    def _try(
        self, rows: np.ndarray, target: np.ndarray, value: int, share: float
    ) -> tuple[float, float]:
        """Return the mean score of a value, and the seconds of the first step of all folds."""
        scores, first = [], 0.0
        seconds = None if math.isinf(share) else share / self.k_folds
        for train, test in self._folds(target):
            forest, budget = self._forest(value), Budget(seconds, self.max_mem_size_mb)
            most = (
                self.n_estimators if seconds is not None else min(self.n_estimators, _TUNING_TREES)
            )
            self._grow(forest, rows[train], target[train], budget, most)
            first += budget.first
            scores.append(self._score(forest, rows[test], target[test], len(np.unique(target))))
        return float(np.mean(scores)), first

    def _folds(self, target: np.ndarray) -> Any:
        from sklearn.model_selection import KFold, StratifiedKFold

        seed = self.random_state or 0
        stratified = self.kind != "regression" and np.bincount(target).min() >= self.k_folds
        splitter = StratifiedKFold if stratified else KFold
        return splitter(self.k_folds, shuffle=True, random_state=seed).split(target, target)

    def _score(
        self,
        forest: RandomForestClassifier | RandomForestRegressor,
        rows: np.ndarray,
        target: np.ndarray,
        classes: int,
    ) -> float:
        from sklearn import metrics

        if self.kind == "regression":
            names = {"r2": "r2", "mae": "neg_mean_absolute_error"}
            name = names.get(str(self.optimize), "neg_root_mean_squared_error")
            return float(metrics.get_scorer(name)(forest, rows, target))
        probabilities = np.zeros((len(rows), classes))
        probabilities[:, forest.classes_] = forest.predict_proba(rows)
        labels = np.argmax(probabilities, axis=1)
        if self.optimize == "acc":
            return float(np.mean(labels == target))
        if self.optimize == "balacc":
            return float(np.mean([np.mean(labels[target == c] == c) for c in np.unique(target)]))
        if self.optimize == "auc" and classes == 2 and len(np.unique(target)) == 2:
            return float(metrics.roc_auc_score(target, probabilities[:, 1]))
        return -float(metrics.log_loss(target, probabilities, labels=range(classes)))


def candidates(columns: int) -> list[int]:
    """Return the values of max_features to try, the default first.

    >>> candidates(16), candidates(2)
    ([4, 1, 2, 3, 6, 8, 11, 13, 16], [1, 2])
    """
    usual = max(1, math.isqrt(columns))
    below = sorted({1 + (usual - 1) * i // 5 for i in range(5)} - {usual})
    above = sorted({usual + (columns - usual) * i // 5 for i in range(1, 6)} - {usual})
    return [usual, *below, *above]


# -- AutoML systems: FLAML searches learners and hyperparameters, AutoGluon builds an ensemble ----


@dataclass(eq=False, repr=False)
class AutoMLPredictor(Parameterized):
    """Base of AutoML systems on the raw table: limits, target codes and predictions."""

    takes = ("table",)

    seconds: float = 60.0
    time_margin: float = 0.9
    optimize: str | None = None
    options: dict[str, Any] | None = None
    kind: str | None = None
    random_state: int | None = None
    max_runtime_seconds: float | None = None
    cores: int | None = None

    def _time(self) -> float:
        limit = self.max_runtime_seconds
        return self.seconds if limit is None else limit * self.time_margin

    def _metric(self, names: dict[str, str]) -> str:
        usual = names["rmse" if self.kind == "regression" else "logloss"]
        return names.get(str(self.optimize), usual)

    def _target(self, y: np.ndarray) -> np.ndarray:
        """Return numbers unchanged and classes as codes."""
        if self.kind == "regression":
            return np.asarray(y)
        self.classes_, codes = np.unique(np.asarray(y), return_inverse=True)
        return codes

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        fitted: Any = vars(self)["fitted_"]
        predictions = np.asarray(fitted.predict(table_for_automl(X)))
        return predictions if self.kind == "regression" else self.classes_[predictions.astype(int)]

    @available_if(lambda self: self.kind != "regression")
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities; 0 for a class that was dropped as too rare."""
        fitted: Any = vars(self)["fitted_"]
        probabilities = pd.DataFrame(fitted.predict_proba(table_for_automl(X)))
        return probabilities.reindex(columns=range(len(self.classes_)), fill_value=0.0).to_numpy(
            float
        )


@dataclass(eq=False, repr=False)
class FlamlPredictor(AutoMLPredictor):
    """FLAML's AutoML on the raw table.

    It searches for ``time_margin`` of the time limit, or for ``seconds`` without one. ``learners``
    are FLAML's names (``["lgbm", "rf"]``), ``options`` further arguments of its ``fit``. The result
    depends on the speed of the machine; for reproducible results set ``options: {max_iter: 50}``
    and a sufficient time.
    """

    package = "FLAML"

    learners: list[str] | None = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> FlamlPredictor:
        """Search and fit."""
        self.fitted_ = import_extra("flaml", "flaml").AutoML()
        self.fitted_.fit(
            X_train=table_for_automl(X),
            y_train=pd.Series(self._target(y)),
            task="regression" if self.kind == "regression" else "classification",
            **{
                "time_budget": self._time(),
                "metric": self._metric(FLAML_METRICS),
                "n_jobs": self.cores or 1,
                "seed": self.random_state or 0,
                "verbose": 0,
                "log_file_name": "",
                "estimator_list": self.learners or "auto",
                **(self.options or {}),
            },
        )
        states = getattr(self.fitted_, "_search_states", {})
        self.models_count_ = sum(state.total_iter or 0 for state in states.values()) or 1
        best = getattr(self.fitted_, "best_estimator", None)
        self.notes_ = [f"{best}, the best of {self.models_count_} tried"]
        return self

    def artifacts(self, names: Iterable[str]) -> dict[str, Any]:
        """Return ``leaderboard`` (best loss per learner) and ``info`` (chosen configuration)."""
        names, automl = list(names), self.fitted_
        configs = automl.best_config_per_estimator
        losses = automl.best_loss_per_estimator
        leaderboard = pd.DataFrame(
            {
                "learner": list(losses),
                "loss": [float(losses[name]) for name in losses],
                "config": [json.dumps(configs[name], default=float) for name in losses],
            }
        ).sort_values("loss")
        chosen = {"learner": automl.best_estimator, "config": automl.best_config}
        files = {
            "leaderboard/leaderboard.csv": leaderboard,
            "info/best.json": json.dumps(chosen, indent=1, default=float),
        }
        return {name: content for name, content in files.items() if name.partition("/")[0] in names}


@dataclass(eq=False, repr=False)
class AutoGluonPredictor(AutoMLPredictor):
    """AutoGluon's TabularPredictor on the raw table.

    It fits for ``time_margin`` of the time limit, or for ``seconds`` without one. ``presets`` are
    AutoGluon's names (``"best_quality"``), ``options`` further arguments of its ``fit``. AutoGluon
    skips learners whose library is not installed. The result depends on the speed of the machine.
    Its files are in a temporary folder, deleted with the object.
    """

    package = "autogluon.tabular"

    presets: str | list[str] | None = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> AutoGluonPredictor:
        """Fit learners and ensemble."""
        tabular = import_extra("autogluon.tabular", "autogluon")
        target, problem = self._target(y), "regression"
        if self.kind != "regression":
            problem = "binary" if len(self.classes_) == 2 else "multiclass"
        self.folder_ = tempfile.TemporaryDirectory(prefix="karat-autogluon-")
        self.fitted_ = tabular.TabularPredictor(
            label=TARGET,
            problem_type=problem,
            eval_metric=self._metric(AUTOGLUON_METRICS),
            path=str(Path(self.folder_.name) / "models"),
            verbosity=0,
            learner_kwargs={"random_state": self.random_state or 0},
        )
        options = {
            "time_limit": self._time(),
            "num_cpus": self.cores or 1,
            "num_gpus": 0,
            **({} if self.presets is None else {"presets": self.presets}),
            **(self.options or {}),
        }
        self.fitted_.fit(table_for_automl(X).assign(**{TARGET: target}), **options)
        self.models_count_ = len(self.fitted_.model_names())
        self.notes_ = [f"{self.fitted_.model_best}, the best of {self.models_count_} fitted"]
        return self

    def artifacts(self, names: Iterable[str]) -> dict[str, Any]:
        """Return ``leaderboard`` (scores of all models), ``info`` and ``models`` (a folder)."""
        names = list(names)
        files: dict[str, Any] = {}
        if "leaderboard" in names:
            files["leaderboard/leaderboard.csv"] = self.fitted_.leaderboard()
        if "info" in names:
            facts = {"best": self.fitted_.model_best, "models": self.fitted_.model_names()}
            files["info/models.json"] = json.dumps(facts, indent=1)
        if "models" in names:
            files["models/autogluon"] = Path(self.folder_.name) / "models"
        return files
