"""Forest encoders, and out-of-fold embeddings of supervised encoders.

A supervised encoder overfits its training rows, so a head trained on in-sample embeddings would
overfit too. Out of fold, no training row is embedded by an encoder fitted on its target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import ContractError, Declined
from karat.models.adapters import wrapped_fingerprint, wrapped_model
from karat.models.model import FittedEncoder, Model, assign_folds, sklearn_tags, target_kind
from karat.models.tabular_encoders import (
    FittedInTransform,
    TypedColumns,
    as_float32,
    ordinal_words,
)


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

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
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

    def fit(self, items: pd.DataFrame, y: Any = None) -> ForestScores:
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


@dataclass(eq=False, repr=False)
class OutOfFold(FittedEncoder):
    """Embed each fold of the training rows with an encoder fitted on the other folds.

    All other rows are embedded by an encoder fitted on all training rows. Dimensions must have the
    same meaning in every fit. This holds for probabilities, target means and layers of a pretrained
    network, but not for leaves of trees and components: such encoders have ``aligned = False`` and
    are refused, as are fits of different widths. If the encoder has ``classes_`` and one dimension
    per class, a class missing in a fold gets 0. A task's groups are ignored: rows of one entity may
    be in several folds.

    Parameters
    ----------
    encoder
        ``"package.module:Name"``, a class or an instance.
    options
        The parameters of the class.
    folds
        Number of folds; the encoder is fitted once more than that.
    kind
        ``"classification"`` (stratified folds) or ``"regression"``; filled in by Karat.
    """

    encoder: Any = "karat.models.forest_encoders:ForestScores"
    options: dict[str, Any] | None = None
    folds: int = 5
    kind: str | None = None
    random_state: int | None = None

    @property
    def takes(self) -> Any:
        """The modalities of the encoder."""
        return self._model().takes

    def fit(self, items: Any, y: Any = None) -> OutOfFold:
        """Fit the encoder on all rows."""
        self.encoder_ = _fitted(self._fresh(y), items, y)
        return self

    def fit_transform(self, items: Any, y: Any = None) -> np.ndarray:
        """Fit on all rows, and embed each row out of fold; without ``y``, embed in sample."""
        self.fit(items, y)
        if y is None:
            return self.transform(items)
        if min(self.folds, len(y)) < 2:
            raise ContractError(
                f"out-of-fold embeddings need at least 2 folds and 2 rows, got "
                f"{self.folds} folds and {len(y)} rows."
            )
        y = np.asarray(y)
        folds = min(self.folds, len(y))
        fold_of = assign_folds(y, target_kind(y, self.kind), folds, self.random_state or 0)
        blocks = [self._embed_fold(items, y, fold_of == fold) for fold in range(folds)]
        width = self.transform(_rows(items, np.arange(len(y)) == 0)).shape[1]
        embeddings = np.empty((len(y), width), dtype=np.result_type(*blocks))
        for fold, values in enumerate(blocks):
            if values.shape[1] != width:
                raise ContractError(
                    f"{self._model().name} must return vectors of the same size in every fit, got "
                    f"{values.shape[1]} dimensions in a fold and {width} on all training rows."
                )
            embeddings[fold_of == fold] = values
        return embeddings

    def transform(self, items: Any) -> np.ndarray:
        """Embed rows with the encoder fitted on all training rows."""
        return _dense(self.encoder_.transform(items))

    def _embed_fold(self, items: Any, y: np.ndarray, held: np.ndarray) -> np.ndarray:
        encoder = _fitted(self._fresh(y), _rows(items, ~held), y[~held])
        values = _dense(encoder.transform(_rows(items, held)))
        some, classes = getattr(encoder, "classes_", None), getattr(self.encoder_, "classes_", None)
        if some is None or classes is None or values.shape[1] != len(some):
            return values
        aligned = np.zeros((len(values), len(classes)), dtype=values.dtype)
        aligned[:, np.searchsorted(classes, some)] = values
        return aligned

    def _model(self) -> Model:
        return wrapped_model(self.encoder, self.options)

    def _fresh(self, y: Any) -> Any:
        model = self._model()
        if not getattr(model.prototype, "aligned", True):
            raise ContractError(
                f"{model.name} cannot be used out of fold: its dimensions differ between fits, so "
                f"training and test rows would not share a space. Use it without OutOfFold."
            )
        return model.fresh(self.random_state or 0, target_kind(y, self.kind))

    def unavailable(self) -> str:
        """Return what the encoder is missing."""
        return self._model().unavailable

    def fingerprint(self) -> str:
        """Return the identity of the encoder and the parameters."""
        return wrapped_fingerprint(self._model(), self.folds, self.kind, self.random_state)

    @property
    def requires_target(self) -> bool:
        """Whether the encoder needs the target."""
        inner = sklearn_tags(self._model().prototype)
        return inner is not None and bool(inner.target_tags.required)


def _fitted(encoder: Any, items: Any, y: Any) -> Any:
    if hasattr(encoder, "fit"):
        encoder.fit(items) if y is None else encoder.fit(items, y)
    return encoder


def _rows(items: Any, chosen: np.ndarray) -> Any:
    if isinstance(items, pd.DataFrame | pd.Series):
        return items.iloc[np.flatnonzero(chosen)]
    return [items[i] for i in np.flatnonzero(chosen)]


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)
