"""AutoML systems: FLAML searches learners and hyperparameters, AutoGluon builds an ensemble."""

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

from karat.models.model import import_extra
from karat.models.tabular_encoders import date_columns, numeric_columns

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


@dataclass(eq=False, repr=False)
class AutoMLPredictor(BaseEstimator):
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
        predictions = np.asarray(self.fitted_.predict(table_for_automl(X)))
        return predictions if self.kind == "regression" else self.classes_[predictions.astype(int)]

    @available_if(lambda self: self.kind != "regression")
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities; 0 for a class that was dropped as too rare."""
        found = pd.DataFrame(self.fitted_.predict_proba(table_for_automl(X)))
        return found.reindex(columns=range(len(self.classes_)), fill_value=0.0).to_numpy(float)


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


def table_for_automl(X: pd.DataFrame) -> pd.DataFrame:
    """Return a table with words as strings, which AutoML systems treat as categories."""
    plain = {*numeric_columns(X), *date_columns(X)}
    words = {
        name: column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
        for name, column in X.items()
        if name not in plain
    }
    table = pd.DataFrame({str(name): words.get(name, column) for name, column in X.items()})
    return table.reset_index(drop=True)


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
