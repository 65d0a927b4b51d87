"""Encoders of table rows: baselines with various encodings of words, rows as sentences, forests.

All baselines impute and scale numbers and dates (``TypedColumns``). The one-hot encoder equals
scikit-learn's and looks up distinct values only. The min-hashes equal those of skrub's
MinHashEncoder (Cerda, Varoquaux 2022, Encoding High-Cardinality String Categorical Variables),
computed for all texts of a column at once. The random encoder is a lower bound for scores.

A supervised encoder overfits its training rows, so a head trained on in-sample embeddings would
overfit too. Out of fold, no training row is embedded by an encoder fitted on its target.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from karat.core.columns import rows_as_sentences
from karat.core.embeddings import declared_prompts, uses_roles
from karat.errors import ContractError, Declined, DefinitionError
from karat.models.adapters import wrapped_fingerprint, wrapped_model
from karat.models.model import (
    FittedEncoder,
    Model,
    StatelessEncoder,
    assign_folds,
    import_extra,
    sklearn_tags,
    target_kind,
)


@dataclass(eq=False, repr=False)
class OneHotWords(FittedEncoder):
    """One dimension per level of every column in sorted order; rare levels share the last one.

    Levels in fewer rows than ``min_frequency``, a count or a share, are rare. An unseen level is
    rare, or all zeros in a column without rare levels. The empty string, a missing cell, is a level
    of its own, or with ``missing_category="most_frequent"`` the most frequent level, the first of
    several.

    >>> table = pd.DataFrame({"w": ["a", "b", "b", "c"]})
    >>> OneHotWords(2).fit(table).transform(pd.DataFrame({"w": ["b", "c", "z"]})).tolist()
    [[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]
    """

    min_frequency: float | int | None = None
    missing_category: str = "level"

    def fit(self, words: pd.DataFrame, y: Any = None) -> OneHotWords:
        """Learn the levels of every column."""
        self.frequent_ = {}
        if self.missing_category == "most_frequent":
            self.frequent_ = {name: _most_frequent(column) for name, column in words.items()}
        elif self.missing_category != "level":
            raise DefinitionError(
                f'missing_category must be "level" or "most_frequent", got '
                f"{self.missing_category!r}."
            )
        words = self._imputed(words)
        least = self.min_frequency or 0
        least = least if isinstance(least, Integral) else least * len(words)
        self.places_, self.widths_ = [], []
        for _, column in words.items():
            codes, levels = pd.factorize(column)
            counts = dict(zip(levels.tolist(), np.bincount(codes).tolist(), strict=True))
            common = sorted(level for level, count in counts.items() if count >= least)
            self.places_.append({level: place for place, level in enumerate(common)})
            self.widths_.append(len(common) + (len(common) < len(counts)))
        return self

    def transform(self, words: pd.DataFrame) -> np.ndarray:
        """Return a row of zeros and ones per row of words."""
        words = self._imputed(words)
        matrix = np.zeros((len(words), sum(self.widths_)))
        start = 0
        for (_, column), places, width in zip(
            words.items(), self.places_, self.widths_, strict=True
        ):
            codes, levels = pd.factorize(column)
            rare = len(places) if width > len(places) else -1
            at = np.array([places.get(level, rare) for level in levels.tolist()], dtype=np.intp)
            found = at[codes]
            rows = np.flatnonzero(found >= 0)
            matrix[rows, start + found[rows]] = 1.0
            start += width
        return matrix

    def _imputed(self, words: pd.DataFrame) -> pd.DataFrame:
        if not self.frequent_:
            return words
        return words.apply(lambda column: column.where(column != "", self.frequent_[column.name]))


def _most_frequent(words: pd.Series) -> str:
    counts = words[words != ""].value_counts()
    return min(counts.index[counts == counts.max()]) if len(counts) else ""


_LIMIT = np.iinfo(np.int32).max


def min_hashes(texts: Sequence[str], dimensions: int = 30) -> np.ndarray:
    """Return one row per text: the minimum over its 2- to 4-grams, for each hash function.

    The empty text is all zeros. Equal texts have equal rows.

    >>> min_hashes(["ab", "abcd", ""], 2).tolist()
    [[-1668975464.0, -1394811714.0], [-1872589581.0, -2131769630.0], [0.0, 0.0]]
    """
    # as many bytes as characters: skrub reads no further
    encoded = [text.encode("utf-8", "replace")[: len(text)] for text in texts]
    found = np.full((dimensions, len(texts)), _LIMIT, dtype=np.int32)
    for size in (2, 3, 4):
        # a text shorter than an n-gram is padded with zeros on both sides
        zeros = [bytes(max(0, size - len(text))) for text in encoded]
        padded = [pad + text + pad for pad, text in zip(zeros, encoded, strict=True)]
        lengths = np.array([len(text) for text in padded])
        starts = np.cumsum(lengths) - lengths
        # reduceat uses consecutive bounds: every other segment spans two texts
        bounds = np.column_stack([starts, starts + lengths - size + 1]).ravel()
        # the last bound must be inside, so one more n-gram follows
        buffer = np.frombuffer(b"".join(padded) + b"\0", dtype=np.int8)
        for seed in range(dimensions):
            hashes = np.correlate(buffer, _weights(size, seed))
            lowest = np.minimum.reduceat(hashes, bounds)[::2]
            np.minimum(found[seed], lowest, out=found[seed])
    found[:, [not text for text in encoded]] = 0
    return np.ascontiguousarray(found.T, dtype=np.float64)


@dataclass(eq=False, repr=False)
class MinHashes(FittedEncoder, StatelessEncoder):
    """Concatenated min-hashes of the columns of a frame of strings."""

    dimensions: int = 30

    def transform(self, texts: pd.DataFrame) -> np.ndarray:
        """Return the hashes of all columns; each distinct text is hashed once."""
        blocks = []
        for _, column in texts.items():
            codes, different = pd.factorize(column.to_numpy(dtype=object))
            blocks.append(min_hashes(list(different), self.dimensions)[codes])
        return np.hstack(blocks)


@lru_cache(maxsize=1024)
def _weights(size: int, seed: int) -> np.ndarray:
    from sklearn.utils import check_random_state

    drawn: np.ndarray = check_random_state(seed).randint(-_LIMIT, _LIMIT, size, dtype=np.int32)
    drawn.flags.writeable = False  # it is cached
    return drawn


@dataclass(eq=False, repr=False)
class RandomEncoder(StatelessEncoder):
    """A random vector per item, derived from its id and the seed, whatever its content."""

    dimensions: int = 64
    random_state: int | None = None

    @property
    def embedding_dimension(self) -> int:
        """The width of the vectors."""
        return self.dimensions

    def transform(self, items: Any) -> np.ndarray:
        """Return one standard normal row per item."""
        framed = isinstance(items, pd.Series | pd.DataFrame)  # a list, too, has an "index"
        ids = items.index if framed else pd.RangeIndex(len(items))
        keys = pd.util.hash_array(np.asarray(ids.astype(str), dtype=object)).astype(np.uint64)
        with np.errstate(over="ignore"):
            keys = mix_bits(
                keys + np.uint64(self.random_state or 0) * np.uint64(0x9E3779B97F4A7C15)
            )
            steps = np.arange(1, 2 * self.dimensions + 1, dtype=np.uint64)
            bits = mix_bits(keys[:, None] + steps[None, :] * np.uint64(0x9E3779B97F4A7C15))
        uniform = ((bits >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        radius, angle = uniform[:, : self.dimensions], uniform[:, self.dimensions :]
        # Box-Muller transform
        return (np.sqrt(-2 * np.log(radius)) * np.cos(2 * np.pi * angle)).astype(np.float32)


def mix_bits(x: np.ndarray) -> np.ndarray:
    """Return numbers that look random, by the finalizer of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


#: numbers are clipped to this, so that sums of squares are finite
LARGEST = 1e100


def clip_to_float32(matrix: np.ndarray) -> np.ndarray:
    """Clip numbers in place to a range in which float32 estimators can compute."""
    return np.clip(matrix, -1e30, 1e30, out=matrix)


def as_float32(matrix: np.ndarray) -> np.ndarray:
    """Return the clipped numbers as float32."""
    return clip_to_float32(matrix).astype(np.float32)


def numeric_columns(table: pd.DataFrame) -> list[Any]:
    """Return the columns of numbers or durations, without booleans and dates."""
    kinds = pd.api.types
    return [
        name
        for name, column in table.items()
        if (kinds.is_numeric_dtype(column) and not kinds.is_bool_dtype(column))
        or kinds.is_timedelta64_dtype(column)
    ]


def date_columns(table: pd.DataFrame) -> list[Any]:
    """Return the columns with a date dtype; a date string is a word."""
    is_date = pd.api.types.is_datetime64_any_dtype
    return [name for name, column in table.items() if is_date(column)]


def table_to_numbers(
    min_frequency: float | int | None = None, missing_category: str = "level"
) -> TypedColumns:
    """Return a transformer: numbers and dates imputed and scaled, everything else one-hot."""
    return TypedColumns(OneHotWords(min_frequency, missing_category))


class FittedInTransform(FittedEncoder):
    """Base of encoders whose ``fit`` is part of ``fit_transform``."""

    def fit(self, items: pd.DataFrame, y: Any = None) -> Any:
        """Fit the encoder."""
        self.fit_transform(items, y)
        return self


@dataclass(eq=False, repr=False)
class TypedColumns(FittedInTransform):
    """Convert a table to numbers: each column is numeric, a date or words.

    Missing numbers become the median, then all are scaled; so are the components of a date: year,
    month, day, weekday, hour and seconds since 1970. Everything else, including booleans, is
    converted to strings and passed to ``words``, a transformer of a frame of strings; a missing
    cell is an empty string. ``fit`` decides the type of each column. ``numbers`` replaces the
    imputing and scaling of numbers and dates.

    >>> rows = pd.DataFrame({"n": [1.0, 3.0], "w": ["a", "b"]})
    >>> table_to_numbers().fit_transform(rows).tolist()
    [[-1.0, 1.0, 0.0], [1.0, 0.0, 1.0]]
    """

    words: Any
    numbers: Any = None

    def fit_transform(self, table: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform; words may be encoded out of fold."""
        from sklearn.base import clone

        numbers, dates = numeric_columns(table), date_columns(table)
        words = [column for column in table.columns if column not in {*numbers, *dates}]
        steps: list[tuple[list[Any], Callable[[pd.DataFrame], Any], Any]] = [
            (numbers, _floats, self._step()),
            (dates, _date_components, self._step()),
            (words, _words, clone(self.words)),
        ]
        self.steps_ = [step for step in steps if step[0]]
        return np.hstack(
            [step.fit_transform(read(table[names]), y) for names, read, step in self.steps_]
        )

    def transform(self, table: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return np.hstack([step.transform(read(table[names])) for names, read, step in self.steps_])

    def _step(self) -> Any:
        from sklearn.base import clone

        return scaled_numbers() if self.numbers is None else clone(self.numbers)


class ColumnEncoder(FittedInTransform):
    """Base of encoders that differ in how they encode words."""

    takes = ("table",)

    def _columns(self, y: Any) -> TypedColumns:
        """Return the transformer; ``y`` is None if the target is hidden."""
        raise NotImplementedError

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform."""
        self.columns_ = self._columns(y)
        return np.asarray(self.columns_.fit_transform(items, y), dtype=np.float64)

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return np.asarray(self.columns_.transform(items), dtype=np.float64)


@dataclass(eq=False, repr=False)
class OneHotTable(ColumnEncoder):
    """Impute and scale numbers, one-hot encode everything else; an unseen value is all zeros.

    Categories rarer than ``min_frequency`` are merged, so that names and free text do not make one
    dimension per row. A missing category is a level of its own, or with
    ``missing_category="most_frequent"`` the most frequent one of the train rows.
    """

    min_frequency: float | int | None = 0.005
    missing_category: str = "level"

    def _columns(self, y: Any) -> TypedColumns:
        return table_to_numbers(self.min_frequency, self.missing_category)


@dataclass(eq=False, repr=False)
class SkrubTable(FittedInTransform):
    """skrub's TableVectorizer; missing values become 0."""

    takes = ("table",)

    cardinality_threshold: int = 40
    random_state: int | None = None

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform."""
        skrub = import_extra("skrub", "tables")
        self.vectorizer_ = skrub.TableVectorizer(
            cardinality_threshold=self.cardinality_threshold,
            high_cardinality=skrub.StringEncoder(random_state=self.random_state),
        )
        return self._numbers(self.vectorizer_.fit_transform(items, y))

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of numbers per table row."""
        return self._numbers(self.vectorizer_.transform(items))

    def _numbers(self, table: pd.DataFrame) -> np.ndarray:
        values = np.array(table, dtype=np.float64)
        values[np.isnan(values)] = 0.0  # infinity is reported later
        return values


def scaled(transformer: Any) -> Any:
    """Return a transformer followed by scaling."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(transformer, StandardScaler())


def scaled_numbers() -> Any:
    """Return a transformer that imputes the median and scales."""
    return scaled(MedianImputer())


class MedianImputer(FittedEncoder):
    """Replace NaN by the median of its column, 0 if it has none, as scikit-learn's imputer does.

    That one masks arrays, which takes seven times as long.

    >>> MedianImputer().fit_transform(np.array([[1.0, np.nan], [np.nan, np.nan], [4.0, np.nan]]))
    array([[1. , 0. ],
           [2.5, 0. ],
           [4. , 0. ]])
    """

    def fit(self, numbers: np.ndarray, y: Any = None) -> MedianImputer:
        """Learn the medians."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
            self.medians_ = np.nan_to_num(np.nanmedian(numbers, axis=0))
        return self

    def transform(self, numbers: np.ndarray) -> np.ndarray:
        """Return the numbers without NaN."""
        return np.where(np.isnan(numbers), self.medians_, numbers)


def _floats(table: pd.DataFrame) -> np.ndarray:
    columns = [
        column.dt.total_seconds()
        if pd.api.types.is_timedelta64_dtype(column)
        else pd.to_numeric(column, errors="coerce")
        for _, column in table.items()
    ]
    values = np.column_stack([column.astype(float).to_numpy() for column in columns])
    return np.where(np.isinf(values), np.nan, np.clip(values, -LARGEST, LARGEST))


def _date_components(table: pd.DataFrame) -> np.ndarray:
    components: list[Any] = []
    for _, column in table.items():
        local = _moments(column)
        since = (local if local.tz is None else local.tz_convert(None)) - pd.Timestamp(0)
        components += [local.year, local.month, local.day, local.day_of_week, local.hour]
        components.append(since.total_seconds())
    return np.column_stack([np.asarray(part, dtype=float) for part in components])


def _moments(column: pd.Series) -> pd.DatetimeIndex:
    # a test column may have another dtype; invalid dates are missing
    try:
        return pd.DatetimeIndex(pd.to_datetime(column, errors="coerce", format="mixed"))
    except ValueError:  # several time zones in one column
        return pd.DatetimeIndex(pd.to_datetime(column, errors="coerce", format="mixed", utc=True))


def _words(table: pd.DataFrame) -> pd.DataFrame:
    if all(isinstance(each, pd.StringDtype) and each.na_value is np.nan for each in table.dtypes):
        texts = table.fillna("")  # already strings
    else:
        texts = table.astype(object).where(table.notna(), "").astype(str)
    return texts.set_axis([str(column) for column in table.columns], axis=1)


#: components below this share of the largest standard deviation are rounding errors
_NEGLIGIBLE = 1e-6


def ordinal_words() -> Any:
    """Return a transformer of words: scaled ordinal codes, −1 for an unseen word."""
    from sklearn.preprocessing import OrdinalEncoder

    return scaled(OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1))


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
        if y is not None and target_kind(y, self.kind) == "classification":
            y = np.unique(y, return_inverse=True)[1]
        with warnings.catch_warnings():
            # a class may have fewer rows than there are folds
            warnings.filterwarnings("ignore", message="The least populated class")
            return super().fit_transform(items, y)

    def _columns(self, y: Any) -> TypedColumns:
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
class HashedWords(FittedEncoder, StatelessEncoder):
    """Hash the cells of a frame of strings with scikit-learn's FeatureHasher."""

    dimensions: int = 128

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
        return TypedColumns(scaled(MinHashes(self.dimensions)))


@dataclass(eq=False, repr=False)
class StringTable(ColumnEncoder):
    """skrub's StringEncoder per column of words: SVD of TF-IDF weighted character n-grams."""

    aligned = False

    dimensions: int = 30
    random_state: int | None = None

    def _columns(self, y: Any) -> TypedColumns:
        return TypedColumns(StringColumns(self.dimensions, self.random_state or 0))


@dataclass(eq=False, repr=False)
class StringColumns(FittedInTransform):
    """A StringEncoder per column of a frame of strings; an empty column is 0."""

    dimensions: int = 30
    random_state: int = 0

    def fit_transform(self, texts: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform."""
        skrub = import_extra("skrub", "tables")
        self.encoders_ = []
        for place in range(texts.shape[1]):
            written = (texts.iloc[:, place].str.strip() != "").any()
            encoder = skrub.StringEncoder(self.dimensions, random_state=self.random_state)
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
class OneHotPca(FittedInTransform):
    """Principal components of the one-hot table, by an exact solver, with fixed signs.

    Components that are rounding errors are dropped. The (first) largest weight of each component is
    positive.
    """

    takes = ("table",)
    aligned = False

    dimensions: int = 32
    min_frequency: float | int | None = 0.005

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


@dataclass(eq=False, repr=False)
class RowSentences(FittedEncoder):
    """Write each row as a sentence and embed it with a sentence encoder.

    It needs a fit only if the sentence encoder does.

    Parameters
    ----------
    encoder
        ``"package.module:Name"``, a class, an instance, or an object with ``encode``.
    options
        The parameters of the class.
    """

    takes: ClassVar[tuple[str, ...]] = ("table",)

    encoder: Any = "karat.models.text_encoders:UniversalSentenceEncoder"
    options: dict[str, Any] | None = None

    def fit(self, items: pd.DataFrame, y: Any = None) -> RowSentences:
        """Fit the sentence encoder on the rows' sentences, unless it is pretrained."""
        from sklearn.base import clone

        model = self._model()
        self.encoder_ = model.prototype
        if not model.stateless:
            self.encoder_ = clone(model.prototype, safe=False)
            self.encoder_.fit(self.sentences(items), y)
        return self

    def transform(self, items: pd.DataFrame, role: str = "") -> Any:
        """Encode the rows' sentences in a role."""
        if not hasattr(self, "encoder_"):
            self.encoder_ = self._model().prototype
        texts = self.sentences(items)
        if "text" in getattr(self.encoder_, "by_text", ()):
            given = {"role": role} if role else {}
            return self.encoder_.encode(texts.tolist(), **given)
        return self.encoder_.transform(texts)

    @property
    def uses_roles(self) -> bool:
        """Whether the sentence encoder embeds queries in another way than documents."""
        return uses_roles(self._model().prototype)

    @property
    def declared_prompts(self) -> list[str]:
        """The names of the sentence encoder's own prompts."""
        return declared_prompts(self._model().prototype)

    def prompt_for(self, role: str) -> str:
        """Return the sentence encoder's prompt of a role."""
        return str(self._model().prototype.prompt_for(role))

    def sentences(self, items: Any) -> pd.Series:
        """Return the sentence of each item."""
        return pd.Series(rows_as_sentences(items), index=items.index, dtype=object)

    def _model(self) -> Model:
        return wrapped_model(self.encoder, self.options)

    def fingerprint(self) -> str:
        """Return the identity of the sentence encoder."""
        return wrapped_fingerprint(self._model())

    @property
    def requires_fit(self) -> bool:
        """Whether the sentence encoder is fitted."""
        return not self._model().stateless


# -- Forest encoders, and out-of-fold embeddings of supervised encoders ---------------------------


@dataclass(eq=False, repr=False)
class ForestLeaves(FittedInTransform):
    """One-hot encode the leaf of a row, for each tree of a forest.

    With a target this is a random forest, otherwise trees are split at random. Embeddings of
    training rows overfit, and as two forests share no leaf, they cannot be used out of fold.
    """

    takes = ("table",)
    aligned = False

    trees: int = 50
    leaves: int = 16
    kind: str | None = None
    random_state: int | None = None

    def fit_transform(self, items: pd.DataFrame, y: Any = None) -> np.ndarray:
        """Fit and transform."""
        from sklearn.ensemble import RandomTreesEmbedding
        from sklearn.preprocessing import OneHotEncoder

        options = {
            "n_estimators": self.trees,
            "max_leaf_nodes": self.leaves,
            "random_state": self.random_state or 0,
        }
        self.columns_ = TypedColumns(ordinal_words())
        rows = as_float32(self.columns_.fit_transform(items))
        if y is None:
            self.forest_ = RandomTreesEmbedding(max_depth=None, **options).fit(rows)
        else:
            self.forest_ = _fit_forest(rows, y, target_kind(y, self.kind), options)
        self.places_ = OneHotEncoder(handle_unknown="ignore", sparse_output=False, dtype=np.float32)
        return np.asarray(self.places_.fit_transform(self.forest_.apply(rows)))

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return one row of leaves per table row, a 1 for each tree."""
        leaves = self.forest_.apply(as_float32(self.columns_.transform(items)))
        return np.asarray(self.places_.transform(leaves))


@dataclass(eq=False, repr=False)
class ForestScores(FittedEncoder):
    """The class probabilities or the prediction of a random forest.

    It overfits training rows, so use it inside ``OutOfFold``. It declines tasks without a target.
    ``classes_`` names the dimensions. ``rows`` is the maximum number of rows per tree.
    """

    takes = ("table",)

    trees: int = 50
    rows: int = 5000
    kind: str | None = None
    random_state: int | None = None

    def fit(self, items: pd.DataFrame, y: Any = None) -> ForestScores:
        """Fit the forest."""
        if y is None:
            raise Declined("it needs the target, which is hidden here")
        kind = target_kind(y, self.kind)
        if kind == "classification":
            self.classes_ = np.unique(y)
        self.columns_ = TypedColumns(ordinal_words())
        rows = as_float32(self.columns_.fit_transform(items))
        options = {
            "n_estimators": self.trees,
            "max_samples": min(self.rows, len(rows)),
            "random_state": self.random_state or 0,
        }
        self.forest_ = _fit_forest(rows, y, kind, options)
        return self

    def transform(self, items: pd.DataFrame) -> np.ndarray:
        """Return a probability per class, or one number, per table row."""
        rows = as_float32(self.columns_.transform(items))
        if hasattr(self.forest_, "predict_proba"):
            return np.asarray(self.forest_.predict_proba(rows))
        return np.asarray(self.forest_.predict(rows)).reshape(-1, 1)

    @property
    def requires_target(self) -> bool:
        """The forest needs the target."""
        return True


def _fit_forest(rows: np.ndarray, y: Any, kind: str, options: dict[str, Any]) -> Any:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if kind == "classification":
        # as codes: scikit-learn refuses labels such as 0.5
        return RandomForestClassifier(**options).fit(rows, np.unique(y, return_inverse=True)[1])
    # a third of the columns per split, Breiman's default for regression
    return RandomForestRegressor(max_features=1 / 3, **options).fit(rows, y)


@dataclass(eq=False, repr=False)
class OutOfFold(FittedEncoder):
    """Embed each fold of the training rows with an encoder fitted on the other folds.

    All other rows are embedded by an encoder fitted on all training rows. Dimensions must have the
    same meaning in every fit. This holds for probabilities, target means and layers of a pretrained
    network, but not for leaves of trees and components: such encoders have ``aligned = False`` and
    are refused, as are fits of different widths. If the encoder has ``classes_`` and one dimension
    per class, a class missing in a fold gets 0. A task's groups are ignored: rows of one entity may
    be in several folds.

    Parameters
    ----------
    encoder
        ``"package.module:Name"``, a class or an instance.
    options
        The parameters of the class.
    folds
        Number of folds; the encoder is fitted once more than that.
    kind
        ``"classification"`` (stratified folds) or ``"regression"``; filled in by Karat.
    """

    encoder: Any = "karat.models.tabular_encoders:ForestScores"
    options: dict[str, Any] | None = None
    folds: int = 5
    kind: str | None = None
    random_state: int | None = None

    @property
    def takes(self) -> Any:
        """The modalities of the encoder."""
        return self._model().takes

    def fit(self, items: Any, y: Any = None) -> OutOfFold:
        """Fit the encoder on all rows."""
        self.encoder_ = _fitted(self._fresh(y), items, y)
        return self

    def fit_transform(self, items: Any, y: Any = None) -> np.ndarray:
        """Fit on all rows, and embed each row out of fold; without ``y``, embed in sample."""
        self.fit(items, y)
        if y is None:
            return self.transform(items)
        if min(self.folds, len(y)) < 2:
            raise ContractError(
                f"out-of-fold embeddings need at least 2 folds and 2 rows, got "
                f"{self.folds} folds and {len(y)} rows."
            )
        y = np.asarray(y)
        folds = min(self.folds, len(y))
        fold_of = assign_folds(y, target_kind(y, self.kind), folds, self.random_state or 0)
        blocks = [self._embed_fold(items, y, fold_of == fold) for fold in range(folds)]
        width = self.transform(_rows(items, np.arange(len(y)) == 0)).shape[1]
        embeddings = np.empty((len(y), width), dtype=np.result_type(*blocks))
        for fold, values in enumerate(blocks):
            if values.shape[1] != width:
                raise ContractError(
                    f"{self._model().name} must return vectors of the same size in every fit, got "
                    f"{values.shape[1]} dimensions in a fold and {width} on all training rows."
                )
            embeddings[fold_of == fold] = values
        return embeddings

    def transform(self, items: Any) -> np.ndarray:
        """Embed rows with the encoder fitted on all training rows."""
        return _dense(self.encoder_.transform(items))

    def _embed_fold(self, items: Any, y: np.ndarray, held: np.ndarray) -> np.ndarray:
        encoder = _fitted(self._fresh(y), _rows(items, ~held), y[~held])
        values = _dense(encoder.transform(_rows(items, held)))
        some, classes = getattr(encoder, "classes_", None), getattr(self.encoder_, "classes_", None)
        if some is None or classes is None or values.shape[1] != len(some):
            return values
        aligned = np.zeros((len(values), len(classes)), dtype=values.dtype)
        aligned[:, np.searchsorted(classes, some)] = values
        return aligned

    def _model(self) -> Model:
        return wrapped_model(self.encoder, self.options)

    def _fresh(self, y: Any) -> Any:
        model = self._model()
        if not getattr(model.prototype, "aligned", True):
            raise ContractError(
                f"{model.name} cannot be used out of fold: its dimensions differ between fits, so "
                f"training and test rows would not share a space. Use it without OutOfFold."
            )
        return model.fresh(self.random_state or 0, target_kind(y, self.kind))

    def unavailable(self) -> str:
        """Return what the encoder is missing."""
        return self._model().unavailable

    def fingerprint(self) -> str:
        """Return the identity of the encoder and the parameters."""
        return wrapped_fingerprint(self._model(), self.folds, self.kind, self.random_state)

    @property
    def requires_target(self) -> bool:
        """Whether the encoder needs the target."""
        inner = sklearn_tags(self._model().prototype)
        return inner is not None and bool(inner.target_tags.required)


def _fitted(encoder: Any, items: Any, y: Any) -> Any:
    if hasattr(encoder, "fit"):
        encoder.fit(items) if y is None else encoder.fit(items, y)
    return encoder


def _rows(items: Any, chosen: np.ndarray) -> Any:
    if isinstance(items, pd.DataFrame | pd.Series):
        return items.iloc[np.flatnonzero(chosen)]
    return [items[i] for i in np.flatnonzero(chosen)]


def _dense(values: Any) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values)
