"""Principal components of the one-hot table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from karat.models.model import Target
from karat.models.tables.one_hot_table import table_to_numbers
from karat.models.tables.typed_columns import FittedInTransform

#: components below this share of the largest standard deviation are rounding errors
_NEGLIGIBLE = 1e-6


@dataclass(eq=False, repr=False)
class OneHotPca(FittedInTransform):
    """Principal components of the one-hot table, by an exact solver, with fixed signs.

    Components that are rounding errors are dropped. The (first) largest weight of each component is
    positive.
    """

    takes = ("table",)
    aligned = False

    dimensions: int = 32
    min_frequency: float | int | None = 0.005

    def fit_transform(self, items: pd.DataFrame, y: Target = None) -> np.ndarray:
        """Fit and transform."""
        self.columns_ = table_to_numbers(self.min_frequency)
        table = self.columns_.fit_transform(items)
        self.mean_ = table.mean(axis=0)
        self.components_ = _components(table - self.mean_, self.dimensions)
        return np.asarray((table - self.mean_) @ self.components_.T)

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of components per table row."""
        return np.asarray((self.columns_.transform(items) - self.mean_) @ self.components_.T)


def _components(centered: np.ndarray, dimensions: int) -> np.ndarray:
    """Return the directions of largest variance, one per row, from the smaller Gram matrix."""
    from scipy.linalg import eigh

    tall = centered.shape[0] >= centered.shape[1]
    gram = centered.T @ centered if tall else centered @ centered.T
    first = max(0, len(gram) - dimensions)
    squares, vectors = eigh(gram, subset_by_index=(first, len(gram) - 1))
    lengths = np.sqrt(np.maximum(squares[::-1], 0.0))
    used = lengths > _NEGLIGIBLE * lengths[0]
    if not used.any():  # all rows are equal
        return np.zeros((1, centered.shape[1]))
    vectors = vectors[:, ::-1][:, used]
    directions = vectors.T if tall else (vectors / lengths[used]).T @ centered
    sizes = np.abs(directions)
    # a boolean column makes two weights of equal size, up to rounding
    largest = np.argmax(sizes >= (1 - _NEGLIGIBLE) * sizes.max(axis=1, keepdims=True), axis=1)
    signs = np.sign(directions[np.arange(len(directions)), largest])
    return np.asarray(directions * signs[:, None])
