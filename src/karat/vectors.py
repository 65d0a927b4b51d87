"""Vectors: fit an encoder, embed items, and know which items it does not know.

A row of NaN means "I do not know this item". Everything about missing entities, coverage and the
questions that can be answered follows from that one rule. A partly-NaN row is a broken contract.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.dataset import Dataset
from karat.errors import ContractError

#: a sparse matrix is made dense below this many bytes
DENSE_LIMIT = 4 * 2**30
#: so many texts are encoded by one call, unless the encoder has a ``chunk`` of its own
CHUNK = 256
#: rows are made as long as 1 in blocks of this many
BLOCK = 4096


@dataclass(frozen=True)
class Vectors:
    """The vectors of some items: row i of the matrix belongs to the item at ``rows[i]``.

    The rows ascend. ``vocabulary`` is the encoder's own whole stock of ids and vectors, where it
    has one.
    """

    matrix: np.ndarray
    rows: np.ndarray
    vocabulary: tuple[pd.Index, np.ndarray] | None = None

    def at(self, positions: np.ndarray) -> np.ndarray:
        """Return the vectors of items by their position in the data set; a miss is an error."""
        return np.asarray(self.matrix[self._places(positions)])

    def known(self, positions: np.ndarray) -> np.ndarray:
        """Return which of these items the encoder knows."""
        return ~np.isnan(self.matrix[self._places(positions), 0])

    def _places(self, positions: np.ndarray) -> np.ndarray:
        places = np.searchsorted(self.rows, positions)
        # one past the end is a miss as well; -1 would be numpy's last row
        lost = np.append(self.rows, -1)[places] != positions
        if lost.any():
            raise KeyError(f"no vector was computed for the item at {positions[lost][0]}.")
        return places

    def of(self, data: Dataset, field: str) -> np.ndarray:
        """Return one vector per question: the item's, or a bag's weighted mean of known items."""
        bags = data.mentions(field)
        values = self.at(bags.rows)
        if len(bags.rows) == len(data):
            return values
        weights = np.where(np.isnan(values[:, 0]), 0.0, bags.weights)
        sums = np.add.reduceat(np.nan_to_num(values) * weights[:, None], bags.offsets[:-1], axis=0)
        totals = np.add.reduceat(weights, bags.offsets[:-1])[:, None]
        with np.errstate(invalid="ignore"):
            return sums / np.where(totals > 0, totals, np.nan)

    def answerable(self, data: Dataset) -> np.ndarray:
        """Return which questions mention, in every field, an item the encoder knows."""
        able = np.ones(len(data), dtype=bool)
        for name in data.fields:
            bags = data.mentions(name)
            known = self.known(bags.rows)
            able &= np.logical_or.reduceat(known, bags.offsets[:-1])
        return able


def unit_rows(matrix: np.ndarray, dtype: Any = np.float32) -> np.ndarray:
    """Return the rows at length 1, in 32 bits or as told; a row of zeros stays as it is.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    rows = np.empty(np.shape(matrix), dtype=dtype)
    for begin in range(0, len(matrix), BLOCK):  # all in 64 bits at once would be a third copy
        block = np.asarray(matrix[begin : begin + BLOCK], dtype=np.float64)
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        rows[begin : begin + BLOCK] = block / np.where(lengths > 0, lengths, 1.0)
    return rows


def check_vectors(values: Any, items: int, name: str) -> np.ndarray:
    """Return an encoder's output as a matrix of floats, or say which promise it broke.

    >>> check_vectors([[1, 2], [3, 4]], 2, "mine").dtype
    dtype('float32')
    """
    matrix = _matrix(values, items, name)
    _check_finite(matrix, name)
    return np.ascontiguousarray(matrix)


def _matrix(values: Any, items: int, name: str) -> np.ndarray:
    try:
        matrix = _array(values, name)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float32)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{name} must return numbers, one row per item: {error}.") from error
    if matrix.ndim != 2:
        raise ContractError(
            f"{name} must return a matrix, one row per item; it returned {matrix.ndim} dimensions."
        )
    if matrix.shape[0] != items:
        raise ContractError(f"{name} returned {matrix.shape[0]} rows for {items} items.")
    if matrix.shape[1] == 0:
        raise ContractError(f"{name} returned vectors without a single dimension.")
    return matrix


def _array(values: Any, name: str) -> np.ndarray:
    """Return a dense array of what may be sparse, masked, a tensor, a frame or nested lists."""
    if isinstance(values, list | tuple) and values and hasattr(values[0], "detach"):
        return np.stack([_array(value, name) for value in values])
    if hasattr(values, "toarray"):
        size = int(np.prod(values.shape)) * values.dtype.itemsize
        if size > DENSE_LIMIT:
            raise ContractError(
                f"{name} returned a sparse matrix of {' × '.join(map(str, values.shape))}, "
                f"{size / 2**30:.1f} GB when dense; lower its number of dimensions."
            )
        values = values.toarray()
    if hasattr(values, "detach"):
        values = values.detach().cpu()
        # numpy has no bfloat16
        values = (values.float() if "bfloat16" in str(values.dtype) else values).numpy()
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)
    array = np.asarray(values)
    written = array.dtype == object and any(isinstance(cell, str) for cell in array.flat)
    if array.dtype.kind in "USmMcV" or written:
        raise TypeError(f"they are {'text' if written else array.dtype}")
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
        raise ContractError(f"{name} returned an infinite number ({where(infinite)[1]}).")
    empty = (~finite).sum(axis=1)
    partly = (empty > 0) & (empty < matrix.shape[1])
    if partly.any():
        row, place = where(partly)
        raise ContractError(
            f"{name} returned NaN in part of a row ({place}: {empty[row]} of "
            f"{matrix.shape[1]}); a whole row of NaN means that it does not know the item."
        )


# -- texts, each once -----------------------------------------------------------------------


def distinct(items: Any) -> tuple[np.ndarray, list[str]]:
    """Return the texts of some items, each once, and which of them every item has; -1 for none.

    >>> codes, texts = distinct(pd.Series(["b", "a", None, "b"]))
    >>> codes.tolist(), texts
    ([0, 1, -1, 0], ['b', 'a'])
    """
    written = [
        None if missing else str(text) for text, missing in zip(items, pd.isna(items), strict=True)
    ]
    codes, texts = pd.factorize(np.array(written, dtype=object))
    return codes, texts.tolist()


def spread(matrix: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Return the vectors of items from those of their texts; an item without text is unknown."""
    rows = matrix[np.maximum(codes, 0)] if len(matrix) else np.empty((len(codes), 1), np.float32)
    rows[codes < 0] = np.nan
    return rows


def encode(
    encoder: Any, texts: list[str], name: str, tell: Callable[[int], None] | None = None
) -> np.ndarray:
    """Return one row of 32-bit numbers per text, or say which promise the encoder broke.

    The texts go to ``encoder.encode`` some at a time, the longest first; ``tell`` hears how many
    are done. An encoder whose ``chunk`` is None gets all at once, in their order.
    """
    size = getattr(encoder, "chunk", CHUNK)
    order = np.arange(len(texts))
    if size is not None:
        order = np.argsort([-len(text) for text in texts], kind="stable")
    rows: np.ndarray | None = None
    for begin in range(0, len(texts), size or len(texts) or 1):
        places = order[begin : begin + size] if size else order
        some = [texts[i] for i in places]
        found = _encoded(encoder.encode(some), some, name)
        rows = np.empty((len(texts), found.shape[1]), np.float32) if rows is None else rows
        if found.shape[1] != rows.shape[1]:
            raise ContractError(
                f"{name} returned {rows.shape[1]} dimensions for some texts and "
                f"{found.shape[1]} for others."
            )
        rows[places] = found
        if tell is not None:
            tell(begin + len(places))
    return np.empty((0, 1), np.float32) if rows is None else rows


def _encoded(values: Any, texts: list[str], name: str) -> np.ndarray:
    with np.errstate(over="ignore"):  # a number too large becomes infinity, which is then told
        matrix = _matrix(values, len(texts), name).astype(np.float32, copy=False)
    _check_finite(matrix, name, texts)
    return matrix


# -- data sets ------------------------------------------------------------------------------


def fit_embed(encoder: Any, train: Dataset, name: str) -> Vectors:
    """Fit an encoder on the items the train questions mention, and embed those items.

    Where answers are items these are all, but not those that only the test questions ask about.

    The truth is passed on where it is not hidden and each item has one; an item of two questions
    with unlike answers has none.
    """
    rows = train.learnable()
    items = train.items.iloc[rows]
    y = _truth_of_items(train, rows)
    if hasattr(encoder, "fit_transform"):
        values = encoder.fit_transform(items) if y is None else encoder.fit_transform(items, y)
    elif hasattr(encoder, "fit"):
        encoder.fit(items) if y is None else encoder.fit(items, y)
        values = encoder.transform(items)
    else:
        values = encoder.transform(items)
    return Vectors(check_vectors(values, len(rows), f"{name}.transform"), rows)


def embed(encoder: Any, data: Dataset, name: str, width: int | None = None) -> Vectors:
    """Embed the items a data set's questions mention with a fitted encoder."""
    rows = data.mentioned()
    items = data.items.iloc[rows]
    if data.modality in getattr(encoder, "by_text", ()):
        codes, texts = distinct(items)
        matrix = spread(encode(encoder, texts, name), codes)
    else:
        matrix = check_vectors(encoder.transform(items), len(rows), f"{name}.transform")
    if width is not None and matrix.shape[1] != width:
        raise ContractError(
            f"{name}.transform returned {matrix.shape[1]} dimensions for the test items "
            f"and {width} for the train items."
        )
    return Vectors(matrix, rows)


def _truth_of_items(train: Dataset, rows: np.ndarray) -> np.ndarray | None:
    if train.truth is None or len(train.fields) != 1 or train.kind == "items":
        return None
    asked = train.mentions(train.fields[0]).rows
    if len(asked) != len(train):
        return None
    truth = np.empty(len(train.items), dtype=train.truth.dtype)
    truth[asked] = train.truth
    if not (truth[asked] == train.truth).all():
        return None
    return truth[rows]
