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

#: many estimators compute in 32 bits
_LARGEST = 1e30


@dataclass(eq=False, repr=False)
class ConstantPredictor(BaseEstimator):
    """Answer with the train shares of the classes, or the train mean, without looking."""

    kind: str | None = None

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


class PreparedTable(OneHotTable):
    """The one-hot table within what 32 bits hold, so that every estimator can read it.

    What it returns is read-only: several predictors may look at it.
    """

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Learn from these rows and prepare them."""
        return _within(super().fit_transform(items, y)).matrix

    def transform(self, items: pd.DataFrame) -> Rows:  # type: ignore[override]
        """Return one row of numbers per table row, each with a digest."""
        return _within(super().transform(items))


class MatrixPredictor:
    """An estimator on rows of numbers, which gets classes as codes 0, 1, … .

    It is fitted on ``max_train_rows`` rows at most, drawn by the seed with the classes in their
    shares; ``notes_`` says so. With ``likeliest`` the label is the likeliest class, and one pass
    through the estimator gives both. Rows with a digest that come again are not asked about again.
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
        """Fit the estimator on these rows, or on as many as it takes."""
        self.notes_: list[str] = []
        self.memory_ = Memory()
        X, y = self._drawn(X, np.asarray(y))
        if self.kind == "classes":
            self.classes_, y = np.unique(y, return_inverse=True)
        self.estimator.fit(X, y)
        self.history_ = list(getattr(self.estimator, "history_", []))
        return self

    def _drawn(self, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rows = self.max_train_rows
        if rows is None or rows >= len(y):
            return X, y
        rng = np.random.default_rng(self.random_state or 0)
        kept = draw(len(y), rows, rng, y if self.kind == "classes" else None)
        self.notes_.append(f"fitted on {rows:,} of {len(y):,} rows")
        return X[kept], y[kept]

    def predict(self, X: np.ndarray | Rows) -> np.ndarray:
        """Return a label or number per row."""
        if self.kind != "classes":
            return self._once(X, lambda rows: (np.asarray(self.estimator.predict(rows)),))[0]
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
        labels, chances = self._once(X, self._both)
        return labels, chances

    def _both(self, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if hasattr(self.estimator, "predict_both"):
            codes, chances = self.estimator.predict_both(X)
            return self.classes_[codes], chances
        chances = self.predict_proba(X)
        if self.likeliest:
            return self.classes_[np.argmax(chances, axis=1)], chances
        return self.predict(X), chances

    def _once(self, X: np.ndarray | Rows, ask: Callable[[np.ndarray], Answers]) -> Answers:
        return self.memory_.recall(X, ask) if isinstance(X, Rows) else ask(X)


@dataclass(eq=False, repr=False)
class TablePredictor(BaseEstimator):
    """Impute, scale and one-hot a table, then fit the estimator for its kind of truth.

    ``classes`` and ``numbers`` name the two estimators as ``"package.module:Name"``; a predictor
    that has only one of them declines the other kind. ``options`` go to both, ``class_options``
    and ``number_options`` to one. Categories rarer than ``min_frequency`` are lumped together.
    For ``max_train_rows`` and ``likeliest`` see ``MatrixPredictor``. ``kind`` and ``random_state``
    are filled in.
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
        """Return why it cannot answer this kind of question, or nothing."""
        if getattr(self, kind, None):
            return ""
        other = "numbers" if kind == "classes" else "classes"
        return f"it predicts {other}, not {kind}"

    def parts(self) -> tuple[PreparedTable, MatrixPredictor]:
        """Return its two steps, unfitted: who prepares alike can share what is prepared."""
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
        """Fit preprocessing and estimator on the train rows."""
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
        """Return the label and the class probabilities of each row, prepared once."""
        return self.last_.predict_both(self.preparation_.transform(X))


def _within(matrix: np.ndarray) -> Rows:
    return Rows(np.clip(matrix, -_LARGEST, _LARGEST, out=matrix))
