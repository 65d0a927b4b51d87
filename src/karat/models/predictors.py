"""Predictors of table rows: preprocessing and a scikit-learn estimator for classes or numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from karat.errors import Declined
from karat.models.tables import table_to_numbers
from karat.registry import load_object


class ConstantPredictor(BaseEstimator):
    """Answer with the train shares of the classes, or the train mean, without looking."""

    def __init__(self, kind: str | None = None) -> None:
        self.kind = kind

    def fit(self, X: Any, y: np.ndarray) -> ConstantPredictor:
        """Learn the shares or the mean."""
        from sklearn.dummy import DummyClassifier, DummyRegressor

        chosen = DummyRegressor() if self.kind == "numbers" else DummyClassifier(strategy="prior")
        self.constant_ = chosen.fit(np.zeros((len(y), 1)), y)
        if self.kind != "numbers":
            self.classes_ = self.constant_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the same answer for every item."""
        return np.asarray(self.constant_.predict(np.zeros((len(X), 1))))

    @available_if(lambda self: self.kind != "numbers")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the same shares for every item."""
        return np.asarray(self.constant_.predict_proba(np.zeros((len(X), 1))))


class TablePredictor(BaseEstimator):
    """Impute, scale and one-hot a table, then fit the estimator for its kind of truth.

    ``classes`` and ``numbers`` name the two estimators as ``"package.module:Name"``; a predictor
    that has only one of them declines the other kind. ``kind`` and ``random_state`` are filled in.
    """

    takes = ("table",)

    def __init__(
        self,
        classes: str | None = None,
        numbers: str | None = None,
        options: dict[str, Any] | None = None,
        kind: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.classes = classes
        self.numbers = numbers
        self.options = options
        self.kind = kind
        self.random_state = random_state

    def declines(self, kind: str) -> str:
        """Return why it cannot answer this kind of question, or nothing."""
        if getattr(self, kind, None):
            return ""
        other = "numbers" if kind == "classes" else "classes"
        return f"it predicts {other}, not {kind}"

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> TablePredictor:
        """Fit preprocessing and estimator on the train rows."""
        from sklearn.pipeline import make_pipeline

        kind = self.kind or "classes"
        if reason := self.declines(kind):
            raise Declined(reason)
        estimator = load_object(getattr(self, kind))(**(self.options or {}))
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=self.random_state)
        self.pipeline_ = make_pipeline(table_to_numbers(0.005), estimator).fit(X, y)
        if kind == "classes":
            self.classes_ = estimator.classes_
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        return np.asarray(self.pipeline_.predict(X))

    @available_if(lambda self: hasattr(self.pipeline_, "predict_proba"))
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities, where the estimator has them."""
        return np.asarray(self.pipeline_.predict_proba(X))
