"""Bags: the items in the cells of a field, with weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from karat.errors import DataError


@dataclass(frozen=True)
class Bags:
    """The items of a field: those of question i are ``rows[offsets[i]:offsets[i+1]]``."""

    rows: np.ndarray
    offsets: np.ndarray
    weights: np.ndarray

    def take(self, questions: np.ndarray) -> Bags:
        """Return the bags of some questions, in this order."""
        sizes = (self.offsets[1:] - self.offsets[:-1])[questions]
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
        starts = np.repeat(self.offsets[:-1][questions] - offsets[:-1], sizes)
        cells = np.arange(offsets[-1]) + starts
        return Bags(self.rows[cells], offsets, self.weights[cells])


@dataclass(frozen=True)
class Cells:
    """The flattened cells of a field: ids, weights, and the number of ids per question."""

    ids: np.ndarray
    weights: np.ndarray
    sizes: np.ndarray

    def question(self, position: int) -> int:
        """Return the question of the id at this position."""
        return int(np.searchsorted(np.cumsum(self.sizes), position, side="right"))

    def renamed(self, ids: np.ndarray) -> Any:
        """Return the cells with other ids; bags stay bags."""
        if len(ids) == len(self.sizes):
            return ids
        ends = np.cumsum(self.sizes)
        pairs = list(zip(ids.tolist(), self.weights.tolist(), strict=True))
        return [dict(pairs[end - size : end]) for end, size in zip(ends, self.sizes, strict=True)]


def holds_bags(cells: pd.Series) -> bool:
    """Return whether any cell is a bag ``{id: weight}``.

    >>> holds_bags(pd.Series([{"a": 1}, "b"])), holds_bags(pd.Series([1, 2]))
    (True, False)
    """
    if cells.dtype != object:
        return False
    return any(issubclass(kind, Mapping) for kind in set(map(type, cells.tolist())))


def flat(cells: pd.Series, where: str) -> Cells:
    """Return the flattened cells; a plain cell is a bag of one item with weight 1.

    >>> flat(pd.Series([{"a": 2, "b": 1}, "c"]), "pairs").ids.tolist()
    ['a', 'b', 'c']
    """
    if not holds_bags(cells):
        count = len(cells)
        found = Cells(cells.to_numpy(), np.ones(count), np.ones(count, dtype=np.intp))
    else:
        bags = [cell if isinstance(cell, Mapping) else {cell: 1.0} for cell in cells]
        ids = [key for bag in bags for key in bag]
        found = Cells(
            np.fromiter(ids, dtype=object, count=len(ids)),
            _weights([weight for bag in bags for weight in bag.values()], where),
            np.array([len(bag) for bag in bags], dtype=np.intp),
        )
        if (found.sizes == 0).any():
            question = int(np.flatnonzero(found.sizes == 0)[0])
            raise DataError(f"{where}: question {question} has an empty bag.")
    _check_ids(found, where)
    return found


def find(cells: pd.Series, items: pd.Index, where: str) -> Bags:
    """Return the positions of the items; an id that is not an item is an error."""
    found = flat(cells, where)
    rows = items.get_indexer(pd.Index(found.ids, tupleize_cols=False))
    if (rows < 0).any():
        position = int(np.flatnonzero(rows < 0)[0])
        raise DataError(
            f'{where}: question {found.question(position)} refers to "{found.ids[position]}", '
            f"which is not an item."
        )
    offsets = np.concatenate([[0], np.cumsum(found.sizes)]).astype(np.intp)
    return Bags(rows, offsets, found.weights)


def _weights(values: list[Any], where: str) -> np.ndarray:
    try:
        weights = np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        raise DataError(f"{where}: the weights of a bag must be numbers: {error}.") from error
    wrong = ~(np.isfinite(weights) & (weights > 0))
    if wrong.any():
        raise DataError(f"{where}: the weights of a bag must be > 0, got {weights[wrong][0]}.")
    return weights


def _check_ids(found: Cells, where: str) -> None:
    empty = pd.isna(found.ids)
    if empty.any():
        first = found.question(int(np.flatnonzero(empty)[0]))
        raise DataError(f"{where} is missing in {int(empty.sum())} rows (first: row {first}).")
