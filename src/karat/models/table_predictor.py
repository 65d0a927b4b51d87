"""Predictors of table rows: they prepare the rows and load their estimator in ``fit``.

The rows of several views are predicted in one call, each distinct row once (a third of those of
Adult occur in several views).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike

from karat.core.dataset import sample_rows
from karat.core.registry import build, load_object
from karat.core.replicates import depends_on_seed
from karat.errors import Declined
from karat.models.model import Parameterized, Target, available_if, fit_weighted
from karat.models.tables.one_hot_table import OneHotTable
from karat.models.tables.typed_columns import clip_to_float32, date_columns, numeric_columns

#: largest size of the distinct rows of several views, in bytes
MAX_SHARED = 2**28

#: rows that are predicted at once, as estimators may need much memory per row
BLOCK = 2**13

#: arrays with a row per input row
PredictionArrays = tuple[np.ndarray, ...]

#: a matrix, and the indices of the rows of each view
DistinctRows = tuple[np.ndarray, dict[str, np.ndarray]]


def read_only(matrix: np.ndarray) -> np.ndarray:
    """Return a contiguous matrix that cannot be changed."""
    matrix = np.ascontiguousarray(matrix)
    matrix.setflags(write=False)
    return matrix


def distinct_rows(views: Iterable[tuple[str, np.ndarray]]) -> DistinctRows:
    """Return the distinct rows of the first views, up to ``MAX_SHARED`` bytes.

    >>> matrix, indices = distinct_rows([("a", np.eye(2)), ("b", np.eye(2)[[1, 1, 0]])])
    >>> len(matrix), indices["b"].tolist()
    (2, [1, 1, 0])
    """
    places: dict[bytes, int] = {}
    parts, indices = [np.empty((0, 0))], dict[str, np.ndarray]()
    for name, rows in views:
        count_before = len(places)
        numbers = (places.setdefault(row.tobytes(), len(places)) for row in rows)
        row_numbers = np.fromiter(numbers, dtype=np.intp, count=len(rows))
        highest = np.maximum.accumulate(np.maximum(row_numbers, count_before - 1))
        new = rows[np.diff(highest, prepend=count_before - 1) > 0]
        if sum(part.nbytes for part in parts) + new.nbytes > MAX_SHARED:
            break
        indices[name], parts = row_numbers, [*(parts if indices else ()), new]
    return np.concatenate(parts), indices


class PreparedRows:
    """Rows of a read-only matrix: all, or those with these indices."""

    def __init__(self, matrix: np.ndarray, indices: np.ndarray | None = None) -> None:
        self.matrix = read_only(matrix)
        self.indices, self.nbytes = indices, self.matrix.nbytes

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state, matrix=read_only(state["matrix"]))  # pickle does not keep this

    def __len__(self) -> int:
        return len(self.matrix if self.indices is None else self.indices)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        rows = self.matrix if self.indices is None else self.matrix[self.indices]
        # numpy before 2.0 does not know copy=None
        return np.asarray(rows, dtype=dtype) if copy is None else np.array(rows, dtype, copy=copy)


@dataclass(eq=False, repr=False)
class ConstantPredictor(Parameterized):
    """Predict the class shares or the mean of the training rows."""

    average: ClassVar[str] = "mean"

    kind: str | None = None

    def fit(self, X: pd.DataFrame | PreparedRows | np.ndarray, y: np.ndarray) -> ConstantPredictor:
        """Compute the shares or the average."""
        y = np.asarray(y)
        if self.kind == "regression":
            summed = np.median if self.average == "median" else np.average
            self.constant_ = float(summed(y[:, None], axis=0)[0])  # as scikit-learn's dummies
            return self
        self.classes_, counts = np.unique(y, return_counts=True)
        self.shares_ = counts / len(y)
        return self

    def predict(self, X: pd.DataFrame | PreparedRows | np.ndarray) -> np.ndarray:
        """Return the same prediction for every item."""
        if self.kind == "regression":
            return np.full(len(X), self.constant_)
        return np.repeat(self.classes_[[self.shares_.argmax()]], len(X))

    @available_if(lambda self: self.kind != "regression")
    def predict_proba(self, X: pd.DataFrame | PreparedRows | np.ndarray) -> np.ndarray:
        """Return the same probabilities for every item."""
        return np.tile(self.shares_, (len(X), 1))


class PreparedTable(OneHotTable):
    """The one-hot table, clipped to the range of float32; the result is read-only and shared."""

    def fit_transform(self, items: pd.DataFrame, y: Target = None) -> np.ndarray:
        """Fit and transform."""
        return read_only(clip_to_float32(super().fit_transform(items, y)))

    def transform(self, items: pd.DataFrame) -> PreparedRows:  # type: ignore[override]
        """Return one row of numbers per table row."""
        return PreparedRows(clip_to_float32(super().transform(items)))

    def transform_views(self, views: Iterable[tuple[str, pd.DataFrame]]) -> DistinctRows:
        """Return the distinct rows of several tables."""
        return distinct_rows((name, self.transform(items).matrix) for name, items in views)


@dataclass(eq=False, repr=False)
class MatrixPredictor:
    """An estimator on rows of numbers, which gets classes as codes 0, 1, ….

    It is fitted on a stratified sample of at most ``max_train_rows`` rows, recorded in ``notes_``.
    With ``likeliest``, labels are the most likely class, so that one call gives labels and
    probabilities. The rows of a matrix are predicted once for all views that share it.
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
        self.known_: tuple[np.ndarray, PredictionArrays | None] | None = None
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
        if not isinstance(X, PreparedRows) or X.indices is None:
            return predict(np.asarray(X))
        if self.known_ is None or self.known_[0] is not X.matrix:
            self.known_ = (X.matrix, None)
            with contextlib.suppress(Exception):  # the rows of one view may fail
                count = len(X.matrix) or 1
                step = count if getattr(self.estimator, "all_at_once", False) else BLOCK
                parts = [predict(X.matrix[at : at + step]) for at in range(0, count, step)]
                self.known_ = (X.matrix, tuple(map(np.concatenate, zip(*parts, strict=True))))
        if (stored := self.known_[1]) is None:
            return predict(np.asarray(X))
        return tuple(array[X.indices] for array in stored)

    def __getstate__(self) -> dict[str, Any]:
        """Return what predictions of other rows need."""
        return {**vars(self), "known_": None}


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

    def uses_seed(self, kind: str) -> bool:
        """Return whether the seed draws rows to fit on, or is used by the estimator."""
        return self.max_train_rows is not None or depends_on_seed(self._estimator(kind), kind)

    def _estimator(self, kind: str) -> Any:
        path, own_options = str(self.classifier), self.classifier_options
        if kind == "regression":
            path, own_options = str(self.regressor), self.regressor_options
        options = {**(self.options or {}), **(own_options or {})}
        return build(f'the estimator "{path}"', load_object(path), options, {})

    def parts(self) -> tuple[PreparedTable, MatrixPredictor]:
        """Return its two unfitted steps; predictors can share prepared tables."""
        kind = self.kind or "classification"
        if reason := self.declines(kind):
            raise Declined(reason)
        estimator = self._estimator(kind)
        if "random_state" in estimator.get_params():
            estimator.set_params(random_state=self.random_state)
        last = MatrixPredictor(
            estimator=estimator,
            kind=kind,
            max_train_rows=self.max_train_rows,
            likeliest=self.likeliest,
            random_state=self.random_state,
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
