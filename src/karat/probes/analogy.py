"""The analogy probe: a is to b as c is to … the item nearest to b − a + c."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors, unit_rows
from karat.core.predictions import Predictions, as_text
from karat.core.registry import analogy_function, analogy_functions, probe
from karat.errors import ContractError, DefinitionError
from karat.probes.retrieval import Ranking
from karat.probes.trained import missed, need_fields, ranked

#: maps the unit vectors of a, b and c to the vector to search for
Function = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]


@analogy_function("default")
def offset(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return b - a + c."""
    return b - a + c


@dataclass(frozen=True)
class Stock:
    """The candidates: their ids, and the rows of the matrix with their vectors."""

    source: tuple[Any, Any]
    ids: pd.Index
    matrix: np.ndarray
    rows: np.ndarray | None

    def unit(self, places: Any) -> np.ndarray:
        """Return the unit vectors of candidates by place."""
        return unit_rows(self.matrix[places if self.rows is None else self.rows[places]])


@probe("analogy")
class Analogy:
    """Rank the target among all candidates by the cosine to b − a + c.

    ``candidates`` are the whole ``vocabulary`` of the encoder, or the items of the dataset if it
    has none; only the items of the ``dataset``, the same for every encoder; or, for an integer n,
    the first n items of the vocabulary and the items of the dataset. a, b and c are not candidates,
    so a target that is one of them cannot be found. Ties count against the encoder.

    ``function``, a function, its ``"package.module:name"`` or its registered name, takes the unit
    vectors of a, b and c and returns the vector to search for instead of b − a + c.
    """

    def __init__(
        self, function: Function | str | None = None, candidates: str | int = "vocabulary"
    ) -> None:
        named = isinstance(function, str)
        given: Any = analogy_functions.get(str(function)) if named else function
        if given is not None and not callable(given):
            raise DefinitionError(
                f"probe: function must be a function of three vectors, got {function!r}."
            )
        whole = isinstance(candidates, int) and not isinstance(candidates, bool)
        if candidates not in ("vocabulary", "dataset") and not (whole and int(candidates) >= 1):
            raise DefinitionError(
                f'probe: candidates must be "vocabulary", "dataset" or an integer >= 1, '
                f"got {candidates!r}."
            )
        self.function = None if given is offset else given  # which is faster
        self.candidates = candidates
        self.notes: list[str] = []
        self._stock: Stock | None = None

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have a vector for every item and for the target."""
        need_fields(data, "analogy", "items", 3)
        stock = self._candidates(data, vectors)
        answerable = vectors.answerable(data)
        for wanted in self._ids(data, vectors):
            answerable &= _find(stock.ids, wanted) >= 0
        return answerable

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Do nothing: the probe is stateless."""

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the nearest candidate of each question and the rank of the target."""
        stock = self._candidates(test, vectors)
        *places, truth = (_places(stock.ids, wanted) for wanted in self._ids(test, vectors))
        out = (np.tile(np.arange(len(test)), 3), np.concatenate(places))
        targets = self._targets(*map(stock.unit, places))
        best, rank = Ranking(targets, truth, out, len(stock.ids), stock.unit).settle()
        asked = np.sort(np.column_stack(places), axis=1)
        others = len(stock.ids) - 1 - (asked[:, 1:] != asked[:, :-1]).sum(axis=1)
        self.candidates_ = int(others.max())
        return ranked(test, stock.ids[best].to_numpy(), rank, others)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return empty predictions that rank the target behind every candidate."""
        return missed(test, getattr(self, "candidates_", max(len(test.items) - 3, 0)))

    def _targets(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        if self.function is None:
            return b - a + c
        # the length does not change the order, but the tolerance of ties assumes unit vectors
        return unit_rows(
            np.array([_checked(self.function, *asked) for asked in zip(a, b, c, strict=True)])
        )

    def _candidates(self, data: Dataset, vectors: Vectors) -> Stock:
        """Return all candidates, computed once for all views and for train and test."""
        whole = self._whole(vectors)
        of_data = whole is None or self.candidates != "vocabulary"
        source = (vectors if whole is None else whole[1], data.items if of_data else None)
        known = () if self._stock is None else self._stock.source
        if self._stock is None or any(a is not b for a, b in zip(known, source, strict=True)):
            if whole is None:
                ids, matrix = data.items.index[vectors.rows], vectors.matrix
            else:
                ids, matrix = _as_text(whole[0]), whole[1]
            chosen = ~np.isnan(matrix[:, 0])
            if whole is not None and isinstance(self.candidates, Integral):
                own = ids.isin(_as_text(data.items.index))
                own[: self.candidates] = True
                chosen &= own
            rows = None if chosen.all() else np.flatnonzero(chosen)
            self._stock = Stock(source, ids if rows is None else ids[rows], matrix, rows)
        return self._stock

    def _whole(self, vectors: Vectors) -> tuple[pd.Index, np.ndarray] | None:
        return None if self.candidates == "dataset" else vectors.vocabulary

    def _ids(self, data: Dataset, vectors: Vectors) -> list[pd.Index]:
        """Return the ids of each field, and the targets unless they are hidden."""
        columns = [data.questions[name].to_numpy() for name in data.fields]
        columns += [] if data.target is None else [data.target]
        if self._whole(vectors) is not None:
            # the ids of a vector file are text
            columns = [as_text(column) for column in columns]
        return [pd.Index(column, tupleize_cols=False) for column in columns]


def _as_text(ids: pd.Index) -> pd.Index:
    return ids if ids.inferred_type == "string" else pd.Index(as_text(ids))


def _find(ids: pd.Index, wanted: pd.Index) -> np.ndarray:
    """Return the places of ids, -1 if not found; an IRI may be written in angle brackets."""
    places = np.asarray(ids.get_indexer(wanted))
    missing = np.flatnonzero(places < 0)
    if len(missing) and wanted.inferred_type == "string":
        plain = [text[1:-1] if text[:1] + text[-1:] == "<>" else text for text in wanted[missing]]
        places[missing] = ids.get_indexer(pd.Index(plain, dtype=object))
    return places


def _places(ids: pd.Index, wanted: pd.Index) -> np.ndarray:
    places = _find(ids, wanted)
    if (places < 0).any():
        raise KeyError(f"{wanted[int(np.argmax(places < 0))]} is not a candidate.")
    return places


def _checked(function: Function, *asked: np.ndarray) -> np.ndarray:
    """Call a custom function with three vectors and check what it returns."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        vector = np.asarray(function(*asked), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{name} must return a vector of numbers: {error}.") from error
    if vector.shape != asked[0].shape:
        raise ContractError(
            f"{name} must return a vector of the shape {asked[0].shape}, got {vector.shape}."
        )
    if not np.isfinite(vector).all():
        raise ContractError(f"{name} returned a vector with NaN or infinity.")
    return vector
