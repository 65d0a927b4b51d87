"""Out-of-fold embeddings: no train row is embedded by an encoder that saw its truth.

An encoder that looks at ``y`` knows the rows it was fitted on too well: a head trained on such
embeddings trusts them more than it should, and in-sample scores mean nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.errors import ContractError
from karat.models.base import Model, tags_of
from karat.models.inner import inner_fingerprint, inner_model
from karat.models.truth import deal, kind_of


class OutOfFold(TransformerMixin, BaseEstimator):
    """Embed each part of the train rows with an encoder fitted on the other parts.

    All other rows are embedded by an encoder fitted on all train rows. Dimensions must mean the
    same in every fit. Probabilities, means of the truth and layers of a pretrained network do;
    leaves of trees and components do not. An encoder says ``aligned = False`` of the latter and is
    refused here, as is one whose fits differ in width. Where it has ``classes_`` and a dimension
    for each, a class that a part never saw gets 0. Parts know nothing of a task's groups: rows of
    one entity may stand in several.

    Parameters
    ----------
    encoder
        ``"package.module:Name"``, a class or an instance.
    options
        The parameters of the class.
    folds
        How many parts; the encoder is fitted once more than that.
    kind
        ``"classes"`` (each part gets its share of them) or ``"numbers"``; Karat fills it in.
    """

    def __init__(
        self,
        encoder: Any = "karat.models.forests:ForestScores",
        options: dict[str, Any] | None = None,
        folds: int = 5,
        kind: str | None = None,
        random_state: int | None = None,
    ) -> None:
        self.encoder = encoder
        self.options = options
        self.folds = folds
        self.kind = kind
        self.random_state = random_state

    @property
    def takes(self) -> Any:
        """What the encoder takes."""
        return self._model().takes

    def fit(self, items: Any, y: Any = None) -> OutOfFold:
        """Fit the encoder on all rows."""
        self.encoder_ = _fitted(self._fresh(y), items, y)
        return self

    def fit_transform(self, items: Any, y: Any = None) -> np.ndarray:
        """Fit the encoder on all rows, and embed each of them by one that did not see it.

        Where the truth is hidden there is nothing to hold out, and the rows are embedded plainly.
        """
        self.fit(items, y)
        if y is None:
            return self.transform(items)
        if min(self.folds, len(y)) < 2:
            raise ContractError(
                f"out-of-fold embeddings need 2 folds and 2 rows or more; there are "
                f"{self.folds} folds and {len(y)} rows."
            )
        y = np.asarray(y)
        parts = min(self.folds, len(y))
        part_of = deal(y, kind_of(y, self.kind), parts, self.random_state or 0)
        found = [self._held_out(items, y, part_of == part) for part in range(parts)]
        width = self.transform(_rows(items, np.arange(len(y)) == 0)).shape[1]
        whole = np.empty((len(y), width), dtype=np.result_type(*found))
        for part, values in enumerate(found):
            self._check_width(values.shape[1], width)
            whole[part_of == part] = values
        return whole

    def transform(self, items: Any) -> np.ndarray:
        """Return what the encoder that was fitted on all train rows makes of these."""
        return _dense(self.encoder_.transform(items))

    def _held_out(self, items: Any, y: np.ndarray, held: np.ndarray) -> np.ndarray:
        encoder = _fitted(self._fresh(y), _rows(items, ~held), y[~held])
        values = _dense(encoder.transform(_rows(items, held)))
        return _by_class(values, encoder, self.encoder_)

    def _check_width(self, part: int, whole: int) -> None:
        if part != whole:
            raise ContractError(
                f"{self._model().name} made {part} dimensions when fitted on a part of the train "
                f"rows and {whole} on all of them; out of fold, they must be the same."
            )

    def _model(self) -> Model:
        return inner_model(self.encoder, self.options)

    def _fresh(self, y: Any) -> Any:
        model = self._model()
        if not getattr(model.prototype, "aligned", True):
            raise ContractError(
                f"{model.name} cannot be had out of fold: its dimensions mean something else in "
                f"every fit, so train and test rows would not be in one space. Use it as it is."
            )
        return model.fresh(self.random_state or 0, kind_of(y, self.kind))

    def unavailable(self) -> str:
        """Return what the encoder lacks to run here."""
        return self._model().unavailable

    def fingerprint(self) -> str:
        """Return who the encoder and the parameters are."""
        return inner_fingerprint(self._model(), self.folds, self.kind, self.random_state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        told = tags_of(self._model().prototype)
        tags.target_tags.required = told is not None and told.target_tags.required
        return tags


def _fitted(encoder: Any, items: Any, y: Any) -> Any:
    if hasattr(encoder, "fit"):
        encoder.fit(items) if y is None else encoder.fit(items, y)
    return encoder


def _rows(items: Any, chosen: np.ndarray) -> Any:
    if isinstance(items, pd.DataFrame | pd.Series):
        return items.iloc[np.flatnonzero(chosen)]
    return [items[place] for place in np.flatnonzero(chosen)]


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)


def _by_class(values: np.ndarray, part: Any, whole: Any) -> np.ndarray:
    """Return the dimensions of a part's classes at the places they have among all classes."""
    known, wanted = getattr(part, "classes_", None), getattr(whole, "classes_", None)
    if known is None or wanted is None or values.shape[1] != len(known):
        return values
    placed = np.zeros((len(values), len(wanted)), dtype=values.dtype)
    placed[:, np.searchsorted(wanted, known)] = values
    return placed
