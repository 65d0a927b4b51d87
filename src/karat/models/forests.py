"""Row encoders made of forests: the leaves a row falls into, and what the trees say about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.errors import Declined
from karat.models.encodings import ordinal_words
from karat.models.tables import TypedColumns
from karat.models.truth import kind_of

#: trees compute in 32 bits
_LARGEST = 1e30


@dataclass(eq=False, repr=False)
class ForestLeaves(TransformerMixin, BaseEstimator):
    """One-hot the leaf a row falls into, for each tree of a forest.

    With the truth, a random forest is grown on it; where it is hidden, trees are split at random.
    Train rows helped to grow the trees, which flatters them; and since two forests share no leaf,
    they cannot be had out of fold (see ``out_of_fold``).
    """

    takes = ("table",)
    aligned = False

    trees: int = 50
    leaves: int = 16
    kind: str | None = None
    random_state: int | None = None

    def fit(self, items: pd.DataFrame, y: Any = None) -> ForestLeaves:
        """Grow the trees."""
        self.fit_transform(items, y)
        return self

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Grow the trees, and return the leaves of these rows."""
        from sklearn.ensemble import RandomTreesEmbedding
        from sklearn.preprocessing import OneHotEncoder

        grown = {
            "n_estimators": self.trees,
            "max_leaf_nodes": self.leaves,
            "random_state": self.random_state or 0,
        }
        self.columns_ = TypedColumns(ordinal_words())
        rows = _within(self.columns_.fit_transform(items))
        if y is None:
            self.forest_ = RandomTreesEmbedding(max_depth=None, **grown).fit(rows)
        else:
            self.forest_ = _grown(rows, y, kind_of(y, self.kind), grown)
        self.places_ = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
        return np.asarray(self.places_.fit_transform(self.forest_.apply(rows)))

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of leaves per table row, a 1 for each tree."""
        leaves = self.forest_.apply(_within(self.columns_.transform(items)))
        return np.asarray(self.places_.transform(leaves))


@dataclass(eq=False, repr=False)
class ForestScores(TransformerMixin, BaseEstimator):
    """What a random forest says about a row: its class probabilities, or the number.

    Of rows it was grown on it says too much: use it inside of ``OutOfFold``. It declines tasks
    that hide the truth. ``classes_`` names the dimensions. ``rows`` is how many rows a tree is
    grown on at most.
    """

    takes = ("table",)

    trees: int = 50
    rows: int = 5000
    kind: str | None = None
    random_state: int | None = None

    def fit(self, items: pd.DataFrame, y: Any = None) -> ForestScores:
        """Grow the forest on rows and truth."""
        if y is None:
            raise Declined("there is no truth to grow a forest on")
        kind = kind_of(y, self.kind)
        if kind == "classes":
            self.classes_ = np.unique(y)
        self.columns_ = TypedColumns(ordinal_words())
        rows = _within(self.columns_.fit_transform(items))
        grown = {
            "n_estimators": self.trees,
            "max_samples": min(self.rows, len(rows)),
            "random_state": self.random_state or 0,
        }
        self.forest_ = _grown(rows, y, kind, grown)
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return a probability per class, or one number, per table row."""
        rows = _within(self.columns_.transform(items))
        if hasattr(self.forest_, "predict_proba"):
            return np.asarray(self.forest_.predict_proba(rows))
        return np.asarray(self.forest_.predict(rows)).reshape(-1, 1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _grown(rows: np.ndarray, y: Any, kind: str, options: dict[str, Any]) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if kind == "classes":
        # as codes: scikit-learn takes no labels such as 0.5
        return RandomForestClassifier(**options).fit(rows, np.unique(y, return_inverse=True)[1])
    # a third of the columns at each split, as Breiman grew them for numbers
    return RandomForestRegressor(max_features=1 / 3, **options).fit(rows, y)


def _within(rows: np.ndarray) -> np.ndarray:
    return np.clip(rows, -_LARGEST, _LARGEST).astype(np.float32)
