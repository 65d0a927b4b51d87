"""Rows as sentences: "age is 31. plan is basic." through any sentence encoder."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone

from karat.models.base import Model
from karat.models.inner import inner_fingerprint, inner_model


def sentences(table: pd.DataFrame) -> list[str]:
    """Return each row in words; missing and empty cells are left out.

    A cell is written the same whatever stands in its column: 31 and 31.0 are both "31", other
    fractions have six digits, and midnight is left out of a date.

    >>> sentences(pd.DataFrame({"age": [31, None], "plan": ["basic", "plus"]}))
    ['age is 31. plan is basic.', 'plan is plus.']
    """
    columns = []
    for name, column in table.items():
        there = column.notna().to_numpy()
        texts = [
            _written(cell) if known else ""
            for cell, known in zip(column.astype(object), there, strict=True)
        ]
        columns.append([f"{name} is {text}." if text else "" for text in texts])
    return [" ".join(filter(None, cells)) for cells in zip(*columns, strict=True)]


def _written(cell: Any) -> str:
    if isinstance(cell, float | np.floating):
        cell = float(cell)
        whole = cell.is_integer() and abs(cell) < 1e15
        return str(int(cell)) if whole else f"{cell:.6g}"
    if isinstance(cell, pd.Timestamp):
        return str(cell).removesuffix(" 00:00:00")
    return str(cell).strip()


class RowSentences(TransformerMixin, BaseEstimator):
    """Write each row as a sentence and embed it with a sentence encoder.

    It learns nothing itself: it needs a fit only if the sentence encoder does.

    Parameters
    ----------
    encoder
        ``"package.module:Name"``, a class, an instance, or an object with ``encode``.
    options
        The parameters of the class.
    """

    takes = ("table",)

    def __init__(
        self,
        encoder: Any = "karat.models.texts:UniversalSentenceEncoder",
        options: dict[str, Any] | None = None,
    ) -> None:
        self.encoder = encoder
        self.options = options

    def fit(self, items: pd.DataFrame, y: Any = None) -> RowSentences:
        """Fit the sentence encoder on the rows' sentences, unless it learns nothing."""
        model = self._model()
        self.encoder_ = model.prototype
        if not model.stateless:
            self.encoder_ = clone(model.prototype, safe=False)
            self.encoder_.fit(_texts(items), y)
        return self

    def transform(self, items: pd.DataFrame) -> Any:
        """Return what the sentence encoder makes of the rows' sentences."""
        if not hasattr(self, "encoder_"):
            self.encoder_ = self._model().prototype
        return self.encoder_.transform(_texts(items))

    def _model(self) -> Model:
        return inner_model(self.encoder, self.options)

    def fingerprint(self) -> str:
        """Return who the sentence encoder is."""
        return inner_fingerprint(self._model())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = not self._model().stateless
        return tags


def _texts(items: pd.DataFrame) -> pd.Series:
    return pd.Series(sentences(items), index=items.index, dtype=object)
