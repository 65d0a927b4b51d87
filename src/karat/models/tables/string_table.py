"""Words as the vectors of skrub's StringEncoder."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.models.model import (
    Target,
    import_extra,
)
from karat.models.tables.typed_columns import ColumnEncoder, FittedInTransform, TypedColumns


@dataclass(eq=False, repr=False)
class StringTable(ColumnEncoder):
    """skrub's StringEncoder per column of words: SVD of TF-IDF weighted character n-grams."""

    aligned = False

    dimensions: int = 30
    random_state: int | None = None

    def _columns(self, y: Target) -> TypedColumns:
        return TypedColumns(StringColumns(self.dimensions, self.random_state or 0))


@dataclass(eq=False, repr=False)
class StringColumns(FittedInTransform):
    """A StringEncoder per column of a frame of strings; an empty column is 0."""

    dimensions: int = 30
    random_state: int = 0

    def fit_transform(self, texts: pd.DataFrame, y: Target = None) -> np.ndarray:
        """Fit and transform."""
        skrub = import_extra("skrub", "tables")
        self.encoders_ = []
        for position in range(texts.shape[1]):
            written = (texts.iloc[:, position].str.strip() != "").any()
            encoder = skrub.StringEncoder(self.dimensions, random_state=self.random_state)
            self.encoders_.append(encoder if written else None)
        with warnings.catch_warnings():
            # a column may have few distinct n-grams
            warnings.filterwarnings("ignore", message="The matrix shape is")
            return self._encoded(texts, "fit_transform")

    def transform(self, texts: pd.DataFrame) -> np.ndarray:
        """Return the concatenated columns."""
        return self._encoded(texts, "transform")

    def _encoded(self, texts: pd.DataFrame, method: str) -> np.ndarray:
        blocks = [
            np.zeros((len(texts), 1))
            if encoder is None
            else getattr(encoder, method)(texts.iloc[:, position]).to_numpy()
            for position, encoder in enumerate(self.encoders_)
        ]
        return np.hstack(blocks)
