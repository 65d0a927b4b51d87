"""Rows written as sentences, for any sentence encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pandas as pd

from karat.core.columns import rows_as_sentences
from karat.core.embeddings import declared_prompts, uses_roles
from karat.models.adapters import wrapped_fingerprint, wrapped_model
from karat.models.model import (
    FittedEncoder,
    Items,
    Model,
    Target,
)


@dataclass(eq=False, repr=False)
class RowSentences(FittedEncoder):
    """Write each row as a sentence and embed it with a sentence encoder.

    It needs a fit only if the sentence encoder does.

    Parameters
    ----------
    encoder
        ``"package.module:Name"``, a class, an instance, or an object with ``encode``.
    options
        The parameters of the class.
    """

    takes: ClassVar[tuple[str, ...]] = ("table",)

    encoder: Any = "karat.models.text_encoders:UniversalSentenceEncoder"
    options: dict[str, Any] | None = None

    def fit(self, items: pd.DataFrame, y: Target = None) -> RowSentences:
        """Fit the sentence encoder on the rows' sentences, unless it is pretrained."""
        from sklearn.base import clone

        model = self._model()
        self.encoder_ = model.prototype
        if not model.stateless:
            self.encoder_ = clone(model.prototype, safe=False)
            self.encoder_.fit(self.sentences(items), y)
        return self

    def transform(self, items: pd.DataFrame, role: str = "") -> Any:
        """Encode the rows' sentences in a role."""
        if not hasattr(self, "encoder_"):
            self.encoder_ = self._model().prototype
        texts = self.sentences(items)
        if "text" in getattr(self.encoder_, "by_text", ()):
            options = {"role": role} if role else {}
            return self.encoder_.encode(texts.tolist(), **options)
        return self.encoder_.transform(texts)

    @property
    def uses_roles(self) -> bool:
        """Whether the sentence encoder embeds queries in another way than documents."""
        return uses_roles(self._model().prototype)

    @property
    def declared_prompts(self) -> list[str]:
        """The names of the sentence encoder's own prompts."""
        return declared_prompts(self._model().prototype)

    def prompt_for(self, role: str) -> str:
        """Return the sentence encoder's prompt of a role."""
        return str(self._model().prototype.prompt_for(role))

    def sentences(self, items: Items) -> pd.Series:
        """Return the sentence of each item."""
        return pd.Series(rows_as_sentences(items), index=items.index, dtype=object)

    def _model(self) -> Model:
        return wrapped_model(self.encoder, self.options)

    def fingerprint(self) -> str:
        """Return the identity of the sentence encoder."""
        return wrapped_fingerprint(self._model())

    @property
    def requires_fit(self) -> bool:
        """Whether the sentence encoder is fitted."""
        return not self._model().stateless
