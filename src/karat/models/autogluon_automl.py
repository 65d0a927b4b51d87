"""AutoGluon, an AutoML system that builds an ensemble of many learners."""

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
from karat.models.flaml_automl import readable

#: AutoGluon's names of metrics; for others it optimizes the log loss or the RMSE
METRICS = {
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
    optimise: str | None = None
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
        if self.kind != "numbers":
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
        self.predictor_.fit(readable(X).assign(**{TARGET: target}), **options)
        self.models_count_ = len(self.predictor_.model_names())
        self.notes_ = [f"{self.predictor_.model_best}, the best of {self.models_count_} fitted"]
        return self

    def _problem(self) -> str:
        if self.kind == "numbers":
            return "regression"
        return "binary" if len(self.classes_) == 2 else "multiclass"

    def _metric(self) -> str:
        usual = METRICS["rmse" if self.kind == "numbers" else "logloss"]
        return METRICS.get(str(self.optimise), usual)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        predictions = self.predictor_.predict(readable(X)).to_numpy()
        return predictions if self.kind == "numbers" else self.classes_[predictions.astype(int)]

    @available_if(lambda self: self.kind != "numbers")
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities; 0 for a class AutoGluon dropped as too rare."""
        probabilities = self.predictor_.predict_proba(readable(X))
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
