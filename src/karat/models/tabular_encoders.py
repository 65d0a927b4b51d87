"""Baseline table encoders: ordinal, target, hashed, min-hash, strings, PCA.

All impute and scale numbers and dates (see ``tables``); they differ in how they encode words.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin

from karat.errors import MissingExtra
from karat.models.minhash import MinHashes
from karat.models.tables import ColumnEncoder, TypedColumns, table_to_numbers
from karat.models.truth import kind_of

#: components below this share of the largest standard deviation are rounding errors
_NEGLIGIBLE = 1e-6


def ordinal_words() -> Any:
    """Return a transformer of words: scaled ordinal codes, −1 for an unseen word."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OrdinalEncoder, StandardScaler

    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    return make_pipeline(codes, StandardScaler())


class OrdinalTable(ColumnEncoder):
    """Number the words of each column in alphabetical order, −1 for an unseen one, and scale."""

    def _columns(self, y: Any) -> TypedColumns:
        return TypedColumns(ordinal_words())


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

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit, and encode each row without its own target."""
        if y is not None and kind_of(y, self.kind) == "classes":
            y = np.unique(y, return_inverse=True)[1]
        with warnings.catch_warnings():
            # a class may have fewer rows than there are folds
            warnings.filterwarnings("ignore", message="The least populated class")
            return super().fit_transform(items, y)

    def _columns(self, y: Any) -> TypedColumns:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        encoder = None if y is None else self._encoder(np.asarray(y))
        if encoder is None:
            return TypedColumns(ordinal_words())
        return TypedColumns(make_pipeline(encoder, StandardScaler()))

    def _encoder(self, y: np.ndarray) -> Any:
        from sklearn.model_selection import KFold, StratifiedKFold
        from sklearn.preprocessing import TargetEncoder

        numbers = kind_of(y, self.kind) == "numbers"
        counts = [len(y)] if numbers else np.bincount(y)
        folds = min(self.folds, max(counts))
        if folds < 2:
            return None
        several = "binary" if len(counts) <= 2 else "multiclass"
        about = {"target_type": "continuous" if numbers else several}
        default = inspect.signature(TargetEncoder).parameters.get("random_state")
        if default is not None and default.default != "deprecated":  # scikit-learn before 1.9
            return TargetEncoder(**about, cv=folds, random_state=self.random_state or 0)
        split = (KFold if numbers else StratifiedKFold)(
            folds, shuffle=True, random_state=self.random_state or 0
        )
        return TargetEncoder(**about, cv=split)


@dataclass(eq=False, repr=False)
class HashedTable(ColumnEncoder):
    """Hash each "column=word" into a few dimensions."""

    dimensions: int = 128

    def _columns(self, y: Any) -> TypedColumns:
        return TypedColumns(HashedWords(self.dimensions))


@dataclass(eq=False, repr=False)
class HashedWords(TransformerMixin, BaseEstimator):
    """Hash the cells of a frame of strings with scikit-learn's FeatureHasher."""

    dimensions: int = 128

    def fit(self, texts: pd.DataFrame, y: Any = None) -> HashedWords:
        """Do nothing."""
        return self

    def transform(self, texts: pd.DataFrame) -> np.ndarray:
        """Return the sum of the hashes of each row's cells."""
        from sklearn.feature_extraction import FeatureHasher

        features = [[f"{name}={text}" for text in column] for name, column in texts.items()]
        hasher = FeatureHasher(self.dimensions, input_type="string")
        return np.asarray(hasher.transform(zip(*features, strict=True)).toarray())


@dataclass(eq=False, repr=False)
class MinHashTable(ColumnEncoder):
    """skrub's MinHashEncoder, scaled: similar words share some of the ``dimensions`` per column."""

    dimensions: int = 30

    def _columns(self, y: Any) -> TypedColumns:
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        return TypedColumns(make_pipeline(MinHashes(self.dimensions), StandardScaler()))


@dataclass(eq=False, repr=False)
class StringTable(ColumnEncoder):
    """skrub's StringEncoder per column of words: SVD of TF-IDF weighted character n-grams."""

    aligned = False

    dimensions: int = 30
    random_state: int | None = None

    def _columns(self, y: Any) -> TypedColumns:
        return TypedColumns(StringColumns(self.dimensions, self.random_state or 0))


@dataclass(eq=False, repr=False)
class StringColumns(TransformerMixin, BaseEstimator):
    """A StringEncoder per column of a frame of strings; an empty column is 0."""

    dimensions: int = 30
    random_state: int = 0

    def fit(self, texts: pd.DataFrame, y: Any = None) -> StringColumns:
        """Fit the n-grams of each column."""
        self.fit_transform(texts)
        return self

    def fit_transform(self, texts: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform."""
        try:
            from skrub import StringEncoder
        except ImportError as error:
            raise MissingExtra("skrub", "tables") from error
        self.encoders_ = []
        for place in range(texts.shape[1]):
            written = (texts.iloc[:, place].str.strip() != "").any()
            encoder = StringEncoder(self.dimensions, random_state=self.random_state)
            self.encoders_.append(encoder if written else None)
        with warnings.catch_warnings():
            # a column may have few distinct n-grams
            warnings.filterwarnings("ignore", message="The matrix shape is")
            return self._encoded(texts, "fit_transform")

    def transform(self, texts: pd.DataFrame) -> np.ndarray:
        """Return the concatenated columns."""
        return self._encoded(texts, "transform")

    def _encoded(self, texts: pd.DataFrame, method: str) -> np.ndarray:
        blocks = [
            np.zeros((len(texts), 1))
            if encoder is None
            else getattr(encoder, method)(texts.iloc[:, place]).to_numpy()
            for place, encoder in enumerate(self.encoders_)
        ]
        return np.hstack(blocks)


@dataclass(eq=False, repr=False)
class OneHotPca(TransformerMixin, BaseEstimator):
    """Principal components of the one-hot table, by an exact solver, with fixed signs.

    Components that are rounding errors are dropped. The (first) largest weight of each component is
    positive.
    """

    takes = ("table",)
    aligned = False

    dimensions: int = 32
    min_frequency: float | int | None = 0.005

    def fit(self, items: pd.DataFrame, y: Any = None) -> OneHotPca:
        """Fit the components."""
        self.fit_transform(items)
        return self

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform."""
        self.columns_ = table_to_numbers(self.min_frequency)
        table = self.columns_.fit_transform(items)
        self.mean_ = table.mean(axis=0)
        self.components_ = _components(table - self.mean_, self.dimensions)
        return np.asarray((table - self.mean_) @ self.components_.T)

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of components per table row."""
        return np.asarray((self.columns_.transform(items) - self.mean_) @ self.components_.T)


def _components(centered: np.ndarray, dimensions: int) -> np.ndarray:
    """Return the directions of largest variance, one per row, from the smaller Gram matrix."""
    from scipy.linalg import eigh

    tall = centered.shape[0] >= centered.shape[1]
    gram = centered.T @ centered if tall else centered @ centered.T
    first = max(0, len(gram) - dimensions)
    squares, vectors = eigh(gram, subset_by_index=(first, len(gram) - 1))
    lengths = np.sqrt(np.maximum(squares[::-1], 0.0))
    used = lengths > _NEGLIGIBLE * lengths[0]
    if not used.any():  # all rows are equal
        return np.zeros((1, centered.shape[1]))
    vectors = vectors[:, ::-1][:, used]
    found = vectors.T if tall else (vectors / lengths[used]).T @ centered
    sizes = np.abs(found)
    # a boolean column makes two weights of equal size, up to rounding
    largest = np.argmax(sizes >= (1 - _NEGLIGIBLE) * sizes.max(axis=1, keepdims=True), axis=1)
    signs = np.sign(found[np.arange(len(found)), largest])
    return np.asarray(found * signs[:, None])
