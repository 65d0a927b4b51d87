"""FLAML, an AutoML system that searches learners and hyperparameters."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from karat.errors import MissingExtra
from karat.models.tables import date_columns, number_columns

#: FLAML's names of metrics; for others it optimizes the log loss or the RMSE
METRICS = {
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
    optimise: str | None = None
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
        target, numbers = np.asarray(y), self.kind == "numbers"
        if not numbers:
            self.classes_, target = np.unique(target, return_inverse=True)
        limit = self.max_runtime_seconds
        self.automl_ = AutoML()
        self.automl_.fit(
            X_train=readable(X),
            y_train=pd.Series(target),
            task="regression" if numbers else "classification",
            **{
                "time_budget": self.seconds if limit is None else limit * self.time_margin,
                "metric": METRICS.get(str(self.optimise), "rmse" if numbers else "log_loss"),
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
        predictions = np.asarray(self.automl_.predict(readable(X)))
        return predictions if self.kind == "numbers" else self.classes_[predictions.astype(int)]

    @available_if(lambda self: self.kind != "numbers")
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities."""
        return np.asarray(self.automl_.predict_proba(readable(X)))

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


def readable(X: pd.DataFrame) -> pd.DataFrame:
    """Return a table with words as strings, which AutoML systems treat as categories."""
    plain = {*number_columns(X), *date_columns(X)}
    words = {
        name: column.astype(object).where(column.notna(), None).map(str, na_action="ignore")
        for name, column in X.items()
        if name not in plain
    }
    table = X.assign(**{str(name): column for name, column in words.items()})
    return table.set_axis([str(name) for name in table.columns], axis=1).reset_index(drop=True)
