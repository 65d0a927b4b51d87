"""Words hashed into a few dimensions."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.models.model import (
    FittedEncoder,
    StatelessEncoder,
    Target,
)
from karat.models.tables.typed_columns import ColumnEncoder, TypedColumns


@dataclass(eq=False, repr=False)
class HashedTable(ColumnEncoder):
    """Hash each "column=word" into a few dimensions."""

    dimensions: int = 128

    def _columns(self, y: Target) -> TypedColumns:
        return TypedColumns(HashedWords(self.dimensions))


@dataclass(eq=False, repr=False)
class HashedWords(FittedEncoder, StatelessEncoder):
    """Hash the cells of a frame of strings with scikit-learn's FeatureHasher."""

    dimensions: int = 128

    def transform(self, texts: pd.DataFrame) -> np.ndarray:
        """Return the sum of the hashes of each row's cells."""
        from sklearn.feature_extraction import FeatureHasher

        features = [[f"{name}={text}" for text in column] for name, column in texts.items()]
        hasher = FeatureHasher(self.dimensions, input_type="string")
        return np.asarray(hasher.transform(zip(*features, strict=True)).toarray())
