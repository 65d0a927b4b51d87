"""One-hot encoded words: equal to scikit-learn's, but distinct values are looked up once."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

import numpy as np
import pandas as pd

from karat.errors import DefinitionError
from karat.models.model import (
    FittedEncoder,
    Target,
)
from karat.models.tables.typed_columns import ColumnEncoder, TypedColumns


@dataclass(eq=False, repr=False)
class OneHotWords(FittedEncoder):
    """One dimension per level of every column in sorted order; rare levels share the last one.

    Levels in fewer rows than ``min_frequency``, a count or a share, are rare. An unseen level is
    rare, or all zeros in a column without rare levels. The empty string, a missing cell, is a level
    of its own, or with ``missing_category="most_frequent"`` the most frequent level, the first of
    several.

    >>> table = pd.DataFrame({"w": ["a", "b", "b", "c"]})
    >>> OneHotWords(2).fit(table).transform(pd.DataFrame({"w": ["b", "c", "z"]})).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """

    min_frequency: float | int | None = None
    missing_category: str = "level"

    def fit(self, words: pd.DataFrame, y: Target = None) -> OneHotWords:
        """Learn the levels of every column."""
        self.frequent_ = {}
        if self.missing_category == "most_frequent":
            self.frequent_ = {name: _most_frequent(column) for name, column in words.items()}
        elif self.missing_category != "level":
            raise DefinitionError(
                f'missing_category must be "level" or "most_frequent", got '
                f"{self.missing_category!r}."
            )
        words = self._imputed(words)
        least = self.min_frequency or 0
        least = least if isinstance(least, Integral) else least * len(words)
        self.places_, self.widths_ = [], []
        for _, column in words.items():
            codes, levels = pd.factorize(column)
            counts = dict(zip(levels.tolist(), np.bincount(codes).tolist(), strict=True))
            common = sorted(level for level, count in counts.items() if count >= least)
            self.places_.append({level: position for position, level in enumerate(common)})
            self.widths_.append(len(common) + (len(common) < len(counts)))
        return self

    def transform(self, words: pd.DataFrame) -> np.ndarray:
        """Return a row of zeros and ones per row of words."""
        words = self._imputed(words)
        matrix = np.zeros((len(words), sum(self.widths_)))
        start = 0
        for (_, column), places, width in zip(
            words.items(), self.places_, self.widths_, strict=True
        ):
            codes, levels = pd.factorize(column)
            rare = len(places) if width > len(places) else -1
            at = np.array([places.get(level, rare) for level in levels.tolist()], dtype=np.intp)
            columns = at[codes]
            rows = np.flatnonzero(columns >= 0)
            matrix[rows, start + columns[rows]] = 1.0
            start += width
        return matrix

    def _imputed(self, words: pd.DataFrame) -> pd.DataFrame:
        if not self.frequent_:
            return words
        return words.apply(lambda column: column.where(column != "", self.frequent_[column.name]))


def _most_frequent(words: pd.Series) -> str:
    counts = words[words != ""].value_counts()
    return min(counts.index[counts == counts.max()]) if len(counts) else ""


def table_to_numbers(
    min_frequency: float | int | None = None, missing_category: str = "level"
) -> TypedColumns:
    """Return a transformer: numbers and dates imputed and scaled, everything else one-hot.

    >>> rows = pd.DataFrame({"n": [1.0, 3.0], "w": ["a", "b"]})
    >>> table_to_numbers().fit_transform(rows).tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """
    return TypedColumns(OneHotWords(min_frequency, missing_category))


@dataclass(eq=False, repr=False)
class OneHotTable(ColumnEncoder):
    """Impute and scale numbers, one-hot encode everything else; an unseen value is all zeros.

    Categories rarer than ``min_frequency`` are merged, so that names and free text do not make one
    dimension per row. A missing category is a level of its own, or with
    ``missing_category="most_frequent"`` the most frequent one of the train rows.
    """

    min_frequency: float | int | None = 0.005
    missing_category: str = "level"

    def _columns(self, y: Target) -> TypedColumns:
        return table_to_numbers(self.min_frequency, self.missing_category)
