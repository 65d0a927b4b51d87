"""Table-row encoders: what becomes of numbers, dates and words; one-hot and skrub's vectoriser."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin, clone

from karat.errors import MissingExtra
from karat.models.one_hot import OneHotWords

#: larger numbers are cut to this, so that squares and sums of them are finite
LARGEST = 1e100


def number_columns(table: pd.DataFrame) -> list[Any]:
    """Return the columns that hold numbers or durations; truth values and dates are neither."""
    kinds = pd.api.types
    return [
        name
        for name, column in table.items()
        if (kinds.is_numeric_dtype(column) and not kinds.is_bool_dtype(column))
        or kinds.is_timedelta64_dtype(column)
    ]


def date_columns(table: pd.DataFrame) -> list[Any]:
    """Return the columns whose type is a date; a date written as text is a word."""
    is_date = pd.api.types.is_datetime64_any_dtype
    return [name for name, column in table.items() if is_date(column)]


def table_to_numbers(min_frequency: float | int | None = None) -> TypedColumns:
    """Return a transformer: numbers and dates imputed and scaled, everything else one-hot."""
    return TypedColumns(OneHotWords(min_frequency))


@dataclass(eq=False, repr=False)
class TypedColumns(TransformerMixin, BaseEstimator):
    """Make numbers of a table: each column is read as numbers, dates or words.

    Missing numbers become the median, then all are scaled; so are the parts of a date: year,
    month, day, weekday, hour and the seconds since 1970. Everything else, truth values too, is
    turned into text and given to ``words``, a transformer of a frame of texts; a missing cell is
    the empty text. What a column is, is decided once, in ``fit``. ``numbers`` is another
    transformer of numbers and dates, for those who do not want them imputed and scaled.

    >>> rows = pd.DataFrame({"n": [1.0, 3.0], "w": ["a", "b"]})
    >>> table_to_numbers().fit_transform(rows).tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    words: Any
    numbers: Any = None

    def fit(self, table: pd.DataFrame, y: Any = None) -> TypedColumns:
        """Learn medians, scales and whatever is learned of words."""
        self.fit_transform(table, y)
        return self

    def fit_transform(self, table: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Learn from these rows and encode them; words may be encoded out of fold."""
        numbers, dates = number_columns(table), date_columns(table)
        words = [column for column in table.columns if column not in {*numbers, *dates}]
        parts: list[tuple[list[Any], Callable[[pd.DataFrame], Any], Any]] = [
            (numbers, _floats, self._step()),
            (dates, _date_parts, self._step()),
            (words, _words, clone(self.words)),
        ]
        self.parts_ = [part for part in parts if part[0]]
        return np.hstack(
            [step.fit_transform(read(table[names]), y) for names, read, step in self.parts_]
        )

    def transform(self, table: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return np.hstack([step.transform(read(table[names])) for names, read, step in self.parts_])

    def _step(self) -> Any:
        return scaled_numbers() if self.numbers is None else clone(self.numbers)


class ColumnEncoder(TransformerMixin, BaseEstimator):
    """A base for encoders that differ in what they make of words."""

    takes = ("table",)

    def _columns(self, y: Any) -> TypedColumns:
        """Return what encodes the columns; ``y`` is nothing where the truth is hidden."""
        raise NotImplementedError

    def fit(self, items: pd.DataFrame, y: Any = None) -> ColumnEncoder:
        """Learn medians, scales and whatever is learned of words."""
        self.fit_transform(items, y)
        return self

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Learn from these rows and encode them."""
        self.columns_ = self._columns(y)
        return np.asarray(self.columns_.fit_transform(items, y), dtype=np.float64)

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return np.asarray(self.columns_.transform(items), dtype=np.float64)


@dataclass(eq=False, repr=False)
class OneHotTable(ColumnEncoder):
    """Impute and scale numbers, one-hot everything else; a value seen only in test is all zeros.

    ``min_frequency`` lumps rarer categories together, so that names and free text do not make one
    dimension per row.
    """

    min_frequency: float | int | None = 0.005

    def _columns(self, y: Any) -> TypedColumns:
        return table_to_numbers(self.min_frequency)


@dataclass(eq=False, repr=False)
class SkrubTable(TransformerMixin, BaseEstimator):
    """skrub's TableVectorizer; what it leaves empty becomes 0."""

    takes = ("table",)

    cardinality_threshold: int = 40
    random_state: int | None = None

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
        values = np.array(table, dtype=np.float64)
        values[np.isnan(values)] = 0.0  # and infinity stays, to be told
        return values


def scaled_numbers() -> Any:
    """Return a transformer of numbers: missing ones become the median, then all are scaled."""
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(
        SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
    )


def _floats(table: pd.DataFrame) -> np.ndarray:
    columns = [
        column.dt.total_seconds()
        if pd.api.types.is_timedelta64_dtype(column)
        else pd.to_numeric(column, errors="coerce")
        for _, column in table.items()
    ]
    values = np.column_stack([column.astype(float).to_numpy() for column in columns])
    return np.where(np.isinf(values), np.nan, np.clip(values, -LARGEST, LARGEST))


def _date_parts(table: pd.DataFrame) -> np.ndarray:
    parts: list[Any] = []
    for _, column in table.items():
        local = _moments(column)
        since = (local if local.tz is None else local.tz_convert(None)) - pd.Timestamp(0)
        parts += [local.year, local.month, local.day, local.day_of_week, local.hour]
        parts.append(since.total_seconds())
    return np.column_stack([np.asarray(part, dtype=float) for part in parts])


def _moments(column: pd.Series) -> pd.DatetimeIndex:
    # a column that has lost its type in test may hold anything; what is no date is missing
    try:
        return pd.DatetimeIndex(pd.to_datetime(column, errors="coerce", format="mixed"))
    except ValueError:  # several time zones in one column
        return pd.DatetimeIndex(pd.to_datetime(column, errors="coerce", format="mixed", utc=True))


def _words(table: pd.DataFrame) -> pd.DataFrame:
    if all(isinstance(each, pd.StringDtype) and each.na_value is np.nan for each in table.dtypes):
        texts = table.fillna("")  # texts already, so none need be made
    else:
        texts = table.astype(object).where(table.notna(), "").astype(str)
    return texts.set_axis([str(column) for column in table.columns], axis=1)
