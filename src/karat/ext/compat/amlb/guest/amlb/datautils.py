"""Encoding, imputation and CSV files for frameworks of the AutoML Benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

Normalize = Callable[[np.ndarray], np.ndarray]


def read_csv(path: Any, nrows: int | None = None, **options: Any) -> pd.DataFrame:
    """Return the table of a CSV file."""
    options.pop("as_data_frame", None)
    return pd.read_csv(path, nrows=nrows, **options)


def write_csv(data: Any, path: Any, **options: Any) -> None:
    """Write a table as a CSV file."""
    to_data_frame(data).to_csv(path, index=options.get("index", False))


def to_data_frame(data: Any, column_names: Sequence[str] | None = None) -> pd.DataFrame:
    """Return data as a table."""
    if data is None:
        return pd.DataFrame()
    if isinstance(data, pd.DataFrame):
        return data
    return pd.DataFrame(data, columns=None if column_names is None else list(column_names))


class Encoder:
    """Numbers for labels, in their order, or one column of zeros and ones per label.

    >>> codes = Encoder("label").fit(["yes", "no"])
    >>> codes.transform(["no", "yes", "no"]).tolist(), codes.inverse_transform([1]).tolist()
    ([0, 1, 0], ['yes'])
    """

    def __init__(
        self,
        type: str = "label",
        target: bool = True,
        encoded_type: Any = int,
        normalize_fn: Normalize | None = None,
        **_: Any,
    ) -> None:
        if type not in ("label", "one-hot", "no-op"):
            raise ValueError(f"type must be label, one-hot or no-op, got {type!r}")
        self.type = type
        self.for_target = target
        self.encoded_type = encoded_type
        self.normalize = normalize_fn
        self.classes: np.ndarray | None = None

    def fit(self, values: Iterable[Any] | None) -> Encoder:
        """Learn the labels."""
        if self.type != "no-op" and values is not None:
            texts = self._texts(np.asarray(list(values), dtype=object))
            self.classes = np.unique(texts[_present(texts)].astype(str))
        return self

    def fit_transform(self, values: Any) -> Any:
        """Learn the labels and return their numbers."""
        return self.fit(np.asarray(values, dtype=object).ravel()).transform(values)

    def transform(self, values: Any) -> Any:
        """Return the number of each label; that of a missing value is NaN."""
        single = isinstance(values, str)
        array = np.asarray([values] if single else values, dtype=object).ravel()
        if self.type == "no-op":
            encoded = array.astype(self.encoded_type)
            return encoded[0] if single else encoded
        if self.classes is None:
            raise ValueError("the encoder is not fitted")
        texts = self._texts(array)
        present = _present(texts)
        codes = np.full(len(texts), np.nan)
        codes[present] = pd.Index(self.classes).get_indexer(texts[present].astype(str))
        if (codes == -1).any():
            raise ValueError(f"unknown label {texts[codes == -1][0]!r}")
        if self.type == "one-hot":
            return (codes[:, None] == np.arange(len(self.classes))).astype(self.encoded_type)
        encoded = codes if not present.all() else codes.astype(self.encoded_type)
        return encoded[0] if single else encoded

    def inverse_transform(self, codes: Any) -> np.ndarray:
        """Return the labels of numbers."""
        if self.classes is None:
            return np.asarray(codes)
        array = np.asarray(codes)
        numbers = array.argmax(axis=1) if self.type == "one-hot" else array.ravel().astype(int)
        return np.asarray(self.classes, dtype=object)[numbers]

    def _texts(self, values: np.ndarray) -> np.ndarray:
        return values if self.normalize is None else np.asarray(self.normalize(values), object)


def _present(values: np.ndarray) -> np.ndarray:
    return ~pd.isna(pd.Series(values, dtype=object)).to_numpy()


def impute_array(X_fit: Any, *others: Any, strategy: Any = "mean", **options: Any) -> Any:
    """Return arrays with missing values replaced by the columns' means in the first.

    ``strategy`` may be mean, median, mode, most_frequent, or ("constant", value).
    """
    if strategy is None:
        return [X_fit, *others]
    if "missing_values" not in options and _is_complete(X_fit, *others):
        copies = [array.copy() for array in (X_fit, *others)]
        return copies if others else copies[0]
    from sklearn.impute import SimpleImputer

    constant = isinstance(strategy, tuple)
    imputer = SimpleImputer(
        missing_values=options.get("missing_values", np.nan),
        strategy="constant" if constant else {"mode": "most_frequent"}.get(strategy, strategy),
        fill_value=strategy[1] if constant else None,
        keep_empty_features=options.get("keep_empty_features", False),
    )
    imputed = [_like(imputer.fit_transform(X_fit), X_fit, imputer)]
    imputed += [_like(imputer.transform(array), array, imputer) for array in others]
    return imputed if others else imputed[0]


def _is_complete(*arrays: Any) -> bool:
    """Return whether these are arrays of the same columns without a missing or infinite number.

    The import of scikit-learn would be most of the cost of a small job.
    """
    return all(
        isinstance(array, np.ndarray)
        and array.dtype.kind == "f"
        and array.shape[1:] == arrays[0].shape[1:]
        and array.ndim == 2
        and bool(np.isfinite(array).all())
        for array in arrays
    )


def _like(array: Any, before: Any, imputer: Any) -> Any:
    """Return an imputed array as a table, if it was one."""
    if isinstance(before, pd.DataFrame):
        names = imputer.get_feature_names_out(before.columns)
        return pd.DataFrame(array, columns=names, index=before.index)
    return array.astype(before.dtype, copy=False) if isinstance(before, np.ndarray) else array


def impute_dataframe(
    X_fit: pd.DataFrame, *others: pd.DataFrame, strategy: Any = "mean", **_: Any
) -> Any:
    """Return tables with missing values replaced by a value per column of the first."""
    numeric = X_fit.select_dtypes("number")
    if strategy is None:
        return [X_fit, *others]
    if isinstance(strategy, tuple):
        fill: Any = strategy[1]
    elif strategy == "mode":
        fill = X_fit.mode().iloc[0]
    else:
        fill = numeric.mean() if strategy == "mean" else numeric.median()
    imputed = [table.fillna(fill) for table in (X_fit, *others)]
    return imputed if others else imputed[0]
