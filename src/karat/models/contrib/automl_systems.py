"""FLAML, an AutoML system that searches learners and hyperparameters.

AutoGluon, an AutoML system that builds an ensemble of many learners.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from karat.errors import MissingExtra
from karat.models.tabular_encoders import date_columns, numeric_columns

#: FLAML's names of metrics; for others it optimizes the log loss or the RMSE
FLAML_METRICS = {
    "acc": "accuracy",
    "auc": "roc_auc",
    "auc_ovo": "roc_auc_ovo",
    "auc_ovr": "roc_auc_ovr",
    "f1": "f1",
    "f1_macro": "macro_f1",
    "f1_micro": "micro_f1",
    "logloss": "log_loss",
    "mae": "mae",
    "mse": "mse",
    "r2": "r2",
    "rmse": "rmse",
}


@dataclass(eq=False, repr=False)
class FlamlPredictor(BaseEstimator):
    """FLAML's AutoML on the raw table.

    It searches for ``time_margin`` of the time limit, or for ``seconds`` without one. ``learners``
    are FLAML's names (``["lgbm", "rf"]``), ``options`` further arguments of its ``fit``. The result
    depends on the speed of the machine; for reproducible results set ``options: {max_iter: 50}``
    and a sufficient time.
    """

    takes = ("table",)
    package = "FLAML"

    seconds: float = 60.0
    time_margin: float = 0.9
    learners: list[str] | None = None
    optimize: str | None = None
    options: dict[str, Any] | None = None
    kind: str | None = None
    random_state: int | None = None
    max_runtime_seconds: float | None = None
    cores: int | None = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> FlamlPredictor:
        """Search and fit."""
        try:
            from flaml import AutoML
        except ImportError as error:
            raise MissingExtra("flaml", "flaml") from error
        target, numbers = np.asarray(y), self.kind == "regression"
        if not numbers:
            self.classes_, target = np.unique(target, return_inverse=True)
        limit = self.max_runtime_seconds
        self.automl_ = AutoML()
        self.automl_.fit(
            X_train=table_for_automl(X),
            y_train=pd.Series(target),
            task="regression" if numbers else "classification",
            **{
                "time_budget": self.seconds if limit is None else limit * self.time_margin,
                "metric": FLAML_METRICS.get(str(self.optimize), "rmse" if numbers else "log_loss"),
                "n_jobs": self.cores or 1,
                "seed": self.random_state or 0,
                "verbose": 0,
                "log_file_name": "",
                "estimator_list": self.learners or "auto",
                **(self.options or {}),
            },
        )
        self.models_count_ = sum(s.total_iter or 0 for s in self._states().values()) or 1
        best = getattr(self.automl_, "best_estimator", None)
        self.notes_ = [f"{best}, the best of {self.models_count_} tried"]
        return self

    def _states(self) -> dict[str, Any]:
        return dict(getattr(self.automl_, "_search_states", {}))

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        predictions = np.asarray(self.automl_.predict(table_for_automl(X)))
        return predictions if self.kind == "regression" else self.classes_[predictions.astype(int)]

    @available_if(lambda self: self.kind != "regression")
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities."""
        return np.asarray(self.automl_.predict_proba(table_for_automl(X)))

    def artifacts(self, names: Iterable[str]) -> dict[str, Any]:
        """Return ``leaderboard`` (best loss per learner) and ``info`` (chosen configuration)."""
        names, automl = list(names), self.automl_
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


def table_for_automl(X: pd.DataFrame) -> pd.DataFrame:
    """Return a table with words as strings, which AutoML systems treat as categories."""
    plain = {*numeric_columns(X), *date_columns(X)}
    words = {
        name: column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
        for name, column in X.items()
        if name not in plain
    }
    table = X.assign(**{str(name): column for name, column in words.items()})
    return table.set_axis([str(name) for name in table.columns], axis=1).reset_index(drop=True)


#: AutoGluon's names of metrics; for others it optimizes the log loss or the RMSE
AUTOGLUON_METRICS = {
    "acc": "accuracy",
    "auc": "roc_auc",
    "auc_ovo": "roc_auc_ovo",
    "auc_ovr": "roc_auc_ovr",
    "balacc": "balanced_accuracy",
    "f1": "f1",
    "f1_macro": "f1_macro",
    "logloss": "log_loss",
    "mae": "mean_absolute_error",
    "mcc": "mcc",
    "mse": "mean_squared_error",
    "r2": "r2",
    "rmse": "root_mean_squared_error",
}
#: target column of the training table
TARGET = "__target__"


@dataclass(eq=False, repr=False)
class AutoGluonPredictor(BaseEstimator):
    """AutoGluon's TabularPredictor on the raw table.

    It fits for ``time_margin`` of the time limit, or for ``seconds`` without one. ``presets`` are
    AutoGluon's names (``"best_quality"``), ``options`` further arguments of its ``fit``. AutoGluon
    skips learners whose library is not installed. The result depends on the speed of the machine.
    Its files are in a temporary folder, deleted with the object.
    """

    takes = ("table",)
    package = "autogluon.tabular"

    seconds: float = 60.0
    time_margin: float = 0.9
    presets: str | list[str] | None = None
    optimize: str | None = None
    options: dict[str, Any] | None = None
    kind: str | None = None
    random_state: int | None = None
    max_runtime_seconds: float | None = None
    cores: int | None = None

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> AutoGluonPredictor:
        """Fit learners and ensemble."""
        try:
            from autogluon.tabular import TabularPredictor
        except ImportError as error:
            raise MissingExtra("autogluon.tabular", "autogluon") from error
        target, limit = np.asarray(y), self.max_runtime_seconds
        if self.kind != "regression":
            self.classes_, target = np.unique(target, return_inverse=True)
        self.folder_ = tempfile.TemporaryDirectory(prefix="karat-autogluon-")
        self.predictor_ = TabularPredictor(
            label=TARGET,
            problem_type=self._problem(),
            eval_metric=self._metric(),
            path=str(Path(self.folder_.name) / "models"),
            verbosity=0,
            learner_kwargs={"random_state": self.random_state or 0},
        )
        options = {
            "time_limit": self.seconds if limit is None else limit * self.time_margin,
            "num_cpus": self.cores or 1,
            "num_gpus": 0,
            **({} if self.presets is None else {"presets": self.presets}),
            **(self.options or {}),
        }
        self.predictor_.fit(table_for_automl(X).assign(**{TARGET: target}), **options)
        self.models_count_ = len(self.predictor_.model_names())
        self.notes_ = [f"{self.predictor_.model_best}, the best of {self.models_count_} fitted"]
        return self

    def _problem(self) -> str:
        if self.kind == "regression":
            return "regression"
        return "binary" if len(self.classes_) == 2 else "multiclass"

    def _metric(self) -> str:
        usual = AUTOGLUON_METRICS["rmse" if self.kind == "regression" else "logloss"]
        return AUTOGLUON_METRICS.get(str(self.optimize), usual)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        predictions = self.predictor_.predict(table_for_automl(X)).to_numpy()
        return predictions if self.kind == "regression" else self.classes_[predictions.astype(int)]

    @available_if(lambda self: self.kind != "regression")
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities; 0 for a class AutoGluon dropped as too rare."""
        probabilities = self.predictor_.predict_proba(table_for_automl(X))
        return probabilities.reindex(columns=range(len(self.classes_)), fill_value=0.0).to_numpy(
            dtype=float
        )

    def artifacts(self, names: Iterable[str]) -> dict[str, Any]:
        """Return ``leaderboard`` (scores of all models), ``info`` and ``models`` (a folder)."""
        names = list(names)
        files: dict[str, Any] = {}
        if "leaderboard" in names:
            files["leaderboard/leaderboard.csv"] = self.predictor_.leaderboard()
        if "info" in names:
            facts = {"best": self.predictor_.model_best, "models": self.predictor_.model_names()}
            files["info/models.json"] = json.dumps(facts, indent=1)
        if "models" in names:
            files["models/autogluon"] = Path(self.folder_.name) / "models"
        return files
