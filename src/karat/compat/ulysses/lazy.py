"""A predictor that embeds the texts of each fold separately."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from karat.compat.ulysses.embedding import as_rows
from karat.compat.ulysses.training import SEEDS
from karat.heads.adamw import AdamW


class PerFold:
    """Embed the train rows, then the eval rows, train the head, and embed the test rows last.

    The eval rows are the first ones, their share is the head's ``eval_frac``.
    """

    takes = ("table",)

    def __init__(
        self,
        embedder: Any,
        task: str,
        head: Mapping[str, Any],
        arguments: Mapping[str, Any],
        seed: int,
    ) -> None:
        self.embedder = embedder
        self.task = task
        self.head = dict(head)
        self.arguments = dict(arguments)
        self.seed = seed
        self.random_state: int | None = None

    def __deepcopy__(self, memo: dict[int, Any]) -> PerFold:
        # share the sentence model, but not what the embedder learns in a fold
        return PerFold(copy.copy(self.embedder), self.task, self.head, self.arguments, self.seed)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> PerFold:
        """Embed the train and eval rows, and train the head."""
        seed = int(self.random_state or 0)
        self.head_ = AdamW(**self.head, fold=(seed - self.seed) % SEEDS, random_state=seed)
        judges = math.ceil(self.head_.eval_frac * len(X))
        train = self._embed(X.iloc[judges:], "train")
        held = self._embed(X.iloc[:judges], "eval")
        self.head_.fit(np.vstack([held, train]), y, judges=judges)
        self.classes_ = self.head_.classes_
        self.history_, self.notes_ = self.head_.history_, self.head_.notes_
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return the most likely classes."""
        return self.predict_both(X)[0]

    def predict_both(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the most likely classes and all probabilities."""
        return self.head_.predict_both(self._embed(X, "test"))

    def _embed(self, X: pd.DataFrame, part: str) -> np.ndarray:
        a = X["a"].tolist()
        b = X["b"].tolist() if "b" in X else None
        rows = self.embedder.embed(a, b, self.task, part, **self.arguments)
        return as_rows(rows, len(X), f"{type(self.embedder).__name__}.embed")
