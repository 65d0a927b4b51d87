"""Predictors of table rows: preprocessing, then an estimator that is loaded in ``fit``.

Predictions of rows that occur in several views (a third of the rows on Adult) are cached by a
digest of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.core.dataset import sample_rows
from karat.core.registry import build, load_object
from karat.errors import Declined
from karat.models.model import Parameterized, available_if, fit_weighted
from karat.models.tabular_encoders import OneHotTable, clip_to_float32

#: maximum number of cached rows
MAX_CACHED_ROWS = 2**20
_BYTES = 16

#: arrays with a row per input row
PredictionArrays = tuple[np.ndarray, ...]


def read_only(matrix: np.ndarray) -> np.ndarray:
    """Return a contiguous matrix that cannot be changed."""
    matrix = np.ascontiguousarray(matrix)
    matrix.setflags(write=False)
    return matrix


class PreparedRows:
    """A read-only matrix with a digest of each row.

    >>> rows = PreparedRows(np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]]))
    >>> rows.digests[0] == rows.digests[2] != rows.digests[1]
    True
    """

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix = read_only(matrix)
        self.digests = [blake2b(row, digest_size=_BYTES).digest() for row in self.matrix]

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, matrix=read_only(state["matrix"]))  # pickle does not keep this

    @property
    def nbytes(self) -> int:
        """Size in memory, including digests."""
        return int(self.matrix.nbytes) + 64 * len(self)

    def __len__(self) -> int:
        return len(self.matrix)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        if copy is None:  # numpy before 2.0 does not know it
            return np.asarray(self.matrix, dtype=dtype)
        return np.array(self.matrix, dtype=dtype, copy=copy)


class PredictionCache:
    """Predictions by row digest, for estimators that predict each row independently.

    At most ``most`` rows are cached.
    """

    def __init__(self, most: int = MAX_CACHED_ROWS) -> None:
        self.most = most
        self.indices: dict[bytes, int] = {}
        self.answers: PredictionArrays = ()

    def recall(
        self, rows: PreparedRows, predict: Callable[[np.ndarray], PredictionArrays]
    ) -> PredictionArrays:
        """Return the predictions of rows; ``predict`` is called for new rows only."""
        first: dict[bytes, int] = {}
        for i, digest in enumerate(rows.digests):
            if digest not in self.indices:
                first.setdefault(digest, i)
        if not len(rows) or len(self.indices) + len(first) > self.most:
            return predict(rows.matrix)
        if first:
            whole = len(first) == len(rows)
            new = predict(rows.matrix if whole else rows.matrix[list(first.values())])
            before = self.answers or tuple(each[:0] for each in new)
            self.answers = tuple(map(np.concatenate, zip(before, new, strict=True)))
            self.indices.update(
                zip(first, range(len(self.indices), len(self.answers[0])), strict=True)
            )
        indices = [self.indices[digest] for digest in rows.digests]
        return tuple(each[indices] for each in self.answers)


@dataclass(eq=False, repr=False)
class ConstantPredictor(Parameterized):
    """Predict the class shares or the mean of the training rows."""

    average: ClassVar[str] = "mean"

    kind: str | None = None

    def fit(self, X: Any, y: np.ndarray) -> ConstantPredictor:
        """Compute the shares or the average."""
        from sklearn.dummy import DummyClassifier, DummyRegressor

        if self.kind == "regression":
            self.constant_ = DummyRegressor(strategy=self.average).fit(np.zeros((len(y), 1)), y)
            return self
        self.constant_ = DummyClassifier(strategy="prior").fit(np.zeros((len(y), 1)), y)
        self.classes_ = self.constant_.classes_
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Return the same prediction for every item."""
        return np.asarray(self.constant_.predict(np.zeros((len(X), 1))))

    @available_if(lambda self: self.kind != "regression")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return the same probabilities for every item."""
        return np.asarray(self.constant_.predict_proba(np.zeros((len(X), 1))))


class PreparedTable(OneHotTable):
    """The one-hot table, clipped to the range of float32; the result is read-only and shared."""

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform."""
        return read_only(clip_to_float32(super().fit_transform(items, y)))

    def transform(self, items: pd.DataFrame) -> PreparedRows:  # type: ignore[override]
        """Return one row of numbers per table row, each with a digest."""
        return PreparedRows(clip_to_float32(super().transform(items)))


@dataclass(eq=False, repr=False)
class MatrixPredictor:
    """An estimator on rows of numbers, which gets classes as codes 0, 1, ….

    It is fitted on a stratified sample of at most ``max_train_rows`` rows, recorded in ``notes_``.
    With ``likeliest``, labels are the most likely class, so that one call gives labels and
    probabilities. Predictions of repeated rows are cached by digest.
    """

    estimator: Any
    kind: str
    max_train_rows: int | None = None
    likeliest: bool = False
    random_state: int | None = None

    def fit(
        self, X: np.ndarray, y: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> MatrixPredictor:
        """Fit the estimator on these rows or a sample of them."""
        self.notes_: list[str] = []
        self.memory_ = PredictionCache()
        y, rows = np.asarray(y), self.max_train_rows
        if rows is not None and rows < len(y):
            rng = np.random.default_rng(self.random_state or 0)
            chosen = sample_rows(len(y), rows, rng, y if self.kind == "classification" else None)
            self.notes_.append(f"fitted on {rows:,} of {len(y):,} rows")
            X, y = X[chosen], y[chosen]
            sample_weight = None if sample_weight is None else sample_weight[chosen]
        if self.kind == "classification":
            self.classes_, y = np.unique(y, return_inverse=True)
        self.notes_ += fit_weighted(self.estimator, X, y, sample_weight)
        self.history_ = list(getattr(self.estimator, "history_", []))
        return self

    def predict(self, X: np.ndarray | PreparedRows) -> np.ndarray:
        """Return a label or number per row."""
        if self.kind != "classification":
            return self._cached(X, lambda rows: (np.asarray(self.estimator.predict(rows)),))[0]
        if self.likeliest or (isinstance(X, PreparedRows) and hasattr(self, "predict_both")):
            return self.predict_both(X)[0]
        return self.classes_[np.asarray(self.estimator.predict(np.asarray(X))).astype(int)]

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_proba(self, X: np.ndarray | PreparedRows) -> np.ndarray:
        """Return the class probabilities, where the estimator has them."""
        if isinstance(X, PreparedRows):
            return self.predict_both(X)[1]
        return np.asarray(self.estimator.predict_proba(X))

    @available_if(lambda self: hasattr(self.estimator, "predict_proba"))
    def predict_both(self, X: np.ndarray | PreparedRows) -> tuple[np.ndarray, np.ndarray]:
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

    def _cached(
        self, X: np.ndarray | PreparedRows, predict: Callable[[np.ndarray], PredictionArrays]
    ) -> PredictionArrays:
        return self.memory_.recall(X, predict) if isinstance(X, PreparedRows) else predict(X)


@dataclass(eq=False, repr=False)
class TablePredictor(Parameterized):
    """Impute, scale and one-hot encode a table, then fit an estimator.

    ``classifier`` and ``regressor`` are estimators as ``"package.module:Name"``; if one is None,
    this kind of target is declined. ``options`` are passed to both, ``classifier_options`` and
    ``regressor_options`` to one. ``min_frequency`` and ``missing_category`` are those of the model
    ``onehot``: rare categories are merged, a missing one is a level. See ``MatrixPredictor`` for
    ``max_train_rows`` and ``likeliest``. ``kind`` and ``random_state`` are filled in by Karat.
    """

    takes = ("table",)

    classifier: str | None = None
    regressor: str | None = None
    options: dict[str, Any] | None = None
    classifier_options: dict[str, Any] | None = None
    regressor_options: dict[str, Any] | None = None
    min_frequency: float | int | None = 0.005
    missing_category: str = "level"
    max_train_rows: int | None = None
    likeliest: bool = False
    kind: str | None = None
    random_state: int | None = None

    def declines(self, kind: str) -> str:
        """Return why it cannot predict this kind of target, or an empty string."""
        classes = kind == "classification"
        if self.classifier if classes else self.regressor:
            return ""
        return f"it is for {'regression' if classes else 'classification'}, not {kind}"

    def parts(self) -> tuple[PreparedTable, MatrixPredictor]:
        """Return its two unfitted steps; predictors can share prepared tables."""
        kind = self.kind or "classification"
        if reason := self.declines(kind):
            raise Declined(reason)
        path, own = str(self.classifier), self.classifier_options
        if kind == "regression":
            path, own = str(self.regressor), self.regressor_options
        options = {**(self.options or {}), **(own or {})}
        estimator: Any = build(f'the estimator "{path}"', load_object(path), options, {})
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=self.random_state)
        last = MatrixPredictor(
            estimator, kind, self.max_train_rows, self.likeliest, self.random_state
        )
        return self.preparation(), last

    def preparation(self) -> PreparedTable:
        """Return its first step, without loading the estimator."""
        return PreparedTable(self.min_frequency, self.missing_category)

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
