"""skrub's TableVectorizer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.models.model import (
    Target,
    import_extra,
)
from karat.models.tables.typed_columns import FittedInTransform


@dataclass(eq=False, repr=False)
class SkrubTable(FittedInTransform):
    """skrub's TableVectorizer; missing values become 0."""

    takes = ("table",)

    cardinality_threshold: int = 40
    random_state: int | None = None

    def fit_transform(self, items: pd.DataFrame, y: Target = None) -> np.ndarray:
        """Fit and transform."""
        skrub = import_extra("skrub", "tables")
        self.vectorizer_ = skrub.TableVectorizer(
            cardinality_threshold=self.cardinality_threshold,
            high_cardinality=skrub.StringEncoder(random_state=self.random_state),
        )
        return self._numbers(self.vectorizer_.fit_transform(items, y))

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return self._numbers(self.vectorizer_.transform(items))

    def _numbers(self, table: pd.DataFrame) -> np.ndarray:
        values = np.array(table, dtype=np.float64)
        values[np.isnan(values)] = 0.0  # infinity is reported later
        return values
