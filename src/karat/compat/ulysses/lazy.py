"""A predictor that embeds anew in every fold: fitted on the train texts, asked about the others."""

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

#: what embeds texts: the evaluator's own method
Embedder = Any


class PerFold:
    """Embed the train rows, then those that judge, train the head, and embed the test rows last.

    The first rows judge, as many as the head's ``eval_frac`` says: rows come in the fold's order.
    """

    takes = ("table",)

    def __init__(
        self,
        embedder: Embedder,
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
        # the sentence model is shared; what the embedder learns in a fold is its copy's own
        return PerFold(copy.copy(self.embedder), self.task, self.head, self.arguments, self.seed)

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> PerFold:
        """Embed the rows by their parts, and train the head."""
        told = int(self.random_state or 0)
        self.head_ = AdamW(**self.head, fold=(told - self.seed) % SEEDS, random_state=told)
        judges = math.ceil(self.head_.eval_frac * len(X))
        train = self._embed(X.iloc[judges:], "train")
        held = self._embed(X.iloc[:judges], "eval")
        self.head_.fit(np.vstack([held, train]), y, judges=judges)
        self.classes_ = self.head_.classes_
        self.history_, self.notes_ = self.head_.history_, self.head_.notes_
        return self

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Return the likeliest classes."""
        return self.predict_both(X)[0]

    def predict_both(self, X: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
        """Return the likeliest classes and the probabilities of all."""
        return self.head_.predict_both(self._embed(X, "test"))

    def _embed(self, X: pd.DataFrame, part: str) -> np.ndarray:
        a = X["a"].tolist()
        b = X["b"].tolist() if "b" in X else None
        rows = self.embedder.embed(a, b, self.task, part, **self.arguments)
        return as_rows(rows, len(X), f"{type(self.embedder).__name__}.embed")
