"""Words as the mean target of their rows."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.models.model import (
    Target,
    target_kind,
)
from karat.models.tables.ordinal_table import ordinal_words
from karat.models.tables.typed_columns import ColumnEncoder, TypedColumns, scaled


@dataclass(eq=False, repr=False)
class TargetTable(ColumnEncoder):
    """scikit-learn's TargetEncoder: replace a word by the mean target of its rows.

    The mean is shrunk towards the global mean; more than two classes make one dimension each.
    ``fit_transform`` encodes training rows **out of fold**. Without a target, or if no class has
    two rows, words are encoded ordinally.
    """

    folds: int = 5
    kind: str | None = None
    random_state: int | None = None

    def fit_transform(self, items: pd.DataFrame, y: Target = None) -> np.ndarray:
        """Fit, and encode each row without its own target."""
        if y is not None and target_kind(y, self.kind) == "classification":
            y = np.unique(y, return_inverse=True)[1]
        with warnings.catch_warnings():
            # a class may have fewer rows than there are folds
            warnings.filterwarnings("ignore", message="The least populated class")
            return super().fit_transform(items, y)

    def _columns(self, y: Target) -> TypedColumns:
        encoder = None if y is None else self._encoder(np.asarray(y))
        return TypedColumns(ordinal_words() if encoder is None else scaled(encoder))

    def _encoder(self, y: np.ndarray) -> Any:
        from sklearn.model_selection import KFold, StratifiedKFold
        from sklearn.preprocessing import TargetEncoder

        numbers = target_kind(y, self.kind) == "regression"
        counts = [len(y)] if numbers else np.bincount(y)
        folds = min(self.folds, max(counts))
        if folds < 2:
            return None
        several = "binary" if len(counts) <= 2 else "multiclass"
        options = {"target_type": "continuous" if numbers else several}
        default = inspect.signature(TargetEncoder).parameters.get("random_state")
        if default is not None and default.default != "deprecated":  # scikit-learn before 1.9
            return TargetEncoder(**options, cv=folds, random_state=self.random_state or 0)
        split = (KFold if numbers else StratifiedKFold)(
            folds, shuffle=True, random_state=self.random_state or 0
        )
        return TargetEncoder(**options, cv=split)
