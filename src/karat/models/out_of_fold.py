"""Out-of-fold embeddings of supervised encoders.

A supervised encoder overfits its training rows, so a head trained on in-sample embeddings would
overfit too. Out of fold, no training row is embedded by an encoder fitted on its target.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import ContractError
from karat.models.adapters import wrapped_fingerprint, wrapped_model
from karat.models.model import (
    FittedEncoder,
    Items,
    Model,
    Target,
    assign_folds,
    sklearn_tags,
    target_kind,
)


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

    encoder: Any = "karat.models.tabular_encoders:ForestScores"
    options: dict[str, Any] | None = None
    folds: int = 5
    kind: str | None = None
    random_state: int | None = None

    @property
    def takes(self) -> Any:
        """The modalities of the encoder."""
        return self._model().takes

    def fit(self, items: Items, y: Target = None) -> OutOfFold:
        """Fit the encoder on all rows."""
        self.encoder_ = _fitted(self._fresh(y), items, y)
        return self

    def fit_transform(self, items: Items, y: Target = None) -> np.ndarray:
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

    def transform(self, items: Items) -> np.ndarray:
        """Embed rows with the encoder fitted on all training rows."""
        return _dense(self.encoder_.transform(items))

    def _embed_fold(self, items: Items, y: np.ndarray, held: np.ndarray) -> np.ndarray:
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

    def _fresh(self, y: Target) -> Any:
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


def _fitted(encoder: object, items: Items, y: Target) -> Any:
    if hasattr(encoder, "fit"):
        encoder.fit(items) if y is None else encoder.fit(items, y)
    return encoder


def _rows(items: Items, chosen: np.ndarray) -> Any:
    if isinstance(items, pd.DataFrame | pd.Series):
        return items.iloc[np.flatnonzero(chosen)]
    return [items[i] for i in np.flatnonzero(chosen)]


def _dense(values: object) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)
