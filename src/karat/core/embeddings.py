"""Vectors of items: fit an encoder, embed items, check what it returns, and compress vectors.

A row of NaN means that the encoder has no vector for the item; coverage and the questions that can
be answered follow from this rule. A row that is partly NaN is an error.

A variant of an encoder keeps the first dimensions of every vector and stores each in 32, 16 or 8
bits, or as its sign. Training and test vectors are compressed in the same way; whatever is measured
for this is measured on the training documents.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Integral
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import DTypeLike

from karat.core.columns import Bags
from karat.core.dataset import QUERY, Dataset
from karat.core.digest import sha256_of
from karat.errors import ContractError, DefinitionError, did_you_mean

#: maximum size in bytes of a sparse matrix when dense
DENSE_LIMIT = 4 * 2**30
#: number of texts per call of an encoder without a ``chunk`` attribute
CHUNK = 256
#: the norms of normalized vectors differ from 1 by less than this
NORMALIZED = 1e-3
#: bits per dimension of a stored vector
BITS = {"float32": 32, "float16": 16, "int8": 8, "binary": 1}
#: number of values that are normalized at once, small enough for the processor cache
BLOCK = 2**17
#: returns the shared object of a name, made by the second argument on first use
Keep = Callable[[str, Callable[[], Any]], Any]
#: number of documents that are ranked again with ``rescore: true``
RESCORED = 40
#: largest number of 16 bits
_MOST = float(np.finfo(np.float16).max)
_NAME = re.compile(
    r"(?P<base>.+)@(?:(?P<dimensions>\d+)d)?-?(?P<precision>float16|int8|binary)?(?P<rescore>-rescore)?"
)


class EncoderLike(Protocol):
    """What an encoder has at least."""

    def transform(self, items: object, /, **options: object) -> Any:
        """Return a matrix with a row per item."""


class TextEncoderLike(Protocol):
    """What an encoder of texts has at least."""

    def encode(self, texts: list[str], /, **options: object) -> Any:
        """Return a matrix with a row per text."""


@dataclass(frozen=True)
class Vectors:
    """Vectors of items: row i of the matrix is the vector of item ``rows[i]``; rows ascend.

    ``vocabulary`` are all ids and vectors of the encoder, if it has a vocabulary. ``both`` are the
    items that have a second vector as a query; these are the last rows of the matrix. If vectors
    of one bit are searched in two steps, ``exact`` are those of 32 bits, and the first ``rescore``
    documents are ranked again.
    """

    matrix: np.ndarray
    rows: np.ndarray
    vocabulary: tuple[pd.Index, np.ndarray] | None = None
    both: np.ndarray | None = None
    exact: np.ndarray | None = None
    rescore: int = 0

    def at(self, positions: np.ndarray, query: bool = False) -> np.ndarray:
        """Return the vectors of items by their position in the dataset, or those as queries."""
        return np.asarray(self.matrix[self._places_in_role(positions, query)])

    def rows_at(self, positions: np.ndarray, query: bool = False) -> np.ndarray:
        """Return the same without a copy if the items follow each other; only to be read."""
        places = self._places_in_role(positions, query)
        if (
            len(places)
            and places[-1] - places[0] == len(places) - 1
            and (np.diff(places) == 1).all()
        ):
            return np.asarray(self.matrix[places[0] : places[-1] + 1])
        return np.asarray(self.matrix[places])

    def units(
        self, positions: np.ndarray, dtype: DTypeLike = np.float32, *, query: bool = False
    ) -> np.ndarray:
        """Return the vectors of items with L2 norm 1, without a copy of the others."""
        return unit_rows(self.matrix, dtype, self._places_in_role(positions, query))

    def known(self, positions: np.ndarray) -> np.ndarray:
        """Return which of these items have a vector."""
        return self._has_vector[self._places(positions)]

    @cached_property
    def normalized(self) -> bool:
        """Whether all vectors have the L2 norm 1, except zeros."""
        lengths = np.sqrt(np.einsum("ij,ij->i", self.matrix, self.matrix, dtype=np.float64))
        lengths = lengths[lengths > 0]  # not NaN either
        return bool(len(lengths)) and bool((np.abs(lengths - 1) < NORMALIZED).all())

    @cached_property
    def _has_vector(self) -> np.ndarray:
        return ~np.isnan(self.matrix[:, 0])

    def _places_in_role(self, positions: np.ndarray, query: bool) -> np.ndarray:
        places = self._places(positions)
        if not query or self.both is None or not len(self.both):
            return places
        second = np.searchsorted(self.both, positions)
        is_in_both = np.append(self.both, -1)[second] == positions
        return np.where(is_in_both, len(self.rows) + second, places)

    @cached_property
    def _all_known(self) -> bool:
        return bool(self._has_vector.all())

    def _places(self, positions: np.ndarray) -> np.ndarray:
        most = len(self.rows) - 1
        if most >= 0 and self.rows[0] == 0 and self.rows[-1] == most and len(positions):
            # rows ascend, so they are 0, 1, 2, … and a position is its place
            if positions.min() >= 0 and positions.max() <= most:
                return positions
        places = np.searchsorted(self.rows, positions)
        missing = (
            self.rows.take(places, mode="clip") != positions if len(self.rows) else places >= 0
        )
        if missing.any():
            raise KeyError(f"no vector was computed for the item at {positions[missing][0]}.")
        return places

    def of(self, data: Dataset, field: str, read: bool = False) -> np.ndarray:
        """Return one vector per question, as ``means``."""
        return self.means(data.mentions(field), QUERY in data.role_of(field), read)

    def means(self, bags: Bags, query: bool = False, read: bool = False) -> np.ndarray:
        """Return one vector per bag: the item's, or the weighted mean of its items.

        With ``read``, the result may be part of the matrix, which must not be changed.
        """
        values = (self.rows_at if read else self.at)(bags.rows, query)
        if len(bags.rows) == len(bags.offsets) - 1:
            return values
        weights = np.where(np.isnan(values[:, 0]), 0.0, bags.weights)
        sums = np.add.reduceat(np.nan_to_num(values) * weights[:, None], bags.offsets[:-1], axis=0)
        totals = np.add.reduceat(weights, bags.offsets[:-1])[:, None]
        with np.errstate(invalid="ignore"):
            return sums / np.where(totals > 0, totals, np.nan)

    def answerable(self, data: Dataset) -> np.ndarray:
        """Return which questions mention, in every field, an item with a vector."""
        able = np.ones(len(data), dtype=bool)
        for name in data.fields:
            bags = data.mentions(name)
            has_vector = self.known(bags.rows)
            if self._all_known:
                continue
            able &= np.logical_or.reduceat(has_vector, bags.offsets[:-1])
        return able


def unit_rows(
    matrix: np.ndarray, dtype: DTypeLike = np.float32, places: np.ndarray | None = None
) -> np.ndarray:
    """Return the rows, or those at some places, with L2 norm 1; rows of zeros are unchanged.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    count, width = (len(matrix) if places is None else len(places)), np.shape(matrix)[1]
    rows = np.empty((count, width), dtype=dtype)
    step = max(1, BLOCK // max(1, width))
    for begin in range(0, count, step):  # saves a copy of the whole matrix in 64 bits
        part = slice(begin, begin + step)
        block = np.asarray(matrix[part if places is None else places[part]], dtype=np.float64)
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        rows[part] = block / np.where(lengths > 0, lengths, 1.0)
    return rows


def align_rows(values: object, items: pd.DataFrame | pd.Series, name: str) -> Any:
    """Return the rows of a data frame or series in the order of the items, by their index.

    An index of row numbers 0, 1, … is that of a new frame, whose rows are in order. Any other
    index that is not the items' own raises a ContractError. Values without an index are returned
    as they are.

    >>> items = pd.Series(["x", "y"], index=["a", "b"])
    >>> align_rows(pd.Series([1, 2], index=["b", "a"]), items, "mine").tolist()
    [2, 1]
    """
    index = getattr(items, "index", None)
    if not isinstance(values, pd.DataFrame | pd.Series) or not isinstance(index, pd.Index):
        return values
    if values.index.equals(index) or len(values) != len(index):  # the length is checked later
        return values
    is_permutation = values.index.is_unique and index.is_unique and values.index.isin(index).all()
    if is_permutation:
        return values.reindex(index)
    if values.index.equals(pd.RangeIndex(len(values))):
        return values
    raise ContractError(
        f"{name} returned rows with another index than its items; keep the index of the items, or "
        f"return an array with one row per item, in their order."
    )


def check_vectors(values: object, items: int, name: str) -> np.ndarray:
    """Return an encoder's output as a matrix of floats, or raise a ContractError.

    >>> check_vectors([[1, 2], [3, 4]], 2, "mine").dtype
    dtype('float32')
    """
    matrix = _matrix(values, items, name)
    _check_finite(matrix, name)
    return np.ascontiguousarray(matrix)


def _matrix(values: object, items: int, name: str) -> np.ndarray:
    try:
        matrix = _array(values, name)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{name} must return numbers, one row per item: {error}.") from error
    if matrix.ndim != 2:
        raise ContractError(
            f"{name} must return a matrix, one row per item; got {matrix.ndim} dimensions."
        )
    if matrix.shape[0] != items:
        raise ContractError(f"{name} returned {matrix.shape[0]} rows for {items} items.")
    if matrix.shape[1] == 0:
        raise ContractError(f"{name} returned vectors of length 0.")
    return matrix


def _array(values: Any, name: str) -> np.ndarray:
    """Return a dense array of a sparse or masked array, a tensor, a frame or nested lists."""
    if isinstance(values, list | tuple) and values and hasattr(values[0], "detach"):
        return np.stack([_array(value, name) for value in values])
    if hasattr(values, "toarray"):
        size = int(np.prod(values.shape)) * values.dtype.itemsize
        if size > DENSE_LIMIT:
            raise ContractError(
                f"{name} returned a sparse matrix of {' × '.join(map(str, values.shape))}, "
                f"{size / 2**30:.1f} GB when dense; reduce its number of dimensions."
            )
        values = values.toarray()
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        # numpy has no bfloat16
        values = (values.float() if "bfloat16" in str(values.dtype) else values).numpy()
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)
    array = np.asarray(values)
    text = array.dtype == object and any(isinstance(cell, str) for cell in array.flat)
    if array.dtype.kind in "USmMcV" or text:
        raise TypeError(f"got {'text' if text else array.dtype}")
    return array


def _check_finite(matrix: np.ndarray, name: str, texts: list[str] | None = None) -> None:
    finite = np.isfinite(matrix)
    if finite.all():
        return

    def where(wrong: np.ndarray) -> tuple[int, str]:
        row = int(np.flatnonzero(wrong)[0])
        return row, f"row {row}" if texts is None else f'the text "{texts[row][:60]}"'

    infinite = np.isinf(matrix).any(axis=1)
    if infinite.any():
        raise ContractError(f"{name} returned an infinite value ({where(infinite)[1]}).")
    empty = (~finite).sum(axis=1)
    partly = (empty > 0) & (empty < matrix.shape[1])
    if partly.any():
        row, which = where(partly)
        raise ContractError(
            f"{name} returned NaN in part of a row ({which}: {empty[row]} of "
            f"{matrix.shape[1]}); an item without a vector must be a whole row of NaN."
        )


# -- texts, each once -----------------------------------------------------------------------


def distinct_texts(items: pd.DataFrame | pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return the index of each item's text, -1 if it is missing, and the distinct texts.

    >>> codes, texts = distinct_texts(pd.Series(["b", "a", None, "b"]))
    >>> codes.tolist(), texts
    ([0, 1, -1, 0], ['b', 'a'])
    """
    cells = np.asarray(items, dtype=object)
    if pd.api.types.infer_dtype(cells, skipna=False) != "string":
        pairs = zip(cells, pd.isna(cells), strict=True)
        cells = np.array([None if missing else str(cell) for cell, missing in pairs], dtype=object)
    codes, distinct = pd.factorize(cells)
    return codes, list(map(str, distinct))


def item_vectors(matrix: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the vectors of items from those of their texts; NaN for an item without text."""
    if np.array_equal(codes, np.arange(len(matrix))):  # one text per item
        return matrix
    rows = matrix[np.maximum(codes, 0)] if len(matrix) else np.empty((len(codes), 1), np.float32)
    rows[codes < 0] = np.nan
    return rows


def encode(
    encoder: TextEncoderLike,
    texts: list[str],
    name: str,
    progress: Callable[[int], None] | None = None,
    *,
    role: str = "",
) -> np.ndarray:
    """Return one row of 32-bit floats per text, or raise a ContractError.

    ``encoder.encode`` gets ``encoder.chunk`` texts at a time, longest first; all at once, in their
    order, if that is None. ``progress`` is called with the number of encoded texts. An encoder
    that ``uses_roles`` also gets the role of the texts, such as "query".
    """
    size = getattr(encoder, "chunk", CHUNK)
    options = {"role": role} if role and uses_roles(encoder) else {}
    order = np.arange(len(texts))
    if size is not None:
        order = np.argsort(-np.fromiter(map(len, texts), np.intp), kind="stable")
    rows: np.ndarray | None = None
    for begin in range(0, len(texts), size or len(texts) or 1):
        places = order[begin : begin + size] if size else order
        chunk = [texts[i] for i in places.tolist()]
        with np.errstate(over="ignore"):  # overflow becomes infinity, which is an error below
            values = _matrix(encoder.encode(chunk, **options), len(chunk), name)
            vectors = values.astype(np.float32, copy=False)
        _check_finite(vectors, name, chunk)
        rows = np.empty((len(texts), vectors.shape[1]), np.float32) if rows is None else rows
        if vectors.shape[1] != rows.shape[1]:
            raise ContractError(
                f"{name} returned {rows.shape[1]} dimensions for some texts and "
                f"{vectors.shape[1]} for others."
            )
        rows[places] = vectors
        if progress is not None:
            progress(begin + len(places))
    return np.empty((0, 1), np.float32) if rows is None else rows


def vector_bytes(dimensions: int, precision: str = "float32") -> int:
    """Return the size of a stored vector.

    >>> [vector_bytes(100, precision) for precision in BITS]
    [400, 200, 100, 13]
    """
    return -(-dimensions * BITS[precision] // 8)


# -- roles ----------------------------------------------------------------------------------


def uses_roles(encoder: object) -> bool:
    """Return whether an encoder embeds queries in another way than documents."""
    return bool(getattr(encoder, "uses_roles", False))


def declared_prompts(encoder: object) -> list[str]:
    """Return the names of the prompts that an encoder has, whether they are used or not."""
    return sorted(map(str, getattr(encoder, "declared_prompts", ())))


@dataclass(frozen=True)
class RoleOrder:
    """The items to embed by position, with the role of each; the last ones are ``both``.

    ``prompts`` are the prompts of the roles; a role without one has an empty prompt.
    """

    places: np.ndarray
    roles: np.ndarray
    both: np.ndarray
    prompts: Mapping[str, str] = field(default_factory=dict)

    def matrix(self, name: str, embed: Callable[[np.ndarray, str], np.ndarray]) -> np.ndarray:
        """Return one row per place; ``embed`` returns those of some places in one role."""
        groups = [(role, np.flatnonzero(self.roles == role)) for role in dict.fromkeys(self.roles)]
        if len(groups) < 2:
            return embed(self.places, groups[0][0] if groups else "")
        parts = [embed(self.places[chosen], role) for role, chosen in groups]
        widths = {part.shape[1] for part in parts}
        if len(widths) > 1:
            several = " and ".join(map(str, sorted(widths)))
            raise ContractError(f"{name} returned {several} dimensions in different roles.")
        rows = np.empty((len(self.places), *widths), dtype=parts[0].dtype)
        for (_, chosen), part in zip(groups, parts, strict=True):
            rows[chosen] = part
        return rows


def role_order(encoder: Any, data: Dataset, rows: np.ndarray) -> RoleOrder:
    """Return which items to embed in which role.

    Without roles, or if the encoder has one prompt for all of them, each item is embedded once.
    """
    none = np.empty(0, dtype=np.intp)
    if not data.roles or not uses_roles(encoder):
        return RoleOrder(rows, np.full(len(rows), "", dtype=object), none)
    main = data.item_roles.main[rows]
    both = np.intersect1d(data.item_roles.both, rows)
    names = dict.fromkeys([*main, *([QUERY] if len(both) else [])])
    prompts = {role: str(encoder.prompt_for(role)) if role else "" for role in names}
    if len(set(prompts.values())) == 1:
        return RoleOrder(
            places=rows,
            roles=np.full(len(rows), next(iter(names)), dtype=object),
            both=none,
            prompts=prompts,
        )
    roles = np.concatenate([main, np.full(len(both), QUERY, dtype=object)])
    return RoleOrder(places=np.concatenate([rows, both]), roles=roles, both=both, prompts=prompts)


# -- datasets -------------------------------------------------------------------------------


def fit_embed(encoder: EncoderLike, train: Dataset, name: str) -> Vectors:
    """Fit an encoder on the items of the train questions and embed those items.

    If targets are items, these are all items except those that only test questions mention. The
    target is passed to ``fit`` if it is visible and each item has exactly one.
    """
    rows = train.learnable()
    items = train.items.iloc[rows]
    y = None
    if train.target is not None and len(train.fields) == 1 and train.kind != "items":
        mentioned = train.mentions(train.fields[0]).rows
        if len(mentioned) == len(train):
            targets = np.empty(len(train.items), dtype=train.target.dtype)
            targets[mentioned] = train.target
            y = targets[rows] if (targets[mentioned] == train.target).all() else None
    if hasattr(encoder, "fit_transform"):
        values = encoder.fit_transform(items) if y is None else encoder.fit_transform(items, y)
    elif hasattr(encoder, "fit"):
        encoder.fit(items) if y is None else encoder.fit(items, y)
        values = encoder.transform(items)
    else:
        values = encoder.transform(items)
    values = align_rows(values, items, f"{name}.transform")
    return Vectors(check_vectors(values, len(rows), f"{name}.transform"), rows)


def embed(encoder: Any, data: Dataset, name: str, width: int | None = None) -> Vectors:
    """Embed the items that the questions mention with a fitted encoder."""
    rows = data.mentioned()

    def embed_items(places: np.ndarray, role: str) -> np.ndarray:
        items = data.items.iloc[places]
        if data.modality in getattr(encoder, "by_text", ()):
            codes, texts = distinct_texts(items)
            return item_vectors(encode(encoder, texts, name, role=role), codes)
        return transformed(encoder, items, name, role)

    order = role_order(encoder, data, rows)
    matrix = order.matrix(name, embed_items)
    if width is not None and matrix.shape[1] != width:
        raise ContractError(
            f"{name}.transform returned {matrix.shape[1]} dimensions for the test items "
            f"and {width} for the train items."
        )
    return Vectors(matrix, rows, both=order.both)


def transformed(
    encoder: Any, items: pd.DataFrame | pd.Series, name: str, role: str = ""
) -> np.ndarray:
    """Return the checked vectors of an encoder's ``transform``."""
    options = {"role": role} if role else {}
    values = align_rows(encoder.transform(items, **options), items, f"{name}.transform")
    return check_vectors(values, len(items), f"{name}.transform")


# -- variants -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variant:
    """The dimensions (None: all) and the precision of stored vectors.

    ``rescore``: a search by Hamming distance ranks the first ``rescore`` documents again, by the
    32-bit vector of the query.
    """

    dimensions: int | None = None
    precision: str = "float32"
    rescore: int = 0

    @property
    def label(self) -> str:
        """The part of its name after the @: "128d-int8", "128d", "int8"; empty for the encoder."""
        width = "" if self.dimensions is None else f"{self.dimensions}d"
        bits = "" if self.precision == "float32" else self.precision
        return "-".join(filter(None, (width, bits, "rescore" if self.rescore else "")))

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the run."""
        width = {} if self.dimensions is None else {"dimensions": self.dimensions}
        again = {"rescore": self.rescore} if self.rescore else {}
        return {**width, "precision": self.precision, **again}

    def fit(self, train: Dataset, vectors: Vectors, keep: Keep | None = None) -> Compression:
        """Return the compression of a fold, fitted on its training documents.

        ``keep`` shares the vectors of these dimensions in 32 bits with other variants.
        """
        width = vectors.matrix.shape[1]
        if self.dimensions is not None and self.dimensions > width:
            raise DefinitionError(too_many_dimensions(self.dimensions, width))
        shorter = self.dimensions is not None and self.dimensions < width
        compression = Compression(self, shorter and vectors.normalized)
        if self.precision != "int8":
            return compression
        documents = _documents(train, compression.shorten(vectors, keep))
        documents = documents if len(documents) else np.zeros((1, documents.shape[1]), np.float32)
        return replace(compression, low=documents.min(axis=0), high=documents.max(axis=0))


def too_many_dimensions(dimensions: int, width: int) -> str:
    """Return the message for a variant that has more dimensions than its encoder."""
    return (
        f"dimensions: {dimensions}, but the vectors of the encoder have {width} dimensions; choose "
        f"{width} or fewer."
    )


def _documents(train: Dataset, vectors: Vectors) -> np.ndarray:
    """Return the vectors on which a compression is fitted: of all training items but the queries.

    Of an encoder with a vocabulary, that is what is searched. If all items are queries, such as
    pairs without a training split, it is all of them.
    """
    if vectors.vocabulary is not None:
        matrix = vectors.vocabulary[1]
    else:
        rows = train.learnable()
        query = np.zeros(len(train.items), dtype=bool)
        if train.kind == "items":
            query[train.asked()] = True
        elif train.roles:
            query = train.item_roles.main == QUERY
        matrix = vectors.at(rows if query[rows].all() else rows[~query[rows]])
    unknown = np.isnan(matrix[:, 0])
    return matrix[~unknown] if unknown.any() else matrix


@dataclass(frozen=True)
class Compression:
    """A variant that is fitted to a fold. ``low`` and ``high`` are the range of 8-bit numbers."""

    variant: Variant
    normalize: bool
    low: np.ndarray | None = None
    high: np.ndarray | None = None

    @property
    def key(self) -> str:
        """A hash that differs between compressions with different results."""
        bounds = b"".join(bound.tobytes() for bound in (self.low, self.high) if bound is not None)
        text = f"{self.variant} {self.normalize} {bounds.hex()}"
        return sha256_of(text)

    def apply(self, vectors: Vectors, keep: Keep | None = None) -> Vectors:
        """Return compressed vectors; items without a vector have none."""
        short = self.shorten(vectors, keep)
        vocabulary = short.vocabulary
        if vocabulary is not None:
            vocabulary = (vocabulary[0], self._stored(vocabulary[1]))
        return replace(
            short,
            matrix=self._stored(short.matrix),
            vocabulary=vocabulary,
            exact=short.matrix if self.variant.rescore else None,
            rescore=self.variant.rescore,
        )

    def shorten(self, vectors: Vectors, keep: Keep | None = None) -> Vectors:
        """Return the first dimensions of vectors in 32 bits, made once if they are kept."""

        def make() -> Vectors:
            vocabulary = vectors.vocabulary
            if vocabulary is not None:
                vocabulary = (vocabulary[0], self.shortened(vocabulary[1]))
            return replace(vectors, matrix=self.shortened(vectors.matrix), vocabulary=vocabulary)

        name = f"short {self.variant.dimensions} {self.normalize}"
        return make() if keep is None else keep(name, make)

    def shortened(self, matrix: np.ndarray) -> np.ndarray:
        """Return the first dimensions in 32 bits, with norm 1 again if all vectors had that."""
        short = np.asarray(matrix[:, : self.variant.dimensions], dtype=np.float32)
        return unit_rows(short) if self.normalize else short

    def _stored(self, short: np.ndarray) -> np.ndarray:
        """Return the numbers that stored vectors represent, in 32 bits; for 1 bit, -1 and 1.

        The cosine of vectors of -1 and 1 is 1 - 2 h / d for a Hamming distance h in d dimensions.
        """
        if self.variant.precision == "float16":
            short = np.clip(short, -_MOST, _MOST).astype(np.float16).astype(np.float32)
        elif self.variant.precision == "int8":
            short = self._decoded(self.codes(short))
        elif self.variant.precision == "binary":
            unknown = np.isnan(short[:, 0])
            short = np.where(short > 0, np.float32(1), np.float32(-1))
            short[unknown] = np.nan
        return short

    def codes(self, short: np.ndarray) -> np.ndarray:
        """Return the integers from -128 to 127 that store the first dimensions in 8 bits.

        -128 is the lowest number of a dimension in the training documents and 127 the highest;
        numbers outside are clipped. A dimension that is constant there has the code 0. NaN stays.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            codes = np.asarray(short - self.low)
            codes /= self._step
            np.rint(codes, out=codes)
            codes -= 128
            np.clip(codes, -128, 127, out=codes)
        varies = self._step > 0
        return codes if varies.all() else np.where(varies | np.isnan(short), codes, np.float32(0))

    def _decoded(self, codes: np.ndarray) -> np.ndarray:
        """Turn codes into the numbers that they store, in place."""
        codes += 128
        codes *= self._step
        codes += self.low
        return codes

    @property
    def _step(self) -> np.ndarray:
        assert self.low is not None and self.high is not None
        return (self.high - self.low) / np.float32(255)


def make_variants(dimensions: Any = (), precision: Any = (), rescore: Any = False) -> list[Variant]:
    """Return all combinations of dimensions and precisions but the encoder itself.

    ``rescore`` is the number of documents that a search with one bit ranks again, or True.

    >>> [variant.label for variant in make_variants([64], ["float32", "int8"])]
    ['64d', '64d-int8']
    """
    widths, bits = _listed(dimensions), _listed(precision)
    messages = [
        f"dimensions must be integers >= 1, got {width!r}."
        for width in widths
        if isinstance(width, bool) or not isinstance(width, Integral) or int(width) < 1
    ]
    messages += [
        f"precision must be one of {', '.join(BITS)}, got {kind!r}.{did_you_mean(str(kind), BITS)}"
        for kind in bits
        if not isinstance(kind, str) or kind not in BITS
    ]
    again = RESCORED if rescore is True else int(rescore) if _is_count(rescore) else None
    if again is None:
        messages.append(f"rescore must be true or an integer >= 1, got {rescore!r}.")
    elif again and "binary" not in bits:
        messages.append("rescore requires precision: binary, which is searched in two steps.")
    if messages:
        raise DefinitionError(*messages)
    chosen: list[int | None] = [*map(int, dict.fromkeys(widths))] or [None]
    variants = [
        Variant(width, kind, (again or 0) if kind == "binary" else 0)
        for width in chosen
        for kind in dict.fromkeys(bits or ["float32"])
    ]
    return [variant for variant in variants if variant.label]


def _listed(value: object) -> list[Any]:
    if value is None:
        return []
    return [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)


def _is_count(value: object) -> bool:
    return value is False or (
        isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1
    )


def split_name(name: str) -> tuple[str, Variant] | None:
    """Return the name of the encoder and the variant that a name states, None if it states none.

    >>> split_name("minilm@128d-int8")
    ('minilm', Variant(dimensions=128, precision='int8', rescore=0))
    """
    parts = _NAME.fullmatch(name)
    if parts is None:
        return None
    width, again = parts["dimensions"], RESCORED if parts["rescore"] else 0
    try:
        (variant,) = make_variants(int(width) if width else None, parts["precision"], bool(again))
    except (DefinitionError, ValueError):
        return None
    return (parts["base"], variant) if name == f"{parts['base']}@{variant.label}" else None
