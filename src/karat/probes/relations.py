"""Probes of relations between items: analogies and links.

The analogy probe: a is to b as c is to … the item nearest to b − a + c. The links probe: predict
the tail of a relation from the vector of its head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd

from karat.core.dataset import Dataset
from karat.core.embeddings import Vectors, unit_rows
from karat.core.predictions import Predictions, as_text
from karat.core.registry import analogy_function, analogy_functions, probe
from karat.errors import ContractError, DefinitionError, did_you_mean
from karat.probes.retrieval import Ranking
from karat.probes.trained import missed, need_fields, ranked_predictions

#: maps the unit vectors of a, b and c to the vector to search for
Function = Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
WAYS = ("ridge", "translation")
#: number of questions per block
BLOCK = 16_384


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

    def unit(self, places: np.ndarray | slice) -> np.ndarray:
        """Return the unit vectors of candidates by place."""
        return unit_rows(self.matrix[places if self.rows is None else self.rows[places]])


@probe("analogy")
class Analogy:
    """Rank the target among all candidates by the cosine to b − a + c.

    ``candidates`` are the ``vocabulary`` of the encoder, or the items of the dataset if it
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
        chosen: Any = analogy_functions.get(str(function)) if named else function
        if chosen is not None and not callable(chosen):
            raise DefinitionError(
                f"probe: function must be a function of three vectors, got {function!r}."
            )
        number = isinstance(candidates, int) and not isinstance(candidates, bool)
        if candidates not in ("vocabulary", "dataset") and not (number and int(candidates) >= 1):
            raise DefinitionError(
                f'probe: candidates must be "vocabulary", "dataset" or an integer >= 1, '
                f"got {candidates!r}."
            )
        self.function = None if chosen is offset else chosen  # which is faster
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
        best, rank = Ranking(
            queries=targets, target=truth, out=out, count=len(stock.ids), vectors=stock.unit
        ).settle()
        given_items = np.sort(np.column_stack(places), axis=1)
        others = len(stock.ids) - 1 - (given_items[:, 1:] != given_items[:, :-1]).sum(axis=1)
        self.candidates_ = int(others.max())
        return ranked_predictions(test, stock.ids[best].to_numpy(), rank, others)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return empty predictions that rank the target behind every candidate."""
        return missed(test, getattr(self, "candidates_", max(len(test.items) - 3, 0)))

    def _targets(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        if self.function is None:
            return b - a + c
        # the length does not change the order, but the tolerance of ties assumes unit vectors
        return unit_rows(
            np.array([_checked(self.function, *abc) for abc in zip(a, b, c, strict=True)])
        )

    def _candidates(self, data: Dataset, vectors: Vectors) -> Stock:
        """Return all candidates, computed once for all views and for train and test."""
        vocabulary = self._vocabulary(vectors)
        of_data = vocabulary is None or self.candidates != "vocabulary"
        source = (vectors if vocabulary is None else vocabulary[1], data.items if of_data else None)
        stock_source = () if self._stock is None else self._stock.source
        if self._stock is None or any(
            a is not b for a, b in zip(stock_source, source, strict=True)
        ):
            if vocabulary is None:
                ids, matrix = data.items.index[vectors.rows], vectors.matrix
            else:
                ids, matrix = _as_text(vocabulary[0]), vocabulary[1]
            chosen = ~np.isnan(matrix[:, 0])
            if vocabulary is not None and isinstance(self.candidates, Integral):
                in_task = ids.isin(_as_text(data.items.index))
                in_task[: self.candidates] = True
                chosen &= in_task
            rows = None if chosen.all() else np.flatnonzero(chosen)
            self._stock = Stock(
                source=source, ids=ids if rows is None else ids[rows], matrix=matrix, rows=rows
            )
        return self._stock

    def _vocabulary(self, vectors: Vectors) -> tuple[pd.Index, np.ndarray] | None:
        return None if self.candidates == "dataset" else vectors.vocabulary

    def _ids(self, data: Dataset, vectors: Vectors) -> list[pd.Index]:
        """Return the ids of each field, and the targets unless they are hidden."""
        columns = [data.questions[name].to_numpy() for name in data.fields]
        columns += [] if data.target is None else [data.target]
        if self._vocabulary(vectors) is not None:
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


def _checked(function: Function, *arguments: np.ndarray) -> np.ndarray:
    """Call a custom function with three vectors and check what it returns."""
    name = getattr(function, "__name__", type(function).__name__)
    try:
        vector = np.asarray(function(*arguments), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ContractError(f"{name} must return a vector of numbers: {error}.") from error
    if vector.shape != arguments[0].shape:
        raise ContractError(
            f"{name} must return a vector of the shape {arguments[0].shape}, got {vector.shape}."
        )
    if not np.isfinite(vector).all():
        raise ContractError(f"{name} returned a vector with NaN or infinity.")
    return vector


@dataclass(frozen=True)
class Triples:
    """Links as positions of their items; relations are text."""

    head: np.ndarray
    relation: np.ndarray
    tail: np.ndarray

    @classmethod
    def of(cls, data: Dataset) -> Triples:
        """Return the links of questions; without groups there is one relation."""
        head = data.mentions(data.fields[0]).rows
        relation = np.full(len(data), "") if data.group is None else data.group
        wanted = pd.Index(np.asarray(data.target), tupleize_cols=False)
        return cls(head, as_text(relation), np.asarray(data.items.index.get_indexer(wanted)))


@dataclass(frozen=True)
class AffineMap:
    """An affine map from head to tail: subtract ``start``, apply matrices, add ``end``."""

    start: np.ndarray
    through: tuple[np.ndarray, ...]
    end: np.ndarray

    def follow(self, heads: np.ndarray) -> np.ndarray:
        """Return the predicted tail vector of each head."""
        steps = heads - self.start
        for matrix in self.through:
            steps = steps @ matrix
        return np.asarray(steps + self.end)


@probe("links")
class Links:
    """Rank the tail of a link among all items, by the cosine to its predicted vector.

    Each question is a head, its group the relation and its target the tail. A map from head to tail
    is fitted for every relation: ``relation: ridge`` is a linear map of the centered vectors, with
    the penalty ``alpha`` for vectors of mean length 1; ``translation`` adds the mean tail − head.
    Relations without train links use the map fitted on all links.

    Other correct answers of the same question, in train or test, are not candidates (filtered
    ranks). Ties count against the encoder.
    """

    def __init__(self, relation: str = "ridge", alpha: float = 1.0) -> None:
        if relation not in WAYS:
            raise DefinitionError(
                f'probe: unknown relation "{relation}".{did_you_mean(str(relation), WAYS)} '
                f"Available: {', '.join(WAYS)}."
            )
        if isinstance(alpha, bool) or not isinstance(alpha, int | float) or not 0 < alpha < np.inf:
            raise DefinitionError(f"probe: alpha must be a number > 0, got {alpha!r}.")
        self.relation = relation
        self.alpha = float(alpha)
        self.notes: list[str] = []

    def answerable(self, data: Dataset, vectors: Vectors) -> np.ndarray:
        """Return which questions have a vector for head and tail."""
        need_fields(data, "links", "items")
        answerable = vectors.answerable(data)
        if data.target is not None:
            answerable &= vectors.known(Triples.of(data).tail)
        return answerable

    def fit(self, train: Dataset, vectors: Vectors) -> None:
        """Fit the map of each relation, and one of all links."""
        if train.target is None:
            raise DefinitionError(
                "split: all hides the target, which links needs to be fitted; use another split."
            )
        self.taught_ = links = Triples.of(train)
        items = np.unique(np.concatenate([links.head, links.tail]))
        squares = [np.square(block).sum() for block in _blocks(vectors, items, 1.0)]
        self.scale_ = float(np.sqrt(np.sum(squares) / len(items))) or 1.0
        self.all_ = self._way(vectors, links.head, links.tail)
        self.ways_ = {
            relation: self._way(vectors, links.head[rows], links.tail[rows])
            for relation, rows in _by_relation(links.relation)
        }

    def answer(self, test: Dataset, vectors: Vectors) -> Predictions:
        """Return the item nearest to the predicted vector, and the rank of the target."""
        links = Triples.of(test)
        has_vector = np.flatnonzero(vectors.known(np.arange(len(test.items))))
        position = np.full(len(test.items), -1, dtype=np.intp)
        position[has_vector] = np.arange(len(has_vector))
        question, other = _other_answers(self.taught_, links)
        competing = position[other] >= 0
        out = question[competing], position[other[competing]]

        def unit(places: slice | np.ndarray) -> np.ndarray:
            return unit_rows(vectors.at(has_vector[places]))

        targets = self._targets(links, vectors)
        best, rank = Ranking(
            queries=targets,
            target=position[links.tail],
            out=out,
            count=len(has_vector),
            vectors=unit,
        ).settle()
        others = len(has_vector) - np.bincount(out[0], minlength=len(test))
        self.candidates_ = len(has_vector)
        return ranked_predictions(test, test.items.index[has_vector[best]].to_numpy(), rank, others)

    def unanswered(self, test: Dataset) -> Predictions:
        """Return empty predictions that rank the target behind every candidate."""
        return missed(test, getattr(self, "candidates_", len(test.items)))

    def _targets(self, links: Triples, vectors: Vectors) -> np.ndarray:
        """Return the predicted tail vectors at length 1."""
        targets = np.empty((len(links.head), vectors.matrix.shape[1]), dtype=np.float32)
        unseen = 0
        for relation, rows in _by_relation(links.relation):
            way = self.ways_.get(relation, self.all_)
            unseen += len(rows) * (relation not in self.ways_)
            heads = _blocks(vectors, links.head[rows], self.scale_)
            for begin, block in zip(range(0, len(rows), BLOCK), heads, strict=True):
                targets[rows[begin : begin + BLOCK]] = unit_rows(way.follow(block))
        note = f"{unseen} of {len(targets)} questions have a relation without train links"
        self.notes = [f"{note}; they use the map fitted on all links."] if unseen else []
        return targets

    def _way(self, vectors: Vectors, heads: np.ndarray, tails: np.ndarray) -> AffineMap:
        def pairs() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            sides = (_blocks(vectors, rows, self.scale_) for rows in (heads, tails))
            return zip(*sides, strict=True)

        start, end = (
            sum(block.sum(axis=0) for block in _blocks(vectors, rows, self.scale_)) / len(rows)
            for rows in (heads, tails)
        )
        if self.relation == "translation":
            return AffineMap(start, (), end)
        size = len(start)
        if 2 * len(heads) < size:  # with fewer links than dimensions the dual problem is smaller
            ((a, b),) = ((a - start, b - end) for a, b in pairs())
            dual = np.linalg.solve(a @ a.T + self.alpha * np.eye(len(a)), b)
            return AffineMap(start, (a.T, dual), end)
        within, across = self.alpha * np.eye(size), np.zeros((size, size))
        for a, b in pairs():
            a, b = a - start, b - end
            within += a.T @ a
            across += a.T @ b
        return AffineMap(start, (np.linalg.solve(within, across),), end)


def _blocks(vectors: Vectors, rows: np.ndarray, scale: float) -> Iterator[np.ndarray]:
    """Yield blocks of item vectors in 64 bits, divided by the scale."""
    for begin in range(0, len(rows), BLOCK):
        yield vectors.at(rows[begin : begin + BLOCK]).astype(np.float64) / scale


def _by_relation(relations: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    codes, names = pd.factorize(relations)
    rows = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    return zip(names, rows, strict=True)


def _other_answers(train: Triples, test: Triples) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of a test question and an item that is another correct answer to it."""
    queries = pd.DataFrame({"head": test.head, "relation": test.relation})
    queries["question"] = np.arange(len(queries))
    links = pd.concat([pd.DataFrame(vars(train)), pd.DataFrame(vars(test))]).drop_duplicates()
    matches = queries.merge(links, on=["head", "relation"])
    question, tail = matches["question"].to_numpy(), matches["tail"].to_numpy()
    other = tail != test.tail[question]
    return question[other], tail[other]
