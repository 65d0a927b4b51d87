"""Predictors of table rows: preprocessing and a scikit-learn estimator for classes or numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from karat.draws import draw
from karat.errors import Declined
from karat.models.rows import Answers, Memory, Rows
from karat.models.tables import OneHotTable
from karat.registry import build, load_object

#: many estimators use float32
_LARGEST = 1e30


@dataclass(eq=False, repr=False)
class ConstantPredictor(BaseEstimator):
    """Predict the class shares or the mean of the training rows."""

    kind: str | None = None

    def fit(self, X: Any, y: np.ndarray) -> ConstantPredictor:
        """Compute the shares or the mean."""
        from sklearn.dummy import DummyClassifier, DummyRegressor

        chosen = DummyRegressor() if self.kind == "numbers" else DummyClassifier(strategy="prior")
        self.constant_ = chosen.fit(np.zeros((len(y), 1)), y)
        if self.kind != "numbers":
            self.classes_ = self.constant_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the same prediction for every item."""
        return np.asarray(self.constant_.predict(np.zeros((len(X), 1))))

    @available_if(lambda self: self.kind != "numbers")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the same probabilities for every item."""
        return np.asarray(self.constant_.predict_proba(np.zeros((len(X), 1))))


class PreparedTable(OneHotTable):
    """The one-hot table, clipped to the range of float32; the result is read-only and shared."""

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform."""
        return _clipped(super().fit_transform(items, y)).matrix

    def transform(self, items: pd.DataFrame) -> Rows:  # type: ignore[override]
        """Return one row of numbers per table row, each with a digest."""
        return _clipped(super().transform(items))


class MatrixPredictor:
    """An estimator on rows of numbers, which gets classes as codes 0, 1, ….

    It is fitted on a stratified sample of at most ``max_train_rows`` rows, recorded in ``notes_``.
    With ``likeliest``, labels are the most likely class, so that one call gives labels and
    probabilities. Predictions of repeated rows are cached by digest.
    """

    def __init__(
        self,
        estimator: Any,
        kind: str,
        max_train_rows: int | None = None,
        likeliest: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.kind = kind
        self.max_train_rows = max_train_rows
        self.likeliest = likeliest
        self.random_state = random_state

    def fit(self, X: np.ndarray, y: np.ndarray) -> MatrixPredictor:
        """Fit the estimator on these rows or a sample of them."""
        self.notes_: list[str] = []
        self.memory_ = Memory()
        X, y = self._sample(X, np.asarray(y))
        if self.kind == "classes":
            self.classes_, y = np.unique(y, return_inverse=True)
        self.estimator.fit(X, y)
        self.history_ = list(getattr(self.estimator, "history_", []))
        return self

    def _sample(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = self.max_train_rows
        if rows is None or rows >= len(y):
            return X, y
        rng = np.random.default_rng(self.random_state or 0)
        chosen = draw(len(y), rows, rng, y if self.kind == "classes" else None)
        self.notes_.append(f"fitted on {rows:,} of {len(y):,} rows")
        return X[chosen], y[chosen]

    def predict(self, X: np.ndarray | Rows) -> np.ndarray:
        """Return a label or number per row."""
        if self.kind != "classes":
            return self._cached(X, lambda rows: (np.asarray(self.estimator.predict(rows)),))[0]
        if self.likeliest or (isinstance(X, Rows) and hasattr(self, "predict_both")):
            return self.predict_both(X)[0]
        return self.classes_[np.asarray(self.estimator.predict(np.asarray(X))).astype(int)]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: np.ndarray | Rows) -> np.ndarray:
        """Return the class probabilities, where the estimator has them."""
        if isinstance(X, Rows):
            return self.predict_both(X)[1]
        return np.asarray(self.estimator.predict_proba(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_both(self, X: np.ndarray | Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return the label and the class probabilities of each row."""
        labels, probabilities = self._cached(X, self._both)
        return labels, probabilities

    def _both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if hasattr(self.estimator, "predict_both"):
            codes, probabilities = self.estimator.predict_both(X)
            return self.classes_[codes], probabilities
        probabilities = self.predict_proba(X)
        if self.likeliest:
            return self.classes_[np.argmax(probabilities, axis=1)], probabilities
        return self.predict(X), probabilities

    def _cached(self, X: np.ndarray | Rows, predict: Callable[[np.ndarray], Answers]) -> Answers:
        return self.memory_.recall(X, predict) if isinstance(X, Rows) else predict(X)


@dataclass(eq=False, repr=False)
class TablePredictor(BaseEstimator):
    """Impute, scale and one-hot encode a table, then fit an estimator.

    ``classes`` and ``numbers`` are the estimators as ``"package.module:Name"``; if one is None,
    this kind of target is declined. ``options`` are passed to both, ``class_options`` and
    ``number_options`` to one. Categories rarer than ``min_frequency`` are merged. See
    ``MatrixPredictor`` for ``max_train_rows`` and ``likeliest``. ``kind`` and ``random_state`` are
    filled in by Karat.
    """

    takes = ("table",)

    classes: str | None = None
    numbers: str | None = None
    options: dict[str, Any] | None = None
    class_options: dict[str, Any] | None = None
    number_options: dict[str, Any] | None = None
    min_frequency: float | int | None = 0.005
    max_train_rows: int | None = None
    likeliest: bool = False
    kind: str | None = None
    random_state: int | None = None

    def declines(self, kind: str) -> str:
        """Return why it cannot predict this kind of target, or an empty string."""
        if getattr(self, kind, None):
            return ""
        other = "numbers" if kind == "classes" else "classes"
        return f"it predicts {other}, not {kind}"

    def parts(self) -> tuple[PreparedTable, MatrixPredictor]:
        """Return its two unfitted steps; predictors can share prepared tables."""
        kind = self.kind or "classes"
        if reason := self.declines(kind):
            raise Declined(reason)
        path: str = getattr(self, kind)
        own = self.class_options if kind == "classes" else self.number_options
        options = {**(self.options or {}), **(own or {})}
        estimator: Any = build(f'the estimator "{path}"', load_object(path), options, {})
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=self.random_state)
        last = MatrixPredictor(
            estimator, kind, self.max_train_rows, self.likeliest, self.random_state
        )
        return PreparedTable(self.min_frequency), last

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> TablePredictor:
        """Fit preprocessing and estimator."""
        self.preparation_, self.last_ = self.parts()
        self.last_.fit(self.preparation_.fit_transform(X), y)
        for name in ("classes_", "notes_", "history_"):
            if hasattr(self.last_, name):
                setattr(self, name, getattr(self.last_, name))
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return a label or number per row."""
        return self.last_.predict(self.preparation_.transform(X))

    @available_if(lambda self: hasattr(self.last_, "predict_proba"))
    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Return the class probabilities, where the estimator has them."""
        return self.last_.predict_proba(self.preparation_.transform(X))

    @available_if(lambda self: hasattr(self.last_, "predict_proba"))
    def predict_both(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the label and the class probabilities of each row."""
        return self.last_.predict_both(self.preparation_.transform(X))


def _clipped(matrix: np.ndarray) -> Rows:
    return Rows(np.clip(matrix, -_LARGEST, _LARGEST, out=matrix))
