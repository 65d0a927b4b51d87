"""Table-row encoders: one-hot and skrub's vectoriser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.errors import MissingExtra


def number_columns(table: pd.DataFrame) -> list[Any]:
    """Return the columns that hold numbers; truth values and dates are not numbers."""
    return [
        column
        for column in table.columns
        if pd.api.types.is_numeric_dtype(table[column])
        and not pd.api.types.is_bool_dtype(table[column])
    ]


def table_to_numbers(min_frequency: float | int | None = None) -> Any:
    """Return a transformer: numbers imputed and scaled, everything else one-hot."""
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

    numbers = make_pipeline(
        FunctionTransformer(_floats, feature_names_out="one-to-one"),
        SimpleImputer(strategy="median", keep_empty_features=True),
        StandardScaler(),
    )
    words = make_pipeline(
        FunctionTransformer(_words, feature_names_out="one-to-one"),
        OneHotEncoder(
            handle_unknown="infrequent_if_exist", min_frequency=min_frequency, sparse_output=False
        ),
    )
    return make_column_transformer((numbers, number_columns), (words, _word_columns))


class OneHotTable(TransformerMixin, BaseEstimator):
    """Impute and scale numbers, one-hot everything else; a value seen only in test is all zeros.

    ``min_frequency`` lumps rarer categories together, so that names and free text do not make one
    dimension per row.
    """

    takes = ("table",)

    def __init__(self, min_frequency: float | int | None = 0.005) -> None:
        self.min_frequency = min_frequency

    def fit(self, items: pd.DataFrame, y: Any = None) -> OneHotTable:
        """Learn medians, scales and categories."""
        self.columns_ = table_to_numbers(self.min_frequency).fit(items)
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return np.asarray(self.columns_.transform(items), dtype=np.float64)


class SkrubTable(TransformerMixin, BaseEstimator):
    """skrub's TableVectorizer; what it leaves empty becomes 0."""

    takes = ("table",)

    def __init__(self, cardinality_threshold: int = 40, random_state: int | None = None) -> None:
        self.cardinality_threshold = cardinality_threshold
        self.random_state = random_state

    def fit(self, items: pd.DataFrame, y: Any = None) -> SkrubTable:
        """Learn how each column is encoded."""
        self.fit_transform(items, y)
        return self

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Learn how each column is encoded, and encode these rows."""
        try:
            from skrub import StringEncoder, TableVectorizer
        except ImportError as error:
            raise MissingExtra("skrub", "tables") from error
        self.vectorizer_ = TableVectorizer(
            cardinality_threshold=self.cardinality_threshold,
            high_cardinality=StringEncoder(random_state=self.random_state),
        )
        return self._numbers(self.vectorizer_.fit_transform(items, y))

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return self._numbers(self.vectorizer_.transform(items))

    def _numbers(self, table: pd.DataFrame) -> np.ndarray:
        return np.nan_to_num(table.to_numpy(dtype=np.float64), nan=0.0)


def _word_columns(table: pd.DataFrame) -> list[Any]:
    numbers = set(number_columns(table))
    return [column for column in table.columns if column not in numbers]


def _floats(table: pd.DataFrame) -> pd.DataFrame:
    return table.apply(pd.to_numeric, errors="coerce").astype(float)


def _words(table: pd.DataFrame) -> pd.DataFrame:
    return table.astype(object).where(table.notna(), "").astype(str)
