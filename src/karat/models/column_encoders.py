"""Encoders of columns and whole tables: baselines without learning, and adapters.

The baselines read one thing each: headers, statistics and letters of cells, or the set of cells.
The adapters write a column or table as text for a sentence encoder, or average the vectors of its
rows. The vector of a whole table is the mean of its columns, unless a class says otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.core.columns import SAMPLE_CELLS, caption_of, cells_as_text, header_text, item_text
from karat.core.embeddings import EncoderLike
from karat.errors import ContractError
from karat.models.adapters import wrapped_fingerprint, wrapped_model
from karat.models.model import Items, StatelessEncoder
from karat.models.random_encoder import mix_bits
from karat.models.tables.row_sentences import RowSentences
from karat.models.tables.typed_columns import LARGEST

#: cells per column that are read; the others of a longer column are left out, evenly spaced
MOST_CELLS = 1_000
#: numbers in statistics are clipped to this size, so that their squares are finite


class ColumnBaseline(StatelessEncoder):
    """Base of encoders of columns: implement ``column_vectors``.

    A table is the mean of its columns; one without columns has no vector.
    """

    takes = ("column", "frame")

    def column_vectors(self, columns: Sequence[pd.Series]) -> np.ndarray:
        """Return one row per column; there is at least one column."""
        raise NotImplementedError

    def transform(self, items: Items) -> np.ndarray:
        """Return one row per column or table."""
        parts = [_columns(item) for item in items]
        sizes = np.array([len(part) for part in parts])
        columns = [column for part in parts for column in part]
        matrix = self.column_vectors(columns or [pd.Series([], dtype=object)])
        means = np.full((len(parts), matrix.shape[1]), np.nan)
        filled = np.flatnonzero(sizes)
        if len(filled):
            starts = (np.cumsum(sizes) - sizes)[filled]
            means[filled] = np.add.reduceat(matrix, starts, axis=0) / sizes[filled, None]
        return means.astype(np.float32)


def _columns(item: pd.Series | pd.DataFrame) -> list[pd.Series]:
    if isinstance(item, pd.Series):
        return [item]
    return [item.iloc[:, position] for position in range(item.shape[1])]


def cell_texts(column: pd.Series) -> list[str]:
    """Return the texts of the cells that are not empty, at most ``MOST_CELLS`` of them.

    >>> cell_texts(pd.Series(["a", None, " ", 2.0]))
    ['a', '2']
    """
    if len(column) > MOST_CELLS:
        column = column.iloc[np.linspace(0, len(column) - 1, MOST_CELLS).astype(int)]
    return [text for text in cells_as_text(column) if text]


def hashed_letters(texts: Sequence[str], dimensions: int) -> np.ndarray:
    """Return counts of 2- to 4-grams of letters, hashed, with L2 norm 1; an empty text is zeros."""
    from sklearn.feature_extraction.text import HashingVectorizer

    hasher = HashingVectorizer(
        analyzer="char_wb", ngram_range=(2, 4), n_features=dimensions, alternate_sign=True
    )
    return np.asarray(hasher.transform([text.lower() for text in texts]).toarray())


@dataclass(eq=False, repr=False)
class Headers(ColumnBaseline):
    """The letters of the header, and of nothing else; without a header the vector is zero.

    A table is the mean of its headers. A table that has only a caption is the letters of that.
    """

    dimensions: int = 512

    def column_vectors(self, columns: Sequence[pd.Series]) -> np.ndarray:
        """Return the hashed letters of the headers."""
        return hashed_letters([header_text(column.name) for column in columns], self.dimensions)

    def transform(self, items: Items) -> np.ndarray:
        """Return one row per column or table."""
        return super().transform([_titled(item) for item in items])


def _titled(item: pd.Series | pd.DataFrame) -> pd.Series | pd.DataFrame:
    """Return an item; if it is a table without columns, its caption as a header."""
    bare = isinstance(item, pd.DataFrame) and not item.shape[1]
    return pd.Series([], dtype=object, name=caption_of(item)) if bare else item


@dataclass(eq=False, repr=False)
class ColumnStatistics(ColumnBaseline):
    """Statistics of the cells of a column and the hashed letters of its cells; no header.

    The 20 statistics are shares (missing, distinct, numbers, characters by type) and sizes (rows,
    length of cells, numbers) on a logarithmic scale. Both blocks have about the same norm.
    """

    dimensions: int = 256

    def column_vectors(self, columns: Sequence[pd.Series]) -> np.ndarray:
        """Return the statistics, followed by the hashed letters."""
        texts = [cell_texts(column) for column in columns]
        letters = hashed_letters([" ".join(cells) for cells in texts], self.dimensions)
        rows = [column_statistics(c, t) for c, t in zip(columns, texts, strict=True)]
        return np.hstack([np.array(rows) / 2, letters])


def column_statistics(column: pd.Series, texts: Sequence[str]) -> list[float]:
    """Return 20 statistics of a column, whose non-empty cells are ``texts``.

    >>> found = column_statistics(pd.Series(["a1", "b2", None]), ["a1", "b2"])
    >>> [round(value, 2) for value in found[:4]]
    [0.12, 0.33, 1.0, 0.0]
    """
    size = max(1, len(texts))
    numbers = pd.to_numeric(pd.Series([t.replace(",", "") for t in texts]), errors="coerce")
    finite = numbers.to_numpy(dtype=float)
    finite = np.clip(finite[np.isfinite(finite)], -LARGEST, LARGEST)
    joined = "".join(texts)
    length = max(1, len(joined))
    shares = [
        sum(map(test, joined)) / length
        for test in (str.isalpha, str.isupper, str.isdigit, str.isspace, _is_mark)
    ]
    return [
        _scaled(len(column)),
        1 - len(column.dropna()) / max(1, len(column)),
        len(set(texts)) / size,
        len(finite) / size,
        *shares,
        *_summary(np.array([len(text) for text in texts])),
        *_summary(np.array([len(text.split()) for text in texts]))[:3],
        *_summary(finite),
    ]


def _is_mark(character: str) -> bool:
    return not (character.isalnum() or character.isspace())


def _summary(values: np.ndarray) -> list[float]:
    """Return mean, standard deviation, minimum and maximum, scaled; zeros if there is no value."""
    if not len(values):
        return [0.0] * 4
    return [_scaled(f(values)) for f in (np.mean, np.std, np.min, np.max)]


def _scaled(value: float) -> float:
    """Return a number on a logarithmic scale that keeps the sign; 1e5 is 1."""
    return float(np.sign(value) * np.log1p(abs(value)) / np.log1p(1e5))


@dataclass(eq=False, repr=False)
class ValueSets(StatelessEncoder):
    """The set of distinct cells as signs of min-hashes: the cosine estimates the Jaccard index.

    Two columns agree in a bit with probability (1 + J) / 2, where J is the share of cells they
    have in common (Li, König 2010, b-bit minwise hashing). Case does not count. A table is the set
    of all its cells; without cells there is no vector.
    """

    takes = ("column", "frame")

    dimensions: int = 512

    def transform(self, items: Items) -> np.ndarray:
        """Return a row of −1 and 1 per column or table."""
        rows = [self._signs({t.lower() for c in _columns(i) for t in cell_texts(c)}) for i in items]
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.dimensions)

    def _signs(self, cells: set[str]) -> np.ndarray:
        if not cells:
            return np.full(self.dimensions, np.nan)
        texts = np.array(sorted(cells), dtype=object)
        keys = np.asarray(pd.util.hash_array(texts), dtype=np.uint64)
        with np.errstate(over="ignore"):
            seeds = mix_bits(np.arange(1, self.dimensions + 1, dtype=np.uint64))
            lowest = np.full(self.dimensions, np.iinfo(np.uint64).max, dtype=np.uint64)
            for begin in range(0, len(keys), MOST_CELLS):
                hashes = mix_bits(keys[begin : begin + MOST_CELLS, None] ^ seeds)
                lowest = np.minimum(lowest, hashes.min(axis=0))
        return (mix_bits(lowest) & np.uint64(1)).astype(np.float64) * 2 - 1


@dataclass(eq=False, repr=False)
class TableSentences(RowSentences):
    """Write each column or table as text and embed it with a sentence encoder.

    A column is its header and first distinct cells, "city: Rome, Oslo"; a table its caption,
    headers and first three rows.

    Parameters
    ----------
    encoder, options
        As in ``RowSentences``.
    cells
        The number of cells of a column.
    context
        Whether the text of a column ends with the caption and the other headers of its table.
    """

    takes = ("column", "frame")

    cells: int = SAMPLE_CELLS
    context: bool = False

    def sentences(self, items: Items) -> pd.Series:
        """Return the text of each column or table."""
        texts = [item_text(item, self.cells) + self._context(item) for item in items]
        return pd.Series(texts, index=getattr(items, "index", None), dtype=object)

    def _context(self, item: pd.Series | pd.DataFrame) -> str:
        if not self.context or isinstance(item, pd.DataFrame):
            return ""
        others = [h for h in item.attrs.get("headers", ()) if h and h != header_text(item.name)]
        return "".join(f". {part}" for part in (caption_of(item), ", ".join(others)) if part)

    def fingerprint(self) -> str:
        """Return the identity of the sentence encoder, and the parameters."""
        return wrapped_fingerprint(self._model(), self.cells, self.context)


@dataclass(eq=False, repr=False)
class PooledRows(StatelessEncoder):
    """Embed the first rows of each table with a row encoder, and average their vectors.

    A column is a table of one column, and a caption without a table is a row with the cell
    "caption". Row encoders that are fitted cannot be used: their columns are fixed.

    Parameters
    ----------
    encoder
        A pretrained row encoder: ``"package.module:Name"``, a class or an instance.
    options
        The parameters of the class.
    rows
        The number of rows of a table.
    """

    takes = ("column", "frame")

    encoder: Any = "karat.models.tabular_encoders:RowSentences"
    options: dict[str, Any] | None = None
    rows: int = 20

    def transform(self, items: Items) -> np.ndarray:
        """Return one row per column or table; NaN if there are no rows."""
        model = wrapped_model(self.encoder, self.options)
        if not model.stateless:
            raise ContractError(
                f"{model.name} is fitted on the rows of one table; PooledRows needs a pretrained "
                f"row encoder, such as RowSentences with a sentence encoder."
            )
        pooled = [self._pooled(model.prototype, _as_rows(item)) for item in items]
        filled = [row for row in pooled if len(row)]
        example = filled or [self._pooled(model.prototype, pd.DataFrame({"caption": [""]}))]
        empty = np.full(max(1, len(example[0])), np.nan)
        rows = [row if len(row) else empty for row in pooled]
        return np.array(rows, dtype=np.float32).reshape(len(rows), len(empty))

    def _pooled(self, encoder: EncoderLike, table: pd.DataFrame) -> np.ndarray:
        if not table.size:
            return np.empty(0)
        vectors = np.asarray(encoder.transform(table.head(self.rows)), dtype=np.float64)
        complete = vectors[~np.isnan(vectors).any(axis=1)]
        return np.asarray(complete.mean(axis=0)) if len(complete) else np.empty(0)

    def fingerprint(self) -> str:
        """Return the identity of the row encoder, and the number of rows."""
        return wrapped_fingerprint(wrapped_model(self.encoder, self.options), self.rows)


def _as_rows(item: pd.Series | pd.DataFrame) -> pd.DataFrame:
    if isinstance(item, pd.Series):
        return item.to_frame(header_text(item.name))
    bare = not item.shape[1] and caption_of(item)
    return pd.DataFrame({"caption": [caption_of(item)]}) if bare else item
