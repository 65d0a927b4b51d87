"""Rows as sentences: "age is 31. plan is basic." through any sentence encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone

from karat.models.base import Model
from karat.models.inner import inner_fingerprint, inner_model
from karat.wording import sentences


@dataclass(eq=False, repr=False)
class RowSentences(TransformerMixin, BaseEstimator):
    """Write each row as a sentence and embed it with a sentence encoder.

    It needs a fit only if the sentence encoder does.

    Parameters
    ----------
    encoder
        ``"package.module:Name"``, a class, an instance, or an object with ``encode``.
    options
        The parameters of the class.
    """

    takes = ("table",)

    encoder: Any = "karat.models.texts:UniversalSentenceEncoder"
    options: dict[str, Any] | None = None

    def fit(self, items: pd.DataFrame, y: Any = None) -> RowSentences:
        """Fit the sentence encoder on the rows' sentences, unless it is pretrained."""
        model = self._model()
        self.encoder_ = model.prototype
        if not model.stateless:
            self.encoder_ = clone(model.prototype, safe=False)
            self.encoder_.fit(_texts(items), y)
        return self

    def transform(self, items: pd.DataFrame) -> Any:
        """Encode the rows' sentences."""
        if not hasattr(self, "encoder_"):
            self.encoder_ = self._model().prototype
        texts = _texts(items)
        if "text" in getattr(self.encoder_, "by_text", ()):
            return self.encoder_.encode(texts.tolist())
        return self.encoder_.transform(texts)

    def _model(self) -> Model:
        return inner_model(self.encoder, self.options)

    def fingerprint(self) -> str:
        """Return the identity of the sentence encoder."""
        return inner_fingerprint(self._model())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = not self._model().stateless
        return tags


def _texts(items: pd.DataFrame) -> pd.Series:
    return pd.Series(sentences(items), index=items.index, dtype=object)
