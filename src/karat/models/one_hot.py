"""A fast one-hot encoder of strings, equal to scikit-learn's ``OneHotEncoder``.

scikit-learn loops over all cells in Python; here only distinct values are looked up.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin


@dataclass(eq=False, repr=False)
class OneHotWords(TransformerMixin, BaseEstimator):
    """One dimension per level of every column in sorted order; rare levels share the last one.

    Levels in fewer rows than ``min_frequency``, a count or a share, are rare. An unseen level is
    rare, or all zeros in a column without rare levels.

    >>> table = pd.DataFrame({"w": ["a", "b", "b", "c"]})
    >>> OneHotWords(2).fit(table).transform(pd.DataFrame({"w": ["b", "c", "z"]})).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """

    min_frequency: float | int | None = None

    def fit(self, words: pd.DataFrame, y: Any = None) -> OneHotWords:
        """Learn the levels of every column."""
        least = self.min_frequency or 0
        least = least if isinstance(least, Integral) else least * len(words)
        self.places_, self.widths_ = [], []
        for _, column in words.items():
            codes, levels = pd.factorize(column)
            counts = dict(zip(levels.tolist(), np.bincount(codes).tolist(), strict=True))
            common = sorted(level for level, count in counts.items() if count >= least)
            self.places_.append({level: place for place, level in enumerate(common)})
            self.widths_.append(len(common) + (len(common) < len(counts)))
        return self

    def transform(self, words: pd.DataFrame) -> np.ndarray:
        """Return a row of zeros and ones per row of words."""
        matrix = np.zeros((len(words), sum(self.widths_)))
        start = 0
        for (_, column), places, width in zip(
            words.items(), self.places_, self.widths_, strict=True
        ):
            codes, levels = pd.factorize(column)
            rare = len(places) if width > len(places) else -1
            at = np.array([places.get(level, rare) for level in levels.tolist()], dtype=np.intp)
            found = at[codes]
            rows = np.flatnonzero(found >= 0)
            matrix[rows, start + found[rows]] = 1.0
            start += width
        return matrix
