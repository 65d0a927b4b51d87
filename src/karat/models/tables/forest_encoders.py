"""Forests as encoders: the leaves that a row falls into, and what a forest predicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import Declined
from karat.models.model import (
    FittedEncoder,
    Target,
    target_kind,
)
from karat.models.tables.ordinal_table import ordinal_words
from karat.models.tables.typed_columns import FittedInTransform, TypedColumns, as_float32


@dataclass(eq=False, repr=False)
class ForestLeaves(FittedInTransform):
    """One-hot encode the leaf of a row, for each tree of a forest.

    With a target this is a random forest, otherwise trees are split at random. Embeddings of
    training rows overfit, and as two forests share no leaf, they cannot be used out of fold.
    """

    takes = ("table",)
    aligned = False

    trees: int = 50
    leaves: int = 16
    kind: str | None = None
    random_state: int | None = None

    def fit_transform(self, items: pd.DataFrame, y: Target = None) -> np.ndarray:
        """Fit and transform."""
        from sklearn.ensemble import RandomTreesEmbedding
        from sklearn.preprocessing import OneHotEncoder

        options = {
            "n_estimators": self.trees,
            "max_leaf_nodes": self.leaves,
            "random_state": self.random_state or 0,
        }
        self.columns_ = TypedColumns(ordinal_words())
        rows = as_float32(self.columns_.fit_transform(items))
        if y is None:
            self.forest_ = RandomTreesEmbedding(max_depth=None, **options).fit(rows)
        else:
            self.forest_ = _fit_forest(rows, y, target_kind(y, self.kind), options)
        self.places_ = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
        return np.asarray(self.places_.fit_transform(self.forest_.apply(rows)))

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of leaves per table row, a 1 for each tree."""
        leaves = self.forest_.apply(as_float32(self.columns_.transform(items)))
        return np.asarray(self.places_.transform(leaves))


@dataclass(eq=False, repr=False)
class ForestScores(FittedEncoder):
    """The class probabilities or the prediction of a random forest.

    It overfits training rows, so use it inside ``OutOfFold``. It declines tasks without a target.
    ``classes_`` names the dimensions. ``rows`` is the maximum number of rows per tree.
    """

    takes = ("table",)

    trees: int = 50
    rows: int = 5000
    kind: str | None = None
    random_state: int | None = None

    def fit(self, items: pd.DataFrame, y: Target = None) -> ForestScores:
        """Fit the forest."""
        if y is None:
            raise Declined("it needs the target, which is hidden here")
        kind = target_kind(y, self.kind)
        if kind == "classification":
            self.classes_ = np.unique(y)
        self.columns_ = TypedColumns(ordinal_words())
        rows = as_float32(self.columns_.fit_transform(items))
        options = {
            "n_estimators": self.trees,
            "max_samples": min(self.rows, len(rows)),
            "random_state": self.random_state or 0,
        }
        self.forest_ = _fit_forest(rows, y, kind, options)
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return a probability per class, or one number, per table row."""
        rows = as_float32(self.columns_.transform(items))
        if hasattr(self.forest_, "predict_proba"):
            return np.asarray(self.forest_.predict_proba(rows))
        return np.asarray(self.forest_.predict(rows)).reshape(-1, 1)

    @property
    def requires_target(self) -> bool:
        """The forest needs the target."""
        return True


def _fit_forest(rows: np.ndarray, y: Any, kind: str, options: dict[str, Any]) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if kind == "classification":
        # as codes: scikit-learn refuses labels such as 0.5
        return RandomForestClassifier(**options).fit(rows, np.unique(y, return_inverse=True)[1])
    # a third of the columns per split, Breiman's default for regression
    return RandomForestRegressor(max_features=1 / 3, **options).fit(rows, y)
