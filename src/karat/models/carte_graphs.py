"""CARTE's row graphs: a center and a leaf per cell, with column names as edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from karat.models.carte_network import carte
from karat.models.tables import LARGEST, number_columns
from karat.wording import written

#: scaled numbers are clipped to this
FARTHEST = 1e6
#: number of graphs in memory at a time during transform
BLOCK = 512


class RowGraphs:
    """Convert rows to graphs with CARTE's own transformer.

    ``fit`` decides which columns are numeric; everything else, including dates and booleans, is
    lower-case text. A numeric column without any number is ignored.
    """

    def fit(self, table: pd.DataFrame) -> RowGraphs:
        """Learn the numeric columns and their transformation."""
        numbers = [name for name in number_columns(table) if _floats(table[name]).notna().any()]
        self.numbers = numbers
        self.texts = [name for name in table.columns if name not in number_columns(table)]
        names = _unique_names([*self.texts, *numbers])
        self.names = {"text": names[: len(self.texts)], "number": names[len(self.texts) :]}
        self.normal = NormalNumbers().fit(self._numbers(table))
        return self

    def transform(self, table: pd.DataFrame, vectors: Any, y: Any = None) -> list[Any]:
        """Return a graph per row; ``vectors`` is a fastText model, ``y`` the target to train on."""
        import torch

        made = carte("carte_table_to_graph").Table2GraphTransformer()
        made.lm_model_ = vectors
        made.cat_col_names, made.num_col_names = self.names["text"], self.names["number"]
        made.col_names = made.cat_col_names + made.num_col_names
        made.num_transformer_, made.y_ = self.normal, y
        prepared = pd.concat([self._texts(table), self._numbers(table)], axis=1)
        # lower case by Python: Arrow's differs, and CARTE uses both
        with pd.option_context("mode.string_storage", "python"):
            graphs = made.transform(prepared)
        for graph in graphs:  # the mean of a row without leaves is NaN
            graph.x = torch.nan_to_num(graph.x)
        return list(graphs)

    def blocks(self, table: pd.DataFrame, vectors: Any) -> Iterator[list[Any]]:
        """Yield the graphs of a table block by block."""
        for start in range(0, len(table), BLOCK):
            yield self.transform(table.iloc[start : start + BLOCK], vectors)

    def _texts(self, table: pd.DataFrame) -> pd.DataFrame:
        columns = {
            unique: pd.Series([_text(cell) for cell in table[name].astype(object)], dtype=object)
            for name, unique in zip(self.texts, self.names["text"], strict=True)
        }
        return pd.DataFrame(columns, index=range(len(table)), dtype=object)

    def _numbers(self, table: pd.DataFrame) -> pd.DataFrame:
        columns = {
            unique: _floats(table[name]).to_numpy()
            for name, unique in zip(self.numbers, self.names["number"], strict=True)
        }
        return pd.DataFrame(columns, index=range(len(table)), dtype=float)


class NormalNumbers:
    """scikit-learn's PowerTransformer per column, as in CARTE; missing values stay missing.

    A column it cannot transform (numbers that differ only in their last digits) is standardized.
    """

    def fit(self, table: pd.DataFrame) -> NormalNumbers:
        """Fit each column."""
        from sklearn.preprocessing import StandardScaler

        self.columns: dict[Any, tuple[Any, Any]] = {}
        for name in table:
            power = _power(table[[name]].to_numpy())
            self.columns[name] = (
                power,
                StandardScaler().fit(_apply_power(power, table[[name]].to_numpy())),
            )
        return self

    def transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the transformed table."""
        values = {
            name: scale.transform(_apply_power(power, table[[name]].to_numpy()))[:, 0]
            for name, (power, scale) in self.columns.items()
        }
        return pd.DataFrame(values, index=table.index).clip(-FARTHEST, FARTHEST)


def _power(values: np.ndarray) -> Any | None:
    from sklearn.preprocessing import PowerTransformer

    try:
        with np.errstate(all="ignore"):
            made = PowerTransformer(standardize=False).fit(values)
            transformed = made.transform(values)
    except (ValueError, np.linalg.LinAlgError):
        return None
    flat = np.nanstd(transformed) == 0 < np.nanstd(values)
    return None if flat or np.isinf(transformed).any() else made


def _apply_power(power: Any | None, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        transformed = values if power is None else power.transform(values)
    return np.clip(transformed, -LARGEST, LARGEST)


def _unique_names(names: list[Any]) -> list[str]:
    """Return column names as single lines; trailing spaces distinguish equal ones."""
    unique: list[str] = []
    for name in names:
        text = _line(str(name))
        while text in unique:
            text += " "
        unique.append(text)
    return unique


def _text(cell: Any) -> str | None:
    missing = pd.isna(cell)
    return None if isinstance(missing, bool) and missing else _line(written(cell)).lower()


def _line(text: str) -> str:
    # fastText accepts single lines of UTF-8
    return " ".join(text.encode("utf-8", "replace").decode().split("\n"))


def _floats(column: pd.Series) -> pd.Series:
    if pd.api.types.is_timedelta64_dtype(column):
        column = column.dt.total_seconds()
    values = pd.to_numeric(column, errors="coerce").astype(float)
    return values.where(~np.isinf(values)).clip(-LARGEST, LARGEST)
