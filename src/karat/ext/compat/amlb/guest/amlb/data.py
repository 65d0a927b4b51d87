"""The dataset of a job: train and test rows, as tables, encoded arrays and files."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from amlb.datautils import Encoder

#: file formats of a part of the data
FORMATS = ("csv", "arff", "parquet")


class DatasetType(Enum):
    """The kinds of tasks."""

    binary = 1
    multiclass = 2
    regression = 3
    timeseries = 4


class Feature:
    """A column: its index, name, type and, if it has categories, their sorted values."""

    def __init__(
        self,
        index: int,
        name: str,
        data_type: str | None,
        values: Iterable[str] | None = None,
        has_missing_values: bool = False,
        is_target: bool = False,
    ) -> None:
        self.index = index
        self.name = name
        self.data_type = None if data_type is None else data_type.lower()
        self.values = None if values is None else list(values)
        self.has_missing_values = has_missing_values
        self.is_target = is_target

    def is_categorical(self, strict: bool = True) -> bool:
        """Return whether the column has categories; not ``strict``: whether it has no numbers."""
        return self.data_type == "category" if strict else not self.is_numerical()

    def is_numerical(self) -> bool:
        """Return whether the column has numbers."""
        return self.data_type in ("int", "float", "number")

    @cached_property
    def label_encoder(self) -> Encoder:
        """Numbers for the values; numbers stay as they are."""
        return self._encoder("label")

    @cached_property
    def one_hot_encoder(self) -> Encoder:
        """A column of zeros and ones per value; numbers stay as they are."""
        return self._encoder("one-hot")

    def _encoder(self, kind: str) -> Encoder:
        whole = self.is_target and not self.is_numerical()
        encoder = Encoder(
            "no-op" if self.values is None else kind,
            target=self.is_target,
            encoded_type=int if whole else float,
        )
        return encoder.fit(self.values)

    def __repr__(self) -> str:
        return f"Feature({self.name!r}, {self.data_type})"


class Datasplit:
    """The train or the test rows: ``X``, ``y`` and ``data``, also encoded, and files of them."""

    def __init__(self, dataset: Dataset, data: pd.DataFrame, stem: str) -> None:
        self.dataset = dataset
        self.data = data
        self.format = "csv"
        self._stem = stem

    @property
    def path(self) -> str:
        """The path of a CSV file of the rows."""
        return self.data_path(self.format)

    def data_path(self, format: str) -> str:
        """Return the path of a file of the rows, written on first use."""
        if format not in FORMATS:
            raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format!r}")
        path = Path(f"{self._stem}.{format}")
        if not path.exists():
            if format == "csv":
                self.data.to_csv(path, index=False)
            elif format == "parquet":
                self.data.to_parquet(path)
            else:
                path.write_text(_arff(self.dataset, self.data), encoding="utf-8")
        return str(path)

    @cached_property
    def X(self) -> pd.DataFrame:
        """The predictors."""
        return self.data.iloc[:, [feature.index for feature in self.dataset.predictors]]

    @cached_property
    def y(self) -> pd.DataFrame:
        """The target, as a table of one column."""
        return self.data.iloc[:, [self.dataset.target.index]]

    @cached_property
    def data_enc(self) -> np.ndarray:
        """All columns as numbers."""
        columns = [
            feature.label_encoder.transform(self.data.iloc[:, feature.index].to_numpy(object))
            for feature in self.dataset.features
        ]
        return np.column_stack([np.asarray(column, dtype=float) for column in columns])

    @cached_property
    def X_enc(self) -> np.ndarray:
        """The predictors as numbers."""
        return self.data_enc[:, [feature.index for feature in self.dataset.predictors]]

    @cached_property
    def y_enc(self) -> np.ndarray:
        """The target as numbers."""
        return self.data_enc[:, self.dataset.target.index]

    def release(self, properties: Iterable[str] | None = None) -> None:
        """Forget what was computed from the rows."""
        for name in properties or ("X", "y", "data_enc", "X_enc", "y_enc"):
            if name != "data":
                self.__dict__.pop(name, None)


class Dataset:
    """The dataset of a job; ``folder`` is where files of its rows are written."""

    def __init__(
        self, train: pd.DataFrame, test: pd.DataFrame, target: str, kind: str, folder: str
    ) -> None:
        self.type = DatasetType[kind]
        both = pd.concat([train, test], ignore_index=True)
        self.features = [
            _feature(index, name, both.iloc[:, index], name == target and kind)
            for index, name in enumerate(train.columns)
        ]
        self.target = next(feature for feature in self.features if feature.is_target)
        self.train = Datasplit(self, train, f"{folder}/train")
        self.test = Datasplit(self, test, f"{folder}/test")

    @property
    def predictors(self) -> list[Feature]:
        """The columns without the target."""
        return [feature for feature in self.features if not feature.is_target]

    @property
    def problem_type(self) -> str:
        """The name of the kind of task."""
        return self.type.name

    def inference_subsample_files(self, fmt: str = "csv", **_: Any) -> list[Any]:
        """Return no files: Karat does not time the inference of a framework of this kind."""
        return []

    def release(self) -> None:
        """Forget what was computed from the rows."""
        self.train.release()
        self.test.release()


def _feature(index: int, name: str, column: pd.Series, target_kind: Any) -> Feature:
    numbers = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if target_kind:
        numbers = target_kind == "regression"
    values = None if numbers else sorted(map(str, column.dropna().unique()))
    missing = bool(column.isna().any())
    kind = "number" if numbers else "category"
    return Feature(index, str(name), kind, values, missing, bool(target_kind))


def _arff(dataset: Dataset, data: pd.DataFrame) -> str:
    lines = ["@relation data"]
    for feature in dataset.features:
        values = None if feature.values is None else ",".join(map(_quoted, feature.values))
        lines.append(
            f"@attribute {_quoted(feature.name)} {'numeric' if values is None else f'{{{values}}}'}"
        )
    rows = data.astype(object).where(data.notna(), None).itertuples(index=False)
    numbers = [feature.values is None for feature in dataset.features]
    lines += ["@data"]
    for row in rows:
        cells = zip(row, numbers, strict=True)
        lines.append(",".join("?" if v is None else str(v) if n else _quoted(v) for v, n in cells))
    return "\n".join(lines) + "\n"


def _quoted(value: Any) -> str:
    escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
