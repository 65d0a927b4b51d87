"""Rows as CARTE's graphs: a centre, and a leaf for each cell, joined by the column's name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from karat.models.carte_network import carte
from karat.models.tables import LARGEST, number_columns
from karat.wording import written

#: a number so many standard deviations away says no more than one still farther away
FARTHEST = 1e6
#: as many graphs are in memory at a time when rows are only embedded
BLOCK = 512


class RowGraphs:
    """Learns the columns of a table, then makes graphs of rows with CARTE's own transformer.

    What holds numbers is decided once; everything else, dates and truth values too, is a text in
    small letters. A column without a single number has no leaves.
    """

    def fit(self, table: pd.DataFrame) -> RowGraphs:
        """Learn which columns hold numbers, and how these are made normal."""
        numbers = [name for name in number_columns(table) if _floats(table[name]).notna().any()]
        self.numbers = numbers
        self.texts = [name for name in table.columns if name not in number_columns(table)]
        spelled = _spelled([*self.texts, *numbers])
        self.names = {"text": spelled[: len(self.texts)], "number": spelled[len(self.texts) :]}
        self.normal = NormalNumbers().fit(self._numbers(table))
        return self

    def transform(self, table: pd.DataFrame, vectors: Any, y: Any = None) -> list[Any]:
        """Return a graph per row; ``vectors`` gives one for a text, ``y`` the truth to train on."""
        import torch

        made = carte("carte_table_to_graph").Table2GraphTransformer()
        made.lm_model_ = vectors
        made.cat_col_names, made.num_col_names = self.names["text"], self.names["number"]
        made.col_names = made.cat_col_names + made.num_col_names
        made.num_transformer_, made.y_ = self.normal, y
        prepared = pd.concat([self._texts(table), self._numbers(table)], axis=1)
        # small letters as Python makes them: Arrow's differ, and CARTE looks one up by the other
        with pd.option_context("mode.string_storage", "python"):
            graphs = made.transform(prepared)
        for graph in graphs:  # the mean over the leaves of a row that has none is NaN
            graph.x = torch.nan_to_num(graph.x)
        return list(graphs)

    def blocks(self, table: pd.DataFrame, vectors: Any) -> Iterator[list[Any]]:
        """Yield the graphs of a table, some rows at a time."""
        for start in range(0, len(table), BLOCK):
            yield self.transform(table.iloc[start : start + BLOCK], vectors)

    def _texts(self, table: pd.DataFrame) -> pd.DataFrame:
        columns = {
            spelled: pd.Series([_text(cell) for cell in table[name].astype(object)], dtype=object)
            for name, spelled in zip(self.texts, self.names["text"], strict=True)
        }
        return pd.DataFrame(columns, index=range(len(table)), dtype=object)

    def _numbers(self, table: pd.DataFrame) -> pd.DataFrame:
        columns = {
            spelled: _floats(table[name]).to_numpy()
            for name, spelled in zip(self.numbers, self.names["number"], strict=True)
        }
        return pd.DataFrame(columns, index=range(len(table)), dtype=float)


class NormalNumbers:
    """Each column through scikit-learn's PowerTransformer, as CARTE does it; missing stays missing.

    Where a column is beyond it (numbers that differ only in their last digits), it is scaled.
    """

    def fit(self, table: pd.DataFrame) -> NormalNumbers:
        """Learn every column by itself."""
        from sklearn.preprocessing import StandardScaler

        self.columns: dict[Any, tuple[Any, Any]] = {}
        for name in table:
            power = _power(table[[name]].to_numpy())
            self.columns[name] = power, StandardScaler().fit(_bent(power, table[[name]].to_numpy()))
        return self

    def transform(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table with all columns near 0."""
        values = {
            name: scale.transform(_bent(power, table[[name]].to_numpy()))[:, 0]
            for name, (power, scale) in self.columns.items()
        }
        return pd.DataFrame(values, index=table.index).clip(-FARTHEST, FARTHEST)


def _power(values: np.ndarray) -> Any | None:
    from sklearn.preprocessing import PowerTransformer

    try:
        with np.errstate(all="ignore"):
            made = PowerTransformer(standardize=False).fit(values)
            bent = made.transform(values)
    except (ValueError, np.linalg.LinAlgError):
        return None
    flat = np.nanstd(bent) == 0 < np.nanstd(values)
    return None if flat or np.isinf(bent).any() else made


def _bent(power: Any | None, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        bent = values if power is None else power.transform(values)
    return np.clip(bent, -LARGEST, LARGEST)


def _spelled(names: list[Any]) -> list[str]:
    """Return the names of columns as texts of one line; blanks tell apart what looks the same."""
    spelled: list[str] = []
    for name in names:
        text = _line(str(name))
        while text in spelled:
            text += " "
        spelled.append(text)
    return spelled


def _text(cell: Any) -> str | None:
    missing = pd.isna(cell)
    return None if isinstance(missing, bool) and missing else _line(written(cell)).lower()


def _line(text: str) -> str:
    # fastText takes one line at a time, in UTF-8
    return " ".join(text.encode("utf-8", "replace").decode().split("\n"))


def _floats(column: pd.Series) -> pd.Series:
    if pd.api.types.is_timedelta64_dtype(column):
        column = column.dt.total_seconds()
    values = pd.to_numeric(column, errors="coerce").astype(float)
    return values.where(~np.isinf(values)).clip(-LARGEST, LARGEST)
