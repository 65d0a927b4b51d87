"""Convert a table to numbers: numbers and dates are imputed and scaled, words encoded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.models.model import (
    FittedEncoder,
    Target,
)
from karat.models.tables.median_imputer import MedianImputer

#: numbers are clipped to this, so that sums of squares are finite
LARGEST = 1e100


def clip_to_float32(matrix: np.ndarray) -> np.ndarray:
    """Clip numbers in place to a range in which float32 estimators can compute."""
    return np.clip(matrix, -1e30, 1e30, out=matrix)


def as_float32(matrix: np.ndarray) -> np.ndarray:
    """Return the clipped numbers as float32."""
    return clip_to_float32(matrix).astype(np.float32)


def numeric_columns(table: pd.DataFrame) -> list[Any]:
    """Return the columns of numbers or durations, without booleans and dates."""
    kinds = pd.api.types
    return [
        name
        for name, column in table.items()
        if (kinds.is_numeric_dtype(column) and not kinds.is_bool_dtype(column))
        or kinds.is_timedelta64_dtype(column)
    ]


def date_columns(table: pd.DataFrame) -> list[Any]:
    """Return the columns with a date dtype; a date string is a word."""
    is_date = pd.api.types.is_datetime64_any_dtype
    return [name for name, column in table.items() if is_date(column)]


class FittedInTransform(FittedEncoder):
    """Base of encoders whose ``fit`` is part of ``fit_transform``."""

    def fit(self, items: pd.DataFrame, y: Target = None) -> Any:
        """Fit the encoder."""
        self.fit_transform(items, y)
        return self


@dataclass(eq=False, repr=False)
class TypedColumns(FittedInTransform):
    """Convert a table to numbers: each column is numeric, a date or words.

    Missing numbers become the median, then all are scaled; so are the components of a date: year,
    month, day, weekday, hour and seconds since 1970. Everything else, including booleans, is
    converted to strings and passed to ``words``, a transformer of a frame of strings; a missing
    cell is an empty string. ``fit`` decides the type of each column. ``numbers`` replaces the
    imputing and scaling of numbers and dates.
    """

    words: Any
    numbers: Any = None

    def fit_transform(self, table: pd.DataFrame, y: Target = None) -> np.ndarray:
        """Fit and transform; words may be encoded out of fold."""
        from sklearn.base import clone

        numbers, dates = numeric_columns(table), date_columns(table)
        words = [column for column in table.columns if column not in {*numbers, *dates}]
        steps: list[tuple[list[Any], Callable[[pd.DataFrame], Any], Any]] = [
            (numbers, _floats, self._step()),
            (dates, _date_components, self._step()),
            (words, _words, clone(self.words)),
        ]
        self.steps_ = [step for step in steps if step[0]]
        return np.hstack(
            [step.fit_transform(read(table[names]), y) for names, read, step in self.steps_]
        )

    def transform(self, table: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return np.hstack([step.transform(read(table[names])) for names, read, step in self.steps_])

    def _step(self) -> Any:
        from sklearn.base import clone

        return scaled_numbers() if self.numbers is None else clone(self.numbers)


class ColumnEncoder(FittedInTransform):
    """Base of encoders that differ in how they encode words."""

    takes = ("table",)

    def _columns(self, y: Target) -> TypedColumns:
        """Return the transformer; ``y`` is None if the target is hidden."""
        raise NotImplementedError

    def fit_transform(self, items: pd.DataFrame, y: Target = None) -> np.ndarray:
        """Fit and transform."""
        self.columns_ = self._columns(y)
        return np.asarray(self.columns_.fit_transform(items, y), dtype=np.float64)

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return np.asarray(self.columns_.transform(items), dtype=np.float64)


def scaled(transformer: object) -> Any:
    """Return a transformer followed by scaling."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(transformer, StandardScaler())


def scaled_numbers() -> Any:
    """Return a transformer that imputes the median and scales."""
    return scaled(MedianImputer())


def _floats(table: pd.DataFrame) -> np.ndarray:
    columns = [
        column.dt.total_seconds()
        if pd.api.types.is_timedelta64_dtype(column)
        else pd.to_numeric(column, errors="coerce")
        for _, column in table.items()
    ]
    values = np.column_stack([column.astype(float).to_numpy() for column in columns])
    return np.where(np.isinf(values), np.nan, np.clip(values, -LARGEST, LARGEST))


def _date_components(table: pd.DataFrame) -> np.ndarray:
    components: list[Any] = []
    for _, column in table.items():
        local = _moments(column)
        since = (local if local.tz is None else local.tz_convert(None)) - pd.Timestamp(0)
        components += [local.year, local.month, local.day, local.day_of_week, local.hour]
        components.append(since.total_seconds())
    return np.column_stack([np.asarray(part, dtype=float) for part in components])


def _moments(column: pd.Series) -> pd.DatetimeIndex:
    # a test column may have another dtype; invalid dates are missing
    try:
        return pd.DatetimeIndex(pd.to_datetime(column, errors="coerce", format="mixed"))
    except ValueError:  # several time zones in one column
        return pd.DatetimeIndex(pd.to_datetime(column, errors="coerce", format="mixed", utc=True))


def _words(table: pd.DataFrame) -> pd.DataFrame:
    if all(
        isinstance(dtype, pd.StringDtype) and dtype.na_value is np.nan for dtype in table.dtypes
    ):
        texts = table.fillna("")  # already strings
    else:
        texts = table.astype(object).where(table.notna(), "").astype(str)
    return texts.set_axis([str(column) for column in table.columns], axis=1)
